/* The master as a linear programme.
 *
 * Rows are cells (a resource in a bucket), one per send, one per kind of component, one per branch, and in the priced
 * form one for the block times. Of the cells only those of devices have rows from the start: ports and channels
 * need not bind, and get theirs when an LP solution first takes more of them than there is (find_overload), which keeps
 * the LP small. Arrays over rows outside of the LP (`dual`, `center`) have all cells in place of these: a row from the
 * sends on is `shift` further there.
 *
 * Columns are theta or the block times, two per branch that let it be missed at a price that no good LP solution pays
 * (so that the LP always has an answer, and duals with it), and the schedules that fit into T. It is built anew for
 * each task and whenever rows are added, and grows by columns in between; an entry per schedule and cell that it uses.
 */
#include <math.h>
#include <string.h>

#include "pricing/master_state.h"
#include "pricing/pricing_tuning.h"
#include "util/util.h"

void pricing_master_lp_free(pricing_master *m)
{
    pricing_simplex_free(m->lp.simplex);
    m->lp.simplex = NULL;
}

/* ---- columns ---- */

static int32_t lp_cells(const pricing_master *m)
{
    return m->lp.n_resources * m->grid.n_buckets;
}

double pricing_master_column_cost(const pricing_master *m, const pricing_column *c)
{
    double cost = 0;
    if (!m->job->memory_price || c->kind < 0)
        return 0;
    int32_t begin = m->b->component_off[m->b->kind_component[c->kind]];
    int32_t n = m->b->component_off[m->b->kind_component[c->kind] + 1] - begin;
    for (int32_t i = 0; i < n; i++)
        cost += (double)m->job->memory_price[c->device[i]] / (double)m->b->unit *
                (double)m->b->problem.op_memory_bytes[m->b->component_op[begin + i]];
    return cost;
}

int32_t pricing_master_entries(pricing_master *m, const pricing_column *c)
{
    int32_t n = 0;
    memset(m->cell.mass, 0, sizeof *m->cell.mass * (size_t)m->cell.n);
    for (int32_t i = 0; i < 2 * c->n_uses; i++) {
        const pricing_use *use = &c->use[i / 2];
        int32_t r = i % 2 ? use->r2 : use->r1;
        if (r >= 0)
            pricing_grid_spread(&m->grid, pricing_pricer_stand_in(m->w, r), use, m->cell.bucket_ns, m->cell.mass);
    }
    for (int32_t i = 0; i < m->cell.n; i++)
        if (m->cell.mass[i] > 0) {
            m->lp.row[n] = i;
            m->lp.value[n++] = m->cell.mass[i];
        }
    m->lp.row[n] = pricing_master_convexity_row(m, c->kind);
    m->lp.value[n++] = 1;
    for (int32_t i = 0; i < m->job->at.n_branches; i++) {
        const pricing_branch *branch = &m->job->at.branch[i];
        if (branch->on == PRICING_NUMBER && branch->kind == c->kind && c->device[branch->op] == branch->device) {
            m->lp.row[n] = pricing_master_branch_row(m, i);
            m->lp.value[n++] = 1;
        }
    }
    return n;
}

/* From rows of all cells to rows of the LP. */
static int32_t lp_entries(pricing_master *m, int32_t n)
{
    int32_t kept = 0, buckets = m->grid.n_buckets, shift = m->cell.n - lp_cells(m);
    for (int32_t i = 0; i < n; i++) {
        int32_t row = m->lp.row[i];
        if (row < m->cell.n && m->lp.resource[row / buckets] < 0)
            continue;
        m->lp.row[kept] = row < m->cell.n ? m->lp.resource[row / buckets] * buckets + row % buckets : row - shift;
        m->lp.value[kept++] = m->lp.value[i];
    }
    return kept;
}

static int lp_note(pricing_master *m, int32_t what)
{
    if (util_grow(&m->lp.column, &m->lp.capacity, m->lp.n + 1, sizeof *m->lp.column))
        return MOIRAI_EFAIL;
    m->lp.column[m->lp.n++] = what;
    return 0;
}

int pricing_master_lp_take(pricing_master *m, int32_t index)
{
    const pricing_column *c = &m->pool.column[index].c;
    int32_t n = lp_entries(m, pricing_master_entries(m, c));
    int rc = pricing_simplex_add_column(m->lp.simplex, pricing_master_column_cost(m, c), n, m->lp.row, m->lp.value);
    return rc ? rc : lp_note(m, index);
}

/* ---- building ---- */

/* The cell of a row of the LP. */
static int32_t cell_of(const pricing_master *m, int32_t row)
{
    int32_t buckets = m->grid.n_buckets, r = 0;
    while (m->lp.resource[r] != row / buckets)
        r++;
    return r * buckets + row % buckets;
}

/* A cell has the time of all resources that it stands for; those that have a stand-in are never used. */
static double copies(const pricing_master *m, int32_t cell)
{
    return UTIL_MAX(pricing_pricer_copies(m->w, cell / m->grid.n_buckets), 1);
}

static int lp_rows(pricing_master *m)
{
    double *lower = m->price.mean, *upper = m->lp.row_dual; /* not yet in use */
    int32_t cells = lp_cells(m), rows = m->lp.n_rows - m->cell.n + cells;
    for (int32_t i = 0; i < rows; i++) {
        int32_t kind = i - cells - m->n_sends, branch = kind - m->b->n_kinds;
        if (i < cells) {
            lower[i] = -HUGE_VAL;
            upper[i] = copies(m, cell_of(m, i)) * m->cell.held[cell_of(m, i)];
        } else if (branch >= 0) {
            bool counted = m->job->at.branch[branch].on == PRICING_NUMBER; /* times are the pricing's business */
            lower[i] = counted ? (double)m->job->at.branch[branch].least : -HUGE_VAL;
            upper[i] = counted ? (double)m->job->at.branch[branch].most : HUGE_VAL;
        } else {
            lower[i] = upper[i] = kind >= 0 ? m->b->kind_count[kind] : 1;
        }
    }
    lower[rows] = upper[rows] = 1; /* the block times, where there is one */
    rows += m->job->form == PRICING_PRICED_FORM;
    pricing_master_lp_free(m);
    return rows > PRICING_SIMPLEX_ROWS ? MOIRAI_ELIMIT : pricing_simplex_new(&m->lp.simplex, rows, lower, upper);
}

/* A column that gives every cell a part of its bucket. */
static int lp_give(pricing_master *m, double cost, const double *part, bool in_solution)
{
    int32_t n = 0;
    for (int32_t row = 0; row < lp_cells(m); row++)
        if (part[cell_of(m, row)] > 0) {
            m->lp.row[n] = row;
            m->lp.value[n++] = -copies(m, cell_of(m, row)) * part[cell_of(m, row)];
        }
    if (in_solution) {
        m->lp.row[n] = m->lp.n_rows - m->cell.n + lp_cells(m);
        m->lp.value[n++] = 1;
    }
    int rc = pricing_simplex_add_column(m->lp.simplex, cost, n, m->lp.row, m->lp.value);
    return rc ? rc : lp_note(m, -1);
}

/* theta; or block times at the ends of buckets, and more of everything at a price that no good LP solution pays. */
static int lp_lengths(pricing_master *m)
{
    int32_t buckets = m->grid.n_buckets, cells = m->cell.n;
    double *part = m->cell.mass;
    m->n_lengths = 0;
    if (m->job->form == PRICING_LENGTH_FORM) {
        for (int32_t i = 0; i < cells; i++)
            part[i] = pricing_bucket_ns(&m->grid, i % buckets) > 0 ? pricing_master_free_part(m, i) : 0;
        return lp_give(m, 1, part, false);
    }
    int rc = 0;
    for (int32_t j = -1; j < buckets && !rc; j++) {
        int64_t length =
            j < 0 ? m->job->least_ns : UTIL_MIN(m->grid.bucket_step[j + 1] * m->grid.step_ns, m->grid.length_ns);
        if (j >= 0 && length <= m->job->least_ns)
            continue;
        for (int32_t i = 0; i < cells; i++) {
            double from = (double)(m->grid.bucket_step[i % buckets] * m->grid.step_ns);
            part[i] = fmin(fmax(((double)length - from) / m->cell.bucket_ns[i], 0), 1);
        }
        m->length_ns[m->n_lengths++] = (double)length;
        rc = lp_give(m, (double)length, part, true);
    }
    for (int32_t i = 0; i < cells; i++)
        part[i] = pricing_bucket_ns(&m->grid, i % buckets) > 0;
    return rc ? rc : lp_give(m, PRICING_MASTER_LP_OVERTIME * (double)m->grid.length_ns, part, false);
}

/* Counts may be missed, at a price that no good LP solution pays. */
static int lp_elastic(pricing_master *m)
{
    double price = m->job->form == PRICING_PRICED_FORM ? PRICING_MASTER_LP_ELASTIC * (double)m->grid.length_ns
                                                       : PRICING_MASTER_LP_ELASTIC;
    int rc = 0;
    for (int32_t i = 0; !rc && i < 2 * m->job->at.n_branches; i++) {
        m->lp.row[0] = pricing_master_branch_row(m, i / 2) - m->cell.n + lp_cells(m);
        m->lp.value[0] = i % 2 ? -1 : 1;
        rc = pricing_simplex_add_column(m->lp.simplex, price, 1, m->lp.row, m->lp.value);
        rc = rc ? rc : lp_note(m, -1);
    }
    return rc;
}

/* Schedules that were found on a much coarser grid take less than any on this one: they would promise too much. */
static bool fits(const pricing_master *m, const pricing_pool_column *x)
{
    return x->step_ns <= 2 * m->grid.step_ns && pricing_pricer_fits(m->w, &x->c);
}

int pricing_master_lp_build(pricing_master *m)
{
    m->lp.n = m->lp.n_solved = 0;
    int rc = lp_rows(m);
    rc = rc ? rc : lp_lengths(m);
    rc = rc ? rc : lp_elastic(m);
    for (size_t c = 0; !rc && c < m->pool.n; c++)
        if (fits(m, &m->pool.column[c]))
            rc = pricing_master_lp_take(m, (int32_t)c);
    return rc;
}

/* ---- solving ---- */

/* Dual values of the LP's rows as prices over all cells. */
static void take_duals(pricing_master *m)
{
    int32_t buckets = m->grid.n_buckets, shift = m->cell.n - lp_cells(m);
    for (int32_t i = 0; i < m->lp.n_rows; i++) {
        int32_t r = i < m->cell.n ? m->lp.resource[pricing_pricer_stand_in(m->w, i / buckets)] : 0,
                branch = i - pricing_master_branch_row(m, 0);
        if (i < m->cell.n)
            m->price.dual[i] = r < 0 ? 0 : fmax(-m->lp.row_dual[r * buckets + i % buckets], 0);
        else
            m->price.dual[i] = branch >= 0 ? -m->lp.row_dual[i - shift] : m->lp.row_dual[i - shift];
    }
}

/* The part of a cell that the mixed block times leave. */
static double offered_part(const pricing_master *m, int32_t cell)
{
    double from = (double)(m->grid.bucket_step[cell % m->grid.n_buckets] * m->grid.step_ns),
           sum = m->lp.primal[m->n_lengths];
    for (int32_t j = 0; j < m->n_lengths; j++)
        sum += m->lp.primal[j] * fmin(fmax((m->length_ns[j] - from) / m->cell.bucket_ns[cell], 0), 1);
    return sum;
}

/* Give rows to resources of which the LP solution takes more than there is. True if any was found. */
static bool find_overload(pricing_master *m, double theta)
{
    int32_t buckets = m->grid.n_buckets, before = m->lp.n_resources;
    double *load = m->price.mean;
    memset(load, 0, sizeof *load * (size_t)m->cell.n);
    for (size_t x = 0; x < m->lp.n; x++)
        if (pricing_master_column(m, x) && m->lp.primal[x] > 1e-9) {
            int32_t n = pricing_master_entries(m, pricing_master_column(m, x));
            for (int32_t i = 0; i < n; i++)
                if (m->lp.row[i] < m->cell.n)
                    load[m->lp.row[i]] += m->lp.primal[x] * m->lp.value[i];
        }
    for (int32_t i = 0; i < m->cell.n; i++) {
        double offered = m->job->form == PRICING_PRICED_FORM ? offered_part(m, i)
                                                             : m->cell.held[i] + theta * pricing_master_free_part(m, i);
        if (m->lp.resource[i / buckets] < 0 && load[i] > copies(m, i) * offered * 1.001 + 1e-6)
            m->lp.resource[i / buckets] = m->lp.n_resources++;
    }
    return m->lp.n_resources > before;
}

int pricing_master_lp_solve(pricing_master *m, double *value)
{
    bool overloaded = true;
    int rc = 0;
    while (!rc && overloaded) {
        if (util_grow(&m->lp.primal, &m->lp.primal_capacity, m->lp.n, sizeof *m->lp.primal))
            return MOIRAI_EFAIL;
        rc = pricing_simplex_solve(m->lp.simplex, &m->job->stop, value, m->lp.row_dual, m->lp.primal);
        if (!rc) /* else the LP solution of the round before stays */
            m->lp.n_solved = m->lp.n;
        overloaded = !rc && m->lp.n_resources < m->cell.n / m->grid.n_buckets && find_overload(m, *value);
        if (overloaded) {
            m->lp.n_solved = 0; /* columns are numbered anew */
            rc = pricing_master_lp_build(m);
        }
    }
    if (!rc)
        take_duals(m);
    return rc;
}
