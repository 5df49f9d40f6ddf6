/* Operators of which nobody knows what they cost: a type that no table has, a Loop whose turns only data decide. They get
 * the time of a launch and of their traffic, so that a plan can be made at all; but a speed-up that is computed with
 * such times is an invention. They are named, by type, wherever the plan is judged, unless they are measured, or so
 * small that they can't matter: less than a hundredth of the bytes that all operators move. O(operators x types). */
#include "problem/problem_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/cost_class.h"

#define MOST_TYPES 16 /* are named */
#define MINOR 100     /* part of the traffic below which they don't matter */

static bool is_measured(const moirai_graph *g, int32_t op)
{
    for (int32_t k = 0; k < g->n_time_keys; k++)
        if (g->time_ns[(int64_t)op * g->n_time_keys + k] != MOIRAI_UNKNOWN)
            return true;
    return false;
}

/* The importer counts the arithmetic of every type that it knows, graphs from elsewhere may leave that to us. Arithmetic
 * is not all: an If launches what is inside of it, an LSTM its steps one after the other, and no cost model knows them. */
static bool is_uncosted(const moirai_graph *g, int32_t op)
{
    bool unknown = cost_class_of(g->op_type[op]) == COST_CLASS_UNKNOWN;
    if (is_measured(g, op))
        return false;
    return g->op_flops[op] == MOIRAI_UNKNOWN ? g->from_onnx || unknown : g->from_onnx && unknown;
}

static double traffic(const moirai_graph *g, int32_t op)
{
    if (g->op_traffic_bytes[op] != MOIRAI_UNKNOWN)
        return (double)g->op_traffic_bytes[op];
    double sum = (double)g->op_weight_bytes[op];
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        sum += (double)g->tensor_bytes[g->op_in[e]];
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1]; e++)
        sum += (double)g->tensor_bytes[g->op_out[e]];
    return sum;
}

typedef struct tally {
    int n_types, n_more;
    const char *type[MOST_TYPES];
    int32_t count[MOST_TYPES];
    double bytes, all_bytes;
    bool endless; /* one of them has no traffic that is known: it runs as often as data want */
} tally;

static void count_type(tally *t, const char *type)
{
    for (int i = 0; i < t->n_types; i++)
        if (!strcmp(t->type[i], type)) {
            t->count[i]++;
            return;
        }
    if (t->n_types == MOST_TYPES) {
        t->n_more++;
        return;
    }
    t->type[t->n_types] = type;
    t->count[t->n_types++] = 1;
}

int problem_find_uncosted(moirai_problem *p, const moirai_graph *g)
{
    tally t = {0};
    char line[MOST_TYPES + 1][160];
    const char *text[MOST_TYPES + 1];
    for (int32_t i = 0; i < g->n_ops; i++) {
        double bytes = traffic(g, i);
        t.all_bytes += bytes;
        if (!is_uncosted(g, i))
            continue;
        t.bytes += bytes;
        t.endless |= g->from_onnx && g->op_traffic_bytes[i] == MOIRAI_UNKNOWN;
        count_type(&t, g->op_type[i]);
    }
    if (!t.endless && t.bytes * MINOR < t.all_bytes)
        return 0;
    int n = 0;
    for (; n < t.n_types; n++) {
        snprintf(line[n], sizeof line[n], "%d %.120s", t.count[n], *t.type[n] ? t.type[n] : "without a type");
        text[n] = line[n];
    }
    if (t.n_more) {
        snprintf(line[n], sizeof line[n], "%d of other types", t.n_more);
        text[n] = line[n];
        n++;
    }
    return problem_keep_texts(p, &p->uncosted, &p->n_uncosted, n, text);
}
