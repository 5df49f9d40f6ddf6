/* Measured segments back into a graph's times; times of a device set as a whole. */
#include "support/check.h"

#include <moirai/refine.h>

/* a -> b -> c -> d on two devices. */
static moirai_graph *make_graph(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    static const char *const name[] = {"a", "b", "c", "d"};
    static const int64_t x[] = {100, 300, 50, 0}, y[] = {10, 20, 30, 40};
    assert_ok(moirai_graph_builder_new(&b, "g"));
    for (int i = 0; i < 4; i++) {
        int32_t op = moirai_graph_builder_op(b, name[i], "Relu");
        moirai_graph_builder_input(b, op, i ? name[i - 1] : "in");
        moirai_graph_builder_output(b, op, name[i], 8);
        moirai_graph_builder_time(b, op, "x", x[i]);
        moirai_graph_builder_time(b, op, "y", y[i]);
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static int64_t time_of(const moirai_graph *g, const char *op, const char *device)
{
    for (int32_t k = 0; k < g->n_time_keys; k++)
        if (!strcmp(g->time_key[k], device))
            return g->time_ns[(int64_t)moirai_graph_find(g, op) * g->n_time_keys + k];
    fail_msg("no times of %s", device);
    return 0;
}

static int refine(moirai_graph *g, const char *devices, moirai_refine_report *report)
{
    char json[2048];
    int n = snprintf(json, sizeof json, "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": %s}", devices);
    return moirai_refine_parse(g, NULL, json, (size_t)n, "run.json", report);
}

static void test_refine_segment_sums_to_its_time(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    moirai_refine_report r;
    assert_ok(refine(g, "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"b\"], \"median_ns\": 1001}]}]", &r));
    assert_int_equal(time_of(g, "a", "x"), 250);
    assert_int_equal(time_of(g, "b", "x"), 751); /* the rest: the sum is exact */
    assert_int_equal(r.n_segments, 1);
    assert_int_equal(r.n_ops, 2);
    assert_true(r.median > 2.5 && r.median < 2.51 && r.least == r.median && r.most == r.median);
    moirai_graph_free(g);
}

static void test_refine_others_follow_their_device(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    assert_ok(refine(g,
                     "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 200}]},"
                     " {\"name\": \"y\", \"segments\": [{\"ops\": [\"b\"], \"median_ns\": 10}]}]",
                     NULL));
    assert_int_equal(time_of(g, "c", "x"), 100); /* x took twice what was predicted */
    assert_int_equal(time_of(g, "d", "x"), 0);
    assert_int_equal(time_of(g, "c", "y"), 15); /* y half */
    assert_int_equal(time_of(g, "a", "y"), 5);
    moirai_graph_free(g);
}

static void test_refine_idle_devices_follow_all(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    assert_ok(refine(g,
                     "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"b\"], \"median_ns\": 800}]},"
                     " {\"name\": \"y\", \"segments\": []}, {\"name\": \"unknown\", \"segments\": []}]",
                     NULL));
    assert_int_equal(time_of(g, "d", "y"), 80);
    moirai_graph_free(g);
}

static void test_refine_segment_of_nothing_is_shared_evenly(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    moirai_refine_report r;
    assert_ok(refine(g, "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"d\"], \"median_ns\": 7}]}]", &r));
    assert_int_equal(time_of(g, "d", "x"), 7);
    assert_int_equal(time_of(g, "a", "x"), 100); /* nothing was predicted: no factor */
    assert_true(r.median == 0);
    moirai_graph_free(g);
}

static void test_refine_twice_is_once(void **state)
{
    (void)state;
    const char *run =
        "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"b\", \"c\", \"d\"], \"median_ns\": 12345}]}]";
    moirai_graph *g = make_graph(), *h = make_graph();
    assert_ok(refine(g, run, NULL));
    assert_ok(refine(h, run, NULL));
    assert_ok(refine(h, run, NULL));
    for (int i = 0; i < 4; i++)
        assert_true(llabs(time_of(g, g->op_name[i], "x") - time_of(h, g->op_name[i], "x")) <= 1);
    moirai_graph_free(g);
    moirai_graph_free(h);
}

/* What devices compute with requests in flight is what times become: x a fifth more, y a tenth. */
static void test_refine_takes_times_under_load(void **state)
{
    (void)state;
    static const char segments[] = "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"b\"], \"median_ns\": 800, "
                                   "\"planned_work_ns\": 400}]}, {\"name\": \"y\","
                                   " \"segments\": [{\"ops\": [\"c\"], \"median_ns\": 600, \"planned_work_ns\": "
                                   "300}]}], \"rate\": {\"devices\": [%s]}";
    static const struct {
        const char *rate;
        int64_t a, c; /* on x; on y */
    } list[] = {
        {"", 200, 600},
        {"{\"name\": \"x\", \"planned_ns\": 400, \"busy_ns\": 960}, {\"name\": \"y\", \"planned_ns\": 300, "
         "\"busy_ns\": 660}",
         240, 660},
        /* half of the requests in each of two copies */
        {"{\"name\": \"x\", \"planned_ns\": 200, \"busy_ns\": 480}, {\"name\": \"y\", \"planned_ns\": 150, "
         "\"busy_ns\": 330}",
         240, 660},
        /* y is hardly at work: what its segment takes beside the operator would be all it tells */
        {"{\"name\": \"x\", \"planned_ns\": 400, \"busy_ns\": 960}, {\"name\": \"y\", \"planned_ns\": 30, \"busy_ns\": "
         "180}",
         240, 720},
        /* no load makes a device a hundred times as slow */
        {"{\"name\": \"x\", \"planned_ns\": 4, \"busy_ns\": 960}", 800, 2400},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char devices[1024];
        moirai_graph *g = make_graph();
        snprintf(devices, sizeof devices, segments, list[i].rate);
        assert_ok(refine(g, devices, NULL));
        assert_int_equal(time_of(g, "a", "x"), list[i].a);
        assert_int_equal(time_of(g, "c", "y"), list[i].c);
        moirai_graph_free(g);
    }
}

/* A device on which another copy runs has no segments in the file: the plan's scale is that of those that have. */
static void test_refine_takes_load_of_other_copies(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    assert_ok(refine(
        g,
        "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"b\"], \"median_ns\": 400, \"planned_work_ns\": 400}]},"
        " {\"name\": \"y\", \"segments\": []}], \"rate\": {\"devices\": ["
        "{\"name\": \"x\", \"planned_ns\": 400, \"busy_ns\": 480}, {\"name\": \"y\", \"planned_ns\": 100, \"busy_ns\": "
        "150}]}",
        NULL));
    assert_int_equal(time_of(g, "a", "x"), 120);
    assert_int_equal(time_of(g, "d", "y"), 60);
    moirai_graph_free(g);
}

static void assert_refuses(const char *devices, const char *part)
{
    moirai_graph *g = make_graph(), *h = make_graph();
    int rc = refine(g, devices, NULL);
    assert_int_equal(rc, MOIRAI_EINPUT);
    if (!strstr(moirai_error_message(), part))
        fail_msg("'%s' does not say '%s'", moirai_error_message(), part);
    assert_graphs_equal(g, h); /* untouched */
    moirai_graph_free(g);
    moirai_graph_free(h);
}

static void test_refine_names_what_does_not_belong(void **state)
{
    (void)state;
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 9}]},"
                   " {\"name\": \"z\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 9}]}]",
                   "device 'z'");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"q\"], \"median_ns\": 9}]}]", "operator 'q'");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\", \"a\"], \"median_ns\": 9}]}]", "twice");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": -1}]}]", "median_ns");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [3], \"median_ns\": 1}]}]", "ops");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"]}]}]", "median_ns");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 9, \"start_ns\": "
                   "-9223372036854775808, \"finish_ns\": 50}]}]",
                   "start_ns");
    assert_refuses("[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 9, \"start_ns\": "
                   "0, \"finish_ns\": 9223372036854775807}]}]",
                   "finish_ns");
    assert_refuses("[{\"segments\": []}]", "name");
    assert_refuses("{}", "devices");
}

/* ---- latencies ---- */

/* Device x takes 40 for a segment and twice the predicted times; messages take 500 beyond their bytes, 30 pass before a
 * send and 20 before a waiting segment starts. */
static void test_refine_moves_the_price_of_segments_to_latencies(void **state)
{
    (void)state;
    static const char run[] =
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": ["
        "{\"name\": \"y\", \"segments\": []},"
        "{\"name\": \"x\", \"segments\": ["
        "{\"ops\": [\"a\"], \"median_ns\": 240, \"start_ns\": 0, \"finish_ns\": 240},"
        "{\"ops\": [\"b\"], \"median_ns\": 640, \"start_ns\": 1020, \"finish_ns\": 1660},"
        "{\"ops\": [\"c\"], \"median_ns\": 140, \"start_ns\": 1660, \"finish_ns\": 1800},"
        "{\"ops\": [\"d\"], \"median_ns\": 40, \"start_ns\": 1800, \"finish_ns\": 1840}]}],"
        "\"transfers\": ["
        "{\"from\": \"x\", \"to\": \"y\", \"bytes\": 8, \"median_ns\": 508, \"start_ns\": 270, \"finish_ns\": 778},"
        "{\"from\": \"y\", \"to\": \"x\", \"bytes\": 8, \"median_ns\": 308, \"start_ns\": 692, \"finish_ns\": 1000}]}";
    moirai_graph *g = make_graph();
    moirai_cluster *c;
    moirai_refine_report r;
    static const char two[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"x\", \"memory\": \"1GB\"}, {\"name\": \"y\", \"memory\": \"1GB\"},"
        "{\"name\": \"z\", \"memory\": \"1GB\"}], \"links\": ["
        "{\"from\": \"x\", \"to\": \"y\", \"bandwidth\": \"1GB/s\", \"latency\": \"100ns\", \"both\": true},"
        "{\"from\": \"y\", \"to\": \"z\", \"bandwidth\": \"1GB/s\", \"latency\": \"7ns\", \"both\": true}]}";
    assert_ok(moirai_cluster_parse(&c, two, strlen(two), "two"));
    assert_ok(moirai_refine_parse(g, c, run, strlen(run), "run.json", &r));
    assert_int_equal(r.n_transfers, 2);
    assert_int_equal(r.segment_ns, 40);
    assert_int_equal(time_of(g, "a", "x"), 200); /* 240 less the segment's 40 */
    assert_int_equal(time_of(g, "b", "x"), 600);
    assert_int_equal(time_of(g, "a", "y"), 20);                /* y ran nothing: as all did */
    assert_int_equal(c->latency_ns[0 * 3 + 1], 500 + 30 + 40); /* y has no segments: those of x tell */
    assert_int_equal(c->latency_ns[1 * 3 + 0], 300 + 20 + 40);
    assert_int_equal(c->latency_ns[1 * 3 + 2], 7 + 260); /* the lower middle of what the others gained */
    assert_int_equal(c->bytes_per_second[0 * 3 + 1], 1000000000);
    assert_int_equal(c->n_links, 6);
    assert_true(c->cuts_measured); /* a plan on it adds no price of a segment */
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* ---- what runs say together ---- */

static moirai_graph *make_equals(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    static const char *const name[] = {"a", "b", "c", "d"};
    assert_ok(moirai_graph_builder_new(&b, "g"));
    for (int i = 0; i < 4; i++) {
        int32_t op = moirai_graph_builder_op(b, name[i], i < 3 ? "Relu" : "Abs");
        moirai_graph_builder_input(b, op, i ? name[i - 1] : "in");
        moirai_graph_builder_output(b, op, name[i], 8);
        moirai_graph_builder_time(b, op, "x", 100);
        moirai_graph_builder_time(b, op, "y", 200);
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

/* What was measured of two holds for the third; the fourth is of another type. */
static void test_refine_equal_operators_stay_equal(void **state)
{
    (void)state;
    moirai_graph *g = make_equals();
    assert_ok(refine(g,
                     "[{\"name\": \"x\", \"segments\": [{\"ops\": [\"a\"], \"median_ns\": 300},"
                     " {\"ops\": [\"b\"], \"median_ns\": 310}, {\"ops\": [\"d\"], \"median_ns\": 100}]}]",
                     NULL));
    int64_t a = time_of(g, "a", "x");
    assert_true(a > 295 && a < 310);
    assert_int_equal(time_of(g, "b", "x"), a);
    assert_int_equal(time_of(g, "c", "x"), a);
    assert_true(time_of(g, "d", "x") >= 100 && time_of(g, "d", "x") < 200);
    moirai_graph_free(g);
}

/* A run of the whole network on a device is met exactly, whatever its parts took in another run. */
static void test_refine_whole_runs_are_exact(void **state)
{
    static const char *const run[] = {
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"x\", \"segments\":"
        " [{\"ops\": [\"a\", \"b\", \"c\", \"d\"], \"median_ns\": 800}]}]}",
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"x\", \"segments\":"
        " [{\"ops\": [\"a\"], \"median_ns\": 300}]}, {\"name\": \"y\", \"segments\":"
        " [{\"ops\": [\"b\", \"c\", \"d\"], \"median_ns\": 300}]}]}"};
    moirai_graph *g = make_equals();
    moirai_refine_report report[2];
    char *path[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        path[i] = temporary_path(i ? "split.json" : "whole.json");
        FILE *f = fopen(path[i], "w");
        assert_non_null(f);
        fputs(run[i], f);
        assert_int_equal(fclose(f), 0);
    }
    assert_ok(moirai_refine(g, NULL, (const char *const *)path, 2, report));
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += time_of(g, g->op_name[i], "x");
    assert_true(llabs(sum - 800) <= 4);
    assert_true(time_of(g, "a", "x") > time_of(g, "d", "x"));
    assert_true(llabs(time_of(g, "b", "y") - 100) <= 1);
    assert_int_equal(report[0].n_ops, 4);
    assert_int_equal(report[1].n_segments, 2);
    for (int i = 0; i < 2; i++)
        remove(path[i]);
    moirai_graph_free(g);
}

/* Runs of the whole network tell nothing of what a segment costs, however many they are. */
static void test_refine_whole_runs_have_no_price(void **state)
{
    char run[2000];
    moirai_graph *g = make_equals();
    moirai_cluster *c;
    moirai_refine_report report[5];
    char *path[5];
    (void)state;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "whole%d.json", i);
        path[i] = temporary_path(name);
        snprintf(run, sizeof run,
                 "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"x\", \"segments\":"
                 " [{\"ops\": [\"a\", \"b\", \"c\", \"d\"], \"median_ns\": %d}]}]}",
                 800 + i);
        FILE *f = fopen(path[i], "w");
        assert_non_null(f);
        fputs(run, f);
        assert_int_equal(fclose(f), 0);
    }
    static const char two[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"x\", \"memory\": \"1GB\"}, {\"name\": \"y\", \"memory\": \"1GB\"}], \"links\": ["
        "{\"from\": \"x\", \"to\": \"y\", \"bandwidth\": \"1GB/s\", \"latency\": \"100ns\", \"both\": true}]}";
    assert_ok(moirai_cluster_parse(&c, two, strlen(two), "two"));
    assert_ok(moirai_refine(g, c, (const char *const *)path, 5, report));
    assert_int_equal(report[0].segment_ns, 0);
    assert_true(llabs(time_of(g, "a", "x") - 200) <= 1);
    assert_int_equal(c->latency_ns[1], 100);
    for (int i = 0; i < 5; i++)
        remove(path[i]);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* a, b on x, then c, d on y: 400 + 70 of computing, 8 of bytes. The message was seen to take 92 more, but the end came
 * at 700: a cut takes 222. */
static void test_refine_runs_end_when_they_did(void **state)
{
    (void)state;
    static const char run[] =
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"median_ns\": 700, \"devices\": ["
        "{\"name\": \"x\", \"segments\": ["
        "{\"ops\": [\"a\", \"b\"], \"median_ns\": 400, \"start_ns\": 0, \"finish_ns\": 400}]},"
        "{\"name\": \"y\", \"segments\": ["
        "{\"ops\": [\"c\", \"d\"], \"median_ns\": 70, \"start_ns\": 500, \"finish_ns\": 570}]}],"
        "\"transfers\": [{\"tensor\": \"b\", \"from\": \"x\", \"to\": \"y\", \"bytes\": 8, \"median_ns\": 100,"
        " \"start_ns\": 400, \"finish_ns\": 500}]}";
    static const char two[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"x\", \"memory\": \"1GB\"}, {\"name\": \"y\", \"memory\": \"1GB\"}], \"links\": ["
        "{\"from\": \"x\", \"to\": \"y\", \"bandwidth\": \"1GB/s\", \"latency\": \"100ns\", \"both\": true}]}";
    moirai_graph *g = make_graph();
    moirai_cluster *c;
    moirai_refine_report r;
    assert_ok(moirai_cluster_parse(&c, two, strlen(two), "two"));
    assert_ok(moirai_refine_parse(g, c, run, strlen(run), "run.json", &r));
    assert_true(llabs(r.extra_ns - 130) <= 1);
    assert_true(llabs(c->latency_ns[0 * 2 + 1] - 222) <= 1);
    assert_true(llabs(c->latency_ns[1 * 2 + 0] - 222) <= 1);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

static void test_refine_of_another_cluster_changes_nothing(void **state)
{
    (void)state;
    moirai_graph *g = make_graph(), *h = make_graph();
    moirai_cluster *c;
    static const char run[] =
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"x\", \"segments\":"
        " [{\"ops\": [\"a\"], \"median_ns\": 999}]}], \"transfers\": []}";
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_int_equal(moirai_refine_parse(g, c, run, strlen(run), "run.json", NULL), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "device 'x'"));
    assert_graphs_equal(g, h);
    moirai_cluster_free(c);
    moirai_graph_free(g);
    moirai_graph_free(h);
}

/* ---- times of a device ---- */

static void test_times_set_adds_and_replaces(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    const int64_t first[] = {1, 2, 3, MOIRAI_UNKNOWN}, second[] = {5, 6, 7, 8};
    assert_ok(moirai_graph_times_set(g, "z", first));
    assert_int_equal(g->n_time_keys, 3);
    assert_int_equal(time_of(g, "b", "z"), 2);
    assert_int_equal(time_of(g, "d", "z"), MOIRAI_UNKNOWN);
    assert_int_equal(time_of(g, "b", "x"), 300);
    assert_ok(moirai_graph_times_set(g, "x", second));
    assert_int_equal(g->n_time_keys, 3);
    assert_int_equal(time_of(g, "d", "x"), 8);
    char *path = temporary_path("times.json");
    moirai_graph *back;
    assert_ok(moirai_graph_write(g, path));
    assert_ok(moirai_graph_read(&back, path));
    assert_int_equal(time_of(back, "c", "z"), 3);
    assert_int_equal(time_of(back, "c", "y"), 30);
    moirai_graph_free(back);
    moirai_graph_free(g);
    remove(path);
}

static void test_times_set_refuses_nonsense(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    const int64_t negative[] = {1, -2, 3, 4};
    assert_int_equal(moirai_graph_times_set(g, "x", negative), MOIRAI_EINPUT);
    assert_int_equal(moirai_graph_times_set(g, "", negative), MOIRAI_EINPUT);
    assert_int_equal(time_of(g, "a", "x"), 100);
    moirai_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refine_segment_sums_to_its_time),
        cmocka_unit_test(test_refine_others_follow_their_device),
        cmocka_unit_test(test_refine_idle_devices_follow_all),
        cmocka_unit_test(test_refine_segment_of_nothing_is_shared_evenly),
        cmocka_unit_test(test_refine_twice_is_once),
        cmocka_unit_test(test_refine_takes_times_under_load),
        cmocka_unit_test(test_refine_takes_load_of_other_copies),
        cmocka_unit_test(test_refine_names_what_does_not_belong),
        cmocka_unit_test(test_refine_moves_the_price_of_segments_to_latencies),
        cmocka_unit_test(test_refine_equal_operators_stay_equal),
        cmocka_unit_test(test_refine_whole_runs_are_exact),
        cmocka_unit_test(test_refine_whole_runs_have_no_price),
        cmocka_unit_test(test_refine_runs_end_when_they_did),
        cmocka_unit_test(test_refine_of_another_cluster_changes_nothing),
        cmocka_unit_test(test_times_set_adds_and_replaces),
        cmocka_unit_test(test_times_set_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
