/* The time of a piece: a session of its own (rank_profile_trial.c), warm-up, runs, the median.
 *
 * A batch is a few runs; its spread is the interquartile range over the median. Where that is more than MOST_SPREAD,
 * something else was on the machine: the batch is measured again, up to MOST_BATCHES times, and the calmest one counts.
 * Every run of a session has a price of its own, a few microseconds, which an operator inside a longer sub-model does
 * not pay: what an Identity of one number takes is measured once and taken off. */
#include "rank/profile/rank_profile_trial.h"

#include <stdlib.h>
#include <unistd.h>

#include "util/sort.h"
#include "util/util.h"

enum { MOST_BATCHES = 3, FEWEST = 5, MOST_RUNS = 1000, COLD_RUNS = 3, WHOLE_FEWEST = 3, WHOLE_SECONDS = 4 };
#define MOST_SPREAD 0.1
#define GPU_SWEEP ((size_t)256 << 20) /* GPUs have at most 128 MiB of cache today */

struct profile_bench {
    const rank_ort *ort;
    profile_effort effort;
    int64_t overhead_ns;
    char *sweep; /* what fills the caches with something else */
    size_t sweep_bytes;
    void *gpu_sweep;
    profile_weights weights;
};

static int batch(profile_time *out, profile_trial *t, const profile_effort *e)
{
    int64_t ns[MOST_RUNS];
    double end = util_seconds() + e->seconds;
    int n = 0, most = UTIL_MIN(UTIL_MAX(e->runs, FEWEST), MOST_RUNS);
    while (n < most && (n < FEWEST || util_seconds() < end)) {
        int rc = rank_profile_trial_run(t, &ns[n]);
        if (rc)
            return rc;
        n++;
    }
    qsort(ns, (size_t)n, sizeof *ns, util_by_int64);
    int64_t median = UTIL_MAX(ns[n / 2], 1);
    *out = (profile_time){.median_ns = median, .n = n, .spread = (double)(ns[3 * n / 4] - ns[n / 4]) / (double)median};
    return 0;
}

/* Writes more than the caches hold: the host's, or the GPU's. */
static int sweep(const profile_bench *b)
{
    if (b->ort->cuda)
        return rank_cuda_fill(b->ort->cuda, b->gpu_sweep, 1, GPU_SWEEP);
    volatile char *at = b->sweep;
    for (size_t k = 0; k < b->sweep_bytes; k += 64)
        at[k] = (char)(at[k] + 1);
    return 0;
}

/* In a network each operator runs once, and its weights were last touched a whole network ago: where that is more than
 * the caches hold, they come from memory. A run after a walk over a buffer that is larger than the caches is the other
 * end of what can happen: inputs are cold as well. */
static int measure_cold(profile_time *out, profile_trial *t, const profile_bench *b)
{
    int64_t ns[COLD_RUNS];
    for (int i = 0; i < COLD_RUNS; i++) {
        int rc = sweep(b);
        rc = rc ? rc : rank_profile_trial_run(t, &ns[i]);
        if (rc)
            return rc;
    }
    qsort(ns, COLD_RUNS, sizeof *ns, util_by_int64);
    out->cold_ns = UTIL_MAX(ns[COLD_RUNS / 2], out->median_ns); /* noise aside, never faster */
    return 0;
}

static int measure(profile_time *out, profile_trial *t, const profile_bench *b)
{
    int64_t ns;
    double end = util_seconds() + b->effort.seconds;
    int rc = rank_profile_trial_run(t, &ns);
    for (int i = 1; i < b->effort.warmup && !rc && util_seconds() < end; i++)
        rc = rank_profile_trial_run(t, &ns);
    int k = 0;
    for (bool calm = false; k < MOST_BATCHES && !calm && !rc; k++) {
        profile_time one;
        rc = batch(&one, t, &b->effort);
        if (!rc && (k == 0 || one.spread < out->spread))
            *out = one;
        calm = one.spread <= MOST_SPREAD;
    }
    out->batches = k;
    return rc ? rc : measure_cold(out, t, b);
}

int rank_profile_bench_run(profile_time *out, profile_bench *b, const uint8_t *piece, size_t length)
{
    profile_trial t = {.ort = b->ort, .weights = &b->weights};
    *out = (profile_time){.median_ns = -1};
    int rc = rank_profile_trial_open(&t, piece, length);
    rc = rc ? rc : measure(out, &t, b);
    rank_profile_trial_free(&t);
    if (rc)
        out->median_ns = -1;
    else
        out->median_ns = UTIL_MAX(out->median_ns - b->overhead_ns, 0);
    out->cold_ns = UTIL_MAX(out->cold_ns - b->overhead_ns, 0);
    return rc;
}

/* Seconds rather than runs: a network may take one of them. At least WHOLE_FEWEST, after one that warms up. */
static int measure_whole(profile_time *out, profile_trial *t, const profile_effort *e)
{
    int64_t ns[MOST_RUNS], first;
    int n = 0, most = UTIL_MIN(UTIL_MAX(e->runs, WHOLE_FEWEST), MOST_RUNS);
    int rc = rank_profile_trial_run(t, &first);
    double end = util_seconds() + WHOLE_SECONDS * e->seconds;
    while (!rc && n < most && (n < WHOLE_FEWEST || util_seconds() < end)) {
        rc = rank_profile_trial_run(t, &ns[n]);
        n++;
    }
    if (rc)
        return rc;
    qsort(ns, (size_t)n, sizeof *ns, util_by_int64);
    int64_t median = UTIL_MAX(ns[n / 2], 1);
    double spread = (double)(ns[3 * n / 4] - ns[n / 4]) / (double)median;
    *out = (profile_time){.median_ns = median, .cold_ns = median, .n = n, .batches = 1, .spread = spread};
    return 0;
}

int rank_profile_bench_whole(profile_time *out, profile_bench *b, const uint8_t *network, size_t length)
{
    profile_trial t = {.ort = b->ort, .weights = &b->weights};
    *out = (profile_time){.median_ns = -1};
    int rc = rank_profile_trial_open(&t, network, length);
    rc = rc ? rc : measure_whole(out, &t, &b->effort);
    rank_profile_trial_free(&t);
    return rc;
}

/* ---- the overhead ---- */

static int measure_overhead(profile_bench *b)
{
    profile_time t;
    int rc = rank_profile_bench_run(&t, b, rank_ort_identity, sizeof rank_ort_identity);
    b->overhead_ns = rc ? 0 : t.median_ns;
    return rc;
}

/* Twice the largest cache, where the system knows it; at most 64 MiB, which takes some 10 ms to walk over. */
static size_t sweep_size(void)
{
    long largest = UTIL_MAX(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
    size_t most = (size_t)64 << 20;
    return largest > 0 ? UTIL_MIN(2 * (size_t)largest, most) : most / 2;
}

int rank_profile_bench_open(profile_bench **out, const rank_ort *ort, const profile_effort *effort)
{
    profile_bench *b = util_alloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return MOIRAI_EFAIL;
    b->ort = ort;
    b->effort = *effort;
    b->sweep_bytes = sweep_size();
    b->sweep = util_alloc(b->sweep_bytes, 1);
    int rc = b->sweep ? 0 : MOIRAI_EFAIL;
    if (!rc && ort->cuda)
        rc = rank_cuda_alloc(&b->gpu_sweep, ort->cuda, GPU_SWEEP);
    rc = rc ? rc : measure_overhead(b);
    if (rc) {
        rank_profile_bench_free(b);
        return rc;
    }
    *out = b;
    return 0;
}

void rank_profile_bench_free(profile_bench *b)
{
    if (!b)
        return;
    for (int i = 0; i < PROFILE_TYPES; i++)
        free(b->weights.data[i]);
    free(b->sweep);
    if (b->gpu_sweep)
        rank_cuda_free(b->ort->cuda, b->gpu_sweep);
    free(b);
}

int64_t rank_profile_bench_overhead(const profile_bench *b)
{
    return b->overhead_ns;
}
