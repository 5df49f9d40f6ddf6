/* Which steps of the search found the plan and the bound, and what each has taken and gained: a table at the end of the
 * log, and the same for --json. */
#include <yyjson.h>

#include "cli/steps/steps.h"

static void show_gain(int64_t ns)
{
    fprintf(stderr, " %14s", ns > 0 ? cli_human_ns(ns).s : "-");
}

void cli_log_steps(const moirai_plan *plan, bool times)
{
    const moirai_plan_origin *o = &plan->origin;
    if (!o->n_steps)
        return;
    cli_status_clear();
    fprintf(stderr, "%-16s %6s%s %14s %14s\n", "step", "calls", times ? " processor time" : "", "plan gained",
            "bound gained");
    for (int32_t i = 0; i < o->n_steps; i++) {
        const moirai_search_step *step = &o->step[i];
        fprintf(stderr, "%-16s %6d", step->name, step->calls);
        if (times)
            fprintf(stderr, " %12.1f s", 1e-9 * (double)step->cpu_ns);
        show_gain(step->plan_gain_ns);
        show_gain(step->bound_gain_ns);
        fputc('\n', stderr);
    }
    fprintf(stderr, "the plan is by %s, the bound by %s\n\n", o->plan_by ? o->plan_by : plan->placer,
            o->bound_by ? o->bound_by : "nobody");
}

void cli_show_steps(cli_context *cli, const moirai_plan *plan)
{
    const moirai_plan_origin *o = &plan->origin;
    if (o->plan_by)
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "plan_by", o->plan_by);
    if (o->bound_by)
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "bound_by", o->bound_by);
    if (!o->n_steps)
        return;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "steps");
    for (int32_t i = 0; i < o->n_steps; i++) {
        const moirai_search_step *step = &o->step[i];
        yyjson_mut_val *row = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, row, "name", step->name);
        yyjson_mut_obj_add_int(cli->doc, row, "calls", step->calls);
        if (step->cpu_ns >= 0)
            yyjson_mut_obj_add_int(cli->doc, row, "cpu_ns", step->cpu_ns);
        yyjson_mut_obj_add_int(cli->doc, row, "plan_gain_ns", step->plan_gain_ns);
        yyjson_mut_obj_add_int(cli->doc, row, "bound_gain_ns", step->bound_gain_ns);
    }
}
