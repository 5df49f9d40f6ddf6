/* Exhaustive search for tests, from model.md alone.
 *
 * Every placement; for each, every schedule built by adding tasks (operators and transfers) in order of start. With
 * static memory an added task starts as early as it can after those already there: some optimal schedule is of that
 * kind (semi-active), and sorted by start it is built task by task. With peak memory waiting can be right: a task may
 * start at its earliest moment or at any later finish of a task that takes time. Those moments suffice: in a schedule
 * of least sum of starts, whatever starts when nothing ends could start a little earlier without breaking anything. */
#include "support/brute_force.h"
#include "schedule/plan.h"
#include "util/util.h"

#include <string.h>

#define MAX_TASKS 96

typedef struct task {
    int32_t op; /* MOIRAI_NONE: a transfer */
    int32_t tensor, reader, from, to;
    int64_t ns, tail_ns; /* own time; own time and the longest way to the end */
    int32_t n_after, after[MAX_TASKS];
    int32_t n_before;
} task;

typedef struct brute {
    const moirai_problem *p;
    int32_t device[BRUTE_MAX_OPS];
    int32_t n;
    task task[MAX_TASKS];
    int64_t start[MAX_TASKS]; /* -1: not yet */
    int32_t missing[MAX_TASKS];
    int64_t best_ns, nodes, max_nodes;
    int32_t best_device[BRUTE_MAX_OPS], best_n;
    int64_t best_start[MAX_TASKS];
    task best_task[MAX_TASKS];
} brute;

/* ---- tasks of one placement ---- */

static void link_tasks(brute *b, int32_t before, int32_t after)
{
    task *t = &b->task[before];
    for (int32_t j = 0; j < t->n_after; j++)
        if (t->after[j] == after)
            return;
    t->after[t->n_after++] = after;
    b->task[after].n_before++;
}

static int32_t add_transfer(brute *b, int32_t tensor, int32_t reader, int32_t from, int32_t to)
{
    bool shared = b->p->flow == MOIRAI_FLOW_TENSOR;
    for (int32_t j = b->p->n_ops; shared && j < b->n; j++)
        if (b->task[j].tensor == tensor && b->task[j].to == to)
            return j;
    int64_t ns = moirai_transfer_ns(b->p, tensor, from, to);
    b->task[b->n] = (task){
        .op = MOIRAI_NONE, .tensor = tensor, .reader = shared ? MOIRAI_NONE : reader, .from = from, .to = to, .ns = ns};
    return b->n++;
}

static void make_tasks(brute *b)
{
    const moirai_problem *p = b->p;
    b->n = p->n_ops;
    for (int32_t i = 0; i < p->n_ops; i++)
        b->task[i] = (task){.op = i, .ns = moirai_op_ns(p, i, b->device[i])};
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t tensor = p->op_in[j], producer = p->tensor_producer[tensor];
            if (b->device[producer] == b->device[i]) {
                link_tasks(b, producer, i);
                continue;
            }
            int32_t x = add_transfer(b, tensor, i, b->device[producer], b->device[i]);
            link_tasks(b, producer, x);
            link_tasks(b, x, i);
        }
    for (int32_t round = 0; round < b->n; round++) /* longest ways by relaxation: tasks are few */
        for (int32_t t = 0; t < b->n; t++) {
            b->task[t].tail_ns = b->task[t].ns;
            for (int32_t j = 0; j < b->task[t].n_after; j++)
                b->task[t].tail_ns = UTIL_MAX(b->task[t].tail_ns, b->task[t].ns + b->task[b->task[t].after[j]].tail_ns);
        }
}

static bool share_a_resource(const brute *b, const task *x, const task *y)
{
    bool held = b->p->congestion == MOIRAI_CONGESTION_DEVICE;
    if (x->ns == 0 || y->ns == 0 || (!held && (x->op == MOIRAI_NONE) != (y->op == MOIRAI_NONE)))
        return false;
    if (held) {
        int32_t a = x->op == MOIRAI_NONE ? x->from : b->device[x->op], c = x->op == MOIRAI_NONE ? x->to : a;
        int32_t d = y->op == MOIRAI_NONE ? y->from : b->device[y->op], e = y->op == MOIRAI_NONE ? y->to : d;
        return a == d || a == e || c == d || c == e;
    }
    if (x->op != MOIRAI_NONE)
        return b->device[x->op] == b->device[y->op];
    if (b->p->congestion == MOIRAI_CONGESTION_PORT)
        return x->from == y->from || x->to == y->to;
    return b->p->congestion == MOIRAI_CONGESTION_CHANNEL && x->from == y->from && x->to == y->to;
}

/* ---- peak memory of what is scheduled so far ---- */

static void widen(int64_t *first, int64_t *last, int64_t a, int64_t z)
{
    *first = UTIL_MIN(*first, a);
    *last = UTIL_MAX(*last, z);
}

/* Life of a tensor on a device; tasks not yet scheduled start at `now` at the earliest. */
static void life(const brute *b, int32_t t, int32_t d, int64_t now, int64_t end, int64_t *first, int64_t *last)
{
    const moirai_problem *p = b->p;
    int32_t producer = p->tensor_producer[t];
    *first = INT64_MAX, *last = -1;
    if (b->device[producer] == d && b->start[producer] >= 0) {
        bool output = p->tensor_edge_off[t] == p->tensor_edge_off[t + 1];
        widen(first, last, b->start[producer], output ? end : b->start[producer] + b->task[producer].ns);
    }
    for (int32_t j = p->n_ops; j < b->n; j++) {
        const task *x = &b->task[j];
        if (x->tensor != t || (x->from != d && x->to != d))
            continue;
        if (x->to == d && b->start[j] >= 0)
            *first = UTIL_MIN(*first, b->start[j]);
        if (x->from == d)
            *last = UTIL_MAX(*last, b->start[j] >= 0 ? b->start[j] + x->ns : now);
    }
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t r = p->edge_reader[e];
        if (b->device[r] == d)
            *last = UTIL_MAX(*last, b->start[r] >= 0 ? b->start[r] + b->task[r].ns : now);
    }
}

static bool fits(const brute *b, int64_t now, int64_t end)
{
    const moirai_problem *p = b->p;
    int64_t first[4 * BRUTE_MAX_OPS], last[4 * BRUTE_MAX_OPS];
    for (int32_t d = 0; d < p->n_devices; d++) {
        int64_t room = p->device_memory_bytes[d];
        for (int32_t i = 0; i < p->n_ops; i++)
            room -= b->device[i] == d ? p->op_memory_bytes[i] : 0;
        for (int32_t w = 0; w < p->n_weights; w++) {
            bool there = false;
            for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
                there = there || b->device[p->weight_reader[e]] == d;
            room -= there ? p->weight_bytes[w] : 0;
        }
        if (room < 0)
            return false;
        if (p->memory == MOIRAI_MEMORY_STATIC)
            continue;
        for (int32_t t = 0; t < p->n_tensors; t++)
            life(b, t, d, now, end, &first[t], &last[t]);
        for (int32_t t = 0; t < p->n_tensors; t++) {
            int64_t live = 0;
            for (int32_t u = 0; u < p->n_tensors; u++)
                live += first[u] <= first[t] && first[t] < last[u] ? p->tensor_bytes[u] : 0;
            if (live > room && first[t] < last[t])
                return false;
        }
    }
    return true;
}

/* ---- schedules of one placement ---- */

static void keep_best(brute *b)
{
    int64_t end = 0;
    for (int32_t i = 0; i < b->p->n_ops; i++)
        end = UTIL_MAX(end, b->start[i] + b->task[i].ns);
    if (end >= b->best_ns || !fits(b, end, end))
        return;
    b->best_ns = end;
    b->best_n = b->n;
    memcpy(b->best_device, b->device, sizeof b->device);
    memcpy(b->best_start, b->start, sizeof b->start);
    memcpy(b->best_task, b->task, sizeof b->task);
}

static int64_t earliest(const brute *b, int32_t x)
{
    int64_t at = 0;
    for (int32_t t = 0; t < b->n; t++) {
        if (b->start[t] < 0)
            continue;
        bool waits = share_a_resource(b, &b->task[t], &b->task[x]);
        for (int32_t j = 0; j < b->task[t].n_after && !waits; j++)
            waits = b->task[t].after[j] == x;
        if (waits)
            at = UTIL_MAX(at, b->start[t] + b->task[t].ns);
    }
    return at;
}

static void extend(brute *b, int32_t n_done, int64_t now);

static void try_start(brute *b, int32_t n_done, int32_t x, int64_t at)
{
    if (at + b->task[x].tail_ns >= b->best_ns || b->nodes >= b->max_nodes)
        return;
    b->nodes++; /* also where memory then says no: that is where the time goes */
    b->start[x] = at;
    for (int32_t j = 0; j < b->task[x].n_after; j++)
        b->missing[b->task[x].after[j]]--;
    if (b->p->memory == MOIRAI_MEMORY_STATIC || fits(b, at, at))
        extend(b, n_done + 1, at);
    for (int32_t j = 0; j < b->task[x].n_after; j++)
        b->missing[b->task[x].after[j]]++;
    b->start[x] = -1;
}

static void extend(brute *b, int32_t n_done, int64_t now)
{
    b->nodes++;
    if (n_done == b->n) {
        keep_best(b);
        return;
    }
    for (int32_t x = 0; x < b->n; x++)
        if (b->start[x] < 0 && now + b->task[x].tail_ns >= b->best_ns)
            return;
    for (int32_t x = 0; x < b->n; x++) {
        if (b->start[x] >= 0 || b->missing[x] > 0)
            continue;
        int64_t at = earliest(b, x);
        if (at >= now)
            try_start(b, n_done, x, at);
        if (b->p->memory == MOIRAI_MEMORY_STATIC)
            continue;
        int64_t tried[MAX_TASKS];
        int32_t n_tried = 0;
        for (int32_t t = 0; t < b->n; t++) {
            int64_t later = b->start[t] >= 0 && b->task[t].ns > 0 ? b->start[t] + b->task[t].ns : -1;
            bool again = later <= at || later < now;
            for (int32_t j = 0; j < n_tried && !again; j++)
                again = tried[j] == later;
            if (again)
                continue;
            tried[n_tried++] = later;
            try_start(b, n_done, x, later);
        }
    }
}

static void place_from(brute *b, int32_t i)
{
    const moirai_problem *p = b->p;
    if (b->nodes >= b->max_nodes)
        return;
    if (i == p->n_ops) {
        make_tasks(b);
        for (int32_t t = 0; t < b->n; t++) {
            b->start[t] = -1;
            b->missing[t] = b->task[t].n_before;
        }
        if (fits(b, 0, 0))
            extend(b, 0, 0);
        return;
    }
    for (int32_t d = 0; d < p->n_devices; d++) {
        bool fine = moirai_op_ns(p, i, d) >= 0;
        for (int32_t j = 0; j < i && fine; j++)
            fine = p->op_group[i] == MOIRAI_NONE || p->op_group[j] != p->op_group[i] || b->device[j] == d;
        b->device[i] = d;
        if (fine)
            place_from(b, i + 1);
    }
}

static moirai_plan *make_plan(const brute *b)
{
    moirai_plan *plan;
    const moirai_problem *p = b->p;
    if (schedule_plan_new(&plan, p->name, p->n_ops, b->best_n - p->n_ops, p->n_devices) != 0)
        return NULL;
    plan->makespan_ns = plan->lower_bound_ns = b->best_ns;
    for (int32_t t = 0; t < b->best_n; t++) {
        const task *x = &b->best_task[t];
        int64_t start = b->best_start[t];
        if (x->op != MOIRAI_NONE) {
            plan->op_device[t] = b->best_device[t];
            plan->op_start_ns[t] = start;
            plan->op_finish_ns[t] = start + x->ns;
        } else {
            plan->transfer[t - p->n_ops] =
                (moirai_transfer){x->tensor, x->reader, x->from, x->to, start, start + x->ns};
        }
    }
    schedule_plan_sort_transfers(plan);
    return plan;
}

int64_t brute_force(const moirai_problem *p, int64_t max_nodes, moirai_plan **best)
{
    if (best != NULL)
        *best = NULL;
    if (p->n_ops > BRUTE_MAX_OPS || p->n_edges + p->n_ops > MAX_TASKS || p->n_tensors > 4 * BRUTE_MAX_OPS)
        return BRUTE_GAVE_UP;
    static brute b; /* too large for some stacks; tests are single-threaded */
    memset(&b, 0, sizeof b);
    b.p = p;
    b.best_ns = INT64_MAX;
    b.max_nodes = max_nodes;
    place_from(&b, 0);
    if (b.nodes >= max_nodes)
        return BRUTE_GAVE_UP;
    if (b.best_ns == INT64_MAX)
        return BRUTE_INFEASIBLE;
    if (best != NULL)
        *best = make_plan(&b);
    return b.best_ns;
}
