/* Windows: falsehoods that one wrong line of the verifier would believe, each small enough to check on paper.
 * What is accepted is put beside the optimum (support/false_certificate.h). */
#include "support/check.h"
#include "support/false_certificate.h"
#include "support/tiny.h"

/* v is fast on one device, whichever that is. */
static void test_prove_false_windows_tails_see_every_device(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        char text[128];
        snprintf(text, sizeof text, "device A 9\ndevice B 9\ndevice C 9\nop u 1,1,1 > a:0\nop v %d,%d,%d a\n",
                 k == 0 ? 1 : 100, k == 1 ? 1 : 100, k == 2 ? 1 : 100);
        moirai_problem *p = tiny_problem(text);
        assert_int_equal(false_certificate_proves(p, "\"cuts\": [], \"block_class\": [0], \"classes\": [{}], "
                                                     "\"windows\": {\"intervals\": [{\"entry\": 0, \"exit\": 1}, "
                                                     "{\"entry\": 0}, {\"exit\": 1}]}"),
                         2);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_false_windows_tails_see_every_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
