/* Types of devices: their names, their figures, and which of several variants is meant. */
#include "support/cluster_text.h"

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
        assert_int_equal(c->notes && strstr(c->notes, "GB of memory, and type ") != NULL, cases[i].noted);
        moirai_cluster_free(c);
    }
    moirai_cluster *c =
        parse(CLUSTER("{\"name\": \"A\", \"type\": \"orin\", \"memory\": \"8GB\", \"gflops\": 1400}", ""));
    assert_string_equal(c->device[0].type, "orin-nano");
    assert_true(c->device[0].figures.gflops_fp32 == 1400 && c->device[0].figures.bandwidth_gb_s == 68);
    assert_int_equal(c->device[0].memory_bytes, INT64_C(8000000000));
    assert_non_null(strstr(c->notes, "8.0 GB of memory, and type orin has 64: taken for orin-nano"));
    moirai_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_type_has_many_spellings),
        cmocka_unit_test(test_device_type_v100_modules_and_cards_differ),
        cmocka_unit_test(test_cluster_memory_picks_the_variant),
        cmocka_unit_test(test_cluster_every_type_has_sane_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
