/* `moirai run --in-flight N`: the rate with several requests in flight. */
#ifndef MOIRAI_CLI_MEASURE_RUN_RATE_H
#define MOIRAI_CLI_MEASURE_RUN_RATE_H

#include "cli/run/run_steps.h"

enum { CLI_MOST_IN_FLIGHT = 256 };

/* Before anything starts: can these devices have several requests in flight? `what` asks for it: "run: --in-flight 4". */
int cli_rate_check(const cli_run *w, const char *what);
/* What a plan file says of several requests. */
typedef struct cli_rate_plan {
    int64_t in_flight; /* 0: it was made for one */
    int64_t period_ns; /* of all copies */
    int64_t n_copies;
} cli_rate_plan;

/* "-" is not looked at. */
int cli_rate_plan_read(cli_rate_plan *out, const char *path);
/* --in-flight, else the plan's number, else `otherwise`; says so where copies of the plan will not be run. */
int cli_rate_in_flight(int64_t *out, const cli_context *cli, const cli_rate_plan *plan, int64_t otherwise);
/* What was measured, from the file that rank 0 wrote; after cli_show_timeline, whose latency it compares with. */
int cli_show_rate(cli_context *cli, const char *path, const cli_rate_plan *plan);
/* Writes the timeline to `path`, with "rate" as cli_show_rate has put it into the result. */
int cli_rate_join(const cli_context *cli, const char *timeline, const char *path);

#endif
