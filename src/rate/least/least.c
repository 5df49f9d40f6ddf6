/* The cheapest devices, exactly: operators, or groups of them, are variables, what they cost and what they send are functions of them (minsum/minsum.h).
 *
 * A packet is sent once to each device that has a reader of it. With few readers it is a function of its producer and all of them; with more, the set of devices that it
 * reaches is a variable of its own, between producer and readers, so that the readers need not know each other. */
#include "rate/least/least.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "minsum/minsum.h"
#include "util/util.h"

#define MOST_CELLS (INT64_C(1) << 22) /* of all tables: some 30 ms */
#define FEW_READERS 3
#define MOST_SET_DEVICES 8 /* 256 sets */
#define MOST_SCOPE 4

typedef enum kind { WORK, SEND, REACH, READ } kind;

typedef struct term {
    kind kind;
    int32_t of; /* the unit, or the packet */
} term;

struct rate_least {
    const relax_view *v;
    const int32_t *of_op; /* NULL: each for itself */
    int32_t n_units;
    minsum *m;
    minsum_shape shape; /* variables and terms of units come first */
    term *term;
    int64_t n_values;
    util_memory memory;
};

static int32_t unit_of(const rate_least *x, int32_t op)
{
    return x->of_op ? x->of_op[op] : op;
}

static int64_t cells_of(const rate_least *x, int32_t t)
{
    int64_t cells = 1;
    for (int32_t i = x->shape.off[t]; i < x->shape.off[t + 1]; i++)
        cells *= x->shape.states[x->shape.var[i]];
    return cells;
}

static int add_term(rate_least *x, term t, const int32_t *var, int32_t n)
{
    int32_t at = x->shape.n_terms++, first = x->shape.off[at];
    memcpy(x->shape.var + first, var, sizeof *var * (size_t)n);
    x->term[at] = t;
    x->shape.off[at + 1] = first + n;
    x->n_values += cells_of(x, at);
    return x->n_values > MOST_CELLS ? MOIRAI_ELIMIT : 0;
}

/* Readers in other units than the producer, each once; how many. */
static int32_t list_readers(int32_t *unit, int32_t *mark, const rate_least *x, int32_t packet)
{
    const relax_view *v = x->v;
    int32_t n = 0, own = unit_of(x, relax_producer(v, packet));
    for (int32_t e = v->packet_off[packet]; e < v->packet_off[packet + 1]; e++) {
        int32_t r = unit_of(x, v->p->edge_reader[e]);
        if (r != own && mark[r] != packet + 1)
            unit[n++] = r;
        mark[r] = packet + 1;
    }
    return n;
}

static int add_packet(rate_least *x, int32_t packet, const int32_t *reader, int32_t n)
{
    int32_t scope[MOST_SCOPE] = {unit_of(x, relax_producer(x->v, packet))};
    if (n == 0)
        return 0;
    if (n <= FEW_READERS) {
        for (int32_t i = 0; i < n; i++)
            scope[i + 1] = reader[i];
        return add_term(x, (term){SEND, packet}, scope, n + 1);
    }
    if (x->v->K > MOST_SET_DEVICES)
        return MOIRAI_ELIMIT;
    scope[1] = x->shape.n_vars;
    x->shape.states[x->shape.n_vars++] = 1 << x->v->K;
    int rc = add_term(x, (term){REACH, packet}, scope, 2);
    scope[0] = scope[1];
    for (int32_t i = 0; i < n && !rc; i++) {
        scope[1] = reader[i];
        rc = add_term(x, (term){READ, packet}, scope, 2);
    }
    return rc;
}

static int add_terms(rate_least *x, int32_t *reader, int32_t *mark)
{
    const relax_view *v = x->v;
    int rc = 0;
    for (int32_t i = 0; i < x->n_units && !rc; i++) {
        x->shape.states[x->shape.n_vars++] = v->K;
        rc = add_term(x, (term){WORK, i}, &i, 1);
    }
    for (int32_t j = 0; j < v->n_packets && !rc; j++)
        rc = add_packet(x, j, reader, list_readers(reader, mark, x, j));
    return rc;
}

/* Room for a set of devices to each packet, and for a term to each of its readers. */
static int open_terms(rate_least *x)
{
    size_t units = (size_t)x->n_units, packets = (size_t)x->v->n_packets, edges = (size_t)x->v->p->n_edges;
    int32_t *reader, *mark;
    util_memory scratch = {0};
    UTIL_TAKE(&x->memory, x->shape.states, units + packets);
    UTIL_TAKE(&x->memory, x->term, units + packets + edges);
    UTIL_TAKE(&x->memory, x->shape.off, units + packets + edges + 1);
    UTIL_TAKE(&x->memory, x->shape.var, units + 2 * packets + 2 * edges);
    UTIL_TAKE(&scratch, reader, units);
    UTIL_TAKE(&scratch, mark, units);
    int rc = x->memory.failed || scratch.failed ? MOIRAI_EFAIL : add_terms(x, reader, mark);
    util_release(&scratch);
    return rc;
}

int rate_least_new(rate_least **out, const relax_view *v, const int32_t *of_op, int32_t n_units, const util_stop *stop)
{
    *out = NULL;
    rate_least *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    x->v = v;
    x->of_op = of_op;
    x->n_units = of_op ? n_units : v->n;
    int rc = open_terms(x);
    rc = rc ? rc : minsum_new(&x->m, &x->shape, MOST_CELLS, stop);
    if (rc)
        rate_least_free(x);
    else
        *out = x;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

void rate_least_free(rate_least *x)
{
    if (!x)
        return;
    minsum_free(x->m);
    util_release(&x->memory);
    free(x);
}

/* ---- values ---- */

/* What a packet from k costs to the devices of a set. */
static double sent(const rate_least *x, const double *price, int32_t packet, int32_t k, uint64_t to)
{
    const int64_t *d = relax_transfers(x->v, packet) + (int64_t)k * x->v->K;
    double sum = 0;
    for (to &= ~(UINT64_C(1) << k); to; to &= to - 1) {
        int32_t l = __builtin_ctzll(to);
        schedule_held held = schedule_holds(x->v->p, k, l);
        sum += (price[held.a] + (held.b == MOIRAI_NONE ? 0 : price[held.b])) * (double)d[l];
    }
    return sum;
}

/* Of the producer and n readers, the last reader the fastest. */
static void set_send(double *value, const rate_least *x, const double *price, int32_t packet, int32_t n)
{
    int32_t K = x->v->K, all = 1;
    for (int32_t i = 0; i < n; i++)
        all *= K;
    for (int32_t k = 0; k < K; k++)
        for (int32_t c = 0; c < all; c++) {
            uint64_t to = 0;
            for (int32_t i = 0, rest = c; i < n; i++, rest /= K)
                to |= UINT64_C(1) << rest % K;
            value[k * all + c] = sent(x, price, packet, k, to);
        }
}

static void set_values(double *value, const rate_least *x, const double *cost, const double *price)
{
    int32_t K = x->v->K, sets = 1 << UTIL_MIN(K, MOST_SET_DEVICES);
    for (int32_t i = 0; i < x->v->n; i++)
        for (int32_t k = 0; k < K; k++)
            value[unit_of(x, i) * (int64_t)K + k] += cost[(int64_t)i * K + k];
    for (int32_t t = 0; t < x->shape.n_terms; value += cells_of(x, t++)) {
        int32_t of = x->term[t].of;
        switch (x->term[t].kind) {
        case WORK: break; /* above */
        case SEND: set_send(value, x, price, of, x->shape.off[t + 1] - x->shape.off[t] - 1); break;
        case REACH:
            for (int32_t i = 0; i < K * sets; i++)
                value[i] = sent(x, price, of, i / sets, (uint64_t)(i % sets));
            break;
        case READ:
            for (int32_t i = 0; i < sets * K; i++)
                value[i] = i / K >> i % K & 1 ? 0 : HUGE_VAL;
            break;
        }
    }
}

int rate_least_find(const rate_least *x, const double *cost, const double *price, uint8_t *device, double *sum,
                    const util_stop *stop)
{
    double *value = util_alloc((size_t)x->n_values, sizeof *value);
    int32_t *state = util_alloc((size_t)x->shape.n_vars, sizeof *state);
    int rc = value && state ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        set_values(value, x, cost, price);
        rc = minsum_solve(x->m, value, state, sum, stop);
    }
    if (!rc && !(*sum < HUGE_VAL))
        rc = MOIRAI_ELIMIT;
    for (int32_t i = 0; i < x->v->n && !rc; i++)
        device[i] = (uint8_t)state[unit_of(x, i)];
    free(value);
    free(state);
    return rc;
}

/* ---- prices ---- */

static int find(const void *data, const double *cost, const double *price, uint8_t *device, double *sum,
                const util_stop *stop)
{
    return rate_least_find(data, cost, price, device, sum, stop);
}

int rate_least_relax(relax_answer *out, const moirai_problem *p, const relax_task *job)
{
    relax_view v = {0};
    rate_least *least = NULL;
    relax_oracle exactly = {.find = find};
    relax_task own = *job;
    own.rate = true;
    *out = (relax_answer){0};
    int rc = p->n_devices > MOIRAI_MASK_DEVICES ? MOIRAI_ELIMIT : relax_view_open(&v, p, 100);
    rc = rc ? rc : rate_least_new(&least, &v, NULL, 0, &job->stop);
    exactly.data = least;
    own.exactly = least ? &exactly : NULL;
    rc = rc ? rc : relax_solve(out, p, &own);
    rate_least_free(least);
    relax_view_close(&v);
    return rc;
}
