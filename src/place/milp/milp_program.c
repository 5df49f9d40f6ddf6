/* The program of equation (4): what both formulations share.
 *
 * Columns x (4c), S and C (4b) of every operator, the makespan T (the objective), the memory rows (4d, equation 5).
 * Names: a row starts with its equation ("c4e_3.conv_5.pool_0.A_1"), a column with its letter; operators, flows and
 * devices are "number.name", the number first so that a reader of solution files needs nothing else, the name cut to a
 * few letters that every LP dialect takes. Operators of a keep-together group share their x columns: no rows needed.
 *
 * Memory "peak" adds what every plan must hold at once whatever the order: with operator i running on k for some time,
 * its inputs and outputs are there; at the very end, all outputs of the network are. That is a relaxation of peak; the
 * placer closes the rest by re-solving (milp_place.c). */
#include "place/milp/milp.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sanitize(char *out, size_t room, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < room; name++)
        out[n++] = isalnum((unsigned char)*name) ? *name : '.';
    out[n] = '\0';
}

static int make_tags(milp_program *g)
{
    const moirai_problem *p = g->p;
    g->op_tag = util_alloc((size_t)p->n_ops, sizeof *g->op_tag);
    g->flow_tag = util_alloc((size_t)g->d->n_flows, sizeof *g->flow_tag);
    g->device_tag = util_alloc((size_t)p->n_devices, sizeof *g->device_tag);
    if (!g->op_tag || !g->flow_tag || !g->device_tag)
        return MOIRAI_EFAIL;
    char name[20], more[20];
    for (int32_t i = 0; i < p->n_ops; i++) {
        sanitize(name, sizeof name, p->op_name[i]);
        snprintf(g->op_tag[i], sizeof g->op_tag[i], "%d.%s", i, name);
    }
    for (int32_t k = 0; k < p->n_devices; k++) {
        sanitize(name, sizeof name, p->device_name[k]);
        snprintf(g->device_tag[k], sizeof g->device_tag[k], "%d.%s", k, name);
    }
    for (int32_t q = 0; q < g->d->n_flows; q++) {
        const milp_flow *f = &g->d->flow[q];
        sanitize(name, sizeof name, p->tensor_name[f->tensor]);
        sanitize(more, sizeof more, f->reader != MOIRAI_NONE ? p->op_name[f->reader] : p->device_name[f->to]);
        snprintf(g->flow_tag[q], sizeof g->flow_tag[q], "q%d.%s.%s", f->number, name, more);
    }
    return 0;
}

static int make_maps(milp_program *g)
{
    size_t n = (size_t)g->p->n_ops, K = (size_t)g->p->n_devices, f = (size_t)g->d->n_flows;
    size_t pairs = g->formulation == MOIRAI_FORMULATION_PAPER ? f : (size_t)g->p->n_edges;
    g->x = util_alloc(n * K, sizeof *g->x);
    g->s = util_alloc(n, sizeof *g->s);
    g->c = util_alloc(n, sizeof *g->c);
    g->fs = util_alloc(f, sizeof *g->fs);
    g->fc = util_alloc(f, sizeof *g->fc);
    g->z = util_alloc(f, sizeof *g->z);
    g->u = util_alloc(pairs * K * K, sizeof *g->u);
    g->y = util_alloc(f * K, sizeof *g->y);
    if (!g->x || !g->s || !g->c || !g->fs || !g->fc || !g->z || !g->u || !g->y)
        return MOIRAI_EFAIL;
    memset(g->x, 0xff, n * K * sizeof *g->x);
    memset(g->fs, 0xff, f * sizeof *g->fs);
    memset(g->fc, 0xff, f * sizeof *g->fc);
    memset(g->z, 0xff, f * sizeof *g->z);
    memset(g->u, 0xff, pairs * K * K * sizeof *g->u);
    memset(g->y, 0xff, f * K * sizeof *g->y);
    return 0;
}

static void add_placement(milp_program *g)
{
    const moirai_problem *p = g->p;
    int32_t K = p->n_devices;
    int32_t *leader = util_alloc((size_t)p->n_groups, sizeof *leader);
    if (!leader) {
        g->m.failed = MOIRAI_EFAIL;
        return;
    }
    for (int32_t n = 0; n < p->n_groups; n++)
        leader[n] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t group = p->op_group[i];
        if (group != MOIRAI_NONE && leader[group] != MOIRAI_NONE) {
            memcpy(g->x + (int64_t)i * K, g->x + (int64_t)leader[group] * K, (size_t)K * sizeof *g->x);
            continue;
        }
        if (group != MOIRAI_NONE)
            leader[group] = i;
        for (int32_t k = 0; k < K; k++)
            if (milp_allowed(g->d, i, k)) {
                g->x[(int64_t)i * K + k] =
                    milp_col(&g->m, MILP_BINARY, 0, 1, "x_%s_%s", g->op_tag[i], g->device_tag[k]);
                milp_term(&g->m, g->x[(int64_t)i * K + k], 1);
            }
        milp_row(&g->m, '=', 1, MILP_COUNT, "c4c_%s", g->op_tag[i]);
    }
    free(leader);
}

static void add_times(milp_program *g)
{
    const milp_dag *d = g->d;
    const moirai_problem *p = g->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        g->s[i] = milp_col(&g->m, MILP_TIME, (double)d->first_start[i], (double)d->last_start[i], "S_%s", g->op_tag[i]);
        g->c[i] =
            milp_col(&g->m, MILP_TIME, (double)d->first_finish[i], (double)d->last_finish[i], "C_%s", g->op_tag[i]);
        milp_term(&g->m, g->c[i], 1);
        milp_term(&g->m, g->s[i], -1);
        for (int32_t k = 0; k < p->n_devices; k++)
            if (milp_allowed(d, i, k))
                milp_term(&g->m, g->x[(int64_t)i * p->n_devices + k], -(double)milp_op_units(d, i, k));
        milp_row(&g->m, '=', 0, MILP_TIMES, "c4b_%s", g->op_tag[i]);
    }
    bool paper = g->formulation == MOIRAI_FORMULATION_PAPER;
    for (int32_t i = 0; i < p->n_ops; i++) {
        bool last = true;
        for (int32_t w = 0; w < d->words && last; w++)
            last = d->reach[(int64_t)i * d->words + w] == 0;
        if (!last && !paper)
            continue;
        milp_term(&g->m, 0, 1);
        milp_term(&g->m, g->c[i], -1);
        milp_row(&g->m, '>', 0, MILP_TIMES, "c4_%s", g->op_tag[i]);
    }
}

/* Bytes that i's inputs and outputs take while it runs; 0 in memory mode static. */
static int64_t working_bytes(const moirai_problem *p, int32_t i, bool *has)
{
    int64_t sum = 0;
    *has = false;
    if (p->memory != MOIRAI_MEMORY_PEAK)
        return 0;
    for (int32_t n = p->op_in_off[i]; n < p->op_in_off[i + 1]; n++)
        if (!util_add64(&sum, sum, p->tensor_bytes[p->op_in[n]]))
            return INT64_MAX / 4;
    for (int32_t n = p->op_out_off[i]; n < p->op_out_off[i + 1]; n++)
        if (!util_add64(&sum, sum, p->tensor_bytes[p->op_out[n]]))
            return INT64_MAX / 4;
    *has = sum > 0;
    return UTIL_MIN(sum, INT64_MAX / 4);
}

static double final_bytes(const moirai_problem *p, int32_t i, int32_t k)
{
    double sum = 0;
    if (p->memory != MOIRAI_MEMORY_PEAK || moirai_op_ns(p, i, k) <= 0)
        return 0;
    for (int32_t n = p->op_out_off[i]; n < p->op_out_off[i + 1]; n++) {
        int32_t t = p->op_out[n];
        if (p->tensor_edge_off[t] == p->tensor_edge_off[t + 1])
            sum += (double)p->tensor_bytes[t];
    }
    return sum;
}

/* A device holds a shared weight where it runs a reader: h >= x of each. Continuous: nothing pulls it up but these. */
static void build_held(milp_program *g)
{
    const moirai_problem *p = g->p;
    if (p->n_weights && !g->held &&
        !(g->held = util_alloc((size_t)p->n_weights * (size_t)p->n_devices, sizeof *g->held)))
        g->m.failed = MOIRAI_EFAIL;
    for (int32_t w = 0; w < p->n_weights && !g->m.failed; w++)
        for (int32_t k = 0; k < p->n_devices; k++) {
            int32_t col = milp_col(&g->m, MILP_SHARE, 0, 1, "h_%d_%s", w, g->device_tag[k]);
            g->held[(int64_t)w * p->n_devices + k] = col;
            for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++) {
                int32_t x = g->x[(int64_t)p->weight_reader[e] * p->n_devices + k];
                if (x < 0)
                    continue;
                milp_term(&g->m, x, 1);
                milp_term(&g->m, col, -1);
                milp_row(&g->m, '<', 0, MILP_COUNT, "held_%d_%s_%s", w, g->op_tag[p->weight_reader[e]],
                         g->device_tag[k]);
            }
        }
}

void milp_resident_terms(milp_program *g, int32_t device)
{
    const moirai_problem *p = g->p;
    for (int32_t i = 0; i < p->n_ops; i++)
        milp_term(&g->m, g->x[(int64_t)i * p->n_devices + device], (double)p->op_memory_bytes[i]);
    for (int32_t w = 0; w < p->n_weights && g->held; w++)
        milp_term(&g->m, g->held[(int64_t)w * p->n_devices + device], (double)p->weight_bytes[w]);
}

void milp_build_memory(milp_program *g, int32_t excess)
{
    const moirai_problem *p = g->p;
    build_held(g);
    for (int32_t k = 0; k < p->n_devices; k++) {
        milp_resident_terms(g, k);
        for (int32_t i = 0; i < p->n_ops; i++)
            milp_term(&g->m, g->x[(int64_t)i * p->n_devices + k], final_bytes(p, i, k));
        milp_term(&g->m, excess, -1);
        milp_row(&g->m, '<', (double)p->device_memory_bytes[k], MILP_BYTES, "c4d_%s", g->device_tag[k]);
    }
    for (int32_t j = 0; p->memory == MOIRAI_MEMORY_PEAK && j < p->n_ops; j++) {
        bool has;
        int64_t working = working_bytes(p, j, &has);
        for (int32_t k = 0; has && k < p->n_devices; k++) {
            if (g->x[(int64_t)j * p->n_devices + k] < 0 || moirai_op_ns(p, j, k) <= 0)
                continue;
            milp_resident_terms(g, k);
            milp_term(&g->m, g->x[(int64_t)j * p->n_devices + k], (double)working);
            milp_term(&g->m, excess, -1);
            milp_row(&g->m, '<', (double)p->device_memory_bytes[k], MILP_BYTES, "c4dp_%s_%s", g->op_tag[j],
                     g->device_tag[k]);
        }
    }
}

int32_t milp_order_col(milp_program *g, int32_t a, int32_t b)
{
    int32_t n = g->p->n_ops;
    const char *from = a < n ? g->op_tag[a] : g->flow_tag[a - n], *to = b < n ? g->op_tag[b] : g->flow_tag[b - n];
    int32_t col = milp_col(&g->m, MILP_BINARY, 0, 1, "d_%s_%s", from, to);
    if (util_grow(&g->order, &g->cap_order, (size_t)g->n_orders + 1, sizeof *g->order)) {
        g->m.failed = MOIRAI_EFAIL;
        return col;
    }
    g->order[g->n_orders++] = (struct milp_order){a, b, col};
    return col;
}

/* Every operator runs somewhere, between its head and its tail. */
static int64_t least_makespan(const milp_dag *d)
{
    int64_t least = 0;
    for (int32_t i = 0; i < d->p->n_ops; i++) {
        int64_t mine = INT64_MAX;
        for (int32_t k = 0; k < d->p->n_devices; k++) {
            int64_t at = (int64_t)i * d->p->n_devices + k;
            if (milp_allowed(d, i, k))
                mine = UTIL_MIN(mine, d->head[at] + milp_op_units(d, i, k) + d->tail[at]);
        }
        least = UTIL_MAX(least, mine);
    }
    return least;
}

static int build(milp_program *g, bool dry)
{
    milp_model_free(&g->m);
    g->n_orders = 0;
    g->m.dry = dry;
    milp_col(&g->m, MILP_TIME, (double)least_makespan(g->d), (double)g->d->upper, "T");
    add_placement(g);
    add_times(g);
    milp_build_memory(g, -1);
    if (g->formulation == MOIRAI_FORMULATION_PAPER) {
        milp_build_paper(g);
    } else {
        milp_build_tight(g);
        milp_build_cuts(g);
    }
    if (g->peak)
        milp_peak_rows(g, g->peak);
    return g->m.failed;
}

int milp_refuse(const moirai_problem *p, moirai_formulation f, int64_t rows, int64_t max_rows)
{
    return moirai_error(MOIRAI_ELIMIT,
                        "problem '%s': the %s formulation would need %lld rows (limit max-rows=%lld): use the placer "
                        "'moirai', which scales",
                        p->name, moirai_formulation_name(f), (long long)rows, (long long)max_rows);
}

static int make(milp_program *g, int64_t upper_ns, int64_t max_rows)
{
    int64_t rows;
    int rc = milp_rows_estimate(&rows, g->p, g->formulation);
    if (rc)
        return rc;
    /* A model that is far too large even before its small rows needs no exact count, which costs quadratic memory. */
    if (max_rows >= 0 && rows > max_rows && (rows / 16 > max_rows || g->p->n_ops > 8192))
        return milp_refuse(g->p, g->formulation, rows, max_rows);
    rc = milp_dag_new(&g->d, g->p, upper_ns, g->formulation == MOIRAI_FORMULATION_TIGHT);
    if (rc || (rc = make_tags(g)) || (rc = make_maps(g)) || (rc = build(g, true)))
        return rc;
    if (max_rows < 0)
        return 0;
    if (g->m.n_rows > max_rows)
        return milp_refuse(g->p, g->formulation, g->m.n_rows, max_rows);
    return build(g, false);
}

int milp_program_memory(milp_program **out, const moirai_problem *p)
{
    *out = NULL;
    milp_program *g = util_alloc(1, sizeof *g);
    if (!g)
        return MOIRAI_EFAIL;
    g->p = p;
    g->formulation = MOIRAI_FORMULATION_PAPER;
    int rc = milp_dag_new(&g->d, p, -1, false);
    if (!rc && !(rc = make_tags(g)) && !(rc = make_maps(g))) {
        double most = 0;
        for (int32_t i = 0; i < p->n_ops; i++) {
            bool has;
            most += (double)p->op_memory_bytes[i] + (double)working_bytes(p, i, &has);
        }
        for (int32_t w = 0; w < p->n_weights; w++)
            most += (double)p->weight_bytes[w];
        milp_col(&g->m, MILP_AMOUNT, 0, most, "short");
        add_placement(g);
        milp_build_memory(g, 0);
        rc = g->m.failed;
    }
    if (rc) {
        milp_program_free(g);
        return rc;
    }
    *out = g;
    return 0;
}

int milp_program_new(milp_program **out, const moirai_problem *p, moirai_formulation f, int64_t upper_ns,
                     int64_t max_rows, milp_peak *peak)
{
    *out = NULL;
    milp_program *g = util_alloc(1, sizeof *g);
    if (!g)
        return MOIRAI_EFAIL;
    g->p = p;
    g->formulation = f;
    g->peak = peak;
    int rc = make(g, upper_ns, max_rows);
    if (rc) {
        milp_program_free(g);
        return rc;
    }
    *out = g;
    return 0;
}

void milp_program_free(milp_program *g)
{
    if (!g)
        return;
    milp_model_free(&g->m);
    milp_dag_free(g->d);
    free(g->x);
    free(g->s);
    free(g->c);
    free(g->fs);
    free(g->fc);
    free(g->z);
    free(g->u);
    free(g->y);
    free(g->held);
    free(g->order);
    free(g->op_tag);
    free(g->flow_tag);
    free(g->device_tag);
    free(g);
}
