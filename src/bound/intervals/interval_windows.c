/* Heads and tails from intervals.
 *
 * A head by longest paths takes the best device anew at every edge. Between operators u and v of a chain more is known:
 * L(u, k, v, l), the time from the finish of u on k to the start of v on l, by search or by prices, with all that
 * happens in between. So
 *
 *     h(v, l) = max over intervals (u, v) of min over k of h(u, k) + t(u, k) + L(u, k, v, l)
 *
 * is a head as well, and the recursion over edges passes it on to all that follows. Every device takes the interval that
 * is best for itself, where a chain has one interval for all of them. Tails are the same from the end. Each operator
 * runs somewhere, so the least of head + time + tail over its devices bounds the makespan (docs/theory.md, Lemma 11). */
#include "bound/intervals/interval_windows.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/paths.h"
#include "util/util.h"

/* ---- the list ---- */

bound_interval *bound_interval_find(const bound_interval_list *x, int32_t entry, int32_t exit)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->list[i].entry == entry && x->list[i].exit == exit)
            return &x->list[i];
    return NULL;
}

int bound_interval_add(bound_interval **out, bound_interval_list *x, int32_t entry, int32_t exit, int32_t n_devices)
{
    size_t pairs = (size_t)n_devices * (size_t)n_devices;
    bound_interval new_one = {.entry = entry,
                              .exit = exit,
                              .lower_ns = util_alloc(pairs, sizeof(int64_t)),
                              .tries = util_alloc(pairs, sizeof(int8_t))};
    if (!new_one.lower_ns || !new_one.tries || util_grow(&x->list, &x->capacity, x->n + 1, sizeof *x->list)) {
        free(new_one.lower_ns);
        free(new_one.tries);
        return MOIRAI_EFAIL;
    }
    x->list[x->n] = new_one;
    *out = &x->list[x->n++];
    return 0;
}

void bound_interval_list_clear(bound_interval_list *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->list[i].lower_ns);
        free(x->list[i].tries);
    }
    free(x->list);
    *x = (bound_interval_list){0};
}

/* ---- heads and tails ---- */

/* The start of the interval's exit on device l, by the heads of its entry. */
static int64_t start_after(const moirai_problem *p, const int64_t *head, const bound_interval *v, int32_t l)
{
    int32_t K = p->n_devices;
    int64_t least = SCHEDULE_NEVER_NS;
    if (v->entry == MOIRAI_NONE)
        return v->lower_ns[l];
    for (int32_t k = 0; k < K; k++)
        if (p->op_devices[v->entry] >> k & 1)
            least = UTIL_MIN(least,
                             head[(int64_t)v->entry * K + k] + moirai_op_ns(p, v->entry, k) + v->lower_ns[k * K + l]);
    return least;
}

/* What follows the finish of the interval's entry on device k, by the tails of its exit. */
static int64_t rest_before(const moirai_problem *p, const int64_t *tail, const bound_interval *v, int32_t k)
{
    int32_t K = p->n_devices;
    int64_t least = SCHEDULE_NEVER_NS;
    if (v->exit == MOIRAI_NONE)
        return v->lower_ns[k * K];
    for (int32_t l = 0; l < K; l++)
        if (p->op_devices[v->exit] >> l & 1)
            least =
                UTIL_MIN(least, v->lower_ns[k * K + l] + moirai_op_ns(p, v->exit, l) + tail[(int64_t)v->exit * K + l]);
    return least;
}

static void find_heads(int64_t *head, const moirai_problem *p, const bound_interval_list *known)
{
    int64_t K = p->n_devices;
    schedule_paths paths = {.p = p};
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        schedule_heads_of(head, &paths, i);
        for (size_t v = 0; v < known->n; v++)
            for (uint64_t m = known->list[v].exit == i ? p->op_devices[i] : 0; m != 0; m &= m - 1) {
                int64_t *at = &head[i * K + __builtin_ctzll(m)];
                *at = UTIL_MAX(*at, start_after(p, head, &known->list[v], __builtin_ctzll(m)));
            }
    }
}

static void find_tails(int64_t *tail, const moirai_problem *p, const bound_interval_list *known)
{
    int64_t K = p->n_devices;
    schedule_paths paths = {.p = p};
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        schedule_tails_of(tail, &paths, i);
        for (size_t v = 0; v < known->n; v++)
            for (uint64_t m = known->list[v].entry == i ? p->op_devices[i] : 0; m != 0; m &= m - 1) {
                int64_t *at = &tail[i * K + __builtin_ctzll(m)];
                *at = UTIL_MAX(*at, rest_before(p, tail, &known->list[v], __builtin_ctzll(m)));
            }
    }
}

/* The longest of what each operator needs on its best device, and of what is known of the whole. */
static int64_t longest(const bound_windows *w, const moirai_problem *p, const bound_interval_list *known)
{
    const bound_interval *whole = bound_interval_find(known, MOIRAI_NONE, MOIRAI_NONE);
    int64_t most = whole ? whole->lower_ns[0] : 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t least = SCHEDULE_NEVER_NS;
        for (uint64_t m = p->op_devices[i]; m != 0; m &= m - 1) {
            int64_t at = (int64_t)i * p->n_devices + __builtin_ctzll(m);
            least = UTIL_MIN(least, w->head[at] + p->op_time_ns[at] + w->tail[at]);
        }
        most = UTIL_MAX(most, least);
    }
    return most;
}

int bound_windows_find(bound_windows *out, const moirai_problem *p, const bound_interval_list *known)
{
    size_t cells = (size_t)p->n_ops * (size_t)p->n_devices;
    *out = (bound_windows){.head = util_alloc(cells, sizeof(int64_t)), .tail = util_alloc(cells, sizeof(int64_t))};
    if (!out->head || !out->tail) {
        bound_windows_clear(out);
        return MOIRAI_EFAIL;
    }
    find_heads(out->head, p, known);
    find_tails(out->tail, p, known);
    out->lower_ns = longest(out, p, known);
    return 0;
}

void bound_windows_clear(bound_windows *w)
{
    free(w->head);
    free(w->tail);
    *w = (bound_windows){0};
}
