/* Inside plans: making one. Private. */
#ifndef MOIRAI_SCHEDULE_PLAN_H
#define MOIRAI_SCHEDULE_PLAN_H

#include <moirai/plan.h>

/* A plan with all arrays allocated: operators on no device, starts 0, device figures MOIRAI_UNKNOWN. */
int schedule_plan_new(moirai_plan **out, const char *problem, int32_t n_ops, int32_t n_transfers, int32_t n_devices);
/* Placer, seed, time and bound of another plan. MOIRAI_EFAIL: nothing has changed. */
int schedule_plan_keep_origin(moirai_plan *plan, const moirai_plan *from);
/* Into the order of the header: (start, from, to, tensor, reader). */
void schedule_plan_sort_transfers(moirai_plan *plan);

#endif
