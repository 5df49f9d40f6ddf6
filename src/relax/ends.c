/* Ends alone: where devices are many, pairs of them are too many to be relaxed one by one.
 *
 * With one end of a block on a device and the other one anywhere, the relaxation proves something of all pairs with that end: there are K such
 * cases of an end, not K^2. And the numbers of one serve all others: any numbers prove something (docs/theory.md, Theorem 15),
 * so those of an end on k are tried for an end on l, with k and l exchanged in all of them. Where devices and links are much alike, what is slower than k
 * proves at least as much; it is evaluated in a fraction of the time that finding prices takes. */
#include "relax/chain.h"
#include "relax/messages.h"
#include "relax/view.h"
#include "util/util.h"

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
