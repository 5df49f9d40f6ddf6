/* Aligning clocks by pings, as NTP does: rank r notes when it answers, rank 0 when it asked and heard. The answer lies
 * in the middle of the fastest round trip, give or take half of it: where that leaves no difference, there is none. Two such looks, before and after, take out the
 * drift. */
#include "rank/mpi_clock.h"

#include <time.h>

#include "util/util.h"

enum { PINGS = 24, TAG = 32001 };

int64_t rank_clock_own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The best of several round trips: what rank r must add to its clock. */
static void ask(const rank_world *w, int r, int64_t answer[2])
{
    int64_t best = INT64_MAX, offset = 0;
    for (int i = 0; i < PINGS; i++) {
        int64_t theirs, before = rank_clock_own_ns();
        rank_world_send(w, &before, sizeof before, r, TAG);
        rank_world_recv(w, &theirs, sizeof theirs, r, TAG);
        int64_t after = rank_clock_own_ns();
        if (after - before < best) {
            best = after - before;
            offset = before + (after - before) / 2 - theirs;
        }
    }
    /* Where it may be the same clock, it is: those of two hosts differ by when they were started. On busy cores half of a
     * round trip is milliseconds, and segments would begin before their run. */
    answer[0] = offset >= -(best / 2) - 1 && offset <= best / 2 + 1 ? 0 : offset;
    answer[1] = best;
    rank_world_send(w, answer, 2 * sizeof *answer, r, TAG);
}

static void reply(const rank_world *w, int64_t answer[2])
{
    for (int i = 0; i < PINGS; i++) {
        int64_t theirs, now;
        rank_world_recv(w, &theirs, sizeof theirs, 0, TAG);
        now = rank_clock_own_ns();
        rank_world_send(w, &now, sizeof now, 0, TAG);
    }
    rank_world_recv(w, answer, 2 * sizeof *answer, 0, TAG);
}

void rank_clock_align(rank_clock *c, const rank_world *w, int moment)
{
    int64_t answer[2] = {0, 0};
    if (w->rank == 0)
        for (int r = 1; r < w->size; r++) {
            int64_t other[2];
            ask(w, r, other);
            answer[1] = UTIL_MAX(answer[1], other[1]);
        }
    else
        reply(w, answer);
    for (int m = moment; m < 2; m++) {
        c->at_ns[m] = rank_clock_own_ns();
        c->offset_ns[m] = answer[0];
    }
    c->round_trip_ns = answer[1];
    rank_world_barrier(w);
}

int64_t rank_clock_common_ns(const rank_clock *c, int64_t own_ns)
{
    int64_t span = c->at_ns[1] - c->at_ns[0];
    double share = span > 0 ? (double)(own_ns - c->at_ns[0]) / (double)span : 0;
    return own_ns + c->offset_ns[0] + (int64_t)(share * (double)(c->offset_ns[1] - c->offset_ns[0]));
}

int64_t rank_clock_from_common_ns(const rank_clock *c, int64_t common_ns)
{
    return common_ns - c->offset_ns[0];
}
