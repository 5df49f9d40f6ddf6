/* Bytes that each device holds, from time to time.
 *
 * Weights and workspace are there from the start. A tensor lives on a device from the start of its producer there, or
 * of its first arrival, to the finish of its last reader there and of its last departure; what nobody reads is an
 * output and lives to the end (model.md, "peak"). The lives become pairs of events, sorted by time; what ends at a
 * moment makes room for what begins. The largest value is the plan's peak_bytes; the curve is there in both memory
 * modes. O((V+E) log). */
#include "problem/device_set.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

typedef struct event {
    int64_t ns, bytes;
} event;

/* Events of each device, filled in a second pass over the same lives. */
typedef struct memory {
    moirai_analysis *a;
    const int64_t *first_ns, *last_ns;
    int32_t *n;   /* per device */
    event **list; /* per device; NULL while counting */
} memory;

static void add_life(memory *m, int32_t device, int64_t bytes, int64_t first_ns, int64_t last_ns)
{
    if (last_ns <= first_ns || bytes == 0)
        return;
    if (m->list) {
        m->list[device][m->n[device]] = (event){first_ns, bytes};
        m->list[device][m->n[device] + 1] = (event){last_ns, -bytes};
    }
    m->n[device] += 2;
}

/* First arrival and last departure of tensors: `out` is one of two tables, [tensor * K + device]. */
static void tensor_lives(memory *m, int32_t t, const int64_t *arrival_ns, int64_t departure_ns)
{
    const moirai_analysis *a = m->a;
    const moirai_problem *p = a->problem;
    const moirai_plan *plan = a->plan;
    int32_t producer = p->tensor_producer[t], home = plan->op_device[producer];
    int32_t begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    int64_t used[MOIRAI_MAX_DEVICES];
    device_set there = {{0}};
    int64_t home_last = begin == end ? plan->makespan_ns : UTIL_MAX(plan->op_finish_ns[producer], departure_ns);
    for (int32_t e = begin; e < end; e++) {
        int32_t reader = p->edge_reader[e], d = plan->op_device[reader];
        int64_t finish = plan->op_finish_ns[reader];
        if (d == home) {
            home_last = UTIL_MAX(home_last, finish);
            continue;
        }
        used[d] = device_set_has(&there, d) ? UTIL_MAX(used[d], finish) : finish;
        device_set_add(&there, d);
    }
    add_life(m, home, p->tensor_bytes[t], plan->op_start_ns[producer], home_last);
    DEVICE_SET_EACH(d, &there)
        add_life(m, d, p->tensor_bytes[t], arrival_ns[d], used[d]);
}

/* All lives: once to count, once to fill. */
static void all_lives(memory *m, const int32_t *transfer_off, const int32_t *transfer)
{
    const moirai_analysis *a = m->a;
    int64_t arrival[MOIRAI_MAX_DEVICES];
    memset(m->n, 0, (size_t)a->n_devices * sizeof *m->n);
    for (int32_t t = 0; t < a->problem->n_tensors; t++) {
        int64_t departure = 0;
        for (int32_t k = 0; k < a->n_devices; k++)
            arrival[k] = INT64_MAX;
        for (int32_t j = transfer_off[t]; j < transfer_off[t + 1]; j++) {
            const moirai_transfer *x = &a->plan->transfer[transfer[j]];
            arrival[x->to] = UTIL_MIN(arrival[x->to], x->start_ns);
            departure = UTIL_MAX(departure, x->finish_ns);
        }
        tensor_lives(m, t, arrival, departure);
    }
}

/* Transfers by tensor. */
static void sort_transfers(const moirai_analysis *a, int32_t *off, int32_t *list)
{
    int32_t n = a->problem->n_tensors;
    for (int32_t x = 0; x < a->n_transfers; x++)
        off[a->plan->transfer[x].tensor + 1]++;
    for (int32_t t = 0; t < n; t++)
        off[t + 1] += off[t];
    for (int32_t x = a->n_transfers - 1; x >= 0; x--)
        list[--off[a->plan->transfer[x].tensor + 1]] = x;
    /* every offset but the first has moved one place down */
    memmove(off, off + 1, (size_t)n * sizeof *off);
    off[n] = a->n_transfers;
}

static int compare(const void *x, const void *y)
{
    const event *a = x, *b = y;
    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* The curve of device k behind those before it. */
static void draw_curve(moirai_analysis *a, int32_t k, event *list, int32_t n)
{
    int64_t held = a->resident_bytes[k];
    int32_t at = a->memory_off[k];
    qsort(list, (size_t)n, sizeof *list, compare);
    a->memory_ns[at] = 0;
    a->memory_bytes[at] = held;
    for (int32_t j = 0; j < n; j++) {
        held += list[j].bytes;
        if (j + 1 < n && list[j + 1].ns == list[j].ns)
            continue;
        if (list[j].ns > a->memory_ns[at])
            at++;
        a->memory_ns[at] = list[j].ns;
        a->memory_bytes[at] = held;
    }
    a->memory_off[k + 1] = at + 1;
    for (int32_t j = a->memory_off[k]; j <= at; j++)
        a->peak_bytes[k] = UTIL_MAX(a->peak_bytes[k], a->memory_bytes[j]);
}

static int draw_curves(memory *m, const int32_t *off, const int32_t *transfer)
{
    moirai_analysis *a = m->a;
    event *pool, *list[MOIRAI_MAX_DEVICES];
    size_t total = 0;
    all_lives(m, off, transfer);
    for (int32_t k = 0; k < a->n_devices; k++)
        total += (size_t)m->n[k];
    pool = util_alloc(total, sizeof *pool);
    a->memory_ns = util_alloc(total + (size_t)a->n_devices, sizeof *a->memory_ns);
    a->memory_bytes = util_alloc(total + (size_t)a->n_devices, sizeof *a->memory_bytes);
    if (!pool || !a->memory_ns || !a->memory_bytes) {
        free(pool);
        return MOIRAI_EFAIL;
    }
    for (int32_t k = 0, used = 0; k < a->n_devices; used += m->n[k++])
        list[k] = pool + used;
    m->list = list;
    all_lives(m, off, transfer);
    for (int32_t k = 0; k < a->n_devices; k++)
        draw_curve(a, k, list[k], m->n[k]);
    free(pool);
    return 0;
}

int report_find_memory(moirai_analysis *a)
{
    int32_t n[MOIRAI_MAX_DEVICES];
    memory m = {.a = a, .n = n};
    if (a->problem->partial) {
        bool ok = (a->memory_ns = util_alloc(1, sizeof *a->memory_ns)) != NULL;
        ok &= (a->memory_bytes = util_alloc(1, sizeof *a->memory_bytes)) != NULL;
        return ok ? 0 : MOIRAI_EFAIL;
    }
    int32_t *off = util_alloc((size_t)a->problem->n_tensors + 1, sizeof *off);
    int32_t *transfer = util_alloc((size_t)a->n_transfers, sizeof *transfer);
    int rc = off && transfer ? 0 : MOIRAI_EFAIL;
    if (!rc)
        sort_transfers(a, off, transfer);
    rc = rc ? rc : draw_curves(&m, off, transfer);
    free(off);
    free(transfer);
    return rc;
}
