/* Memory of a plan, checked (4d): every device's resident bytes, the most alive at once, and what the plan says of
 * both. */
#include "schedule/plan_check.h"
#include "util/sort.h"
#include "util/util.h"

#include <inttypes.h>

#define STRETCHES (1 << 17) /* of all devices together */
#define FEW 256             /* lives for which a stretch of time more is worth its while */

typedef __int128 wide; /* sums of sizes, which a file may make as large as it likes */

int32_t schedule_check_stretches(const moirai_problem *p, size_t lives)
{
    return (int32_t)UTIL_MIN((size_t)(STRETCHES / p->n_devices), 1 + lives / FEW);
}

void schedule_check_add_lives(schedule_check *c, int32_t t, const schedule_lifetimes *x)
{
    DEVICE_SET_EACH(d, &x->there)
        if (x->last[d] > x->first[d])
            c->lives[c->n_lives++] = (schedule_life){x->first[d], x->last[d], c->p->tensor_bytes[t], d};
}

/* What is alive when each stretch begins; the most of that is a part of the peak, and where no more can be in between the stretch is not
 * looked into. */
static void close_stretches(schedule_stretch *row, int32_t n, wide *peak)
{
    wide alive = 0;
    for (int32_t b = 0; b < n; b++) {
        wide change = row[b].alive;
        row[b].alive = alive;
        *peak = UTIL_MAX(*peak, alive);
        alive += change;
    }
    for (int32_t b = 0; b < n; b++)
        row[b].open = row[b].alive + row[b].more > *peak;
}

/* Beginnings and ends in open stretches, by time: 2 x beginnings, odd, and 2 x ends, so that ends come first. */
static int32_t list_changes(schedule_check *c, int32_t each, int shift)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_lives; i++) {
        const schedule_life *x = &c->lives[i];
        const schedule_stretch *row = c->stretches + (int64_t)x->device * each;
        if (row[x->first_ns >> shift].open) {
            c->key[n] = (uint64_t)x->first_ns << 1 | 1;
            c->item[n++] = i;
        }
        if (row[x->last_ns >> shift].open) {
            c->key[n] = (uint64_t)x->last_ns << 1;
            c->item[n++] = i;
        }
    }
    util_sort(c->key, c->item, c->key_spare, c->item_spare, n);
    return n;
}

/* Most bytes of tensors alive at once, per device: in stretches of time first, then change by change in those where the most may be. */
static void find_peaks(schedule_check *c, wide *peak)
{
    int32_t K = c->p->n_devices, each = schedule_check_stretches(c->p, (size_t)c->n_lives), at[MOIRAI_MAX_DEVICES];
    wide alive[MOIRAI_MAX_DEVICES];
    int shift = 0;
    while (c->end_ns >> shift >= each)
        shift++;
    for (const schedule_life *x = c->lives; x < c->lives + c->n_lives; x++) {
        schedule_stretch *row = c->stretches + (int64_t)x->device * each;
        row[x->first_ns >> shift].alive += x->bytes;
        row[x->first_ns >> shift].more += x->bytes;
        row[x->last_ns >> shift].alive -= x->bytes;
    }
    for (int32_t d = 0; d < K; d++) {
        close_stretches(c->stretches + (int64_t)d * each, each, &peak[d]);
        at[d] = MOIRAI_NONE;
    }
    int32_t n = list_changes(c, each, shift);
    for (int32_t j = 0; j < n; j++) {
        __builtin_prefetch(&c->lives[c->item[UTIL_MIN(j + SCHEDULE_AHEAD, n - 1)]]);
        const schedule_life *x = &c->lives[c->item[j]];
        int32_t d = x->device, b = (int32_t)(c->key[j] >> 1 >> shift);
        if (at[d] != b)
            alive[d] = c->stretches[(int64_t)d * each + b].alive;
        at[d] = b;
        alive[d] += c->key[j] & 1 ? (wide)x->bytes : -(wide)x->bytes;
        peak[d] = UTIL_MAX(peak[d], alive[d]);
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

void schedule_check_memory(schedule_check *c)
{
    const moirai_problem *p = c->p;
    wide resident[MOIRAI_MAX_DEVICES] = {0}, peak[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++)
        resident[c->plan->op_device[i]] += p->op_memory_bytes[i];
    add_weights(c, resident);
    if (c->n_lives > 0)
        find_peaks(c, peak);
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
