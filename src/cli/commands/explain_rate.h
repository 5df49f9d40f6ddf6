/* `moirai explain` of a plan for many requests. Private. */
#ifndef MOIRAI_CLI_EXPLAIN_RATE_H
#define MOIRAI_CLI_EXPLAIN_RATE_H

#include <moirai/rate.h>

#include "cli/framework/cli.h"

/* What limits the rate; and, in the time of --what-if, the rate with one more device of each kind. */
int cli_explain_rate(cli_context *cli, const moirai_problem *p, const moirai_plan *plan);

#endif
