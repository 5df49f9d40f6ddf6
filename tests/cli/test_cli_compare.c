/* The command compare, as typed: rows, formats, placers without a plan, Ctrl-C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yyjson.h>

#include "support/command.h"

/* a and c fit one device, b the other: no single device, no contiguous pieces. Device names want quoting. */
static const char apart[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"apart\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":8},{\"name\":\"B, \\\"big\\\"\",\"memory_bytes\":%s}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B, \\\"big\\\"\",\"bytes_per_second\":1000000000},"
    "{\"from\":\"B, \\\"big\\\"\",\"to\":\"A\",\"bytes_per_second\":1000000000}],\"ops\":["
    "{\"name\":\"a\",\"type\":\"T\",\"memory_bytes\":4,\"time_ns\":[10,10],\"inputs\":[],\"outputs\":[{\"name\":\"x\","
    "\"bytes\":3}]},"
    "{\"name\":\"b\",\"type\":\"T\",\"memory_bytes\":8,\"time_ns\":[10,10],\"inputs\":[\"x\"],\"outputs\":[{\"name\":"
    "\"y\",\"bytes\":3}]},"
    "{\"name\":\"c\",\"type\":\"T\",\"memory_bytes\":4,\"time_ns\":[10,10],\"inputs\":[\"y\"],\"outputs\":[]}]}";

static void write_apart(const char *bytes)
{
    char text[4096];
    snprintf(text, sizeof text, apart, bytes);
    write_text("apart.json", text);
}

static yyjson_val *row_of(yyjson_val *root, const char *name)
{
    size_t i, max;
    yyjson_val *row;
    yyjson_arr_foreach(yyjson_obj_get(root, "placers"), i, max, row)
        if (!strcmp(yyjson_get_str(yyjson_obj_get(row, "name")), name))
            return row;
    fail_msg("no row '%s'", name);
    return NULL;
}

static int64_t whole(yyjson_val *o, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(o, key));
}

static const char *text(yyjson_val *o, const char *key)
{
    return yyjson_get_str(yyjson_obj_get(o, key));
}

static void test_compare_shows_every_placer(void **state)
{
    (void)state;
    assert_runs("$M placers --json");
    size_t there = yyjson_arr_size(yyjson_obj_get(shell_json(), "placers"));
    assert_true(there >= 10);
    assert_runs("$M compare inception-tiny -c inter-server --time-limit 2 --effort 0.05 -q --json");
    yyjson_val *root = shell_json(), *row;
    size_t i, max, best = 0;
    int64_t least = INT64_MAX, bound = whole(root, "lower_bound_ns");
    yyjson_arr_foreach(yyjson_obj_get(root, "placers"), i, max, row)
        if (!strcmp(text(row, "status"), "found"))
            least = whole(row, "makespan_ns") < least ? whole(row, "makespan_ns") : least;
    assert_true(max <= there && max >= there - 3); /* what is not built in is left out */
    assert_true(bound > 0 && bound <= least);
    yyjson_arr_foreach(yyjson_obj_get(root, "placers"), i, max, row) {
        int64_t makespan = whole(row, "makespan_ns");
        best += yyjson_get_bool(yyjson_obj_get(row, "best"));
        if (strcmp(text(row, "status"), "found"))
            continue;
        assert_true(yyjson_get_bool(yyjson_obj_get(row, "best")) <= (makespan == least));
        assert_true(whole(row, "process_bytes") > 1000000 && whole(row, "lower_bound_ns") <= bound);
        double longer = (double)(makespan - least) / (double)least, gap = (double)(makespan - bound) / (double)makespan;
        assert_true(yyjson_get_real(yyjson_obj_get(row, "longer")) == longer);
        assert_true(yyjson_get_real(yyjson_obj_get(row, "gap")) == gap);
        assert_int_equal(yyjson_arr_size(yyjson_obj_get(row, "devices")), 4);
    }
    assert_int_equal(best, 1);
}

/* The same numbers as `place` gives. */
static void test_compare_agrees_with_place(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny -c inter-server -q -o p.json");
    assert_runs("$M compare p.json --placers heft,random --seed 7 --json -q");
    int64_t heft = whole(row_of(shell_json(), "heft"), "makespan_ns"),
            random = whole(row_of(shell_json(), "random"), "makespan_ns");
    int64_t sent = whole(row_of(shell_json(), "random"), "transfer_bytes");
    assert_runs("$M place p.json --placer heft --seed 7 --json");
    assert_int_equal(whole(shell_json(), "makespan_ns"), heft);
    assert_runs("$M place p.json --placer random --seed 7 --json");
    assert_int_equal(whole(shell_json(), "makespan_ns"), random);
    assert_int_equal(whole(shell_json(), "transfer_bytes"), sent);
}

static void test_compare_has_a_row_for_placers_without_a_plan(void **state)
{
    (void)state;
    write_apart("8");
    assert_runs("$M compare apart.json --placers single,chain,heft -q");
    assert_contains(shell_out, "no plan  single: no single device will do");
    assert_contains(shell_out, "no plan  chain: no split");
    assert_runs("$M compare apart.json --placers single,heft --json -q");
    assert_string_equal(text(row_of(shell_json(), "single"), "status"), "no plan");
    assert_string_equal(text(row_of(shell_json(), "heft"), "status"), "found");
    write_apart("7");
    assert_fails(4, "none of 2 placers found a plan", "$M compare apart.json --placers single,heft -q");
    assert_contains(shell_out, "no plan");
}

/* Quotes are balanced, and every line has the header's number of fields. */
static int fields(const char *line, size_t length)
{
    int n = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        quoted ^= line[i] == '"';
        n += line[i] == ',' && !quoted;
    }
    assert_false(quoted);
    return n;
}

/* Placers for up to 64 devices have a row that says so; the others are compared. */
static void test_compare_goes_on_beyond_what_a_placer_takes(void **state)
{
    (void)state;
    assert_runs("$M compare inception-tiny -c '65x v100 10Gbps 5us' --placers getf,heft,exact -q --json");
    yyjson_val *root = shell_json();
    assert_string_equal(text(row_of(root, "getf"), "status"), "failed");
    assert_non_null(strstr(text(row_of(root, "exact"), "message"), "up to 64 devices"));
    assert_string_equal(text(row_of(root, "heft"), "status"), "found");
}

static void test_compare_writes_csv(void **state)
{
    (void)state;
    write_apart("8");
    assert_runs("$M compare apart.json --placers single,heft,chain --csv -q");
    int lines = 0, wide = fields(shell_out, strcspn(shell_out, "\n"));
    assert_int_equal(wide, 13);
    assert_contains(shell_out, "\"held_bytes B, \"\"big\"\"\"");
    assert_contains(shell_out, "\nheft,found,36,0.000000,");
    for (const char *at = shell_out; *at; lines++) {
        size_t length = strcspn(at, "\n");
        assert_int_equal(fields(at, length), wide);
        at += length + 1;
    }
    assert_int_equal(lines, 4);
}

static void test_compare_takes_settings(void **state)
{
    (void)state;
    write_apart("8");
    assert_runs("$M compare apart.json --placers sequential,sequential:order=given --json -q");
    assert_string_equal(text(row_of(shell_json(), "sequential:order=given"), "status"), "found");
    assert_fails(2, "is none of fastest|given", "$M compare apart.json --placers sequential:order=best -q");
    assert_fails(2, "write NAME:SETTING=VALUE", "$M compare apart.json --placers sequential:order -q");
    assert_fails(2, "no placer 'hefd': did you mean 'heft'?", "$M compare apart.json --placers hefd -q");
    assert_fails(2, "a name is empty", "$M compare apart.json --placers heft,,single -q");
    assert_fails(2, "not both", "$M compare apart.json --csv --json -q 1>/dev/null");
    assert_fails(2, "--cluster", "$M compare gpt3-tiny -q");
}

/* Interrupted while a placer searches: that one's best and all before it are there, the rest was not run. */
static void test_compare_keeps_what_is_done(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-mini -c inter-server -q -o p.json");
    assert_runs("timeout --foreground --preserve-status -s INT 3 $M compare p.json --placers heft,moirai,m-topo,single "
                "--time-limit 300 --gap 0 --effort 1000 --json -q");
    yyjson_val *root = shell_json();
    assert_string_equal(text(row_of(root, "heft"), "status"), "found");
    assert_string_equal(text(row_of(root, "moirai"), "status"), "stopped");
    assert_true(whole(row_of(root, "moirai"), "makespan_ns") > 0);
    assert_string_equal(text(row_of(root, "m-topo"), "status"), "not run");
    assert_string_equal(text(row_of(root, "single"), "status"), "not run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compare_shows_every_placer, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_agrees_with_place, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_has_a_row_for_placers_without_a_plan, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_goes_on_beyond_what_a_placer_takes, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_writes_csv, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_takes_settings, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compare_keeps_what_is_done, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
