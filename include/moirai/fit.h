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
 * those that the operator needs; others are ignored. Products are b of m x n by n x k, as frameworks write them. Lines of an unknown device or operator, or whose numbers make no
 * sense (not positive, not finite), are skipped and counted. MOIRAI_EINPUT if nothing is left. `path` "-" is stdin. */
MOIRAI_API int moirai_fit_read(moirai_fit **out, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_fit_parse(moirai_fit **out, const char *text, size_t length, const char *label);
/* More measurements: a graph file whose operators were measured one by one in TensorRT (`time_ns` by device type). What
 * has no class, no known type or no time is skipped and counted. On an error the fit is as it was before. */
MOIRAI_API int moirai_fit_add_graph(moirai_fit *fit, const char *path);
/* Frees it. NULL is fine. */
MOIRAI_API void moirai_fit_free(moirai_fit *fit);
/* Measurements that count. */
MOIRAI_API int64_t moirai_fit_used(const moirai_fit *fit);
/* Lines that were skipped. */
MOIRAI_API int64_t moirai_fit_skipped(const moirai_fit *fit);

/* How many classes of operators have coefficients of their own. */
MOIRAI_API int moirai_fit_class_count(void);
/* The name of a class: "add", ..., "conv". Static. */
MOIRAI_API const char *moirai_fit_class_name(int op_class);
/* The device types measured, in order of appearance. */
MOIRAI_API int moirai_fit_device_count(const moirai_fit *fit);
/* Its name as the library spells the type. Owned by the fit. */
MOIRAI_API const char *moirai_fit_device_name(const moirai_fit *fit, int device);

/* Coefficients from all measurements but those of device number `without` (MOIRAI_NONE = -1: from all). Classes without
 * measurements keep the shipped coefficients. Deterministic; 1.3 seconds for 24,000 measurements on one core. */
MOIRAI_API int moirai_fit_solve(moirai_fit *fit, int without);
/* How many coefficients a class has. */
MOIRAI_API int moirai_fit_coefficient_count(int op_class);
/* What a coefficient stands for. Static. */
MOIRAI_API const char *moirai_fit_coefficient_name(int op_class, int index);
/* Its value after the last solve; before the first, the shipped one. */
MOIRAI_API double moirai_fit_coefficient(const moirai_fit *fit, int op_class, int index);

/* Mean absolute relative errors on the measurements of one class and device, with the coefficients of the last solve.
 */
typedef struct moirai_fit_error {
    int64_t n; /* measurements */
    double fitted, roofline;
    double fitted_launch; /* fitted, where one number of the device's host is known: what its fastest addition took, as
                             launch_us of a cluster file. `fitted` where no addition was measured */
    int64_t n_elsewhere;  /* of them, those whose shape was measured on another device, too: what the rest is about */
    double wave, scaled, fitted_elsewhere;
} moirai_fit_error;
/* Errors of the last solve on the measurements of one class and device; n is 0 where there are none. */
MOIRAI_API void moirai_fit_measure(moirai_fit_error *out, const moirai_fit *fit, int op_class, int device);

/* The coefficients as JSON (format "moirai-coefficients"), for the cost model "fitted:PATH"; or, where `path` ends in
 * ".h", as the C table that the library ships. */
MOIRAI_API int moirai_fit_write(const moirai_fit *fit, const char *path);

#ifdef __cplusplus
}
#endif
#endif
