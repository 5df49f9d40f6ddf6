/* Random problems for tests: the same seed gives the same problem on every machine. */
#ifndef MOIRAI_TEST_RANDOM_PROBLEM_H
#define MOIRAI_TEST_RANDOM_PROBLEM_H

#include <moirai/problem.h>

typedef enum random_shape {
    SHAPE_CHAIN,
    SHAPE_FORK_JOIN,
    SHAPE_SERIES_PARALLEL,
    SHAPE_LAYERED,
    SHAPE_DENSE,
    N_SHAPES
} random_shape;

typedef struct random_spec {
    uint64_t seed;
    random_shape shape;
    int n_ops, n_devices;
    moirai_flow flow;
    moirai_congestion congestion;
    moirai_memory memory;
    bool tight;    /* memory near what is needed in all; may be infeasible */
    bool nulls;    /* some devices can't run some operators */
    bool groups;   /* some operators must stay together */
    bool zeros;    /* some operators and tensors take no time */
    bool tables;   /* some tensors have transfer_ns of their own */
    bool shuffled; /* operators stand in the file in any order */
    int64_t scale; /* times and bytes are multiplied by this (1: tiny numbers, many ties) */
} random_spec;

/* Everything drawn from the seed: shape, modes and all switches; 2 .. 4 devices, 1 .. max_ops operators. */
random_spec random_spec_draw(uint64_t seed, int max_ops);
/* The problem as moirai-problem text; free() it. NULL only if memory runs out. */
char *random_problem_json(const random_spec *spec, size_t *length);
/* The same, parsed; NULL with the library's message on failure. */
moirai_problem *random_problem(const random_spec *spec);
/* One line that names the spec, for messages of failing tests; a static buffer. */
const char *random_spec_text(const random_spec *spec);

#endif
