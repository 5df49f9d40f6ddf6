/* How long a message of n bytes takes from one rank to another.
 *
 * The sender starts its clock, sends n bytes and waits for an empty answer. What an empty message takes there and back
 * is measured alike; half of it is the answer's share, so time(n) = roundtrip(n) - roundtrip(0) / 2. The two directions
 * of a pair are measured one by one: bandwidths may differ, latencies are shared half and half (no clock is trusted).
 * Messages go through the same calls that `moirai run` uses, waiting included; what lies on a
 * GPU is copied, or mapped, as there.
 *
 * After the empty one, sizes grow from 1 KiB by factors of four up to 16 MiB, or until one message would take a tenth
 * of the time at hand; then the sizes take turns until the time is over, so that a disturbance hits all of them. One
 * pair at a time. */
#include "rank/probe/rank_probe.h"

#include <stdlib.h>
#include <string.h>

#include "rank/mpi_clock.h"
#include "util/sort.h"
#include "util/util.h"

enum {
    TAG = 77,
    SMALLEST = 1024,
    LARGEST = PROBE_LARGEST,
    GROWTH = 4,
    MOST_SAMPLES = 512,
    FEWEST_ROUNDS = 3,
    AWAKE_NS = 5000000
};

typedef struct samples {
    int64_t bytes;
    int32_t n;
    int64_t ns[MOST_SAMPLES];
} samples;

typedef struct sender {
    const rank_world *w;
    int to;
    const probe_side *side;
    samples size[PROBE_MAX_SIZES]; /* the first one is of 0 bytes */
    int32_t n_sizes;
} sender;

static void check(const rank_world *w, int rc)
{
    if (rc)
        rank_world_abort(w, rc);
}

/* One message, there or here. A device that waits in a run stays awake for 5 ms where its core is its own. */
static void pass(const rank_world *w, const probe_side *side, void *data, size_t bytes, int other, bool sends)
{
    MPI_Request request; /* no message here is longer than a chunk of MPI's own, unless a test says so */
    if (!side->own_core || rank_world_chunks(w, bytes) > 1) {
        sends ? rank_world_send(w, data, bytes, other, TAG) : rank_world_recv(w, data, bytes, other, TAG);
        return;
    }
    sends ? rank_world_isend(w, data, bytes, other, TAG, &request)
          : rank_world_irecv(w, data, bytes, other, TAG, &request);
    int64_t end_ns = rank_clock_own_ns() + AWAKE_NS;
    for (int done = 0; !done && rank_clock_own_ns() < end_ns;) {
        MPI_Status status;
        MPI_Test(&request, &done, &status);
    }
    rank_world_wait(&request, 1); /* done, or else with pauses */
}

/* What a segment does with a tensor that lies in memory of both: its cores fetch every line of it. */
static void read_lines(const char *data, size_t bytes)
{
    volatile uint64_t sum = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < bytes; i += RANK_SHARED_LINE)
        all += *(const volatile uint64_t *)(data + i);
    sum = all;
    (void)sum;
}

static void send_tensor(const rank_world *w, const probe_side *side, size_t bytes, int to)
{
    if (side->cuda && !side->mapped)
        check(w, rank_cuda_get(side->cuda, side->data, side->memory, bytes));
    pass(w, side, side->data, side->mapped ? 0 : bytes, to, true);
}

static void receive_tensor(const rank_world *w, const probe_side *side, size_t bytes, int from)
{
    pass(w, side, side->data, side->mapped ? 0 : bytes, from, false);
    if (side->peer && !side->cuda)
        read_lines(side->peer, bytes);
    else if (side->peer)
        check(w, rank_cuda_copy(side->cuda, side->memory, side->peer, bytes));
    else if (side->cuda && !side->mapped)
        check(w, rank_cuda_put(side->cuda, side->memory, side->data, bytes));
}

static int64_t round_trip(const sender *s, int64_t bytes)
{
    if (s->side->mapped && !s->side->cuda)
        memset(s->side->data + RANK_SHARED_LINE, (int)bytes & 0x7f, (size_t)bytes); /* as a segment has just made it */
    int64_t start = rank_clock_own_ns();
    pass(s->w, s->side, &bytes, sizeof bytes, s->to, true); /* the receiver learns the size before the clock starts */
    pass(s->w, s->side, NULL, 0, s->to, false);
    start = rank_clock_own_ns();
    send_tensor(s->w, s->side, (size_t)bytes, s->to);
    pass(s->w, s->side, NULL, 0, s->to, false);
    return rank_clock_own_ns() - start;
}

static void receive_all(const rank_world *w, int from, const probe_side *side)
{
    for (;;) {
        int64_t bytes;
        pass(w, side, &bytes, sizeof bytes, from, false);
        pass(w, side, NULL, 0, from, true);
        if (bytes < 0)
            return;
        receive_tensor(w, side, (size_t)bytes, from);
        pass(w, side, NULL, 0, from, true);
    }
}

static void sample(sender *s, samples *at)
{
    int64_t ns = round_trip(s, at->bytes);
    if (at->n < MOST_SAMPLES)
        at->ns[at->n++] = ns;
}

/* `part` of 4, of sorted samples. */
static int64_t quartile(const samples *at, int part)
{
    return at->n ? at->ns[at->n * part / 4] : 0;
}

static void choose_sizes(sender *s, double seconds)
{
    for (int i = 0; i < 10; i++) /* connections are made on the first use */
        round_trip(s, 0);
    s->n_sizes = 1;
    for (int64_t bytes = SMALLEST; bytes <= LARGEST && s->n_sizes < PROBE_MAX_SIZES; bytes *= GROWTH) {
        samples *at = &s->size[s->n_sizes++];
        at->bytes = bytes;
        round_trip(s, bytes); /* buffers, too */
        if ((double)round_trip(s, bytes) * GROWTH > seconds * 1e9 / 10)
            break;
    }
}

static void summarise(probe_link *out, sender *s)
{
    *out = (probe_link){.n_sizes = s->n_sizes};
    for (int32_t i = 0; i < s->n_sizes; i++) {
        samples *at = &s->size[i];
        double sum = 0;
        qsort(at->ns, (size_t)at->n, sizeof *at->ns, util_by_int64);
        for (int32_t k = 0; k < at->n; k++)
            sum += (double)at->ns[k];
        out->size[i] = (probe_size){.bytes = at->bytes,
                                    .n = at->n,
                                    .quartile_ns = UTIL_MAX(quartile(at, 1) - quartile(&s->size[0], 1) / 2, 1),
                                    .median_ns = UTIL_MAX(quartile(at, 2) - quartile(&s->size[0], 2) / 2, 1),
                                    .mean_ns = UTIL_MAX((int64_t)(sum / at->n) - quartile(&s->size[0], 2) / 2, 1)};
    }
    rank_probe_fit(out);
}

static void send_all(probe_link *out, sender *s, double seconds)
{
    double end = util_seconds() + seconds;
    choose_sizes(s, seconds);
    for (int round = 0; round < FEWEST_ROUNDS || (util_seconds() < end && round < MOST_SAMPLES); round++)
        for (int32_t i = 0; i < s->n_sizes; i++)
            sample(s, &s->size[i]);
    int64_t over = -1;
    pass(s->w, s->side, &over, sizeof over, s->to, true);
    pass(s->w, s->side, NULL, 0, s->to, false);
    summarise(out, s);
}

void rank_probe_pair(probe_link *out, const rank_world *w, int from, int to, const probe_side *side, double seconds)
{
    if (w->rank != from) {
        receive_all(w, from, side);
        return;
    }
    sender *s = util_alloc(1, sizeof *s);
    if (!s)
        rank_world_abort(w, MOIRAI_EFAIL);
    s->w = w;
    s->to = to;
    s->side = side;
    send_all(out, s, seconds);
    free(s);
}
