/* The fitted model: formulas with few coefficients per class, and the fit that finds them. Private to this room. */
#ifndef MOIRAI_COST_FITTED_H
#define MOIRAI_COST_FITTED_H

#include <stddef.h>
#include <moirai/cluster.h>
#include "cost/cost_shape.h"

#define COST_FITTED_COEFFICIENTS 9 /* most of any class; unused ones are 0 */

typedef struct cost_fitted_set {
    double c[COST_CLASS_MEASURED][COST_FITTED_COEFFICIENTS];
} cost_fitted_set;

extern const cost_fitted_set cost_fitted_shipped;

/* A coefficient's meaning, where the search starts, and the range that makes sense. */
typedef struct cost_fitted_coefficient {
    const char *name;
    double start, least, most;
} cost_fitted_coefficient;

int cost_fitted_coefficient_count(cost_class k);
const cost_fitted_coefficient *cost_fitted_coefficient_at(cost_class k, int index);

/* Time in ns of a kernel of this shape with these coefficients (of its class) on a device whose figures are all known.
 */
double cost_fitted_ns(const double *c, const cost_shape *s, const moirai_device_type *f);

/* The same with launches that are this share of the coefficients' own. */
double cost_fitted_launched_ns(const double *c, const cost_shape *s, const moirai_device_type *f, double share);

/* A file written by `moirai fit`. */
int cost_fitted_read(cost_fitted_set *out, const char *path);

/* One measured time. */
typedef struct cost_fit_sample {
    cost_shape shape;
    const moirai_device_type *type;
    double ns;
} cost_fit_sample;

/* Coefficients of class `k` from the samples of that class whose type is not `without` (NULL: all). False, and `c` as
 * it was, where there are none. */
bool cost_fit_class(double *c, cost_class k, const cost_fit_sample *sample, size_t n,
                    const moirai_device_type *without);

#endif
