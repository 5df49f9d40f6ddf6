/* `fitted`: our own model, fitted to measured times (formulas: fitted_formula.c; the fit: fit_solve.c).
 *
 * It speaks of every device with a bandwidth and a rate; figures that are missing (cache, power) limit nothing and help
 * nothing. A view costs half a launch, the host's share without a kernel; unknown types stream their traffic like a
 * copy and compute at the roofline's rate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "cost/cost.h"
#include "util/json.h"

const cost_fitted_set cost_fitted_shipped = {{
#include "cost/fitted_coefficients.h"
}};

bool cost_fitted_applies(const moirai_device_type *f)
{
    return f->bandwidth_gb_s > 0 && f->gflops_fp32 > 0;
}

static bool by_tensorrt(const moirai_cost_context *x)
{
    return x->runtime == MOIRAI_RUNTIME_TENSORRT;
}

double cost_fitted_launch_ns(const moirai_cost_context *x)
{
    return x->set->c[COST_CLASS_ADD][by_tensorrt(x) ? COST_TRT_HOST : COST_HOST];
}

static bool is_view(const cost_shape *s)
{
    return s->k == COST_CLASS_VIEW && !(s->bytes > 0);
}

static cost_class class_of(const cost_shape *s)
{
    return s->k < COST_CLASS_MEASURED ? s->k : COST_CLASS_MEMORY;
}

/* Processors have no queue to start a kernel in: a launch, and the work begins. */
static cost_head head_of(const moirai_cost_context *x, cost_class k, bool processor, double launch_ns)
{
    const double *add = x->set->c[COST_CLASS_ADD];
    cost_head h = cost_head_planned(x->set->c[k], add, launch_ns, by_tensorrt(x));
    if (processor)
        h = (cost_head){0, launch_ns > 0 ? launch_ns : cost_fitted_launch_ns(x), 1, COST_RUN_NETWORK, false};
    return h;
}

double cost_fitted_start_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const cost_shape *s = &x->shape[op];
    double launch = x->launch_ns[device] > 0 ? x->launch_ns[device] : cost_fitted_launch_ns(x);
    if (is_view(s))
        return launch / 2;
    cost_head h = head_of(x, class_of(s), x->c->device[device].figures.processor, launch);
    return UTIL_MAX(h.host_ns, h.start_ns);
}

double cost_fitted_op(const moirai_cost_context *x, int32_t op, const moirai_device_type *f, double launch_ns)
{
    cost_shape s = x->shape[op];
    double launch = launch_ns > 0 ? launch_ns : cost_fitted_launch_ns(x);
    if (is_view(&s))
        return launch / 2;
    bool unknown = s.k == COST_CLASS_UNKNOWN;
    s.rate = cost_rate(x, s.k, f);
    s.k = class_of(&s);
    cost_head h = head_of(x, s.k, f->processor, launch_ns);
    double ns = cost_fitted_ns(x->set->c[s.k], &s, f, &h);
    if (unknown)
        ns = UTIL_MAX(ns, launch + cost_roofline_work_ns((double)cost_flops(x, op), s.bytes, f->gflops_fp32, f));
    return ns;
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
    yyjson_doc *doc;
    int rc = util_json_read(&doc, path, "moirai-coefficients");
    memset(out, 0, sizeof *out);
    yyjson_val *classes = doc ? yyjson_obj_get(yyjson_doc_get_root(doc), "classes") : NULL;
    for (int k = 0; !rc && k < COST_CLASS_MEASURED; k++)
        rc = read_class(out->c[k], (cost_class)k, classes, path);
    yyjson_doc_free(doc);
    return rc;
}
