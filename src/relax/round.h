/* Prices and messages as the whole numbers of a leaf. Private. */
#ifndef MOIRAI_RELAX_ROUND_H
#define MOIRAI_RELAX_ROUND_H

#include "relax/messages.h"

/* All of an empty leaf but what is proven; `length_ns`: about that. To be cleared also after a failure. */
int relax_leaf_write(relax_leaf *leaf, const relax_state *s, const relax_fixed *fixed, int32_t n_fixed,
                     double length_ns);
/* The numbers of a leaf where these operators are fixed: it proves no less where they are more. To be cleared also after a failure. */
int relax_leaf_with(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, const relax_fixed *fixed,
                    int32_t n_fixed);
void relax_leaf_clear(relax_leaf *leaf);

#endif
