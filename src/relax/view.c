/* A problem as resources and packets; cases with the heads and tails of every resource.
 *
 * The offset of a resource is the least head and tail of all tasks that it can get in this case, or the longest path
 * of the case where that is less (docs/theory.md, Lemma 14). A transfer starts after its producer's finish and ends
 * before the start of a reader on its receiver. A device within a shift is one more resource: load and offset are
 * those of Lemma 48. */
#include "relax/view.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/paths.h"
#include "util/util.h"

#define LOOK 16 /* packets per look at the clock */

/* Bytes can be short if all operators do not fit the smallest device, or some device alone cannot take what it may get. */
static bool bytes_bind(const moirai_problem *p)
{
    int64_t need[MOIRAI_MASK_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < p->n_devices; k++)
            if (p->op_devices[i] >> k & 1 && !util_add64(&need[k], need[k], p->op_memory_bytes[i]))
                return true;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (need[k] > p->device_memory_bytes[k])
            return true;
    return false;
}

/* With flow edge each edge is a packet. */
static int list_edges(relax_view *v)
{
    const moirai_problem *p = v->p;
    int32_t *off, *out_off, *out, at = 0;
    UTIL_TAKE(&v->memory, off, (size_t)p->n_edges + 1);
    UTIL_TAKE(&v->memory, out_off, (size_t)v->n + 1);
    UTIL_TAKE(&v->memory, out, (size_t)p->n_edges);
    if (v->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < v->n; i++, out_off[i] = at)
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                out[at++] = e;
    for (int32_t e = 0; e <= p->n_edges; e++)
        off[e] = e;
    v->n_packets = p->n_edges;
    v->packet_off = off;
    v->out_off = out_off;
    v->out = out;
    return 0;
}

static int stretch_transfers(relax_view *v, int32_t percent)
{
    size_t n = (size_t)v->p->n_classes * (size_t)v->K * (size_t)v->K;
    int64_t *own = util_take(&v->memory, n, sizeof *own);
    for (size_t i = 0; i < n && own; i++)
        own[i] = (int64_t)((double)v->p->class_transfer_ns[i] * percent / 100);
    v->transfer_ns = own;
    return util_taken_all(&v->memory);
}

int relax_view_open(relax_view *v, const moirai_problem *p, int32_t send_percent)
{
    *v = (relax_view){.p = p, .n = p->n_ops, .K = p->n_devices, .n_resources = schedule_resources(p)};
    v->bytes_bind = bytes_bind(p);
    v->n_packets = p->congestion == MOIRAI_CONGESTION_NONE ? 0 : p->n_tensors;
    v->packet_off = p->tensor_edge_off;
    v->out_off = p->op_out_off;
    v->out = p->op_out;
    v->transfer_ns = p->class_transfer_ns;
    int rc = v->n_packets > 0 && p->flow == MOIRAI_FLOW_EDGE ? list_edges(v) : 0;
    return rc || send_percent == 100 ? rc : stretch_transfers(v, send_percent);
}

void relax_view_close(relax_view *v)
{
    util_release(&v->memory);
}

void relax_view_take_rows(relax_view *v, const relax_rows *rows)
{
    v->rows = *rows;
    v->n_resources = schedule_resources(v->p) + rows->n_shifts * v->K + rows->n_paths;
}

/* ---- heads and tails of resources ---- */

typedef struct windows {
    int64_t *head, *tail; /* per resource; SCHEDULE_NEVER_NS where it gets nothing */
} windows;

static void widen(windows *w, int32_t resource, int64_t head, int64_t tail)
{
    w->head[resource] = UTIL_MIN(w->head[resource], head);
    w->tail[resource] = UTIL_MIN(w->tail[resource], tail);
}

/* A packet from k to l: starts after its producer, is followed by the reader on l after which least comes. */
static void widen_by_packet(windows *w, const relax_view *v, const uint64_t *devices, int32_t packet,
                            const int64_t *head, const int64_t *tail)
{
    const moirai_problem *p = v->p;
    int32_t K = v->K, from = relax_producer(v, packet);
    int64_t after[MOIRAI_MASK_DEVICES];
    for (int32_t l = 0; l < K; l++)
        after[l] = SCHEDULE_NEVER_NS;
    for (int32_t e = v->packet_off[packet]; e < v->packet_off[packet + 1]; e++)
        for (int32_t l = 0, r = p->edge_reader[e]; l < K; l++)
            if (devices[r] >> l & 1)
                after[l] = UTIL_MIN(after[l], tail[(int64_t)r * K + l] + moirai_op_ns(p, r, l));
    for (int32_t k = 0; k < K; k++) {
        if (!(devices[from] >> k & 1))
            continue;
        int64_t before = head[(int64_t)from * K + k] + moirai_op_ns(p, from, k);
        for (int32_t l = 0; l < K; l++) {
            if (l == k || after[l] >= SCHEDULE_NEVER_NS)
                continue;
            schedule_held held = schedule_holds(p, k, l);
            widen(w, held.a, before, after[l]);
            if (held.b != MOIRAI_NONE)
                widen(w, held.b, before, after[l]);
        }
    }
}

/* Where the time is up offsets are 0: a bound without them is found, which is less. */
static void find_offsets(relax_case *c, windows *w, const relax_view *v, const int64_t *head, const int64_t *tail,
                         const util_stop *stop)
{
    int32_t R = schedule_resources(v->p);
    for (int32_t r = 0; r < R; r++)
        w->head[r] = w->tail[r] = SCHEDULE_NEVER_NS;
    for (int32_t i = 0; i < v->n; i++)
        for (int32_t k = 0; k < v->K; k++)
            if (c->devices[i] >> k & 1)
                widen(w, k, head[(int64_t)i * v->K + k], tail[(int64_t)i * v->K + k]);
    for (int32_t j = 0; j < v->n_packets; j++) {
        if (j % LOOK == 0 && util_stopped(stop))
            return;
        widen_by_packet(w, v, c->devices, j, head, tail);
    }
    for (int32_t r = 0; r < R; r++)
        c->offset_ns[r] = w->head[r] >= SCHEDULE_NEVER_NS ? c->path_ns : UTIL_MIN(w->head[r] + w->tail[r], c->path_ns);
    for (int32_t at = 0; at < v->rows.n_shifts * v->K; at++) { /* those of paths stay 0 */
        relax_shift s = v->rows.shift[at / v->K];
        c->offset_ns[R + at] = UTIL_MIN(s.head_ns + s.tail_ns, c->path_ns);
    }
}

static int64_t longest(const relax_view *v, const uint64_t *devices, const int64_t *head, const int64_t *tail)
{
    int64_t longest_ns = 0;
    for (int32_t i = 0; i < v->n; i++) {
        int64_t least = SCHEDULE_NEVER_NS;
        for (int32_t k = 0; k < v->K; k++) {
            int64_t at = (int64_t)i * v->K + k;
            if (devices[i] >> k & 1)
                least = UTIL_MIN(least, head[at] + v->p->op_time_ns[at] + tail[at]);
        }
        longest_ns = UTIL_MAX(longest_ns, least);
    }
    return longest_ns;
}

/* Parts of operators within shifts, and the whole of those on paths. */
static int find_parts(relax_case *c, const relax_view *v, const int64_t *head, const int64_t *tail)
{
    const relax_rows *rows = &v->rows;
    int64_t cells = (int64_t)v->n * v->K, most = cells * rows->n_shifts, n = 0;
    uint64_t *paths;
    if (rows->n_shifts + rows->n_paths == 0)
        return 0;
    UTIL_TAKE(&c->memory, paths, (size_t)v->n);
    for (int32_t a = 0; paths && a < rows->n_paths; a++)
        for (int32_t at = rows->path_off[a]; at < rows->path_off[a + 1]; at++, most += v->K)
            paths[rows->path_op[at]] |= UINT64_C(1) << a;
    UTIL_TAKE(&c->memory, c->part_off, (size_t)cells + 1);
    UTIL_TAKE(&c->memory, c->part, (size_t)most);
    if (c->memory.failed)
        return MOIRAI_EFAIL;
    for (int64_t at = 0; at < cells; at++, c->part_off[at] = n) {
        int32_t row = schedule_resources(v->p) + (int32_t)(at % v->K);
        if (!(c->devices[at / v->K] >> (at % v->K) & 1))
            continue;
        for (int32_t s = 0; s < rows->n_shifts; s++, row += v->K) {
            int64_t ns = relax_within(rows->shift[s], head[at], v->p->op_time_ns[at], tail[at], c->path_ns);
            c->part[n] = (relax_part){row, ns};
            n += ns > 0;
        }
        for (uint64_t left = paths[at / v->K]; left; left &= left - 1)
            c->part[n++] = (relax_part){v->n_resources - rows->n_paths + __builtin_ctzll(left), v->p->op_time_ns[at]};
    }
    return 0;
}

static int find_windows(relax_case *c, const relax_view *v, const util_stop *stop)
{
    size_t cells = (size_t)v->n * (size_t)v->K, R = (size_t)v->n_resources;
    util_memory m = {0};
    int64_t *head = util_take(&m, cells, sizeof *head), *tail = util_take(&m, cells, sizeof *tail);
    windows w = {util_take(&m, R, sizeof *w.head), util_take(&m, R, sizeof *w.tail)};
    schedule_paths paths = {.p = v->p, .devices = c->devices, .stop = stop};
    int rc = util_taken_all(&m);
    if (!rc)
        schedule_heads(head, &paths);
    if (!rc && !util_stopped(stop)) { /* else nothing is known of them, which is less, and as true */
        schedule_tails(tail, &paths);
        c->path_ns = longest(v, c->devices, head, tail);
        find_offsets(c, &w, v, head, tail, stop);
        rc = find_parts(c, v, head, tail);
    }
    util_release(&m);
    return rc;
}

int relax_case_open(relax_case *c, const relax_view *v, const relax_fixed *fixed, int32_t n_fixed, bool rate,
                    const util_stop *stop)
{
    *c = (relax_case){0};
    UTIL_TAKE(&c->memory, c->devices, (size_t)v->n);
    UTIL_TAKE(&c->memory, c->offset_ns, (size_t)v->n_resources);
    if (c->memory.failed)
        return MOIRAI_EFAIL;
    memcpy(c->devices, v->p->op_devices, sizeof *c->devices * (size_t)v->n);
    for (int32_t i = 0; i < n_fixed; i++)
        c->devices[fixed[i].op] &= UINT64_C(1) << fixed[i].device;
    return rate ? 0 : find_windows(c, v, stop);
}

void relax_case_close(relax_case *c)
{
    util_release(&c->memory);
}

/* ---- loads ---- */

void relax_loads(int64_t *load_ns, const relax_view *v, const uint8_t *device)
{
    const moirai_problem *p = v->p;
    int32_t K = v->K;
    for (int32_t i = 0; i < v->n; i++)
        load_ns[device[i]] += moirai_op_ns(p, i, device[i]);
    for (int32_t j = 0; j < v->n_packets; j++) {
        uint64_t to = 0;
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            to |= UINT64_C(1) << device[p->edge_reader[e]];
        int32_t k = device[relax_producer(v, j)];
        const int64_t *d = relax_transfers(v, j) + (int64_t)k * K;
        for (to &= ~(UINT64_C(1) << k); to; to &= to - 1) {
            int32_t l = __builtin_ctzll(to);
            schedule_held held = schedule_holds(p, k, l);
            load_ns[held.a] += d[l];
            if (held.b != MOIRAI_NONE)
                load_ns[held.b] += d[l];
        }
    }
}

void relax_row_loads(int64_t *load_ns, const relax_view *v, const relax_case *c, const uint8_t *device)
{
    for (int32_t i = 0; i < v->n; i++) {
        int64_t at = (int64_t)i * v->K + device[i];
        for (int64_t j = relax_first_part(c, at); j < relax_first_part(c, at + 1); j++)
            load_ns[c->part[j].resource] += c->part[j].ns;
    }
}
