/* Which of many devices to search on.
 *
 * Devices that can be exchanged are of one kind (problem/equal_devices.h). Units (operators, or groups that share a device) that
 * may be on a kind use at most as many of its devices as there are such units, and which of them does not matter: so that a
 * part with that many of each kind has an optimum of the whole. Where that is more than a mask holds, the part begins
 * with a device for each operator that no other may run, and grows by the device of most speed, less the more
 * slowly the links to those before it are. */
#include <stdlib.h>

#include "place/fit.h"
#include "place/list/speed.h"
#include "place/moirai/many/many.h"
#include "problem/device_set.h"
#include "problem/equal_devices.h"
#include "util/util.h"

typedef struct choosing {
    const moirai_problem *p;
    many_part *part;
    device_set taken;
    double speed[MOIRAI_MAX_DEVICES];
    double link_ns[MOIRAI_MAX_DEVICES]; /* to and from all that are taken */
    double op_ns, *pair_ns;             /* a mean operator; a mean tensor between two devices */
} choosing;

static void take(choosing *x, int32_t k)
{
    int32_t K = x->p->n_devices;
    x->part->device[x->part->n++] = k;
    device_set_add(&x->taken, k);
    for (int32_t l = 0; l < K; l++)
        x->link_ns[l] += x->pair_ns[k * K + l] + x->pair_ns[l * K + k];
}

/* ---- all that can matter ---- */

/* Units that may be on each kind, known by its least device. */
static void count_units(int32_t *n, const moirai_problem *p, const place_units *u, const int32_t *least)
{
    for (int32_t unit = 0; unit < u->n; unit++)
        for (int32_t k = 0; k < p->n_devices; k++)
            n[k] += least[k] == k && place_unit_may(u, unit, k);
}

/* True where the part holds them. */
static bool take_all_that_matter(many_part *out, const moirai_problem *p, const int32_t *units, const int32_t *least)
{
    int32_t used[MOIRAI_MAX_DEVICES] = {0};
    out->n = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (used[least[k]]++ >= units[least[k]])
            continue;
        if (out->n == MOIRAI_MASK_DEVICES)
            return false;
        out->device[out->n++] = k;
    }
    return true;
}

/* ---- the fast and well-linked ones ---- */

/* Of all tables the mean, by how many tensors have them. */
static void mean_links(choosing *x)
{
    const moirai_problem *p = x->p;
    int64_t pairs = (int64_t)p->n_devices * p->n_devices;
    int32_t *count = util_alloc((size_t)UTIL_MAX(p->n_classes, 1), sizeof *count);
    for (int32_t t = 0; count && t < p->n_tensors; t++)
        count[p->tensor_class[t]]++;
    for (int32_t c = 0; count && c < p->n_classes; c++)
        for (int64_t j = 0; j < pairs; j++)
            x->pair_ns[j] += (double)p->class_transfer_ns[c * pairs + j] * count[c] / p->n_tensors;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->op_ns += (double)moirai_op_least_ns(p, i) / p->n_ops;
    free(count);
}

/* What some operator cannot do without; false: too many. */
static bool take_needed(choosing *x)
{
    for (int32_t i = 0; i < x->p->n_ops; i++) {
        int32_t best = MOIRAI_NONE;
        bool there = false;
        for (int32_t k = 0; k < x->p->n_devices && !there; k++) {
            if (!moirai_op_may(x->p, i, k))
                continue;
            there = device_set_has(&x->taken, k);
            if (best == MOIRAI_NONE || x->speed[k] > x->speed[best])
                best = k;
        }
        if (there)
            continue;
        if (x->part->n == MOIRAI_MASK_DEVICES)
            return false;
        take(x, best);
    }
    return true;
}

static double worth(const choosing *x, int32_t k)
{
    double links = x->part->n ? x->link_ns[k] / (2.0 * x->part->n) : 0;
    return x->speed[k] * x->op_ns / (x->op_ns + links + 1);
}

static void take_best(choosing *x)
{
    while (x->part->n < MOIRAI_MASK_DEVICES) {
        int32_t best = MOIRAI_NONE;
        for (int32_t k = 0; k < x->p->n_devices; k++)
            if (!device_set_has(&x->taken, k) && (best == MOIRAI_NONE || worth(x, k) > worth(x, best)))
                best = k;
        take(x, best);
    }
}

static int compare(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

int many_choose(many_part *out, const moirai_problem *p)
{
    int32_t least[MOIRAI_MAX_DEVICES], units[MOIRAI_MAX_DEVICES] = {0};
    choosing x = {.p = p, .part = out};
    place_units *u = NULL;
    *out = (many_part){0};
    int rc = place_units_new(&u, p);
    if (rc)
        return rc;
    problem_equal_devices(p, least);
    count_units(units, p, u, least);
    place_units_free(u);
    out->whole = take_all_that_matter(out, p, units, least);
    if (out->whole)
        return 0;
    out->n = 0;
    x.pair_ns = util_alloc((size_t)p->n_devices * (size_t)p->n_devices, sizeof *x.pair_ns);
    if (!x.pair_ns)
        return MOIRAI_EFAIL;
    place_speeds(p, x.speed);
    mean_links(&x);
    if (take_needed(&x))
        take_best(&x);
    else
        out->n = 0;
    qsort(out->device, (size_t)out->n, sizeof *out->device, compare);
    free(x.pair_ns);
    return 0;
}
