/* Insertion: each operator into the earliest gap of a device that holds it, each input into the earliest gap that the
 * ports of both ends (or the channel) share, in order of availability. With flow tensor a tensor that is already there
 * is not sent again. Transfers of an operator on trial are kept aside until its device is chosen. One trial: O(inputs
 * (log V + gaps passed)). */
#include "place/insert.h"
#include "util/util.h"

#include <stdlib.h>

static size_t n_lines(const moirai_problem *p)
{
    size_t K = (size_t)p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_CHANNEL ? K * K : 2 * K;
}

static void clear_all(moirai_timeline *line, size_t n)
{
    for (size_t j = 0; line != NULL && j < n; j++)
        moirai_timeline_clear(&line[j]);
    free(line);
}

void moirai_insert_free(moirai_insert *x)
{
    if (x == NULL)
        return;
    clear_all(x->device, (size_t)x->p->n_devices);
    clear_all(x->line, n_lines(x->p));
    clear_all(x->tried, (size_t)x->p->n_devices);
    free(x->now);
    free(x->best);
    moirai_list_free(x->list);
    free(x);
}

int moirai_insert_new(moirai_insert **out, const moirai_problem *p)
{
    *out = NULL;
    moirai_insert *x = moirai_alloc(1, sizeof *x);
    if (x == NULL)
        return MOIRAI_EFAIL;
    x->p = p;
    x->trial = MOIRAI_NONE;
    size_t K = (size_t)p->n_devices, widest = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        widest = MOIRAI_MAX(widest, (size_t)(p->op_in_off[i + 1] - p->op_in_off[i]));
    x->device = moirai_alloc(K, sizeof *x->device);
    x->line = moirai_alloc(n_lines(p), sizeof *x->line);
    x->tried = moirai_alloc(K, sizeof *x->tried);
    x->now = moirai_alloc(widest, sizeof *x->now);
    x->best = moirai_alloc(widest, sizeof *x->best);
    int rc = x->device && x->line && x->tried && x->now && x->best ? moirai_list_new(&x->list, p) : MOIRAI_EFAIL;
    if (rc != 0)
        moirai_insert_free(x);
    else
        *out = x;
    return rc;
}

void moirai_insert_clear(moirai_insert *x)
{
    moirai_list_clear(x->list);
    for (int32_t k = 0; k < x->p->n_devices; k++)
        x->device[k].n = x->tried[k].n = 0;
    for (size_t j = 0; j < n_lines(x->p); j++)
        x->line[j].n = 0;
    x->trial = MOIRAI_NONE;
}

/* The moment is free on the lines themselves and, with `tried`, among the transfers on trial. */
static int64_t find_free(const moirai_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns,
                         const moirai_timeline *tried)
{
    int32_t K = x->p->n_devices;
    if (ns == 0 || x->p->congestion == MOIRAI_CONGESTION_NONE)
        return at;
    bool port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    const moirai_timeline *first = port ? &x->line[from] : &x->line[from * K + to];
    const moirai_timeline *second = port ? &x->line[K + to] : NULL;
    for (;;) {
        int64_t begun = at;
        at = moirai_timeline_next(first, at, ns);
        if (second != NULL)
            at = moirai_timeline_next(second, at, ns);
        if (tried != NULL)
            at = moirai_timeline_next(tried, at, ns);
        if (at == begun)
            return at;
    }
}

int64_t moirai_insert_find_sending(const moirai_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns)
{
    return find_free(x, from, to, at, ns, NULL);
}

/* Arrival of one input on device k; a new transfer joins those on trial. Negative: out of memory. */
static int64_t bring(moirai_insert *x, int32_t j, int32_t k)
{
    const moirai_problem *p = x->p;
    moirai_list *l = x->list;
    int32_t t = p->op_in[j], producer = p->tensor_producer[t], from = l->device[producer];
    if (from == k)
        return l->finish_ns[producer];
    int32_t slot = moirai_list_slot(l, j, k);
    if (l->arrival_ns[slot] != MOIRAI_UNKNOWN)
        return l->arrival_ns[slot];
    int64_t ns = moirai_transfer_ns(p, t, from, k);
    moirai_timeline *tried = &x->tried[p->congestion == MOIRAI_CONGESTION_PORT ? 0 : from];
    int64_t start = find_free(x, from, k, l->finish_ns[producer], ns, tried);
    x->now[x->n_now++] = (moirai_sending_try){slot, from, start, ns};
    if (ns > 0 && p->congestion != MOIRAI_CONGESTION_NONE && moirai_timeline_take(tried, start, ns) != 0)
        return -1;
    return start + ns;
}

int64_t moirai_insert_try(moirai_insert *x, int32_t op, int32_t k, int64_t limit_ns)
{
    const moirai_problem *p = x->p;
    if (x->trial != op)
        x->input = moirai_list_inputs(x->list, op);
    x->trial = op;
    int32_t n_inputs = p->op_in_off[op + 1] - p->op_in_off[op];
    int64_t ns = moirai_op_ns(p, op, k), ready = 0;
    x->n_now = 0;
    for (int32_t a = 0; a < p->n_devices; a++)
        x->tried[a].n = 0;
    for (int32_t j = 0; j < n_inputs; j++) {
        int64_t arrival = bring(x, x->input[j], k);
        if (arrival < 0)
            return -1;
        ready = MOIRAI_MAX(ready, arrival);
        if (ready + ns >= limit_ns)
            return INT64_MAX;
    }
    return ns > 0 ? moirai_timeline_next(&x->device[k], ready, ns) : ready;
}

void moirai_insert_keep(moirai_insert *x)
{
    moirai_sending_try *spare = x->best;
    x->best = x->now;
    x->n_best = x->n_now;
    x->now = spare;
}

int moirai_insert_take_sending(moirai_insert *x, int32_t slot, int32_t from, int32_t to, int64_t start_ns, int64_t ns)
{
    int32_t K = x->p->n_devices;
    moirai_list_place_transfer(x->list, slot, start_ns, ns);
    if (ns == 0 || x->p->congestion == MOIRAI_CONGESTION_NONE)
        return MOIRAI_OK;
    bool port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    int rc = moirai_timeline_take(port ? &x->line[from] : &x->line[from * K + to], start_ns, ns);
    if (rc == 0 && port)
        rc = moirai_timeline_take(&x->line[K + to], start_ns, ns);
    return rc;
}

int moirai_insert_take_op(moirai_insert *x, int32_t op, int32_t k, int64_t start_ns)
{
    int64_t ns = moirai_op_ns(x->p, op, k);
    int rc = ns > 0 ? moirai_timeline_take(&x->device[k], start_ns, ns) : MOIRAI_OK;
    moirai_list_place_op(x->list, op, k, start_ns);
    return rc;
}

int moirai_insert_commit(moirai_insert *x, int32_t op, int32_t k, int64_t start_ns)
{
    int rc = 0;
    for (int32_t j = 0; j < x->n_best && rc == 0; j++) {
        const moirai_sending_try *s = &x->best[j];
        rc = moirai_insert_take_sending(x, s->slot, s->from, k, s->start_ns, s->ns);
    }
    if (rc == 0)
        rc = moirai_insert_take_op(x, op, k, start_ns);
    return rc;
}
