/* Inside `moirai run`: the network's outputs as files of the user's. */
#ifndef MOIRAI_CLI_MEASURE_RUN_OUTPUTS_H
#define MOIRAI_CLI_MEASURE_RUN_OUTPUTS_H

#include "cli/run/run_steps.h"

/* Before the run, once the outputs are known: fails if a file of --output is there, unless --force. */
int cli_outputs_check(const cli_run *w);
/* After it: all of them, and the list of their names, or none. */
int cli_outputs_write(const cli_run *w);

#endif
