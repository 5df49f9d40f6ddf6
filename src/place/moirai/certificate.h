/* The proof behind a bound, for `moirai prove`. */
#ifndef MOIRAI_CERTIFICATE_H
#define MOIRAI_CERTIFICATE_H

#include "place/moirai/memory.h"
#include "place/moirai/spine.h"
#include "util/json.h"

typedef struct moirai_certify_task {
    int64_t goal_ns; /* the plan's bound: no need for more */
    int32_t levels;  /* 0: all */
    double effort;
    int threads;
    uint64_t seed;
    moirai_stop stop;
} moirai_certify_task;

/* Raises by prices what was proven otherwise, where the certified bound hangs on it, until the goal is reached or the
 * levels are used up. Opens pairs as needed. */
int moirai_certify(moirai_chain *c, const moirai_certify_task *job);
/* What a certificate is made from. */
typedef struct moirai_certificate {
    const moirai_chain *c;
    moirai_memory_prices *memory; /* settled, or NULL */
    const moirai_spine *spine;    /* the chain is that of its problem; NULL: of the whole */
    int64_t lower_bound_ns;       /* of the plan, whoever proved it */
} moirai_certificate;

/* Writes format moirai-certificate, version 1. */
int moirai_certificate_write(const moirai_certificate *from, const char *path);
/* The same as text; free() it. NULL if memory runs out. */
char *moirai_certificate_text(const moirai_certificate *from, size_t *length);

/* The part about bytes, at the settled prices: *bound_ns gets what it proves. */
int moirai_certificate_memory(moirai_writer *w, const moirai_chain *c, moirai_memory_prices *m, int64_t *bound_ns);
/* A case of a pair and, where it has them, its prices. */
void moirai_certificate_leaf(moirai_writer *w, const moirai_pair *x, int32_t sending, int32_t n_counts,
                             const moirai_count *count, const moirai_proof_prices *proof);

#endif
