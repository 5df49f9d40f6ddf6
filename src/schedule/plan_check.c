/* Is this a plan of that problem? Written from model.md alone: it uses nothing of the simulator, not even the table of
 * transfer times where the problem gives bytes and bandwidths, so that an error there cannot hide here.
 *
 * Three stages, as later ones make no sense when earlier ones fail: every operator on a device, for its time (4b, 4c,
 * groups); every needed transfer once, for its time, in order (4a, 4f); then resources (4e, 4g), memory (4d) and the
 * plan's own sums. O(V + E) but for tensors sent to many readers, by radix sorts: a search that has until a moment has
 * to check its plan before. */
#include "schedule/plan_check.h"
#include "util/sort.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 16 /* transfers of one tensor that are sorted by insertion */

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
    int32_t g = p->op_group[i];
    if (g == MOIRAI_NONE)
        return;
    if (c->group_op[g] == MOIRAI_NONE)
        c->group_op[g] = i;
    else if (plan->op_device[c->group_op[g]] != d)
        schedule_check_bad(c, "group %s: %s and %s are on two devices", p->group_name[g], p->op_name[c->group_op[g]],
                           p->op_name[i]);
}

/* ---- transfers ---- */

/* The second half of a transfer's key: with flow tensor its destination, with flow edge its reader. */
static int32_t key_of(const schedule_check *c, int32_t j)
{
    const moirai_transfer *x = &c->plan->transfer[j];
    return c->p->flow == MOIRAI_FLOW_TENSOR ? x->to : x->reader;
}

static int by_key(const void *left, const void *right)
{
    const schedule_sent *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->transfer > b->transfer) - (a->transfer < b->transfer);
}

/* Those of one tensor by key. They come in order of index, and equal ones stay so. */
static void sort_by_key(schedule_sent *sent, int32_t n)
{
    if (n > FEW) {
        qsort(sent, (size_t)n, sizeof *sent, by_key);
        return;
    }
    for (int32_t s = 1; s < n; s++) {
        schedule_sent item = sent[s];
        int32_t at = s;
        for (; at > 0 && sent[at - 1].key > item.key; at--)
            sent[at] = sent[at - 1];
        sent[at] = item;
    }
}

/* Where a transfer before this one goes, which has its turn soon. */
static void fetch_place(const schedule_check *c, int32_t j)
{
    const moirai_transfer *x = c->plan->transfer;
    int32_t late = UTIL_MAX(j - 2 * SCHEDULE_AHEAD, 0), soon = UTIL_MAX(j - SCHEDULE_AHEAD, 0);
    __builtin_prefetch(&c->sorted_off[x[late].tensor + 1]);
    __builtin_prefetch(&c->sorted[UTIL_MAX(c->sorted_off[x[soon].tensor + 1] - 1, 0)]);
}

/* How many there are of each tensor, into sorted_off[tensor + 1]; false where one makes no sense. */
static bool count_transfers(schedule_check *c)
{
    const moirai_problem *p = c->p;
    bool edge = p->flow == MOIRAI_FLOW_EDGE;
    memset(c->sorted_off, 0, ((size_t)p->n_tensors + 1) * sizeof *c->sorted_off);
    for (int32_t j = 0; j < c->plan->n_transfers; j++) {
        const moirai_transfer *x = &c->plan->transfer[j];
        if (x->tensor < 0 || x->tensor >= p->n_tensors || x->from < 0 || x->from >= p->n_devices || x->to < 0 ||
            x->to >= p->n_devices || (edge && (x->reader < 0 || x->reader >= p->n_ops)))
            schedule_check_bad(c, "transfer %d: names no tensor, consumer or device of the problem", j);
        else
            c->sorted_off[x->tensor + 1]++;
    }
    return c->n_bad == 0;
}

/* Transfers by tensor, and those of one tensor by key. */
static void sort_transfers(schedule_check *c)
{
    int32_t n = c->plan->n_transfers, n_tensors = c->p->n_tensors, *off = c->sorted_off;
    for (int32_t t = 0; t < n_tensors; t++)
        off[t + 1] += off[t];
    for (int32_t j = n - 1; j >= 0; j--) { /* leaves every offset at the end of the tensor before */
        fetch_place(c, j);
        c->sorted[--off[c->plan->transfer[j].tensor + 1]] = (schedule_sent){key_of(c, j), j};
    }
    memmove(off, off + 1, (size_t)n_tensors * sizeof *off);
    off[n_tensors] = n;
    for (int32_t t = 0; t < n_tensors; t++)
        sort_by_key(c->sorted + off[t], off[t + 1] - off[t]);
}

int32_t schedule_check_find(const schedule_check *c, int32_t tensor, int32_t key)
{
    int32_t low = c->sorted_off[tensor], end = c->sorted_off[tensor + 1], high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (c->sorted[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && c->sorted[low].key == key ? c->sorted[low].transfer : MOIRAI_NONE;
}

/* latency + ceil(bytes * 10^9 / bytes per second), or what the file gives; -1: no channel, or beyond int64. */
static int64_t moving_ns(const moirai_problem *p, int32_t tensor, int32_t from, int32_t to)
{
    if (p->tensor_has_table[tensor])
        return moirai_transfer_ns(p, tensor, from, to);
    int64_t rate = p->bytes_per_second[from * p->n_devices + to];
    if (rate <= 0)
        return -1;
    __int128 ns = ((__int128)p->tensor_bytes[tensor] * 1000000000 + rate - 1) / rate;
    ns += p->latency_ns[from * p->n_devices + to];
    return ns > INT64_MAX ? -1 : (int64_t)ns;
}

/* By the operator's inputs or by the tensor's readers, whichever are fewer: a join of a million tensors is not gone through for each of them. */
static bool reads(const moirai_problem *p, int32_t op, int32_t tensor)
{
    int32_t in = p->op_in_off[op], in_end = p->op_in_off[op + 1];
    int32_t e = p->tensor_edge_off[tensor], e_end = p->tensor_edge_off[tensor + 1];
    if (in_end - in < e_end - e) {
        while (in < in_end && p->op_in[in] != tensor)
            in++;
        return in < in_end;
    }
    while (e < e_end && p->edge_reader[e] != op)
        e++;
    return e < e_end;
}

static bool is_needed(const schedule_check *c, const moirai_transfer *x, int32_t home)
{
    const moirai_problem *p = c->p;
    if (p->flow == MOIRAI_FLOW_EDGE)
        return reads(p, x->reader, x->tensor) && c->plan->op_device[x->reader] != home;
    for (int32_t e = p->tensor_edge_off[x->tensor]; e < p->tensor_edge_off[x->tensor + 1] && x->to != home; e++)
        if (c->plan->op_device[p->edge_reader[e]] == x->to)
            return true;
    return false;
}

static void check_transfer(schedule_check *c, int32_t j)
{
    const moirai_problem *p = c->p;
    const moirai_transfer *x = &c->plan->transfer[j];
    const char *name = p->tensor_name[x->tensor];
    int32_t producer = p->tensor_producer[x->tensor], home = c->plan->op_device[producer];
    if (!is_needed(c, x, home)) {
        schedule_check_bad(c, "transfer of %s to %s: not needed", name, p->device_name[x->to]);
        return;
    }
    int32_t to = p->flow == MOIRAI_FLOW_EDGE ? c->plan->op_device[x->reader] : x->to;
    if (x->from != home || x->to != to) {
        schedule_check_bad(c, "transfer of %s: goes %s to %s, not %s to %s", name, p->device_name[x->from],
                           p->device_name[x->to], p->device_name[home], p->device_name[to]);
        return;
    }
    int64_t want = moving_ns(p, x->tensor, home, to), takes;
    if (want < 0)
        schedule_check_bad(c, "transfer of %s: no channel %s to %s", name, p->device_name[home], p->device_name[to]);
    else if (__builtin_sub_overflow(x->finish_ns, x->start_ns, &takes) || takes != want)
        schedule_check_bad(
            c, "transfer of %s to %s: runs from %" PRId64 " to %" PRId64 " ns, the problem says for %" PRId64, name,
            p->device_name[to], x->start_ns, x->finish_ns, want);
    if (x->start_ns < c->plan->op_finish_ns[producer])
        schedule_check_bad(c, "transfer of %s to %s: starts before its tensor exists", name, p->device_name[to]);
}

/* Every reader of a tensor has it when it starts. */
static void check_readers(schedule_check *c, int32_t t)
{
    const moirai_problem *p = c->p;
    const moirai_plan *plan = c->plan;
    int32_t producer = p->tensor_producer[t], home = plan->op_device[producer];
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        schedule_check_fetch_reader(c, e, plan->op_start_ns);
        int32_t i = p->edge_reader[e], here = plan->op_device[i];
        if (here == home) {
            if (plan->op_finish_ns[producer] > plan->op_start_ns[i])
                schedule_check_bad(c, "op %s: starts before %s finishes", p->op_name[i], p->op_name[producer]);
            continue;
        }
        int32_t x = schedule_check_find(c, t, p->flow == MOIRAI_FLOW_TENSOR ? here : i);
        if (x == MOIRAI_NONE)
            schedule_check_bad(c, "transfer of %s to %s for %s: needed and missing", p->tensor_name[t],
                               p->device_name[here], p->op_name[i]);
        else if (plan->transfer[x].finish_ns > plan->op_start_ns[i])
            schedule_check_bad(c, "op %s: starts before its input %s arrives", p->op_name[i], p->tensor_name[t]);
    }
}

/* Whether the one before it is the same transfer. */
static bool is_second(const schedule_check *c, int32_t s)
{
    return s > 0 && c->sorted[s - 1].key == c->sorted[s].key &&
           c->plan->transfer[c->sorted[s - 1].transfer].tensor == c->plan->transfer[c->sorted[s].transfer].tensor;
}

static void check_transfers(schedule_check *c)
{
    int32_t n = c->plan->n_transfers;
    if (!count_transfers(c))
        return;
    sort_transfers(c);
    for (int32_t s = 1; s < n; s++)
        if (is_second(c, s)) {
            const moirai_transfer *x = &c->plan->transfer[c->sorted[s].transfer];
            schedule_check_bad(c, "transfer of %s to %s: listed twice", c->p->tensor_name[x->tensor],
                               c->p->device_name[c->plan->transfer[c->sorted[s - 1].transfer].to]);
        }
    for (int32_t t = 0, s = 0; t < c->p->n_tensors; t++) { /* tensor by tensor: most of what they ask for is at hand */
        check_readers(c, t);
        for (; s < c->sorted_off[t + 1]; s++) {
            schedule_check_fetch_transfer(c, s);
            if (!is_second(c, s))
                check_transfer(c, c->sorted[s].transfer);
        }
    }
}

/* ---- resources ---- */

static const char *name_of(const schedule_check *c, int32_t what)
{
    const moirai_problem *p = c->p;
    return what < p->n_ops ? p->op_name[what] : p->tensor_name[c->plan->transfer[what - p->n_ops].tensor];
}

static void tell_overlap(schedule_check *c, const schedule_span *a, const schedule_span *b, const char *resource)
{
    const moirai_problem *p = c->p;
    bool pair = !strcmp(resource, "channel"), sent[] = {a->what >= p->n_ops, b->what >= p->n_ops};
    const char *word = sent[0] && sent[1] ? "transfers of " : sent[0] ? "transfer of " : "";
    schedule_check_bad(c, "%s %s%s%s: %s%s and %s%s overlap", resource,
                       p->device_name[pair ? a->where / p->n_devices : a->where], pair ? " to " : "",
                       pair ? p->device_name[a->where % p->n_devices] : "", word, name_of(c, a->what),
                       sent[1] && !sent[0] ? "transfer of " : "", name_of(c, b->what));
}

/* In order of starts each has to begin after the one before it on its resource: if any two overlap, so do two
 * neighbours. Empty spans are not here, and no start is negative. */
static void check_overlaps(schedule_check *c, int32_t n, const char *resource)
{
    int32_t *before = c->before;
    for (int32_t r = 0; r < c->p->n_devices * c->p->n_devices; r++)
        before[r] = MOIRAI_NONE;
    for (int32_t j = 0; j < n; j++) {
        c->key[j] = (uint64_t)c->spans[j].start_ns;
        c->item[j] = j;
    }
    util_sort(c->key, c->item, c->key_spare, c->item_spare, n);
    for (int32_t j = 0; j < n; j++) {
        const schedule_span *b = &c->spans[c->item[j]];
        const schedule_span *a = before[b->where] == MOIRAI_NONE ? NULL : &c->spans[before[b->where]];
        if (a && b->start_ns < a->finish_ns)
            tell_overlap(c, a, b, resource);
        before[b->where] = c->item[j];
    }
}

static void check_devices(schedule_check *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->p->n_ops; i++)
        if (c->plan->op_finish_ns[i] > c->plan->op_start_ns[i])
            c->spans[n++] =
                (schedule_span){c->plan->op_start_ns[i], c->plan->op_finish_ns[i], i, c->plan->op_device[i]};
    for (int32_t j = 0; j < c->plan->n_transfers && c->p->congestion == MOIRAI_CONGESTION_DEVICE; j++) {
        const moirai_transfer *x = &c->plan->transfer[j];
        schedule_span span = {x->start_ns, x->finish_ns, c->p->n_ops + j, x->from};
        if (x->finish_ns == x->start_ns)
            continue;
        c->spans[n++] = span;
        span.where = x->to;
        c->spans[n++] = span;
    }
    check_overlaps(c, n, "device");
}

typedef enum side { SEND, RECEIVE, CHANNEL } side;

static void check_side(schedule_check *c, side s)
{
    static const char *const name[] = {"send port of", "receive port of", "channel"};
    int32_t n = 0;
    for (int32_t j = 0; j < c->plan->n_transfers; j++) {
        const moirai_transfer *x = &c->plan->transfer[j];
        int32_t where = s == SEND ? x->from : s == RECEIVE ? x->to : x->from * c->p->n_devices + x->to;
        if (x->finish_ns > x->start_ns)
            c->spans[n++] = (schedule_span){x->start_ns, x->finish_ns, c->p->n_ops + j, where};
    }
    check_overlaps(c, n, name[s]);
}

/* ---- sums ---- */

static int64_t check_sums(schedule_check *c)
{
    const moirai_plan *plan = c->plan;
    int64_t makespan = 0, busy[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < plan->n_ops; i++) {
        makespan = UTIL_MAX(makespan, plan->op_finish_ns[i]);
        busy[plan->op_device[i]] += plan->op_finish_ns[i] - plan->op_start_ns[i];
    }
    if (plan->makespan_ns != makespan)
        schedule_check_bad(c, "plan says makespan %" PRId64 " ns, its ops say %" PRId64, plan->makespan_ns, makespan);
    if (plan->lower_bound_ns != MOIRAI_UNKNOWN && plan->lower_bound_ns > makespan)
        schedule_check_bad(c, "plan claims the lower bound %" PRId64 " ns above its makespan %" PRId64,
                           plan->lower_bound_ns, makespan);
    for (int32_t d = 0; d < plan->n_devices; d++)
        if (plan->device_busy_ns[d] != MOIRAI_UNKNOWN && plan->device_busy_ns[d] != busy[d])
            schedule_check_bad(c, "device %s: plan says busy for %" PRId64 " ns, its ops say %" PRId64,
                               c->p->device_name[d], plan->device_busy_ns[d], busy[d]);
    return makespan;
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
    check_transfers(c);
    if (c->n_bad > 0)
        return;
    check_devices(c);
    if (c->n_bad > 0) /* only now is it sure that the busy times add up below int64 */
        return;
    if (p->congestion == MOIRAI_CONGESTION_PORT) {
        check_side(c, SEND);
        check_side(c, RECEIVE);
    } else if (p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        check_side(c, CHANNEL);
    }
    schedule_check_memory(c, check_sums(c));
}

static bool make_room(schedule_check *c)
{
    size_t n_ops = (size_t)c->p->n_ops, n_tensors = (size_t)c->p->n_tensors, n = (size_t)c->plan->n_transfers;
    size_t most = n_ops + 2 * (n_tensors + n); /* a life begins with an operator or a transfer, and ends */
    if (most > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "a plan of %zu operators and %zu transfers: too many to check", n_ops, n), 0;
    c->sorted = util_alloc(n, sizeof *c->sorted);
    c->sorted_off = util_alloc(n_tensors + 1, sizeof *c->sorted_off);
    c->spans = util_alloc(UTIL_MAX(n_ops + 2 * n, n_tensors + n), sizeof *c->spans);
    c->lives =
        (schedule_life *)c->spans; /* when overlaps have been checked; what is touched anew, the kernel has to clear */
    c->group_op = util_alloc((size_t)c->p->n_groups, sizeof *c->group_op);
    c->before = util_alloc((size_t)c->p->n_devices * (size_t)c->p->n_devices, sizeof *c->before);
    c->key = util_alloc(2 * most, sizeof *c->key);
    c->item = util_alloc(2 * most, sizeof *c->item);
    if (!c->sorted || !c->sorted_off || !c->spans || !c->group_op || !c->before || !c->key || !c->item)
        return false;
    c->key_spare = c->key + most;
    c->item_spare = c->item + most;
    return true;
}

int moirai_plan_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data)
{
    if (plan->n_ops != p->n_ops || plan->n_devices != p->n_devices)
        return moirai_error(MOIRAI_EFAIL, "a plan of %d ops on %d devices for a problem of %d on %d", plan->n_ops,
                            plan->n_devices, p->n_ops, p->n_devices);
    schedule_check c = {.p = p, .plan = plan, .report = report, .data = data};
    bool ready = make_room(&c);
    if (ready)
        run_checks(&c);
    free(c.sorted);
    free(c.sorted_off);
    free(c.spans);
    free(c.group_op);
    free(c.before);
    free(c.key);
    free(c.item);
    if (!ready)
        return MOIRAI_EFAIL;
    return c.n_bad == 0 ? 0 : moirai_error(MOIRAI_EFAIL, "%s", c.first);
}
