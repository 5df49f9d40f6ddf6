/* What `probe` and `profile` share: a job of one rank per device, and the files that pass between. */
#ifndef MOIRAI_CLI_STEP_RANKS_H
#define MOIRAI_CLI_STEP_RANKS_H

#include "cli/run_steps.h"
#include "cli/steps.h"

#define MOIRAI_OPTION_HOSTS                                                                                            \
    {                                                                                                                  \
        .name = "hosts", .argument = "HOST,HOST", .kind = MOIRAI_VALUE_TEXT,                                           \
        .help = "where the ranks run, in order, again from the first when there are more (default: the cluster's, "    \
                "else here)"                                                                                           \
    }

#define MOIRAI_MOST_RANK_ARGUMENTS 96

typedef struct moirai_ranks {
    char folder[4000], result[4096], report[4096]; /* what rank 0 writes */
    int n;
    bool inside; /* a rank of a given mpirun */
    int rank;
    const char *argument[MOIRAI_MOST_RANK_ARGUMENTS + 1];
    int n_arguments;
    const char *name[MOIRAI_MAX_DEVICES], *host[MOIRAI_MAX_DEVICES];
    bool has_hosts;
    char number[MOIRAI_MAX_DEVICES][8]; /* names of ranks without devices */
    char *hosts;
    void (*progress)(void *data, const char *text);
    void *data;
} moirai_ranks;

/* `n` ranks for `job`; devices' names and hosts from `c`, which may be NULL, and --hosts. Makes the folder, and begins
 * the arguments with the job and where its two files go. Free in every case. */
int moirai_ranks_open(moirai_ranks *r, const moirai_cli *cli, const char *job, const moirai_cluster *c, int n);
void moirai_ranks_free(moirai_ranks *r);
/* `value` NULL: nothing is added. "": the option alone. */
void moirai_ranks_add(moirai_ranks *r, const char *option, const char *value);
int moirai_ranks_run(const moirai_ranks *r);

/* The report that rank 0 wrote; free with yyjson_doc_free. */
int moirai_ranks_report(yyjson_doc **out, const moirai_ranks *r);
/* Of such reports: what is missing reads as nothing. */
const char *moirai_report_text(yyjson_val *object, const char *key);
int64_t moirai_report_count(yyjson_val *object, const char *key);

#endif
