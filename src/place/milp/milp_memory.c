/* When nothing fits: proof and explanation.
 *
 * First what needs no search: an operator (or keep-together group) larger than every device that may take it; more
 * bytes than all devices have. Then a small program over placement and memory rows alone: minimise the bytes that the
 * worst device lacks. A bound above zero proves that no plan exists, and the solution says who is short, and by how
 * much, at best. Everything said is recomputed in whole bytes. */
#include "place/milp/milp.h"
#include "util/text.h"

#include <math.h>
#include <stdlib.h>

/* The device that lacks most in the placement of `value`, in whole bytes. */
static int64_t worst_device(const milp_program *g, const double *value, int32_t *device, int64_t *need)
{
    const moirai_problem *p = g->p;
    int64_t worst = 0;
    *device = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t sum = 0;
        for (int32_t i = 0; i < p->n_ops; i++) {
            int32_t x = g->x[(int64_t)i * p->n_devices + k];
            if (x >= 0 && value[x] > 0.5)
                sum += p->op_memory_bytes[i];
        }
        for (int32_t w = 0; w < p->n_weights; w++)
            if (value[g->held[(int64_t)w * p->n_devices + k]] > 0.5)
                sum += p->weight_bytes[w];
        if (sum - p->device_memory_bytes[k] > worst) {
            worst = sum - p->device_memory_bytes[k];
            *device = k;
            *need = sum;
        }
    }
    return worst;
}

static int explain(const milp_program *g, const milp_solve *job)
{
    const moirai_problem *p = g->p;
    double margin = 1e-6;
    for (int32_t k = 0; k < p->n_devices; k++)
        margin = UTIL_MAX(margin, 1e-7 * (double)p->device_memory_bytes[k]);
    margin = UTIL_MIN(margin, 0.5); /* sizes are whole bytes */
    if (job->status != MILP_OPTIMAL || !job->has_value || job->bound <= margin)
        return 0;
    int32_t device;
    int64_t need = 0, lacks = worst_device(g, job->value, &device, &need);
    if (p->memory == MOIRAI_MEMORY_PEAK && lacks == 0)
        return moirai_error(MOIRAI_EINFEASIBLE,
                            "problem '%s': wherever its operators go, some device is at least %.0f bytes short of an "
                            "operator's inputs and "
                            "outputs beside the resident bytes",
                            p->name, ceil(job->bound - margin));
    return moirai_error(MOIRAI_EINFEASIBLE,
                        "problem '%s': no placement fits: at best device '%s' needs %s and has %s, %s short", p->name,
                        p->device_name[device], util_human_bytes(need).s,
                        util_human_bytes(p->device_memory_bytes[device]).s, util_human_bytes(lacks).s);
}

static bool keep_on(void *data, double bound, int64_t nodes)
{
    const moirai_place_options *o = data;
    (void)bound, (void)nodes;
    return !moirai_interrupt_raised(o->budget.interrupt);
}

int milp_check_memory(const moirai_problem *p, const moirai_place_options *o)
{
    int rc = moirai_problem_check_memory(p);
    if (rc)
        return rc;
    milp_program *g;
    if ((rc = milp_program_memory(&g, p)))
        return rc;
    double *value = util_alloc((size_t)g->m.n_cols, sizeof *value);
    milp_solve job = {.g = g,
                      .time_limit_s = o->budget.time_limit_s,
                      .threads = o->budget.threads,
                      .seed = o->budget.seed,
                      .value = value,
                      .data = (void *)o,
                      .keep_on = keep_on};
    rc = value ? milp_solve_run(&job) : MOIRAI_EFAIL;
    rc = rc ? rc : explain(g, &job);
    free(value);
    milp_program_free(g);
    return rc;
}
