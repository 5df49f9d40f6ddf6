/* Pieces of the topological order: the memory that they need, and their plan. */
#include "place/list/contiguous.h"

#include <stdlib.h>

#include "schedule/sim.h"
#include "util/util.h"

void place_alive_bytes(const moirai_problem *p, int64_t *alive)
{
    int64_t now = 0;
    for (int32_t r = 0; r < p->n_ops; r++)
        alive[r] = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) { /* alive[r]: for now, what dies after rank r */
        int32_t last = p->tensor_edge_off[t] < p->tensor_edge_off[t + 1] ? 0 : p->n_ops - 1;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            last = UTIL_MAX(last, p->topo_rank[p->edge_reader[e]]);
        alive[last] += p->tensor_bytes[t];
    }
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t op = p->topo[r];
        int64_t dies = alive[r];
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
            now += p->tensor_bytes[p->op_out[j]];
        alive[r] = now;
        now -= dies;
    }
}

static int keep_if_better(moirai_plan **out, moirai_sim *sim, int64_t makespan_ns)
{
    moirai_plan *plan;
    if (sim->stopped)
        return *out ? 0 : moirai_error(MOIRAI_ELIMIT, "the time was up before a plan was simulated");
    if (makespan_ns < 0)
        return moirai_error(MOIRAI_EFAIL, "an assignment of pieces could not be simulated");
    if (moirai_sim_memory_excess(sim, NULL) > 0 || (*out && (*out)->makespan_ns <= makespan_ns))
        return 0;
    int rc = moirai_sim_plan(&plan, sim);
    if (!rc) {
        moirai_plan_free(*out);
        *out = plan;
    }
    return rc;
}

int place_contiguous_plan(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, const int32_t *device)
{
    *out = NULL;
    moirai_task *order = util_alloc((size_t)p->n_ops, sizeof *order);
    if (!order)
        return MOIRAI_EFAIL;
    for (int32_t r = 0; r < p->n_ops; r++)
        order[r] = p->topo[r];
    int rc = keep_if_better(out, sim, moirai_sim_replay(sim, device, order, p->n_ops));
    rc = rc ? rc : keep_if_better(out, sim, moirai_sim_dispatch(sim, device, NULL));
    free(order);
    if (rc) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    return rc;
}
