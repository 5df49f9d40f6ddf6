/* What `probe` and `profile` share: a job of one rank per device, and the files that pass between. */
#ifndef MOIRAI_CLI_STEPS_STEP_RANKS_H
#define MOIRAI_CLI_STEPS_STEP_RANKS_H

#include "cli/run/run_steps.h"
#include "cli/steps/steps.h"

/* clang-format off */
#define CLI_OPTION_HOSTS                                                                                            \
    {                                                                                                                  \
        .name = "hosts", .argument = "HOST,HOST", .kind = CLI_VALUE_TEXT,                                           \
        .help = "where the ranks run, in order, again from the first when there are more (default: the cluster's, "    \
                "else here)"                                                                                           \
    }
/* clang-format on */

#define CLI_MOST_RANK_ARGUMENTS 96

typedef struct cli_ranks {
    char folder[4000], result[4096], report[4096]; /* what rank 0 writes */
    int n;
    bool inside; /* a rank of a given mpirun */
    int rank;
    const char *argument[CLI_MOST_RANK_ARGUMENTS + 1];
    int n_arguments;
    const char *name[MOIRAI_MAX_DEVICES], *host[MOIRAI_MAX_DEVICES];
    bool has_hosts;
    char number[MOIRAI_MAX_DEVICES][8]; /* names of ranks without devices */
    char *hosts;
    void (*progress)(void *data, const char *text);
    void *data;
} cli_ranks;

/* `n` ranks for `job`; devices' names and hosts from `c`, which may be NULL, and --hosts. Makes the folder, and begins
 * the arguments with the job and where its two files go. Free in every case. */
int cli_ranks_open(cli_ranks *r, const cli_context *cli, const char *job, const moirai_cluster *c, int n);
void cli_ranks_free(cli_ranks *r);
/* `value` NULL: nothing is added. "": the option alone. */
void cli_ranks_add(cli_ranks *r, const char *option, const char *value);
int cli_ranks_run(const cli_ranks *r);

/* MOIRAI_EUSAGE where one of --hosts can't be a machine's name. */
int cli_check_hosts(const cli_context *cli, const char *const *host, int n);
/* Says which devices are GPUs by their type but run on the CPU, since nobody gave them an execution provider. */
void cli_note_stand_ins(cli_context *cli, const moirai_device *const *device, int n);
/* Says which devices of this machine are given more threads than it has cores; ranks run with no more (ort.c). */
void cli_note_threads(cli_context *cli, const moirai_device *const *device, int n);

/* Warns where a host did other work before it measured: its load average is above a quarter of its hardware threads. */
void cli_note_load(cli_context *cli, const char *host, double load, int64_t threads);

/* The report that rank 0 wrote; free with yyjson_doc_free. */
int cli_ranks_report(yyjson_doc **out, const cli_ranks *r);
/* Of such reports: what is missing reads as nothing. */
const char *cli_report_text(yyjson_val *object, const char *key);
int64_t cli_report_count(yyjson_val *object, const char *key);

#endif
