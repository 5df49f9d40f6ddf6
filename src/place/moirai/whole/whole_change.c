/* What a trial changes: devices of operators with their groups, and one stretch of the order. What was there is kept,
 * for place_whole_reject. */
#include "place/moirai/whole/whole_sim.h"

#include <string.h>

void place_whole_begin(place_whole *w)
{
    w->trial.number++;
    w->trial.first = w->n;
    w->trial.last = -1;
    w->trial.moved.n = 0;
    w->trial.cut.first = 0;
    w->trial.cut.last = -1;
    w->trial.n_slot_log = 0;
    w->trial.done = 0;
    w->trial.from_mark = w->trial.to_mark = 0;
    w->trial.seen_until = -1;
}

static void touch(place_whole *w, int32_t first, int32_t last)
{
    w->trial.first = UTIL_MIN(w->trial.first, first);
    w->trial.last = UTIL_MAX(w->trial.last, last);
}

bool place_whole_move(place_whole *w, int32_t op, int32_t device)
{
    const moirai_problem *p = w->p;
    const place_units *u = w->units;
    int32_t unit = u->of_op[op], begin = u->off[unit], end = u->off[unit + 1], from = w->device[op];
    int64_t bytes = u->bytes[unit];
    if (device == from || !moirai_op_may(p, op, device) || w->trial.moved.n + end - begin > w->n ||
        w->bytes[device] + bytes > p->device_memory_bytes[device])
        return false;
    w->bytes[device] += bytes;
    w->bytes[from] -= bytes;
    for (int32_t x = begin; x < end; x++) {
        int32_t i = u->op[x];
        w->trial.moved.op[w->trial.moved.n] = i;
        w->trial.moved.from[w->trial.moved.n++] = from;
        w->device[i] = device;
        touch(w, w->position[i], w->position[i]);
    }
    return true;
}

static void keep_cut(place_whole *w, int32_t first, int32_t last)
{
    w->trial.cut.first = first;
    w->trial.cut.last = last;
    memcpy(w->trial.cut.order, w->order + first, sizeof *w->order * (size_t)(last - first + 1));
    touch(w, first, last);
}

void place_whole_set_order(place_whole *w, int32_t first, int32_t n, const int32_t *op)
{
    for (int32_t x = 0; x < n; x++) {
        w->order[first + x] = op[x];
        w->position[op[x]] = first + x;
    }
}

void place_whole_shift(place_whole *w, int32_t op, int32_t to)
{
    int32_t at = w->position[op], first = UTIL_MIN(at, to), n = UTIL_MAX(at, to) - first + 1, marked = 0;
    int32_t now = ++w->trial.mark_now, *mark = w->trial.mark_of_op;
    const int32_t *order = w->trial.cut.order;
    bool later = to > at;
    if (n < 2)
        return;
    keep_cut(w, first, first + n - 1);
    mark[op] = now;
    for (int32_t x = 0; x < n; x++) { /* away from op: what reads from a marked one is marked, or what that reads */
        int32_t i = order[later ? x : n - 1 - x];
        for (int32_t j = w->in.off[i]; j < w->in.off[i + 1] && (mark[i] == now) != later; j++) {
            int32_t producer = w->in.producer[j];
            if (mark[later ? producer : i] == now)
                mark[later ? i : producer] = now;
        }
        marked += mark[i] == now;
    }
    int32_t along = later ? n - marked : 0, others = later ? 0 : marked;
    for (int32_t x = 0; x < n; x++)
        w->trial.cut.spare[mark[order[x]] == now ? along++ : others++] = order[x];
    place_whole_set_order(w, first, n, w->trial.cut.spare);
}
