/* Clusters in one line. */
#include "support/check.h"

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
    bad_line("513x t4 5Gbps", "\"513x t4 5Gbps\": 513 devices of type 't4': at most 512");
    bad_line("1000000x t4 5Gbps", "\"1000000x t4 5Gbps\": 1000000 devices of type 't4': at most 512");
    bad_line("512x t4, t4, 5Gbps", "\"512x t4, t4, 5Gbps\": device 'SS': more than 512 devices");
    bad_line("2x t4 5Gbps 6Gbps", "\"2x t4 5Gbps 6Gbps\": a second bandwidth: \"6Gbps\"");
    bad_line("2x 5Gbps", "\"2x 5Gbps\": a part without a device type");
    bad_line("0x t4", "\"0x t4\": no devices or no memory for type 't4'");
    bad_line("5Gbps 2us", "\"5Gbps 2us\": the cluster has no devices");
    bad_line("2x t4 16XB 5Gbps", "\"2x t4 16XB 5Gbps\": \"16XB\": unknown unit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_synthetic_in_one_line),
        cmocka_unit_test(test_cluster_synthetic_takes_blanks_before_units_and_notes_what_is_left_out),
        cmocka_unit_test(test_cluster_synthetic_gives_links_their_own_bandwidths),
        cmocka_unit_test(test_cluster_synthetic_groups_refuse_what_joins_nothing),
        cmocka_unit_test(test_cluster_synthetic_rejects_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
