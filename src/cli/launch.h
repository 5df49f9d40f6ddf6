/* Starting moirai-rank, one process per device: the command's side of `run`, `probe` and `profile`. */
#ifndef MOIRAI_CLI_LAUNCH_H
#define MOIRAI_CLI_LAUNCH_H

#include "cli/cli.h"

#include <moirai/cluster.h>

#define MOIRAI_OPTION_HOSTS \
    {.name = "hosts", .argument = "A,B,...", .kind = MOIRAI_VALUE_TEXT, \
     .help = "where each rank runs, in the order of the devices (default: the cluster's \"host\", else this machine)"}

typedef struct moirai_launch {
    const char *job;         /* moirai-rank's first argument */
    const char *const *args; /* the others */
    int n_args;
    int n_ranks;
    const char *hosts;       /* one per rank, separated by commas; NULL: all on this machine */
    /* News of the ranks, "moirai-rank: progress DONE TOTAL WHAT"; may be NULL. */
    void (*progress)(void *data, long done, long total, const char *what);
    void *data;
} moirai_launch;

/* False and a message where this build has no moirai-rank. */
bool moirai_launch_available(void);
/* Is this process itself a rank of somebody's mpirun? */
bool moirai_launch_is_rank(void);
/* Starts mpirun and waits for it. The first error that a rank reports is the result; a rank that dies, a host that can't
 * be reached and an mpirun that is not there are errors, too. A rank under a given mpirun becomes moirai-rank instead
 * and never returns, unless that fails. */
int moirai_launch_run(const moirai_launch *l);

/* The hosts of --hosts or else of the cluster's devices, checked to be as many as devices; "" if all are here. */
int moirai_launch_hosts(char *out, size_t size, const moirai_cli *cli, const moirai_cluster *c, int n_ranks);

/* A folder for files that pass between the command and its ranks; removed with all that is in it. */
int moirai_launch_folder_new(char *out, size_t size);
void moirai_launch_folder_remove(const char *folder);

#endif
