/* What a run may add to the times of its operators.
 *
 * `moirai profile` measures every operator alone: again and again, with its weights in the cache, while all other devices
 * wait, and `moirai probe` a link whose ends do nothing else. In a run none of that is so, and what was promised by such
 * times is missed in one direction. Of the eight networks on parts of an H200 (docs/run.md) first plans took 1.06 to 1.31
 * times as long as promised, splits of four on two processors (docs/profile.md) 1.02 to 1.39 times. One device alone took 0.67 to 1.04 times as long as
 * promised, for twelve networks on three quiet cores of a Xeon, their logarithms 0.13 around their mean. Four doubts stand
 * for that:
 *
 * - ALONE and OWN: a measured time is off by a factor that all of its device's have, and by one of its own.
 * - BESIDE: where devices of one host work on one plan, each of them is slower, by up to this part: they share memory,
 *   caches, power. One device alone is not. THREADED where one of them has several threads: on 4 + 2 threads of
 *   a Xeon splits took 0.78 to 1.84 times as long as promised (docs/profile.md): operators take longer
 *   there than when they were measured by themselves.
 * - CROWDED: a transfer takes longer while its ends compute, by up to this part.
 * - TOGETHER: one processor alone is faster than its operators say, by up to this part: the runtime fuses across them and
 *   keeps layouts, of which a split loses some. On four threads of a Xeon convolutional networks took 0.57 to 0.93 times
 *   the sum of their operators, transformers 1.0 to 1.28 times. Where `profile` has run the whole network there
 *   (device_whole_ns), nothing is left to doubt.
 *
 * Where the cluster's cuts come from runs (cuts_measured), so do its times, and of all doubts a part is left.
 *
 * O(operators x devices + classes of tensors x devices^2). */
#include "cli/steps/sure_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "util/util.h"

#define ALONE 0.13
#define OWN 0.10
#define BESIDE 0.30
#define THREADED 1.0
#define CROWDED 1.0
#define TOGETHER 0.3
#define AFTER_RUNS 0.3

static double doubt(const run_doubts *d, double most)
{
    return d->c->cuts_measured ? AFTER_RUNS * most : most;
}

static double normal(util_rng *r)
{
    double u = util_rng_real(r), v = util_rng_real(r);
    return sqrt(-2 * log(UTIL_MAX(u, 1e-300))) * cos(6.283185307179586 * v);
}

static bool is_measured(const run_doubts *d, int64_t at)
{
    return d->p->op_time_ns[at] > 0 && !(d->spread[at] > 1);
}

void sure_measured(int64_t *time_ns, const run_doubts *d, uint64_t seed)
{
    double device[MOIRAI_MAX_DEVICES];
    int32_t n = d->p->n_devices;
    util_rng r;
    util_rng_seed(&r, seed ^ 0x6d656173u);
    for (int32_t k = 0; k < n; k++)
        device[k] = doubt(d, ALONE) * normal(&r);
    for (int64_t i = 0; i < (int64_t)d->p->n_ops * n; i++) {
        double off = device[i % n] + doubt(d, OWN) * normal(&r);
        if (is_measured(d, i))
            time_ns[i] = UTIL_MAX((int64_t)llround((double)time_ns[i] * exp(off)), 1);
    }
}

double sure_alone(const run_doubts *d, int32_t device, uint64_t seed)
{
    util_rng r;
    if (device < 0 || d->p->device_whole_ns[device] || !moirai_device_is_processor(&d->c->device[device]))
        return 1;
    bool run = d->c->device[device].ep != NULL;
    for (int32_t i = 0; i < d->p->n_ops && !run; i++)
        run = is_measured(d, (int64_t)i * d->p->n_devices + device);
    util_rng_seed(&r, seed ^ 0x616c6f6eu);
    return run ? 1 - doubt(d, TOGETHER) * util_rng_real(&r) : 1;
}

/* ---- a run of several devices ---- */

/* The plan's devices of which it is known that they are run: they have an execution provider, or were measured. */
static void devices_run(bool *set, const run_doubts *d)
{
    memset(set, 0, MOIRAI_MAX_DEVICES * sizeof *set);
    for (int32_t i = 0; i < d->p->n_ops; i++) {
        int32_t k = d->plan->op_device[i];
        if (d->c->device[k].ep || is_measured(d, (int64_t)i * d->p->n_devices + k))
            set[k] = true;
    }
}

static bool same_host(const moirai_device *a, const moirai_device *b)
{
    return (!a->host && !b->host) || (a->host && b->host && !strcmp(a->host, b->host));
}

static bool works_beside(const run_doubts *d, const bool *set, int32_t k)
{
    for (int32_t e = 0; e < d->c->n_devices; e++)
        if (e != k && set[e] && set[k] && same_host(&d->c->device[e], &d->c->device[k]))
            return true;
    return false;
}

static double slower_beside(const run_doubts *d, const bool *set)
{
    for (int32_t k = 0; k < d->c->n_devices; k++)
        if (set[k] && works_beside(d, set, k) && d->c->device[k].threads > 1)
            return THREADED;
    return BESIDE;
}

static int64_t times(int64_t ns, double factor)
{
    return ns > 0 ? (int64_t)llround((double)ns * factor) : ns;
}

int sure_split(moirai_problem *split, const run_doubts *d, const int64_t *time_ns, uint64_t seed)
{
    const moirai_problem *p = d->p;
    int64_t n = p->n_devices, n_times = p->n_ops * n, n_transfers = p->n_classes * n * n;
    bool set[MOIRAI_MAX_DEVICES];
    devices_run(set, d);
    util_rng r;
    util_rng_seed(&r, seed ^ 0x72756eu);
    double beside = 1 + doubt(d, slower_beside(d, set)) * util_rng_real(&r),
           crowded = 1 + doubt(d, CROWDED) * util_rng_real(&r);
    double factor[MOIRAI_MAX_DEVICES];
    for (int32_t k = 0; k < n; k++)
        factor[k] = works_beside(d, set, k) ? beside : 1;
    split->op_time_ns = util_alloc((size_t)n_times, sizeof *split->op_time_ns);
    split->class_transfer_ns = util_alloc((size_t)UTIL_MAX(n_transfers, 1), sizeof *split->class_transfer_ns);
    if (!split->op_time_ns || !split->class_transfer_ns)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < n_times; i++)
        split->op_time_ns[i] = times(time_ns[i], factor[i % n]);
    for (int64_t i = 0; i < n_transfers; i++) {
        bool run = set[i / n % n] && set[i % n];
        split->class_transfer_ns[i] = times(p->class_transfer_ns[i], run ? crowded : 1);
    }
    return 0;
}

void sure_split_free(moirai_problem *split, const moirai_problem *p)
{
    if (split->op_time_ns != p->op_time_ns)
        free(split->op_time_ns);
    if (split->class_transfer_ns != p->class_transfer_ns)
        free(split->class_transfer_ns);
}
