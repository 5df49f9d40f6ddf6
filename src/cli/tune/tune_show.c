/* What `moirai tune` found: a table of everything that was run, and a verdict that can be acted on. */
#include "cli/tune/tune.h"

#include <math.h>
#include <string.h>
#include <yyjson.h>

#define LOUD 0.1

/* After the passes only what took part in them counts: who was measured once may have been lucky. */
static bool counts(const tune *t, const tune_case *x)
{
    return x->measured_ns >= 0 && (!t->n_passes || x->n_passes > 1);
}

tune_case *tune_best_alone(tune *t)
{
    tune_case *best = NULL;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        if (counts(t, &t->alone[k]) && (!best || t->alone[k].measured_ns < best->measured_ns))
            best = &t->alone[k];
    return best;
}

tune_case *tune_best_round(tune *t)
{
    tune_case *best = NULL;
    for (int r = 0; r < t->n_rounds; r++)
        if (counts(t, &t->round[r]) && (!best || t->round[r].measured_ns < best->measured_ns))
            best = &t->round[r];
    return best;
}

void tune_show_case(const tune *t, const tune_case *x)
{
    if (x->measured_ns < 0)
        return;
    if (x->promised_ns < 0)
        cli_say(t->cli, "%s: measured %s\n", x->name, cli_human_ns(x->measured_ns).s);
    else
        cli_say(t->cli, "%s: predicted %s, measured %s, %lld transfers\n", x->name, cli_human_ns(x->promised_ns).s,
                cli_human_ns(x->measured_ns).s, (long long)x->transfers);
}

yyjson_mut_val *tune_case_json(const tune *t, const tune_case *x)
{
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *o = yyjson_mut_obj(d), *passes = yyjson_mut_arr(d);
    yyjson_mut_obj_add_strcpy(d, o, "name", x->name);
    if (x->kind)
        yyjson_mut_obj_add_str(d, o, "kind", x->kind);
    if (x->promised_ns >= 0)
        yyjson_mut_obj_add_int(d, o, "promised_ns", x->promised_ns);
    yyjson_mut_obj_add_int(d, o, "measured_ns", x->measured_ns);
    yyjson_mut_obj_add_int(d, o, "transfers", x->transfers);
    if (x->net->cut)
        yyjson_mut_obj_add_bool(d, o, "cut", true);
    if (x->busiest > 0)
        yyjson_mut_obj_add_real(d, o, "busiest", x->busiest);
    if (x->promised_busiest > 0)
        yyjson_mut_obj_add_real(d, o, "promised_busiest", x->promised_busiest);
    for (int i = 0; i < x->n_passes; i++)
        yyjson_mut_arr_add_int(d, passes, x->pass_ns[i]);
    yyjson_mut_obj_add_val(d, o, "passes_ns", passes);
    return o;
}

static void row(tune *t, yyjson_mut_val *list, const tune_case *x)
{
    if (x->measured_ns < 0)
        return;
    cli_print(t->cli, "%-32s %13s %13s %10lld %7d%s\n", x->name,
              x->promised_ns < 0 ? "-" : cli_human_ns(x->promised_ns).s, cli_human_ns(x->measured_ns).s,
              (long long)x->transfers, x->n_passes, x == t->kept ? "  kept" : "");
    yyjson_mut_arr_append(list, tune_case_json(t, x));
}

void tune_table(tune *t, tune_row *show)
{
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *alone = yyjson_mut_arr(d), *rounds = yyjson_mut_arr(d), *machine = yyjson_mut_arr(d);
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        show(t, alone, &t->alone[k]);
    show(t, machine, &t->machine);
    for (int r = 0; r < t->n_rounds; r++)
        show(t, rounds, &t->round[r]);
    yyjson_mut_obj_add_val(d, t->cli->result, "alone", alone);
    yyjson_mut_obj_add_val(d, t->cli->result, "machine", machine);
    yyjson_mut_obj_add_val(d, t->cli->result, "rounds", rounds);
}

static double times(int64_t other, int64_t own)
{
    return own > 0 ? (double)other / (double)own : 1;
}

/* The sentence on split or not. */
static void say_kept(char *out, size_t size, tune *t, bool is_split)
{
    const tune_case *alone = tune_best_alone(t), *split = tune_best_round(t);
    if (is_split && alone)
        snprintf(out, size, "the plan takes %s, %.2f times as fast as the best device alone (%s, %s)",
                 cli_human_ns(t->kept->measured_ns).s, times(alone->measured_ns, t->kept->measured_ns), alone->name,
                 cli_human_ns(alone->measured_ns).s);
    else if (is_split)
        snprintf(out, size, "the plan takes %s; no device holds the whole network",
                 cli_human_ns(t->kept->measured_ns).s);
    else if (split && split->measured_ns < t->kept->measured_ns)
        snprintf(out, size,
                 "NO SPLIT PAYS: the fastest takes %s and %s %s, no difference to speak of: the plan that is "
                 "kept uses one device",
                 cli_human_ns(split->measured_ns).s, t->kept->name, cli_human_ns(t->kept->measured_ns).s);
    else if (split)
        snprintf(out, size, "NO SPLIT PAYS: %s takes %s, the fastest split %s: the plan that is kept uses one device",
                 t->kept->name, cli_human_ns(t->kept->measured_ns).s, cli_human_ns(split->measured_ns).s);
    else
        snprintf(out, size, "NO SPLIT was run (%s): %s takes %s: the plan that is kept uses one device", t->stopped,
                 t->kept->name, cli_human_ns(t->kept->measured_ns).s);
}

static void verdict(tune *t)
{
    char text[700];
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *o = t->cli->result;
    bool is_split = t->kept >= t->round && t->kept < t->round + t->n_rounds;
    int64_t machine = t->machine.measured_ns;
    bool machine_wins = machine >= 0 && machine < t->kept->measured_ns;
    say_kept(text, sizeof text, t, is_split);
    cli_print(t->cli, "\nverdict      %s\n", text);
    yyjson_mut_obj_add_strcpy(d, o, "verdict", text);
    yyjson_mut_obj_add_bool(d, o, "split_pays", is_split);
    yyjson_mut_obj_add_bool(d, o, "machine_is_faster", machine_wins);
    if (machine_wins)
        cli_print(t->cli,
                  "             DON'T DEPLOY IT: the whole model on %s takes %s, %.2f times as fast as what is kept: "
                  "one device with \"threads\": %d is better than these\n",
                  t->machine.name, cli_human_ns(machine).s, times(t->kept->measured_ns, machine), t->host_cores);
    else if (machine >= 0)
        cli_print(t->cli, "             the whole model on %s takes %s, %.2f times as long\n", t->machine.name,
                  cli_human_ns(machine).s, times(machine, t->kept->measured_ns));
}

static void show_noise(tune *t)
{
    if (t->noise > LOUD)
        cli_print(
            t->cli,
            "noise        passes of one and the same plan differ by %.0f %% (interquartile range): this machine does "
            "other work, or its speed changes\n",
            100 * t->noise);
    yyjson_mut_obj_add_real(t->cli->doc, t->cli->result, "noise", t->noise);
}

static void show_prediction(tune *t)
{
    char noise[80] = "";
    if (t->predicted_ns <= 0 || t->judged_ns <= 0)
        return;
    if (isfinite(t->unsure))
        snprintf(noise, sizeof noise, "; noise alone explains %.1f %%", 100 * t->unsure);
    cli_print(t->cli,
              "prediction   the model that half of the last runs taught says %s, the other half %s: %+.1f %% off%s\n",
              cli_human_ns(t->predicted_ns).s, cli_human_ns(t->judged_ns).s,
              100 * (times(t->predicted_ns, t->judged_ns) - 1), noise);
}

/* The fastest split of the model as it is, or (`cut`) of one that was cut. */
static const tune_case *best_of(const tune *t, bool cut)
{
    const tune_case *best = NULL;
    for (int r = 0; r < t->n_rounds; r++)
        if (t->round[r].measured_ns >= 0 && !!t->round[r].net->cut == cut &&
            (!best || t->round[r].measured_ns < best->measured_ns))
            best = &t->round[r];
    return best;
}

/* What came of --split-operators. */
static void show_cut(tune *t)
{
    const tune_case *cut = best_of(t, true), *whole = best_of(t, false);
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *o = t->cli->result;
    if (!t->cut_verdict)
        return;
    yyjson_mut_obj_add_str(d, o, "cut_verdict", t->cut_verdict);
    yyjson_mut_obj_add_int(d, o, "cuts_profiled", t->n_nets - 1);
    yyjson_mut_obj_add_bool(d, o, "cut_kept", t->kept->net->cut != NULL);
    if (t->cut_net)
        yyjson_mut_obj_add_strcpy(d, o, "cut", t->cut_net->cut);
    if (cut)
        yyjson_mut_obj_add_int(d, o, "best_cut_ns", cut->measured_ns);
    if (whole)
        yyjson_mut_obj_add_int(d, o, "best_whole_split_ns", whole->measured_ns);
    cli_print(t->cli, "cut          %s\n", t->cut_verdict);
    if (cut)
        cli_print(t->cli, "             in pieces, verified, %s; split by whole operators %s\n",
                  cli_human_ns(cut->measured_ns).s, whole ? cli_human_ns(whole->measured_ns).s : "-");
    if (t->kept->net->cut)
        cli_print(t->cli, "             %.400s%s\n             the plan is for the cut model%s\n", t->kept->net->cut,
                  strlen(t->kept->net->cut) > 400 ? " ..." : "",
                  cli_text(t->cli, "cut-out") ? "" : ", which --cut-out FILE writes");
}

void tune_show(tune *t)
{
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *o = t->cli->result;
    const tune_case *alone = tune_best_alone(t);
    cli_print(t->cli, "%-32s %13s %13s %10s %7s\n", "plan", "promised", "measured", "transfers", "runs");
    tune_table(t, row);
    verdict(t);
    show_cut(t);
    show_noise(t);
    show_prediction(t);
    cli_print(t->cli, "rounds       %d, then %s\n", t->n_rounds, t->stopped);
    yyjson_mut_obj_add_strcpy(d, o, "kept", t->kept->name);
    yyjson_mut_obj_add_int(d, o, "measured_ns", t->kept->measured_ns);
    yyjson_mut_obj_add_int(d, o, "transfers", t->kept->transfers);
    if (t->kept->promised_ns >= 0)
        yyjson_mut_obj_add_int(d, o, "promised_ns", t->kept->promised_ns);
    if (t->predicted_ns > 0)
        yyjson_mut_obj_add_int(d, o, "predicted_ns", t->predicted_ns);
    if (t->judged_ns > 0) {
        yyjson_mut_obj_add_int(d, o, "judged_ns", t->judged_ns);
        if (isfinite(t->unsure))
            yyjson_mut_obj_add_real(d, o, "unsure", t->unsure);
    }
    if (alone)
        yyjson_mut_obj_add_int(d, o, "best_alone_ns", alone->measured_ns);
    if (t->machine.measured_ns >= 0)
        yyjson_mut_obj_add_int(d, o, "machine_ns", t->machine.measured_ns);
    yyjson_mut_obj_add_int(d, o, "n_rounds", t->n_rounds);
    yyjson_mut_obj_add_int(d, o, "n_passes", t->n_passes);
    yyjson_mut_obj_add_str(d, o, "stopped", t->stopped);
}
