/* The passes of `moirai tune`: what may be kept is run again, in turns, on a machine whose speed changes.
 *
 * On a rented machine a core's speed changes by a third within tenths of a second, whatever runs on it: its other half
 * belongs to somebody else. Four things make measurements of that comparable:
 *
 * 1. In turns, and short ones. All candidates are run in every pass, each time another one first, so that slow moments
 *    meet all of them. One start of the ranks (cli/measure/run_turns.h) plays many passes: as long as START_S, so that
 *    what differs from start to start (where things lie in memory) meets several starts, too.
 * 2. Slower is who is slower in the same pass: the mean of ln(its run / the fastest one's) over passes. A candidate for
 *    which that is above WORTH by DOUBT of its standard errors, or which was slower by FAR in every one of its first
 *    passes, drops out: time goes to those that may be kept. It is told by that ratio, since later passes may have met
 *    a slower machine.
 * 3. Otherwise the mean over passes, without the ends (util_trimmed_mean), decides. The first run of a plan made it a candidate
 *    and is not asked again: the fastest of several noisy runs was lucky.
 * 4. Of the runs of a turn one half teaches the model, the other one judges it, and they alternate: T J J T T J J T,
 *    in the next pass J T T J (rank/run/rank_play.c). The model never sees what it is judged by, and a machine that became slower became so for both.
 *    How far both are apart by noise alone, turns tell: the standard error of the mean of ln(taught / judged) over them.
 *    It is shown beside the error of the prediction, and passes end when it is below SURE. */
#include "cli/tune/tune.h"

#include <math.h>
#include <stdlib.h>

#include "cli/run/run_steps.h"
#include "util/sort.h"
#include "util/util.h"

enum { MOST_ALONE = 3, MOST_SPLITS = 2, MOST_FINALISTS = MOST_ALONE + MOST_SPLITS + 1 };
enum { FEWEST = 4, FIRST_PASSES = 4, ENOUGH = 30 }; /* passes */
#define WORTH 0.01
#define FAR 0.15
#define DOUBT 3
#define NEAR 1.6   /* of the fastest of its kind, in first runs: what may still win */
#define SURE 0.004 /* a standard error */
#define START_S 4.0

/* ---- which run is what ---- */

bool tune_teaches(const tune_case *x, int i)
{
    return x->n_passes < 3 ? i == 0 : i % 2 == 1;
}

bool tune_judges(const tune_case *x, int i)
{
    return x->n_passes > 2 && i > 0 && i % 2 == 0;
}

static bool is_pass(const tune_case *x, int i)
{
    return x->n_passes == 1 || i > 0;
}

static int64_t middle_of(const tune_case *x, bool asked(const tune_case *, int))
{
    double list[2 * TUNE_MOST_PASSES + 1];
    size_t n = 0;
    for (int i = 0; i < x->n_passes; i++)
        if (asked(x, i))
            list[n++] = (double)x->pass_ns[i];
    return n ? (int64_t)llround(util_trimmed_mean(list, n)) : MOIRAI_UNKNOWN;
}

void tune_timeline(char out[TUNE_PATH], const tune *t, const tune_case *x, int i)
{
    if (i)
        snprintf(out, TUNE_PATH, "%s/run-%s-%d.json", t->folder, x->tag, i);
    else
        snprintf(out, TUNE_PATH, "%s/run-%s.json", t->folder, x->tag);
}

/* ---- how sure one can be ---- */

/* The standard error of ln(taught / judged) over turns; infinite below two of them. */
static double unsure(const tune_case *x)
{
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 1; i + 1 < x->n_passes; i += 2, n++) {
        double d = log((double)UTIL_MAX(x->pass_ns[i], 1) / (double)UTIL_MAX(x->pass_ns[i + 1], 1));
        sum += d;
        squares += d * d;
    }
    return n < 2 ? INFINITY : sqrt(UTIL_MAX(squares - sum * sum / n, 0) / (n - 1) / n);
}

void tune_judge(tune *t)
{
    t->judged_ns = middle_of(t->kept, tune_judges);
    t->unsure = unsure(t->kept);
}

/* By how much x was slower than `best` in the passes of both, as ln(ratio): its mean, its least and, returned, the
 * standard error of the mean; infinite where fewer than two passes tell. */
static double slower(const tune_case *x, const tune_case *best, double *mean, double *least, int *n)
{
    double sum = 0, squares = 0;
    *n = 0;
    *least = INFINITY;
    for (int i = 1, n_both = UTIL_MIN(x->n_passes, best->n_passes); i + 1 < n_both; i += 2, ++*n) {
        double own = (double)(x->pass_ns[i] + x->pass_ns[i + 1]),
               its = (double)(best->pass_ns[i] + best->pass_ns[i + 1]);
        double d = log(UTIL_MAX(own, 1) / UTIL_MAX(its, 1));
        sum += d;
        squares += d * d;
        *least = UTIL_MIN(*least, d);
    }
    *mean = *n ? sum / *n : 0;
    return *n < 2 ? INFINITY : sqrt(UTIL_MAX(squares - sum * sum / *n, 0) / (*n - 1) / *n);
}

/* `best`: who was in all passes, or NULL. */
static void settle(tune *t, tune_case *x, const tune_case *best)
{
    int64_t list[2 * TUNE_MOST_PASSES + 1];
    double mean, least;
    int n = 0, shared;
    for (int i = 0; i < x->n_passes; i++)
        if (is_pass(x, i))
            list[n++] = x->pass_ns[i];
    if (!n)
        return;
    qsort(list, (size_t)n, sizeof *list, util_by_int64);
    x->measured_ns = middle_of(x, is_pass);
    if (x->measured_ns > 0)
        t->noise = UTIL_MAX(t->noise, (double)(list[(3 * n) / 4 - (n > 3)] - list[n / 4]) / (double)x->measured_ns);
    if (!x->dropped || !best)
        return;
    slower(x, best, &mean, &least, &shared);
    x->measured_ns = (int64_t)llround(exp(mean) * (double)middle_of(best, is_pass));
}

/* ---- who takes part ---- */

/* Of `n` cases the fastest `most` that were run, if they are near the very fastest; how many. */
static int choose_from(tune_case **out, tune_case *list, int n, int most)
{
    int64_t least = INT64_MAX;
    int taken = 0;
    for (int i = 0; i < n; i++)
        if (list[i].measured_ns >= 0)
            least = UTIL_MIN(least, list[i].measured_ns);
    for (int64_t last = -1; taken < most;) { /* in the order of their times */
        tune_case *next = NULL;
        for (int i = 0; i < n; i++)
            if (list[i].measured_ns > last && (!next || list[i].measured_ns < next->measured_ns))
                next = &list[i];
        if (!next || (double)next->measured_ns > NEAR * (double)least)
            break;
        last = next->measured_ns;
        out[taken++] = next;
    }
    return taken;
}

/* Devices alone and splits near the best of their kind, and the machine. */
static int choose(tune *t, tune_case **out)
{
    int n = choose_from(out, t->alone, t->cluster->n_devices, MOST_ALONE);
    n += choose_from(out + n, t->round, t->n_rounds, MOST_SPLITS);
    if (t->machine.measured_ns >= 0)
        out[n++] = &t->machine;
    return n;
}

/* The fastest so far that may be kept. */
static const tune_case *leader(const tune *t, tune_case *const *list, int n)
{
    const tune_case *best = NULL;
    for (int i = 0; i < n; i++)
        if (list[i] != &t->machine && (!best || middle_of(list[i], is_pass) < middle_of(best, is_pass)))
            best = list[i];
    return best;
}

static bool hopeless(const tune_case *x, const tune_case *best)
{
    double mean, least, error;
    int n;
    error = slower(x, best, &mean, &least, &n);
    return (n > 1 && least > FAR) || (n >= FEWEST && mean - WORTH > DOUBT * error);
}

static int without_hopeless(const tune *t, tune_case **list, int n)
{
    const tune_case *best = leader(t, list, n);
    int kept = 0;
    for (int i = 0; i < n; i++) {
        list[i]->dropped = best && list[i] != best && hopeless(list[i], best);
        if (!list[i]->dropped)
            list[kept++] = list[i];
    }
    return kept;
}

/* ---- the passes ---- */

static bool interrupted(void)
{
    return moirai_interrupt_raised(cli_interrupt());
}

/* Everybody who may be kept was judged often enough, by noise that is small enough. */
static bool sure(const tune *t, tune_case *const *list, int n)
{
    const tune_case *best = leader(t, list, n);
    return best && best->n_passes > 2 * ENOUGH && unsure(best) < SURE;
}

/* How many passes the next start plays; 0: it is over. At first few, to see who drops out. */
static int passes_now(const tune *t, tune_case *const *list, int n, double start_s)
{
    int most = (int)cli_count(t->cli, "passes") - t->n_passes;
    double pass_s = tune_turns_s(t, list, n), left_s = tune_left_s(t) - start_s;
    if (!n || most <= 0 || interrupted() || sure(t, list, n) || (t->n_passes && left_s < pass_s))
        return 0;
    double fit = UTIL_MIN(START_S, left_s) / pass_s;
    return UTIL_MIN(most, (int)UTIL_MAX(1, t->n_passes ? fit : UTIL_MIN(fit, FIRST_PASSES)));
}

int tune_passes(tune *t)
{
    tune_case *all[MOST_FINALISTS], *last[MOST_FINALISTS];
    double start_s = 1; /* what a start takes beside its turns */
    int n_all = choose(t, all), n = n_all, rc = 0;
    for (int i = 0; i < n; i++)
        last[i] = all[i];
    for (int passes; !rc && (passes = passes_now(t, last, n, start_s)) > 0;) {
        double begin_s = util_seconds(), turns_s = passes * tune_turns_s(t, last, n);
        rc = tune_turns(t, last, n, t->n_passes, passes);
        start_s = UTIL_MAX(util_seconds() - begin_s - turns_s, 0.1);
        t->n_passes += rc ? 0 : passes;
        n = rc ? n : without_hopeless(t, last, n);
    }
    const tune_case *best = leader(t, last, n);
    for (int i = 0; i < n_all; i++)
        settle(t, all[i], best);
    return interrupted() ? 0 : rc; /* what was measured before Ctrl-C counts */
}
