/* Nodes of the search: the stack of them, the devices left to an operator, what is left open, the tree that is written down. */
#include <string.h>

#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

/* One block holds the struct and its arrays. */
static size_t state_bytes(const exact_search *s)
{
    size_t n = (size_t)s->n;
    return sizeof(exact_state) + (n + 2 * n * (size_t)s->K + 2 * (size_t)s->X) * sizeof(int64_t) + n;
}

static exact_state *new_state(exact_search *s)
{
    size_t n = (size_t)s->n, K = (size_t)s->K, X = (size_t)s->X, bytes = state_bytes(s);
    if (s->stack.bytes + bytes > EXACT_SETUP_MOST_STACK_BYTES)
        return NULL;
    exact_state *st = util_alloc(1, bytes);
    if (!st)
        return NULL;
    s->stack.bytes += bytes;
    st->dom = (uint64_t *)(st + 1);
    st->head = (int64_t *)(st->dom + n);
    st->tail = st->head + n * K;
    st->xhead = st->tail + n * K;
    st->xtail = st->xhead + X;
    st->stale = (uint8_t *)(st->xtail + X);
    return st;
}

/* All but the pointers. */
static void copy_state(const exact_search *s, exact_state *to, const exact_state *from)
{
    size_t first = offsetof(exact_state, lb_ns);
    memcpy((char *)to + first, (const char *)from + first, state_bytes(s) - first);
}

exact_state *exact_push(exact_search *s, int32_t depth)
{
    if (depth >= s->stack.n) {
        exact_state *st = NULL;
        if (depth <= EXACT_SETUP_MOST_DEPTH &&
            !util_grow(&s->stack.state, &s->stack.capacity, (size_t)depth + 1, sizeof *s->stack.state))
            st = new_state(s);
        if (!st) {
            s->run.stopped = true;
            exact_leave(s, depth > 0 ? s->stack.state[depth - 1]->lb_ns : 0);
            return NULL;
        }
        s->stack.state[s->stack.n++] = st;
    }
    if (depth > 0)
        copy_state(s, s->stack.state[depth], s->stack.state[depth - 1]);
    return s->stack.state[depth];
}

bool exact_restrict(exact_search *s, exact_state *st, int32_t op, uint64_t keep, bool *changed)
{
    uint64_t dom = st->dom[op] & keep;
    if (dom == st->dom[op])
        return true;
    int32_t u = s->unit.of[op], size = s->unit.off[u + 1] - s->unit.off[u];
    if (dom == 0)
        return false;
    if (EXACT_ONLY(dom))
        st->n_open -= size;
    for (int32_t a = s->unit.off[u]; a < s->unit.off[u + 1]; a++) {
        st->dom[s->unit.op[a]] = dom;
        exact_head_moved(s, st, s->unit.op[a]);
        exact_tail_moved(s, st, s->unit.op[a]);
    }
    st->stale_devices |= EXACT_ONLY(dom) ? dom : 0;
    *changed = true;
    return true;
}

void exact_leave(exact_search *s, int64_t lb_ns)
{
    s->run.open_lb_ns = UTIL_MIN(s->run.open_lb_ns, lb_ns);
}

void exact_note(exact_search *s, int32_t number)
{
    exact_result *r = s->r;
    if (!s->mode.plain)
        return;
    if (r->n_tree >= s->o->most_tree)
        s->run.stopped = true;
    else if (util_grow(&r->tree, &s->run.tree_capacity, r->n_tree + 1, sizeof *r->tree))
        s->run.failed = s->run.stopped = true;
    else
        r->tree[r->n_tree++] = number;
}
