/* The passes of `moirai tune`: what may be kept is run again, in turns, on a machine whose speed changes.
 *
 * On a rented machine a core's speed changes by a third within seconds, whatever runs on it: its other half belongs to
 * somebody else. Three things make measurements of that comparable:
 *
 * 1. In turns. All candidates are run once per pass, each time another one first, so that slow seconds meet all of them.
 *    A candidate that was slower than the fastest in every pass, by more than FAR and twice or by more than WORTH and
 *    FEWEST times, is run no more: time goes to those that may be kept.
 * 2. The mean of the middle half (util_midmean) over passes decides. The first run of a plan made it a candidate and is
 *    not asked again: the fastest of several noisy runs was lucky.
 * 3. In a pass a candidate is run twice, one right after the other: one run teaches the model, the other one judges it,
 *    and which is first alternates (T J, J T, T J, ...). The model never sees what it is judged by, and a machine that
 *    became slower became so for both. How far both are apart by noise alone, neighbours tell: the standard error of the
 *    mean of ln(taught / judged) over pairs. It is shown beside the error of the prediction, and passes end when it is
 *    below SURE. */
#include "cli/tune/tune.h"

#include <math.h>
#include <stdlib.h>

#include "cli/steps/run_steps.h"
#include "util/sort.h"
#include "util/util.h"

enum { MOST_FINALISTS = 6, FEWEST = 4 }; /* FEWEST: runs */
#define WORTH 0.01
#define FAR 0.15
#define NEAR 1.25  /* of the fastest of its kind, in first runs: what may still win */
#define SURE 0.004 /* a standard error */

/* ---- which run is what ---- */

bool tune_teaches(const tune_case *x, int i)
{
    return x->n_passes < 3 ? i == 0 : i > 0 && i % 4 < 2;
}

bool tune_judges(const tune_case *x, int i)
{
    return x->n_passes < 3 ? i == 1 && x->n_passes == 2 : i % 4 > 1;
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
    return n ? (int64_t)llround(util_midmean(list, n)) : MOIRAI_UNKNOWN;
}

void tune_timeline(char out[TUNE_PATH], const tune *t, const tune_case *x, int i)
{
    if (i)
        snprintf(out, TUNE_PATH, "%s/run-%s-%d.json", t->folder, x->tag, i);
    else
        snprintf(out, TUNE_PATH, "%s/run-%s.json", t->folder, x->tag);
}

/* ---- how sure one can be ---- */

/* The standard error of ln(taught / judged) over neighbours; infinite below two pairs. */
static double unsure(const tune_case *x)
{
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 1; i + 1 < x->n_passes; i += 2, n++) {
        double d = log((double)UTIL_MAX(x->pass_ns[i], 1) / (double)UTIL_MAX(x->pass_ns[i + 1], 1));
        d = i % 4 == 1 ? d : -d; /* the first of the two judged */
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

static void settle(tune *t, tune_case *x)
{
    int64_t list[2 * TUNE_MOST_PASSES + 1];
    int n = 0;
    for (int i = 0; i < x->n_passes; i++)
        if (is_pass(x, i))
            list[n++] = x->pass_ns[i];
    if (!n)
        return;
    qsort(list, (size_t)n, sizeof *list, util_by_int64);
    x->measured_ns = middle_of(x, is_pass);
    if (x->measured_ns > 0)
        t->noise = UTIL_MAX(t->noise, (double)(list[(3 * n) / 4 - (n > 3)] - list[n / 4]) / (double)x->measured_ns);
}

/* ---- who takes part ---- */

/* Devices alone and splits near the best of their kind, and the machine. */
static int choose(tune *t, tune_case **out)
{
    const tune_case *alone = tune_best_alone(t), *split = tune_best_round(t);
    int n = 0;
    for (int32_t k = 0; k < t->cluster->n_devices && n < MOST_FINALISTS / 2; k++)
        if (t->alone[k].measured_ns >= 0 && (double)t->alone[k].measured_ns <= NEAR * (double)alone->measured_ns)
            out[n++] = &t->alone[k];
    for (int r = 0, most = n + 2; r < t->n_rounds && n < most; r++)
        if ((double)t->round[r].measured_ns <= NEAR * (double)split->measured_ns)
            out[n++] = &t->round[r];
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

/* How often a candidate is run in a pass. Nothing is predicted of the machine: once will do. */
static int times_per_pass(const tune *t, const tune_case *x)
{
    return x == &t->machine ? 1 : 2;
}

static bool hopeless(const tune *t, const tune_case *x, const tune_case *best)
{
    int n = 0, per = times_per_pass(t, x);
    double least = INFINITY; /* by how much it was slower, in its runs after the first */
    for (int i = 1, k = 1; i < x->n_passes && k < best->n_passes; i++, k += 2 / per, n++)
        least = UTIL_MIN(least, (double)x->pass_ns[i] / (double)UTIL_MAX(best->pass_ns[k], 1) - 1);
    return (n > 1 && least > FAR) || (n >= FEWEST && least > WORTH);
}

static int without_hopeless(const tune *t, tune_case **list, int n)
{
    const tune_case *best = leader(t, list, n);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (!best || list[i] == best || !hopeless(t, list[i], best))
            list[kept++] = list[i];
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
    return best && best->n_passes > 2 * FEWEST && unsure(best) < SURE;
}

int tune_passes(tune *t)
{
    tune_case *all[MOST_FINALISTS], *last[MOST_FINALISTS];
    double longest_s = 0;
    int n_all = choose(t, all), n = n_all, most = (int)cli_count(t->cli, "passes"), rc = 0;
    for (int i = 0; i < n; i++)
        last[i] = all[i];
    for (int pass = 0; pass < most && n && !rc; pass++) {
        double begin_s = util_seconds();
        if (interrupted() || tune_left_s(t) < 1.2 * longest_s || sure(t, last, n))
            break;
        for (int i = 0; i < 2 * n && !rc; i++) { /* in turns, each time another one first */
            tune_case *x = last[(i / 2 + pass) % n];
            rc = i % 2 < times_per_pass(t, x) ? tune_run(t, x) : 0;
        }
        longest_s = util_seconds() - begin_s;
        t->n_passes += !rc;
        n = rc ? n : without_hopeless(t, last, n);
    }
    for (int i = 0; i < n_all; i++)
        settle(t, all[i]);
    return interrupted() ? 0 : rc; /* what was measured before Ctrl-C counts */
}
