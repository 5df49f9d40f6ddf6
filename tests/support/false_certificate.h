/* Certificates of falsehoods, written by hand: each would be believed if one line of the verifier were wrong. */
#ifndef MOIRAI_TEST_FALSE_CERTIFICATE_H
#define MOIRAI_TEST_FALSE_CERTIFICATE_H

#include <moirai/problem.h>

/* `body` is what a certificate says of cuts, classes and so on; it claims nothing. Accepted: what it proves, which is
 * no more than the optimum (exhaustive search). Fails the test where it is not accepted. */
int64_t false_certificate_proves(const moirai_problem *p, const char *body);
/* Whether it is accepted, whatever it proves. */
bool false_certificate_holds(const moirai_problem *p, const char *body);
/* Fails the test unless it is rejected with these words in the message. */
void false_certificate_rejected(const moirai_problem *p, const char *body, const char *says);

/* The body with one pair, from device `a` to device `z`, of the block between the cuts `in` and `out`, which are the
 * first and the last operator of the problem; `kinds` is "\"component_kind\": [...], \"trees\": [...]" and what else
 * belongs to the class, `proof` the keys of the pair. A static buffer. */
const char *false_certificate_between(const moirai_problem *p, int a, int z, const char *kinds, const char *proof);
/* The same of the whole as one block without cuts. */
const char *false_certificate_whole(const char *kinds, const char *proof);

#endif
