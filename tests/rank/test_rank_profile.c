/* moirai probe and moirai profile as a user types them: ranks on this machine, short. */
#include "support/check.h"
#include "support/command.h"
#include "support/scale.h"
#include "util/util.h"

#include <sched.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>

static bool have_ranks(void)
{
    char path[4096];
    const char *slash = strrchr(MOIRAI_COMMAND, '/');
    snprintf(path, sizeof path, "%.*s/moirai-rank", (int)(slash - MOIRAI_COMMAND), MOIRAI_COMMAND);
    return !access(path, X_OK);
}

#define NEEDS_RANKS() \
    do { \
        (void)state; \
        if (!have_ranks()) \
            skip_because("this build has no moirai-rank"); \
    } while (0)

/* Two unequal devices; memory and names are the file's. */
static void write_cluster(const char *second)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"two\", \"devices\": ["
        "{\"name\": \"one\", \"memory\": \"1GB\", \"ep\": \"cpu\", \"threads\": 1},"
        "{\"name\": \"other\", \"memory\": \"2GB\", \"ep\": \"%s\", \"threads\": 1, \"share\": 0.5, \"launch_us\": 7}],"
        "\"links\": [{\"from\": \"one\", \"to\": \"other\", \"bandwidth\": \"1Gbps\", \"both\": true}]}",
        second);
    write_text("two.json", text);
}

static int64_t count_at(yyjson_val *o, const char *key)
{
    yyjson_val *v = yyjson_obj_get(o, key);
    assert_true(yyjson_is_int(v));
    return yyjson_get_sint(v);
}

static yyjson_val *device_at(yyjson_val *result, size_t index)
{
    yyjson_val *d = yyjson_arr_get(yyjson_obj_get(result, "devices"), index);
    assert_non_null(d);
    return d;
}

/* ---- probe ---- */

static void test_probe_measures_every_ordered_pair(void **state)
{
    NEEDS_RANKS();
    moirai_cluster *c;
    assert_runs("$M probe -n 3 --seconds 0.2 --json -o c.json");
    yyjson_val *result = shell_json(), *links = yyjson_obj_get(result, "links"), *link;
    size_t i, n;
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(result, "ranks")), 3);
    assert_int_equal(yyjson_arr_size(links), 6);
    yyjson_arr_foreach(links, i, n, link) {
        assert_true(count_at(link, "bytes_per_second") > 1000);
        assert_true(count_at(link, "latency_ns") >= 0);
        assert_true(yyjson_arr_size(yyjson_obj_get(link, "sizes")) >= 2);
    }
    assert_ok(moirai_cluster_open(&c, "c.json"));
    assert_int_equal(c->n_devices, 3);
    assert_int_equal(c->n_links, 6);
    assert_true(c->device[0].memory_bytes > 0);
    moirai_cluster_free(c);
}

/* A number per round, and the link is their mean. */
static void test_probe_series_has_every_round(void **state)
{
    NEEDS_RANKS();
    assert_runs("$M probe -n 2 --seconds 0.4 --series 4 --json");
    yyjson_val *links = yyjson_obj_get(shell_json(), "links"), *link, *rate;
    size_t i, n, k, m;
    assert_int_equal(yyjson_arr_size(links), 2);
    yyjson_arr_foreach(links, i, n, link) {
        yyjson_val *series = yyjson_obj_get(link, "series");
        double sum = 0;
        assert_int_equal(yyjson_arr_size(series), 4);
        yyjson_arr_foreach(series, k, m, rate) {
            assert_true(yyjson_get_num(rate) > 1000);
            sum += yyjson_get_num(rate);
        }
        double off = sum / 4 - (double)count_at(link, "bytes_per_second");
        assert_true(off < 4 && off > -4);
    }
    assert_runs("$M probe -n 2 --seconds 0.1 --json");
    assert_null(yyjson_obj_get(yyjson_arr_get_first(yyjson_obj_get(shell_json(), "links")), "series"));
    assert_fails(2, "series", "$M probe -n 2 --series 0");
}

static void test_probe_keeps_the_devices_of_a_template(void **state)
{
    NEEDS_RANKS();
    moirai_cluster *c;
    write_cluster("xnnpack");
    assert_runs("$M probe --cluster two.json --seconds 0.1 -o c.json");
    assert_ok(moirai_cluster_open(&c, "c.json"));
    assert_string_equal(c->name, "two");
    assert_string_equal(c->device[1].name, "other");
    assert_string_equal(c->device[1].ep, "xnnpack");
    assert_int_equal(c->device[1].threads, 1);
    assert_int_equal(c->device[1].memory_bytes, 2000000000);
    assert_true(c->device[1].share == 0.5 && c->device[1].launch_us == 7);
    assert_true(c->bytes_per_second[1] != 125000000); /* measured, not the file's */
    moirai_cluster_free(c);
}

static void test_probe_refuses_what_makes_no_sense(void **state)
{
    NEEDS_RANKS();
    write_cluster("cpu");
    assert_fails(2, "3 ranks for the 2 devices", "$M probe -n 3 --cluster two.json");
    assert_fails(3, "nowhere.json", "$M probe --cluster nowhere.json");
    assert_fails(1, "exists already", "$M probe -o two.json");
}

/* ---- profile ---- */

static void make_network(void)
{
    assert_runs("$M zoo gpt3-tiny --onnx net.onnx");
    write_cluster("xnnpack");
}

static void test_profile_gives_every_operator_a_time_on_every_device(void **state)
{
    NEEDS_RANKS();
    moirai_graph *g;
    make_network();
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --rules none --json -o g.json");
    yyjson_val *result = shell_json();
    assert_true(count_at(result, "distinct") < count_at(result, "operators") / 3);
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(count_at(device_at(result, d), "failed"), 0);
        assert_int_equal(count_at(device_at(result, d), "estimated_ops"), 0);
        assert_int_equal(count_at(device_at(result, d), "measured"), count_at(result, "distinct"));
        assert_true(count_at(device_at(result, d), "total_ns") > 0);
    }
    assert_ok(moirai_graph_read(&g, "g.json"));
    assert_int_equal(g->n_time_keys, 2);
    for (int32_t i = 0; i < 2 * g->n_ops; i++)
        assert_true(g->time_ns[i] >= 0);
    moirai_graph_free(g);
    assert_runs("$M problem g.json -c two.json --cost table -o p.json"); /* nothing is left to a model */
}

/* The network as one, beside its operators; where it takes longer than they do, so do they. */
static void test_profile_runs_the_whole_network_as_well(void **state)
{
    NEEDS_RANKS();
    moirai_graph *g;
    make_network();
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --rules none --json -o g.json");
    yyjson_val *result = shell_json();
    assert_ok(moirai_graph_read(&g, "g.json"));
    assert_int_equal(g->n_time_keys, 2);
    for (size_t d = 0; d < 2; d++) {
        int64_t whole = count_at(device_at(result, d), "whole_ns"), sum = count_at(device_at(result, d), "total_ns");
        int64_t found = 0;
        for (int32_t i = 0; i < g->n_ops; i++)
            found += g->time_ns[2 * i + (int32_t)d];
        assert_true(whole > 0 && g->time_whole_ns[d] == whole);
        assert_true(found <= UTIL_MAX(whole, sum) && found + g->n_ops >= UTIL_MIN(UTIL_MAX(whole, sum), 2 * sum));
    }
    moirai_graph_free(g);
    assert_runs("sed -i 's/[12]GB/1kB/g' two.json"); /* where it does not fit, nobody knows */
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json --force -o g.json");
    assert_null(yyjson_obj_get(device_at(shell_json(), 0), "whole_ns"));
    assert_runs("! grep whole_ns g.json");
}

static void test_profile_remembers(void **state)
{
    NEEDS_RANKS();
    make_network();
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 -o g.json");
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json -o h.json");
    yyjson_val *result = shell_json();
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(count_at(device_at(result, d), "measured"), 0);
        assert_int_equal(count_at(device_at(result, d), "cached"), count_at(result, "distinct"));
    }
    assert_runs("cmp g.json h.json");
    assert_runs("for f in cache/*; do echo nonsense >$f; done"); /* as good as nothing */
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json");
    assert_int_equal(count_at(device_at(shell_json(), 0), "cached"), 0);
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json --fresh");
    assert_int_equal(count_at(device_at(shell_json(), 0), "cached"), 0);
}

/* Equal devices of one machine are one measurement: the second finds what the first wrote. */
static void test_profile_measures_equal_devices_once(void **state)
{
    NEEDS_RANKS();
    make_network();
    write_cluster("cpu");
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json");
    yyjson_val *result = shell_json();
    assert_int_equal(count_at(device_at(result, 0), "measured"), count_at(result, "distinct"));
    assert_int_equal(count_at(device_at(result, 1), "cached"), count_at(result, "distinct"));
}

/* Threads that have cores of their own look for work without sleeping, and times tell such threads from others. */
static void test_profile_spins_on_cores_of_its_own(void **state)
{
    NEEDS_RANKS();
    cpu_set_t own;
    int core[2], n = 0;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &own))
            core[n++] = i;
    if (n < 2)
        skip_because("this machine has one core");
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"two\", \"devices\": ["
             "{\"name\": \"one\", \"memory\": \"1GB\", \"threads\": 2, \"cores\": \"%d,%d\"},"
             "{\"name\": \"other\", \"memory\": \"2GB\", \"threads\": 2}],"
             "\"links\": [{\"from\": \"one\", \"to\": \"other\", \"bandwidth\": \"1Gbps\", \"both\": true}]}",
             core[0], core[1]);
    make_network();
    write_text("two.json", text);
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --json");
    assert_contains(yyjson_get_str(yyjson_obj_get(device_at(shell_json(), 0), "device")), "2 threads that spin;");
    assert_contains(yyjson_get_str(yyjson_obj_get(device_at(shell_json(), 1), "device")), "2 threads;");
}

static void test_profile_measures_fused_operators_fused(void **state)
{
    NEEDS_RANKS();
    moirai_graph *fine, *coarse;
    int fused = 0;
    make_network();
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --rules none -o fine.json");
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 --rules onnxruntime --json -o coarse.json");
    assert_int_equal(count_at(device_at(shell_json(), 0), "failed"), 0);
    assert_ok(moirai_graph_read(&fine, "fine.json"));
    assert_ok(moirai_graph_read(&coarse, "coarse.json"));
    assert_true(coarse->n_ops < fine->n_ops);
    for (int32_t i = 0; i < coarse->n_ops; i++)
        fused += coarse->op_member_off[i + 1] > coarse->op_member_off[i] && coarse->time_ns[2 * i] >= 0;
    assert_true(fused > 0);
    moirai_graph_free(fine);
    moirai_graph_free(coarse);
}

static void test_profile_of_a_convolutional_network(void **state)
{
    NEEDS_RANKS();
    write_cluster("xnnpack");
    assert_runs("$M zoo inception-tiny --onnx cnn.onnx");
    assert_runs("$M profile cnn.onnx -c two.json --cache cache --runs 5 --json");
    for (size_t d = 0; d < 2; d++)
        assert_int_equal(count_at(device_at(shell_json(), d), "failed"), 0);
}

static void test_profile_refuses_what_it_cannot_measure(void **state)
{
    NEEDS_RANKS();
    make_network();
    assert_fails(2, "no ONNX file", "$M profile gpt3-tiny -c two.json");
    assert_fails(2, "--cluster", "$M profile net.onnx");
    assert_fails(3, "broken.onnx", "echo nonsense >broken.onnx; $M profile broken.onnx -c two.json --cache cache");
    assert_fails(1, "cache", "$M profile net.onnx -c two.json --cache /proc/nowhere");
    write_cluster("abacus");
    assert_fails(2, "abacus", "$M profile net.onnx -c two.json --cache cache");
}

/* ---- the whole loop ---- */

static void test_profile_refine_takes_a_run_back(void **state)
{
    NEEDS_RANKS();
    moirai_graph *g, *h;
    make_network();
    assert_runs("$M profile net.onnx -c two.json --cache cache --runs 5 -o g.json");
    assert_runs("$M plan g.json -c two.json -p m-etf -o plan.json");
    assert_runs("$M run plan.json net.onnx -c two.json --warmup 1 --runs 3 --timeline run.json");
    assert_runs("$M profile g.json --refine run.json --json -o h.json");
    yyjson_val *refined = yyjson_arr_get(yyjson_obj_get(shell_json(), "refined"), 0);
    assert_ok(moirai_graph_read(&g, "g.json"));
    assert_ok(moirai_graph_read(&h, "h.json"));
    assert_int_equal(count_at(refined, "operators"), g->n_ops);
    assert_true(count_at(refined, "segments") >= 1);
    assert_int_equal(h->n_ops, g->n_ops);
    assert_memory_not_equal(g->time_ns, h->time_ns, (size_t)g->n_ops * 2 * sizeof *g->time_ns);
    moirai_graph_free(g);
    moirai_graph_free(h);
    assert_runs("$M plan h.json -c two.json -p m-etf -o again.json");
    assert_fails(3, "moirai-timeline", "$M profile g.json --refine g.json");
    /* A last run that was slower than one before it is named: its plan must not replace that one's. */
    assert_runs("sed '0,/\"median_ns\": *[0-9]*/s//\"median_ns\": 999999999999/' run.json > slow.json");
    assert_runs("$M profile g.json --refine run.json --refine slow.json --json");
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "last_is_slower")));
    assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "fastest_run")), "run.json");
    assert_contains(shell_err, "--best");
    assert_runs("$M profile g.json --refine slow.json --refine run.json --json");
    assert_true(yyjson_is_false(yyjson_obj_get(shell_json(), "last_is_slower")));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(test_probe_measures_every_ordered_pair),
        CASE(test_probe_series_has_every_round),
        CASE(test_probe_refuses_what_makes_no_sense),
        CASE(test_profile_gives_every_operator_a_time_on_every_device),
        CASE(test_profile_remembers),
        CASE(test_profile_measures_fused_operators_fused),
        CASE(test_profile_refuses_what_it_cannot_measure),
        CASE(test_probe_keeps_the_devices_of_a_template),
        CASE(test_profile_runs_the_whole_network_as_well),
        CASE(test_profile_measures_equal_devices_once),
        CASE(test_profile_spins_on_cores_of_its_own),
        CASE(test_profile_of_a_convolutional_network),
        CASE(test_profile_refine_takes_a_run_back),
    };
    return RUN_CASES_AGAIN(7, tests);
}
