/* Is this a plan of that problem? Written from model.md alone: it uses nothing of the simulator, not even the table of
 * transfer times where the problem gives bytes and bandwidths, so that an error there cannot hide here.
 *
 * Three stages, as later ones make no sense when earlier ones fail: every operator on a device, for its time (4b, 4c,
 * groups); every needed transfer once, for its time, in order (4a, 4f); then resources (4e, 4g), memory (4d) and the
 * plan's own sums. O(V + E) but for tensors sent to many readers, by radix sorts: a search that has until a moment has
 * to check its plan before. Of a million operators what is anywhere costs a miss of the cache each time: so what is asked of an
 * operator lies side by side, and each tensor is looked at once. */
#include "schedule/plan_check.h"
#include "util/sort.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void schedule_check_bad(schedule_check *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (c->n_bad++ == 0)
        memcpy(c->first, line, sizeof line);
    if (c->report)
        c->report(c->data, line);
}

/* ---- operators ---- */

/* With 64 devices each time is on a page of its own. */
static void fetch_time(const schedule_check *c, int32_t i)
{
    int32_t d = i < c->p->n_ops ? c->plan->op_device[i] : MOIRAI_NONE;
    if (d >= 0 && d < c->p->n_devices)
        __builtin_prefetch(&c->p->op_time_ns[(int64_t)i * c->p->n_devices + d]);
}

static void check_op(schedule_check *c, int32_t i)
{
    const moirai_problem *p = c->p;
    const moirai_plan *plan = c->plan;
    int32_t d = plan->op_device[i];
    if (d < 0 || d >= p->n_devices) {
        schedule_check_bad(c, "op %s: not placed", p->op_name[i]);
        return;
    }
    int64_t want = p->op_time_ns[(int64_t)i * p->n_devices + d], start = plan->op_start_ns[i], takes;
    if (want < 0)
        schedule_check_bad(c, "op %s: cannot run on %s", p->op_name[i], p->device_name[d]);
    else if (__builtin_sub_overflow(plan->op_finish_ns[i], start, &takes) || takes != want)
        schedule_check_bad(c, "op %s: runs from %" PRId64 " to %" PRId64 " ns, the problem says for %" PRId64,
                           p->op_name[i], start, plan->op_finish_ns[i], want);
    if (start < 0)
        schedule_check_bad(c, "op %s: starts before 0", p->op_name[i]);
    c->spans[i] = (schedule_span){start, plan->op_finish_ns[i], i, d};
    c->end_ns = UTIL_MAX(c->end_ns, plan->op_finish_ns[i]);
    int32_t g = p->op_group[i];
    if (g == MOIRAI_NONE)
        return;
    if (c->group_op[g] == MOIRAI_NONE)
        c->group_op[g] = i;
    else if (plan->op_device[c->group_op[g]] != d)
        schedule_check_bad(c, "group %s: %s and %s are on two devices", p->group_name[g], p->op_name[c->group_op[g]],
                           p->op_name[i]);
}

/* ---- resources ---- */

/* Devices; or, of transfers, one end's port or the channel. */
typedef enum resource { DEVICE, SEND, RECEIVE, CHANNEL } resource;

/* Task j: an operator, or behind these a transfer, which may hold two devices and then is there twice. */
static schedule_span span_of(const schedule_check *c, resource r, int32_t j)
{
    int32_t n_ops = c->p->n_ops, t = j - n_ops;
    if (t < 0)
        return c->spans[j];
    const moirai_transfer *x = &c->plan->transfer[r == DEVICE ? t / 2 : t];
    int32_t where = r == SEND      ? x->from
                    : r == RECEIVE ? x->to
                    : r == CHANNEL ? x->from * c->p->n_devices + x->to
                    : t % 2        ? x->to
                                   : x->from;
    return (schedule_span){x->start_ns, x->finish_ns, x->tensor, where};
}

static void tell_overlap(schedule_check *c, resource r, int32_t i, int32_t j)
{
    static const char *const word[] = {"device", "send port of", "receive port of", "channel"};
    const moirai_problem *p = c->p;
    schedule_span a = span_of(c, r, i), b = span_of(c, r, j);
    bool pair = r == CHANNEL, sent[] = {i >= p->n_ops, j >= p->n_ops};
    const char *which = sent[0] && sent[1] ? "transfers of " : sent[0] ? "transfer of " : "";
    schedule_check_bad(c, "%s %s%s%s: %s%s and %s%s overlap", word[r],
                       p->device_name[pair ? a.where / p->n_devices : a.where], pair ? " to " : "",
                       pair ? p->device_name[a.where % p->n_devices] : "", which,
                       sent[0] ? p->tensor_name[a.what] : p->op_name[a.what], sent[1] && !sent[0] ? "transfer of " : "",
                       sent[1] ? p->tensor_name[b.what] : p->op_name[b.what]);
}

/* In order of starts each has to begin after the one before it on its resource: if any two overlap, so do two
 * neighbours. Of the tasks begin .. end - 1, empty ones aside; no start is negative. */
static void check_overlaps(schedule_check *c, resource r, int32_t begin, int32_t end)
{
    int32_t *before = c->before, n = 0;
    for (int32_t k = 0; k < c->p->n_devices * c->p->n_devices; k++)
        before[k] = MOIRAI_NONE;
    for (int32_t j = begin; j < end; j++) {
        schedule_span x = span_of(c, r, j);
        if (x.finish_ns > x.start_ns) {
            c->key[n] = (uint64_t)x.start_ns;
            c->item[n++] = j;
        }
    }
    util_sort(c->key, c->item, c->key_spare, c->item_spare, n);
    for (int32_t j = 0; j < n; j++) {
        int32_t soon = c->item[UTIL_MIN(j + SCHEDULE_AHEAD, n - 1)];
        __builtin_prefetch(soon < c->p->n_ops ? &c->spans[soon] : NULL);
        schedule_span x = span_of(c, r, c->item[j]);
        int32_t last = before[x.where];
        if (last != MOIRAI_NONE && x.start_ns < span_of(c, r, last).finish_ns)
            tell_overlap(c, r, last, c->item[j]);
        before[x.where] = c->item[j];
    }
}

/* ---- sums ---- */

static void check_sums(schedule_check *c)
{
    const moirai_plan *plan = c->plan;
    int64_t makespan = c->end_ns, busy[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < plan->n_ops; i++)
        busy[plan->op_device[i]] += plan->op_finish_ns[i] - plan->op_start_ns[i];
    if (plan->makespan_ns != makespan)
        schedule_check_bad(c, "plan says makespan %" PRId64 " ns, its ops say %" PRId64, plan->makespan_ns, makespan);
    if (plan->lower_bound_ns != MOIRAI_UNKNOWN && plan->lower_bound_ns > makespan)
        schedule_check_bad(c, "plan claims the lower bound %" PRId64 " ns above its makespan %" PRId64,
                           plan->lower_bound_ns, makespan);
    for (int32_t d = 0; d < plan->n_devices; d++)
        if (plan->device_busy_ns[d] != MOIRAI_UNKNOWN && plan->device_busy_ns[d] != busy[d])
            schedule_check_bad(c, "device %s: plan says busy for %" PRId64 " ns, its ops say %" PRId64,
                               c->p->device_name[d], plan->device_busy_ns[d], busy[d]);
}

static void run_checks(schedule_check *c)
{
    const moirai_problem *p = c->p;
    for (int32_t g = 0; g < p->n_groups; g++)
        c->group_op[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        fetch_time(c, i + SCHEDULE_AHEAD);
        check_op(c, i);
    }
    if (c->n_bad > 0)
        return;
    schedule_check_transfers(c);
    if (c->n_bad > 0)
        return;
    int32_t n_ops = p->n_ops, n = c->plan->n_transfers;
    check_overlaps(c, DEVICE, 0, p->congestion == MOIRAI_CONGESTION_DEVICE ? n_ops + 2 * n : n_ops);
    if (c->n_bad > 0) /* only now is it sure that the busy times add up below int64 */
        return;
    if (p->congestion == MOIRAI_CONGESTION_PORT) {
        check_overlaps(c, SEND, n_ops, n_ops + n);
        check_overlaps(c, RECEIVE, n_ops, n_ops + n);
    } else if (p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        check_overlaps(c, CHANNEL, n_ops, n_ops + n);
    }
    check_sums(c);
    schedule_check_memory(c);
}

static bool make_room(schedule_check *c)
{
    size_t n_ops = (size_t)c->p->n_ops, n_tensors = (size_t)c->p->n_tensors, n = (size_t)c->plan->n_transfers;
    size_t K = (size_t)c->p->n_devices, tasks = n_ops + 2 * n,
           lives = c->peaks ? n_tensors + n : 0; /* one at home and one for each transfer */
    size_t most = UTIL_MAX(tasks, 2 * lives), words = UTIL_MAX(most, n * sizeof *c->sent / sizeof *c->key);
    if (most > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "a plan of %zu operators and %zu transfers: too many to check", n_ops, n), 0;
    c->sent_off = util_alloc(n_tensors + 1, sizeof *c->sent_off);
    c->spans = util_alloc(n_ops, sizeof *c->spans);
    c->lives = util_alloc(lives, sizeof *c->lives);
    c->stretches = util_alloc(lives ? K * (size_t)schedule_check_stretches(c->p, lives) : 0, sizeof *c->stretches);
    c->group_op = util_alloc((size_t)c->p->n_groups, sizeof *c->group_op);
    c->before = util_alloc(K * K, sizeof *c->before);
    c->key = util_alloc(words, sizeof *c->key);
    c->key_spare = util_alloc(words, sizeof *c->key_spare);
    c->item = util_alloc(most, sizeof *c->item);
    c->item_spare = util_alloc(most, sizeof *c->item_spare);
    c->sent = (moirai_transfer *)c->key_spare;
    return c->sent_off && c->spans && c->lives && c->stretches && c->group_op && c->before && c->key && c->item &&
           c->key_spare && c->item_spare;
}

static void free_room(schedule_check *c)
{
    void *all[] = {c->sent_off, c->spans, c->lives, c->stretches, c->group_op,
                   c->before,   c->key,   c->item,  c->key_spare, c->item_spare};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Whether a rule or a number of the plan hangs on what is alive at once. */
static bool peaks_matter(const moirai_problem *p, const moirai_plan *plan)
{
    bool said = p->memory == MOIRAI_MEMORY_PEAK;
    for (int32_t d = 0; d < p->n_devices && !said; d++)
        said = plan->device_peak_bytes[d] != MOIRAI_UNKNOWN;
    return said;
}

int moirai_plan_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data)
{
    if (plan->n_ops != p->n_ops || plan->n_devices != p->n_devices)
        return moirai_error(MOIRAI_EFAIL, "a plan of %d ops on %d devices for a problem of %d on %d", plan->n_ops,
                            plan->n_devices, p->n_ops, p->n_devices);
    schedule_check c = {.p = p, .plan = plan, .report = report, .data = data, .peaks = peaks_matter(p, plan)};
    bool ready = make_room(&c);
    if (ready)
        run_checks(&c);
    free_room(&c);
    if (!ready)
        return MOIRAI_EFAIL;
    return c.n_bad == 0 ? 0 : moirai_error(MOIRAI_EFAIL, "%s", c.first);
}
