/* Numbers with units, as files and command lines give them. */
#include "support/check.h"

static void test_units_are_exact(void **state)
{
    (void)state;
    int64_t v;
    assert_ok(moirai_parse_bytes(&v, "11GB"));
    assert_int_equal(v, 11000000000);
    assert_ok(moirai_parse_bytes(&v, "16GiB"));
    assert_int_equal(v, 17179869184);
    assert_ok(moirai_parse_bytes(&v, " 1.5 KiB"));
    assert_int_equal(v, 1536);
    assert_ok(moirai_parse_bytes(&v, "0.3B")); /* rounded down */
    assert_int_equal(v, 0);
    assert_ok(moirai_parse_bytes(&v, "9223372036854775807B"));
    assert_true(v == INT64_MAX);
    assert_ok(moirai_parse_rate(&v, "44.26Gbps"));
    assert_int_equal(v, 5532500000);
    assert_ok(moirai_parse_rate(&v, "5.5GB/s"));
    assert_int_equal(v, 5500000000);
    assert_ok(moirai_parse_rate(&v, "0.1Gbps")); /* a double would be off */
    assert_int_equal(v, 12500000);
    assert_ok(moirai_parse_duration(&v, "10us"));
    assert_int_equal(v, 10000);
    assert_ok(moirai_parse_duration(&v, "2.5ms"));
    assert_int_equal(v, 2500000);
    assert_ok(moirai_parse_duration(&v, "3 \xc2\xb5s"));
    assert_int_equal(v, 3000);
}

static void bad_unit(int (*parse)(int64_t *, const char *), const char *text, const char *expected)
{
    int64_t v = 42;
    assert_int_equal(parse(&v, text), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), expected);
    assert_int_equal(v, 42);
}

static void test_units_reject_nonsense(void **state)
{
    (void)state;
    bad_unit(moirai_parse_bytes, "16XB", "\"16XB\": unknown unit");
    bad_unit(moirai_parse_bytes, "16", "\"16\": the unit is missing (11GB, 16GiB)");
    bad_unit(moirai_parse_bytes, "-1GB", "\"-1GB\": must not be negative");
    bad_unit(moirai_parse_bytes, "", "\"\": expected a number with a unit (11GB, 16GiB)");
    bad_unit(moirai_parse_bytes, ".GB", "\".GB\": a number of at most 19 digits is expected");
    bad_unit(moirai_parse_bytes, "1.2.3GB", "\"1.2.3GB\": unknown unit");
    bad_unit(moirai_parse_bytes, "9223372036854775808B", "\"9223372036854775808B\": beyond 64 bits");
    bad_unit(moirai_parse_bytes, "99999999TB", "\"99999999TB\": beyond 64 bits");
    bad_unit(moirai_parse_bytes, "123456789012345678901234567890B",
             "\"123456789012345678901234567890B\": a number of at most 19 digits is expected");
    bad_unit(moirai_parse_rate, "5GB", "\"5GB\": unknown unit");
    bad_unit(moirai_parse_duration, "5 hours", "\"5 hours\": unknown unit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_exact),
        cmocka_unit_test(test_units_reject_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
