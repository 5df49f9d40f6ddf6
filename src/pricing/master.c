/* Column generation for prices.
 *
 * The master (its LP is in master_lp.c) chooses, for every kind of component, a convex combination of schedules
 * (columns), and sees only how much of each resource they use in each bucket: at most held + theta (length - held) of
 * it in the length form, at most what a combination of block times L leaves of it in the priced form, where held is
 * what sends of the shared tensor take whatever is done (docs/engine.md, "Prices in time"). Its dual values are
 * prices; pricing returns cheap schedules under them, new columns, until none helps or the prices prove what is asked
 * for: Theorem 26, or, of length and memory cost together, Theorem 35. Dual values are rounded to whole numbers before
 * they are used to prove anything; any prices are valid, so rounding costs strength, never truth.
 *
 * Duals of early masters jump about; pricing between the best prices so far and the master's (Wentges smoothing)
 * saves rounds. Columns are kept for the next solve with another T or other branches: those that end after T or read
 * what has not arrived are left out. Masters that are too large for the simplex keep the prices that they began with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pricing/master_state.h"
#include "pricing/pricing_tuning.h"
#include "util/util.h"

#define LENGTH_SCALE 17592186044416.0 /* 2^44: worth of all resources in the length form */
#define MAX_BRANCHES 64

void pricing_master_free(pricing_master *m)
{
    if (!m)
        return;
    for (size_t c = 0; c < m->pool.n; c++)
        free(m->pool.column[c].c.use);
    pricing_master_lp_free(m);
    free(m->pool.column);
    free(m->lp.column);
    free(m->lp.primal);
    util_release(&m->memory);
    free(m);
}

int pricing_master_new(pricing_master **out, const decompose_block *b, int32_t steps)
{
    *out = NULL;
    pricing_master *m = util_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    m->b = b;
    m->steps = steps;
    size_t n = (size_t)(schedule_resources(&b->problem) * PRICING_MAX_BUCKETS + MOIRAI_MASK_DEVICES + b->n_kinds +
                        MAX_BRANCHES + 2);
    UTIL_TAKE(&m->memory, m->lp.resource, (size_t)schedule_resources(&b->problem));
    UTIL_TAKE(&m->memory, m->cell.bucket_ns, n);
    UTIL_TAKE(&m->memory, m->cell.held, n);
    UTIL_TAKE(&m->memory, m->price.dual, n);
    UTIL_TAKE(&m->memory, m->price.center, n);
    UTIL_TAKE(&m->memory, m->price.mean, n);
    UTIL_TAKE(&m->memory, m->lp.row_dual, n);
    UTIL_TAKE(&m->memory, m->price.whole, n);
    UTIL_TAKE(&m->memory, m->price.best_whole, n);
    UTIL_TAKE(&m->memory, m->cell.mass, n);
    UTIL_TAKE(&m->memory, m->lp.value, n);
    UTIL_TAKE(&m->memory, m->lp.row, n);
    int rc = util_taken_all(&m->memory);
    /* Devices have rows from the start; ports and channels get theirs when an LP solution first asks too much of them.
     */
    for (int32_t r = 0; !rc && r < schedule_resources(&b->problem); r++)
        m->lp.resource[r] = r < b->problem.n_devices ? m->lp.n_resources++ : -1;
    if (rc)
        pricing_master_free(m);
    else
        *out = m;
    return rc;
}

const pricing_grid *pricing_master_grid(const pricing_master *m)
{
    return &m->grid;
}

static double price_scale(const pricing_master *m)
{
    return m->job->form == PRICING_PRICED_FORM ? (double)m->b->unit : LENGTH_SCALE;
}

/* Prices of another solve as those of the last one. */
static void take_start(pricing_master *m, const pricing_duals *start)
{
    int32_t cells = schedule_resources(&m->b->problem) * start->grid.n_buckets;
    m->grid = start->grid;
    for (int32_t i = 0; i < cells; i++)
        m->price.center[i] = (double)start->price[i] / price_scale(m) *
                             (double)UTIL_MAX(pricing_bucket_ns(&m->grid, i % m->grid.n_buckets), 1);
}

/* Receivers begin to work at their arrivals. And where a send is under way whenever it starts within its case, its ports
 * have no time for anything else: a bucket across its latest start would lend them some. Not in the priced form, whose
 * cases leave arrivals more room: there the boundary nearest to each arrival moves, whatever it was for. */
static void snap_to_sends(pricing_master *m)
{
    bool priced = m->job->form == PRICING_PRICED_FORM;
    uint64_t kept = 0;
    for (int32_t j = 0; j < m->n_sends; j++) {
        kept = priced ? 0 : kept;
        pricing_grid_snap(&m->grid, &kept, pricing_pricer_arrival(m->w, m->how.receiver[j]));
    }
    for (int32_t j = 0; j < m->n_sends && !priced; j++) {
        int32_t k = m->how.receiver[j], from = m->b->entry_device;
        int64_t ns = moirai_transfer_ns(&m->b->problem, decompose_block_shared_tensor(m->b), from, k);
        int64_t latest = pricing_pricer_arrived(m->w, k) - ns;
        if (latest < pricing_pricer_arrival(m->w, k) - m->grid.length_ns / PRICING_MASTER_LEAST_HOLD)
            pricing_grid_snap(&m->grid, &kept, latest);
    }
}

/* Prices on bytes may differ between equal devices. */
static void set_case(const pricing_master_task *job, pricing_pricer *w, const pricing_grid *grid)
{
    pricing_case at = job->at;
    at.apart = job->memory_price != NULL;
    pricing_pricer_set(w, &at, grid);
}

/* Lay the buckets out for another length. Prices per time stay what they were: a new bucket takes them from the old one
 * around its middle. */
static void regrid(pricing_master *m, const pricing_duals *start)
{
    pricing_grid old = m->grid;
    int32_t resources = schedule_resources(&m->b->problem);
    pricing_grid_init(&m->grid, m->job->length_ns, m->job->length_ns / m->steps + 1, m->job->buckets);
    set_case(m->job, m->w, &m->grid);
    snap_to_sends(m);
    m->cell.n = resources * m->grid.n_buckets;
    m->lp.n_rows = m->cell.n + m->n_sends + m->b->n_kinds + m->job->at.n_branches;
    memcpy(m->price.mean, m->price.center, sizeof *m->price.mean * (size_t)(resources * old.n_buckets));
    for (int32_t i = 0; i < m->grid.n_buckets; i++) {
        int64_t middle = (m->grid.bucket_step[i] + m->grid.bucket_step[i + 1]) * m->grid.step_ns / 2;
        int32_t from = 0;
        while (from + 1 < old.n_buckets && old.bucket_step[from + 1] * old.step_ns <= middle)
            from++;
        double scale = old.n_buckets ? (double)UTIL_MAX(pricing_bucket_ns(&m->grid, i), 1) /
                                           (double)UTIL_MAX(pricing_bucket_ns(&old, from), 1)
                                     : 0;
        for (int32_t r = 0; r < resources; r++)
            m->price.center[r * m->grid.n_buckets + i] = m->price.mean[r * old.n_buckets + from] * scale;
    }
    for (int32_t i = m->cell.n; i < m->lp.n_rows; i++)
        m->price.center[i] = 0;
    for (int32_t i = 0; start && i < start->n_branches; i++)
        m->price.center[pricing_master_branch_row(m, i)] =
            (double)start->price[resources * old.n_buckets + i] / price_scale(m);
    for (int32_t i = 0; i < m->cell.n; i++)
        m->cell.bucket_ns[i] = (double)UTIL_MAX(pricing_bucket_ns(&m->grid, i % m->grid.n_buckets), 1);
}

/* ---- prices ---- */

/* Prices in whole numbers from `per_use` (rows of cells, then of branches). Any prices are valid as long as sums of
 * what is paid stay below what the pricing takes for "does not fit": all cells together are held to an eighth of that,
 * all branches together to half of it. */
static void round_prices(const pricing_master *m, const double *per_use, int64_t *price)
{
    const double most = (double)PRICING_NONE;
    int32_t resources = m->cell.n / m->grid.n_buckets;
    double scale = price_scale(m), most_price = most / 8 / resources / (double)UTIL_MAX(m->grid.length_ns, 1);
    for (int32_t i = 0; i < m->cell.n; i++) {
        bool empty = pricing_bucket_ns(&m->grid, i % m->grid.n_buckets) <= 0;
        price[i] = empty ? 0 : (int64_t)fmin(fmax(per_use[i], 0) / m->cell.bucket_ns[i] * scale, most_price);
    }
    for (int32_t i = 0; i < m->cell.n; i++) { /* those of a solve that told equal devices apart may differ */
        int32_t buckets = m->grid.n_buckets, r = pricing_pricer_stand_in(m->w, i / buckets);
        price[i] = price[r * buckets + i % buckets];
    }
    for (int32_t i = 0; i < m->job->at.n_branches; i++) {
        const pricing_branch *branch = &m->job->at.branch[i];
        bool number = branch->on == PRICING_NUMBER;
        double limit = number ? most / 2 / m->job->at.n_branches / m->b->kind_count[branch->kind] : 0;
        double wanted = number ? per_use[pricing_master_branch_row(m, i)] * scale : 0;
        price[m->cell.n + i] = (int64_t)fmax(fmin(wanted, limit), -limit);
    }
}

/* Length form: theta, as far as it is proven. */
static double judge_length(pricing_master *m, const int64_t *price, int64_t branch_term, int64_t cost)
{
    int64_t capacity = branch_term + pricing_capacity(&m->b->problem, &m->grid, price);
    m->price.part = capacity > 0 ? (double)cost / (double)capacity : 0;
    /* Of the free time, and of the time that is held in any case. */
    double free_value = 0, held_value = (double)branch_term;
    for (int32_t i = 0; i < m->cell.n; i++) {
        double whole = (double)price[i] * (double)pricing_bucket_ns(&m->grid, i % m->grid.n_buckets);
        free_value += whole * pricing_master_free_part(m, i);
        held_value += whole * m->cell.held[i];
    }
    if (free_value <= 0)
        return cost > capacity ? HUGE_VAL : 0;
    double theta = ((double)cost - held_value) / free_value;
    return cost > capacity ? fmax(theta, 1 + 1e-12) : fmin(theta, 1);
}

/* What the prices prove: theta, or a value in units. Adds columns on the way. */
static double judge(pricing_master *m, const int64_t *price)
{
    pricing_prices prices = {price, m->job->memory_price, &m->job->stop};
    int64_t cost = pricing_pricer_cost(m->w, &prices, pricing_master_take_column, m);
    int64_t branch_term = pricing_branch_term(&m->job->at, price + m->cell.n);
    if (cost >= PRICING_NONE)
        return HUGE_VAL;
    if (m->job->form == PRICING_LENGTH_FORM)
        return judge_length(m, price, branch_term, cost);
    return (double)(cost - branch_term +
                    pricing_length_term(&m->b->problem, &m->grid, price, m->b->unit, m->job->least_ns));
}

/* Rounds prices and takes them where they are the best so far; what they prove. */
static double try_prices(pricing_master *m, const double *per_use)
{
    round_prices(m, per_use, m->price.whole);
    double bound = judge(m, m->price.whole);
    if (bound > m->price.best) {
        m->price.best = bound;
        m->price.best_part = m->price.part;
        memcpy(m->price.best_whole, m->price.whole,
               sizeof *m->price.whole * (size_t)(m->cell.n + m->job->at.n_branches));
        memcpy(m->price.center, per_use, sizeof *m->price.center * (size_t)m->lp.n_rows);
    }
    return bound;
}

/* Nothing more to gain: proven, converged, or proven out of reach. What these prices cannot close, branches must, and
 * what is missing here along with it: a part of that need not be found. */
static bool settled(const pricing_master *m, double master)
{
    if (m->job->form == PRICING_PRICED_FORM) {
        double most = master * (double)m->b->unit, ceiling = (double)m->job->ceiling;
        double open = m->job->open * fmax(ceiling - most, 0);
        return m->price.best >= most - fmax(5e-4 * most, open) || (ceiling > 0 && m->price.best >= ceiling);
    }
    bool enough = !m->job->converge || m->price.best >= master - m->job->open * (1 - master);
    return m->price.best > 1 || m->price.best >= master * (1 - 1e-3) || (master <= 1 + 1e-12 && enough);
}

/* ---- rounds ---- */

/* First columns: everything priced alike, then each device made cheap in turn. False if nothing fits into T at all. */
static bool first_columns(pricing_master *m)
{
    int32_t buckets = m->grid.n_buckets, K = m->b->problem.n_devices;
    double whole = m->job->form == PRICING_PRICED_FORM ? 1 : (double)m->grid.length_ns;
    m->pool.judging = false;
    for (int32_t favoured = -1; favoured < K && !m->failed; favoured++) {
        if (favoured >= 0 && !pricing_pricer_copies(m->w, favoured))
            continue;
        for (int32_t i = 0; i < m->lp.n_rows; i++) {
            bool cheap = i < m->cell.n && pricing_pricer_stand_in(m->w, i / buckets) == favoured;
            m->price.dual[i] =
                i < m->cell.n ? m->cell.bucket_ns[i] / (m->cell.n / buckets) / whole * (cheap ? 0.01 : 1) : 0;
        }
        if (try_prices(m, m->price.dual) == HUGE_VAL)
            return false;
    }
    m->pool.judging = true;
    return true;
}

/* Prices between the best so far, with this weight, and the LP's. */
static void price_between(pricing_master *m, double weight)
{
    for (int32_t i = 0; i < m->lp.n_rows; i++)
        m->price.mean[i] = weight * m->price.center[i] + (1 - weight) * m->price.dual[i];
    try_prices(m, m->price.mean);
}

static int one_round(pricing_master *m, double *value, double weight)
{
    int rc = pricing_master_lp_solve(m, value);
    if (rc)
        return rc;
    m->pool.added = 0;
    if (settled(m, *value))
        return 0;
    price_between(m, weight);
    if (!m->pool.added && !settled(m, *value))
        price_between(m, 0);
    return m->failed ? MOIRAI_EFAIL : 0;
}

static int generate(pricing_master *m, pricing_master_result *out)
{
    pricing_master_drop_idle(m);
    int rc = pricing_master_lp_build(m);
    bool done = false;
    if (!rc && !m->pool.n) {
        done = !first_columns(m);
    } else if (!rc) { /* the prices of the last solve are a good place to begin */
        memcpy(m->price.mean, m->price.center, sizeof *m->price.mean * (size_t)m->lp.n_rows);
        m->pool.judging = false;
        done = try_prices(m, m->price.mean) == HUGE_VAL;
        m->pool.judging = true;
    }
    out->theta = m->price.best;
    while (!rc && !done && out->rounds < m->job->max_rounds && !util_stopped(&m->job->stop)) {
        rc = one_round(m, &out->theta, out->rounds < 3 ? 0.3 : 0.6);
        out->rounds++;
        done = !m->pool.added || settled(m, out->theta);
    }
    if (!rc && out->rounds)
        pricing_master_note_idle(m);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* the prices so far are as good as any */
}

/* ---- a solve ---- */

int pricing_master_solve(pricing_master_result *out, pricing_master *m, const pricing_master_task *job)
{
    const pricing_duals *start = job->start && job->start->price ? job->start : NULL;
    bool priced = job->form == PRICING_PRICED_FORM;
    *out = (pricing_master_result){0};
    if (job->at.n_branches > MAX_BRANCHES)
        return moirai_error(MOIRAI_EFAIL, "%d questions to one case", job->at.n_branches);
    m->job = job;
    m->price.best = priced ? -(double)PRICING_NONE : -1;
    m->price.best_part = 0;
    m->failed = 0;
    m->lp.n_solved = 0;
    m->w = job->pricer;
    pricing_master_set_sending(m, job->at.how);
    if (start)
        take_start(m, start);
    regrid(m, start);
    pricing_pricer_held(m->w, m->cell.held);
    /* No prices at all, should none be better: those of the last solve are laid out for another grid. */
    memset(m->price.best_whole, 0, sizeof *m->price.best_whole * (size_t)(m->cell.n + job->at.n_branches));
    for (int32_t i = 0; i < m->cell.n; i++)
        m->cell.held[i] = priced ? 0 : fmin(m->cell.held[i] / m->cell.bucket_ns[i], 1);
    int rc = generate(m, out);
    pricing_master_lp_free(m);
    out->proven = m->price.best > 1 && !priced;
    out->proven_part = m->price.best_part;
    if (priced)
        out->value =
            m->price.best >= (double)PRICING_NONE ? PRICING_NONE : (int64_t)fmax(m->price.best, -(double)PRICING_NONE);
    out->price = m->price.best_whole;
    return rc;
}

int64_t pricing_master_reprice(pricing_master *m, const pricing_master_task *job, const pricing_grid *grid,
                               const int64_t *price)
{
    const int64_t *branch_price = price + schedule_resources(&m->b->problem) * grid->n_buckets;
    set_case(job, job->pricer, grid);
    int64_t cost = pricing_pricer_cost(job->pricer, &(pricing_prices){price, job->memory_price, NULL}, NULL, NULL);
    if (cost >= PRICING_NONE)
        return PRICING_NONE;
    return cost - pricing_branch_term(&job->at, branch_price) +
           pricing_length_term(&m->b->problem, grid, price, m->b->unit, job->least_ns);
}
