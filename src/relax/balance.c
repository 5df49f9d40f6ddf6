/* Balancing an assignment.
 *
 * At the best prices most operators have one cheapest device, and the few that waver between two are what makes the loads equal: in a vertex of the
 * linear programme there are no more of them than resources. So operators change devices in the order of what that costs at the prices, the least first,
 * wherever it takes the loads nearer to the target: the sum of the squares of what is above it must fall. Bytes that a device has not count as
 * loads above the target, many times over: devices that no plan can have are of no use. Where single moves are too coarse, the few best
 * assignments are annealed: moves and exchanges of two operators, which full devices need. */
#include "relax/messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "relax/relax_tuning.h"
#include "util/util.h"

#define STOP_EVERY 1024
#define ROUNDING 1e-12 /* of a value that is not raised at all */

typedef struct move {
    double regret; /* what it costs at the prices */
    int32_t op;
    int32_t device;
} move;

typedef struct balance {
    const relax_state *s;
    uint8_t *device;
    int64_t *load_ns; /* per resource, offsets included; then per device its bytes */
    int32_t *readers; /* [packet * K + device] */
    int64_t target_ns;
    double value; /* what is above the target, in squares of it, and above the memory */
    move *moves;
    int64_t n_moves;
    util_memory memory;
} balance;

/* ---- what a move changes ---- */

/* What a load is worth, in squares of the target. Bytes count linearly: squares would let a little of them stay. */
static double above(const balance *b, int32_t r, int64_t load)
{
    int32_t k = r - b->s->v->n_resources;
    double most = (double)(k < 0 ? b->target_ns : b->s->v->p->device_memory_bytes[k]),
           over = ((double)load - most) / fmax(most, 1);
    return over <= 0 ? 0 : k < 0 ? over * over : RELAX_BALANCE_OVERFLOW * over;
}

static void add(balance *b, int32_t r, int64_t ns)
{
    b->value += above(b, r, b->load_ns[r] + ns) - above(b, r, b->load_ns[r]);
    b->load_ns[r] += ns;
}

static void add_transfer(balance *b, int32_t packet, int32_t k, int32_t l, int64_t sign)
{
    const relax_view *v = b->s->v;
    int64_t ns = sign * relax_transfers(v, packet)[k * v->K + l];
    schedule_held held = schedule_holds(v->p, k, l);
    if (ns == 0 || k == l)
        return;
    add(b, held.a, ns);
    if (held.b != MOIRAI_NONE)
        add(b, held.b, ns);
}

/* Moves the operator, and says by how much that raises the value. */
static double move_to(balance *b, int32_t op, int32_t c)
{
    const relax_view *v = b->s->v;
    const moirai_problem *p = v->p;
    int32_t K = v->K, a = b->device[op];
    double before = b->value;
    add(b, a, -moirai_op_ns(p, op, a));
    add(b, c, moirai_op_ns(p, op, c));
    add(b, v->n_resources + a, -p->op_memory_bytes[op]);
    add(b, v->n_resources + c, p->op_memory_bytes[op]);
    for (int32_t i = p->op_in_off[op]; i < p->op_in_off[op + 1] && v->n_packets > 0; i++) {
        int32_t j = relax_packet_of(v, p->op_in_edge[i]), k = b->device[relax_producer(v, j)];
        if (--b->readers[(int64_t)j * K + a] == 0)
            add_transfer(b, j, k, a, -1);
        if (b->readers[(int64_t)j * K + c]++ == 0)
            add_transfer(b, j, k, c, 1);
    }
    for (int32_t o = v->out_off[op]; o < v->out_off[op + 1] && v->n_packets > 0; o++)
        for (int32_t l = 0, j = v->out[o]; l < K; l++)
            if (b->readers[(int64_t)j * K + l] > 0) {
                add_transfer(b, j, a, l, -1);
                add_transfer(b, j, c, l, 1);
            }
    b->device[op] = (uint8_t)c;
    return b->value - before;
}

/* ---- moves ---- */

static int by_regret(const void *a, const void *b)
{
    const move *x = a, *y = b;
    if (x->regret != y->regret)
        return x->regret < y->regret ? -1 : 1;
    return x->op != y->op ? (x->op < y->op ? -1 : 1) : x->device - y->device;
}

static bool movable(const balance *b, int32_t op)
{
    const relax_view *v = b->s->v;
    const moirai_problem *p = v->p;
    return !relax_single(b->s->c->devices[op]) && p->op_group[op] == MOIRAI_NONE &&
           p->op_in_off[op + 1] - p->op_in_off[op] <= RELAX_BALANCE_MOST_DEGREE &&
           (v->n_packets == 0 || v->out_off[op + 1] - v->out_off[op] <= RELAX_BALANCE_MOST_DEGREE);
}

/* Costs without messages: transfers from and to open neighbours are left to the loads. */
static int list_moves(balance *b)
{
    const relax_state *s = b->s;
    int32_t K = s->v->K;
    bool all = (int64_t)s->v->n * (K - 1) <= RELAX_BALANCE_ALL_MOVES;
    UTIL_TAKE(&b->memory, b->moves, (size_t)s->v->n * (size_t)(all ? K : 1));
    if (b->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < s->v->n; i++) {
        const double *cost = s->unary + (int64_t)i * K;
        move best = {HUGE_VAL, i, 0};
        if (!movable(b, i))
            continue;
        for (int32_t k = 0; k < K; k++) {
            if (k == b->device[i] || !(s->c->devices[i] >> k & 1))
                continue;
            move m = {cost[k] - cost[b->device[i]], i, k};
            if (all)
                b->moves[b->n_moves++] = m;
            else if (m.regret < best.regret)
                best = m;
        }
        if (!all && best.regret < HUGE_VAL)
            b->moves[b->n_moves++] = best;
    }
    qsort(b->moves, (size_t)b->n_moves, sizeof *b->moves, by_regret);
    return 0;
}

static int64_t largest(const balance *b)
{
    int64_t most = 0;
    for (int32_t r = 0; r < b->s->v->n_resources; r++)
        most = UTIL_MAX(most, b->load_ns[r]);
    return most;
}

/* Each move once; each has a way back in the next pass, since its device is then another. */
static bool pass(balance *b, const util_stop *stop)
{
    bool any = false;
    for (int64_t i = 0; i < b->n_moves && b->value > ROUNDING; i++) {
        move *m = &b->moves[i];
        int32_t a = b->device[m->op];
        if (i % STOP_EVERY == 0 && util_stopped(stop))
            return false;
        if (a == m->device)
            continue;
        if (move_to(b, m->op, m->device) < -ROUNDING) {
            m->device = a;
            any = true;
        } else {
            move_to(b, m->op, a);
        }
    }
    return any;
}

static int open_balance(balance *b)
{
    const relax_view *v = b->s->v;
    size_t R = (size_t)v->n_resources + (size_t)v->K;
    UTIL_TAKE(&b->memory, b->load_ns, R);
    UTIL_TAKE(&b->memory, b->readers, (size_t)v->n_packets * (size_t)v->K);
    if (b->memory.failed)
        return MOIRAI_EFAIL;
    memcpy(b->load_ns, b->s->c->offset_ns, sizeof *b->load_ns * (size_t)v->n_resources);
    relax_loads(b->load_ns, v, b->device);
    for (int32_t i = 0; i < v->n; i++)
        b->load_ns[v->n_resources + b->device[i]] += v->p->op_memory_bytes[i];
    for (int32_t j = 0; j < v->n_packets; j++)
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            b->readers[(int64_t)j * v->K + b->device[v->p->edge_reader[e]]]++;
    for (int32_t r = 0; r < v->n_resources + v->K; r++)
        b->value += above(b, r, b->load_ns[r]);
    return 0;
}

int relax_balance(int64_t *load_ns, uint8_t *device, const relax_state *s, int64_t target_ns, const util_stop *stop)
{
    balance b = {.s = s, .device = device, .target_ns = UTIL_MAX(target_ns, 1)};
    int rc = open_balance(&b);
    bool stopped = rc || util_stopped(stop);
    rc = stopped ? rc : list_moves(&b);
    for (int32_t i = 0; i < RELAX_BALANCE_MOST_PASSES && !rc && !stopped; i++)
        stopped = !pass(&b, stop);
    if (!rc)
        *load_ns = largest(&b);
    util_release(&b.memory);
    return rc;
}

/* ---- annealing ---- */

typedef struct annealing {
    balance b;
    util_rng rng;
    int32_t *op, n_ops; /* that may move */
    uint8_t *before;    /* the devices to begin with */
} annealing;

/* An operator on `device` that may be on `other`, or MOIRAI_NONE. */
static int32_t partner(annealing *x, int32_t device, int32_t other)
{
    for (int32_t i = 0; i < RELAX_BALANCE_TRIES; i++) {
        int32_t op = x->op[util_rng_below(&x->rng, (uint32_t)x->n_ops)];
        if (x->b.device[op] == device && x->b.s->c->devices[op] >> other & 1)
            return op;
    }
    return MOIRAI_NONE;
}

static bool try_move(void *data, double most)
{
    annealing *x = data;
    balance *b = &x->b;
    int32_t op = x->op[util_rng_below(&x->rng, (uint32_t)x->n_ops)], a = b->device[op],
            c = (int32_t)util_rng_below(&x->rng, (uint32_t)b->s->v->K);
    if (a == c || !(b->s->c->devices[op] >> c & 1))
        return true;
    int32_t second = util_rng_below(&x->rng, 2) ? partner(x, c, a) : MOIRAI_NONE;
    double raise = move_to(b, op, c);
    raise += second == MOIRAI_NONE ? 0 : move_to(b, second, a);
    if (raise > most) {
        if (second != MOIRAI_NONE)
            move_to(b, second, c);
        move_to(b, op, a);
    }
    return b->value > ROUNDING;
}

static int open_annealing(annealing *x)
{
    balance *b = &x->b;
    const relax_view *v = b->s->v;
    UTIL_TAKE(&b->memory, x->op, (size_t)v->n);
    UTIL_TAKE(&b->memory, x->before, (size_t)v->n);
    int rc = open_balance(b);
    if (rc)
        return rc;
    memcpy(x->before, b->device, sizeof *x->before * (size_t)v->n);
    for (int32_t i = 0; i < v->n; i++)
        if (movable(b, i))
            x->op[x->n_ops++] = i;
    return 0;
}

int relax_balance_anneal(int64_t *load_ns, uint8_t *device, const relax_view *v, const relax_case *c, int64_t target_ns,
                         int64_t steps, const util_stop *stop)
{
    relax_state s = {.v = v, .c = c};
    annealing x = {.b = {.s = &s, .device = device, .target_ns = UTIL_MAX(target_ns, 1)}};
    util_rng_seed(&x.rng, 1);
    int rc = open_annealing(&x);
    if (!rc && x.n_ops > 0 && x.b.value > 0) {
        double value = x.b.value;
        anneal_run(&(anneal_task){.hot = RELAX_BALANCE_HOT,
                                  .cold = RELAX_BALANCE_COLD,
                                  .steps = steps,
                                  .stride = RELAX_BALANCE_STRIDE,
                                  .rng = &x.rng,
                                  .stop = stop,
                                  .data = &x,
                                  .judge = try_move});
        if (x.b.value < value)
            *load_ns = largest(&x.b);
        else
            memcpy(device, x.before, sizeof *device * (size_t)v->n);
    }
    util_release(&x.b.memory);
    return rc;
}
