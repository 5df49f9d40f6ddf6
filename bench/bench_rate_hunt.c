/* Hunts for false bounds of the period: random small problems, all assignments, mixtures, streams in all orders (docs/rate.md).
 *
 *   bench_rate_hunt [COUNT [FIRST_SEED [SECONDS]]]    default 10000 1, without a limit
 *
 * Exit code 1 and the seed of each offender if a load, a mixture or a stream is below the bound. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tests/support/random_problem.h"
#include "../tests/support/rate_brute.h"
#include "util/util.h"

#define MOST_ASSIGNMENTS 4096
#define MOST_STREAMS 400

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atoll(argv[1]) : 10000, first = argc > 2 ? atoll(argv[2]) : 1, wrong = 0;
    double limit_s = argc > 3 ? atof(argv[3]) : 1e18, begun = util_seconds();
    rate_brute_counts counts = {0};
    for (int64_t i = 0; i < n && util_seconds() - begun < limit_s; i++) {
        uint64_t seed = (uint64_t)(first + i);
        random_spec spec = random_spec_draw(seed, seed % 3 ? 4 : 6); /* of four operators all orders are tried */
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        char why[256];
        if (p && !rate_brute_check(p, seed, MOST_ASSIGNMENTS, MOST_STREAMS, &counts, why)) {
            printf("seed %" PRIu64 ": %s\n", seed, why);
            fflush(stdout);
            wrong++;
        }
        moirai_problem_free(p);
    }
    printf("%" PRId64 " problems, %" PRId64 " assignments, %" PRId64 " mixtures, %" PRId64
           " streams; transfers and bytes raise %" PRId64 " bounds, %" PRId64 " are met by a stream; %" PRId64
           " wrong, %.1f s\n",
           counts.problems, counts.assignments, counts.mixtures, counts.streams, counts.raised, counts.met, wrong,
           util_seconds() - begun);
    return wrong > 0;
}
