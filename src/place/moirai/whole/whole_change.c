/* What a trial changes: devices of operators with their groups, and one stretch of the order. What was there is kept,
 * for place_whole_reject. */
#include "place/moirai/whole/whole_sim.h"

#include <string.h>

void place_whole_begin(place_whole *w)
{
    w->trial++;
    w->first = w->n;
    w->last = -1;
    w->n_moved = 0;
    w->cut_first = 0;
    w->cut_last = -1;
    w->n_slot_log = 0;
    w->done = 0;
    w->from_mark = w->to_mark = 0;
    w->seen_until = -1;
}

static void touch(place_whole *w, int32_t first, int32_t last)
{
    w->first = UTIL_MIN(w->first, first);
    w->last = UTIL_MAX(w->last, last);
}

bool place_whole_move(place_whole *w, int32_t op, int32_t device)
{
    const moirai_problem *p = w->p;
    const place_units *u = w->units;
    int32_t unit = u->of_op[op], begin = u->off[unit], end = u->off[unit + 1], from = w->device[op];
    int64_t bytes = u->bytes[unit];
    if (device == from || !moirai_op_may(p, op, device) || w->n_moved + end - begin > w->n ||
        w->bytes[device] + bytes > p->device_memory_bytes[device])
        return false;
    w->bytes[device] += bytes;
    w->bytes[from] -= bytes;
    for (int32_t x = begin; x < end; x++) {
        int32_t i = u->op[x];
        w->moved_op[w->n_moved] = i;
        w->moved_from[w->n_moved++] = from;
        w->device[i] = device;
        touch(w, w->position[i], w->position[i]);
    }
    return true;
}

static void keep_cut(place_whole *w, int32_t first, int32_t last)
{
    w->cut_first = first;
    w->cut_last = last;
    memcpy(w->cut_order, w->order + first, sizeof *w->order * (size_t)(last - first + 1));
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
    int32_t now = ++w->mark_now;
    w->mark_of_op[op] = now;
    for (int32_t x = n - 1; x >= 0; x--) { /* the stretch backwards: what precedes a marked operator is marked before */
        int32_t i = w->cut_order[x];
        if (w->mark_of_op[i] == now)
            for (int32_t j = w->in_off[i]; j < w->in_off[i + 1]; j++)
                w->mark_of_op[w->in_producer[j]] = now;
        else
            w->cut_spare[--behind] = i;
    }
    for (int32_t x = 0; x < n; x++)
        if (w->mark_of_op[w->cut_order[x]] == now)
            w->cut_spare[ahead++] = w->cut_order[x];
    place_whole_set_order(w, to, n, w->cut_spare);
}

void place_whole_push(place_whole *w, int32_t op, int32_t to)
{
    int32_t first = w->position[op], n = to - first + 1, ahead = 0, behind = 0;
    if (n < 2)
        return;
    keep_cut(w, first, to);
    int32_t now = ++w->mark_now;
    w->mark_of_op[op] = now;
    for (int32_t x = 1; x < n; x++) {
        int32_t i = w->cut_order[x];
        for (int32_t j = w->in_off[i]; j < w->in_off[i + 1] && w->mark_of_op[i] != now; j++)
            if (w->mark_of_op[w->in_producer[j]] == now)
                w->mark_of_op[i] = now;
        if (w->mark_of_op[i] != now)
            w->cut_spare[ahead++] = i;
    }
    for (int32_t x = 0; x < n; x++)
        if (w->mark_of_op[w->cut_order[x]] == now)
            w->cut_spare[ahead + behind++] = w->cut_order[x];
    place_whole_set_order(w, first, n, w->cut_spare);
}
