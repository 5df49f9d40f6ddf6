/* moirai run --in-flight: several requests at once on ranks of this machine. Every result is compared with that of the same
 * request alone, by the ranks themselves; these tests see to it that the comparison sees what it should. Rates are not
 * judged, only that they fit together. */
#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"
#include "support/scale.h"

#include <math.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>

static const char *const cluster_text =
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"here\", \"devices\": ["
    "{\"name\": \"A\", \"memory\": \"8GB\", \"gflops\": 10, \"memory_bandwidth\": \"10GB/s\", \"threads\": 1},"
    "{\"name\": \"B\", \"memory\": \"8GB\", \"gflops\": 10, \"memory_bandwidth\": \"10GB/s\", \"threads\": 2},"
    "{\"name\": \"C\", \"memory\": \"8GB\", \"gflops\": 10, \"memory_bandwidth\": \"10GB/s\"}],"
    "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"100Gbps\", \"both\": true},"
    "{\"from\": \"B\", \"to\": \"C\", \"bandwidth\": \"100Gbps\", \"both\": true}]}";

static int enter(void **state)
{
    int rc = enter_folder(state);
    if (!rc)
        write_text("c.json", cluster_text);
    return rc;
}

#define RUN "timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 12 --json "

static yyjson_val *rate(void)
{
    yyjson_val *r = yyjson_obj_get(shell_json(), "rate");
    assert_non_null(r);
    return r;
}

static int64_t of(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}

/* Numbers that must agree, whatever the machine does meanwhile. */
static void check_rate(int in_flight)
{
    yyjson_val *r = rate(), *latency = yyjson_obj_get(r, "latency"), *d;
    size_t i, n;
    int64_t requests = of(r, "requests"), window_ns = of(r, "window_ns"), period_ns = of(r, "period_ns");
    assert_int_equal(of(r, "in_flight"), in_flight);
    assert_true(requests >= 12);
    size_t n_copies = yyjson_arr_size(yyjson_obj_get(r, "copies"));
    n_copies = n_copies ? n_copies : 1;
    assert_int_equal(of(r, "left_out"), (in_flight + 1) * (int)n_copies + 2 * in_flight);
    assert_true(of(r, "compared") >= requests + of(r, "left_out"));
    assert_int_equal(period_ns, window_ns / requests);
    double per_s = yyjson_get_num(yyjson_obj_get(r, "rate_per_s"));
    assert_true(fabs(per_s * (double)window_ns / 1e9 / (double)requests - 1) < 1e-9);
    assert_true(of(latency, "least_ns") > 0);
    assert_true(of(latency, "least_ns") <= of(latency, "median_ns"));
    assert_true(of(latency, "median_ns") <= of(latency, "p99_ns"));
    assert_true(of(latency, "p99_ns") <= of(latency, "most_ns"));
    yyjson_arr_foreach(yyjson_obj_get(r, "devices"), i, n, d) {
        double share = yyjson_get_num(yyjson_obj_get(d, "busy_share"));
        assert_true(of(d, "busy_ns") > 0);
        assert_true(fabs(share * (double)window_ns / ((double)requests * (double)of(d, "busy_ns")) - 1) < 0.01);
    }
    assert_true(n > 0);
}

static void plan(const char *options)
{
    assert_runs("$M plan m.onnx --cluster c.json %s -o plan.json --force --json", options);
}

static void write_model(wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    FILE *f = fopen("m.onnx", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.data, 1, model.length, f), model.length);
    assert_int_equal(fclose(f), 0);
    wire_free(&model);
}

/* ---- results ---- */

static void test_stream_scattered_plans_of_several_networks(void **state)
{
    (void)state;
    static const char *const network[] = {"inception-tiny", "gpt3-tiny"};
    for (int i = 0; i < 2; i++) {
        assert_runs("$M zoo %s --onnx m.onnx --force", network[i]);
        plan(i ? "--placer random --rules none" : "--placer random");
        for (int n = 2; n <= 8; n *= 4) {
            assert_runs(RUN "--in-flight %d --verify", n);
            assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
            assert_true(of(shell_json(), "n_transfers") > 5);
            check_rate(n);
        }
    }
}

static void test_stream_one_at_a_time_is_a_plain_run(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs(RUN "--in-flight 1");
    assert_null(yyjson_obj_get(shell_json(), "rate"));
    assert_int_equal(of(shell_json(), "runs"), 12);
}

static void test_stream_one_device_sends_nothing(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer heft --pin '*=B'");
    assert_runs(RUN "--in-flight 3");
    assert_int_equal(of(shell_json(), "n_transfers"), 0);
    check_rate(3);
}

static void test_stream_messages_of_many_chunks(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs("MOIRAI_CHUNK_BYTES=1000 " RUN "--in-flight 2");
    check_rate(2);
}

/* Ranks beyond the plan's devices wait. */
static void test_stream_under_a_given_mpirun(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    const char *more = strcmp(MOIRAI_MPI_FLAVOUR, "OPEN_MPI") ? "" : "--oversubscribe --allow-run-as-root";
    assert_runs("timeout 600 " MOIRAI_MPIEXEC " %s -n 5 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 12 "
                "--in-flight 2 > log 2> err && grep -q 'each equal to the same one alone' log",
                more);
}

static void test_stream_lasts_as_long_as_asked(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs(RUN "--in-flight 2 --seconds 0.5");
    check_rate(2);
    assert_true(of(rate(), "window_ns") >= 500000000);
}

static void test_stream_shows_what_it_measured(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs("$M run plan.json m.onnx --cluster c.json --warmup 0 --runs 4 --in-flight 2");
    assert_contains(shell_out, "in flight    2 requests: ");
    assert_contains(shell_out, "times the rate one by one");
    assert_contains(shell_out, "busy         A");
    assert_contains(shell_out, "each equal to the same one alone");
}

/* A plan that was made for several requests says how many, and what it promises. */
static void test_stream_what_the_plan_says_is_the_default(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs(
        "sed -i 's/\"version\": 1,/\"version\": 1, \"objective\": \"rate\", \"in_flight\": 3, \"period_ns\": 2000000, "
        "\"latency_ns\": 5000000,/' plan.json");
    assert_runs(RUN);
    check_rate(3);
    assert_int_equal(of(shell_json(), "planned_period_ns"), 2000000);
    assert_runs("$M run plan.json m.onnx --cluster c.json --warmup 0 --runs 4");
    assert_contains(shell_out, "planned      one every 2.000 ms: measured is ");
    assert_runs(RUN "--in-flight 2"); /* for which nothing was promised */
    check_rate(2);
    assert_null(yyjson_obj_get(shell_json(), "planned_period_ns"));
    /* at a pace requests go in another order, and give the same */
    assert_runs("sed -i 's/\"in_flight\": 3,/\"in_flight\": 3, \"pace\": 2,/' plan.json");
    assert_runs(RUN "--in-flight 6 --keep --work w");
    check_rate(6);
    assert_runs("grep -q '\"pace\": 4' w/job.json");
    assert_runs("sed -i 's/\"pace\": 2,/\"pace\": 2000000,/' plan.json");
    assert_fails(3, "pace is 2000000, expected at most 1000000", RUN "-q");
    assert_runs("sed -i 's/\"in_flight\": 3, \"pace\": 2000000,/\"in_flight\": 300,/' plan.json");
    assert_fails(2, "the plan is for 300 requests in flight, at most 256 can be", RUN "-q");
}

/* ---- copies ---- */

/* Of every copy, requests in the measured window; their sum is all of them. */
static void count_copies(int64_t *out, size_t n)
{
    yyjson_val *list = yyjson_obj_get(rate(), "copies"), *c;
    size_t i, count;
    int64_t sum = 0;
    assert_int_equal(yyjson_arr_size(list), n);
    yyjson_arr_foreach(list, i, count, c) {
        sum += out[i] = of(c, "requests");
    }
    assert_int_equal(sum, of(rate(), "requests"));
}

/* Links so slow that a copy on each device is best. */
static void plan_replicas(void)
{
    assert_runs("sed -i 's/100Gbps/1Mbps/g' c.json");
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--objective rate --in-flight 3 --effort 0.2 --time-limit none");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "copies")), 3);
}

static void test_stream_a_copy_on_each_device(void **state)
{
    (void)state;
    int64_t of_copy[3];
    plan_replicas();
    assert_runs(RUN "--verify --runs 1500"); /* enough for each, however slow the machine makes it meanwhile */
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    assert_int_equal(of(shell_json(), "used_devices"), 3);
    assert_int_equal(of(shell_json(), "n_transfers"), 0);
    assert_true(of(shell_json(), "planned_period_ns") > 0);
    check_rate(3);
    count_copies(of_copy, 3);
    for (int c = 0; c < 3; c++)
        assert_true(of_copy[c] > 0);
    assert_runs("$M run plan.json m.onnx --cluster c.json --warmup 0 --runs 4");
    assert_contains(shell_out, "copies       1: ");
    assert_contains(shell_out, "each equal to the same one alone");
}

static void test_stream_more_in_flight_are_shared_out_to_copies(void **state)
{
    (void)state;
    yyjson_val *c;
    size_t i, n;
    int64_t sum = 0;
    plan_replicas();
    assert_runs(RUN "--in-flight 8 --runs 1500"); /* each copy has its turn, also where ranks are more than cores */
    check_rate(8);
    yyjson_arr_foreach(yyjson_obj_get(rate(), "copies"), i, n, c) {
        sum += of(c, "slots");
        assert_true(of(c, "slots") >= 2 && of(c, "slots") <= 3);
    }
    assert_int_equal(sum, 8);
    assert_fails(2, "the plan has 3 copies, each of which needs a request: --in-flight 2 is too few",
                 RUN "-q --in-flight 2");
    assert_runs(RUN "--in-flight 1"); /* the first copy, as a plan of one request */
    assert_null(yyjson_obj_get(shell_json(), "rate"));
}

/* Two copies that share all devices: requests go to them in turns by their shares. */
static void test_stream_a_mixture_keeps_its_shares(void **state)
{
    (void)state;
    int64_t of_copy[2];
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random --seed 1");
    assert_runs("mv plan.json one.json");
    plan("--placer random --seed 2");
    assert_runs("python3 -c \"\n"
                "import json\n"
                "a, b = json.load(open('one.json')), json.load(open('plan.json'))\n"
                "place = lambda p: {o['name']: o['device'] for o in p['ops']}\n"
                "assert place(a) != place(b)\n"
                "keys = ('makespan_ns', 'ops', 'transfers')\n"
                "a.update(objective='rate', in_flight=4, period_ns=1, latency_ns=1, copies=[\n"
                "  {'share': 0.75, 'placement': place(a)},\n"
                "  {'share': 0.25, 'placement': place(b), **{k: b[k] for k in keys}}])\n"
                "json.dump(a, open('plan.json', 'w'))\"");
    assert_runs(RUN "--verify --runs 100");
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    check_rate(4);
    count_copies(of_copy, 2);
    assert_in_range(of_copy[0], 70, 80); /* 75, but for those at both ends of the window */
    assert_runs("sed -i 's/\"ops\": \\[{/\"was\": [{/2' plan.json");
    assert_fails(3, "copy 1: has no times, so that it can't be run", RUN "-q");
}

/* ---- what is not as it was alone ---- */

/* Random numbers are other ones with every request: nobody can call that equal. */
static void test_stream_results_that_differ_are_seen(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "64");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "RandomNormalLike", "a", "r", NULL);
    make_node(&graph, "Add", "a,r", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "64");
    write_model(&graph);
    plan("--placer random --rules none");
    assert_fails(6, "output 'y' is not that of the same request alone", RUN "-q --in-flight 2");
    assert_runs(RUN); /* alone, there is nothing to compare with */
}

/* ---- what is refused ---- */

static void test_stream_gpus_are_refused_before_anything_starts(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    assert_runs("sed 's/\"threads\": 2/\"ep\": \"cuda:0\"/' c.json > gpu.json");
    assert_fails(2, "device 'B' is a GPU (ep cuda:0)",
                 "$M run plan.json m.onnx --cluster gpu.json --in-flight 2 --json -q");
    assert_fails(2, "--in-flight", "$M run plan.json m.onnx --cluster c.json --in-flight 0");
    assert_fails(2, "--in-flight", "$M run plan.json m.onnx --cluster c.json --in-flight 257");
}

/* ---- when something breaks ---- */

static void test_stream_ends_when_a_rank_dies(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx");
    plan("--placer random");
    int code = shell("timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 4 --in-flight 2 "
                     "--seconds 600 --work w -q > log & run=$!\n"
                     "for i in $(seq 200); do [ -s w/timeline.json ] && break; sleep 0.1; done; sleep 0.3\n"
                     "kill -9 $(pgrep -f \"^[^ ]*moirai-rank run $PWD/w/job.json\" | tail -1); wait $run");
    assert_int_equal(code, 1);
    /* MPICH's launcher may tell of one that it has ended itself, after that one. */
    assert_contains(shell_err, strcmp(MOIRAI_MPI_FLAVOUR, "OPEN_MPI") ? "died: signal " : "died: signal 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stream_one_at_a_time_is_a_plain_run, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_one_device_sends_nothing, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_messages_of_many_chunks, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_under_a_given_mpirun, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_shows_what_it_measured, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_a_copy_on_each_device, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_a_mixture_keeps_its_shares, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_results_that_differ_are_seen, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_gpus_are_refused_before_anything_starts, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_ends_when_a_rank_dies, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_scattered_plans_of_several_networks, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_lasts_as_long_as_asked, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_what_the_plan_says_is_the_default, enter, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream_more_in_flight_are_shared_out_to_copies, enter, leave_folder),
    };
    return RUN_CASES_AGAIN(10, tests);
}
