/* Times of a cut network's operators from what was measured: of the network as it is, and of pieces.
 *
 * An operator that some measured network has as well, by name and arithmetic, takes what it took there. A piece is a share
 * of an operator that was measured whole: shares at which it was measured (1, and those of cuts that were profiled) are
 * the knots of a line. Below the smallest knot the line of the last two goes on, but no piece is slower than the knot nor
 * faster per unit: small products are slow, so that a proportion would promise too much. With the whole alone a
 * proportion is all that is known. Sums and joins take the time per byte of those that were measured, or else of what
 * moves memory and hardly computes.
 *
 * O(operators x measured networks) and the sorting of knots. */
#include "shard/shard_choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KNOTS 16

typedef struct knot {
    double share, ns; /* ns: of all that were measured at this share */
    int n;
} knot;

typedef struct times {
    const moirai_graph *const *measured; /* the first one is the network whole */
    int n;
    util_names *whole;    /* operators and members of the first one -> operator */
    moirai_graph *g;      /* gets times */
    double *per_byte;     /* [key of measured[0]] of what moves memory */
    int32_t *first, *off; /* lists of measured operators, numbered through: by the whole one they are pieces of */
} times;

/* Bytes that it reads and writes. */
static double traffic(const moirai_graph *g, int32_t op)
{
    double bytes = (double)g->op_weight_bytes[op];
    if (g->op_traffic_bytes[op] > 0)
        return (double)g->op_traffic_bytes[op];
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        bytes += (double)g->tensor_bytes[g->op_in[e]];
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1]; e++)
        bytes += (double)g->tensor_bytes[g->op_out[e]];
    return bytes;
}

/* Its operators before fusion, one by one; NULL: no more. */
static const char *member(const moirai_graph *g, int32_t op, int32_t i)
{
    int32_t n = g->op_member_off[op + 1] - g->op_member_off[op];
    if (!n)
        return i ? NULL : g->op_name[op];
    return i < n ? g->op_member[g->op_member_off[op] + i] : NULL;
}

static util_names *index_of(const moirai_graph *g)
{
    util_names *names = util_names_new((size_t)g->n_ops);
    for (int32_t op = 0; names && op < g->n_ops; op++) {
        const char *name;
        for (int32_t i = 0; (name = member(g, op, i)); i++)
            if (util_names_get(names, name) < 0 && util_names_put(names, name, op) < 0) {
                util_names_free(names);
                return NULL;
            }
    }
    return names;
}

/* The operator of the whole network that this one is, or is a piece of; MOIRAI_NONE: a sum, a join. `piece`: is it one? */
static int32_t whole_of(const times *x, const moirai_graph *g, int32_t op, bool *piece)
{
    int32_t found = MOIRAI_NONE;
    const char *name;
    *piece = false;
    for (int32_t i = 0; (name = member(g, op, i)); i++) {
        char base[1024];
        const char *at = strstr(name, " (");
        int32_t known = util_names_get(x->whole, name);
        for (; known < 0 && at; at = strstr(at + 1, " (")) {
            int number, of;
            if (sscanf(at, " (%d of %d, ", &number, &of) != 2 || (size_t)(at - name) >= sizeof base)
                continue;
            memcpy(base, name, (size_t)(at - name));
            base[at - name] = 0;
            known = util_names_get(x->whole, base);
            *piece |= known >= 0;
        }
        if (known >= 0)
            found = known;
    }
    return found;
}

static double share_of(const moirai_graph *g, int32_t op, const moirai_graph *whole, int32_t of)
{
    if (whole->op_flops[of] > 0 && g->op_flops[op] > 0)
        return (double)g->op_flops[op] / (double)whole->op_flops[of];
    double all = traffic(whole, of);
    return all > 0 ? traffic(g, op) / all : 1;
}

static int64_t time_of(const moirai_graph *g, int32_t op, const char *key)
{
    for (int32_t k = 0; k < g->n_time_keys; k++)
        if (!strcmp(g->time_key[k], key))
            return g->time_ns[(size_t)op * (size_t)g->n_time_keys + (size_t)k];
    return MOIRAI_UNKNOWN;
}

/* ---- the line through knots ---- */

static int by_share(const void *a, const void *b)
{
    double x = ((const knot *)a)->share, y = ((const knot *)b)->share;
    return x < y ? -1 : x > y;
}

static double on_line(const knot *k, int n, double share)
{
    if (n == 1)
        return k[0].ns * share / k[0].share;
    int i = 0;
    while (i + 2 < n && share > k[i + 1].share)
        i++;
    double slope = (k[i + 1].ns - k[i].ns) / (k[i + 1].share - k[i].share);
    double ns = k[i].ns + (share - k[i].share) * slope;
    if (share < k[0].share)
        ns = UTIL_MIN(k[0].ns, UTIL_MAX(ns, k[0].ns * share / k[0].share));
    return UTIL_MAX(ns, 0);
}

/* Equal shares are one knot, the mean of their times. */
static int add_knot(knot *list, int n, double share, double ns)
{
    for (int i = 0; i < n; i++)
        if (fabs(list[i].share - share) < 1e-9) {
            list[i].ns += (ns - list[i].ns) / ++list[i].n;
            return n;
        }
    if (n == MOST_KNOTS)
        return n;
    list[n] = (knot){share, ns, 1};
    return n + 1;
}

/* Every measured piece of operator `of` of the whole network; layers that are alike are cut alike, so that its own are
 * enough. */
static int knots_of(const times *x, int32_t of, const char *key, knot out[MOST_KNOTS])
{
    int n = 0;
    for (int32_t i = x->first[of]; i >= 0; i = x->off[i]) {
        int m = 0;
        int32_t op = i;
        for (; op >= x->measured[m]->n_ops; m++)
            op -= x->measured[m]->n_ops;
        int64_t ns = time_of(x->measured[m], op, key);
        double share = share_of(x->measured[m], op, x->measured[0], of);
        if (ns >= 0 && share > 0)
            n = add_knot(out, n, share, (double)ns);
    }
    qsort(out, (size_t)n, sizeof *out, by_share);
    return n;
}

/* ---- times ---- */

/* The same operator in a network that was measured. */
static int64_t exact_ns(const times *x, int32_t op, const char *key)
{
    for (int m = x->n - 1; m >= 0; m--) {
        const moirai_graph *g = x->measured[m];
        int32_t known = moirai_graph_find(g, x->g->op_name[op]);
        if (known != MOIRAI_NONE && g->op_flops[known] == x->g->op_flops[op] &&
            g->op_weight_bytes[known] == x->g->op_weight_bytes[op] && !strcmp(g->op_type[known], x->g->op_type[op]))
            return time_of(g, known, key);
    }
    return MOIRAI_UNKNOWN;
}

static int64_t time_for(const times *x, int32_t op, int32_t k)
{
    const char *key = x->measured[0]->time_key[k];
    bool piece;
    knot line[MOST_KNOTS];
    int64_t ns = exact_ns(x, op, key);
    if (ns >= 0)
        return ns;
    int32_t of = whole_of(x, x->g, op, &piece);
    int n = of == MOIRAI_NONE ? 0 : knots_of(x, of, key, line);
    double guess = n ? on_line(line, n, share_of(x->g, op, x->measured[0], of)) : x->per_byte[k] * traffic(x->g, op);
    return (int64_t)UTIL_MIN(guess + 0.5, 1e15);
}

/* What a byte takes: of sums and joins that were measured, else of operators with less arithmetic than bytes. */
static void rates(times *x)
{
    for (int32_t k = 0; k < x->measured[0]->n_time_keys; k++)
        for (int sums = 1; sums >= 0 && x->per_byte[k] <= 0; sums--) {
            double ns = 0, bytes = 0;
            for (int m = 0; m < x->n; m++)
                for (int32_t op = 0; op < x->measured[m]->n_ops; op++) {
                    const moirai_graph *g = x->measured[m];
                    bool piece, sum = strstr(g->op_name[op], " (") && whole_of(x, g, op, &piece) == MOIRAI_NONE;
                    int64_t one = time_of(g, op, x->measured[0]->time_key[k]);
                    if (one >= 0 && (sums ? sum : (double)g->op_flops[op] <= traffic(g, op))) {
                        ns += (double)one;
                        bytes += traffic(g, op);
                    }
                }
            x->per_byte[k] = bytes > 0 ? ns / bytes : 0;
        }
}

static int link_pieces(times *x)
{
    int32_t n_all = 0, at = 0;
    for (int m = 0; m < x->n; m++)
        n_all += x->measured[m]->n_ops;
    x->first = util_alloc((size_t)x->measured[0]->n_ops, sizeof *x->first);
    x->off = util_alloc((size_t)n_all, sizeof *x->off);
    if (!x->first || !x->off)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->measured[0]->n_ops; i++)
        x->first[i] = MOIRAI_NONE;
    for (int m = 0; m < x->n; m++)
        for (int32_t op = 0; op < x->measured[m]->n_ops; op++, at++) {
            bool piece;
            int32_t of = m ? whole_of(x, x->measured[m], op, &piece) : op;
            if (of == MOIRAI_NONE || (m && !piece))
                continue;
            x->off[at] = x->first[of];
            x->first[of] = at;
        }
    return 0;
}

static int set_times(times *x)
{
    const moirai_graph *whole = x->measured[0];
    int64_t *column = util_alloc((size_t)x->g->n_ops, sizeof *column);
    int rc = column ? 0 : MOIRAI_EFAIL;
    for (int32_t k = 0; k < whole->n_time_keys && !rc; k++) {
        for (int32_t op = 0; op < x->g->n_ops; op++)
            column[op] = time_for(x, op, k);
        rc = moirai_graph_times_set(x->g, whole->time_key[k], column);
    }
    free(column);
    return rc;
}

int moirai_shards_times(moirai_graph *g, const moirai_graph *const *measured, int n)
{
    times x = {.measured = measured, .n = n, .g = g};
    x.whole = index_of(measured[0]);
    x.per_byte = util_alloc((size_t)measured[0]->n_time_keys, sizeof *x.per_byte);
    int rc = x.whole && x.per_byte ? link_pieces(&x) : MOIRAI_EFAIL;
    if (!rc) {
        rates(&x);
        rc = set_times(&x);
    }
    util_names_free(x.whole);
    free(x.per_byte);
    free(x.first);
    free(x.off);
    return rc;
}
