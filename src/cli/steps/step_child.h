/* Work in a process of its own. */
#ifndef MOIRAI_CLI_STEPS_STEP_CHILD_H
#define MOIRAI_CLI_STEPS_STEP_CHILD_H

#include <moirai/moirai.h>

/* How a child ended. */
typedef struct cli_child_end {
    bool answered; /* false: it died, `message` says how, and its data are not to be used */
    char message[120];
    int64_t process_bytes; /* most memory that the process had, what it inherited included */
} cli_child_end;

/* What the child does: it changes `data`, which goes back to the parent byte by byte. Pointers in it are good in both,
 * for what the parent had before. */
typedef void (*cli_child_fn)(void *data);

/* Runs the work in a child process: what it allocates is measured and gone afterwards, and if it dies, only it does.
 * The first Ctrl-C is handed on; a second one ends both. MOIRAI_EFAIL only where no child could be started. */
int cli_child_run(cli_child_end *end, cli_child_fn work, void *data, size_t size, const moirai_interrupt *interrupt);

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

/* Runs the placer so; an interrupt keeps its best plan. */
int cli_child_place(cli_child_report *out, const moirai_problem *p, const char *placer, const moirai_place_options *o);

#endif
