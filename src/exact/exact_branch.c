/* Some operator's device is open: choose one, try its devices, the most promising first.
 *
 * The operator is the one that takes longest, times the dead ends that it has led to, over the devices
 * it has left and over its slack, which is how much below the target its best device is: its device decides most of what
 * the bounds need to know, what failed before fails again soon, and a decision about what is critical shows at once.
 * Symmetry is used where the node has it (docs/theory.md, Lemma 43): of devices that can be exchanged here one is tried, and
 * where a mirror of the graph (exact_mirror.c) takes operator i to j, j loses the devices on which i has been searched in later
 * children. */
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

static int64_t estimate(const exact_search *s, const exact_state *st, int32_t i, int32_t k)
{
    int64_t most = 0;
    int32_t u = s->unit.of[i];
    for (int32_t a = s->unit.off[u]; a < s->unit.off[u + 1]; a++) {
        int64_t at = (int64_t)s->unit.op[a] * s->K + k;
        most = UTIL_MAX(most, st->head[at] + s->p->op_time_ns[at] + st->tail[at]);
    }
    return most;
}

static int32_t choose(const exact_search *s, const exact_state *st)
{
    int32_t best = -1;
    double most = -1;
    for (int32_t a = 0; a < s->n; a++) {
        int32_t i = s->p->topo[a];
        int64_t longest = 0, through = EXACT_NONE_NS;
        if (EXACT_ONLY(st->dom[i]))
            continue;
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
            int64_t at = (int64_t)i * s->K + EXACT_FIRST(m);
            longest = UTIL_MAX(longest, s->p->op_time_ns[at]);
            through = UTIL_MIN(through, st->head[at] + s->p->op_time_ns[at] + st->tail[at]);
        }
        double slack = (double)s->below_ns * EXACT_BRANCH_NO_SLACK + (double)(s->below_ns - through);
        double key = (1 + (double)longest) * (1 + s->dead_ends[i]) / (__builtin_popcountll(st->dom[i]) * slack);
        if (key > most) {
            best = i;
            most = key;
        }
    }
    return best;
}

static int32_t sorted_devices(const exact_search *s, const exact_state *st, int32_t i, int32_t *device)
{
    int64_t key[MOIRAI_MASK_DEVICES];
    int32_t n = 0;
    for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
        int32_t k = EXACT_FIRST(m), b = n++;
        int64_t value = estimate(s, st, i, k);
        for (; b > 0 && key[b - 1] > value; b--) {
            key[b] = key[b - 1];
            device[b] = device[b - 1];
        }
        key[b] = value;
        device[b] = k;
    }
    return n;
}

/* Has a device that can be exchanged with k in this node been tried? */
static bool seen(const exact_search *s, const exact_state *st, uint64_t tried, int32_t k)
{
    for (uint64_t m = tried; m != 0; m &= m - 1) {
        int32_t a = EXACT_FIRST(m);
        bool same = s->symmetry.same_device[a * s->K + k];
        for (int32_t i = 0; same && i < s->n; i++)
            same = (st->dom[i] >> a & 1) == (st->dom[i] >> k & 1);
        if (same)
            return true;
    }
    return false;
}

static bool holds(const exact_state *st, const exact_mirror *m)
{
    for (int32_t a = 0; a < m->n; a++)
        if (st->dom[m->moved[a]] != st->dom[m->image[m->moved[a]]])
            return false;
    return true;
}

static bool use_mirrors(exact_search *s, const exact_state *st, exact_state *next, int32_t i, uint64_t tried)
{
    bool ignored = false;
    for (int32_t a = 0; a < s->symmetry.n_mirrors; a++) {
        const exact_mirror *m = &s->symmetry.mirror[a];
        if (m->image[i] != i && holds(st, m) && !exact_restrict(s, next, m->image[i], ~tried, &ignored))
            return false;
    }
    return true;
}

/* Every device that the problem allows, in order, none skipped: as a tree is read. */
static void branch_plainly(exact_search *s, int32_t depth, int32_t i)
{
    exact_state *st = s->stack.state[depth];
    exact_note(s, i);
    for (uint64_t m = s->p->op_devices[i]; m != 0 && !s->run.stopped; m &= m - 1) {
        bool ignored = false;
        if (!(st->dom[i] & m & -m)) {
            exact_note(s, EXACT_TREE_CLOSED);
            continue;
        }
        exact_state *next = exact_push(s, depth + 1);
        int64_t before = s->run.nodes;
        if (next && exact_restrict(s, next, i, m & -m, &ignored))
            exact_visit(s, depth + 1);
        s->dead_ends[i] += s->run.nodes == before + 1;
    }
    if (s->run.stopped)
        exact_leave(s, st->lb_ns);
}

void exact_branch(exact_search *s, int32_t depth)
{
    exact_state *st = s->stack.state[depth];
    if (s->mode.plain) {
        branch_plainly(s, depth, choose(s, st));
        return;
    }
    int32_t device[MOIRAI_MASK_DEVICES], i = choose(s, st), n = sorted_devices(s, st, i, device);
    uint64_t tried = 0;
    for (int32_t a = 0; a < n; a++) {
        if (s->run.stopped) {
            exact_leave(s, st->lb_ns);
            return;
        }
        bool ignored = false;
        exact_state *next = seen(s, st, tried, device[a]) ? NULL : exact_push(s, depth + 1);
        if (next && exact_restrict(s, next, i, (uint64_t)1 << device[a], &ignored) &&
            (tried == 0 || use_mirrors(s, st, next, i, tried))) {
            int64_t before = s->run.nodes;
            exact_visit(s, depth + 1);
            s->dead_ends[i] += s->run.nodes == before + 1;
        }
        tried |= (uint64_t)1 << device[a];
    }
}
