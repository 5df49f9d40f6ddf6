/* One block of a problem written by hand, and the three that many tests of prices share. */
#ifndef MOIRAI_TEST_TINY_BLOCK_H
#define MOIRAI_TEST_TINY_BLOCK_H

#include "decompose/block.h"
#include "pair/chain.h"

typedef struct tiny_block {
    moirai_problem *p;
    decompose_cuts *s;
    decompose_block *b;
} tiny_block;

/* Block number `block` of the problem (support/tiny.h); fails the test where there is none. */
tiny_block tiny_block_open(const char *text, int32_t block);
void tiny_block_close(tiny_block *t);
/* The problem as a chain of one block that leaves nothing out, its pair open; 64 operators at most. */
pair_chain *tiny_chain(const moirai_problem *p);

/* The pair of the block behind the first cut, both cuts on A. */
typedef struct tiny_pair {
    moirai_problem *p;
    pair_chain *c;
    pair_state *x;
    int32_t class_;
} tiny_pair;

void tiny_pair_open(tiny_pair *f, const char *text);
void tiny_pair_close(tiny_pair *f);

/* Two equal operators between cuts on A: 10 on A or B; 3 to B and 3 back. 16 is the best: one on each. Flow edge, no
 * congestion. */
#define TINY_TWO \
    "flow edge\ncongestion none\ndevice A 100\ndevice B 100\nop in 1,- > s:3\nop x 10,10 s > t:3 mem=10\n" \
    "op y 10,10 s > u:3 mem=10\nop out 1,- t u\n"
/* Three equal operators that read one tensor: 100 on A, 110 on B; the tensor takes 20 to B, results no time. 200 is the
 * best. */
#define TINY_THREE \
    "device A 100\ndevice B 100\nop in 10,- > s:20\nop x 100,110 s > t:0\nop y 100,110 s > u:0\nop z 100,110 s > " \
    "v:0\n" \
    "op out 10,- t u v\n"
/* Two in a row, 10 on A and 30 on B each, 10 bytes each; A has room for one. 40 is the best, and what prices on bytes
 * prove. */
#define TINY_TIGHT "device A 10\ndevice B 100\nop a 10,30 mem=10 > s:0\nop b 10,30 s mem=10\n"

#endif
