/* Hunts for false bounds: random small problems with known optimum, every mode and shape (docs/certificate.md).
 *
 *   bench_no_false_bound [COUNT [FIRST_SEED [MAX_OPS [quick] [many]]]]    default 20000 1 10
 *
 * `quick` leaves out what takes most of the time (all bounds of the registry, prices on bytes, most pairs at all levels):
 * chains of intervals, search trees and certificates stay, ten times as many problems.
 * `many` takes three to six devices in place of two to four, and congestion device beside the others.
 *
 * Half of the problems are made of repeated blocks (tests/support/random_layers.c), half of the shapes of
 * tests/support/random_problem.c. Exit code 1 and the seed of each offender if a bound is above the optimum, a schedule
 * that exists is excluded, a good certificate is rejected or a tampered one accepted.
 *
 * With MOIRAI_DOSSIER=FILE every certificate, honest or not, goes into that file with its verdict, for the other verifier:
 * tests/verify/check_certificate.py --dossier FILE. scripts/hunt does both on all cores. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/support/false_bound.h"
#include "../tests/support/random_layers.h"
#include "../tests/support/random_problem.h"
#include "util/util.h"

static moirai_problem *problem_of(uint64_t seed, int max_ops, bool many)
{
    random_spec spec = random_spec_draw(seed, max_ops);
    int devices = 3 + (int)(seed / 2 % 4);
    if (many) {
        spec.n_devices = devices;
        spec.congestion = (moirai_congestion)(seed / 8 % 4);
    }
    return seed % 2 == 0 ? random_problem(&spec) : random_layers_on(seed, max_ops, many ? devices : 0);
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atoll(argv[1]) : 20000, first = argc > 2 ? atoll(argv[2]) : 1, wrong = 0, broken = 0;
    int max_ops = argc > 3 ? atoi(argv[3]) : 10;
    bool quick = false, many = false;
    for (int i = 4; i < argc; i++) {
        quick |= !strcmp(argv[i], "quick");
        many |= !strcmp(argv[i], "many");
    }
    /* Many problems tell more than many pairs of one. */
    false_bound_counts counts = {.pair_every = quick ? 16 : 4, .quick = quick};
    double begun = util_seconds();
    for (int64_t i = 0; i < n; i++) {
        uint64_t seed = (uint64_t)(first + i);
        moirai_problem *p = problem_of(seed, max_ops, many);
        char why[256];
        if (!p)
            broken++; /* an operator or group without a device */
        else if (!false_bound_check(p, seed, &counts, why)) {
            printf("seed %" PRIu64 ": %s\n", seed, why);
            fflush(stdout);
            wrong++;
        }
        moirai_problem_free(p);
    }
    printf("%" PRId64 " problems (%" PRId64 " more had no device for some operator), %" PRId64 " with known optimum\n"
           "%" PRId64 " pairs, %" PRId64 " optimal schedules put to the prices, %" PRId64 " certificates, %" PRId64
           " tampered ones, %" PRId64 " changed at random, %" PRId64 " without some operators, %" PRId64
           " chains of intervals\n%" PRId64
           " certified bounds are the optimum, mean gap %.2f %%; prices on bytes raised %" PRId64 "\n%" PRId64
           " wrong, %.1f s\n",
           counts.problems, broken, counts.optimal, counts.pairs, counts.schedules, counts.certificates,
           counts.tampered, counts.mutations, counts.spines, counts.interval_chains, counts.tight,
           counts.optimal ? 100 * counts.gap / (double)counts.optimal : 0, counts.memory, wrong,
           util_seconds() - begun);
    printf("%" PRId64 " enemy's certificates with prices on bytes, prices on loads (%" PRId64 " of intervals, %" PRId64
           " of the whole) or search trees, %" PRId64 " accepted\n%" PRId64
           " certificates with search trees of %" PRId64 " nodes\n",
           counts.attacks.tried, counts.pair_loads, counts.block_loads, counts.attacks.accepted, counts.searches,
           counts.nodes);
    printf("%" PRId64 " certificates by prices on loads (%" PRId64 " of blocks in a row, %" PRId64
           " of periods, %" PRId64 " with shifts, %" PRId64 " with paths), %" PRId64 " of their enemies, %" PRId64
           " accepted\n",
           counts.loads.certificates, counts.loads.rows, counts.loads.rates, counts.loads.shifts, counts.loads.paths,
           counts.loads.attacks.tried, counts.loads.attacks.accepted);
    return wrong > 0;
}
