/* Jobs in processes of their own, so that peak memory and processor time are their own, some side by side. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processor.h"
#include "util/util.h"
#include "wide/wide.h"

/* ---- in the process of a job ---- */

static int place(moirai_plan **plan, const moirai_problem *p, const wide_setup *s)
{
    moirai_place_options o;
    if (!strcmp(s->placer, "annealer"))
        return wide_anneal(plan, p, s->limit_s, (uint64_t)UTIL_MAX(1, s->seed));
    moirai_place_options_init(&o);
    o.budget.time_limit_s = s->limit_s;
    o.budget.threads = s->threads;
    o.budget.effort = s->effort;
    if (s->seed)
        o.budget.seed = (uint64_t)s->seed;
    o.budget.interrupt = &enough;
    o.gap = s->gap;
    o.setting = s->setting;
    o.n_settings = s->n_settings;
    allow_processor_s(s->cpu_s);
    int rc = moirai_place(plan, p, s->placer, &o);
    allow_processor_s(0);
    return rc;
}

void wide_run_here(wide_outcome *out, const char *row, const wide_setup *setup)
{
    moirai_problem *p;
    moirai_plan *plan = NULL;
    *out = (wide_outcome){.done = true, .plan_ns = MOIRAI_UNKNOWN, .bound_ns = MOIRAI_UNKNOWN};
    int rc = wide_problem(&p, row);
    if (!rc) {
        double begun = util_seconds(), used = processor_s();
        out->n_ops = p->n_ops;
        out->n_devices = p->n_devices;
        rc = place(&plan, p, setup);
        out->seconds = util_seconds() - begun;
        out->cpu_s = processor_s() - used;
    }
    if (rc) {
        const char *message = moirai_error_message();
        snprintf(out->message, sizeof out->message, "%s", *message ? message : "failed");
    } else {
        out->plan_ns = plan->makespan_ns;
        out->bound_ns = plan->lower_bound_ns;
    }
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* ---- beside them ---- */

typedef struct slot {
    pid_t child; /* 0: free */
    int pipe;
    size_t job;
    double kill_at;
} slot;

/* What a job is to take at most, by its limits: on a busy machine a limit of processor time can take any time. */
static double expected_s(const wide_setup *s)
{
    return s->limit_s > 0 ? s->limit_s : s->cpu_s;
}

/* When it is given up. */
static double patience_s(const wide_setup *s)
{
    return expected_s(s) > 0 ? 10 * expected_s(s) + 120 : 1e9;
}

static int start(slot *s, const wide_run *r, size_t job)
{
    int ends[2];
    if (pipe(ends))
        return moirai_error(MOIRAI_EFAIL, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        wide_outcome o;
        close(ends[0]);
        wide_run_here(&o, r->job[job].row, r->job[job].setup);
        ssize_t written = write(ends[1], &o, sizeof o); /* less than a pipe holds */
        _exit(written != (ssize_t)sizeof o);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return moirai_error(MOIRAI_EFAIL, "fork: %s", strerror(errno));
    }
    *s = (slot){child, ends[0], job, util_seconds() + patience_s(r->job[job].setup)};
    return 0;
}

/* The outcome of a process that has written it, ended without or was given up. */
static void collect(slot *s, wide_run *r, FILE *csv, bool give_up)
{
    wide_outcome *o = &r->job[s->job].outcome;
    struct rusage use;
    if (give_up)
        kill(s->child, SIGKILL);
    ssize_t got = give_up ? 0 : read(s->pipe, o, sizeof *o);
    while (wait4(s->child, NULL, 0, &use) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof *o) {
        *o = (wide_outcome){.done = true, .plan_ns = MOIRAI_UNKNOWN, .bound_ns = MOIRAI_UNKNOWN};
        snprintf(o->message, sizeof o->message, give_up ? "given up after %.0f s" : "killed",
                 patience_s(r->job[s->job].setup));
    }
    o->peak_mb = (double)use.ru_maxrss / 1024;
    close(s->pipe);
    s->child = 0;
    if (csv)
        wide_csv_row(csv, &r->job[s->job]);
    r->done(r->data, s->job);
}

/* Waits until something ends; collects it. */
static void wait_for_some(slot *s, wide_run *r, FILE *csv)
{
    struct pollfd fd[256];
    int n = 0;
    for (int i = 0; i < r->side_by_side; i++)
        if (s[i].child)
            fd[n++] = (struct pollfd){.fd = s[i].pipe, .events = POLLIN};
    poll(fd, (nfds_t)n, 1000);
    for (int i = 0; i < r->side_by_side; i++) {
        if (!s[i].child)
            continue;
        bool ready = false;
        for (int j = 0; j < n; j++)
            ready |= fd[j].fd == s[i].pipe && fd[j].revents;
        if (ready || util_seconds() > s[i].kill_at)
            collect(&s[i], r, csv, !ready);
    }
}

/* The first job from `i` on that is neither done nor begun. */
static size_t open_job(const wide_run *r, size_t i)
{
    while (i < r->n_jobs && r->job[i].outcome.done)
        i++;
    return i;
}

static int run_rest(wide_run *r, FILE *csv)
{
    slot *s = util_alloc((size_t)r->side_by_side, sizeof *s);
    double begun = util_seconds();
    size_t next = open_job(r, 0);
    int busy = 1, rc = s ? 0 : MOIRAI_EFAIL;
    while (!rc && busy) {
        busy = 0;
        for (int i = 0; i < r->side_by_side && !rc; i++) {
            bool begin = !s[i].child && next < r->n_jobs;
            if (begin && r->until_s > 0)
                begin = util_seconds() - begun + expected_s(r->job[next].setup) <= r->until_s;
            if (begin) {
                rc = start(&s[i], r, next);
                next = open_job(r, next + 1);
            }
            busy += s[i].child != 0;
        }
        if (busy)
            wait_for_some(s, r, csv);
    }
    free(s);
    return rc;
}

int wide_run_all(wide_run *r)
{
    FILE *csv = NULL;
    int rc = r->csv_path ? wide_csv_read(r->csv_path, r->job, r->n_jobs) : 0;
    if (!rc && r->csv_path && !(csv = wide_csv_open(r->csv_path)))
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; i < r->n_jobs && !rc; i++)
        if (r->job[i].outcome.done)
            r->done(r->data, i);
    r->side_by_side = UTIL_MAX(1, UTIL_MIN(256, r->side_by_side));
    rc = rc ? rc : run_rest(r, csv);
    if (csv)
        fclose(csv);
    return rc;
}
