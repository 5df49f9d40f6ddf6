/* Reading a search tree and walking it: every node that is not divided has to be closed (prove_search.c).
 *
 * The tree is a list of whole numbers in preorder. -1: the rules close the node. An operator's number: the node is
 * divided by its device, and a subtree follows for each device that the problem allows it, in order. -2, u, v: it is
 * divided by which of the tasks u and v goes first, and the subtrees of u first and of v first follow. A task is an
 * operator or, behind these, a transfer: the number of its edge with flow `edge`, (an edge of its tensor) * K + device
 * with flow `tensor`. What lies below a node that is closed already is read and skipped. */
#include <string.h>

#include "prove/prove_read.h"
#include "prove/prove_search.h"
#include "util/util.h"

#define MAX_BYTES ((size_t)1 << 30) /* of all nodes on the way down */
#define CLOSED (-1)
#define ORDER (-2)

typedef struct walker {
    prove_search x;
    prove_known *node; /* per depth */
    size_t n_nodes;
    int32_t *tree;
    size_t n_tree, at;
    int64_t visited;
} walker;

/* ---- tables ---- */

int prove_search_new(prove_search *x, const prove_block *b, int32_t a, int32_t z, int64_t length_ns)
{
    size_t n = (size_t)b->n;
    *x = (prove_search){.b = b, .n = b->n, .K = b->p->K, .a = a, .z = z, .length = length_ns};
    if ((int64_t)b->n_edges * x->K > INT32_MAX / 4)
        return prove_too_large("a search of a block with too many edges");
    x->n_transfers = b->n_edges * (x->b->p->by_edge ? 1 : x->K); /* tensors are no more than edges */
    size_t transfers = (size_t)x->n_transfers;
    x->words = n + 2 * n * (size_t)x->K + 2 * transfers;
    PROVE_TAKE(&x->memory, x->sure, transfers);
    PROVE_TAKE(&x->memory, x->least, transfers);
    PROVE_TAKE(&x->memory, x->from, transfers);
    PROVE_TAKE(&x->memory, x->to, transfers);
    PROVE_TAKE(&x->memory, x->job, n + transfers + 1);
    PROVE_TAKE(&x->memory, x->trial, n + transfers + 1);
    PROVE_TAKE(&x->memory, x->arc, PROVE_SEARCH_DEPTH + 1);
    return util_taken_all(&x->memory);
}

bool prove_known_new(prove_known *s, prove_search *x)
{
    size_t n = (size_t)x->n, cells = n * (size_t)x->K, transfers = (size_t)x->n_transfers;
    if (!UTIL_TAKE(&x->memory, s->may, x->words))
        return false;
    s->head = (int64_t *)(s->may + n);
    s->tail = s->head + cells;
    s->out_head = s->tail + cells;
    s->out_tail = s->out_head + transfers;
    for (int32_t i = 0; i < x->n; i++)
        s->may[i] = prove_allowed(x->b, i, x->a, x->z);
    return true;
}

/* ---- nodes ---- */

/* The node at this depth, a copy of the one above. */
static int push(prove_known **out, walker *w, size_t depth)
{
    prove_known *s = &w->node[depth];
    if (depth > PROVE_SEARCH_DEPTH || (depth >= w->n_nodes && (depth + 1) * w->x.words > MAX_BYTES / sizeof(int64_t)))
        return prove_too_large("a search is too deep");
    if (depth >= w->n_nodes && !prove_known_new(s, &w->x))
        return MOIRAI_EFAIL;
    w->n_nodes = UTIL_MAX(w->n_nodes, depth + 1);
    if (depth > 0) {
        memcpy(s->may, w->node[depth - 1].may, w->x.words * sizeof(int64_t));
        s->n_arcs = w->node[depth - 1].n_arcs;
    }
    *out = s;
    return 0;
}

static int walk(walker *w, size_t depth, bool dead);

static int by_device(walker *w, size_t depth, bool dead, int32_t i)
{
    int rc = 0;
    for (uint64_t m = prove_allowed(w->x.b, i, w->x.a, w->x.z); m != 0 && !rc; m &= m - 1) {
        prove_known *s = NULL;
        bool skip = dead || !(w->node[depth].may[i] & m & -m);
        rc = skip ? 0 : push(&s, w, depth + 1);
        if (s)
            s->may[i] = m & -m;
        rc = rc ? rc : walk(w, depth + 1, skip);
    }
    return rc;
}

/* A task as the file names it; -1: none. */
static int32_t task_named(const walker *w, int32_t number)
{
    const prove_search *x = &w->x;
    int64_t u = (int64_t)number - x->n, most = (int64_t)x->b->n_edges * (x->b->p->by_edge ? 1 : x->K);
    if (number < 0 || u >= most)
        return -1;
    if (u < 0 || x->b->p->by_edge)
        return number;
    return x->n + prove_search_transfer(x, (int32_t)(u / x->K), (int32_t)(u % x->K));
}

static int by_order(walker *w, size_t depth, bool dead, int32_t u, int32_t v)
{
    int rc = 0;
    if (!dead && (u < 0 || v < 0 || !prove_search_apart(&w->x, &w->node[depth], u, v)))
        return prove_wrong("a search puts tasks in order that need not be");
    for (int32_t side = 0; side < 2 && !rc; side++) {
        prove_known *s = NULL;
        rc = dead ? 0 : push(&s, w, depth + 1);
        if (s) {
            w->x.arc[s->n_arcs][0] = side ? v : u;
            w->x.arc[s->n_arcs++][1] = side ? u : v;
        }
        rc = rc ? rc : walk(w, depth + 1, dead);
    }
    return rc;
}

static int walk(walker *w, size_t depth, bool dead)
{
    size_t need = w->at < w->n_tree && w->tree[w->at] == ORDER ? 3 : 1;
    if (depth > PROVE_SEARCH_DEPTH)
        return prove_too_large("a search is too deep");
    if (w->n_tree - w->at < need)
        return prove_wrong("a search ends before its time");
    const int32_t *number = &w->tree[w->at];
    w->at += need;
    if (!dead) {
        w->visited++;
        dead = prove_search_closes(&w->x, &w->node[depth]);
        int rc = prove_go_on(w->x.b->p);
        if (rc)
            return rc;
    }
    if (*number == CLOSED)
        return dead ? 0 : prove_wrong("a search leaves a case open");
    if (*number == ORDER)
        return by_order(w, depth, dead, task_named(w, number[1]), task_named(w, number[2]));
    return *number < w->x.n ? by_device(w, depth, dead, *number) : prove_wrong("a search divides by no operator");
}

static int judge(walker *w)
{
    prove_known *root;
    int rc = UTIL_TAKE(&w->x.memory, w->node, PROVE_SEARCH_DEPTH + 1) ? push(&root, w, 0) : MOIRAI_EFAIL;
    rc = rc ? rc : walk(w, 0, false);
    if (!rc && w->at != w->n_tree)
        rc = prove_wrong("a search goes on behind its end");
    return rc;
}

int prove_tree(int64_t *ns, int64_t *nodes, const prove_block *b, int32_t a, int32_t z, yyjson_val *object)
{
    walker w = {.n_nodes = 0};
    int64_t length = prove_number(object, "length_ns");
    int rc = prove_search_new(&w.x, b, a, z, length);
    rc = rc ? rc
            : prove_list32(&w.tree, &w.n_tree, &w.x.memory, prove_get(object, "tree"), INT32_MAX,
                           "the tree of a search");
    rc = rc ? rc : judge(&w);
    *nodes += w.visited;
    if (!rc)
        *ns = UTIL_MAX(*ns, length + 1);
    util_release(&w.x.memory);
    return rc;
}
