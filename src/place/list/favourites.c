/* Favourite children by linear programming: the first half of m-SCT (Jeon et al. 2020, after Hanen and Munier 1995).
 *
 * Variables: s_i >= 0, the start of operator i; x_ij in [0, 1] for every reader j of i, 0 where j is i's favourite
 * child (same device, no transfer). Minimise w subject to
 *
 *     s_i + p_i + c_ij x_ij <= s_j for every pair (i, j), and s_i + p_i <= w,
 *
 *     sum of x over the d readers of i >= d - 1, and sum of x over the d producers that j reads >= d - 1.
 *
 * p_i is the mean time over the devices that can run i; c_ij the sum over the tensors from i to j of the mean time over
 * the channels (0 inside a group: those stay together). Devices are unequal here and the original's are not: a mean is
 * what both halves agree on. After solving, j is i's favourite iff x_ij <= threshold (0.1). Rounding can leave two
 * favourites to an operator, or two parents to a child: the later in topological order replaces the earlier.
 *
 * What differs, and why. (1) The programme is cut where everything passes through one operator v, without an edge past
 * it: what comes before and what comes after share the start of v and no x, so the two optima add up and the solutions
 * side by side are a solution of the whole. Transformers fall into layers. Pieces that are equal number by number are
 * solved once. (2) Far from the longest path x is free, and an interior point leaves it between 0 and 1, where it
 * rounds to nothing. So the objective has a second term, EPSILON times the sum of c_ij x_ij: among the solutions of
 * (almost) least w one with the least transfers. The rows over readers and producers are those of a bipartite matching,
 * hence the simplex method hands over whole numbers there. (3) An arc that is in no row (only reader, only producer) is
 * a favourite at once: x = 0 is never worse.
 *
 * O(V + E) besides the solver, which sees pieces with one column per operator and arc and one row per arc. */
#include "place/list/favourites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/list/lp_whole.h"
#include "util/util.h"

#define HORIZON 1e3 /* the longest path of a piece, in the solver's units */
#define EPSILON 1e-6
#define LOOK_BACK 16 /* pieces among which equal ones are sought */

typedef struct finder {
    const moirai_problem *p;
    place_favourites *f;
    double *time_ns;  /* mean, per operator */
    int32_t *arc_off; /* by topological rank of the producer */
    int32_t *n_parents;
    int32_t *cut; /* ranks at which the programme falls apart; the first is 0, the last V */
    int32_t n_cuts;
    int32_t *in_off, *in_arc;     /* operator -> arcs into it */
    int32_t *s_column, *x_column; /* of the piece at hand */
    double *length;               /* scratch: longest path to an operator */
    lp_whole lp;
    const place_favourites_task *task;
} finder;

void place_favourites_clear(place_favourites *f)
{
    free(f->child);
    free(f->parent);
    free(f->x);
    free(f->from);
    free(f->to);
    free(f->transfer_ns);
    *f = (place_favourites){0};
}

/* ---- the graph of operators ---- */

static double mean_time(const moirai_problem *p, int32_t op)
{
    double sum = 0;
    int32_t n = 0;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (moirai_op_may(p, op, k)) {
            sum += (double)moirai_op_ns(p, op, k);
            n++;
        }
    return n ? sum / n : 0;
}

static double mean_transfer(const moirai_problem *p, int32_t class)
{
    int64_t K = p->n_devices;
    double sum = 0;
    for (int64_t j = 0; j < K * K; j++)
        sum += (double)p->class_transfer_ns[class * K * K + j];
    return K > 1 ? sum / (double)(K * (K - 1)) : 0;
}

/* Arcs of `op`, tensors between the same two operators added up; `seen` is the arc of a reader, where it is one of
 * op's. */
static void add_arcs(finder *x, int32_t op, const double *class_ns, int32_t *seen)
{
    const moirai_problem *p = x->p;
    place_favourites *f = x->f;
    int32_t first = f->n_arcs;
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        int32_t t = p->op_out[j];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t to = p->edge_reader[e], a = seen[to];
            bool together = p->op_group[op] != MOIRAI_NONE && p->op_group[op] == p->op_group[to];
            double ns = together ? 0 : class_ns[p->tensor_class[t]];
            if (a >= first && a < f->n_arcs && f->to[a] == to) {
                f->transfer_ns[a] += ns;
                continue;
            }
            a = seen[to] = f->n_arcs++;
            f->from[a] = op;
            f->to[a] = to;
            f->transfer_ns[a] = ns;
            x->n_parents[to]++;
        }
    }
}

static void list_arcs_in(finder *x)
{
    const place_favourites *f = x->f;
    int32_t V = x->p->n_ops;
    for (int32_t i = 0; i < V; i++)
        x->in_off[i + 1] = x->in_off[i] + x->n_parents[i];
    for (int32_t a = 0; a < f->n_arcs; a++)
        x->in_arc[x->in_off[f->to[a]]++] = a;
    for (int32_t i = V; i > 0; i--)
        x->in_off[i] = x->in_off[i - 1];
    x->in_off[0] = 0;
}

static int find_arcs(finder *x)
{
    const moirai_problem *p = x->p;
    double *class_ns = util_alloc((size_t)p->n_classes, sizeof *class_ns);
    int32_t *seen = util_alloc((size_t)p->n_ops, sizeof *seen);
    if (class_ns && seen) {
        for (int32_t c = 0; c < p->n_classes; c++)
            class_ns[c] = mean_transfer(p, c);
        for (int32_t r = 0; r < p->n_ops; r++) {
            x->time_ns[p->topo[r]] = mean_time(p, p->topo[r]);
            x->arc_off[r] = x->f->n_arcs;
            add_arcs(x, p->topo[r], class_ns, seen);
        }
        x->arc_off[p->n_ops] = x->f->n_arcs;
        list_arcs_in(x);
    }
    int rc = class_ns && seen ? 0 : MOIRAI_EFAIL;
    free(class_ns);
    free(seen);
    return rc;
}

/* ---- pieces ---- */

static int32_t n_children(const finder *x, int32_t rank)
{
    return x->arc_off[rank + 1] - x->arc_off[rank];
}

/* Ranks r such that all before it leads to it and all after it comes from it, with no arc past it. A source behind it
 * could begin sooner, a sink before it could end later than it: neither may be. */
static void find_cuts(finder *x)
{
    const moirai_problem *p = x->p;
    int32_t V = p->n_ops, reach = 0, last_source = 0, first_sink = V;
    for (int32_t r = 0; r < V; r++) {
        if (x->n_parents[p->topo[r]] == 0)
            last_source = r;
        if (n_children(x, r) == 0 && first_sink == V)
            first_sink = r;
    }
    x->cut[x->n_cuts++] = 0;
    for (int32_t r = 0; r < V; r++) { /* reach: the furthest rank that an arc from before r leads to */
        if (r > 0 && reach <= r && last_source < r && first_sink >= r && r < V - 1)
            x->cut[x->n_cuts++] = r;
        for (int32_t a = x->arc_off[r]; a < x->arc_off[r + 1]; a++)
            reach = UTIL_MAX(reach, p->topo_rank[x->f->to[a]]);
    }
    x->cut[x->n_cuts++] = V;
}

/* Two pieces with the same arcs between the same places and the same numbers: their optimal x are the same. Neither the
 * first nor the last piece, whose sources and sinks are special, is meant. */
static bool equal_pieces(const finder *x, int32_t b, int32_t c)
{
    const moirai_problem *p = x->p;
    const place_favourites *f = x->f;
    int32_t B = x->cut[b], C = x->cut[c], n = x->cut[b + 1] - B;
    if (x->cut[c + 1] - C != n)
        return false;
    for (int32_t r = 0; r < n; r++)
        if (x->time_ns[p->topo[B + r]] != x->time_ns[p->topo[C + r]] || n_children(x, B + r) != n_children(x, C + r))
            return false;
    int32_t shift = x->arc_off[C] - x->arc_off[B];
    for (int32_t a = x->arc_off[B]; a < x->arc_off[B + n]; a++)
        if (f->transfer_ns[a] != f->transfer_ns[a + shift] ||
            p->topo_rank[f->to[a]] - B != p->topo_rank[f->to[a + shift]] - C)
            return false;
    return true;
}

/* ---- the programme of one piece ---- */

/* Operators `begin` .. `end` by rank; `end` is the next cut and only the target of arcs, or V. */
static double longest_path(finder *x, int32_t begin, int32_t end, const double *weight)
{
    const moirai_problem *p = x->p;
    int32_t last = UTIL_MIN(end, p->n_ops - 1);
    double longest = 0;
    for (int32_t r = begin; r <= last; r++)
        x->length[p->topo[r]] = 0;
    for (int32_t r = begin; r < end; r++) {
        int32_t i = p->topo[r];
        double finish = x->length[i] + x->time_ns[i];
        longest = end == p->n_ops ? UTIL_MAX(longest, finish) : longest;
        for (int32_t a = x->arc_off[r]; a < x->arc_off[r + 1]; a++) {
            int32_t j = x->f->to[a];
            x->length[j] = UTIL_MAX(x->length[j], finish + x->f->transfer_ns[a] * (weight ? weight[a] : 1));
        }
    }
    return end < p->n_ops ? x->length[p->topo[end]] : longest;
}

static void add_columns(finder *x, int32_t begin, int32_t end, double scale)
{
    const moirai_problem *p = x->p;
    bool is_last = end == p->n_ops;
    for (int32_t r = begin; r < end + !is_last; r++)
        x->s_column[p->topo[r]] = lp_whole_column(&x->lp, r == end ? 1 : 0, 0, HUGE_VAL);
    for (int32_t a = x->arc_off[begin]; a < x->arc_off[end]; a++) {
        bool bound = n_children(x, p->topo_rank[x->f->from[a]]) > 1 || x->n_parents[x->f->to[a]] > 1;
        double cost = EPSILON * scale * x->f->transfer_ns[a];
        x->x_column[a] = bound ? lp_whole_column(&x->lp, cost, 0, 1) : MOIRAI_NONE;
    }
}

static void add_arc_row(finder *x, int32_t a, double scale)
{
    double c = scale * x->f->transfer_ns[a];
    lp_whole_row(&x->lp, scale * x->time_ns[x->f->from[a]], HUGE_VAL);
    lp_whole_term(&x->lp, x->s_column[x->f->to[a]], 1);
    lp_whole_term(&x->lp, x->s_column[x->f->from[a]], -1);
    if (x->x_column[a] != MOIRAI_NONE && c > 0)
        lp_whole_term(&x->lp, x->x_column[a], -c);
}

static void add_rows(finder *x, int32_t begin, int32_t end, double scale)
{
    const moirai_problem *p = x->p;
    int32_t w = end == p->n_ops ? lp_whole_column(&x->lp, 1, 0, HUGE_VAL) : MOIRAI_NONE;
    for (int32_t r = begin; r < end; r++) {
        int32_t i = p->topo[r], n = n_children(x, r);
        for (int32_t a = x->arc_off[r]; a < x->arc_off[r + 1]; a++)
            add_arc_row(x, a, scale);
        if (n == 0) { /* s_i + p_i <= w follows for all others */
            lp_whole_row(&x->lp, scale * x->time_ns[i], HUGE_VAL);
            lp_whole_term(&x->lp, w, 1);
            lp_whole_term(&x->lp, x->s_column[i], -1);
        }
        if (n > 1) {
            lp_whole_row(&x->lp, n - 1, HUGE_VAL);
            for (int32_t a = x->arc_off[r]; a < x->arc_off[r + 1]; a++)
                lp_whole_term(&x->lp, x->x_column[a], 1);
        }
    }
    for (int32_t r = begin + 1 - (begin == 0); r < end + (end < p->n_ops); r++) {
        int32_t j = p->topo[r];
        if (x->n_parents[j] <= 1)
            continue;
        lp_whole_row(&x->lp, x->n_parents[j] - 1, HUGE_VAL);
        for (int32_t z = x->in_off[j]; z < x->in_off[j + 1]; z++)
            lp_whole_term(&x->lp, x->x_column[x->in_arc[z]], 1);
    }
}

/* x of the piece's arcs; its length is then measured with them, so that lp_ns is what these x give. */
static int solve_piece(finder *x, int32_t begin, int32_t end)
{
    place_favourites *f = x->f;
    double path = longest_path(x, begin, end, NULL), scale = path > 0 ? HORIZON / path : 1;
    if (util_stopped(&x->task->stop)) {
        f->complete = false;
        return 0;
    }
    lp_whole_reset(&x->lp);
    add_columns(x, begin, end, scale);
    add_rows(x, begin, end, scale);
    lp_whole_answer answer;
    lp_whole_task task = {.method = LP_SIMPLEX, .presolve = true, .stop = x->task->stop};
    int rc = lp_whole_solve(&answer, &x->lp, &task);
    if (!rc && answer.end == LP_OPTIMAL)
        for (int32_t a = x->arc_off[begin]; a < x->arc_off[end]; a++)
            f->x[a] = x->x_column[a] == MOIRAI_NONE ? 0 : UTIL_MIN(1, UTIL_MAX(0, answer.column[x->x_column[a]]));
    else
        f->complete = false;
    f->n_solved++;
    lp_whole_answer_clear(&answer);
    return rc;
}

/* An earlier piece that equals piece b and is solved, among the last few (layers take turns); 0: none. The first piece
 * may have several sources and the last has sinks: they are like no other. */
static int32_t find_equal(const finder *x, int32_t b)
{
    if (x->cut[b + 1] == x->p->n_ops || !x->f->complete)
        return 0;
    for (int32_t twin = b - 1; twin > 0 && twin >= b - LOOK_BACK; twin--)
        if (equal_pieces(x, twin, b))
            return twin;
    return 0;
}

static int solve_pieces(finder *x)
{
    place_favourites *f = x->f;
    f->n_blocks = x->n_cuts - 1;
    for (int32_t a = 0; a < f->n_arcs; a++)
        f->x[a] = 1;
    for (int32_t b = 0; b < f->n_blocks; b++) {
        int32_t begin = x->cut[b], end = x->cut[b + 1], equal = find_equal(x, b);
        if (equal > 0)
            memcpy(f->x + x->arc_off[begin], f->x + x->arc_off[x->cut[equal]],
                   (size_t)(x->arc_off[end] - x->arc_off[begin]) * sizeof *f->x);
        int rc = equal > 0 ? 0 : solve_piece(x, begin, end);
        if (rc)
            return rc;
        f->lp_ns += longest_path(x, begin, end, f->x);
    }
    return 0;
}

/* ---- rounding ---- */

static void prefer(place_favourites *f, int32_t i, int32_t j)
{
    if (f->child[i] != MOIRAI_NONE)
        f->parent[f->child[i]] = MOIRAI_NONE;
    if (f->parent[j] != MOIRAI_NONE)
        f->child[f->parent[j]] = MOIRAI_NONE;
    f->child[i] = j;
    f->parent[j] = i;
}

static void round_off(place_favourites *f, int32_t n_ops, double threshold)
{
    for (int32_t i = 0; i < n_ops; i++)
        f->child[i] = f->parent[i] = MOIRAI_NONE;
    for (int32_t a = 0; a < f->n_arcs; a++)
        if (f->x[a] <= threshold)
            prefer(f, f->from[a], f->to[a]);
    for (int32_t i = 0; i < n_ops; i++)
        f->n += f->child[i] != MOIRAI_NONE;
}

static int prepare(finder *x)
{
    size_t V = (size_t)x->p->n_ops, E = (size_t)x->p->n_edges;
    place_favourites *f = x->f;
    f->child = util_alloc(V, sizeof *f->child);
    f->parent = util_alloc(V, sizeof *f->parent);
    f->x = util_alloc(E, sizeof *f->x);
    f->from = util_alloc(E, sizeof *f->from);
    f->to = util_alloc(E, sizeof *f->to);
    f->transfer_ns = util_alloc(E, sizeof *f->transfer_ns);
    x->time_ns = util_alloc(V, sizeof *x->time_ns);
    x->arc_off = util_alloc(V + 1, sizeof *x->arc_off);
    x->n_parents = util_alloc(V, sizeof *x->n_parents);
    x->cut = util_alloc(V + 2, sizeof *x->cut);
    x->in_off = util_alloc(V + 1, sizeof *x->in_off);
    x->in_arc = util_alloc(E, sizeof *x->in_arc);
    x->s_column = util_alloc(V, sizeof *x->s_column);
    x->x_column = util_alloc(E, sizeof *x->x_column);
    x->length = util_alloc(V, sizeof *x->length);
    return f->child && f->parent && f->x && f->from && f->to && f->transfer_ns && x->time_ns && x->arc_off &&
                   x->n_parents && x->cut && x->in_off && x->in_arc && x->s_column && x->x_column && x->length
               ? 0
               : MOIRAI_EFAIL;
}

static void release(finder *x)
{
    free(x->time_ns);
    free(x->arc_off);
    free(x->n_parents);
    free(x->cut);
    free(x->in_off);
    free(x->in_arc);
    free(x->s_column);
    free(x->x_column);
    free(x->length);
    lp_whole_clear(&x->lp);
}

int place_favourites_find(place_favourites *out, const moirai_problem *p, const place_favourites_task *task)
{
    *out = (place_favourites){.complete = true};
    finder x = {.p = p, .f = out, .task = task};
    int rc = prepare(&x);
    rc = rc ? rc : find_arcs(&x);
    if (!rc && p->n_ops > 0) {
        find_cuts(&x);
        if (task->whole) {
            x.cut[1] = p->n_ops;
            x.n_cuts = 2;
        }
        rc = solve_pieces(&x);
    }
    if (!rc)
        round_off(out, p->n_ops, task->threshold);
    release(&x);
    if (rc)
        place_favourites_clear(out);
    return rc;
}
