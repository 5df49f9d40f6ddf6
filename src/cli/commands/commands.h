/* Every command: one line here and one in main.c. */
#ifndef MOIRAI_CLI_COMMANDS_COMMANDS_H
#define MOIRAI_CLI_COMMANDS_COMMANDS_H

#include "cli/framework/cli.h"

extern const rank_command rank_command_bound;
extern const rank_command rank_command_check;
extern const rank_command rank_command_cluster;
extern const rank_command rank_command_coarsen;
extern const rank_command rank_command_export;
extern const rank_command rank_command_fit;
extern const rank_command rank_command_help;
extern const rank_command rank_command_inspect;
extern const rank_command rank_command_place;
extern const rank_command rank_command_placers;
extern const rank_command rank_command_plan;
extern const rank_command rank_command_probe;
extern const rank_command rank_command_problem;
extern const rank_command rank_command_profile;
extern const rank_command rank_command_prove;
extern const rank_command rank_command_run;
extern const rank_command rank_command_simulate;
extern const rank_command rank_command_import;
extern const rank_command rank_command_split;
extern const rank_command rank_command_version;
extern const rank_command rank_command_zoo;

#endif
