/* The placer `moirai`: makespan, proven bound, gap, seconds, processor seconds and peak memory, as Markdown tables.
 *
 * usage: bench_moirai [--limit SECONDS] [--cpu SECONDS] [--threads N] [--effort E] [--gap G] [--cost MODEL] PART [NAME ...]
 *   files    the problems of ../shared/data/problems, each with a time limit and a gap of its own
 *   zoo      the paper's eleven networks x both testbeds x {original, coarsened} x {edge, tensor}, smaller ones first
 *   t5       the same for t5-tiny and t5-small, networks without cuts
 *   onnx     the networks of ../shared/data/onnx on both testbeds, flow tensor
 *   shapes   towers side by side, layers at random or all different, on 4 and 16 devices, beside the best of all heuristics
 *   family   alphafold2 from the smallest to the largest: seconds per operator
 *   effort   four problems of `files` at effort 0.25, 1 and 2, without a time limit
 *   levels   what each level of refinement proves and finds, on the block that has most of the operators;
 *            processor time adds up
 * NAMEs keep to the networks (problems) named; those of `zoo` may be patterns of rows, NETWORK/TESTBED/GRAPH/FLOW, as in
 * swin-6.6B/inter-server/original/tensor. Networks: cost model roofline (--cost), congestion port, memory static; fp32, or
 * fp16 where the weights in fp32 do not fit the testbed.
 *
 * --limit is wall time; --cpu ends a search after so many seconds of processor time, which means the same on a machine
 * that is busy with other things. A limit of 20 s on two cores is at most 40 of processor time.
 *
 * Each problem runs in a process of its own, so that peak memory and processor time are its own. Rows are flushed one
 * by one: an interrupted run leaves a table. Timings never fail it. */
#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <moirai/coarsen.h>
#include <moirai/onnx.h>
#include <moirai/placer.h>
#include <moirai/zoo.h>

#include "pair/anneal.h"
#include "pair/pair_refine.h"
#include "processor.h"
#include "support/shapes.h"
#include "util/util.h"

typedef struct setup {
    double limit_s, cpu_s, effort, gap;
    int threads;
    const char *cost; /* model of the networks' times */
    char **name;
    int n_names;
} setup;

static bool wanted(const setup *s, const char *name)
{
    for (int i = 0; i < s->n_names; i++)
        if (strcmp(name, s->name[i]) == 0)
            return true;
    return s->n_names == 0;
}

/* A row of `zoo`, by its network alone or by a pattern of all that it is made of. */
static bool wanted_row(const setup *s, const char *network, const char *testbed, const char *graph, const char *flow)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s/%s/%s", network, testbed, graph, flow);
    for (int i = 0; i < s->n_names; i++)
        if (fnmatch(s->name[i], name, 0) == 0)
            return true;
    return wanted(s, network);
}

static bool shared_file(char *path, size_t size, const char *folder, const char *name, const char *suffix)
{
    snprintf(path, size, "%s/data/%s/%s%s", MOIRAI_SHARED_DIR, folder, name, suffix);
    if (access(path, R_OK) == 0)
        return true;
    printf("| %s | skipped: not there |\n", name);
    return false;
}

/* ---- rows ---- */

static void print_other(const moirai_problem *p, const char *placer)
{
    moirai_plan *plan;
    if (moirai_place(&plan, p, placer, NULL)) {
        printf(" - |");
        return;
    }
    printf(" %.3f |", (double)plan->makespan_ns * 1e-6);
    moirai_plan_free(plan);
}

/* The best of all placers that search nothing. */
static void print_best_heuristic(const moirai_problem *p)
{
    const char *best = "-";
    int64_t least = INT64_MAX;
    for (int i = 0; i < moirai_placer_count(); i++) {
        const moirai_placer *h = moirai_placer_at(i);
        moirai_plan *plan;
        if (h->letters || moirai_place(&plan, p, h->name, NULL))
            continue;
        if (plan->makespan_ns < least) {
            least = plan->makespan_ns;
            best = h->name;
        }
        moirai_plan_free(plan);
    }
    printf(" %.3f (%s) |", (double)least * 1e-6, best);
}

typedef enum others { NO_OTHERS, SOME_OTHERS, BEST_OTHER } others;

#define ROW_HEAD "operators | makespan ms | bound ms | gap %% | seconds | CPU s | peak MB"
#define ROW_RULE "---:|---:|---:|---:|---:|---:|---:"

/* One problem, beside single, HEFT and m-ETF or the best heuristic. */
static int print_row(const moirai_problem *p, const setup *s, others beside)
{
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    o.budget.time_limit_s = s->limit_s;
    o.budget.threads = s->threads;
    o.budget.effort = s->effort;
    o.gap = s->gap;
    o.budget.interrupt = &enough;
    allow_processor_s(s->cpu_s);
    double begun = util_seconds(), used = processor_s();
    int rc = moirai_place(&plan, p, "moirai", &o);
    double seconds = util_seconds() - begun;
    used = processor_s() - used;
    allow_processor_s(0);
    if (rc) {
        printf(" %d | %s |\n", p->n_ops, moirai_error_message());
        return rc;
    }
    printf(" %d | %.3f | %.3f | %.2f | %.1f | %.1f | %.0f |", p->n_ops, (double)plan->makespan_ns * 1e-6,
           (double)plan->lower_bound_ns * 1e-6, 100 * moirai_plan_gap(plan), seconds, used, peak_mb());
    moirai_plan_free(plan);
    if (beside == BEST_OTHER)
        print_best_heuristic(p);
    if (beside == SOME_OTHERS) {
        print_other(p, "single");
        print_other(p, "heft");
        print_other(p, "m-etf");
    }
    printf("\n");
    return 0;
}

/* What a row is made of; the child process builds it. */
typedef struct row {
    const char *network; /* of the zoo, or NULL */
    const char *file;    /* a problem or an ONNX file, or NULL */
    bool onnx, coarse;
    const char *testbed;
    const char *shape; /* of tests/support/shapes.h, or NULL */
    int32_t n_ops;
    int n_devices;
    moirai_flow flow;
} row;

static int read_graph(moirai_graph **g, const row *r, int element_bytes)
{
    int rc = r->onnx ? moirai_onnx_read(g, r->file, NULL, NULL) : moirai_zoo_graph(g, r->network, element_bytes);
    if (rc || !r->coarse)
        return rc;
    moirai_rules *rules = NULL;
    moirai_graph *coarse = NULL;
    rc = moirai_rules_open(&rules, "onnxruntime");
    if (!rc)
        rc = moirai_coarsen(&coarse, *g, rules, NULL);
    moirai_rules_free(rules);
    moirai_graph_free(*g);
    *g = coarse;
    return rc;
}

/* fp32 where its weights fit, else fp16. */
static int make_problem(moirai_problem **p, int *element_bytes, const row *r, const char *cost)
{
    *p = NULL;
    *element_bytes = 4;
    if (r->shape)
        return shape_problem(p, r->shape, r->n_ops, r->n_devices);
    if (r->file && !r->onnx)
        return moirai_problem_read(p, r->file);
    moirai_cluster *c = NULL;
    int rc = moirai_cluster_open(&c, r->testbed);
    for (; !rc; *element_bytes = 2) {
        moirai_graph *g = NULL;
        moirai_problem_options o = {.flow = r->flow, .cost_model = cost, .memory = MOIRAI_MEMORY_STATIC};
        rc = read_graph(&g, r, *element_bytes);
        if (!rc)
            rc = moirai_problem_new(p, g, c, &o);
        moirai_graph_free(g);
        if (rc || *element_bytes == 2 || r->onnx || moirai_problem_check_memory(*p) == MOIRAI_OK)
            break;
        moirai_problem_free(*p);
        *p = NULL;
    }
    moirai_cluster_free(c);
    return rc;
}

/* In a process of its own. */
static void run_row(const row *r, const setup *s, others beside)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) {
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
            printf(" killed |\n");
        return;
    }
    moirai_problem *p;
    int bytes, rc = make_problem(&p, &bytes, r, s->cost);
    if (rc)
        printf(" %s |\n", moirai_error_message());
    if (!rc && r->network)
        printf(" %s |", bytes == 4 ? "fp32" : "fp16");
    if (!rc)
        rc = print_row(p, s, beside);
    moirai_problem_free(p);
    fflush(stdout);
    _exit(rc != 0);
}

/* ---- parts ---- */

static void bench_files(const setup *s)
{
    static const struct {
        const char *name;
        double limit_s, gap;
    } file[] = {{"example-1", 10, 0},
                {"googlenet", 30, 0},
                {"inceptionv4", 60, 0.01},
                {"gpt330m-inter-edge", 10, 0.01},
                {"gpt330m-intra-tensor", 10, 0.01},
                {"gpt13b-inter-tensor", 30, 0.01}};
    printf("| problem | limit s | " ROW_HEAD " | single | HEFT | m-ETF |\n|---|---:|" ROW_RULE "|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        char path[4096];
        setup own = *s;
        if (!wanted(s, file[i].name) || !shared_file(path, sizeof path, "problems", file[i].name, ".problem.json"))
            continue;
        if (s->limit_s <= 0 && s->cpu_s <= 0)
            own.limit_s = file[i].limit_s;
        else if (s->cpu_s > 0) /* as a part of all the processor time within the limit */
            own.cpu_s = fmin(s->cpu_s, 2 * file[i].limit_s);
        own.gap = fmin(s->gap, file[i].gap);
        printf("| %s | %g |", file[i].name, file[i].limit_s);
        run_row(&(row){.file = path}, &own, SOME_OTHERS);
    }
}

static const char *const testbeds[] = {"inter-server", "intra-server"};

static int by_operators(const void *a, const void *b)
{
    const moirai_zoo_entry *x = *(const moirai_zoo_entry *const *)a, *y = *(const moirai_zoo_entry *const *)b;
    return x->n_ops != y->n_ops ? (x->n_ops > y->n_ops) - (x->n_ops < y->n_ops) : strcmp(x->name, y->name);
}

/* The paper's networks, smaller first. */
static int paper_networks(const moirai_zoo_entry **list, int room)
{
    int n = 0;
    for (int i = 0; i < moirai_zoo_count() && n < room; i++)
        if (moirai_zoo_at(i)->paper_parameters)
            list[n++] = moirai_zoo_at(i);
    qsort(list, (size_t)n, sizeof *list, by_operators);
    return n;
}

static void print_zoo_head(void)
{
    printf("| network | testbed | graph | flow | type | " ROW_HEAD " | single | HEFT | m-ETF |\n"
           "|---|---|---|---|---|" ROW_RULE "|---:|---:|---:|\n");
}

/* Both testbeds, original and coarsened, both flows. */
static void bench_network(const setup *s, const char *name)
{
    for (int j = 0; j < 8; j++) {
        row r = {.network = name,
                 .testbed = testbeds[j / 4],
                 .coarse = j / 2 % 2,
                 .flow = j % 2 ? MOIRAI_FLOW_TENSOR : MOIRAI_FLOW_EDGE};
        const char *graph = r.coarse ? "coarsened" : "original", *flow = moirai_flow_name(r.flow);
        if (!wanted_row(s, r.network, r.testbed, graph, flow))
            continue;
        printf("| %s | %s | %s | %s |", r.network, r.testbed, graph, flow);
        run_row(&r, s, SOME_OTHERS);
    }
}

static void bench_zoo(const setup *s)
{
    const moirai_zoo_entry *list[64];
    int n = paper_networks(list, 64);
    print_zoo_head();
    for (int i = 0; i < n; i++)
        bench_network(s, list[i]->name);
}

/* Networks without cuts. */
static void bench_t5(const setup *s)
{
    print_zoo_head();
    bench_network(s, "t5-tiny");
    bench_network(s, "t5-small");
}

static void bench_onnx(const setup *s)
{
    static const char *const file[] = {"resnet50", "googlenet", "inception_v3", "bert_base", "densenet201", "swin_t"};
    printf("| network | testbed | " ROW_HEAD " | single | HEFT | m-ETF |\n|---|---|" ROW_RULE "|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        for (int j = 0; j < 2; j++) {
            char path[4096];
            if (!wanted(s, file[i]) || !shared_file(path, sizeof path, "onnx", file[i], ".onnx"))
                continue;
            printf("| %s | %s |", file[i], testbeds[j]);
            run_row(&(row){.file = path, .onnx = true, .testbed = testbeds[j], .flow = MOIRAI_FLOW_TENSOR}, s,
                    SOME_OTHERS);
        }
}

static void bench_shapes(const setup *s)
{
    static const struct {
        const char *name;
        int32_t n_ops;
    } shape[] = {{"two-towers", 560}, {"ten-towers", 1120}, {"layered", 1000}, {"transformer", 1008}, {"masked", 1081}};
    printf("| shape | devices | " ROW_HEAD " | best heuristic |\n|---|---:|" ROW_RULE "|---:|\n");
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int devices = 4; devices <= 16 && wanted(s, shape[i].name); devices *= 4) {
            printf("| %s | %d |", shape[i].name, devices);
            run_row(&(row){.shape = shape[i].name, .n_ops = shape[i].n_ops, .n_devices = devices}, s, BEST_OTHER);
        }
}

static void bench_family(const setup *s)
{
    const moirai_zoo_entry *list[64];
    int n = paper_networks(list, 64);
    printf("| network | testbed | flow | type | " ROW_HEAD " |\n|---|---|---|---|" ROW_RULE "|\n");
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 4 && !strncmp(list[i]->name, "alphafold2", 10) && wanted(s, list[i]->name); j++) {
            row r = {.network = list[i]->name,
                     .testbed = testbeds[j / 2],
                     .flow = j % 2 ? MOIRAI_FLOW_TENSOR : MOIRAI_FLOW_EDGE};
            printf("| %s | %s | %s |", r.network, r.testbed, moirai_flow_name(r.flow));
            run_row(&r, s, NO_OTHERS);
        }
}

static void bench_effort(const setup *s)
{
    static const char *const file[] = {"googlenet", "inceptionv4", "gpt330m-inter-edge", "gpt330m-intra-tensor"};
    static const double effort[] = {0.25, 1, 2};
    printf("| problem | effort | " ROW_HEAD " |\n|---|---:|" ROW_RULE "|\n");
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        for (size_t j = 0; j < sizeof effort / sizeof *effort; j++) {
            char path[4096];
            setup own = *s;
            if (!wanted(s, file[i]) || !shared_file(path, sizeof path, "problems", file[i], ".problem.json"))
                continue;
            own.effort = effort[j] * s->effort;
            printf("| %s | %g |", file[i], own.effort);
            run_row(&(row){.file = path}, &own, NO_OTHERS);
        }
}

/* ---- levels ---- */

/* The class that has most of the operators. */
static int32_t largest_class(const decompose_cuts *s)
{
    int32_t best = 0;
    int64_t most = -1;
    for (int32_t i = 0; i < s->n_classes; i++) {
        int64_t ops = (int64_t)s->block_size[s->class_block[i]] * s->class_count[i];
        if (ops > most) {
            most = ops;
            best = i;
        }
    }
    return best;
}

static void print_level(const pair_state *pair, const char *what, double used)
{
    double lower = (double)pair->lower_ns, length = (double)UTIL_MAX(pair->plan.length_ns, 1);
    printf("| | %s%s | %.3f | %.3f | %.2f | %d | %lld | %.1f |\n", what, pair->exhausted ? ", exhausted" : "",
           lower * 1e-6, length * 1e-6, 100 * (1 - lower / length), pair->n_cases, (long long)pair->solves,
           processor_s() - used);
    fflush(stdout);
}

/* As many evaluations as the levels had, from plain starts, without anything that the prices know. */
static int anneal_alone(pair_state *pair, int64_t evaluations)
{
    pair_plan plan = {0};
    pair_anneal_task task = {.evaluations = evaluations, .seed = 1, .heat = 1};
    double used = processor_s();
    int rc = pair_anneal(&plan, &pair->block, &task);
    if (!rc)
        printf("| | annealing without hints | | %.3f | | | | %.1f |\n", (double)plan.length_ns * 1e-6,
               processor_s() - used);
    pair_plan_free(&plan);
    return rc;
}

/* The largest class, with both cuts on the device that runs its entry fastest. */
static int print_levels(pair_chain *c, const char *name)
{
    static const char *const what[] = {"longest path", "level 1", "level 2", "level 3"};
    int32_t class_ = largest_class(c->s), block = c->s->class_block[class_], cut = decompose_exit(c->s, block);
    int32_t k = 0;
    for (int32_t l = 1; l < c->K && cut >= 0; l++)
        if (moirai_op_ns(c->p, cut, l) >= 0 && moirai_op_ns(c->p, cut, l) < moirai_op_ns(c->p, cut, k))
            k = l;
    double used = processor_s();
    int rc = pair_open(c, class_, k, k);
    if (rc)
        return rc;
    pair_state *pair = c->pair[pair_chain_index(c, class_, k, k)];
    printf("| %s | %d x %d operators in %d components of %d kinds |\n", name, c->s->class_count[class_],
           c->s->block_size[block], c->block[class_]->n_components, c->block[class_]->n_kinds);
    for (int32_t level = 0; !rc && level <= 3; level++) {
        pair_refine_task job = {.level = level, .need_ns = INT64_MAX, .improve = true, .effort = 1, .seed = 1};
        if (level > 0 && pair->level < level)
            rc = pair_refine(pair, &job);
        if (!rc)
            print_level(pair, what[level], used);
    }
    return rc ? rc : anneal_alone(pair, 90000);
}

static void bench_levels(const setup *s)
{
    static const char *const file[] = {"inceptionv4", "gpt330m-intra-tensor", "gpt330m-inter-edge",
                                       "gpt13b-inter-tensor"};
    printf("| problem | level | bound ms | plan ms | gap %% | cases | masters | CPU s "
           "|\n|---|---|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        char path[4096];
        moirai_problem *p = NULL;
        pair_chain *c = NULL;
        if (!wanted(s, file[i]) || !shared_file(path, sizeof path, "problems", file[i], ".problem.json"))
            continue;
        int rc = moirai_problem_read(&p, path);
        if (!rc)
            rc = pair_chain_new(&c, p);
        if (rc || print_levels(c, file[i]))
            printf("| %s | %s |\n", file[i], moirai_error_message());
        pair_chain_free(c);
        moirai_problem_free(p);
    }
}

static const struct {
    const char *name;
    void (*run)(const setup *s);
} parts[] = {{"files", bench_files},   {"zoo", bench_zoo},       {"t5", bench_t5},         {"onnx", bench_onnx},
             {"shapes", bench_shapes}, {"family", bench_family}, {"effort", bench_effort}, {"levels", bench_levels}};

int main(int argc, char **argv)
{
    setup s = {.effort = 1, .gap = 0.01, .cost = "roofline"};
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        double value = atof(argv[i + 1]);
        if (strcmp(argv[i], "--limit") == 0)
            s.limit_s = value;
        else if (strcmp(argv[i], "--cpu") == 0)
            s.cpu_s = value;
        else if (strcmp(argv[i], "--threads") == 0)
            s.threads = (int)value;
        else if (strcmp(argv[i], "--effort") == 0)
            s.effort = value;
        else if (strcmp(argv[i], "--gap") == 0)
            s.gap = value;
        else if (strcmp(argv[i], "--cost") == 0)
            s.cost = argv[i + 1];
        else
            break;
    }
    s.name = argv + i + 1;
    s.n_names = i < argc ? argc - i - 1 : 0;
    for (size_t j = 0; i < argc && j < sizeof parts / sizeof *parts; j++)
        if (strcmp(argv[i], parts[j].name) == 0) {
            parts[j].run(&s);
            return 0;
        }
    fprintf(stderr, "usage: bench_moirai [--limit SECONDS] [--cpu SECONDS] [--threads N] [--effort E] [--gap G] "
                    "[--cost MODEL] files|zoo|t5|onnx|shapes|family|effort|levels [NAME ...]\n");
    return 2;
}
