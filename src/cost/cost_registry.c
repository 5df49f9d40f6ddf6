/* The models by name, and times for a whole problem. A new model is one file, its line in cost.h and one
 * here; cost_best_first where `auto` may take it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cost/cost.h"

static const moirai_cost_model *const MODELS[] = {&cost_table,  &cost_roofline, &cost_wave,
                                                  &cost_fitted, &cost_scaled,   &cost_auto};
#define N_MODELS ((int)(sizeof MODELS / sizeof *MODELS))

/* By the judge of docs/cost-models.md, leave one GPU out. What was measured anywhere says more of an operator than its
 * shape does, and keeps it on the scale of those measurements, beside them or alone. */
const moirai_cost_model *const cost_best_first[COST_BEST_FIRST] = {&cost_table, &cost_scaled, &cost_fitted,
                                                                   &cost_roofline, &cost_wave};

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

/* One pair alone; cost_scale.c sees to it that an operator's devices agree. */
static int64_t auto_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    int64_t ns = MOIRAI_UNKNOWN;
    for (int i = 0; i < COST_BEST_FIRST && ns == MOIRAI_UNKNOWN; i++)
        ns = cost_best_first[i]->op_ns(x, op, device);
    return ns;
}

const moirai_cost_model cost_auto = {"auto", "measured times, else the best model that knows all devices", auto_ns};

/* ---- runtimes ---- */

/* Segments were measured in runs by ONNX Runtime, on an H200 as CUDA graphs (docs/run.md). An eager framework has no
 * sub-models, but issues what arrives as it issues an operator: one launch. */
static const struct {
    const char *name;
    int64_t launch_ns, segment_ns, processor_segment_ns;
} RUNTIMES[MOIRAI_RUNTIMES] = {{"unset", 0, 0, 0},
                               {"eager", 26600, 26600, 26600},
                               {"ort", 5000, 17000, 8000},
                               {"graph", 1000, 17000, 8000},
                               {"tensorrt", 6800, 17000, 8000}};

const char *moirai_runtime_name(moirai_runtime r)
{
    return (unsigned)r < MOIRAI_RUNTIMES ? RUNTIMES[r].name : "unknown";
}

int64_t moirai_runtime_launch_ns(moirai_runtime r)
{
    return (unsigned)r < MOIRAI_RUNTIMES ? RUNTIMES[r].launch_ns : 0;
}

int64_t moirai_runtime_segment_ns(moirai_runtime r, bool processor)
{
    if ((unsigned)r >= MOIRAI_RUNTIMES)
        return 0;
    return processor ? RUNTIMES[r].processor_segment_ns : RUNTIMES[r].segment_ns;
}

int moirai_runtime_parse(moirai_runtime *out, const char *text)
{
    *out = MOIRAI_RUNTIME_UNSET;
    for (int r = 0; text && r < MOIRAI_RUNTIMES; r++)
        if (!strcmp(text, RUNTIMES[r].name)) {
            *out = (moirai_runtime)r;
            return 0;
        }
    return text ? moirai_error(MOIRAI_EUSAGE, "no runtime '%.60s' (there are eager, ort, graph, tensorrt)", text) : 0;
}

static int no_answer(const moirai_cost_context *x, int32_t op, int32_t device, const char *model)
{
    const moirai_device *d = &x->c->device[device];
    const moirai_graph *g = x->g;
    const char *type = d->type && *d->type ? d->type : "not given";
    const moirai_device_type *closest = *type ? moirai_device_type_closest(type) : NULL;
    char hint[120] = "";
    if (closest && !moirai_device_type_find(type))
        snprintf(hint, sizeof hint, " (did you mean '%s'?)", closest->name);
    if (!strcmp(model, "table"))
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%s': no measured time for device '%s' (type %s)", g->name,
                            g->op_name[op], d->name, type);
    return moirai_error(MOIRAI_EINPUT,
                        "%s: operator '%s' (%s): cost model '%s' has no time for device '%s' (type %s): give measured "
                        "times ('moirai profile'), a known type%s, or the device's bandwidth and fp32 rate",
                        g->name, g->op_name[op], g->op_type[op], model, d->name, type, hint);
}

/* What is counted per device while times are made. */
typedef struct tally {
    int32_t n_fitted[MOIRAI_MAX_DEVICES], n_roofline[MOIRAI_MAX_DEVICES];
    double start_ns[MOIRAI_MAX_DEVICES];
} tally;

/* What most times of a device have as their launch. */
static void note_launches(moirai_cost_report *r, const moirai_cost_context *x, const tally *t)
{
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        int32_t n = t->n_fitted[d] + t->n_roofline[d];
        bool fitted = t->n_fitted[d] >= t->n_roofline[d];
        double own = fitted ? cost_fitted_launch_ns(x) : COST_ROOFLINE_LAUNCH_NS;
        r->runtime[d] = x->runtime;
        if (n <= x->g->n_ops / 2)
            continue;
        if (!x->runtime)
            r->runtime[d] = fitted ? MOIRAI_RUNTIME_EAGER : MOIRAI_RUNTIME_ORT;
        r->launch_ns[d] = cost_round_ns(x->launch_ns[d] > 0 ? x->launch_ns[d] : own);
        r->mean_launch_ns[d] = cost_round_ns(t->start_ns[d] / n);
    }
}

/* An operator's row into the report. */
static void note_row(moirai_cost_report *r, const moirai_cost_context *x, int32_t op,
                     const moirai_cost_model *const *used, tally *t)
{
    bool measured = true, some = false, from_figures = false;
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        bool fitted = used[d] == &cost_fitted, roofline = used[d] == &cost_roofline;
        double given = x->launch_ns[d];
        r->n_by_model[index_of(used[d])]++;
        t->n_fitted[d] += fitted;
        t->n_roofline[d] += roofline;
        t->start_ns[d] += fitted     ? cost_fitted_start_ns(x, op, d)
                          : roofline ? (given > 0 ? given : COST_ROOFLINE_LAUNCH_NS)
                                     : 0;
        measured &= used[d] == &cost_table;
        some |= used[d] == &cost_table;
        from_figures |= fitted || roofline;
    }
    r->n_two_scales += some && from_figures;
    if (!measured && x->op_class[op] == COST_CLASS_UNKNOWN && !r->n_fallback++)
        snprintf(r->first_fallback, sizeof r->first_fallback, "%s", x->g->op_type[op]);
}

static int fill(int64_t *time_ns, const moirai_cost_context *x, const moirai_cost_model *model, moirai_cost_report *r)
{
    const moirai_cost_model *used[MOIRAI_MAX_DEVICES];
    tally t = {0};
    int rc = 0;
    for (int32_t op = 0; !rc && op < x->g->n_ops; op++) {
        bool mixed;
        int32_t unknown = cost_scale_op(time_ns + (int64_t)op * x->c->n_devices, used, &mixed, x, op, model);
        if (unknown != MOIRAI_NONE)
            rc = no_answer(x, op, unknown, model->name);
        else
            note_row(r, x, op, used, &t);
        r->n_mixed += mixed;
    }
    if (!rc)
        note_launches(r, x, &t);
    return rc;
}

static void set_options(moirai_cost_context *x, const moirai_cost_options *o)
{
    x->tf32 = o->tf32;
    x->runtime = o->runtime;
    for (int32_t d = 0; d < x->c->n_devices; d++)
        if (!(x->launch_ns[d] > 0))
            x->launch_ns[d] = (double)moirai_runtime_launch_ns(o->runtime);
}

int moirai_cost_times_with(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c,
                           const moirai_cost_options *o, moirai_cost_report *report)
{
    static const moirai_cost_options none = {0};
    moirai_cost_report own;
    moirai_cost_report *r = report ? report : &own;
    *r = (moirai_cost_report){0};
    o = o ? o : &none;
    cost_fitted_set own_set;
    bool from_file = o->model && !strncmp(o->model, "fitted:", 7);
    const moirai_cost_model *m = from_file ? &cost_fitted : moirai_cost_model_find(o->model ? o->model : "auto");
    if (!m)
        return moirai_error(MOIRAI_EUSAGE,
                            "no cost model '%s' (there are auto, table, scaled, wave, fitted, fitted:FILE, roofline)",
                            o->model);
    int rc = from_file ? cost_fitted_read(&own_set, o->model + 7) : 0;
    moirai_cost_context *x = NULL;
    rc = rc ? rc : cost_context_new(&x, g, c);
    if (!rc && from_file)
        x->set = &own_set;
    if (!rc) {
        set_options(x, o);
        rc = fill(time_ns, x, m, r);
    }
    cost_context_free(x);
    return rc;
}

int moirai_cost_times(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, const char *model,
                      moirai_cost_report *report)
{
    return moirai_cost_times_with(time_ns, g, c, &(moirai_cost_options){.model = model}, report);
}
