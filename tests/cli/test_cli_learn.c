/* The learnt placers as a user meets them: a library that the command loads when it is there. */
#include "support/check.h"
#include "support/command.h"

static void make_problem(void)
{
    assert_runs("$M problem gpt3-tiny --cluster inter-server -o problem.json");
}

static void need_library(void)
{
    if (!file_exists(MOIRAI_LEARN_LIBRARY))
        skip_because("built without OpenBLAS");
}

static void test_cli_learn_policies_are_saved_and_loaded(void **state)
{
    (void)state;
    need_library();
    make_problem();
    assert_runs("$M place problem.json --placer hrl --set episodes=1 --set save=policy.json -q -o a.json");
    assert_true(file_exists("policy.json"));
    assert_runs("$M place problem.json --placer hrl --load policy.json --set train=false -q -o b.json");
    assert_fails(3, "policy.json: a policy of placer 'hrl', not of 'placeto'",
                 "$M place problem.json --placer placeto --set load=policy.json -o c.json");
    assert_fails(2, "must not be empty", "$M place problem.json --placer placeto --set load= -o c.json");
    assert_false(file_exists("c.json"));
}

static void test_cli_learn_is_found_beside_the_command_and_among_the_libraries(void **state)
{
    (void)state;
    need_library();
    make_problem();
    assert_runs("env -u MOIRAI_LEARN_LIBRARY $M place problem.json --placer hrl --set episodes=1 -q -o a.json");
    assert_runs("mkdir -p there/bin there/bin/%s/moirai && cp $M there/bin && cp %s there/bin/%s/moirai",
                MOIRAI_BIN_TO_LIB, MOIRAI_LEARN_LIBRARY, MOIRAI_BIN_TO_LIB);
    assert_runs("cd there && env -u MOIRAI_LEARN_LIBRARY PATH=$PWD/bin:$PATH moirai place ../problem.json --placer hrl "
                "--set episodes=1 -q -o b.json");
}

/* The command alone: everything works but these two, which say what is missing. */
static void test_cli_learn_is_listed_and_missed_in_one_line(void **state)
{
    (void)state;
    make_problem();
    assert_runs("mkdir bin && cp $M bin");
    assert_runs("env -u MOIRAI_LEARN_LIBRARY bin/moirai placers");
    assert_contains(shell_out, "placeto    Placeto: a learnt policy");
    assert_contains(shell_out, "[off: libmoirai-learn.so is not here");
    assert_contains(shell_out, "episodes: ");
    assert_runs("env -u MOIRAI_LEARN_LIBRARY bin/moirai version");
    assert_contains(shell_out, "-learn\n");
    assert_fails(1, "placer 'hrl' is not available: libmoirai-learn.so is not here: it comes with ",
                 "env -u MOIRAI_LEARN_LIBRARY bin/moirai place problem.json --placer hrl -o a.json");
    assert_runs("env -u MOIRAI_LEARN_LIBRARY bin/moirai place problem.json --placer heft -o a.json");
    assert_fails(1, "MOIRAI_LEARN_LIBRARY",
                 "MOIRAI_LEARN_LIBRARY=nowhere.so $M place problem.json --placer hrl -o b.json");
}

static void test_cli_learn_refuses_what_is_no_such_library(void **state)
{
    (void)state;
    make_problem();
    write_text("text.so", "not a library, and long enough to have room for the header of one: 64 bytes at least");
    assert_fails(1, "text.so: ", "MOIRAI_LEARN_LIBRARY=./text.so $M place problem.json --placer hrl -o a.json");
    assert_fails(1, "is of version 0.0.0, libmoirai of ",
                 "MOIRAI_LEARN_LIBRARY=%s $M place problem.json --placer hrl -o a.json", MOIRAI_STAND_IN_LEARN);
    assert_false(file_exists("a.json"));
}

/* A BLAS maps tens of megabytes per thread when it is loaded, and one that gets none waits for ever at exit. */
static void test_cli_learn_is_no_burden_where_memory_is_short(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip_because("the sanitizer itself needs more memory");
#endif
    make_problem();
    assert_runs("ulimit -v 60000; timeout -k 1 60 $M place problem.json --time-limit 1 -o a.json");
    assert_true(file_exists("a.json"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_learn_policies_are_saved_and_loaded),
        IN_FOLDER(test_cli_learn_is_found_beside_the_command_and_among_the_libraries),
        IN_FOLDER(test_cli_learn_is_listed_and_missed_in_one_line),
        IN_FOLDER(test_cli_learn_refuses_what_is_no_such_library),
        IN_FOLDER(test_cli_learn_is_no_burden_where_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
