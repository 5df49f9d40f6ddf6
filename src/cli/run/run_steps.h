/* Inside `moirai run`: starting the ranks and showing what they measured. */
#ifndef MOIRAI_CLI_STEPS_RUN_STEPS_H
#define MOIRAI_CLI_STEPS_RUN_STEPS_H

#include "cli/framework/cli.h"
#include "cli/run/run_copies.h"

#include <moirai/cluster.h>

/* ---- run_job.c ---- */
/* A run on its way from a plan to measured times. */
typedef struct cli_run {
    cli_context *cli;
    char folder[4000]; /* everything of this run */
    bool temporary;
    const char *beside; /* a run beside another one has a folder of that name in --work; or NULL */
    char parts[4096], outputs[4096], job[4096], result[4096], verdict[4096], rate[4096];
    int64_t in_flight;  /* requests at a time, whose rate is measured beside runs one by one; 0 and 1: these alone */
    int64_t pace;       /* of these, by the plan; 0: the oldest goes first */
    double at_least_s;  /* for that rate */
    cli_copies *copies; /* of the plan, where several are run; else NULL */
    moirai_cluster *cluster; /* or NULL */
    yyjson_doc *manifest;
    int64_t bytes; /* of all sub-models */
    int n_ranks;
    const char **name, **host; /* by rank; the names are the manifest's */
    const moirai_device **device;
    char *hosts; /* --hosts, cut at the commas */
    bool has_hosts;
} cli_run;

/* Makes --work or a temporary folder, and the names of all files in it. */
int cli_run_folders(cli_run *w);
/* After the split: the ranks of its manifest, and the job file. */
int cli_run_job(cli_run *w, const char *model);
/* Removes a temporary folder unless --keep. */
void cli_run_free(cli_run *w);

/* ---- run_launch.c, run_watch.c ---- */
/* The ranks of a job, and how to name them to the user. */
typedef struct cli_launch_job {
    int n;                             /* ranks */
    const char *const *name;           /* of each rank's device */
    const char *const *host;           /* of each; NULL: all here. An entry may be NULL, too */
    const char *const *argv;           /* moirai-rank's arguments, NULL at the end */
    bool inside;                       /* one process without mpiexec: under a given mpirun, or a job without MPI */
    double start_limit_s;              /* for all ranks to come up; 0: none */
    const moirai_interrupt *interrupt; /* ends them when it is raised; NULL: the command's own */
    bool beside;                       /* of other children of this process: these are left alone when the job ends */
    int *dead_rank;                    /* gets the rank that died, -1 where nobody knows; or NULL */
    void (*progress)(void *data, const char *text); /* gets what follows "moirai-rank: progress "; or NULL */
    void *data;
} cli_launch_job;

/* --start-limit, or what is usual: hosts that do not answer are to be named soon. */
double cli_start_limit_s(const cli_context *cli, bool has_hosts);

/* What starts ranks, and the program that is one. */
typedef struct cli_mpi {
    bool open_mpi; /* else MPICH, or what is like it */
    char launcher[4200];
    char rank[4200]; /* beside the command, in its libexec folder, or $MOIRAI_RANK */
} cli_mpi;

/* The MPI that this build was made with; or, where it was made for other machines, the one that is here. MOIRAI_EFAIL,
 * with what to install, where there is none. run_mpi.c. */
int cli_mpi_find(cli_mpi *out);
/* The mpiexec that is here, and of which MPI it is: $MOIRAI_MPIEXEC alone where that is set; false where there is none. */
bool cli_mpi_search(cli_mpi *out);
/* Under mpirun? Then *rank is this process's. */
bool cli_inside_mpi(int *rank, int *size);
/* Starts the ranks, waits, and ends them all when one fails, dies, or does not come up. The message is the first rank's
 * that failed; the result its own. */
int cli_launch(const cli_launch_job *launch);
/* The part of cli_launch that starts argv (the program's path first) and watches over it. */
int cli_watch(const cli_launch_job *launch, const char *const *argv);
/* ---- run_show.c ---- */
/* What was measured, from the timeline that rank 0 wrote. */
int cli_show_timeline(cli_context *cli, const char *path, bool compare);
/* The median latency of a timeline's runs. */
int cli_timeline_ns(int64_t *out, const char *path);
/* What `moirai-rank whole` found out, once for each of the plan's copies; MOIRAI_EVERIFY where outputs differ. */
int cli_show_verdict(cli_context *cli, const char *const *path, int n);

#endif
