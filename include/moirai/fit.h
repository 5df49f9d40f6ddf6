/* Fitting the `fitted` cost model to measured operator times. */
#ifndef MOIRAI_FIT_H
#define MOIRAI_FIT_H

#include <moirai/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_fit moirai_fit;

/* A table of measured times: a header line and one line per measurement, separated by commas. Columns by name:
 * device, op, latency_ns, and of b, m, n, k, h, input_channel, output_channel, input_size, kernel_size, stride, padding
 * those that the operator needs; others are ignored. Lines of an unknown device or operator, or whose numbers make no
 * sense (not positive, not finite), are skipped and counted. MOIRAI_EINPUT if nothing is left. `path` "-" is stdin. */
MOIRAI_API int moirai_fit_read(moirai_fit **out, const char *path);
MOIRAI_API int moirai_fit_parse(moirai_fit **out, const char *text, size_t length, const char *label);
MOIRAI_API void moirai_fit_free(moirai_fit *fit);
MOIRAI_API int64_t moirai_fit_used(const moirai_fit *fit);
MOIRAI_API int64_t moirai_fit_skipped(const moirai_fit *fit);

MOIRAI_API int moirai_fit_class_count(void);
MOIRAI_API const char *moirai_fit_class_name(int op_class); /* "add", ..., "conv" */
/* The device types measured, in order of appearance. */
MOIRAI_API int moirai_fit_device_count(const moirai_fit *fit);
MOIRAI_API const char *moirai_fit_device_name(const moirai_fit *fit, int device);

/* Coefficients from all measurements but those of device number `without` (MOIRAI_NONE = -1: from all). Classes without
 * measurements keep the shipped coefficients. Deterministic; 1.3 seconds for 24,000 measurements on one core. */
MOIRAI_API int moirai_fit_solve(moirai_fit *fit, int without);
MOIRAI_API int moirai_fit_coefficient_count(int op_class);
MOIRAI_API const char *moirai_fit_coefficient_name(int op_class, int index);
MOIRAI_API double moirai_fit_coefficient(const moirai_fit *fit, int op_class, int index);

/* Mean absolute relative errors on the measurements of one class and device, with the coefficients of the last solve. */
typedef struct moirai_fit_error {
    int64_t n;       /* measurements */
    double fitted, roofline;
    int64_t n_wave;  /* (measurement, other device) pairs where the same shape was measured on another device */
    double wave;
} moirai_fit_error;
MOIRAI_API void moirai_fit_measure(moirai_fit_error *out, const moirai_fit *fit, int op_class, int device);

/* The coefficients as JSON (format "moirai-coefficients"), for the cost model "fitted:PATH"; or, where `path` ends in
 * ".h", as the C table that the library ships. */
MOIRAI_API int moirai_fit_write(const moirai_fit *fit, const char *path);

#ifdef __cplusplus
}
#endif
#endif
