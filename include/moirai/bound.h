/* Lower bounds as components: each proves, by itself, that no plan of a problem is faster.
 *
 * A bound is one file with one struct; adding one touches that file, one line of src/bound/bounds.h and one of bound_registry.c. */
#ifndef MOIRAI_BOUND_H
#define MOIRAI_BOUND_H

#include <moirai/budget.h>
#include <moirai/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_bound {
    const char *name;
    const char *summary; /* one line */
    /* Returns 0 and, in *lower_ns, a valid bound in whole nanoseconds (0 always is one, also when stopped early), or
     * MOIRAI_UNKNOWN where this bound is not meant for the problem; negative on failure. */
    int (*find)(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget);
    bool plain; /* quick at any size: every placer's plans have it, and searches begin with it */
} moirai_bound;

/* In order of effort. */
MOIRAI_API int moirai_bound_count(void);
/* The bound of that number, 0 to moirai_bound_count() - 1. Static. */
MOIRAI_API const moirai_bound *moirai_bound_at(int index);
/* The bound of that name, or NULL. */
MOIRAI_API const moirai_bound *moirai_bound_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
