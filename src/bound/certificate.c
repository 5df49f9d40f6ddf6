/* The certificate: everything that a verifier needs to prove the chain's bound again (docs/certificate.md).
 *
 * Cuts and classes say how the problem was taken apart; each class lists what is proven of its pairs of devices. A pair lists the
 * leaves of its branch and bound, each with its case and the prices that exclude a length. A leaf without prices stands for the
 * longest path, which the verifier computes by itself; so does a pair without leaves. Prices are mostly zero: only the others are
 * written. Where work floats, its operators are listed and everything else is about the problem without them, in its numbers. */
#include "bound/certificate.h"

#include <stdlib.h>

#include "util/util.h"

/* ---- a pair ---- */

static void write_prices(util_writer *w, const moirai_problem *q, const pricing_duals *proof)
{
    const pricing_grid *grid = &proof->grid;
    int32_t buckets = grid->n_buckets, cells = schedule_resources(q) * buckets;
    util_writer_pair_int(w, "length_ns", grid->length_ns);
    util_writer_pair_int(w, "step_ns", grid->step_ns);
    util_writer_pair_ints(w, "buckets", grid->bucket_step, buckets + 1);
    util_writer_pair_open(w, "prices", '[');
    for (int32_t i = 0; i < cells; i++)
        if (proof->price[i]) {
            util_writer_int(w, i / buckets);
            util_writer_int(w, i % buckets);
            util_writer_int(w, proof->price[i]);
        }
    util_writer_close(w, ']');
    if (proof->n_branches)
        util_writer_pair_longs(w, "count_prices", proof->price + cells, proof->n_branches);
}

static void write_branches(util_writer *w, int32_t n, const pricing_branch *branch)
{
    if (!n)
        return;
    util_writer_pair_open(w, "counts", '[');
    for (int32_t i = 0; i < n; i++) {
        /* The format numbers what is divided on by the kind: arrivals are -1, lengths -2. */
        int64_t kind = branch[i].on == PRICING_NUMBER ? branch[i].kind : branch[i].on == PRICING_ARRIVAL ? -1 : -2;
        util_writer_int(w, kind);
        util_writer_int(w, branch[i].op);
        util_writer_int(w, branch[i].device);
        util_writer_int(w, branch[i].least);
        util_writer_int(w, branch[i].most);
    }
    util_writer_close(w, ']');
}

static void write_receivers(util_writer *w, const pricing_sending *how)
{
    if (!how->fixed)
        return;
    util_writer_pair_open(w, "receivers", '[');
    for (int32_t i = 0; i < how->n_receivers; i++)
        util_writer_int(w, how->receiver[i]);
    util_writer_close(w, ']');
    if (how->open) {
        util_writer_key(w, "open");
        util_writer_bool(w, true);
    }
}

/* A case of a pair and, where it has them, its prices. */
static void write_leaf(util_writer *w, const pair_state *x, int32_t sending, int32_t n_branches,
                       const pricing_branch *branch, const pricing_duals *proof)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    write_receivers(w, &x->sending.how[sending]);
    write_branches(w, n_branches, branch);
    if (proof->price)
        write_prices(w, &x->block.problem, proof);
    util_writer_close(w, '}');
}

/* Transfers are named by an edge of theirs. */
static int64_t tree_number(const moirai_problem *q, int64_t number)
{
    int64_t slot = number - q->n_ops, K = q->n_devices;
    if (slot < 0 || q->flow == MOIRAI_FLOW_EDGE)
        return number;
    return q->n_ops + q->tensor_edge_off[slot / K] * K + slot % K;
}

static void write_search(util_writer *w, const moirai_problem *q, const pair_search_proof *s)
{
    util_writer_break(w);
    util_writer_pair_open(w, "search", '{');
    util_writer_pair_int(w, "length_ns", s->length_ns);
    util_writer_pair_open(w, "tree", '[');
    for (size_t i = 0; i < s->n_tree; i++)
        util_writer_int(w, tree_number(q, s->tree[i]));
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static void write_pair(util_writer *w, const pair_state *x, int32_t a, int32_t b)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_int(w, "entry", a);
    util_writer_pair_int(w, "exit", b);
    util_writer_pair_int(w, "lower_ns", pair_certified_ns(x));
    if (x->loads.proof.proven_ns >= pair_certified_ns(x))
        relax_proof_write(w, &x->loads.proof, &x->block.problem);
    if (x->search.n_tree)
        write_search(w, &x->block.problem, &x->search);
    if (pair_leaves_ns(x) >= pair_certified_ns(x)) { /* else they say less than what is written above */
        pair_leaves leaves = pair_leaves_best(x);
        util_writer_pair_open(w, "leaves", '[');
        for (const pair_case *c = leaves.cases; c < leaves.cases + leaves.n; c++)
            write_leaf(w, x, c->sending, c->n_branches, c->branch, &c->proof);
        util_writer_close(w, ']');
    }
    util_writer_close(w, '}');
}

static void write_trees(util_writer *w, const decompose_block *b)
{
    const moirai_problem *q = &b->problem;
    pricing_pricer *pricer = NULL;
    pricing_tree_edge *edge = util_alloc((size_t)q->n_ops, sizeof *edge);
    w->failed |= !edge || pricing_pricer_new(&pricer, b, 1);
    util_writer_break(w);
    util_writer_pair_open(w, "trees", '[');
    for (int32_t kind = 0; kind < b->n_kinds && !w->failed; kind++) {
        int32_t n = pricing_pricer_tree(pricer, kind, edge);
        util_writer_open(w, '[');
        for (int32_t i = 0; i < n; i++) {
            util_writer_int(w, b->op_place[edge[i].producer]);
            util_writer_int(w, edge[i].tensor - q->op_out_off[edge[i].producer]);
            util_writer_int(w, b->op_place[edge[i].reader]);
        }
        util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
    pricing_pricer_free(pricer);
    free(edge);
}

/* The keys of a class of blocks; `whole`: kinds and trees are wanted also without pairs. */
static void write_class(util_writer *w, const pair_chain *c, int32_t class_, bool whole)
{
    const decompose_block *b = c->block[class_];
    int32_t shared = b ? decompose_block_shared_tensor(b) : MOIRAI_NONE, pairs = 0;
    for (int32_t i = 0; i < c->K * c->K; i++)
        pairs += pair_certifies_more(pair_chain_get(c, (int64_t)class_ * c->K * c->K + i));
    if (!b || !(pairs || (whole && b->n_interior)))
        return;
    util_writer_break(w);
    util_writer_pair_ints(w, "component_kind", b->component_kind, b->n_components);
    write_trees(w, b);
    if (shared >= 0)
        util_writer_pair_int(w, "shared", shared - b->problem.op_out_off[b->entry]);
    util_writer_break(w);
    util_writer_pair_open(w, "pairs", '[');
    for (int32_t i = 0; i < c->K * c->K; i++) {
        const pair_state *x = pair_chain_get(c, (int64_t)class_ * c->K * c->K + i);
        if (pair_certifies_more(x))
            write_pair(w, x, i / c->K, i % c->K);
    }
    util_writer_close(w, ']');
}

/* ---- bytes: at the prices that gave the best bound, all pairs that were refined; what the verifier will find is computed in the
 * same way, with the certified lengths in place of the proven ones ---- */

/* Writes the pair's cases if they tell more than its length does; *value: in units. */
static void write_priced_pair(util_writer *w, const pair_chain *c, bytes_prices *m, int32_t index, int64_t *value)
{
    pair_priced *v = bytes_priced_at(m, index);
    const pair_state *x = pair_chain_get(c, index);
    const int64_t *price = bytes_prices_per_byte(m);
    int64_t lower = pair_certified_ns(x), least = INT64_MAX;
    int32_t K = c->K;
    *value = pricing_units(x->block.unit, lower) + pair_priced_cheapest_bytes(&x->block, price, NULL);
    for (int32_t i = 0; i < v->n_cases; i++)
        least = UTIL_MIN(least, pair_priced_of_case(v, &v->cases[i], price, lower));
    if (!v->n_cases || least <= *value)
        return;
    *value = least;
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_int(w, "class", index / (K * K));
    util_writer_pair_int(w, "entry", index / K % K);
    util_writer_pair_int(w, "exit", index % K);
    util_writer_pair_open(w, "leaves", '[');
    for (const pair_priced_case *y = v->cases; y < v->cases + v->n_cases; y++)
        write_leaf(w, x, y->sending, y->n_branches, y->branch, &y->found.prices);
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

/* Returns what it proves. */
static int64_t write_bytes(util_writer *w, const pair_chain *c, bytes_prices *m)
{
    int32_t n = c->s->n_classes * c->K * c->K;
    int64_t *value = util_alloc((size_t)n, sizeof *value);
    w->failed |= !value;
    util_writer_break(w);
    util_writer_pair_open(w, "memory", '{');
    util_writer_pair_int(w, "unit", c->s->unit);
    util_writer_pair_longs(w, "byte_prices", bytes_prices_per_byte(m), c->K);
    util_writer_pair_open(w, "pairs", '[');
    for (int32_t i = 0; i < n && !w->failed; i++)
        if (c->pair[i])
            write_priced_pair(w, c, m, i, &value[i]);
    util_writer_close(w, ']');
    util_writer_close(w, '}');
    int64_t proven_ns = w->failed ? 0 : bytes_proven_ns(m, value);
    free(value);
    return proven_ns;
}

/* ---- the whole ---- */

static void write_classes(util_writer *w, const pair_chain *c, bool whole)
{
    relax_certificate_cuts(w, c->s->n_cuts, c->s->cut, c->s->block_class);
    for (int32_t i = 0; !w->failed && i < c->s->n_classes; i++) {
        util_writer_break(w);
        util_writer_open(w, '{');
        write_class(w, c, i, whole);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_floating(util_writer *w, const decompose_spine *spine)
{
    util_writer_break(w);
    util_writer_key(w, "floating");
    util_writer_open(w, '[');
    for (int32_t i = 0; i < spine->whole->n_ops; i++)
        if (spine->floating[i])
            util_writer_int(w, i);
    util_writer_close(w, ']');
}

/* The claims come last: what the bytes prove is known only then. */
static void write_all(util_writer *w, bound_certificate *from)
{
    const pair_chain *c = from->c;
    int64_t certified = from->chain_ns, by_memory = 0;
    if (certified <= 0)
        certified = pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
    relax_certificate_names(w, from->spine ? from->spine->whole : c->p);
    if (from->spine)
        write_floating(w, from->spine);
    write_classes(w, c, from->memory != NULL);
    if (from->memory)
        by_memory = write_bytes(w, c, from->memory);
    util_writer_break(w);
    util_writer_pair_int(w, "lower_bound_ns", from->lower_bound_ns);
    from->certified_ns = UTIL_MIN(UTIL_MAX(certified, by_memory), from->lower_bound_ns);
    util_writer_pair_int(w, "certified_bound_ns", from->certified_ns);
    util_writer_close(w, '}');
}

int bound_certificate_write(bound_certificate *from, const char *path)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_save(&w, path);
}

char *bound_certificate_text(bound_certificate *from, size_t *length)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_take(&w, length);
}
