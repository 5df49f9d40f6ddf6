/* Loads within stretches of time.
 *
 * A tree that narrows, or work in layers, keeps few devices busy at its end: what has a long tail must be done long before the end. A *shift* (H, Q)
 * is the time from H to Q before the end. Of every operator a part lies within it, at least, by its head and tail, and each device has that much
 * less time for it: one more row for each device (docs/theory.md, Lemma 48), whose prices are added to those of all loads.
 *
 * Which shifts, at which prices, is asked without transfers first: then it is a game. One side puts every operator on devices, the other chooses
 * which device of which shift is looked at. Both follow their regrets (regret matching+, Tammelin 2014) and both means, late rounds
 * counting more, come to the value of the linear programme: a few hundred rounds of multiplications are within half a per cent. At the mean
 * the shifts that are overstepped most are added, a few times, and so are paths that take longer than that: with fewer chains than devices no device may
 * be short of time, and still the fast ones cannot do all (paths.c). Then transfers come in: the relaxation goes on from these prices (cases.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "relax/relax_tuning.h"
#include "relax/messages.h"
#include "relax/view.h"
#include "schedule/paths.h"
#include "util/sort.h"
#include "util/util.h"

#define SCALE_BITS 30

typedef struct game {
    relax_view v;
    relax_case c;
    relax_rows rows;
    int64_t *head, *tail;              /* [op * K + device] */
    int64_t end[2][RELAX_SHIFTS_ENDS]; /* heads and tails of shifts */
    int32_t n_ends[2];
    bool taken[RELAX_SHIFTS_ENDS * RELAX_SHIFTS_ENDS]; /* pairs of them that are in the game */
    double *price, *price_mean, *price_regret, *load;  /* per resource; ports stay idle */
    double *share, *share_mean, *share_regret;         /* [op * K + device] */
    double *time;                                      /* of an operator at the mean of all shares */
    util_memory memory;
    util_stop stop;
} game;

static bool may(const game *g, int64_t at)
{
    return g->c.devices[at / g->v.K] >> (at % g->v.K) & 1;
}

/* ---- the rows ---- */

/* So many of the operators' least heads, or tails, that are all different, evenly. */
static int find_ends(game *g, int32_t which)
{
    const int64_t *path = which ? g->tail : g->head;
    int64_t n = g->v.n, *least = util_alloc((size_t)n + 1, sizeof *least), different = 1;
    if (!least)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < n; i++) {
        least[i + 1] = SCHEDULE_NEVER_NS;
        for (int64_t at = i * g->v.K; at < (i + 1) * g->v.K; at++)
            least[i + 1] = may(g, at) ? UTIL_MIN(least[i + 1], path[at]) : least[i + 1];
    }
    qsort(least, (size_t)n + 1, sizeof *least, util_by_int64);
    for (int64_t i = 1; i <= n; i++)
        if (least[i] != least[different - 1])
            least[different++] = least[i];
    int64_t most = UTIL_MIN(different, RELAX_SHIFTS_ENDS);
    for (int64_t i = 0; i < most; i++)
        g->end[which][i] = least[most > 1 ? i * (different - 1) / (most - 1) : 0];
    g->n_ends[which] = (int32_t)most;
    free(least);
    return 0;
}

static relax_shift shift_at(const game *g, int32_t i)
{
    return (relax_shift){g->end[0][i / g->n_ends[1]], g->end[1][i % g->n_ends[1]]};
}

/* The largest load of a device within a shift at the mean of all shares, with what comes before and after. */
static double largest(const game *g, relax_shift s)
{
    double load[MOIRAI_MAX_DEVICES] = {0}, most = 0;
    int32_t K = g->v.K;
    for (int64_t at = 0; at < (int64_t)g->v.n * K; at++)
        if (g->share_mean[at] > 0)
            load[at % K] += g->share_mean[at] *
                            (double)relax_within(s, g->head[at], g->v.p->op_time_ns[at], g->tail[at], g->c.path_ns);
    for (int32_t k = 0; k < K; k++)
        most = fmax(most, load[k]);
    return most + (double)(s.head_ns + s.tail_ns);
}

/* The case by the rows of now; the other side forgets what it regrets. */
static int take_rows(game *g)
{
    relax_view_take_rows(&g->v, &g->rows);
    memset(g->price_regret, 0, sizeof *g->price_regret * (size_t)g->v.n_resources);
    memset(g->price + schedule_resources(g->v.p), 0,
           sizeof *g->price * (size_t)(g->v.n_resources - schedule_resources(g->v.p)));
    relax_case_close(&g->c);
    return relax_case_open(&g->c, &g->v, NULL, 0, false, &(util_stop){0});
}

/* Adds those that are overstepped most. */
static void add_overstepped(game *g, double value)
{
    int32_t best[RELAX_SHIFTS_EACH_TIME] = {0};
    double by[RELAX_SHIFTS_EACH_TIME] = {0};
    for (int32_t i = 0; i < g->n_ends[0] * g->n_ends[1] && !util_stopped(&g->stop); i++) {
        relax_shift s = shift_at(g, i);
        bool tried = !g->taken[i] && s.head_ns + s.tail_ns > 0 && s.head_ns + s.tail_ns < g->c.path_ns;
        double most = tried ? largest(g, s) : 0;
        for (int32_t j = 0, at = i; j < RELAX_SHIFTS_EACH_TIME; j++)
            if (most > by[j]) {
                double other = by[j];
                int32_t moved = best[j];
                by[j] = most;
                best[j] = at;
                most = other;
                at = moved;
            }
    }
    for (int32_t j = 0; j < RELAX_SHIFTS_EACH_TIME && g->rows.n_shifts < RELAX_SHIFTS_MOST_SHIFTS; j++)
        if (by[j] > RELAX_SHIFTS_WORTH * value) {
            g->rows.shift[g->rows.n_shifts++] = shift_at(g, best[j]);
            g->taken[best[j]] = true;
        }
}

/* ---- the game ---- */

/* What an operator loads where it has so much of each device. */
static void add_load(game *g, int32_t i, const double *share)
{
    int64_t at = (int64_t)i * g->v.K;
    for (int32_t k = 0; k < g->v.K; k++)
        g->load[k] += share[k] * (double)g->v.p->op_time_ns[at + k];
    for (int32_t k = 0; g->c.part_off && k < g->v.K; k++)
        for (int64_t j = g->c.part_off[at + k]; share[k] > 0 && j < g->c.part_off[at + k + 1]; j++)
            g->load[g->c.part[j].resource] += share[k] * (double)g->c.part[j].ns;
}

/* One operator at the prices: its regrets, its shares, and what it loads. */
static void put(game *g, int32_t i, double weight)
{
    int32_t K = g->v.K, best = MOIRAI_NONE;
    int64_t at = (int64_t)i * K;
    double mean = 0, sum = 0, cost[MOIRAI_MASK_DEVICES], *share = g->share + at, *regret = g->share_regret + at;
    for (int32_t k = 0; k < K; k++)
        cost[k] = g->price[k] * (double)g->v.p->op_time_ns[at + k];
    for (int32_t k = 0; g->c.part_off && k < K; k++)
        for (int64_t j = g->c.part_off[at + k]; j < g->c.part_off[at + k + 1]; j++)
            cost[k] += g->price[g->c.part[j].resource] * (double)g->c.part[j].ns;
    for (int32_t k = 0; k < K; k++)
        mean += share[k] * cost[k];
    for (int32_t k = 0; k < K; k++) {
        if (!(g->c.devices[i] >> k & 1))
            continue;
        regret[k] = fmax(regret[k] + mean - cost[k], 0);
        sum += regret[k];
        best = best == MOIRAI_NONE || cost[k] < cost[best] ? k : best;
    }
    for (int32_t k = 0; k < K; k++) {
        share[k] = sum > 0 ? regret[k] / sum : k == best;
        g->share_mean[at + k] += weight * share[k];
    }
    add_load(g, i, share);
}

static void begin_loads(game *g)
{
    int32_t ports = schedule_resources(g->v.p);
    for (int32_t r = 0; r < g->v.n_resources; r++)
        g->load[r] = r < g->v.K || r >= ports ? (double)g->c.offset_ns[r] : 0;
}

/* The other side looks where the loads are largest, by how much more than in the mean it would have seen at each row. */
static void look(game *g, double weight)
{
    double mean = 0, sum = 0;
    for (int32_t r = 0; r < g->v.n_resources; r++)
        mean += g->price[r] * g->load[r];
    for (int32_t r = 0; r < g->v.n_resources; r++) {
        g->price_regret[r] = fmax(g->price_regret[r] + g->load[r] - mean, 0);
        sum += g->price_regret[r];
    }
    for (int32_t r = 0; r < g->v.n_resources; r++) {
        g->price[r] = sum > 0 ? g->price_regret[r] / sum : g->price[r];
        g->price_mean[r] += weight * g->price[r];
    }
}

/* So many rounds, or as many as there is time for; the largest load at the mean of all shares is where the programme's value lies below. */
static double play(game *g, int32_t rounds)
{
    size_t R = (size_t)g->v.n_resources, cells = (size_t)g->v.n * (size_t)g->v.K;
    double weights = 0, most = 0;
    memset(g->price_mean, 0, sizeof *g->price_mean * R);
    memset(g->share_mean, 0, sizeof *g->share_mean * cells);
    rounds = (int32_t)fmin(rounds, RELAX_SHIFTS_MOST_WORK / (double)(cells * (size_t)(1 + g->rows.n_shifts)) + 1);
    for (int32_t round = 1; round <= rounds && (round == 1 || !util_stopped(&g->stop)); round++) {
        double weight = (double)round * round;
        begin_loads(g);
        for (int32_t i = 0; i < g->v.n; i++)
            put(g, i, weight);
        look(g, weight);
        weights += weight;
    }
    for (size_t at = 0; at < cells; at++)
        g->share_mean[at] /= weights;
    begin_loads(g);
    for (int32_t i = 0; i < g->v.n; i++)
        add_load(g, i, g->share_mean + (int64_t)i * g->v.K);
    for (size_t r = 0; r < R; r++) {
        g->price_mean[r] /= weights;
        most = fmax(most, g->load[r]);
    }
    return most;
}

/* ---- from a problem to a leaf ---- */

static int open_game(game *g, const moirai_problem *p)
{
    size_t cells = (size_t)p->n_ops * (size_t)p->n_devices, K = (size_t)p->n_devices,
           R = (size_t)schedule_resources(p) + RELAX_SHIFTS_MOST_SHIFTS * K + RELAX_MOST_PATHS;
    int rc = relax_view_open(&g->v, p, 100);
    rc = rc ? rc : relax_case_open(&g->c, &g->v, NULL, 0, false, &g->stop);
    UTIL_TAKE(&g->memory, g->rows.shift, RELAX_SHIFTS_MOST_SHIFTS);
    UTIL_TAKE(&g->memory, g->rows.path_off, RELAX_MOST_PATHS + 1);
    UTIL_TAKE(&g->memory, g->rows.path_op, relax_paths_room(p));
    UTIL_TAKE(&g->memory, g->head, cells);
    UTIL_TAKE(&g->memory, g->tail, cells);
    UTIL_TAKE(&g->memory, g->price, R);
    UTIL_TAKE(&g->memory, g->price_mean, R);
    UTIL_TAKE(&g->memory, g->price_regret, R);
    UTIL_TAKE(&g->memory, g->load, R);
    UTIL_TAKE(&g->memory, g->share, cells);
    UTIL_TAKE(&g->memory, g->share_mean, cells);
    UTIL_TAKE(&g->memory, g->share_regret, cells);
    UTIL_TAKE(&g->memory, g->time, (size_t)p->n_ops);
    if (rc || g->memory.failed)
        return rc ? rc : MOIRAI_EFAIL;
    schedule_paths paths = {.p = p, .devices = g->c.devices, .stop = &g->stop};
    schedule_heads(g->head, &paths);
    schedule_tails(g->tail, &paths);
    for (int32_t k = 0; k < p->n_devices; k++)
        g->price[k] = 1.0 / p->n_devices;
    rc = find_ends(g, 0);
    return rc ? rc : find_ends(g, 1);
}

static void close_game(game *g)
{
    util_release(&g->memory);
    relax_case_close(&g->c);
    relax_view_close(&g->v);
}

/* Rows that are overstepped most come in; *any: whether there are such. */
static int add_rows(game *g, double value, bool *any)
{
    int32_t shifts = g->rows.n_shifts, paths = g->rows.n_paths;
    for (int32_t i = 0; i < g->v.n; i++) {
        g->time[i] = 0;
        for (int64_t at = (int64_t)i * g->v.K; at < (int64_t)(i + 1) * g->v.K; at++)
            g->time[i] += g->share_mean[at] * (double)g->v.p->op_time_ns[at];
    }
    add_overstepped(g, value);
    int rc = relax_paths_add(&g->rows, g->v.p, g->time, value);
    *any = g->rows.n_shifts > shifts || g->rows.n_paths > paths;
    return rc || !*any ? rc : take_rows(g);
}

/* The mean prices as whole numbers. Rows that nobody looks at are left out: where transfers come in, each shift is a price for each device to be
 * found. */
static int write_leaf(relax_leaf *leaf, game *g)
{
    relax_rows *rows = &g->rows;
    int32_t K = g->v.K, R = schedule_resources(g->v.p), n = 0, paths = 0, used = 0;
    double *price = g->price_mean + R;
    for (int32_t s = 0; s < rows->n_shifts; s++) {
        double sum = 0;
        for (int32_t k = 0; k < K; k++)
            sum += price[s * K + k];
        if (sum < RELAX_SHIFTS_IDLE)
            continue;
        rows->shift[n] = rows->shift[s];
        memmove(price + n++ * K, price + s * K, sizeof *price * (size_t)K);
    }
    for (int32_t a = 0; a < rows->n_paths; a++) {
        int32_t first = rows->path_off[a], size = rows->path_off[a + 1] - first;
        if (price[rows->n_shifts * K + a] < RELAX_SHIFTS_IDLE)
            continue;
        memmove(rows->path_op + used, rows->path_op + first, sizeof *rows->path_op * (size_t)size);
        price[n * K + paths] = price[rows->n_shifts * K + a];
        rows->path_off[++paths] = used += size;
    }
    rows->n_shifts = n;
    rows->n_paths = paths;
    leaf->unit = 1;
    relax_leaf_take_rows(leaf, rows);
    int32_t prices = relax_leaf_prices(leaf, g->v.p);
    UTIL_TAKE(&leaf->memory, leaf->price, (size_t)prices);
    for (int32_t r = 0; leaf->price && r < prices; r++)
        leaf->price[r] = (int64_t)ldexp(g->price_mean[r], SCALE_BITS);
    return util_taken_all(&leaf->memory);
}

/* *else_ns: what loads or paths prove without shifts, about. */
static int find_leaf(relax_leaf *leaf, double *else_ns, const moirai_problem *p, const util_stop *stop)
{
    game g = {.stop = *stop};
    bool any = true;
    int rc = open_game(&g, p);
    for (int32_t turn = 0; turn < RELAX_SHIFTS_TURNS && !rc && any && !util_stopped(stop); turn++) {
        double value = play(&g, RELAX_SHIFTS_ROUNDS);
        *else_ns = turn == 0 ? fmax(value, (double)g.c.path_ns) : *else_ns;
        rc = add_rows(&g, value, &any);
    }
    if (!rc) {
        play(&g, RELAX_SHIFTS_LAST_ROUNDS);
        rc = write_leaf(leaf, &g);
    }
    close_game(&g);
    util_stop evaluation = util_stop_at_least(stop, RELAX_SHIFTS_MOMENT_S);
    return rc ? rc : relax_evaluate(&leaf->proven_ns, p, leaf, false, &evaluation);
}

int relax_solve_shifts(relax_answer *out, const moirai_problem *p, const relax_task *job)
{
    relax_leaf leaf = {0};
    relax_task own = *job;
    *out = (relax_answer){0};
    bool large = p->n_devices > MOIRAI_MASK_DEVICES || (int64_t)p->n_ops * p->n_devices > RELAX_SHIFTS_MOST_CELLS;
    if (p->n_ops == 0 || job->n_fixed > 0 || large)
        return MOIRAI_ELIMIT;
    double else_ns = 0;
    int rc = find_leaf(&leaf, &else_ns, p, &job->stop);
    bool raised = (double)leaf.proven_ns >= RELAX_SHIFTS_RAISED * else_ns;
    own.first = &leaf;
    own.plans = false;
    rc = rc || !raised ? rc : relax_solve(out, p, &own);
    if (rc == MOIRAI_ELIMIT || (!rc && !raised)) { /* too many prices for the master, or nothing gained by shifts */
        relax_answer_clear(out);
        out->lower_ns = leaf.proven_ns;
        rc = relax_proof_alone(&out->proof, &leaf);
    }
    relax_leaf_clear(&leaf);
    return rc;
}
