/* Paths through blocks in a row (chain.c), and plans along them: the devices of each pair's choice, along the path of least loads. */
#include <stdlib.h>

#include "relax/chain.h"
#include "relax/relax_tuning.h"
#include "util/util.h"

/* ---- the shortest path ---- */

static int64_t proven(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    int64_t ends = UTIL_MAX(relax_pair_at(c, class_, k, c->K)->lower_ns, relax_pair_at(c, class_, c->K, l)->lower_ns);
    return UTIL_MAX(relax_pair_at(c, class_, k, l)->lower_ns, ends);
}

/* What the way between two cuts takes: proven, or, for plans, the loads of a choice. */
static int64_t way(const relax_chain *c, int32_t block, int32_t k, int32_t l, bool loads)
{
    int32_t class_ = c->cuts->block_class[block];
    int64_t lower = proven(c, class_, k, l);
    return !loads || c->block[class_]->n_interior < RELAX_CHAIN_LEAST_BLOCK
               ? lower
               : UTIL_MAX(relax_pair_at(c, class_, k, l)->choice.load_ns, lower);
}

int64_t relax_chain_path(relax_chain *c, bool loads)
{
    int32_t K = c->K, n = c->cuts->n_cuts;
    for (int32_t b = 0; b <= n; b++) /* the last block has no exit, and the first no entry: both on device 0 */
        for (int32_t l = 0; l < (b < n ? K : 1); l++) {
            int64_t best = RELAX_NEVER, at = (int64_t)b * K + l;
            for (int32_t k = 0; k < (b ? K : 1); k++) {
                int64_t begin = b ? c->reach[at - l - K + k] : 0;
                int64_t end = begin >= RELAX_NEVER ? RELAX_NEVER : begin + way(c, b, k, l, loads);
                if (end < best) {
                    best = end;
                    c->before[at] = k;
                }
            }
            bool may = b == n || c->p->op_devices[c->cuts->cut[b]] >> l & 1;
            c->reach[at] =
                !may || best >= RELAX_NEVER ? RELAX_NEVER : best + (b < n ? moirai_op_ns(c->p, c->cuts->cut[b], l) : 0);
        }
    for (int32_t b = n - 1, at = 0; b >= 0; b--)
        c->path[b] = at = c->before[(int64_t)(b + 1) * K + at];
    return c->reach[(int64_t)n * K];
}

void relax_chain_ends(const relax_chain *c, int32_t block, int32_t *k, int32_t *l)
{
    *k = block > 0 ? c->path[block - 1] : 0;
    *l = block < c->cuts->n_cuts ? c->path[block] : 0;
}

/* ---- plans ---- */

/* Devices of a block, and of the cut behind it. */
static void choose_block(relax_choice *out, const relax_chain *c, int32_t b)
{
    int32_t class_ = c->cuts->block_class[b], k, l;
    const decompose_block *block = c->block[class_];
    relax_chain_ends(c, b, &k, &l);
    const relax_choice *own = &relax_pair_at(c, class_, k, l)->choice;
    int32_t near = b < c->cuts->n_cuts ? l : k;
    for (int32_t i = block->first; i < block->first + block->n_interior; i++) {
        int32_t op = decompose_block_global_op(block, c->p, c->cuts, b, i);
        bool may = c->p->op_devices[op] >> near & 1; /* where the block has no choice */
        out->device[op] = own->device ? own->device[i]
                          : may       ? (uint8_t)near
                                      : (uint8_t)__builtin_ctzll(c->p->op_devices[op]);
    }
    if (b < c->cuts->n_cuts)
        out->device[c->cuts->cut[b]] = (uint8_t)c->path[b];
}

/* Devices of the path of least loads, or of the bound's. */
int relax_chain_choose(relax_choice *out, relax_chain *c, bool loads)
{
    out->load_ns = relax_chain_path(c, loads);
    out->device = util_alloc((size_t)c->p->n_ops, sizeof *out->device);
    if (!out->device)
        return MOIRAI_EFAIL;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++)
        choose_block(out, c, b);
    return 0;
}
