/* Memory (4d): what fits nowhere else, and with memory `peak` the lives of tensors (docs/theory.md, Lemmas 41 and 42).
 *
 * While devices are open: a unit that does not fit beside what is fixed on a device loses that device; units that can
 * only go to a set of devices must fit into that set (checked for every set while there are few devices). With `peak` and all devices
 * fixed, waiting can be what makes a plan fit: where tensors that live together at the heads do not fit, one of them is born after
 * another has died, or lives for no time at all. Each such case is a handful of arcs between tasks: the children of the node. */
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

#include <string.h>

static int64_t unit_bytes(const exact_search *s, int32_t u)
{
    int64_t bytes = 0;
    for (int32_t a = s->unit.off[u]; a < s->unit.off[u + 1]; a++)
        bytes += s->p->op_memory_bytes[s->unit.op[a]];
    return bytes;
}

static bool sets_fit(const exact_search *s, const exact_state *st)
{
    uint64_t all = s->K == 64 ? ~(uint64_t)0 : ((uint64_t)1 << s->K) - 1;
    for (uint64_t set = s->K <= EXACT_MEMORY_FEW_DEVICES ? 1 : all;; set++) {
        __int128 capacity = 0, need = 0;
        for (uint64_t m = set; m != 0; m &= m - 1)
            capacity += s->work.free_bytes[EXACT_FIRST(m)];
        for (int32_t u = 0; u < s->unit.n; u++) {
            uint64_t dom = st->dom[s->unit.op[s->unit.off[u]]];
            if (!EXACT_ONLY(dom) && (dom & ~set) == 0)
                need += unit_bytes(s, u);
        }
        if (need > capacity)
            return false;
        if (set == all)
            return true;
    }
}

/* With `peak`: the most bytes that must be on the device while an operator of the unit runs; none where it takes no time. */
static int64_t unit_running_bytes(const exact_search *s, int32_t u, int32_t k)
{
    const moirai_problem *p = s->p;
    int64_t most = 0;
    for (int32_t a = s->unit.off[u]; s->mode.peak && a < s->unit.off[u + 1]; a++) {
        int32_t i = s->unit.op[a];
        int64_t bytes = 0;
        for (int32_t b = p->op_in_off[i]; b < p->op_in_off[i + 1]; b++)
            bytes += p->tensor_bytes[p->op_in[b]];
        for (int32_t b = p->op_out_off[i]; b < p->op_out_off[i + 1]; b++)
            bytes += p->tensor_bytes[p->op_out[b]];
        most = moirai_op_ns(p, i, k) > 0 ? UTIL_MAX(most, bytes) : most;
    }
    return most;
}

/* Per device: what operators that are fixed there leave. A shared weight is on every device that has one of its readers for certain. */
static void find_free(const exact_search *s, const exact_state *st, int64_t *free_bytes)
{
    const moirai_problem *p = s->p;
    memcpy(free_bytes, p->device_memory_bytes, (size_t)s->K * sizeof *free_bytes);
    for (int32_t i = 0; i < s->n; i++)
        if (EXACT_ONLY(st->dom[i]))
            free_bytes[EXACT_FIRST(st->dom[i])] -= p->op_memory_bytes[i];
    for (int32_t w = 0; w < p->n_weights; w++) {
        uint64_t there = 0;
        for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
            there |= EXACT_ONLY(st->dom[p->weight_reader[e]]) ? st->dom[p->weight_reader[e]] : 0;
        for (; there != 0; there &= there - 1)
            free_bytes[EXACT_FIRST(there)] -= p->weight_bytes[w];
    }
}

bool exact_memory_binds(const exact_search *s)
{
    const moirai_problem *p = s->p;
    __int128 all = 0;
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < s->n; i++)
        all += p->op_memory_bytes[i];
    for (int32_t w = 0; w < p->n_weights; w++)
        all += p->weight_bytes[w];
    for (int32_t k = 0; k < s->K; k++)
        least = UTIL_MIN(least, p->device_memory_bytes[k]);
    return s->mode.peak || all > least;
}

bool exact_memory(exact_search *s, exact_state *st, bool *changed)
{
    if (!s->mode.memory_binds)
        return true;
    find_free(s, st, s->work.free_bytes);
    for (int32_t u = 0; u < s->unit.n; u++) {
        int32_t i = s->unit.op[s->unit.off[u]];
        uint64_t keep = ~(uint64_t)0;
        bool open = !EXACT_ONLY(st->dom[i]);
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            if ((open ? unit_bytes(s, u) : 0) + unit_running_bytes(s, u, k) > s->work.free_bytes[k])
                keep &= ~((uint64_t)1 << k);
        }
        if (!exact_restrict(s, st, i, keep, changed))
            return false;
        if (open && EXACT_ONLY(st->dom[i]))
            s->work.free_bytes[EXACT_FIRST(st->dom[i])] -= unit_bytes(s, u);
    }
    for (int32_t k = 0; k < s->K; k++)
        if (s->work.free_bytes[k] < 0)
            return false;
    return sets_fit(s, st);
}

/* All tasks that must have ended before tensor t is gone from device d, into `task`; all operators for an output. */
static int32_t users(const exact_search *s, const exact_state *st, int32_t t, int32_t d, int32_t *task)
{
    const moirai_problem *p = s->p;
    int32_t n = 0, j = p->tensor_producer[t];
    bool is_producer = st->dom[j] >> d & 1;
    if (p->tensor_edge_off[t] == p->tensor_edge_off[t + 1]) {
        for (int32_t i = 0; i < s->n; i++)
            task[n++] = i;
        return n;
    }
    if (is_producer)
        task[n++] = j;
    uint64_t sent = 0;
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t i = p->edge_reader[e], to = EXACT_FIRST(st->dom[i]);
        if (to == d) {
            task[n++] = i;
        } else if (is_producer && (s->mode.edge || !(sent >> to & 1))) {
            task[n++] = s->n + exact_slot(s, e, to);
            sent |= (uint64_t)1 << to;
        }
    }
    return n;
}

/* The tasks with whose start tensor t appears on device d. */
static int32_t makers(const exact_search *s, const exact_state *st, int32_t t, int32_t d, int32_t *task)
{
    const moirai_problem *p = s->p;
    int32_t n = 0, j = p->tensor_producer[t];
    if (st->dom[j] >> d & 1) {
        task[n++] = j;
        return n;
    }
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        if (!(st->dom[p->edge_reader[e]] >> d & 1))
            continue;
        task[n++] = s->n + exact_slot(s, e, d);
        if (!s->mode.edge)
            break;
    }
    return n;
}

/* The lives of all tensors on device d; those of no length are left out. */
static int32_t lives(const exact_search *s, const exact_state *st, int32_t d)
{
    int32_t n = 0;
    for (int32_t t = 0; t < s->p->n_tensors; t++) {
        int32_t *task = s->work.task, count = makers(s, st, t, d, task);
        if (count == 0 || s->p->tensor_bytes[t] == 0)
            continue;
        exact_life life = {EXACT_NONE_NS, 0, s->p->tensor_bytes[t], t};
        for (int32_t a = 0; a < count; a++)
            life.begin = UTIL_MIN(life.begin, *exact_head(s, st, task[a]));
        count = users(s, st, t, d, task);
        for (int32_t a = 0; a < count; a++)
            life.end = UTIL_MAX(life.end, *exact_head(s, st, task[a]) + exact_length(s, st, task[a]));
        if (life.end > life.begin)
            s->work.life[n++] = life;
    }
    return n;
}

/* Of the tensors alive at `now`, the largest that together exceed `capacity`: no smaller subset of them does. */
static int32_t cover(const exact_search *s, int32_t n, int64_t now, int64_t capacity, int32_t *tensor)
{
    int32_t m = 0;
    int64_t bytes = 0;
    for (int32_t a = 0; a < n; a++) {
        const exact_life *life = &s->work.life[a];
        if (life->begin > now || life->end <= now)
            continue;
        int32_t b = m++;
        for (; b > 0 && s->p->tensor_bytes[tensor[b - 1]] < life->bytes; b--)
            tensor[b] = tensor[b - 1];
        tensor[b] = life->tensor;
    }
    for (int32_t b = 0; b < m; b++) {
        bytes += s->p->tensor_bytes[tensor[b]];
        if (bytes > capacity)
            return b + 1;
    }
    return 0;
}

int32_t exact_overload(exact_search *s, const exact_state *st, int32_t *device, int32_t *tensor)
{
    int64_t capacities[MOIRAI_MASK_DEVICES];
    find_free(s, st, capacities);
    for (int32_t d = 0; d < s->K; d++) {
        int64_t capacity = capacities[d], worst = EXACT_NONE_NS;
        int32_t n = lives(s, st, d);
        for (int32_t a = 0; a < n; a++) {
            int64_t now = s->work.life[a].begin, alive = 0;
            for (int32_t b = 0; b < n; b++)
                if (s->work.life[b].begin <= now && s->work.life[b].end > now)
                    alive += s->work.life[b].bytes;
            if (alive > capacity)
                worst = UTIL_MIN(worst, now);
        }
        *device = d;
        if (worst != EXACT_NONE_NS)
            return cover(s, n, worst, capacity, tensor);
    }
    return 0;
}

void exact_arc_add(exact_search *s, exact_state *st, int32_t before, int32_t after)
{
    if (util_grow(&s->stack.arc, &s->stack.arc_capacity, (size_t)st->n_arcs + 1, sizeof *s->stack.arc))
        s->run.failed = s->run.stopped = true;
    else
        s->stack.arc[st->n_arcs++] = (exact_arc){before, after};
}

int32_t exact_part(exact_search *s, exact_state *st, int32_t device, int32_t first, int32_t second)
{
    int32_t *user = s->work.task, n_users = users(s, st, first, device, user);
    int32_t *maker = s->work.task + n_users, n_makers = makers(s, st, second, device, maker);
    bool output = s->p->tensor_edge_off[first] == s->p->tensor_edge_off[first + 1];
    int32_t n = 0;
    if (output && first != second)
        return 0; /* an output lives to the end; born after it means living for no time, which is another case */
    for (int32_t b = 0; b < n_makers; b++)
        if (first == second && exact_length(s, st, maker[b]) > 0)
            return 0;
    for (int32_t a = 0; a < n_users; a++)
        if (first == second && !output && exact_length(s, st, user[a]) > 0)
            return 0;
    for (int32_t a = 0; a < n_users; a++) {
        for (int32_t b = 0; b < n_makers; b++) {
            if (user[a] == maker[b] && exact_length(s, st, user[a]) > 0)
                return 0;
            if (user[a] == maker[b])
                continue;
            exact_arc_add(s, st, user[a], maker[b]);
            n++;
        }
    }
    return n;
}
