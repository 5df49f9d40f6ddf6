/* Random problems of five shapes, as text in the file format, so that the reader is exercised as well. */
#include "support/random_problem.h"
#include "util/json.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INPUTS 64

typedef struct draft {
    const random_spec *spec;
    util_rng rng;
    int (*inputs)[MAX_INPUTS]; /* producers of each operator, by number in topological order */
    int *input_count, *output_count;
} draft;

static int below(draft *d, int n)
{
    return (int)util_rng_below(&d->rng, (uint32_t)n);
}

static bool chance(draft *d, int percent)
{
    return below(d, 100) < percent;
}

static void feed(draft *d, int from, int to)
{
    if (d->input_count[to] < MAX_INPUTS)
        d->inputs[to][d->input_count[to]++] = from;
}

/* ---- shapes: operator j may read only from operators before it ---- */

static void shape_fork_join(draft *d)
{
    int n = d->spec->n_ops;
    for (int j = 1; j < n; j++) {
        if (j < n - 1 || n < 3)
            feed(d, 0, j);
        else
            for (int i = 1; i < n - 1; i++)
                feed(d, i, j);
    }
}

/* Repeatedly a fork of 1-3 branches of 1-2 operators, joined. */
static void shape_series_parallel(draft *d)
{
    int n = d->spec->n_ops, joint = 0, at = 1;
    while (at < n) {
        int tails[3], branches = 1 + below(d, 3), n_tails = 0;
        for (int b = 0; b < branches && at < n; b++) {
            int tail = joint;
            for (int length = 1 + below(d, 2); length > 0 && at < n; length--) {
                feed(d, tail, at);
                tail = at++;
            }
            tails[n_tails++] = tail;
        }
        if (at >= n)
            return;
        for (int b = 0; b < n_tails; b++)
            feed(d, tails[b], at);
        joint = at++;
    }
}

static void shape_layered(draft *d)
{
    int n = d->spec->n_ops, width = 1 + below(d, 4);
    for (int j = width; j < n; j++) {
        int first = (j / width - 1) * width;
        for (int i = first; i < first + width; i++)
            if (chance(d, 45))
                feed(d, i, j);
    }
}

static void shape_dense(draft *d)
{
    for (int j = 1; j < d->spec->n_ops; j++)
        for (int i = j > 12 ? j - 12 : 0; i < j; i++)
            if (chance(d, 50))
                feed(d, i, j);
}

static void make_shape(draft *d)
{
    switch (d->spec->shape) {
    case SHAPE_CHAIN:
        for (int j = 1; j < d->spec->n_ops; j++)
            feed(d, j - 1, j);
        break;
    case SHAPE_FORK_JOIN: shape_fork_join(d); break;
    case SHAPE_SERIES_PARALLEL: shape_series_parallel(d); break;
    case SHAPE_LAYERED: shape_layered(d); break;
    default: shape_dense(d);
    }
}

/* ---- text ---- */

static void write_devices(draft *d, util_writer *w, const int64_t *memory)
{
    char name[16];
    util_writer_key(w, "devices");
    util_writer_open(w, '[');
    for (int k = 0; k < d->spec->n_devices; k++) {
        snprintf(name, sizeof name, "d%d", k);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", name);
        util_writer_pair_int(w, "memory_bytes", memory[k]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_key(w, "channels");
    util_writer_open(w, '[');
    for (int a = 0; a < d->spec->n_devices; a++)
        for (int b = 0; b < d->spec->n_devices; b++) {
            if (a == b)
                continue;
            util_writer_open(w, '{');
            snprintf(name, sizeof name, "d%d", a);
            util_writer_pair_string(w, "from", name);
            snprintf(name, sizeof name, "d%d", b);
            util_writer_pair_string(w, "to", name);
            util_writer_pair_int(w, "bytes_per_second", (int64_t)250000000 << below(d, 5));
            util_writer_pair_int(w, "latency_ns", below(d, 4) * d->spec->scale);
            util_writer_close(w, '}');
        }
    util_writer_close(w, ']');
}

static void write_table(draft *d, util_writer *w)
{
    util_writer_key(w, "transfer_ns");
    util_writer_open(w, '[');
    for (int a = 0; a < d->spec->n_devices; a++) {
        util_writer_open(w, '[');
        for (int b = 0; b < d->spec->n_devices; b++)
            util_writer_int(w, a == b ? 0 : below(d, 15) * d->spec->scale);
        util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
}

static void write_times(draft *d, util_writer *w, int keep_device)
{
    int K = d->spec->n_devices, base = 1 + below(d, 12), only = keep_device >= 0 ? keep_device : below(d, K);
    bool zero = d->spec->zeros && chance(d, 15);
    util_writer_key(w, "time_ns");
    util_writer_open(w, '[');
    for (int k = 0; k < K; k++) {
        int64_t t = (int64_t)(base + below(d, 8)) * d->spec->scale;
        if (d->spec->scale > 1)
            t += below(d, (int)d->spec->scale);
        if (d->spec->nulls && k != only && chance(d, 25))
            util_writer_null(w);
        else
            util_writer_int(w, zero ? 0 : t);
    }
    util_writer_close(w, ']');
}

static void write_op(draft *d, util_writer *w, int j, int group, int64_t memory)
{
    char name[32];
    snprintf(name, sizeof name, "op%d", j);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", name);
    util_writer_pair_string(w, "type", j % 2 ? "MatMul" : "Add");
    util_writer_pair_int(w, "memory_bytes", memory);
    if (group >= 0) {
        snprintf(name, sizeof name, "g%d", group);
        util_writer_pair_string(w, "group", name);
    }
    write_times(d, w, group >= 0 ? group % d->spec->n_devices : -1);
    util_writer_key(w, "inputs");
    util_writer_open(w, '[');
    if (d->input_count[j] == 0)
        util_writer_string(w, "image");
    for (int i = 0; i < d->input_count[j]; i++) {
        int from = d->inputs[j][i];
        snprintf(name, sizeof name, "t%d_%d", from, below(d, d->output_count[from]));
        util_writer_string(w, name);
    }
    util_writer_close(w, ']');
    util_writer_key(w, "outputs");
    util_writer_open(w, '[');
    for (int o = 0; o < d->output_count[j]; o++) {
        snprintf(name, sizeof name, "t%d_%d", j, o);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", name);
        util_writer_pair_int(w, "bytes", d->spec->zeros && chance(d, 10) ? 0 : (1 + below(d, 10)) * d->spec->scale);
        if (d->spec->tables && chance(d, 30))
            write_table(d, w);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

/* Memory: each device alone holds a share; tight ones add up to little more than what is needed. */
static void draw_memory(draft *d, int64_t *op_memory, int64_t *device_memory)
{
    const random_spec *s = d->spec;
    int64_t total = 0;
    for (int j = 0; j < s->n_ops; j++) {
        op_memory[j] = below(d, 20) * s->scale;
        total += op_memory[j];
    }
    int64_t tensors = s->memory == MOIRAI_MEMORY_PEAK ? 12 * s->scale : 0;
    for (int k = 0; k < s->n_devices; k++) {
        int64_t fair = total / s->n_devices + 1;
        device_memory[k] = s->tight ? fair * (80 + below(d, 80)) / 100 + tensors * (50 + below(d, 150)) / 100
                                    : 2 * (total + tensors * s->n_ops) + 1;
    }
}

static void write_problem(draft *d, util_writer *w, int *order, int64_t *op_memory)
{
    const random_spec *s = d->spec;
    int64_t device_memory[MOIRAI_MAX_DEVICES];
    char name[64];
    draw_memory(d, op_memory, device_memory);
    for (int j = 0; j < s->n_ops; j++)
        order[j] = j;
    for (int j = s->n_ops - 1; s->shuffled && j > 0; j--) {
        int other = below(d, j + 1), kept = order[j];
        order[j] = order[other];
        order[other] = kept;
    }
    snprintf(name, sizeof name, "random-%llu", (unsigned long long)s->seed);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "format", "moirai-problem");
    util_writer_pair_int(w, "version", 1);
    util_writer_pair_string(w, "name", name);
    util_writer_pair_string(w, "flow", moirai_flow_name(s->flow));
    util_writer_pair_string(w, "congestion", moirai_congestion_name(s->congestion));
    util_writer_pair_string(w, "memory", moirai_memory_name(s->memory));
    write_devices(d, w, device_memory);
    util_writer_key(w, "ops");
    util_writer_open(w, '[');
    for (int j = 0; j < s->n_ops; j++) {
        int op = order[j];
        int group = s->groups && chance(d, 35) ? below(d, 1 + s->n_ops / 4) : -1;
        write_op(d, w, op, group, op_memory[op]);
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

char *random_problem_json(const random_spec *spec, size_t *length)
{
    size_t n = (size_t)spec->n_ops;
    draft d = {.spec = spec};
    char *text = NULL;
    util_writer w;
    util_writer_init(&w);
    util_rng_seed(&d.rng, spec->seed * 1000003 + 17);
    d.inputs = calloc(n, sizeof *d.inputs);
    d.input_count = calloc(n, sizeof *d.input_count);
    d.output_count = calloc(n, sizeof *d.output_count);
    int *order = calloc(n, sizeof *order);
    int64_t *op_memory = calloc(n, sizeof *op_memory);
    if (d.inputs && d.input_count && d.output_count && order && op_memory) {
        make_shape(&d);
        for (size_t j = 0; j < n; j++)
            d.output_count[j] = 1 + chance(&d, 20);
        write_problem(&d, &w, order, op_memory);
        text = util_writer_take(&w, length);
    }
    util_writer_free(&w);
    free(d.inputs);
    free(d.input_count);
    free(d.output_count);
    free(order);
    free(op_memory);
    return text;
}

moirai_problem *random_problem(const random_spec *spec)
{
    size_t length = 0;
    moirai_problem *p = NULL;
    char *text = random_problem_json(spec, &length);
    if (text == NULL || moirai_problem_parse(&p, text, length, "random") != 0)
        p = NULL;
    free(text);
    return p;
}

random_spec random_spec_draw(uint64_t seed, int max_ops)
{
    util_rng r;
    util_rng_seed(&r, seed);
    random_spec s = {.seed = seed};
    s.shape = (random_shape)util_rng_below(&r, N_SHAPES);
    s.n_ops = 1 + (int)util_rng_below(&r, (uint32_t)max_ops);
    s.n_devices = 2 + (int)util_rng_below(&r, 3);
    s.flow = util_rng_below(&r, 2) ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR;
    s.congestion = (moirai_congestion)util_rng_below(&r, 3);
    s.memory = util_rng_below(&r, 3) ? MOIRAI_MEMORY_STATIC : MOIRAI_MEMORY_PEAK;
    s.tight = util_rng_below(&r, 3) == 0;
    s.nulls = util_rng_below(&r, 2);
    s.groups = util_rng_below(&r, 3) == 0;
    s.zeros = util_rng_below(&r, 2);
    s.tables = util_rng_below(&r, 3) == 0;
    s.shuffled = util_rng_below(&r, 2);
    s.scale = util_rng_below(&r, 3) ? 1 : 1000;
    return s;
}

const char *random_spec_text(const random_spec *s)
{
    static const char *const shape[] = {"chain", "fork-join", "series-parallel", "layered", "dense"};
    static char text[256];
    snprintf(text, sizeof text, "seed %llu: %s of %d on %d, %s/%s/%s%s%s%s%s%s%s, scale %lld",
             (unsigned long long)s->seed, shape[s->shape], s->n_ops, s->n_devices, moirai_flow_name(s->flow),
             moirai_congestion_name(s->congestion), moirai_memory_name(s->memory), s->tight ? ", tight" : "",
             s->nulls ? ", nulls" : "", s->groups ? ", groups" : "", s->zeros ? ", zeros" : "",
             s->tables ? ", tables" : "", s->shuffled ? ", shuffled" : "", (long long)s->scale);
    return text;
}
