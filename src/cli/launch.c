/* mpirun as a child: its lines are read, not shown. Ranks speak in lines that begin with "moirai-rank: "; the first error
 * among them is the result. Everything else (mpirun's own banners, which are long) is kept only as the last resort's
 * message, when no rank said why. Once an error is known the rest has GRACE_MS to end before it is ended. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 5000, LOOK_MS = 200, MOST_ARGS = 64 };

/* What is known of a run so far. */
typedef struct listener {
    const moirai_launch *launch;
    char line[4096];
    size_t length;
    int code;          /* of the first error, 0: none */
    char message[1024];
    char last[512];    /* what mpirun itself said last, or of a dead rank */
    bool dead;         /* `last` tells of a dead rank: nothing better will come */
} listener;

/* ---- finding the programs ---- */

static bool beside_us(char *out, size_t size, const char *relative)
{
    char self[3800];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return false;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    snprintf(out, size, "%s/%s", self, relative);
    return !access(out, X_OK);
}

static int find_rank(char *out, size_t size)
{
    const char *given = getenv("MOIRAI_RANK");
    if (given && *given) {
        snprintf(out, size, "%s", given);
        return 0;
    }
    if (beside_us(out, size, "moirai-rank") || beside_us(out, size, "../libexec/moirai/moirai-rank"))
        return 0;
    return moirai_error(MOIRAI_EFAIL, "moirai-rank is not beside this command: this build has no MPI, ONNX Runtime or hwloc");
}

bool moirai_launch_available(void)
{
    char path[4096];
    return !find_rank(path, sizeof path);
}

bool moirai_launch_is_rank(void)
{
    return getenv("OMPI_COMM_WORLD_RANK") || getenv("PMI_RANK") || getenv("PMIX_RANK");
}

/* ---- the command line ---- */

typedef struct command_line {
    const char *arg[MOST_ARGS + 1];
    int n;
    char ranks[16];
} command_line;

static void add(command_line *c, const char *text)
{
    if (c->n < MOST_ARGS)
        c->arg[c->n++] = text;
    else
        c->n = MOST_ARGS + 1;
}

static void add_mpirun(command_line *c, const moirai_launch *l)
{
    const char *given = getenv("MOIRAI_MPIEXEC");
    add(c, given && *given ? given : MOIRAI_MPIEXEC);
#if MOIRAI_MPI_IS_OPEN_MPI
    if (!geteuid())
        add(c, "--allow-run-as-root");
    add(c, "--oversubscribe");
    add(c, "--bind-to");
    add(c, "none");
    if (l->hosts && *l->hosts) {
        add(c, "--host");
        add(c, l->hosts);
    }
#else
    if (l->hosts && *l->hosts) {
        add(c, "-hosts");
        add(c, l->hosts);
    }
#endif
    snprintf(c->ranks, sizeof c->ranks, "%d", l->n_ranks);
    add(c, "-n");
    add(c, c->ranks);
}

static void add_job(command_line *c, const moirai_launch *l, const char *rank)
{
    add(c, rank);
    add(c, l->job);
    for (int i = 0; i < l->n_args; i++)
        add(c, l->args[i]);
    c->arg[c->n < MOST_ARGS ? c->n : MOST_ARGS] = NULL;
}

/* ---- listening ---- */

static void hear_error(listener *h, const char *text)
{
    int code, rank, at = 0;
    if (sscanf(text, "%d %d %n", &code, &rank, &at) < 2 || !at || h->code)
        return;
    h->code = code > 0 && code < 7 ? code : -MOIRAI_EFAIL;
    snprintf(h->message, sizeof h->message, "%s", text + at);
}

static void hear_progress(const listener *h, const char *text)
{
    long done, total;
    int at = 0;
    if (h->launch->progress && sscanf(text, "%ld %ld %n", &done, &total, &at) >= 2 && at)
        h->launch->progress(h->launch->data, done, total, text + at);
}

static void hear_line(listener *h, const char *line)
{
    const char *own = strstr(line, "moirai-rank: ");
    if (own) {
        own += strlen("moirai-rank: ");
        if (!strncmp(own, "error ", 6))
            hear_error(h, own + 6);
        else if (!strncmp(own, "progress ", 9))
            hear_progress(h, own + 9);
        return;
    }
    bool words = line[strspn(line, "-= \t\r")] != '\0';
    if (words && !h->dead) {
        h->dead = strstr(line, "exited on signal") || strstr(line, "KILLED BY SIGNAL");
        snprintf(h->last, sizeof h->last, "%s", line + strspn(line, " \t="));
    }
}

static void hear(listener *h, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] != '\n') {
            if (h->length < sizeof h->line - 1)
                h->line[h->length++] = data[i];
            continue;
        }
        h->line[h->length] = '\0';
        h->length = 0;
        hear_line(h, h->line);
    }
}

/* ---- the child ---- */

static void become(const command_line *c, int pipe_end)
{
    int nowhere = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no ranks without the command */
    dup2(nowhere, STDIN_FILENO);
    dup2(pipe_end, STDOUT_FILENO);
    dup2(pipe_end, STDERR_FILENO);
    execvp(c->arg[0], (char *const *)c->arg);
    dprintf(STDERR_FILENO, "moirai-rank: error %d 0 %s: %s\n", -MOIRAI_EFAIL, c->arg[0], strerror(errno));
    _exit(127);
}

/* Reads until all ends of the pipe are closed, or until an error was known for too long. */
static void listen_to(listener *h, int fd, pid_t child)
{
    int patience_ms = GRACE_MS;
    for (;;) {
        char data[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, LOOK_MS);
        if (ready < 0 && errno != EINTR)
            return;
        if (ready > 0) {
            ssize_t n = read(fd, data, sizeof data);
            if (n == 0 || (n < 0 && errno != EINTR))
                return;
            if (n > 0)
                hear(h, data, (size_t)n);
            continue;
        }
        if (!h->code && !h->dead)
            continue;
        patience_ms -= LOOK_MS;
        if (patience_ms == 0)
            kill(child, SIGTERM);
        if (patience_ms < -GRACE_MS / 2) {
            kill(child, SIGKILL);
            return;
        }
    }
}

static int verdict(const listener *h, int status)
{
    if (h->code)
        return moirai_error(-h->code, "%s", h->message);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (*h->last)
        return moirai_error(MOIRAI_EFAIL, "mpirun: %s", h->last);
    return moirai_error(MOIRAI_EFAIL, "mpirun ended with status %d and said nothing",
                        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int spawn(const command_line *c, const moirai_launch *l)
{
    int end[2], status = 0;
    listener *h = calloc(1, sizeof *h);
    if (!h)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    h->launch = l;
    fflush(NULL);
    pid_t child = pipe(end) ? -1 : fork();
    if (child < 0) {
        free(h);
        return moirai_error(MOIRAI_EFAIL, "can't start %s: %s", c->arg[0], strerror(errno));
    }
    if (!child)
        become(c, end[1]);
    close(end[1]);
    listen_to(h, end[0], child);
    close(end[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    int rc = verdict(h, status);
    free(h);
    return rc;
}

int moirai_launch_run(const moirai_launch *l)
{
    char rank[4096];
    command_line c = {.n = 0};
    int rc = find_rank(rank, sizeof rank);
    if (rc)
        return rc;
    bool given = moirai_launch_is_rank();
    if (!given)
        add_mpirun(&c, l);
    add_job(&c, l, rank);
    if (c.n > MOST_ARGS)
        return moirai_error(MOIRAI_EUSAGE, "more than %d arguments for the ranks", MOST_ARGS);
    if (!given)
        return spawn(&c, l);
    execv(rank, (char *const *)c.arg);
    return moirai_error(MOIRAI_EFAIL, "%s: %s", rank, strerror(errno));
}

/* ---- hosts ---- */

int moirai_launch_hosts(char *out, size_t size, const moirai_cli *cli, const moirai_cluster *c, int n_ranks)
{
    const char *given = moirai_cli_text(cli, "hosts");
    size_t used = 0;
    int n = 1;
    *out = '\0';
    if (given) {
        for (const char *at = given; *at; at++)
            n += *at == ',';
        if (n != n_ranks)
            return moirai_error(MOIRAI_EUSAGE, "--hosts '%s' names %d hosts, but there are %d devices", given, n, n_ranks);
        return (size_t)snprintf(out, size, "%s", given) < size ? 0 : moirai_error(MOIRAI_EUSAGE, "--hosts is too long");
    }
    for (int32_t k = 0, some = 0; c && k < c->n_devices; k++) {
        const char *host = c->device[k].host;
        some |= host != NULL;
        used += (size_t)snprintf(out + used, used < size ? size - used : 0, "%s%s", k ? "," : "", host ? host : "localhost");
        if (used >= size)
            return moirai_error(MOIRAI_EUSAGE, "the cluster's hosts are too many");
        if (k + 1 == c->n_devices && !some)
            *out = '\0';
    }
    return 0;
}
