/* One placer in a process of its own. */
#ifndef MOIRAI_CLI_STEPS_STEP_CHILD_H
#define MOIRAI_CLI_STEPS_STEP_CHILD_H

#include <moirai/moirai.h>

/* What a placer did, small enough to come through a pipe. */
typedef struct cli_child_report {
    int result;        /* of moirai_place; MOIRAI_EFAIL also where the process died */
    bool stopped;      /* it ended on an interrupt, with its best */
    char message[512]; /* where result is not 0 */
    int64_t makespan_ns, lower_bound_ns, generation_ns, transfers, transfer_bytes;
    int64_t process_bytes; /* most memory that the process had, the problem included */
    int64_t ops[MOIRAI_MAX_DEVICES], busy_ns[MOIRAI_MAX_DEVICES];
    int64_t memory_bytes[MOIRAI_MAX_DEVICES], peak_bytes[MOIRAI_MAX_DEVICES];
} cli_child_report;

/* Runs the placer in a child process: what it allocates is measured and gone afterwards, and if it dies, only it does.
 * The first Ctrl-C is handed on, and the child's best plan kept; a second one ends both. MOIRAI_EFAIL only where no
 * child could be started. */
int cli_child_place(cli_child_report *out, const moirai_problem *p, const char *placer, const moirai_place_options *o);

#endif
