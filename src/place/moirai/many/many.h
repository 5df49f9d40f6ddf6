/* More devices than a mask has: a part of the devices for searches by masks, and what can be certified of all. */
#ifndef MOIRAI_PLACE_MOIRAI_MANY_H
#define MOIRAI_PLACE_MOIRAI_MANY_H

#include "place/moirai/incumbent/incumbent.h"

/* The devices that can matter: an optimum of the problem is one on these alone, too, so that what is proven of them holds for the
 * problem. */
typedef struct many_part {
    int32_t n, device[MOIRAI_MASK_DEVICES]; /* n 0: more than a mask has */
} many_part;

/* O(V K + tables). */
int many_choose(many_part *out, const moirai_problem *p);

/* Writes what plain loads and paths prove of the bound; *certified_ns is what the certificate claims: nothing, where there is no
 * time to find the prices of loads once more. `plain_s` is what the plain bounds took. */
int many_certify(int64_t *certified_ns, incumbent *in, double plain_s, const util_stop *stop);

#endif
