/* The columns of a master: schedules that the pricing has found, kept while some LP solution uses them. */
#include <stdlib.h>
#include <string.h>

#include "pricing/master_state.h"
#include "pricing/pricing_tuning.h"
#include "util/util.h"

/* A copy of a schedule from the pricing; false if memory ran out. */
static bool copy_column(const pricing_column *from, pricing_column *c)
{
    size_t ops = (size_t)from->n_ops, uses = (size_t)from->n_uses;
    *c = *from;
    c->use = util_alloc(uses * sizeof *c->use + ops * (sizeof *c->start + sizeof *c->device), 1);
    if (!c->use)
        return false;
    c->start = (int64_t *)(void *)(c->use + uses);
    c->device = (int8_t *)(c->start + ops);
    memcpy(c->use, from->use, uses * sizeof *c->use);
    memcpy(c->start, from->start, ops * sizeof *c->start);
    memcpy(c->device, from->device, ops * sizeof *c->device);
    return true;
}

/* Whether the dual values of the LP say that the column would improve it. */
static bool improves(pricing_master *m, const pricing_column *c)
{
    double reduced = pricing_master_column_cost(m, c);
    int32_t n = pricing_master_entries(m, c), convexity = pricing_master_convexity_row(m, c->kind);
    for (int32_t i = 0; i < n; i++)
        if (m->lp.row[i] != convexity)
            reduced += m->lp.value[i] * m->price.dual[m->lp.row[i]];
    return !(reduced > m->price.dual[convexity] - 1e-9 * (1 + fabs(m->price.dual[convexity])));
}

void pricing_master_take_column(void *data, const pricing_column *column)
{
    pricing_master *m = data;
    pricing_pool_column x = {.step_ns = m->grid.step_ns};
    if (m->pool.judging && !improves(m, column))
        return;
    if (m->failed || util_grow(&m->pool.column, &m->pool.capacity, m->pool.n + 1, sizeof *m->pool.column) ||
        !copy_column(column, &x.c)) {
        m->failed = 1;
        return;
    }
    m->pool.column[m->pool.n++] = x;
    if (m->lp.simplex && pricing_master_lp_take(m, (int32_t)m->pool.n - 1))
        m->failed = 1;
    m->pool.added++;
}

void pricing_master_note_idle(pricing_master *m)
{
    for (size_t x = 0; x < m->lp.n_solved; x++)
        if (m->lp.column[x] >= 0) {
            int32_t *idle = &m->pool.column[m->lp.column[x]].idle;
            *idle = m->lp.primal[x] > 1e-9 ? 0 : *idle + 1;
        }
}

/* Keeps, or frees, columns by `keeps`. */
static void sift(pricing_master *m, bool (*keeps)(const pricing_master *m, const pricing_pool_column *x))
{
    size_t n = 0;
    for (size_t c = 0; c < m->pool.n; c++)
        if (keeps(m, &m->pool.column[c]))
            m->pool.column[n++] = m->pool.column[c];
        else
            free(m->pool.column[c].c.use);
    m->pool.n = n;
}

static bool is_used(const pricing_master *m, const pricing_pool_column *x)
{
    return m->pool.n < PRICING_MASTER_COLUMNS_KEEP_ALL || x->idle < PRICING_MASTER_COLUMNS_IDLE_SOLVES || x->c.kind < 0;
}

void pricing_master_drop_idle(pricing_master *m)
{
    sift(m, is_used);
}

static bool is_no_send(const pricing_master *m, const pricing_pool_column *x)
{
    (void)m;
    return x->c.kind >= 0;
}

/* Schedules of components are of use to every sending that they fit; sends are those of one. */
void pricing_master_set_sending(pricing_master *m, const pricing_sending *how)
{
    if (!pricing_same_sending(&m->how, how))
        sift(m, is_no_send);
    m->how = *how;
    m->n_sends = how->fixed ? how->n_receivers : 0;
}
