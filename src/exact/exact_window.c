/* Heads and tails: how soon a task can start, how much must follow its finish; (4a), (4b), (4f), seen from a partial placement
 * (docs/theory.md, Lemma 38). Producers fixed on one device share that device, and so do readers: a one-machine problem
 * (exact_machine.c). O(E K^2) plus such a problem per operator, device and other device. */
#include "exact/exact_search.h"
#include "schedule/paths.h"

/* Finishes by heads; by tails, what follows the start. */
static inline int64_t beyond(const exact_search *s, const int64_t *path, int32_t i, int32_t k)
{
    return path[(int64_t)i * s->K + k] + moirai_op_ns(s->p, i, k);
}

/* The least of them over the devices that are left. */
static int64_t least_beyond(const exact_search *s, const exact_state *st, const int64_t *path, int32_t i)
{
    int64_t least = EXACT_NONE_NS;
    for (uint64_t m = st->dom[i]; m != 0; m &= m - 1)
        least = UTIL_MIN(least, beyond(s, path, i, EXACT_FIRST(m)));
    return least;
}

/* Of a transfer, or an operator. */
static int32_t producer_of(const exact_search *s, int32_t task)
{
    int32_t x = task - s->n;
    return task < s->n ? task : s->p->tensor_producer[s->mode.edge ? s->p->edge_tensor[x] : x / s->K];
}

void exact_head_moved(const exact_search *s, exact_state *st, int32_t task)
{
    const moirai_problem *p = s->p;
    int32_t j = producer_of(s, task);
    for (int32_t a = p->op_out_off[j]; a < p->op_out_off[j + 1]; a++)
        for (int32_t t = p->op_out[a], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            st->stale[p->edge_reader[e]] |= EXACT_STALE_HEAD;
}

void exact_tail_moved(const exact_search *s, exact_state *st, int32_t task)
{
    const moirai_problem *p = s->p;
    if (task >= s->n)
        st->stale[producer_of(s, task)] |= EXACT_STALE_TAIL;
    for (int32_t a = task < s->n ? p->op_in_off[task] : 0; task < s->n && a < p->op_in_off[task + 1]; a++)
        st->stale[p->tensor_producer[p->op_in[a]]] |= EXACT_STALE_TAIL;
}

/* When the tensor of edge e can be on device k at the soonest. */
static int64_t arrival(const exact_search *s, const exact_state *st, int32_t e, int32_t k)
{
    int32_t t = s->p->edge_tensor[e], i = s->p->edge_reader[e], j = s->p->tensor_producer[t];
    uint64_t from = s->unit.of[i] == s->unit.of[j] ? (uint64_t)1 << k : st->dom[j];
    return schedule_arrival_ns(s->p, st->head, from, t, k, st->xhead[exact_slot(s, e, k)]);
}

/* Keep one job per task: the larger release and tail. */
static int32_t add_job(exact_job *job, int32_t n, exact_job one)
{
    for (int32_t a = 0; a < n; a++) {
        if (job[a].task == one.task) {
            job[a].r = UTIL_MAX(job[a].r, one.r);
            job[a].q = UTIL_MAX(job[a].q, one.q);
            return n;
        }
    }
    job[n] = one;
    return n + 1;
}

/* What follows the finish of the producer on l because of edge e, at least. */
static int64_t departure(const exact_search *s, const exact_state *st, int32_t e, int32_t l)
{
    int32_t t = s->p->edge_tensor[e], i = s->p->edge_reader[e], j = s->p->tensor_producer[t];
    uint64_t to = s->unit.of[i] == s->unit.of[j] ? (uint64_t)1 << l : st->dom[i];
    return schedule_departure_ns(s->p, st->tail, to, i, t, l, &st->xtail[exact_slot(s, e, 0)], s->mode.edge ? 0 : 1);
}

/* The edges of an operator's inputs, or those that begin at it. */
typedef struct edges {
    const int32_t *list; /* NULL: they are first, first + 1, ... */
    int32_t first, n;
} edges;

static inline edges edges_of(const moirai_problem *p, int32_t i, bool forwards)
{
    if (forwards)
        return (edges){p->op_in_edge + p->op_in_off[i], 0, p->op_in_off[i + 1] - p->op_in_off[i]};
    if (p->op_out_off[i] == p->op_out_off[i + 1])
        return (edges){0};
    int32_t first = p->tensor_edge_off[p->op_out[p->op_out_off[i]]];
    return (edges){NULL, first, p->tensor_edge_off[p->op_out[p->op_out_off[i + 1] - 1] + 1] - first};
}

static inline int32_t edge_at(const edges *x, int32_t a)
{
    return x->list ? x->list[a] : x->first + a;
}

static inline int32_t neighbour(const moirai_problem *p, int32_t e, bool forwards)
{
    return forwards ? p->tensor_producer[p->edge_tensor[e]] : p->edge_reader[e];
}

/* Producers of i's inputs that are fixed on l must all have run there before i starts on k; readers likewise, from the end. */
static int64_t over_device(const exact_search *s, const int64_t *path, const exact_state *st, const edges *x, int32_t k,
                           int32_t l, bool forwards)
{
    const moirai_problem *p = s->p;
    int32_t n = 0;
    for (int32_t a = 0; a < x->n; a++) {
        int32_t e = edge_at(x, a), t = p->edge_tensor[e], j = neighbour(p, e, forwards);
        if (st->dom[j] != (uint64_t)1 << l)
            continue;
        exact_job one = {path[(int64_t)j * s->K + l], moirai_op_ns(p, j, l),
                         forwards ? moirai_transfer_ns(p, t, l, k) : moirai_transfer_ns(p, t, k, l), j};
        n = add_job(s->work.job, n, one);
    }
    return n < 2 ? 0 : exact_preemptive(s->work.job, n);
}

/* The head of i on k, or its tail. */
static inline void path_of(exact_search *s, exact_state *st, int32_t i, int32_t k, bool forwards, bool *changed)
{
    int64_t *path = forwards ? st->head : st->tail, most = path[(int64_t)i * s->K + k];
    edges x = edges_of(s->p, i, forwards);
    uint64_t fixed = 0;
    for (int32_t a = 0; a < x.n; a++) {
        int32_t e = edge_at(&x, a), j = neighbour(s->p, e, forwards);
        uint64_t dom = st->dom[j];
        if (!(dom >> k & 1) || beyond(s, path, j, k) > most) { /* else on k it would be there in time */
            int64_t by_edge = forwards ? arrival(s, st, e, k) : departure(s, st, e, k);
            most = UTIL_MAX(most, by_edge);
        }
        fixed |= EXACT_ONLY(dom) ? dom : 0;
    }
    for (uint64_t m = x.n >= 2 && !s->mode.plain ? fixed : 0; m != 0; m &= m - 1) {
        int64_t by_device = over_device(s, path, st, &x, k, EXACT_FIRST(m), forwards);
        most = UTIL_MAX(most, by_device);
    }
    if (!exact_raise(&path[(int64_t)i * s->K + k], most, changed))
        return;
    st->stale_devices |= UINT64_C(1) << k;
    (forwards ? exact_head_moved : exact_tail_moved)(s, st, i);
}

/* Heads in topological order or, backwards, tails, where a neighbour has moved. */
static inline void sweep(exact_search *s, exact_state *st, bool forwards, bool *changed)
{
    uint8_t flag = forwards ? EXACT_STALE_HEAD : EXACT_STALE_TAIL;
    for (int32_t a = 0; a < s->n; a++) {
        int32_t i = s->p->topo[forwards ? a : s->n - 1 - a];
        bool stale = st->stale[i] & flag;
        st->stale[i] &= (uint8_t)~flag;
        for (uint64_t m = stale ? st->dom[i] : 0; m != 0; m &= m - 1)
            path_of(s, st, i, EXACT_FIRST(m), forwards, changed);
    }
}

void exact_heads(exact_search *s, exact_state *st, bool *changed)
{
    sweep(s, st, true, changed);
    for (int32_t a = 0; a < s->slot.n_active; a++) {
        int32_t x = s->slot.active[a], j = producer_of(s, s->n + x);
        if (exact_raise(&st->xhead[x], least_beyond(s, st, st->head, j), changed))
            exact_head_moved(s, st, s->n + x);
    }
}

/* Tails of transfers that are certain: what their readers need after them. */
static void slot_tail(const exact_search *s, exact_state *st, int32_t x, bool *changed)
{
    const moirai_problem *p = s->p;
    int64_t q = 0;
    if (s->mode.edge) {
        q = least_beyond(s, st, st->tail, p->edge_reader[x]);
    } else {
        int32_t t = x / s->K, d = x % s->K;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t i = p->edge_reader[e];
            if (st->dom[i] == (uint64_t)1 << d)
                q = UTIL_MAX(q, beyond(s, st->tail, i, d));
        }
    }
    if (exact_raise(&st->xtail[x], q, changed))
        exact_tail_moved(s, st, s->n + x);
}

void exact_tails(exact_search *s, exact_state *st, bool *changed)
{
    sweep(s, st, false, changed);
    for (int32_t a = 0; a < s->slot.n_active; a++)
        slot_tail(s, st, s->slot.active[a], changed);
}

static void activate(exact_search *s, int32_t x, int32_t t, uint64_t from, uint64_t to)
{
    int64_t least = EXACT_NONE_NS;
    for (uint64_t a = from; a != 0; a &= a - 1)
        for (uint64_t b = to; b != 0; b &= b - 1)
            least = UTIL_MIN(least, moirai_transfer_ns(s->p, t, EXACT_FIRST(a), EXACT_FIRST(b)));
    s->slot.active[s->slot.n_active++] = x;
    s->slot.from[x] = EXACT_ONLY(from) ? EXACT_FIRST(from) : -1;
    s->slot.to[x] = EXACT_ONLY(to) ? EXACT_FIRST(to) : -1;
    s->slot.ns[x] = least;
}

void exact_activate(exact_search *s, const exact_state *st)
{
    const moirai_problem *p = s->p;
    s->slot.n_active = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t j = p->tensor_producer[t];
        uint64_t from = st->dom[j], sure = 0;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            uint64_t to = st->dom[p->edge_reader[e]];
            if (to & from)
                continue;
            if (s->mode.edge)
                activate(s, e, t, from, to);
            else if (EXACT_ONLY(to))
                sure |= to;
        }
        for (uint64_t m = sure; m != 0; m &= m - 1)
            activate(s, t * s->K + EXACT_FIRST(m), t, from, m & -m);
    }
}

void exact_raise_task(const exact_search *s, exact_state *st, int32_t task, int64_t head, int64_t tail, bool *changed)
{
    bool head_moved = exact_raise(exact_head(s, st, task), head, changed),
         tail_moved = exact_raise(exact_tail(s, st, task), tail, changed);
    if (head_moved)
        exact_head_moved(s, st, task);
    if (tail_moved)
        exact_tail_moved(s, st, task);
    if ((head_moved || tail_moved) && task < s->n)
        st->stale_devices |= st->dom[task];
}

/* Orders that the search has decided; all operators are fixed. */
void exact_arcs(exact_search *s, exact_state *st, bool *changed)
{
    for (int32_t a = 0; a < st->n_arcs; a++) {
        int32_t u = s->stack.arc[a].before, v = s->stack.arc[a].after;
        exact_raise_task(s, st, v, *exact_head(s, st, u) + exact_length(s, st, u), 0, changed);
        exact_raise_task(s, st, u, 0, *exact_tail(s, st, v) + exact_length(s, st, v), changed);
    }
}
