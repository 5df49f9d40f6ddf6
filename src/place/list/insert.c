/* Insertion: each operator into the earliest gap of a device that holds it, each input into the earliest gap that the
 * ports of both ends (or the channel) share, in order of availability. With flow tensor a tensor that is already there
 * is not sent again. Transfers of an operator on trial are kept aside until its device is chosen. One trial: O(inputs
 * (log V + gaps passed)). */
#include "place/list/insert.h"
#include "util/util.h"

#include <stdlib.h>

#define INPUTS_PER_LOOK 4096 /* at the interrupt */

static size_t n_lines(const moirai_problem *p)
{
    size_t K = (size_t)p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_CHANNEL ? K * K : 2 * K;
}

static void clear_all(place_timeline *line, size_t n)
{
    for (size_t j = 0; line && j < n; j++)
        place_timeline_clear(&line[j]);
    free(line);
}

void place_insert_free(place_insert *x)
{
    if (!x)
        return;
    clear_all(x->device, (size_t)x->p->n_devices);
    clear_all(x->line, n_lines(x->p));
    clear_all(x->tried, (size_t)x->p->n_devices);
    free(x->now);
    free(x->best);
    place_list_free(x->list);
    free(x);
}

int place_insert_new(place_insert **out, const moirai_problem *p)
{
    *out = NULL;
    place_insert *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    x->p = p;
    x->trial = MOIRAI_NONE;
    size_t K = (size_t)p->n_devices, widest = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        widest = UTIL_MAX(widest, (size_t)(p->op_in_off[i + 1] - p->op_in_off[i]));
    x->device = util_alloc(K, sizeof *x->device);
    x->line = util_alloc(n_lines(p), sizeof *x->line);
    x->tried = util_alloc(K, sizeof *x->tried);
    x->now = util_alloc(widest, sizeof *x->now);
    x->best = util_alloc(widest, sizeof *x->best);
    int rc = x->device && x->line && x->tried && x->now && x->best ? place_list_new(&x->list, p) : MOIRAI_EFAIL;
    if (rc)
        place_insert_free(x);
    else
        *out = x;
    return rc;
}

void place_insert_clear(place_insert *x)
{
    place_list_clear(x->list);
    for (int32_t k = 0; k < x->p->n_devices; k++)
        x->device[k].n = x->tried[k].n = 0;
    for (size_t j = 0; j < n_lines(x->p); j++)
        x->line[j].n = 0;
    x->trial = MOIRAI_NONE;
}

/* The moment is free on the lines themselves and, with `tried`, among the transfers on trial. */
static int64_t find_free(const place_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns,
                         const place_timeline *tried)
{
    int32_t K = x->p->n_devices;
    if (ns == 0 || x->p->congestion == MOIRAI_CONGESTION_NONE)
        return at;
    bool port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    const place_timeline *first = port ? &x->line[from] : &x->line[from * K + to];
    const place_timeline *second = port ? &x->line[K + to] : NULL;
    for (;;) {
        int64_t begun = at;
        at = place_timeline_next(first, at, ns);
        if (second)
            at = place_timeline_next(second, at, ns);
        if (tried)
            at = place_timeline_next(tried, at, ns);
        if (at == begun)
            return at;
    }
}

int64_t place_insert_find_sending(const place_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns)
{
    return find_free(x, from, to, at, ns, NULL);
}

/* Arrival of one input on device k; a new transfer joins those on trial. Negative: out of memory. */
static int64_t bring(place_insert *x, int32_t j, int32_t k)
{
    const moirai_problem *p = x->p;
    place_list *l = x->list;
    int32_t t = p->op_in[j], producer = p->tensor_producer[t], from = l->device[producer];
    if (from == k)
        return l->finish_ns[producer];
    int32_t slot = place_list_slot(l, j, k);
    if (l->arrival_ns[slot] != MOIRAI_UNKNOWN)
        return l->arrival_ns[slot];
    int64_t ns = moirai_transfer_ns(p, t, from, k);
    place_timeline *tried = &x->tried[p->congestion == MOIRAI_CONGESTION_PORT ? 0 : from];
    int64_t start = find_free(x, from, k, l->finish_ns[producer], ns, tried);
    x->now[x->n_now++] = (place_sending_try){slot, from, start, ns};
    if (ns > 0 && p->congestion != MOIRAI_CONGESTION_NONE && place_timeline_take(tried, start, ns))
        return -1;
    return start + ns;
}

int64_t place_insert_try(place_insert *x, int32_t op, int32_t k, int64_t limit_ns)
{
    const moirai_problem *p = x->p;
    if (x->trial != op)
        x->input = place_list_inputs(x->list, op);
    x->trial = op;
    int32_t n_inputs = p->op_in_off[op + 1] - p->op_in_off[op];
    int64_t ns = moirai_op_ns(p, op, k), ready = 0;
    x->n_now = 0;
    for (int32_t a = 0; a < (p->congestion == MOIRAI_CONGESTION_PORT ? 1 : p->n_devices); a++)
        x->tried[a].n = 0;
    for (int32_t j = 0; j < n_inputs; j++) {
        int64_t arrival = bring(x, x->input[j], k);
        if (arrival < 0)
            return -1;
        ready = UTIL_MAX(ready, arrival);
        if (ready + ns >= limit_ns ||
            (j % INPUTS_PER_LOOK == INPUTS_PER_LOOK - 1 && moirai_interrupt_raised(x->enough)))
            return INT64_MAX;
    }
    return ns > 0 ? place_timeline_next(&x->device[k], ready, ns) : ready;
}

void place_insert_keep(place_insert *x)
{
    place_sending_try *spare = x->best;
    x->best = x->now;
    x->n_best = x->n_now;
    x->now = spare;
}

int place_insert_take_sending(place_insert *x, int32_t slot, int32_t from, int32_t to, int64_t start_ns, int64_t ns)
{
    int32_t K = x->p->n_devices;
    place_list_place_transfer(x->list, slot, start_ns, ns);
    if (ns == 0 || x->p->congestion == MOIRAI_CONGESTION_NONE)
        return 0;
    bool port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    int rc = place_timeline_take(port ? &x->line[from] : &x->line[from * K + to], start_ns, ns);
    if (!rc && port)
        rc = place_timeline_take(&x->line[K + to], start_ns, ns);
    return rc;
}

int place_insert_take_op(place_insert *x, int32_t op, int32_t k, int64_t start_ns)
{
    int64_t ns = moirai_op_ns(x->p, op, k);
    int rc = ns > 0 ? place_timeline_take(&x->device[k], start_ns, ns) : 0;
    place_list_place_op(x->list, op, k, start_ns);
    return rc;
}

int place_insert_commit(place_insert *x, int32_t op, int32_t k, int64_t start_ns)
{
    int rc = 0;
    for (int32_t j = 0; j < x->n_best && !rc; j++) {
        const place_sending_try *s = &x->best[j];
        rc = place_insert_take_sending(x, s->slot, s->from, k, s->start_ns, s->ns);
    }
    rc = rc ? rc : place_insert_take_op(x, op, k, start_ns);
    return rc;
}
