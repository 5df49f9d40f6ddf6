/* Runs played through with the refined times: what a cut costs beyond what could be seen.
 *
 * The model lets a device compute while a latency passes; a real device can't compute while it starts a segment, sends,
 * or takes a tensor in. Results leave when their segment ends, not when their operator does. Caches that another
 * device's data went through are colder. All of that grows with the number of cuts, so it is put where cuts are paid
 * for: a time is added to all latencies such that the runs, played through by the model's rules (operators and
 * transfers in the order that they had, flow "tensor", congestion "port"), end when they did. With several runs it is
 * the time for which relative differences sum to the least, each run counting twice as much as the one before it: plans
 * of many small cuts and of few large ones differ in what a cut costs, and the next plan will be most like the last. It
 * is at most MOST times the usual latency or MOST_SHARE of the run, and takes away half of the former at most: what is
 * further off has other reasons. Where a run is to be predicted as it was (as_measured), it is the last one that must
 * fit, and these limits are wider: all of the latency, all of the run. Where no latency makes it fit (its segments' times
 * alone are longer than it was, or no message is waited for), all its times are scaled by what is left: the model of a
 * run always ends when that run did.
 *
 * A run without transfers (but for as_measured), or of a network that the graph is not, says nothing. Makespans grow with latencies, so the
 * time that fits one run is found by bisection. O(runs^2 + runs x BISECTIONS) passes over operators and transfers. */
#include "refine/refine.h"

#include <math.h>
#include <stdlib.h>

#include "cluster/cluster_build.h"
#include "schedule/tasks.h"
#include "util/util.h"

enum { BISECTIONS = 40, MOST = 3 };
#define MOST_SHARE 0.1
#define MOST_DOUBT 1.25
#define CLOSE 0.001 /* the end of a run that is met */

typedef struct replay {
    schedule_tasks tasks; /* operators, then transfers */
    int32_t n_ops;
    double *latency_ns, *bytes_ns; /* parts of transfers, without the extra time */
    double measured_ns;            /* end to end */
} replay;

static void replay_free(replay *p)
{
    schedule_tasks_free(&p->tasks);
    free(p->latency_ns);
    free(p->bytes_ns);
}

/* ---- who waits for whom ---- */

static void chain_ops(replay *p, const refiner *r, const refine_timeline *t, int32_t *task, int32_t *where)
{
    for (size_t s = 0; s < t->n_segments; s++) {
        const refine_segment *x = &t->segment[s];
        for (int32_t i = 0; i < x->n_ops; i++) {
            int32_t op = t->op_number[x->first_op + i], me = x->first_op + i;
            bool first = s == 0 ? i == 0 : i == 0 && t->segment[s - 1].device != x->device;
            task[op] = me;
            where[op] = x->device;
            p->tasks.length_ns[me] = (double)r->time_ns[refine_cell(r->g, op, t->key[x->device])];
            if (!first && me > 0)
                schedule_tasks_wait(&p->tasks, me, me - 1);
        }
    }
}

/* False: this transfer is not one of the graph's. */
static bool chain_transfer(replay *p, const refiner *r, const refine_timeline *t, size_t index,
                           const util_names *tensors, const int32_t *task, const int32_t *where)
{
    const refine_transfer *x = &t->transfer[index];
    const moirai_graph *g = r->g;
    int32_t tensor = x->tensor ? util_names_get(tensors, x->tensor) : -1, me = p->n_ops + (int32_t)index;
    int32_t maker = tensor < 0 ? MOIRAI_NONE : g->tensor_producer[tensor];
    int32_t pair = t->number[x->from] * r->c->n_devices + t->number[x->to];
    if (maker == MOIRAI_NONE || task[maker] < 0 || where[maker] != x->from)
        return false;
    p->latency_ns[index] = (double)r->latency_ns[pair];
    p->bytes_ns[index] = (double)x->bytes * 1e9 / (double)r->rate[pair];
    schedule_tasks_wait(&p->tasks, me, task[maker]);
    for (int32_t i = g->tensor_reader_off[tensor]; i < g->tensor_reader_off[tensor + 1]; i++)
        if (task[g->tensor_reader[i]] >= 0 && where[g->tensor_reader[i]] == x->to)
            schedule_tasks_wait(&p->tasks, task[g->tensor_reader[i]], me);
    return true;
}

static void chain_ports(replay *p, const refine_timeline *t)
{
    int32_t sent[MOIRAI_MASK_DEVICES], received[MOIRAI_MASK_DEVICES];
    for (int32_t k = 0; k < t->n_devices; k++)
        sent[k] = received[k] = MOIRAI_NONE;
    for (size_t i = 0; i < t->n_transfers; i++) { /* the file has them in the plan's order */
        const refine_transfer *x = &t->transfer[i];
        int32_t me = p->n_ops + (int32_t)i;
        if (sent[x->from] != MOIRAI_NONE)
            schedule_tasks_wait(&p->tasks, me, sent[x->from]);
        if (received[x->to] != MOIRAI_NONE && received[x->to] != sent[x->from])
            schedule_tasks_wait(&p->tasks, me, received[x->to]);
        sent[x->from] = received[x->to] = me;
    }
}

/* ---- a run ---- */

/* When a run is to end. A plan is chosen because it looks fast, so that errors in its favour are part of the choice; by
 * how much the last one was better on paper, the next one will be, too. */
static double sober_ns(const refiner *r, const refine_timeline *t)
{
    if (r->as_measured)
        return (double)t->latency_ns;
    double promised = t->planned_ns > 0 ? (double)t->planned_ns : (double)t->latency_ns;
    double ratio = (double)t->latency_ns / promised;
    return (double)t->latency_ns * UTIL_MIN(UTIL_MAX(ratio, 1), MOST_DOUBT);
}

static int64_t count_waits(const refiner *r, const refine_timeline *t, const util_names *tensors)
{
    int64_t most = (int64_t)t->n_ops + 3 * (int64_t)t->n_transfers;
    for (size_t i = 0; i < t->n_transfers; i++) {
        int32_t x = t->transfer[i].tensor ? util_names_get(tensors, t->transfer[i].tensor) : -1;
        most += x < 0 ? 0 : r->g->tensor_reader_off[x + 1] - r->g->tensor_reader_off[x];
    }
    return most;
}

static double play(replay *p, double extra_ns)
{
    double end_ns;
    for (int32_t i = p->n_ops; i < p->tasks.n; i++)
        p->tasks.length_ns[i] = UTIL_MAX(p->latency_ns[i - p->n_ops] + extra_ns, 0) + p->bytes_ns[i - p->n_ops];
    schedule_tasks_play(&p->tasks, &end_ns);
    return end_ns;
}

/* False: a run of another network, or memory ran out. */
static bool prepare(replay *p, const refiner *r, const refine_timeline *t, const util_names *tensors)
{
    int64_t most = count_waits(r, t, tensors);
    size_t n = t->n_ops + t->n_transfers;
    if (t->latency_ns <= 0 || most > INT32_MAX || n > INT32_MAX)
        return false;
    *p = (replay){.n_ops = (int32_t)t->n_ops, .measured_ns = sober_ns(r, t)};
    int32_t *task = util_alloc((size_t)r->g->n_ops, sizeof *task),
            *where = util_alloc((size_t)r->g->n_ops, sizeof *where);
    p->latency_ns = util_alloc(t->n_transfers, sizeof *p->latency_ns);
    p->bytes_ns = util_alloc(t->n_transfers, sizeof *p->bytes_ns);
    double end_ns;
    bool fine = !schedule_tasks_init(&p->tasks, n, (size_t)most) && task && where && p->latency_ns && p->bytes_ns;
    for (int32_t i = 0; i < r->g->n_ops && fine; i++)
        task[i] = MOIRAI_NONE;
    if (fine) {
        schedule_tasks_reset(&p->tasks, (int32_t)n);
        chain_ops(p, r, t, task, where);
    }
    for (size_t i = 0; i < t->n_transfers && fine; i++)
        fine = chain_transfer(p, r, t, i, tensors, task, where);
    if (fine) {
        chain_ports(p, t);
        fine = schedule_tasks_play(&p->tasks, &end_ns); /* no circle */
    }
    free(task);
    free(where);
    if (!fine)
        replay_free(p);
    return fine;
}

/* ---- fitting ---- */

static double fitting(replay *p, double least, double most)
{
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (least + most) / 2;
        *(play(p, middle) < p->measured_ns ? &least : &most) = middle;
    }
    return most;
}

/* Each run counts twice as much as the one before: the last plan is most like the next one. */
static double difference(replay *list, size_t n, double extra_ns)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum / 2 + fabs(play(&list[i], extra_ns) / list[i].measured_ns - 1);
    return sum;
}

static double usual_latency(const refiner *r)
{
    int32_t n = r->c->n_devices, used = 0;
    double list[MOIRAI_MASK_DEVICES * MOIRAI_MASK_DEVICES];
    for (int32_t i = 0; i < n * n; i++)
        if (i / n != i % n)
            list[used++] = (double)r->latency_ns[i];
    return refine_median(list, (size_t)used);
}

static double best_extra(const refiner *r, replay *list, size_t n)
{
    double usual = usual_latency(r), best = 0, least = r->as_measured ? INFINITY : difference(list, n, 0);
    double fewest = r->as_measured ? -usual : -usual / 2;
    for (size_t i = r->as_measured ? n - 1 : 0; i < n; i++) {
        double most = UTIL_MAX(MOST * usual, (r->as_measured ? 1 : MOST_SHARE) * list[i].measured_ns);
        double extra = fitting(&list[i], fewest, most), sum = difference(list, n, extra);
        if (sum < least) {
            least = sum;
            best = extra;
        }
    }
    return best;
}

/* All lengths by one factor, and with them the end. */
static void meet_end(refiner *r, const refine_timeline *last, const util_names *tensors)
{
    replay p;
    if (!prepare(&p, r, last, tensors))
        return;
    double end_ns = play(&p, 0), factor = end_ns > 0 ? p.measured_ns / end_ns : 1;
    replay_free(&p);
    if (fabs(factor - 1) < CLOSE)
        return;
    for (int64_t i = 0; i < (int64_t)r->g->n_ops * r->g->n_time_keys; i++)
        if (r->time_ns[i] > 0)
            r->time_ns[i] = (int64_t)UTIL_MIN((double)r->time_ns[i] * factor + 0.5, 4e18);
    for (int32_t i = 0; i < r->c->n_devices * r->c->n_devices; i++) {
        double ns = (double)r->latency_ns[i] * factor, rate = (double)r->rate[i] / factor;
        r->latency_ns[i] = (int64_t)UTIL_MIN(ns + 0.5, (double)CLUSTER_MAX_LATENCY_NS);
        r->rate[i] = (int64_t)UTIL_MAX(UTIL_MIN(rate, 4e18), 1);
    }
}

static void add_latency(refiner *r, int64_t extra_ns)
{
    int32_t n = r->c->n_devices;
    for (int32_t i = 0; i < n * n; i++)
        if (i / n != i % n)
            r->latency_ns[i] = UTIL_MIN(UTIL_MAX(r->latency_ns[i] + extra_ns, 0), CLUSTER_MAX_LATENCY_NS);
}

int refine_replay(refiner *r, int64_t *extra_ns)
{
    size_t n = 0;
    util_names *tensors = util_names_new((size_t)r->g->n_tensors);
    replay *list = util_alloc((size_t)r->n, sizeof *list);
    int rc = tensors && list ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < r->g->n_tensors && !rc; i++)
        if (util_names_put(tensors, r->g->tensor_name[i], i) < 0)
            rc = MOIRAI_EFAIL;
    for (int32_t i = 0; i < r->n && !rc; i++)
        n += r->t[i].n_transfers && prepare(&list[n], r, &r->t[i], tensors);
    *extra_ns = rc || !n ? 0 : (int64_t)best_extra(r, list, n);
    if (!rc)
        add_latency(r, *extra_ns);
    if (!rc && r->as_measured && r->n)
        meet_end(r, &r->t[r->n - 1], tensors);
    for (size_t i = 0; i < n; i++)
        replay_free(&list[i]);
    free(list);
    util_names_free(tensors);
    return rc;
}
