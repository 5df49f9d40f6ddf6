/* The parts of `moirai-rank profile`: measuring a piece, remembering it, and what a device is to the memory. */
#ifndef MOIRAI_RANK_PROFILE_RANK_PROFILE_H
#define MOIRAI_RANK_PROFILE_RANK_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rank/ort.h"

/* What was found of one piece on one device. Plain bytes: ranks send it as it is. */
typedef struct profile_time {
    int64_t median_ns; /* -1: it can't be measured here */
    int64_t cold_ns;   /* the same with nothing of it in the caches */
    double spread;     /* interquartile range / median */
    int32_t n;         /* runs that count */
    int32_t batches;   /* more than one: the first were too noisy */
    int32_t cached;
} profile_time;

typedef struct profile_effort {
    int warmup, runs; /* per batch */
    double seconds;   /* a batch ends after this time, with at least FEWEST runs */
} profile_effort;

/* ---- rank_profile_bench.c ---- */
typedef struct profile_bench profile_bench;

int rank_profile_bench_open(profile_bench **out, const rank_ort *ort, const profile_effort *effort);
void rank_profile_bench_free(profile_bench *b);
/* What a run of an operator that does nothing takes; part of every measured time, and taken off. */
int64_t rank_profile_bench_overhead(const profile_bench *b);
/* Runs a piece of onnx_piece_make. A piece that can't run is an error with ONNX Runtime's words. */
int rank_profile_bench_run(profile_time *out, profile_bench *b, const uint8_t *piece, size_t length);

/* The same for a whole network: fewer runs, and none with cold caches. */
int rank_profile_bench_whole(profile_time *out, profile_bench *b, const uint8_t *network, size_t length);

/* ---- rank_profile_input.c ---- */
/* Numbers that suit an operator's input or weights of a TensorProto type: reals in [0.05, 1), small integers below
 * `bound`. */
void rank_profile_fill(void *data, int32_t type, size_t elements, int64_t bound, uint64_t seed);

/* ---- rank_profile_cache.c ---- */
typedef struct profile_key {
    char text[33];
} profile_key;

profile_key rank_profile_key(const void *piece, size_t length, const char *device);
/* The folder: given, or $XDG_CACHE_HOME/moirai, or ~/.cache/moirai. Made where it is missing. */
int rank_profile_cache_folder(char *out, size_t size, const char *given);
/* What is older than this is as good as none. */
bool rank_profile_cache_get(profile_time *out, const char *folder, const profile_key *key, double most_days);
int rank_profile_cache_put(const profile_time *measured, const char *folder, const profile_key *key,
                           const char *device);

#endif
