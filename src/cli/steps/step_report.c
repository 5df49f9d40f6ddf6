/* Plans with what belongs to them, read for reports, explanations and exports; and the page as a file. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

int cli_problem_of(moirai_problem **out, const cli_context *cli, const char *plan_path)
{
    const char *path = cli_text(cli, "problem");
    if (!path)
        return moirai_problem_of_plan(out, plan_path);
    if (!strcmp(path, "-") && !strcmp(plan_path, "-"))
        return moirai_error(MOIRAI_EUSAGE, "%s: problem and plan can't both come from stdin", cli->command->name);
    return moirai_problem_read(out, path);
}

void cli_read_free(cli_read *r)
{
    moirai_analysis_free(r->analysis);
    moirai_measured_free(r->timeline);
    moirai_plan_free(r->plan);
}

int cli_read_plan(cli_read *out, const moirai_problem *p, const char *plan_path, const char *timeline_path)
{
    memset(out, 0, sizeof *out);
    int rc = moirai_plan_read(&out->plan, p, plan_path);
    rc = rc ? rc : timeline_path ? moirai_measured_read(&out->timeline, p, timeline_path) : 0;
    if (!rc && (rc = moirai_analysis_new(&out->analysis, p, out->plan, out->timeline)))
        moirai_error_prefix(rc, "%s", plan_path);
    return rc;
}

int cli_write_page(cli_context *cli, const char *path, const cli_page_plan *plan, int n)
{
    moirai_report_plan *list = calloc((size_t)n, sizeof *list);
    moirai_search_event **events = calloc((size_t)n, sizeof *events);
    char *page = NULL;
    size_t length = 0;
    int rc = list && events ? 0 : moirai_error(MOIRAI_EFAIL, "out of memory");
    for (int i = 0; i < n && !rc; i++) {
        list[i] = (moirai_report_plan){.label = plan[i].label, .analysis = plan[i].analysis};
        if (plan[i].log)
            rc = moirai_search_log_read(&events[i], &list[i].n_events, plan[i].log);
        list[i].event = events[i];
    }
    rc = rc ? rc : moirai_report_page(&page, &length, list, n);
    rc = rc ? rc : util_file_write(path, page, length);
    if (!rc) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "report", path);
        yyjson_mut_obj_add_uint(cli->doc, cli->result, "report_bytes", length);
        cli_say(cli, "report: %s, %s; open it in a browser\n", path, cli_human_bytes((int64_t)length).s);
    }
    for (int i = 0; events && i < n; i++)
        free(events[i]);
    free(events);
    free(list);
    free(page);
    return rc;
}
