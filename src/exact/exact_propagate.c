/* Propagation: everything that follows from a node's decisions and from "faster than below_ns".
 *
 * The rules feed each other, so they run in rounds until nothing moves. Two tasks can push each other a nanosecond at a time, so the
 * rounds are limited: stopping early only knows less. Where operators are all fixed the heads must satisfy every arc before they can be
 * read as start times; that part runs to its end (settle), where a cycle of arcs shows as a head beyond the limit or as more sweeps
 * than tasks. */
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

/* Devices on which an operator would finish too late; the bound from the operator whose best device is the worst. */
static bool filter(exact_search *s, exact_state *st, bool *changed)
{
    for (int32_t i = 0; i < s->n; i++) {
        int64_t least = EXACT_NONE_NS;
        uint64_t keep = ~(uint64_t)0;
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            int64_t at = (int64_t)i * s->K + k, all = st->head[at] + s->p->op_time_ns[at] + st->tail[at];
            least = UTIL_MIN(least, all);
            if (all >= s->below_ns)
                keep &= ~((uint64_t)1 << k);
        }
        st->lb_ns = UTIL_MAX(st->lb_ns, least);
        if (!exact_restrict(s, st, i, keep, changed))
            return false;
    }
    for (int32_t a = 0; a < s->slot.n_active; a++) {
        int32_t x = s->slot.active[a];
        int64_t all = st->xhead[x] + s->slot.ns[x] + st->xtail[x];
        st->lb_ns = UTIL_MAX(st->lb_ns, all);
    }
    return st->lb_ns < s->below_ns;
}

static bool round_of(exact_search *s, exact_state *st, bool *changed)
{
    if (st->n_open > 0 && !s->mode.plain && !exact_memory(s, st, changed))
        return false;
    exact_activate(s, st);
    exact_heads(s, st, changed);
    exact_tails(s, st, changed);
    if (st->n_open == 0)
        exact_arcs(s, st, changed);
    if (!filter(s, st, changed))
        return false;
    return exact_machines(s, st, changed);
}

bool exact_propagate(exact_search *s, exact_state *st)
{
    bool changed = true;
    for (int round = 0; changed && round < EXACT_PROPAGATE_ROUNDS; round++) {
        changed = false;
        if (!round_of(s, st, &changed))
            return false;
    }
    if (st->n_open == 0 && !s->mode.plain) {
        bool ignored = false;
        return exact_memory(s, st, &ignored);
    }
    return true;
}

bool exact_settle(exact_search *s, exact_state *st)
{
    bool changed = true;
    exact_activate(s, st);
    for (int64_t sweep = 0; changed; sweep++) {
        changed = false;
        exact_heads(s, st, &changed);
        exact_arcs(s, st, &changed);
        bool ignored = false;
        if (sweep > s->n + s->X + 1 || !filter(s, st, &ignored))
            return false;
    }
    return true;
}
