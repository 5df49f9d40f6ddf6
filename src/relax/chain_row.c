/* Proofs of blocks in a row (chain.c), for a certificate. */
#include "relax/chain.h"
#include "relax/messages.h"
#include "util/util.h"

/* What proves most of a pair: its own proof, or the numbers of one of its ends. NULL: the longest path does. */
static const relax_leaf *end_of(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    const relax_pair *y = relax_pair_at(c, class_, k, l);
    const relax_leaf *best = NULL;
    int64_t most = UTIL_MAX(y->path_ns, y->proof.proven_ns);
    for (int32_t is_exit = 0; is_exit < 2; is_exit++) {
        const relax_leaf *leaf = &c->end[2 * class_ + is_exit].leaf[is_exit ? l : k];
        if (leaf->price && leaf->proven_ns > most) {
            best = leaf;
            most = leaf->proven_ns;
        }
    }
    return best;
}

static int take_end(relax_proof *out, const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    const decompose_block *b = c->block[class_];
    const relax_leaf *end = end_of(c, class_, k, l);
    relax_leaf leaf = {0};
    if (!end)
        return 0;
    relax_answer_clear(&(relax_answer){.proof = *out});
    *out = (relax_proof){0};
    int rc = relax_leaf_with(&leaf, end, &b->problem, (relax_fixed[]){{b->entry, k}, {b->exit, l}}, RELAX_ENDS);
    rc = rc ? rc : relax_proof_alone(out, &leaf);
    relax_leaf_clear(&leaf);
    return rc;
}

/* The proofs of pairs that have none of their own are copies: left out where a certificate would not hold them. */
static int take_ends(relax_chain *c)
{
    int64_t numbers = 0;
    int rc = 0;
    for (int32_t i = 0; i < c->cuts->n_classes * c->K * c->K; i++)
        if (end_of(c, i / c->K / c->K, i / c->K % c->K, i % c->K))
            numbers += (int64_t)2 * c->block[i / c->K / c->K]->problem.n_edges * c->K;
    for (int32_t i = 0; i < c->cuts->n_classes * c->K * c->K && numbers <= RELAX_MOST_NUMBERS && !rc; i++)
        rc = take_end(&c->pair[i].proof, c, i / c->K / c->K, i / c->K % c->K, i % c->K);
    return rc;
}

int relax_chain_keep(relax_row *row, relax_chain *c)
{
    int64_t pairs = (int64_t)c->cuts->n_classes * c->K * c->K;
    int rc = take_ends(c);
    if (rc)
        return rc;
    for (int64_t i = 0; i < pairs; i++)
        row->n_pairs += c->pair[i].proof.leaf != NULL;
    row->pair = util_alloc((size_t)row->n_pairs, sizeof *row->pair);
    row->n_pairs = 0;
    if (!row->pair)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < pairs; i++) {
        const decompose_block *b = c->block[i / c->K / c->K];
        if (!c->pair[i].proof.leaf)
            continue;
        int32_t k = (int32_t)(i / c->K % c->K), l = (int32_t)(i % c->K),
                ends = 2 - !b->first - (b->exit == MOIRAI_NONE);
        row->pair[row->n_pairs++] =
            (relax_row_pair){(int32_t)(i / c->K / c->K), k, l, ends, b->problem.n_edges, c->pair[i].proof};
        c->pair[i].proof = (relax_proof){0};
    }
    return 0;
}
