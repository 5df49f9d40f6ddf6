/* The fitted model: formulas with few coefficients per class, and the fit that finds them. Private to this room. */
#ifndef MOIRAI_FITTED_H
#define MOIRAI_FITTED_H

#include <stddef.h>
#include <moirai/cluster.h>
#include "cost/cost_shape.h"

#define MOIRAI_FITTED_COEFFICIENTS 9 /* most of any class; unused ones are 0 */

typedef struct moirai_fitted_set {
    double c[MOIRAI_CLASS_MEASURED][MOIRAI_FITTED_COEFFICIENTS];
} moirai_fitted_set;

extern const moirai_fitted_set moirai_fitted_shipped;

/* A coefficient's meaning, where the search starts, and the range that makes sense. */
typedef struct moirai_fitted_coefficient {
    const char *name;
    double start, least, most;
} moirai_fitted_coefficient;

int moirai_fitted_coefficient_count(moirai_cost_class k);
const moirai_fitted_coefficient *moirai_fitted_coefficient_at(moirai_cost_class k, int index);

/* Time in ns of a kernel of this shape with these coefficients (of its class) on a device whose figures are all known. */
double moirai_fitted_ns(const double *c, const moirai_cost_shape *s, const moirai_device_type *f);

/* A file written by `moirai fit`. */
int moirai_fitted_read(moirai_fitted_set *out, const char *path);

/* One measured time. */
typedef struct moirai_fit_sample {
    moirai_cost_shape shape;
    const moirai_device_type *type;
    double ns;
} moirai_fit_sample;

/* Coefficients of class `k` from the samples of that class whose type is not `without` (NULL: all). False, and `c` as it
 * was, where there are none. */
bool moirai_fit_class(double *c, moirai_cost_class k, const moirai_fit_sample *sample, size_t n,
                      const moirai_device_type *without);

#endif
