/* What follows from the numbers of a problem file: tables of transfer times, the devices that groups leave, sums that no
 * number of a proof can exceed, and weights that are held whatever the plan. */
#include "prove/prove_problem_read.h"

#include "util/group.h"

static int fill_table(const prove_reader *x, prove_tensor *t, int64_t *out)
{
    int32_t K = x->p->K;
    t->ns = out;
    t->even_ns = K > 1 ? INT64_MAX : 0;
    for (int32_t c = 0; c < K * K; c++) {
        if (t->own)
            out[c] = t->own[c];
        else if (c / K != c % K) {
            __int128 ns = ((__int128)t->bytes * 1000000000 + x->rate[c] - 1) / x->rate[c] + x->latency[c];
            out[c] = (int64_t)UTIL_MIN(ns, PROVE_MAX_TIME);
        }
        if (out[c] >= PROVE_MAX_TIME)
            return moirai_error(MOIRAI_EINPUT, "moving tensor '%.200s' takes more than 2^61 ns", t->name);
        t->most_ns = UTIL_MAX(t->most_ns, out[c]);
        if (c / K != c % K)
            t->even_ns = t->even_ns == INT64_MAX || t->even_ns == out[c] ? out[c] : PROVE_NONE;
    }
    return 0;
}

static void spell_tensor(util_spelling *w, const void *data, int32_t t)
{
    const prove_tensor *x = &((const prove_reader *)data)->tensor[t];
    util_spell(w, x->own ? -1 - (int64_t)t : x->bytes); /* one with a table of its own is like no other */
    util_spell(w, x->n_readers > 0);
}

/* Tensors of one size share a table: networks have many tensors and few sizes. */
static int find_tables(prove_reader *x)
{
    size_t cells = (size_t)x->p->K * (size_t)x->p->K;
    int32_t *group, *first, n = 0;
    int64_t *table = NULL;
    UTIL_TAKE(&x->p->memory, group, (size_t)x->n_tensors);
    UTIL_TAKE(&x->p->memory, first, (size_t)x->n_tensors);
    int rc = util_taken_all(&x->p->memory);
    rc = rc ? rc : util_group(group, first, &n, x->n_tensors, spell_tensor, x);
    if (!rc && !PROVE_TAKE(x->kept, table, (size_t)n * cells))
        rc = MOIRAI_EFAIL;
    for (int32_t i = 0; i < n && !rc; i++) {
        if (x->tensor[first[i]].n_readers)
            rc = fill_table(x, &x->tensor[first[i]], table + (size_t)i * cells);
        rc = rc ? rc : prove_look(x->p, i);
    }
    for (int32_t t = 0; t < x->n_tensors && !rc; t++) {
        x->tensor[t].ns = x->tensor[first[group[t]]].ns;
        x->tensor[t].most_ns = x->tensor[first[group[t]]].most_ns;
        x->tensor[t].even_ns = x->tensor[first[group[t]]].even_ns;
    }
    return rc;
}

static int mask_groups(prove_reader *x)
{
    for (int32_t i = 0; i < x->p->n; i++) {
        if (x->group[i] != PROVE_NONE && x->p->K <= PROVE_MASK_DEVICES)
            x->p->may[i] = x->group_may[x->group[i]];
        if (!x->p->may[i])
            return moirai_error(MOIRAI_EINFEASIBLE, "no device can run operator '%.200s' and its group", x->p->name[i]);
    }
    return 0;
}

/* Sums of all times, and of all sizes, stay below 2^61. */
static int check_totals(const prove_reader *x)
{
    __int128 ns = 0, bytes = 0;
    for (int32_t i = 0; i < x->p->n; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < x->p->K; k++)
            most = UTIL_MAX(most, x->p->time[(int64_t)i * x->p->K + k]);
        ns += most;
        bytes += x->p->bytes[i];
    }
    for (int32_t t = 0; t < x->n_tensors; t++) {
        bytes += x->tensor[t].bytes;
        ns += (__int128)x->tensor[t].most_ns * x->tensor[t].n_readers;
    }
    for (int32_t w = 0; w < x->n_weights; w++)
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
        prove_edge *f = &x->p->edge[e];
        f->ns = x->tensor[f->packet].ns;
        f->even_ns = x->tensor[f->packet].even_ns;
    }
    for (int32_t w = 0; !rc && w < x->n_weights; w++)
        if (!x->weight[w].apart)
            x->p->bytes[x->weight[w].first] += x->weight[w].bytes;
    return rc;
}
