/* moirai tune --objective rate: what serves the most requests per second, as measured.
 *
 * After probe, profile and the network alone on every device:
 *
 * 1. Rounds: refine with all runs so far, those with requests in flight among them, plan, run with N requests in flight. The first round has one plan of each kind:
 *    the fastest device alone (with two requests in flight, so that it never waits for one), a copy on each device, the
 *    plan of one request, a row of stages, and the best of any kind that the search finds. What can have several requests in flight are
 *    processors (cli_rate_check), which compute to send: a transfer holds both of them (--congestion device). Later rounds have the best alone, with times as the runs had them. It ends when that comes back,
 *    when a round was no faster, with the budget, or with Ctrl-C.
 * 2. Passes: all that were run are run again in turns, with half of the time, and what is slower than the fastest beyond
 *    doubt is left out. The fastest by the median of its passes is kept.
 *
 * Every run compares each result with that of the same request alone, and the first run of a plan verifies all its copies
 * against the whole model. Nothing is kept on the word of the simulator. */
#include "cli/tune/tune_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli/commands/commands.h"
#include "cli/measure/run_rate.h"
#include "util/sort.h"
#include "util/util.h"

#define DECIDE 0.5    /* of the time, for the passes */
#define WORTH 0.01    /* a round that is no faster than that ends the rounds */
#define RUN_OF_RATE 3 /* a run lasts so many times --run-seconds: many requests make one period */
enum { LEAST_PASSES = 3, MOST_PASSES = 15, ALONE = 0, BEST = 4, PER_ROUND };

static const struct {
    const char *kind, *text;
} kinds[PER_ROUND] = {{"alone", "the fastest device alone"},
                      {"replicas", "a copy on each device"}, /* the first that tells what devices do to each other */
                      {"latency", "the plan of one request"},
                      {"stages", "stages"},
                      {"any", "the best rate"}};

static bool interrupted(void)
{
    return moirai_interrupt_raised(cli_interrupt());
}

static int64_t in_flight(const tune *t)
{
    int64_t n = cli_has(t->cli, "in-flight") ? cli_count(t->cli, "in-flight") : 2 * (int64_t)t->cluster->n_devices;
    return UTIL_MIN(UTIL_MAX(n, 2), CLI_MOST_IN_FLIGHT);
}

/* ---- a plan ---- */

static bool is_known(const tune *t, const tune_case *x)
{
    bool found = false;
    for (int r = 0; r < t->n_rounds; r++)
        found |= t->round[r].placement == x->placement;
    return found;
}

/* The plan of the device that was fastest alone. */
static void take_alone(tune *t, tune_case *out)
{
    const tune_case *best = tune_best_alone(t);
    *out = (tune_case){.net = &t->net[0], .promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    if (!best)
        return;
    out->promised_ns = best->measured_ns; /* what refined times say */
    out->placement = best->placement;
    out->kind = kinds[ALONE].kind;
    snprintf(out->name, sizeof out->name, "%.120s, 2 in flight", best->name);
    snprintf(out->tag, sizeof out->tag, "rate-%d", t->n_rounds + 1);
    snprintf(out->plan, sizeof out->plan, "%s", best->plan);
    snprintf(out->cluster, sizeof out->cluster, "%s", t->cluster_path);
}

/* The most promising plan of a kind over all sets of devices that are apart; x->plan[0] is '\0' where there is none. */
static int make_plan(tune *t, tune_case *out, int kind, int round)
{
    char flight[24], others[TUNE_PATH];
    tune_case best = {.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    snprintf(flight, sizeof flight, "%lld", (long long)in_flight(t));
    for (int s = 0; s < t->n_sets && !interrupted(); s++) {
        tune_case x = {.net = &t->net[0], .promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
        const char *more[] = {"--objective",  "rate",   "--in-flight", flight, "--kind", kinds[kind].kind,
                              "--congestion", "device", NULL,          others, NULL};
        tune_forbid(others, sizeof others, t, t->set[s]);
        more[8] = *others ? "--forbid" : NULL;
        x.kind = kinds[kind].kind;
        snprintf(x.name, sizeof x.name, round > 1 ? "%s, round %d" : "%s", kinds[kind].text, round);
        snprintf(x.tag, sizeof x.tag, "rate-%d", t->n_rounds + 1);
        snprintf(x.plan, sizeof x.plan, "%s/plan-%d-%d.json", t->folder, t->n_rounds + 1, s);
        snprintf(x.cluster, sizeof x.cluster, "%s", t->cluster_path);
        cli_status_set("planning %s", x.name);
        int rc = tune_make_plan(t, &x, t->net[0].graph, t->net[0].links, NULL, more);
        if (rc && rc != MOIRAI_EINFEASIBLE && rc != MOIRAI_ELIMIT)
            return rc;
        if (!rc && (best.promised_ns < 0 || x.promised_ns < best.promised_ns))
            best = x;
    }
    *out = best;
    return 0;
}

/* ---- a run ---- */

static int64_t median(const tune_case *x)
{
    int64_t sorted[2 * TUNE_MOST_PASSES + 1];
    memcpy(sorted, x->pass_ns, (size_t)x->n_passes * sizeof *sorted);
    qsort(sorted, (size_t)x->n_passes, sizeof *sorted, util_by_int64);
    return x->n_passes ? sorted[(x->n_passes - 1) / 2] : MOIRAI_UNKNOWN;
}

/* Who works most of the time. Devices may be faster or slower in a run than when their times were taken; what the runtime makes of them is right
 * where the share is the simulated one. */
static void read_busiest(tune_case *x, yyjson_mut_val *rate)
{
    yyjson_mut_val *d;
    size_t i, n;
    x->busiest = x->promised_busiest = 0;
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(rate, "devices"), i, n, d) {
        double share = yyjson_mut_get_num(yyjson_mut_obj_get(d, "busy_share"));
        double promised =
            (double)yyjson_mut_get_sint(yyjson_mut_obj_get(d, "planned_ns")) / (double)UTIL_MAX(x->promised_ns, 1);
        x->promised_busiest = UTIL_MIN(UTIL_MAX(x->promised_busiest, promised), 1);
        if (share <= x->busiest)
            continue;
        x->busiest = share;
        snprintf(x->limit, sizeof x->limit, "%.150s", yyjson_mut_get_str(yyjson_mut_obj_get(d, "name")));
    }
}

/* One more period of `x`. A plan for one request at a time has a latency for it. */
static int run_once(tune *t, tune_case *x)
{
    char seconds[32], timeline[TUNE_PATH];
    tune_words w = {0};
    cli_context sub;
    tune_timeline(timeline, t, x, x->n_passes ? 1 : 0); /* the first is what refine reads */
    snprintf(seconds, sizeof seconds, "%.6f", RUN_OF_RATE * cli_real(t->cli, "run-seconds"));
    tune_say_run(&w, t, x);
    tune_say_option(&w, "--runs", cli_text(t->cli, "runs"));
    tune_say_option(&w, "--warmup", cli_text(t->cli, "warmup"));
    tune_say_option(&w, "--seconds", seconds);
    tune_say_option(&w, "--timeline", timeline);
    if (!strcmp(x->kind, kinds[ALONE].kind))
        tune_say_option(&w, "--in-flight", "2");
    if (!x->n_passes)
        tune_say(&w, "--verify");
    cli_status_set("running %s", x->name);
    int rc = tune_call(&sub, t, &cli_command_run, &w, true);
    yyjson_mut_val *rate = rc ? NULL : yyjson_mut_obj_get(sub.result, "rate");
    if (!rc && x->n_passes <= 2 * TUNE_MOST_PASSES) {
        yyjson_mut_val *period = yyjson_mut_obj_get(rate, "period_ns");
        x->pass_ns[x->n_passes++] = period ? yyjson_mut_get_sint(period) : tune_result(&sub, "median_ns");
        read_busiest(x, rate);
    }
    cli_free(&sub);
    x->measured_ns = median(x);
    return rc;
}

/* ---- rounds ---- */

static tune_case *fastest(tune *t)
{
    tune_case *best = NULL;
    for (int r = 0; r < t->n_rounds; r++)
        if (t->round[r].measured_ns > 0 && (!best || t->round[r].measured_ns < best->measured_ns))
            best = &t->round[r];
    return best;
}

static bool is_late(const tune *t, double reserve)
{
    return interrupted() || tune_left_s(t) < 1.5 * t->round_s + reserve * t->limit_s;
}

/* A plan and its first run; *fresh: it is one that was not run before. The first of all is run in any case. */
static int one_plan(tune *t, int kind, int round, bool *fresh)
{
    tune_case *x = &t->round[t->n_rounds];
    double begin_s = util_seconds();
    int rc = 0;
    if (kind == ALONE)
        take_alone(t, x);
    else
        rc = make_plan(t, x, kind, round);
    *fresh = !rc && *x->plan && !is_known(t, x);
    if (!*fresh)
        return rc;
    rc = run_once(t, x);
    if (rc)
        return rc;
    t->n_rounds++;
    t->round_s = UTIL_MAX(t->round_s, util_seconds() - begin_s);
    tune_show_case(t, x);
    return 0;
}

static int one_round(tune *t, int round, bool *any)
{
    int rc = 0;
    *any = false;
    for (int k = round > 1 ? BEST : 0; k < PER_ROUND && !rc; k++) {
        bool fresh = false;
        if (t->n_rounds && is_late(t, DECIDE)) {
            t->stopped = interrupted() ? "Ctrl-C" : "the time was over";
            *any = false;
            return 0;
        }
        if (t->n_rounds == 2 * TUNE_MOST_ROUNDS)
            return 0;
        rc = tune_refine(t, &t->net[0], NULL); /* every run tells more of what devices take with requests in flight */
        rc = rc ? rc : one_plan(t, k, round, &fresh);
        *any |= fresh;
    }
    t->stopped = "the best plans were ones that had been run";
    return rc;
}

static int rounds(tune *t)
{
    int most = (int)cli_count(t->cli, "rounds"), rc = 0;
    bool any = true;
    for (int round = 1; round <= UTIL_MAX(most, 1) && any && !rc && !interrupted(); round++) {
        const tune_case *best = fastest(t);
        int64_t before = best ? best->measured_ns : INT64_MAX;
        rc = one_round(t, round, &any);
        best = fastest(t);
        if (any && best && before < INT64_MAX && (double)best->measured_ns > (1 - WORTH) * (double)before) {
            t->stopped = "it no longer got faster";
            return rc;
        }
        if (any && round == most)
            t->stopped = "the given number of rounds was over";
    }
    return rc;
}

/* ---- passes ---- */

/* Slower than the fastest even at its best. */
static void drop(tune *t)
{
    const tune_case *best = fastest(t);
    for (int r = 0; r < t->n_rounds; r++) {
        tune_case *x = &t->round[r];
        int64_t least = INT64_MAX;
        for (int i = 0; i < x->n_passes; i++)
            least = UTIL_MIN(least, x->pass_ns[i]);
        if (x->n_passes >= LEAST_PASSES && x != best && least > best->measured_ns)
            x->dropped = true;
    }
}

static int count_open(const tune *t)
{
    int n = 0;
    for (int r = 0; r < t->n_rounds; r++)
        n += !t->round[r].dropped;
    return n;
}

static int passes(tune *t)
{
    int most = (int)UTIL_MIN(cli_count(t->cli, "passes"), MOST_PASSES), rc = 0;
    double pass_s = 0;
    while (t->n_passes < most && !rc && count_open(t) > 1 && !interrupted() && tune_left_s(t) > 1.2 * pass_s) {
        double begin_s = util_seconds();
        for (int r = 0; r < t->n_rounds && !rc && !interrupted(); r++)
            if (!t->round[r].dropped)
                rc = run_once(t, &t->round[r]);
        t->n_passes++;
        pass_s = util_seconds() - begin_s;
        drop(t);
    }
    return rc;
}

int tune_rate(tune *t)
{
    int rc = rounds(t);
    rc = rc ? rc : passes(t);
    if (rc && !(interrupted() && t->n_rounds))
        return rc;
    if (interrupted())
        t->stopped = "Ctrl-C";
    t->kept = fastest(t);
    return t->kept         ? 0
           : interrupted() ? moirai_error(MOIRAI_ELIMIT, "tune: interrupted before anything was run")
                           : moirai_error(MOIRAI_EINFEASIBLE, "tune: no plan for many requests was found");
}

/* ---- what is said ---- */

static void row(tune *t, yyjson_mut_val *list, const tune_case *x)
{
    if (x->measured_ns <= 0)
        return;
    cli_print(t->cli, "%-45s %13s %13s %10.6g %6d%s\n", x->name,
              x->promised_ns < 0 ? "-" : cli_human_ns(x->promised_ns).s, cli_human_ns(x->measured_ns).s,
              1e9 / (double)x->measured_ns, x->n_passes, x == t->kept ? "  kept" : "");
    yyjson_mut_arr_append(list, tune_case_json(t, x));
}

/* Against the fastest of each other kind; returns where the text ends. */
static size_t say_others(char *out, size_t size, const tune *t)
{
    size_t used = 0;
    for (int k = 0; k <= BEST; k++) {
        const tune_case *best = NULL;
        for (int r = 0; r < t->n_rounds; r++)
            if (!strcmp(t->round[r].kind, kinds[k].kind) && (!best || t->round[r].measured_ns < best->measured_ns))
                best = &t->round[r];
        if (best && strcmp(best->kind, t->kept->kind))
            used += (size_t)snprintf(out + used, size - used, "%s%.2f times %s", used ? ", " : "; ",
                                     (double)best->measured_ns / (double)t->kept->measured_ns, kinds[k].text);
        used = UTIL_MIN(used, size - 1);
    }
    return used;
}

static void verdict(tune *t)
{
    char text[900];
    const tune_case *x = t->kept;
    bool alone = !strcmp(x->kind, kinds[ALONE].kind);
    size_t used = (size_t)snprintf(text, sizeof text, "%s%s serves %.6g requests per second, one every %s",
                                   alone ? "NO SPLIT PAYS: " : "", x->name, 1e9 / (double)x->measured_ns,
                                   cli_human_ns(x->measured_ns).s);
    used += say_others(text + used, sizeof text - used, t);
    if (x->busiest > 0)
        snprintf(text + used, sizeof text - used, "; device %s computes %.0f %% of the time%s", x->limit,
                 100 * x->busiest, alone ? "" : ", the most of all");
    cli_print(t->cli, "\nverdict      %s\n", text);
    yyjson_mut_obj_add_strcpy(t->cli->doc, t->cli->result, "verdict", text);
    yyjson_mut_obj_add_bool(t->cli->doc, t->cli->result, "split_pays", !alone);
}

void tune_rate_show(tune *t)
{
    yyjson_mut_doc *d = t->cli->doc;
    yyjson_mut_val *o = t->cli->result;
    cli_print(t->cli, "%-45s %13s %13s %10s %6s\n", "plan", "promised", "one every", "a second", "runs");
    tune_table(t, row);
    verdict(t);
    cli_print(t->cli, "rounds       %d plans run, then %s; %d passes\n", t->n_rounds, t->stopped, t->n_passes);
    yyjson_mut_obj_add_str(d, o, "objective", "rate");
    yyjson_mut_obj_add_int(d, o, "in_flight", in_flight(t));
    yyjson_mut_obj_add_strcpy(d, o, "kept", t->kept->name);
    yyjson_mut_obj_add_str(d, o, "kind", t->kept->kind);
    yyjson_mut_obj_add_int(d, o, "measured_ns", t->kept->measured_ns);
    yyjson_mut_obj_add_real(d, o, "rate_per_s", 1e9 / (double)t->kept->measured_ns);
    if (t->kept->promised_ns >= 0)
        yyjson_mut_obj_add_int(d, o, "promised_ns", t->kept->promised_ns);
    yyjson_mut_obj_add_int(d, o, "n_rounds", t->n_rounds);
    yyjson_mut_obj_add_int(d, o, "n_passes", t->n_passes);
    yyjson_mut_obj_add_str(d, o, "stopped", t->stopped);
}
