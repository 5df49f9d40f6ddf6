#include "support/false_certificate.h"

#include <moirai/prove.h>

#include "support/check.h"
#include "support/false_bound.h"
#include "support/proving.h"

static int prove(moirai_proof *proof, const moirai_problem *p, const char *body)
{
    static char text[16384];
    int n = snprintf(text, sizeof text,
                     "{\"format\": \"moirai-certificate\", \"version\": 1, \"operators\": %d, %s, "
                     "\"lower_bound_ns\": 9223372036854775807, \"certified_bound_ns\": 0}",
                     p->n_ops, body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    return proving_text(proof, p, text, (size_t)n, "c.json");
}

int64_t false_certificate_proves(const moirai_problem *p, const char *body)
{
    moirai_proof proof;
    assert_ok(prove(&proof, p, body));
    int64_t optimum = false_bound_optimum(p);
    assert_true(optimum >= 0);
    if (proof.proven_ns > optimum)
        fail_msg("%lld ns are proven, the optimum is %lld", (long long)proof.proven_ns, (long long)optimum);
    return proof.proven_ns;
}

bool false_certificate_holds(const moirai_problem *p, const char *body)
{
    moirai_proof proof;
    return !prove(&proof, p, body);
}

void false_certificate_rejected(const moirai_problem *p, const char *body, const char *says)
{
    moirai_proof proof;
    int rc = prove(&proof, p, body);
    if (!rc)
        fail_msg("accepted: %lld ns, the optimum is %lld", (long long)proof.proven_ns,
                 (long long)false_bound_optimum(p));
    assert_int_equal(rc, MOIRAI_EVERIFY);
    if (!strstr(moirai_error_message(), says))
        fail_msg("it says '%s', not '%s'", moirai_error_message(), says);
}

const char *false_certificate_between(const moirai_problem *p, int a, int z, const char *kinds, const char *proof)
{
    static char body[12288];
    int n = snprintf(body, sizeof body,
                     "\"cuts\": [0, %d], \"block_class\": [0, 1, 2], \"classes\": [{}, {%s, \"pairs\": ["
                     "{\"entry\": %d, \"exit\": %d, \"lower_ns\": 0, %s}]}, {}]",
                     p->n_ops - 1, kinds, a, z, proof);
    assert_true(n > 0 && (size_t)n < sizeof body);
    return body;
}

const char *false_certificate_whole(const char *kinds, const char *proof)
{
    static char body[12288];
    int n = snprintf(body, sizeof body,
                     "\"cuts\": [], \"block_class\": [0], \"classes\": [{%s, \"pairs\": ["
                     "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 0, %s}]}]",
                     kinds, proof);
    assert_true(n > 0 && (size_t)n < sizeof body);
    return body;
}
