/* Learning curves of the placers that learn: makespan over episodes, beside what single, HEFT and m-ETF give.
 *
 * usage: bench_learn [--limit SECONDS | --episodes N] [--seed N] [--threads N] PART [NAME ...]
 *   curves    placeto and hrl on gpt3-tiny and inception-tiny, both testbeds: mean makespan of recent episodes and the
 * best plan, at doubling numbers of episodes; episodes per second; when m-ETF's makespan was reached transfer  a policy
 * trained on gpt3-tiny used on gpt3-mini without training, and the same from t5-tiny to t5-small, beside an untrained
 *             policy: mean over a batch of draws, and the plan
 * NAMEs keep to the placers, networks and testbeds named. Cost model auto, fp32, flow tensor, congestion port, memory
 * static, gap 0. It prints as it goes; timings never fail it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/zoo.h>

#include "place/learn/train.h"

typedef struct setup {
    double limit_s;
    uint64_t seed;
    int threads;
    const char *episodes; /* NULL: as the limit says */
    char **name;
    int n_names;
} setup;

/* Of each kind (placers, networks, testbeds) all are wanted unless some are named. */
static bool wanted(const setup *s, const char *const *kind, int n, const char *name)
{
    bool any = false;
    for (int i = 0; i < s->n_names; i++) {
        if (strcmp(name, s->name[i]) == 0)
            return true;
        for (int j = 0; j < n; j++)
            any = any || strcmp(kind[j], s->name[i]) == 0;
    }
    return !any;
}

static moirai_problem *make_problem(const char *network, const char *testbed)
{
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    moirai_problem *p = NULL;
    moirai_problem_options o = {0}; /* cost model auto, as the command does */
    if (moirai_zoo_graph(&g, network, 4) || moirai_cluster_open(&c, testbed) || moirai_problem_new(&p, g, c, &o))
        printf("%s on %s: %s\n", network, testbed, moirai_error_message());
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return p;
}

static int64_t makespan_of(const moirai_problem *p, const char *placer)
{
    moirai_plan *plan;
    if (moirai_place(&plan, p, placer, NULL))
        return MOIRAI_UNKNOWN;
    int64_t ns = plan->makespan_ns;
    moirai_plan_free(plan);
    return ns;
}

/* ---- curves ---- */

typedef struct curve {
    int64_t next; /* episodes at which the next row is due */
    double sum;   /* of means since the last row */
    int batches;
    int64_t goal_ns;  /* m-ETF's */
    double reached_s; /* by the best plan; -1: not yet */
    double mean_s;    /* by the mean of a row */
    learn_news last;
} curve;

static void print_row(curve *c)
{
    double mean = c->sum / c->batches;
    if (c->mean_s < 0 && mean <= (double)c->goal_ns)
        c->mean_s = c->last.seconds;
    printf("| %lld | %.1f | %.4f | %.4f | %.3f |\n", (long long)c->last.episodes, c->last.seconds, mean * 1e-6,
           (double)c->last.best_ns * 1e-6, c->last.norm);
    fflush(stdout);
    c->sum = 0;
    c->batches = 0;
}

static void watch_curve(void *data, const learn_news *news)
{
    curve *c = data;
    c->sum += news->mean_ns;
    c->batches++;
    c->last = *news;
    if (c->reached_s < 0 && news->best_ns != MOIRAI_UNKNOWN && news->best_ns <= c->goal_ns)
        c->reached_s = news->seconds;
    if (news->episodes < c->next)
        return;
    c->next *= 2;
    print_row(c);
}

static moirai_place_options options_of(const setup *s)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.seed = s->seed;
    o.budget.threads = s->threads;
    o.budget.time_limit_s = s->episodes ? 0 : s->limit_s;
    o.gap = 0;
    return o;
}

static void print_curve(const learn_method *method, const char *network, const char *testbed, const setup *s)
{
    moirai_problem *p = make_problem(network, testbed);
    moirai_plan *plan = NULL;
    if (p == NULL)
        return;
    curve c = {.next = 32, .goal_ns = makespan_of(p, "m-etf"), .reached_s = -1, .mean_s = -1};
    printf("\n### %s on %s, %s\n\nsingle %.4f ms, heft %.4f ms, m-etf %.4f ms\n\n", method->placer->name, network,
           testbed, (double)makespan_of(p, "single") * 1e-6, (double)makespan_of(p, "heft") * 1e-6,
           (double)c.goal_ns * 1e-6);
    printf("| episodes | seconds | mean ms | best ms | gradient |\n|---:|---:|---:|---:|---:|\n");
    moirai_setting set[] = {{"episodes", s->episodes}};
    moirai_place_options o = options_of(s);
    o.setting = set;
    o.n_settings = s->episodes != NULL;
    if (learn_place(&plan, method, p, &o, watch_curve, &c)) {
        printf("%s\n", moirai_error_message());
    } else {
        if (c.batches > 0)
            print_row(&c);
        printf("\nplan %.4f ms; %.0f episodes per second; m-etf's makespan reached ", (double)plan->makespan_ns * 1e-6,
               (double)c.last.episodes / c.last.seconds);
        printf(c.reached_s < 0 ? "never" : "after %.1f s", c.reached_s);
        printf(c.mean_s < 0 ? ", by the mean never\n" : ", by the mean after %.1f s\n", c.mean_s);
    }
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static const char *const placers[] = {"placeto", "hrl"};
static const learn_method *const methods[] = {&learn_placeto, &learn_hrl};
static const char *const testbeds[] = {"inter-server", "intra-server"};

static void curves(const setup *s)
{
    static const char *const networks[] = {"gpt3-tiny", "inception-tiny"};
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++)
            for (int t = 0; t < 2; t++)
                if (wanted(s, placers, 2, placers[m]) && wanted(s, networks, 2, networks[n]) &&
                    wanted(s, testbeds, 2, testbeds[t]))
                    print_curve(methods[m], networks[n], testbeds[t], s);
}

/* ---- transfer ---- */

static void keep_news(void *data, const learn_news *news)
{
    *(learn_news *)data = *news;
}

/* The policy in `file` (NULL: an untrained one) on a problem, without training. */
static void print_use(const learn_method *method, const moirai_problem *p, const char *file, const setup *s)
{
    moirai_setting set[] = {{"train", "false"}, {"load", file}};
    moirai_place_options o = options_of(s);
    moirai_plan *plan = NULL;
    learn_news news = {0};
    o.setting = set;
    o.n_settings = file ? 2 : 1;
    if (learn_place(&plan, method, p, &o, keep_news, &news))
        printf(" %s |", moirai_error_message());
    else
        printf(" %.3f | %.3f |", news.mean_ns * 1e-6, (double)plan->makespan_ns * 1e-6);
    moirai_plan_free(plan);
}

static void print_transfer(const learn_method *method, const char *from, const char *to, const char *testbed,
                           const setup *s)
{
    char file[64];
    snprintf(file, sizeof file, "/tmp/bench_learn.%d.json", (int)getpid());
    moirai_problem *small = make_problem(from, testbed), *large = make_problem(to, testbed);
    moirai_setting set[] = {{"save", file}, {"episodes", s->episodes}};
    moirai_place_options o = options_of(s);
    moirai_plan *plan = NULL;
    o.setting = set;
    o.n_settings = s->episodes ? 2 : 1;
    printf("| %s | %s | %s | %s |", method->placer->name, testbed, from, to);
    if (small && large && learn_place(&plan, method, small, &o, NULL, NULL) == 0) {
        print_use(method, large, NULL, s);
        print_use(method, large, file, s);
        printf(" %.3f |\n", (double)makespan_of(large, "m-etf") * 1e-6);
    } else {
        printf(" %s |\n", moirai_error_message());
    }
    fflush(stdout);
    unlink(file);
    moirai_plan_free(plan);
    moirai_problem_free(small);
    moirai_problem_free(large);
}

static void transfer(const setup *s)
{
    static const char *const from[] = {"gpt3-tiny", "t5-tiny"}, *const to[] = {"gpt3-mini", "t5-small"};
    printf(
        "| placer | testbed | trained on | used on | untrained: mean ms | plan ms | trained: mean ms | plan ms | m-etf "
        "ms |\n|---|---|---|---|---:|---:|---:|---:|---:|\n");
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++)
            for (int t = 0; t < 2; t++)
                if (wanted(s, placers, 2, placers[m]) && wanted(s, from, 2, from[n]) &&
                    wanted(s, testbeds, 2, testbeds[t]))
                    print_transfer(methods[m], from[n], to[n], testbeds[t], s);
}

int main(int argc, char **argv)
{
    setup s = {.limit_s = 60, .seed = 1};
    const char *part = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc)
            s.limit_s = atof(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            s.seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            s.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--episodes") == 0 && i + 1 < argc)
            s.episodes = argv[++i];
        else if (part == NULL)
            part = argv[i];
        else {
            s.name = argv + i;
            s.n_names = argc - i;
            break;
        }
    }
    if (part && strcmp(part, "curves") == 0)
        curves(&s);
    else if (part && strcmp(part, "transfer") == 0)
        transfer(&s);
    else
        return fprintf(stderr, "usage: bench_learn [--limit S | --episodes N] [--seed N] [--threads N] curves|transfer "
                               "[NAME ...]\n"),
               2;
    return 0;
}
