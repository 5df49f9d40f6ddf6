/* Running plans for `moirai tune`: one by `moirai run`, several in turns by one start (cli/measure/run_turns.h). */
#include "cli/tune/tune_call.h"

#include <math.h>
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/measure/run_turns.h"
#include "util/util.h"

#define BETWEEN_S 0.5e-3 /* from the end of a run to the start of the next one */
#define CHANGE_S 5e-3    /* from one plan to another, in turns */
#define TURNS_OF_RUN 5   /* a turn is so much shorter than a run of its own */

/* As measured or, before the first run, as promised: by figures of a processor that may be far off. */
static double one_run_s(const tune *t, const tune_case *x)
{
    int64_t ns = UTIL_MAX(x->promised_ns, 1), least = INT64_MAX;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        if (t->alone[k].measured_ns > 0)
            least = UTIL_MIN(least, t->alone[k].measured_ns);
    if (x == &t->machine && least < INT64_MAX)
        ns = least;
    return 1e-9 * (double)(x->measured_ns > 0 ? x->measured_ns : ns) + BETWEEN_S;
}

/* As many as fill --run-seconds, --runs at least; but so few that they take a twentieth of the budget, and three. */
static void count_runs(int64_t *runs, int64_t *warmup, const tune *t, const tune_case *x)
{
    double one_s = one_run_s(t, x), fill = cli_real(t->cli, "run-seconds") / one_s;
    double fit = t->limit_s > 0 ? 0.05 * t->limit_s / one_s : 1e9;
    double least = (double)cli_count(t->cli, "runs"), warm = (double)cli_count(t->cli, "warmup");
    *runs = (int64_t)UTIL_MAX(3, UTIL_MIN(UTIL_MAX(least, fill), fit));
    *warmup = (int64_t)UTIL_MAX(1, UTIL_MIN(UTIL_MAX(warm, fill / 8), fit / 2));
}

/* Of a turn: short, since many short turns meet slow moments more evenly than few long ones; its runs are for two
 * timelines. The sub-models were run before: what has to get warm again are caches. */
static double count_turn(cli_turn *out, const tune *t, const tune_case *x)
{
    double one_s = one_run_s(t, x), fill = cli_real(t->cli, "run-seconds") / TURNS_OF_RUN / one_s;
    out->runs = (int64_t)UTIL_MAX(3, fill / 2);
    out->warmup = UTIL_MAX(1, UTIL_MIN(out->runs / 3, cli_count(t->cli, "warmup")));
    return (double)(2 * out->runs + out->warmup) * one_s + CHANGE_S;
}

void tune_say_run(tune_words *w, const tune *t, const tune_case *x)
{
    tune_say(w, x->plan);
    tune_say(w, x->net->model);
    tune_say_option(w, "--cluster", x->cluster);
    tune_hand_on(w, t->cli, "rules", "--rules");
    tune_hand_on(w, t->cli, "hosts", "--hosts");
    tune_hand_on(w, t->cli, "dim", "--dim");
    tune_hand_on(w, t->cli, "shape", "--shape");
    tune_hand_on(w, t->cli, "input", "--input");
}

static void keep_pass(tune_case *x, int64_t ns)
{
    if (x->n_passes <= 2 * TUNE_MOST_PASSES)
        x->pass_ns[x->n_passes++] = ns;
    x->measured_ns = x->measured_ns < 0 ? ns : x->measured_ns;
}

int tune_run(tune *t, tune_case *x)
{
    char runs[24], warmup[24], timeline[TUNE_PATH];
    int64_t n_runs, n_warmup;
    tune_words w = {0};
    cli_context sub;
    tune_timeline(timeline, t, x, x->n_passes);
    count_runs(&n_runs, &n_warmup, t, x);
    snprintf(runs, sizeof runs, "%lld", (long long)n_runs);
    snprintf(warmup, sizeof warmup, "%lld", (long long)n_warmup);
    tune_say_run(&w, t, x);
    tune_say_option(&w, "--runs", runs);
    tune_say_option(&w, "--warmup", warmup);
    tune_say_option(&w, "--timeline", timeline);
    if (x->net->cut) {
        tune_say(&w, "--verify");
        tune_say_option(&w, "--against", t->net[0].model);
    }
    cli_status_set("running %s", x->name);
    int rc = tune_call(&sub, t, &cli_command_run, &w, true);
    if (!rc)
        keep_pass(x, tune_result(&sub, "median_ns"));
    cli_free(&sub);
    return rc;
}

/* ---- in turns ---- */

static int lay_out(const tune *t, tune_case *x)
{
    tune_words w = {0};
    moirai_split_report report;
    if (x->loaded)
        return 0;
    if (!(x->loaded = util_alloc(1, sizeof *x->loaded)))
        return MOIRAI_EFAIL;
    tune_say_run(&w, t, x);
    x->loaded->run.cli = &x->loaded->typed;
    int rc = tune_parse(&x->loaded->typed, t, &cli_command_run, &w, true);
    return rc ? rc : cli_run_lay_out(&x->loaded->run, x->plan, &report);
}

void tune_turns_free(tune_case *x)
{
    if (!x->loaded)
        return;
    cli_run_free(&x->loaded->run);
    cli_free(&x->loaded->typed);
    free(x->loaded);
    x->loaded = NULL;
}

double tune_turns_s(const tune *t, tune_case *const *list, int n)
{
    double sum = 0;
    cli_turn turn;
    for (int i = 0; i < n; i++)
        sum += count_turn(&turn, t, list[i]);
    return sum;
}

/* Of the two halves of a turn, which one begins changes from pass to pass. */
static bool second_first(int pass)
{
    return pass % 2;
}

/* Pass number `first` and those after it: each time another one is first. */
static void line_up(cli_turn *turn, const tune *t, tune_case *const *list, int n, int first, int passes)
{
    for (int i = 0; i < n * passes; i++) {
        int pass = i / n, who = (i + first + pass) % n, number = list[who]->n_passes + 2 * pass;
        turn[i] = (cli_turn){.who = who};
        count_turn(&turn[i], t, list[who]);
        tune_timeline(turn[i].result, t, list[who], number + second_first(first + pass));
        tune_timeline(turn[i].other, t, list[who], number + !second_first(first + pass));
    }
}

int tune_turns(tune *t, tune_case *const *list, int n, int first, int passes)
{
    const cli_run *run[MOIRAI_MASK_DEVICES + 2 * TUNE_MOST_ROUNDS];
    cli_turn *turn = util_alloc((size_t)n * (size_t)passes, sizeof *turn);
    int rc = turn ? 0 : MOIRAI_EFAIL;
    for (int i = 0; i < n && !rc; i++) {
        rc = lay_out(t, list[i]);
        run[i] = rc ? NULL : &list[i]->loaded->run;
    }
    int n_turns = rc ? 0 : n * passes;
    if (!rc) {
        line_up(turn, t, list, n, first, passes);
        rc = cli_take_turns(run, n, turn, n_turns);
    }
    for (int i = 0; i < n_turns && turn[i].ns > 0 && turn[i].other_ns > 0; i++) { /* what came before an end counts */
        bool swapped = second_first(first + i / n);
        keep_pass(list[turn[i].who], swapped ? turn[i].other_ns : turn[i].ns);
        keep_pass(list[turn[i].who], swapped ? turn[i].ns : turn[i].other_ns);
    }
    free(turn);
    return rc;
}
