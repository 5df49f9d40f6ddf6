/* The methods of the search that can be left out, one by one.
 *
 * Every step of the engine and every method below it has a name here. A search carries the set of those that are switched
 * off in its util_stop, which goes wherever time is spent; so that what a method is worth can be measured
 * (bench_ablate), and a doubt about one of them can be settled without building anything. A method that is off
 * leaves a search correct, only weaker. */
#ifndef MOIRAI_UTIL_METHODS_H
#define MOIRAI_UTIL_METHODS_H

#include <stdbool.h>
#include <stdint.h>

/* id, name, what it is; steps of the engine first. */
#define UTIL_METHODS(X) \
    X(STARTS, "starts", "plans of the other heuristics to begin with") \
    X(EXACT, "exact", "exhaustive search of a small problem as a whole") \
    X(BLOCKS, "blocks", "plans and bounds block by block, between cuts") \
    X(SPINE, "spine", "work that floats beside a spine with cuts") \
    X(MEMORY, "memory", "plans and bounds at prices on bytes") \
    X(LAYERS, "layers", "large blocks, annealed each by itself, copies once for all") \
    X(WHOLE, "whole", "annealing of the whole problem") \
    X(LOADS, "loads", "bounds by prices on loads and ports, plans that balance them") \
    X(SHIFTS, "shifts", "bounds by loads within stretches of time, and on paths") \
    X(LOAD_CHAIN, "load-chain", "the same block by block, between devices") \
    X(INTERVALS, "intervals", "bounds by chains of intervals") \
    X(INTERVAL_PLANS, "interval-plans", "plans from chains of intervals") \
    X(DEVICES, "devices", "more than 64 devices: a search on those that can matter, paths on all") \
    X(AGAIN, "again", "all once more with twice the effort while time is left") \
    X(PAIR_LOADS, "pair-loads", "pairs: prices on loads") \
    X(PAIR_PRICES, "pair-prices", "pairs: prices in time") \
    X(LP_PLANS, "lp-plans", "pairs: plans from LP solutions") \
    X(MIRRORS, "mirrors", "exhaustive search: symmetry of the graph")

typedef enum util_method {
#define UTIL_METHOD_ID(id, name, what) UTIL_METHOD_##id,
    UTIL_METHODS(UTIL_METHOD_ID)
#undef UTIL_METHOD_ID
        UTIL_N_METHODS
} util_method;

typedef uint64_t util_method_set; /* bits of util_method */

const char *util_method_name(util_method m);
const char *util_method_what(util_method m);
/* "shifts,layers" as a set; MOIRAI_EUSAGE names what is unknown, and what is known. NULL or "": none. */
int util_methods_parse(util_method_set *out, const char *names);

#endif
