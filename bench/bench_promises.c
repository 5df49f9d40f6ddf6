/* Are limits kept? Time limit, Ctrl-C and peak memory of a placer over shapes x sizes x numbers of devices.
 *
 * usage: bench_promises [--placer NAME] [--limit SECONDS] [--ops N,N] [--devices K,K] [--shapes a,b] [--no-interrupt]
 *
 * Every cell runs twice in a process of its own: once with the time limit, and once without any limit but interrupted
 * after half of it. "over" is the time taken beyond the limit less 5 % of it; the promise is at most 0.3 s. "answer" is
 * the time from the interrupt to the plan; the promise is at most 1 s. "peak" is the memory of the placing process less
 * what it had before (the problem itself), and "per" that in bytes per operator and device: the law is that this does
 * not grow with the number of devices or of distinct blocks. "work" beside "over" and "answer" is the processor time
 * used in them, over all threads: on a machine that others use too it says more than the clock. */
#include <moirai/moirai.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZES 40 /* distinct sizes of tensors */

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

/* ---- shapes ---- */

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void add_op(moirai_graph_builder *b, int32_t i, int n_inputs, const int32_t *input)
{
    char name[32], tensor[32];
    snprintf(name, sizeof name, "op%d", i);
    int32_t op = moirai_graph_builder_op(b, name, "MatMul");
    for (int j = 0; j < n_inputs; j++) {
        snprintf(tensor, sizeof tensor, "t%d", input[j]);
        moirai_graph_builder_input(b, op, tensor);
    }
    snprintf(tensor, sizeof tensor, "t%d", i);
    int64_t size = 4096 * (1 + (int64_t)draw(SIZES));
    moirai_graph_builder_output(b, op, tensor, size);
    moirai_graph_builder_cost(b, op, 1000, 0, 20000000 * (1 + (int64_t)draw(8)), 4 * size);
}

/* The inputs of operator i of n in a graph of this shape. */
static int inputs_of(const char *shape, int32_t i, int32_t n, int32_t *input)
{
    if (i == 0)
        return 0;
    if (!strcmp(shape, "chain")) {
        input[0] = i - 1;
        return 1;
    }
    if (!strcmp(shape, "fork-join")) { /* stages of one fork, eight branches, one join */
        int32_t at = i % 10, base = i - at;
        if (at == 0 || at == 9 || i == n - 1) {
            int count = 0;
            for (int32_t j = at == 0 ? i - 1 : base + 1; j < i; j++)
                input[count++] = j;
            return count;
        }
        input[0] = base;
        return 1;
    }
    if (!strcmp(shape, "layered")) { /* width 20, two inputs from the layer before */
        int32_t layer = i / 20, first = layer > 0 ? (layer - 1) * 20 : 0, width = layer > 0 ? 20 : i;
        input[0] = first + (int32_t)draw((uint32_t)width);
        input[1] = first + (int32_t)draw((uint32_t)width);
        return input[0] == input[1] ? 1 : 2;
    }
    if (!strcmp(shape, "transformer")) { /* norm, 8 heads of three in a row, join, two more */
        int32_t at = i % 28, base = i - at;
        input[0] = at == 0 || at >= 26 ? i - 1 : (at - 1) % 3 == 0 && at < 25 ? base : i - 1;
        if (at != 25)
            return 1;
        for (int32_t h = 0; h < 8; h++)
            input[h] = base + 3 + 3 * h;
        return 8;
    }
    input[0] = (int32_t)draw((uint32_t)i); /* one block: anything may read anything before it */
    input[1] = (int32_t)draw((uint32_t)i);
    return input[0] == input[1] ? 1 : 2;
}

static int make(moirai_problem **out, const char *shape, int32_t n, int devices)
{
    static const char *const types[] = {"v100", "p100", "t4", "p4"};
    char text[200] = "";
    moirai_graph_builder *b;
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    int rc = moirai_graph_builder_new(&b, shape);
    state = 12345;
    for (int32_t i = 0; rc == 0 && i < n; i++) {
        int32_t input[16];
        int count = inputs_of(shape, i, n, input);
        add_op(b, i, count, input);
    }
    if (rc == 0)
        rc = moirai_graph_builder_finish(&g, b);
    for (int i = 0; i < 4; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%dx %s, ", devices / 4, types[i]);
    strcat(text, "100Gbps 5us");
    if (rc == 0)
        rc = moirai_cluster_open(&c, text);
    moirai_problem_options o = {.cost_model = "roofline"};
    if (rc == 0)
        rc = moirai_problem_new(out, g, c, &o);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return rc;
}

/* ---- one cell ---- */

typedef struct outcome {
    double taken_s, answer_s, gap, peak_mb;
    double work_s; /* processor time after the limit or the interrupt */
    int rc;
} outcome;

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

static double peak_mb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss / 1024.0;
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
    raises = interrupted;
    pthread_create(&thread, NULL, mark_later, &after);
    out->rc = moirai_place(&plan, p, placer, &o);
    double ended = seconds(), work = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    pthread_join(thread, NULL);
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
        int rc = make(&p, shape, n, devices);
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
    static const char *const shapes[] = {"chain", "fork-join", "layered", "transformer", "one-block"};
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
        else
            return fprintf(stderr, "see the head of bench/bench_promises.c\n"), 2;
    }
    printf("placer %s; limits in seconds, memory in MB\n%-12s %8s %4s %6s %8s %7s %5s %8s %8s %6s %8s %5s\n", placer,
           "shape", "ops", "dev", "limit", "taken", "over", "work", "gap", "peak", "per", "answer", "work");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (const char *n = ops; only == NULL || listed(only, shapes[s]); n = strchr(n, ',') + 1) {
            for (const char *k = devices;; k = strchr(k, ',') + 1) {
                cell(shapes[s], atoi(n), atoi(k), placer, limit_s, with_interrupt);
                if (!strchr(k, ','))
                    break;
            }
            if (!strchr(n, ','))
                break;
        }
    return 0;
}
