/* Plans as values: making, copying, freeing, and what the two numbers of a plan say about each other. */
#include "schedule/plan.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

int schedule_plan_new(moirai_plan **out, const char *problem, int32_t n_ops, int32_t n_transfers, int32_t n_devices)
{
    *out = NULL;
    moirai_plan *plan = util_alloc(1, sizeof *plan);
    if (!plan)
        return MOIRAI_EFAIL;
    size_t V = (size_t)n_ops, K = (size_t)n_devices;
    plan->seed = 1;
    plan->lower_bound_ns = plan->certified_bound_ns = plan->solver_bound_ns = MOIRAI_UNKNOWN;
    plan->n_ops = n_ops;
    plan->n_transfers = n_transfers;
    plan->n_devices = n_devices;
    plan->problem = util_strdup(problem);
    plan->placer = util_strdup("");
    plan->op_device = util_alloc(V, sizeof *plan->op_device);
    plan->op_start_ns = util_alloc(V, sizeof *plan->op_start_ns);
    plan->op_finish_ns = util_alloc(V, sizeof *plan->op_finish_ns);
    plan->transfer = util_alloc((size_t)n_transfers, sizeof *plan->transfer);
    plan->device_busy_ns = util_alloc(K, sizeof *plan->device_busy_ns);
    plan->device_memory_bytes = util_alloc(K, sizeof *plan->device_memory_bytes);
    plan->device_peak_bytes = util_alloc(K, sizeof *plan->device_peak_bytes);
    if (!plan->problem || !plan->placer || !plan->op_device || !plan->op_start_ns || !plan->op_finish_ns ||
        !plan->transfer || !plan->device_busy_ns || !plan->device_memory_bytes || !plan->device_peak_bytes) {
        moirai_plan_free(plan);
        return MOIRAI_EFAIL;
    }
    for (size_t i = 0; i < V; i++)
        plan->op_device[i] = MOIRAI_NONE;
    for (size_t k = 0; k < K; k++)
        plan->device_busy_ns[k] = plan->device_memory_bytes[k] = plan->device_peak_bytes[k] = MOIRAI_UNKNOWN;
    *out = plan;
    return 0;
}

void moirai_plan_free(moirai_plan *plan)
{
    if (!plan)
        return;
    free(plan->problem);
    free(plan->placer);
    free(plan->op_device);
    free(plan->op_start_ns);
    free(plan->op_finish_ns);
    free(plan->transfer);
    free(plan->device_busy_ns);
    free(plan->device_memory_bytes);
    free(plan->device_peak_bytes);
    schedule_origin_clear(&plan->origin);
    schedule_rate_free(plan->rate);
    free(plan);
}

int schedule_plan_keep_origin(moirai_plan *plan, const moirai_plan *from)
{
    char *placer = util_strdup(from->placer ? from->placer : "");
    if (!placer || schedule_origin_copy(&plan->origin, &from->origin)) {
        free(placer);
        return MOIRAI_EFAIL;
    }
    free(plan->placer);
    plan->placer = placer;
    plan->seed = from->seed;
    plan->lower_bound_ns = from->lower_bound_ns;
    plan->certified_bound_ns = from->certified_bound_ns;
    plan->uncertified = from->uncertified;
    plan->solver_bound_ns = from->solver_bound_ns;
    plan->generation_ns = from->generation_ns;
    return 0;
}

int moirai_plan_copy(moirai_plan **out, const moirai_plan *plan)
{
    moirai_plan *copy;
    int rc = schedule_plan_new(&copy, plan->problem, plan->n_ops, plan->n_transfers, plan->n_devices);
    *out = NULL;
    if (rc)
        return rc;
    if (plan->rate)
        copy->rate = schedule_rate_copy(plan->rate, plan->n_ops);
    if ((plan->rate && !copy->rate) || schedule_plan_keep_origin(copy, plan)) {
        moirai_plan_free(copy);
        return MOIRAI_EFAIL;
    }
    copy->makespan_ns = plan->makespan_ns;
    size_t V = (size_t)plan->n_ops, K = (size_t)plan->n_devices;
    memcpy(copy->op_device, plan->op_device, V * sizeof *copy->op_device);
    memcpy(copy->op_start_ns, plan->op_start_ns, V * sizeof *copy->op_start_ns);
    memcpy(copy->op_finish_ns, plan->op_finish_ns, V * sizeof *copy->op_finish_ns);
    memcpy(copy->transfer, plan->transfer, (size_t)plan->n_transfers * sizeof *copy->transfer);
    memcpy(copy->device_busy_ns, plan->device_busy_ns, K * sizeof *copy->device_busy_ns);
    memcpy(copy->device_memory_bytes, plan->device_memory_bytes, K * sizeof *copy->device_memory_bytes);
    memcpy(copy->device_peak_bytes, plan->device_peak_bytes, K * sizeof *copy->device_peak_bytes);
    *out = copy;
    return 0;
}

double moirai_plan_gap(const moirai_plan *plan)
{
    if (plan->lower_bound_ns == MOIRAI_UNKNOWN)
        return -1;
    if (plan->makespan_ns == 0)
        return 0;
    return (double)(plan->makespan_ns - plan->lower_bound_ns) / (double)plan->makespan_ns;
}

bool moirai_plan_is_optimal(const moirai_plan *plan)
{
    return plan->lower_bound_ns == plan->makespan_ns;
}

const char *moirai_plan_verdict(const moirai_plan *plan)
{
    if (!moirai_plan_is_optimal(plan))
        return plan->solver_bound_ns >= plan->makespan_ns ? "feasible (optimal by its solver's word)" : "feasible";
    return plan->certified_bound_ns >= plan->makespan_ns ? "optimal (certified)" : "optimal (searched)";
}

const char *moirai_uncertified_text(uint32_t bit)
{
    switch (bit) {
    case MOIRAI_UNCERTIFIED_SEARCH: return "search";
    case MOIRAI_UNCERTIFIED_GROUPS: return "groups";
    case MOIRAI_UNCERTIFIED_MEMORY: return "memory";
    case MOIRAI_UNCERTIFIED_WEIGHTS: return "shared weights";
    case MOIRAI_UNCERTIFIED_PEAK: return "lives of tensors";
    case MOIRAI_UNCERTIFIED_LIMIT: return "time limit of the verifier";
    case MOIRAI_UNCERTIFIED_REJECTED: return "rejected by the verifier";
    default: return NULL;
    }
}

static int by_start(const void *left, const void *right)
{
    const moirai_transfer *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return (a->reader > b->reader) - (a->reader < b->reader);
}

static bool starts_ascend(const moirai_plan *plan)
{
    int32_t j = 1;
    while (j < plan->n_transfers && plan->transfer[j - 1].start_ns <= plan->transfer[j].start_ns)
        j++;
    return j >= plan->n_transfers;
}

/* Those that start at once, where all are in order of their starts already. */
void schedule_plan_sort_transfers(moirai_plan *plan)
{
    bool all = !starts_ascend(plan);
    for (int32_t begin = 0, end; begin < plan->n_transfers; begin = end) {
        for (end = begin + 1;
             end < plan->n_transfers && (all || plan->transfer[end].start_ns == plan->transfer[begin].start_ns);)
            end++;
        if (end > begin + 1)
            qsort(&plan->transfer[begin], (size_t)(end - begin), sizeof *plan->transfer, by_start);
    }
}
