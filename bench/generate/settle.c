/* A task graph becomes a problem: times, links, sizes, memory.
 *
 * An operator of mean work takes about 10 us. Its time on a device is its work times a ratio: the device's (related),
 * the device's for its kind (kinds), or one of its own (unrelated). Ratios lie between 1/4 and 4, as often below 1 as
 * above it. Sizes of tensors are scaled so that the mean transfer, over tensors and ordered pairs of devices, is the
 * asked part of the mean time, over operators and devices. In a third of the problems links differ by up to 2, in
 * another third a transfer has a latency of a fifth of its mean, and in a quarter memory binds: all devices together
 * have 1.4 times what is needed. All in whole numbers: the same on every machine. */
#include <stdio.h>
#include <stdlib.h>

#include "generate/dag.h"
#include "problem/problem_build.h"

#define MEAN_RATE INT64_C(10000000000) /* bytes per second of a mean link */
#define MB INT64_C(1000000)

/* Thousandths, 250 .. 4000. */
static int64_t draw_ratio(generate_dag *d)
{
    int64_t r = generate_between(d, 250, 1000);
    return generate_draw(d, 2) ? r : 1000000 / r;
}

static int build_graph(moirai_graph **out, const generate_dag *d, const char *name)
{
    static const char *const type[GENERATE_KINDS] = {"A", "B", "C", "D"};
    moirai_graph_builder *b;
    char text[32];
    int rc = moirai_graph_builder_new(&b, name);
    if (rc)
        return rc;
    for (size_t i = 0; i < d->n_ops; i++) {
        snprintf(text, sizeof text, "o%zu", i);
        moirai_graph_builder_op(b, text, type[d->op[i].kind]);
    }
    for (size_t t = 0; t < d->n_tensors; t++) {
        snprintf(text, sizeof text, "t%zu", t);
        moirai_graph_builder_output(b, d->tensor_producer[t], text, 0);
    }
    for (size_t r = 0; r < d->n_reads; r++) {
        snprintf(text, sizeof text, "t%d", d->read[r].tensor);
        moirai_graph_builder_input(b, d->read[r].reader, text);
    }
    return moirai_graph_builder_finish(out, b);
}

/* The sum of all times, of which the transfers are a part. */
static int64_t fill_times(moirai_problem *p, generate_dag *d, const generate_setting *s)
{
    int64_t ratio[GENERATE_KINDS][MOIRAI_MAX_DEVICES], sum = 0;
    for (int32_t kind = 0; kind < GENERATE_KINDS; kind++)
        for (int32_t k = 0; k < p->n_devices; k++)
            ratio[kind][k] = s->times == GENERATE_RELATED && kind ? ratio[0][k] : draw_ratio(d);
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < p->n_devices; k++) {
            int64_t r = s->times == GENERATE_UNRELATED ? draw_ratio(d) : ratio[d->op[i].kind][k];
            int64_t ns = UTIL_MAX(1, d->op[i].work * r / 100);
            p->op_time_ns[(int64_t)i * p->n_devices + k] = ns;
            sum += ns;
        }
    return sum;
}

/* Links, and then the tensors' sizes. The tensors of the graph are numbered by producer, as those of the problem are;
 * a name says which one it is. */
static void fill_transfers(moirai_problem *p, generate_dag *d, int64_t mean_ns)
{
    int32_t draw = generate_draw(d, 3), K = p->n_devices;
    int64_t latency_ns = draw == 1 ? mean_ns / 5 : 0, pairs = (int64_t)K * (K - 1);
    __int128 per_byte = 0, sizes = 0; /* sums of 10^18 / rate over pairs, of thousandths over tensors */
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++) {
            if (a == b)
                continue;
            int64_t rate = draw == 0 ? MEAN_RATE / 1000 * generate_between(d, 700, 1400) : MEAN_RATE;
            p->bytes_per_second[a * K + b] = rate;
            p->latency_ns[a * K + b] = latency_ns;
            per_byte += INT64_C(1000000000000000000) / rate;
        }
    for (size_t t = 0; t < d->n_tensors; t++)
        sizes += d->tensor_size[t];
    if (sizes == 0 || pairs == 0)
        return;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        __int128 part = (__int128)(mean_ns - latency_ns) * d->tensor_size[atoi(p->tensor_name[t] + 1)];
        part = part * (int64_t)d->n_tensors * pairs * 1000000000 / (per_byte * sizes);
        p->tensor_bytes[t] = UTIL_MAX(1, (int64_t)part);
    }
}

static void fill_memory(moirai_problem *p, generate_dag *d)
{
    bool binds = generate_draw(d, 4) == 0 && d->n_tensors > 0;
    int64_t total = 0, most = 0, share[MOIRAI_MAX_DEVICES], shares = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        p->op_memory_bytes[i] = MB / 10 * generate_between(d, 5, 20);
        most = UTIL_MAX(most, p->op_memory_bytes[i]);
        total += p->op_memory_bytes[i];
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        shares += share[k] = generate_between(d, 500, 1500);
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_memory_bytes[k] = binds ? total / 5 * 7 * share[k] / shares + most : total + MB;
}

static int fill(moirai_problem *p, generate_dag *d, const generate_setting *s)
{
    char text[32];
    for (int32_t k = 0; k < p->n_devices; k++) {
        snprintf(text, sizeof text, "d%d", k);
        if (!(p->device_name[k] = problem_keep(p, text)))
            return MOIRAI_EFAIL;
    }
    p->flow = MOIRAI_FLOW_TENSOR;
    p->congestion = MOIRAI_CONGESTION_PORT;
    p->memory = MOIRAI_MEMORY_STATIC;
    int64_t sum = fill_times(p, d, s), pairs = UTIL_MAX(1, (int64_t)p->n_ops * p->n_devices);
    fill_transfers(p, d, sum / pairs * s->transfer / 1000);
    fill_memory(p, d);
    return problem_settle(p, NULL);
}

int generate_settle(moirai_problem **out, generate_dag *d, const generate_setting *s)
{
    moirai_graph *g = NULL;
    moirai_problem *p = NULL;
    *out = NULL;
    int rc = d->result ? d->result : build_graph(&g, d, s->name);
    rc = rc ? rc : problem_start(&p, g, s->name, s->n_devices);
    rc = rc ? rc : fill(p, d, s);
    moirai_graph_free(g);
    if (rc)
        moirai_problem_free(p);
    else
        *out = p;
    return rc;
}
