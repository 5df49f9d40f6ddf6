/* Assignments that fit the memory: each unit on a device that can run it, no device above its capacity.
 *
 * First shed: from every device that is too full, units leave in order of least harm per byte (time lost plus transfers
 * made) for the device where they harm least and fit. That keeps what the placer wanted. Where it is not enough, pack:
 * depth-first over the units by falling size, the present device first, then the one with most room; with
 * pruning by total room. On small problems the search is complete, so "infeasible" is then a proof; on large ones it
 * stops after a bounded number of steps. Bin packing is NP-hard: no method that is fast always succeeds. */
#include "place/fit.h"
#include "problem/device_set.h"
#include "problem/problem_build.h"
#include "util/util.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared state ---- */

typedef struct moving {
    const moirai_problem *p;
    const place_units *u;
    const int64_t *capacity;
    int32_t *device; /* of each operator, the caller's */
    int32_t *where;  /* of each unit */
    int64_t load[MOIRAI_MAX_DEVICES];
    int32_t *list;
    double *harm;
    int32_t *heap;
    int32_t *weight_off, *weight; /* unit -> shared weights that its operators read, each once */
    int32_t *held;                /* [weight * K + k]: how many units on k read it */
    int64_t *bytes;               /* of each unit with all its weights, as if alone */
    util_memory memory;
} moving;

/* ---- shared weights ---- a device holds them while it has a reader */

static int index_weights(moving *m)
{
    const moirai_problem *p = m->p;
    const place_units *u = m->u;
    int32_t *off, *of_op, *seen, n = 0;
    int rc = problem_weights_by_op(p, &off, &of_op);
    UTIL_TAKE(&m->memory, m->held, (size_t)p->n_weights * (size_t)p->n_devices);
    UTIL_TAKE(&m->memory, m->weight_off, (size_t)u->n + 1);
    UTIL_TAKE(&m->memory, m->weight, rc ? 0 : (size_t)off[p->n_ops]);
    UTIL_TAKE(&m->memory, m->bytes, (size_t)u->n);
    UTIL_TAKE(&m->memory, seen, (size_t)p->n_weights); /* by which unit, from 1 on */
    rc = rc ? rc : util_taken_all(&m->memory);
    for (int32_t unit = 0; unit < u->n && !rc; unit++) {
        m->bytes[unit] = u->bytes[unit];
        for (int32_t j = u->off[unit]; j < u->off[unit + 1]; j++)
            for (int32_t e = off[u->op[j]]; e < off[u->op[j] + 1]; e++) {
                int32_t w = of_op[e];
                m->bytes[unit] += seen[w] == unit + 1 ? 0 : p->weight_bytes[w];
                if (seen[w] != unit + 1)
                    m->weight[n++] = w;
                seen[w] = unit + 1;
            }
        m->weight_off[unit + 1] = n;
    }
    free(off);
    free(of_op);
    return rc;
}

/* Bytes that come to device k with the unit, or leave it when `others` is what stays behind: 0 where it is not there, 1
 * where it is. */
static int64_t bytes_on(const moving *m, int32_t unit, int32_t k, int32_t others)
{
    int64_t bytes = m->u->bytes[unit];
    for (int32_t e = m->weight_off[unit]; e < m->weight_off[unit + 1]; e++)
        if (m->held[m->weight[e] * m->p->n_devices + k] == others)
            bytes += m->p->weight_bytes[m->weight[e]];
    return bytes;
}

static void count_held(moving *m, int32_t unit, int32_t k, int32_t change)
{
    for (int32_t e = m->weight_off[unit]; e < m->weight_off[unit + 1]; e++)
        m->held[m->weight[e] * m->p->n_devices + k] += change;
}

static void move_unit(moving *m, int32_t unit, int32_t to)
{
    const place_units *u = m->u;
    if (m->where[unit] != MOIRAI_NONE) {
        m->load[m->where[unit]] -= bytes_on(m, unit, m->where[unit], 1);
        count_held(m, unit, m->where[unit], -1);
    }
    if (to != MOIRAI_NONE) {
        m->load[to] += bytes_on(m, unit, to, 0);
        count_held(m, unit, to, 1);
    }
    m->where[unit] = to;
    for (int32_t j = u->off[unit]; j < u->off[unit + 1]; j++)
        m->device[u->op[j]] = to;
}

static const char *unit_name(const moving *m, int32_t unit)
{
    int32_t first = m->u->op[m->u->off[unit]], g = m->p->op_group[first];
    return g == MOIRAI_NONE ? m->p->op_name[first] : m->p->group_name[g];
}

/* What no assignment can cure, said plainly. */
static int check_totals(const moving *m)
{
    __int128 need = 0, capacity = 0;
    for (int32_t k = 0; k < m->p->n_devices; k++)
        capacity += UTIL_MAX(m->capacity[k], 0);
    for (int32_t unit = 0; unit < m->u->n; unit++) {
        int64_t most = -1, bytes = m->bytes[unit];
        need += m->u->bytes[unit];
        for (int32_t k = 0; k < m->p->n_devices; k++)
            if (place_unit_may(m->u, unit, k))
                most = UTIL_MAX(most, UTIL_MAX(m->capacity[k], 0));
        if (most < bytes)
            return moirai_error(MOIRAI_EINFEASIBLE,
                                "'%s' needs %s, the largest device that can run it has %s: %s short",
                                unit_name(m, unit), util_human_bytes(bytes).s, util_human_bytes(UTIL_MAX(most, 0)).s,
                                util_human_bytes(bytes - UTIL_MAX(most, 0)).s);
    }
    for (int32_t w = 0; w < m->p->n_weights; w++)
        need += m->p->weight_bytes[w];
    if (need > capacity)
        return moirai_error(MOIRAI_EINFEASIBLE, "the operators need %s, all devices together have %s: %s short",
                            util_human_bytes((int64_t)UTIL_MIN(need, INT64_MAX)).s,
                            util_human_bytes((int64_t)UTIL_MIN(capacity, INT64_MAX)).s,
                            util_human_bytes((int64_t)UTIL_MIN(need - capacity, INT64_MAX)).s);
    return 0;
}

/* ---- shed ---- */

/* Time and transfers of an operator on device d while its neighbours stay. */
static double cost_at(const moving *m, int32_t op, int32_t d)
{
    const moirai_problem *p = m->p;
    int32_t unit = m->u->of_op[op];
    double cost = (double)moirai_op_ns(p, op, d);
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], producer = p->tensor_producer[t], from = m->device[producer];
        if (from != MOIRAI_NONE && m->u->of_op[producer] != unit)
            cost += (double)moirai_transfer_ns(p, t, from, d);
    }
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        int32_t t = p->op_out[j];
        device_set sent = {{0}}; /* with flow edge this counts too little; it only ranks moves */
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t reader = p->edge_reader[e], to = m->device[reader];
            if (to == MOIRAI_NONE || m->u->of_op[reader] == unit || device_set_has(&sent, to))
                continue;
            device_set_add(&sent, to);
            cost += (double)moirai_transfer_ns(p, t, d, to);
        }
    }
    return cost;
}

/* The device to which the unit moves with least harm, MOIRAI_NONE if it fits nowhere else. */
static int32_t best_move(const moving *m, int32_t unit, double *harm)
{
    const place_units *u = m->u;
    int32_t from = m->where[unit], best = MOIRAI_NONE;
    double here = 0;
    for (int32_t j = u->off[unit]; from != MOIRAI_NONE && j < u->off[unit + 1]; j++)
        here += cost_at(m, u->op[j], from);
    for (int32_t k = 0; k < m->p->n_devices; k++) {
        if (!place_unit_may(u, unit, k) || k == from || m->load[k] > m->capacity[k] - bytes_on(m, unit, k, 0))
            continue;
        double there = 0;
        for (int32_t j = u->off[unit]; j < u->off[unit + 1]; j++)
            there += cost_at(m, u->op[j], k);
        if (best == MOIRAI_NONE || there - here < *harm) {
            best = k;
            *harm = there - here;
        }
    }
    return best;
}

static void sift(const moving *m, int32_t n, int32_t at)
{
    int32_t x = m->heap[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && m->harm[m->heap[child + 1]] < m->harm[m->heap[child]])
            child++;
        if (m->harm[m->heap[child]] >= m->harm[x])
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = x;
}

/* Units leave device `from` by harm per byte until it fits. Keys are recomputed when they come up: neighbours that
 * left before make a move cheaper or dearer. */
static void shed(moving *m, int32_t from)
{
    int32_t n = 0;
    double harm = 0;
    for (int32_t unit = 0; unit < m->u->n; unit++) {
        if (m->where[unit] != from || m->bytes[unit] == 0 || best_move(m, unit, &harm) == MOIRAI_NONE)
            continue;
        m->harm[unit] = harm / (double)UTIL_MAX(bytes_on(m, unit, from, 1), 1);
        m->heap[n++] = unit;
    }
    for (int32_t at = n / 2 - 1; at >= 0; at--)
        sift(m, n, at);
    while (n > 0 && m->load[from] > m->capacity[from]) {
        int32_t unit = m->heap[0], to = best_move(m, unit, &harm);
        double key = to == MOIRAI_NONE ? 0 : harm / (double)UTIL_MAX(bytes_on(m, unit, from, 1), 1);
        if (to != MOIRAI_NONE && key > m->harm[unit] + 1e-9 * (key < 0 ? -key : key)) {
            m->harm[unit] = key; /* dearer than thought: wait for its turn */
            sift(m, n, 0);
            continue;
        }
        if (to != MOIRAI_NONE)
            move_unit(m, unit, to);
        m->heap[0] = m->heap[--n];
        sift(m, n, 0);
    }
}

/* ---- pack ---- */

static int by_falling_bytes(const void *left, const void *right, void *data)
{
    const moving *m = data;
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    int64_t x = m->bytes[a], y = m->bytes[b];
    if (x != y)
        return x > y ? -1 : 1;
    return (a > b) - (a < b);
}

/* The next device to try for the unit after `tried`: the wanted one, then by falling room. */
static int32_t next_device(const moving *m, int32_t unit, int32_t wanted, const uint64_t *tried)
{
    int32_t best = MOIRAI_NONE;
    for (int32_t k = 0; k < m->p->n_devices; k++) {
        if (!place_unit_may(m->u, unit, k) || tried[k / 64] >> k % 64 & 1 ||
            m->capacity[k] - m->load[k] < bytes_on(m, unit, k, 0))
            continue;
        if (k == wanted)
            return k;
        if (best == MOIRAI_NONE || m->capacity[k] - m->load[k] > m->capacity[best] - m->load[best])
            best = k;
    }
    return best;
}

/* 1: packed, 0: proven impossible, -1: gave up. Units without bytes stay where they are. */
static int pack(moving *m, const int32_t *wanted, uint64_t *tried)
{
    const place_units *u = m->u;
    int32_t n = 0, depth = 0;
    for (int32_t unit = 0; unit < u->n; unit++)
        if (m->bytes[unit] > 0) {
            m->list[n++] = unit;
            move_unit(m, unit, MOIRAI_NONE);
        }
    qsort_r(m->list, (size_t)n, sizeof *m->list, by_falling_bytes, m);
    bool fresh = true; /* the unit at this depth has tried no device yet */
    int64_t steps = 0, most = 500000 + 8 * (int64_t)n;
    while (depth < n) {
        int32_t unit = m->list[depth];
        if (steps++ > most)
            return -1;
        if (m->where[unit] != MOIRAI_NONE)
            move_unit(m, unit, MOIRAI_NONE);
        uint64_t *seen = tried + (int64_t)depth * u->words;
        if (fresh)
            memset(seen, 0, (size_t)u->words * sizeof *seen);
        int32_t k = next_device(m, unit, wanted[unit], seen);
        fresh = k != MOIRAI_NONE;
        if (k == MOIRAI_NONE) {
            if (depth-- == 0)
                return 0;
            continue;
        }
        seen[k / 64] |= (uint64_t)1 << k % 64;
        move_unit(m, unit, k);
        depth++;
    }
    return 1;
}

static bool all_fit(const moving *m)
{
    for (int32_t k = 0; k < m->p->n_devices; k++)
        if (m->load[k] > m->capacity[k])
            return false;
    return true;
}

static int fit(moving *m, int32_t *wanted, uint64_t *tried)
{
    const place_units *u = m->u;
    int rc = check_totals(m);
    if (rc)
        return rc;
    for (int32_t unit = 0; unit < u->n; unit++) {
        m->where[unit] = MOIRAI_NONE;
        wanted[unit] = m->device[u->op[u->off[unit]]];
        if (wanted[unit] == MOIRAI_NONE) /* a first guess that may be too full: shed and pack see to it */
            wanted[unit] = place_unit_device(u, unit, 0);
        move_unit(m, unit, wanted[unit]);
    }
    for (int round = 0; round < 3 && !all_fit(m); round++)
        for (int32_t k = 0; k < m->p->n_devices; k++)
            if (m->load[k] > m->capacity[k])
                shed(m, k);
    if (all_fit(m))
        return 0;
    int packed = pack(m, wanted, tried);
    if (packed == 1)
        return 0;
    return moirai_error(MOIRAI_EINFEASIBLE, packed == 0 ? "no assignment of the operators fits the devices' memory"
                                                        : "found no assignment of the operators that fits the devices' "
                                                          "memory");
}

int place_fit_assignment(const moirai_problem *p, const place_units *u, const int64_t *capacity, int32_t *op_device)
{
    size_t n = (size_t)u->n;
    moving m = {.p = p, .u = u, .capacity = capacity, .device = op_device};
    UTIL_TAKE(&m.memory, m.where, n);
    UTIL_TAKE(&m.memory, m.list, n);
    UTIL_TAKE(&m.memory, m.harm, n);
    UTIL_TAKE(&m.memory, m.heap, n);
    int32_t *wanted = util_take(&m.memory, n, sizeof *wanted);
    uint64_t *tried = util_take(&m.memory, n * (size_t)u->words, sizeof *tried);
    int rc = index_weights(&m); /* asks whether all is there */
    rc = rc ? rc : fit(&m, wanted, tried);
    util_release(&m.memory);
    return rc;
}
