/* The certificate of a period: the prices and messages of the relaxation, which hold for any number of requests in flight
 * and any mixture of plans (docs/theory.md). What turns of few requests add to the bound is not in it. */
#include <moirai/prove.h>

#include <stdlib.h>

#include "rate/search.h"
#include "util/util.h"

#define VERIFY_SHARE 0.06 /* of the time limit, for the verifier */

/* From the file as it was written. One that proves more than a plan has would be false. */
static int verify(rate_search *x)
{
    const char *path = x->o->certificate_path;
    char *problem = NULL, *certificate = NULL;
    moirai_proof proof = {0};
    moirai_prove_file files[] = {{.label = x->p->name}, {.label = path}};
    moirai_budget budget = x->o->budget;
    budget.time_limit_s *= VERIFY_SHARE;
    int rc = moirai_problem_text(&problem, &files[0].length, x->p);
    rc = rc ? rc : util_file_read(&certificate, &files[1].length, path);
    if (!rc) {
        files[0].text = problem;
        files[1].text = certificate;
        rc = moirai_prove_text(&proof, &files[0], &files[1], &budget);
        x->certified_ns = rc ? 0 : proof.proven_ns;
        rc = rc == MOIRAI_ELIMIT ? 0 : rc; /* no time to verify it all: nothing counts as certified */
    }
    if (!rc && x->best && x->certified_ns > x->best->outcome.period_ns)
        rc = moirai_error(MOIRAI_EFAIL, "%s proves a period of %lld ns, but there is a plan of %lld", path,
                          (long long)x->certified_ns, (long long)x->best->outcome.period_ns);
    free(problem);
    free(certificate);
    return rc;
}

int rate_certify(rate_search *x)
{
    const relax_proof *proof = &x->relaxed.proof;
    if (!x->o->certificate_path)
        return 0;
    if (proof->n_leaves == 0)
        return moirai_error(MOIRAI_ELIMIT, "no certificate of the period of '%s': prices on loads had no proof in time",
                            x->p->name);
    relax_certificate from = {.p = x->p,
                              .rate = proof,
                              .proven_ns = proof->proven_ns,
                              .lower_bound_ns = UTIL_MAX(x->bound_ns, proof->proven_ns)};
    int rc = relax_certificate_write(&from, x->o->certificate_path);
    return rc ? rc : verify(x);
}
