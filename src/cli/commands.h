/* Every command: one line here and one in main.c. */
#ifndef MOIRAI_COMMANDS_H
#define MOIRAI_COMMANDS_H

#include "cli/cli.h"

extern const moirai_command moirai_command_bound;
extern const moirai_command moirai_command_check;
extern const moirai_command moirai_command_cluster;
extern const moirai_command moirai_command_coarsen;
extern const moirai_command moirai_command_explain;
extern const moirai_command moirai_command_export;
extern const moirai_command moirai_command_fit;
extern const moirai_command moirai_command_help;
extern const moirai_command moirai_command_inspect;
extern const moirai_command moirai_command_place;
extern const moirai_command moirai_command_placers;
extern const moirai_command moirai_command_plan;
extern const moirai_command moirai_command_probe;
extern const moirai_command moirai_command_problem;
extern const moirai_command moirai_command_profile;
extern const moirai_command moirai_command_prove;
extern const moirai_command moirai_command_report;
extern const moirai_command moirai_command_run;
extern const moirai_command moirai_command_simulate;
extern const moirai_command moirai_command_import;
extern const moirai_command moirai_command_split;
extern const moirai_command moirai_command_version;
extern const moirai_command moirai_command_zoo;

#endif
