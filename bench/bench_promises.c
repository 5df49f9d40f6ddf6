/* Are limits kept? Time limit, Ctrl-C and peak memory of a placer over shapes x sizes x numbers of devices x modes.
 *
 * usage: bench_promises [--placer NAME] [--limit SECONDS] [--ops N,N] [--devices K,K] [--shapes a,b] [--modes a,b]
 *                       [--problems FILE,FILE] [--in-flight N] [--threads N] [--no-interrupt] [--wall]
 *
 * Without arguments it is the whole matrix, some hours: 100 to 1,000,000 operators, 4 to 64 devices, and as modes the plain problem, a certificate that
 * is written and proven again within the limit, memory mode peak where memory is tight, flow edge, congestion none and device; "certificate+edge" joins two. Mode "rate" asks for the
 * best rate with 64 requests in flight (--in-flight) instead of one inference, "rate+one" for plans of one copy; with --problems the problems are read from files, and shapes, sizes and devices are theirs. The exit code is 1
 * where a promise is broken or a cell fails, and the last line says how many are.
 *
 * Every cell runs twice in a process of its own: once with the time limit, and once without any limit but interrupted
 * after half of it. "over" is the time taken beyond the limit and 5 % of it; the promise is at most 0.3 s. "answer" is
 * the time from the interrupt to the plan; the promise is at most 1 s. Time is processor time of one thread, also to the placer, whose clock is replaced
 * here, so that a busy machine changes nothing; --wall takes the clock on the wall and as many threads as there are. "proven" is what the verifier found of the
 * plan's bound within the limit, "late" where it did not get to its end. "peak" is the memory of the placing process less
 * what it had before (the problem itself), and "per" that in bytes per operator and device: the law is that this does
 * not grow with the number of devices or of distinct blocks. */
#include "processor.h"
#include "support/shapes.h"
#include "util/util.h"

#include <moirai/moirai.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OVER_S 0.3 /* what a limit may be exceeded by, beside 5 % */
#define ANSWER_S 1.0
#define BEGINNING_S 1e6 /* of a process: as on the wall, 0 is long ago, and any time kept of a limit is after it */

typedef struct setup {
    const char *placer, *ops, *devices, *shapes, *modes, *problems;
    double limit_s;
    int threads, in_flight;
    bool interrupts, wall;
} setup;

static setup asked = {.placer = "moirai",
                      .ops = "100,3000,20000,200000,1000000",
                      .devices = "4,16,64",
                      .shapes = "chain,fork-join,layered,transformer,one-block,side,wide,into-one",
                      .modes = "plain,certificate,peak+tight,edge,none,device,rate",
                      .limit_s = 5,
                      .threads = 1,
                      .in_flight = 64,
                      .interrupts = true};

/* Instead of util/clock.c: the placer's limits are in the time that is measured. */
double util_seconds(void)
{
    struct timespec t;
    clock_gettime(asked.wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return BEGINNING_S + (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one cell ---- */

typedef struct outcome {
    double taken_s, answer_s, gap, proven, peak_mb;
    bool late; /* the verifier did not get to its end */
    int rc;
} outcome;

static double raised_at;

static void raise_now(int signal_number)
{
    raised_at = util_seconds();
    had_enough(signal_number);
}

/* The interrupt comes after so much time. */
static void interrupt_after(double seconds)
{
    int which = asked.wall ? ITIMER_REAL : ITIMER_PROF;
    struct sigaction act = {.sa_handler = raise_now, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_value.tv_sec = (time_t)seconds,
                              .it_value.tv_usec = (suseconds_t)(1e6 * (seconds - floor(seconds)))};
    sigaction(asked.wall ? SIGALRM : SIGPROF, &act, NULL);
    setitimer(which, &timer, NULL);
}

/* Whether `item` is one of those in a list, which `between` divides. */
static bool listed(const char *list, char between, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at != NULL; at = strchr(at, between) ? strchr(at, between) + 1 : NULL)
        if (strncmp(at, item, length) == 0 && (at[length] == between || at[length] == '\0'))
            return true;
    return false;
}

static int place_rate(moirai_plan **plan, const moirai_problem *p, const moirai_place_options *as, bool one_copy)
{
    moirai_rate_options o;
    moirai_rate_options_init(&o);
    o.budget = as->budget;
    o.gap = as->gap;
    o.certificate_path = as->certificate_path;
    o.in_flight = asked.in_flight;
    o.copies = one_copy;
    return moirai_rate_place(plan, p, &o);
}

static double gap_of(const moirai_plan *plan)
{
    const moirai_rate *r = plan ? plan->rate : NULL;
    return !plan ? 1
           : r   ? (double)(r->period_ns - r->period_bound_ns) / (double)UTIL_MAX(r->period_ns, 1)
                 : moirai_plan_gap(plan);
}

static void place(outcome *out, const moirai_problem *p, const char *mode, bool interrupted)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    char path[64];
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.interrupt = &enough;
    o.budget.threads = asked.wall ? 0 : asked.threads;
    o.budget.time_limit_s = interrupted ? 0 : asked.limit_s;
    snprintf(path, sizeof path, "/tmp/bench_promises.%d.json", (int)getpid());
    o.certificate_path = listed(mode, '+', "certificate") ? path : NULL;
    double before_mb = peak_mb(), begun = util_seconds();
    if (interrupted)
        interrupt_after(asked.limit_s / 2);
    out->rc = listed(mode, '+', "rate") ? place_rate(&plan, p, &o, listed(mode, '+', "one"))
                                        : moirai_place(&plan, p, asked.placer, &o);
    double ended = util_seconds();
    unlink(path);
    out->taken_s = ended - begun;
    out->answer_s = raised_at > 0 && raised_at < ended ? ended - raised_at : 0;
    out->gap = gap_of(plan);
    out->peak_mb = peak_mb() - before_mb;
    if (plan && plan->rate && plan->rate->period_bound_ns > 0)
        out->proven = (double)UTIL_MAX(plan->rate->period_certified_ns, 0) / (double)plan->rate->period_bound_ns;
    else if (plan && plan->lower_bound_ns > 0)
        out->proven = (double)UTIL_MAX(plan->certified_bound_ns, 0) / (double)plan->lower_bound_ns;
    out->late = plan && plan->uncertified & MOIRAI_UNCERTIFIED_LIMIT;
    if (plan && plan->uncertified & MOIRAI_UNCERTIFIED_REJECTED)
        out->rc = moirai_error(MOIRAI_EVERIFY, "the verifier rejects the certificate");
    if (out->rc)
        fprintf(stderr, "%s\n", moirai_error_message());
    moirai_plan_free(plan);
}

/* Three times the room of all operators and tensors together, over all devices; but what one operator reads and writes has room on each. */
static void tighten(moirai_problem *p)
{
    int64_t bytes = 0, most = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t around = p->op_memory_bytes[i];
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
            around += p->tensor_bytes[p->op_in[j]];
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            around += p->tensor_bytes[p->op_out[j]];
        most = UTIL_MAX(most, around);
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        bytes += p->op_memory_bytes[i];
    for (int32_t t = 0; t < p->n_tensors; t++)
        bytes += p->tensor_bytes[t];
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_memory_bytes[k] = UTIL_MAX(3 * bytes / p->n_devices, most + most / 5);
}

static void set_mode(moirai_problem *p, const char *mode)
{
    if (listed(mode, '+', "tight"))
        tighten(p);
    p->memory = listed(mode, '+', "peak") ? MOIRAI_MEMORY_PEAK : p->memory;
    p->flow = listed(mode, '+', "edge") ? MOIRAI_FLOW_EDGE : p->flow;
    p->congestion = listed(mode, '+', "none")     ? MOIRAI_CONGESTION_NONE
                    : listed(mode, '+', "device") ? MOIRAI_CONGESTION_DEVICE
                                                  : p->congestion;
}

/* In a process of its own, so that its memory and its time are its own. */
static int run_apart(outcome *out, moirai_problem *p, const char *mode, bool interrupted)
{
    int pipes[2];
    if (pipe(pipes))
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        set_mode(p, mode);
        place(out, p, mode, interrupted);
        _exit(write(pipes[1], out, sizeof *out) != sizeof *out);
    }
    close(pipes[1]);
    bool good = child > 0 && read(pipes[0], out, sizeof *out) == sizeof *out;
    close(pipes[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return good ? out->rc : -1;
}

/* Whether its promises are kept. */
static bool cell(moirai_problem *p, const char *shape, const char *mode)
{
    outcome timed = {0}, cut = {0};
    double cells = (double)p->n_ops * p->n_devices;
    char proven[16] = "-";
    printf("%-12s %8d %4d %-18s %6.1f ", shape, p->n_ops, p->n_devices, mode, asked.limit_s);
    fflush(stdout);
    if (run_apart(&timed, p, mode, false)) {
        printf("FAILED\n");
        return false;
    }
    double over = timed.taken_s - 1.05 * asked.limit_s;
    if (listed(mode, '+', "certificate"))
        snprintf(proven, sizeof proven, timed.late ? "late" : "%.2f%%", 100 * timed.proven);
    printf("%8.2f %7.2f %7.2f%% %8s %8.0f %6.0f ", timed.taken_s, over > 0 ? over : 0, 100 * timed.gap, proven,
           timed.peak_mb, timed.peak_mb * 1048576.0 / cells);
    fflush(stdout);
    bool kept = over <= OVER_S;
    if (asked.interrupts) {
        kept = !run_apart(&cut, p, mode, true) && cut.answer_s <= ANSWER_S && kept;
        printf("%8.2f", cut.answer_s);
    }
    printf("%s\n", kept ? "" : "  BROKEN");
    fflush(stdout);
    return kept;
}

/* ---- all of them ---- */

/* Copies the next of a list that commas divide; false: there is none. */
static bool next_of(const char **list, char *item, size_t size)
{
    size_t length = strcspn(*list, ",");
    if (!**list)
        return false;
    snprintf(item, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

typedef struct tally {
    int cells, broken;
} tally;

/* All modes of one problem, which is freed. */
static void cells_of(tally *sum, const char *name, moirai_problem *p, int rc)
{
    char mode[64];
    if (rc)
        fprintf(stderr, "%s\n", moirai_error_message());
    malloc_trim(0); /* what made the problem is not there for the placer to use */
    for (const char *modes = asked.modes; next_of(&modes, mode, sizeof mode);) {
        sum->cells++;
        sum->broken += rc || !cell(p, name, mode);
    }
    moirai_problem_free(p);
}

static void cells_of_files(tally *sum)
{
    char path[256];
    for (const char *files = asked.problems; next_of(&files, path, sizeof path);) {
        moirai_problem *p = NULL;
        int rc = moirai_problem_read(&p, path);
        char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        name[strcspn(name, ".")] = '\0';
        cells_of(sum, name, p, rc);
    }
}

static void cells_of_shapes(tally *sum)
{
    char shape[32], n[32], k[32];
    for (const char *shapes = asked.shapes; next_of(&shapes, shape, sizeof shape);)
        for (const char *ops = asked.ops; next_of(&ops, n, sizeof n);)
            for (const char *devices = asked.devices; next_of(&devices, k, sizeof k);) {
                moirai_problem *p = NULL;
                int rc = shape_problem(&p, shape, atoi(n), atoi(k));
                cells_of(sum, shape, p, rc);
            }
}

static bool known_shapes(void)
{
    static const char *const known =
        "chain,fork-join,layered,transformer,one-block,side,wide,into-one,masked,two-towers,ten-towers";
    char shape[32];
    for (const char *shapes = asked.shapes; next_of(&shapes, shape, sizeof shape);)
        if (!listed(known, ',', shape))
            return false;
    return true;
}

static bool known_modes(void)
{
    static const char *const known = "plain+certificate+peak+edge+none+device+tight+rate+one";
    char mode[64];
    for (const char *modes = asked.modes; next_of(&modes, mode, sizeof mode);)
        for (char *at = mode, *end; at; at = end ? end + 1 : NULL) {
            end = strchr(at, '+');
            if (end)
                *end = '\0';
            if (!listed(known, '+', at))
                return false;
        }
    return true;
}

static bool read_arguments(int argc, char **argv)
{
    struct {
        const char *name, **value;
    } words[] = {{"--placer", &asked.placer}, {"--ops", &asked.ops},     {"--devices", &asked.devices},
                 {"--shapes", &asked.shapes}, {"--modes", &asked.modes}, {"--problems", &asked.problems}};
    for (int i = 1; i < argc; i++) {
        size_t w = 0, n = sizeof words / sizeof *words;
        for (; w < n && strcmp(argv[i], words[w].name);)
            w++;
        bool more = i + 1 < argc;
        if (w < n && more)
            *words[w].value = argv[++i];
        else if (!strcmp(argv[i], "--limit") && more)
            asked.limit_s = atof(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && more)
            asked.threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--in-flight") && more)
            asked.in_flight = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--no-interrupt"))
            asked.interrupts = false;
        else if (!strcmp(argv[i], "--wall"))
            asked.wall = true;
        else
            return false;
    }
    return asked.limit_s > 0 && asked.threads > 0 && known_modes() && known_shapes();
}

int main(int argc, char **argv)
{
    tally sum = {0};
    if (!read_arguments(argc, argv))
        return fprintf(stderr, "see the head of bench/bench_promises.c\n"), 2;
    printf("placer %s; %s seconds, memory in MB\n%-12s %8s %4s %-18s %6s %8s %7s %8s %8s %8s %6s %8s\n", asked.placer,
           asked.wall ? "wall-clock" : "processor", "shape", "ops", "dev", "mode", "limit", "taken", "over", "gap",
           "proven", "peak", "per", "answer");
    if (asked.problems)
        cells_of_files(&sum);
    else
        cells_of_shapes(&sum);
    printf("%d cells, %d broken\n", sum.cells, sum.broken);
    return sum.broken > 0;
}
