/* The order of urgency: all operators by priority (the highest first), equal ones by topological rank.
 *
 * Dispatch compares urgencies at every step. One number per operator, its place in this order, makes of each comparison
 * one of whole numbers, and of each device's queue of ready operators a set of bits. A search that dispatches again and
 * again changes few priorities from one time to the next: those operators are taken out and merged in anew.
 * O(V), and a sort of what has changed. */
#include <string.h>

#include "schedule/sim.h"
#include "util/sort.h"

#define FEW 128 /* operators that are sorted by insertion: a radix sort counts 2048 digits for however few */

/* Ascending keys for descending priorities. */
static inline uint64_t key_of(int64_t priority)
{
    return ~((uint64_t)priority ^ (UINT64_C(1) << 63));
}

/* What has another priority than before, in topological order: equal keys keep it. */
static int32_t take_out(moirai_sim *sim, const int64_t *priority)
{
    const moirai_problem *p = sim->p;
    int32_t n = 0;
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t op = p->topo[r];
        if (priority[op] == sim->ranked_by[op])
            continue;
        sim->ranked_by[op] = priority[op];
        sim->place[op] = MOIRAI_NONE;
        sim->key[n] = key_of(priority[op]);
        sim->item[n++] = op;
    }
    return n;
}

static void sort(moirai_sim *sim, int32_t n)
{
    if (n > FEW) {
        util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
        return;
    }
    for (int32_t i = 1; i < n; i++) {
        uint64_t key = sim->key[i];
        int32_t op = sim->item[i], j = i;
        for (; j > 0 && key < sim->key[j - 1]; j--) {
            sim->key[j] = sim->key[j - 1];
            sim->item[j] = sim->item[j - 1];
        }
        sim->key[j] = key;
        sim->item[j] = op;
    }
}

static inline bool sooner(const moirai_sim *sim, int32_t a, int32_t b)
{
    if (sim->ranked_by[a] != sim->ranked_by[b])
        return sim->ranked_by[a] > sim->ranked_by[b];
    return sim->p->topo_rank[a] < sim->p->topo_rank[b];
}

static void merge(moirai_sim *sim, int32_t n)
{
    int32_t V = sim->p->n_ops, next = 0;
    int32_t *to = sim->by_urgency_spare, at = 0;
    for (int32_t i = 0; i < V; i++) {
        int32_t op = sim->by_urgency[i];
        if (sim->place[op] == MOIRAI_NONE)
            continue;
        while (next < n && sooner(sim, sim->item[next], op))
            to[at++] = sim->item[next++];
        to[at++] = op;
    }
    while (next < n)
        to[at++] = sim->item[next++];
    sim->by_urgency_spare = sim->by_urgency;
    sim->by_urgency = to;
    for (int32_t i = 0; i < V; i++)
        sim->place[to[i]] = i;
}

void schedule_sim_rank(moirai_sim *sim, const int64_t *priority)
{
    if (!memcmp(priority, sim->ranked_by, (size_t)sim->p->n_ops * sizeof *priority))
        return;
    int32_t n = take_out(sim, priority);
    sort(sim, n);
    merge(sim, n);
}
