/* The commands place --certificate, prove and bound, as typed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yyjson.h>

#include "support/command.h"

static const char pair[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"pair\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_bytes\":100}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":["
    "{\"name\":\"in\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[],\"outputs\":[{\"name\":"
    "\"t\",\"bytes\":20}]},"
    "{\"name\":\"h0\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u0\",\"bytes\":5}]},"
    "{\"name\":\"h1\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u1\",\"bytes\":5}]},"
    "{\"name\":\"h2\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u2\",\"bytes\":5}]},"
    "{\"name\":\"out\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[\"u0\",\"u1\",\"u2\"],"
    "\"outputs\":[]}]}";

static void test_cli_prove_accepts_and_rejects(void **state)
{
    (void)state;
    write_text("p.json", pair);
    assert_runs("$M place p.json --certificate c.json -q");
    assert_runs("$M prove p.json c.json");
    assert_contains(shell_out, "no plan takes less than 220 ns");
    assert_runs("$M prove p.json c.json --json");
    assert_int_equal(yyjson_get_int(yyjson_obj_get(shell_json(), "proven_bound_ns")), 220);
    char *json = read_text("c.json"), *at = strstr(json, "\"certified_bound_ns\": 220");
    assert_non_null(at);
    memcpy(at, "\"certified_bound_ns\": 221", 25);
    write_text("d.json", json);
    assert_fails(6, "d.json", "$M prove p.json d.json");
    free(json);
    assert_fails(3, "p.json", "$M prove p.json p.json");
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o q.json");
    assert_fails(6, "c.json: belongs to another problem, 'pair', not to 'gpt3-tiny-inter-server'",
                 "$M prove q.json c.json");
    char *other = read_text("p.json"); /* the same name, other times */
    memcpy(strstr(other, "[10,null]"), "[20,null]", 9);
    write_text("r.json", other);
    free(other);
    write_text("claims.json", json = read_text("c.json"));
    memcpy(strstr(json, "\"operators\": 5"), "\"operators\": 6", 14);
    write_text("e.json", json);
    assert_fails(6, "e.json: belongs to another problem: its digest is ", "$M prove r.json e.json");
    free(json);
}

/* Why some of a bound has no proof is a line of its own. */
static void test_cli_prove_says_what_has_no_proof(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-330M --cluster inter-server -q -o large.json");
    assert_runs("$M place large.json --certificate c.json --time-limit 0.001 --threads 1 -q");
    assert_contains(shell_out, "\nuncertified  time limit of the verifier\n");
}

/* A file with the first number of this key raised by one. */
static void bump(const char *from, const char *key, const char *to)
{
    char *text = read_text(from), *at = strstr(text, key), out[16384];
    assert_non_null(at);
    at += strlen(key);
    char *end;
    long long number = strtoll(at, &end, 10);
    snprintf(out, sizeof out, "%.*s%lld%s", (int)(at - text), text, number + 1, end);
    write_text(to, out);
    free(text);
}

/* What share of a plan's bound is certified is the verifier's word on that plan, not the certificate's. */
static void test_cli_prove_of_a_plan(void **state)
{
    (void)state;
    write_text("p.json", pair);
    assert_runs("$M place p.json --certificate c.json -o plan.json");
    assert_contains(shell_out, "optimal (certified)");
    assert_runs("$M prove p.json c.json plan.json");
    assert_contains(shell_out, "certified: all of the plan's bound of 220 ns (220 ns)");
    assert_contains(shell_out, "optimal (certified)");
    bump("c.json", "\"lower_bound_ns\": ", "c2.json");
    assert_runs("$M prove p.json c2.json");
    assert_null(strstr(shell_out, "certified: all"));
    bump("plan.json", "\"lower_bound_ns\": ", "plan2.json");
    assert_fails(6, "plan2.json: is no plan of this problem", "$M prove p.json c.json plan2.json");
    char *other = read_text("p.json");
    memcpy(strstr(other, "[10,null]"), "[11,null]", 9);
    write_text("q.json", other);
    free(other);
    assert_runs("$M place q.json -o plan3.json -q");
    assert_fails(6, "plan3.json: is a plan of another problem: its digest is ", "$M prove p.json c.json plan3.json");
    assert_runs("$M place p.json -o plan4.json");
    assert_contains(shell_out, "optimal (searched)");
}

static void test_cli_bound_shows_every_bound(void **state)
{
    (void)state;
    write_text("p.json", pair);
    assert_runs("$M bound p.json --json");
    yyjson_val *root = shell_json(), *bound;
    assert_int_equal(yyjson_get_int(yyjson_obj_get(root, "lower_bound_ns")), 220);
    size_t i, max, best = 0;
    yyjson_arr_foreach(yyjson_obj_get(root, "bounds"), i, max, bound) {
        assert_true(yyjson_get_int(yyjson_obj_get(bound, "lower_bound_ns")) <= 220);
        best += yyjson_get_bool(yyjson_obj_get(bound, "best"));
    }
    assert_int_equal(best, 1);
    assert_runs("$M bound p.json --only load");
    assert_contains(shell_out, "load");
    assert_null(strstr(shell_out, "prices"));
    assert_fails(2, "no bound 'lode'", "$M bound p.json --only lode");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_prove_accepts_and_rejects, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_prove_says_what_has_no_proof, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_prove_of_a_plan, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bound_shows_every_bound, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
