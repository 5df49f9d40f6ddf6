/* From operators to the nodes that Placeto visits.
 *
 * Its authors merged operators before learning, since an episode takes a step, and a pass through the network, per
 * node. So here, in three stages, each within a cap on work and bytes per node, so that no node is too large to be
 * balanced:
 *  1. what must stay together is one node;
 *  2. chains: where u's only reader is v and v's only producer is u, they join. Nothing could run beside them, and
 * apart they cost a transfer;
 *  3. while there are more than `limit` nodes: rounds in which every node, the least work first, joins the neighbour
 * with which it exchanges most bytes, if both are still free in this round. Rounds that achieve little double the cap;
 * in the end nodes next to each other in topological order join. A node's operators all go to one device. The graph of
 * nodes may have cycles; message passing and reachability do not mind. O((V + E) log V) per round, about log2(V /
 * limit) rounds. */
#include "place/learn/placeto_graph.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES 4096

typedef struct link {
    int32_t from, to;
    int64_t bytes;
} link;

typedef struct sorted_root {
    double key;
    int32_t rank, root;
} sorted_root;

typedef struct grouping {
    const moirai_problem *p;
    const place_units *u;
    int32_t *root; /* unit -> unit, union-find */
    double *work;  /* of roots: mean time over devices */
    int64_t *bytes;
    uint64_t *devices;
    int32_t *rank; /* of roots: least topological rank of their operators */
    link *links;   /* between roots, sorted, no repeats */
    int32_t n_links;
    int32_t n; /* roots */
    double work_cap;
    int64_t bytes_cap;
    sorted_root *order;
    uint8_t *taken;     /* in this round */
    int32_t *producers; /* of units: how many */
    int32_t *partner;   /* of roots: the neighbour with which most bytes are exchanged */
    int64_t *partner_bytes;
} grouping;

static int32_t find(grouping *g, int32_t a)
{
    while (g->root[a] != a) {
        g->root[a] = g->root[g->root[a]];
        a = g->root[a];
    }
    return a;
}

static bool may_join(const grouping *g, int32_t a, int32_t b)
{
    return a != b && (g->devices[a] & g->devices[b]) && g->work[a] + g->work[b] <= g->work_cap &&
           g->bytes[a] + g->bytes[b] <= g->bytes_cap;
}

static void join(grouping *g, int32_t a, int32_t b)
{
    if (g->rank[b] < g->rank[a]) {
        int32_t other = a;
        a = b;
        b = other;
    }
    g->root[b] = a;
    g->work[a] += g->work[b];
    g->bytes[a] += g->bytes[b];
    g->devices[a] &= g->devices[b];
    g->n--;
}

/* ---- units and links ---- */

static double mean_ns(const moirai_problem *p, int32_t op)
{
    double sum = 0;
    for (int32_t k = 0; k < p->n_devices; k++)
        sum += (double)(p->op_devices[op] >> k & 1 ? moirai_op_ns(p, op, k) : 0);
    return sum / __builtin_popcountll(p->op_devices[op]);
}

static void begin(grouping *g)
{
    const moirai_problem *p = g->p;
    double work = 0;
    int64_t bytes = 0;
    g->n = g->u->n;
    for (int32_t unit = 0; unit < g->u->n; unit++) {
        g->root[unit] = unit;
        g->bytes[unit] = g->u->bytes[unit];
        g->devices[unit] = g->u->devices[unit];
        g->rank[unit] = INT32_MAX;
        for (int32_t j = g->u->off[unit]; j < g->u->off[unit + 1]; j++) {
            g->work[unit] += mean_ns(p, g->u->op[j]);
            g->rank[unit] = UTIL_MIN(g->rank[unit], p->topo_rank[g->u->op[j]]);
        }
        work += g->work[unit];
        bytes += g->bytes[unit];
    }
    g->work_cap = work / (4 * p->n_devices);
    g->bytes_cap = bytes / (4 * p->n_devices);
}

static int compare_links(const void *x, const void *y)
{
    const link *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to != b->to ? (a->to < b->to ? -1 : 1) : 0;
}

static void find_links(grouping *g)
{
    const moirai_problem *p = g->p;
    int32_t n = 0;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e];
        int32_t from = find(g, g->u->of_op[p->tensor_producer[t]]), to = find(g, g->u->of_op[p->edge_reader[e]]);
        if (from != to)
            g->links[n++] = (link){from, to, p->tensor_bytes[t]};
    }
    qsort(g->links, (size_t)n, sizeof *g->links, compare_links);
    g->n_links = 0;
    for (int32_t i = 0; i < n; i++) {
        link *last = &g->links[g->n_links - 1];
        if (g->n_links > 0 && compare_links(last, &g->links[i]) == 0)
            last->bytes += g->links[i].bytes;
        else
            g->links[g->n_links++] = g->links[i];
    }
}

/* ---- stages ---- */

static void join_chains(grouping *g)
{
    int32_t *readers = g->partner, *producers = g->producers;
    find_links(g);
    memset(readers, 0, (size_t)g->u->n * sizeof *readers);
    memset(producers, 0, (size_t)g->u->n * sizeof *producers);
    for (int32_t i = 0; i < g->n_links; i++) {
        readers[g->links[i].from]++;
        producers[g->links[i].to]++;
    }
    for (int32_t i = 0; i < g->n_links; i++) {
        const link *l = &g->links[i];
        int32_t a = find(g, l->from), b = find(g, l->to);
        if (readers[l->from] == 1 && producers[l->to] == 1 && may_join(g, a, b))
            join(g, a, b);
    }
}

static int compare_roots(const void *x, const void *y)
{
    const sorted_root *a = x, *b = y;
    if (a->key < b->key || a->key > b->key)
        return a->key < b->key ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The roots, ordered by (work, rank) or by rank; returns how many. */
static int32_t sort_roots(grouping *g, bool by_work)
{
    int32_t n = 0;
    for (int32_t unit = 0; unit < g->u->n; unit++)
        if (g->root[unit] == unit)
            g->order[n++] = (sorted_root){by_work ? g->work[unit] : 0, g->rank[unit], unit};
    qsort(g->order, (size_t)n, sizeof *g->order, compare_roots);
    return n;
}

static void prefer(grouping *g, int32_t a, int32_t b, int64_t bytes)
{
    if (g->taken[b] || !may_join(g, a, b) || (g->partner[a] != MOIRAI_NONE && g->partner_bytes[a] >= bytes))
        return;
    g->partner[a] = b;
    g->partner_bytes[a] = bytes;
}

/* Links are sorted by `from`; the other direction needs them all: partners are chosen for every root before any joins.
 */
static int32_t join_neighbours(grouping *g, int32_t limit)
{
    int32_t before = g->n;
    find_links(g);
    memset(g->taken, 0, (size_t)g->u->n);
    for (int32_t unit = 0; unit < g->u->n; unit++)
        g->partner[unit] = MOIRAI_NONE;
    for (int32_t i = 0; i < g->n_links; i++) {
        prefer(g, g->links[i].from, g->links[i].to, g->links[i].bytes);
        prefer(g, g->links[i].to, g->links[i].from, g->links[i].bytes);
    }
    int32_t n = sort_roots(g, true);
    for (int32_t i = 0; i < n && g->n > limit; i++) {
        int32_t a = g->order[i].root, b = g->partner[a];
        if (b == MOIRAI_NONE || g->taken[a] || g->taken[b] || !may_join(g, a, b))
            continue;
        g->taken[a] = g->taken[b] = 1;
        join(g, a, b);
    }
    return before - g->n;
}

static int32_t join_in_order(grouping *g, int32_t limit)
{
    int32_t before = g->n, n = sort_roots(g, false);
    for (int32_t i = 0; i + 1 < n && g->n > limit; i++) {
        if (!may_join(g, g->order[i].root, g->order[i + 1].root))
            continue;
        join(g, g->order[i].root, g->order[i + 1].root);
        i++;
    }
    return before - g->n;
}

static void shrink(grouping *g, int32_t limit)
{
    join_chains(g);
    for (int32_t doublings = 0; g->n > limit && doublings < 64;) {
        int32_t joined = join_neighbours(g, limit);
        if (doublings > 8)
            joined += join_in_order(g, limit);
        if (joined * 20 >= g->n)
            continue;
        doublings++;
        g->work_cap *= 2;
        g->bytes_cap = g->bytes_cap < INT64_MAX / 4 ? 2 * g->bytes_cap + 1 : INT64_MAX / 2;
    }
}

/* ---- the graph ---- */

static int allocate(placeto_graph *g, const moirai_problem *p, int32_t n_links)
{
    size_t n = (size_t)g->n, ends = (size_t)n_links;
    g->off = util_alloc(n + 1, sizeof *g->off);
    g->op = util_alloc((size_t)p->n_ops, sizeof *g->op);
    g->devices = util_alloc(n, sizeof *g->devices);
    g->memory_bytes = util_alloc(n, sizeof *g->memory_bytes);
    g->out_bytes = util_alloc(n, sizeof *g->out_bytes);
    g->time_ns = util_alloc(n * (size_t)p->n_devices, sizeof *g->time_ns);
    g->parent_off = util_alloc(n + 1, sizeof *g->parent_off);
    g->child_off = util_alloc(n + 1, sizeof *g->child_off);
    g->parent = util_alloc(ends, sizeof *g->parent);
    g->child = util_alloc(ends, sizeof *g->child);
    g->relation = util_alloc(n * n, sizeof *g->relation);
    return g->off && g->op && g->devices && g->memory_bytes && g->out_bytes && g->time_ns && g->parent_off &&
                   g->child_off && g->parent && g->child && g->relation
               ? 0
               : MOIRAI_EFAIL;
}

/* Operators into nodes; number[root] is the node. */
static void fill_nodes(placeto_graph *g, grouping *by, const int32_t *number)
{
    const moirai_problem *p = by->p;
    for (int32_t i = 0; i < p->n_ops; i++)
        g->off[number[find(by, by->u->of_op[i])] + 1]++;
    for (int32_t v = 0; v < g->n; v++)
        g->off[v + 1] += g->off[v];
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t i = p->topo[r], root = find(by, by->u->of_op[i]), v = number[root];
        g->op[g->off[v]++] = i;
        g->devices[v] = by->devices[root];
        g->memory_bytes[v] += p->op_memory_bytes[i];
        for (int32_t k = 0; k < p->n_devices; k++)
            if (g->devices[v] >> k & 1)
                g->time_ns[(int64_t)v * p->n_devices + k] += moirai_op_ns(p, i, k);
    }
    for (int32_t v = g->n; v > 0; v--)
        g->off[v] = g->off[v - 1];
    g->off[0] = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t v = number[find(by, by->u->of_op[p->tensor_producer[t]])];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            if (number[find(by, by->u->of_op[p->edge_reader[e]])] != v) {
                g->out_bytes[v] += p->tensor_bytes[t];
                break;
            }
    }
}

static void fill_links(placeto_graph *g, const grouping *by, const int32_t *number)
{
    for (int32_t i = 0; i < by->n_links; i++) {
        g->child_off[number[by->links[i].from] + 1]++;
        g->parent_off[number[by->links[i].to] + 1]++;
    }
    for (int32_t v = 0; v < g->n; v++) {
        g->child_off[v + 1] += g->child_off[v];
        g->parent_off[v + 1] += g->parent_off[v];
    }
    for (int32_t i = 0; i < by->n_links; i++) {
        int32_t from = number[by->links[i].from], to = number[by->links[i].to];
        g->child[g->child_off[from]++] = to;
        g->parent[g->parent_off[to]++] = from;
    }
    for (int32_t v = g->n; v > 0; v--) {
        g->child_off[v] = g->child_off[v - 1];
        g->parent_off[v] = g->parent_off[v - 1];
    }
    g->child_off[0] = g->parent_off[0] = 0;
}

/* All that v reaches along the edges, marked in its row unless marked already. */
static void mark(placeto_graph *g, int32_t v, const int32_t *off, const int32_t *adjacent, uint8_t as, int32_t *stack)
{
    uint8_t *row = g->relation + (size_t)v * (size_t)g->n;
    int32_t depth = 0;
    stack[depth++] = v;
    while (depth > 0) {
        int32_t at = stack[--depth];
        for (int32_t j = off[at]; j < off[at + 1]; j++)
            if (row[adjacent[j]] == PLACETO_PARALLEL) {
                row[adjacent[j]] = as;
                stack[depth++] = adjacent[j];
            }
    }
}

static void relate(placeto_graph *g, int32_t *stack)
{
    memset(g->relation, PLACETO_PARALLEL, (size_t)g->n * (size_t)g->n);
    for (int32_t v = 0; v < g->n; v++) {
        g->relation[(size_t)v * (size_t)g->n + (size_t)v] = PLACETO_SELF;
        mark(g, v, g->parent_off, g->parent, PLACETO_ANCESTOR, stack);
        mark(g, v, g->child_off, g->child, PLACETO_DESCENDANT, stack);
    }
}

static int build(placeto_graph *g, grouping *by)
{
    int32_t *number = by->partner; /* the grouping is done with it */
    find_links(by);
    g->n = sort_roots(by, false);
    g->n_devices = by->p->n_devices;
    if (g->n > MOST_NODES)
        return moirai_error(MOIRAI_ELIMIT,
                            "problem '%s': devices that can't run operators leave %d groups, more than %d", by->p->name,
                            g->n, MOST_NODES);
    for (int32_t v = 0; v < g->n; v++)
        number[by->order[v].root] = v;
    int rc = allocate(g, by->p, by->n_links);
    if (rc)
        return rc;
    fill_nodes(g, by, number);
    fill_links(g, by, number);
    relate(g, by->producers);
    return 0;
}

int placeto_graph_new(placeto_graph **out, const moirai_problem *p, const place_units *u, int32_t limit)
{
    size_t n = (size_t)u->n;
    grouping g = {.p = p, .u = u};
    g.root = util_alloc(n, sizeof *g.root);
    g.work = util_alloc(n, sizeof *g.work);
    g.bytes = util_alloc(n, sizeof *g.bytes);
    g.devices = util_alloc(n, sizeof *g.devices);
    g.rank = util_alloc(n, sizeof *g.rank);
    g.links = util_alloc((size_t)p->n_edges, sizeof *g.links);
    g.order = util_alloc(n, sizeof *g.order);
    g.taken = util_alloc(n, sizeof *g.taken);
    g.producers = util_alloc(n, sizeof *g.producers);
    g.partner = util_alloc(n, sizeof *g.partner);
    g.partner_bytes = util_alloc(n, sizeof *g.partner_bytes);
    placeto_graph *made = util_alloc(1, sizeof *made);
    int rc = g.root && g.work && g.bytes && g.devices && g.rank && g.links && g.order && g.taken && g.producers &&
                     g.partner && g.partner_bytes && made
                 ? 0
                 : MOIRAI_EFAIL;
    if (!rc) {
        begin(&g);
        shrink(&g, limit);
        rc = build(made, &g);
    }
    void *all[] = {g.root,  g.work,  g.bytes,     g.devices, g.rank,         g.links,
                   g.order, g.taken, g.producers, g.partner, g.partner_bytes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    if (rc) {
        placeto_graph_free(made);
        made = NULL;
    }
    *out = made;
    return rc;
}

void placeto_graph_free(placeto_graph *g)
{
    if (!g)
        return;
    void *all[] = {g->off,        g->op,        g->devices, g->memory_bytes, g->out_bytes, g->time_ns,
                   g->parent_off, g->child_off, g->parent,  g->child,        g->relation};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(g);
}
