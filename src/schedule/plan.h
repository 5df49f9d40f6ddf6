/* Inside plans: making one. Private. */
#ifndef MOIRAI_SCHEDULE_PLAN_H
#define MOIRAI_SCHEDULE_PLAN_H

#include <moirai/schedule.h>

#include "util/json.h"

/* A plan with all arrays allocated: operators on no device, starts 0, device figures MOIRAI_UNKNOWN. */
int schedule_plan_new(moirai_plan **out, const char *problem, int32_t n_ops, int32_t n_transfers, int32_t n_devices);
/* Placer, seed, time and bound of another plan. MOIRAI_EFAIL: nothing has changed. */
int schedule_plan_keep_origin(moirai_plan *plan, const moirai_plan *from);
/* The origin of a plan (plan_origin.c). Setting and copying free what was there; MOIRAI_EFAIL: nothing has changed. */
void schedule_origin_clear(moirai_plan_origin *origin);
int schedule_origin_copy(moirai_plan_origin *origin, const moirai_plan_origin *from);
int schedule_origin_bound_by(moirai_plan_origin *origin, const char *name);
int schedule_origin_plan_by(moirai_plan_origin *origin, const char *name);
/* One more step at the end of the list. */
int schedule_origin_add_step(moirai_plan_origin *origin, const char *name, const moirai_search_step *figures);
/* Keys of a plan file; times are not among them, so that the same search writes the same file. */
void schedule_origin_write(util_writer *w, const moirai_plan_origin *origin);
int schedule_origin_read(moirai_plan_origin *origin, const util_json_at *at, yyjson_val *root);
/* What a plan has for many requests: n_copies without shares, devices MOIRAI_NONE. NULL: out of memory. */
moirai_rate *schedule_rate_new(int32_t n_copies, int32_t n_ops);
void schedule_rate_free(moirai_rate *r);
moirai_rate *schedule_rate_copy(const moirai_rate *r, int32_t n_ops);
/* Its keys in a plan file (formats.md). Reading leaves plan->rate NULL where the file has none. */
int schedule_rate_write(util_writer *w, const moirai_plan *plan, const moirai_problem *p);
int schedule_rate_read(moirai_plan *plan, const moirai_problem *p, const util_json_at *at, yyjson_val *root);
/* After the operators were read: the first copy is the plan itself. */
int schedule_rate_finish(moirai_plan *plan, const moirai_problem *p, const util_json_at *at);
/* "ops" and "transfers" of a plan file. */
void schedule_plan_write_tasks(util_writer *w, const moirai_plan *plan, const moirai_problem *p);
/* Into the order of the header: (start, from, to, tensor, reader). */
void schedule_plan_sort_transfers(moirai_plan *plan);
/* What devices do and need in a correct plan, by its own times: busy, bytes, peaks. */
int schedule_plan_account(moirai_plan *plan, const moirai_problem *p);

#endif
