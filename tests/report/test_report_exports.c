/* The exports against their formats, and the files around a plan. */
#include "support/analysed.h"
#include "support/check.h"
#include "support/scale.h"

#include <inttypes.h>
#include <moirai/moirai.h>
#include <unistd.h>
#include <yyjson.h>

/* ---- the trace ---- */

typedef struct slice {
    int64_t pid, tid, start_ns, finish_ns;
} slice;

static int by_track(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->finish_ns > y->finish_ns) - (x->finish_ns < y->finish_ns);
}

/* "12.345" microseconds as nanoseconds, exactly. */
static int64_t raw_ns(yyjson_val *v)
{
    long long whole;
    int part;
    assert_true(yyjson_is_raw(v));
    assert_int_equal(sscanf(yyjson_get_raw(v), "%lld.%3d", &whole, &part), 2);
    return whole * 1000 + part;
}

/* The slices of a trace in `list`; returns their number. Arrows must go forward. */
static size_t read_trace(slice *list, const char *text, size_t length)
{
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text, length, YYJSON_READ_NUMBER_AS_RAW, NULL, NULL);
    assert_non_null(doc);
    size_t i, n, found = 0;
    yyjson_val *e;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents"), i, n, e) {
        const char *phase = yyjson_get_str(yyjson_obj_get(e, "ph"));
        assert_non_null(strstr("X M s t f C", phase));
        if (*phase != 'X')
            continue;
        int64_t start = raw_ns(yyjson_obj_get(e, "ts"));
        list[found++] =
            (slice){atoll(yyjson_get_raw(yyjson_obj_get(e, "pid"))), atoll(yyjson_get_raw(yyjson_obj_get(e, "tid"))),
                    start, start + raw_ns(yyjson_obj_get(e, "dur"))};
    }
    yyjson_doc_free(doc);
    return found;
}

static void assert_tracks_nest(slice *list, size_t n)
{
    qsort(list, n, sizeof *list, by_track);
    for (size_t i = 1; i < n; i++)
        if (list[i].pid == list[i - 1].pid && list[i].tid == list[i - 1].tid)
            assert_true(list[i].start_ns >= list[i - 1].finish_ns || list[i].finish_ns <= list[i - 1].finish_ns);
}

static void test_trace_slices_follow_or_nest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(150); seed++) {
        analysed s;
        size_t length, most;
        if (!analysed_draw(&s, seed))
            continue;
        char *text = analysed_export(s.a, "trace", &length);
        most = (size_t)s.plan->n_ops + 2 * (size_t)s.plan->n_transfers;
        slice *list = calloc(most + 1, sizeof *list);
        assert_int_equal(read_trace(list, text, length), most);
        assert_tracks_nest(list, most);
        free(list);
        free(text);
        analysed_close(&s);
    }
}

/* ---- device map ---- */

static char *map_problem(const char *device2)
{
    static char text[3000];
    snprintf(
        text, sizeof text,
        "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"m\", \"flow\": \"tensor\", \"congestion\": "
        "\"port\", \"memory\": \"static\","
        "\"devices\": [{\"name\": \"A\", \"memory_bytes\": 1000}, {\"name\": \"B\", \"memory_bytes\": 1000}],"
        "\"channels\": [{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 1000, \"latency_ns\": 0},"
        "{\"from\": \"B\", \"to\": \"A\", \"bytes_per_second\": 1000, \"latency_ns\": 0}], \"ops\": ["
        "{\"name\": \"/model/embed/Gather\", \"type\": \"Gather\", \"memory_bytes\": 10, \"time_ns\": [1, null], "
        "\"inputs\": [\"ids\", \"model.embed.weight\"], \"outputs\": [{\"name\": \"e\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.0/fc/MatMul\", \"type\": \"MatMul+Add\", \"memory_bytes\": 10, \"time_ns\": [1, "
        "null], \"inputs\": [\"e\"], \"outputs\": [{\"name\": \"x\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.0/act/Relu\", \"type\": \"Relu\", \"memory_bytes\": 0, \"time_ns\": [null, 1], "
        "\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.1/fc/MatMul\", \"type\": \"MatMul\", \"memory_bytes\": 10, \"time_ns\": [null, 1], "
        "\"inputs\": [\"y\", \"model.layers.1.fc.weight\"], \"outputs\": [{\"name\": \"z\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.1/fc/Add_1\", \"type\": \"Add\", \"memory_bytes\": 10, \"time_ns\": %s, "
        "\"inputs\": [\"z\", \"model.layers.1.fc.bias\"], \"outputs\": [{\"name\": \"w\", \"bytes\": 1}]}]}",
        device2);
    return text;
}

static void set_up_map(analysed *s, const char *device2)
{
    const char *json = map_problem(device2);
    analysed_parse(s, json, strlen(json));
}

static void test_device_map_has_shortest_prefixes(void **state)
{
    (void)state;
    analysed s;
    size_t length;
    set_up_map(&s, "[null, 1]");
    char *text = analysed_export(s.a, "device-map", &length);
    yyjson_doc *doc = yyjson_read(text, length, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_int_equal(yyjson_obj_size(root), 3);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.embed")), "A");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.layers.0")), "A");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.layers.1")), "B");
    yyjson_doc_free(doc);
    free(text);
    moirai_export_options o = {.depth = 2};
    assert_int_equal(moirai_export(&text, &length, s.a, "device-map", &o), MOIRAI_EINPUT); /* model.layers is on both */
    assert_non_null(strstr(moirai_error_message(), "module 'model.layers' is split"));
    analysed_close(&s);
}

static void test_device_map_names_a_split_module(void **state)
{
    (void)state;
    analysed s;
    char *text;
    size_t length;
    set_up_map(&s, "[1, null]");
    assert_int_equal(moirai_export(&text, &length, s.a, "device-map", NULL), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(),
                           "module 'model.layers.1.fc' is split over devices: 'model.layers.1.fc.bias' is "
                           "on 'A', 'model.layers.1.fc.weight' on 'B'"));
    analysed_close(&s);
}

/* Is `name`, '/' as '.', under one of the keys? Then the key's device; NULL otherwise. */
static const char *looked_up(yyjson_val *map, const char *name)
{
    char dotted[300];
    const char *found = NULL;
    size_t i, n, best = 0;
    yyjson_val *key, *value;
    snprintf(dotted, sizeof dotted, "%s", name);
    for (char *c = dotted; *c; c++)
        *c = *c == '/' ? '.' : *c;
    yyjson_obj_foreach(map, i, n, key, value) {
        size_t length = yyjson_get_len(key);
        bool under =
            !strncmp(dotted, yyjson_get_str(key), length) && (!dotted[length] || dotted[length] == '.' || !length);
        if (under && (!found || length > best)) {
            found = yyjson_get_str(value);
            best = length;
        }
    }
    return found;
}

static void test_device_map_covers_every_weight(void **state)
{
    (void)state;
    static const char *const networks[] = {"gpt3-tiny", "gpt3-mini", "inception-tiny", "swin-1.8B"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        analysed s = {0};
        size_t length;
        s.p = zoo_problem(networks[i], "inter-server", MOIRAI_FLOW_TENSOR);
        assert_ok(moirai_place(&s.plan, s.p, "m-etf", NULL));
        assert_ok(moirai_analysis_new(&s.a, s.p, s.plan, NULL));
        char *text = analysed_export(s.a, "device-map", &length);
        yyjson_doc *doc = yyjson_read(text, length, 0);
        assert_non_null(doc);
        for (int32_t j = 0; j < s.p->n_ops; j++) {
            if (!s.p->op_memory_bytes[j])
                continue;
            const char *device = looked_up(yyjson_doc_get_root(doc), s.p->op_name[j]);
            assert_non_null(device);
            assert_string_equal(device, s.p->device_name[s.plan->op_device[j]]);
        }
        yyjson_doc_free(doc);
        free(text);
        analysed_close(&s);
    }
}

/* ---- files around a plan ---- */

static void test_plan_alone_shows_its_timeline(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(40); seed++) {
        analysed s;
        moirai_problem *p;
        moirai_plan *plan;
        moirai_analysis *a;
        size_t length;
        const char *path = temporary_path("plan.json");
        if (!analysed_draw(&s, seed) || !s.plan->n_ops)
            continue;
        assert_ok(moirai_plan_write(s.plan, s.p, path));
        assert_ok(moirai_problem_of_plan(&p, path));
        assert_ok(moirai_plan_read(&plan, p, path));
        assert_ok(moirai_analysis_new(&a, p, plan, NULL));
        assert_int_equal(a->n_ops, s.plan->n_ops);
        assert_int_equal(a->n_transfers, s.plan->n_transfers);
        assert_true(plan->makespan_ns == s.plan->makespan_ns && a->sent_bytes == s.a->sent_bytes && a->n_steps == 0);
        char *text = analysed_export(a, "trace", &length), *page;
        slice *list = calloc((size_t)a->n_ops + 2 * (size_t)a->n_transfers, sizeof *list);
        assert_tracks_nest(list, read_trace(list, text, length));
        assert_ok(moirai_report_page(&page, &length, &(moirai_report_plan){.analysis = a}, 1));
        free(page);
        free(list);
        free(text);
        moirai_analysis_free(a);
        moirai_plan_free(plan);
        moirai_problem_free(p);
        unlink(path);
        analysed_close(&s);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_search_log_is_read_or_refused(void **state)
{
    (void)state;
    const char *path = temporary_path("log.json");
    moirai_search_event *e;
    int32_t n;
    write_file(path, "{\"seconds\": 0.5, \"makespan_ns\": 90, \"lower_bound_ns\": null}\n\n{\"makespan_ns\": 80, "
                     "\"lower_bound_ns\": 70}\n");
    assert_ok(moirai_search_log_read(&e, &n, path));
    assert_int_equal(n, 2);
    assert_true(e[0].seconds == 0.5 && e[0].makespan_ns == 90 && e[0].lower_bound_ns == MOIRAI_UNKNOWN);
    assert_true(e[1].seconds == 2 && e[1].makespan_ns == 80 && e[1].lower_bound_ns == 70);
    free(e);
    write_file(path, "{\"seconds\": 0.5}\nnonsense\n");
    assert_int_equal(moirai_search_log_read(&e, &n, path), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "line 2"));
    unlink(path);
}

static void test_timeline_names_are_the_problems(void **state)
{
    (void)state;
    analysed s;
    moirai_measured *t;
    set_up_map(&s, "[null, 1]");
    static const char good[] = "{\"format\": \"moirai-timeline\", \"version\": 1, \"median_ns\": 9, \"devices\": "
                               "[{\"name\": \"B\", \"segments\": [{\"start_ns\": 2, \"finish_ns\": 9, "
                               "\"median_ns\": 7, \"ops\": [\"/model/layers.0/act/Relu\"]}]}, {\"name\": \"A\", "
                               "\"segments\": []}], \"transfers\": [{\"tensor\": \"x\", \"from\": \"A\", "
                               "\"to\": \"B\", \"bytes\": 1, \"start_ns\": 1, \"finish_ns\": 2, \"median_ns\": 1}]}";
    assert_ok(moirai_measured_parse(&t, s.p, good, strlen(good), "t"));
    assert_true(t->latency_ns == 9 && t->n_segments == 1 && t->segment[0].device == 1 && t->op[0] == 2);
    assert_true(t->n_transfers == 1 && t->transfer[0].from == 0 && t->transfer[0].to == 1 &&
                !strcmp(t->transfer[0].tensor, "x"));
    moirai_measured_free(t);
    static const char bad[] =
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"Z\", \"segments\": []}]}";
    assert_int_equal(moirai_measured_parse(&t, s.p, bad, strlen(bad), "t"), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "device 'Z'"));
    analysed_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_slices_follow_or_nest),     cmocka_unit_test(test_device_map_has_shortest_prefixes),
        cmocka_unit_test(test_device_map_names_a_split_module), cmocka_unit_test(test_device_map_covers_every_weight),
        cmocka_unit_test(test_plan_alone_shows_its_timeline),   cmocka_unit_test(test_search_log_is_read_or_refused),
        cmocka_unit_test(test_timeline_names_are_the_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
