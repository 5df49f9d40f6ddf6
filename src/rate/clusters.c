/* Clusters for annealing.
 *
 * Where transfers cost more than operators, plans differ by where they are cut, and a move of one operator, or of a random region, all but always cuts something
 * dear on its way to the next good plan. So units are joined along the dearest tensors first, each as dear as it is times a random factor, until few are left: annealing moves
 * these, and the operators after it. Other random factors give other clusters, so that no cut is ruled out for good. */
#include "rate/clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define SPREAD 1.5 /* random factors are between e^-SPREAD and e^SPREAD, mostly near 1 */

typedef struct dear {
    double cost;
    int32_t packet;
} dear;

typedef struct joining {
    const rate_cluster_task *task;
    dear *order;
    int32_t *root; /* unit -> another of its cluster, or itself */
    uint64_t *devices;
    double *ns;
    int32_t n;
} joining;

static int dearest(const void *a, const void *b)
{
    const dear *x = a, *y = b;
    return x->cost != y->cost ? (x->cost > y->cost ? -1 : 1) : x->packet - y->packet;
}

static int32_t root_of(joining *x, int32_t unit)
{
    while (x->root[unit] != unit)
        unit = x->root[unit] = x->root[x->root[unit]];
    return unit;
}

static int open_joining(joining *x)
{
    const relax_view *v = x->task->v;
    const place_units *u = x->task->units;
    util_rng rng;
    util_rng_seed(&rng, x->task->seed);
    x->n = u->n;
    x->order = util_alloc((size_t)v->n_packets, sizeof *x->order);
    x->root = util_alloc((size_t)u->n, sizeof *x->root);
    x->devices = util_alloc((size_t)u->n, sizeof *x->devices);
    x->ns = util_alloc((size_t)u->n, sizeof *x->ns);
    if (!x->order || !x->root || !x->devices || !x->ns)
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < v->n_packets; j++) {
        double ns = 0, odds = util_rng_real(&rng) + util_rng_real(&rng) + util_rng_real(&rng) - 1.5;
        for (int32_t k = 0; k < v->K && v->packet_off[j] < v->packet_off[j + 1];
             k++) /* one that nobody reads is free */
            ns = fmax(ns, (double)relax_transfers(v, j)[k * v->K + (k + 1) % v->K]);
        x->order[j] = (dear){.cost = ns * exp(SPREAD / 1.5 * odds), .packet = j};
    }
    qsort(x->order, (size_t)v->n_packets, sizeof *x->order, dearest);
    for (int32_t i = 0; i < u->n; i++) {
        x->root[i] = i;
        x->devices[i] = u->devices[i];
    }
    for (int32_t op = 0; op < v->n; op++)
        x->ns[u->of_op[op]] += (double)moirai_op_least_ns(v->p, op);
    return 0;
}

static void join(joining *x, const int32_t *device)
{
    const rate_cluster_task *task = x->task;
    const relax_view *v = task->v;
    for (int32_t i = 0; i < v->n_packets && x->n > task->wanted; i++) {
        int32_t packet = x->order[i].packet;
        for (int32_t e = v->packet_off[packet]; e < v->packet_off[packet + 1] && x->n > task->wanted; e++) {
            int32_t from = relax_producer(v, packet), to = v->p->edge_reader[e];
            int32_t a = root_of(x, task->units->of_op[from]), b = root_of(x, task->units->of_op[to]);
            if (a == b || (task->as_they_are && device[from] != device[to]) || !(x->devices[a] & x->devices[b]) ||
                x->ns[a] + x->ns[b] > task->most_ns)
                continue;
            x->root[b] = a;
            x->devices[a] &= x->devices[b];
            x->ns[a] += x->ns[b];
            x->n--;
        }
    }
}

/* The clusters as units: in the order of their first operators. */
static void write_units(place_units *u, joining *x)
{
    const place_units *old = x->task->units;
    int32_t n_ops = x->task->v->n, *number = u->off; /* of roots, until the offsets are counted */
    u->n = 0;
    for (int32_t i = 0; i < old->n; i++)
        number[i] = MOIRAI_NONE;
    for (int32_t op = 0; op < n_ops; op++) {
        int32_t root = root_of(x, old->of_op[op]);
        if (number[root] == MOIRAI_NONE) {
            u->devices[u->n] = x->devices[root];
            u->bytes[u->n] = 0;
            number[root] = u->n++;
        }
        u->of_op[op] = number[root];
        u->bytes[u->of_op[op]] += x->task->v->p->op_memory_bytes[op];
    }
    place_units_list(u, n_ops);
}

/* All of a cluster where its first operator is, where all of it may be there. MOIRAI_EINFEASIBLE: that does not fit, nor does anything near. */
static int settle(int32_t *device, const place_units *u, const moirai_problem *p)
{
    for (int32_t i = 0; i < u->n; i++) {
        int32_t k = device[u->op[u->off[i]]];
        for (int32_t o = u->off[i] + 1; o < u->off[i + 1] && !(u->devices[i] >> k & 1); o++)
            k = device[u->op[o]];
        for (int32_t l = 0; l < p->n_devices && !(u->devices[i] >> k & 1); l++)
            k = l;
        for (int32_t o = u->off[i]; o < u->off[i + 1]; o++)
            device[u->op[o]] = k;
    }
    return place_fit_assignment(p, u, p->device_memory_bytes, device);
}

int rate_cluster(place_units **out, int32_t *device, const rate_cluster_task *task)
{
    joining x = {.task = task};
    const moirai_problem *p = task->v->p;
    size_t bytes = sizeof *device * (size_t)p->n_ops;
    place_units *u = *out = NULL;
    int32_t *before = util_alloc((size_t)p->n_ops, sizeof *before);
    int rc = before ? place_units_new(&u, p) : MOIRAI_EFAIL;
    rc = rc ? rc : open_joining(&x);
    if (!rc) {
        memcpy(before, device, bytes);
        join(&x, device);
        write_units(u, &x);
        rc = settle(device, u, p);
        if (rc)
            memcpy(device, before, bytes);
    }
    if (rc)
        place_units_free(u);
    else
        *out = u;
    free(before);
    free(x.order);
    free(x.root);
    free(x.devices);
    free(x.ns);
    return rc == MOIRAI_EINFEASIBLE ? 0 : rc;
}
