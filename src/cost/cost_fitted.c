/* `fitted`: our own model, fitted to measured times (formulas: fitted_formula.c; the fit: fit_solve.c).
 *
 * What was not measured, borrows: kernels that only move data are streamed like a product with a scalar (one tensor
 * read, one written); a view costs half a launch, the host's share without a kernel; unknown types stream their traffic
 * and compute at the roofline's rate. It speaks of GPUs only: devices with all figures known and at least 32 cores per
 * SM. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cost/cost.h"
#include "util/json.h"

const cost_fitted_set cost_fitted_shipped = {{
#include "cost/fitted_coefficients.h"
}};

bool cost_fitted_applies(const moirai_device_type *f)
{
    return f->bandwidth_gb_s > 0 && f->gflops_fp32 > 0 && f->sm > 0 && f->clock_mhz > 0 && f->cores_per_sm >= 32;
}

double cost_fitted_launch_ns(const moirai_cost_context *x)
{
    return x->set->c[COST_CLASS_ADD][0];
}

double cost_fitted_start_ns(const moirai_cost_context *x, int32_t op)
{
    cost_shape s = x->shape[op];
    if (s.k == COST_CLASS_VIEW && !(s.bytes > 0))
        return cost_fitted_launch_ns(x) / 2;
    const double *c = x->set->c[s.k < COST_CLASS_MEASURED ? s.k : COST_CLASS_MULU];
    return UTIL_MAX(c[0], c[1]);
}

/* A class with the launches of another runtime. Host and start, the first two coefficients of every class, are both
 * what passes before a kernel works; what a runtime saves of an addition's, it is taken to save of every class's, in
 * proportion. */
double cost_fitted_launched_ns(const double *c, const cost_shape *s, const moirai_device_type *f, double share)
{
    double own[COST_FITTED_COEFFICIENTS];
    memcpy(own, c, sizeof own);
    own[0] *= share;
    own[1] *= share;
    return cost_fitted_ns(own, s, f);
}

double cost_fitted_op(const moirai_cost_context *x, int32_t op, const moirai_device_type *f, double launch_ns)
{
    cost_shape s = x->shape[op];
    s.rate = cost_rate(x, s.k, f);
    const double(*c)[COST_FITTED_COEFFICIENTS] = x->set->c;
    double share = launch_ns > 0 ? launch_ns / cost_fitted_launch_ns(x) : 1;
    if (s.k < COST_CLASS_MEASURED)
        return cost_fitted_launched_ns(c[s.k], &s, f, share);
    if (s.k == COST_CLASS_VIEW && !(s.bytes > 0))
        return cost_fitted_launch_ns(x) / 2 * share;
    bool unknown = s.k == COST_CLASS_UNKNOWN;
    s.k = COST_CLASS_MULU;
    double ns = cost_fitted_launched_ns(c[COST_CLASS_MULU], &s, f, share);
    double least = unknown ? cost_roofline_work_ns((double)cost_flops(x, op), s.bytes, f->gflops_fp32, f) : 0;
    return UTIL_MAX(ns, least + (unknown ? (launch_ns > 0 ? launch_ns : COST_ROOFLINE_LAUNCH_NS) : 0));
}

static int64_t fitted_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const moirai_device_type *f = &x->c->device[device].figures;
    return cost_fitted_applies(f) ? cost_round_ns(cost_fitted_op(x, op, f, x->launch_ns[device])) : MOIRAI_UNKNOWN;
}

const moirai_cost_model cost_fitted = {
    "fitted", "formulas per operator class, fitted to measured times; fitted:FILE for your own fit", fitted_ns};

static int read_class(double *c, cost_class k, yyjson_val *classes, const char *label)
{
    util_json_at at = {.label = label, .kind = "class", .name = cost_class_name(k)};
    yyjson_val *object = yyjson_obj_get(classes, cost_class_name(k));
    int rc = util_json_object(&at, object);
    for (int j = 0; !rc && j < cost_fitted_coefficient_count(k); j++) {
        const cost_fitted_coefficient *range = cost_fitted_coefficient_at(k, j);
        rc = util_json_real(&c[j], &at, object, range->name, true);
        if (!rc && !(c[j] > 0 && c[j] < 1e12))
            rc = util_json_fail(&at, "%s %g is not a positive number", range->name, c[j]);
    }
    return rc;
}

int cost_fitted_read(cost_fitted_set *out, const char *path)
{
    char *data;
    size_t length;
    yyjson_doc *doc = NULL;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    memset(out, 0, sizeof *out);
    rc = util_json_open(&doc, data, length, path, "moirai-coefficients");
    yyjson_val *classes = doc ? yyjson_obj_get(yyjson_doc_get_root(doc), "classes") : NULL;
    for (int k = 0; !rc && k < COST_CLASS_MEASURED; k++)
        rc = read_class(out->c[k], (cost_class)k, classes, path);
    yyjson_doc_free(doc);
    free(data);
    return rc;
}
