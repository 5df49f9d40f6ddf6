/* Prices and messages as whole numbers.
 *
 * Prices become whole by rounding down, to 2^-SCALE_BITS, or more where lengths are enormous. Messages are rounded down to multiples of a unit, which makes
 * certificates a third shorter: with every edge that loses at most two units, all edges together 2^-LOST_BITS of the length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "relax/messages.h"
#include "util/util.h"

#define SCALE_BITS 30
#define SUM_BITS 58 /* a message is below: it is at most the whole length */
#define LOST_BITS 24

/* Rounded down to a multiple of the unit. */
static int64_t whole(double a, double scale, int64_t unit)
{
    double b = a * scale, most = ldexp(1, 61);
    int64_t n = (int64_t)(b > most ? most : b < -most ? -most : floor(b));
    return n - n % unit - (n % unit < 0 ? unit : 0);
}

/* A copy of the leaf's own; NULL where there is nothing to copy. */
static void *own(relax_leaf *leaf, const void *from, size_t n, size_t size)
{
    void *to = from ? util_take(&leaf->memory, n, size) : NULL;
    if (to && n)
        memcpy(to, from, n * size);
    return to;
}

int32_t relax_leaf_prices(const relax_leaf *leaf, const moirai_problem *p)
{
    return schedule_resources(p) + leaf->rows.n_shifts * p->n_devices + leaf->rows.n_paths;
}

void relax_leaf_take_rows(relax_leaf *leaf, const relax_rows *rows)
{
    size_t n = (size_t)rows->n_paths;
    leaf->rows = *rows;
    leaf->rows.shift = own(leaf, rows->shift, (size_t)rows->n_shifts, sizeof *rows->shift);
    leaf->rows.path_off = own(leaf, rows->path_off, n + 1, sizeof *rows->path_off);
    leaf->rows.path_op = own(leaf, rows->path_op, n ? (size_t)rows->path_off[n] : 0, sizeof *rows->path_op);
}

int relax_leaf_with(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, const relax_fixed *fixed,
                    int32_t n_fixed)
{
    size_t cells = (size_t)p->n_edges * (size_t)p->n_devices;
    *out = (relax_leaf){.n_fixed = n_fixed, .unit = leaf->unit, .proven_ns = leaf->proven_ns};
    out->fixed = own(out, fixed, (size_t)n_fixed, sizeof *fixed);
    relax_leaf_take_rows(out, &leaf->rows);
    out->price = own(out, leaf->price, (size_t)relax_leaf_prices(leaf, p), sizeof *leaf->price);
    out->byte_price = own(out, leaf->byte_price, (size_t)p->n_devices, sizeof *leaf->byte_price);
    out->from = own(out, leaf->from, cells, sizeof *leaf->from);
    out->to = own(out, leaf->to, cells, sizeof *leaf->to);
    return util_taken_all(&out->memory);
}

void relax_leaf_clear(relax_leaf *leaf)
{
    util_release(&leaf->memory);
    *leaf = (relax_leaf){0};
}

int relax_proof_alone(relax_proof *out, relax_leaf *leaf)
{
    *out = (relax_proof){.proven_ns = leaf->proven_ns, .leaf = util_alloc(1, sizeof *out->leaf)};
    if (!out->leaf)
        return MOIRAI_EFAIL;
    out->n_leaves = 1;
    *out->leaf = *leaf;
    *leaf = (relax_leaf){0};
    return 0;
}

int relax_leaf_write(relax_leaf *leaf, const relax_state *s, const relax_fixed *fixed, int32_t n_fixed,
                     double length_ns)
{
    const relax_view *v = s->v;
    int32_t bits = (int32_t)fmin(SCALE_BITS, SUM_BITS - log2(fmax(length_ns, 1)));
    double scale = ldexp(1, UTIL_MAX(bits, 0));
    bool bytes = false;
    leaf->n_fixed = n_fixed;
    leaf->fixed = own(leaf, fixed, (size_t)n_fixed, sizeof *fixed);
    relax_leaf_take_rows(leaf, &v->rows);
    UTIL_TAKE(&leaf->memory, leaf->price, (size_t)v->n_resources);
    for (int32_t k = 0; k < v->K; k++)
        bytes |= s->byte_price[k] * scale >= 1;
    if (bytes)
        UTIL_TAKE(&leaf->memory, leaf->byte_price, (size_t)v->K);
    if (v->n_packets > 0) {
        UTIL_TAKE(&leaf->memory, leaf->from, s->n_messages);
        UTIL_TAKE(&leaf->memory, leaf->to, s->n_messages);
    }
    if (leaf->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t r = 0; r < v->n_resources; r++)
        leaf->price[r] = (int64_t)(fmax(s->price[r], 0) * scale);
    for (int32_t k = 0; k < v->K && bytes; k++)
        leaf->byte_price[k] = (int64_t)fmin(fmax(s->byte_price[k], 0) * scale, ldexp(1, 40));
    leaf->unit = UTIL_MAX((int64_t)(ldexp(fmax(length_ns, 1) * scale, -LOST_BITS) / (2.0 * v->p->n_edges + 1)), 1);
    for (size_t at = 0; at < s->n_messages; at++) {
        leaf->from[at] = whole(s->from[at], scale, leaf->unit);
        leaf->to[at] = whole(s->to[at], scale, leaf->unit);
    }
    return 0;
}

/* ---- other devices ---- */

static int32_t other_name(int32_t k, int32_t a, int32_t b)
{
    return k == a ? b : k == b ? a : k;
}

static void swap(int64_t *x, int64_t *y)
{
    int64_t old = *x;
    *x = *y;
    *y = old;
}

/* Of numbers per device, in rows of K. */
static void swap_columns(int64_t *x, int64_t rows, int32_t K, int32_t a, int32_t b)
{
    for (int64_t r = 0; x && r < rows; r++)
        swap(&x[r * K + a], &x[r * K + b]);
}

int relax_leaf_exchange(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, int32_t device,
                        const util_stop *stop)
{
    int32_t K = p->n_devices, a = leaf->fixed[0].device, b = device;
    int rc = relax_leaf_with(out, leaf, p, leaf->fixed, leaf->n_fixed);
    if (rc)
        return rc;
    for (int32_t i = 0; i < out->n_fixed; i++)
        out->fixed[i].device = other_name(out->fixed[i].device, a, b);
    swap_columns(out->price, schedule_resources(p) / K, K, a,
                 b); /* devices; then ports, or channels by their receivers, */
    for (int32_t l = 0; l < K && p->congestion == MOIRAI_CONGESTION_CHANNEL; l++) /* and by their senders */
        swap(&out->price[K + a * K + l], &out->price[K + b * K + l]);
    swap_columns(out->byte_price, 1, K, a, b);
    swap_columns(out->from, p->n_edges, K, a, b);
    swap_columns(out->to, p->n_edges, K, a, b);
    return relax_evaluate(&out->proven_ns, p, out, false, stop);
}
