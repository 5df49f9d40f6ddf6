/* Longest paths with a choice of device at every operator: heads and tails. Private.
 *
 * head(i, k) is the least start of operator i on device k: every input comes from whichever device its producer may
 * use that gets it there soonest,
 *
 *   head(i, k) = max over inputs t of min over devices l of head(producer, l) + time(producer, l) + transfer(t, l, k),
 *
 * and tail(i, k) is the same seen from the end: the least time between i's finish on k and the end of the plan.
 * Devices, ports and channels are taken to be free: both hold for every plan, (4a), (4b), (4f).
 *
 * Everybody who needs these uses the two steps below: bounds and windows through schedule_heads and schedule_tails, the
 * exact search from a partial placement, with what it knows of transfers as floors. (The verifier in src/prove has its
 * own on purpose.) */
#ifndef MOIRAI_SCHEDULE_PATHS_H
#define MOIRAI_SCHEDULE_PATHS_H

#include <moirai/problem.h>

#include "util/stop.h"
#include "util/util.h"

/* Later than every path: a problem's times add up to less (PROBLEM_TOTAL_LIMIT), and a few of these still fit int64. */
#define SCHEDULE_NEVER_NS (INT64_MAX / 4)

typedef struct schedule_paths {
    const moirai_problem *p;
    const uint64_t
        *devices;          /* [op] those that are left, up to MOIRAI_MASK_DEVICES; NULL: all that the problem allows */
    bool groups;           /* members of a group share one device, so their tensors never travel */
    const util_stop *stop; /* or NULL; where it comes first, the rest begins at 0: paths are shorter, and still true */
} schedule_paths;

/* head[op * K + k] and tail[op * K + k], SCHEDULE_NEVER_NS where op may not be on k or something next to it is left
 * without a device. O(E K^2), or O(E K + classes K^2) where all links are alike. */
void schedule_heads(int64_t *head, const schedule_paths *x);
void schedule_tails(int64_t *tail, const schedule_paths *x);
/* The longest of all operators' least finishes: a bound. Negative: out of memory. O(E K^2). */
int64_t schedule_longest_path(const schedule_paths *x);

/* A step of the heads: when tensor t can be on device k, its producer being on one of `devices`. A transfer does not
 * start before `floor_ns`. */
static inline int64_t schedule_arrival_ns(const moirai_problem *p, const int64_t *head, uint64_t devices, int32_t t,
                                          int32_t k, int64_t floor_ns)
{
    int32_t from = p->tensor_producer[t];
    int64_t soonest = SCHEDULE_NEVER_NS;
    for (; devices != 0; devices &= devices - 1) {
        int32_t l = __builtin_ctzll(devices);
        int64_t at = head[(int64_t)from * p->n_devices + l] + moirai_op_ns(p, from, l);
        if (l != k)
            at = UTIL_MAX(at, floor_ns) + moirai_transfer_ns(p, t, l, k);
        soonest = UTIL_MIN(soonest, at);
    }
    return soonest;
}

/* A step of the tails: what follows the producer's finish on l until the end because `reader`, on one of `devices`,
 * reads tensor t. What follows a transfer to k is no less than floor_ns[k * stride]; floor_ns may be NULL. */
static inline int64_t schedule_departure_ns(const moirai_problem *p, const int64_t *tail, uint64_t devices,
                                            int32_t reader, int32_t t, int32_t l, const int64_t *floor_ns,
                                            int32_t stride)
{
    int64_t least = SCHEDULE_NEVER_NS;
    for (; devices != 0; devices &= devices - 1) {
        int32_t k = __builtin_ctzll(devices);
        int64_t after = tail[(int64_t)reader * p->n_devices + k] + moirai_op_ns(p, reader, k);
        if (k != l)
            after = UTIL_MAX(after, floor_ns ? floor_ns[k * stride] : 0) + moirai_transfer_ns(p, t, l, k);
        least = UTIL_MIN(least, after);
    }
    return least;
}

#endif
