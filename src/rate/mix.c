/* Mixtures: several plans, each for a share of the requests.
 *
 * Loads add up in shares, so the best shares of given plans are a linear programme: the least T with sum of q(c) load(c, r) <= T for every resource and shares that
 * sum to 1. Its duals are prices of resources, and a plan that is cheaper at these prices than T is one that the mixture lacks: it is searched by
 * annealing on the priced loads, from the plan that is cheapest now, and the programme is solved again (column generation). With weights everywhere the result
 * is all but the bound. A device holds the weights of every plan that is used: where these do not fit, there is no mixture.
 *
 * The programme's prices swing from round to round while it has few plans. Those of the bound do not: every other plan is searched at prices between the two, at which some are
 * missing that the swing passes by. Four plans are searched side by side. Plans with a share are kept, so that the next mixture goes on where this one ended.
 *
 * A stream does not fill ports as it fills devices: a transfer needs two of them at once, and goes whole. A mixture whose ports are all but full reaches its largest load with no number
 * of requests. So mixtures are also made with transfers that count for more than they take (`ease`), and the simulator says which is faster.
 *
 * Shares become whole parts, so that the turns of copies come back and the stream reaches a steady state: of as many parts, up to MOST_PARTS, as lose least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/simplex.h"
#include "rate/anneal.h"
#include "rate/search.h"
#include "util/pool.h"
#include "util/util.h"

#define ROUNDS 30
#define COOL_HEAT 2.0        /* of an operator's part of the value: a start is at hand */
#define COOL_LAST 0.001      /* of that */
#define ROUND_PART (1 / 3.0) /* of the steps of a run of annealing: a start is at hand */
#define FAILED_ROUNDS 2      /* without a plan that is missing: it is over */
#define MOST_COLUMNS 256
#define MOST_COPIES 16
#define LEAST_PARTS 20
#define MOST_PARTS 400
#define PARTS_OF_ALL 1000000 /* a plan's shares are whole millionths: other parts would be other turns */
#define CHEAPER 1e-4         /* of T: worth a column */

static const double eases[] = {1.1, 1.05, 1.25, 1.6}; /* in the order in which they were the best */

typedef struct mixture {
    rate_search *s;
    pricing_simplex *lp;
    int32_t R;
    double ease;                   /* what is counted of ports and channels, by what they carry */
    int32_t *column[MOST_COLUMNS]; /* devices, owned */
    int64_t *load_ns;              /* [column * R + resource] */
    int32_t n;
    double unit_ns, value;
    double *dual, *primal, *price;
    double *proven; /* the bound's prices; NULL: there are none */
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
    for (int32_t r = s->v.K; r < x->R; r++)
        load[r] = (int64_t)((double)load[r] * x->ease);
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

static double cost(const mixture *x, const double *price, int32_t column)
{
    double sum = 0;
    for (int32_t r = 0; r < x->R; r++)
        sum += price[r] * (double)x->load_ns[(int64_t)column * x->R + r];
    return sum / x->unit_ns;
}

/* Plans that are searched side by side, each at prices that are moved by `pull` to those of the bound. */
typedef struct hunt {
    const mixture *x;
    double part;
    double *asked;   /* [which * R + resource]: the prices */
    int32_t *device; /* [which * operators + operator] */
} hunt;

static const double pull[] = {0, 0.5, 0, 0.9};
#define HUNTED ((int32_t)(sizeof pull / sizeof *pull))

/* A plan that is cheap at its prices, from the cheapest that there is. */
static int hunt_one(void *data, int32_t which)
{
    hunt *h = data;
    const mixture *x = h->x;
    const rate_search *s = x->s;
    size_t n = (size_t)s->p->n_ops;
    double *asked = h->asked + (size_t)which * (size_t)x->R, cool = COOL_HEAT / UTIL_MAX(s->units->n, 1);
    int32_t best = 0, *device = h->device + (size_t)which * n;
    int64_t load;
    for (int32_t r = 0; r < x->R; r++)
        asked[r] = x->proven ? pull[which] * x->proven[r] + (1 - pull[which]) * x->price[r] : x->price[r];
    for (int32_t i = 1; i < x->n; i++)
        best = cost(x, asked, i) < cost(x, asked, best) ? i : best;
    for (int32_t r = s->v.K; r < x->R; r++)
        asked[r] *= x->ease; /* of loads as they are */
    memcpy(device, x->column[best], sizeof *device * n);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .price = asked,
                            .heat = cool,
                            .last_heat = COOL_LAST * cool,
                            .steps = rate_search_steps(s, h->part),
                            .seed = s->seed + (uint64_t)which,
                            .stop = s->stop};
    return rate_anneal(device, &load, &job);
}

/* Adds HUNTED plans; *found where one is worth a column. */
static int price_columns(mixture *x, double part, bool *found)
{
    rate_search *s = x->s;
    size_t n = (size_t)s->p->n_ops;
    hunt h = {.x = x, .part = part};
    h.asked = util_alloc((size_t)x->R * HUNTED, sizeof *h.asked);
    h.device = util_alloc(n * HUNTED, sizeof *h.device);
    int rc = h.asked && h.device ? util_pool_run(hunt_one, &h, HUNTED, s->o->budget.threads) : MOIRAI_EFAIL;
    s->seed += HUNTED;
    for (int32_t i = 0; i < HUNTED && !rc; i++) {
        int32_t before = x->n;
        rc = add_column(x, h.device + (size_t)i * n);
        *found |= !rc && x->n > before && cost(x, x->price, before) < x->value * (1 - CHEAPER);
    }
    free(h.asked);
    free(h.device);
    return rc;
}

/* ---- shares ---- */

typedef struct shares {
    int32_t n, column[MOST_COPIES];
    int64_t part[MOST_COPIES], all;
    double load; /* the largest, in units */
} shares;

/* The columns with the largest shares. */
static void list_used(const mixture *x, shares *s)
{
    s->n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int32_t at = s->n < MOST_COPIES ? s->n++ : MOST_COPIES;
        for (; at > 0 && x->primal[i + 1] > x->primal[s->column[at - 1] + 1]; at--) /* the first value is T */
            if (at < MOST_COPIES)
                s->column[at] = s->column[at - 1];
        if (at < MOST_COPIES)
            s->column[at] = i;
    }
}

/* Shares in whole parts of `all`; what rounding leaves over is the largest share's. False: there is none left for it. */
static bool round_shares(const mixture *x, shares *s, int64_t all)
{
    int64_t sum = 0;
    s->load = 0;
    s->all = all;
    for (int32_t i = 0; i < s->n; i++) {
        s->part[i] = (int64_t)(x->primal[s->column[i] + 1] * (double)all + 0.5);
        sum += s->part[i];
    }
    s->part[0] += all - sum;
    for (int32_t r = 0; r < x->R && s->part[0] > 0; r++) {
        double load = 0;
        for (int32_t i = 0; i < s->n; i++)
            load += (double)s->part[i] * (double)x->load_ns[(int64_t)s->column[i] * x->R + r];
        s->load = fmax(s->load, load / ((double)all * x->unit_ns));
    }
    return s->part[0] > 0;
}

static int add_candidate(mixture *x)
{
    shares best = {.load = HUGE_VAL}, s = {0};
    list_used(x, &s);
    for (int64_t all = LEAST_PARTS; all <= MOST_PARTS && s.n > 0; all++)
        if (PARTS_OF_ALL % all == 0 && round_shares(x, &s, all) && s.load < best.load * (1 - 1e-9))
            best = s;
    int32_t n = 0;
    for (int32_t i = 0; i < best.n; i++)
        n += best.part[i] > 0;
    if (n < 2)
        return 0;
    rate_candidate *c;
    int rc = rate_candidate_new(&c, x->s->p, "mixture", n);
    for (int32_t i = 0, k = 0; i < best.n && !rc; i++) {
        if (best.part[i] == 0)
            continue;
        memcpy(c->device[k], x->column[best.column[i]], sizeof **c->device * (size_t)x->s->p->n_ops);
        c->share[k++] = best.part[i];
    }
    return rc ? rc : rate_search_add(x->s, c);
}

/* ---- rounds ---- */

static int improve(mixture *x, double part)
{
    const rate_search *s = x->s;
    int rc = solve(x), failed = 0;
    for (int32_t i = 0; i < ROUNDS && !rc && x->n < MOST_COLUMNS && !util_stopped(&s->stop); i++) {
        bool found = false;
        rc = price_columns(x, ROUND_PART * part, &found);
        rc = rc ? rc : solve(x);
        failed = found ? 0 : failed + 1;
        if (failed == FAILED_ROUNDS || x->value * x->unit_ns <= (double)s->bound_ns * (1 + CHEAPER))
            break;
    }
    rc = rc == MOIRAI_ELIMIT ? 0 : rc; /* the solver gives up, or the time is over: the last shares stay */
    return rc ? rc : add_candidate(x);
}

void rate_columns_clear(rate_columns *c)
{
    for (int32_t i = 0; i < c->n; i++)
        free(c->device[i]);
    free(c->device);
    *c = (rate_columns){0};
}

/* Those with a share are for the next time. */
static int keep_columns(mixture *x)
{
    rate_columns *kept = &x->s->columns;
    rate_columns_clear(kept);
    kept->device = util_alloc((size_t)x->n, sizeof *kept->device);
    if (!kept->device)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->n; i++) {
        if (x->primal[i + 1] <= 0)
            continue;
        kept->device[kept->n++] = x->column[i];
        x->column[i] = NULL;
    }
    return 0;
}

/* Plans so far, those of least load first. */
static int add_columns(mixture *x)
{
    const rate_search *s = x->s;
    int rc = 0;
    for (int32_t i = 0; i < s->columns.n && !rc; i++)
        rc = add_column(x, s->columns.device[i]);
    for (int32_t i = 0; i < s->n_candidates && !rc; i++) {
        const rate_candidate *c = s->candidate[i];
        for (int32_t j = 0; j < c->n_copies && !rc && x->n < MOST_COLUMNS - ROUNDS * HUNTED; j++)
            if (c->slots[0] > 0 || c->n_copies == 1) /* the copies of an earlier mixture are not worth it */
                rc = add_column(x, c->device[j]);
    }
    return rc;
}

/* Prices of the bound, with the sum 1. */
static void take_proven(mixture *x)
{
    const relax_proof *proof = &x->s->relaxed.proof;
    double sum = 0;
    for (int32_t r = 0; proof->n_leaves > 0 && r < x->R; r++)
        sum += (double)proof->leaf[0].price[r];
    for (int32_t r = 0; sum > 0 && r < x->R; r++)
        x->proven[r] = (double)proof->leaf[0].price[r] / sum;
    if (sum <= 0) {
        free(x->proven);
        x->proven = NULL;
    }
}

static int mix(rate_search *s, double part, double ease)
{
    mixture x = {.s = s, .R = s->v.n_resources, .ease = ease};
    size_t R = (size_t)x.R;
    if (s->v.bytes_bind || x.R + 1 > PRICING_SIMPLEX_ROWS || !s->best || s->in_flight < 2)
        return 0;
    x.unit_ns = (double)UTIL_MAX(s->best->outcome.period_ns, 1);
    x.load_ns = util_alloc(R * MOST_COLUMNS, sizeof *x.load_ns);
    x.dual = util_alloc(R + 1, sizeof *x.dual);
    x.price = util_alloc(R, sizeof *x.price);
    x.proven = util_alloc(R, sizeof *x.proven);
    x.primal = util_alloc(MOST_COLUMNS + 1, sizeof *x.primal);
    x.row = util_alloc(R + 1, sizeof *x.row);
    x.entry = util_alloc(R + 1, sizeof *x.entry);
    bool fine = x.load_ns && x.dual && x.price && x.proven && x.primal && x.row && x.entry;
    if (fine)
        take_proven(&x);
    int rc = fine ? open_programme(&x) : MOIRAI_EFAIL;
    rc = rc ? rc : add_columns(&x);
    if (!rc && x.n > 0)
        rc = improve(&x, part);
    if (!rc && x.n > 0)
        rc = keep_columns(&x);
    pricing_simplex_free(x.lp);
    for (int32_t i = 0; i < x.n; i++)
        free(x.column[i]);
    void *all[] = {x.load_ns, x.dual, x.price, x.proven, x.primal, x.row, x.entry};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

int rate_add_mixtures(rate_search *s, double part)
{
    int rc = 0;
    if (s->v.n_resources == s->v.K)
        return mix(s, part, 1);
    for (size_t i = 0; i < sizeof eases / sizeof *eases && !rc && !util_stopped(&s->stop); i++)
        rc = mix(s, part, eases[i]);
    return rc;
}
