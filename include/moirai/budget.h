/* What a search may use, how it is stopped, and what it tells meanwhile: one budget for everything that searches.
 *
 * Placers, bounds and certificates all take a moirai_budget. Effort is counted work: the same effort and seed give the
 * same answer on every machine and with any number of threads. A time limit or an interrupt ends the search earlier,
 * with the best that is known by then. */
#ifndef MOIRAI_BUDGET_H
#define MOIRAI_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <moirai/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A request to stop, from another thread or from a signal handler. Zero-initialise it; touch it through the two
 * functions below only. */
typedef struct moirai_interrupt {
    int raised;
} moirai_interrupt;

/* Asks every search that was given `interrupt` to stop soon and keep its best. Atomic; safe in a signal handler.
 * Cannot be taken back: use a new one for the next search. */
MOIRAI_API void moirai_interrupt_raise(moirai_interrupt *interrupt);

/* Whether it has been raised; false for NULL. Atomic; cheap enough for inner loops. */
MOIRAI_API bool moirai_interrupt_raised(const moirai_interrupt *interrupt);

/* News of a running search; the library never prints. */
typedef struct moirai_progress {
    double seconds;         /* since the search began */
    char letter;            /* who found the plan: the key is moirai_placer.letters; ' ' if nobody */
    int64_t makespan_ns;    /* of the best plan; MOIRAI_UNKNOWN before the first */
    int64_t lower_bound_ns; /* the best proven; MOIRAI_UNKNOWN before the first */
    int64_t work;           /* nodes, rounds or evaluations done */
    const char *note;       /* one line, valid during the call, or NULL */
} moirai_progress;

/* Gets the news; called from any thread of the search, one at a time. It must not block for long: the search waits. */
typedef void (*moirai_progress_fn)(void *data, const moirai_progress *news);

typedef struct moirai_budget {
    double effort;                     /* counted work, 1 = normal; the same on every machine */
    double time_limit_s;               /* wall-clock seconds from the call; 0: none */
    int threads;                       /* 0: one per core */
    uint64_t seed;                     /* of random choices */
    const moirai_interrupt *interrupt; /* stop soon and keep the best once it is raised; or NULL. Not owned */
    moirai_progress_fn progress;       /* or NULL */
    void *progress_data;               /* handed to progress */
} moirai_budget;

/* Effort 1, no time limit, all cores, seed 1, no interrupt, no progress. */
MOIRAI_API void moirai_budget_init(moirai_budget *budget);

/* MOIRAI_EUSAGE with the values where one is negative, not a number, or an effort above 1e6; else 0. Whatever takes a
 * budget calls it first. */
MOIRAI_API int moirai_budget_check(const moirai_budget *budget);

#ifdef __cplusplus
}
#endif
#endif
