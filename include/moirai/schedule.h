/* The simulator: from decisions (devices and orders) to times, exactly as model.md says.
 *
 * Two ways in, one meaning:
 *  - dispatch: devices and a priority per operator. Event by event, a free device takes the ready
 *    operator of highest priority, a free pair of ports the waiting transfer whose most urgent reader has the
 *    highest priority. O((V+E)(log V + K^2)) for K devices.
 *  - replay: devices and one total order of tasks (operators and transfers). Each task starts as soon as
 *    its inputs are there and everything before it in the order has left its resources. Any schedule's tasks
 *    sorted by start give that schedule or a better one. O(V+E).
 * A moirai_sim owns all working memory: simulating many placements of one problem allocates nothing. */
#ifndef MOIRAI_SCHEDULE_H
#define MOIRAI_SCHEDULE_H

#include <moirai/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_sim moirai_sim;

/* A simulator of one problem, which must outlive it and not change until then. *out is the caller's. MOIRAI_EFAIL: out of
 * memory. O(V K + E). */
MOIRAI_API int moirai_sim_new(moirai_sim **out, const moirai_problem *p);
/* Frees it. NULL is fine. */
MOIRAI_API void moirai_sim_free(moirai_sim *sim);

/* Task numbers in an order: operator i is i; the transfer of edge e (flow edge) is n_ops + e; the
 * transfer of tensor t to device d (flow tensor) is n_ops + t * n_devices + d. */
typedef int64_t moirai_task;

/* Both return the makespan, or -1 where the devices are not allowed (an operator on a device that can't
 * run it, a split group). Memory is NOT checked: see moirai_sim_memory_excess.
 * `priority` larger is sooner; ties by topological rank. NULL: upward ranks for these devices
 * (longest remaining path with the actual times and transfers). */
MOIRAI_API int64_t moirai_sim_dispatch(moirai_sim *sim, const int32_t *op_device, const int64_t *priority);
/* `order` must hold every operator and every needed transfer once and respect precedence; transfers that
 * are not needed are skipped; needed ones that are missing are sent just before their reader. */
MOIRAI_API int64_t moirai_sim_replay(moirai_sim *sim, const int32_t *op_device, const moirai_task *order,
                                     int64_t n_order);

/* Of the last simulation: start of each operator. Owned by the simulator, valid until the next simulation. */
MOIRAI_API const int64_t *moirai_sim_op_start(const moirai_sim *sim);
/* Of the last simulation: all tasks sorted by start, which a replay takes. Returns how many; *order is owned by the
 * simulator and valid until the next simulation. */
MOIRAI_API int64_t moirai_sim_order(moirai_sim *sim, const moirai_task **order);
/* Of the last simulation: bytes by which the fullest device exceeds its memory (0: all fit),
 * in the problem's memory mode; *device gets that device if not NULL. */
MOIRAI_API int64_t moirai_sim_memory_excess(moirai_sim *sim, int32_t *device);
/* The last simulation as a plan (placer and bound not set). */
MOIRAI_API int moirai_sim_plan(moirai_plan **out, const moirai_sim *sim);

/* Times from someone else (a solver, a composed schedule): sort the tasks of `plan` by start, replay them.
 * The result is never later than the plan. */
MOIRAI_API int moirai_plan_tighten(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan);

/* ---- plain bounds ---- whole nanoseconds, valid for every plan of the problem. */

/* The longest path by least times, transfers left out. O(V K + E). */
MOIRAI_API int64_t moirai_bound_critical_path(const moirai_problem *p);
/* All work shared out over the devices as well as can be. O(V K). */
MOIRAI_API int64_t moirai_bound_load(const moirai_problem *p);

#ifdef __cplusplus
}
#endif
#endif
