/* What a link was measured to be. */
#ifndef MOIRAI_RANK_PROBE_PROBE_LINK_H
#define MOIRAI_RANK_PROBE_PROBE_LINK_H

#include <stdint.h>

#define PROBE_MAX_SIZES 12

/* How long messages of one size took. */
typedef struct probe_size {
    int64_t bytes, quartile_ns, median_ns, mean_ns; /* quartile: a quarter of the messages were faster */
    int32_t n;
} probe_size;

typedef struct probe_link {
    int64_t bytes_per_second, latency_ns;
    double error; /* largest relative difference between the fit and a quartile */
    int32_t n_sizes;
    probe_size size[PROBE_MAX_SIZES]; /* ascending; the first one is the empty message */
} probe_link;

/* latency + bytes / rate through the quartiles of `link`. */
void rank_probe_fit(probe_link *link);

#endif
