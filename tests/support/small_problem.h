/* Problems written down by hand, in few words. */
#ifndef MOIRAI_TEST_SMALL_PROBLEM_H
#define MOIRAI_TEST_SMALL_PROBLEM_H

#include <moirai/problem.h>

typedef struct small_op {
    const char *name;
    const char *times;   /* "10,20" or "10,null" */
    const char *inputs;  /* "x,y" or "" */
    const char *outputs; /* "x:8,y:3", or with a table of times "x:0[[0,5],[7,0]]"; "" */
    int memory;
    const char *group; /* or NULL */
} small_op;

typedef struct small_spec {
    int n_devices;
    int memory;                           /* of each device; 0: plenty */
    const char *flow, *congestion, *mode; /* NULL: tensor, none, static */
    const small_op *op;                   /* up to the one without a name */
} small_spec;

/* Channels move 1 byte in 1 ns. Fails the test with the library's message where it is no problem. */
moirai_problem *small_problem(const small_spec *spec);

#endif
