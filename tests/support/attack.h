/* An enemy's certificates: an honest one, changed in every way that its format allows. */
#ifndef MOIRAI_TEST_ATTACK_H
#define MOIRAI_TEST_ATTACK_H

#include <moirai/problem.h>

typedef struct attack_counts {
    int64_t tried, accepted;
} attack_counts;

/* `n` certificates made of `json` by changing one to four things of its part `part` ("memory", "classes"): numbers to
 * others, to their neighbours and to extremes; lists cut, doubled, swapped; keys taken away. The claims are lowered to
 * 0 first, so that what is accepted is accepted for its proof alone. False, with a line in `why` (256 bytes), if one
 * proves more than `optimum`; the certificate is then in the file `keep`, if that is not NULL. */
bool attack_certificate(const moirai_problem *p, const char *json, size_t length, const char *part, int64_t optimum,
                        uint64_t seed, int n, attack_counts *counts, const char *keep, char *why);

#endif
