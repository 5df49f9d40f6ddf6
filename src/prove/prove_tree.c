/* Reading a search tree and walking it: every node that is not divided has to be closed (prove_search.c).
 *
 * The tree is a list of whole numbers in preorder. -1: the rules close the node. An operator's number: the node is
 * divided by its device, and a subtree follows for each device that the problem allows it, in order. -2, u, v: it is
 * divided by which of the tasks u and v goes first, and the subtrees of u first and of v first follow. A task is an
 * operator or, behind these, a transfer: the number of its edge with flow `edge`, (an edge of its tensor) * K + device
 * with flow `tensor`. What lies below a node that is closed already is read and skipped. */
#include <stdlib.h>

#include "prove/prove_read.h"
#include "prove/prove_search.h"
#include "util/util.h"

#define MAX_BYTES ((size_t)1 << 30) /* of all nodes on the way down */
#define CLOSED (-1)
#define ORDER (-2)

typedef struct walker {
    prove_search x;
    int32_t *tree;
    size_t n_tree, at;
    int64_t visited;
} walker;

int prove_search_new(prove_search *x, const prove_block *b, int32_t a, int32_t z, int64_t length_ns)
{
    size_t n = (size_t)b->n;
    *x = (prove_search){.b = b, .n = b->n, .K = b->p->K, .a = a, .z = z, .length = length_ns};
    if ((int64_t)b->n_edges * x->K > INT32_MAX / 4)
        return prove_too_large("a search of a block with too many edges");
    x->n_transfers = b->n_edges * (b->p->by_edge ? 1 : x->K); /* tensors are no more than edges */
    size_t transfers = (size_t)x->n_transfers;
    x->words = n + 2 * n * (size_t)x->K + 2 * transfers;
    PROVE_TAKE(&x->memory, x->least, transfers);
    PROVE_TAKE(&x->memory, x->from, transfers);
    PROVE_TAKE(&x->memory, x->to, transfers);
    PROVE_TAKE(&x->memory, x->job, n + transfers + 1);
    PROVE_TAKE(&x->memory, x->trial, n + transfers + 1);
    PROVE_TAKE(&x->memory, x->arc, PROVE_SEARCH_DEPTH + 1);
    return util_taken_all(&x->memory);
}

/* ---- nodes ---- */

bool prove_known_new(prove_known *s, const prove_search *x, const prove_known *above)
{
    size_t n = (size_t)x->n;
    s->may = above ? util_copy(above->may, x->words, sizeof *s->may) : util_alloc(x->words, sizeof *s->may);
    if (!s->may)
        return false;
    s->head = (int64_t *)(s->may + n);
    s->tail = s->head + (x->words - n) / 2;
    s->n_arcs = above ? above->n_arcs : 0;
    for (int32_t i = 0; i < x->n && !above; i++)
        s->may[i] = prove_allowed(x->b, i, x->a, x->z);
    return true;
}

/* A node at this depth, where all on the way down to it have room. */
static int new_node(prove_known *out, const walker *w, const prove_known *above, size_t depth)
{
    if (depth > PROVE_SEARCH_DEPTH || (depth + 1) * w->x.words > MAX_BYTES / sizeof(int64_t))
        return prove_too_large("a search is too deep");
    return prove_known_new(out, &w->x, above) ? 0 : MOIRAI_EFAIL;
}

/* Here and below, NULL in place of a node: it is closed already. */
static int walk(walker *w, prove_known *s, size_t depth);

static int by_device(walker *w, const prove_known *s, size_t depth, int32_t i)
{
    int rc = 0;
    for (uint64_t m = prove_allowed(w->x.b, i, w->x.a, w->x.z); m != 0 && !rc; m &= m - 1) {
        prove_known part = {0};
        bool left = s && s->may[i] & m & -m;
        rc = left ? new_node(&part, w, s, depth + 1) : 0;
        if (part.may)
            part.may[i] = m & -m;
        rc = rc ? rc : walk(w, left ? &part : NULL, depth + 1);
        free(part.may);
    }
    return rc;
}

/* A task as the file names it; -1: none. */
static int32_t task_named(const walker *w, int32_t number)
{
    const prove_search *x = &w->x;
    int32_t u = number - x->n;
    if (number < 0 || u >= x->n_transfers)
        return -1;
    if (u < 0 || x->b->p->by_edge)
        return number;
    return prove_search_transfer(x, u / x->K, u % x->K);
}

static int by_order(walker *w, const prove_known *s, size_t depth, int32_t u, int32_t v)
{
    int rc = 0;
    if (s && (u < 0 || v < 0 || !prove_search_apart(&w->x, s, u, v)))
        return prove_wrong("a search puts tasks in order that need not be");
    for (int32_t side = 0; side < 2 && !rc; side++) {
        prove_known part = {0};
        rc = s ? new_node(&part, w, s, depth + 1) : 0;
        if (part.may) {
            w->x.arc[part.n_arcs][0] = side ? v : u;
            w->x.arc[part.n_arcs++][1] = side ? u : v;
        }
        rc = rc ? rc : walk(w, s ? &part : NULL, depth + 1);
        free(part.may);
    }
    return rc;
}

static int walk(walker *w, prove_known *s, size_t depth)
{
    size_t need = w->at < w->n_tree && w->tree[w->at] == ORDER ? 3 : 1;
    if (depth > PROVE_SEARCH_DEPTH)
        return prove_too_large("a search is too deep");
    if (w->n_tree - w->at < need)
        return prove_wrong("a search ends before its time");
    const int32_t *number = &w->tree[w->at];
    w->at += need;
    w->visited += s != NULL;
    if (s && prove_search_closes(&w->x, s))
        s = NULL;
    int rc = s ? prove_go_on(w->x.b->p) : 0;
    if (rc)
        return rc;
    if (*number == CLOSED)
        return s ? prove_wrong("a search leaves a case open") : 0;
    if (*number == ORDER)
        return by_order(w, s, depth, task_named(w, number[1]), task_named(w, number[2]));
    return *number < w->x.n ? by_device(w, s, depth, *number) : prove_wrong("a search divides by no operator");
}

static int judge(walker *w)
{
    prove_known root = {0};
    int rc = new_node(&root, w, NULL, 0);
    rc = rc ? rc : walk(w, &root, 0);
    free(root.may);
    if (!rc && w->at != w->n_tree)
        rc = prove_wrong("a search goes on behind its end");
    return rc;
}

int prove_tree(int64_t *ns, int64_t *nodes, const prove_block *b, int32_t a, int32_t z, yyjson_val *object)
{
    walker w = {.at = 0};
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
