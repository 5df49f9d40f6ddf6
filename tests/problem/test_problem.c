/* Problems: from graph and cluster, from files, wishes, derived arrays, what is said of bad files. */
#include <moirai/coarsen.h>

#include "problem/equal_devices.h"
#include "support/check.h"
#include "support/tiny.h"
#include "util/util.h"

#define CHANNEL(a, b) "{\"from\": \"" a "\", \"to\": \"" b "\", \"bytes_per_second\": 1000, \"latency_ns\": 5}"
#define MODES "\"flow\": \"tensor\", \"congestion\": \"port\", \"memory\": \"static\""
#define DEVICES "{\"name\": \"A\", \"memory_bytes\": 10}, {\"name\": \"B\", \"memory_bytes\": 20}"
#define PROBLEM_WITH(modes, devices, channels, ops) \
    "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"p\", " modes ", \"devices\": [" devices \
    "], \"channels\": [" channels "], \"ops\": [" ops "]}"
#define PROBLEM(ops) PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "B") "," CHANNEL("B", "A"), ops)
#define OP(name, time, in, out, more) \
    "{\"name\": \"" name "\", \"type\": \"X\", \"memory_bytes\": 4, \"time_ns\": [" time "], \"inputs\": [" in \
    "], \"outputs\": [" out "]" more "}"
#define TENSOR(name, bytes) "{\"name\": \"" name "\", \"bytes\": " bytes "}"

static moirai_problem *parse(const char *json)
{
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, json, strlen(json), "p.json"));
    return p;
}

#define CHAIN \
    OP("a", "1, 2", "\"image\"", TENSOR("ta", "7") "," TENSOR("tx", "9"), "") \
    "," OP("b", "3, null", "\"ta\", \"w\", \"tx\", \"ta\"", TENSOR("tb", "7"), \
           ", \"group\": \"g\"") "," OP("c", "5, 6", "\"tb\", \"ta\"", "", ", \"group\": \"g\"")

static void test_problem_derived_arrays(void **state)
{
    (void)state;
    moirai_problem *p = parse(PROBLEM(CHAIN));
    assert_int_equal(p->n_ops, 3);
    assert_int_equal(p->n_tensors, 3);
    assert_int_equal(p->n_edges, 4);                        /* ta -> b, ta -> c, tx -> b, tb -> c */
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
    moirai_problem *p =
        parse(PROBLEM_WITH(MODES, DEVICES,
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
    moirai_problem *p = parse(PROBLEM(
        OP("a", "1, 2", "",
           TABLED("s", "1", "3") "," TABLED("t", "2", "3") "," TABLED("u", "1", "9") "," TENSOR("v", "1"), "")));
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

static void test_problem_round_trip_of_files_and_networks(void **state)
{
    (void)state;
    static const struct {
        const char *network, *cluster;
        moirai_flow flow;
        int32_t n_ops;
    } list[] = {
        {"gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR, 118},
        {"inception-tiny", "inter-server", MOIRAI_FLOW_EDGE, 63},
        {"t5-small", "2x v100, 2x p100 16GB, 100Gbps 5us", MOIRAI_FLOW_TENSOR, 1236},
        {"gpt3-330M", "inter-server", MOIRAI_FLOW_EDGE, 4872},
        {"gpt3-13B", "intra-server", MOIRAI_FLOW_TENSOR, 19640},
    };
    moirai_problem *p;
    assert_ok(moirai_problem_read(&p, data_path("two-branches.problem.json")));
    assert_int_equal(p->n_ops, 12);
    assert_int_equal(p->n_edges, 15);
    assert_int_equal(moirai_transfer_ns(p, moirai_problem_find_tensor(p, "s"), 1, 0), 2500000);
    assert_int_equal(moirai_op_ns(p, moirai_problem_find_op(p, "skip"), 2), MOIRAI_NEVER);
    round_trip(p);
    moirai_problem_free(p);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        p = zoo_problem(list[i].network, list[i].cluster, list[i].flow);
        assert_int_equal(p->n_ops, list[i].n_ops);
        round_trip(p);
        moirai_problem_free(p);
    }
}

static void test_problem_round_trip_of_random_problems(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 11);
    for (int round = 0; round < 40; round++) {
        char json[8192];
        int used = sprintf(json,
                           "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"r\\u00e9\", \"flow\": \"%s\", "
                           "\"congestion\": \"none\", \"memory\": \"peak\", \"devices\": [" DEVICES
                           "], \"channels\": [" CHANNEL("B", "A") "," CHANNEL("A", "B") "], \"ops\": [",
                           round % 2 ? "edge" : "tensor");
        int n = 1 + (int)util_rng_below(&r, 20);
        for (int i = 0; i < n; i++) {
            used += sprintf(json + used,
                            "%s{\"name\": \"o%d\", \"memory_bytes\": %u, \"time_ns\": [%u, %s], \"inputs\": [\"w%u\"",
                            i ? "," : "", i, util_rng_below(&r, 9), util_rng_below(&r, 9), i % 4 ? "7" : "null",
                            util_rng_below(&r, 3));
            for (int e = 0; i && e < 3; e++)
                used += sprintf(json + used, ", \"t%u\"", util_rng_below(&r, (uint32_t)i));
            used += sprintf(json + used, "], \"outputs\": [{\"name\": \"t%d\", \"bytes\": %u%s}]%s}", i,
                            util_rng_below(&r, 4), util_rng_below(&r, 3) ? "" : ", \"transfer_ns\": [[0, 1], [2, 0]]",
                            util_rng_below(&r, 4) ? "" : (i % 3 ? ", \"group\": \"x\"" : ", \"group\": \"y\""));
        }
        sprintf(json + used, "]}");
        moirai_problem *p = parse(json);
        round_trip(p);
        moirai_problem_free(p);
    }
}

/* ---- from graph and cluster ---- */

static moirai_graph *small_graph(void)
{
    const char *json =
        "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"net\", \"ops\": ["
        "{\"name\": \"L0/fc\", \"type\": \"MatMul\", \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"u\", \"bytes\": "
        "4000}],"
        " \"weight_bytes\": 100, \"workspace_bytes\": 11, \"time_ns\": {\"t4\": 5, \"A\": 7, \"C\": 8, \"D\": 9}},"
        "{\"name\": \"L0/act\", \"type\": \"Relu\", \"inputs\": [\"u\"], \"outputs\": [{\"name\": \"v\", \"bytes\": "
        "4000}],"
        " \"time_ns\": {\"A\": 1, \"B\": 2, \"C\": 3, \"D\": 4}},"
        "{\"name\": \"L1/fc\", \"type\": \"MatMul\", \"inputs\": [\"v\"], \"outputs\": [],"
        " \"time_ns\": {\"A\": 1, \"B\": 2, \"C\": 3, \"D\": 4}}]}";
    moirai_graph *g;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "net.json"));
    return g;
}

static int make(moirai_problem **p, const moirai_wish *wishes, int n_wishes)
{
    moirai_graph *g = small_graph();
    moirai_cluster *c;
    moirai_problem_options o = {
        .flow = MOIRAI_FLOW_EDGE, .memory = MOIRAI_MEMORY_PEAK, .wishes = wishes, .n_wishes = n_wishes};
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    int result = moirai_problem_new(p, g, c, &o);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return result;
}

static void test_problem_new_settles_all_numbers(void **state)
{
    (void)state;
    moirai_problem *p;
    assert_ok(make(&p, NULL, 0));
    assert_string_equal(p->name, "net-inter-server");
    assert_true(p->flow == MOIRAI_FLOW_EDGE && p->congestion == MOIRAI_CONGESTION_PORT &&
                p->memory == MOIRAI_MEMORY_PEAK);
    assert_int_equal(p->op_memory_bytes[0], 111);
    assert_int_equal(moirai_op_ns(p, 0, 0), 7);            /* by device name */
    assert_int_equal(moirai_op_ns(p, 0, 1), 5);            /* by device type */
    assert_int_equal(moirai_transfer_ns(p, 0, 0, 1), 724); /* ceil(4000 / 5.5325) */
    assert_int_equal(p->device_memory_bytes[1], 16000000000);
    round_trip(p);
    moirai_problem_free(p);
}

/* What a cut costs beside its message is part of the transfer, and of nothing else. */
static void test_problem_cuts_cost_a_segment_and_bytes(void **state)
{
    (void)state;
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    const char *json = "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"n\", \"ops\": [{\"name\": \"a\", "
                       "\"type\": \"Relu\", \"inputs\": [], \"outputs\": [{\"name\": \"t\", \"bytes\": 2000000}]}]}";
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    assert_ok(moirai_cluster_open(&c, "2x v100, 8Gbps 5us"));
    moirai_problem_options o = {.segment_ns = 28000, .move_ns_per_mb = 175000};
    assert_ok(moirai_problem_new(&p, g, c, &o));
    assert_int_equal(p->latency_ns[1], 33000);
    assert_int_equal(p->latency_ns[0], 0);
    assert_int_equal(p->bytes_per_second[1], 851063829); /* 1 / (1 ns + 0.175 ns) */
    assert_true(llabs(moirai_transfer_ns(p, 0, 0, 1) - (33000 + 2 * 1175000)) <= 1);
    assert_int_equal(moirai_transfer_ns(p, 0, 0, 0), 0);
    moirai_problem_free(p);
    o.segment_ns = -2;
    assert_int_equal(moirai_problem_new(&p, g, c, &o), MOIRAI_EUSAGE);
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

/* What a segment of the runtime costs its receiver, where nobody says otherwise: `run` and `split` know the same
 * numbers. */
static void test_problem_cuts_cost_what_the_runtime_needs(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        moirai_runtime runtime;
        bool cuts_measured;
        int64_t to_first_ns, to_second_ns;
    } cases[] = {
        {"v100, cpu-8-avx2, 8Gbps 5us", MOIRAI_RUNTIME_ORT, false, 17000, 8000},
        {"v100, cpu-8-avx2, 8Gbps 5us", MOIRAI_RUNTIME_ORT, true, 0, 0},
        {"v100, cpu-8-avx2, 8Gbps 5us", MOIRAI_RUNTIME_EAGER, false, 26600, 26600},
        {"v100, cpu-8-avx2, 8Gbps 5us", MOIRAI_RUNTIME_UNSET, false, 26600, 26600}, /* those of the fit: eager */
        {"v100, p100, 8Gbps 5us", MOIRAI_RUNTIME_UNSET, false, 26600, 26600},
    };
    const char *json = "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"n\", \"ops\": [{\"name\": \"a\", "
                       "\"type\": \"Relu\", \"inputs\": [], \"outputs\": [{\"name\": \"t\", \"bytes\": 2000000}]}]}";
    moirai_graph *g;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        moirai_cluster *c;
        moirai_problem *p;
        assert_ok(moirai_cluster_open(&c, cases[i].cluster));
        c->cuts_measured = cases[i].cuts_measured;
        assert_ok(moirai_problem_new(
            &p, g, c, &(moirai_problem_options){.segment_ns = MOIRAI_UNKNOWN, .runtime = cases[i].runtime}));
        assert_int_equal(p->device_segment_ns[0], cases[i].to_first_ns);
        assert_int_equal(p->device_segment_ns[1], cases[i].to_second_ns);
        assert_int_equal(p->latency_ns[2], 5000 + cases[i].to_first_ns);
        assert_int_equal(p->latency_ns[1], 5000 + cases[i].to_second_ns);
        round_trip(p);
        moirai_problem_free(p);
        moirai_cluster_free(c);
    }
    moirai_graph_free(g);
}

/* The whole network as one: by name, else by type; kept by fusion and by files, halved with a device twice as fast. */
static void test_problem_knows_what_the_whole_network_takes(void **state)
{
    (void)state;
    const char *json =
        "{\"format\": \"moirai-graph\", \"version\": 1, \"whole_ns\": {\"A\": 900, \"v100\": 501}, \"ops\": "
        "[{\"name\": \"a\", \"type\": \"Relu\", \"inputs\": [], \"outputs\": [], \"time_ns\": "
        "{\"v100\": 1000, \"t4\": 2000}}]}";
    moirai_graph *g, *coarse;
    moirai_cluster *c;
    moirai_problem *p, *faster;
    moirai_rules *rules;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    assert_ok(moirai_rules_open(&rules, "onnxruntime"));
    assert_ok(moirai_coarsen(&coarse, g, rules, NULL));
    assert_ok(moirai_cluster_open(&c, "2x v100, t4, 8Gbps 5us"));
    assert_ok(moirai_problem_new(&p, coarse, c, &(moirai_problem_options){.segment_ns = MOIRAI_UNKNOWN}));
    assert_int_equal(p->device_whole_ns[0], 900);
    assert_int_equal(p->device_whole_ns[1], 501);
    assert_int_equal(p->device_whole_ns[2], 0);
    round_trip(p);
    assert_ok(moirai_problem_change(&faster, p, c, &(moirai_change){MOIRAI_CHANGE_SPEED, 1, MOIRAI_NONE}));
    assert_int_equal(faster->device_whole_ns[0], 900);
    assert_int_equal(faster->device_whole_ns[1], 251);
    moirai_problem_free(faster);
    moirai_problem_free(p);
    moirai_cluster_free(c);
    moirai_rules_free(rules);
    moirai_graph_free(coarse);
    moirai_graph_free(g);
}

/* A link twice as fast makes no segment cheaper, and the cluster of a problem is known though its latencies are less. */
static void test_problem_faster_link_keeps_the_price_of_segments(void **state)
{
    (void)state;
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p, *q;
    const char *json = "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"n\", \"ops\": [{\"name\": \"a\", "
                       "\"type\": \"Relu\", \"inputs\": [], \"outputs\": [{\"name\": \"t\", \"bytes\": 2000000}]}]}";
    moirai_change change = {MOIRAI_CHANGE_LINK, 0, 1};
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    assert_ok(moirai_cluster_open(&c, "2x v100, 8Gbps 5us"));
    assert_ok(moirai_problem_new(&p, g, c, &(moirai_problem_options){.segment_ns = 17000}));
    for (int with = 0; with < 2; with++) {
        assert_ok(moirai_problem_change(&q, p, with ? c : NULL, &change));
        assert_int_equal(q->latency_ns[1], 2500 + 17000);
        assert_int_equal(q->device_segment_ns[1], 17000);
        moirai_problem_free(q);
    }
    moirai_problem_free(p);
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

/* What moving bytes costs beside the link (--move-us) is part of every bandwidth; a problem, also one that was written and
 * read, knows its cluster all the same, and a link twice as fast moves no byte faster through the devices. */
static void test_problem_faster_link_keeps_the_price_of_moving(void **state)
{
    (void)state;
    moirai_graph *g;
    moirai_cluster *c, *other;
    moirai_problem *p, *q, *back;
    char *text;
    size_t length;
    const char *json = "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"n\", \"ops\": [{\"name\": \"a\", "
                       "\"type\": \"Relu\", \"inputs\": [], \"outputs\": [{\"name\": \"t\", \"bytes\": 2000000}]}]}";
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    assert_ok(moirai_cluster_open(&c, "2x v100, 8Gbps 5us"));
    assert_ok(moirai_cluster_open(&other, "2x v100, 9Gbps 5us"));
    assert_ok(moirai_problem_new(&p, g, c, &(moirai_problem_options){.segment_ns = 17000, .move_ns_per_mb = 175000}));
    assert_ok(moirai_problem_text(&text, &length, p));
    assert_ok(moirai_problem_parse(&back, text, length, "p"));
    for (int with = 0; with < 4; with++) {
        const moirai_problem *from = with & 2 ? back : p;
        assert_ok(moirai_problem_change(&q, from, with & 1 ? c : NULL, &(moirai_change){MOIRAI_CHANGE_LINK, 0, 1}));
        assert_in_range(q->bytes_per_second[1], 1481481480, 1481481482); /* 1 / (0.5 ns + 0.175 ns) */
        assert_int_equal(q->move_ns_per_mb, 175000);
        moirai_problem_free(q);
        assert_int_equal(moirai_problem_change(&q, from, other, &(moirai_change){.kind = MOIRAI_CHANGE_NONE}),
                         MOIRAI_EINPUT);
    }
    free(text);
    moirai_problem_free(back);
    moirai_problem_free(p);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    moirai_cluster_free(other);
}

static void test_problem_wishes_pin_forbid_together(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_wish wishes[] = {
        {MOIRAI_PIN, "L0/*", "A,C"}, {MOIRAI_FORBID, "L0/act", "C"}, {MOIRAI_TOGETHER, "*/fc", NULL}};
    assert_ok(make(&p, wishes, 3));
    assert_true(p->op_devices[0] == 5 && p->op_devices[1] == 1 && p->op_devices[2] == 5);
    assert_int_equal(moirai_op_ns(p, 1, 2), MOIRAI_NEVER);
    assert_int_equal(p->n_groups, 1);
    assert_true(p->op_group[0] == 0 && p->op_group[1] == MOIRAI_NONE && p->op_group[2] == 0);
    assert_string_equal(p->group_name[0], "*/fc");
    round_trip(p);
    moirai_problem_free(p);
}

static void test_problem_overlapping_groups_merge(void **state)
{
    (void)state;
#define FREE(name, more) OP(name, "1, 1", "", "", more)
    moirai_problem *p = parse(PROBLEM(FREE("a", "") "," FREE("b", ", \"group\": \"old\"") "," FREE(
        "c", ", \"group\": \"old\"") "," FREE("d", "") "," FREE("e", "") "," FREE("f", "")));
    moirai_wish wishes[] = {{MOIRAI_TOGETHER, "[cd]", NULL}, {MOIRAI_TOGETHER, "[ef]", NULL}};
    assert_ok(moirai_problem_wish(p, wishes, 2));
    assert_int_equal(p->n_groups, 2);
    const int32_t expected[] = {MOIRAI_NONE, 0, 0, 0, 1, 1};
    assert_memory_equal(p->op_group, expected, sizeof expected);
    assert_string_equal(p->group_name[0], "old");
    assert_string_equal(p->group_name[1], "[ef]");
    /* A third pattern joins everything; one that is taken as a name gets a number. */
    moirai_wish more[] = {{MOIRAI_TOGETHER, "a", NULL}, {MOIRAI_TOGETHER, "[be]", NULL}};
    assert_ok(moirai_problem_wish(p, more, 2));
    assert_int_equal(p->n_groups, 2);
    const int32_t joined[] = {0, 1, 1, 1, 1, 1};
    assert_memory_equal(p->op_group, joined, sizeof joined);
    round_trip(p);
    moirai_problem_free(p);
}

static void bad_wish(moirai_wish_kind kind, const char *pattern, const char *devices, int result, const char *expected)
{
    moirai_problem *p = parse(PROBLEM(CHAIN)), *untouched = parse(PROBLEM(CHAIN));
    moirai_wish wishes[] = {{MOIRAI_TOGETHER, "*", NULL}, {MOIRAI_FORBID, "a", "B"}, {kind, pattern, devices}};
    assert_int_equal(moirai_problem_wish(p, wishes, 3), result);
    assert_string_equal(moirai_error_message(), expected);
    assert_problems_equal(p, untouched);
    moirai_problem_free(p);
    moirai_problem_free(untouched);
}

static void test_problem_bad_wishes_change_nothing(void **state)
{
    (void)state;
    bad_wish(MOIRAI_PIN, "zz*", "A", MOIRAI_EINPUT, "pin 'zz*': no operator of problem 'p' has such a name");
    bad_wish(MOIRAI_TOGETHER, "?z", NULL, MOIRAI_EINPUT, "together '?z': no operator of problem 'p' has such a name");
    bad_wish(MOIRAI_FORBID, "a", "A,Z", MOIRAI_EINPUT, "forbid 'a': no device 'Z' in problem 'p'");
    bad_wish(MOIRAI_PIN, "a", "", MOIRAI_EINPUT, "pin 'a': no device '' in problem 'p'");
    bad_wish(MOIRAI_FORBID, "a", "A", MOIRAI_EINFEASIBLE, "no device can run operator 'a'");
    bad_wish(MOIRAI_PIN, "c", "B", MOIRAI_EINFEASIBLE,
             "no device can run all operators of group 'g' (the first is 'a')");
}

/* ---- bad files: the exact line ---- */

static void bad_with(int result, const char *json, const char *expected)
{
    moirai_problem *p = (moirai_problem *)1;
    assert_int_equal(moirai_problem_parse(&p, json, strlen(json), "p.json"), result);
    assert_string_equal(moirai_error_message(), expected);
    assert_null(p);
}

static void bad(const char *json, const char *expected)
{
    bad_with(MOIRAI_EINPUT, json, expected);
}

static void test_problem_reader_rejects_bad_structure(void **state)
{
    (void)state;
    bad("{\"format\": \"moirai-problem\", \"version\": 1,\n\n\"devices\": [{\"na",
        "p.json: line 3, column 17: bad JSON: unexpected end of data");
    bad("{\"format\": \"moirai-problem\", \"version\": 1, \"ops\": []}", "p.json: key 'devices' is missing");
    bad(PROBLEM_WITH(MODES, "", "", ""), "p.json: 0 devices, must be 1 to 512");
    bad(PROBLEM_WITH("\"flow\": \"river\", \"congestion\": \"port\", \"memory\": \"static\"", DEVICES, "", ""),
        "p.json: flow is \"river\", expected \"tensor\" or \"edge\"");
    bad(PROBLEM_WITH("\"flow\": \"edge\", \"congestion\": \"jam\", \"memory\": \"static\"", DEVICES, "", ""),
        "p.json: congestion is \"jam\", expected \"port\", \"channel\", \"none\" or \"device\"");
    bad(PROBLEM_WITH("\"flow\": \"edge\", \"congestion\": \"port\", \"memory\": \"huge\"", DEVICES, "", ""),
        "p.json: memory is \"huge\", expected \"static\" or \"peak\"");
    bad(PROBLEM_WITH("\"flow\": \"edge\", \"congestion\": \"port\"", DEVICES, "", ""),
        "p.json: key 'memory' is missing");
    bad(PROBLEM(OP("a", "1, 1", "", "", "") "," OP("a", "1, 1", "", "", "")), "p.json: two operators are named 'a'");
    bad(PROBLEM(OP("a", "1, 1", "\"tb\"", TENSOR("ta", "1"), "") "," OP("b", "1, 1", "\"ta\"", TENSOR("tb", "1"), "")),
        "p.json: cycle of 2 operators: a -> b -> a");
    bad(PROBLEM(OP("a", "1, 1", "", TENSOR("t", "1"), "") "," OP("b", "1, 1", "", TENSOR("t", "1"), "")),
        "p.json: tensor 't' is written by 'a' and by 'b'");
    bad(PROBLEM(OP("a", "1, 1", "", TENSOR("t", "-1"), "")), "p.json: output 't': bytes is -1, must be at least 0");
}

static void test_problem_reader_rejects_bad_devices_and_channels(void **state)
{
    (void)state;
    bad(PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "B"), ""),
        "p.json: no link between devices: the channel from 'B' to 'A' is missing");
    bad(PROBLEM_WITH(MODES, DEVICES, "", ""),
        "p.json: no link between devices: the channel from 'A' to 'B' is missing");
    bad(PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "B") "," CHANNEL("A", "B"), ""),
        "p.json: channel 'A -> B': is there twice");
    bad(PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "Z"), ""), "p.json: channel 0: to is 'Z': no such device");
    bad(PROBLEM_WITH(MODES, DEVICES, CHANNEL("A", "A"), ""), "p.json: channel 'A -> A': from a device to itself");
    bad(PROBLEM_WITH(MODES, DEVICES, "{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 0}", ""),
        "p.json: channel 'A -> B': bytes_per_second is 0, must be at least 1");
    bad(PROBLEM_WITH(MODES, DEVICES "," DEVICES, "", ""), "p.json: two devices are named 'A'");
    bad(PROBLEM_WITH(MODES, "{\"name\": \"A\", \"memory_bytes\": -4}", "", ""),
        "p.json: device 'A': memory_bytes is -4, must be at least 0");
    bad(PROBLEM_WITH(MODES, "{\"name\": \"A\"}", "", ""), "p.json: device 'A': key 'memory_bytes' is missing");
}

static void test_problem_reader_rejects_bad_times(void **state)
{
    (void)state;
    bad(PROBLEM(OP("a", "1", "", "", "")), "p.json: op 'a': time_ns has 1 entries, there are 2 devices");
    bad(PROBLEM(OP("a", "1, -2", "", "", "")), "p.json: op 'a': time_ns is -2, must be at least 0");
    bad(PROBLEM(OP("a", "1, 2.5", "", "", "")), "p.json: op 'a': time_ns is 2.5, expected a whole number");
    bad(PROBLEM(OP("a", "1, 18446744073709551616", "", "", "")),
        "p.json: op 'a': time_ns is 18446744073709551616, beyond 64 bits");
    bad_with(MOIRAI_EINFEASIBLE, PROBLEM(OP("a", "null, null", "", "", "")), "p.json: no device can run operator 'a'");
    bad_with(
        MOIRAI_EINFEASIBLE,
        PROBLEM(OP("a", "null, 1", "", "", ", \"group\": \"g\"") "," OP("b", "1, null", "", "", ", \"group\": \"g\"")),
        "p.json: no device can run all operators of group 'g' (the first is 'a')");
    bad(PROBLEM("{\"name\": \"a\", \"time_ns\": [1, 1], \"inputs\": [], \"outputs\": []}"),
        "p.json: op 'a': key 'memory_bytes' is missing");
    bad(PROBLEM(OP("a", "1, 1", "", "{\"name\": \"t\", \"bytes\": 1, \"transfer_ns\": [[0, 1]]}", "")),
        "p.json: output 't': transfer_ns has 1 rows, there are 2 devices");
    bad(PROBLEM(OP("a", "1, 1", "", "{\"name\": \"t\", \"bytes\": 1, \"transfer_ns\": [[0, 1], [1]]}", "")),
        "p.json: output 't': row 1 of transfer_ns is not an array of 2 times");
    bad(PROBLEM(OP("a", "1, 1", "", "{\"name\": \"t\", \"bytes\": 1, \"transfer_ns\": [[3, 1], [1, 0]]}", "")),
        "p.json: output 't': transfer_ns from device 0 to itself is 3, must be 0");
}

static void test_problem_reader_guards_sums(void **state)
{
    (void)state;
    bad(PROBLEM(OP("a", "1, 2305843009213693951", "", "", "") "," OP("b", "1, 2", "", "", "")),
        "p.json: the operators' times add up to more than 2^61 ns");
    bad(PROBLEM(OP("a", "1, 1", "", TENSOR("t", "9000000000000000"), "")),
        "p.json: moving tensor 't' (9000000000000000 bytes) from 'A' to 'B' takes more than 2^61 ns");
    bad(PROBLEM(OP("a", "1, 1", "", TENSOR("t", "2000000000000"), "") "," OP("b", "1, 1", "\"t\"", "",
                                                                             "") "," OP("c", "1, 1", "\"t\"", "", "")),
        "p.json: the times of operators and transfers add up to more than 2^61 ns");
    bad(PROBLEM("{\"name\": \"a\", \"memory_bytes\": 9223372036854775807, \"time_ns\": [1, 1], \"inputs\": [], "
                "\"outputs\": []}"),
        "p.json: the sizes of operators and tensors add up to more than 2^61 bytes");
}

static void test_problem_check_memory_says_what_is_short(void **state)
{
    (void)state;
    moirai_problem *p = parse(PROBLEM(CHAIN));
    assert_ok(moirai_problem_check_memory(p));
    moirai_wish wish = {MOIRAI_TOGETHER, "*", NULL};
    assert_ok(moirai_problem_wish(p, &wish, 1)); /* 12 bytes, on A (10 bytes) only: b can't run on B */
    assert_int_equal(moirai_problem_check_memory(p), MOIRAI_EINFEASIBLE);
    assert_string_equal(moirai_error_message(),
                        "group 'g' needs 12 B, the largest device that it may use ('A') has 10 B: 2 B short");
    p->device_memory_bytes[0] = p->device_memory_bytes[1] = 4;
    for (int32_t i = 0; i < 3; i++)
        p->op_group[i] = MOIRAI_NONE;
    assert_int_equal(moirai_problem_check_memory(p), MOIRAI_EINFEASIBLE);
    assert_string_equal(moirai_error_message(), "the operators need 12 B, all devices together have 8 B: 4 B short");
    moirai_problem_free(p);
}

/* The classes of devices are those of every two compared by themselves. */
static void test_problem_equal_devices(void **state)
{
    (void)state;
    util_rng rng;
    int32_t equal = 0, unequal = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        char text[512] = "";
        size_t used = 0;
        util_rng_seed(&rng, seed);
        int32_t K = 2 + (int32_t)util_rng_below(&rng, 5), least[MOIRAI_MAX_DEVICES];
        for (int32_t k = 0; k < K; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "device d%d %d\n", k,
                                     util_rng_below(&rng, 8) ? 99 : 98);
        for (int32_t i = 0; i < 4; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "op o%d ", i);
            for (int32_t k = 0; k < K; k++) {
                bool slow = util_rng_below(&rng, 10) == 0, never = k > 0 && util_rng_below(&rng, 30) == 0;
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? "," : "",
                                         never  ? "-"
                                         : slow ? "6"
                                                : "5");
            }
            used += (size_t)snprintf(text + used, sizeof text - used, " > t%d:1\n", i);
        }
        moirai_problem *p = tiny_problem(text);
        problem_equal_devices(p, least);
        for (int32_t b = 0; b < K; b++)
            for (int32_t a = 0; a < b; a++) {
                bool same = problem_devices_equal(p, a, b);
                assert_int_equal(least[a] == least[b], same);
                assert_true(!same || least[b] <= a);
                equal += same;
                unequal += !same;
            }
        moirai_problem_free(p);
    }
    assert_true(equal > 100 && unequal > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_derived_arrays),
        cmocka_unit_test(test_problem_transfer_time_rounds_up),
        cmocka_unit_test(test_problem_own_tables_share_classes),
        cmocka_unit_test(test_problem_round_trip_keeps_everything),
        cmocka_unit_test(test_problem_round_trip_of_files_and_networks),
        cmocka_unit_test(test_problem_round_trip_of_random_problems),
        cmocka_unit_test(test_problem_new_settles_all_numbers),
        cmocka_unit_test(test_problem_cuts_cost_a_segment_and_bytes),
        cmocka_unit_test(test_problem_cuts_cost_what_the_runtime_needs),
        cmocka_unit_test(test_problem_knows_what_the_whole_network_takes),
        cmocka_unit_test(test_problem_faster_link_keeps_the_price_of_segments),
        cmocka_unit_test(test_problem_faster_link_keeps_the_price_of_moving),
        cmocka_unit_test(test_problem_wishes_pin_forbid_together),
        cmocka_unit_test(test_problem_overlapping_groups_merge),
        cmocka_unit_test(test_problem_bad_wishes_change_nothing),
        cmocka_unit_test(test_problem_reader_rejects_bad_structure),
        cmocka_unit_test(test_problem_reader_rejects_bad_devices_and_channels),
        cmocka_unit_test(test_problem_reader_rejects_bad_times),
        cmocka_unit_test(test_problem_reader_guards_sums),
        cmocka_unit_test(test_problem_check_memory_says_what_is_short),
        cmocka_unit_test(test_problem_equal_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
