/* The rows of moirai compare, and how they are shown. */
#ifndef MOIRAI_CLI_STEPS_COMPARE_H
#define MOIRAI_CLI_STEPS_COMPARE_H

#include "cli/steps/step_child.h"
#include "cli/steps/steps.h"

#define CLI_COMPARE_SETTINGS 8

typedef struct cli_row {
    char *text; /* owned: "getf:mode=milp", cut up for name and settings */
    char title[64];
    const char *placer;
    moirai_setting setting[CLI_COMPARE_SETTINGS];
    int n_settings;
    bool ran;
    cli_child_report report; /* where it ran */
} cli_row;

typedef struct cli_comparison {
    cli_row *row;
    int n;
    int best;               /* the row of least makespan, -1 where there is no plan */
    int64_t lower_bound_ns; /* the best proven by anybody */
    const char *bound_by;
} cli_comparison;

/* "all" or NULL: every placer that is there; else names, separated by commas, each with settings behind colons. */
int cli_compare_parse(cli_comparison *c, const char *list);
void cli_compare_free(cli_comparison *c);
/* The best row, and the best bound of any row and of the bounds that take no time. */
void cli_compare_judge(cli_comparison *c, const moirai_problem *p);
/* "found", "no plan", "stopped", "failed", "not run" */
const char *cli_compare_status(const cli_row *row);

/* The table, or with `csv` the same in full numbers; and cli->result either way. */
void cli_compare_show(cli_context *cli, const cli_comparison *c, const moirai_problem *p, bool csv);

#endif
