/* Memory that binds.
 *
 * Bound. Put a price u(k) >= 0 on every byte of device k. A plan that fits pays at most sum of u(k) * capacity(k), so
 *     makespan >= min over all plans of (makespan + sum of u(k) * bytes on k) - sum of u(k) * capacity(k)
 * (weak duality), and the minimum splits along the chain: cuts pay for their time and bytes, and a block between two devices
 * costs at least V = min over its plans of (length + price of its bytes). V is bounded from below by the larger of
 *   - the pair's proven length plus every operator's bytes where they are cheapest, and
 *   - the rate form of the prices in time (master.c), valid for lengths up to some T; beyond it the length alone is T.
 * The best prices are found by a master (Dantzig and Wolfe): every path met so far is a column with its time and its bytes,
 * the cheapest mix of paths that fits on average gives the next prices, and these the next path. A handful of rounds per
 * device that is full.
 *
 * Plans. The same, with plans in place of bounds: a path is the devices of the cuts and one plan per block, among options that
 * the annealing finds for each pair at the prices met. The final mix says which part of the layers goes which way: the chain is
 * cut into as many stretches as the mix has paths, each as long as its part, and the blocks where two stretches meet take
 * the pair of devices that joins them. That is wrong by up to a layer per stretch; so windows of the chain are then taken
 * anew at prices drawn around the mix's, and kept where time plus a fine on overflowing bytes does not rise. */
#include "place/moirai/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/lp.h"
#include "util/util.h"

#define OPTIONS 16
#define PATH_REFINEMENTS 20 /* how often the bound's path may move to unpriced pairs within one round */
#define STRETCH 2.0        /* with the first plan's length, sets how long block times are looked at */
#define STEPS 160
#define POLISH_STEPS 20000

typedef struct option {
    moirai_block_plan plan;
    int64_t bytes[MOIRAI_MAX_DEVICES];
} option;

/* A pair under prices on bytes. */
typedef struct view {
    moirai_pricer *pricer;
    moirai_master **master;  /* per sending; rate form */
    int64_t **price;         /* per sending: the last prices in time, on the grid below; NULL: none yet */
    moirai_grid *grid;
    int64_t stamp;           /* of the byte prices that `value` is for */
    bool solved;             /* `value` comes from a solved master, not from older prices */
    int64_t value;           /* lower bound of V, in units */
    double use[MOIRAI_MAX_DEVICES]; /* bytes on each device behind `value` */
    double mix[MOIRAI_MAX_DEVICES]; /* and in the mix last solved for */
    option option[OPTIONS];
    int32_t n_options;
    int64_t own_length_ns;   /* of the pair's own plan when own_bytes was taken */
    int64_t own_bytes[MOIRAI_MAX_DEVICES];
    int64_t searched;        /* stamp of the prices at which options were last searched for */
} view;

struct moirai_memory_prices {
    moirai_chain *c;
    int32_t K;
    view *view;               /* parallel to c->pair */
    int64_t stamp;
    int64_t price[MOIRAI_MAX_DEVICES];    /* per byte, in units */
    double best_worth[MOIRAI_MAX_DEVICES]; /* of the whole capacity, in ns: price * capacity at the best bound */
    int64_t best_ns;
    int32_t *device;          /* of the present path */
    int32_t *plan_device;     /* of the best plan */
    const moirai_block_plan **plan;
    int8_t *from;             /* scratch of the dynamic programme */
    int64_t *option_cost;     /* per pair, at the present prices */
    int8_t *option_pick;
    int8_t *picked;           /* option per block of the present path */
};

static void free_view(view *v, int32_t sendings)
{
    for (int32_t i = 0; i < sendings; i++) {
        if (v->master)
            moirai_master_free(v->master[i]);
        if (v->price)
            free(v->price[i]);
    }
    moirai_pricer_free(v->pricer);
    free(v->master);
    free(v->price);
    free(v->grid);
    for (int32_t i = 0; i < v->n_options; i++)
        moirai_block_plan_free(&v->option[i].plan);
}

void moirai_memory_free(moirai_memory_prices *m)
{
    if (!m)
        return;
    for (int32_t i = 0; m->view && i < m->c->s->n_classes * m->K * m->K; i++)
        free_view(&m->view[i], m->c->pair[i].n_sendings);
    free(m->view);
    free(m->device);
    free(m->plan_device);
    free(m->plan);
    free(m->from);
    free(m->option_cost);
    free(m->option_pick);
    free(m->picked);
    free(m);
}

int moirai_memory_new(moirai_memory_prices **out, moirai_chain *c)
{
    *out = NULL;
    moirai_memory_prices *m = moirai_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    size_t K = (size_t)c->K, blocks = (size_t)c->s->n_blocks;
    m->c = c;
    m->K = c->K;
    m->stamp = 1;
    m->view = moirai_alloc((size_t)c->s->n_classes * K * K, sizeof *m->view);
    m->device = moirai_alloc(blocks, sizeof(int32_t));
    m->plan_device = moirai_alloc(blocks, sizeof(int32_t));
    m->plan = moirai_alloc(blocks, sizeof *m->plan);
    m->from = moirai_alloc(blocks * K, 1);
    m->option_cost = moirai_alloc((size_t)c->s->n_classes * K * K, sizeof(int64_t));
    m->option_pick = moirai_alloc((size_t)c->s->n_classes * K * K, 1);
    m->picked = moirai_alloc(blocks, 1);
    if (!m->view || !m->device || !m->plan_device || !m->plan || !m->from || !m->option_cost || !m->option_pick || !m->picked) {
        moirai_memory_free(m);
        return MOIRAI_EFAIL;
    }
    *out = m;
    return MOIRAI_OK;
}

static view *view_of(const moirai_memory_prices *m, int32_t class_, int32_t a, int32_t b)
{
    return &m->view[((int64_t)class_ * m->K + a) * m->K + b];
}

/* ---- the bound ---- */

/* Every interior operator's bytes where they are cheapest. */
static int64_t cheapest_bytes(const moirai_memory_prices *m, const moirai_block *b, double *use)
{
    const moirai_problem *q = &b->problem;
    int64_t sum = 0;
    for (int32_t i = b->first; i < b->first + b->n_interior; i++) {
        int32_t best = __builtin_ctzll(q->op_devices[i]);
        for (int32_t k = 0; k < m->K; k++)
            if ((q->op_devices[i] >> k & 1) && m->price[k] < m->price[best])
                best = k;
        sum += m->price[best] * q->op_memory_bytes[i];
        use[best] += (double)q->op_memory_bytes[i];
    }
    return sum;
}

static void mix_bytes(const moirai_master *m, const moirai_block *b, double *use)
{
    moirai_kept_pattern *kept = moirai_alloc((size_t)moirai_master_columns(m), sizeof *kept);
    int32_t n = kept ? moirai_master_kept(m, kept) : 0;
    memset(use, 0, sizeof *use * MOIRAI_MAX_DEVICES);
    for (int32_t h = 0; h < n; h++) {
        int32_t c = b->kind_component[kept[h].kind];
        for (int32_t i = b->component_off[c]; i < b->component_off[c + 1]; i++)
            use[kept[h].device[i - b->component_off[c]]] +=
                kept[h].count * (double)b->problem.op_memory_bytes[b->component_op[i]];
    }
    free(kept);
}

/* The longest length that is looked at; fixed when the view is opened. */
static int64_t longest_ns(const moirai_pair *x)
{
    return (int64_t)(STRETCH * (double)x->path_ns) + (int64_t)(2.0 * (double)x->first_ns);
}

static int open_view(view *v, const moirai_pair *x, int32_t a, int32_t b)
{
    size_t n = (size_t)x->n_sendings;
    if (v->master)
        return MOIRAI_OK;
    v->master = moirai_alloc(n, sizeof *v->master);
    v->price = moirai_alloc(n, sizeof *v->price);
    v->grid = moirai_alloc(n, sizeof *v->grid);
    if (!v->master || !v->price || !v->grid)
        return MOIRAI_EFAIL;
    int result = moirai_pricer_new(&v->pricer, &x->block, STEPS + 2);
    for (size_t i = 0; !result && i < n; i++)
        result = moirai_master_new(&v->master[i], &x->block, a, b, &x->sending[i],
                                   longest_ns(x), STEPS);
    return result;
}

/* Part of the length may be paid for by what is proven of it: for every part s,
 * V >= s * (proven length) + the rate form with its prices in time scaled by 1 - s. The best of a few s. */
static int64_t price_with_length(moirai_memory_prices *m, view *v, const moirai_pair *x, int32_t sending)
{
    static const double part[] = {0, 0.25, 0.5, 0.75};
    const moirai_grid *grid = &v->grid[sending];
    size_t cells = (size_t)moirai_resource_count(&x->block.problem) * (size_t)grid->n_buckets;
    int64_t best = 0, *scaled = moirai_alloc(cells, sizeof *scaled);
    for (size_t i = 0; scaled && i < sizeof part / sizeof *part; i++) {
        int64_t paid = (int64_t)(part[i] * (double)MOIRAI_PRICE_UNIT);
        for (size_t c = 0; c < cells; c++)
            scaled[c] = (int64_t)((__int128)v->price[sending][c] * (MOIRAI_PRICE_UNIT - paid) / MOIRAI_PRICE_UNIT);
        int64_t value = moirai_master_reprice(v->master[sending], v->pricer, grid, scaled, m->price);
        if (value < MOIRAI_PRICE_NONE)
            value += paid * x->lower_ns;
        best = MOIRAI_MAX(best, value);
    }
    free(scaled);
    return best;
}

/* Solve the rate form of every sending; the least of them, or the longest length alone, bounds V. */
static int solve_view(moirai_memory_prices *m, view *v, moirai_pair *x, int32_t a, int32_t b, const moirai_memory_task *job)
{
    int result = open_view(v, x, a, b);
    int64_t longest = longest_ns(x), least = INT64_MAX;
    double use[MOIRAI_MAX_DEVICES] = {0}, cheap[MOIRAI_MAX_DEVICES] = {0};
    int64_t beyond = longest * MOIRAI_PRICE_UNIT + cheapest_bytes(m, &x->block, cheap);
    for (int32_t i = 0; !result && i < x->n_sendings; i++) {
        moirai_master_task task = {.pricer = v->pricer, .form = MOIRAI_PRICE_RATE, .length_ns = longest, .buckets = job->buckets,
                                   .memory_price = m->price, .max_rounds = 40, .stop = job->stop};
        moirai_master_result found;
        result = moirai_master_solve(&found, v->master[i], &task);
        if (result)
            break;
        const moirai_grid *grid = moirai_master_grid(v->master[i]);
        size_t cells = (size_t)moirai_resource_count(&x->block.problem) * (size_t)grid->n_buckets;
        int64_t *price = moirai_resize(v->price[i], cells, sizeof *price);
        if (!price)
            return MOIRAI_EFAIL;
        memcpy(price, found.price, cells * sizeof *price);
        v->price[i] = price;
        v->grid[i] = *grid;
        int64_t value = MOIRAI_MAX(found.value, price_with_length(m, v, x, i));
        if (value < least) {
            least = value;
            mix_bytes(v->master[i], &x->block, use);
        }
    }
    if (result)
        return result;
    least = MOIRAI_MIN(least, beyond);
    memcpy(v->mix, use, sizeof use);
    if (least > v->value) {
        v->value = least;
        memcpy(v->use, use, sizeof use);
    }
    v->solved = true;
    return MOIRAI_OK;
}

/* What is known of V at the present prices without solving anything: the prices in time found at earlier ones still hold. */
static void quick_value(moirai_memory_prices *m, view *v, const moirai_pair *x)
{
    if (v->stamp == m->stamp)
        return;
    v->stamp = m->stamp;
    v->solved = x->block.n_interior == 0;
    memset(v->use, 0, sizeof v->use);
    int64_t bytes = cheapest_bytes(m, &x->block, v->use), least = longest_ns(x) * MOIRAI_PRICE_UNIT + bytes;
    v->value = x->lower_ns * MOIRAI_PRICE_UNIT + bytes;
    if (!v->master)
        return;
    for (int32_t i = 0; i < x->n_sendings; i++)
        least = MOIRAI_MIN(least, price_with_length(m, v, x, i));
    if (least > v->value) {
        v->value = least;
        memcpy(v->use, v->mix, sizeof v->use);
    }
}

static int64_t cut_cost(const moirai_memory_prices *m, int32_t cut, int32_t k, const int64_t *price)
{
    const moirai_problem *p = m->c->p;
    return moirai_op_ns(p, cut, k) * MOIRAI_PRICE_UNIT + price[k] * p->op_memory_bytes[cut];
}

/* The cheapest path by the views' values, in units; devices of the cuts go to m->device. */
static int64_t cheapest_path(moirai_memory_prices *m)
{
    const moirai_chain *c = m->c;
    int64_t cost[MOIRAI_MAX_DEVICES] = {0}, next[MOIRAI_MAX_DEVICES];
    for (int32_t k = 1; k < m->K; k++)
        cost[k] = INT64_MAX;
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        uint64_t in = moirai_chain_entry_mask(c, i), out = moirai_chain_exit_mask(c, i);
        int32_t cut = moirai_block_exit(c->s, i);
        for (int32_t l = 0; l < m->K; l++) {
            next[l] = INT64_MAX;
            for (int32_t k = 0; k < m->K && (out >> l & 1); k++) {
                if (!(in >> k & 1) || cost[k] == INT64_MAX)
                    continue;
                view *v = view_of(m, c->s->block_class[i], k, l);
                quick_value(m, v, moirai_chain_pair(c, c->s->block_class[i], k, l));
                if (cost[k] + v->value < next[l]) {
                    next[l] = cost[k] + v->value;
                    m->from[(size_t)i * (size_t)m->K + (size_t)l] = (int8_t)k;
                }
            }
            if (next[l] != INT64_MAX && cut >= 0)
                next[l] += cut_cost(m, cut, l, m->price);
        }
        memcpy(cost, next, sizeof cost);
    }
    int32_t k = 0;
    for (int32_t i = c->s->n_blocks - 1; i > 0; i--) {
        k = m->from[(size_t)i * (size_t)m->K + (size_t)k];
        m->device[i - 1] = k;
    }
    return cost[0];
}

/* Solve the pairs of the path that are not solved at these prices; true in *any if there was one. */
static int solve_path(moirai_memory_prices *m, const moirai_memory_task *job, bool *any)
{
    const moirai_structure *s = m->c->s;
    *any = false;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int32_t a = i > 0 ? m->device[i - 1] : 0, b = i < s->n_cuts ? m->device[i] : 0;
        view *v = view_of(m, s->block_class[i], a, b);
        if (v->solved)
            continue;
        *any = true;
        int result = solve_view(m, v, moirai_chain_pair(m->c, s->block_class[i], a, b), a, b, job);
        if (result)
            return result;
        v->solved = true;
    }
    return MOIRAI_OK;
}

static void path_bytes(const moirai_memory_prices *m, double *use)
{
    const moirai_chain *c = m->c;
    memset(use, 0, sizeof *use * MOIRAI_MAX_DEVICES);
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        int32_t a = i > 0 ? m->device[i - 1] : 0, b = i < c->s->n_cuts ? m->device[i] : 0;
        const view *v = view_of(m, c->s->block_class[i], a, b);
        for (int32_t k = 0; k < m->K; k++)
            use[k] += v->use[k];
        if (i < c->s->n_cuts)
            use[b] += (double)c->p->op_memory_bytes[c->s->cut[i]];
    }
}

/* The bound that the present prices give, in whole ns rounded down. */
static int64_t lagrangian_ns(const moirai_memory_prices *m, int64_t path_cost)
{
    __int128 value = path_cost;
    for (int32_t k = 0; k < m->K; k++)
        value -= (__int128)m->price[k] * m->c->p->device_memory_bytes[k];
    if (value <= 0)
        return 0;
    return (int64_t)(value / MOIRAI_PRICE_UNIT);
}

static void set_worth(moirai_memory_prices *m, const double *worth)
{
    m->stamp++;
    for (int32_t k = 0; k < m->K; k++) {
        double capacity = (double)MOIRAI_MAX(m->c->p->device_memory_bytes[k], 1);
        double price = worth[k] / capacity * (double)MOIRAI_PRICE_UNIT;
        /* All devices full are worth less than half of what the pricing takes for "does not fit". */
        m->price[k] = (int64_t)fmin(fmax(price, 0), 1e18 / fmax(m->K, 4) / fmax(capacity, 1e3));
    }
}

/* ---- the master over paths ---- */

typedef struct path {
    double time_ns, use[MOIRAI_MAX_DEVICES]; /* bytes */
    int8_t *device;  /* of the cuts; plans only */
    int8_t *pick;    /* option of each block */
} path;

typedef struct mixer {
    path *path;
    size_t n, capacity;
    double *part;    /* of each path in the last mix */
    size_t part_capacity;
} mixer;

static void free_mixer(mixer *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->path[i].device);
        free(x->path[i].pick);
    }
    free(x->path);
    free(x->part);
}

/* The fastest mix of paths whose mean bytes fit into `room` of every device, and the worth of the devices' memory in it. */
static int mix(const moirai_memory_prices *m, mixer *x, double room, double dear_ns, double *worth)
{
    double lower[MOIRAI_MAX_DEVICES + 1], upper[MOIRAI_MAX_DEVICES + 1], dual[MOIRAI_MAX_DEVICES + 1], value[MOIRAI_MAX_DEVICES + 1];
    int32_t row[MOIRAI_MAX_DEVICES + 1];
    for (int32_t k = 0; k <= m->K; k++) {
        row[k] = k;
        lower[k] = k < m->K ? -HUGE_VAL : 1;
        upper[k] = k < m->K ? room : 1;
    }
    moirai_lp *lp;
    int result = moirai_grow(&x->part, &x->part_capacity, x->n + (size_t)m->K, sizeof *x->part);
    if (!result)
        result = moirai_lp_new(&lp, m->K + 1, lower, upper);
    if (result)
        return result;
    for (size_t i = 0; i < x->n && !result; i++) {
        for (int32_t k = 0; k < m->K; k++)
            value[k] = x->path[i].use[k] / (double)MOIRAI_MAX(m->c->p->device_memory_bytes[k], 1);
        value[m->K] = 1;
        result = moirai_lp_add_column(lp, x->path[i].time_ns, m->K + 1, row, value);
    }
    for (int32_t k = 0; k < m->K && !result; k++) { /* overflow, at a price that no good mix pays */
        double out = -1;
        result = moirai_lp_add_column(lp, dear_ns, 1, &row[k], &out);
    }
    double objective;
    if (!result)
        result = moirai_lp_solve(lp, &objective, dual, x->part);
    for (int32_t k = 0; k < m->K && !result; k++)
        worth[k] = fmax(-dual[k], 0);
    moirai_lp_free(lp);
    return result;
}

static int add_path(mixer *x, const path *p)
{
    if (moirai_grow(&x->path, &x->capacity, x->n + 1, sizeof *x->path))
        return MOIRAI_EFAIL;
    x->path[x->n++] = *p;
    return MOIRAI_OK;
}

/* The cheapest path at these worths, its pairs solved; the bound that it gives. */
static int price_path(moirai_memory_prices *m, const double *worth, const moirai_memory_task *job, int64_t *bound, path *out)
{
    set_worth(m, worth);
    int64_t cost = cheapest_path(m);
    bool any = true;
    int result = MOIRAI_OK;
    for (int32_t i = 0; i < PATH_REFINEMENTS && any && !result; i++) {
        result = solve_path(m, job, &any);
        if (any && !result)
            cost = cheapest_path(m);
    }
    *bound = lagrangian_ns(m, cost);
    *out = (path){0};
    path_bytes(m, out->use);
    out->time_ns = (double)cost / (double)MOIRAI_PRICE_UNIT;
    for (int32_t k = 0; k < m->K; k++)
        out->time_ns -= (double)m->price[k] / (double)MOIRAI_PRICE_UNIT * out->use[k];
    return result;
}

/* Lengths in units must stay well below what the pricing takes for "does not fit". */
static bool units_fit(const moirai_memory_prices *m, const moirai_memory_task *job)
{
    const int64_t most = INT64_C(1) << 35;
    bool good = job->upper_ns <= most;
    for (int32_t i = 0; i < m->c->s->n_classes * m->K * m->K && good; i++)
        good = longest_ns(&m->c->pair[i]) <= most && m->c->pair[i].plan.length_ns <= most;
    return good;
}

int moirai_memory_bound(int64_t *lower_ns, moirai_memory_prices *m, const moirai_memory_task *job)
{
    double worth[MOIRAI_MAX_DEVICES] = {0}, next[MOIRAI_MAX_DEVICES];
    mixer x = {0};
    int result = MOIRAI_OK;
    memcpy(worth, m->best_worth, sizeof worth);
    *lower_ns = m->best_ns;
    if (!moirai_lp_available() || !units_fit(m, job))
        return MOIRAI_OK;
    for (int32_t round = 0; round < job->rounds && !result && !moirai_stopped(&job->stop); round++) {
        int64_t bound;
        path found;
        result = price_path(m, worth, job, &bound, &found);
        if (result)
            break;
        if (bound > m->best_ns) {
            m->best_ns = bound;
            memcpy(m->best_worth, worth, sizeof worth);
        }
        result = add_path(&x, &found);
        if (!result)
            result = mix(m, &x, 1, 4 * (double)job->upper_ns, next);
        /* Between the master's prices and the best so far; the master's own where that would stand still. */
        double change = 0, drift = 0;
        for (int32_t k = 0; k < m->K && !result; k++) {
            double to = 0.5 * next[k] + 0.5 * m->best_worth[k];
            change = fmax(change, fabs(to - worth[k]));
            drift = fmax(drift, fabs(next[k] - worth[k]));
            worth[k] = round < 2 ? next[k] : to;
        }
        if (drift < 1e-4 * (double)job->upper_ns)
            break;
        if (change < 1e-3 * (double)job->upper_ns)
            memcpy(worth, next, sizeof worth);
    }
    *lower_ns = m->best_ns;
    free_mixer(&x);
    return result;
}

/* ---- plans ---- */

static void option_bytes(const moirai_block *b, option *o)
{
    memset(o->bytes, 0, sizeof o->bytes);
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        o->bytes[o->plan.device[i]] += b->problem.op_memory_bytes[i];
}

static bool same_option(const moirai_memory_prices *m, const option *x, const option *y)
{
    return x->plan.length_ns == y->plan.length_ns && !memcmp(x->bytes, y->bytes, sizeof *x->bytes * (size_t)m->K);
}

/* A plan of the pair at the present prices, if it is a new one. */
static int add_option(moirai_memory_prices *m, view *v, moirai_pair *x, int32_t a, int32_t b, const moirai_memory_search *job)
{
    moirai_sim *sim;
    if (v->n_options == OPTIONS)
        return MOIRAI_OK;
    if (moirai_sim_new(&sim, &x->block.problem))
        return MOIRAI_EFAIL;
    moirai_kept_pattern *hints = NULL;
    int32_t n_hints = 0;
    if (v->master && v->master[0] && (hints = moirai_alloc((size_t)moirai_master_columns(v->master[0]), sizeof *hints)))
        n_hints = moirai_master_kept(v->master[0], hints);
    moirai_search_task task = {.entry_device = a, .exit_device = b, .memory_price = m->price, .evaluations = job->evaluations,
                               .seed = job->seed + (uint64_t)v->n_options, .stop = job->stop, .start_device = x->plan.device,
                               .pattern = hints, .n_patterns = n_hints};
    option *o = &v->option[v->n_options];
    *o = (option){0};
    int result = moirai_block_search(&o->plan, &x->block, sim, &task);
    if (!result) {
        bool known = false;
        option_bytes(&x->block, o);
        for (int32_t j = 0; j < v->n_options; j++)
            known |= same_option(m, o, &v->option[j]);
        if (known)
            moirai_block_plan_free(&o->plan);
        else
            v->n_options++;
    }
    free(hints);
    moirai_sim_free(sim);
    return result;
}

static int64_t priced(const moirai_memory_prices *m, int64_t length_ns, const int64_t *bytes, const int64_t *price)
{
    int64_t cost = length_ns * MOIRAI_PRICE_UNIT;
    for (int32_t k = 0; k < m->K; k++)
        cost += price[k] * bytes[k];
    return cost;
}

/* Length and bytes of an option; -1 is the pair's own plan. */
static const int64_t *option_at(const moirai_memory_prices *m, int64_t pair, int32_t pick, int64_t *length_ns)
{
    view *v = &m->view[pair];
    const moirai_pair *x = &m->c->pair[pair];
    if (pick >= 0) {
        *length_ns = v->option[pick].plan.length_ns;
        return v->option[pick].bytes;
    }
    if (v->own_length_ns != x->plan.length_ns) {
        option own = {.plan = x->plan};
        option_bytes(&x->block, &own);
        memcpy(v->own_bytes, own.bytes, sizeof v->own_bytes);
        v->own_length_ns = x->plan.length_ns;
    }
    *length_ns = x->plan.length_ns;
    return v->own_bytes;
}

static int64_t best_option(const moirai_memory_prices *m, int64_t pair, const int64_t *price, int8_t *pick)
{
    int64_t best = INT64_MAX;
    if (!m->c->pair[pair].open || !m->c->pair[pair].plan.device)
        return best;
    for (int32_t i = -1; i < m->view[pair].n_options; i++) {
        int64_t length, cost;
        const int64_t *bytes = option_at(m, pair, i, &length);
        cost = priced(m, length, bytes, price);
        if (cost < best) {
            best = cost;
            *pick = (int8_t)i;
        }
    }
    return best;
}

/* The cheapest path by plans at the present prices, into m->device and m->picked. False where there is none. */
static bool planned_path(moirai_memory_prices *m)
{
    const moirai_chain *c = m->c;
    const moirai_structure *s = c->s;
    int64_t cost[MOIRAI_MAX_DEVICES] = {0}, next[MOIRAI_MAX_DEVICES];
    size_t K = (size_t)m->K;
    for (int32_t k = 1; k < m->K; k++)
        cost[k] = INT64_MAX;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        uint64_t in = moirai_chain_entry_mask(c, i), out = moirai_chain_exit_mask(c, i);
        int32_t cut = moirai_block_exit(s, i);
        for (int32_t l = 0; l < m->K; l++) {
            next[l] = INT64_MAX;
            for (int32_t k = 0; k < m->K && (out >> l & 1); k++) {
                int64_t pair = ((int64_t)s->block_class[i] * m->K + k) * m->K + l;
                if (!(in >> k & 1) || cost[k] == INT64_MAX || m->option_cost[pair] == INT64_MAX)
                    continue;
                if (cost[k] + m->option_cost[pair] < next[l]) {
                    next[l] = cost[k] + m->option_cost[pair];
                    m->from[(size_t)i * K + (size_t)l] = (int8_t)k;
                }
            }
            if (next[l] != INT64_MAX && cut >= 0)
                next[l] += cut_cost(m, cut, l, m->price);
        }
        memcpy(cost, next, sizeof cost);
    }
    if (cost[0] == INT64_MAX)
        return false;
    for (int32_t i = s->n_blocks - 1, l = 0; i >= 0; i--) {
        int32_t k = m->from[(size_t)i * K + (size_t)l];
        m->picked[i] = m->option_pick[((int64_t)s->block_class[i] * m->K + k) * m->K + l];
        if (i > 0)
            m->device[i - 1] = k;
        l = k;
    }
    return true;
}

static void price_options(moirai_memory_prices *m)
{
    int32_t pairs = m->c->s->n_classes * m->K * m->K;
    for (int32_t i = 0; i < pairs; i++)
        m->option_cost[i] = best_option(m, i, m->price, &m->option_pick[i]);
}

static int64_t pair_number(const moirai_memory_prices *m, int32_t block)
{
    const moirai_structure *s = m->c->s;
    int32_t a = block > 0 ? m->device[block - 1] : 0, b = block < s->n_cuts ? m->device[block] : 0;
    return ((int64_t)s->block_class[block] * m->K + a) * m->K + b;
}

/* Time and bytes of blocks first .. last of the path at hand, with the cuts that end them. */
static path measure(const moirai_memory_prices *m, int32_t first, int32_t last)
{
    const moirai_chain *c = m->c;
    path out = {0};
    for (int32_t i = first; i <= last; i++) {
        int64_t length;
        const int64_t *bytes = option_at(m, pair_number(m, i), m->picked[i], &length);
        out.time_ns += (double)length;
        for (int32_t k = 0; k < m->K; k++)
            out.use[k] += (double)bytes[k];
        if (i < c->s->n_cuts) {
            out.time_ns += (double)moirai_op_ns(c->p, c->s->cut[i], m->device[i]);
            out.use[m->device[i]] += (double)c->p->op_memory_bytes[c->s->cut[i]];
        }
    }
    return out;
}

static path measure_path(const moirai_memory_prices *m)
{
    return measure(m, 0, m->c->s->n_blocks - 1);
}

/* New options for the pairs of the path at hand. */
static int enrich_path(moirai_memory_prices *m, const moirai_memory_search *job)
{
    const moirai_structure *s = m->c->s;
    int result = MOIRAI_OK;
    for (int32_t i = 0; i < s->n_blocks && !result; i++) {
        int32_t a = i > 0 ? m->device[i - 1] : 0, b = i < s->n_cuts ? m->device[i] : 0;
        view *v = view_of(m, s->block_class[i], a, b);
        moirai_pair *x = moirai_chain_pair(m->c, s->block_class[i], a, b);
        if (v->searched == m->stamp || x->block.n_interior == 0)
            continue;
        v->searched = m->stamp;
        result = add_option(m, v, x, a, b, job);
    }
    return result;
}

/* A column of the plans' master at these worths. */
static int plan_column(moirai_memory_prices *m, mixer *x, const double *worth, const moirai_memory_search *job, bool enrich)
{
    size_t cuts = (size_t)m->c->s->n_cuts, blocks = (size_t)m->c->s->n_blocks;
    set_worth(m, worth);
    price_options(m);
    if (!planned_path(m))
        return moirai_error(MOIRAI_EINFEASIBLE, "no path of block plans");
    int result = enrich ? enrich_path(m, job) : MOIRAI_OK;
    if (result)
        return result;
    price_options(m);
    planned_path(m);
    path found = measure_path(m);
    found.device = moirai_alloc(cuts, 1);
    found.pick = moirai_alloc(blocks, 1);
    if (!found.device || !found.pick || add_path(x, &found)) {
        free(found.device);
        free(found.pick);
        return MOIRAI_EFAIL;
    }
    for (size_t i = 0; i < cuts; i++)
        found.device[i] = (int8_t)m->device[i];
    memcpy(found.pick, m->picked, blocks);
    return MOIRAI_OK;
}

/* The mix as stretches of the chain, paths in the order of their number; where two meet, the joining pair's cheapest option. */
static void lay_out(moirai_memory_prices *m, const mixer *x)
{
    const moirai_structure *s = m->c->s;
    double total = 0, reached;
    size_t at = 0;
    for (size_t i = 0; i < x->n; i++)
        total += x->part[i];
    while (at + 1 < x->n && x->part[at] < 1e-9)
        at++;
    reached = x->part[at];
    const path *before = &x->path[at];
    for (int32_t i = 0; i < s->n_blocks; i++) {
        while ((double)i / s->n_blocks * total >= reached && at + 1 < x->n)
            reached += x->part[++at];
        const path *now = &x->path[at];
        if (i < s->n_cuts)
            m->device[i] = now->device[i];
        int32_t a = i > 0 ? m->device[i - 1] : 0, b = i < s->n_cuts ? m->device[i] : 0;
        bool same = now == before || (i > 0 && now->device[i - 1] == a);
        m->picked[i] = same ? now->pick[i] : m->option_pick[((int64_t)s->block_class[i] * m->K + a) * m->K + b];
        before = now;
    }
}

static void keep_path(moirai_memory_prices *m)
{
    const moirai_structure *s = m->c->s;
    memcpy(m->plan_device, m->device, sizeof *m->device * (size_t)s->n_cuts);
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int32_t a = i > 0 ? m->device[i - 1] : 0, b = i < s->n_cuts ? m->device[i] : 0;
        const view *v = view_of(m, s->block_class[i], a, b);
        m->plan[i] = m->picked[i] < 0 ? NULL : &v->option[m->picked[i]].plan;
    }
}

/* ---- polishing: windows of the path are taken anew at other prices ---- */

#define WINDOW 24 /* blocks, at most */

/* The cheapest way through blocks first .. last at `price`, ends fixed; into m->device and m->picked. */
static void redo_window(moirai_memory_prices *m, int32_t first, int32_t last, const int64_t *price)
{
    const moirai_chain *c = m->c;
    const moirai_structure *s = c->s;
    int64_t cost[MOIRAI_MAX_DEVICES], next[MOIRAI_MAX_DEVICES];
    size_t K = (size_t)m->K;
    int32_t entry = first > 0 ? m->device[first - 1] : 0, exit = last < s->n_cuts ? m->device[last] : 0;
    for (int32_t k = 0; k < m->K; k++)
        cost[k] = k == entry ? 0 : INT64_MAX;
    for (int32_t i = first; i <= last; i++) {
        uint64_t out = i == last ? UINT64_C(1) << exit : moirai_chain_exit_mask(c, i);
        for (int32_t l = 0; l < m->K; l++) {
            next[l] = INT64_MAX;
            for (int32_t k = 0; k < m->K && (out >> l & 1); k++) {
                int64_t pair = ((int64_t)s->block_class[i] * m->K + k) * m->K + l;
                if (cost[k] == INT64_MAX || m->option_cost[pair] == INT64_MAX)
                    continue;
                if (cost[k] + m->option_cost[pair] < next[l]) {
                    next[l] = cost[k] + m->option_cost[pair];
                    m->from[(size_t)i * K + (size_t)l] = (int8_t)k;
                }
            }
            if (next[l] != INT64_MAX && i < last)
                next[l] += cut_cost(m, s->cut[i], l, price);
        }
        memcpy(cost, next, sizeof cost);
    }
    if (cost[exit] == INT64_MAX)
        return;
    for (int32_t i = last, l = exit; i >= first; i--) {
        int32_t k = m->from[(size_t)i * K + (size_t)l];
        m->picked[i] = m->option_pick[((int64_t)s->block_class[i] * m->K + k) * m->K + l];
        if (i > first)
            m->device[i - 1] = k;
        l = k;
    }
}

/* Time plus a price on every byte too many, well above what a byte is worth. */
static double energy(const moirai_memory_prices *m, const path *p, const double *fine)
{
    double sum = p->time_ns;
    for (int32_t k = 0; k < m->K; k++)
        sum += fine[k] * fmax(p->use[k] - (double)m->c->p->device_memory_bytes[k], 0);
    return sum;
}

/* Prices around the worths, each device off by its own factor. */
static void draw_prices(moirai_memory_prices *m, const double *worth, moirai_rng *rng)
{
    double drawn[MOIRAI_MAX_DEVICES], most = 0;
    for (int32_t k = 0; k < m->K; k++)
        most = fmax(most, worth[k]);
    for (int32_t k = 0; k < m->K; k++)
        drawn[k] = fmax(worth[k], 0.02 * most) * exp((moirai_rng_real(rng) - 0.5) * 4);
    set_worth(m, drawn);
    price_options(m);
}

static void polish(moirai_memory_prices *m, const double *worth, const moirai_memory_search *job, int64_t *length_ns)
{
    int32_t n = m->c->s->n_blocks, saved_device[WINDOW];
    int8_t saved_pick[WINDOW];
    double fine[MOIRAI_MAX_DEVICES], most = 0;
    moirai_rng rng;
    moirai_rng_seed(&rng, job->seed);
    path now = measure_path(m);
    for (int32_t k = 0; k < m->K; k++)
        most = fmax(most, worth[k] / (double)MOIRAI_MAX(m->c->p->device_memory_bytes[k], 1));
    for (int32_t k = 0; k < m->K; k++)
        fine[k] = 4 * most + 1e-9;
    for (int64_t step = 0; step < POLISH_STEPS && n > 1; step++) {
        if (step % 64 == 0) {
            if (moirai_stopped(&job->stop))
                return;
            draw_prices(m, worth, &rng);
        }
        int32_t size = 2 + (int32_t)moirai_rng_below(&rng, (uint32_t)MOIRAI_MIN(WINDOW - 1, n - 1));
        int32_t first = (int32_t)moirai_rng_below(&rng, (uint32_t)(n - size + 1)), last = first + size - 1;
        for (int32_t i = first; i <= last; i++) {
            saved_pick[i - first] = m->picked[i];
            saved_device[i - first] = i < m->c->s->n_cuts ? m->device[i] : 0;
        }
        path before = measure(m, first, last), next = now;
        redo_window(m, first, last, m->price);
        path after = measure(m, first, last);
        next.time_ns += after.time_ns - before.time_ns;
        for (int32_t k = 0; k < m->K; k++)
            next.use[k] += after.use[k] - before.use[k];
        if (energy(m, &next, fine) <= energy(m, &now, fine)) {
            now = next;
            continue;
        }
        for (int32_t i = first; i <= last; i++) {
            m->picked[i] = saved_pick[i - first];
            if (i < m->c->s->n_cuts)
                m->device[i] = saved_device[i - first];
        }
    }
    now = measure_path(m);
    bool fits = true;
    for (int32_t k = 0; k < m->K; k++)
        fits &= now.use[k] <= (double)m->c->p->device_memory_bytes[k];
    if (fits && (int64_t)now.time_ns < *length_ns) {
        *length_ns = (int64_t)now.time_ns;
        keep_path(m);
    }
}

/* Lay out mixes with more or less room to spare, and polish each. */
static int fit_mix(moirai_memory_prices *m, mixer *x, const moirai_memory_search *job, double dear_ns, int64_t *length_ns)
{
    int result = MOIRAI_OK;
    for (double room = 1; room > 0.9 && !result; room -= 0.03) {
        double worth[MOIRAI_MAX_DEVICES];
        result = mix(m, x, room, dear_ns, worth);
        if (result)
            break;
        lay_out(m, x);
        polish(m, worth, job, length_ns);
    }
    return result;
}

const int32_t *moirai_memory_path(const moirai_memory_prices *m)
{
    return m->plan_device;
}

int moirai_memory_plan(int64_t *length_ns, const int32_t **cut_device, const moirai_block_plan *const **block_plan,
                       moirai_memory_prices *m, const moirai_memory_search *job)
{
    double worth[MOIRAI_MAX_DEVICES], next[MOIRAI_MAX_DEVICES], dear_ns = 0;
    mixer x = {0};
    int result = MOIRAI_OK;
    *length_ns = INT64_MAX;
    *cut_device = m->plan_device;
    *block_plan = m->plan;
    if (!moirai_lp_available())
        return MOIRAI_OK;
    memcpy(worth, m->best_worth, sizeof worth);
    for (int32_t round = 0; round < job->rounds && !result && !moirai_stopped(&job->stop); round++) {
        result = plan_column(m, &x, worth, job, round % 3 == 0);
        if (!result && !dear_ns)
            dear_ns = 8 * x.path[0].time_ns;
        if (!result)
            result = mix(m, &x, 1, dear_ns, next);
        for (int32_t k = 0; k < m->K && !result; k++)
            worth[k] = round % 2 ? next[k] : 0.5 * (next[k] + m->best_worth[k]);
    }
    if (!result && x.n)
        result = fit_mix(m, &x, job, dear_ns, length_ns);
    free_mixer(&x);
    return result;
}

/* ---- evidence for a certificate ---- */

int moirai_memory_settle(moirai_memory_prices *m, const moirai_memory_task *job)
{
    int64_t bound;
    path found;
    return units_fit(m, job) ? price_path(m, m->best_worth, job, &bound, &found) : MOIRAI_OK;
}

const int64_t *moirai_memory_byte_prices(const moirai_memory_prices *m)
{
    return m->price;
}

int64_t moirai_memory_cheapest_bytes(const moirai_memory_prices *m, int32_t pair)
{
    double use[MOIRAI_MAX_DEVICES] = {0};
    return m->c->pair[pair].open ? cheapest_bytes(m, &m->c->pair[pair].block, use) : 0;
}

int moirai_memory_evidence(moirai_memory_leaf *out, moirai_memory_prices *m, int32_t pair, int32_t sending, int64_t lower_ns)
{
    view *v = &m->view[pair];
    *out = (moirai_memory_leaf){0};
    if (!v->master || !v->price[sending])
        return MOIRAI_OK;
    const moirai_grid *grid = out->grid = &v->grid[sending];
    size_t cells = (size_t)moirai_resource_count(&m->c->pair[pair].block.problem) * (size_t)grid->n_buckets;
    int64_t *scaled = moirai_alloc(cells, sizeof *scaled);
    out->price = moirai_alloc(cells, sizeof *scaled);
    for (int32_t quarter = 0; quarter < 4 && scaled && out->price; quarter++) {
        int64_t paid = MOIRAI_PRICE_UNIT / 4 * quarter;
        for (size_t c = 0; c < cells; c++)
            scaled[c] = (int64_t)((__int128)v->price[sending][c] * (MOIRAI_PRICE_UNIT - paid) / MOIRAI_PRICE_UNIT);
        int64_t value = moirai_master_reprice(v->master[sending], v->pricer, grid, scaled, m->price);
        if (value < MOIRAI_PRICE_NONE)
            value += paid * lower_ns;
        if (quarter == 0 || value > out->value) {
            out->value = value;
            out->paid = paid;
            memcpy(out->price, scaled, cells * sizeof *scaled);
        }
    }
    int result = scaled && out->price ? MOIRAI_OK : MOIRAI_EFAIL;
    free(scaled);
    return result;
}
