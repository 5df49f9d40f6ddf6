/* Cuts, blocks and classes of equal blocks of a problem. */
#ifndef MOIRAI_STRUCTURE_H
#define MOIRAI_STRUCTURE_H

#include <moirai/problem.h>

/* Block b lies between cut b-1 and cut b, in topological order: block 0 before the first cut (often empty),
 * block n_cuts after the last. */
typedef struct moirai_structure {
    int32_t n_cuts;
    int32_t *cut;         /* operators, in topological order */
    int32_t n_blocks;     /* n_cuts + 1 */
    int32_t *block_first; /* position in p->topo of the first interior operator */
    int32_t *block_size;  /* interior operators */
    int32_t *block_class; /* blocks of one class are copies of each other, operator by operator */
    int32_t n_classes;
    int32_t *class_block; /* the first block of each class */
    int32_t *class_count; /* how many blocks it has */
} moirai_structure;

int moirai_structure_new(moirai_structure **out, const moirai_problem *p);
/* Which positions of the topological order hold cuts, were the operators that `gone` marks (may be NULL) not there. */
int moirai_structure_cuts(bool *is_cut, const moirai_problem *p, const bool *gone);
void moirai_structure_free(moirai_structure *s);

static inline int32_t moirai_block_entry(const moirai_structure *s, int32_t block)
{
    return block > 0 ? s->cut[block - 1] : MOIRAI_NONE;
}

static inline int32_t moirai_block_exit(const moirai_structure *s, int32_t block)
{
    return block < s->n_cuts ? s->cut[block] : MOIRAI_NONE;
}

#endif
