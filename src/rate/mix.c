/* Mixtures: several plans, each for a share of the requests.
 *
 * Loads add up in shares, so the best shares of given plans are a linear programme: the least T with sum of q(c) load(c, r) <= T for every resource and shares that
 * sum to 1. Its duals are prices of resources, and a plan that is cheaper at these prices than T is one that the mixture lacks: it is searched (hunt.c), and the programme is solved again (column
 * generation), until none is. Plans with a share are kept, so that the next mixture goes on where this one ended.
 *
 * A device holds the weights of every plan that is used. Where they do not all fit everywhere, the mixture without that limit says where they are needed most, and a second one keeps to what
 * fits (allow.c).
 *
 * A stream does not fill ports as it fills devices: a transfer needs two of them at once, and goes whole. A mixture whose ports are all but full reaches its largest load with no number
 * of requests. So mixtures are also made with transfers that count for more than they take (`ease`), and the simulator says which is faster.
 *
 * Shares become whole parts, so that the turns of copies come back and the stream reaches a steady state: of as many parts, up to MOST_PARTS, as lose least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/mix.h"
#include "util/util.h"

#define ROUNDS 30
#define ROUND_PART (1 / 3.0) /* of the steps of a run of annealing: a start is at hand */
#define FAILED_ROUNDS 2      /* without a plan that is missing: it is over */
#define MOST_COPIES 16
#define LEAST_PARTS 20
#define MOST_PARTS 400
#define TIME_PART 0.7 /* of the time that is left */
#define LONG_PARTS 64 /* at most, of long streams: their mean is of so few requests that turns must come back soon */
#define PARTS_OF_ALL 1000000 /* a plan's shares are whole millionths: other parts would be other turns */
#define NEW_COLUMNS 128      /* at least for new ones */

static const double eases[] = {1.1, 1.25, 1.05, 1.02, 1, 1.6};
#define LONG_EASES 2 /* of these, where streams are long */

int mix_add_column(mixture *x, const int32_t *device)
{
    const rate_search *s = x->s;
    int64_t *load = x->load_ns + (int64_t)x->n * x->R, all = 1;
    if (x->n == MIX_COLUMNS)
        return 0;
    int32_t *own = x->column[x->n] = util_alloc((size_t)s->p->n_ops, sizeof *own);
    if (!own)
        return MOIRAI_EFAIL;
    x->n++;
    for (int32_t i = 0, *of = s->units->of_op; i < s->p->n_ops; i++)
        own[i] = !x->room->devices || x->room->devices[of[i]] >> device[i] & 1 ? device[i] : x->room->home[of[i]];
    rate_candidate one = {.n_copies = 1, .device = &own};
    if (rate_loads(load, &s->v, &one, &all, 1) < 0)
        return MOIRAI_EFAIL;
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
    int rc = pricing_simplex_solve(x->lp, &x->stop, &x->value, x->dual, x->primal);
    for (int32_t r = 0; r < x->R && !rc; r++)
        sum += fmax(x->dual[r], 0);
    for (int32_t r = 0; r < x->R && !rc; r++)
        x->price[r] = sum > 0 ? fmax(x->dual[r], 0) / sum : 1.0 / x->R;
    return rc;
}

double mix_cost(const mixture *x, const double *price, int32_t column)
{
    double sum = 0;
    for (int32_t r = 0; r < x->R; r++)
        sum += price[r] * (double)x->load_ns[(int64_t)column * x->R + r];
    return sum / x->unit_ns;
}

/* ---- shares ---- */

typedef struct shares {
    int32_t column[MOST_COPIES], n; /* those of the programme's shares that are largest */
    int32_t part[MOST_COPIES], all;
    double load[MIX_ROWS]; /* per resource: of all parts, in units */
    double most;           /* the largest, of one part */
} shares;

static double share_of(const mixture *x, const shares *s, int32_t i)
{
    return x->primal[s->column[i] + 1]; /* the first value is T */
}

static void list_used(const mixture *x, shares *s)
{
    for (int32_t c = 0; c < x->n; c++) {
        int32_t at = s->n;
        if (x->primal[c + 1] <= 0)
            continue;
        for (; at > 0 && x->primal[c + 1] > share_of(x, s, at - 1); at--)
            if (at < MOST_COPIES)
                s->column[at] = s->column[at - 1];
        if (at < MOST_COPIES)
            s->column[at] = c;
        s->n = UTIL_MIN(s->n + 1, MOST_COPIES);
    }
}

static const int64_t *loads_of(const mixture *x, const shares *s, int32_t i)
{
    return x->load_ns + (int64_t)s->column[i] * x->R;
}

static void give(const mixture *x, shares *s, int32_t i, int32_t parts)
{
    s->part[i] += parts;
    for (int32_t r = 0; r < x->R; r++)
        s->load[r] += parts * ((double)loads_of(x, s, i)[r] / x->unit_ns);
}

/* What the largest load would be with one part of a for b; a itself: as it is. */
static double with_other(const mixture *x, const shares *s, int32_t a, int32_t b)
{
    const int64_t *from = loads_of(x, s, a), *to = loads_of(x, s, b);
    double most = 0;
    for (int32_t r = 0; r < x->R; r++)
        most = fmax(most, s->load[r] + (double)(to[r] - from[r]) / x->unit_ns);
    return most / s->all;
}

/* The best exchange of one part, as long as one is better. */
static void exchange_parts(const mixture *x, shares *s)
{
    for (s->most = with_other(x, s, 0, 0);; s->most = with_other(x, s, 0, 0)) {
        double least = s->most * (1 - 1e-9);
        int32_t from = MOIRAI_NONE, to = MOIRAI_NONE;
        for (int32_t a = 0; a < s->n; a++)
            for (int32_t b = 0; b < s->n && s->part[a] > 0; b++) {
                double most = with_other(x, s, a, b);
                from = most < least ? a : from;
                to = most < least ? b : to;
                least = fmin(most, least);
            }
        if (from == MOIRAI_NONE)
            return;
        give(x, s, from, -1);
        give(x, s, to, 1);
    }
}

/* The programme's shares in whole parts of `all`: rounded down, the rest to those that lost most, then exchanged. Other columns would be better still, but streams do not reach the loads of many
 * copies. */
static void round_shares(const mixture *x, shares *s, int32_t all)
{
    double lost[MOST_COPIES];
    int32_t left = all;
    *s = (shares){.all = all};
    list_used(x, s);
    for (int32_t i = 0; i < s->n; i++) {
        double part = share_of(x, s, i) * all;
        int32_t whole = UTIL_MIN((int32_t)(part + 1e-9), left);
        lost[i] = part - whole;
        left -= whole;
        give(x, s, i, whole);
    }
    for (; left > 0 && s->n > 0; left--) {
        int32_t best = 0;
        for (int32_t i = 1; i < s->n; i++)
            best = lost[i] > lost[best] ? i : best;
        lost[best] -= 1;
        give(x, s, best, 1);
    }
    if (s->n > 0)
        exchange_parts(x, s);
}

static int add_candidate(mixture *x)
{
    shares *best = util_alloc(2, sizeof *best), *s = best + 1;
    int32_t most_parts = rate_stream_is_long(x->s->p, x->s->in_flight) ? LONG_PARTS : MOST_PARTS, n = 0;
    if (!best)
        return MOIRAI_EFAIL;
    best->most = HUGE_VAL;
    for (int32_t all = LEAST_PARTS; all <= most_parts; all++)
        if (PARTS_OF_ALL % all == 0) {
            round_shares(x, s, all);
            if (s->most < best->most * (1 - 1e-9))
                *best = *s;
        }
    for (int32_t i = 0; i < best->n; i++)
        n += best->part[i] > 0;
    rate_candidate *c = NULL;
    int rc = n < 2 ? 0 : rate_candidate_new(&c, x->s->p, "mixture", n);
    for (int32_t i = 0, k = 0; i < best->n && c && !rc; i++) {
        if (best->part[i] == 0)
            continue;
        memcpy(c->device[k], x->column[best->column[i]], sizeof **c->device * (size_t)x->s->p->n_ops);
        c->share[k++] = best->part[i];
    }
    free(best);
    return rc || !c ? rc : rate_search_add(x->s, c);
}

/* ---- rounds ---- */

void rate_columns_clear(rate_columns *c)
{
    for (int32_t i = 0; i < c->n; i++)
        free(c->device[i]);
    free(c->device);
    c->device = NULL;
    c->n = 0;
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
        rc = mix_add_column(x, s->columns.device[i]);
    for (int32_t i = 0; i < s->n_candidates && !rc; i++) {
        const rate_candidate *c = s->candidate[i];
        for (int32_t j = 0; j < c->n_copies && !rc && x->n < MIX_COLUMNS - NEW_COLUMNS; j++)
            if (c->slots[0] > 0 || c->n_copies == 1) /* the copies of an earlier mixture are not worth it */
                rc = mix_add_column(x, c->device[j]);
    }
    return rc;
}

/* Prices of the bound, with the sum 1; where there are none, of a programme of what is known. */
static int take_centre(mixture *x)
{
    const relax_proof *proof = &x->s->relaxed.proof;
    double sum = 0;
    for (int32_t r = 0; proof->n_leaves > 0 && r < x->R; r++)
        sum += (double)proof->leaf[0].price[r];
    for (int32_t r = 0; sum > 0 && r < x->R; r++)
        x->centre[r] = (double)proof->leaf[0].price[r] / sum;
    int rc = solve(x);
    if (!rc && sum <= 0)
        memcpy(x->centre, x->price, sizeof *x->centre * (size_t)x->R);
    return rc;
}

static int improve(mixture *x, double part)
{
    const rate_search *s = x->s;
    int rc = take_centre(x), failed = 0;
    for (int32_t i = 0; i < ROUNDS && !rc && x->n < MIX_COLUMNS && !util_stopped(&x->stop); i++) {
        bool found = false;
        rc = mix_price_columns(x, ROUND_PART * part, &found);
        rc = rc ? rc : solve(x);
        failed = found ? 0 : failed + 1;
        if (failed == FAILED_ROUNDS ||
            x->value * (1 - MIX_CHEAPER) <= UTIL_MAX(x->least, (double)s->bound_ns / x->unit_ns))
            break;
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* the solver gives up, or the time is over: the last shares stay */
}

static int mixture_open(mixture *x)
{
    size_t R = (size_t)x->R;
    x->unit_ns = (double)UTIL_MAX(x->s->best->outcome.period_ns, 1);
    x->load_ns = util_alloc(R * MIX_COLUMNS, sizeof *x->load_ns);
    x->dual = util_alloc(R + 1, sizeof *x->dual);
    x->price = util_alloc(R, sizeof *x->price);
    x->centre = util_alloc(R, sizeof *x->centre);
    x->primal = util_alloc(MIX_COLUMNS + 1, sizeof *x->primal);
    x->row = util_alloc(R + 1, sizeof *x->row);
    x->entry = util_alloc(R + 1, sizeof *x->entry);
    bool fine = x->load_ns && x->dual && x->price && x->centre && x->primal && x->row && x->entry;
    int rc = fine ? open_programme(x) : MOIRAI_EFAIL;
    return rc ? rc : add_columns(x);
}

static void mixture_close(mixture *x)
{
    pricing_simplex_free(x->lp);
    for (int32_t i = 0; i < x->n; i++)
        free(x->column[i]);
    void *all[] = {x->load_ns, x->dual, x->price, x->centre, x->primal, x->row, x->entry};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* A candidate within the room; or, where `found` is not NULL, a mixture without limits of memory, and the room that it asks for. */
static int mix(const mixture *first, double part, double ease, mix_room *found, bool *enough)
{
    mixture x = *first;
    x.ease = ease;
    int rc = mixture_open(&x);
    if (!rc && x.n > 0) {
        rc = improve(&x, part);
        rc = rc ? rc : found ? mix_room_open(found, &x, enough) : add_candidate(&x);
        rc = rc ? rc : keep_columns(&x);
    }
    mixture_close(&x);
    return rc;
}

int rate_add_mixtures(rate_search *s, double part)
{
    mix_room room = {0};
    mixture first = {.s = s, .stop = util_stop_part(&s->stop, TIME_PART), .room = &room, .R = s->v.n_resources};
    bool enough = true, by_bytes = s->v.bytes_bind;
    size_t n_eases = rate_stream_is_long(s->p, s->in_flight) ? LONG_EASES : sizeof eases / sizeof *eases;
    if (!s->best || s->in_flight < 2 || (by_bytes && !s->columns.least) || s->v.n_resources > MIX_ROWS)
        return 0;
    if (by_bytes) {
        mix_room found = {0};
        int rc = mix(&first, part, eases[0], &found, &enough);
        room = found;
        if (rc || !enough) {
            mix_room_close(&room);
            return rc;
        }
    }
    int rc = s->v.n_resources == s->v.K ? mix(&first, part, 1, NULL, NULL) : 0;
    for (size_t i = 0; i < n_eases && s->v.n_resources > s->v.K && !rc && !util_stopped(&first.stop); i++)
        rc = mix(&first, part, eases[i], NULL, NULL);
    mix_room_close(&room);
    return rc;
}
