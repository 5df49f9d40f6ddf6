/* Watching over the ranks of a job.
 *
 * mpiexec's output is read line by line. Ranks announce themselves ("moirai-rank: start RANK PID") and their failures
 * ("moirai-rank: error CODE RANK message"); everything else is MPI's own and shown only where nothing better is known.
 * A failure, a rank that does not come up in time, or Ctrl-C end the whole job: first politely, then not. mpiexec
 * itself ends when the command dies.
 *
 * When a rank dies, mpiexec ends the others and says which one it was. Where somebody waits for that (`beside`) and mpiexec
 * does not come to it, on a machine that is too busy, the ranks of this machine are looked at: one that was killed is there
 * until mpiexec has asked how it ended. */
#include "cli/run/run_steps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/util.h"

#define GRACE_S 1.5 /* for ranks to end by themselves, and after SIGTERM */
#define DEAD_S 0.5  /* for mpiexec to notice that a rank is dead */

typedef struct watch {
    const cli_launch_job *launch;
    pid_t child;
    int fd;
    char line[2048];
    size_t used;
    long *pid; /* of the ranks that announced themselves, by rank; 0: not yet */
    int n_started;
    int code; /* of the first failure, 0: none */
    char message[1100];
    char words[1100];           /* the first of MPI's own lines that looks like a reason */
    int dead_rank, dead_signal; /* as MPI tells; -1 */
    long dead_pid;
    double seen_s; /* when a rank was seen dead; 0: none. It may be mpiexec's victim, so mpiexec's word goes first: */
    int seen_rank, seen_signal;
} watch;

/* ---- processes ---- */

/* In a group of its own, so that all of it can be ended; `fd` takes its output. */
static pid_t start(const char *const *argv, int fd, bool beside)
{
    pid_t parent = getpid(), child = fork();
    if (child)
        return child;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    /* Open MPI 4 and 5 cut names of machines at the first dot unless told not to. */
    setenv("OMPI_MCA_orte_keep_fqdn_hostnames", "1", 1);
    setenv("PRTE_MCA_prte_keep_fqdn_hostnames", "1", 1);
    if (beside) { /* somebody waits for its end: ranks that were asked to end need not have a second for it */
        setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
        setenv("PRTE_MCA_odls_base_sigkill_timeout", "0", 0);
    }
    execv(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "moirai-rank: error 1 0 can't start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void end_all(const watch *w, int sig)
{
    kill(-w->child, sig);
    kill(w->child, sig);
}

/* ---- reading ---- */

static const char *name_of(const watch *w, int rank)
{
    return rank >= 0 && rank < w->launch->n ? w->launch->name[rank] : "?";
}

static void read_mpi_words(watch *w, const char *line)
{
    const char *at = strstr(line, "process rank ");
    int rank, sig;
    long pid;
    if (at && sscanf(at, "process rank %d", &rank) == 1 && w->dead_rank < 0)
        w->dead_rank = rank;
    at = strstr(line, "signal ");
    if (at && sscanf(at, "signal %d", &sig) == 1 && w->dead_signal < 0)
        w->dead_signal = sig;
    at = strstr(line, "PID ");
    if (at && sscanf(at, "PID %ld RUNNING", &pid) == 1 && !w->dead_pid)
        w->dead_pid = pid;
    for (at = line; *at && strchr(" \t-=*", *at); at++)
        ;
    if (!*w->words && strlen(at) > 10)
        snprintf(w->words, sizeof w->words, "%s", at);
}

static void read_line(watch *w, const char *line)
{
    int rank, code, at = 0;
    long pid;
    if (sscanf(line, "moirai-rank: start %d %ld", &rank, &pid) == 2) {
        if (rank >= 0 && rank < w->launch->n && !w->pid[rank]) {
            w->pid[rank] = pid;
            w->n_started++;
        }
    } else if (sscanf(line, "moirai-rank: error %d %d %n", &code, &rank, &at) == 2 && at) {
        if (!w->code) {
            w->code = code;
            snprintf(w->message, sizeof w->message, "%s", line + at);
        }
    } else if (!strncmp(line, "moirai-rank: progress ", 22)) {
        if (w->launch->progress)
            w->launch->progress(w->launch->data, line + 22);
    } else {
        read_mpi_words(w, line);
    }
}

/* False at the end of the output. */
static bool read_some(watch *w)
{
    ssize_t got = read(w->fd, w->line + w->used, sizeof w->line - 1 - w->used);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0)
        return false;
    w->used += (size_t)got;
    w->line[w->used] = '\0';
    char *begin = w->line, *end;
    while ((end = strchr(begin, '\n'))) {
        *end = '\0';
        read_line(w, begin);
        begin = end + 1;
    }
    w->used = strlen(begin);
    if (w->used == sizeof w->line - 1)
        w->used = 0; /* no line of ours is that long */
    memmove(w->line, begin, w->used + 1);
    return true;
}

/* ---- watching ---- */

static void judge_start(watch *w)
{
    char missing[512] = "";
    size_t used = 0;
    for (int i = 0; i < w->launch->n; i++)
        if (!w->pid[i] && used < sizeof missing - 80)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s'%.32s'%s%.40s", used ? ", " : "",
                                     name_of(w, i), w->launch->host ? " on host " : "",
                                     w->launch->host ? w->launch->host[i] ? w->launch->host[i] : "localhost" : "");
    w->code = 1;
    snprintf(w->message, sizeof w->message, "no answer within %.0f s from device %s%s%s%.300s",
             w->launch->start_limit_s, missing,
             w->launch->host
                 ? ": does 'ssh HOST true' work without a password, and is moirai installed there at the same "
                   "path? (--start-limit waits longer)"
                 : "",
             *w->words ? "; MPI says: " : "", w->words);
}

/* Something new that ends the job? */
static void judge(watch *w, double running_s)
{
    const cli_launch_job *l = w->launch;
    if (w->code)
        return;
    if (moirai_interrupt_raised(l->interrupt ? l->interrupt : cli_interrupt())) {
        w->code = 1;
        snprintf(w->message, sizeof w->message, "interrupted");
    } else if (!l->inside && l->start_limit_s > 0 && w->n_started < l->n && running_s > l->start_limit_s) {
        judge_start(w);
    } else {
        return;
    }
    end_all(w, SIGTERM);
}

/* The signal that ended a process of which nobody has asked yet; 0: it lives, ended otherwise, or is gone. */
static int killed_by(long pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')'), *last = strrchr(text, ' '); /* a name may hold anything */
    if (!name_end || strncmp(name_end, ") Z", 3) || !last)
        return 0;
    int status = atoi(last + 1);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void look_for_dead(watch *w, double now)
{
    const cli_launch_job *l = w->launch;
    for (int i = 0; i < l->n && l->beside && !w->seen_s; i++) {
        bool here = !l->host || !l->host[i] || !strcmp(l->host[i], "localhost");
        int sig = here && w->pid[i] ? killed_by(w->pid[i]) : 0;
        if (!sig)
            continue;
        w->seen_s = now;
        w->seen_rank = i;
        w->seen_signal = sig;
    }
    if (!w->seen_s || now - w->seen_s < DEAD_S)
        return;
    if (w->dead_rank < 0) {
        w->dead_rank = w->seen_rank;
        w->dead_signal = w->seen_signal;
    }
    for (int i = 0; i < l->n; i++)
        if (w->pid[i] && (!l->host || !l->host[i] || !strcmp(l->host[i], "localhost")))
            kill((pid_t)w->pid[i], SIGKILL);
    end_all(w, SIGKILL);
}

/* Until the child has ended and its output is read. Returns its status. */
static int watch_child(watch *w)
{
    double begin = util_seconds(), ending = 0;
    bool open = true, asked = false;
    int status = 0;
    pid_t ended = 0;
    while (open || !ended) {
        struct pollfd p = {w->fd, POLLIN, 0};
        if (open && poll(&p, 1, 100) > 0)
            open = read_some(w);
        else if (!open)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        double now = util_seconds();
        if (!ended)
            ended = waitpid(w->child, &status, WNOHANG);
        judge(w, now - begin);
        if (!ended)
            look_for_dead(w, now);
        if (!ending && (w->code || ended)) /* what mpiexec leaves behind must not keep us */
            ending = now;
        if (ending && !asked && now - ending > GRACE_S) {
            end_all(w, SIGTERM);
            asked = true;
        }
        if (ending && now - ending > 2 * GRACE_S) {
            end_all(w, SIGKILL);
            if (ended)
                break;
        }
    }
    return status;
}

/* ---- nothing stays ---- processes that mpiexec leaves behind become our children (see PR_SET_CHILD_SUBREAPER). */

static bool is_own_child(const char *pid)
{
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *name_end = strrchr(text, ')'); /* a name may hold anything */
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 && parent == (int)getpid();
}

static void end_orphan(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Those among the ranks that have become our children, and nobody else. */
static void end_ranks(const watch *w)
{
    char pid[24];
    for (int i = 0; i < w->launch->n; i++) {
        snprintf(pid, sizeof pid, "%ld", w->pid[i]);
        if (w->pid[i] > 0 && is_own_child(pid))
            end_orphan((pid_t)w->pid[i]);
    }
}

static void end_orphans(void)
{
    for (int round = 0, found = 1; found && round < 100; round++) {
        DIR *proc = opendir("/proc");
        found = 0;
        for (struct dirent *e; proc && (e = readdir(proc));) {
            if (!isdigit((unsigned char)e->d_name[0]) || !is_own_child(e->d_name))
                continue;
            end_orphan((pid_t)atol(e->d_name));
            found = 1;
        }
        if (proc)
            closedir(proc);
    }
}

/* Who died, in the user's words. */
static int report_death(watch *w, int status)
{
    char how[64];
    for (int i = 0; i < w->launch->n && w->dead_pid; i++)
        if (w->pid[i] == w->dead_pid)
            w->dead_rank = i;
    if (w->launch->dead_rank)
        *w->launch->dead_rank = w->dead_rank;
    if (w->dead_signal > 0)
        snprintf(how, sizeof how, "signal %d, %.40s", w->dead_signal, strsignal(w->dead_signal));
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d, %.40s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    if (w->dead_rank >= 0)
        return moirai_error(MOIRAI_EFAIL, "device '%s' (rank %d) died: %s", name_of(w, w->dead_rank), w->dead_rank,
                            how);
    if (!w->n_started && !w->launch->inside && *w->words)
        return moirai_error(MOIRAI_EFAIL, "the ranks did not start: %.900s", w->words);
    return moirai_error(MOIRAI_EFAIL, "the ranks ended early (%s)%s%.900s", how, *w->words ? ": " : "", w->words);
}

static int launch_and_watch(watch *w, const char *const *argv)
{
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC))
        return moirai_error(MOIRAI_EFAIL, "pipe: %s", strerror(errno));
    w->fd = pipe_fd[0];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    w->child = start(argv, pipe_fd[1], w->launch->beside);
    int error = errno;
    close(pipe_fd[1]);
    if (w->child < 0) {
        close(pipe_fd[0]);
        return moirai_error(MOIRAI_EFAIL, "can't start %s: %s", argv[0], strerror(error));
    }
    setpgid(w->child, w->child);
    int status = watch_child(w);
    close(pipe_fd[0]);
    if (w->launch->beside)
        end_ranks(w);
    else
        end_orphans();
    if (w->code)
        return moirai_error(-w->code, "%s", w->message);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return report_death(w, status);
}

int cli_watch(const cli_launch_job *l, const char *const *argv)
{
    watch w = {.launch = l, .dead_rank = -1, .dead_signal = -1};
    w.pid = util_alloc((size_t)l->n, sizeof *w.pid);
    int rc = w.pid ? launch_and_watch(&w, argv) : MOIRAI_EFAIL;
    free(w.pid);
    return rc;
}
