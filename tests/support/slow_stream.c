#include "support/slow_stream.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

enum { WAITS, RUNS, DONE };

typedef struct request {
    int copy;
    int64_t entered_ns;
    uint8_t *op,
        *send; /* states; a send is an edge: with flow tensor the first edge of the tensor to a device stands for all */
    int64_t *op_until, *send_until;
} request;

typedef struct slow {
    const slow_task *t;
    const moirai_problem *p;
    request *request; /* by number */
    int n_entered, n_finished;
    bool *over; /* per request */
    int entered_of[SLOW_COPIES];
    int64_t now_ns, *bytes;
} slow;

static const int32_t *device_of(const slow *x, int r)
{
    return x->t->device[x->request[r].copy];
}

static int32_t producer(const slow *x, int32_t e)
{
    return x->p->tensor_producer[x->p->edge_tensor[e]];
}

/* The edge that stands for the transfer of edge e, or MOIRAI_NONE where nothing is sent. */
static int32_t sender(const slow *x, int r, int32_t e)
{
    const int32_t *d = device_of(x, r);
    int32_t to = d[x->p->edge_reader[e]];
    if (to == d[producer(x, e)])
        return MOIRAI_NONE;
    if (x->p->flow == MOIRAI_FLOW_EDGE)
        return e;
    for (int32_t f = x->p->tensor_edge_off[x->p->edge_tensor[e]];; f++)
        if (d[x->p->edge_reader[f]] == to)
            return f;
}

static int64_t send_ns(const slow *x, int r, int32_t e)
{
    const int32_t *d = device_of(x, r);
    return moirai_transfer_ns(x->p, x->p->edge_tensor[e], d[producer(x, e)], d[x->p->edge_reader[e]]);
}

static bool can_run(const slow *x, int r, int32_t op)
{
    const request *q = &x->request[r];
    if (q->op[op] != WAITS)
        return false;
    for (int32_t a = x->p->op_in_off[op]; a < x->p->op_in_off[op + 1]; a++) {
        int32_t e = x->p->op_in_edge[a], s = sender(x, r, e);
        if (s == MOIRAI_NONE ? q->op[producer(x, e)] != DONE : q->send[s] != DONE)
            return false;
    }
    return true;
}

static bool can_send(const slow *x, int r, int32_t e)
{
    return sender(x, r, e) == e && x->request[r].send[e] == WAITS && x->request[r].op[producer(x, e)] == DONE;
}

/* All that takes no time, and all that asks for nothing. */
static bool settle_once(slow *x, int r)
{
    request *q = &x->request[r];
    bool any = false;
    for (int32_t i = 0; i < x->p->n_ops; i++)
        if (can_run(x, r, i) && moirai_op_ns(x->p, i, device_of(x, r)[i]) == 0) {
            q->op[i] = DONE;
            any = true;
        }
    for (int32_t e = 0; e < x->p->n_edges; e++) {
        if (!can_send(x, r, e) || (send_ns(x, r, e) > 0 && x->p->congestion != MOIRAI_CONGESTION_NONE))
            continue;
        q->send[e] = send_ns(x, r, e) > 0 ? RUNS : DONE;
        q->send_until[e] = x->now_ns + send_ns(x, r, e);
        any = true;
    }
    return any;
}

static int next_copy(const slow *x)
{
    int all = 0, best = 0;
    int64_t most = INT64_MIN;
    for (int c = 0; c < x->t->n_copies; c++)
        all += x->t->share[c];
    for (int c = 0; c < x->t->n_copies; c++) {
        int64_t behind = ((int64_t)x->n_entered + 1) * x->t->share[c] - (int64_t)x->entered_of[c] * all;
        if (behind > most) {
            most = behind;
            best = c;
        }
    }
    return best;
}

static void enter(slow *x, int copy)
{
    request *q = &x->request[x->n_entered];
    size_t n = (size_t)x->p->n_ops, E = (size_t)x->p->n_edges;
    x->entered_of[copy]++;
    x->n_entered++;
    *q = (request){.copy = copy, .entered_ns = x->now_ns};
    q->op = util_alloc(n, 1);
    q->send = util_alloc(E, 1);
    q->op_until = util_alloc(n, sizeof *q->op_until);
    q->send_until = util_alloc(E, sizeof *q->send_until);
}

static bool all_done(const slow *x, int r)
{
    for (int32_t i = 0; i < x->p->n_ops; i++)
        if (x->request[r].op[i] != DONE)
            return false;
    return true;
}

static void settle(slow *x, int64_t *finish_ns, int64_t *latency_ns)
{
    for (bool any = true; any && x->n_finished < x->t->n_requests;) {
        any = false;
        for (int r = 0; r < x->n_entered; r++)
            while (!x->over[r] && settle_once(x, r))
                any = true;
        int first = x->n_entered;
        for (int r = 0; r < first && x->n_finished < x->t->n_requests; r++) {
            if (x->over[r] || !all_done(x, r))
                continue;
            x->over[r] = any = true;
            finish_ns[x->n_finished] = x->now_ns;
            latency_ns[x->n_finished++] = x->now_ns - x->request[r].entered_ns;
            enter(x, x->t->slots[0] ? x->request[r].copy : next_copy(x));
        }
    }
}

/* Whether a running operator or transfer of any request is on a resource: kind 0 the device a, 1 the send port of a, 2 the receive port of b, 3 the channel. */
static bool busy(const slow *x, int kind, int32_t a, int32_t b)
{
    for (int r = 0; r < x->n_entered; r++) {
        if (x->over[r])
            continue;
        const int32_t *d = device_of(x, r);
        for (int32_t i = 0; i < x->p->n_ops && kind == 0; i++)
            if (x->request[r].op[i] == RUNS && d[i] == a)
                return true;
        for (int32_t e = 0; e < x->p->n_edges && kind > 0; e++) {
            int32_t from = d[producer(x, e)], to = d[x->p->edge_reader[e]];
            if (x->request[r].send[e] == RUNS && (kind == 2 || from == a) && (kind == 1 || to == b))
                return true;
        }
    }
    return false;
}

/* Whether device k works for an operator, or a transfer holds it. */
static bool device_busy(const slow *x, int32_t k)
{
    bool held = x->p->congestion == MOIRAI_CONGESTION_DEVICE;
    return busy(x, 0, k, 0) || (held && (busy(x, 1, k, 0) || busy(x, 2, 0, k)));
}

static int64_t due(const slow *x, int r, int32_t rank)
{
    return (int64_t)r * x->t->whole + (int64_t)x->t->pace * x->t->place[x->request[r].copy][rank];
}

/* Whether what has rank a of request r goes before what has rank b of request s. */
static bool sooner(const slow *x, int r, int32_t a, int s, int32_t b)
{
    return due(x, r, a) != due(x, s, b) ? due(x, r, a) < due(x, s, b) : a < b;
}

/* The next operator of device k, as *best and *op. */
static bool next_op(const slow *x, int32_t k, int *best, int32_t *op)
{
    *op = MOIRAI_NONE;
    for (int r = 0; r < x->n_entered; r++) {
        const int32_t *rank = x->t->rank[x->request[r].copy];
        for (int32_t i = 0; i < x->p->n_ops && !x->over[r]; i++)
            if (device_of(x, r)[i] == k && can_run(x, r, i) &&
                (*op == MOIRAI_NONE || sooner(x, r, rank[i], *best, x->t->rank[x->request[*best].copy][*op]))) {
                *best = r;
                *op = i;
            }
    }
    return *op != MOIRAI_NONE;
}

static void run_op(slow *x, int r, int32_t op)
{
    x->request[r].op[op] = RUNS;
    x->request[r].op_until[op] = x->now_ns + moirai_op_ns(x->p, op, device_of(x, r)[op]);
}

static void start_ops(slow *x)
{
    for (int32_t k = 0; k < x->p->n_devices; k++) {
        int r = 0;
        int32_t op = 0;
        if (!device_busy(x, k) && next_op(x, k, &r, &op))
            run_op(x, r, op);
    }
}

/* The rank of the most urgent reader. */
static int32_t urgency(const slow *x, int r, int32_t e)
{
    const int32_t *rank = x->t->rank[x->request[r].copy];
    int32_t least = rank[x->p->edge_reader[e]], t = x->p->edge_tensor[e];
    for (int32_t f = x->p->tensor_edge_off[t]; f < x->p->tensor_edge_off[t + 1] && x->p->flow == MOIRAI_FLOW_TENSOR;
         f++)
        if (sender(x, r, f) == e)
            least = UTIL_MIN(least, rank[x->p->edge_reader[f]]);
    return least;
}

/* The transfers of one operator in the order of its outputs; of one tensor by device, then by edge. */
static bool before(const slow *x, int r, int32_t e, int32_t f)
{
    int32_t a = producer(x, e), b = producer(x, f);
    if (a != b)
        return a < b;
    for (int32_t o = x->p->op_out_off[a]; x->p->edge_tensor[e] != x->p->edge_tensor[f]; o++) {
        if (x->p->op_out[o] == x->p->edge_tensor[e])
            return true;
        if (x->p->op_out[o] == x->p->edge_tensor[f])
            return false;
    }
    const int32_t *d = device_of(x, r);
    int32_t to = d[x->p->edge_reader[e]], other = d[x->p->edge_reader[f]];
    return to != other ? to < other : e < f;
}

/* The next transfer from k to l, as *best and *e. */
static bool next_send(const slow *x, int32_t k, int32_t l, int *best, int32_t *e)
{
    *e = MOIRAI_NONE;
    for (int r = 0; r < x->n_entered; r++) {
        const int32_t *d = device_of(x, r);
        for (int32_t f = 0; f < x->p->n_edges && !x->over[r]; f++) {
            if (d[producer(x, f)] != k || d[x->p->edge_reader[f]] != l || !can_send(x, r, f))
                continue;
            int32_t a = urgency(x, r, f), b = *e == MOIRAI_NONE ? 0 : urgency(x, *best, *e);
            if (*e == MOIRAI_NONE || sooner(x, r, a, *best, b) || (r == *best && a == b && before(x, r, f, *e))) {
                *best = r;
                *e = f;
            }
        }
    }
    return *e != MOIRAI_NONE;
}

static bool ends_busy(const slow *x, int32_t k, int32_t l)
{
    switch (x->p->congestion) {
    case MOIRAI_CONGESTION_DEVICE: return device_busy(x, k) || device_busy(x, l);
    case MOIRAI_CONGESTION_PORT: return busy(x, 1, k, 0) || busy(x, 2, 0, l);
    default: return busy(x, 3, k, l);
    }
}

/* The transfer that is next of all whose ends are free. */
static bool choose_send(const slow *x, int *best_r, int32_t *best_e)
{
    bool any = false;
    for (int32_t k = 0; k < x->p->n_devices; k++)
        for (int32_t l = 0; l < x->p->n_devices; l++) {
            int r = 0;
            int32_t e = 0;
            if (k == l || ends_busy(x, k, l) || !next_send(x, k, l, &r, &e))
                continue;
            if (!any || sooner(x, r, urgency(x, r, e), *best_r, urgency(x, *best_r, *best_e))) {
                *best_r = r;
                *best_e = e;
            }
            any = true;
        }
    return any;
}

static bool start_send(slow *x)
{
    int r = 0;
    int32_t e = 0;
    if (!choose_send(x, &r, &e))
        return false;
    x->request[r].send[e] = RUNS;
    x->request[r].send_until[e] = x->now_ns + send_ns(x, r, e);
    return true;
}

/* ---- bytes ---- */

/* Whether a request holds tensor t on device k from now on. */
static bool holds(const slow *x, int r, int32_t t, int32_t k)
{
    const moirai_problem *p = x->p;
    const request *q = &x->request[r];
    const int32_t *d = device_of(x, r);
    int32_t from = p->tensor_producer[t], begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    bool home = d[from] == k, needed = begin == end && home, there = home && q->op[from] != WAITS;
    if (home && q->op[from] == RUNS)
        return true;
    for (int32_t e = begin; e < end; e++) {
        int32_t s = sender(x, r, e);
        bool own = d[p->edge_reader[e]] == k;
        if (home)
            needed |= s == MOIRAI_NONE ? q->op[p->edge_reader[e]] != DONE : q->send[s] != DONE;
        else if (own)
            needed |= q->op[p->edge_reader[e]] != DONE;
        there |= !home && own && q->send[s] != WAITS;
    }
    return there && needed;
}

static void weigh(slow *x)
{
    for (int32_t k = 0; k < x->p->n_devices; k++) {
        int64_t sum = 0;
        for (int r = 0; r < x->n_entered; r++)
            for (int32_t t = 0; t < x->p->n_tensors && !x->over[r]; t++)
                sum += holds(x, r, t, k) ? x->p->tensor_bytes[t] : 0;
        x->bytes[k] = UTIL_MAX(x->bytes[k], sum);
    }
}

/* ---- the clock ---- */

static void advance(slow *x)
{
    int64_t next = INT64_MAX;
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < x->n_entered; r++) {
            request *q = &x->request[r];
            for (int32_t i = 0; i < x->p->n_ops && !x->over[r]; i++)
                if (q->op[i] == RUNS && pass == 0)
                    next = UTIL_MIN(next, q->op_until[i]);
                else if (q->op[i] == RUNS && q->op_until[i] == next)
                    q->op[i] = DONE;
            for (int32_t e = 0; e < x->p->n_edges && !x->over[r]; e++)
                if (q->send[e] == RUNS && pass == 0)
                    next = UTIL_MIN(next, q->send_until[e]);
                else if (q->send[e] == RUNS && q->send_until[e] == next)
                    q->send[e] = DONE;
        }
    }
    x->now_ns = next;
}

void slow_stream(const slow_task *t, int64_t *finish_ns, int64_t *latency_ns, int64_t *bytes)
{
    int most = t->n_requests + t->in_flight + 1;
    slow x = {.t = t, .p = t->p, .bytes = bytes};
    x.request = util_alloc((size_t)most, sizeof *x.request);
    x.over = util_alloc((size_t)most, sizeof *x.over);
    memset(bytes, 0, sizeof *bytes * (size_t)t->p->n_devices);
    for (int c = 0; c < t->n_copies && t->slots[0]; c++)
        for (int i = 0; i < t->slots[c]; i++)
            enter(&x, c);
    while (!t->slots[0] && x.n_entered < t->in_flight)
        enter(&x, next_copy(&x));
    for (;;) {
        settle(&x, finish_ns, latency_ns);
        if (x.n_finished >= t->n_requests)
            break;
        if (t->p->congestion != MOIRAI_CONGESTION_DEVICE)
            start_ops(&x);
        while (t->p->congestion != MOIRAI_CONGESTION_NONE && start_send(&x))
            ;
        if (t->p->congestion == MOIRAI_CONGESTION_DEVICE) /* what a transfer can have it has first */
            start_ops(&x);
        weigh(&x);
        advance(&x);
    }
    for (int r = 0; r < x.n_entered; r++) {
        free(x.request[r].op);
        free(x.request[r].send);
        free(x.request[r].op_until);
        free(x.request[r].send_until);
    }
    free(x.request);
    free(x.over);
}
