/* Memory of a plan, checked (4d): every device's resident bytes, the most alive at once, and what the plan says of
 * both. */
#include "problem/device_set.h"
#include "schedule/plan_check.h"
#include "util/sort.h"
#include "util/util.h"

#include <inttypes.h>

typedef __int128 wide; /* sums of sizes, which a file may make as large as it likes */

/* Life of a tensor on each device that has it: [first, last). */
typedef struct lifetimes {
    int64_t first[MOIRAI_MAX_DEVICES], last[MOIRAI_MAX_DEVICES];
    device_set there;
} lifetimes;

static void meet(lifetimes *x, int32_t d, int64_t first, int64_t last)
{
    bool known = device_set_has(&x->there, d);
    x->first[d] = known ? UTIL_MIN(x->first[d], first) : first;
    x->last[d] = known ? UTIL_MAX(x->last[d], last) : last;
    device_set_add(&x->there, d);
}

/* Every reader once, with the transfer that it waits for; what nobody reads lives to the end. */
static void find_lives(lifetimes *x, const schedule_check *c, int32_t t, int64_t end_ns)
{
    const moirai_problem *p = c->p;
    const moirai_plan *plan = c->plan;
    int32_t producer = p->tensor_producer[t], begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    int32_t home = plan->op_device[producer];
    int64_t born = plan->op_start_ns[producer];
    x->there = (device_set){{0}};
    meet(x, home, born, begin == end ? end_ns : plan->op_finish_ns[producer]);
    for (int32_t s = c->sorted_off[t]; s < c->sorted_off[t + 1]; s++)
        schedule_check_fetch_transfer(c, s);
    for (int32_t e = begin; e < end; e++) {
        schedule_check_fetch_reader(c, e, plan->op_finish_ns);
        int32_t reader = p->edge_reader[e], d = plan->op_device[reader];
        int64_t read = plan->op_finish_ns[reader];
        if (d == home) {
            meet(x, home, born, read);
            continue;
        }
        const moirai_transfer *sent =
            &plan->transfer[schedule_check_find(c, t, p->flow == MOIRAI_FLOW_TENSOR ? d : reader)];
        meet(x, home, born, sent->finish_ns);
        meet(x, d, sent->start_ns, read);
    }
}

/* The lives of a tensor as two ends each: 2 x time, odd for a beginning, so that ends come first. */
static size_t add_lives(schedule_check *c, size_t n, int32_t t, const lifetimes *x)
{
    DEVICE_SET_EACH(d, &x->there) {
        if (x->last[d] <= x->first[d])
            continue;
        c->lives[n / 2] = (schedule_life){c->p->tensor_bytes[t], d};
        c->key[n] = (uint64_t)x->first[d] << 1 | 1;
        c->key[n + 1] = (uint64_t)x->last[d] << 1;
        c->item[n] = c->item[n + 1] = (int32_t)(n / 2);
        n += 2;
    }
    return n;
}

/* Most bytes of tensors alive at once, per device. */
static void peaks(schedule_check *c, int64_t end_ns, wide *peak)
{
    const moirai_problem *p = c->p;
    size_t n = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        lifetimes x;
        find_lives(&x, c, t, end_ns);
        n = add_lives(c, n, t, &x);
    }
    util_sort(c->key, c->item, c->key_spare, c->item_spare, (int32_t)n);
    wide live[MOIRAI_MAX_DEVICES] = {0};
    for (size_t j = 0; j < n; j++) {
        __builtin_prefetch(&c->lives[c->item[UTIL_MIN(j + SCHEDULE_AHEAD, n - 1)]]);
        const schedule_life *life = &c->lives[c->item[j]];
        live[life->device] += c->key[j] & 1 ? (wide)life->bytes : -(wide)life->bytes;
        peak[life->device] = UTIL_MAX(peak[life->device], live[life->device]);
    }
}

static int64_t shown(wide bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* A shared weight is on a device once, however many of its readers are. */
static void add_weights(const schedule_check *c, wide *resident)
{
    const moirai_problem *p = c->p;
    for (int32_t w = 0; w < p->n_weights; w++) {
        device_set there = {{0}};
        for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
            device_set_add(&there, c->plan->op_device[p->weight_reader[e]]);
        DEVICE_SET_EACH(d, &there)
            resident[d] += p->weight_bytes[w];
    }
}

/* Whether a rule or a number of the plan hangs on them. */
static bool peaks_matter(const schedule_check *c)
{
    bool said = c->p->memory == MOIRAI_MEMORY_PEAK;
    for (int32_t d = 0; d < c->p->n_devices && !said; d++)
        said = c->plan->device_peak_bytes[d] != MOIRAI_UNKNOWN;
    return said;
}

void schedule_check_memory(schedule_check *c, int64_t makespan_ns)
{
    const moirai_problem *p = c->p;
    wide resident[MOIRAI_MAX_DEVICES] = {0}, peak[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++)
        resident[c->plan->op_device[i]] += p->op_memory_bytes[i];
    add_weights(c, resident);
    if (peaks_matter(c))
        peaks(c, makespan_ns, peak);
    for (int32_t d = 0; d < p->n_devices; d++) {
        wide need = resident[d] + (p->memory == MOIRAI_MEMORY_PEAK ? peak[d] : 0);
        if (need > p->device_memory_bytes[d])
            schedule_check_bad(c, "device %s: needs %" PRId64 " bytes, has %" PRId64, p->device_name[d], shown(need),
                               p->device_memory_bytes[d]);
        int64_t said = c->plan->device_memory_bytes[d];
        if (said != MOIRAI_UNKNOWN && said != resident[d])
            schedule_check_bad(c, "device %s: plan says %" PRId64 " bytes of memory, its ops say %" PRId64,
                               p->device_name[d], said, shown(resident[d]));
        said = c->plan->device_peak_bytes[d];
        if (said != MOIRAI_UNKNOWN && said != resident[d] + peak[d])
            schedule_check_bad(c, "device %s: plan says a peak of %" PRId64 " bytes, its tensors say %" PRId64,
                               p->device_name[d], said, shown(resident[d] + peak[d]));
    }
}
