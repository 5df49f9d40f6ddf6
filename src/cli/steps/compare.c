/* The rows of moirai compare: who runs, who was best, what is proven. */
#include "cli/steps/compare.h"

#include <stdlib.h>
#include <string.h>

static int no_placer(const char *name)
{
    return moirai_error(MOIRAI_EUSAGE, "compare: no placer '%s': %s", name,
                        cli_hint(name, CLI_VALUE_PLACER, "'moirai placers' lists them").s);
}

/* "getf:mode=milp" in row->text */
static int cut_settings(cli_row *row)
{
    row->placer = row->text;
    for (char *colon = strchr(row->text, ':'); colon; colon = strchr(colon + 1, ':')) {
        char *equals = strchr(colon, '=');
        if (!equals || equals == colon + 1 || row->n_settings == CLI_COMPARE_SETTINGS)
            return moirai_error(MOIRAI_EUSAGE, "compare: --placers '%s': write NAME:SETTING=VALUE, %d settings at most",
                                row->title, CLI_COMPARE_SETTINGS);
        *colon = *equals = '\0';
        row->setting[row->n_settings++] = (moirai_setting){colon + 1, equals + 1};
        colon = equals;
    }
    return moirai_placer_find(row->placer) ? 0 : no_placer(row->placer);
}

static int add_row(cli_comparison *c, const char *name, size_t length)
{
    cli_row *row = &c->row[c->n];
    row->text = strndup(name, length);
    if (!row->text)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    c->n++;
    snprintf(row->title, sizeof row->title, "%s", row->text);
    return cut_settings(row);
}

static int add_all(cli_comparison *c)
{
    int rc = 0;
    for (int i = 0; i < moirai_placer_count() && !rc; i++) {
        const moirai_placer *placer = moirai_placer_at(i);
        const char *why;
        if (!placer->available || placer->available(&why))
            rc = add_row(c, placer->name, strlen(placer->name));
    }
    return rc;
}

int cli_compare_parse(cli_comparison *c, const char *list)
{
    size_t most = (size_t)moirai_placer_count() + 1;
    bool all = !list || !strcmp(list, "all");
    for (const char *at = all ? "" : list; *at; at++)
        most += *at == ',';
    *c = (cli_comparison){.best = -1, .row = calloc(most, sizeof *c->row)};
    if (!c->row)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    int rc = all ? add_all(c) : 0;
    for (const char *at = all ? "" : list; *at && !rc;) {
        size_t length = strcspn(at, ",");
        rc = length > 0 ? add_row(c, at, length)
                        : moirai_error(MOIRAI_EUSAGE, "compare: --placers '%s': a name is empty", list);
        at += length + (at[length] == ',');
    }
    return rc || c->n > 0 ? rc : moirai_error(MOIRAI_EUSAGE, "compare: --placers names none");
}

void cli_compare_free(cli_comparison *c)
{
    for (int i = 0; c->row && i < c->n; i++)
        free(c->row[i].text);
    free(c->row);
    *c = (cli_comparison){0};
}

static void raise_bound(cli_comparison *c, int64_t lower_ns, const char *who)
{
    if (lower_ns > c->lower_bound_ns || !c->bound_by) {
        c->lower_bound_ns = lower_ns > 0 ? lower_ns : 0;
        c->bound_by = who;
    }
}

void cli_compare_judge(cli_comparison *c, const moirai_problem *p)
{
    static const char *const quick[] = {"critical-path", "load", "transfers"};
    moirai_budget budget;
    moirai_budget_init(&budget);
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) {
        const moirai_bound *b = moirai_bound_find(quick[i]);
        int64_t lower;
        if (b && !b->find(&lower, p, &budget) && lower != MOIRAI_UNKNOWN)
            raise_bound(c, lower, b->name);
    }
    for (int i = 0; i < c->n; i++) {
        const cli_child_report *r = &c->row[i].report;
        if (!c->row[i].ran || r->result)
            continue;
        raise_bound(c, r->lower_bound_ns, c->row[i].title);
        if (c->best < 0 || r->makespan_ns < c->row[c->best].report.makespan_ns)
            c->best = i;
    }
}

const char *cli_compare_status(const cli_row *row)
{
    if (!row->ran)
        return "not run";
    switch (row->report.result) {
    case 0: return row->report.stopped ? "stopped" : "found";
    case MOIRAI_EINFEASIBLE:
    case MOIRAI_ELIMIT: return "no plan";
    default: return "failed";
    }
}
