/* Graph coarsening with operator fusion, GCOF: which operators are fused (the paper's Algorithm 1).
 *
 * The paper walks the graph depth first from its root, fuses pairs that spell a rule, binds pairs that spell a
 * part of one, goes on with what it fused or bound, and releases at the end what stayed bound. Taken literally, what
 * it finds depends on where it begins and on the order of branches. Here the same matches are defined without a walk:
 *
 *  - next(v) is the only consumer of v, where v has one (is_valid_conn: "direct" and "multi-inputs" connections; never
 *    "multi-outputs"). The edges v -> next(v) form a forest that leads towards the outputs of the network.
 *  - A match is a path of the forest whose types spell a rule. From every operator the trie of rules is followed along
 *    next; each step is is_sub_rule, each marked node is_rule. A path on which no rule was spelt is a bound
 *    operator that was released.
 *  - Matches that share an operator compete. The longer wins. Among equals the one that ends further upstream wins, as
 *    it would in a walk from the root; among those with one end, the one that comes through the earlier input where the
 *    two branches meet. Two matches that share an operator follow the same path from there on, so one of these
 *    cases always decides: the result depends on the graph alone, not on how it is stored or named.
 *
 * Greedy choice in that order is maximal: a match that was refused shares an operator with a chosen one.
 *
 * No cycle can arise. Contract one edge v -> next(v): a new cycle would need a second path from v to next(v), but
 * every path out of v begins with that edge. Contracting the edges of a match from its end to its beginning, each v
 * still has one consumer when its turn comes; and matches are disjoint, so a contraction leaves the others' consumers
 * alone.
 *
 * The order of candidates: a postorder of the forest, seen from its roots with inputs in order, puts upstream before
 * downstream and earlier inputs before later ones. Matches arise in the order of their starts; two stable counting
 * sorts, by end and by length, do the rest. O(V L + E) for rules of at most L types, the paper's O(V+E). */
#include <stdlib.h>
#include <string.h>

#include "coarsen/coarsen.h"

typedef struct match {
    int32_t first, last, length, rule; /* `last` is its place in the postorder */
} match;

typedef struct search {
    const moirai_graph *g;
    const moirai_rules *rules;
    coarsen_fusions *f;
    int32_t *symbol;            /* [op] type for the trie */
    int32_t *child_off, *child; /* the forest upside down: op -> operators that only it reads, by input */
    int32_t *post, *place;      /* postorder of the forest and its inverse */
    int32_t *stack;
    match *match, *sorted;
    size_t n_matches, capacity;
} search;

/* The only consumer of an operator. Outputs that nobody reads have no consumer and do not count. */
static int32_t only_consumer(const moirai_graph *g, int32_t op)
{
    int32_t only = MOIRAI_NONE;

    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1]; e++) {
        int32_t t = g->op_out[e];

        for (int32_t k = g->tensor_reader_off[t]; k < g->tensor_reader_off[t + 1]; k++) {
            if (only != MOIRAI_NONE && only != g->tensor_reader[k])
                return MOIRAI_NONE;
            only = g->tensor_reader[k];
        }
    }
    return only;
}

/* Children in the order of the inputs through which they are read; an operator read through several comes once. */
static void forest_turn(search *s)
{
    const moirai_graph *g = s->g;
    int32_t n = 0;

    memset(s->place, 0, (size_t)g->n_ops * sizeof *s->place); /* here: already listed */
    for (int32_t i = 0; i < g->n_ops; i++) {
        s->child_off[i] = n;
        for (int32_t e = g->op_in_off[i]; e < g->op_in_off[i + 1]; e++) {
            int32_t p = g->tensor_producer[g->op_in[e]];

            if (p == MOIRAI_NONE || s->f->next[p] != i || s->place[p])
                continue;
            s->place[p] = 1;
            s->child[n++] = p;
        }
    }
    s->child_off[g->n_ops] = n;
}

static void forest_postorder(search *s)
{
    int32_t n = 0, *visited = s->place; /* children of each operator that were visited, until its place is known */

    memset(visited, 0, (size_t)s->g->n_ops * sizeof *visited);
    for (int32_t root = 0; root < s->g->n_ops; root++) {
        int32_t depth = 0;

        if (s->f->next[root] != MOIRAI_NONE)
            continue;
        s->stack[depth++] = root;
        while (depth) {
            int32_t top = s->stack[depth - 1], k = s->child_off[top] + visited[top];

            if (k < s->child_off[top + 1]) {
                visited[top]++;
                s->stack[depth++] = s->child[k];
                continue;
            }
            depth--;
            s->post[n] = top;
            visited[top] = n++;
        }
    }
}

/* All matches, in the order of their starts. */
static int matches_collect(search *s)
{
    for (int32_t i = 0; i < s->g->n_ops; i++) {
        int32_t node = 0, length = 0;

        for (int32_t v = s->post[i]; v != MOIRAI_NONE; v = s->f->next[v]) {
            node = coarsen_rules_step(s->rules, node, s->symbol[v]);
            if (node == MOIRAI_NONE)
                break;
            length++;
            if (s->rules->node[node].rule == MOIRAI_NONE)
                continue;
            if (util_grow(&s->match, &s->capacity, s->n_matches + 1, sizeof *s->match))
                return MOIRAI_EFAIL;
            s->match[s->n_matches++] = (match){s->post[i], s->place[v], length, s->rules->node[node].rule};
        }
    }
    return 0;
}

/* Stable counting sort from `match` to `sorted` and back; keys in [0, n_keys), largest first if `falling`. */
static int matches_sort(search *s, size_t key_offset, int32_t n_keys, bool falling)
{
    int64_t *start = util_alloc((size_t)n_keys + 1, sizeof *start);
    match *swap;

    if (!start)
        return MOIRAI_EFAIL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->n_matches; i++) {
            int32_t key;

            memcpy(&key, (const char *)&s->match[i] + key_offset, sizeof key);
            key = falling ? n_keys - 1 - key : key;
            if (pass)
                s->sorted[start[key]++] = s->match[i];
            else
                start[key + 1]++;
        }
        for (int32_t k = 0; !pass && k < n_keys; k++)
            start[k + 1] += start[k];
    }
    free(start);
    swap = s->match, s->match = s->sorted, s->sorted = swap;
    return 0;
}

static int match_take(search *s, const match *m)
{
    coarsen_fusions *f = s->f;
    int32_t v = m->first;

    for (int32_t i = 0; i < m->length; i++, v = f->next[v])
        if (f->group[v] != MOIRAI_NONE)
            return 0;
    if (util_grow(&f->fusion, &f->capacity, (size_t)f->n + 1, sizeof *f->fusion))
        return MOIRAI_EFAIL;
    v = m->first;
    for (int32_t i = 0; i < m->length; i++, v = f->next[v])
        f->group[v] = f->n;
    f->fusion[f->n++] = (coarsen_fusion){m->first, m->length, m->rule};
    return 0;
}

static int search_run(search *s)
{
    int rc;

    coarsen_rules_symbols(s->rules, s->g, s->symbol);
    for (int32_t i = 0; i < s->g->n_ops; i++) {
        s->f->next[i] = only_consumer(s->g, i);
        s->f->group[i] = MOIRAI_NONE;
    }
    forest_turn(s);
    forest_postorder(s);
    rc = matches_collect(s);
    if (rc)
        return rc;
    s->sorted = util_alloc(s->n_matches, sizeof *s->sorted);
    if (!s->sorted || matches_sort(s, offsetof(match, last), s->g->n_ops, false) ||
        matches_sort(s, offsetof(match, length), s->rules->longest + 1, true))
        return MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < s->n_matches; i++)
        rc = match_take(s, &s->match[i]);
    return rc;
}

int coarsen_fusions_find(coarsen_fusions *f, const moirai_graph *g, const moirai_rules *rules)
{
    size_t n = (size_t)g->n_ops;
    search s = {.g = g, .rules = rules, .f = f};
    int rc = MOIRAI_EFAIL;

    *f = (coarsen_fusions){.next = util_alloc(n, sizeof *f->next), .group = util_alloc(n, sizeof *f->group)};
    s.symbol = util_alloc(n, sizeof *s.symbol);
    s.child_off = util_alloc(n + 1, sizeof *s.child_off);
    s.child = util_alloc(n, sizeof *s.child);
    s.post = util_alloc(n, sizeof *s.post);
    s.place = util_alloc(n, sizeof *s.place);
    s.stack = util_alloc(n, sizeof *s.stack);
    if (f->next && f->group && s.symbol && s.child_off && s.child && s.post && s.place && s.stack)
        rc = search_run(&s);
    free(s.symbol);
    free(s.child_off);
    free(s.child);
    free(s.post);
    free(s.place);
    free(s.stack);
    free(s.match);
    free(s.sorted);
    if (rc)
        coarsen_fusions_free(f);
    return rc;
}

void coarsen_fusions_free(coarsen_fusions *f)
{
    free(f->fusion);
    free(f->next);
    free(f->group);
    *f = (coarsen_fusions){0};
}
