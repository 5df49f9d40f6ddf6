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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_sure_plan_has_an_interval, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
