/* Every command: one line here and one in main.c. */
#ifndef MOIRAI_CLI_COMMANDS_COMMANDS_H
#define MOIRAI_CLI_COMMANDS_COMMANDS_H

#include "cli/framework/cli.h"

extern const cli_command cli_command_bench;
extern const cli_command cli_command_bound;
extern const cli_command cli_command_check;
extern const cli_command cli_command_cluster;
extern const cli_command cli_command_coarsen;
extern const cli_command cli_command_explain;
extern const cli_command cli_command_compare;
extern const cli_command cli_command_export;
extern const cli_command cli_command_fit;
extern const cli_command cli_command_help;
extern const cli_command cli_command_inspect;
extern const cli_command cli_command_place;
extern const cli_command cli_command_placers;
extern const cli_command cli_command_plan;
extern const cli_command cli_command_probe;
extern const cli_command cli_command_problem;
extern const cli_command cli_command_profile;
extern const cli_command cli_command_prove;
extern const cli_command cli_command_report;
extern const cli_command cli_command_run;
extern const cli_command cli_command_serve;
extern const cli_command cli_command_shard;
extern const cli_command cli_command_simulate;
extern const cli_command cli_command_import;
extern const cli_command cli_command_split;
extern const cli_command cli_command_tune;
extern const cli_command cli_command_version;
extern const cli_command cli_command_zoo;

#endif
