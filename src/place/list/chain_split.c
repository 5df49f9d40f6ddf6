/* The best contiguous split by dynamic programming.
 *
 * Contiguous in the problem's topological order (moirai_problem.topo: as read, the least number first among the ready
 * ones). A split cuts it into pieces, each on a device of its own. Its cost is what it takes when all runs one by one
 * and every piece hands on to the next all that is still to be read, as stages of a pipeline do: the sum over operators
 * of their time on their piece's device, and the sum over cuts b between a piece on k and the next on l, over the
 * tensors written before b and read behind it, of their time from k to l (with flow edge: once per reader behind b).
 * Memory of a piece: its operators' bytes, and with peak the most bytes alive while one of its operators runs
 * (contiguous.h), which is exact for this way of running. No cut goes through a group. The cost is what is minimised,
 * no promise: the simulator sends directly, overlaps, and judges.
 *
 * States: which devices are used up, and which is the last. With best[b][s] the least cost of the first b operators
 * ending in state s,
 *
 *     best[b][s] = min over a of arrive[a][s] + time of a .. b-1 on s,
 *
 *     arrive[a][s] = min over earlier states s' of best[a][s'] + cut a.
 *
 * A piece [a, b) that fits still fits when it begins later, so the a allowed move to the right with b: a queue of
 * rising values per state gives the minimum in constant time. O(V (states * K + K^2) + E K^2) time, O(V * states)
 * memory for the way back. */
#include "place/list/chain_split.h"

#include <stdlib.h>
#include <string.h>

#include "place/list/contiguous.h"
#include "place/list/list.h"
#include "util/util.h"

#define FAR (INT64_MAX / 4)

typedef struct state {
    int32_t device;
    int32_t first_before, n_before; /* states that can come before it, in splitter.before */
    bool can_start;
} state;

/* Values that may still become a minimum: their ranks and values both rise. */
typedef struct window {
    int32_t *rank;
    int64_t *value;
    size_t head, n, rank_capacity, value_capacity;
} window;

typedef struct splitter {
    const moirai_problem *p;
    state *s;
    int32_t n_states, *before;
    window *candidates; /* per state: where its piece may begin */
    window *tensors;    /* per device: falling bytes alive, for the most of a piece */
    int64_t *alive;
    bool *cuttable;                                                   /* per rank: no group goes on there */
    int32_t begin[MOIRAI_MAX_DEVICES];                                /* earliest begin of a piece that ends here */
    int64_t bytes[MOIRAI_MAX_DEVICES], passed_ns[MOIRAI_MAX_DEVICES]; /* of the piece from there; time of all so far */
    int64_t *cut_ns;                                                  /* [from * K + to] at the current rank */
    int32_t *unread;                                                  /* per tensor: readers still to come */
    int64_t *now, *next;                                              /* best of this rank and the next, per state */
    int32_t *piece_begin;                                             /* [rank * states + state], for the way back */
    int16_t *came_from;
} splitter;

/* ---- windows ---- */

static int window_push(window *w, int32_t rank, int64_t value, bool rising)
{
    while (w->n > w->head && (rising ? w->value[w->n - 1] > value : w->value[w->n - 1] <= value))
        w->n--;
    if (w->head > 64 && w->head * 2 > w->n) { /* the front is gone: move up */
        memmove(w->rank, w->rank + w->head, (w->n - w->head) * sizeof *w->rank);
        memmove(w->value, w->value + w->head, (w->n - w->head) * sizeof *w->value);
        w->n -= w->head;
        w->head = 0;
    }
    if (util_grow(&w->rank, &w->rank_capacity, w->n + 1, sizeof *w->rank) ||
        util_grow(&w->value, &w->value_capacity, w->n + 1, sizeof *w->value))
        return MOIRAI_EFAIL;
    w->rank[w->n] = rank;
    w->value[w->n++] = value;
    return 0;
}

static void window_drop(window *w, int32_t below)
{
    while (w->head < w->n && w->rank[w->head] < below)
        w->head++;
}

/* ---- states ---- */

int64_t place_split_states(int32_t K)
{
    return K > 12 ? INT64_MAX : (int64_t)K << (K - 1);
}

static int states_of_order(splitter *x, const int32_t *order)
{
    int32_t K = x->p->n_devices;
    x->s = util_alloc((size_t)K, sizeof *x->s);
    x->before = util_alloc((size_t)K, sizeof *x->before);
    if (!x->s || !x->before)
        return MOIRAI_EFAIL;
    for (int32_t at = 0; at < K; at++) {
        x->s[at] = (state){.device = order[at], .first_before = 0, .n_before = at, .can_start = true};
        x->before[at] = at;
    }
    x->n_states = K;
    return 0;
}

/* State (set, last) for every set of devices and member; those before it are the set without `last`. */
static int states_of_sets(splitter *x)
{
    int32_t K = x->p->n_devices, sets = 1 << K, n = 0, m = 0;
    int32_t *number = util_alloc((size_t)sets * (size_t)K, sizeof *number);
    x->s = util_alloc((size_t)place_split_states(K), sizeof *x->s);
    x->before = util_alloc((size_t)place_split_states(K) * (size_t)K, sizeof *x->before);
    bool ready = number && x->s && x->before;
    for (int32_t set = 1; ready && set < sets; set++)
        for (int32_t k = 0; k < K; k++) {
            if (!(set >> k & 1))
                continue;
            int32_t rest = set & ~(1 << k);
            x->s[n] = (state){.device = k, .first_before = m, .can_start = rest == 0};
            for (int32_t l = 0; l < K; l++)
                if (rest >> l & 1)
                    x->before[m++] = number[rest * K + l];
            x->s[n].n_before = m - x->s[n].first_before;
            number[set * K + k] = n++;
        }
    x->n_states = n;
    free(number);
    return ready ? 0 : MOIRAI_EFAIL;
}

/* ---- one rank ---- */

static void add_crossing(splitter *x, int32_t t, int64_t times)
{
    int64_t K2 = (int64_t)x->p->n_devices * x->p->n_devices;
    const int64_t *ns = x->p->class_transfer_ns + x->p->tensor_class[t] * K2;
    for (int64_t j = 0; j < K2; j++)
        x->cut_ns[j] += times * ns[j];
}

/* From the cut before the operator of this rank to the cut behind it. */
static void move_cut(splitter *x, int32_t op)
{
    const moirai_problem *p = x->p;
    bool per_edge = p->flow == MOIRAI_FLOW_EDGE;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
        if (--x->unread[p->op_in[j]] == 0 || per_edge)
            add_crossing(x, p->op_in[j], -1);
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        int32_t t = p->op_out[j], readers = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
        x->unread[t] = readers;
        if (readers > 0)
            add_crossing(x, t, per_edge ? readers : 1);
    }
}

/* A piece may begin at this rank: at what cost does each state get there? */
static int open_pieces(splitter *x, int32_t rank)
{
    int32_t K = x->p->n_devices;
    for (int32_t s = 0; s < x->n_states; s++) {
        const state *to = &x->s[s];
        int64_t least = rank == 0 && to->can_start ? 0 : FAR;
        int16_t from = -1;
        for (int32_t j = 0; j < to->n_before && rank > 0; j++) {
            int32_t b = x->before[to->first_before + j];
            int64_t cost = x->now[b] < FAR ? x->now[b] + x->cut_ns[x->s[b].device * K + to->device] : FAR;
            if (cost < least) {
                least = cost;
                from = (int16_t)b;
            }
        }
        x->came_from[(int64_t)rank * x->n_states + s] = from;
        if (least < FAR && window_push(&x->candidates[s], rank, least - x->passed_ns[to->device], true))
            return MOIRAI_EFAIL;
    }
    return 0;
}

/* The operator of this rank joins the piece on device k, which gives up what no longer fits in front. */
static int extend_piece(splitter *x, int32_t rank, int32_t k)
{
    const moirai_problem *p = x->p;
    int32_t op = p->topo[rank];
    window *w = &x->tensors[k];
    if (window_push(w, rank, x->alive[rank], false))
        return MOIRAI_EFAIL;
    x->bytes[k] += p->op_memory_bytes[op];
    bool can_run = moirai_op_may(p, op, k);
    while (x->begin[k] <= rank &&
           (!can_run || x->bytes[k] > p->device_memory_bytes[k] - (w->head < w->n ? w->value[w->head] : 0))) {
        x->bytes[k] -= p->op_memory_bytes[p->topo[x->begin[k]++]];
        window_drop(w, x->begin[k]);
    }
    if (can_run)
        x->passed_ns[k] += moirai_op_ns(p, op, k);
    return 0;
}

static int step(splitter *x, int32_t rank)
{
    int rc = x->cuttable[rank] ? open_pieces(x, rank) : 0;
    for (int32_t k = 0; k < x->p->n_devices && !rc; k++)
        rc = extend_piece(x, rank, k);
    for (int32_t s = 0; s < x->n_states && !rc; s++) {
        window *w = &x->candidates[s];
        int32_t k = x->s[s].device;
        window_drop(w, x->begin[k]);
        bool any = w->head < w->n;
        x->next[s] = any ? w->value[w->head] + x->passed_ns[k] : FAR;
        x->piece_begin[(int64_t)(rank + 1) * x->n_states + s] = any ? w->rank[w->head] : MOIRAI_NONE;
    }
    move_cut(x, x->p->topo[rank]);
    int64_t *swap = x->now;
    x->now = x->next;
    x->next = swap;
    return rc;
}

/* ---- the whole ---- */

/* No cut between the first and the last member of a group: what has begun and not ended is counted. */
static int find_cuttable(splitter *x)
{
    const moirai_problem *p = x->p;
    int32_t *left = util_alloc((size_t)p->n_groups, sizeof *left),
            *size = util_alloc((size_t)p->n_groups, sizeof *size);
    bool ready = left && size;
    int32_t open = 0;
    for (int32_t i = 0; ready && i < p->n_ops; i++)
        if (p->op_group[i] != MOIRAI_NONE)
            left[p->op_group[i]] = ++size[p->op_group[i]];
    for (int32_t r = 0; ready && r < p->n_ops; r++) {
        int32_t g = p->op_group[p->topo[r]];
        x->cuttable[r] = open == 0;
        if (g == MOIRAI_NONE)
            continue;
        open += left[g] == size[g];
        open -= --left[g] == 0;
    }
    free(left);
    free(size);
    return ready ? 0 : MOIRAI_EFAIL;
}

static int trace_back(place_split *out, const splitter *x, int32_t s)
{
    int32_t V = x->p->n_ops, n = 0;
    out->end = util_alloc((size_t)x->p->n_devices, sizeof *out->end);
    out->device = util_alloc((size_t)x->p->n_devices, sizeof *out->device);
    if (!out->end || !out->device)
        return MOIRAI_EFAIL;
    for (int32_t b = V; b > 0; n++) {
        int32_t a = x->piece_begin[(int64_t)b * x->n_states + s];
        out->end[n] = b;
        out->device[n] = x->s[s].device;
        s = x->came_from[(int64_t)a * x->n_states + s];
        b = a;
    }
    for (int32_t i = 0; i < n / 2; i++) {
        int32_t end = out->end[i], device = out->device[i];
        out->end[i] = out->end[n - 1 - i];
        out->device[i] = out->device[n - 1 - i];
        out->end[n - 1 - i] = end;
        out->device[n - 1 - i] = device;
    }
    out->n_pieces = n;
    return 0;
}

static int prepare(splitter *x, const place_split_task *task)
{
    const moirai_problem *p = x->p;
    size_t V = (size_t)p->n_ops, K = (size_t)p->n_devices;
    if (task->order ? states_of_order(x, task->order) : states_of_sets(x))
        return MOIRAI_EFAIL;
    size_t S = (size_t)x->n_states;
    x->candidates = util_alloc(S, sizeof *x->candidates);
    x->tensors = util_alloc(K, sizeof *x->tensors);
    x->alive = util_alloc(V, sizeof *x->alive);
    x->cuttable = util_alloc(V, sizeof *x->cuttable);
    x->cut_ns = util_alloc(K * K, sizeof *x->cut_ns);
    x->unread = util_alloc((size_t)p->n_tensors, sizeof *x->unread);
    x->now = util_alloc(S, sizeof *x->now);
    x->next = util_alloc(S, sizeof *x->next);
    x->piece_begin = util_alloc((V + 1) * S, sizeof *x->piece_begin);
    x->came_from = util_alloc((V + 1) * S, sizeof *x->came_from);
    if (!x->candidates || !x->tensors || !x->alive || !x->cuttable || !x->cut_ns || !x->unread || !x->now || !x->next ||
        !x->piece_begin || !x->came_from)
        return MOIRAI_EFAIL;
    if (p->memory == MOIRAI_MEMORY_PEAK && !task->static_memory)
        place_alive_bytes(p, x->alive);
    return find_cuttable(x);
}

static void release(splitter *x)
{
    for (int32_t s = 0; x->candidates && s < x->n_states; s++) {
        free(x->candidates[s].rank);
        free(x->candidates[s].value);
    }
    for (int32_t k = 0; x->tensors && k < x->p->n_devices; k++) {
        free(x->tensors[k].rank);
        free(x->tensors[k].value);
    }
    free(x->candidates);
    free(x->tensors);
    free(x->s);
    free(x->before);
    free(x->alive);
    free(x->cuttable);
    free(x->cut_ns);
    free(x->unread);
    free(x->now);
    free(x->next);
    free(x->piece_begin);
    free(x->came_from);
}

int place_split_find(place_split *out, const moirai_problem *p, const place_split_task *task)
{
    *out = (place_split){0};
    splitter x = {.p = p};
    int32_t best = 0;
    int rc = prepare(&x, task);
    for (int32_t r = 0; r < p->n_ops && !rc; r++)
        rc = util_stopped(&task->stop) ? place_list_late(p, r) : step(&x, r);
    for (int32_t s = 1; s < x.n_states && !rc; s++)
        if (x.now[s] < x.now[best])
            best = s;
    if (!rc && x.now[best] >= FAR)
        rc =
            moirai_error(MOIRAI_EINFEASIBLE, "no split of the topological order into pieces on different devices fits");
    if (!rc) {
        out->cost_ns = x.now[best];
        rc = trace_back(out, &x, best);
    }
    release(&x);
    if (rc)
        place_split_clear(out);
    return rc;
}

void place_split_clear(place_split *s)
{
    free(s->end);
    free(s->device);
    *s = (place_split){0};
}
