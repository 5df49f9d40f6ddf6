/* Inside `moirai run`: starting the ranks and showing what they measured. */
#ifndef MOIRAI_CLI_STEPS_RUN_STEPS_H
#define MOIRAI_CLI_STEPS_RUN_STEPS_H

#include "cli/framework/cli.h"

/* The ranks of a job, and how to name them to the user. */
typedef struct cli_launch_job {
    int n;                   /* ranks */
    const char *const *name; /* of each rank's device */
    const char *const *host; /* of each; NULL: all here. An entry may be NULL, too */
    const char *const *argv; /* moirai-rank's arguments, NULL at the end */
    bool inside;             /* one process without mpiexec: under a given mpirun, or a job without MPI */
    double start_limit_s;    /* for all ranks to come up; 0: none */
    void (*progress)(void *data, const char *text); /* gets what follows "moirai-rank: progress "; or NULL */
    void *data;
} cli_launch_job;

/* Path of moirai-rank: beside the command, in its libexec folder, or $MOIRAI_RANK. */
int cli_rank_program(char *out, size_t size);
/* Under mpirun? Then *rank is this process's. */
bool cli_inside_mpi(int *rank, int *size);
/* Starts the ranks, waits, and ends them all when one fails, dies, or does not come up. The message is the first rank's
 * that failed; the result its own. */
int cli_launch(const cli_launch_job *launch);
/* What was measured, from the timeline that rank 0 wrote. */
int cli_show_timeline(cli_context *cli, const char *path, bool compare);
/* What `moirai-rank whole` found out; MOIRAI_EVERIFY where outputs differ. */
int cli_show_verdict(cli_context *cli, const char *path);

#endif
