/* Clusters: units, device types, the closure, files, one-line descriptions. */
#include "support/check.h"

#include "util/util.h"

/* ---- units ---- */

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

/* ---- device types ---- */

static void test_device_type_has_many_spellings(void **state)
{
    (void)state;
    const moirai_device_type *t = moirai_device_type_find("rtx2080ti");
    assert_non_null(t);
    assert_ptr_equal(moirai_device_type_find("RTX 2080 Ti"), t);
    assert_ptr_equal(moirai_device_type_find("rtx-2080ti"), t);
    assert_ptr_equal(moirai_device_type_find("NVIDIA GeForce RTX 2080 Ti"), t);
    assert_ptr_equal(moirai_device_type_find("2080Ti"), t);
    assert_non_null(moirai_device_type_find("Tesla V100"));
    assert_non_null(moirai_device_type_find("cpu"));
    assert_null(moirai_device_type_find("v1000"));
    static const char *const reported[][2] = {
        {"NVIDIA H100 80GB HBM3", "h100"},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA H100 NVL", "h100-nvl"},
        {"NVIDIA H200", "h200"},
        {"NVIDIA GH200 480GB", "gh200"},
        {"NVIDIA B200", "b200"},
        {"Tesla V100-PCIE-32GB", "v100-pcie"},
        {"Tesla V100S-PCIE-32GB", "v100s"},
        {"Tesla V100-SXM2-32GB", "v100"},
        {"V100-SXM2", "v100"},
        {"Apple M3 Max", "m3-max"},
        {"AMD Radeon RX 7900 XTX", "rx7900xtx"},
        {"Jetson Orin NX 8GB", "orin-nx-8g"},
        {"Tesla V100-SXM2-16GB", "v100-16g"},
        {"Tesla P100-PCIE-16GB", "p100"},
        {"NVIDIA A100-SXM4-40GB", "a100"},
        {"NVIDIA A100-SXM4-80GB", "a100-80g"},
        {"NVIDIA A100 80GB PCIe", "a100-80g"},
        {"Tesla T4", "t4"},
        {"NVIDIA A10G", "a10g"},
        {"NVIDIA L40S", "l40s"},
        {"NVIDIA RTX A6000", "a6000"},
        {"NVIDIA GeForce RTX 4090", "rtx4090"},
        {"NVIDIA GeForce GTX 1050", "gtx1050"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx6000ada"},
        {"AMD Instinct MI300X", "mi300x"},
        {"AMD Instinct MI250X / MI250", "mi250x"},
        {"Orin (nvgpu)", "orin"},
        {"Jetson AGX Orin", "orin"},
        {"Jetson Xavier NX", "xavier-nx"},
    };
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++) {
        assert_non_null(moirai_device_type_find(reported[i][0]));
        assert_string_equal(moirai_device_type_find(reported[i][0])->name, reported[i][1]);
    }
    static const char *const misspelt[][2] = {
        {"h10", "h100"},
        {"rtx4091", "rtx4090"},
        {"NVIDIA H100 96GB HBM3", "h100"},
        {"a100-80", "a100-80g"},
        {"mi300", "mi300x"},
        {"cpu-16-avx", "cpu-16-avx2"},
        {"NVIDIA GeForce RTX 3080 Ti Laptop GPU", "rtx3080ti"},
    };
    for (size_t i = 0; i < sizeof misspelt / sizeof *misspelt; i++) {
        assert_null(moirai_device_type_find(misspelt[i][0]));
        assert_string_equal(moirai_device_type_closest(misspelt[i][0])->name, misspelt[i][1]);
    }
    assert_null(moirai_device_type_closest("abacus of wood"));
    assert_null(moirai_device_type_closest(""));
    assert_null(moirai_device_type_find(""));
    for (int i = 0; i < moirai_device_type_count(); i++)
        assert_ptr_equal(moirai_device_type_find(moirai_device_type_at(i)->name), moirai_device_type_at(i));
}

/* The module of servers computes at 15.7 Tflop/s, the card at 14. */
static void test_device_type_v100_modules_and_cards_differ(void **state)
{
    (void)state;
    static const char *const modules[] = {"V100-SXM2", "Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"};
    for (int i = 0; i < 3; i++)
        assert_in_range((long)moirai_device_type_find(modules[i])->gflops_fp32, 15600, 15800);
    assert_in_range((long)moirai_device_type_find("Tesla V100-PCIE-32GB")->gflops_fp32, 14000, 14200);
}

/* ---- testbeds and closure ---- */

/* Figures of every type hang together, so that a slip in the table shows. */
static void test_cluster_every_type_has_sane_figures(void **state)
{
    (void)state;
    for (int i = 0; i < moirai_device_type_count(); i++) {
        const moirai_device_type *t = moirai_device_type_at(i);
        double made = 2e-3 * t->sm * t->cores_per_sm * t->clock_mhz;
        bool cpu = t->processor,
             no_card = cpu || !strncmp(t->name, "orin", 4) || !strncmp(t->name, "xavier", 6) || *t->name == 'm';
        assert_true(cpu || strncmp(t->name, "cpu", 3));
        if (!(t->gflops_fp32 > 0.97 * made && t->gflops_fp32 < 1.03 * made))
            fail_msg("%s: %g GFLOPS, but cores and clock make %g", t->name, t->gflops_fp32, made);
        assert_true(t->memory_bytes >= INT64_C(2000000000) && t->memory_bytes <= INT64_C(512000000000));
        assert_true(t->bandwidth_gb_s >= 20 && t->bandwidth_gb_s <= 8000);
        assert_true(t->gflops_fp16 == 0 || t->gflops_fp16 >= 1.5 * t->gflops_fp32);
        assert_true(t->gflops_tf32 == 0 ||
                    (t->gflops_tf32 >= 0.99 * t->gflops_fp32 && t->gflops_tf32 <= t->gflops_fp16));
        assert_true(cpu ? t->watt == 0 : t->watt >= (no_card ? 10 : 60) && t->watt <= 1000 && t->process_nm >= 4);
        assert_non_null(t->source);
        /* It makes a cluster, and comes back from a file. */
        char line[100];
        moirai_cluster *c;
        snprintf(line, sizeof line, "1x %s", t->name);
        assert_ok(moirai_cluster_open(&c, line));
        assert_string_equal(c->device[0].type, t->name);
        moirai_cluster_free(c);
    }
}

static void test_cluster_testbeds_have_the_papers_figures(void **state)
{
    (void)state;
    moirai_cluster *c;
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_int_equal(c->n_devices, 4);
    assert_int_equal(c->device[1].memory_bytes, 16000000000);
    assert_int_equal(c->bytes_per_second[0 * 4 + 1], 5532500000);
    assert_int_equal(c->bytes_per_second[1 * 4 + 0], 5298750000);
    assert_int_equal(c->bytes_per_second[3 * 4 + 2], 4160000000);
    assert_int_equal(c->bytes_per_second[0], 0);
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_open(&c, "intra-server"));
    assert_int_equal(c->bytes_per_second[0 * 4 + 1], 146255000000);
    assert_int_equal(c->bytes_per_second[3 * 4 + 1], 71885000000);
    moirai_cluster_free(c);
}

#define CLUSTER(devices, links) \
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": [" devices "], \"links\": [" links \
    "]}"
#define DEVICE(name) "{\"name\": \"" name "\", \"memory\": \"1GB\"}"
#define LINK(a, b, bps, ns) \
    "{\"from\": \"" a "\", \"to\": \"" b "\", \"bytes_per_second\": " bps ", \"latency_ns\": " ns ", \"both\": true}"

static moirai_cluster *parse(const char *json)
{
    moirai_cluster *c;
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c.json"));
    return c;
}

/* Memory that is another variant's picks that one, in one line and in a file, and says so; a limit does not. */
static void test_cluster_memory_picks_the_variant(void **state)
{
    (void)state;
    static const struct {
        const char *line, *type;
        bool noted;
    } cases[] = {
        {"jetson orin 8GB", "orin-nano", true},
        {"orin 8GiB", "orin-nano", true},
        {"orin 32GB", "orin-32g", true},
        {"orin 64GB", "orin", false},
        {"orin-nx 8GB", "orin-nx-8g", true},
        {"v100 32GB", "v100", false},
        {"v100 4GB", "v100", false},
        {"v100 64GB", "v100", true},
        {"cpu-16-avx2 500GB", "cpu-16-avx2", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        moirai_cluster *c;
        assert_ok(moirai_cluster_synthetic(&c, cases[i].line));
        assert_string_equal(c->device[0].type, cases[i].type);
        assert_true(c->device[0].figures.gflops_fp32 == moirai_device_type_find(cases[i].type)->gflops_fp32);
        assert_int_equal(c->notes && strstr(c->notes, "GB of memory, and a ") != NULL, cases[i].noted);
        moirai_cluster_free(c);
    }
    moirai_cluster *c =
        parse(CLUSTER("{\"name\": \"A\", \"type\": \"orin\", \"memory\": \"8GB\", \"gflops\": 1400}", ""));
    assert_string_equal(c->device[0].type, "orin-nano");
    assert_true(c->device[0].figures.gflops_fp32 == 1400 && c->device[0].figures.bandwidth_gb_s == 68);
    assert_int_equal(c->device[0].memory_bytes, INT64_C(8000000000));
    assert_non_null(strstr(c->notes, "8.0 GB of memory, and a orin has 64: taken for a orin-nano"));
    moirai_cluster_free(c);
}

static void test_cluster_direct_link_wins_over_wider_path(void **state)
{
    (void)state;
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C"),
                      LINK("A", "B", "100", "1") "," LINK("B", "C", "100", "1") "," LINK("A", "C", "7", "9")));
    assert_int_equal(c->bytes_per_second[0 * 3 + 2], 7);
    assert_int_equal(c->latency_ns[0 * 3 + 2], 9);
    moirai_cluster_free(c);
}

static void test_cluster_path_prefers_width_then_hops_then_latency(void **state)
{
    (void)state;
    /* A-B-E has bottleneck 5; A-C-E 8 with latency 30; A-D-E 8 with latency 20. */
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C") "," DEVICE("D") "," DEVICE("E"),
                      LINK("A", "B", "50", "0") "," LINK("B", "E", "5", "0") "," LINK("A", "C", "8", "10") "," LINK(
                          "C", "E", "9", "20") "," LINK("A", "D", "9", "10") "," LINK("D", "E", "8", "10")));
    assert_int_equal(c->bytes_per_second[0 * 5 + 4], 8);
    assert_int_equal(c->latency_ns[0 * 5 + 4], 20);
    moirai_cluster_free(c);
}

static void test_cluster_path_is_not_fooled_by_a_wide_detour(void **state)
{
    (void)state;
    /* The widest way from A to C is A-B-C; but on the way to D the bottleneck is C-D anyway, and A-X-C, as many hops,
     * has the smaller latency. */
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C") "," DEVICE("D") "," DEVICE("X"),
                      LINK("A", "B", "100", "25") "," LINK("B", "C", "100", "25") "," LINK("C", "D", "5", "0") "," LINK(
                          "A", "X", "6", "1") "," LINK("X", "C", "6", "0")));
    assert_int_equal(c->bytes_per_second[0 * 5 + 2], 100);
    assert_int_equal(c->latency_ns[0 * 5 + 2], 50);
    assert_int_equal(c->bytes_per_second[0 * 5 + 3], 5);
    assert_int_equal(c->latency_ns[0 * 5 + 3], 1);
    moirai_cluster_free(c);
}

/* All simple paths by brute force, against the closure. */
typedef struct best {
    int64_t width, latency;
    int hops;
} best;

static void walk(best *b, const moirai_cluster *c, int32_t at, int32_t goal, uint32_t seen, best path)
{
    if (at == goal) {
        bool better =
            path.width > b->width ||
            (path.width == b->width && (path.hops < b->hops || (path.hops == b->hops && path.latency < b->latency)));
        if (better)
            *b = path;
        return;
    }
    for (int32_t e = 0; e < c->n_links; e++) {
        const moirai_link *l = &c->link[e];
        if (l->from != at || (seen >> l->to & 1))
            continue;
        best next = {UTIL_MIN(path.width, l->bytes_per_second), path.latency + l->latency_ns, path.hops + 1};
        walk(b, c, l->to, goal, seen | 1u << l->to, next);
    }
}

static void test_cluster_closure_equals_brute_force(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 3);
    for (int round = 0; round < 200; round++) {
        char json[8192];
        int n = 2 + (int)util_rng_below(&r, 5), used = 0;
        used += sprintf(json, "{\"format\":\"moirai-cluster\",\"version\":1,\"devices\":[");
        for (int i = 0; i < n; i++)
            used += sprintf(json + used, "%s{\"name\":\"%d\",\"memory\":\"1GB\"}", i ? "," : "", i);
        used += sprintf(json + used, "],\"links\":[");
        for (int a = 0, count = 0; a < n; a++) {
            for (int b = 0; b < n; b++) {
                if (a != b && (b == (a + 1) % n || util_rng_below(&r, 3) == 0))
                    used += sprintf(json + used,
                                    "%s{\"from\":\"%d\",\"to\":\"%d\",\"bytes_per_second\":%u,\"latency_ns\":%u}",
                                    count++ ? "," : "", a, b, 1 + util_rng_below(&r, 4), util_rng_below(&r, 4));
            }
        }
        sprintf(json + used, "]}");
        moirai_cluster *c = parse(json);
        for (int32_t a = 0; a < n; a++) {
            for (int32_t b = 0; b < n; b++) {
                best found = {0, 0, 0}, start = {INT64_MAX, 0, 0};
                if (a == b)
                    continue;
                walk(&found, c, a, b, 1u << a, start);
                for (int32_t e = 0; e < c->n_links; e++)
                    if (c->link[e].from == a && c->link[e].to == b)
                        found = (best){c->link[e].bytes_per_second, c->link[e].latency_ns, 1};
                assert_int_equal(c->bytes_per_second[a * n + b], found.width);
                assert_int_equal(c->latency_ns[a * n + b], found.latency);
            }
        }
        moirai_cluster_free(c);
    }
}

/* ---- files ---- */

static void test_cluster_round_trip(void **state)
{
    (void)state;
    const char *all[] = {"inter-server", "intra-server", "3x v100 nvlink 600Gbps", "2x t4, 1x cpu 12GiB, 1.5Gbps 17ns"};
    char *path = temporary_path("cluster.json");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        moirai_cluster *c, *again;
        assert_ok(moirai_cluster_open(&c, all[i]));
        c->cuts_measured = i % 2;
        assert_ok(moirai_cluster_write(c, path));
        assert_ok(moirai_cluster_open(&again, path));
        assert_clusters_equal(c, again);
        assert_int_equal(again->cuts_measured, i % 2);
        moirai_cluster_free(c);
        moirai_cluster_free(again);
    }
    remove(path);
}

static void test_cluster_round_trip_of_own_figures(void **state)
{
    (void)state;
    char *path = temporary_path("figures.json");
    moirai_cluster *again,
        *c = parse(CLUSTER("{\"name\": \"A\", \"type\": \"v100\", \"gflops\": 15700.5, \"memory_bandwidth\": "
                           "\"897.3GB/s\", \"memory_delivered\": 0.9, \"sm\": 84},"
                           "{\"name\": \"B\", \"type\": \"mine\", \"memory_bytes\": 9223372036854775807, \"gflops\": "
                           "7, \"ep\": \"cpu\", "
                           "\"cores\": \"0-3\", \"host\": \"node1\", \"threads\": 4, \"share\": 0.3}",
                           "{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 9223372036854775807},"
                           "{\"from\": \"B\", \"to\": \"A\", \"bandwidth\": \"8bps\", \"latency\": \"1s\"}"));
    assert_int_equal(c->device[0].memory_bytes, 32000000000); /* the type's */
    assert_true(c->device[0].figures.bandwidth_gb_s == 897.3 && c->device[0].figures.delivered == 0.9);
    assert_true(c->device[0].figures.clock_mhz == 1530);
    assert_true(c->device[1].figures.bandwidth_gb_s == 0);
    assert_string_equal(c->device[1].host, "node1");
    assert_null(c->device[0].host);
    assert_true(c->device[1].share == 0.3 && c->device[0].share == 0);
    assert_null(c->notes);
    assert_ok(moirai_cluster_write(c, path));
    assert_ok(moirai_cluster_open(&again, path));
    assert_clusters_equal(c, again);
    assert_true(again->device[1].share == 0.3 && again->device[0].share == 0);
    remove(path);
    moirai_cluster_free(c);
    moirai_cluster_free(again);
}

static void bad(const char *json, const char *expected)
{
    moirai_cluster *c = (moirai_cluster *)1;
    assert_int_equal(moirai_cluster_parse(&c, json, strlen(json), "c.json"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), expected);
    assert_null(c);
}

#define AB DEVICE("A") "," DEVICE("B")

/* A processor that nobody knows is a processor all the same; its file stays as it was. */
static void test_cluster_unknown_processors_are_generic(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"a\", \"type\": \"cpu 0x41/0xd0c\", \"memory\": \"1GB\"},"
        "{\"name\": \"b\", \"type\": \"Some Xeon\", \"memory\": \"1GB\", \"ep\": \"xnnpack\"},"
        "{\"name\": \"c\", \"type\": \"Some Xeon\", \"memory\": \"1GB\", \"ep\": \"cpu\", \"gflops\": 5},"
        "{\"name\": \"d\", \"type\": \"Some GPU\", \"memory\": \"1GB\", \"ep\": \"cuda\"}], \"links\": ["
        "{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": \"1Gbps\", \"both\": true},"
        "{\"from\": \"b\", \"to\": \"c\", \"bandwidth\": \"1Gbps\", \"both\": true},"
        "{\"from\": \"c\", \"to\": \"d\", \"bandwidth\": \"1Gbps\", \"both\": true}]}";
    static const bool generic[] = {true, true, false, false};
    moirai_cluster *c, *back;
    char *path = temporary_path("generic.json");
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c.json"));
    assert_ok(moirai_cluster_write(c, path));
    assert_ok(moirai_cluster_open(&back, path));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(c->device[i].generic, generic[i]);
        assert_int_equal(back->device[i].generic, generic[i]);
        assert_true(back->device[i].figures.gflops_fp32 == c->device[i].figures.gflops_fp32);
        assert_int_equal(back->device[i].memory_bytes, 1000000000);
    }
    assert_true(c->device[0].figures.bandwidth_gb_s == moirai_device_type_find("cpu")->bandwidth_gb_s);
    assert_string_equal(back->device[0].type, "cpu 0x41/0xd0c");
    assert_null(c->notes);
    remove(path);
    moirai_cluster_free(c);
    moirai_cluster_free(back);
}

/* A processor that is run is as many cores as it has threads, which is one where nobody said; what the file says of its
 * speed stays, and so does one that nobody said is run. */
static void test_cluster_processors_are_as_fast_as_their_threads(void **state)
{
    (void)state;
    char *path = temporary_path("threads.json");
    moirai_cluster *again,
        *c = parse("{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
                   "{\"name\": \"eight\", \"memory\": \"1GB\", \"ep\": \"cpu\", \"threads\": 8},"
                   "{\"name\": \"two\", \"type\": \"Some Xeon\", \"memory\": \"1GB\", \"ep\": \"cpu\", \"threads\": 2},"
                   "{\"name\": \"one\", \"type\": \"cpu\", \"memory\": \"1GB\", \"ep\": \"xnnpack\"},"
                   "{\"name\": \"part\", \"type\": \"cpu-16-avx2\", \"threads\": 4},"
                   "{\"name\": \"more\", \"type\": \"cpu-16-avx2\", \"threads\": 99},"
                   "{\"name\": \"own\", \"type\": \"cpu\", \"threads\": 2, \"gflops\": 77},"
                   "{\"name\": \"all\", \"type\": \"cpu-16-avx2\"},"
                   "{\"name\": \"gpu\", \"type\": \"v100\", \"ep\": \"cuda\", \"threads\": 1}], \"links\": ["
                   "{\"from\": \"eight\", \"to\": \"two\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"two\", \"to\": \"one\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"one\", \"to\": \"part\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"part\", \"to\": \"more\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"more\", \"to\": \"own\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"own\", \"to\": \"all\", \"bandwidth\": \"1Gbps\", \"both\": true},"
                   "{\"from\": \"all\", \"to\": \"gpu\", \"bandwidth\": \"1Gbps\", \"both\": true}]}");
    const double rate = moirai_device_type_find("cpu")->gflops_fp32,
                 line = moirai_device_type_find("cpu")->bandwidth_gb_s;
    const moirai_device_type *sixteen = moirai_device_type_find("cpu-16-avx2");
    const double rates[] = {2 * rate,
                            rate / 2,
                            rate / 4,
                            sixteen->gflops_fp32 / 4,
                            sixteen->gflops_fp32,
                            77,
                            sixteen->gflops_fp32,
                            moirai_device_type_find("v100")->gflops_fp32};
    assert_ok(moirai_cluster_write(c, path));
    assert_ok(moirai_cluster_open(&again, path));
    for (int i = 0; i < 8; i++) {
        assert_true(c->device[i].figures.gflops_fp32 == rates[i]);
        assert_true(again->device[i].figures.gflops_fp32 == rates[i]);
        assert_true(again->device[i].figures.bandwidth_gb_s == c->device[i].figures.bandwidth_gb_s);
    }
    assert_true(c->device[0].figures.bandwidth_gb_s == 2 * line && c->device[1].figures.bandwidth_gb_s == line);
    assert_true(c->device[6].figures.bandwidth_gb_s == sixteen->bandwidth_gb_s);
    remove(path);
    moirai_cluster_free(c);
    moirai_cluster_free(again);
}

static void test_cluster_unread_keys_are_noted(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"a\", \"type\": \"v100\", \"thread\": 1}, {\"name\": \"b\", \"type\": \"v100\"}],"
        "\"links\": [{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": \"1Gbps\", \"Latency\": \"1us\"},"
        " {\"from\": \"b\", \"to\": \"a\", \"bandwidth\": \"1Gbps\"}]}";
    moirai_cluster *c;
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c.json"));
    assert_string_equal(c->notes, "c.json: device 'a': key 'thread' is not known and not read\n"
                                  "c.json: link 0: key 'Latency' is not known and not read");
    moirai_cluster_free(c);
}

static void test_cluster_reader_rejects_bad_devices(void **state)
{
    (void)state;
    bad("{\"format\": \"moirai-cluster\", \"ver", "c.json: line 1, column 34: bad JSON: unexpected end of data");
    bad(CLUSTER("", ""), "c.json: the cluster has no devices");
    bad(CLUSTER("{\"name\": \"B\", \"memory\": \"16XB\"}", ""), "c.json: device 'B': memory \"16XB\": unknown unit");
    bad(CLUSTER("{\"name\": \"B\", \"memory\": \"-16GB\"}", ""),
        "c.json: device 'B': memory \"-16GB\": must not be negative");
    bad(CLUSTER("{\"name\": \"B\", \"memory_bytes\": -1}", ""),
        "c.json: device 'B': memory_bytes is -1, must be at least 0");
    bad(CLUSTER("{\"name\": \"B\", \"memory_bytes\": 99999999999999999999}", ""),
        "c.json: device 'B': memory_bytes is 99999999999999999999, beyond 64 bits");
    bad(CLUSTER("{\"name\": \"B\", \"memory\": 16}", ""),
        "c.json: device 'B': memory is 16, expected a string with a unit (or use memory_bytes)");
    bad(CLUSTER("{\"name\": \"B\", \"memory\": \"1GB\", \"memory_bytes\": 1}", ""),
        "c.json: device 'B': both memory and memory_bytes are given");
    bad(CLUSTER("{\"name\": \"B\"}", ""), "c.json: device 'B': memory is missing");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"abacus\"}", ""),
        "c.json: device 'B': memory is missing, and type 'abacus' is not known");
    bad(CLUSTER("{\"memory\": \"1GB\"}", ""), "c.json: device 0: key 'name' is missing");
    bad(CLUSTER(DEVICE("A") "," DEVICE("A"), ""), "c.json: two devices are named 'A'");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"t4\", \"gflops\": -1}", ""),
        "c.json: device 'B': gflops is -1, must be at least 0");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"t4\", \"share\": 0}", ""),
        "c.json: device 'B': share is 0, must be above 0 and at most 1");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"t4\", \"share\": 1.5}", ""),
        "c.json: device 'B': share is 1.5, must be above 0 and at most 1");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"t4\", \"memory_delivered\": 1.5}", ""),
        "c.json: device 'B': memory_delivered is 1.5, must be at most 1");
    bad(CLUSTER("{\"name\": \"B\", \"type\": \"t4\", \"threads\": 3000000000}", ""),
        "c.json: device 'B': threads is 3000000000, must be at most 2147483647");
}

static void test_cluster_reader_rejects_bad_links(void **state)
{
    (void)state;
    bad(CLUSTER(AB, ""), "c.json: no link between devices: no path from device 'A' to 'B'");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\"}"),
        "c.json: no link between devices: no path from device 'B' to 'A'");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"Z\", \"bandwidth\": \"1Gbps\"}"),
        "c.json: link 0: to is 'Z': no such device");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"A\", \"bandwidth\": \"1Gbps\"}"), "c.json: link from 'A' to itself");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\"}"), "c.json: link 0: 'A' -> 'B': bandwidth is missing");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"0Gbps\"}"),
        "c.json: link 'A' -> 'B': bandwidth of 0 bytes per second, must be at least 1");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"latency\": \"5 weeks\"}"),
        "c.json: link 0: latency \"5 weeks\": unknown unit");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"latency_ns\": 100000000000001}"),
        "c.json: link 'A' -> 'B': latency of 100000000000001 ns, must be 0 to 100000000000000");
    bad(CLUSTER(AB, LINK("A", "B", "1", "0") "," LINK("B", "A", "1", "0")), "c.json: link 'B' -> 'A' is there twice");
    bad(CLUSTER(AB, "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"both\": 1}"),
        "c.json: link 0: both is 1, expected true or false");
}

/* ---- one line ---- */

/* ---- what devices share ---- */

static moirai_cluster *sharing(const char *devices)
{
    char text[2000];
    moirai_cluster *c;
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": [%s], \"links\": [{\"from\": \"A\", "
             "\"to\": \"B\", \"bandwidth\": \"1Gbps\", \"both\": true}, {\"from\": \"B\", \"to\": \"C\", "
             "\"bandwidth\": \"1Gbps\", \"both\": true}]}",
             devices);
    assert_ok(moirai_cluster_parse(&c, text, strlen(text), "test"));
    return c;
}

/* Cores 0, 1 and 0-1: the first two together, or the third alone. */
static void test_cluster_devices_that_share_cores_are_told_apart(void **state)
{
    (void)state;
    uint64_t set[8] = {0};
    moirai_cluster *c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"cores\": \"0\"}, "
                                "{\"name\": \"B\", \"memory\": \"1GB\", \"cores\": \"1\"}, "
                                "{\"name\": \"C\", \"memory\": \"1GB\", \"cores\": \"0-1\", \"threads\": 2}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 2), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 2), MOIRAI_SHARES_CORES);
    assert_int_equal(moirai_cluster_sharing(c, 2, 1, 0), MOIRAI_SHARES_CORES);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 2), 2);
    assert_true((set[0] | set[1]) == 7 && (set[0] == 3 || set[0] == 4));
    assert_int_equal(moirai_cluster_apart(set, 1, c, 2), 1); /* no more than there is room for */
    moirai_cluster_free(c);
}

static void test_cluster_ep_names_a_gpu(void **state)
{
    (void)state;
    const char *const none[] = {"cpu", "", "cuda:", "cuda:x", "cuda:1x", "cuda1", "cuda:-1", "cuda:99999", "xcuda"};
    assert_int_equal(moirai_ep_gpu("cuda"), 0);
    assert_int_equal(moirai_ep_gpu("CUDA:0"), 0);
    assert_int_equal(moirai_ep_gpu("cuda:12"), 12);
    assert_int_equal(moirai_ep_gpu(NULL), -1);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(moirai_ep_gpu(none[i]), -1);
}

/* Other hosts share nothing; a GPU is shared unless it is divided; threads without cores of their own share what there
 * is, if that is known. */
static void test_cluster_sharing_goes_by_host_and_gpu(void **state)
{
    (void)state;
    uint64_t set[8] = {0};
    moirai_cluster *c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"cores\": \"0\"}, "
                                "{\"name\": \"B\", \"memory\": \"1GB\", \"cores\": \"0\", \"host\": \"other\"}, "
                                "{\"name\": \"C\", \"memory\": \"1GB\", \"threads\": 2}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 2), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 0), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 2), MOIRAI_SHARES_CPU);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 3), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 3), 1);
    assert_true(set[0] == 7);
    moirai_cluster_free(c);
    c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"ep\": \"cuda\", \"share\": 0.5}, "
                "{\"name\": \"B\", \"memory\": \"1GB\", \"ep\": \"cuda\", \"share\": 0.4}, "
                "{\"name\": \"C\", \"memory\": \"1GB\", \"ep\": \"cuda\"}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 1), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 1), MOIRAI_SHARES_GPU);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 1), 2);
    moirai_cluster_free(c);
    c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"ep\": \"cuda\"}, "
                "{\"name\": \"B\", \"memory\": \"1GB\", \"ep\": \"cuda:1\"}, "
                "{\"name\": \"C\", \"memory\": \"1GB\", \"ep\": \"cuda:0\"}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 1), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 1), MOIRAI_SHARES_GPU);
    moirai_cluster_free(c);
}

/* The sets by trying all subsets, over random sharing. */
static void test_cluster_apart_equals_brute_force(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 5);
    for (int turn = 0; turn < 40; turn++) {
        char line[64];
        uint64_t set[300], apart[7] = {0};
        int n = 2 + (int)util_rng_below(&r, 6), expected = 0;
        moirai_cluster *c;
        snprintf(line, sizeof line, "%dx cpu, 1Gbps", n);
        assert_ok(moirai_cluster_synthetic(&c, line));
        for (int d = 0; d < n; d++) {
            char text[16];
            int from = (int)util_rng_below(&r, 6);
            snprintf(text, sizeof text, "%d-%d", from, from + (int)util_rng_below(&r, 3));
            free(c->device[d].cores);
            c->device[d].cores = util_strdup(text);
        }
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                if (a != b && !moirai_cluster_sharing(c, a, b, 0))
                    apart[a] |= UINT64_C(1) << b;
        int got = moirai_cluster_apart(set, 300, c, 0);
        for (uint64_t s = 1; s < UINT64_C(1) << n; s++) {
            bool fine = true, largest = true, found = false;
            for (int d = 0; d < n; d++) {
                uint64_t rest = s & ~(UINT64_C(1) << d);
                fine &= !(s >> d & 1) || (apart[d] & rest) == rest;
                largest &= (s >> d & 1) || (apart[d] & s) != s;
            }
            for (int i = 0; i < got; i++)
                found |= set[i] == s;
            expected += fine && largest;
            assert_int_equal(found, fine && largest);
        }
        assert_int_equal(got, expected);
        moirai_cluster_free(c);
    }
}

static void test_cluster_synthetic_in_one_line(void **state)
{
    (void)state;
    moirai_cluster *c;
    assert_ok(moirai_cluster_open(&c, "4x v100 32GB nvlink 600Gbps"));
    assert_int_equal(c->n_devices, 4);
    assert_string_equal(c->device[3].name, "D");
    assert_int_equal(c->device[3].memory_bytes, 32000000000);
    assert_int_equal(c->bytes_per_second[1], 75000000000);
    assert_int_equal(c->latency_ns[1], 0);
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_synthetic(&c, "2x v100, 2x p100 16GB, 100Gbps 5us"));
    assert_int_equal(c->n_devices, 4);
    assert_string_equal(c->device[2].type, "p100");
    assert_int_equal(c->latency_ns[2], 5000);
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_synthetic(&c, "30xRTX 2080 Ti,1Gbps"));
    assert_string_equal(c->device[25].name, "Z");
    assert_string_equal(c->device[26].name, "AA");
    assert_string_equal(c->device[29].type, "rtx2080ti");
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_open(&c, "v100"));
    assert_int_equal(c->n_devices, 1);
    moirai_cluster_free(c);
}

static void bad_line(const char *text, const char *expected)
{
    moirai_cluster *c = (moirai_cluster *)1;
    assert_int_equal(moirai_cluster_open(&c, text), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), expected);
    assert_null(c);
}

static void test_cluster_synthetic_takes_blanks_before_units_and_notes_what_is_left_out(void **state)
{
    (void)state;
    moirai_cluster *c, *d;
    assert_ok(moirai_cluster_open(&c, "2x v100 32 GB, 100 Gbps 5 us"));
    assert_ok(moirai_cluster_open(&d, "2x v100 32GB, 100Gbps 5us"));
    assert_true(c->device[0].memory_bytes == d->device[0].memory_bytes && c->device[0].memory_bytes == 32000000000);
    assert_true(c->bytes_per_second[1] == d->bytes_per_second[1] && c->latency_ns[1] == 5000);
    assert_null(c->notes);
    moirai_cluster_free(c);
    moirai_cluster_free(d);
    assert_ok(moirai_cluster_open(&c, "2x rtx 2080 Ti, 100Gbps"));
    assert_string_equal(c->device[0].type, "rtx2080ti");
    assert_non_null(strstr(c->notes, "note: no latency is given for the links: taken as 0"));
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_open(&c, "1x v100"));
    assert_null(c->notes);
    moirai_cluster_free(c);
}

/* Groups between semicolons have links of their own. */
static void test_cluster_synthetic_gives_links_their_own_bandwidths(void **state)
{
    (void)state;
    moirai_cluster *c;
    assert_ok(moirai_cluster_open(&c, "2x v100, t4: pcie4 1us; 2x cpu-16-avx2: 8GB/s 2us; 10Gbps 20us"));
    assert_int_equal(c->n_devices, 5);
    assert_true(c->bytes_per_second[0 * 5 + 2] == 31507692307 && c->latency_ns[0 * 5 + 2] == 1000);
    assert_true(c->bytes_per_second[4 * 5 + 3] == 8000000000 && c->latency_ns[4 * 5 + 3] == 2000);
    assert_true(c->bytes_per_second[1 * 5 + 4] == 1250000000 && c->latency_ns[1 * 5 + 4] == 20000);
    assert_true(c->bytes_per_second[4 * 5 + 1] == 1250000000 && c->latency_ns[4 * 5 + 1] == 20000);
    assert_null(c->notes);
    moirai_cluster_free(c);
    /* Nothing joins the groups: the slower of two links does. */
    assert_ok(moirai_cluster_open(&c, "2xv100:nvlink2 1us;orin:1Gbps 50us;t4 pcie3 9 us;"));
    assert_int_equal(c->n_devices, 4);
    assert_true(c->bytes_per_second[0 * 4 + 1] == 150000000000 && c->latency_ns[0 * 4 + 1] == 1000);
    assert_true(c->bytes_per_second[0 * 4 + 2] == 125000000 && c->latency_ns[0 * 4 + 2] == 50000);
    assert_true(c->bytes_per_second[3 * 4 + 1] == 15753846153 && c->latency_ns[3 * 4 + 1] == 9000);
    moirai_cluster_free(c);
}

static void test_cluster_synthetic_groups_refuse_what_joins_nothing(void **state)
{
    (void)state;
    bad_line("v100: pcie4, t4",
             "\"v100: pcie4, t4\": behind ':' stands 't4', which is no link: a bandwidth, a latency, "
             "pcie3 to pcie5, nvlink2 to nvlink5; further devices follow ';'");
    bad_line("v100; t4: 1Gbps",
             "\"v100; t4: 1Gbps\": no bandwidth for the links of the group of device 'A' (such as ': "
             "100Gbps')");
    bad_line("2x t4: pcie3; t4: pcie4; 1Gbps",
             "\"2x t4: pcie3; t4: pcie4; 1Gbps\": device 'C' is alone in its group, and a "
             "link without devices joins the groups: its own link joins nothing");
    bad_line("2x t4: pcie3; t4; 1Gbps; 2Gbps",
             "\"2x t4: pcie3; t4; 1Gbps; 2Gbps\": a second link without devices: one joins all groups");
    bad_line("t4: pcie3; t4: pcie3; 5us",
             "\"t4: pcie3; t4: pcie3; 5us\": a link without devices needs a bandwidth (such as 10Gbps 20us)");
    bad_line("2x t4: pcie3: 5us", "\"2x t4: pcie3: 5us\": a second ':' in one group: groups are told apart by ';'");
    bad_line("2x t4: pcie3 5Gbps", "\"2x t4: pcie3 5Gbps\": a second bandwidth: \"5Gbps\"");
    bad_line("2x t4: pcie3; 1Gbps",
             "\"2x t4: pcie3; 1Gbps\": a link without devices joins groups, and there is one group only");
}

static void test_cluster_synthetic_rejects_nonsense(void **state)
{
    (void)state;
    bad_line("nowhere.json",
             "nowhere.json: no such file, no built-in cluster (inter-server, intra-server), and no line "
             "such as '2x v100, 100Gbps 5us'");
    bad_line("2x v100", "\"2x v100\": no bandwidth for the links (such as 100Gbps)");
    bad_line("2x v1000 5Gbps", "\"2x v1000 5Gbps\": unknown device type 'v1000': did you mean 'v100'?");
    bad_line("65x t4 5Gbps", "\"65x t4 5Gbps\": 65 devices of type 't4': at most 64");
    bad_line("1000000x t4 5Gbps", "\"1000000x t4 5Gbps\": 1000000 devices of type 't4': at most 64");
    bad_line("64x t4, t4, 5Gbps", "\"64x t4, t4, 5Gbps\": device 'BM': more than 64 devices");
    bad_line("2x t4 5Gbps 6Gbps", "\"2x t4 5Gbps 6Gbps\": a second bandwidth: \"6Gbps\"");
    bad_line("2x 5Gbps", "\"2x 5Gbps\": a part without a device type");
    bad_line("0x t4", "\"0x t4\": no devices or no memory for type 't4'");
    bad_line("5Gbps 2us", "\"5Gbps 2us\": the cluster has no devices");
    bad_line("2x t4 16XB 5Gbps", "\"2x t4 16XB 5Gbps\": \"16XB\": unknown unit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_exact),
        cmocka_unit_test(test_units_reject_nonsense),
        cmocka_unit_test(test_device_type_has_many_spellings),
        cmocka_unit_test(test_device_type_v100_modules_and_cards_differ),
        cmocka_unit_test(test_cluster_memory_picks_the_variant),
        cmocka_unit_test(test_cluster_every_type_has_sane_figures),
        cmocka_unit_test(test_cluster_testbeds_have_the_papers_figures),
        cmocka_unit_test(test_cluster_direct_link_wins_over_wider_path),
        cmocka_unit_test(test_cluster_path_prefers_width_then_hops_then_latency),
        cmocka_unit_test(test_cluster_path_is_not_fooled_by_a_wide_detour),
        cmocka_unit_test(test_cluster_closure_equals_brute_force),
        cmocka_unit_test(test_cluster_round_trip),
        cmocka_unit_test(test_cluster_round_trip_of_own_figures),
        cmocka_unit_test(test_cluster_unknown_processors_are_generic),
        cmocka_unit_test(test_cluster_processors_are_as_fast_as_their_threads),
        cmocka_unit_test(test_cluster_unread_keys_are_noted),
        cmocka_unit_test(test_cluster_reader_rejects_bad_devices),
        cmocka_unit_test(test_cluster_reader_rejects_bad_links),
        cmocka_unit_test(test_cluster_devices_that_share_cores_are_told_apart),
        cmocka_unit_test(test_cluster_ep_names_a_gpu),
        cmocka_unit_test(test_cluster_sharing_goes_by_host_and_gpu),
        cmocka_unit_test(test_cluster_apart_equals_brute_force),
        cmocka_unit_test(test_cluster_synthetic_in_one_line),
        cmocka_unit_test(test_cluster_synthetic_takes_blanks_before_units_and_notes_what_is_left_out),
        cmocka_unit_test(test_cluster_synthetic_gives_links_their_own_bandwidths),
        cmocka_unit_test(test_cluster_synthetic_groups_refuse_what_joins_nothing),
        cmocka_unit_test(test_cluster_synthetic_rejects_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
