/* A part of the model left out, and what it costs to have left it out.
 *
 * The paper argues for its model against models that ignore congestion, communication or memory. The way to tell is to
 * let the same placer plan without that part, and to carry the plan out under the whole model. What is carried out are
 * its decisions: the devices, and the order of the tasks. Since a poorer model says little about a good order (without
 * communication all transfers of a moment are equal), the simulator's own order for the same devices is tried, too, and
 * the faster one counts: the comparison errs on the side of the poorer model.
 *
 * Problems are copied and changed in place: congestion is a word, transfer times a table, memory a number per device.
 * O(V K + E). */
#include "study/study.h"

#include <string.h>

int study_ablated(moirai_problem **out, const moirai_problem *p, moirai_study_without without)
{
    moirai_problem *q;
    *out = NULL;
    int rc = moirai_problem_change(&q, p, NULL, &(moirai_change){MOIRAI_CHANGE_NONE, MOIRAI_NONE, MOIRAI_NONE});
    if (rc)
        return rc;
    int64_t all_bytes = 0, K = q->n_devices;
    for (int32_t i = 0; i < q->n_ops; i++)
        all_bytes += q->op_memory_bytes[i];
    for (int32_t w = 0; w < q->n_weights; w++)
        all_bytes += q->weight_bytes[w];
    switch (without) {
    case MOIRAI_STUDY_NO_CONGESTION: q->congestion = MOIRAI_CONGESTION_NONE; break;
    case MOIRAI_STUDY_NO_COMMUNICATION:
        memset(q->class_transfer_ns, 0, (size_t)(q->n_classes * K * K) * sizeof *q->class_transfer_ns);
        for (int32_t t = 0; t < q->n_tensors; t++)
            q->tensor_has_table[t] = true; /* the table says it, not bytes and bandwidth */
        break;
    case MOIRAI_STUDY_NO_MEMORY:
        for (int32_t k = 0; k < K; k++)
            q->device_memory_bytes[k] = all_bytes;
        break;
    default: break;
    }
    *out = q;
    return 0;
}

int study_carried_out(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_plan *replayed = NULL;
    moirai_sim *sim = NULL;
    *out = NULL;
    /* Transfers that took no time may stand in an order that real ones can't keep: then only the devices are kept. */
    int replay = moirai_plan_tighten(&replayed, p, plan);
    int rc = moirai_sim_new(&sim, p);
    int64_t dispatched = rc ? -1 : moirai_sim_dispatch(sim, plan->op_device, NULL);
    if (!rc && dispatched < 0)
        rc = moirai_error(MOIRAI_EFAIL, "study: the plan's devices are not allowed in '%s'", p->name);
    if (!rc && (replay || dispatched < replayed->makespan_ns))
        rc = moirai_sim_plan(out, sim);
    else if (!rc) {
        *out = replayed;
        replayed = NULL;
    }
    moirai_plan_free(replayed);
    moirai_sim_free(sim);
    return rc;
}
