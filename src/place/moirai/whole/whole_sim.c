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
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_sim.h"

#include <string.h>

#define FAR (INT64_MAX / 4)

/* ---- putting down ---- */

/* The lines that a transfer holds; with congestion `none` there are none. */
static inline bool lines_of(const place_whole *w, int32_t from, int32_t to, int32_t *a, int32_t *b)
{
    moirai_congestion congestion = w->p->congestion;
    if (congestion == MOIRAI_CONGESTION_PORT) {
        *a = w->K + from;
        *b = 2 * w->K + to;
    } else if (congestion == MOIRAI_CONGESTION_CHANNEL) {
        *a = *b = w->K + from * w->K + to;
    } else { /* the devices themselves */
        *a = from;
        *b = to;
    }
    return congestion != MOIRAI_CONGESTION_NONE;
}

/* The latest position among the readers of a tensor that were behind position q. */
static void note_readers(place_whole *w, int32_t tensor)
{
    const moirai_problem *p = w->p;
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++)
        w->trial.seen_until = UTIL_MAX(w->trial.seen_until, w->position[p->edge_reader[e]]);
}

static int64_t send(place_whole *w, int32_t op, int32_t j, int32_t slot, int32_t from, int32_t to)
{
    place_whole_slot *s = &w->slot[slot];
    int64_t ns = w->p->class_transfer_ns[w->in.class_[j] + from * w->K + to], start = w->finish_ns[w->in.producer[j]];
    int32_t a, b;
    if (ns > 0 && lines_of(w, from, to, &a, &b)) {
        start = UTIL_MAX(start, UTIL_MAX(w->trial.line_ns[a], w->trial.line_ns[b]));
        w->trial.line_ns[a] = w->trial.line_ns[b] = start + ns;
    }
    w->trial.slot_log[w->trial.n_slot_log++] = (place_whole_slot_log){slot, *s};
    if (!w->in.per_edge && (s->by == MOIRAI_NONE || s->arrival_ns != start + ns))
        note_readers(w, w->p->op_in[j]);
    *s = (place_whole_slot){start + ns, op, w->trial.number};
    return start + ns;
}

/* Whether the slot's transfer stands in this trial: its first reader is still one, comes before position q, and was
 * either put down in this trial or lies before all that is put down anew. */
static inline bool is_there(const place_whole *w, const place_whole_slot *s, int32_t to, int32_t q)
{
    return s->by != MOIRAI_NONE && w->device[s->by] == to && w->position[s->by] < q &&
           (s->trial == w->trial.number || w->position[s->by] < w->trial.from_mark * PLACE_WHOLE_STRIDE);
}

static int64_t put_down(place_whole *w, int32_t q)
{
    int32_t op = w->order[q], d = w->device[op];
    int64_t start = 0;
    for (int32_t j = w->in.off[op]; j < w->in.off[op + 1]; j++) {
        int32_t producer = w->in.producer[j], from = w->device[producer];
        int64_t here;
        if (from == d) {
            here = w->finish_ns[producer];
        } else {
            int32_t slot = w->in.per_edge ? w->in.slot[j] : w->in.slot[j] + d;
            here = !w->in.per_edge && is_there(w, &w->slot[slot], d, q) ? w->slot[slot].arrival_ns
                                                                        : send(w, op, j, slot, from, d);
        }
        start = UTIL_MAX(start, here);
    }
    int64_t ns = moirai_op_ns(w->p, op, d);
    if (ns > 0) {
        start = UTIL_MAX(start, w->trial.line_ns[d]);
        w->trial.line_ns[d] = start + ns;
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
    int64_t ns = w->p->class_transfer_ns[w->in.class_[j] + from * w->K + to], late = w->late.slot_need_ns[slot];
    int32_t a, b;
    if (ns > 0 && lines_of(w, from, to, &a, &b)) {
        late = UTIL_MIN(late, UTIL_MIN(w->trial.line_ns[a], w->trial.line_ns[b]));
        w->trial.line_ns[a] = w->trial.line_ns[b] = late - ns;
    }
    lower(&w->late.need_ns[w->in.producer[j]], late - ns);
}

/* Operator by operator from the end; its transfers were sent before it, so they come after it here. */
static void back_over_op(place_whole *w, int32_t op)
{
    int32_t d = w->device[op];
    int64_t ns = moirai_op_ns(w->p, op, d), late = UTIL_MIN(w->makespan_ns, w->late.need_ns[op]);
    if (ns > 0) {
        late = UTIL_MIN(late, w->trial.line_ns[d]);
        w->trial.line_ns[d] = late - ns;
    }
    w->late.finish_ns[op] = late;
    w->late.start_ns[op] = late -= ns;
    for (int32_t j = w->in.off[op]; j < w->in.off[op + 1]; j++) {
        int32_t producer = w->in.producer[j];
        if (w->device[producer] == d)
            lower(&w->late.need_ns[producer], late);
        else
            lower(&w->late.slot_need_ns[w->in.per_edge ? w->in.slot[j] : w->in.slot[j] + d], late);
    }
    for (int32_t j = w->in.off[op + 1] - 1; j >= w->in.off[op]; j--) {
        int32_t from = w->device[w->in.producer[j]], slot = w->in.per_edge ? w->in.slot[j] : w->in.slot[j] + d;
        if (from != d && w->slot[slot].by == op)
            back_over_transfer(w, slot, j, from, d);
    }
}

static void find_lateness(place_whole *w)
{
    const moirai_problem *p = w->p;
    int32_t slots = w->in.per_edge ? p->n_edges : p->n_tensors * w->K;
    for (int32_t i = 0; i < w->n; i++)
        w->late.need_ns[i] = FAR;
    for (int32_t s = 0; s < slots; s++)
        w->late.slot_need_ns[s] = FAR;
    for (int32_t r = 0; r < w->n_lines; r++)
        w->trial.line_ns[r] = w->makespan_ns;
    size_t row = sizeof *w->late.mark_ns * (size_t)w->n_lines;
    memcpy(w->late.mark_ns + (size_t)(w->n_marks - 1) * (size_t)w->n_lines, w->trial.line_ns, row);
    for (int32_t q = w->n - 1; q >= 0; q--) {
        back_over_op(w, w->order[q]);
        if (q % PLACE_WHOLE_STRIDE == 0)
            memcpy(w->late.mark_ns + (size_t)(q / PLACE_WHOLE_STRIDE) * (size_t)w->n_lines, w->trial.line_ns, row);
    }
    w->late.stale = 0;
    w->late.makespan_ns = w->makespan_ns;
}

/* ---- trials ---- */

/* Readers of what the moved operators read and write: their transfers may be others now. */
static void note_moved(place_whole *w)
{
    const moirai_problem *p = w->p;
    for (int32_t x = 0; x < w->trial.moved.n; x++) {
        int32_t i = w->trial.moved.op[x];
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
            if (to != d && !w->in.per_edge && is_there(w, &w->slot[t * w->K + to], to, q))
                here = w->slot[t * w->K + to].arrival_ns;
            worst = UTIL_MAX(worst, here - w->late.start_ns[r]);
        }
    }
    return worst;
}

/* What the trial adds to the makespan, seen at mark m behind its last change. */
static int64_t delay_at(const place_whole *w, int32_t m)
{
    const int64_t *late = w->late.mark_ns + (size_t)m * (size_t)w->n_lines;
    int64_t worst = -FAR;
    for (int32_t r = 0; r < w->n_lines; r++)
        worst = UTIL_MAX(worst, w->trial.line_ns[r] - late[r]);
    for (int32_t q = w->trial.from_mark * PLACE_WHOLE_STRIDE; q < w->trial.done; q++)
        worst = UTIL_MAX(worst, delay_of_outputs(w, w->order[q], w->trial.done));
    return worst;
}

static bool converged(const place_whole *w, int32_t m)
{
    return w->trial.done > w->trial.seen_until && !memcmp(w->trial.line_ns, w->mark_ns + (size_t)m * (size_t)w->n_lines,
                                                          sizeof *w->trial.line_ns * (size_t)w->n_lines);
}

/* From one mark to the next; false: above the limit. */
static bool run_part(place_whole *w, int32_t m, int64_t limit_ns, int64_t late_by)
{
    int32_t end = UTIL_MIN((m + 1) * PLACE_WHOLE_STRIDE, w->n);
    int64_t latest = 0;
    for (int32_t q = m * PLACE_WHOLE_STRIDE; q < end; q++) {
        int32_t op = w->order[q];
        int64_t before = w->finish_ns[op], now = put_down(w, q);
        w->trial.finish_log[q] = before;
        w->finish_ns[op] = now;
        w->trial.done = q + 1;
        if (now + w->in.least_tail_ns[(int64_t)op * w->K + w->device[op]] > limit_ns ||
            (q > w->trial.last && now > w->late.finish_ns[op] + late_by))
            return false;
        if (now != before)
            for (int32_t o = w->p->op_out_off[op]; o < w->p->op_out_off[op + 1]; o++)
                note_readers(w, w->p->op_out[o]);
        latest = UTIL_MAX(latest, now);
    }
    w->trial.part_ns[m] = latest;
    return true;
}

static int64_t latest_part(const place_whole *w)
{
    int64_t latest = 0;
    for (int32_t m = 0; m < w->n_marks - 1; m++)
        latest =
            UTIL_MAX(latest, m >= w->trial.from_mark && m < w->trial.to_mark ? w->trial.part_ns[m] : w->part_ns[m]);
    return latest;
}

int64_t place_whole_try(place_whole *w, int64_t limit_ns)
{
    if (w->trial.first > w->trial.last)
        return w->trial.makespan_ns = w->makespan_ns;
    int32_t n_parts = w->n_marks - 1, m = w->trial.first / PLACE_WHOLE_STRIDE;
    size_t lines = (size_t)w->n_lines, row = sizeof *w->trial.line_ns * lines;
    int64_t late_by = limit_ns - w->late.makespan_ns;
    w->trial.from_mark = m;
    w->trial.done = m * PLACE_WHOLE_STRIDE;
    note_moved(w);
    memcpy(w->trial.line_ns, w->mark_ns + (size_t)m * lines, row);
    for (; m < n_parts; m++) {
        memcpy(w->trial.mark_ns + (size_t)m * lines, w->trial.line_ns, row);
        if (w->trial.done > w->trial.last && m > w->trial.from_mark) {
            bool just = w->trial.done - PLACE_WHOLE_STRIDE <= w->trial.last;
            if (just && delay_at(w, m) > late_by)
                return INT64_MAX;
            if (converged(w, m))
                break;
        }
        w->trial.to_mark = m + 1;
        if (!run_part(w, m, limit_ns, late_by))
            return INT64_MAX;
    }
    w->trial.to_mark = m;
    if (m == n_parts)
        memcpy(w->trial.mark_ns + (size_t)m * lines, w->trial.line_ns, row);
    w->trial.makespan_ns = latest_part(w);
    return w->trial.makespan_ns <= limit_ns ? w->trial.makespan_ns : INT64_MAX;
}

void place_whole_accept(place_whole *w)
{
    if (w->trial.first > w->trial.last)
        return;
    size_t lines = (size_t)w->n_lines, first = (size_t)w->trial.from_mark,
           parts = (size_t)(w->trial.to_mark - w->trial.from_mark);
    memcpy(w->mark_ns + first * lines, w->trial.mark_ns + first * lines, sizeof *w->mark_ns * lines * (parts + 1));
    memcpy(w->part_ns + first, w->trial.part_ns + first, sizeof *w->part_ns * parts);
    w->makespan_ns = w->trial.makespan_ns;
    if (++w->late.stale >= WHOLE_SIM_STALE)
        find_lateness(w);
}

void place_whole_reject(place_whole *w)
{
    for (int32_t q = w->trial.from_mark * PLACE_WHOLE_STRIDE; q < w->trial.done; q++)
        w->finish_ns[w->order[q]] = w->trial.finish_log[q];
    for (int64_t x = w->trial.n_slot_log - 1; x >= 0; x--)
        w->slot[w->trial.slot_log[x].slot] = w->trial.slot_log[x].old;
    if (w->trial.cut.last >= w->trial.cut.first)
        place_whole_set_order(w, w->trial.cut.first, w->trial.cut.last - w->trial.cut.first + 1, w->trial.cut.order);
    for (int32_t x = w->trial.moved.n - 1; x >= 0; x--) {
        int32_t i = w->trial.moved.op[x];
        w->bytes[w->device[i]] -= w->p->op_memory_bytes[i];
        w->bytes[w->trial.moved.from[x]] += w->p->op_memory_bytes[i];
        w->device[i] = w->trial.moved.from[x];
    }
}

int64_t place_whole_set(place_whole *w, const int32_t *device, const int32_t *order)
{
    const moirai_problem *p = w->p;
    size_t n = (size_t)w->n, lines = (size_t)w->n_lines,
           slots = (size_t)(w->in.per_edge ? p->n_edges : p->n_tensors * w->K);
    memcpy(w->device, device, sizeof *device * n);
    place_whole_set_order(w, 0, w->n, order);
    memset(w->bytes, 0, sizeof *w->bytes * (size_t)w->K);
    for (int32_t i = 0; i < w->n; i++)
        w->bytes[device[i]] += p->op_memory_bytes[i];
    for (size_t s = 0; s < slots; s++)
        w->slot[s].by = MOIRAI_NONE;
    memset(w->trial.line_ns, 0, sizeof *w->trial.line_ns * lines);
    memset(w->part_ns, 0, sizeof *w->part_ns * (size_t)w->n_marks);
    place_whole_begin(w);
    w->makespan_ns = 0;
    for (int32_t q = 0; q < w->n; q++) {
        int32_t m = q / PLACE_WHOLE_STRIDE;
        if (q % PLACE_WHOLE_STRIDE == 0)
            memcpy(w->mark_ns + (size_t)m * lines, w->trial.line_ns, sizeof *w->trial.line_ns * lines);
        int64_t finish = put_down(w, q);
        w->finish_ns[order[q]] = finish;
        w->part_ns[m] = UTIL_MAX(w->part_ns[m], finish);
        w->makespan_ns = UTIL_MAX(w->makespan_ns, finish);
    }
    memcpy(w->mark_ns + (size_t)(w->n_marks - 1) * lines, w->trial.line_ns, sizeof *w->trial.line_ns * lines);
    find_lateness(w);
    return w->makespan_ns;
}

int64_t place_whole_tasks(const place_whole *w, moirai_task *task)
{
    int64_t n = 0;
    for (int32_t q = 0; q < w->n; q++) {
        int32_t op = w->order[q], d = w->device[op];
        for (int32_t j = w->in.off[op]; j < w->in.off[op + 1]; j++) {
            int32_t slot = w->in.per_edge ? w->in.slot[j] : w->in.slot[j] + d;
            if (w->device[w->in.producer[j]] != d && w->slot[slot].by == op)
                task[n++] = w->n + (moirai_task)slot;
        }
        task[n++] = op;
    }
    return n;
}
