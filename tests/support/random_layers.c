/* Problems made of repeated blocks. */
#include "support/random_layers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

typedef struct text {
    char *s;
    size_t n, capacity;
} text;

static void put(text *x, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    while (x->n + (size_t)n + 1 > x->capacity)
        x->s = realloc(x->s, x->capacity = 2 * x->capacity + 4096);
    memcpy(x->s + x->n, line, (size_t)n + 1);
    x->n += (size_t)n;
}

typedef struct maker {
    text out;
    util_rng rng;
    int K, n_ops, scale;
    int like[RANDOM_LAYERS_DEVICES]; /* the device that each is equal to */
    bool zeros, nulls, groups, first;
} maker;

static int draw(maker *m, int n)
{
    return (int)util_rng_below(&m->rng, (uint32_t)n);
}

/* What copies have in common. */
typedef struct model {
    int time[RANDOM_LAYERS_DEVICES], bytes[2], memory;
} model;

static model draw_model(maker *m)
{
    model x = {.memory = draw(m, 4)};
    int never = m->nulls && draw(m, 3) == 0 ? draw(m, m->K) : -1;
    for (int k = 0; k < m->K; k++)
        x.time[k] = m->like[k] != k               ? x.time[m->like[k]]
                    : k == never                  ? -1
                    : m->zeros && draw(m, 4) == 0 ? 0
                                                  : (1 + draw(m, 12)) * m->scale + draw(m, m->scale);
    for (int j = 0; j < 2; j++)
        x.bytes[j] = m->zeros && draw(m, 4) == 0 ? 0 : (1 + draw(m, 9)) * m->scale;
    return x;
}

static void put_op(maker *m, const char *name, model x, int outputs, const char *inputs)
{
    put(&m->out, "%s{\"name\":\"%s\",\"type\":\"T\",\"memory_bytes\":%d,\"time_ns\":[", m->first ? "" : ",\n", name,
        x.memory);
    for (int k = 0; k < m->K; k++)
        x.time[k] < 0 ? put(&m->out, "%snull", k ? "," : "") : put(&m->out, "%s%d", k ? "," : "", x.time[k]);
    put(&m->out, "],\"inputs\":[%s],\"outputs\":[", inputs);
    for (int j = 0; j < outputs; j++)
        put(&m->out, "%s{\"name\":\"%s_%d\",\"bytes\":%d}", j ? "," : "", name, j, x.bytes[j]);
    put(&m->out, "]");
    if (m->groups && draw(m, 5) == 0)
        put(&m->out, ",\"group\":\"g%d\"", draw(m, 2));
    put(&m->out, "}");
    m->first = false;
    m->n_ops++;
}

static void put_head(maker *m, uint64_t seed, int max_ops, int devices)
{
    static const char *const flow[] = {"tensor", "edge"}, *const congestion[] = {"port", "channel", "none", "device"};
    int drawn = 2 + draw(m, 10) / 4 % 3;
    m->K = devices ? devices : drawn;
    m->scale = draw(m, 3) == 0 ? 1 : 1 + draw(m, 200);
    m->zeros = draw(m, 3) == 0;
    m->nulls = draw(m, 3) == 0;
    m->groups = draw(m, 6) == 0;
    bool tight = draw(m, 2), equals = draw(m, 3) == 0;
    int memory[RANDOM_LAYERS_DEVICES], speed[RANDOM_LAYERS_DEVICES][RANDOM_LAYERS_DEVICES],
        latency[RANDOM_LAYERS_DEVICES][RANDOM_LAYERS_DEVICES];
    for (int a = 0; a < m->K; a++) {
        m->like[a] = equals && a && draw(m, 3) ? m->like[draw(m, a)] : a;
        memory[a] = tight ? 1 + draw(m, 3 * max_ops / m->K + 3) : 1000000;
        for (int b = 0; b < m->K; b++) { /* the diagonal is for equal ones */
            speed[a][b] = 200 + draw(m, 4000);
            latency[a][b] = draw(m, 3) ? 0 : draw(m, 2 * m->scale);
        }
    }
    put(&m->out,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"layers-%llu\",\"flow\":\"%s\",\"congestion\":\"%s\","
        "\"memory\":\"%s\",\"devices\":[",
        (unsigned long long)seed, flow[draw(m, 2)], congestion[draw(m, devices ? 4 : 3)],
        draw(m, 4) ? "static" : "peak");
    for (int k = 0; k < m->K; k++)
        put(&m->out, "%s{\"name\":\"d%d\",\"memory_bytes\":%d}", k ? "," : "", k, memory[m->like[k]]);
    put(&m->out, "],\"channels\":[");
    for (int a = 0, n = 0; a < m->K; a++)
        for (int b = 0; b < m->K; b++)
            if (a != b)
                put(&m->out, "%s{\"from\":\"d%d\",\"to\":\"d%d\",\"bytes_per_second\":%d000000,\"latency_ns\":%d}",
                    n++ ? "," : "", a, b, speed[m->like[a]][m->like[b]], latency[m->like[a]][m->like[b]]);
    put(&m->out, "],\n\"ops\":[");
}

typedef struct part {
    int shape, copies, ops;
    model model[3];
    int input; /* which output of the entry */
} part;

static const int shape_ops[] = {1, 2, 3, 3, 3};

/* Component: 0 single, 1 chain, 2 two into one, 3 one into two, 4 triangle. Its sinks' tensors are read by the exit. */
static void put_component(maker *m, const part *x, const char *entry, int layer, int which, text *sinks)
{
    static const int feeds[5][3] = {{0, 0, 0}, {0, 1, 0}, {0, 0, 3}, {0, 1, 1}, {0, 1, 3}}; /* mask of sources */
    static const int is_sink[5][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {0, 0, 1}};
    for (int i = 0; i < x->ops; i++) {
        char name[32], inputs[256] = "";
        snprintf(name, sizeof name, "l%dc%do%d", layer, which, i);
        int n = 0;
        for (int j = 0; j < i; j++)
            if (feeds[x->shape][i] >> j & 1)
                n +=
                    snprintf(inputs + n, sizeof inputs - (size_t)n, "%s\"l%dc%do%d_0\"", n ? "," : "", layer, which, j);
        if (!n && entry)
            snprintf(inputs, sizeof inputs, "\"%s_%d\"", entry, x->input);
        put_op(m, name, x->model[i], 1, inputs);
        if (is_sink[x->shape][i])
            put(sinks, "%s\"%s_0\"", sinks->n ? "," : "", name);
    }
}

static int draw_parts(maker *m, part *x, int most)
{
    int parts = 1 + draw(m, 2), ops = 0, n = 0;
    for (int i = 0; i < parts; i++) {
        part y = {.shape = draw(m, 5), .copies = 1 + draw(m, 3), .input = draw(m, 3) == 0};
        y.ops = shape_ops[y.shape];
        for (int j = 0; j < 3; j++)
            y.model[j] = draw_model(m);
        while (y.copies > 0 && ops + y.copies * y.ops > most)
            y.copies--;
        ops += y.copies * y.ops;
        if (y.copies)
            x[n++] = y;
    }
    return n;
}

static char *layers_json(uint64_t seed, int max_ops, int devices, size_t *length)
{
    maker m = {.first = true};
    util_rng_seed(&m.rng, seed * 7919 + 13);
    put_head(&m, seed, max_ops, devices);
    part layer[2];
    int room = max_ops - 2, parts = draw_parts(&m, layer, 2 + draw(&m, room > 2 ? room - 1 : 1)), n = 0;
    model cut = draw_model(&m);
    char entry[32] = "", before[32] = "";
    bool ends = draw(&m, 3), starts = draw(&m, 3);
    int size = 1;
    for (int i = 0; i < parts; i++)
        size += layer[i].copies * layer[i].ops;
    if (starts) {
        put_op(&m, "cut", cut, 2, "");
        strcpy(entry, "cut");
    }
    do {
        text sinks = {0};
        int which = 0;
        for (int i = 0; i < parts; i++)
            for (int c = 0; c < layer[i].copies; c++)
                put_component(&m, &layer[i], entry[0] ? entry : NULL, n, which++, &sinks);
        if (entry[0] && draw(&m, 3) == 0)
            put(&sinks, "%s\"%s_%d\"", sinks.n ? "," : "", entry, draw(&m, 2)); /* past the block */
        if (before[0] && draw(&m, 3) == 0)
            put(&sinks, "%s\"%s_0\"", sinks.n ? "," : "", before); /* over a cut */
        strcpy(before, entry);
        snprintf(entry, sizeof entry, "cut%d", n++);
        if (m.n_ops < max_ops && (ends || m.n_ops + size <= max_ops))
            put_op(&m, entry, cut, 2, sinks.s ? sinks.s : "");
        free(sinks.s);
    } while (m.n_ops + size <= max_ops && n < 3 && !(m.n_ops + size == max_ops && ends));
    put(&m.out, "]}\n");
    *length = m.out.n;
    return m.out.s;
}

char *random_layers_json(uint64_t seed, int max_ops, size_t *length)
{
    return layers_json(seed, max_ops, 0, length);
}

moirai_problem *random_layers_on(uint64_t seed, int max_ops, int devices)
{
    size_t length;
    moirai_problem *p = NULL;
    char *json = layers_json(seed, max_ops, devices, &length);
    moirai_problem_parse(&p, json, length, "layers");
    free(json);
    return p;
}

moirai_problem *random_layers(uint64_t seed, int max_ops)
{
    return random_layers_on(seed, max_ops, 0);
}
