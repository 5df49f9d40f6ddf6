/* Two verifiers, one in C and one in Python that shares nothing with it, on the same certificates: those of random
 * problems of every flow and congestion on three to six devices, by all kinds of proof, and the same with one to four
 * things changed. Where one says that a bound is proven the other proves the same. */
#include <unistd.h>

#include "support/check.h"
#include "support/false_bound.h"
#include "support/proving.h"
#include "support/random_layers.h"
#include "support/random_problem.h"
#include "support/scale.h"

#define PROBLEMS TEST_SHARE(60)

/* What the tests have put to the verifier since the dossier was opened, put to the other one. */
static void other_verifier_agrees(const char *dossier)
{
    char command[1024];
    snprintf(command, sizeof command, "python3 %s/tests/verify/check_certificate.py --dossier %s", MOIRAI_SOURCE_DIR,
             dossier);
    int status = system(command);
    if (status)
        fail_msg("the verifiers disagree, or one did not run: %d", status);
}

static void test_prove_two_verifiers_agree_on_random_problems(void **state)
{
    (void)state;
    char *dossier = temporary_path("dossier.txt"), why[256];
    false_bound_counts counts = {.pair_every = 16, .quick = true};
    unlink(dossier);
    setenv("MOIRAI_DOSSIER", dossier, 1);
    for (uint64_t seed = 0; seed < (uint64_t)PROBLEMS; seed++) {
        random_spec spec = random_spec_draw(7000 + seed, 6);
        spec.n_devices = 3 + (int)(seed % 4);
        spec.flow = seed / 4 % 2 ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR;
        spec.congestion = (moirai_congestion)(seed % 4);
        counts.quick = seed % 4 != 0; /* else bytes have prices as well */
        moirai_problem *p = seed % 5 ? random_problem(&spec) : random_layers(seed, 7);
        if (p && !false_bound_check(p, seed, &counts, why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        moirai_problem_free(p);
    }
    unsetenv("MOIRAI_DOSSIER");
    other_verifier_agrees(dossier);
    unlink(dossier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prove_two_verifiers_agree_on_random_problems)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
