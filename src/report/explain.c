/* One operator elsewhere: what each device would make of it, all else in the plan's order.
 *
 * The operator, with its group, moves to another device; everything keeps its place in the plan's order of tasks, and
 * the simulator replays it: transfers that are no longer needed fall away, new ones go just before their reader. That
 * is what the move alone costs; a search that moves others along may do better. O(K (V+E)). */
#include "problem/device_set.h"
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/plan_order.h"
#include "util/text.h"
#include "util/util.h"

/* Moving what `op` reads to device d and what it writes to its readers, were it alone on d. */
static int64_t moving_ns(const moirai_analysis *a, int32_t op, int32_t d)
{
    const moirai_problem *p = a->problem;
    int64_t sum = 0;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
        sum += moirai_transfer_ns(p, p->op_in[j], a->plan->op_device[p->tensor_producer[p->op_in[j]]], d);
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        int32_t t = p->op_out[j];
        device_set there = {{0}};
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t to = a->plan->op_device[p->edge_reader[e]];
            if (p->flow == MOIRAI_FLOW_TENSOR && device_set_has(&there, to))
                continue;
            device_set_add(&there, to);
            sum += moirai_transfer_ns(p, t, d, to);
        }
    }
    return sum;
}

/* The operator and its group to device d, the others as in the plan. */
static void move(int32_t *device, const moirai_analysis *a, int32_t op, int32_t d)
{
    int32_t group = a->problem->op_group[op];
    memcpy(device, a->plan->op_device, (size_t)a->n_ops * sizeof *device);
    device[op] = d;
    for (int32_t i = 0; group != MOIRAI_NONE && i < a->n_ops; i++)
        if (a->problem->op_group[i] == group)
            device[i] = d;
}

int moirai_explain_op(moirai_elsewhere *out, const moirai_analysis *a, int32_t op)
{
    const moirai_problem *p = a->problem;
    moirai_task *order = NULL;
    moirai_sim *sim = NULL;
    int64_t n = 0;
    int32_t *device = util_alloc((size_t)a->n_ops, sizeof *device);
    int rc = device ? schedule_plan_order(&order, &n, p, a->plan) : MOIRAI_EFAIL;
    rc = rc ? rc : moirai_sim_new(&sim, p);
    for (int32_t d = 0; !rc && d < p->n_devices; d++) {
        out[d] = (moirai_elsewhere){moirai_op_ns(p, op, d), MOIRAI_UNKNOWN, 0, 0};
        if (!moirai_op_may(p, op, d))
            continue;
        out[d].moving_ns = moving_ns(a, op, d);
        if (d == a->plan->op_device[op]) {
            out[d].makespan_ns = a->plan->makespan_ns;
            continue;
        }
        move(device, a, op, d);
        out[d].makespan_ns = moirai_sim_replay(sim, device, order, n);
        out[d].excess_bytes = out[d].makespan_ns < 0 ? 0 : moirai_sim_memory_excess(sim, NULL);
    }
    moirai_sim_free(sim);
    free(order);
    free(device);
    return rc;
}

/* ---- in words ---- */

typedef struct words {
    char *text;
    size_t size, used;
} words;

static void add(words *w, const char *format, ...) MOIRAI_PRINTF(2, 3);
static void add(words *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    w->used = n < 0 ? w->used : UTIL_MIN(w->used + (size_t)n, w->size - 1);
}

static void say_start(words *w, const moirai_analysis *a, int32_t op)
{
    const moirai_delay *d = &a->delay[op];
    const moirai_problem *p = a->problem;
    add(w, "it runs on %.60s from %s to %s", p->device_name[a->plan->op_device[op]],
        util_human_ns(a->plan->op_start_ns[op]).s, util_human_ns(a->plan->op_finish_ns[op]).s);
    if (d->cause == MOIRAI_NONE)
        add(w, "; it reads nothing that another operator makes");
    else if (report_is_transfer(a, d->cause))
        add(w, "; its last input, '%.80s', comes from %.60s at %s", moirai_task_name(a, d->cause),
            p->device_name[report_transfer(a, d->cause)->from], util_human_ns(d->ready_ns).s);
    else
        add(w, "; its last input is ready at %s, when '%.80s' finishes on the same device",
            util_human_ns(d->ready_ns).s, moirai_task_name(a, d->cause));
    if (d->busy_ns > 0)
        add(w, "; then it waits %s for the device, which runs others (the last is '%.80s')",
            util_human_ns(d->busy_ns).s, d->behind == MOIRAI_NONE ? "" : moirai_task_name(a, d->behind));
    if (d->held_ns > 0)
        add(w, "; the plan holds it back by %s", util_human_ns(d->held_ns).s);
    add(w, a->on_path[op] ? "; it is on the critical path. " : ". ");
}

/* Of a piece: of what, where the others are, and what they would take together on this device. */
static void say_pieces(words *w, const moirai_analysis *a, int32_t op)
{
    const moirai_problem *p = a->problem;
    report_piece mine, other;
    int32_t here = a->plan->op_device[op];
    int64_t together_ns = 0;
    if (!report_piece_of(&mine, p, op))
        return;
    add(w, "It is piece %d of %d of '%.*s', %lld of %lld %s", mine.number, mine.n, (int)UTIL_MIN(mine.base_length, 80),
        mine.base, (long long)mine.size, (long long)mine.units, mine.unit);
    for (int32_t i = 0; i < a->n_ops; i++) {
        if (!report_piece_of(&other, p, i) || !report_same_operator(&mine, &other))
            continue;
        if (i != op)
            add(w, "; piece %d runs on %.60s", other.number, p->device_name[a->plan->op_device[i]]);
        together_ns = together_ns < 0 || moirai_op_ns(p, i, here) < 0 ? -1 : together_ns + moirai_op_ns(p, i, here);
    }
    if (together_ns >= 0)
        add(w, "; all of them here would take %s", util_human_ns(together_ns).s);
    add(w, ". ");
}

static void say_reason(words *w, const moirai_analysis *a, int32_t op, const moirai_elsewhere *where)
{
    const moirai_problem *p = a->problem;
    int32_t here = a->plan->op_device[op], fastest = here, best = MOIRAI_NONE;
    for (int32_t d = 0; d < p->n_devices; d++) {
        if (where[d].makespan_ns < 0)
            continue;
        if (where[d].time_ns < where[fastest].time_ns)
            fastest = d;
        if (d != here && !where[d].excess_bytes &&
            (best == MOIRAI_NONE || where[d].makespan_ns < where[best].makespan_ns))
            best = d;
    }
    if (best == MOIRAI_NONE) {
        add(w, "No other device can take it.");
        return;
    }
    if (fastest == here)
        add(w, "No device runs it faster. ");
    else
        add(w, "%.60s runs it in %s instead of %s, but moving tensors takes %s there and %s here. ",
            p->device_name[fastest], util_human_ns(where[fastest].time_ns).s, util_human_ns(where[here].time_ns).s,
            util_human_ns(where[fastest].moving_ns).s, util_human_ns(where[here].moving_ns).s);
    int64_t cost = where[best].makespan_ns - a->plan->makespan_ns;
    if (cost > 0)
        add(w, "Moved alone, it would cost at least %s (on %.60s).", util_human_ns(cost).s, p->device_name[best]);
    else if (cost == 0)
        add(w, "On %.60s the plan would take as long.", p->device_name[best]);
    else
        add(w, "On %.60s the plan would take %s less.", p->device_name[best], util_human_ns(-cost).s);
}

void moirai_explain_op_text(char *text, size_t size, const moirai_analysis *a, int32_t op,
                            const moirai_elsewhere *where)
{
    words w = {text, size, 0};
    if (!size)
        return;
    *text = '\0';
    add(&w, "'%.80s' (%.60s): ", a->problem->op_name[op], a->problem->op_type[op]);
    say_start(&w, a, op);
    say_pieces(&w, a, op);
    say_reason(&w, a, op, where);
}
