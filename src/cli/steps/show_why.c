/* The verdict of an analysis as text, and its numbers for --json. */
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

static void add_path(cli_context *cli, const moirai_analysis *a)
{
    static const char *const keys[MOIRAI_SHARES] = {"computing_ns", "transferring_ns", "waiting_device_ns",
                                                    "waiting_port_ns", "held_ns"};
    yyjson_mut_val *path = yyjson_mut_obj(cli->doc);
    for (int s = 0; s < MOIRAI_SHARES; s++)
        yyjson_mut_obj_add_int(cli->doc, path, keys[s], a->share_ns[s]);
    yyjson_mut_obj_add_int(cli->doc, path, "tasks", a->n_steps);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "launches_ns", a->launch_ns);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "critical_path", path);
}

static void add_over(cli_context *cli, const moirai_analysis *a)
{
    if (a->over_device == MOIRAI_NONE)
        return;
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(cli->doc, cli->result, "over_memory");
    yyjson_mut_obj_add_strcpy(cli->doc, o, "device", a->problem->device_name[a->over_device]);
    yyjson_mut_obj_add_int(cli->doc, o, "peak_bytes", a->peak_bytes[a->over_device]);
    yyjson_mut_obj_add_int(cli->doc, o, "memory_bytes", a->problem->device_memory_bytes[a->over_device]);
}

void cli_show_over(cli_context *cli, const moirai_analysis *a)
{
    if (a->over_device != MOIRAI_NONE)
        cli_print(cli, "%s\n", a->verdict[1]);
    add_over(cli, a);
}

/* Of many requests others tell: the analysis is of one. */
static void show_of(cli_context *cli, const moirai_rate *r)
{
    static const char of[] = "one request alone, on the plan's first copy";
    cli_print(cli, "%s:\n", of);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "verdict_of", of);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "in_flight", r->in_flight);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "n_copies", r->n_copies);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "period_bound_ns", r->period_bound_ns);
}

void cli_show_why(cli_context *cli, const moirai_analysis *a, int first, int most)
{
    yyjson_mut_val *lines = yyjson_mut_arr(cli->doc);
    if (a->plan->rate)
        show_of(cli, a->plan->rate);
    for (int i = 0; i < a->n_verdict; i++) {
        yyjson_mut_arr_add_strcpy(cli->doc, lines, a->verdict[i]);
        if (i >= first && i < first + most)
            cli_print(cli, "%s\n", a->verdict[i]);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "verdict", lines);
    add_over(cli, a);
    if (!a->problem->partial)
        add_path(cli, a);
}

int cli_show_explained(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_analysis *a;
    const char *page = cli_text(cli, "report");
    int rc = moirai_analysis_new(&a, p, plan, NULL);
    if (rc)
        return rc;
    cli_print(cli, "\n");
    cli_show_why(cli, a, 1, 2 + a->mostly_launches + (a->over_device != MOIRAI_NONE));
    if (page) {
        const char *log = cli_text(cli, "log-json");
        rc = cli_write_page(cli, page, &(cli_page_plan){.analysis = a, .log = log && strcmp(log, "-") ? log : NULL}, 1);
    }
    moirai_analysis_free(a);
    return rc;
}
