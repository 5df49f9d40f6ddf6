/* GETF's groups of devices. Private; for tests. */
#ifndef MOIRAI_PLACE_LIST_GETF_H
#define MOIRAI_PLACE_LIST_GETF_H

#include <moirai/placer.h>

typedef struct place_getf_groups {
    uint64_t kept;                         /* devices that are not dropped */
    int32_t n;                             /* groups, the slowest first; one in between may be empty */
    uint64_t devices[MOIRAI_MASK_DEVICES]; /* per group */
} place_getf_groups;

/* log m / log log m to base 2, at least 2. */
double place_getf_gamma(int32_t n_devices);
void place_getf_group(place_getf_groups *g, const double *speed, int32_t n_devices);
/* The group of an operator with these shares per device: the fastest groups until half is covered, among them that of
 * largest total speed of devices that can run it; the faster one of equals. */
int32_t place_getf_choose(const place_getf_groups *g, const double *speed, const double *share, uint64_t can_run);

#endif
