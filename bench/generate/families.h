/* The table of families and networks. Private to the generator. */
#ifndef MOIRAI_GENERATE_FAMILIES_H
#define MOIRAI_GENERATE_FAMILIES_H

#include "generate/dag.h"
#include "generate/network.h"

typedef struct generate_family {
    const char *name;
    generate_family_fn *graph;    /* or NULL */
    generate_network_fn *network; /* or NULL */
} generate_family;

/* The last of the graphs is that of operators side by side; networks follow. */
enum { GENERATE_GRAPHS = 20, GENERATE_NETWORKS = 8, GENERATE_FAMILIES = GENERATE_GRAPHS + GENERATE_NETWORKS };
extern const generate_family generate_families[GENERATE_FAMILIES];

#endif
