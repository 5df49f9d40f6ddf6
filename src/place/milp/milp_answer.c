/* From a solver's decisions to a plan in whole nanoseconds.
 *
 * A solver's start times carry its tolerances; only their order is used. All tasks that the devices need are put into a
 * total order by start, never before what they depend on (a heap over the ready ones), and replayed: each starts as
 * soon as its inputs are there and its resources are free. The solver's schedule, were it exact, is one with
 * that order, so the replay is never later. Tasks that take no time hold no resource, so that ties among them do no
 * harm.
 *
 * With memory "peak" waiting can be what makes a plan fit. What waits for what is then given by arcs (milp_peak.c),
 * which the replay takes as further precedence. O((V + E) log V + arcs). */
#include "place/milp/milp.h"
#include "schedule/sim.h"

#include <stdlib.h>
#include <string.h>

int milp_answer_init(milp_answer *a, const moirai_problem *p)
{
    memset(a, 0, sizeof *a);
    a->n_tasks = (int64_t)p->n_ops + (p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : (int64_t)p->n_tensors * p->n_devices);
    a->device = util_alloc((size_t)p->n_ops, sizeof *a->device);
    a->start = util_alloc((size_t)a->n_tasks, sizeof *a->start);
    if (a->device && a->start)
        return 0;
    milp_answer_free(a);
    return MOIRAI_EFAIL;
}

void milp_answer_free(milp_answer *a)
{
    free(a->device);
    free(a->start);
    free(a->arc);
    memset(a, 0, sizeof *a);
}

int milp_answer_arc(milp_answer *a, int64_t before, int64_t after)
{
    if (util_grow(&a->arc, &a->cap_arc, (size_t)a->n_arcs + 1, sizeof *a->arc))
        return MOIRAI_EFAIL;
    a->arc[a->n_arcs++] = (milp_arc){before, after};
    return 0;
}

int milp_answer_from(milp_answer *a, const milp_program *g, const double *value)
{
    const moirai_problem *p = g->p;
    a->n_arcs = 0;
    memset(a->start, 0, (size_t)a->n_tasks * sizeof *a->start);
    for (int32_t i = 0; i < p->n_ops; i++) {
        a->device[i] = MOIRAI_NONE;
        for (int32_t k = 0; k < p->n_devices; k++) {
            int32_t col = g->x[(int64_t)i * p->n_devices + k];
            if (col >= 0 && value[col] > 0.5)
                a->device[i] = k;
        }
        if (a->device[i] == MOIRAI_NONE)
            return moirai_error(MOIRAI_EFAIL, "milp: the solver gave operator '%s' no device", p->op_name[i]);
        a->start[i] = value[g->s[i]];
    }
    for (int32_t q = 0; q < g->d->n_flows; q++)
        if (g->fs[q] >= 0)
            a->start[p->n_ops + g->d->flow[q].number] = value[g->fs[q]];
    return 0;
}

/* ---- the order ---- */

typedef struct ordering {
    const moirai_problem *p;
    const milp_answer *a;
    int32_t *missing; /* by task; -1: not needed */
    int64_t *arc_off, *arc_to;
    moirai_task *heap, *order;
    int64_t n_heap, n_order;
} ordering;

static bool sooner(const ordering *o, moirai_task a, moirai_task b)
{
    double x = o->a->start[a], y = o->a->start[b];
    return x < y || (x == y && a < b);
}

static void push(ordering *o, moirai_task t)
{
    int64_t at = o->n_heap++;
    for (; at > 0 && sooner(o, t, o->heap[(at - 1) / 2]); at = (at - 1) / 2)
        o->heap[at] = o->heap[(at - 1) / 2];
    o->heap[at] = t;
}

static moirai_task pop(ordering *o)
{
    moirai_task top = o->heap[0], last = o->heap[--o->n_heap];
    int64_t at = 0;
    for (int64_t child = 1; child < o->n_heap; child = 2 * at + 1) {
        if (child + 1 < o->n_heap && sooner(o, o->heap[child + 1], o->heap[child]))
            child++;
        if (!sooner(o, o->heap[child], last))
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    if (o->n_heap > 0)
        o->heap[at] = last;
    return top;
}

static void release(ordering *o, moirai_task t)
{
    if (--o->missing[t] == 0)
        push(o, t);
}

/* The transfer of edge e, or -1 where both ends share a device. */
static moirai_task transfer_of(const ordering *o, int32_t e)
{
    const moirai_problem *p = o->p;
    int32_t t = p->edge_tensor[e], to = o->a->device[p->edge_reader[e]];
    if (o->a->device[p->tensor_producer[t]] == to)
        return -1;
    return p->n_ops + (p->flow == MOIRAI_FLOW_EDGE ? (moirai_task)e : (moirai_task)t * p->n_devices + to);
}

static void count_missing(ordering *o)
{
    const moirai_problem *p = o->p;
    for (int64_t t = p->n_ops; t < o->a->n_tasks; t++)
        o->missing[t] = -1;
    for (int32_t e = 0; e < p->n_edges; e++) {
        moirai_task f = transfer_of(o, e);
        o->missing[p->edge_reader[e]]++;
        if (f >= 0)
            o->missing[f] = 1;
    }
    for (int64_t i = 0; i < o->arc_off[o->a->n_tasks]; i++)
        if (o->missing[o->arc_to[i]] >= 0)
            o->missing[o->arc_to[i]]++;
}

static void run_task(ordering *o, moirai_task task)
{
    const moirai_problem *p = o->p;
    o->order[o->n_order++] = task;
    if (task < p->n_ops) {
        for (int32_t i = p->op_out_off[task]; i < p->op_out_off[task + 1]; i++) {
            int32_t t = p->op_out[i];
            uint64_t sent = 0;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                moirai_task f = transfer_of(o, e);
                int32_t to = o->a->device[p->edge_reader[e]];
                if (f < 0)
                    release(o, p->edge_reader[e]);
                else if (p->flow == MOIRAI_FLOW_EDGE || !(sent >> to & 1))
                    release(o, f);
                sent |= UINT64_C(1) << to;
            }
        }
    } else if (p->flow == MOIRAI_FLOW_EDGE) {
        release(o, p->edge_reader[task - p->n_ops]);
    } else {
        int32_t t = (int32_t)((task - p->n_ops) / p->n_devices);
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            if (transfer_of(o, e) == task)
                release(o, p->edge_reader[e]);
    }
    for (int64_t i = o->arc_off[task]; i < o->arc_off[task + 1]; i++)
        if (o->missing[o->arc_to[i]] >= 0)
            release(o, o->arc_to[i]);
}

static int sort_arcs(ordering *o)
{
    const milp_answer *a = o->a;
    o->arc_off = util_alloc((size_t)a->n_tasks + 2, sizeof *o->arc_off);
    o->arc_to = util_alloc((size_t)a->n_arcs, sizeof *o->arc_to);
    if (!o->arc_off || !o->arc_to)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < a->n_arcs; i++)
        o->arc_off[a->arc[i].before + 2]++;
    for (int64_t t = 0; t < a->n_tasks; t++)
        o->arc_off[t + 2] += o->arc_off[t + 1];
    for (int64_t i = 0; i < a->n_arcs; i++)
        o->arc_to[o->arc_off[a->arc[i].before + 1]++] = a->arc[i].after;
    return 0;
}

static int make_order(ordering *o)
{
    int64_t n = o->a->n_tasks;
    o->missing = util_alloc((size_t)n, sizeof *o->missing);
    o->heap = util_alloc((size_t)n, sizeof *o->heap);
    o->order = util_alloc((size_t)n, sizeof *o->order);
    if (!o->missing || !o->heap || !o->order || sort_arcs(o))
        return MOIRAI_EFAIL;
    count_missing(o);
    int64_t needed = 0;
    for (int64_t t = 0; t < n; t++) {
        needed += o->missing[t] >= 0;
        if (o->missing[t] == 0)
            push(o, t);
    }
    while (o->n_heap > 0)
        run_task(o, pop(o));
    return o->n_order == needed ? 0 : moirai_error(MOIRAI_EFAIL, "milp: the solver's order runs in a circle");
}

/* ---- the plan ---- */

/* With arcs the simulator waits for these as well: memory is short, and starting sooner would not fit. */
static int replay(moirai_plan **out, const ordering *o, moirai_sim *sim)
{
    int64_t end = o->a->n_arcs > 0
                      ? schedule_sim_replay_arcs(sim, o->a->device, o->order, o->n_order, o->arc_off, o->arc_to)
                      : moirai_sim_replay(sim, o->a->device, o->order, o->n_order);
    if (end == -2)
        return MOIRAI_EFAIL;
    if (end < 0)
        return moirai_error(MOIRAI_EFAIL, "milp: the solver's devices are not allowed in problem '%s'", o->p->name);
    return moirai_sim_plan(out, sim);
}

int milp_answer_plan(moirai_plan **out, const moirai_problem *p, const milp_answer *a, moirai_sim *sim)
{
    *out = NULL;
    ordering o = {.p = p, .a = a};
    moirai_sim *mine = NULL;
    int rc = 0;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (a->device[i] < 0 || a->device[i] >= p->n_devices || !(p->op_devices[i] >> a->device[i] & 1))
            rc = moirai_error(MOIRAI_EFAIL, "milp: operator '%s' is on a device that cannot run it", p->op_name[i]);
    rc = rc ? rc : make_order(&o);
    if (!rc && !sim)
        rc = moirai_sim_new(&mine, p);
    rc = rc ? rc : replay(out, &o, sim ? sim : mine);
    moirai_sim_free(mine);
    free(o.missing);
    free(o.arc_off);
    free(o.arc_to);
    free(o.heap);
    free(o.order);
    return rc;
}
