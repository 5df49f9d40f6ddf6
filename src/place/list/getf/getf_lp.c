/* GETF's linear programme: written with one variable per colour, solved, and handed to getf_prove.c.
 *
 * Minimise T subject to
 *
 *     sum_k x_ik = 1, and S_j >= S_i + sum_k p_ik x_ik for every reader j of i,
 *
 *     S_i + sum_k p_ik x_ik <= T, and sum_i p_ik x_ik <= T for every device k; x, S >= 0.
 *
 * x_ik is the share of operator i on device k, S_i its start (the original writes completions, which is the same). A
 * group has one x for all its members, which the original does not know. No communication and no memory are in it: that
 * is what the paper criticises, and why T is a bound on every plan in every mode.
 *
 * Operators that the programme cannot tell apart share their variables (colours.c): same optimum, a programme as large
 * as one head of a transformer. With whole operators (branch and bound) they do differ, and it is written in full.
 *
 * The linear programme is solved by an interior point method without crossover: duals are all that the proof needs, and
 * a solution inside the optimal face is what the group rule of the placer wants. Where it stalls, as it can on tiny
 * programmes, the simplex method follows. O(E K) besides the solver. */
#include "place/list/getf/getf_lp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/list/getf/getf_state.h"
#include "util/util.h"

#define HORIZON 1e3 /* all least times together, in the solver's units */

void place_getf_clear(place_getf_result *g)
{
    free(g->share);
    *g = (place_getf_result){0};
}

/* ---- the programme ---- */

static int find_leaders(place_getf_state *s)
{
    const moirai_problem *p = s->p;
    int32_t *first = util_alloc((size_t)p->n_groups, sizeof *first);
    if (!first)
        return MOIRAI_EFAIL;
    for (int32_t g = 0; g < p->n_groups; g++)
        first[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        s->leader[i] = g == MOIRAI_NONE ? i : first[g] != MOIRAI_NONE ? first[g] : (first[g] = i);
        uint64_t some = p->op_devices[i] & s->task->devices;
        s->devices[i] = some != 0 ? some : p->op_devices[i];
    }
    free(first);
    return 0;
}

/* coefficient * (time of op), spread over the columns of its shares */
static void add_time(place_getf_state *s, int32_t op, double coefficient)
{
    int32_t column = place_getf_column(s, op);
    for (uint64_t open = s->devices[op]; open != 0; open &= open - 1, column++) {
        int64_t ns = moirai_op_ns(s->p, op, __builtin_ctzll(open));
        if (ns > 0)
            lp_whole_term(&s->lp, column, coefficient * s->scale * (double)ns);
    }
}

/* T is column 0. */
static void add_columns(place_getf_state *s)
{
    lp_whole_column(&s->lp, 1, 0, HUGE_VAL);
    for (int32_t c = 0; c < s->colour.n; c++) {
        int32_t i = s->colour.op[c];
        s->x_column[c] = s->lp.n_columns;
        for (uint64_t open = s->leader[i] == i ? s->devices[i] : 0; open != 0; open &= open - 1) {
            int32_t column = lp_whole_column(&s->lp, 0, 0, 1);
            if (!s->lp.failed)
                s->lp.integral[column] = 1;
        }
    }
    for (int32_t c = 0; c < s->colour.n; c++)
        s->s_column[c] = lp_whole_column(&s->lp, 0, 0, HUGE_VAL);
}

static void add_path_row(place_getf_state *s, int32_t i, int32_t to_column)
{
    lp_whole_row(&s->lp, 0, HUGE_VAL);
    lp_whole_term(&s->lp, to_column, 1);
    lp_whole_term(&s->lp, s->s_column[s->colour.of[i]], -1);
    add_time(s, i, -1);
}

/* Rows of the edges that leave colour c, one per colour of readers. */
static void add_path_rows(place_getf_state *s, int32_t c)
{
    const moirai_problem *p = s->p;
    int32_t i = s->colour.op[c], base = s->row_off[0], first = s->row_off[c] = s->lp.n_rows;
    for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++) {
        int32_t t = p->op_out[j];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t d = s->colour.of[p->edge_reader[e]], row = first;
            while (row < s->lp.n_rows && s->target[row - base] != d)
                row++;
            if (row == s->lp.n_rows && !s->lp.failed) {
                add_path_row(s, i, s->s_column[d]);
                s->target[row - base] = d;
                s->edges[row - base] = 0;
            }
            s->edges[row - base] += s->colour.size[c];
        }
    }
}

/* Times of whole groups and colours on k, added up at the leader's colour; `sum` is scratch per colour. */
static void add_load_row(place_getf_state *s, int32_t k, double *sum)
{
    const moirai_problem *p = s->p;
    memset(sum, 0, (size_t)s->colour.n * sizeof *sum);
    for (int32_t i = 0; i < p->n_ops; i++)
        if (s->devices[i] >> k & 1)
            sum[s->colour.of[s->leader[i]]] += s->scale * (double)moirai_op_ns(p, i, k);
    s->load_row[k] = s->lp.n_rows;
    lp_whole_row(&s->lp, 0, HUGE_VAL);
    lp_whole_term(&s->lp, 0, 1);
    for (int32_t c = 0; c < s->colour.n; c++)
        if (sum[c] > 0) {
            int32_t before = __builtin_popcountll(s->devices[s->colour.op[c]] & (((uint64_t)1 << k) - 1));
            lp_whole_term(&s->lp, s->x_column[c] + before, -sum[c]);
        }
}

static int write_programme(place_getf_state *s)
{
    const moirai_problem *p = s->p;
    int32_t n = s->colour.n;
    double *sum = util_alloc((size_t)n, sizeof *sum);
    if (!sum)
        return MOIRAI_EFAIL;
    lp_whole_reset(&s->lp);
    add_columns(s);
    s->row_off[0] = 0; /* path rows are the first */
    for (int32_t c = 0; c < n; c++)
        add_path_rows(s, c);
    s->row_off[n] = s->lp.n_rows;
    for (int32_t c = 0; c < n; c++) {
        bool is_sink = s->row_off[c] == s->row_off[c + 1];
        s->sink_row[c] = is_sink ? s->lp.n_rows : MOIRAI_NONE;
        if (is_sink)
            add_path_row(s, s->colour.op[c], 0);
    }
    for (int32_t c = 0; c < n; c++) {
        int32_t i = s->colour.op[c];
        if (s->leader[i] != i)
            continue;
        lp_whole_row(&s->lp, 1, 1);
        for (int32_t z = 0; z < __builtin_popcountll(s->devices[i]); z++)
            lp_whole_term(&s->lp, s->x_column[c] + z, 1);
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        add_load_row(s, k, sum);
    free(sum);
    return s->lp.failed ? MOIRAI_EFAIL : 0;
}

/* ---- solving ---- */

static void take_shares(place_getf_result *out, const place_getf_state *s, const double *column)
{
    const moirai_problem *p = s->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t at = place_getf_column(s, i);
        for (uint64_t open = s->devices[i]; open != 0; open &= open - 1, at++)
            out->share[(int64_t)i * p->n_devices + __builtin_ctzll(open)] = column[at];
    }
}

static int solve_lp(place_getf_result *out, place_getf_state *s)
{
    lp_whole_answer answer;
    lp_whole_task task = {.method = LP_INTERIOR, .presolve = true, .stop = s->task->stop};
    int rc = lp_whole_solve(&answer, &s->lp, &task);
    if (!rc && answer.end != LP_OPTIMAL && !util_stopped(&s->task->stop)) {
        lp_whole_answer_clear(&answer);
        task.method = LP_SIMPLEX;
        rc = lp_whole_solve(&answer, &s->lp, &task);
    }
    if (!rc && answer.has_duals)
        rc = place_getf_prove(&out->lower_ns, s, answer.row_dual);
    if (!rc && answer.end == LP_OPTIMAL) {
        out->solved = true;
        out->value_ns = answer.objective / s->scale;
        out->share = util_alloc((size_t)s->p->n_ops * (size_t)s->p->n_devices, sizeof *out->share);
        rc = out->share ? 0 : MOIRAI_EFAIL;
        if (!rc)
            take_shares(out, s, answer.column);
    }
    lp_whole_answer_clear(&answer);
    return rc;
}

/* ---- whole operators ---- */

/* Every leader whole on the device of its largest share. */
static void round_shares(const place_getf_result *g, const place_getf_state *s, double *column)
{
    const moirai_problem *p = s->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        const double *share = g->share + (int64_t)i * p->n_devices;
        int32_t at = place_getf_column(s, i), best = __builtin_ctzll(s->devices[i]);
        for (uint64_t open = s->devices[i]; open != 0; open &= open - 1)
            if (share[__builtin_ctzll(open)] > share[best])
                best = __builtin_ctzll(open);
        for (uint64_t open = s->leader[i] == i ? s->devices[i] : 0; open != 0; open &= open - 1, at++)
            column[at] = __builtin_ctzll(open) == best;
    }
}

/* Starts and T for those devices. */
static void settle_start(const place_getf_state *s, double *column)
{
    const moirai_problem *p = s->p;
    double load[MOIRAI_MASK_DEVICES] = {0};
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t i = p->topo[r], at = place_getf_column(s, i);
        double ns = 0;
        for (uint64_t open = s->devices[i]; open != 0; open &= open - 1, at++)
            if (column[at] > 0.5) {
                ns = s->scale * (double)moirai_op_ns(p, i, __builtin_ctzll(open));
                load[__builtin_ctzll(open)] += ns;
            }
        double finish = column[s->s_column[s->colour.of[i]]] + ns;
        column[0] = UTIL_MAX(column[0], finish);
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++) {
                double *start = &column[s->s_column[s->colour.of[p->edge_reader[e]]]];
                *start = UTIL_MAX(*start, finish);
            }
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        column[0] = UTIL_MAX(column[0], load[k]);
}

static int solve_milp(place_getf_result *out, place_getf_state *s)
{
    place_colours_clear(&s->colour);
    int rc = place_colours_find(&s->colour, s->p, true);
    rc = rc ? rc : write_programme(s);
    double *start = !rc ? util_alloc((size_t)s->lp.n_columns, sizeof *start) : NULL;
    if (rc || !start)
        return rc ? rc : MOIRAI_EFAIL;
    round_shares(out, s, start);
    settle_start(s, start);
    lp_whole_answer answer;
    lp_whole_task task = {.method = LP_MIP,
                          .presolve = true,
                          .stop = s->task->stop,
                          .gap = s->task->gap,
                          .threads = 1,
                          .seed = s->task->seed,
                          .start = start};
    rc = lp_whole_solve(&answer, &s->lp, &task);
    take_shares(out, s, !rc && answer.has_columns ? answer.column : start);
    out->milp_found = !rc && answer.has_columns;
    lp_whole_answer_clear(&answer);
    free(start);
    return rc;
}

/* ---- the whole ---- */

static int prepare(place_getf_state *s)
{
    const moirai_problem *p = s->p;
    size_t V = (size_t)p->n_ops, K = (size_t)p->n_devices, E = (size_t)p->n_edges;
    s->leader = util_alloc(V, sizeof *s->leader);
    s->devices = util_alloc(V, sizeof *s->devices);
    s->x_column = util_alloc(V, sizeof *s->x_column);
    s->s_column = util_alloc(V, sizeof *s->s_column);
    s->row_off = util_alloc(V + 1, sizeof *s->row_off);
    s->target = util_alloc(E, sizeof *s->target);
    s->edges = util_alloc(E, sizeof *s->edges);
    s->sink_row = util_alloc(V, sizeof *s->sink_row);
    s->load_row = util_alloc(K, sizeof *s->load_row);
    s->flow = util_alloc(V, sizeof *s->flow);
    s->weight = util_alloc(K, sizeof *s->weight);
    bool ready = s->leader && s->devices && s->x_column && s->s_column && s->row_off && s->target && s->edges &&
                 s->sink_row && s->load_row && s->flow && s->weight;
    double total = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        total += (double)moirai_op_least_ns(p, i);
    s->scale = total > 0 ? HORIZON / total : 1;
    return ready ? find_leaders(s) : MOIRAI_EFAIL;
}

void place_getf_close(place_getf_state *s)
{
    free(s->leader);
    free(s->devices);
    free(s->x_column);
    free(s->s_column);
    free(s->row_off);
    free(s->target);
    free(s->edges);
    free(s->sink_row);
    free(s->load_row);
    free(s->flow);
    free(s->weight);
    place_colours_clear(&s->colour);
    lp_whole_clear(&s->lp);
}

int place_getf_open(place_getf_state *s, bool plain)
{
    int rc = prepare(s);
    rc = rc ? rc : place_colours_find(&s->colour, s->p, plain);
    return rc ? rc : write_programme(s);
}

int place_getf_solve(place_getf_result *out, const moirai_problem *p, const place_getf_task *task)
{
    *out = (place_getf_result){0};
    if (p->n_ops == 0)
        return 0;
    place_getf_state s = {.p = p, .task = task};
    int rc = place_getf_open(&s, task->plain);
    rc = rc ? rc : solve_lp(out, &s);
    if (!rc && task->milp && out->solved)
        rc = solve_milp(out, &s);
    place_getf_close(&s);
    if (rc)
        place_getf_clear(out);
    return rc;
}
