/* Cuts, blocks, components: what the verifier derives from the problem by itself.
 *
 * Cuts. The certificate names operators; the verifier puts every other operator into a block: the number of the last
 * cut that precedes it, by one sweep. Block b > 0 then holds only operators after cut b-1 by construction. That each of
 * them also comes before cut b needs one look at its readers: one of them must be cut b or in block b, since then,
 * following readers, one arrives at cut b (the graph is finite and has no cycle). Cuts themselves obey the same rule,
 * which makes them a chain.
 *
 * Copies. Two blocks are compared position by position in topological order: times, allowed devices, memory and all
 * edges with their transfer tables. Equal means that every statement proven of one, for given devices of its cuts,
 * holds for the other. Components of a block (what is connected without the cuts) are compared in the same way.
 * O(V+E). */
#include "prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* ---- cuts ---- */

void prove_cuts_free(prove_cuts *c)
{
    free(c->cut);
    free(c->block_off);
    free(c->block_op);
    free(c->local);
}

/* block[i]: how many cuts must be done before i starts. */
static int number_blocks(const moirai_problem *p, const prove_cuts *c, int32_t *block)
{
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t from = p->tensor_producer[p->op_in[j]];
            if (p->topo_rank[from] >= z)
                return moirai_error(MOIRAI_EFAIL, "operators are not in topological order");
            block[i] = UTIL_MAX(block[i], block[from] + (c->local[from] >= 0));
        }
    }
    for (int32_t x = 0; x < c->n_cuts; x++)
        if (block[c->cut[x]] != x)
            return moirai_error(MOIRAI_EVERIFY, "cut %d, operator '%s', does not come after the cuts before it", x,
                                p->op_name[c->cut[x]]);
    return 0;
}

/* Every operator before the last cut has a reader in its own block, or the cut behind it as a reader. */
static int check_cuts(const moirai_problem *p, const prove_cuts *c, const int32_t *block)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t mine = block[i] + (c->local[i] >= 0);
        bool leads_on = mine >= c->n_cuts;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1] && !leads_on; o++) {
            int32_t t = p->op_out[o];
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1] && !leads_on; e++)
                leads_on = block[p->edge_reader[e]] == mine;
        }
        if (!leads_on)
            return moirai_error(MOIRAI_EVERIFY, "operator '%s' need not come before cut %d, operator '%s'",
                                p->op_name[i], mine, p->op_name[c->cut[mine]]);
    }
    return 0;
}

static int list_blocks(const moirai_problem *p, prove_cuts *c, const int32_t *block)
{
    c->block_off = util_alloc((size_t)c->n_cuts + 2, sizeof(int32_t));
    c->block_op = util_alloc((size_t)p->n_ops, sizeof(int32_t));
    int32_t *next = util_alloc((size_t)c->n_cuts + 1, sizeof *next);
    if (!c->block_off || !c->block_op || !next) {
        free(next);
        return MOIRAI_EFAIL;
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        if (c->local[i] < 0)
            c->block_off[block[i] + 1]++;
    for (int32_t b = 0; b <= c->n_cuts; b++) {
        c->block_off[b + 1] += c->block_off[b];
        next[b] = c->block_off[b];
    }
    for (int32_t z = 0; z < p->n_ops; z++)
        if (c->local[p->topo[z]] < 0)
            c->block_op[next[block[p->topo[z]]]++] = p->topo[z];
    free(next);
    return 0;
}

int prove_cuts_new(prove_cuts *c, const moirai_problem *p, int32_t n_cuts, const int32_t *cut)
{
    size_t n = (size_t)p->n_ops;
    *c = (prove_cuts){.n_cuts = n_cuts};
    c->cut = util_alloc((size_t)n_cuts, sizeof(int32_t));
    c->local = util_alloc(n, sizeof(int32_t));
    int32_t *block = util_alloc(n, sizeof *block);
    int rc = c->cut && c->local && block ? 0 : MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < n; i++)
        c->local[i] = -1;
    for (int32_t x = 0; !rc && x < n_cuts; x++) {
        c->cut[x] = cut[x];
        if (cut[x] < 0 || cut[x] >= p->n_ops || c->local[cut[x]] >= 0)
            rc = moirai_error(MOIRAI_EVERIFY, "cut %d is no operator, or twice a cut", x);
        else
            c->local[cut[x]] = x;
    }
    rc = rc ? rc : number_blocks(p, c, block);
    rc = rc ? rc : check_cuts(p, c, block);
    rc = rc ? rc : list_blocks(p, c, block);
    for (size_t i = 0; c->local && i < n; i++)
        c->local[i] = -1;
    free(block);
    return rc;
}

/* ---- one block ---- */

void prove_block_free(prove_block *b)
{
    free(b->op);
    free(b->edge);
    free(b->edge_line);
    free(b->op_line);
    free(b->line_op);
    free(b->component);
    free(b->component_off);
    free(b->component_op);
    free(b->kind_component);
    free(b->kind_count);
    free(b->tree_off);
    free(b->tree_edge);
    *b = (prove_block){0};
}

static int list_edges(prove_block *b, const int32_t *local)
{
    const moirai_problem *p = b->p;
    size_t capacity = 0;
    for (int32_t i = 0; i < b->n; i++) {
        if (i == b->exit)
            continue;
        for (int32_t o = p->op_out_off[b->op[i]]; o < p->op_out_off[b->op[i] + 1]; o++) {
            int32_t t = p->op_out[o], begin = b->n_edges;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t to = local[p->edge_reader[e]];
                if (to < 0)
                    continue;
                if (util_grow(&b->edge, &capacity, (size_t)b->n_edges + 1, sizeof *b->edge))
                    return MOIRAI_EFAIL;
                int32_t at = b->n_edges++;
                for (; at > begin && b->edge[at - 1].to > to; at--)
                    b->edge[at] = b->edge[at - 1];
                b->edge[at] = (prove_edge){.from = i, .output = o - p->op_out_off[b->op[i]], .to = to, .tensor = t};
            }
            for (int32_t e = begin; e < b->n_edges; e++)
                b->edge[e].readers = b->n_edges - begin;
        }
    }
    return 0;
}

int prove_block_new(prove_block *b, const moirai_problem *p, prove_cuts *c, int32_t block)
{
    int32_t first = block > 0, interior = c->block_off[block + 1] - c->block_off[block], last = block < c->n_cuts;
    *b = (prove_block){.p = p, .n = first + interior + last, .shared_tensor = MOIRAI_NONE};
    b->entry = first ? 0 : MOIRAI_NONE;
    b->exit = last ? b->n - 1 : MOIRAI_NONE;
    b->op = util_alloc((size_t)b->n, sizeof(int32_t));
    if (!b->op)
        return MOIRAI_EFAIL;
    if (first)
        b->op[0] = c->cut[block - 1];
    memcpy(b->op + first, c->block_op + c->block_off[block], sizeof *b->op * (size_t)interior);
    if (last)
        b->op[b->n - 1] = c->cut[block];
    for (int32_t i = 0; i < b->n; i++)
        c->local[b->op[i]] = i;
    int rc = list_edges(b, c->local);
    for (int32_t i = 0; i < b->n; i++)
        c->local[b->op[i]] = -1;
    return rc;
}

static bool is_cut(const prove_block *b, int32_t i)
{
    return i == b->entry || i == b->exit;
}

static bool same_op(const moirai_problem *p, int32_t i, int32_t j)
{
    size_t K = (size_t)p->n_devices;
    return p->op_devices[i] == p->op_devices[j] && p->op_memory_bytes[i] == p->op_memory_bytes[j] &&
           !memcmp(p->op_time_ns + (size_t)i * K, p->op_time_ns + (size_t)j * K, K * sizeof(int64_t));
}

static bool same_table(const moirai_problem *p, int32_t s, int32_t t)
{
    size_t cells = (size_t)p->n_devices * (size_t)p->n_devices;
    return p->tensor_class[s] == p->tensor_class[t] ||
           !memcmp(p->class_transfer_ns + (size_t)p->tensor_class[s] * cells,
                   p->class_transfer_ns + (size_t)p->tensor_class[t] * cells, cells * sizeof(int64_t));
}

bool prove_same_block(const prove_block *x, const prove_block *y)
{
    if (x->n != y->n || x->entry != y->entry || x->exit != y->exit || x->n_edges != y->n_edges)
        return false;
    for (int32_t i = 0; i < x->n; i++)
        if (!is_cut(x, i) && !same_op(x->p, x->op[i], y->op[i]))
            return false;
    for (int32_t e = 0; e < x->n_edges; e++) {
        const prove_edge *f = &x->edge[e], *g = &y->edge[e];
        if (f->from != g->from || f->output != g->output || f->to != g->to || !same_table(x->p, f->tensor, g->tensor))
            return false;
    }
    return true;
}

/* ---- components ---- */

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Edges of one line cost the same whatever the prices; so do operators. */
static int find_lines(prove_block *b)
{
    b->edge_line = util_alloc((size_t)b->n_edges, sizeof(int32_t));
    b->op_line = util_alloc((size_t)b->n, sizeof(int32_t));
    b->line_op = util_alloc((size_t)b->n, sizeof(int32_t));
    if (!b->edge_line || !b->op_line || !b->line_op)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < b->n_edges; e++) {
        int32_t line = 0;
        for (; line < b->n_edge_lines; line++) {
            const prove_edge *f = &b->edge[b->edge_line[line]];
            if (f->readers == b->edge[e].readers && same_table(b->p, f->tensor, b->edge[e].tensor))
                break;
        }
        if (line == b->n_edge_lines)
            b->edge_line[b->n_edge_lines++] = e;
        b->edge[e].line = line;
    }
    size_t K = (size_t)b->p->n_devices;
    for (int32_t i = 0; i < b->n; i++) {
        int32_t line = 0;
        while (line < b->n_op_lines &&
               memcmp(b->p->op_time_ns + (size_t)b->op[i] * K, b->p->op_time_ns + (size_t)b->op[b->line_op[line]] * K,
                      K * sizeof(int64_t)))
            line++;
        if (line == b->n_op_lines)
            b->line_op[b->n_op_lines++] = i;
        b->op_line[i] = line;
    }
    return 0;
}

/* What stays connected without the cuts, numbered by first operator. */
int prove_components(prove_block *b)
{
    size_t n = (size_t)b->n;
    int32_t *parent = util_alloc(n + 1, sizeof *parent);
    b->component = util_alloc(n, sizeof(int32_t));
    b->component_off = util_alloc(n + 1, sizeof(int32_t));
    b->component_op = util_alloc(n, sizeof(int32_t));
    if (!parent || !b->component || !b->component_off || !b->component_op) {
        free(parent);
        return MOIRAI_EFAIL;
    }
    for (int32_t i = 0; i < b->n; i++) {
        parent[i] = i;
        b->component[i] = MOIRAI_NONE;
    }
    for (int32_t e = 0; e < b->n_edges; e++)
        if (!is_cut(b, b->edge[e].from) && !is_cut(b, b->edge[e].to)) {
            int32_t x = root_of(parent, b->edge[e].from), y = root_of(parent, b->edge[e].to);
            parent[UTIL_MAX(x, y)] = UTIL_MIN(x, y);
        }
    for (int32_t i = 0; i < b->n; i++)
        if (!is_cut(b, i)) {
            int32_t root = root_of(parent, i); /* the least of its component: seen first */
            b->component[i] = root == i ? b->n_components++ : b->component[root];
            b->component_off[b->component[i] + 1]++;
        }
    for (int32_t c = 0; c < b->n_components; c++) {
        b->component_off[c + 1] += b->component_off[c];
        parent[c] = b->component_off[c];
    }
    for (int32_t i = 0; i < b->n; i++)
        if (!is_cut(b, i))
            b->component_op[parent[b->component[i]]++] = i;
    free(parent);
    return find_lines(b);
}

/* Where local operator i stands in component c: its place, -1 entry, -2 exit, -3 elsewhere. */
static int32_t place_in(const prove_block *b, int32_t c, int32_t i)
{
    if (is_cut(b, i))
        return i == b->entry ? -1 : -2;
    if (b->component[i] != c)
        return -3;
    int32_t low = b->component_off[c], high = b->component_off[c + 1] - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (b->component_op[middle] < i)
            low = middle + 1;
        else
            high = middle;
    }
    return low - b->component_off[c];
}

/* The next edge from e on that touches component c. */
static int32_t next_edge(const prove_block *b, int32_t c, int32_t e)
{
    while (e < b->n_edges && b->component[b->edge[e].from] != c && b->component[b->edge[e].to] != c)
        e++;
    return e;
}

bool prove_same_component(const prove_block *b, int32_t c, int32_t d)
{
    int32_t n = b->component_off[c + 1] - b->component_off[c];
    if (n != b->component_off[d + 1] - b->component_off[d])
        return false;
    for (int32_t x = 0; x < n; x++)
        if (!same_op(b->p, b->op[b->component_op[b->component_off[c] + x]],
                     b->op[b->component_op[b->component_off[d] + x]]))
            return false;
    int32_t e = next_edge(b, c, 0), f = next_edge(b, d, 0);
    while (e < b->n_edges && f < b->n_edges) {
        const prove_edge *x = &b->edge[e], *y = &b->edge[f];
        int32_t from = place_in(b, c, x->from);
        if (from != place_in(b, d, y->from) || x->output != y->output ||
            place_in(b, c, x->to) != place_in(b, d, y->to) || x->readers != y->readers ||
            !same_table(b->p, x->tensor, y->tensor))
            return false;
        e = next_edge(b, c, e + 1);
        f = next_edge(b, d, f + 1);
    }
    return e == f; /* both at the end */
}

/* ---- the longest path ---- */

static uint64_t devices_of(const prove_block *b, int32_t i, int32_t a, int32_t z)
{
    if (i == b->entry)
        return UINT64_C(1) << a;
    return i == b->exit ? UINT64_C(1) << z : b->p->op_devices[b->op[i]];
}

/* Least finish of i on any device, pushing what its readers have to wait for into `head`. */
static int64_t push_head(const prove_block *b, int32_t i, int32_t a, int32_t z, int32_t *e, int64_t *head)
{
    const moirai_problem *p = b->p;
    int32_t K = p->n_devices;
    uint64_t mine = devices_of(b, i, a, z);
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < K; k++)
        if (mine >> k & 1) {
            head[i * K + k] += is_cut(b, i) ? 0 : moirai_op_ns(p, b->op[i], k);
            least = UTIL_MIN(least, head[i * K + k]);
        }
    for (; *e < b->n_edges && b->edge[*e].from == i; ++*e) {
        const prove_edge *f = &b->edge[*e];
        for (int32_t k = 0; k < K; k++) {
            int64_t soonest = INT64_MAX;
            for (int32_t l = 0; l < K; l++)
                if (mine >> l & 1)
                    soonest = UTIL_MIN(soonest, head[i * K + l] + moirai_transfer_ns(p, f->tensor, l, k));
            head[f->to * K + k] = UTIL_MAX(head[f->to * K + k], soonest);
        }
    }
    return least;
}

/* With nothing between the cuts, only transfers from a to z are left: one after the other where a port or channel is
 * held. */
static int64_t empty_ns(const prove_block *b, int32_t a, int32_t z)
{
    int64_t sum = 0, longest = 0;
    for (int32_t e = 0; e < b->n_edges; e++) {
        int64_t ns = moirai_transfer_ns(b->p, b->edge[e].tensor, a, z);
        sum += ns;
        longest = UTIL_MAX(longest, ns);
    }
    return b->p->congestion == MOIRAI_CONGESTION_NONE ? longest : sum;
}

int prove_path_ns(int64_t *ns, const prove_block *b, int32_t a, int32_t z)
{
    *ns = 0;
    if (b->n == (b->entry >= 0) + (b->exit >= 0)) {
        *ns = b->n == 2 ? empty_ns(b, a, z) : 0;
        return 0;
    }
    int64_t *head = util_alloc((size_t)b->n * (size_t)b->p->n_devices, sizeof *head);
    if (!head)
        return MOIRAI_EFAIL;
    int32_t e = 0;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t least = push_head(b, i, a, z, &e, head);
        *ns = UTIL_MAX(*ns, least);
    }
    free(head);
    return 0;
}
