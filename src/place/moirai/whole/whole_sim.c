/* Append-only simulation with a memory: a state of the whole graph and the state after a small change of it.
 *
 * A state is a device per operator and one order of all operators. Its schedule puts down operator after operator: what
 * it reads from other devices is sent first (unless it is there: flow tensor), each transfer behind all that its two
 * ports (or its channel) have carried so far, then it runs behind all that its device has run. That is replay
 * (schedule/sim_replay.c) with transfers in the order of their first readers: O(V+E), no queues.
 *
 * What makes it quick for a search that changes a little and asks again:
 *  - Marks. Every few positions of the order the state of all lines (devices, ports) is kept; a trial begins at the
 * mark before its first change.
 *  - Lateness. One backward pass over the schedule says how late each operator may finish, and each line be free at
 * each mark, without lengthening the whole. Behind the last position that a trial changes, orders and devices are as
 *    before, so what it delays beyond that lateness is what it adds to the makespan: most trials that are too long are
 *    known to be so at the end of their stretch. It is a guess only where a transfer has found another first reader,
 *    or where the pass is a few accepted states old; then a good trial may be lost, never a wrong one taken.
 *  - Convergence. Where all lines are as they were and nobody further on can see a difference, the rest is as it was.
 * A trial writes in place and logs what was there; rejecting it writes back. */
#include "place/moirai/whole/whole_sim.h"

#include <string.h>

#define STALE 6 /* accepted states until lateness is found anew */
#define FAR (INT64_MAX / 4)

/* ---- putting down ---- */

/* The lines that a transfer holds; with congestion `none` there are none. */
static inline bool lines_of(const place_whole *w, int32_t from, int32_t to, int32_t *a, int32_t *b)
{
    if (w->port) {
        *a = w->K + from;
        *b = 2 * w->K + to;
    } else {
        *a = *b = w->K + from * w->K + to;
    }
    return w->n_lines > w->K;
}

/* The latest position among the readers of a tensor that were behind position q. */
static void note_readers(place_whole *w, int32_t tensor)
{
    const moirai_problem *p = w->p;
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++)
        w->seen_until = UTIL_MAX(w->seen_until, w->position[p->edge_reader[e]]);
}

static int64_t send(place_whole *w, int32_t op, int32_t j, int32_t slot, int32_t from, int32_t to)
{
    place_whole_slot *s = &w->slot[slot];
    int64_t ns = w->p->class_transfer_ns[w->in_class[j] + from * w->K + to], start = w->finish_ns[w->in_producer[j]];
    int32_t a, b;
    if (ns > 0 && lines_of(w, from, to, &a, &b)) {
        start = UTIL_MAX(start, UTIL_MAX(w->line_ns[a], w->line_ns[b]));
        w->line_ns[a] = w->line_ns[b] = start + ns;
    }
    w->slot_log[w->n_slot_log++] = (place_whole_slot_log){slot, *s};
    if (!w->per_edge && (s->by == MOIRAI_NONE || s->arrival_ns != start + ns))
        note_readers(w, w->p->op_in[j]);
    *s = (place_whole_slot){start + ns, op, w->trial};
    return start + ns;
}

/* Whether the slot's transfer stands in this trial: its first reader is still one, comes before position q, and was
 * either put down in this trial or lies before all that is put down anew. */
static inline bool is_there(const place_whole *w, const place_whole_slot *s, int32_t to, int32_t q)
{
    return s->by != MOIRAI_NONE && w->device[s->by] == to && w->position[s->by] < q &&
           (s->trial == w->trial || w->position[s->by] < w->from_mark * PLACE_WHOLE_STRIDE);
}

static int64_t put_down(place_whole *w, int32_t q)
{
    int32_t op = w->order[q], d = w->device[op];
    int64_t start = 0;
    for (int32_t j = w->in_off[op]; j < w->in_off[op + 1]; j++) {
        int32_t producer = w->in_producer[j], from = w->device[producer];
        int64_t here;
        if (from == d) {
            here = w->finish_ns[producer];
        } else {
            int32_t slot = w->per_edge ? w->in_slot[j] : w->in_slot[j] + d;
            here = !w->per_edge && is_there(w, &w->slot[slot], d, q) ? w->slot[slot].arrival_ns
                                                                     : send(w, op, j, slot, from, d);
        }
        start = UTIL_MAX(start, here);
    }
    int64_t ns = moirai_op_ns(w->p, op, d);
    if (ns > 0) {
        start = UTIL_MAX(start, w->line_ns[d]);
        w->line_ns[d] = start + ns;
    }
    return start + ns;
}

/* ---- lateness ---- */

static inline void lower(int64_t *value, int64_t to)
{
    *value = UTIL_MIN(*value, to);
}

static void back_over_transfer(place_whole *w, int32_t slot, int32_t j, int32_t from, int32_t to)
{
    int64_t ns = w->p->class_transfer_ns[w->in_class[j] + from * w->K + to], late = w->slot_need_ns[slot];
    int32_t a, b;
    if (ns > 0 && lines_of(w, from, to, &a, &b)) {
        late = UTIL_MIN(late, UTIL_MIN(w->line_ns[a], w->line_ns[b]));
        w->line_ns[a] = w->line_ns[b] = late - ns;
    }
    lower(&w->need_ns[w->in_producer[j]], late - ns);
}

/* Operator by operator from the end; its transfers were sent before it, so they come after it here. */
static void back_over_op(place_whole *w, int32_t op)
{
    int32_t d = w->device[op];
    int64_t ns = moirai_op_ns(w->p, op, d), late = UTIL_MIN(w->makespan_ns, w->need_ns[op]);
    if (ns > 0) {
        late = UTIL_MIN(late, w->line_ns[d]);
        w->line_ns[d] = late - ns;
    }
    w->late_finish_ns[op] = late;
    w->late_start_ns[op] = late -= ns;
    for (int32_t j = w->in_off[op]; j < w->in_off[op + 1]; j++) {
        int32_t producer = w->in_producer[j];
        if (w->device[producer] == d)
            lower(&w->need_ns[producer], late);
        else
            lower(&w->slot_need_ns[w->per_edge ? w->in_slot[j] : w->in_slot[j] + d], late);
    }
    for (int32_t j = w->in_off[op + 1] - 1; j >= w->in_off[op]; j--) {
        int32_t from = w->device[w->in_producer[j]], slot = w->per_edge ? w->in_slot[j] : w->in_slot[j] + d;
        if (from != d && w->slot[slot].by == op)
            back_over_transfer(w, slot, j, from, d);
    }
}

static void find_lateness(place_whole *w)
{
    const moirai_problem *p = w->p;
    int32_t slots = w->per_edge ? p->n_edges : p->n_tensors * w->K;
    for (int32_t i = 0; i < w->n; i++)
        w->need_ns[i] = FAR;
    for (int32_t s = 0; s < slots; s++)
        w->slot_need_ns[s] = FAR;
    for (int32_t r = 0; r < w->n_lines; r++)
        w->line_ns[r] = w->makespan_ns;
    size_t row = sizeof *w->late_mark_ns * (size_t)w->n_lines;
    memcpy(w->late_mark_ns + (size_t)(w->n_marks - 1) * (size_t)w->n_lines, w->line_ns, row);
    for (int32_t q = w->n - 1; q >= 0; q--) {
        back_over_op(w, w->order[q]);
        if (q % PLACE_WHOLE_STRIDE == 0)
            memcpy(w->late_mark_ns + (size_t)(q / PLACE_WHOLE_STRIDE) * (size_t)w->n_lines, w->line_ns, row);
    }
    w->stale = 0;
    w->late_makespan_ns = w->makespan_ns;
}

/* ---- trials ---- */

/* Readers of what the moved operators read and write: their transfers may be others now. */
static void note_moved(place_whole *w)
{
    const moirai_problem *p = w->p;
    for (int32_t x = 0; x < w->n_moved; x++) {
        int32_t i = w->moved_op[x];
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
            note_readers(w, p->op_in[j]);
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            note_readers(w, p->op_out[o]);
    }
}

/* By how much what operator `op` has written comes later to readers behind position q than they may have it. */
static int64_t delay_of_outputs(const place_whole *w, int32_t op, int32_t q)
{
    const moirai_problem *p = w->p;
    int32_t d = w->device[op];
    int64_t worst = -FAR;
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++) {
        int32_t t = p->op_out[o];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t r = p->edge_reader[e], to = w->device[r];
            if (w->position[r] < q)
                continue;
            int64_t here = w->finish_ns[op] + moirai_transfer_ns(p, t, d, to);
            if (to != d && !w->per_edge && is_there(w, &w->slot[t * w->K + to], to, q))
                here = w->slot[t * w->K + to].arrival_ns;
            worst = UTIL_MAX(worst, here - w->late_start_ns[r]);
        }
    }
    return worst;
}

/* What the trial adds to the makespan, seen at mark m behind its last change. */
static int64_t delay_at(const place_whole *w, int32_t m)
{
    const int64_t *late = w->late_mark_ns + (size_t)m * (size_t)w->n_lines;
    int64_t worst = -FAR;
    for (int32_t r = 0; r < w->n_lines; r++)
        worst = UTIL_MAX(worst, w->line_ns[r] - late[r]);
    for (int32_t q = w->from_mark * PLACE_WHOLE_STRIDE; q < w->done; q++)
        worst = UTIL_MAX(worst, delay_of_outputs(w, w->order[q], w->done));
    return worst;
}

static bool converged(const place_whole *w, int32_t m)
{
    return w->done > w->seen_until &&
           !memcmp(w->line_ns, w->mark_ns + (size_t)m * (size_t)w->n_lines, sizeof *w->line_ns * (size_t)w->n_lines);
}

/* From one mark to the next; false: above the limit. */
static bool run_part(place_whole *w, int32_t m, int64_t limit_ns, int64_t late_by)
{
    int32_t end = UTIL_MIN((m + 1) * PLACE_WHOLE_STRIDE, w->n);
    int64_t latest = 0;
    for (int32_t q = m * PLACE_WHOLE_STRIDE; q < end; q++) {
        int32_t op = w->order[q];
        int64_t before = w->finish_ns[op], now = put_down(w, q);
        w->finish_log[q] = before;
        w->finish_ns[op] = now;
        w->done = q + 1;
        if (now + w->least_tail_ns[(int64_t)op * w->K + w->device[op]] > limit_ns ||
            (q > w->last && now > w->late_finish_ns[op] + late_by))
            return false;
        if (now != before)
            for (int32_t o = w->p->op_out_off[op]; o < w->p->op_out_off[op + 1]; o++)
                note_readers(w, w->p->op_out[o]);
        latest = UTIL_MAX(latest, now);
    }
    w->trial_part_ns[m] = latest;
    return true;
}

static int64_t latest_part(const place_whole *w)
{
    int64_t latest = 0;
    for (int32_t m = 0; m < w->n_marks - 1; m++)
        latest = UTIL_MAX(latest, m >= w->from_mark && m < w->to_mark ? w->trial_part_ns[m] : w->part_ns[m]);
    return latest;
}

int64_t place_whole_try(place_whole *w, int64_t limit_ns)
{
    if (w->first > w->last)
        return w->trial_makespan_ns = w->makespan_ns;
    int32_t n_parts = w->n_marks - 1, m = w->first / PLACE_WHOLE_STRIDE;
    size_t lines = (size_t)w->n_lines, row = sizeof *w->line_ns * lines;
    int64_t late_by = limit_ns - w->late_makespan_ns;
    w->from_mark = m;
    w->done = m * PLACE_WHOLE_STRIDE;
    note_moved(w);
    memcpy(w->line_ns, w->mark_ns + (size_t)m * lines, row);
    for (; m < n_parts; m++) {
        memcpy(w->trial_mark_ns + (size_t)m * lines, w->line_ns, row);
        if (w->done > w->last && m > w->from_mark) {
            bool just = w->done - PLACE_WHOLE_STRIDE <= w->last;
            if (just && delay_at(w, m) > late_by)
                return INT64_MAX;
            if (converged(w, m))
                break;
        }
        w->to_mark = m + 1;
        if (!run_part(w, m, limit_ns, late_by))
            return INT64_MAX;
    }
    w->to_mark = m;
    if (m == n_parts)
        memcpy(w->trial_mark_ns + (size_t)m * lines, w->line_ns, row);
    w->trial_makespan_ns = latest_part(w);
    return w->trial_makespan_ns <= limit_ns ? w->trial_makespan_ns : INT64_MAX;
}

void place_whole_accept(place_whole *w)
{
    if (w->first > w->last)
        return;
    size_t lines = (size_t)w->n_lines, first = (size_t)w->from_mark, parts = (size_t)(w->to_mark - w->from_mark);
    memcpy(w->mark_ns + first * lines, w->trial_mark_ns + first * lines, sizeof *w->mark_ns * lines * (parts + 1));
    memcpy(w->part_ns + first, w->trial_part_ns + first, sizeof *w->part_ns * parts);
    w->makespan_ns = w->trial_makespan_ns;
    if (++w->stale >= STALE)
        find_lateness(w);
}

void place_whole_reject(place_whole *w)
{
    for (int32_t q = w->from_mark * PLACE_WHOLE_STRIDE; q < w->done; q++)
        w->finish_ns[w->order[q]] = w->finish_log[q];
    for (int64_t x = w->n_slot_log - 1; x >= 0; x--)
        w->slot[w->slot_log[x].slot] = w->slot_log[x].old;
    if (w->cut_last >= w->cut_first)
        place_whole_set_order(w, w->cut_first, w->cut_last - w->cut_first + 1, w->cut_order);
    for (int32_t x = w->n_moved - 1; x >= 0; x--) {
        int32_t i = w->moved_op[x];
        w->bytes[w->device[i]] -= w->p->op_memory_bytes[i];
        w->bytes[w->moved_from[x]] += w->p->op_memory_bytes[i];
        w->device[i] = w->moved_from[x];
    }
}

int64_t place_whole_set(place_whole *w, const int32_t *device, const int32_t *order)
{
    const moirai_problem *p = w->p;
    size_t n = (size_t)w->n, lines = (size_t)w->n_lines,
           slots = (size_t)(w->per_edge ? p->n_edges : p->n_tensors * w->K);
    memcpy(w->device, device, sizeof *device * n);
    place_whole_set_order(w, 0, w->n, order);
    memset(w->bytes, 0, sizeof *w->bytes * (size_t)w->K);
    for (int32_t i = 0; i < w->n; i++)
        w->bytes[device[i]] += p->op_memory_bytes[i];
    for (size_t s = 0; s < slots; s++)
        w->slot[s].by = MOIRAI_NONE;
    memset(w->line_ns, 0, sizeof *w->line_ns * lines);
    memset(w->part_ns, 0, sizeof *w->part_ns * (size_t)w->n_marks);
    place_whole_begin(w);
    w->makespan_ns = 0;
    for (int32_t q = 0; q < w->n; q++) {
        int32_t m = q / PLACE_WHOLE_STRIDE;
        if (q % PLACE_WHOLE_STRIDE == 0)
            memcpy(w->mark_ns + (size_t)m * lines, w->line_ns, sizeof *w->line_ns * lines);
        int64_t finish = put_down(w, q);
        w->finish_ns[order[q]] = finish;
        w->part_ns[m] = UTIL_MAX(w->part_ns[m], finish);
        w->makespan_ns = UTIL_MAX(w->makespan_ns, finish);
    }
    memcpy(w->mark_ns + (size_t)(w->n_marks - 1) * lines, w->line_ns, sizeof *w->line_ns * lines);
    find_lateness(w);
    return w->makespan_ns;
}

int64_t place_whole_tasks(const place_whole *w, moirai_task *task)
{
    int64_t n = 0;
    for (int32_t q = 0; q < w->n; q++) {
        int32_t op = w->order[q], d = w->device[op];
        for (int32_t j = w->in_off[op]; j < w->in_off[op + 1]; j++) {
            int32_t slot = w->per_edge ? w->in_slot[j] : w->in_slot[j] + d;
            if (w->device[w->in_producer[j]] != d && w->slot[slot].by == op)
                task[n++] = w->n + (moirai_task)slot;
        }
        task[n++] = op;
    }
    return n;
}
