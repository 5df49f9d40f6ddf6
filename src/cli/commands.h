/* Every command: one line here and one in main.c. */
#ifndef MOIRAI_COMMANDS_H
#define MOIRAI_COMMANDS_H

#include "cli/cli.h"

extern const moirai_command moirai_command_coarsen;
extern const moirai_command moirai_command_help;
extern const moirai_command moirai_command_version;

#endif
