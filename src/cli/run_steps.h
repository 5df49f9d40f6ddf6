/* Inside `moirai run`: starting the ranks and showing what they measured. */
#ifndef MOIRAI_CLI_RUN_STEPS_H
#define MOIRAI_CLI_RUN_STEPS_H

#include "cli/cli.h"

/* The ranks of a job, and how to name them to the user. */
typedef struct moirai_launch {
    int n;                   /* ranks */
    const char *const *name; /* of each rank's device */
    const char *const *host; /* of each; NULL: all here. An entry may be NULL, too */
    const char *const *argv; /* moirai-rank's arguments, NULL at the end */
    bool inside;             /* one process without mpiexec: under a given mpirun, or a job without MPI */
    double start_limit_s;    /* for all ranks to come up; 0: none */
    void (*progress)(void *data, const char *text); /* gets what follows "moirai-rank: progress "; or NULL */
    void *data;
} moirai_launch;

/* Path of moirai-rank: beside the command, in its libexec folder, or $MOIRAI_RANK. */
int moirai_cli_rank_program(char *out, size_t size);
/* Under mpirun? Then *rank is this process's. */
bool moirai_cli_inside_mpi(int *rank, int *size);
/* Starts the ranks, waits, and ends them all when one fails, dies, or does not come up. The message is the first rank's
 * that failed; the result its own. */
int moirai_cli_launch(const moirai_launch *launch);
/* What was measured, from the timeline that rank 0 wrote. */
int moirai_show_timeline(moirai_cli *cli, const char *path, bool compare);
/* What `moirai-rank whole` found out; MOIRAI_EVERIFY where outputs differ. */
int moirai_show_verdict(moirai_cli *cli, const char *path);

#endif
