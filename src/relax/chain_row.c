/* Proofs of blocks in a row (chain.c), for a certificate. */
#include "relax/chain.h"
#include "relax/messages.h"
#include "util/util.h"

/* What proves more of a pair than its own proof and the longest path: the numbers of one of its ends. NULL: nothing does. */
static const relax_leaf *end_of(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    const relax_pair *y = relax_pair_at(c, class_, k, l),
                     *end[] = {relax_pair_at(c, class_, k, c->K), relax_pair_at(c, class_, c->K, l)};
    const relax_leaf *best = NULL;
    int64_t most = UTIL_MAX(y->path_ns, y->proof.proven_ns);
    for (int32_t i = 0; i < 2; i++)
        if (end[i]->proof.proven_ns > most) {
            best = end[i]->proof.leaf;
            most = end[i]->proof.proven_ns;
        }
    return best;
}

/* The proof of a pair that has none of its own: a copy, with both ends fixed. */
static int take_end(relax_proof *out, const relax_leaf *end, const decompose_block *b, int32_t k, int32_t l)
{
    relax_leaf leaf;
    relax_answer_clear(&(relax_answer){.proof = *out});
    *out = (relax_proof){0};
    int rc = relax_leaf_with(&leaf, end, &b->problem, (relax_fixed[]){{b->entry, k}, {b->exit, l}}, RELAX_ENDS);
    rc = rc ? rc : relax_proof_alone(out, &leaf);
    relax_leaf_clear(&leaf);
    return rc;
}

/* Copies are left out where a certificate would not hold them. */
int relax_chain_keep(relax_row *row, relax_chain *c)
{
    int32_t K = c->K, pairs = c->cuts->n_classes * K * K;
    int64_t numbers = 0;
    int rc = 0;
    for (int32_t i = 0; i < pairs; i++) {
        bool copied = end_of(c, i / K / K, i / K % K, i % K) != NULL;
        numbers += copied ? (int64_t)2 * c->block[i / K / K]->problem.n_edges * K : 0;
        row->n_pairs += copied || relax_pair_at(c, i / K / K, i / K % K, i % K)->proof.leaf;
    }
    row->pair = util_alloc((size_t)row->n_pairs, sizeof *row->pair);
    row->n_pairs = 0;
    for (int32_t i = 0; i < pairs && row->pair && !rc; i++) {
        int32_t class_ = i / K / K, k = i / K % K, l = i % K;
        const decompose_block *b = c->block[class_];
        const relax_leaf *end = numbers <= RELAX_MOST_NUMBERS ? end_of(c, class_, k, l) : NULL;
        relax_proof *proof = &relax_pair_at(c, class_, k, l)->proof;
        rc = end ? take_end(proof, end, b, k, l) : 0;
        if (rc || !proof->leaf)
            continue;
        row->pair[row->n_pairs++] =
            (relax_row_pair){class_, k, l, 2 - !b->first - (b->exit == MOIRAI_NONE), b->problem.n_edges, *proof};
        *proof = (relax_proof){0};
    }
    return row->pair ? rc : MOIRAI_EFAIL;
}
