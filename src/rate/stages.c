/* Contiguous stages by the farthest prefix, with bisection on the period.
 *
 * An order of the operators is cut into parts, each for one device. Given a period T, the farthest prefix of the order that the devices of a set can take
 * within T follows from those of the sets with one device less: the last stage is extended, operator by operator, until its device, its memory, its
 * receive port or the send port of an earlier stage is full. All of these only grow with the stage, so that the first failure ends it. Sets of
 * one size are tried together, and of each size the BEAM that came farthest go on; up to 8 devices that is all of them, and without transfers the answer
 * is then the best for this order. With transfers it is not, since what an earlier stage has to send depends on where later ones begin.
 * A group goes with the first of its operators, whole: it need not lie side by side in the order.
 * The least T is found by bisection: O(log * sets * K * E). */
#include "rate/stages.h"

#include <stdlib.h>
#include <string.h>

#include "rate/op_weights.h"
#include "util/util.h"

#define BEAM 96 /* sets of one size that go on: all of them up to 8 devices */
#define HALVINGS 24
#define CLOSE 1e-4 /* of T: near enough */

/* A set of devices and how far it comes. */
typedef struct reach {
    uint64_t set;
    int32_t prefix;
    int32_t parent, device; /* the reach that it extends, and by which device */
} reach;

typedef struct stages {
    const rate_stages_task *task;
    int64_t limit_ns;
    reach *all; /* level by level */
    int32_t n_all;
    int32_t *at;       /* operator -> device, along one line of parents */
    int64_t *load_ns;  /* per resource */
    int64_t *bytes;    /* per device */
    uint64_t *sent;    /* packet -> devices that have it */
    uint64_t *held;    /* shared weight -> devices that have it */
    int32_t *group_at; /* group -> device */
    int32_t *group_off, *group_op;
    rate_op_weights shares;
} stages;

/* ---- one operator more ---- */

static bool take_packet(stages *x, int32_t packet, int32_t k, int32_t l)
{
    const relax_view *v = x->task->v;
    int64_t ns = relax_transfers(v, packet)[k * v->K + l];
    schedule_held held = schedule_holds(v->p, k, l);
    x->load_ns[held.a] += ns;
    if (held.b != MOIRAI_NONE)
        x->load_ns[held.b] += ns;
    return x->load_ns[held.a] <= x->limit_ns && (held.b == MOIRAI_NONE || x->load_ns[held.b] <= x->limit_ns);
}

/* Its time, its bytes and those of the weights that the device does not have yet. False: it can't run there. */
static bool charge(stages *x, int32_t op, int32_t l)
{
    const moirai_problem *p = x->task->v->p;
    if (!(p->op_devices[op] >> l & 1))
        return false;
    x->load_ns[l] += moirai_op_ns(p, op, l);
    x->bytes[l] += p->op_memory_bytes[op];
    for (int32_t i = x->shares.off[op]; i < x->shares.off[op + 1]; i++)
        if (!(x->held[x->shares.weight[i]] >> l & 1)) {
            x->held[x->shares.weight[i]] |= UINT64_C(1) << l;
            x->bytes[l] += p->weight_bytes[x->shares.weight[i]];
        }
    return true;
}

/* The first operator of a group brings all of it along: what comes later in the order has its place, and the stage knows what it will cost. */
static bool charge_all(stages *x, int32_t op, int32_t l)
{
    const moirai_problem *p = x->task->v->p;
    int32_t g = p->op_group[op];
    bool can = true;
    if (g == MOIRAI_NONE)
        return charge(x, op, l);
    for (int32_t i = x->group_off[g]; i < x->group_off[g + 1] && can; i++)
        can = charge(x, x->group_op[i], l);
    x->group_at[g] = l;
    return can;
}

/* Puts it there, or where its group is; false where that is too much for something. */
static bool take(stages *x, int32_t op, int32_t l)
{
    const relax_view *v = x->task->v;
    const moirai_problem *p = v->p;
    int32_t g = p->op_group[op];
    if (g != MOIRAI_NONE && x->group_at[g] != MOIRAI_NONE)
        l = x->group_at[g];
    else if (!charge_all(x, op, l))
        return false;
    bool fits = x->load_ns[l] <= x->limit_ns && x->bytes[l] <= p->device_memory_bytes[l];
    for (int32_t a = p->op_in_off[op]; a < p->op_in_off[op + 1] && v->n_packets > 0 && fits; a++) {
        int32_t e = p->op_in_edge[a], packet = relax_packet_of(v, e), k = x->at[relax_producer(v, packet)];
        if (k != l && !(x->sent[packet] >> l & 1)) {
            x->sent[packet] |= UINT64_C(1) << l;
            fits = take_packet(x, packet, k, l);
        }
    }
    x->at[op] = l;
    return fits;
}

static void forget(stages *x)
{
    const relax_view *v = x->task->v;
    memset(x->load_ns, 0, sizeof *x->load_ns * (size_t)v->n_resources);
    memset(x->bytes, 0, sizeof *x->bytes * (size_t)v->K);
    memset(x->sent, 0, sizeof *x->sent * (size_t)v->n_packets);
    memset(x->held, 0, sizeof *x->held * (size_t)v->p->n_weights);
    for (int32_t g = 0; g < v->p->n_groups; g++)
        x->group_at[g] = MOIRAI_NONE;
}

/* Puts all that a reach has where it is; returns its prefix. */
static int32_t replay(stages *x, int32_t which)
{
    int32_t line[MOIRAI_MASK_DEVICES], n = 0, at = 0;
    for (int32_t r = which; r != MOIRAI_NONE; r = x->all[r].parent)
        line[n++] = r;
    while (n > 0) {
        const reach *r = &x->all[line[--n]];
        for (; at < r->prefix; at++)
            take(x, x->task->order[at], r->device);
    }
    return at;
}

/* How far the set comes if device k follows. */
static int32_t extend(stages *x, int32_t parent, int32_t k)
{
    forget(x);
    int32_t at = parent == MOIRAI_NONE ? 0 : replay(x, parent);
    while (at < x->task->v->n && take(x, x->task->order[at], k))
        at++;
    return at;
}

/* ---- sets ---- */

static int farthest(const void *a, const void *b)
{
    const reach *x = a, *y = b;
    if (x->prefix != y->prefix)
        return x->prefix > y->prefix ? -1 : 1;
    return x->set < y->set ? -1 : x->set > y->set ? 1 : x->device - y->device;
}

/* Of equal sets the farthest, then the BEAM farthest sets. */
static int32_t choose(reach *list, int32_t n)
{
    int32_t kept = 0;
    qsort(list, (size_t)n, sizeof *list, farthest);
    for (int32_t i = 0; i < n && kept < BEAM; i++) {
        bool known = false;
        for (int32_t j = 0; j < kept && !known; j++)
            known = list[j].set == list[i].set;
        if (!known)
            list[kept++] = list[i];
    }
    return kept;
}

/* The number of a reach that has all operators within the limit, or MOIRAI_NONE. */
static int32_t search(stages *x)
{
    int32_t first = 0, end = 0, K = x->task->v->K;
    x->n_all = 0;
    for (int32_t level = 0; level < K; level++) {
        int32_t begin = x->n_all;
        for (int32_t i = level == 0 ? MOIRAI_NONE : first; i < (level == 0 ? 0 : end); i++)
            for (int32_t k = 0; k < K; k++) {
                uint64_t bit = UINT64_C(1) << k, set = i < 0 ? 0 : x->all[i].set;
                if (!(x->task->devices & bit) || set & bit)
                    continue;
                reach r = {.set = set | bit, .parent = i, .device = k};
                r.prefix = extend(x, i, k);
                x->all[x->n_all++] = r;
                if (r.prefix == x->task->v->n)
                    return x->n_all - 1;
                if (util_stopped(&x->task->stop))
                    return MOIRAI_NONE;
            }
        first = begin;
        end = x->n_all = begin + choose(x->all + begin, x->n_all - begin);
        if (first == end)
            break;
    }
    return MOIRAI_NONE;
}

static int64_t largest(const stages *x)
{
    int64_t most = 0;
    for (int32_t r = 0; r < x->task->v->n_resources; r++)
        most = UTIL_MAX(most, x->load_ns[r]);
    return most;
}

/* Within the limit, if that is possible; *load_ns is what it came to. */
static bool attempt(stages *x, int32_t *device, int64_t *load_ns, int64_t limit_ns)
{
    x->limit_ns = limit_ns;
    int32_t found = search(x);
    if (found == MOIRAI_NONE)
        return false;
    forget(x);
    replay(x, found);
    *load_ns = largest(x);
    if (x->task->v->n > 0)
        memcpy(device, x->at, sizeof *device * (size_t)x->task->v->n);
    return true;
}

static void bisect(stages *x, int32_t *device, int64_t *load_ns)
{
    int64_t low = 0;
    if (!attempt(x, device, load_ns, INT64_MAX / 4))
        return;
    int64_t high = *load_ns;
    for (int32_t i = 0; i < HALVINGS && (double)(high - low) > CLOSE * (double)high; i++) {
        int64_t middle = low + (high - low) / 2, found;
        if (util_stopped(&x->task->stop))
            return;
        if (attempt(x, device, &found, middle))
            high = *load_ns = found;
        else
            low = middle;
    }
}

/* Group -> operators. */
static int list_groups(stages *x)
{
    const moirai_problem *p = x->task->v->p;
    x->group_off = util_alloc((size_t)p->n_groups + 2, sizeof *x->group_off);
    x->group_op = util_alloc((size_t)p->n_ops, sizeof *x->group_op);
    if (!x->group_off || !x->group_op)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops; i++)
        if (p->op_group[i] != MOIRAI_NONE)
            x->group_off[p->op_group[i] + 2]++;
    for (int32_t g = 0; g < p->n_groups; g++)
        x->group_off[g + 2] += x->group_off[g + 1];
    for (int32_t i = 0; i < p->n_ops; i++)
        if (p->op_group[i] != MOIRAI_NONE)
            x->group_op[x->group_off[p->op_group[i] + 1]++] = i;
    return 0;
}

int rate_stages(int32_t *device, int64_t *load_ns, const rate_stages_task *task)
{
    const relax_view *v = task->v;
    const moirai_problem *p = v->p;
    stages x = {.task = task};
    size_t K = (size_t)v->K, n = (size_t)v->n;
    *load_ns = -1;
    x.all = util_alloc(K * (BEAM * K + K), sizeof *x.all);
    x.at = util_alloc(n, sizeof *x.at);
    x.load_ns = util_alloc((size_t)v->n_resources, sizeof *x.load_ns);
    x.bytes = util_alloc(K, sizeof *x.bytes);
    x.sent = util_alloc((size_t)v->n_packets, sizeof *x.sent);
    x.held = util_alloc((size_t)p->n_weights, sizeof *x.held);
    x.group_at = util_alloc((size_t)p->n_groups, sizeof *x.group_at);
    int rc = x.all && x.at && x.load_ns && x.bytes && x.sent && x.held && x.group_at ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : list_groups(&x);
    rc = rc ? rc : rate_op_weights_open(&x.shares, p);
    if (!rc)
        bisect(&x, device, load_ns);
    rate_op_weights_close(&x.shares);
    void *all[] = {x.all, x.at, x.load_ns, x.bytes, x.sent, x.held, x.group_at, x.group_off, x.group_op};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc;
}
