/* Heads and tails from intervals (docs/theory.md, Lemma 11): h(v, l) = max over intervals (u, v) of min over k of h(u, k) + t(u, k) + L(u, k,
 * v, l) is a head as well, and the recursion over edges passes it on to all that follows. Every device takes the interval that is best for
 * itself, where a chain has one interval for all of them. */
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

/* The start of the interval's exit on device `at`, by the heads of its entry; or what follows the finish of its entry there, by the tails of its
 * exit. */
static int64_t beyond(const moirai_problem *p, const int64_t *path, const bound_interval *v, int32_t at, bool forwards)
{
    int32_t K = p->n_devices, other = forwards ? v->entry : v->exit;
    int64_t least = SCHEDULE_NEVER_NS;
    if (other == MOIRAI_NONE)
        return v->lower_ns[forwards ? at : at * K];
    for (uint64_t m = p->op_devices[other]; m != 0; m &= m - 1) {
        int32_t k = __builtin_ctzll(m);
        int64_t between = v->lower_ns[forwards ? k * K + at : at * K + k];
        least = UTIL_MIN(least, path[(int64_t)other * K + k] + moirai_op_ns(p, other, k) + between);
    }
    return least;
}

/* Heads, or tails. */
static void find_paths(int64_t *path, const moirai_problem *p, const bound_interval_list *known, bool forwards)
{
    int64_t K = p->n_devices;
    schedule_paths paths = {.p = p};
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[forwards ? z : p->n_ops - 1 - z];
        (forwards ? schedule_heads_of : schedule_tails_of)(path, &paths, i);
        for (const bound_interval *v = known->list; v < known->list + known->n; v++)
            for (uint64_t m = (forwards ? v->exit : v->entry) == i ? p->op_devices[i] : 0; m != 0; m &= m - 1) {
                int64_t *at = &path[i * K + __builtin_ctzll(m)];
                *at = UTIL_MAX(*at, beyond(p, path, v, __builtin_ctzll(m), forwards));
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
    find_paths(out->head, p, known, true);
    find_paths(out->tail, p, known, false);
    out->lower_ns = longest(out, p, known);
    return 0;
}

void bound_windows_clear(bound_windows *w)
{
    free(w->head);
    free(w->tail);
    *w = (bound_windows){0};
}
