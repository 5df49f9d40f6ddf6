/* Cases of the relaxation of a whole problem: where hubs are, where tensors are read.
 *
 * **Hubs.** A linear relaxation may have a hub, an operator on which much of all transfers hangs, half here and half there, and then every neighbour is next to
 * it for nothing. So hubs are cases: on which device is it?
 *
 * **Readers.** It may also send a part of a tensor to everywhere, one for each part of a reader there, where a plan sends all of it to few devices or to none. So
 * where a tensor is read is a case, too, if its transfers are long and its producer's device is known: on this device, or not
 * on this one but on that one, or on none but its own (docs/theory.md, Lemma 49). */
#include "relax/divide.h"

#include <math.h>
#include <stdlib.h>

#include "util/util.h"

static double mean_transfer(const relax_view *v, int32_t packet)
{
    const int64_t *d = relax_transfers(v, packet);
    double sum = 0;
    for (int32_t at = 0; at < v->K * v->K; at++)
        sum += (double)d[at];
    return sum / fmax(v->K * (v->K - 1), 1);
}

/* ---- hubs ---- */

static int find_hubs(relax_divider *d)
{
    const relax_view *v = d->v;
    double *part = util_alloc((size_t)v->n, sizeof *part), all = 0;
    if (!part)
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < v->n_packets; j++) {
        int32_t readers = v->packet_off[j + 1] - v->packet_off[j];
        double mean = mean_transfer(v, j), sent = mean * UTIL_MIN(readers, v->K - 1);
        all += sent;
        part[relax_producer(v, j)] += sent;
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            part[v->p->edge_reader[e]] += mean;
    }
    while (d->n_hubs < RELAX_CASES_MOST_HUBS) {
        int32_t best = 0;
        for (int32_t i = 1; i < v->n; i++)
            if (part[i] > part[best])
                best = i;
        if (v->n == 0 || part[best] <= RELAX_CASES_HUB_SHARE * all)
            break;
        part[best] = 0;
        if (!relax_single(v->p->op_devices[best]))
            d->hub[d->n_hubs++] = best;
    }
    free(part);
    return 0;
}

/* The largest hub that is open in the case, or MOIRAI_NONE. */
static int32_t next_hub(const relax_divider *d, const relax_said *x)
{
    for (int32_t h = 0; h < d->n_hubs; h++) {
        bool open = true;
        for (int32_t i = 0; i < x->n; i++)
            open &= x->fixed[i].says != RELAX_IS_THERE || x->fixed[i].op != d->hub[h];
        if (open)
            return d->hub[h];
    }
    return MOIRAI_NONE;
}

/* ---- readers ---- */

/* Devices on which nobody has said whether the tensor is read, and may be. */
static uint64_t open_readers(const relax_divider *d, const relax_said *x, int32_t packet)
{
    const relax_view *v = d->v;
    int32_t first = v->packet_off[packet];
    uint64_t open = 0;
    for (int32_t e = first; e < v->packet_off[packet + 1]; e++)
        open |= d->devices[v->p->edge_reader[e]];
    open &= ~d->devices[relax_producer(v, packet)];
    for (int32_t i = 0; i < x->n; i++)
        if (x->fixed[i].says != RELAX_IS_THERE && x->fixed[i].op == first)
            open &= ~(UINT64_C(1) << x->fixed[i].device);
    return open;
}

/* The tensor with several readers, written on a known device, whose transfers are longest, if they are a part of the
 * bound that matters; *open: where it may be read. MOIRAI_NONE: there is none. */
static int32_t next_tensor(uint64_t *open, relax_divider *d, const relax_said *x, int64_t lower_ns)
{
    const relax_view *v = d->v;
    int32_t best = MOIRAI_NONE;
    double most = RELAX_CASES_READ_SHARE * (double)lower_ns;
    if (!d->tensors || x->n + v->K > RELAX_CASES_MOST_SAID)
        return MOIRAI_NONE;
    relax_case_devices(d->devices, v, x->fixed, x->n);
    for (int32_t j = 0; j < v->n_packets; j++) {
        if (v->packet_off[j + 1] - v->packet_off[j] < 2 || !relax_single(d->devices[relax_producer(v, j)]) ||
            mean_transfer(v, j) <= most)
            continue;
        uint64_t where = open_readers(d, x, j);
        if (where) {
            best = j;
            most = mean_transfer(v, j);
            *open = where;
        }
    }
    return best;
}

/* ---- cases ---- */

/* Whether each operator has a device left: else no plan is in the case. */
static bool is_case(relax_divider *d, const relax_said *x)
{
    return relax_case_devices(d->devices, d->v, x->fixed, x->n);
}

static int32_t by_hub(relax_said *out, relax_divider *d, const relax_said *x, int32_t hub)
{
    int32_t n = 0;
    for (uint64_t left = d->v->p->op_devices[hub]; left; left &= left - 1) {
        relax_said *y = &out[n];
        *y = *x;
        y->fixed[y->n++] = (relax_fixed){hub, __builtin_ctzll(left), RELAX_IS_THERE};
        n += is_case(d, y);
    }
    return n;
}

/* By the first device on which it is read, or none. */
static int32_t by_tensor(relax_said *out, relax_divider *d, const relax_said *x, int32_t packet, uint64_t open)
{
    int32_t e = d->v->packet_off[packet], n = 0;
    uint64_t before = 0;
    for (uint64_t left = open;; left &= left - 1) {
        relax_said *y = &out[n];
        *y = *x;
        for (uint64_t not = before; not ; not &= not -1)
            y->fixed[y->n++] = (relax_fixed){e, __builtin_ctzll(not ), RELAX_IS_NOT_READ};
        if (left)
            y->fixed[y->n++] = (relax_fixed){e, __builtin_ctzll(left), RELAX_IS_READ};
        n += is_case(d, y);
        if (!left)
            return n;
        before |= left & -left;
    }
}

int32_t relax_divide(relax_said *out, relax_divider *d, const relax_said *x, int64_t lower_ns)
{
    uint64_t open = 0;
    int32_t tensor = next_tensor(&open, d, x, lower_ns), hub = next_hub(d, x);
    if (tensor != MOIRAI_NONE)
        return by_tensor(out, d, x, tensor, open);
    return hub == MOIRAI_NONE ? 0 : by_hub(out, d, x, hub);
}

int relax_divider_open(relax_divider *d, const relax_view *v, bool tensors)
{
    *d = (relax_divider){.v = v, .tensors = tensors};
    d->devices = util_alloc((size_t)v->n, sizeof *d->devices);
    return d->devices ? find_hubs(d) : MOIRAI_EFAIL;
}

void relax_divider_close(relax_divider *d)
{
    free(d->devices);
}
