/* moirai tune as a user types it, on a small network: what it keeps was run and is no slower than one device; devices
 * that share something are never used together; budget and Ctrl-C end it with the best so far. Times themselves are
 * never judged. */
#include "support/check.h"
#include "support/command.h"
#include "support/scale.h"

#include <math.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>

#include "util/util.h"

#define TWO(a, b) \
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"here\", \"devices\": [" \
    "{\"name\": \"A\", \"memory\": \"1GB\", \"ep\": \"cpu\"" a "}, " \
    "{\"name\": \"B\", \"memory\": \"1GB\", \"ep\": \"xnnpack\"" b "}], " \
    "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"8Gbps\", \"both\": true}]}"

static int enter(void **state)
{
    int rc = enter_folder(state);
    if (!rc && shell("$M zoo gpt3-tiny --onnx m.onnx"))
        return -1;
    return rc;
}

static int64_t number(const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(shell_json(), key));
}

static bool flag(const char *key)
{
    return yyjson_get_bool(yyjson_obj_get(shell_json(), key));
}

static const char *text(const char *key)
{
    return yyjson_get_str(yyjson_obj_get(shell_json(), key));
}

/* Every run of the plan that is kept. */
static yyjson_val *kept_passes(void)
{
    static const char *const lists[] = {"alone", "rounds"};
    size_t i, n;
    yyjson_val *x, *said = shell_json(); /* once: the next call frees what this one gave */
    const char *kept = yyjson_get_str(yyjson_obj_get(said, "kept"));
    for (int k = 0; k < 2; k++) {
        yyjson_arr_foreach(yyjson_obj_get(said, lists[k]), i, n, x) {
            if (!strcmp(yyjson_get_str(yyjson_obj_get(x, "name")), kept))
                return yyjson_obj_get(x, "passes_ns");
        }
    }
    return NULL;
}

#define WORDS "tune m.onnx -c c.json --cache times --probe-seconds 0.2 --warmup 1 --plan-limit 0.3 "
#define TUNE "timeout 600 $M " WORDS "--runs 3 --run-seconds 0 --passes 2 "

static void test_tune_keeps_the_fastest_that_was_measured(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code = shell(TUNE "--rounds 2 --work w -o plan.json --cluster-out links.json --graph-out graph.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "alone")), 2);
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "machine")), 1);
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "rounds")), number("n_rounds"));
    assert_true(number("measured_ns") > 0 && number("measured_ns") <= number("best_alone_ns"));
    /* After the first run two passes of two halves: 1 and 3 taught the model, 2 and 4 judged it, and nothing else. The
     * model predicts what it was taught. */
    yyjson_val *passes = kept_passes();
    assert_int_equal(yyjson_arr_size(passes), 5);
    int64_t taught = yyjson_get_sint(yyjson_arr_get(passes, 1)) + yyjson_get_sint(yyjson_arr_get(passes, 3));
    int64_t judged = yyjson_get_sint(yyjson_arr_get(passes, 2)) + yyjson_get_sint(yyjson_arr_get(passes, 4));
    assert_true(llabs(2 * number("judged_ns") - judged) <= 1);
    if (llabs(2 * number("predicted_ns") - taught) > taught / 100)
        fail_msg("predicted %lld, taught %lld", (long long)number("predicted_ns"), (long long)taught / 2);
    assert_true(flag("machine_is_faster") == (number("machine_ns") < number("measured_ns")));
    assert_true(flag("split_pays") == (number("transfers") > 0));
    const char *verdict = flag("split_pays") ? "times as fast" : "NO SPLIT"; /* a text lasts until the next question */
    assert_contains(text("verdict"), verdict);
    /* What is kept is a plan like any other, and the files on the way can be used by hand. */
    assert_runs("timeout 600 $M run plan.json m.onnx -c c.json --runs 2 --verify");
    assert_runs("$M plan graph.json -c links.json --rules none --placer single");
    assert_int_equal(access("w/profile.json", R_OK), 0);
    /* A second time into the same files needs --force. */
    assert_int_not_equal(shell(TUNE "-o plan.json"), 0);
    assert_contains(shell_err, "--force");
}

static void test_tune_never_uses_devices_that_share_cores_together(void **state)
{
    (void)state;
    write_text("c.json", TWO(", \"cores\": \"0\"", ", \"cores\": \"0\""));
    int code = shell(TUNE "--rounds 3 -o plan.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_contains(shell_err, "devices 'A' and 'B' SHARE cores");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "shared_devices")), 1);
    assert_int_equal(number("n_rounds"), 0);
    assert_false(flag("split_pays"));
    assert_contains(text("stopped"), "no two devices can work at the same time");
    assert_contains(text("kept"), " alone");
}

static void test_tune_ends_with_its_budget(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code = shell(TUNE "--time-limit 1 -o plan.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    /* A split is run in any case, unless the model knows of none that is faster: "no split pays" is nobody's guess. */
    assert_int_equal(number("n_rounds"), !strcmp(text("stopped"), "the time was over"));
    if (!number("n_rounds"))
        assert_string_equal(text("stopped"), "by what was measured none is faster than one device");
    assert_true(number("measured_ns") > 0);
}

/* Once both devices have run, Ctrl-C keeps what is best by then. */
static void test_tune_keeps_the_best_on_interrupt(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code = shell("$M " WORDS "--time-limit none --rounds 32 --runs 200 --work w -o plan.json --json & pid=$!; "
                     "for i in $(seq 1000); do [ -f w/run-alone-1.json ] && break; sleep 0.1; done; "
                     "kill -INT $pid; wait $pid");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_true(number("measured_ns") > 0);
    assert_int_equal(access("plan.json", R_OK), 0);
}

/* A cut network is profiled, planned for, run, verified against the model as it is, and kept only if it was faster. */
static void test_tune_measures_a_cut_network(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    write_text("cut.txt", "*/mlp: whole; L?/mlp: 2:3 # the feed-forward blocks\n");
    int code = shell(TUNE "--rounds 1 --split-operators cut.txt --cut-out cut.onnx --work w -o plan.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_string_equal(text("cut_verdict"), "as the file says");
    assert_true(number("cuts_profiled") == 1 && number("best_cut_ns") > 0);
    assert_true(number("measured_ns") <= number("best_alone_ns"));
    bool kept = flag("cut_kept");
    assert_true((access("cut.onnx", R_OK) == 0) == kept);
    assert_runs("$M plan w/cut-1-profile.json -c c.json --rules none --placer single -o whole-cut.json");
    assert_runs("timeout 60 $M run whole-cut.json w/cut-1.onnx -c c.json --runs 1 --verify --against m.onnx");
    assert_int_equal(shell("$M run whole-cut.json w/cut-1.onnx -c c.json --against m.onnx"), 2);
    assert_contains(shell_err, "--against needs --verify");
    write_text("bad.txt", "L0/mlp: 1,2");
    assert_int_equal(shell("$M tune m.onnx -c c.json --split-operators bad.txt"), 2);
    assert_contains(shell_err, "the sizes add up to 3 columns, it has 256");
}

static void test_tune_refuses_what_it_can_not_run(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    assert_int_equal(shell("$M tune gpt3-tiny -c c.json"), 2);
    assert_contains(shell_err, "no ONNX file");
    assert_int_equal(shell("$M tune m.onnx"), 2);
    assert_contains(shell_err, "--cluster");
    assert_int_equal(shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $M tune m.onnx -c c.json"), 2);
    assert_contains(shell_err, "without mpirun");
}

/* ---- many requests ---- */

static void test_tune_rate_keeps_what_served_most(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code = shell(TUNE "--objective rate --in-flight 3 --rounds 1 -o plan.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    yyjson_val *x, *said = shell_json(), *all = yyjson_obj_get(said, "rounds");
    int64_t measured = yyjson_get_sint(yyjson_obj_get(said, "measured_ns")), least = INT64_MAX;
    unsigned seen = 0;
    size_t i, n;
    static const char *const kinds[] = {"alone", "latency", "stages", "replicas", "any"};
    yyjson_arr_foreach(all, i, n, x) {
        least = UTIL_MIN(least, yyjson_get_sint(yyjson_obj_get(x, "measured_ns")));
        assert_true(yyjson_arr_size(yyjson_obj_get(x, "passes_ns")) >= 2);
        for (unsigned k = 0; k < 5; k++)
            seen |= !strcmp(yyjson_get_str(yyjson_obj_get(x, "kind")), kinds[k]) ? 1u << k : 0;
    }
    /* One may be the same plan as another, and is then run once. */
    assert_true(n >= 3 && n <= 6 && (seen & 1));
    assert_int_equal(measured, least);
    assert_true(fabs(yyjson_get_num(yyjson_obj_get(said, "rate_per_s")) * (double)measured / 1e9 - 1) < 1e-9);
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(said, "in_flight")), 3);
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(said, "n_passes")), 2);
    assert_contains(yyjson_get_str(yyjson_obj_get(said, "verdict")), "requests per second");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(said, "alone")), 2);
    assert_runs("timeout 600 $M run plan.json m.onnx -c c.json --runs 2 --in-flight 3 --verify");
}

static void test_tune_rate_ends_with_its_budget(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code = shell(TUNE "--objective rate --time-limit 1 -o plan.json --json");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_int_equal(number("n_rounds"), 1); /* what is kept was measured */
    assert_int_equal(number("n_passes"), 0);
    assert_string_equal(text("stopped"), "the time was over");
    assert_true(number("measured_ns") > 0);
}

/* Once two plans have run, Ctrl-C keeps the better one. */
static void test_tune_rate_keeps_the_best_on_interrupt(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    int code =
        shell("$M " WORDS "--objective rate --time-limit none --runs 3 --run-seconds 0 --work w -o plan.json --json & "
              "pid=$!; for i in $(seq 1000); do [ -f w/run-rate-2.json ] && break; sleep 0.1; done; "
              "kill -INT $pid; wait $pid");
    if (code)
        fail_msg("exit code %d: %s", code, shell_err);
    assert_true(number("measured_ns") > 0 && number("n_rounds") >= 1);
    assert_string_equal(text("stopped"), "Ctrl-C");
    assert_int_equal(access("plan.json", R_OK), 0);
}

static void test_tune_rate_what_does_not_go_together(void **state)
{
    (void)state;
    write_text("c.json", TWO("", ""));
    assert_fails(2, "--in-flight is for --objective rate", "$M tune m.onnx -c c.json --in-flight 2");
    assert_fails(2, "--split-operators is for --objective latency",
                 "$M tune m.onnx -c c.json --objective rate --split-operators auto");
    assert_fails(2, "has a search of its own, not --placer 'heft'",
                 "$M tune m.onnx -c c.json --objective rate --placer heft");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tune_keeps_the_fastest_that_was_measured, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_keeps_the_best_on_interrupt, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_rate_keeps_the_best_on_interrupt, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_rate_what_does_not_go_together, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_refuses_what_it_can_not_run, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_never_uses_devices_that_share_cores_together, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_ends_with_its_budget, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_measures_a_cut_network, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_rate_keeps_what_served_most, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_tune_rate_ends_with_its_budget, enter, leave_folder),
    };
    return RUN_CASES_AGAIN(5, tests);
}
