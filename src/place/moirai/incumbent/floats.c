/* Floating work beside the spine.
 *
 * The plan of the spine stands; each floating operator, the one that is needed first first, goes into a gap: to the
 * device from which its readers get it in time, then the one that asks for the least transfers, then the earliest. What
 * comes too late for its reader nevertheless goes to the earliest gap; the order of all tasks by their starts, with
 * each task before its readers, is then replayed, which moves the spine as far as it must. The replayed spine has other
 * gaps: all of it is done again with them, for some rounds. O(rounds (V+E) K (log V + gaps passed)). */
#include "place/moirai/incumbent/incumbent.h"

#include <stdlib.h>

#include "place/list/insert.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "schedule/plan_order.h"
#include "util/util.h"

/* What makes a device the best one: the delay of readers, plus these parts of the transfers' time and of the finish. */
typedef struct rule {
    double sent, finish;
} rule;

static const rule rules[] = {{0, 1}, {0.1, 0.01}, {3, 1}, {1e-3, 1e-6}};

/* All working memory: inserting many times allocates nothing but plans. */
typedef struct filling {
    const decompose_spine *s;
    const moirai_problem *p;
    place_insert *insert;
    int32_t *floating; /* operators, in the order of insertion */
    int64_t *due_ns;   /* latest start of each operator that keeps its readers in time, by least times; the start itself
                          on the spine */
    schedule_timed_task *sorted;
    moirai_task *order;
    const rule *rule;
    util_memory memory;
} filling;

static void release(filling *x)
{
    place_insert_free(x->insert);
    util_release(&x->memory);
}

static int prepare(filling *x, const decompose_spine *s)
{
    size_t n = (size_t)s->whole->n_ops, tasks = n + (size_t)s->whole->n_edges;
    *x = (filling){.s = s, .p = s->whole};
    UTIL_TAKE(&x->memory, x->floating, (size_t)s->n_floating);
    UTIL_TAKE(&x->memory, x->due_ns, n);
    UTIL_TAKE(&x->memory, x->sorted, tasks);
    UTIL_TAKE(&x->memory, x->order, tasks);
    int rc = x->memory.failed ? MOIRAI_EFAIL : place_insert_new(&x->insert, s->whole);
    if (rc)
        release(x);
    return rc;
}

/* ---- the spine's plan in numbers of the whole ---- */

/* Any plan that has the spine's operators: of the spine (numbered there), or of the whole. */
static int reserve_spine(filling *x, const moirai_plan *plan)
{
    const moirai_problem *p = x->p;
    bool whole = plan->n_ops == p->n_ops;
    int rc = 0;
    for (int32_t n = 0; n < x->s->problem->n_ops && !rc; n++) {
        int32_t i = x->s->whole_op[n], from = whole ? i : n;
        x->due_ns[i] = plan->op_start_ns[from];
        rc = place_insert_take_op(x->insert, i, plan->op_device[from], plan->op_start_ns[from]);
    }
    for (int32_t j = 0; j < plan->n_transfers && !rc; j++) {
        const moirai_transfer *a = &plan->transfer[j];
        int32_t t = whole ? a->tensor : x->s->whole_tensor[a->tensor], slot = MOIRAI_NONE;
        if (x->s->floating[p->tensor_producer[t]])
            continue;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1] && slot == MOIRAI_NONE; e++) {
            int32_t reader = p->edge_reader[e];
            bool reads = p->flow == MOIRAI_FLOW_EDGE ? reader == (whole ? a->reader : x->s->whole_op[a->reader])
                                                     : x->insert->list->device[reader] == a->to;
            if (reads && !x->s->floating[reader])
                slot = place_list_edge_slot(x->insert->list, e, a->to);
        }
        if (slot != MOIRAI_NONE) /* else only floating work reads it there */
            rc = place_insert_take_sending(x->insert, slot, a->from, a->to, a->start_ns, a->finish_ns - a->start_ns);
    }
    return rc;
}

/* ---- insertion ---- */

static int by_due(const void *a, const void *b, void *data)
{
    const filling *x = data;
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (x->due_ns[i] != x->due_ns[j])
        return x->due_ns[i] < x->due_ns[j] ? -1 : 1;
    return x->p->topo_rank[i] - x->p->topo_rank[j];
}

/* Floating operators by the time at which they are needed; one never comes before what it reads. */
static void sort_floating(filling *x)
{
    const moirai_problem *p = x->p;
    int32_t n = 0;
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        if (!x->s->floating[i])
            continue;
        int64_t due = INT64_MAX;
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++)
                due = UTIL_MIN(due, x->due_ns[p->edge_reader[e]]);
        x->due_ns[i] = due == INT64_MAX ? due : due - moirai_op_least_ns(p, i);
        x->floating[n++] = i;
    }
    qsort_r(x->floating, (size_t)n, sizeof *x->floating, by_due, x);
}

typedef struct verdict {
    int64_t late_ns, sent_ns, finish_ns;
} verdict;

static double cost_of(const verdict *v, const rule *r)
{
    return (double)v->late_ns + r->sent * (double)v->sent_ns + r->finish * (double)v->finish_ns;
}

/* What becomes of the spine's readers if `op` runs on k from start_ns on; `take` sends to them. */
static int send_on(verdict *v, filling *x, int32_t op, int32_t k, bool take)
{
    const moirai_problem *p = x->p;
    int rc = 0;
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        uint64_t sent = 0;
        for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1] && !rc; e++) {
            int32_t reader = p->edge_reader[e], to = x->insert->list->device[reader];
            if (to == MOIRAI_NONE)
                continue; /* it floats and is placed later: it fetches its inputs */
            int64_t ns = moirai_transfer_ns(p, p->op_out[j], k, to), arrival = v->finish_ns;
            if (to != k && (p->flow == MOIRAI_FLOW_EDGE || !(sent >> to & 1))) {
                int64_t start = place_insert_find_sending(x->insert, k, to, v->finish_ns, ns);
                arrival = start + ns;
                v->sent_ns += ns;
                sent |= UINT64_C(1) << to;
                if (take)
                    rc = place_insert_take_sending(x->insert, place_list_edge_slot(x->insert->list, e, to), k, to,
                                                   start, ns);
            }
            v->late_ns = UTIL_MAX(v->late_ns, arrival - x->due_ns[reader]);
        }
    }
    return rc;
}

static int insert_one(filling *x, int32_t op)
{
    int32_t best = MOIRAI_NONE;
    int64_t best_start = 0;
    double best_cost = 0;
    for (uint64_t open = place_list_devices(x->insert->list, op).word[0]; open; open &= open - 1) {
        int32_t k = __builtin_ctzll(open);
        int64_t start = place_insert_try(x->insert, op, k, INT64_MAX);
        if (start < 0)
            return MOIRAI_EFAIL;
        verdict v = {.finish_ns = start + moirai_op_ns(x->p, op, k)};
        for (int32_t j = 0; j < x->insert->n_now; j++)
            v.sent_ns += x->insert->now[j].ns;
        send_on(&v, x, op, k, false);
        double cost = cost_of(&v, x->rule);
        if (best != MOIRAI_NONE && cost >= best_cost)
            continue;
        best = k;
        best_start = start;
        best_cost = cost;
        place_insert_keep(x->insert);
    }
    int rc = place_insert_commit(x->insert, op, best, best_start);
    verdict done = {.finish_ns = best_start + moirai_op_ns(x->p, op, best)};
    return rc ? rc : send_on(&done, x, op, best, true);
}

/* ---- back to a plan ---- */

/* A transfer stands after its producer and before its readers. */
static schedule_timed_task sending_at(const filling *x, moirai_task task, int64_t start_ns)
{
    const moirai_problem *p = x->p;
    const place_list *l = x->insert->list;
    int32_t slot = (int32_t)(task - p->n_ops);
    int32_t t = p->flow == MOIRAI_FLOW_EDGE ? p->edge_tensor[slot] : slot / p->n_devices, to = slot % p->n_devices;
    int32_t first = p->flow == MOIRAI_FLOW_EDGE ? slot : p->tensor_edge_off[t];
    int32_t last = p->flow == MOIRAI_FLOW_EDGE ? slot : p->tensor_edge_off[t + 1] - 1;
    for (int32_t e = first; e <= last; e++)
        if (p->flow == MOIRAI_FLOW_EDGE || l->device[p->edge_reader[e]] == to)
            start_ns = UTIL_MIN(start_ns, l->start_ns[p->edge_reader[e]]);
    start_ns = UTIL_MAX(start_ns, l->start_ns[p->tensor_producer[t]]);
    return schedule_timed_transfer(p, t, start_ns, start_ns, task);
}

/* Starts of late work are set back to those of its readers: the order stays one of precedence. Such work starts with
 * its readers but takes time, so that precedence alone decides among equal starts: all tasks are sorted as if they took
 * none. */
static int64_t order_tasks(filling *x)
{
    const moirai_problem *p = x->p;
    place_list *l = x->insert->list;
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++)
                l->start_ns[i] = UTIL_MIN(l->start_ns[i], l->start_ns[p->edge_reader[e]]);
    }
    for (int64_t j = 0; j < l->n_log; j++) {
        moirai_task task = l->log[j];
        x->sorted[j] = task < p->n_ops ? schedule_timed_op(p, (int32_t)task, l->start_ns[task], l->start_ns[task])
                                       : sending_at(x, task, l->log_start_ns[j]);
    }
    schedule_timed_sort(x->sorted, (size_t)l->n_log);
    for (int64_t j = 0; j < l->n_log; j++)
        x->order[j] = x->sorted[j].task;
    return l->n_log;
}

/* One insertion beside `plan`, of the spine or of the whole; *out is NULL where it does not fit. */
static int insert_once(moirai_plan **out, filling *x, const moirai_plan *plan)
{
    *out = NULL;
    place_insert_clear(x->insert);
    int rc = reserve_spine(x, plan);
    if (!rc)
        sort_floating(x);
    for (int32_t i = 0; i < x->s->n_floating && !rc; i++)
        rc = insert_one(x, x->floating[i]);
    if (rc)
        return rc;
    place_list *l = x->insert->list;
    int64_t n = order_tasks(x), length = moirai_sim_replay(l->sim, l->device, x->order, n);
    if (length < 0 || moirai_sim_memory_excess(l->sim, NULL) > 0)
        return 0;
    return moirai_sim_plan(out, l->sim);
}

/* Takes ownership of plan; *best keeps the shorter one. */
static void keep_shorter(moirai_plan **best, moirai_plan *plan)
{
    bool shorter = plan && (!*best || plan->makespan_ns < (*best)->makespan_ns);
    moirai_plan_free(shorter ? *best : plan);
    if (shorter)
        *best = plan;
}

/* Rounds of one rule, each with the gaps that the last has left. */
static int insert_rounds(moirai_plan **best, filling *x, const moirai_plan *spine_plan, const util_stop *stop)
{
    moirai_plan *last = NULL;
    int rc = insert_once(&last, x, spine_plan);
    for (int32_t round = 1; round < INCUMBENT_FLOATS_ROUNDS && last && !rc && !util_stopped(stop); round++) {
        moirai_plan *next;
        rc = insert_once(&next, x, last);
        keep_shorter(best, last);
        last = next;
    }
    keep_shorter(best, last);
    return rc;
}

int place_floats_insert(moirai_plan **out, const decompose_spine *s, const moirai_plan *spine_plan,
                        const util_stop *stop)
{
    filling x;
    *out = NULL;
    int rc = prepare(&x, s);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !rc && !util_stopped(stop); i++) {
        x.rule = &rules[i];
        rc = insert_rounds(out, &x, spine_plan, stop);
    }
    release(&x);
    if (rc) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    return rc;
}
