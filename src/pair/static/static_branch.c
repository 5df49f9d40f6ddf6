/* Where the weakest case of the static programme is divided.
 *
 * By sending and by return first, as long as that can be and transfers are worth it (static_cases.c says what these are).
 * Then by a number: how many operators of a group are on a device.
 *
 * Which one. The number furthest from whole, weighted by the time of what it counts, is a poor choice where links are
 * fast: the programme gives way by moving work to where it takes little longer, and heavy operators move as easily as
 * light ones. What counts is how much both parts of a division prove beyond the whole, and that is known from the
 * divisions so far: for each number and side the mean rise per unit by which the side forbids the programme's number
 * (pseudo-costs: Benichou et al., 1971; the product of both sides' rises: Achterberg, 2007). A number that was never
 * divided counts as if it had risen once by a part of its operators' time. A layer of 8 experts on fast links, 1.0677 ms
 * without cases: 1.0738 with 129 cases before, 1.0802 so.
 *
 * Last, where all numbers are whole and operators are not, by the device of the operator that is least settled. */
#include <math.h>

#include "pair/static/static_state.h"
#include "pair/static/static_tuning.h"
#include "util/util.h"

pair_receivers pair_static_listed(const pair_static_tree *s, int32_t at, pair_static_division how)
{
    pair_receivers to = {0};
    for (int32_t i = at; s->cases[i].parent != MOIRAI_NONE; i = s->cases[i].parent) {
        if (s->cases[s->cases[i].parent].division != how)
            continue;
        if (s->cases[i].which == MOIRAI_NONE)
            to.closed = true;
        else
            to.device[to.n++] = (int8_t)s->cases[i].which;
    }
    for (int32_t i = 0; i < to.n / 2; i++) { /* the walk was from the last to the first */
        int8_t device = to.device[i];
        to.device[i] = to.device[to.n - 1 - i];
        to.device[to.n - 1 - i] = device;
    }
    return to;
}

/* ---- numbers ---- */

void pair_static_learn(pair_static *p, int32_t at)
{
    const pair_programme *x = &p->x;
    const pair_static_case *c = &p->search.tree.cases[at],
                           *parent = c->parent == MOIRAI_NONE ? NULL : &p->search.tree.cases[c->parent];
    if (!parent || parent->division != PAIR_BY_NUMBER)
        return;
    int32_t i = parent->group * x->K + parent->device;
    double number = p->search.number[(size_t)c->parent * pair_static_solution_size(x) + (size_t)i],
           part = number - (double)parent->most, forbidden = c->which == 0 ? part : 1 - part;
    pair_static_rise *rise = &p->search.rise[2 * i + c->which];
    rise->sum_ns += fmax(0, (double)(c->own_ns - parent->own_ns)) / fmax(forbidden, STATIC_BRANCH_LEAST_PART);
    rise->times++;
}

/* What is believed that a side of a division by number i proves more, per unit that it forbids. */
static double likely_rise(const pair_static *p, int32_t i, int32_t side)
{
    const pair_programme *x = &p->x;
    const pair_static_rise *rise = &p->search.rise[2 * i + side];
    double prior =
        STATIC_BRANCH_PRIOR * (double)moirai_op_least_ns(x->q, x->number.group_op[x->number.group_off[i / x->K]]);
    return (rise->sum_ns + prior) / (1 + rise->times);
}

/* Where to divide: the number of which both sides are likely to prove most. */
static bool choose_number(const pair_static *p, int32_t at, pair_static_case *c)
{
    const pair_programme *x = &p->x;
    const double *number = p->search.number + (size_t)at * pair_static_solution_size(x);
    double most = 0;
    for (int32_t i = 0; i < x->number.n_groups * x->K; i++) {
        double part = number[i] - floor(number[i]);
        double worth = fmax(1, likely_rise(p, i, 0) * part) * fmax(1, likely_rise(p, i, 1) * (1 - part));
        if (fmin(part, 1 - part) > STATIC_BRANCH_FRACTION && worth > most) {
            most = worth;
            c->division = PAIR_BY_NUMBER;
            c->group = i / x->K;
            c->device = i % x->K;
            c->most = (int64_t)floor(number[i]);
        }
    }
    return most > 0;
}

/* The operator whose device is least settled, by its time. */
static bool choose_device(const pair_static *p, int32_t at, pair_static_case *c)
{
    const pair_programme *x = &p->x;
    const double *on = p->search.number + (size_t)at * pair_static_solution_size(x) + x->number.n;
    double most = 0;
    for (int32_t i = 0; i < x->n * x->K; i++) {
        double far = fmin(on[i], 1 - on[i]), worth = far * (double)moirai_op_least_ns(x->q, i / x->K);
        if (far > STATIC_BRANCH_FRACTION && worth > most) {
            most = worth;
            c->division = PAIR_BY_DEVICE;
            c->group = i / x->K;
            c->device = i % x->K;
        }
    }
    return most > 0;
}

/* ---- sendings and returns ---- */

/* Devices that may receive the entry's tensor next; 0: all is said. */
static uint64_t next_receivers(const pair_programme *x, const pair_receivers *to)
{
    const moirai_problem *q = x->q;
    uint64_t devices = 0;
    if (x->number.sent == MOIRAI_NONE || to->closed)
        return 0;
    for (int32_t e = q->tensor_edge_off[x->number.sent]; e < q->tensor_edge_off[x->number.sent + 1]; e++)
        devices |= q->op_devices[q->edge_reader[e]];
    devices &= ~(UINT64_C(1) << x->number.sender);
    for (int32_t i = 0; i < to->n; i++)
        devices &= ~(UINT64_C(1) << to->device[i]);
    return devices;
}

/* Devices that may be the next, from the last on, to send results to the exit's device. */
static uint64_t next_returning(const pair_programme *x, const pair_receivers *back)
{
    uint64_t devices = 0;
    if (x->result.exit_device == MOIRAI_NONE || back->closed)
        return 0;
    for (int32_t t = 0; t < x->q->n_tensors; t++)
        devices |= x->result.is[t] ? x->q->op_devices[x->q->tensor_producer[t]] : 0;
    devices &= ~(UINT64_C(1) << x->result.exit_device);
    for (int32_t i = 0; i < back->n; i++)
        devices &= ~(UINT64_C(1) << back->device[i]);
    return devices;
}

static bool worth_returning(const pair_programme *x, uint64_t devices)
{
    int64_t ns = 0;
    for (; devices; devices &= devices - 1)
        ns = UTIL_MAX(ns, x->result.ns[__builtin_ctzll(devices)]);
    return (double)ns > STATIC_BRANCH_SEND_WORTH * (double)x->proven_ns;
}

static bool worth_sending(const pair_programme *x, uint64_t devices)
{
    int64_t ns = 0;
    for (; devices; devices &= devices - 1)
        ns = UTIL_MAX(ns, moirai_transfer_ns(x->q, x->number.sent, x->number.sender, __builtin_ctzll(devices)));
    return (double)ns > STATIC_BRANCH_SEND_WORTH * (double)x->proven_ns;
}

uint64_t pair_static_choose(const pair_static *p, int32_t at, pair_static_case *c, bool *any)
{
    pair_receivers to = pair_static_listed(&p->search.tree, at, PAIR_BY_SENDING),
                   back = pair_static_listed(&p->search.tree, at, PAIR_BY_RETURN);
    uint64_t devices = next_receivers(&p->x, &to);
    *any = true;
    if (devices && worth_sending(&p->x, devices)) {
        c->division = PAIR_BY_SENDING;
        return devices;
    }
    devices = next_returning(&p->x, &back);
    if (devices && worth_returning(&p->x, devices)) {
        c->division = PAIR_BY_RETURN;
        return devices;
    }
    *any = choose_number(p, at, c) || choose_device(p, at, c);
    return 0;
}
