/* Sizes of pieces that balance unequal devices and links.
 *
 * Piece d takes x_d t_d + l_d: its share of the strip's time on its device, and what its tensors take on their way to
 * and from the device that works on the rest (the hub, on which the strip is quickest), with the launches of its
 * operators, which a smaller piece does not save. All end at once where x_d = (T - l_d) / t_d; shares add up to 1, which
 * gives T = (1 + sum l_d / t_d) / sum 1 / t_d. A device whose share would not be positive does not pay for its way.
 *
 * For every number of pieces there are two candidates: with these l_d, and by speed alone (where several strips follow
 * each other, or links are shared, the first is too careful or not enough). The placer judges them. */
#include "shard/shard_choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIECES 8 /* as MOST_CHOSEN in shard_cut.c */

typedef struct seat {
    int32_t device;
    double time, fixed; /* of all units; of any number of them */
} seat;

static int by_end(const void *x, const void *y)
{
    const seat *a = x, *b = y;
    double left = a->time + a->fixed, right = b->time + b->fixed;
    return left < right ? -1 : left > right ? 1 : a->device < b->device ? -1 : a->device > b->device;
}

/* Time of a tensor's way from the hub to `k` (or back) that crosses the strip's border. */
static double way_ns(const moirai_problem *p, const bool *in, int32_t hub, int32_t k)
{
    int64_t enters = 0, leaves = 0;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e];
        bool from = in[p->tensor_producer[t]], to = in[p->edge_reader[e]];
        if (!from && to)
            enters = UTIL_MAX(enters, moirai_transfer_ns(p, t, hub, k));
        if (from && !to)
            leaves = UTIL_MAX(leaves, moirai_transfer_ns(p, t, k, hub));
    }
    return (double)enters + (double)leaves;
}

/* Devices that can take pieces, the hub first, then by when they would be done with all of it. */
static int seats_of(const moirai_problem *p, const bool *in, seat *s)
{
    int n = 0, hub = 0, n_ops = 0;
    for (int32_t op = 0; op < p->n_ops; op++)
        n_ops += in[op];
    for (int32_t k = 0; k < p->n_devices; k++) {
        double time = 0;
        bool can = true;
        for (int32_t op = 0; op < p->n_ops; op++)
            if (in[op]) {
                can &= moirai_op_may(p, op, k);
                time += (double)UTIL_MAX(moirai_op_ns(p, op, k), 0);
            }
        double launches = UTIL_MIN((double)n_ops * (double)p->device_launch_ns[k], 0.9 * time);
        if (can && time > 0)
            s[n++] = (seat){k, time - launches, launches};
    }
    for (int i = 1; i < n; i++)
        if (s[i].time + s[i].fixed < s[hub].time + s[hub].fixed)
            hub = i;
    for (int i = 0; i < n; i++)
        if (i != hub)
            s[i].fixed += way_ns(p, in, s[hub].device, s[i].device);
    if (n) {
        seat first = s[hub];
        s[hub] = s[0];
        s[0] = first;
        qsort(s + 1, (size_t)n - 1, sizeof *s, by_end);
    }
    return n;
}

/* Shares in millionths of the first `n` seats; false where one gets nothing. */
static bool balance(const seat *s, int n, bool with_ways, int64_t *share)
{
    double rates = 0, ways = 1;
    for (int i = 0; i < n; i++) {
        rates += 1 / s[i].time;
        ways += with_ways ? s[i].fixed / s[i].time : 0;
    }
    double end = ways / rates;
    for (int i = 0; i < n; i++) {
        share[i] = (int64_t)(1e6 * (end - (with_ways ? s[i].fixed : 0)) / s[i].time + 0.5);
        if (share[i] < 1)
            return false;
    }
    return true;
}

static bool is_there(char text[SHARD_TRIED][SHARD_CUT_TEXT], int n, const char *new_text)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(text[i], new_text))
            return true;
    return false;
}

int shard_sizes(shard_judge *j, const shard_strip *x, char text[SHARD_TRIED][SHARD_CUT_TEXT])
{
    seat s[MOIRAI_MASK_DEVICES];
    bool *in = shard_ops_of(j, j->whole, x);
    if (!in)
        return 0;
    int n = 0, n_seats = seats_of(j->whole, in, s);
    free(in);
    for (int pieces = 2; pieces <= UTIL_MIN(n_seats, MOST_PIECES) && pieces <= x->units; pieces++)
        for (int with_ways = 1; with_ways >= 0 && n < SHARD_TRIED; with_ways--) {
            int64_t share[MOST_PIECES];
            size_t used = 0;
            if (!balance(s, pieces, with_ways, share))
                continue;
            for (int i = 0; i < pieces; i++)
                used += (size_t)snprintf(text[n] + used, SHARD_CUT_TEXT - used, "%s%lld", i ? ":" : "",
                                         (long long)share[i]);
            n += !is_there(text, n, text[n]);
        }
    return n;
}
