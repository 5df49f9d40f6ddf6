/* All operators are fixed: the order of tasks on machines, and the lives of tensors.
 *
 * The heads, once they satisfy every arc, are the earliest start times of any plan of this node that is wanted. If no
 * machine is asked for two tasks at once and memory holds, they are a plan, and the best of the node. Otherwise two
 * tasks that overlap on a machine are put in order, both ways; or, where only memory is exceeded, two tensors are made
 * to live one after the other, in every way. Both cases leave no plan out, and each child breaks what was wrong, so
 * that the search ends. The pair is the one whose cheaper order costs most: it decides soonest. */
#include "exact/exact_search.h"

#include <stdlib.h>

typedef struct conflict {
    int32_t a, b;
    int64_t a_first, b_first; /* bounds of the two orders */
} conflict;

static void consider(conflict *best, const exact_job *u, const exact_job *v)
{
    if (u->r >= v->r + v->p || v->r >= u->r + u->p)
        return;
    conflict one = {u->task, v->task, UTIL_MAX(v->r, u->r + u->p) + v->p + v->q,
                    UTIL_MAX(u->r, v->r + v->p) + u->p + u->q};
    int64_t low = UTIL_MIN(one.a_first, one.b_first), best_low = UTIL_MIN(best->a_first, best->b_first);
    int64_t high = UTIL_MAX(one.a_first, one.b_first), best_high = UTIL_MAX(best->a_first, best->b_first);
    if (best->a < 0 || low > best_low || (low == best_low && high > best_high))
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
    if (!next || exact_arc_add(s, next, before, after))
        return;
    next->lb_ns = UTIL_MAX(next->lb_ns, lb);
    exact_visit(s, depth + 1);
}

static void branch_on_order(exact_search *s, int32_t depth, conflict c)
{
    bool a_first = c.a_first <= c.b_first;
    exact_note(s, EXACT_TREE_ORDER);
    exact_note(s, a_first ? c.a : c.b);
    exact_note(s, a_first ? c.b : c.a);
    child(s, depth, a_first ? c.a : c.b, a_first ? c.b : c.a, a_first ? c.a_first : c.b_first);
    int64_t lb = UTIL_MAX(s->stack.state[depth]->lb_ns, a_first ? c.b_first : c.a_first);
    if (s->run.stopped) {
        exact_leave(s, lb);
        return;
    }
    child(s, depth, a_first ? c.b : c.a, a_first ? c.a : c.b, lb);
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
    if (c.a >= 0) {
        branch_on_order(s, depth, c);
        return;
    }
    int32_t device, n = s->mode.peak ? exact_overload(s, st, &device, s->work.cover) : 0;
    if (n == 0) {
        exact_found(s, st);
        return;
    }
    int32_t *tensor = util_alloc((size_t)n, sizeof *tensor);
    if (!tensor) {
        s->run.failed = s->run.stopped = true;
        return;
    }
    for (int32_t a = 0; a < n; a++)
        tensor[a] = s->work.cover[a];
    branch_on_lives(s, depth, device, tensor, n);
    free(tensor);
}
