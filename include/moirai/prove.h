/* Certificates: a bound proven again, by code that knows nothing of how it was found (docs/certificate.md). */
#ifndef MOIRAI_PROVE_H
#define MOIRAI_PROVE_H

#include <moirai/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_proof {
    int64_t proven_ns;    /* what the certificate proves, recomputed */
    int64_t certified_ns; /* what it claims to prove */
    int64_t
        lower_bound_ns; /* of the plan it came with; above certified_ns where part of the search left no proof behind */
    int32_t cuts, classes;
    int64_t pairs, leaves; /* looked at */
    int64_t floating;      /* operators that the proof leaves out */
    int64_t intervals;     /* behind windows */
    int64_t searched;      /* nodes of search trees that were walked */
} moirai_proof;

/* Re-prove the bound of the certificate for this problem in whole numbers. 0 if everything in it holds and proves at
 * least what it claims; MOIRAI_EVERIFY, with what is wrong, if not; MOIRAI_EINPUT if the file is not a certificate at
 * all. Time: one pricing per leaf, O(operators * K^2 * steps). */
MOIRAI_API int moirai_prove(moirai_proof *out, const moirai_problem *p, const char *path);
/* The same for a certificate in memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_prove_text(moirai_proof *out, const moirai_problem *p, const char *json, size_t length,
                                 const char *label);

#ifdef __cplusplus
}
#endif
#endif
