/* Mixtures: several plans, each for a share of the requests.
 *
 * Loads add up in shares, so the best shares of given plans are a linear programme: the least T with sum of q(c) load(c, r) <= T for every resource and shares that
 * sum to 1. Its duals are prices of resources, and a plan that is cheaper at these prices than T is one that the mixture lacks: it is searched by
 * annealing on the priced loads, from the plan that is cheapest now, and the programme is solved again (column generation). With weights everywhere the result
 * is all but the bound. A device holds the weights of every plan that is used: where these do not fit, there is no mixture.
 *
 * Shares become whole parts of SHARES, so that the turns of copies come back and the stream reaches a steady state. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/simplex.h"
#include "rate/anneal.h"
#include "rate/search.h"
#include "util/util.h"

#define ROUNDS 8
#define MOST_COLUMNS 96
#define MOST_COPIES 12
#define SHARES 200
#define CHEAPER 1e-4 /* of T: worth a column */

typedef struct mixture {
    rate_search *s;
    pricing_simplex *lp;
    int32_t R;
    int32_t *column[MOST_COLUMNS]; /* devices, owned */
    int64_t *load_ns;              /* [column * R + resource] */
    int32_t n;
    double unit_ns, value;
    double *dual, *primal, *price;
    int32_t *row;
    double *entry;
} mixture;

static int add_column(mixture *x, const int32_t *device)
{
    const rate_search *s = x->s;
    rate_candidate one = {.n_copies = 1, .device = (int32_t *[]){(int32_t *)device}};
    int64_t *load = x->load_ns + (int64_t)x->n * x->R, all = 1;
    if (x->n == MOST_COLUMNS)
        return 0;
    if (rate_loads(load, &s->v, &one, &all, 1) < 0)
        return MOIRAI_EFAIL;
    x->column[x->n] = util_alloc((size_t)s->p->n_ops, sizeof **x->column);
    if (!x->column[x->n])
        return MOIRAI_EFAIL;
    memcpy(x->column[x->n], device, sizeof *device * (size_t)s->p->n_ops);
    x->n++;
    for (int32_t r = 0; r < x->R; r++)
        x->entry[r] = -(double)load[r] / x->unit_ns;
    x->entry[x->R] = 1;
    return pricing_simplex_add_column(x->lp, 0, x->R + 1, x->row, x->entry);
}

/* Rows: T - loads >= 0; the shares sum to 1. The first column is T. */
static int open_programme(mixture *x)
{
    size_t rows = (size_t)x->R + 1;
    double *lower = util_alloc(rows, sizeof *lower), *upper = util_alloc(rows, sizeof *upper);
    int rc = lower && upper ? 0 : MOIRAI_EFAIL;
    for (int32_t r = 0; r <= x->R && !rc; r++) {
        lower[r] = r == x->R;
        upper[r] = r == x->R ? 1 : HUGE_VAL;
        x->row[r] = r;
        x->entry[r] = 1;
    }
    rc = rc ? rc : pricing_simplex_new(&x->lp, x->R + 1, lower, upper);
    rc = rc ? rc : pricing_simplex_add_column(x->lp, 1, x->R, x->row, x->entry);
    free(lower);
    free(upper);
    return rc;
}

static int solve(mixture *x)
{
    double sum = 0;
    int rc = pricing_simplex_solve(x->lp, &x->s->stop, &x->value, x->dual, x->primal);
    for (int32_t r = 0; r < x->R && !rc; r++)
        sum += fmax(x->dual[r], 0);
    for (int32_t r = 0; r < x->R && !rc; r++)
        x->price[r] = sum > 0 ? fmax(x->dual[r], 0) / sum : 1.0 / x->R;
    return rc;
}

static double cost(const mixture *x, int32_t column)
{
    double sum = 0;
    for (int32_t r = 0; r < x->R; r++)
        sum += x->price[r] * (double)x->load_ns[(int64_t)column * x->R + r];
    return sum / x->unit_ns;
}

/* A plan that is cheap at the prices; *found where it is worth a column. */
static int price_column(mixture *x, double part, bool *found)
{
    rate_search *s = x->s;
    int32_t best = 0;
    int64_t load;
    for (int32_t i = 1; i < x->n; i++)
        best = cost(x, i) < cost(x, best) ? i : best;
    int32_t *device = util_alloc((size_t)s->p->n_ops, sizeof *device);
    if (!device)
        return MOIRAI_EFAIL;
    memcpy(device, x->column[best], sizeof *device * (size_t)s->p->n_ops);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .price = x->price,
                            .steps = rate_search_steps(s, part),
                            .seed = s->seed++,
                            .stop = s->stop};
    int rc = rate_anneal(device, &load, &job);
    int32_t before = x->n;
    rc = rc ? rc : add_column(x, device);
    free(device);
    *found = !rc && x->n > before && cost(x, before) < x->value * (1 - CHEAPER);
    return rc;
}

/* The columns that have a share, in whole parts. */
static int add_candidate(mixture *x)
{
    int32_t copy[MOST_COLUMNS], n = 0;
    int64_t share[MOST_COLUMNS], sum = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int64_t parts = (int64_t)(x->primal[i + 1] * SHARES + 0.5); /* the first value is T */
        if (parts > 0 && n < MOST_COPIES) {
            share[n] = parts;
            copy[n++] = i;
            sum += parts;
        }
    }
    if (n < 2 || sum == 0)
        return 0;
    int32_t most = 0; /* what rounding has left over is the largest share's: a small part of it */
    for (int32_t i = 1; i < n; i++)
        most = share[i] > share[most] ? i : most;
    share[most] += SHARES - sum;
    if (share[most] <= 0)
        return 0;
    rate_candidate *c;
    int rc = rate_candidate_new(&c, x->s->p, "mixture", n);
    for (int32_t i = 0; i < n && !rc; i++) {
        memcpy(c->device[i], x->column[copy[i]], sizeof **c->device * (size_t)x->s->p->n_ops);
        c->share[i] = share[i];
    }
    return rc ? rc : rate_search_add(x->s, c);
}

static int improve(mixture *x, double part)
{
    const rate_search *s = x->s;
    int rc = solve(x);
    for (int32_t i = 0; i < ROUNDS && !rc && x->n < MOST_COLUMNS && !util_stopped(&s->stop); i++) {
        bool found = false;
        rc = price_column(x, part, &found);
        rc = rc ? rc : solve(x);
        if (!found || x->value * x->unit_ns <= (double)s->bound_ns * (1 + CHEAPER))
            break;
    }
    rc = rc == MOIRAI_ELIMIT ? 0 : rc; /* the solver gives up, or the time is over: the last shares stay */
    return rc ? rc : add_candidate(x);
}

/* Plans so far, those of least load first. */
static int add_columns(mixture *x)
{
    const rate_search *s = x->s;
    int rc = 0;
    for (int32_t i = 0; i < s->n_candidates && !rc; i++) {
        const rate_candidate *c = s->candidate[i];
        for (int32_t j = 0; j < c->n_copies && !rc && x->n < MOST_COLUMNS - ROUNDS; j++)
            if (c->slots[0] > 0 || c->n_copies == 1) /* the copies of an earlier mixture are not worth it */
                rc = add_column(x, c->device[j]);
    }
    return rc;
}

int rate_add_mixtures(rate_search *s, double part)
{
    mixture x = {.s = s, .R = s->v.n_resources};
    size_t R = (size_t)x.R;
    if (s->v.bytes_bind || x.R + 1 > PRICING_SIMPLEX_ROWS || !s->best || s->in_flight < 2)
        return 0;
    x.unit_ns = (double)UTIL_MAX(s->best->outcome.period_ns, 1);
    x.load_ns = util_alloc(R * MOST_COLUMNS, sizeof *x.load_ns);
    x.dual = util_alloc(R + 1, sizeof *x.dual);
    x.price = util_alloc(R, sizeof *x.price);
    x.primal = util_alloc(MOST_COLUMNS + 1, sizeof *x.primal);
    x.row = util_alloc(R + 1, sizeof *x.row);
    x.entry = util_alloc(R + 1, sizeof *x.entry);
    int rc = x.load_ns && x.dual && x.price && x.primal && x.row && x.entry ? open_programme(&x) : MOIRAI_EFAIL;
    rc = rc ? rc : add_columns(&x);
    if (!rc && x.n > 0)
        rc = improve(&x, part);
    pricing_simplex_free(x.lp);
    for (int32_t i = 0; i < x.n; i++)
        free(x.column[i]);
    void *all[] = {x.load_ns, x.dual, x.price, x.primal, x.row, x.entry};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}
