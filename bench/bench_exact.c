/* How far the exact search reaches: nodes and seconds by size on random problems, and on the blocks of GoogLeNet.
 *
 * Random: layered graphs (width 1-4), times 5-60 on each device, transfers 1-40, flow tensor and edge in turn,
 * congestion port. Blocks: what lies between two operators that all others come before or after, for every pair of
 * devices of the two. Both with a node limit; "proven" counts optima with their proof.
 *
 * usage: bench_exact [OPERATORS]    up to so many operators, 20 */
#include "exact/exact.h"
#include "util/json.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_LIMIT 200000
#define SEEDS 10

typedef struct totals {
    int runs, proven;
    int64_t nodes, worst_nodes;
    double seconds, worst_seconds, gap;
} totals;

static void run(totals *t, const moirai_problem *p)
{
    exact_options o;
    exact_result r;
    exact_options_init(&o);
    o.node_limit = NODE_LIMIT;
    double begun = util_seconds();
    if (exact_solve(p, &o, &r) != 0) {
        fprintf(stderr, "bench_exact: %s\n", moirai_error_message());
        exit(1);
    }
    double seconds = util_seconds() - begun;
    t->runs++;
    t->proven += r.complete;
    t->nodes += r.nodes;
    t->worst_nodes = UTIL_MAX(t->worst_nodes, r.nodes);
    t->seconds += seconds;
    t->worst_seconds = UTIL_MAX(t->worst_seconds, seconds);
    if (r.found && !r.complete)
        t->gap = UTIL_MAX(t->gap, (double)(r.makespan_ns - r.lower_bound_ns) / (double)r.makespan_ns);
    exact_result_clear(&r);
}

static void print_totals(const char *label, const totals *t)
{
    printf("%-22s %4d/%-4d %10lld %10lld %9.3f %9.3f %8.2f %%\n", label, t->proven, t->runs,
           (long long)(t->nodes / UTIL_MAX(1, t->runs)), (long long)t->worst_nodes, t->seconds / UTIL_MAX(1, t->runs),
           t->worst_seconds, 100 * t->gap);
    fflush(stdout);
}

/* ---- text of a problem ---- */

static void head_of(util_writer *w, const char *name, const char *flow, int K)
{
    char device[16];
    util_writer_open(w, '{');
    util_writer_pair_string(w, "format", "moirai-problem");
    util_writer_pair_int(w, "version", 1);
    util_writer_pair_string(w, "name", name);
    util_writer_pair_string(w, "flow", flow);
    util_writer_pair_string(w, "congestion", "port");
    util_writer_pair_string(w, "memory", "static");
    util_writer_key(w, "devices");
    util_writer_open(w, '[');
    for (int k = 0; k < K; k++) {
        snprintf(device, sizeof device, "d%d", k);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", device);
        util_writer_pair_int(w, "memory_bytes", (int64_t)1 << 50);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_key(w, "channels");
    util_writer_open(w, '[');
    for (int a = 0; a < K * K; a++) {
        if (a / K == a % K)
            continue;
        util_writer_open(w, '{');
        snprintf(device, sizeof device, "d%d", a / K);
        util_writer_pair_string(w, "from", device);
        snprintf(device, sizeof device, "d%d", a % K);
        util_writer_pair_string(w, "to", device);
        util_writer_pair_int(w, "bytes_per_second", 1000000000);
        util_writer_pair_int(w, "latency_ns", 0);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_key(w, "ops");
    util_writer_open(w, '[');
}

static moirai_problem *parse(util_writer *w)
{
    size_t length;
    moirai_problem *p = NULL;
    util_writer_close(w, ']');
    util_writer_close(w, '}');
    char *text = util_writer_take(w, &length);
    if (text == NULL || moirai_problem_parse(&p, text, length, "bench") != 0) {
        fprintf(stderr, "bench_exact: %s\n", moirai_error_message());
        exit(1);
    }
    free(text);
    util_writer_free(w);
    return p;
}

static moirai_problem *random_layered(int n, int K, uint64_t seed)
{
    util_rng rng;
    util_writer w;
    char name[32];
    util_rng_seed(&rng, seed);
    util_writer_init(&w);
    head_of(&w, "random", seed % 2 ? "tensor" : "edge", K);
    int width = 1 + (int)util_rng_below(&rng, 4);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "o%d", i);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "name", name);
        util_writer_pair_string(&w, "type", "X");
        util_writer_pair_int(&w, "memory_bytes", 0);
        util_writer_key(&w, "time_ns");
        util_writer_open(&w, '[');
        int base = 5 + (int)util_rng_below(&rng, 35);
        for (int k = 0; k < K; k++)
            util_writer_int(&w, base + (int)util_rng_below(&rng, 20));
        util_writer_close(&w, ']');
        util_writer_key(&w, "inputs");
        util_writer_open(&w, '[');
        for (int j = UTIL_MAX(0, i - width - 1); j < i; j++) {
            snprintf(name, sizeof name, "t%d", j);
            if (util_rng_below(&rng, 2) == 0 || (j == i - width && i >= width))
                util_writer_string(&w, name);
        }
        util_writer_close(&w, ']');
        util_writer_key(&w, "outputs");
        util_writer_open(&w, '[');
        snprintf(name, sizeof name, "t%d", i);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "name", name);
        util_writer_pair_int(&w, "bytes", 1 + util_rng_below(&rng, 40));
        util_writer_close(&w, '}');
        util_writer_close(&w, ']');
        util_writer_close(&w, '}');
    }
    return parse(&w);
}

/* ---- blocks ---- */

/* reach[i * n + j]: j comes after i. */
static bool *reachable(const moirai_problem *p)
{
    size_t n = (size_t)p->n_ops;
    bool *reach = util_alloc(n * n, sizeof *reach);
    for (int32_t r = p->n_ops - 1; reach != NULL && r >= 0; r--) {
        int32_t i = p->topo[r];
        for (int32_t a = p->op_out_off[i]; a < p->op_out_off[i + 1]; a++)
            for (int32_t e = p->tensor_edge_off[p->op_out[a]]; e < p->tensor_edge_off[p->op_out[a] + 1]; e++) {
                size_t j = (size_t)p->edge_reader[e];
                reach[(size_t)i * n + j] = true;
                for (size_t b = 0; b < n; b++)
                    reach[(size_t)i * n + b] |= reach[j * n + b];
            }
    }
    return reach;
}

static void write_block_op(util_writer *w, const moirai_problem *p, int32_t i, const bool *inside, int32_t only)
{
    int32_t K = p->n_devices;
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", p->op_name[i]);
    util_writer_pair_string(w, "type", p->op_type[i]);
    util_writer_pair_int(w, "memory_bytes", p->op_memory_bytes[i]);
    util_writer_key(w, "time_ns");
    util_writer_open(w, '[');
    for (int32_t k = 0; k < K; k++) {
        if (only >= 0 && k != only)
            util_writer_null(w);
        else
            util_writer_int(w, moirai_op_ns(p, i, k));
    }
    util_writer_close(w, ']');
    util_writer_key(w, "inputs");
    util_writer_open(w, '[');
    for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++)
        if (inside[p->tensor_producer[p->op_in[a]]])
            util_writer_string(w, p->tensor_name[p->op_in[a]]);
    util_writer_close(w, ']');
    util_writer_key(w, "outputs");
    util_writer_open(w, '[');
    for (int32_t a = p->op_out_off[i]; a < p->op_out_off[i + 1]; a++) {
        int32_t t = p->op_out[a];
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->tensor_name[t]);
        util_writer_pair_int(w, "bytes", p->tensor_bytes[t]);
        util_writer_key(w, "transfer_ns");
        util_writer_open(w, '[');
        for (int32_t k = 0; k < K; k++) {
            util_writer_open(w, '[');
            for (int32_t l = 0; l < K; l++)
                util_writer_int(w, moirai_transfer_ns(p, t, k, l));
            util_writer_close(w, ']');
        }
        util_writer_close(w, ']');
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static void run_block(const moirai_problem *p, const bool *inside, int32_t entry, int32_t exit_op, int32_t size)
{
    totals t = {0};
    char label[64];
    for (int32_t a = 0; a < p->n_devices * p->n_devices; a++) {
        util_writer w;
        util_writer_init(&w);
        head_of(&w, "block", moirai_flow_name(p->flow), p->n_devices);
        for (int32_t b = 0; b < p->n_ops; b++) {
            int32_t i = p->topo[b];
            int32_t only = i == entry ? a / p->n_devices : i == exit_op ? a % p->n_devices : -1;
            if (inside[i])
                write_block_op(&w, p, i, inside, only);
        }
        moirai_problem *block = parse(&w);
        run(&t, block);
        moirai_problem_free(block);
    }
    snprintf(label, sizeof label, "%s .. %s, %d", p->op_name[entry], p->op_name[exit_op], size);
    print_totals(label, &t);
}

static void run_blocks(const char *path)
{
    moirai_problem *p;
    if (moirai_problem_read(&p, path) != 0) {
        printf("skipped: %s\n", moirai_error_message());
        return;
    }
    size_t n = (size_t)p->n_ops;
    bool *reach = reachable(p), *inside = util_alloc(n, sizeof *inside);
    int32_t last = -1;
    for (int32_t b = 0; reach != NULL && inside != NULL && b < p->n_ops; b++) {
        size_t i = (size_t)p->topo[b], met = 0;
        for (size_t j = 0; j < n; j++)
            met += reach[i * n + j] || reach[j * n + i];
        if (met != n - 1)
            continue;
        int32_t size = 0;
        for (size_t j = 0; last >= 0 && j < n; j++) {
            inside[j] = j == i || j == (size_t)last || (reach[(size_t)last * n + j] && reach[j * n + i]);
            size += inside[j];
        }
        if (size > 4)
            run_block(p, inside, last, (int32_t)i, size);
        last = (int32_t)i;
    }
    free(reach);
    free(inside);
    moirai_problem_free(p);
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : 20;
    printf("%-22s %9s %10s %10s %9s %9s %10s\n", "problem", "proven", "nodes", "most", "seconds", "most", "worst gap");
    for (int K = 2; K <= 4; K++)
        for (int n = 6; n <= most; n += 2) {
            totals t = {0};
            char label[64];
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                moirai_problem *p = random_layered(n, K, seed);
                run(&t, p);
                moirai_problem_free(p);
            }
            snprintf(label, sizeof label, "random %d on %d", n, K);
            print_totals(label, &t);
        }
    run_blocks(argc > 2 ? argv[2] : MOIRAI_SHARED_DIR "/data/problems/googlenet.problem.json");
    return 0;
}
