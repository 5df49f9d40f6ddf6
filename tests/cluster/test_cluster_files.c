/* Cluster files: written and read again, what is taken for granted, what is refused. */
#include "support/cluster_text.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_round_trip),
        cmocka_unit_test(test_cluster_round_trip_of_own_figures),
        cmocka_unit_test(test_cluster_unknown_processors_are_generic),
        cmocka_unit_test(test_cluster_processors_are_as_fast_as_their_threads),
        cmocka_unit_test(test_cluster_unread_keys_are_noted),
        cmocka_unit_test(test_cluster_reader_rejects_bad_devices),
        cmocka_unit_test(test_cluster_reader_rejects_bad_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
