/* Paths through blocks in a row (chain.c), and plans along them: the devices of each pair's choice, along the path of least loads. */
#include <stdlib.h>

#include "relax/chain.h"
#include "relax/relax_tuning.h"
#include "util/pool.h"
#include "util/util.h"

static relax_pair *pair_of(const relax_chain *c, int32_t block, int32_t k, int32_t l)
{
    return relax_pair_at(c, c->cuts->block_class[block], k, l);
}

/* ---- the shortest path ---- */

static int64_t proven(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    int64_t ends = UTIL_MAX(c->end[2 * class_].lower_ns[k], c->end[2 * class_ + 1].lower_ns[l]);
    return UTIL_MAX(relax_pair_at(c, class_, k, l)->lower_ns, ends);
}

/* What the way between two cuts takes: proven, or, for plans, the loads of a choice. */
static int64_t way(const relax_chain *c, int32_t block, int32_t k, int32_t l, bool loads)
{
    int32_t class_ = c->cuts->block_class[block];
    int64_t lower = proven(c, class_, k, l);
    return !loads || c->block[class_]->n_interior < RELAX_CHAIN_LEAST_BLOCK
               ? lower
               : UTIL_MAX(pair_of(c, block, k, l)->choice.load_ns, lower);
}

int64_t relax_chain_path(relax_chain *c, bool loads)
{
    int32_t K = c->K, n = c->cuts->n_cuts;
    for (int32_t b = 0; b < n; b++)
        for (int32_t l = 0; l < K; l++) {
            int64_t best = RELAX_NEVER;
            int32_t cut = c->cuts->cut[b], from = 0;
            for (int32_t k = 0; k < (b ? K : 1); k++) {
                int64_t at = (b ? c->reach[(int64_t)(b - 1) * K + k] : 0);
                at = at >= RELAX_NEVER ? RELAX_NEVER : UTIL_MIN(RELAX_NEVER, at + way(c, b, k, l, loads));
                if (at < best) {
                    best = at;
                    from = k;
                }
            }
            bool may = c->p->op_devices[cut] >> l & 1;
            c->reach[(int64_t)b * K + l] =
                !may || best >= RELAX_NEVER ? RELAX_NEVER : best + moirai_op_ns(c->p, cut, l);
            c->before[(int64_t)b * K + l] = from;
        }
    int64_t best = RELAX_NEVER;
    int32_t at = 0;
    for (int32_t k = 0; k < K; k++) {
        int64_t end = c->reach[(int64_t)(n - 1) * K + k];
        if (end < RELAX_NEVER && end + way(c, n, k, 0, loads) < best) {
            best = end + way(c, n, k, 0, loads);
            at = k;
        }
    }
    for (int32_t b = n - 1; b >= 0; b--) {
        c->path[b] = at;
        at = c->before[(int64_t)b * K + at];
    }
    return best;
}

int32_t relax_chain_pair(const relax_chain *c, int32_t block)
{
    int32_t k = block > 0 ? c->path[block - 1] : 0, l = block < c->cuts->n_cuts ? c->path[block] : 0;
    return (int32_t)(pair_of(c, block, k, l) - c->pair);
}

/* ---- plans ---- */

/* The choice of a pair as a plan of its block: now its length counts. */
static int plan_pair(void *data, int32_t which)
{
    relax_chain *c = data;
    int32_t at = c->due[which];
    const decompose_block *b = c->block[at / (c->K * c->K)];
    relax_pair *y = &c->pair[at];
    bool *keep = util_alloc((size_t)b->problem.n_ops, sizeof *keep);
    if (!keep)
        return MOIRAI_EFAIL;
    if (b->entry != MOIRAI_NONE)
        keep[b->entry] = true;
    if (b->exit != MOIRAI_NONE)
        keep[b->exit] = true;
    int64_t length = 0;
    int rc = relax_polish(&y->choice, &length, &b->problem, keep, c->job->evaluations, (uint64_t)at, &c->job->stop);
    if (!rc)
        y->choice.load_ns = UTIL_MIN(length, RELAX_NEVER);
    free(keep);
    return rc;
}

/* Plans for the pairs on the path of least lengths, until all of them have one. */
int relax_chain_plan(relax_chain *c)
{
    int rc = 0;
    do {
        relax_chain_path(c, true);
        c->n_due = 0;
        for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
            relax_pair *y = &c->pair[relax_chain_pair(c, b)];
            if (y->choice.device && !y->planned)
                c->due[c->n_due++] = (int32_t)(y - c->pair);
            y->planned = true;
        }
        rc = util_pool_run(plan_pair, c, c->n_due, c->job->threads);
    } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
    return rc;
}

/* Devices and order of a block's plan, which begins at *now_ns, when the blocks before it have ended. */
static void choose_block(relax_choice *out, const relax_chain *c, int32_t b, int64_t *now_ns)
{
    const decompose_block *block = c->block[c->cuts->block_class[b]];
    const relax_pair *y = &c->pair[relax_chain_pair(c, b)];
    const relax_choice *own = &y->choice;
    int32_t near = b < c->cuts->n_cuts ? c->path[b] : b > 0 ? c->path[b - 1] : 0;
    for (int32_t i = block->first; i < block->first + block->n_interior; i++) {
        int32_t op = decompose_block_global_op(block, c->p, c->cuts, b, i);
        bool may = c->p->op_devices[op] >> near & 1; /* where the block has no choice */
        out->device[op] = own->device ? own->device[i]
                          : may       ? (uint8_t)near
                                      : (uint8_t)__builtin_ctzll(c->p->op_devices[op]);
        out->start_ns[op] = *now_ns + (own->start_ns ? own->start_ns[i] : 0);
    }
    *now_ns += own->start_ns ? own->load_ns : y->lower_ns;
    if (b < c->cuts->n_cuts) {
        out->device[c->cuts->cut[b]] = (uint8_t)c->path[b];
        out->start_ns[c->cuts->cut[b]] = (*now_ns)++;
    }
}

/* Devices of the path of least loads, or of the bound's. */
int relax_chain_choose(relax_choice *out, relax_chain *c, bool loads)
{
    int64_t now = 0;
    out->load_ns = relax_chain_path(c, loads);
    out->device = util_alloc((size_t)c->p->n_ops, sizeof *out->device);
    out->start_ns = util_alloc((size_t)c->p->n_ops, sizeof *out->start_ns);
    if (!out->device || !out->start_ns)
        return MOIRAI_EFAIL;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++)
        choose_block(out, c, b, &now);
    return 0;
}
