/* Are limits kept? Time limit, Ctrl-C and peak memory of a placer over shapes x sizes x numbers of devices.
 *
 * usage: bench_promises [--placer NAME] [--limit SECONDS] [--ops N,N] [--devices K,K] [--shapes a,b] [--no-interrupt]
 *                       [--certificate] [--peak] [--edge] [--free]
 *
 * --certificate: the proof is written and proven again within the limit; --peak, --edge, --free: memory mode peak, flow edge, congestion none.
 *
 * Every cell runs twice in a process of its own: once with the time limit, and once without any limit but interrupted
 * after half of it. "over" is the time taken beyond the limit less 5 % of it; the promise is at most 0.3 s. "answer" is
 * the time from the interrupt to the plan; the promise is at most 1 s. "peak" is the memory of the placing process less
 * what it had before (the problem itself), and "per" that in bytes per operator and device: the law is that this does
 * not grow with the number of devices or of distinct blocks. "work" beside "over" and "answer" is the processor time
 * used in them, over all threads: on a machine that others use too it says more than the clock. */
#include "processor.h"
#include "support/shapes.h"

#include <moirai/moirai.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double clock_s(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* ---- one cell ---- */

typedef struct outcome {
    double taken_s, answer_s, gap, peak_mb;
    double work_s; /* processor time after the limit or the interrupt */
    int rc;
} outcome;

static bool certified, peak, by_edge, free_links; /* what else is asked for */
static moirai_interrupt interrupt;
static bool raises;
static double marked_at, marked_work;

/* Looks at the clocks when the time is up, and raises the interrupt where one is wanted. */
static void *mark_later(void *data)
{
    usleep((useconds_t)(*(double *)data * 1e6));
    marked_work = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    marked_at = seconds();
    if (raises)
        moirai_interrupt_raise(&interrupt);
    return NULL;
}

static void place(outcome *out, const moirai_problem *p, const char *placer, double limit_s, bool interrupted)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    pthread_t thread;
    double after = interrupted ? limit_s / 2 : 1.05 * limit_s, before_mb = peak_mb(), begun = seconds();
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.interrupt = &interrupt;
    o.budget.time_limit_s = interrupted ? 0 : limit_s;
    char path[64];
    snprintf(path, sizeof path, "/tmp/bench_promises.%d.json", (int)getpid());
    o.certificate_path = certified ? path : NULL;
    raises = interrupted;
    pthread_create(&thread, NULL, mark_later, &after);
    out->rc = moirai_place(&plan, p, placer, &o);
    double ended = seconds(), work = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    pthread_join(thread, NULL);
    unlink(path);
    out->taken_s = ended - begun;
    out->answer_s = interrupted && marked_at < ended ? ended - marked_at : 0;
    out->work_s = marked_at < ended ? work - marked_work : 0;
    out->gap = plan ? moirai_plan_gap(plan) : 1;
    out->peak_mb = peak_mb() - before_mb;
    if (out->rc)
        fprintf(stderr, "%s\n", moirai_error_message());
    moirai_plan_free(plan);
}

/* In a process of its own, so that its memory is its own. */
static int run_apart(outcome *out, const char *shape, int32_t n, int devices, const char *placer, double limit_s,
                     bool interrupted)
{
    int pipes[2];
    if (pipe(pipes))
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        moirai_problem *p;
        int rc = shape_problem(&p, shape, n, devices);
        if (rc == 0 && peak)
            p->memory = MOIRAI_MEMORY_PEAK;
        if (rc == 0 && by_edge)
            p->flow = MOIRAI_FLOW_EDGE;
        if (rc == 0 && free_links)
            p->congestion = MOIRAI_CONGESTION_NONE;
        if (rc == 0)
            place(out, p, placer, limit_s, interrupted);
        else
            fprintf(stderr, "%s\n", moirai_error_message());
        out->rc |= rc;
        _exit(write(pipes[1], out, sizeof *out) != sizeof *out);
    }
    close(pipes[1]);
    bool good = child > 0 && read(pipes[0], out, sizeof *out) == sizeof *out;
    close(pipes[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return good ? 0 : -1;
}

static void cell(const char *shape, int32_t n, int devices, const char *placer, double limit_s, bool with_interrupt)
{
    outcome timed = {0}, cut = {0};
    printf("%-12s %8d %4d %6.1f ", shape, n, devices, limit_s);
    fflush(stdout);
    if (run_apart(&timed, shape, n, devices, placer, limit_s, false) || timed.rc) {
        printf("failed\n");
        return;
    }
    double over = timed.taken_s - 1.05 * limit_s;
    printf("%8.2f %7.2f %5.2f %7.2f%% %8.0f %6.0f ", timed.taken_s, over > 0 ? over : 0, timed.work_s, 100 * timed.gap,
           timed.peak_mb, timed.peak_mb * 1048576.0 / n / devices);
    fflush(stdout);
    if (with_interrupt && !run_apart(&cut, shape, n, devices, placer, limit_s, true))
        printf("%8.2f %5.2f", cut.answer_s, cut.work_s);
    printf("%s\n", over > 0.3 || cut.answer_s > 1 ? "  BROKEN" : "");
    fflush(stdout);
}

static bool listed(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, item, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *placer = "moirai", *ops = "100,3000,200000", *devices = "4,16,64", *only = NULL;
    double limit_s = 5;
    bool with_interrupt = true;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--placer") && more)
            placer = argv[++i];
        else if (!strcmp(argv[i], "--limit") && more)
            limit_s = atof(argv[++i]);
        else if (!strcmp(argv[i], "--ops") && more)
            ops = argv[++i];
        else if (!strcmp(argv[i], "--devices") && more)
            devices = argv[++i];
        else if (!strcmp(argv[i], "--shapes") && more)
            only = argv[++i];
        else if (!strcmp(argv[i], "--no-interrupt"))
            with_interrupt = false;
        else if (!strcmp(argv[i], "--certificate"))
            certified = true;
        else if (!strcmp(argv[i], "--peak"))
            peak = true;
        else if (!strcmp(argv[i], "--edge"))
            by_edge = true;
        else if (!strcmp(argv[i], "--free"))
            free_links = true;
        else
            return fprintf(stderr, "see the head of bench/bench_promises.c\n"), 2;
    }
    printf("placer %s; limits in seconds, memory in MB\n%-12s %8s %4s %6s %8s %7s %5s %8s %8s %6s %8s %5s\n", placer,
           "shape", "ops", "dev", "limit", "taken", "over", "work", "gap", "peak", "per", "answer", "work");
    for (size_t s = 0; s < SHAPES; s++)
        for (const char *n = ops; only == NULL || listed(only, shape_name[s]); n = strchr(n, ',') + 1) {
            for (const char *k = devices;; k = strchr(k, ',') + 1) {
                cell(shape_name[s], atoi(n), atoi(k), placer, limit_s, with_interrupt);
                if (!strchr(k, ','))
                    break;
            }
            if (!strchr(n, ','))
                break;
        }
    return 0;
}
