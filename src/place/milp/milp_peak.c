/* Memory "peak", exactly, by tightening and re-solving.
 *
 * The program starts with what any order needs (milp_program.c). Its answer is timed; if on some device k tensors that
 * live together there do not fit beside the resident bytes, the fewest of them are a clique Q, and one row is added:
 *     sum of m(i) x(i,k) + sum of bytes over Q <= memory(k) + (sum of bytes over Q) * (number of reasons why not)
 * Lives are intervals; intervals that meet pairwise have a common point, so in every plan that fits some reason holds:
 * two of Q live apart on k (a binary "t dies before s is born"), one lives for no time ("t dies before t is born"), or
 * one is not on k at all (a column below 1 - x of everyone who would keep it there). The binary's meaning is rows:
 * every use of t on k ends before every birth of s on k, where uses are its producer, readers and departures, births
 * its producer or arrivals. No plan is ever cut off, so the bound stays a bound; the plan gets the waiting as arcs
 * (milp_answer.c). Cliques are finite, so this ends; it is for small problems. A tensor that nobody reads lives to the
 * end: nothing is born after that, unless it lives for no time itself. Rows per clique: O(|Q|^2 users * births). */
#include "place/milp/milp.h"

#include <stdlib.h>
#include <string.h>

/* ---- cliques ---- */

void milp_peak_free(milp_peak *k)
{
    for (int32_t c = 0; c < k->n_cliques; c++)
        free(k->clique[c].tensor);
    free(k->clique);
    free(k->apart);
    memset(k, 0, sizeof *k);
}

static int compare32(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool milp_peak_add(milp_peak *k, int32_t device, const int32_t *tensor, int32_t n)
{
    int32_t *copy = util_alloc((size_t)n, sizeof *copy);
    if (!copy || util_grow(&k->clique, &k->cap_clique, (size_t)k->n_cliques + 1, sizeof *k->clique)) {
        free(copy);
        return false;
    }
    memcpy(copy, tensor, (size_t)n * sizeof *copy);
    qsort(copy, (size_t)n, sizeof *copy, compare32);
    for (int32_t c = 0; c < k->n_cliques; c++)
        if (k->clique[c].device == device && k->clique[c].n == n &&
            !memcmp(k->clique[c].tensor, copy, (size_t)n * sizeof *copy)) {
            free(copy);
            return false;
        }
    k->clique[k->n_cliques++] = (milp_clique){device, n, copy};
    return true;
}

/* ---- rows ---- */

/* Something that uses or bears a tensor on a device: a column of its time and the columns that say it is there. */
typedef struct part {
    int32_t col;      /* its finish (use) or start (birth) */
    int32_t op, flow; /* who, the other MOIRAI_NONE; both MOIRAI_NONE: the end of the plan */
    int64_t task;
} part;

static int64_t flow_task(const milp_program *g, int32_t q)
{
    return (int64_t)g->p->n_ops + g->d->flow[q].number;
}

static int32_t uses_of(const milp_program *g, int32_t t, int32_t k, part *out)
{
    const moirai_problem *p = g->p;
    int32_t n = 0, i = p->tensor_producer[t];
    int64_t K = p->n_devices;
    if (g->x[i * K + k] >= 0)
        out[n++] = (part){g->c[i], i, MOIRAI_NONE, i};
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t j = p->edge_reader[e];
        if (g->x[j * K + k] >= 0)
            out[n++] = (part){g->c[j], j, MOIRAI_NONE, j};
    }
    for (int32_t q = 0; q < g->d->n_flows; q++)
        if (g->d->flow[q].tensor == t && g->fc[q] >= 0 && g->x[i * K + k] >= 0 && g->d->flow[q].to != k)
            out[n++] = (part){g->fc[q], MOIRAI_NONE, q, flow_task(g, q)};
    if (p->tensor_edge_off[t] == p->tensor_edge_off[t + 1] && g->x[i * K + k] >= 0)
        out[n++] = (part){0, MOIRAI_NONE, MOIRAI_NONE, -1};
    return n;
}

static int32_t births_of(const milp_program *g, int32_t t, int32_t k, part *out)
{
    const moirai_problem *p = g->p;
    int32_t n = 0, i = p->tensor_producer[t];
    int64_t K = p->n_devices;
    if (g->x[i * K + k] >= 0)
        out[n++] = (part){g->s[i], i, MOIRAI_NONE, i};
    for (int32_t q = 0; q < g->d->n_flows; q++) {
        const milp_flow *f = &g->d->flow[q];
        if (f->tensor == t && g->fs[q] >= 0 &&
            (f->to == k || (f->reader != MOIRAI_NONE && g->x[f->reader * K + k] >= 0)))
            out[n++] = (part){g->fs[q], MOIRAI_NONE, q, flow_task(g, q)};
    }
    return n;
}

/* Terms of M * (1 - "it is there"), on the left of a ">" row. */
static void absent_terms(milp_program *g, const part *w, int32_t k, bool leaves, double M)
{
    int64_t K = g->p->n_devices;
    if (w->op != MOIRAI_NONE) {
        milp_constant(&g->m, M);
        milp_term(&g->m, g->x[w->op * K + k], -M);
        return;
    }
    if (w->flow == MOIRAI_NONE)
        return;
    const milp_flow *f = &g->d->flow[w->flow];
    milp_constant(&g->m, M);
    for (int32_t o = 0; o < K; o++) {
        int32_t a = leaves ? k : o, b = leaves ? o : k, col = -1;
        if (a == b)
            continue;
        if (g->formulation == MOIRAI_FORMULATION_PAPER)
            col = g->u[((int64_t)w->flow * K + a) * K + b];
        else if (f->reader != MOIRAI_NONE)
            col = g->u[((int64_t)f->number * K + a) * K + b];
        else if (f->to == b)
            col = g->y[(int64_t)w->flow * K + a];
        milp_term(&g->m, col, -M);
    }
}

static void meaning_rows(milp_program *g, const milp_apart *a, const part *use, int32_t n_uses, const part *birth,
                         int32_t n_births)
{
    milp_model *m = &g->m;
    for (int32_t u = 0; u < n_uses; u++)
        for (int32_t b = 0; b < n_births; b++) {
            double M = m->col_hi[use[u].col] - m->col_lo[birth[b].col];
            if (M <= 0)
                continue;
            milp_term(m, birth[b].col, 1);
            milp_term(m, use[u].col, -1);
            milp_term(m, a->col, -M);
            milp_constant(m, M);
            absent_terms(g, &use[u], a->device, true, M);
            absent_terms(g, &birth[b], a->device, false, M);
            milp_row(m, '>', 0, MILP_TIMES, "peak_%d_%d_%d_%d_%d", a->device, a->first, a->second, u, b);
        }
}

/* The binary "first dies on the device before second is born", made when first asked for. */
static int32_t apart_col(milp_program *g, milp_peak *k, int32_t device, int32_t first, int32_t second)
{
    for (int32_t a = 0; a < k->n_aparts; a++)
        if (k->apart[a].device == device && k->apart[a].first == first && k->apart[a].second == second)
            return k->apart[a].col;
    const moirai_problem *p = g->p;
    bool unread = p->tensor_edge_off[first] == p->tensor_edge_off[first + 1];
    if (unread && first != second)
        return -1; /* what is born at the very end lives for no time: its own binary */
    size_t room = (size_t)g->d->n_flows + (size_t)p->n_ops + 2;
    part *use = util_alloc(room, sizeof *use), *birth = util_alloc(room, sizeof *birth);
    if (!use || !birth || util_grow(&k->apart, &k->cap_apart, (size_t)k->n_aparts + 1, sizeof *k->apart)) {
        g->m.failed = MOIRAI_EFAIL;
        free(use);
        free(birth);
        return -1;
    }
    milp_apart *a = &k->apart[k->n_aparts++];
    *a = (milp_apart){device, first, second, milp_col(&g->m, MILP_BINARY, 0, 1, "p_%d_%d_%d", device, first, second)};
    int32_t n_uses = uses_of(g, first, device, use), n_births = births_of(g, second, device, birth), col = a->col;
    milp_apart copy = *a;
    meaning_rows(g, &copy, use, n_uses, birth, n_births);
    free(use);
    free(birth);
    return col;
}

/* 1 only if nobody keeps the tensor on the device. */
static int32_t absent_col(milp_program *g, int32_t clique, int32_t t, int32_t k)
{
    const moirai_problem *p = g->p;
    int64_t K = p->n_devices;
    int32_t col = milp_col(&g->m, MILP_SHARE, 0, 1, "o_%d_%d_%d", clique, t, k);
    for (int32_t e = p->tensor_edge_off[t] - 1; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t i = e < p->tensor_edge_off[t] ? p->tensor_producer[t] : p->edge_reader[e];
        milp_term(&g->m, col, 1);
        milp_term(&g->m, g->x[i * K + k], 1);
        milp_row(&g->m, '<', 1, MILP_COUNT, "absent_%d_%d_%d_%d", clique, t, k, i);
    }
    return col;
}

static void clique_row(milp_program *g, milp_peak *k, int32_t c, int32_t *col)
{
    const moirai_problem *p = g->p;
    const milp_clique *q = &k->clique[c];
    int32_t n = 0;
    double bytes = 0;
    for (int32_t a = 0; a < q->n; a++) {
        bytes += (double)p->tensor_bytes[q->tensor[a]];
        col[n++] = absent_col(g, c, q->tensor[a], q->device);
        for (int32_t b = 0; b < q->n; b++)
            col[n++] = apart_col(g, k, q->device, q->tensor[a], q->tensor[b]);
    }
    milp_resident_terms(g, q->device);
    for (int32_t i = 0; i < n; i++)
        milp_term(&g->m, col[i], -bytes);
    milp_row(&g->m, '<', (double)p->device_memory_bytes[q->device] - bytes, MILP_BYTES, "c4dq_%d_%s", c,
             g->device_tag[q->device]);
}

void milp_peak_rows(milp_program *g, milp_peak *k)
{
    k->n_aparts = 0;
    for (int32_t c = 0; c < k->n_cliques && !g->m.failed; c++) {
        size_t n = (size_t)k->clique[c].n;
        int32_t *col = util_alloc(n * (n + 1), sizeof *col);
        if (!col)
            g->m.failed = MOIRAI_EFAIL;
        else
            clique_row(g, k, c, col);
        free(col);
    }
}

/* ---- arcs ---- */

static bool is_there(const milp_program *g, const milp_answer *a, const part *w, int32_t k, bool leaves)
{
    if (w->op != MOIRAI_NONE)
        return a->device[w->op] == k;
    if (w->flow == MOIRAI_NONE)
        return true;
    const milp_flow *f = &g->d->flow[w->flow];
    const moirai_problem *p = g->p;
    int32_t from = a->device[f->producer], to = f->to;
    if (f->reader != MOIRAI_NONE) {
        to = a->device[f->reader];
    } else {
        bool wanted = false;
        for (int32_t e = p->tensor_edge_off[f->tensor]; e < p->tensor_edge_off[f->tensor + 1]; e++)
            wanted = wanted || a->device[p->edge_reader[e]] == to;
        if (!wanted)
            return false;
    }
    return from != to && (leaves ? from : to) == k;
}

static int add_arc(milp_answer *a, const milp_program *g, const part *use, const part *birth)
{
    if (use->task >= 0) /* an arc to itself: the task takes no time, as the program says it does */
        return use->task == birth->task ? 0 : milp_answer_arc(a, use->task, birth->task);
    int32_t source = birth->op != MOIRAI_NONE ? birth->op : g->d->flow[birth->flow].producer;
    for (int32_t i = 0; i < g->p->n_ops; i++)
        if (i != source && !milp_op_before(g->d, source, i) && milp_answer_arc(a, i, birth->task))
            return MOIRAI_EFAIL;
    return 0;
}

/* A tensor that lives for no time: its birth waits until all else that its readers need is there. Arcs from the readers
 * themselves would run in a circle. */
static int timeless_arcs(milp_answer *a, const milp_program *g, int32_t t, const part *birth)
{
    const moirai_problem *p = g->p;
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        int32_t j = p->edge_reader[e];
        for (int32_t n = p->op_in_off[j]; n < p->op_in_off[j + 1]; n++) {
            int32_t s = p->op_in[n], i = p->tensor_producer[s];
            if (s == t || i == p->tensor_producer[t] || milp_op_before(g->d, p->tensor_producer[t], i))
                continue;
            int64_t number = p->flow == MOIRAI_FLOW_EDGE ? p->op_in_edge[n] : (int64_t)s * p->n_devices + a->device[j];
            if (milp_answer_arc(a, a->device[i] == a->device[j] ? i : p->n_ops + number, birth->task))
                return MOIRAI_EFAIL;
        }
    }
    return 0;
}

int milp_peak_arcs(milp_answer *a, const milp_program *g, const milp_peak *k, const double *value)
{
    size_t room = (size_t)g->d->n_flows + (size_t)g->p->n_ops + 2;
    part *use = util_alloc(room, sizeof *use), *birth = util_alloc(room, sizeof *birth);
    int rc = use && birth ? 0 : MOIRAI_EFAIL;
    for (int32_t n = 0; !rc && n < k->n_aparts; n++) {
        const milp_apart *x = &k->apart[n];
        if (value[x->col] < 0.5)
            continue;
        int32_t n_uses = uses_of(g, x->first, x->device, use), n_births = births_of(g, x->second, x->device, birth);
        for (int32_t b = 0; x->first == x->second && b < n_births && !rc; b++)
            if (is_there(g, a, &birth[b], x->device, false))
                rc = timeless_arcs(a, g, x->first, &birth[b]);
        for (int32_t u = 0; u < n_uses && !rc; u++)
            for (int32_t b = 0; b < n_births && !rc; b++)
                if ((x->first != x->second || use[u].task < 0) && is_there(g, a, &use[u], x->device, true) &&
                    is_there(g, a, &birth[b], x->device, false))
                    rc = add_arc(a, g, &use[u], &birth[b]);
    }
    free(use);
    free(birth);
    return rc;
}
