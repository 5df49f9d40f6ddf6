/* One end of a block on a device, the other one anywhere. Private. */
#ifndef MOIRAI_RELAX_ENDS_H
#define MOIRAI_RELAX_ENDS_H

#include "relax/relax.h"

#define RELAX_CHAIN_DEVICES 16

/* What is proven of a block with an end on each device, whatever device the other end is on. */
typedef struct relax_end {
    int64_t lower_ns[RELAX_CHAIN_DEVICES]; /* 0: nothing yet */
    relax_leaf leaf[RELAX_CHAIN_DEVICES];  /* whose numbers prove it, where they are wanted */
    uint32_t solved;                       /* a bit per device: by numbers of its own */
} relax_end;

/* The end on its device by the relaxation, and on all others by the same numbers with two devices exchanged. The answer is
 * to be cleared in every case. */
int relax_end_solve(relax_end *out, const moirai_problem *p, relax_fixed end, const relax_task *job);
/* The stronger of both for each device; `from` is left empty. */
void relax_end_take(relax_end *to, relax_end *from);
void relax_end_clear(relax_end *x);

#endif
