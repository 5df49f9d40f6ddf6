/* The page: a template, a style sheet, scripts and the data, put together into one file that needs nothing else.
 *
 * The parts lie beside this file and are compiled in. The template has places {{title}}, {{css}}, {{js}}, {{data}};
 * nothing else of it changes. Names reach the page in two ways only: the title, escaped as text, and the data, escaped
 * so that no '<' is left in it; the scripts put names into the page as text, never as HTML. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

static const char *const scripts[] = {report_file_draw_js,   report_file_timeline_js, report_file_graph_js,
                                      report_file_charts_js, report_file_rate_js,     report_file_page_js};

static int put_part(report_text *t, const char *name, size_t length, const moirai_report_plan *plan, int32_t n_plans)
{
    if (!strncmp(name, "title", length)) {
        report_put_xml(t, plan[0].analysis->problem->name);
    } else if (!strncmp(name, "css", length)) {
        report_put_bytes(t, report_file_page_css, strlen(report_file_page_css));
    } else if (!strncmp(name, "js", length)) {
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
            report_put_bytes(t, scripts[i], strlen(scripts[i]));
    } else if (!strncmp(name, "data", length)) {
        return report_put_data(t, plan, n_plans);
    }
    return 0;
}

int moirai_report_page(char **out, size_t *length, const moirai_report_plan *plan, int32_t n_plans)
{
    report_text t = {0};
    const char *rest = report_file_page_html, *at;
    int rc = 0;
    *out = NULL;
    if (n_plans < 1)
        return moirai_error(MOIRAI_EUSAGE, "a report needs a plan");
    for (int32_t i = 1; i < n_plans; i++)
        if (plan[i].analysis->problem != plan[0].analysis->problem)
            return moirai_error(MOIRAI_EUSAGE, "the plans of a report must belong to one problem");
    while (!rc && (at = strstr(rest, "{{"))) {
        const char *end = strstr(at, "}}");
        report_put_bytes(&t, rest, (size_t)(at - rest));
        rc = put_part(&t, at + 2, (size_t)(end - at - 2), plan, n_plans);
        rest = end + 2;
    }
    if (rc) {
        free(t.data);
        return rc;
    }
    report_put_bytes(&t, rest, strlen(rest));
    return report_take(out, length, &t);
}

int moirai_report_html(char **out, size_t *length, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_analysis *a;
    *out = NULL;
    int rc = moirai_analysis_new(&a, p, plan, NULL);
    if (rc)
        return rc;
    rc = moirai_report_page(out, length, &(moirai_report_plan){.analysis = a}, 1);
    moirai_analysis_free(a);
    return rc;
}
