/* Graph x cluster x cost model -> problem. */
#include "problem/problem_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy_devices(moirai_problem *p, const moirai_cluster *c)
{
    size_t pairs = (size_t)c->n_devices * (size_t)c->n_devices;
    for (int32_t k = 0; k < c->n_devices; k++) {
        p->device_memory_bytes[k] = c->device[k].memory_bytes;
        if (!(p->device_name[k] = problem_keep(p, c->device[k].name)) ||
            !(p->device_type[k] = problem_keep(p, c->device[k].type)))
            return MOIRAI_EFAIL;
    }
    memcpy(p->bytes_per_second, c->bytes_per_second, pairs * sizeof *p->bytes_per_second);
    memcpy(p->latency_ns, c->latency_ns, pairs * sizeof *p->latency_ns);
    return 0;
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
        (rc = moirai_cost_times_with(p->op_time_ns, g, c, &cost, &report)) || (rc = problem_settle(p, NULL)))
        return rc;
    if (o->cost_report)
        *o->cost_report = report;
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
