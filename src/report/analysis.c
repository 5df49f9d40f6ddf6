/* What a plan says about itself, put together once for all who show it. */
#include "report/report.h"

#include <stdlib.h>

#include "util/util.h"

const char *moirai_share_name(moirai_share s)
{
    static const char *const names[MOIRAI_SHARES] = {"computing", "transferring", "waiting for a busy device",
                                                     "waiting for a busy port", "held back"};
    return names[s];
}

void moirai_analysis_free(moirai_analysis *a)
{
    if (!a)
        return;
    void *owned[] = {a->delay,        a->on_path,         a->step,           a->path_compute_ns,
                     a->path_wait_ns, a->path_link_ns,    a->op_level,       a->memory_off,
                     a->memory_ns,    a->memory_bytes,    a->device_ops,     a->busy_ns,
                     a->send_busy_ns, a->receive_busy_ns, a->resident_bytes, a->peak_bytes};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(a);
}

static int reserve(moirai_analysis *a)
{
    size_t tasks = (size_t)a->n_ops + (size_t)a->n_transfers, K = (size_t)a->n_devices;
    bool ok = true;
    ok &= (a->delay = util_alloc(tasks, sizeof *a->delay)) != NULL;
    ok &= (a->on_path = util_alloc(tasks, sizeof *a->on_path)) != NULL;
    ok &= (a->step = util_alloc(tasks, sizeof *a->step)) != NULL;
    ok &= (a->path_compute_ns = util_alloc(K, sizeof *a->path_compute_ns)) != NULL;
    ok &= (a->path_wait_ns = util_alloc(K, sizeof *a->path_wait_ns)) != NULL;
    ok &= (a->path_link_ns = util_alloc(K * K, sizeof *a->path_link_ns)) != NULL;
    ok &= (a->op_level = util_alloc((size_t)a->n_ops, sizeof *a->op_level)) != NULL;
    ok &= (a->memory_off = util_alloc(K + 1, sizeof *a->memory_off)) != NULL;
    ok &= (a->device_ops = util_alloc(K, sizeof *a->device_ops)) != NULL;
    ok &= (a->busy_ns = util_alloc(K, sizeof *a->busy_ns)) != NULL;
    ok &= (a->resident_bytes = util_alloc(K, sizeof *a->resident_bytes)) != NULL;
    ok &= (a->peak_bytes = util_alloc(K, sizeof *a->peak_bytes)) != NULL;
    ok &= (a->send_busy_ns = util_alloc(K, sizeof *a->send_busy_ns)) != NULL;
    ok &= (a->receive_busy_ns = util_alloc(K, sizeof *a->receive_busy_ns)) != NULL;
    return ok ? 0 : MOIRAI_EFAIL;
}

static void count(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    const moirai_plan *plan = a->plan;
    for (int32_t i = 0; i < a->n_ops; i++) {
        int32_t k = plan->op_device[i];
        a->device_ops[k]++;
        a->busy_ns[k] += plan->op_finish_ns[i] - plan->op_start_ns[i];
        a->resident_bytes[k] += p->op_memory_bytes[i];
    }
    for (int32_t x = 0; x < a->n_transfers; x++) {
        const moirai_transfer *t = &plan->transfer[x];
        a->sent_bytes += p->tensor_bytes[t->tensor]; /* readers keep these sums below 2^61 */
        a->send_busy_ns[t->from] += t->finish_ns - t->start_ns;
        a->receive_busy_ns[t->to] += t->finish_ns - t->start_ns;
    }
    for (int32_t e = 0; e < p->n_edges; e++)
        a->n_cut_edges += plan->op_device[p->tensor_producer[p->edge_tensor[e]]] != plan->op_device[p->edge_reader[e]];
}

/* The best single device, where one can take everything; what users compare with first. */
static void find_single(moirai_analysis *a)
{
    moirai_alone alone;
    if (moirai_alone_find(&alone, a->problem, a->plan))
        return;
    a->single_ns = alone.ns;
    a->single_device = alone.device;
    a->speed_up = alone.speed_up;
}

int moirai_analysis_new(moirai_analysis **out, const moirai_problem *p, const moirai_plan *plan,
                        const moirai_measured *timeline)
{
    *out = NULL;
    bool whole = !p->partial;
    int rc = whole ? moirai_plan_check(p, plan, NULL, NULL) : 0;
    if (rc)
        return moirai_error_prefix(rc, "the plan breaks the rules");
    moirai_analysis *a = util_alloc(1, sizeof *a);
    if (!a)
        return MOIRAI_EFAIL;
    *a = (moirai_analysis){.problem = p,
                           .plan = plan,
                           .timeline = timeline,
                           .n_ops = plan->n_ops,
                           .n_transfers = plan->n_transfers,
                           .n_devices = p->n_devices,
                           .single_ns = MOIRAI_UNKNOWN,
                           .single_device = MOIRAI_NONE,
                           .over_device = MOIRAI_NONE};
    rc = reserve(a);
    if (!rc)
        count(a);
    if (!rc && whole)
        find_single(a);
    rc = rc ? rc : report_find_levels(a);
    rc = rc ? rc : report_find_delays(a);
    rc = rc ? rc : report_find_path(a);
    rc = rc ? rc : report_find_memory(a);
    if (rc) {
        moirai_analysis_free(a);
        return rc;
    }
    report_find_launches(a);
    report_find_verdict(a);
    *out = a;
    return 0;
}

int64_t moirai_task_start(const moirai_analysis *a, int32_t task)
{
    return report_is_transfer(a, task) ? report_transfer(a, task)->start_ns : a->plan->op_start_ns[task];
}

int64_t moirai_task_finish(const moirai_analysis *a, int32_t task)
{
    return report_is_transfer(a, task) ? report_transfer(a, task)->finish_ns : a->plan->op_finish_ns[task];
}

const char *moirai_task_name(const moirai_analysis *a, int32_t task)
{
    return report_is_transfer(a, task) ? a->problem->tensor_name[report_transfer(a, task)->tensor]
                                       : a->problem->op_name[task];
}
