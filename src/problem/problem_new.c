/* Graph x cluster x cost model -> problem. */
#include "problem/problem_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cut costs its devices more than the message: the receiver starts a sub-model of its own, and both handle bytes.
 * The model has one place for it that every bound and every checker knows, the transfer; a device computes on while it
 * lasts, so that what is idle in the model may be busy in a run, never the other way round. */
static int64_t segment_of(const moirai_cluster *c, const moirai_problem_options *o, moirai_runtime runtime, int32_t k)
{
    if (o->segment_ns != MOIRAI_UNKNOWN)
        return o->segment_ns;
    return c->cuts_measured ? 0 : moirai_runtime_segment_ns(runtime, moirai_device_is_processor(&c->device[k]));
}

int64_t problem_moving_rate(int64_t bytes_per_second, int64_t move_ns_per_mb)
{
    if (!move_ns_per_mb)
        return bytes_per_second;
    double ns_per_byte = 1e9 / (double)bytes_per_second + (double)move_ns_per_mb / 1e6;
    return UTIL_MAX(1, (int64_t)(1e9 / ns_per_byte));
}

static int copy_channels(moirai_problem *p, const moirai_cluster *c, const moirai_problem_options *o,
                         const moirai_runtime *runtime)
{
    const int64_t most = INT64_C(1000000000000);
    if ((o->segment_ns < 0 && o->segment_ns != MOIRAI_UNKNOWN) || o->segment_ns > most || o->move_ns_per_mb < 0 ||
        o->move_ns_per_mb > most)
        return moirai_error(MOIRAI_EUSAGE, "segment_ns %" PRId64 ", move_ns_per_mb %" PRId64 ": from 0 to %" PRId64,
                            o->segment_ns, o->move_ns_per_mb, most);
    p->move_ns_per_mb = o->move_ns_per_mb;
    for (int32_t k = 0; k < c->n_devices; k++)
        p->device_segment_ns[k] = c->n_devices > 1 ? segment_of(c, o, runtime[k], k) : 0;
    for (int32_t i = 0; i < c->n_devices * c->n_devices; i++) {
        p->bytes_per_second[i] = c->bytes_per_second[i];
        p->latency_ns[i] = c->latency_ns[i];
        if (i / c->n_devices == i % c->n_devices)
            continue;
        p->latency_ns[i] += p->device_segment_ns[i % c->n_devices];
        p->bytes_per_second[i] = problem_moving_rate(c->bytes_per_second[i], o->move_ns_per_mb);
    }
    return 0;
}

static int copy_devices(moirai_problem *p, const moirai_cluster *c)
{
    for (int32_t k = 0; k < c->n_devices; k++) {
        p->device_memory_bytes[k] = c->device[k].memory_bytes;
        if (!(p->device_name[k] = problem_keep(p, c->device[k].name)) ||
            !(p->device_type[k] = problem_keep(p, c->device[k].type)))
            return MOIRAI_EFAIL;
    }
    return 0;
}

/* As `table` looks for the times of operators: by name, else by type. */
static void copy_whole(moirai_problem *p, const moirai_graph *g, const moirai_cluster *c)
{
    for (int32_t k = 0; k < c->n_devices; k++)
        for (int32_t i = 0; g->time_whole_ns && i < g->n_time_keys; i++) {
            bool named = !strcmp(g->time_key[i], c->device[k].name), typed = !strcmp(g->time_key[i], c->device[k].type);
            if (g->time_whole_ns[i] > 0 && (named || (typed && !p->device_whole_ns[k])))
                p->device_whole_ns[k] = g->time_whole_ns[i];
        }
}

/* Shared weights are counted beside: what is left is the operator's own. */
static int copy_memory(moirai_problem *p, const moirai_graph *g)
{
    for (int32_t i = 0; i < g->n_ops; i++) {
        if (!util_add64(&p->op_memory_bytes[i], g->op_weight_bytes[i], g->op_workspace_bytes[i]))
            return moirai_error(MOIRAI_EINPUT,
                                "operator '%.200s': weight_bytes %" PRId64 " and workspace_bytes %" PRId64
                                " add up beyond 64 bits",
                                g->op_name[i], g->op_weight_bytes[i], g->op_workspace_bytes[i]);
        for (int32_t e = g->op_weight_off[i]; e < g->op_weight_off[i + 1]; e++) {
            p->op_memory_bytes[i] -= g->weight_bytes[g->op_weight[e]];
            if (p->op_memory_bytes[i] < g->op_workspace_bytes[i])
                return moirai_error(MOIRAI_EINPUT,
                                    "operator '%.200s': its shared weights are larger than its weight_bytes %" PRId64,
                                    g->op_name[i], g->op_weight_bytes[i]);
        }
    }
    return 0;
}

static int fill(moirai_problem *p, const moirai_graph *g, const moirai_cluster *c, const moirai_problem_options *o)
{
    int rc;
    moirai_cost_report report;
    moirai_cost_options cost = {.model = o->cost_model, .runtime = o->runtime, .tf32 = o->tf32};
    p->flow = o->flow;
    p->congestion = o->congestion;
    p->memory = o->memory;
    if ((rc = copy_devices(p, c)) || (rc = copy_memory(p, g)) ||
        (rc = moirai_cost_times_with(p->op_time_ns, g, c, &cost, &report)) ||
        (rc = copy_channels(p, c, o, report.runtime)) || (rc = problem_settle(p, NULL)) ||
        (rc = problem_find_uncosted(p, g)))
        return rc;
    if (o->cost_report)
        *o->cost_report = report;
    copy_whole(p, g, c);
    memcpy(p->device_launch_ns, report.mean_launch_ns, (size_t)c->n_devices * sizeof *p->device_launch_ns);
    return moirai_problem_wish_fused(p, g, o->wishes, o->n_wishes);
}

static char *default_name(const moirai_graph *g, const moirai_cluster *c)
{
    size_t size = strlen(g->name) + strlen(c->name) + 2;
    char *name = util_alloc(size, 1);
    if (name)
        snprintf(name, size, "%s-%s", g->name, c->name);
    return name;
}

int moirai_problem_new(moirai_problem **out, const moirai_graph *g, const moirai_cluster *c,
                       const moirai_problem_options *options)
{
    moirai_problem *p = NULL;
    *out = NULL;
    char *name = options->name ? util_strdup(options->name) : default_name(g, c);
    int rc = name ? problem_start(&p, g, name, c->n_devices) : MOIRAI_EFAIL;
    free(name);
    rc = rc ? rc : fill(p, g, c, options);
    if (rc) {
        moirai_problem_free(p);
        return rc;
    }
    *out = p;
    return 0;
}
