/* `plan` says how sure its speed-up is, and nothing of that where all times were measured. */
#include "support/check.h"
#include "support/command.h"

static void test_cli_sure_plan_has_an_interval(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --placer heft");
    assert_contains(shell_out, " times as fast (");
    assert_contains(shell_out, " to ");
    assert_runs("$M plan gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --placer heft --json -q");
    assert_contains(shell_out, "\"speed_up_low\"");
    assert_contains(shell_out, "\"speed_up_high\"");
    assert_contains(shell_out, "\"most_wanted\"");
    assert_contains(shell_out, "\"doubt\"");
}

/* What to measure first is a class on a device, for networks that nobody can run here; where the verdict hangs on
 * errors, `plan` says so and names it. */
static void test_cli_sure_names_what_is_wanted(void **state)
{
    (void)state;
    assert_runs("$M profile gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --most-wanted");
    assert_contains(shell_out, "class ");
    assert_contains(shell_out, "linear");
    assert_contains(shell_out, "v100");
    assert_runs("$M plan gpt3-tiny --cluster '1x l4, 1x rtx3060, 100Gbps 2us' --placer heft --runtime tensorrt");
    assert_contains(shell_err, "hangs on the error of predicted times");
    assert_contains(shell_err, "most of all class linear on l4");
    assert_fails(2, "measures and writes nothing",
                 "$M profile gpt3-tiny --cluster '2x v100' --most-wanted -o out.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_sure_plan_has_an_interval, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_sure_names_what_is_wanted, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
