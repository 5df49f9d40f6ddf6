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

void place_whole_pull(place_whole *w, int32_t op, int32_t to)
{
    int32_t last = w->position[op], n = last - to + 1, ahead = 0, behind = n;
    if (n < 2)
        return;
    keep_cut(w, to, last);
    int32_t now = ++w->trial.mark_now;
    w->trial.mark_of_op[op] = now;
    for (int32_t x = n - 1; x >= 0; x--) { /* the stretch backwards: what precedes a marked operator is marked before */
        int32_t i = w->trial.cut.order[x];
        if (w->trial.mark_of_op[i] == now)
            for (int32_t j = w->in.off[i]; j < w->in.off[i + 1]; j++)
                w->trial.mark_of_op[w->in.producer[j]] = now;
        else
            w->trial.cut.spare[--behind] = i;
    }
    for (int32_t x = 0; x < n; x++)
        if (w->trial.mark_of_op[w->trial.cut.order[x]] == now)
            w->trial.cut.spare[ahead++] = w->trial.cut.order[x];
    place_whole_set_order(w, to, n, w->trial.cut.spare);
}

void place_whole_push(place_whole *w, int32_t op, int32_t to)
{
    int32_t first = w->position[op], n = to - first + 1, ahead = 0, behind = 0;
    if (n < 2)
        return;
    keep_cut(w, first, to);
    int32_t now = ++w->trial.mark_now;
    w->trial.mark_of_op[op] = now;
    for (int32_t x = 1; x < n; x++) {
        int32_t i = w->trial.cut.order[x];
        for (int32_t j = w->in.off[i]; j < w->in.off[i + 1] && w->trial.mark_of_op[i] != now; j++)
            if (w->trial.mark_of_op[w->in.producer[j]] == now)
                w->trial.mark_of_op[i] = now;
        if (w->trial.mark_of_op[i] != now)
            w->trial.cut.spare[ahead++] = i;
    }
    for (int32_t x = 0; x < n; x++)
        if (w->trial.mark_of_op[w->trial.cut.order[x]] == now)
            w->trial.cut.spare[ahead + behind++] = w->trial.cut.order[x];
    place_whole_set_order(w, first, n, w->trial.cut.spare);
}
