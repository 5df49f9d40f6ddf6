/* The columns of a master: schedules that the pricing has found, kept while some LP solution uses them. */
#include <stdlib.h>
#include <string.h>

#include "pricing/master_state.h"
#include "pricing/pricing_tuning.h"
#include "util/util.h"

void pricing_column_free(pricing_pool_column *c)
{
    free(c->use);
    free(c->device);
    free(c->start);
}

/* Keep a schedule from the pricing; false if memory ran out. */
static bool copy_column(const pricing_column *column, pricing_pool_column *c)
{
    *c = (pricing_pool_column){
        .kind = column->kind, .finish_ns = column->finish_ns, .n_ops = column->n_ops, .n_uses = column->n_uses};
    c->use = util_alloc((size_t)c->n_uses, sizeof *c->use);
    c->device = util_alloc((size_t)column->n_ops, sizeof *c->device);
    c->start = util_alloc((size_t)column->n_ops, sizeof *c->start);
    if (!c->use || !c->device || !c->start) {
        pricing_column_free(c);
        return false;
    }
    memcpy(c->use, column->use, sizeof *c->use * (size_t)c->n_uses);
    memcpy(c->device, column->device, (size_t)column->n_ops);
    memcpy(c->start, column->start, sizeof *c->start * (size_t)column->n_ops);
    return true;
}

/* A schedule from the pricing: into the pool and the master, if it could improve the master. */
void pricing_master_take_column(void *data, const pricing_column *column)
{
    pricing_master *m = data;
    pricing_pool_column c;
    if (m->failed || !copy_column(column, &c)) {
        m->failed = 1;
        return;
    }
    double reduced = pricing_master_column_cost(m, &c);
    int32_t n = pricing_master_entries(m, &c), convexity = pricing_master_convexity_row(m, c.kind);
    for (int32_t i = 0; i < n; i++)
        if (m->lp.row[i] != convexity)
            reduced += m->lp.value[i] * m->price.dual[m->lp.row[i]];
    if (m->pool.judging && reduced > m->price.dual[convexity] - 1e-9 * (1 + fabs(m->price.dual[convexity]))) {
        pricing_column_free(&c);
        return;
    }
    if (util_grow(&m->pool.column, &m->pool.capacity, m->pool.n + 1, sizeof *m->pool.column)) {
        pricing_column_free(&c);
        m->failed = 1;
        return;
    }
    c.step_ns = m->grid.step_ns;
    m->pool.column[m->pool.n++] = c;
    if (m->lp.simplex && pricing_master_lp_take(m, (int32_t)m->pool.n - 1))
        m->failed = 1;
    m->pool.added++;
}

void pricing_master_note_idle(pricing_master *m)
{
    for (size_t x = 0; x < m->lp.n_solved; x++) {
        pricing_pool_column *c = pricing_master_column(m, x);
        if (c)
            c->idle = m->lp.primal[x] > 1e-9 ? 0 : c->idle + 1;
    }
}

/* Columns that no LP solution has used for a while go, so that the master stays small. */
void pricing_master_drop_idle(pricing_master *m)
{
    size_t n = 0;
    for (size_t c = 0; c < m->pool.n; c++)
        if (m->pool.n < PRICING_MASTER_COLUMNS_KEEP_ALL ||
            m->pool.column[c].idle < PRICING_MASTER_COLUMNS_IDLE_SOLVES || m->pool.column[c].kind < 0)
            m->pool.column[n++] = m->pool.column[c];
        else
            pricing_column_free(&m->pool.column[c]);
    m->pool.n = n;
}

/* Schedules of components are of use to every sending that they fit; sends are those of one. */
void pricing_master_set_sending(pricing_master *m, const pricing_sending *how)
{
    bool same = pricing_same_sending(&m->how, how);
    m->how = *how;
    m->n_sends = how->fixed ? how->n_receivers : 0;
    size_t n = 0;
    for (size_t c = 0; c < m->pool.n && !same; c++)
        if (m->pool.column[c].kind >= 0)
            m->pool.column[n++] = m->pool.column[c];
        else
            pricing_column_free(&m->pool.column[c]);
    if (!same)
        m->pool.n = n;
}
