/* `moirai run --best FILE`: a plan against the best one so far. */
#ifndef MOIRAI_CLI_MEASURE_RUN_BEST_H
#define MOIRAI_CLI_MEASURE_RUN_BEST_H

#include "cli/run/run_steps.h"

typedef struct cli_best {
    const char *file, *plan; /* the best one so far, and the one that was just run */
    bool first, same;        /* there is none so far; both are one */
} cli_best;

/* Before anything starts: what is in the file? `file` is NULL where --best was not given. */
int cli_best_open(cli_best *b, const cli_context *cli);
/* Runs both in turns, each of them prepared, and leaves the faster one in the file. `best` is not looked at where there
 * is nothing to compare. */
int cli_best_settle(const cli_best *b, cli_context *cli, const cli_run *own, const cli_run *best);

#endif
