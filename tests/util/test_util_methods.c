/* Methods that can be switched off: their names, sets of them, and that a stop carries a set to its parts. */
#include <string.h>

#include "support/check.h"
#include "util/methods.h"
#include "util/stop.h"

static void test_util_methods_have_names_of_their_own(void **state)
{
    (void)state;
    for (int i = 0; i < UTIL_N_METHODS; i++) {
        util_method_set set;
        assert_int_equal(util_methods_parse(&set, util_method_name(i)), 0);
        assert_true(set == UINT64_C(1) << i);
        assert_true(strlen(util_method_what(i)) > 0);
    }
}

static void test_util_methods_sets_are_lists(void **state)
{
    (void)state;
    util_method_set set;
    assert_int_equal(util_methods_parse(&set, NULL), 0);
    assert_true(set == 0);
    assert_int_equal(util_methods_parse(&set, "shifts,layers"), 0);
    assert_true(set == (UINT64_C(1) << UTIL_METHOD_SHIFTS | UINT64_C(1) << UTIL_METHOD_LAYERS));
}

static void test_util_methods_unknown_names_are_told(void **state)
{
    (void)state;
    util_method_set set;
    static const char *const wrong[] = {"shift", "shi", "shifts, layers", ",", "shifts,,layers"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(util_methods_parse(&set, wrong[i]), MOIRAI_EUSAGE);
        assert_non_null(strstr(moirai_error_message(), "there are starts, exact,"));
    }
}

static void test_util_methods_go_with_a_part_of_the_time(void **state)
{
    (void)state;
    moirai_budget b;
    moirai_budget_init(&b);
    util_stop stop = util_stop_of(&b);
    assert_false(util_off(&stop, UTIL_METHOD_SHIFTS));
    stop.off = UINT64_C(1) << UTIL_METHOD_SHIFTS;
    util_stop part = util_stop_within(&stop, 1);
    assert_true(util_off(&part, UTIL_METHOD_SHIFTS));
    assert_false(util_off(&part, UTIL_METHOD_LAYERS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_util_methods_have_names_of_their_own),
        cmocka_unit_test(test_util_methods_sets_are_lists),
        cmocka_unit_test(test_util_methods_unknown_names_are_told),
        cmocka_unit_test(test_util_methods_go_with_a_part_of_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
