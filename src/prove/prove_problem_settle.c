/* What follows from the numbers of a problem file: tables of transfer times, the devices that groups leave, sums that no
 * number of a proof can exceed, and weights that are held whatever the plan. */
#include "prove/prove_problem_read.h"

#include <stdlib.h>

#define LOOK 16 /* tables per look at the clock */

static int compare_sizes(const void *a, const void *b)
{
    const prove_tensor *x = *(prove_tensor *const *)a, *y = *(prove_tensor *const *)b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int fill_table(const prove_reader *x, prove_tensor *t, int64_t *out)
{
    int32_t K = x->p->K;
    for (int32_t c = 0; c < K * K; c++) {
        if (t->ns)
            out[c] = t->ns[c];
        else if (c / x->p->K != c % x->p->K) {
            __int128 ns = ((__int128)t->bytes * 1000000000 + x->rate[c] - 1) / x->rate[c] + x->latency[c];
            out[c] = (int64_t)UTIL_MIN(ns, PROVE_MAX_TIME);
        }
        if (out[c] >= PROVE_MAX_TIME)
            return moirai_error(MOIRAI_EINPUT, "moving tensor '%.200s' takes more than 2^61 ns", t->name);
        t->most_ns = UTIL_MAX(t->most_ns, out[c]);
    }
    t->even_ns = K > 1 ? out[1] : 0;
    for (int32_t c = 0; c < K * K; c++)
        if (c / K != c % K && out[c] != t->even_ns)
            t->even_ns = PROVE_NONE;
    return 0;
}

/* Tensors of one size share a table: networks have many tensors and few sizes. */
static int find_tables(prove_reader *x)
{
    size_t cells = (size_t)x->p->K * (size_t)x->p->K, n = 0, n_tables = 0;
    prove_tensor **by_size = util_alloc(x->n_tensors, sizeof *by_size);
    if (!by_size)
        return MOIRAI_EFAIL;
    for (size_t t = 0; t < x->n_tensors; t++)
        if (x->tensor[t].n_readers)
            by_size[n++] = &x->tensor[t];
    if (n)
        qsort(by_size, n, sizeof *by_size, compare_sizes);
    for (int pass = 0, rc = 0; pass < 2; pass++) {
        const prove_tensor *last = NULL;
        size_t used = 0;
        for (size_t i = 0; i < n && !rc; i++) {
            bool shares = last && !by_size[i]->ns && last->bytes == by_size[i]->bytes;
            if (pass && !shares)
                rc = fill_table(x, by_size[i], x->p->table + used * cells);
            used += !shares;
            by_size[i]->table =
                pass ? x->p->table + (shares ? (size_t)(last->table - x->p->table) : (used - 1) * cells) : NULL;
            if (pass && shares) {
                by_size[i]->most_ns = last->most_ns;
                by_size[i]->even_ns = last->even_ns;
            }
            last = by_size[i]->ns ? last : by_size[i];
            rc = rc || i % LOOK ? rc : prove_go_on(x->p);
        }
        n_tables = used;
        if (!pass && !(x->p->table = prove_alloc(n_tables * cells, sizeof(int64_t))))
            rc = MOIRAI_EFAIL;
        if (rc || pass) {
            free(by_size);
            return rc;
        }
    }
    return 0;
}

static int mask_groups(prove_reader *x)
{
    for (int32_t i = 0; i < x->p->n; i++) {
        if (x->group.of_op[i] != PROVE_NONE)
            x->p->may[i] = x->p->K > PROVE_MASK_DEVICES ? x->p->may[i] : x->group.may[x->group.of_op[i]];
        if (!x->p->may[i])
            return moirai_error(MOIRAI_EINFEASIBLE, "no device can run operator '%.200s' and its group", x->p->name[i]);
    }
    return 0;
}

static int64_t most_of(const int64_t *value, int32_t n)
{
    int64_t most = 0;
    for (int32_t i = 0; i < n; i++)
        most = UTIL_MAX(most, value[i]);
    return most;
}

/* Sums of all times, and of all sizes, stay below 2^61. */
static int check_totals(const prove_reader *x)
{
    __int128 ns = 0, bytes = 0;
    for (int32_t i = 0; i < x->p->n; i++) {
        ns += most_of(x->p->time + (int64_t)i * x->p->K, x->p->K);
        bytes += x->p->bytes[i];
    }
    for (size_t t = 0; t < x->n_tensors; t++) {
        bytes += x->tensor[t].bytes;
        if (x->tensor[t].table)
            ns += (__int128)x->tensor[t].most_ns * x->tensor[t].n_readers;
    }
    for (size_t w = 0; w < x->n_weights; w++)
        bytes += x->weight[w].bytes;
    if (ns >= PROVE_MAX_TIME || bytes >= PROVE_MAX_TIME)
        return moirai_error(MOIRAI_EINPUT, "its times or its sizes add up to more than 2^61");
    return 0;
}

int prove_problem_settle(prove_reader *x)
{
    int rc = find_tables(x);
    rc = rc ? rc : mask_groups(x);
    rc = rc ? rc : check_totals(x);
    for (int32_t e = 0; !rc && e < x->p->n_edges; e++) {
        x->p->edge[e].ns = x->tensor[x->p->edge[e].line].table;
        x->p->edge[e].even_ns = x->tensor[x->p->edge[e].line].even_ns;
        x->p->edge[e].line = 0;
    }
    for (size_t w = 0; !rc && w < x->n_weights; w++)
        if (!x->weight[w].apart)
            x->p->bytes[x->weight[w].first] += x->weight[w].bytes;
    return rc;
}
