/* The fitted model: formulas with few coefficients per class, and the fit that finds them. Private to this room. */
#ifndef MOIRAI_COST_FITTED_H
#define MOIRAI_COST_FITTED_H

#include <stddef.h>
#include <moirai/cluster.h>
#include "cost/cost_shape.h"

#define COST_FITTED_COEFFICIENTS 11 /* most of any class; unused ones are 0 */

/* The first coefficients of every class: what passes before its kernel works, by runtime, and how much faster kernels
 * of TensorRT are than those of an eager framework. */
enum { COST_HOST, COST_START, COST_TRT_HOST, COST_TRT_START, COST_TRT_SPEED, COST_KERNEL };

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

/* How a kernel was, or will be, run. */
typedef enum cost_run {
    COST_RUN_COOL,     /* alone, in short bursts: full clocks, weights in the cache with the rest */
    COST_RUN_REPEATED, /* alone, many times: a long kernel warms its chip */
    COST_RUN_NETWORK /* among others for as long as it takes: clocks that the board's power allows, weights from memory */
} cost_run;

/* What passes before the kernel works, and how it works. */
typedef struct cost_head {
    double host_ns, start_ns, speed;
    cost_run run;
    bool tensorrt; /* whose kernels: TensorRT's, or an eager framework's */
} cost_head;

/* Of a measured time: by an eager framework, or by TensorRT. */
cost_head cost_head_measured(const double *c, bool tensorrt);
/* In a plan whose runtime launches in launch_ns; `add` are the coefficients of an addition, which a launch is. */
cost_head cost_head_planned(const double *c, const double *add, double launch_ns, bool tensorrt);

/* Time in ns of a kernel of this shape with these coefficients (of its class) on a device with a bandwidth and a rate.
 * It never falls with a better device: more rate, bandwidth, cache or power for its process. */
double cost_fitted_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h);

/* A file written by `moirai fit`. */
int cost_fitted_read(cost_fitted_set *out, const char *path);

/* One measured time. */
typedef struct cost_fit_sample {
    cost_shape shape;
    const moirai_device_type *type;
    double ns;
    bool tensorrt;
} cost_fit_sample;

/* Coefficients of class `k` from the samples of that class whose type is not `without` (NULL: all). False, and `c` as
 * it was, where there are none. */
bool cost_fit_class(double *c, cost_class k, const cost_fit_sample *sample, size_t n,
                    const moirai_device_type *without);

#endif
