/* Prices of a case by cutting planes.
 *
 * The value at prices l, g(l) = sum over r of l(r) offset(r) + the least cost of all assignments, is concave in l, and every assignment gives an upper bound
 * on it that is linear: sum over r of l(r) (offset(r) + load(r)). The master is the linear programme of the assignments found so far:
 * the mixture whose largest load is least. Its duals are prices that sum to 1, those that look best by now (Kelley 1960); its
 * bytes rows have prices of their own. Between the best prices and these the next ones are taken (Wentges 1997), since
 * the duals of a master with few columns jump; where nothing is gained for long, ever nearer to the best.
 *
 * With assignments that only look cheap the master's prices go astray, and rounds of them end well below the best value. So where the network is narrow the
 * cheapest assignment is found exactly (rate/least/least.c), the master and the best value meet, and messages are sent at the last prices alone: they are what can be certified, and
 * they prove all but a few 1e-5 of it.
 *
 * There are only 3 K prices (ports) or K + K^2 (channels), and the master is solved by the simplex of our own. */
#include "relax/messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/simplex.h"
#include "relax/relax_tuning.h"
#include "util/util.h"

typedef struct search {
    relax_state *s;
    const relax_prices_task *job;
    pricing_simplex *lp;
    int32_t R, K, n_rows;
    double scale_ns;   /* a length; loads are counted in it */
    double best;       /* value */
    double *price;     /* the best: resources, then bytes */
    double *dual;      /* of the master */
    double *from, *to; /* the best messages */
    int64_t *load_ns;  /* of an assignment: resources, then bytes */
    int32_t *row;
    double *value;
    uint8_t *device;
    util_stop stop; /* of prices: messages come after it, where they are of the last ones alone */
    double *cost;   /* [op * K + device], for exact assignments */
    util_memory memory;
} search;

/* ---- the master ---- */

static int64_t capacity(const search *x, int32_t k)
{
    return UTIL_MAX(x->s->v->p->device_memory_bytes[k], 1);
}

/* Rows: length - load >= 0 per resource; bytes per device; the parts of all assignments sum to 1. */
static int open_master(search *x)
{
    double *lower, *upper;
    UTIL_TAKE(&x->memory, lower, (size_t)x->n_rows);
    UTIL_TAKE(&x->memory, upper, (size_t)x->n_rows);
    int rc = util_taken_all(&x->memory);
    for (int32_t r = 0; r < x->n_rows && !rc; r++) {
        bool bytes = r >= x->R && r + 1 < x->n_rows, sum = r + 1 == x->n_rows;
        lower[r] = sum ? 1 : bytes ? -1 : 0;
        upper[r] = sum ? 1 : HUGE_VAL;
        x->row[r] = r;
        x->value[r] = r < x->R ? 1 : 0;
    }
    rc = rc ? rc : pricing_simplex_new(&x->lp, x->n_rows, lower, upper);
    rc = rc ? rc : pricing_simplex_add_column(x->lp, 1, x->R, x->row, x->value);
    for (int32_t r = x->R; r + 1 < x->n_rows && !rc; r++) { /* bytes may be overstepped, at a price */
        double one = 1;
        rc = pricing_simplex_add_column(x->lp, RELAX_PRICES_OVERFLOW_PRICE, 1, &r, &one);
    }
    return rc;
}

static int add_assignment(search *x)
{
    const relax_view *v = x->s->v;
    memset(x->load_ns, 0, sizeof *x->load_ns * (size_t)x->n_rows);
    relax_loads(x->load_ns, v, x->device);
    relax_row_loads(x->load_ns, v, x->s->c, x->device);
    for (int32_t i = 0; i < v->n && x->job->bytes; i++)
        x->load_ns[x->R + x->device[i]] += v->p->op_memory_bytes[i];
    for (int32_t r = 0; r < x->R; r++)
        x->value[r] = -(double)(x->load_ns[r] + x->s->c->offset_ns[r]) / x->scale_ns;
    for (int32_t r = x->R; r + 1 < x->n_rows; r++)
        x->value[r] = -(double)x->load_ns[r] / (double)capacity(x, r - x->R);
    x->value[x->n_rows - 1] = 1;
    return pricing_simplex_add_column(x->lp, 0, x->n_rows, x->row, x->value);
}

/* ---- prices ---- */

/* Prices of a mixture of the best and the master's, that sum to 1 over resources. */
static void set_prices(search *x, double towards)
{
    relax_state *s = x->s;
    double sum = 0, dual_sum = 0;
    for (int32_t r = 0; r < x->R; r++)
        dual_sum += fmax(x->dual[r], 0);
    for (int32_t r = 0; r < x->R; r++) {
        double d = dual_sum > 0 ? fmax(x->dual[r], 0) / dual_sum : x->price[r];
        s->price[r] = (1 - towards) * x->price[r] + towards * d;
        sum += s->price[r];
    }
    for (int32_t r = 0; r < x->R && sum > 0; r++)
        s->price[r] /= sum;
    for (int32_t k = 0; k < x->K; k++) /* a byte of the master is a whole memory, a unit a length */
        s->byte_price[k] = x->job->bytes ? (1 - towards) * x->price[x->R + k] + towards * fmax(x->dual[x->R + k], 0) *
                                                                                    x->scale_ns / (double)capacity(x, k)
                                         : 0;
}

/* `sum` of all operators and packets at the prices, with offsets and without what the bytes that there are cost. */
static double value_of(const search *x, double sum)
{
    const relax_state *s = x->s;
    double value = sum;
    for (int32_t r = 0; r < x->R; r++)
        value += s->price[r] * (double)s->c->offset_ns[r];
    for (int32_t k = 0; k < x->K; k++)
        value -= s->byte_price[k] * (double)s->v->p->device_memory_bytes[k];
    return value;
}

static void keep(search *x, double value)
{
    const relax_state *s = x->s;
    x->best = value;
    memcpy(x->price, s->price, sizeof *x->price * (size_t)x->R);
    memcpy(x->price + x->R, s->byte_price, sizeof *x->price * (size_t)x->K);
    memcpy(x->from, s->from, sizeof *x->from * x->s->n_messages);
    memcpy(x->to, s->to, sizeof *x->to * x->s->n_messages);
}

static void restore(search *x)
{
    relax_state *s = x->s;
    memcpy(s->price, x->price, sizeof *x->price * (size_t)x->R);
    memcpy(s->byte_price, x->price + x->R, sizeof *x->price * (size_t)x->K);
    memcpy(s->from, x->from, sizeof *x->from * x->s->n_messages);
    memcpy(s->to, x->to, sizeof *x->to * x->s->n_messages);
    relax_set_costs(s);
}

/* Messages at the prices, which say what all operators cost, and an assignment by them. False where there was no time for that. */
static bool ask_messages(search *x, int32_t sweeps, double *sum)
{
    bool whole = true, first = x->best == -HUGE_VAL; /* first: messages of these prices, or none */
    relax_set_costs(x->s);
    for (int32_t i = 0; i < sweeps && x->s->n_messages > 0 && whole; i++)
        whole = relax_sweep(x->s, &x->job->stop) || i > 0;
    if (!whole && !first) /* some messages are of other prices: what they seem to prove they do not */
        return false;
    *sum = relax_value(x->s);
    relax_decode(x->device, x->s);
    return true;
}

/* The same without messages: the assignment is the cheapest. */
static int ask_exactly(search *x, double *sum)
{
    const relax_state *s = x->s;
    for (int32_t i = 0; i < s->v->n; i++)
        for (int32_t k = 0; k < x->K; k++)
            x->cost[(int64_t)i * x->K + k] = s->c->devices[i] >> k & 1 ? relax_own_cost(s, i, k) : HUGE_VAL;
    return x->job->exactly->find(x->job->exactly->data, x->cost, s->price, x->device, sum, &x->stop);
}

/* One evaluation. *gain: whether it is worth a further round. */
static int ask(search *x, int32_t sweeps, bool *gain)
{
    double sum = -HUGE_VAL, before = x->best;
    int rc = 0;
    if (x->job->exactly)
        rc = ask_exactly(x, &sum);
    else
        ask_messages(x, sweeps, &sum);
    double value = rc ? -HUGE_VAL : value_of(x, sum);
    if (value > before)
        keep(x, value);
    *gain = value > before + RELAX_PRICES_WORTH * fabs(before);
    return rc;
}

/* How far to go after so many idle rounds. */
static double step_at(int32_t idle)
{
    return idle >= RELAX_PRICES_MOST_IDLE ? ldexp(RELAX_PRICES_TOWARDS, -(idle % RELAX_PRICES_HALVINGS))
           : idle % 4 == 3                ? 1
                                          : RELAX_PRICES_TOWARDS;
}

static int improve(search *x)
{
    double upper = 0;
    int32_t idle = 0,
            most_idle = RELAX_PRICES_MOST_IDLE + (x->R > RELAX_PRICES_MANY_PRICES ? RELAX_PRICES_MORE_IDLE : 0);
    int32_t rounds = x->job->rounds;
    if (x->job->exactly) /* both values meet at last */
        most_idle = rounds = RELAX_PRICES_EXACT_ROUNDS * UTIL_MIN(rounds, INT32_MAX / RELAX_PRICES_EXACT_ROUNDS);
    bool gain;
    int rc = ask(x, RELAX_PRICES_FIRST_SWEEPS, &gain);
    rc = rc ? rc : add_assignment(x);
    for (int32_t i = 1; i < rounds && !rc && idle < most_idle; i++) {
        if (util_stopped(&x->stop) || x->best >= x->job->goal_ns)
            break;
        rc = pricing_simplex_solve(x->lp, &x->stop, &upper, x->dual, NULL);
        if (rc || x->best >= upper * x->scale_ns * (1 - RELAX_PRICES_CLOSE))
            break;
        set_prices(x, step_at(idle));
        rc = ask(x, RELAX_PRICES_SWEEPS, &gain);
        idle = gain ? 0 : idle + 1;
        rc = rc ? rc : add_assignment(x);
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* the solver gives up: what was found stays */
}

/* Messages at the best prices, until they prove no more. */
static void send_messages(search *x)
{
    bool whole = true;
    if (x->best > -HUGE_VAL)
        restore(x);
    else
        relax_set_costs(x->s); /* the prices to begin with */
    x->best = -HUGE_VAL;
    for (int32_t i = 0; i < RELAX_PRICES_LAST_SWEEPS && whole; i++) {
        whole = x->s->n_messages > 0 && relax_sweep(x->s, &x->job->stop);
        double value = value_of(x, relax_value(x->s)), before = x->best;
        if (value > before && (whole || i == 0))
            keep(x, value);
        whole &= i == 0 || value > before + RELAX_PRICES_LAST_WORTH * fabs(before);
    }
}

static int search_open(search *x)
{
    size_t rows = (size_t)x->n_rows, K = (size_t)x->K;
    UTIL_TAKE(&x->memory, x->price, (size_t)x->R + K);
    UTIL_TAKE(&x->memory, x->dual, rows + K);
    UTIL_TAKE(&x->memory, x->from, x->s->n_messages);
    UTIL_TAKE(&x->memory, x->to, x->s->n_messages);
    UTIL_TAKE(&x->memory, x->load_ns, rows + K);
    UTIL_TAKE(&x->memory, x->row, rows);
    UTIL_TAKE(&x->memory, x->value, rows);
    UTIL_TAKE(&x->memory, x->device, (size_t)x->s->v->n);
    UTIL_TAKE(&x->memory, x->cost, x->job->exactly ? (size_t)x->s->v->n * K : 0);
    return x->memory.failed ? MOIRAI_EFAIL : open_master(x);
}

/* All operators at their quickest, shared by all devices: a length to count in. */
static double scale_of(const relax_view *v)
{
    double sum = 0;
    for (int32_t i = 0; i < v->n; i++)
        sum += (double)moirai_op_least_ns(v->p, i);
    return fmax(sum / v->K, 1);
}

int relax_find_prices(double *value_ns, relax_state *s, const relax_prices_task *job)
{
    search x = {.s = s, .job = job, .R = s->v->n_resources, .K = s->v->K, .best = -HUGE_VAL};
    x.n_rows = x.R + (job->bytes ? x.K : 0) + 1;
    x.scale_ns = scale_of(s->v);
    x.stop = job->exactly ? util_stop_part(&job->stop, RELAX_PRICES_EXACT_PART) : job->stop;
    int rc = search_open(&x);
    rc = rc ? rc : improve(&x);
    if (!rc && job->exactly)
        send_messages(&x);
    if (!rc) {
        restore(&x);
        *value_ns = x.best;
    }
    pricing_simplex_free(x.lp);
    util_release(&x.memory);
    return rc;
}
