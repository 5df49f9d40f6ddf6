/* Certificates: a bound proven again, by code that knows nothing of how it was found (docs/certificate.md). Problem and
 * certificate are read from their files by a reader that nothing else uses. */
#ifndef MOIRAI_PROVE_H
#define MOIRAI_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include <moirai/budget.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_proof {
    int64_t proven_ns; /* what the certificate proves, recomputed */
    bool of_rate;      /* of the time between requests (the period), of which many are under way; else of one request */
    int32_t in_flight; /* of the period where at most so many are; 0: any number */
    int64_t certified_ns;   /* what it claims to prove */
    int64_t lower_bound_ns; /* what it says of the plan it came with, for people; nothing was proven of this number */
    int32_t cuts, classes;
    int64_t pairs, leaves;   /* looked at */
    int64_t floating;        /* operators that the proof leaves out */
    int64_t searched;        /* nodes of search trees that were walked */
    char problem_digest[24]; /* as the certificate has it; "" where it has none */
} moirai_proof;

/* Re-prove the bound of a certificate for the problem of that file in whole numbers. 0 if everything in it holds and
 * proves at least what it claims; MOIRAI_EVERIFY, with what is wrong, if not; MOIRAI_EINPUT if a file is malformed;
 * MOIRAI_ELIMIT if the budget's time limit or interrupt came first. `budget` may be NULL: no limit; its effort, threads
 * and seed mean nothing here. `problem` and `certificate` are paths. Time: one pricing per leaf, O(operators * K^2 *
 * steps); a certificate that asks for a table of more than 2 GiB is
 * refused: MOIRAI_EFAIL, as where memory is not there. */
MOIRAI_API int moirai_prove(moirai_proof *out, const char *problem, const char *certificate,
                            const moirai_budget *budget);

/* A file in memory; `label` stands for its path in messages. */
typedef struct moirai_prove_file {
    const char *text;
    size_t length;
    const char *label;
} moirai_prove_file;

/* The same for files in memory. */
MOIRAI_API int moirai_prove_text(moirai_proof *out, const moirai_prove_file *problem,
                                 const moirai_prove_file *certificate, const moirai_budget *budget);

#ifdef __cplusplus
}
#endif
#endif
