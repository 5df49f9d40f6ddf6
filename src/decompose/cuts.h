/* Cuts, blocks and classes of equal blocks of a problem. */
#ifndef MOIRAI_DECOMPOSE_CUTS_H
#define MOIRAI_DECOMPOSE_CUTS_H

#include <moirai/problem.h>

#include "util/util.h"

#define DECOMPOSE_MOST_UNITS (INT64_C(1) << 18)  /* of price per nanosecond */
#define DECOMPOSE_MOST_LENGTH (INT64_C(1) << 54) /* of a plan, in units */

/* Block b lies between cut b-1 and cut b, in topological order: block 0 before the first cut (often empty),
 * block n_cuts after the last. */
typedef struct decompose_cuts {
    int32_t n_cuts;
    int32_t *cut;         /* operators, in topological order */
    int32_t n_blocks;     /* n_cuts + 1 */
    int32_t *block_first; /* position in p->topo of the first interior operator */
    int32_t *block_size;  /* interior operators */
    int32_t *block_class; /* blocks of one class are copies of each other, operator by operator */
    int32_t n_classes;
    int32_t *class_block; /* the first block of each class */
    int32_t *class_count; /* how many blocks it has */
    int32_t *number;      /* working memory of decompose_block_new: per operator, MOIRAI_NONE */
    int64_t unit; /* so many units of price make a nanosecond: fewer where times are long, so that all fit 64 bits */
    util_memory memory; /* of all arrays */
} decompose_cuts;

int decompose_cuts_new(decompose_cuts **out, const moirai_problem *p);
/* The same with those cuts alone that `chosen` marks (per operator): blocks are the larger, and edges that would jump
 * over the others lie inside them. */
int decompose_cuts_chosen(decompose_cuts **out, const moirai_problem *p, const bool *chosen);
/* Which positions of the topological order hold cuts, were the operators that `gone` marks (may be NULL) not there. */
int decompose_cuts_find(bool *is_cut, const moirai_problem *p, const bool *gone);
/* Marks the operators (per operator) that are cuts over which no edge jumps: what a block between two of them takes depends on their devices
 * alone. */
int decompose_cuts_clean(bool *clean, const moirai_problem *p);
void decompose_cuts_free(decompose_cuts *s);

static inline int32_t decompose_entry(const decompose_cuts *s, int32_t block)
{
    return block > 0 ? s->cut[block - 1] : MOIRAI_NONE;
}

static inline int32_t decompose_exit(const decompose_cuts *s, int32_t block)
{
    return block < s->n_cuts ? s->cut[block] : MOIRAI_NONE;
}

#endif
