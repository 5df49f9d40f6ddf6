/* Problems at hand for the verifier, which reads files alone. */
#ifndef MOIRAI_TEST_PROVING_H
#define MOIRAI_TEST_PROVING_H

#include <moirai/problem.h>
#include <moirai/prove.h>

#include "prove/prove.h"

/* Puts a certificate to the verifier, without limits. */
int proving_text(moirai_proof *proof, const moirai_problem *p, const char *json, size_t length, const char *label);
/* The same of a file. */
int proving_file(moirai_proof *proof, const moirai_problem *p, const char *path);
/* The verifier's own view of the problem; false: it has none. Its operator i is p->topo[i]. */
bool proving_problem(prove_problem *out, const moirai_problem *p);

#endif
