/* What to measure first. */
#ifndef MOIRAI_CLI_PROFILE_WANTED_H
#define MOIRAI_CLI_PROFILE_WANTED_H

#include "cli/framework/cli.h"

/* --most-wanted: nothing is measured; which classes of operators on which devices a plan's verdict hangs on. */
int cli_profile_wanted(cli_context *cli);

#endif
