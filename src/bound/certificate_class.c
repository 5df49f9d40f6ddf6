/* The part of a certificate about a class of blocks: kinds and trees of its components, and its pairs of devices with their proofs.
 *
 * A pair lists the leaves of its branch and bound, each with its case and the prices that exclude a length. A leaf without prices
 * stands for the longest path, which the verifier computes by itself; so does a pair without leaves. Prices are mostly zero:
 * only the others are written. */
#include <stdlib.h>

#include "bound/certificate.h"
#include "util/util.h"

static void write_prices(util_writer *w, const moirai_problem *q, const pricing_duals *proof)
{
    const pricing_grid *grid = &proof->grid;
    int32_t buckets = grid->n_buckets, cells = schedule_resources(q) * buckets;
    util_writer_pair_int(w, "length_ns", grid->length_ns);
    util_writer_pair_int(w, "step_ns", grid->step_ns);
    util_writer_pair_open(w, "buckets", '[');
    for (int32_t i = 0; i <= buckets; i++)
        util_writer_int(w, grid->bucket_step[i]);
    util_writer_close(w, ']');
    util_writer_pair_open(w, "prices", '[');
    for (int32_t i = 0; i < cells; i++)
        if (proof->price[i]) {
            util_writer_int(w, i / buckets);
            util_writer_int(w, i % buckets);
            util_writer_int(w, proof->price[i]);
        }
    util_writer_close(w, ']');
    if (!proof->n_branches)
        return;
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
        int64_t number[5] = {kind, branch[i].op, branch[i].device, branch[i].least, branch[i].most};
        for (int32_t j = 0; j < 5; j++)
            util_writer_int(w, number[j]);
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

void bound_certificate_leaf(util_writer *w, const pair_state *x, int32_t sending, int32_t n_branches,
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
            bound_certificate_leaf(w, x, c->sending, c->n_branches, c->branch, &c->proof);
        util_writer_close(w, ']');
    }
    util_writer_close(w, '}');
}

static int32_t place_in_component(const decompose_block *b, int32_t op)
{
    int32_t x = b->component_off[b->op_component[op]];
    while (b->component_op[x] != op)
        x++;
    return x - b->component_off[b->op_component[op]];
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
            util_writer_int(w, place_in_component(b, edge[i].producer));
            util_writer_int(w, edge[i].tensor - q->op_out_off[edge[i].producer]);
            util_writer_int(w, place_in_component(b, edge[i].reader));
        }
        util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
    pricing_pricer_free(pricer);
    free(edge);
}

void bound_certificate_keys(util_writer *w, const pair_chain *c, int32_t class_, bool whole)
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
