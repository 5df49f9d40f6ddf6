/* Times under load: what operators take while devices work without a break, on several requests at a time.
 *
 * A run of one request after the other, by which times are fitted, has devices that wait for each other, with caches and
 * memory to themselves. With requests in flight all of them compute at once: 7 to 10 % slower on two cores with a memory
 * in common. Such a run tells what each device computed for a request (`busy_ns`), and what its plan said of that
 * (`planned_ns`, the mean of all copies). Of the plan's first copy the file has the segments. So the times that were
 * fitted are taken times
 *
 *     busy / planned * planned work of the segments / (fitted times of their operators + what a segment takes beside these),
 *
 * the median of all runs with requests in flight; of those in which several devices were at work where there are any,
 * since one alone has nobody beside it. A device that computes little is not at work: what its segments take beside
 * their operators would be all that it tells. One that no such run tells of follows the others. */
#include "refine/refine.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define LEAST 0.5 /* what lies beyond is no load, but another plan's times, or another machine's */
#define MOST 4.0
#define AT_WORK 0.25 /* of what the busiest computes */

static bool is_at_work(const refine_timeline *t, int32_t device)
{
    int64_t most = 0;
    for (int32_t k = 0; k < t->n_devices; k++)
        most = UTIL_MAX(most, t->busy_ns[k]);
    return t->load_ns[device] > 0 && t->busy_ns[device] > 0 && (double)t->busy_ns[device] >= AT_WORK * (double)most;
}

static int n_at_work(const refine_timeline *t)
{
    int n = 0;
    for (int32_t k = 0; k < t->n_devices; k++)
        n += is_at_work(t, k);
    return n;
}

/* What segments were planned to take by what their operators are fitted to take, and what a segment takes beside them; those of all devices where
 * this one has none, since another copy of the plan runs there. */
static double scale(const refiner *r, const refine_timeline *t, int32_t device)
{
    double work = 0, fitted = 0;
    for (size_t s = 0; s < t->n_segments; s++) {
        const refine_segment *x = &t->segment[s];
        if (device >= 0 && x->device != device)
            continue;
        work += (double)x->work_ns;
        fitted += t->n_segments > 1 ? (double)UTIL_MAX(r->segment_ns[t->key[x->device]], 0) : 0;
        for (int32_t i = 0; i < x->n_ops; i++)
            fitted += (double)r->time_ns[refine_cell(r->g, t->op_number[x->first_op + i], t->key[x->device])];
    }
    return work > 0 && fitted > 0 ? work / fitted : device >= 0 ? scale(r, t, -1) : 0;
}

/* Of a device in one run; 0: it does not tell. */
static double factor(const refiner *r, const refine_timeline *t, int32_t device)
{
    double of_plan = is_at_work(t, device) ? scale(r, t, device) : 0;
    if (of_plan <= 0)
        return 0;
    return UTIL_MIN(UTIL_MAX((double)t->busy_ns[device] / (double)t->load_ns[device] * of_plan, LEAST), MOST);
}

/* Factors of column `key` (-1: of all) in runs with at least so many devices at work. */
static size_t collect(double *out, const refiner *r, int32_t key, int least)
{
    size_t n = 0;
    for (int32_t i = 0; i < r->n; i++) {
        const refine_timeline *t = &r->t[i];
        for (int32_t k = 0, telling = n_at_work(t); k < t->n_devices && telling >= least; k++) {
            double x = key < 0 || !strcmp(r->g->time_key[key], t->device[k]) ? factor(r, t, k) : 0;
            if (x > 0)
                out[n++] = x;
        }
    }
    return n;
}

int refine_load(refiner *r)
{
    double *found = util_alloc((size_t)UTIL_MAX(r->n, 0) * MOIRAI_MASK_DEVICES, sizeof *found);
    double *by = util_alloc((size_t)r->g->n_time_keys, sizeof *by);
    if (!found || !by) {
        free(found);
        free(by);
        return MOIRAI_EFAIL;
    }
    int least = 2;
    size_t n = collect(found, r, -1, least);
    n = n ? n : collect(found, r, -1, least = 1);
    double usual = n ? refine_median(found, n) : 1;
    for (int32_t key = 0; key < r->g->n_time_keys; key++) {
        size_t own = collect(found, r, key, least);
        by[key] = own ? refine_median(found, own) : usual;
    }
    for (int32_t op = 0; op < r->g->n_ops; op++)
        for (int32_t key = 0; key < r->g->n_time_keys; key++) {
            int64_t *ns = &r->time_ns[refine_cell(r->g, op, key)];
            if (n && *ns > 0 && (double)*ns * by[key] < 4e18)
                *ns = (int64_t)((double)*ns * by[key] + 0.5);
        }
    free(found);
    free(by);
    return 0;
}
