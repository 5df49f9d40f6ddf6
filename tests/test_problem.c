/* Problems: from graph and cluster, from files, wishes, derived arrays, what is said of bad files. */
#include "support/check.h"
#include "support/random_problem.h"

#include "util/util.h"

#define CHANNEL(a, b) "{\"from\": \"" a "\", \"to\": \"" b "\", \"bytes_per_second\": 1000, \"latency_ns\": 5}"
#define MODES "\"flow\": \"tensor\", \"congestion\": \"port\", \"memory\": \"static\""
#define DEVICES "{\"name\": \"A\", \"memory_bytes\": 10}, {\"name\": \"B\", \"memory_bytes\": 20}"
#define PROBLEM_WITH(modes, devices, channels, ops)                                                                    \
    "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"p\", " modes ", \"devices\": [" devices                  \
    "], \"channels\": [" channels "], \"ops\": [" ops "]}"
#define PROBLEM(ops) PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "B") "," CHANNEL("B", "A"), ops)
#define OP(name, time, in, out, more)                                                                                  \
    "{\"name\": \"" name "\", \"type\": \"X\", \"memory_bytes\": 4, \"time_ns\": [" time "], \"inputs\": [" in             \
    "], \"outputs\": [" out "]" more "}"
#define TENSOR(name, bytes) "{\"name\": \"" name "\", \"bytes\": " bytes "}"

static moirai_problem *parse(const char *json)
{
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, json, strlen(json), "p.json"));
    return p;
}

#define CHAIN                                                                                                          \
    OP("a", "1, 2", "\"image\"", TENSOR("ta", "7") "," TENSOR("tx", "9"), "")                                          \
    "," OP("b", "3, null", "\"ta\", \"w\", \"tx\", \"ta\"", TENSOR("tb", "7"), ", \"group\": \"g\"")                   \
    "," OP("c", "5, 6", "\"tb\", \"ta\"", "", ", \"group\": \"g\"")

static void test_problem_derived_arrays(void **state)
{
    (void)state;
    moirai_problem *p = parse(PROBLEM(CHAIN));
    assert_int_equal(p->n_ops, 3);
    assert_int_equal(p->n_tensors, 3);
    assert_int_equal(p->n_edges, 4); /* ta -> b, ta -> c, tx -> b, tb -> c */
    assert_int_equal(p->op_in_off[2] - p->op_in_off[1], 2); /* distinct and produced */
    assert_string_equal(p->op_extern[p->op_extern_off[1]], "w");
    for (int32_t i = 0; i < p->n_ops; i++) {
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            assert_int_equal(p->edge_tensor[p->op_in_edge[j]], p->op_in[j]);
            assert_int_equal(p->edge_reader[p->op_in_edge[j]], i);
        }
    }
    assert_int_equal(moirai_op_ns(p, 1, 1), MOIRAI_NEVER);
    assert_true(p->op_devices[0] == 3 && p->op_devices[1] == 1 && p->op_devices[2] == 1);
    assert_int_equal(p->op_group[0], MOIRAI_NONE);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->n_classes, 2); /* 7 and 9 bytes */
    assert_int_equal(moirai_problem_find_op(p, "c"), 2);
    assert_int_equal(moirai_problem_find_tensor(p, "tb"), 2);
    assert_int_equal(moirai_problem_find_tensor(p, "image"), MOIRAI_NONE);
    assert_int_equal(moirai_problem_find_device(p, "B"), 1);
    moirai_problem_free(p);
}

static void test_problem_transfer_time_rounds_up(void **state)
{
    (void)state;
    moirai_problem *p = parse(PROBLEM_WITH(MODES, DEVICES,
                                           "{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 3000000000, \"latency_ns\": 5},"
                                           "{\"from\": \"B\", \"to\": \"A\", \"bytes_per_second\": 1000000000}",
                                           OP("a", "1, 2", "", TENSOR("t", "7") "," TENSOR("big", "1000000000000000000"), "")));
    assert_int_equal(moirai_transfer_ns(p, 0, 0, 1), 5 + 3); /* ceil(7/3) */
    assert_int_equal(moirai_transfer_ns(p, 0, 1, 0), 7);
    assert_int_equal(moirai_transfer_ns(p, 0, 1, 1), 0);
    assert_int_equal(moirai_transfer_ns(p, 1, 0, 1), 333333333333333334 + 5);
    moirai_problem_free(p);
}

static void test_problem_own_tables_share_classes(void **state)
{
    (void)state;
#define TABLED(name, bytes, x) "{\"name\": \"" name "\", \"bytes\": " bytes ", \"transfer_ns\": [[0, " x "], [4, 0]]}"
    moirai_problem *p = parse(PROBLEM(OP("a", "1, 2", "",
                                         TABLED("s", "1", "3") "," TABLED("t", "2", "3") "," TABLED("u", "1", "9") ","
                                         TENSOR("v", "1"), "")));
    assert_int_equal(p->n_classes, 3);
    assert_int_equal(p->tensor_class[0], p->tensor_class[1]);
    assert_int_equal(moirai_transfer_ns(p, 1, 0, 1), 3);
    assert_int_equal(moirai_transfer_ns(p, 2, 0, 1), 9);
    assert_int_equal(moirai_transfer_ns(p, 2, 1, 0), 4);
    assert_true(p->tensor_has_table[0] && !p->tensor_has_table[3]);
    moirai_problem_free(p);
}

/* ---- round trips ---- */

static void round_trip(const moirai_problem *p)
{
    char *path = temporary_path("problem.json");
    moirai_problem *again;
    assert_ok(moirai_problem_write(p, path));
    assert_ok(moirai_problem_read(&again, path));
    assert_problems_equal(p, again);
    remove(path);
    moirai_problem_free(again);
}

static void test_problem_round_trip_keeps_everything(void **state)
{
    (void)state;
    moirai_problem *p = parse(PROBLEM(CHAIN "," OP("d", "0, 0", "", TABLED("s", "1", "3"), "")));
    round_trip(p);
    moirai_problem_free(p);
}

static void test_problem_round_trip_of_shared_problems(void **state)
{
    (void)state;
    const char *names[] = {"example-1", "googlenet", "inceptionv4", "gpt330m-inter-edge", "gpt330m-intra-tensor",
                           "gpt13b-inter-tensor"};
    const int32_t n_ops[] = {14, 141, 491, 4872, 4872, 19640};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[128];
        moirai_problem *p;
        snprintf(name, sizeof name, "data/problems/%s.problem.json", names[i]);
        double start = moirai_seconds();
        assert_ok(moirai_problem_read(&p, shared_path(name)));
        print_message("%s: %d operators, %d classes, read in %.1f ms\n", names[i], p->n_ops, p->n_classes,
                      1e3 * (moirai_seconds() - start));
        assert_int_equal(p->n_ops, n_ops[i]);
        round_trip(p);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_derived_arrays),
        cmocka_unit_test(test_problem_transfer_time_rounds_up),
        cmocka_unit_test(test_problem_own_tables_share_classes),
        cmocka_unit_test(test_problem_round_trip_keeps_everything),
        cmocka_unit_test(test_problem_round_trip_of_shared_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
