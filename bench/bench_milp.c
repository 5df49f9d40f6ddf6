/* The two formulations side by side: model sizes and time to proven optimality over a set of small problems.
 *
 *   bench_milp [SECONDS]     limit per solve on the clock, default 60
 *
 * Networks are made here (layers of operators that read one or two of the layer before, times drawn with a fixed seed),
 * so that the table needs no files. Times are of the processor, so that a busy machine does little harm. Prints
 * Markdown. A solve that reaches the limit is shown with its gap. */
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <moirai/moirai.h>

typedef struct shape {
    const char *name;
    int layers, width, devices;
    const char *flow, *congestion;
} shape;

static const shape shapes[] = {
    {"3 x 3, 2 devices, edge, port", 3, 3, 2, "edge", "port"},
    {"2 x 5, 3 devices, edge, port", 2, 5, 3, "edge", "port"},
    {"3 x 4, 2 devices, edge, port", 3, 4, 2, "edge", "port"},
    {"3 x 4, 2 devices, edge, channel", 3, 4, 2, "edge", "channel"},
    {"3 x 4, 2 devices, edge, none", 3, 4, 2, "edge", "none"},
    {"3 x 4, 2 devices, tensor, port", 3, 4, 2, "tensor", "port"},
    {"4 x 3, 2 devices, edge, port", 4, 3, 2, "edge", "port"},
    {"4 x 3, 2 devices, tensor, port", 4, 3, 2, "tensor", "port"},
};

static void devices_text(FILE *out, int n)
{
    fprintf(out, "\"devices\":[");
    for (int k = 0; k < n; k++)
        fprintf(out, "%s{\"name\":\"d%d\",\"memory_bytes\":1000000}", k ? "," : "", k);
    fprintf(out, "],\"channels\":[");
    for (int a = 0, first = 1; a < n; a++)
        for (int b = 0; b < n; b++)
            if (a != b) {
                fprintf(out, "%s{\"from\":\"d%d\",\"to\":\"d%d\",\"bytes_per_second\":1000000000,\"latency_ns\":%d}",
                        first ? "" : ",", a, b, 1000 * (1 + (a + b) % 3));
                first = 0;
            }
    fprintf(out, "],");
}

static void op_text(FILE *out, const shape *s, util_rng *r, int layer, int at)
{
    int base = 2000 + 1000 * (int)util_rng_below(r, 9);
    fprintf(out, "%s{\"name\":\"o%d_%d\",\"type\":\"X\",\"memory_bytes\":10,\"time_ns\":[", layer || at ? "," : "",
            layer, at);
    for (int k = 0; k < s->devices; k++)
        fprintf(out, "%s%d", k ? "," : "", base + 1000 * (int)util_rng_below(r, 5));
    fprintf(out, "],\"inputs\":[");
    if (layer > 0) {
        fprintf(out, "\"t%d_%d\"", layer - 1, at);
        if (util_rng_below(r, 3) > 0)
            fprintf(out, ",\"t%d_%d\"", layer - 1, (at + 1) % s->width);
    }
    fprintf(out, "],\"outputs\":[{\"name\":\"t%d_%d\",\"bytes\":%d}]}", layer, at,
            1000 * (1 + (int)util_rng_below(r, 4)));
}

static moirai_problem *make(const shape *s)
{
    char *text = NULL;
    size_t length = 0;
    util_rng r;
    moirai_problem *p = NULL;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    util_rng_seed(&r, 7);
    fprintf(out,
            "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"bench\",\"flow\":\"%s\",\"congestion\":\"%s\","
            "\"memory\":\"static\",",
            s->flow, s->congestion);
    devices_text(out, s->devices);
    fprintf(out, "\"ops\":[");
    for (int l = 0; l < s->layers; l++)
        for (int i = 0; i < s->width; i++)
            op_text(out, s, &r, l, i);
    fprintf(out, "]}");
    fclose(out);
    if (moirai_problem_parse(&p, text, length, "bench") != 0)
        fprintf(stderr, "bench_milp: %s\n", moirai_error_message());
    free(text);
    return p;
}

static void row(const char *name, const moirai_problem *p, const char *formulation, double limit_s)
{
    moirai_formulation f;
    moirai_milp_size size = {0};
    moirai_plan *start = NULL, *plan = NULL;
    moirai_place_options o;
    moirai_setting setting = {"formulation", formulation};
    moirai_formulation_parse(&f, formulation);
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.time_limit_s = limit_s;
    o.setting = &setting;
    o.n_settings = 1;
    if (moirai_place(&start, p, "heft", NULL) == 0)
        moirai_milp_measure(&size, p, f, start);
    clock_t began = clock();
    int result = moirai_place(&plan, p, "milp", &o);
    double cpu_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    if (result != 0)
        printf("| %s | %s | %lld | %lld | %lld | %s |\n", name, formulation, (long long)size.rows,
               (long long)size.columns, (long long)size.binaries, moirai_error_message());
    else
        printf("| %s | %s | %lld | %lld | %lld | %.2f | %.3f | %.1f %% |\n", name, formulation, (long long)size.rows,
               (long long)size.columns, (long long)size.binaries, cpu_s, (double)plan->makespan_ns / 1e3,
               100 * moirai_plan_gap(plan));
    fflush(stdout);
    moirai_plan_free(start);
    moirai_plan_free(plan);
}

int main(int argc, char **argv)
{
    double limit_s = argc > 1 ? atof(argv[1]) : 60;
    printf("| problem (layers x width) | formulation | rows | columns | binaries | CPU s | makespan, us | gap "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t n = 0; n <= sizeof shapes / sizeof *shapes; n++) {
        moirai_problem *p = NULL;
        bool file = n == sizeof shapes / sizeof *shapes;
        if (file && moirai_problem_read(&p, MOIRAI_SHARED_DIR "/data/problems/example-1.problem.json") != 0)
            break; /* not beside this checkout */
        if (!file && !(p = make(&shapes[n])))
            return 1;
        row(file ? "example-1" : shapes[n].name, p, "tight", limit_s);
        row(file ? "example-1" : shapes[n].name, p, "paper", limit_s);
        moirai_problem_free(p);
    }
    return 0;
}
