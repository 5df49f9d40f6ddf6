/* The models by name, and times for a whole problem. A new model is one file and one line here. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cost/cost.h"

static const moirai_cost_model *const MODELS[] = {&cost_table, &cost_roofline, &cost_wave,
                                                &cost_fitted, &cost_scaled, &cost_auto};
#define N_MODELS ((int)(sizeof MODELS / sizeof *MODELS))

/* What `auto` asks, best first: by the errors in docs/cost-models.md. */
static const moirai_cost_model *const BEST_FIRST[] = {&cost_table, &cost_scaled, &cost_wave,
                                                      &cost_fitted, &cost_roofline};

_Static_assert(sizeof MODELS / sizeof *MODELS <= sizeof((moirai_cost_report *)0)->n_by_model / sizeof(int64_t),
               "moirai_cost_report.n_by_model has a place for every model");

int moirai_cost_model_count(void)
{
    return N_MODELS;
}

const moirai_cost_model *moirai_cost_model_at(int index)
{
    return index >= 0 && index < N_MODELS ? MODELS[index] : NULL;
}

const moirai_cost_model *moirai_cost_model_find(const char *name)
{
    for (int i = 0; i < N_MODELS; i++)
        if (!strcmp(name, MODELS[i]->name))
            return MODELS[i];
    return NULL;
}

static int index_of(const moirai_cost_model *model)
{
    for (int i = 0; i < N_MODELS; i++)
        if (MODELS[i] == model)
            return i;
    return 0;
}

int64_t cost_round_ns(double ns)
{
    const double most = 1e13; /* close to three hours; 900,000 such operators still sum up in an int64 */
    if (isnan(ns))
        return MOIRAI_UNKNOWN;
    if (ns <= 0)
        return 0;
    return ns >= most ? (int64_t)most : (int64_t)floor(ns + 0.5);
}

int64_t cost_best(const moirai_cost_context *x, int32_t op, int32_t device, int *model)
{
    for (size_t i = 0; i < sizeof BEST_FIRST / sizeof *BEST_FIRST; i++) {
        int64_t ns = BEST_FIRST[i]->op_ns(x, op, device);
        if (ns != MOIRAI_UNKNOWN) {
            *model = index_of(BEST_FIRST[i]);
            return ns;
        }
    }
    return MOIRAI_UNKNOWN;
}

static int64_t auto_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    int model;
    return cost_best(x, op, device, &model);
}

const moirai_cost_model cost_auto = {"auto", "the best available for each operator and device", auto_ns};

static int no_answer(const moirai_cost_context *x, int32_t op, int32_t device, const char *model)
{
    const moirai_device *d = &x->c->device[device];
    const moirai_graph *g = x->g;
    const char *type = d->type && *d->type ? d->type : "not given";
    if (!strcmp(model, "table"))
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%s': no measured time for device '%s' (type %s)", g->name,
                            g->op_name[op], d->name, type);
    return moirai_error(MOIRAI_EINPUT,
                        "%s: operator '%s' (%s): cost model '%s' has no time for device '%s' (type %s): give measured "
                        "times ('moirai profile'), a known type, or the device's bandwidth and fp32 rate",
                        g->name, g->op_name[op], g->op_type[op], model, d->name, type);
}

static int fill(int64_t *time_ns, const moirai_cost_context *x, const moirai_cost_model *model, moirai_cost_report *r)
{
    int32_t n_devices = x->c->n_devices;
    for (int32_t op = 0; op < x->g->n_ops; op++) {
        bool measured = true;
        for (int32_t d = 0; d < n_devices; d++) {
            int used = index_of(model);
            int64_t ns = model == &cost_auto ? cost_best(x, op, d, &used) : model->op_ns(x, op, d);
            if (ns == MOIRAI_UNKNOWN)
                return no_answer(x, op, d, model->name);
            time_ns[(int64_t)op * n_devices + d] = ns;
            r->n_by_model[used]++;
            measured = measured && MODELS[used] == &cost_table;
        }
        if (!measured && x->op_class[op] == COST_CLASS_UNKNOWN && !r->n_fallback++)
            snprintf(r->first_fallback, sizeof r->first_fallback, "%s", x->g->op_type[op]);
    }
    return 0;
}

int moirai_cost_times(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, const char *model,
                      moirai_cost_report *report)
{
    moirai_cost_report own;
    moirai_cost_report *r = report ? report : &own;
    memset(r, 0, sizeof *r);
    cost_fitted_set own_set;
    bool from_file = model && !strncmp(model, "fitted:", 7);
    const moirai_cost_model *m = from_file ? &cost_fitted : moirai_cost_model_find(model ? model : "auto");
    if (!m)
        return moirai_error(MOIRAI_EUSAGE, "no cost model '%s' (there are auto, table, scaled, wave, fitted, fitted:FILE, roofline)",
                            model);
    int result = from_file ? cost_fitted_read(&own_set, model + 7) : 0;
    moirai_cost_context *x = NULL;
    if (!result)
        result = cost_context_new(&x, g, c);
    if (!result && from_file)
        x->set = &own_set;
    if (!result)
        result = fill(time_ns, x, m, r);
    cost_context_free(x);
    return result;
}
