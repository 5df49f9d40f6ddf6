/* Work in a child process (fork): its peak memory is its own, a crash is a row in a table, and Ctrl-C reaches it once.
 *
 * The child inherits all that there is; nothing is read twice. It leaves the terminal's group of processes, or it would
 * get every Ctrl-C beside the one that is handed on, and the second kills. It dies with its parent. Its report comes
 * through a pipe. The most memory that it had (ru_maxrss) counts the pages of the problem that it inherited, as a
 * process that placed it alone would have them. */
#include "cli/steps/step_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/framework/cli.h"

#define LOOK_MS 100 /* how often an interrupt is looked for */

static void fill(cli_child_report *r, const moirai_problem *p, const moirai_plan *plan)
{
    r->makespan_ns = plan->makespan_ns;
    r->lower_bound_ns = plan->lower_bound_ns;
    r->generation_ns = plan->generation_ns;
    r->transfers = plan->n_transfers;
    for (int32_t i = 0; i < plan->n_transfers; i++)
        if (__builtin_add_overflow(r->transfer_bytes, p->tensor_bytes[plan->transfer[i].tensor], &r->transfer_bytes))
            r->transfer_bytes = INT64_MAX;
    for (int32_t i = 0; i < plan->n_ops; i++)
        r->ops[plan->op_device[i]]++;
    for (int32_t k = 0; k < p->n_devices; k++) {
        r->busy_ns[k] = plan->device_busy_ns[k];
        r->memory_bytes[k] = plan->device_memory_bytes[k];
        r->peak_bytes[k] = plan->device_peak_bytes[k];
    }
}

static void write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the parent sees that the report is short */
        at += n;
        size -= (size_t)n;
    }
}

/* ---- any work ---- */

static _Noreturn void be_child(int fd, pid_t parent, cli_child_fn work, void *data, size_t size)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    work(data);
    write_all(fd, data, size);
    _exit(0); /* no buffers of the parent's are flushed twice */
}

/* Reads until the child closes its end; hands an interrupt on, once. */
static size_t read_report(void *out, size_t size, int fd, pid_t child, const moirai_interrupt *interrupt)
{
    size_t got = 0;
    bool told = false;
    while (got < size) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, LOOK_MS);
        if (!told && moirai_interrupt_raised(interrupt)) {
            kill(child, SIGINT);
            told = true;
        }
        if (ready <= 0)
            continue;
        ssize_t n = read(fd, (char *)out + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

int cli_child_run(cli_child_end *end, cli_child_fn work, void *data, size_t size, const moirai_interrupt *interrupt)
{
    int fd[2], status = 0;
    struct rusage use = {0};
    if (pipe(fd))
        return moirai_error(MOIRAI_EFAIL, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        setpgid(0, 0);
        close(fd[0]);
        be_child(fd[1], parent, work, data, size);
    }
    close(fd[1]);
    if (child < 0) {
        close(fd[0]);
        return moirai_error(MOIRAI_EFAIL, "fork: %s", strerror(errno));
    }
    setpgid(child, child); /* whoever comes first */
    size_t got = read_report(data, size, fd[0], child, interrupt);
    close(fd[0]);
    while (wait4(child, &status, 0, &use) < 0 && errno == EINTR)
        continue;
    *end = (cli_child_end){.answered = got == size, .process_bytes = (int64_t)use.ru_maxrss * 1024};
    if (end->answered)
        return 0;
    if (WIFSIGNALED(status))
        snprintf(end->message, sizeof end->message, "its process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(end->message, sizeof end->message, "its process ended without an answer");
    return 0;
}

/* ---- a placer ---- */

typedef struct placing {
    cli_child_report report;
    const moirai_problem *p;
    const char *placer;
    const moirai_place_options *o;
} placing;

static void place(void *data)
{
    placing *work = data;
    cli_child_report *r = &work->report;
    moirai_plan *plan;
    *r = (cli_child_report){.lower_bound_ns = MOIRAI_UNKNOWN};
    r->result = moirai_place(&plan, work->p, work->placer, work->o);
    if (r->result)
        snprintf(r->message, sizeof r->message, "%s", moirai_error_message());
    else
        fill(r, work->p, plan);
    r->stopped = moirai_interrupt_raised(work->o->budget.interrupt);
}

int cli_child_place(cli_child_report *out, const moirai_problem *p, const char *placer, const moirai_place_options *o)
{
    placing work = {.p = p, .placer = placer, .o = o};
    cli_child_end end;
    int rc = cli_child_run(&end, place, &work, sizeof work, o->budget.interrupt);
    if (rc)
        return rc;
    if (!end.answered) {
        work.report = (cli_child_report){.result = MOIRAI_EFAIL, .lower_bound_ns = MOIRAI_UNKNOWN};
        snprintf(work.report.message, sizeof work.report.message, "%s: %s", placer, end.message);
    }
    *out = work.report;
    out->process_bytes = end.process_bytes;
    return 0;
}
