/* Column generation for prices.
 *
 * The master chooses, for every kind of component, a mix of schedules (columns), and sees only how much of each resource
 * they use in each bucket:
 *   length form:  minimise theta  subject to  use(r, bucket) <= held(r, bucket) + theta * (length(bucket) - held(r, bucket))
 *   value form:   minimise sum of z(L) * L + memory cost  subject to  use(r, bucket) <= sum of z(L) * (part of the bucket before L)
 * where held is what sends of the shared tensor take whatever is done (were it scaled, a bucket filled by a send would ask for theta = 1
 * and hide everything else), the mix of each kind sums to its number of components, and counts (how many components have operator i on device k) keep
 * to their ranges. Its dual values are prices; pricing returns cheap schedules under them, new columns, until none
 * helps or the prices prove what is asked for. In the value form z is a mix of block times L, from least_ns to T, at the ends
 * of buckets; whatever prices come out, cost of the schedules + least over L of (L - worth of all resources until L) bounds length plus
 * memory cost from below. Dual values are rounded to whole numbers before they are used to prove anything; any prices are valid, so
 * rounding costs strength, never truth.
 *
 * Duals of early masters jump about; pricing between the best prices so far and the master's (Wentges smoothing) saves rounds.
 * Columns are kept for the next solve with another T or other counts: those that end after T or read what has not arrived are left out.
 * Without an LP solver the prices come from multiplicative weights, which is slower and weaker. */
#include "place/moirai/master.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/lp.h"
#include "util/util.h"

#define LENGTH_SCALE 17592186044416.0 /* 2^44: worth of all resources in the length form */
#define LEAST_FREE 0.02               /* part of a bucket: keeps prices bounded */
#define OVERTIME 4.0                  /* value form: what more of all resources costs, in T */
#define ELASTIC 64.0                  /* what missing a count by one costs in the master: many times theta */

typedef struct column {
    int32_t kind;      /* -1 - j: the j-th send */
    int64_t finish_ns; /* it fits into any T from here on */
    int32_t idle;      /* solves since it was last in use */
    int32_t n_ops, n_uses;
    moirai_use *use;
    int8_t *device;
    int64_t *start;
} column;

struct moirai_master {
    const moirai_block *b;
    moirai_pricer *w;      /* lent by the task at hand */
    int32_t entry_device, exit_device;
    moirai_sending how;
    int32_t steps;
    moirai_grid grid;
    int32_t n_sends, n_cells;
    int32_t *lp_resource;  /* per resource: its number among those that have rows, -1: none yet */
    int32_t n_lp_resources;
    column *column;
    size_t n_columns, capacity;
    /* of the present solve */
    const moirai_master_task *job;
    moirai_lp *lp;
    int32_t n_rows;
    int32_t *lp_column;   /* column of each LP column, -1 - x for the others */
    size_t n_lp, lp_capacity;
    size_t n_solved;      /* LP columns when `primal` was found */
    double *bucket_ns;    /* per cell */
    double length_ns[MOIRAI_MAX_BUCKETS + 1]; /* block times that the value form mixes: the first columns of the LP */
    int32_t n_lengths;
    double *held;         /* per cell: the part that sends hold in any case; theta scales the rest alone */
    double *dual, *center, *mean, *row_dual;
    double *primal;
    size_t primal_capacity;
    int64_t *price, *best_price;
    double *mass, *value;
    int32_t *row;
    double best;          /* the best bound proven so far: theta, or value */
    double part, best_part; /* cost over capacity, of the last prices and of the best */
    int32_t added;
    bool judging;         /* columns are judged against `dual` before they are added */
    int failed;
};

static void free_column(column *c)
{
    free(c->use);
    free(c->device);
    free(c->start);
}

void moirai_master_free(moirai_master *m)
{
    if (!m)
        return;
    for (size_t c = 0; c < m->n_columns; c++)
        free_column(&m->column[c]);
    moirai_lp_free(m->lp);
    free(m->column);
    free(m->lp_column);
    free(m->lp_resource);
    free(m->bucket_ns);
    free(m->held);
    free(m->dual);
    free(m->center);
    free(m->mean);
    free(m->row_dual);
    free(m->primal);
    free(m->price);
    free(m->best_price);
    free(m->mass);
    free(m->value);
    free(m->row);
    free(m);
}

#define MAX_COUNTS 64
#define KEEP_ALL 200   /* columns */
#define IDLE_SOLVES 5

int moirai_master_new(moirai_master **out, const moirai_block *b, int32_t entry_device, int32_t exit_device,
                      int32_t steps)
{
    *out = NULL;
    moirai_master *m = moirai_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    m->b = b;
    m->entry_device = entry_device;
    m->exit_device = exit_device;
    m->steps = steps;
    size_t n = (size_t)(moirai_resource_count(&b->problem) * MOIRAI_MAX_BUCKETS + MOIRAI_MAX_DEVICES + b->n_kinds + MAX_COUNTS + 2);
    m->lp_resource = moirai_alloc((size_t)moirai_resource_count(&b->problem), sizeof(int32_t));
    m->bucket_ns = moirai_alloc(n, sizeof(double));
    m->held = moirai_alloc(n, sizeof(double));
    m->dual = moirai_alloc(n, sizeof(double));
    m->center = moirai_alloc(n, sizeof(double));
    m->mean = moirai_alloc(n, sizeof(double));
    m->row_dual = moirai_alloc(n, sizeof(double));
    m->price = moirai_alloc(n, sizeof(int64_t));
    m->best_price = moirai_alloc(n, sizeof(int64_t));
    m->mass = moirai_alloc(n, sizeof(double));
    m->value = moirai_alloc(n, sizeof(double));
    m->row = moirai_alloc(n, sizeof(int32_t));
    int result = m->lp_resource && m->bucket_ns && m->held && m->dual && m->center && m->mean && m->row_dual && m->price && m->best_price &&
                         m->mass && m->value && m->row
                     ? MOIRAI_OK
                     : MOIRAI_EFAIL;
    /* Devices have rows from the start; ports and channels get theirs when a mix first asks too much of them. */
    for (int32_t r = 0; !result && r < moirai_resource_count(&b->problem); r++)
        m->lp_resource[r] = r < b->problem.n_devices ? m->n_lp_resources++ : -1;
    if (result)
        moirai_master_free(m);
    else
        *out = m;
    return result;
}

const moirai_grid *moirai_master_grid(const moirai_master *m)
{
    return &m->grid;
}

static int32_t count_row(const moirai_master *m, int32_t i)
{
    return m->n_cells + m->n_sends + m->b->n_kinds + i;
}

static double price_scale(const moirai_master_task *job)
{
    return job->form == MOIRAI_PRICE_VALUE ? (double)MOIRAI_PRICE_UNIT : LENGTH_SCALE;
}

/* Prices of another solve as those of the last one. */
static void take_start(moirai_master *m)
{
    const moirai_master_task *job = m->job;
    int32_t cells = moirai_resource_count(&m->b->problem) * job->start_grid->n_buckets;
    m->grid = *job->start_grid;
    for (int32_t i = 0; i < cells; i++)
        m->center[i] = (double)job->start_price[i] / price_scale(job) *
                       (double)MOIRAI_MAX(moirai_bucket_ns(&m->grid, i % m->grid.n_buckets), 1);
}

/* Lay the buckets out for another length. Prices per time stay what they were: a new bucket takes them from the old one
 * around its middle. */
static void regrid(moirai_master *m, int64_t length_ns, int32_t buckets)
{
    moirai_grid old = m->grid;
    int32_t resources = moirai_resource_count(&m->b->problem);
    moirai_grid_init(&m->grid, length_ns, length_ns / m->steps + 1, buckets);
    moirai_pricer_set(m->w, m->entry_device, m->exit_device, &m->how, &m->grid);
    moirai_pricer_set_arrivals(m->w, m->job->n_counts, m->job->count);
    for (int32_t j = 0; j < m->n_sends; j++) /* receivers begin to work at their arrivals */
        moirai_grid_snap(&m->grid, moirai_pricer_arrival(m->w, m->how.receiver[j]));
    m->n_cells = resources * m->grid.n_buckets;
    m->n_rows = m->n_cells + m->n_sends + m->b->n_kinds + m->job->n_counts;
    memcpy(m->mean, m->center, sizeof *m->mean * (size_t)(resources * old.n_buckets));
    for (int32_t i = 0; i < m->grid.n_buckets; i++) {
        int64_t middle = (m->grid.bucket_step[i] + m->grid.bucket_step[i + 1]) * m->grid.step_ns / 2;
        int32_t from = 0;
        while (from + 1 < old.n_buckets && old.bucket_step[from + 1] * old.step_ns <= middle)
            from++;
        double scale = old.n_buckets ? (double)MOIRAI_MAX(moirai_bucket_ns(&m->grid, i), 1) /
                                           (double)MOIRAI_MAX(moirai_bucket_ns(&old, from), 1)
                                     : 0;
        for (int32_t r = 0; r < resources; r++)
            m->center[r * m->grid.n_buckets + i] = m->mean[r * old.n_buckets + from] * scale;
    }
    for (int32_t i = m->n_cells; i < m->n_rows; i++)
        m->center[i] = 0;
    for (int32_t i = 0; m->job->start_price && i < m->job->n_start_counts; i++)
        m->center[count_row(m, i)] = (double)m->job->start_price[resources * old.n_buckets + i] / price_scale(m->job);
    for (int32_t i = 0; i < m->n_cells; i++)
        m->bucket_ns[i] = (double)MOIRAI_MAX(moirai_bucket_ns(&m->grid, i % m->grid.n_buckets), 1);
}

/* ---- columns ---- */

/* Rows of the LP: cells of resources with rows, sends, kinds, counts. Arrays over rows (`dual`, `center`) have all cells in
 * place of the first: an LP row from the sends on is `shift` further there. */
static int32_t lp_cells(const moirai_master *m)
{
    return m->n_lp_resources * m->grid.n_buckets;
}

static int32_t mix_row(const moirai_master *m, int32_t kind)
{
    return kind >= 0 ? m->n_cells + m->n_sends + kind : m->n_cells - 1 - kind;
}

static double memory_cost(const moirai_master *m, const column *c)
{
    double cost = 0;
    if (!m->job->memory_price || c->kind < 0)
        return 0;
    int32_t begin = m->b->component_off[m->b->kind_component[c->kind]];
    int32_t n = m->b->component_off[m->b->kind_component[c->kind] + 1] - begin;
    for (int32_t i = 0; i < n; i++)
        cost += (double)m->job->memory_price[c->device[i]] / (double)MOIRAI_PRICE_UNIT *
                (double)m->b->problem.op_memory_bytes[m->b->component_op[begin + i]];
    return cost;
}

/* What a task takes of each bucket, added to `mass` as a part of the bucket. */
static void spread(const moirai_master *m, int32_t r, const moirai_use *use)
{
    const moirai_grid *grid = &m->grid;
    for (int32_t i = 0; i < grid->n_buckets; i++) {
        int64_t from = MOIRAI_MAX(use->start_ns, grid->bucket_step[i] * grid->step_ns);
        int64_t to = MOIRAI_MIN(use->start_ns + use->ns, grid->bucket_step[i + 1] * grid->step_ns);
        if (to > from)
            m->mass[r * grid->n_buckets + i] += use->part * (double)(to - from) / m->bucket_ns[i];
    }
}

/* The column in the rows of the present LP, in m->row and m->value; returns how many entries. */
static int32_t column_entries(moirai_master *m, const column *c)
{
    int32_t n = 0;
    memset(m->mass, 0, sizeof *m->mass * (size_t)m->n_cells);
    for (int32_t i = 0; i < c->n_uses; i++) {
        spread(m, c->use[i].r1, &c->use[i]);
        if (c->use[i].r2 >= 0)
            spread(m, c->use[i].r2, &c->use[i]);
    }
    for (int32_t i = 0; i < m->n_cells; i++)
        if (m->mass[i] > 0) {
            m->row[n] = i;
            m->value[n++] = m->mass[i];
        }
    m->row[n] = mix_row(m, c->kind);
    m->value[n++] = 1;
    for (int32_t i = 0; i < m->job->n_counts; i++)
        if (m->job->count[i].kind == c->kind && c->device[m->job->count[i].op] == m->job->count[i].device) {
            m->row[n] = count_row(m, i);
            m->value[n++] = 1;
        }
    return n;
}

/* From rows of all cells to rows of the LP. */
static int32_t lp_entries(moirai_master *m, int32_t n)
{
    int32_t kept = 0, buckets = m->grid.n_buckets, shift = m->n_cells - lp_cells(m);
    for (int32_t i = 0; i < n; i++) {
        int32_t row = m->row[i];
        if (row < m->n_cells && m->lp_resource[row / buckets] < 0)
            continue;
        m->row[kept] = row < m->n_cells ? m->lp_resource[row / buckets] * buckets + row % buckets : row - shift;
        m->value[kept++] = m->value[i];
    }
    return kept;
}

static int lp_note(moirai_master *m, int32_t what)
{
    if (moirai_grow(&m->lp_column, &m->lp_capacity, m->n_lp + 1, sizeof *m->lp_column))
        return MOIRAI_EFAIL;
    m->lp_column[m->n_lp++] = what;
    return MOIRAI_OK;
}

static int lp_take(moirai_master *m, int32_t index)
{
    column *c = &m->column[index];
    int32_t n = lp_entries(m, column_entries(m, c));
    int result = moirai_lp_add_column(m->lp, memory_cost(m, c), n, m->row, m->value);
    return result ? result : lp_note(m, index);
}

/* Keep a schedule from the pricing; false if memory ran out. */
static bool copy_pattern(const moirai_pattern *pattern, column *c)
{
    *c = (column){.kind = pattern->kind, .finish_ns = pattern->finish_ns, .n_ops = pattern->n_ops, .n_uses = pattern->n_uses};
    c->use = moirai_alloc((size_t)c->n_uses, sizeof *c->use);
    c->device = moirai_alloc((size_t)pattern->n_ops, sizeof *c->device);
    c->start = moirai_alloc((size_t)pattern->n_ops, sizeof *c->start);
    if (!c->use || !c->device || !c->start) {
        free_column(c);
        return false;
    }
    memcpy(c->use, pattern->use, sizeof *c->use * (size_t)c->n_uses);
    memcpy(c->device, pattern->device, (size_t)pattern->n_ops);
    memcpy(c->start, pattern->start, sizeof *c->start * (size_t)pattern->n_ops);
    return true;
}

/* A schedule from the pricing: into the pool and the master, if it could improve the master. */
static void take_pattern(void *data, const moirai_pattern *pattern)
{
    moirai_master *m = data;
    column c;
    if (m->failed || !copy_pattern(pattern, &c)) {
        m->failed = 1;
        return;
    }
    double reduced = memory_cost(m, &c);
    int32_t n = column_entries(m, &c), mix = mix_row(m, c.kind);
    for (int32_t i = 0; i < n; i++)
        if (m->row[i] != mix)
            reduced += m->value[i] * m->dual[m->row[i]];
    if (m->judging && reduced > m->dual[mix] - 1e-9 * (1 + fabs(m->dual[mix]))) {
        free_column(&c);
        return;
    }
    if (moirai_grow(&m->column, &m->capacity, m->n_columns + 1, sizeof *m->column)) {
        free_column(&c);
        m->failed = 1;
        return;
    }
    m->column[m->n_columns++] = c;
    if (m->lp && lp_take(m, (int32_t)m->n_columns - 1))
        m->failed = 1;
    m->added++;
}

/* ---- prices ---- */

/* Prices in whole numbers from `per_use` (rows of cells, then of counts). */
static void round_prices(const moirai_master *m, const double *per_use, int64_t *price)
{
    double scale = price_scale(m->job);
    for (int32_t i = 0; i < m->n_cells; i++) {
        bool empty = moirai_bucket_ns(&m->grid, i % m->grid.n_buckets) <= 0;
        price[i] = empty ? 0 : (int64_t)(fmax(per_use[i], 0) / m->bucket_ns[i] * scale);
    }
    for (int32_t i = 0; i < m->job->n_counts; i++)
        price[m->n_cells + i] = m->job->count[i].kind < 0 ? 0 : (int64_t)(per_use[count_row(m, i)] * scale);
}

static double free_part(const moirai_master *m, int32_t cell)
{
    return fmax(1 - m->held[cell], LEAST_FREE);
}

/* Length form: theta, as far as it is proven. */
static double judge_length(moirai_master *m, const moirai_prices *prices, int64_t cost)
{
    int64_t capacity = moirai_price_capacity(&m->b->problem, &m->grid, prices);
    m->part = capacity > 0 ? (double)cost / (double)capacity : 0;
    double worth = 0, held = (double)moirai_price_counts(prices); /* of the free time, and of the time that is held anyhow */
    for (int32_t i = 0; i < m->n_cells; i++) {
        double whole = (double)prices->resource[i] * (double)moirai_bucket_ns(&m->grid, i % m->grid.n_buckets);
        worth += whole * free_part(m, i);
        held += whole * m->held[i];
    }
    if (worth <= 0)
        return cost > capacity ? HUGE_VAL : 0;
    double theta = ((double)cost - held) / worth;
    return cost > capacity ? fmax(theta, 1 + 1e-12) : fmin(theta, 1);
}

/* What the prices prove: theta, or a value in units. Adds columns on the way. */
static double judge(moirai_master *m, const int64_t *price, bool columns)
{
    moirai_prices prices = {price, m->job->memory_price, m->job->n_counts, m->job->count, price + m->n_cells};
    int64_t cost = moirai_pricer_cost(m->w, &prices, columns ? take_pattern : NULL, m);
    if (cost >= MOIRAI_PRICE_NONE)
        return HUGE_VAL;
    if (m->job->form == MOIRAI_PRICE_LENGTH)
        return judge_length(m, &prices, cost);
    return (double)(cost - moirai_price_counts(&prices) +
                    moirai_price_length(&m->b->problem, &m->grid, &prices, MOIRAI_PRICE_UNIT, m->job->least_ns));
}

static void consider(moirai_master *m, double bound, const double *per_use)
{
    if (bound <= m->best)
        return;
    m->best = bound;
    m->best_part = m->part;
    memcpy(m->best_price, m->price, sizeof *m->price * (size_t)(m->n_cells + m->job->n_counts));
    memcpy(m->center, per_use, sizeof *m->center * (size_t)m->n_rows);
}

/* Nothing more to gain: proven, converged, or proven out of reach. */
static bool settled(const moirai_master *m, double master)
{
    if (m->job->form == MOIRAI_PRICE_VALUE)
        return m->best >= master * (double)MOIRAI_PRICE_UNIT * (1 - 5e-4);
    return m->best > 1 || m->best >= master * (1 - 1e-3) || (master <= 1 + 1e-12 && !m->job->converge);
}

/* ---- the LP ---- */

/* The cell of a row of the LP. */
static int32_t cell_of(const moirai_master *m, int32_t row)
{
    int32_t buckets = m->grid.n_buckets, r = 0;
    while (m->lp_resource[r] != row / buckets)
        r++;
    return r * buckets + row % buckets;
}

static int lp_rows(moirai_master *m)
{
    double *lower = m->mean, *upper = m->row_dual; /* not yet in use */
    int32_t cells = lp_cells(m), rows = m->n_rows - m->n_cells + cells;
    for (int32_t i = 0; i < rows; i++) {
        int32_t kind = i - cells - m->n_sends, count = kind - m->b->n_kinds;
        if (i < cells) {
            lower[i] = -HUGE_VAL;
            upper[i] = m->held[cell_of(m, i)];
        } else if (count >= 0) {
            bool counted = m->job->count[count].kind >= 0; /* times are the pricing's business */
            lower[i] = counted ? (double)m->job->count[count].least : -HUGE_VAL;
            upper[i] = counted ? (double)m->job->count[count].most : HUGE_VAL;
        } else {
            lower[i] = upper[i] = kind >= 0 ? m->b->kind_count[kind] : 1;
        }
    }
    lower[rows] = upper[rows] = 1; /* the mix of block times, where there is one */
    moirai_lp_free(m->lp);
    m->lp = NULL;
    return moirai_lp_new(&m->lp, rows + (m->job->form == MOIRAI_PRICE_VALUE), lower, upper);
}

/* A column that gives every cell a part of its bucket. */
static int lp_give(moirai_master *m, double cost, const double *part, bool in_mix)
{
    int32_t n = 0;
    for (int32_t row = 0; row < lp_cells(m); row++)
        if (part[cell_of(m, row)] > 0) {
            m->row[n] = row;
            m->value[n++] = -part[cell_of(m, row)];
        }
    if (in_mix) {
        m->row[n] = m->n_rows - m->n_cells + lp_cells(m);
        m->value[n++] = 1;
    }
    int result = moirai_lp_add_column(m->lp, cost, n, m->row, m->value);
    return result ? result : lp_note(m, -1);
}

/* theta; or block times at the ends of buckets, and more of everything at a price that no good mix pays. */
static int lp_lengths(moirai_master *m)
{
    int32_t buckets = m->grid.n_buckets, cells = m->n_cells;
    double *part = m->mass;
    m->n_lengths = 0;
    if (m->job->form == MOIRAI_PRICE_LENGTH) {
        for (int32_t i = 0; i < cells; i++)
            part[i] = moirai_bucket_ns(&m->grid, i % buckets) > 0 ? free_part(m, i) : 0;
        return lp_give(m, 1, part, false);
    }
    int result = MOIRAI_OK;
    for (int32_t j = -1; j < buckets && !result; j++) {
        int64_t length = j < 0 ? m->job->least_ns : MOIRAI_MIN(m->grid.bucket_step[j + 1] * m->grid.step_ns, m->grid.length_ns);
        if (j >= 0 && length <= m->job->least_ns)
            continue;
        for (int32_t i = 0; i < cells; i++) {
            double from = (double)(m->grid.bucket_step[i % buckets] * m->grid.step_ns);
            part[i] = fmin(fmax(((double)length - from) / m->bucket_ns[i], 0), 1);
        }
        m->length_ns[m->n_lengths++] = (double)length;
        result = lp_give(m, (double)length, part, true);
    }
    for (int32_t i = 0; i < cells; i++)
        part[i] = moirai_bucket_ns(&m->grid, i % buckets) > 0;
    return result ? result : lp_give(m, OVERTIME * (double)m->grid.length_ns, part, false);
}

/* Counts may be missed, at a price that no good mix pays. */
static int lp_elastic(moirai_master *m)
{
    double price = m->job->form == MOIRAI_PRICE_VALUE ? ELASTIC * (double)m->grid.length_ns : ELASTIC;
    int result = MOIRAI_OK;
    for (int32_t i = 0; !result && i < 2 * m->job->n_counts; i++) {
        int32_t row = count_row(m, i / 2) - m->n_cells + lp_cells(m);
        double sign = i % 2 ? -1 : 1;
        result = moirai_lp_add_column(m->lp, price, 1, &row, &sign);
        if (!result)
            result = lp_note(m, -1);
    }
    return result;
}

/* Columns that no mix has used for a while go, so that the master stays small. */
static void drop_idle(moirai_master *m)
{
    size_t n = 0;
    for (size_t c = 0; c < m->n_columns; c++)
        if (m->n_columns < KEEP_ALL || m->column[c].idle < IDLE_SOLVES || m->column[c].kind < 0)
            m->column[n++] = m->column[c];
        else
            free_column(&m->column[c]);
    m->n_columns = n;
}

static bool fits(const moirai_master *m, const column *c)
{
    moirai_pattern pattern = {.kind = c->kind, .n_ops = c->n_ops, .device = c->device, .start = c->start, .finish_ns = c->finish_ns};
    return moirai_pricer_fits(m->w, m->job->n_counts, m->job->count, &pattern);
}

static int lp_build(moirai_master *m)
{
    m->n_lp = m->n_solved = 0;
    int result = lp_rows(m);
    if (!result)
        result = lp_lengths(m);
    if (!result)
        result = lp_elastic(m);
    for (size_t c = 0; !result && c < m->n_columns; c++)
        if (fits(m, &m->column[c]))
            result = lp_take(m, (int32_t)c);
    return result;
}

/* First columns: everything priced alike, then each device made cheap in turn. False if nothing fits into T at all. */
static bool first_columns(moirai_master *m)
{
    int32_t buckets = m->grid.n_buckets, K = m->b->problem.n_devices;
    double whole = m->job->form == MOIRAI_PRICE_VALUE ? 1 : (double)m->grid.length_ns;
    m->judging = false;
    for (int32_t favoured = -1; favoured < K && !m->failed; favoured++) {
        for (int32_t i = 0; i < m->n_rows; i++) {
            bool cheap = i < m->n_cells && i / buckets == favoured;
            m->dual[i] = i < m->n_cells ? m->bucket_ns[i] / (m->n_cells / buckets) / whole * (cheap ? 0.01 : 1) : 0;
        }
        round_prices(m, m->dual, m->price);
        double bound = judge(m, m->price, true);
        consider(m, bound, m->dual);
        if (bound == HUGE_VAL)
            return false;
    }
    m->judging = true;
    return true;
}

/* Dual values of the LP's rows as prices over all cells. */
static void take_duals(moirai_master *m)
{
    int32_t buckets = m->grid.n_buckets, shift = m->n_cells - lp_cells(m);
    for (int32_t i = 0; i < m->n_rows; i++) {
        int32_t r = i < m->n_cells ? m->lp_resource[i / buckets] : 0, count = i - count_row(m, 0);
        if (i < m->n_cells)
            m->dual[i] = r < 0 ? 0 : fmax(-m->row_dual[r * buckets + i % buckets], 0);
        else
            m->dual[i] = count >= 0 ? -m->row_dual[i - shift] : m->row_dual[i - shift];
    }
}

/* The part of a cell that the mixed block times leave. */
static double mixed_part(const moirai_master *m, int32_t cell)
{
    double from = (double)(m->grid.bucket_step[cell % m->grid.n_buckets] * m->grid.step_ns), sum = m->primal[m->n_lengths];
    for (int32_t j = 0; j < m->n_lengths; j++)
        sum += m->primal[j] * fmin(fmax((m->length_ns[j] - from) / m->bucket_ns[cell], 0), 1);
    return sum;
}

/* Give rows to resources of which the mix takes more than there is. True if any was found. */
static bool find_overload(moirai_master *m, double theta)
{
    int32_t buckets = m->grid.n_buckets, before = m->n_lp_resources;
    double *load = m->mean;
    memset(load, 0, sizeof *load * (size_t)m->n_cells);
    for (size_t x = 0; x < m->n_lp; x++)
        if (m->lp_column[x] >= 0 && m->primal[x] > 1e-9) {
            int32_t n = column_entries(m, &m->column[m->lp_column[x]]);
            for (int32_t i = 0; i < n; i++)
                if (m->row[i] < m->n_cells)
                    load[m->row[i]] += m->primal[x] * m->value[i];
        }
    for (int32_t i = 0; i < m->n_cells; i++) {
        double room = m->job->form == MOIRAI_PRICE_VALUE ? mixed_part(m, i) : m->held[i] + theta * free_part(m, i);
        if (m->lp_resource[i / buckets] < 0 && load[i] > room * 1.001 + 1e-6)
            m->lp_resource[i / buckets] = m->n_lp_resources++;
    }
    return m->n_lp_resources > before;
}

/* Solve, giving rows to overloaded resources as needed. */
static int solve_master(moirai_master *m, double *value)
{
    for (;;) {
        if (moirai_grow(&m->primal, &m->primal_capacity, m->n_lp, sizeof *m->primal))
            return MOIRAI_EFAIL;
        int result = moirai_lp_solve(m->lp, value, m->row_dual, m->primal);
        m->n_solved = m->n_lp;
        if (result || m->n_lp_resources == m->n_cells / m->grid.n_buckets || !find_overload(m, *value))
            return result;
        if ((result = lp_build(m)))
            return result;
    }
}

static int one_round(moirai_master *m, double *value, double weight)
{
    int result = solve_master(m, value);
    if (result)
        return result;
    take_duals(m);
    m->added = 0;
    if (settled(m, *value))
        return MOIRAI_OK;
    for (int32_t i = 0; i < m->n_rows; i++)
        m->mean[i] = weight * m->center[i] + (1 - weight) * m->dual[i];
    round_prices(m, m->mean, m->price);
    consider(m, judge(m, m->price, true), m->mean);
    if (!m->added && !settled(m, *value)) {
        round_prices(m, m->dual, m->price);
        consider(m, judge(m, m->price, true), m->dual);
    }
    return m->failed ? MOIRAI_EFAIL : MOIRAI_OK;
}

static void note_idle(moirai_master *m)
{
    for (size_t x = 0; x < m->n_solved; x++)
        if (m->lp_column[x] >= 0) {
            column *c = &m->column[m->lp_column[x]];
            c->idle = m->primal[x] > 1e-9 ? 0 : c->idle + 1;
        }
}

static int generate(moirai_master *m, moirai_master_result *out)
{
    drop_idle(m);
    int result = lp_build(m);
    bool done = false;
    if (!result && !m->n_columns) {
        done = !first_columns(m);
    } else if (!result) { /* the prices of the last solve are a good place to begin */
        memcpy(m->mean, m->center, sizeof *m->mean * (size_t)m->n_rows);
        m->judging = false;
        round_prices(m, m->mean, m->price);
        double bound = judge(m, m->price, true);
        consider(m, bound, m->mean);
        done = bound == HUGE_VAL;
        m->judging = true;
    }
    out->theta = m->best;
    while (!result && !done && out->rounds < m->job->max_rounds && !moirai_stopped(&m->job->stop)) {
        result = one_round(m, &out->theta, out->rounds < 3 ? 0.3 : 0.6);
        out->rounds++;
        done = !m->added || settled(m, out->theta);
    }
    if (!result && out->rounds)
        note_idle(m);
    return result == MOIRAI_ELIMIT ? MOIRAI_OK : result; /* the prices so far are as good as any */
}

/* Multiplicative weights on relative use, for builds without an LP solver. */
static void take_usage(void *data, const moirai_pattern *pattern)
{
    moirai_master *m = data;
    double count = pattern->kind >= 0 ? m->b->kind_count[pattern->kind] : 1;
    column c = {.kind = pattern->kind, .n_uses = pattern->n_uses, .use = pattern->use, .device = pattern->device};
    int32_t n = column_entries(m, &c);
    for (int32_t i = 0; i < n; i++)
        if (m->row[i] < m->n_cells)
            m->mean[m->row[i]] += m->value[i] * count / m->b->problem.n_devices;
}

static void weigh(moirai_master *m, moirai_master_result *out)
{
    double *weight = m->center;
    int32_t buckets = m->grid.n_buckets;
    for (int32_t i = 0; i < m->n_rows; i++)
        weight[i] = i < m->n_cells;
    for (; out->rounds < 4 * m->job->max_rounds && !(m->best > 1 && m->job->form == MOIRAI_PRICE_LENGTH); out->rounds++) {
        double sum = 0, most = 1e-12;
        for (int32_t i = 0; i < m->n_cells; i++)
            sum += weight[i];
        memset(m->dual, 0, sizeof *m->dual * (size_t)m->n_rows);
        for (int32_t i = 0; i < m->n_cells; i++)
            m->dual[i] = m->job->form == MOIRAI_PRICE_LENGTH ? weight[i] / sum : weight[i] / sum * m->bucket_ns[i] * buckets;
        round_prices(m, m->dual, m->price);
        memset(m->mean, 0, sizeof *m->mean * (size_t)m->n_cells);
        moirai_prices prices = {m->price, m->job->memory_price, m->job->n_counts, m->job->count, m->price + m->n_cells};
        moirai_pricer_cost(m->w, &prices, take_usage, m);
        double bound = judge(m, m->price, false);
        if (bound > m->best) {
            m->best = bound;
            memcpy(m->best_price, m->price, sizeof *m->price * (size_t)(m->n_cells + m->job->n_counts));
        }
        for (int32_t i = 0; i < m->n_cells; i++)
            most = fmax(most, m->mean[i]);
        for (int32_t i = 0; i < m->n_cells; i++)
            weight[i] *= exp(0.3 / (1 + 0.02 * out->rounds) * (m->mean[i] / most - 1));
    }
    out->theta = m->best;
}

/* Schedules of components are of use to every sending that they fit; sends are those of one. */
static void set_sending(moirai_master *m, const moirai_sending *how)
{
    bool same = m->how.fixed == how->fixed && m->how.n_receivers == how->n_receivers &&
                !memcmp(m->how.receiver, how->receiver, (size_t)how->n_receivers);
    m->how = *how;
    m->n_sends = how->fixed ? how->n_receivers : 0;
    size_t n = 0;
    for (size_t c = 0; c < m->n_columns && !same; c++)
        if (m->column[c].kind >= 0)
            m->column[n++] = m->column[c];
        else
            free_column(&m->column[c]);
    if (!same)
        m->n_columns = n;
}

int moirai_master_solve(moirai_master_result *out, moirai_master *m, const moirai_master_task *job)
{
    *out = (moirai_master_result){0};
    m->job = job;
    m->best = job->form == MOIRAI_PRICE_VALUE ? -(double)MOIRAI_PRICE_NONE : -1;
    m->best_part = 0;
    m->failed = 0;
    m->w = job->pricer;
    set_sending(m, job->how);
    if (job->start_price)
        take_start(m);
    regrid(m, job->length_ns, job->buckets);
    moirai_pricer_held(m->w, job->n_counts, job->count, m->held);
    for (int32_t i = 0; i < m->n_cells; i++)
        m->held[i] = job->form == MOIRAI_PRICE_VALUE ? 0 : fmin(m->held[i] / m->bucket_ns[i], 1);
    int result = MOIRAI_OK;
    if (moirai_lp_available())
        result = generate(m, out);
    else
        weigh(m, out);
    moirai_lp_free(m->lp);
    m->lp = NULL;
    out->proven = m->best > 1 && job->form == MOIRAI_PRICE_LENGTH;
    out->proven_part = m->best_part;
    if (job->form == MOIRAI_PRICE_VALUE)
        out->value = m->best >= (double)MOIRAI_PRICE_NONE ? MOIRAI_PRICE_NONE : (int64_t)MOIRAI_MAX(m->best, -(double)MOIRAI_PRICE_NONE);
    out->price = m->best_price;
    out->count_price = m->best_price + m->n_cells;
    return result;
}

int64_t moirai_master_reprice(moirai_master *m, const moirai_master_task *job, const moirai_grid *grid, const int64_t *price)
{
    const int64_t *count_price = price + moirai_resource_count(&m->b->problem) * grid->n_buckets;
    moirai_prices prices = {price, job->memory_price, job->n_counts, job->count, count_price};
    moirai_pricer_set(job->pricer, m->entry_device, m->exit_device, job->how, grid);
    int64_t cost = moirai_pricer_cost(job->pricer, &prices, NULL, NULL);
    if (cost >= MOIRAI_PRICE_NONE)
        return MOIRAI_PRICE_NONE;
    return cost - moirai_price_counts(&prices) + moirai_price_length(&m->b->problem, grid, &prices, MOIRAI_PRICE_UNIT, job->least_ns);
}

/* ---- what the last master chose ---- */

moirai_kept_pattern *moirai_master_mix(const moirai_master *m, int32_t *n)
{
    moirai_kept_pattern *kept = moirai_alloc(m->n_solved + 1, sizeof *kept);
    *n = 0;
    for (size_t x = 0; kept && m->primal && x < m->n_solved; x++) {
        const column *c = m->lp_column[x] >= 0 ? &m->column[m->lp_column[x]] : NULL;
        if (c && c->kind >= 0 && m->primal[x] > 1e-6)
            kept[(*n)++] = (moirai_kept_pattern){c->kind, m->primal[x], c->device, c->start};
    }
    return kept;
}

double moirai_master_count(const moirai_master *m, int32_t kind, int32_t op, int32_t device)
{
    double sum = 0;
    for (size_t x = 0; m->primal && x < m->n_solved; x++) {
        const column *c = m->lp_column[x] >= 0 ? &m->column[m->lp_column[x]] : NULL;
        if (c && c->kind == kind && c->device[op] == device)
            sum += m->primal[x];
    }
    return sum;
}

double moirai_master_early(const moirai_master *m, int32_t send, double *mean_arrival_ns)
{
    const moirai_block *b = m->b;
    int32_t device = m->how.receiver[send], shared = moirai_block_shared_tensor(b);
    double arrival = 0, sum = 0, early = 0;
    for (size_t x = 0; m->primal && x < m->n_solved; x++) {
        const column *c = m->lp_column[x] >= 0 ? &m->column[m->lp_column[x]] : NULL;
        if (c && c->kind == -1 - send) {
            arrival += m->primal[x] * (double)c->finish_ns;
            sum += m->primal[x];
        }
    }
    *mean_arrival_ns = arrival /= fmax(sum, 1e-9);
    for (size_t x = 0; m->primal && x < m->n_solved; x++) {
        const column *c = m->lp_column[x] >= 0 ? &m->column[m->lp_column[x]] : NULL;
        for (int32_t i = 0; c && c->kind >= 0 && i < c->n_ops; i++) {
            int32_t op = b->component_op[b->component_off[b->kind_component[c->kind]] + i];
            bool reads = false;
            for (int32_t j = b->problem.op_in_off[op]; j < b->problem.op_in_off[op + 1]; j++)
                reads |= b->problem.op_in[j] == shared;
            if (reads && c->device[i] == device && (double)c->start[i] < arrival)
                early += m->primal[x] * (double)moirai_op_ns(&b->problem, op, device);
        }
    }
    return early;
}

int64_t moirai_master_arrival(const moirai_master *m, int32_t send)
{
    return moirai_pricer_arrival(m->w, m->how.receiver[send]);
}

double moirai_master_length(const moirai_master *m, double *spread_ns)
{
    double sum = 0, mean = 0;
    *spread_ns = 0;
    for (int32_t j = 0; m->primal && j < m->n_lengths; j++) {
        sum += m->primal[j];
        mean += m->primal[j] * m->length_ns[j];
    }
    mean /= fmax(sum, 1e-9);
    for (int32_t j = 0; m->primal && j < m->n_lengths; j++)
        *spread_ns += m->primal[j] / fmax(sum, 1e-9) * fabs(m->length_ns[j] - mean);
    return mean;
}
