/* Several plans run in turns: `moirai run --best`, `moirai tune`. */
#ifndef MOIRAI_CLI_MEASURE_RUN_TURNS_H
#define MOIRAI_CLI_MEASURE_RUN_TURNS_H

#include <moirai/moirai.h>

#include "cli/run/run_steps.h"

enum { CLI_TURN_PATH = 4200 };

typedef struct cli_turn {
    int who; /* which of the plans */
    int64_t warmup, runs;
    char result[CLI_TURN_PATH]; /* where its timeline goes */
    char other[CLI_TURN_PATH];  /* "", or where that of as many runs goes that alternate with these, A B B A */
    int64_t ns, other_ns;       /* afterwards: the medians of these runs; MOIRAI_UNKNOWN: it did not end */
} cli_turn;

/* Splits the plan for the model that `w->cli` names, ready to be launched. */
int cli_run_lay_out(cli_run *w, const char *plan, moirai_split_report *report);
/* Whether all of them (laid out before) can be loaded at a time: on this machine, without GPUs, in one of `n_parts` equal parts
 * of half of its memory. */
bool cli_runs_fit(const cli_run *const *run, int n, int n_parts);
/* Plays the turns in their order. All plans (laid out before) are loaded by one start where that is possible: on this
 * machine, without GPUs, in half of its memory; elsewhere every change of the plan is a start of its own. After a failure
 * the turns that ended have their `ns` all the same. */
int cli_take_turns(const cli_run *const *run, int n, cli_turn *turn, int n_turns);

#endif
