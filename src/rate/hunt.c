/* Plans that a mixture lacks: the cheapest at given prices.
 *
 * Networks are narrow, so that the cheapest plan is found exactly in milliseconds (relax/least.h): the programme ends at its least value then, and what the cheapest plan costs proves it. Where tables would be too large,
 * annealing looks for one from the plan that is cheapest now.
 *
 * The programme's prices swing from round to round while it has few plans. So plans are also searched at prices between them and a centre, at which some are
 * missing that the swing passes by (Wentges 1997): the bound's prices at first, then those of which the most is proven. All of a round are searched side by side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/anneal.h"
#include "rate/mix.h"
#include "util/pool.h"
#include "util/util.h"

#define COOL_HEAT 2.0   /* of an operator's part of the value: a start is at hand */
#define COOL_LAST 0.001 /* of that */

/* Plans that are searched side by side, each at prices that are moved by `pull` to the centre. */
typedef struct hunt {
    const mixture *x;
    double part;
    double *asked;   /* [which * R + resource]: the prices */
    int32_t *device; /* [which * operators + operator] */
    double *sum;     /* what they cost at these, where that is known to be the least */
} hunt;

static const double pull[] = {0, 0.5, 0.25, 0.8};
#define HUNTED ((int32_t)(sizeof pull / sizeof *pull))

/* Annealed from the cheapest that there is. `price` is of loads as they are. */
static int anneal_one(const hunt *h, int32_t which, const double *price, int32_t *device)
{
    const mixture *x = h->x;
    const rate_search *s = x->s;
    const double *asked = h->asked + (size_t)which * (size_t)x->R;
    double cool = COOL_HEAT / UTIL_MAX(s->units->n, 1);
    int32_t best = 0;
    int64_t load;
    for (int32_t i = 1; i < x->n; i++)
        best = mix_cost(x, asked, i) < mix_cost(x, asked, best) ? i : best;
    memcpy(device, x->column[best], sizeof *device * (size_t)s->p->n_ops);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .price = price,
                            .heat = cool,
                            .last_heat = COOL_LAST * cool,
                            .steps = rate_search_steps(s, h->part),
                            .seed = s->seed + (uint64_t)which,
                            .stop = x->stop};
    return rate_anneal(device, &load, &job);
}

/* The cheapest of all. */
static int find_one(const mixture *x, const double *price, int32_t *device, double *sum)
{
    const rate_search *s = x->s;
    size_t n = (size_t)s->p->n_ops, K = (size_t)s->v.K;
    double *own = util_alloc(n * K, sizeof *own);
    uint8_t *found = util_alloc(n, sizeof *found);
    int rc = own && found ? 0 : MOIRAI_EFAIL;
    for (size_t i = 0; i < n && !rc; i++) {
        int32_t unit = s->units->of_op[i];
        uint64_t may = s->units->devices[unit] & (x->room->devices ? x->room->devices[unit] : UINT64_MAX);
        for (size_t k = 0; k < K; k++)
            own[i * K + k] = may >> k & 1 ? price[k] * (double)moirai_op_ns(s->p, (int32_t)i, (int32_t)k) : HUGE_VAL;
    }
    rc = rc ? rc : rate_least_find(s->columns.least, own, price, found, sum, &x->stop);
    for (size_t i = 0; i < n && !rc; i++)
        device[i] = found[i];
    free(own);
    free(found);
    return rc;
}

/* A plan that is cheap at its prices. */
static int hunt_one(void *data, int32_t which)
{
    hunt *h = data;
    const mixture *x = h->x;
    const rate_search *s = x->s;
    double *asked = h->asked + (size_t)which * (size_t)x->R, *price = util_alloc((size_t)x->R, sizeof *price);
    int32_t *device = h->device + (size_t)which * (size_t)s->p->n_ops;
    if (!price)
        return MOIRAI_EFAIL;
    for (int32_t r = 0; r < x->R; r++) {
        asked[r] = pull[which] * x->centre[r] + (1 - pull[which]) * x->price[r];
        price[r] = asked[r] * (r < s->v.K ? 1 : x->ease); /* of loads as they are */
    }
    int rc = s->columns.least ? find_one(x, price, device, &h->sum[which]) : anneal_one(h, which, price, device);
    free(price);
    return rc;
}

/* The centre is where the cheapest plan costs most: what that costs no mixture undercuts. */
static void move_centre(mixture *x, const hunt *h)
{
    for (int32_t i = 0; i < HUNTED; i++)
        if (h->sum[i] / x->unit_ns > x->least) {
            x->least = h->sum[i] / x->unit_ns;
            memcpy(x->centre, h->asked + (size_t)i * (size_t)x->R, sizeof *x->centre * (size_t)x->R);
        }
}

int mix_price_columns(mixture *x, double part, bool *found)
{
    rate_search *s = x->s;
    size_t n = (size_t)s->p->n_ops;
    hunt h = {.x = x, .part = part};
    h.asked = util_alloc((size_t)x->R * HUNTED, sizeof *h.asked);
    h.device = util_alloc(n * HUNTED, sizeof *h.device);
    h.sum = util_alloc(HUNTED, sizeof *h.sum);
    int rc = h.asked && h.device && h.sum ? util_pool_run(hunt_one, &h, HUNTED, s->o->budget.threads) : MOIRAI_EFAIL;
    s->seed += HUNTED;
    for (int32_t i = 0; i < HUNTED && !rc; i++) {
        int32_t before = x->n;
        rc = mix_add_column(x, h.device + (size_t)i * n);
        *found |= !rc && x->n > before && mix_cost(x, x->price, before) < x->value * (1 - MIX_CHEAPER);
    }
    if (!rc)
        move_centre(x, &h);
    free(h.asked);
    free(h.device);
    free(h.sum);
    return rc;
}
