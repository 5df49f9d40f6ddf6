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
#include "relax/paths.h"
#include "relax/view.h"
#include "schedule/paths.h"
#include "util/sort.h"
#include "util/util.h"

#define SCALE_BITS 30

typedef struct game {
    relax_view v;
    relax_case c;
    int64_t *head, *tail;              /* [op * K + device] */
    int64_t end[2][RELAX_SHIFTS_ENDS]; /* heads and tails of shifts */
    int32_t n_ends[2];
    int32_t n;                                   /* shifts in the game: 0 is the whole, by the offsets of the case */
    relax_shift shift[RELAX_SHIFTS_MOST_SHIFTS]; /* of those after it */
    double *part;                                /* [(shift * ops + op) * K + device] */
    double *price, *price_mean, *price_regret;   /* [shift * K + device] */
    double *load;
    relax_paths paths;                         /* rows as well */
    double *share, *share_mean, *share_regret; /* [op * K + device] */
    double *cost;                              /* of one operator */
    util_memory memory;
    util_stop stop;
} game;

static bool may(const game *g, int64_t at)
{
    return g->c.devices[at / g->v.K] >> (at % g->v.K) & 1;
}

/* ---- the shifts that are tried ---- */

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

static void add(game *g, relax_shift s)
{
    int64_t cells = (int64_t)g->v.n * g->v.K;
    double *part = g->part + cells * g->n;
    for (int64_t at = 0; at < cells; at++)
        part[at] =
            may(g, at) ? (double)relax_within(s, g->head[at], g->v.p->op_time_ns[at], g->tail[at], g->c.path_ns) : 0;
    g->shift[g->n++] = s;
}

static bool known(const game *g, relax_shift s)
{
    for (int32_t i = 1; i < g->n; i++)
        if (g->shift[i].head_ns == s.head_ns && g->shift[i].tail_ns == s.tail_ns)
            return true;
    return false;
}

/* Adds those that are overstepped most, if any is; how many. */
static int32_t add_overstepped(game *g, double value)
{
    relax_shift best[RELAX_SHIFTS_EACH_TIME] = {{0}};
    double by[RELAX_SHIFTS_EACH_TIME] = {0};
    for (int32_t i = 0; i < g->n_ends[0] * g->n_ends[1] && !util_stopped(&g->stop); i++) {
        relax_shift s = {g->end[0][i / g->n_ends[1]], g->end[1][i % g->n_ends[1]]};
        if (s.head_ns + s.tail_ns == 0 || s.head_ns + s.tail_ns >= g->c.path_ns || known(g, s))
            continue;
        double most = largest(g, s);
        for (int32_t j = 0; j < RELAX_SHIFTS_EACH_TIME; j++)
            if (most > by[j]) {
                double other = by[j];
                relax_shift moved = best[j];
                by[j] = most;
                best[j] = s;
                most = other;
                s = moved;
            }
    }
    int32_t before = g->n;
    for (int32_t j = 0; j < RELAX_SHIFTS_EACH_TIME && g->n < RELAX_SHIFTS_MOST_SHIFTS; j++)
        if (by[j] > RELAX_SHIFTS_WORTH * value)
            add(g, best[j]);
    return g->n - before;
}

/* ---- the game ---- */

/* What an operator takes where it has so much of each device: in the first shift, which is all of the time, its parts are its times. */
static double time_at(const game *g, const double *share, int32_t i)
{
    double sum = 0;
    for (int32_t k = 0; k < g->v.K; k++)
        sum += share[k] * g->part[(int64_t)i * g->v.K + k];
    return sum;
}

/* One operator at the prices: its regrets, its shares, and what it loads. */
static void put(game *g, int32_t i, double weight)
{
    int32_t K = g->v.K, best = MOIRAI_NONE;
    int64_t cells = (int64_t)g->v.n * K, at = (int64_t)i * K;
    double mean = 0, sum = 0, *cost = g->cost, *share = g->share + at, *regret = g->share_regret + at;
    for (int32_t k = 0; k < K; k++)
        cost[k] = (g->price[k] + g->paths.on_path[i]) * g->part[at + k];
    for (int32_t s = 1; s < g->n; s++)
        for (int32_t k = 0; k < K; k++)
            cost[k] += g->price[s * K + k] * g->part[s * cells + at + k];
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
    g->paths.time[i] = time_at(g, share, i);
    for (int32_t s = 0; s < g->n; s++)
        for (int32_t k = 0; k < K; k++)
            g->load[s * K + k] += share[k] * g->part[s * cells + at + k];
}

static double offset(const game *g, int32_t r)
{
    relax_shift s = g->shift[r / g->v.K];
    return (double)(r < g->v.K ? g->c.offset_ns[r] : s.head_ns + s.tail_ns);
}

/* Of the other side: by how much more than in the mean it would have seen where it had looked at each row; their sum. */
static double regrets(double *regret, const double *load, int32_t n, double mean)
{
    double sum = 0;
    for (int32_t r = 0; r < n; r++) {
        regret[r] = fmax(regret[r] + load[r] - mean, 0);
        sum += regret[r];
    }
    return sum;
}

static void follow(double *price, double *price_mean, const double *regret, int32_t n, double sum, double weight)
{
    for (int32_t r = 0; r < n; r++) {
        price[r] = sum > 0 ? regret[r] / sum : price[r];
        price_mean[r] += weight * price[r];
    }
}

/* The other side looks where the loads are largest. */
static void look(game *g, double weight)
{
    double mean = 0, sum = 0;
    int32_t R = g->n * g->v.K;
    for (int32_t r = 0; r < R; r++)
        mean += g->price[r] * g->load[r];
    for (int32_t a = 0; a < g->paths.n; a++)
        mean += g->paths.price[a] * g->paths.load[a];
    sum = regrets(g->price_regret, g->load, R, mean) + regrets(g->paths.regret, g->paths.load, g->paths.n, mean);
    follow(g->price, g->price_mean, g->price_regret, R, sum, weight);
    follow(g->paths.price, g->paths.mean, g->paths.regret, g->paths.n, sum, weight);
}

/* So many rounds, or as many as there is time for; the largest load at the mean of all shares is where the programme's value lies below. */
static double play(game *g, int32_t rounds)
{
    size_t R = (size_t)g->n * (size_t)g->v.K, cells = (size_t)g->v.n * (size_t)g->v.K;
    double weights = 0, most = 0;
    memset(g->price_mean, 0, sizeof *g->price_mean * R);
    memset(g->paths.mean, 0, sizeof g->paths.mean);
    memset(g->share_mean, 0, sizeof *g->share_mean * cells);
    rounds = (int32_t)fmin(rounds, RELAX_SHIFTS_MOST_WORK / (double)(cells * (size_t)g->n) + 1);
    for (int32_t round = 1; round <= rounds && (round == 1 || !util_stopped(&g->stop)); round++) {
        double weight = (double)round * round;
        for (size_t r = 0; r < R; r++)
            g->load[r] = offset(g, (int32_t)r);
        relax_paths_price(&g->paths, g->v.n);
        for (int32_t i = 0; i < g->v.n; i++)
            put(g, i, weight);
        relax_paths_load(&g->paths);
        look(g, weight);
        weights += weight;
    }
    for (size_t at = 0; at < cells; at++)
        g->share_mean[at] /= weights;
    for (size_t r = 0; r < R; r++) {
        g->price_mean[r] /= weights;
        g->load[r] = offset(g, (int32_t)r);
    }
    for (size_t at = 0; at < cells * (size_t)g->n; at++)
        g->load[at / cells * (size_t)g->v.K + at % (size_t)g->v.K] += g->share_mean[at % cells] * g->part[at];
    for (size_t r = 0; r < R; r++)
        most = fmax(most, g->load[r]);
    for (int32_t i = 0; i < g->v.n; i++)
        g->paths.time[i] = time_at(g, g->share_mean + (int64_t)i * g->v.K, i);
    relax_paths_load(&g->paths);
    for (int32_t a = 0; a < g->paths.n; a++) {
        g->paths.mean[a] /= weights;
        most = fmax(most, g->paths.load[a]);
    }
    return most;
}

/* ---- from a problem to a leaf ---- */

static int open_game(game *g, const moirai_problem *p)
{
    size_t cells = (size_t)p->n_ops * (size_t)p->n_devices, R = (size_t)RELAX_SHIFTS_MOST_SHIFTS * (size_t)p->n_devices;
    int rc = relax_view_open(&g->v, p, 100);
    rc = rc ? rc : relax_case_open(&g->c, &g->v, NULL, 0, false, &g->stop);
    UTIL_TAKE(&g->memory, g->head, cells);
    UTIL_TAKE(&g->memory, g->tail, cells);
    UTIL_TAKE(&g->memory, g->part, cells * RELAX_SHIFTS_MOST_SHIFTS);
    UTIL_TAKE(&g->memory, g->price, R);
    UTIL_TAKE(&g->memory, g->price_mean, R);
    UTIL_TAKE(&g->memory, g->price_regret, R);
    UTIL_TAKE(&g->memory, g->load, R);
    UTIL_TAKE(&g->memory, g->share, cells);
    UTIL_TAKE(&g->memory, g->share_mean, cells);
    UTIL_TAKE(&g->memory, g->share_regret, cells);
    UTIL_TAKE(&g->memory, g->cost, (size_t)p->n_devices);
    if (rc || g->memory.failed)
        return rc ? rc : MOIRAI_EFAIL;
    schedule_paths paths = {.p = p, .devices = g->c.devices, .stop = &g->stop};
    schedule_heads(g->head, &paths);
    schedule_tails(g->tail, &paths);
    for (int32_t k = 0; k < p->n_devices; k++)
        g->price[k] = 1.0 / p->n_devices;
    rc = relax_paths_new(&g->paths, p);
    rc = rc ? rc : find_ends(g, 0);
    return rc ? rc : find_ends(g, 1);
}

static void close_game(game *g)
{
    relax_paths_free(&g->paths);
    util_release(&g->memory);
    relax_case_close(&g->c);
    relax_view_close(&g->v);
}

/* Shifts that nobody looks at leave the game: where transfers come in, each of them is a price for each device to be found. */
static void drop_idle(game *g)
{
    int32_t K = g->v.K, n = 1;
    for (int32_t s = 1; s < g->n; s++) {
        double sum = 0;
        for (int32_t k = 0; k < K; k++)
            sum += g->price_mean[s * K + k];
        if (sum < RELAX_SHIFTS_IDLE)
            continue;
        g->shift[n] = g->shift[s];
        memmove(g->price_mean + n++ * K, g->price_mean + s * K, sizeof *g->price_mean * (size_t)K);
    }
    g->n = n;
    relax_paths_keep(&g->paths, RELAX_SHIFTS_IDLE);
}

/* The mean prices as whole numbers: devices, those of shifts, paths. */
static int write_leaf(relax_leaf *leaf, const game *g)
{
    int32_t K = g->v.K, R = schedule_resources(g->v.p);
    leaf->unit = 1;
    relax_leaf_take_rows(leaf, g->n - 1, g->shift + 1, g->paths.n, g->paths.off, g->paths.op);
    UTIL_TAKE(&leaf->memory, leaf->price, (size_t)relax_leaf_prices(leaf, g->v.p));
    if (leaf->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t r = 0; r < g->n * K; r++)
        leaf->price[r < K ? r : R - K + r] = (int64_t)ldexp(g->price_mean[r], SCALE_BITS);
    for (int32_t a = 0; a < g->paths.n; a++)
        leaf->price[R + (g->n - 1) * K + a] = (int64_t)ldexp(g->paths.mean[a], SCALE_BITS);
    return 0;
}

/* *else_ns: what loads or paths prove without shifts, about. */
static int find_leaf(relax_leaf *leaf, double *else_ns, const moirai_problem *p, const util_stop *stop)
{
    game g = {.stop = *stop};
    int rc = open_game(&g, p);
    if (!rc) {
        add(&g, (relax_shift){0}); /* all of the time */
        for (int32_t turn = 0; turn < RELAX_SHIFTS_TURNS && !rc && !util_stopped(stop); turn++) {
            double value = play(&g, RELAX_SHIFTS_ROUNDS);
            *else_ns = turn == 0 ? fmax(value, (double)g.c.path_ns) : *else_ns;
            int32_t paths = g.paths.n;
            rc = relax_paths_add(&g.paths, p, value);
            if (add_overstepped(&g, value) == 0 && g.paths.n == paths)
                break;
        }
        play(&g, RELAX_SHIFTS_LAST_ROUNDS);
        drop_idle(&g);
        rc = rc ? rc : write_leaf(leaf, &g);
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
