/* All operators are fixed: the order of tasks on machines, and the lives of tensors (docs/theory.md, Lemmas 37 and 42).
 *
 * If no machine is asked for two tasks at once at the heads and memory holds, they are a plan, and the best of the node. Otherwise
 * two tasks that overlap are put in order, both ways, of all pairs that whose cheaper order costs most: it decides soonest; or, where
 * only memory is exceeded, two tensors are made to live one after the other, in every way. */
#include "exact/exact_search.h"

#include <stdlib.h>

/* Two tasks that overlap, in the order that costs less. */
typedef struct conflict {
    int32_t first, second; /* first < 0: none */
    int64_t low, high;     /* bounds of this order, and of the other */
} conflict;

static void consider(conflict *best, const exact_job *u, const exact_job *v)
{
    if (u->r >= v->r + v->p || v->r >= u->r + u->p)
        return;
    int64_t u_first = UTIL_MAX(v->r, u->r + u->p) + v->p + v->q, v_first = UTIL_MAX(u->r, v->r + v->p) + u->p + u->q;
    conflict one = {u->task, v->task, u_first, v_first};
    if (v_first < u_first)
        one = (conflict){v->task, u->task, v_first, u_first};
    if (best->first < 0 || one.low > best->low || (one.low == best->low && one.high > best->high))
        *best = one;
}

static conflict find_conflict(exact_search *s, const exact_state *st)
{
    conflict best = {-1, -1, 0, 0};
    int32_t machines = exact_machine_count(s);
    for (int32_t m = 0; m < machines; m++) {
        if (s->work.machine_count[m] < 2 && m >= s->K)
            continue;
        int32_t n = exact_machine_jobs(s, st, m, s->work.job);
        for (int32_t a = 0; a < n; a++)
            for (int32_t b = a + 1; b < n; b++)
                consider(&best, &s->work.job[a], &s->work.job[b]);
    }
    return best;
}

static void child(exact_search *s, int32_t depth, int32_t before, int32_t after, int64_t lb)
{
    exact_state *next = exact_push(s, depth + 1);
    if (!next)
        return;
    exact_arc_add(s, next, before, after);
    next->lb_ns = UTIL_MAX(next->lb_ns, lb);
    exact_visit(s, depth + 1);
}

static void branch_on_order(exact_search *s, int32_t depth, conflict c)
{
    exact_note(s, EXACT_TREE_ORDER);
    exact_note(s, c.first);
    exact_note(s, c.second);
    child(s, depth, c.first, c.second, c.low);
    int64_t lb = UTIL_MAX(s->stack.state[depth]->lb_ns, c.high);
    if (s->run.stopped)
        exact_leave(s, lb);
    else
        child(s, depth, c.second, c.first, lb);
}

static void branch_on_lives(exact_search *s, int32_t depth, int32_t device, const int32_t *tensor, int32_t n)
{
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = 0; b < n; b++) {
            if (s->run.stopped) {
                exact_leave(s, s->stack.state[depth]->lb_ns);
                return;
            }
            exact_state *next = exact_push(s, depth + 1);
            if (next && exact_part(s, next, device, tensor[a], tensor[b]) > 0)
                exact_visit(s, depth + 1);
        }
    }
}

void exact_order(exact_search *s, int32_t depth)
{
    exact_state *st = s->stack.state[depth];
    if (!exact_settle(s, st)) {
        exact_note(s, EXACT_TREE_CLOSED);
        return;
    }
    conflict c = find_conflict(s, st);
    if (c.first >= 0) {
        branch_on_order(s, depth, c);
        return;
    }
    int32_t device, n = s->mode.peak ? exact_overload(s, st, &device, s->work.cover) : 0;
    if (n == 0) {
        exact_found(s, st);
        return;
    }
    int32_t *tensor = util_copy(s->work.cover, (size_t)n, sizeof *tensor); /* children have theirs there */
    if (!tensor) {
        s->run.failed = s->run.stopped = true;
        return;
    }
    branch_on_lives(s, depth, device, tensor, n);
    free(tensor);
}
