/* The certificate: everything that a verifier needs to prove the chain's bound again (docs/certificate.md).
 *
 * Cuts, classes, kinds and trees say how the problem was taken apart; each pair of devices of a class lists the leaves
 * of its branch and bound, each with its case and the prices that exclude a length. A leaf without prices stands for
 * the longest path, which the verifier computes by itself; so does a pair without leaves. What the exhaustive search
 * has proven leaves no prices behind: such a pair claims what its leaves prove. Prices are mostly zero: only the others
 * are written. Where work floats, its operators are listed and everything else is about the problem without them, in
 * its numbers. */
#include "place/moirai/certificate.h"

#include <stdlib.h>

#include "util/util.h"

static void write_list(moirai_writer *w, const char *key, const int32_t *value, int32_t n)
{
    moirai_writer_break(w);
    moirai_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        moirai_writer_int(w, value[i]);
    moirai_writer_close(w, ']');
}

static void write_prices(moirai_writer *w, const moirai_problem *q, const moirai_proof_prices *proof)
{
    const moirai_grid *grid = &proof->grid;
    int32_t buckets = grid->n_buckets, cells = moirai_resource_count(q) * buckets;
    moirai_writer_pair_int(w, "length_ns", grid->length_ns);
    moirai_writer_pair_int(w, "step_ns", grid->step_ns);
    moirai_writer_pair_open(w, "buckets", '[');
    for (int32_t i = 0; i <= buckets; i++)
        moirai_writer_int(w, grid->bucket_step[i]);
    moirai_writer_close(w, ']');
    moirai_writer_pair_open(w, "prices", '[');
    for (int32_t i = 0; i < cells; i++)
        if (proof->price[i]) {
            moirai_writer_int(w, i / buckets);
            moirai_writer_int(w, i % buckets);
            moirai_writer_int(w, proof->price[i]);
        }
    moirai_writer_close(w, ']');
    if (!proof->n_counts)
        return;
    moirai_writer_pair_open(w, "count_prices", '[');
    for (int32_t i = 0; i < proof->n_counts; i++)
        moirai_writer_int(w, proof->price[cells + i]);
    moirai_writer_close(w, ']');
}

static void write_counts(moirai_writer *w, int32_t n, const moirai_count *count)
{
    if (!n)
        return;
    moirai_writer_pair_open(w, "counts", '[');
    for (int32_t i = 0; i < n; i++) {
        int64_t number[5] = {count[i].kind, count[i].op, count[i].device, count[i].least, count[i].most};
        for (int32_t j = 0; j < 5; j++)
            moirai_writer_int(w, number[j]);
    }
    moirai_writer_close(w, ']');
}

static void write_receivers(moirai_writer *w, const moirai_sending *how)
{
    if (!how->fixed)
        return;
    moirai_writer_pair_open(w, "receivers", '[');
    for (int32_t i = 0; i < how->n_receivers; i++)
        moirai_writer_int(w, how->receiver[i]);
    moirai_writer_close(w, ']');
}

void moirai_certificate_leaf(moirai_writer *w, const moirai_pair *x, int32_t sending, int32_t n_counts,
                             const moirai_count *count, const moirai_proof_prices *proof)
{
    moirai_writer_break(w);
    moirai_writer_open(w, '{');
    write_receivers(w, &x->sending[sending]);
    write_counts(w, n_counts, count);
    if (proof->price)
        write_prices(w, &x->block.problem, proof);
    moirai_writer_close(w, '}');
}

/* The verifier finds longest paths alone: a pair that proves no more is left out. */
static bool worth_writing(const moirai_pair *x)
{
    return x->open && x->block.n_interior > 0 && moirai_pair_certified_ns(x) > x->path_ns;
}

static void write_pair(moirai_writer *w, const moirai_pair *x, int32_t a, int32_t b)
{
    moirai_writer_break(w);
    moirai_writer_open(w, '{');
    moirai_writer_pair_int(w, "entry", a);
    moirai_writer_pair_int(w, "exit", b);
    moirai_writer_pair_int(w, "lower_ns", moirai_pair_certified_ns(x));
    moirai_writer_pair_open(w, "leaves", '[');
    for (const moirai_case *c = x->cases; c < x->cases + x->n_cases; c++)
        moirai_certificate_leaf(w, x, c->sending, c->n_counts, c->count, &c->proof);
    moirai_writer_close(w, ']');
    moirai_writer_close(w, '}');
}

static int32_t place_in_component(const moirai_block *b, int32_t op)
{
    int32_t x = b->component_off[b->op_component[op]];
    while (b->component_op[x] != op)
        x++;
    return x - b->component_off[b->op_component[op]];
}

static int write_trees(moirai_writer *w, const moirai_block *b)
{
    const moirai_problem *q = &b->problem;
    moirai_pricer *pricer;
    moirai_tree_edge *edge = moirai_alloc((size_t)q->n_ops, sizeof *edge);
    if (!edge || moirai_pricer_new(&pricer, b, 1)) {
        free(edge);
        return MOIRAI_EFAIL;
    }
    moirai_writer_break(w);
    moirai_writer_pair_open(w, "trees", '[');
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t n = moirai_pricer_tree(pricer, kind, edge);
        moirai_writer_open(w, '[');
        for (int32_t i = 0; i < n; i++) {
            moirai_writer_int(w, place_in_component(b, edge[i].producer));
            moirai_writer_int(w, edge[i].tensor - q->op_out_off[edge[i].producer]);
            moirai_writer_int(w, place_in_component(b, edge[i].reader));
        }
        moirai_writer_close(w, ']');
    }
    moirai_writer_close(w, ']');
    moirai_pricer_free(pricer);
    free(edge);
    return MOIRAI_OK;
}

/* `whole`: kinds and trees are wanted also without pairs. */
static int write_class(moirai_writer *w, const moirai_chain *c, int32_t class_, bool whole)
{
    const moirai_block *b = c->block[class_];
    int32_t shared = moirai_block_shared_tensor(b), pairs = 0;
    int result = MOIRAI_OK;
    moirai_writer_break(w);
    moirai_writer_open(w, '{');
    for (int32_t i = 0; i < c->K * c->K; i++)
        pairs += worth_writing(moirai_chain_pair(c, class_, i / c->K, i % c->K));
    if (pairs || (whole && b->n_interior)) {
        write_list(w, "component_kind", b->component_kind, b->n_components);
        result = write_trees(w, b);
        if (shared >= 0)
            moirai_writer_pair_int(w, "shared", shared - b->problem.op_out_off[b->entry]);
        moirai_writer_break(w);
        moirai_writer_pair_open(w, "pairs", '[');
        for (int32_t i = 0; i < c->K * c->K; i++) {
            const moirai_pair *x = moirai_chain_pair(c, class_, i / c->K, i % c->K);
            if (worth_writing(x))
                write_pair(w, x, i / c->K, i % c->K);
        }
        moirai_writer_close(w, ']');
    }
    moirai_writer_close(w, '}');
    return result;
}

static int write_classes(moirai_writer *w, const moirai_chain *c, bool whole)
{
    write_list(w, "cuts", c->s->cut, c->s->n_cuts);
    write_list(w, "block_class", c->s->block_class, c->s->n_blocks);
    moirai_writer_break(w);
    moirai_writer_pair_open(w, "classes", '[');
    int result = MOIRAI_OK;
    for (int32_t i = 0; !result && i < c->s->n_classes; i++)
        result = write_class(w, c, i, whole);
    moirai_writer_close(w, ']');
    return result;
}

static void write_floating(moirai_writer *w, const moirai_spine *spine)
{
    moirai_writer_break(w);
    moirai_writer_key(w, "floating");
    moirai_writer_open(w, '[');
    for (int32_t i = 0; i < spine->whole->n_ops; i++)
        if (spine->floating[i])
            moirai_writer_int(w, i);
    moirai_writer_close(w, ']');
}

/* The claims come last: what the bytes prove is known only then. */
static int write_all(moirai_writer *w, const moirai_certificate *from)
{
    const moirai_chain *c = from->c;
    int64_t certified = moirai_chain_path(c, MOIRAI_CHAIN_CERTIFIED, NULL), by_memory = 0;
    moirai_writer_begin(w, "moirai-certificate");
    moirai_writer_pair_string(w, "problem", c->p->name);
    moirai_writer_pair_int(w, "operators", from->spine ? from->spine->whole->n_ops : c->p->n_ops);
    if (from->spine)
        write_floating(w, from->spine);
    int result = write_classes(w, c, from->memory != NULL);
    if (!result && from->memory)
        result = moirai_certificate_memory(w, c, from->memory, &by_memory);
    moirai_writer_break(w);
    moirai_writer_pair_int(w, "lower_bound_ns", from->lower_bound_ns);
    moirai_writer_pair_int(w, "certified_bound_ns", MOIRAI_MIN(MOIRAI_MAX(certified, by_memory), from->lower_bound_ns));
    moirai_writer_close(w, '}');
    return result;
}

int moirai_certificate_write(const moirai_certificate *from, const char *path)
{
    moirai_writer w;
    int result = write_all(&w, from);
    if (!result)
        return moirai_writer_save(&w, path);
    moirai_writer_free(&w);
    return result;
}

char *moirai_certificate_text(const moirai_certificate *from, size_t *length)
{
    moirai_writer w;
    if (!write_all(&w, from))
        return moirai_writer_take(&w, length);
    moirai_writer_free(&w);
    return NULL;
}
