/* The generator of problems: every name of its list gives the problem that it promises. */
#include "generate/generate.h"
#include "support/check.h"
#include "util/util.h"

#include <moirai/placer.h>

enum { MOST_OPS = 20000 }; /* larger ones are like them, and take long */

static moirai_problem *problem_of(const char *name)
{
    moirai_problem *p;
    assert_ok(generate_problem(&p, name));
    return p;
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* The parts of a name of the list. */
typedef struct parts {
    char family[32], size[16], devices[16], third[16], fourth[16];
    int seed;
} parts;

static parts parts_of(const char *name)
{
    parts x;
    assert_int_equal(sscanf(name, "%31[^/]/%15[^/]/%15[^/]/%15[^/]/%15[^/]/%d", x.family, x.size, x.devices, x.third,
                            x.fourth, &x.seed),
                     6);
    return x;
}

static int32_t sources(const moirai_problem *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        n += p->op_in_off[i] == p->op_in_off[i + 1];
    return n;
}

static int32_t sinks(const moirai_problem *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t readers = 0;
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            readers += p->tensor_edge_off[p->op_out[j] + 1] - p->tensor_edge_off[p->op_out[j]];
        n += readers == 0;
    }
    return n;
}

static int32_t root(int32_t *above, int32_t i)
{
    while (above[i] != i)
        i = above[i] = above[above[i]];
    return i;
}

static int32_t components(const moirai_problem *p)
{
    int32_t n = p->n_ops, *above = util_alloc((size_t)n, sizeof *above);
    for (int32_t i = 0; i < n; i++)
        above[i] = i;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t a = root(above, p->tensor_producer[p->edge_tensor[e]]), b = root(above, p->edge_reader[e]);
        if (a != b) {
            above[a] = b;
            n--;
        }
    }
    free(above);
    return n;
}

static void test_bench_generate_list_has_halves_alike(void **state)
{
    (void)state;
    char name[GENERATE_NAME], other[GENERATE_NAME];
    int families[2] = {0}, rows[2] = {0};
    for (int i = 0; i < generate_count(); i++) {
        generate_name(name, i);
        for (int j = 0; j < i; j++) {
            generate_name(other, j);
            assert_string_not_equal(name, other);
        }
        assert_int_equal(generate_half_of(name), i % 2 ? GENERATE_JUDGE : GENERATE_TUNE);
        rows[generate_half_of(name)]++;
    }
    assert_true(rows[0] == rows[1] && rows[0] + rows[1] >= 300);
    for (int f = 0; f < generate_family_count(); f++)
        for (int half = 0; half < 2; half++) {
            int found = 0;
            for (int i = 0; i < generate_count(); i++) {
                generate_name(name, i);
                found += generate_half_of(name) == (generate_half)half &&
                         !strcmp(parts_of(name).family, generate_family_name(f));
            }
            assert_true(found >= 5);
            families[half]++;
        }
    assert_int_equal(families[0], families[1]);
}

/* The mean over tensors and ordered pairs, as a part of the mean over operators and devices. */
static double transfer_part(const moirai_problem *p)
{
    double time = 0, transfer = 0;
    int32_t K = p->n_devices;
    for (int64_t i = 0; i < (int64_t)p->n_ops * K; i++)
        time += (double)p->op_time_ns[i] / ((double)p->n_ops * K);
    for (int32_t t = 0; t < p->n_tensors; t++)
        for (int32_t a = 0; a < K; a++)
            for (int32_t b = 0; b < K; b++)
                transfer += (double)moirai_transfer_ns(p, t, a, b) / ((double)p->n_tensors * K * (K - 1));
    return transfer / time;
}

static void check_graph(const moirai_problem *p, const parts *x)
{
    int32_t n = atoi(x->size);
    assert_in_range(p->n_ops, 3 * n / 4 - 20, 4 * n / 3 + 20);
    assert_int_equal(p->n_devices, atoi(x->devices));
    if (p->n_tensors) {
        double part = transfer_part(p);
        assert_true(part > 0.98 * atof(x->fourth) && part < 1.02 * atof(x->fourth));
    }
}

static void test_bench_generate_makes_what_names_say(void **state)
{
    (void)state;
    char name[GENERATE_NAME];
    for (int i = 0; i < generate_count(); i++) {
        generate_name(name, i);
        parts x = parts_of(name);
        if (atoi(x.size) > MOST_OPS)
            continue;
        moirai_problem *p = problem_of(name);
        assert_string_equal(p->name, name);
        assert_int_equal(p->flow, MOIRAI_FLOW_TENSOR);
        assert_int_equal(p->congestion, MOIRAI_CONGESTION_PORT);
        assert_ok(moirai_problem_check_memory(p));
        if (strcmp(generate_group_of(name), "networks"))
            check_graph(p, &x);
        else if (atoi(x.devices))
            assert_int_equal(p->n_devices, atoi(x.devices));
        moirai_problem_free(p);
    }
}

/* How often a device's time of one operator stands to another's in the same ratio as that of the first operator. */
static int ratios(const moirai_problem *p)
{
    int n = 1;
    double seen[64] = {(double)moirai_op_ns(p, 0, 0) / (double)moirai_op_ns(p, 0, 1)};
    for (int32_t i = 1; i < p->n_ops && n < 64; i++) {
        double r = (double)moirai_op_ns(p, i, 0) / (double)moirai_op_ns(p, i, 1);
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= r > 0.99 * seen[j] && r < 1.01 * seen[j]; /* whole nanoseconds of some 5 us */
        if (!known)
            seen[n++] = r;
    }
    return n;
}

static void test_bench_generate_times_are_related_by_kinds_or_unrelated(void **state)
{
    (void)state;
    moirai_problem *p = problem_of("layered/300/2/related/0.1/1");
    assert_int_equal(ratios(p), 1);
    moirai_problem_free(p);
    p = problem_of("layered/300/2/kinds/0.1/1");
    assert_in_range(ratios(p), 3, 4);
    moirai_problem_free(p);
    p = problem_of("layered/300/2/unrelated/0.1/1");
    assert_true(ratios(p) > 40);
    moirai_problem_free(p);
}

/* What is connected, and where it begins and ends, by family. -1: as it comes. */
static void test_bench_generate_families_have_their_shape(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int sources, sinks, components;
    } shape[] = {{"fork-join", 1, 1, 1},
                 {"phases", 1, 1, 1},
                 {"cholesky", 1, 1, 1},
                 {"lu", 1, 1, 1},
                 {"fft", -1, -1, 1},
                 {"gauss", -1, 1, 1},
                 {"wavefront", 1, 1, 1},
                 {"stencil", -1, -1, 1},
                 {"in-tree", -1, 1, 1},
                 {"out-tree", 1, -1, 1},
                 {"shuffle", -1, -1, 1},
                 {"montage", -1, 1, 1},
                 {"epigenomics", -1, 1, 1},
                 {"ladders", -1, -1, 1},
                 {"series-parallel", 1, 1, 1},
                 {"cells", 1, 1, 1},
                 {"side-by-side", 300, 300, 300}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int seed = 1; seed <= 6; seed++) {
            char name[GENERATE_NAME];
            snprintf(name, sizeof name, "%s/300/4/kinds/0.2/%d", shape[i].family, seed);
            moirai_problem *p = problem_of(name);
            if (shape[i].sources >= 0)
                assert_int_equal(sources(p), shape[i].sources);
            if (shape[i].sinks >= 0)
                assert_int_equal(sinks(p), shape[i].sinks);
            assert_int_equal(components(p), shape[i].components);
            moirai_problem_free(p);
        }
}

static void test_bench_generate_is_the_same_on_every_machine(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t digest;
    } fixed[] = {{"fork-join/2000/6/unrelated/0.5/1", 0x8cacbce584c9297e},
                 {"layered/400/4/kinds/1.0/2", 0x9a9689fd7a0f9045},
                 {"fft/100/3/related/0.3/3", 0xfb90395f4ef66aca},
                 {"cells/200/16/kinds/0.2/4", 0x51f8b05af4de270c}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        moirai_problem *p = problem_of(fixed[i].name);
        if (moirai_problem_digest(p) != fixed[i].digest)
            fail_msg("%s: digest %016llx", fixed[i].name, (unsigned long long)moirai_problem_digest(p));
        moirai_problem_free(p);
    }
}

/* Networks: their times come from cost models in floating point, so what is fixed is the graph. */
static void test_bench_generate_networks_are_fixed_by_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t n_ops, n_edges;
    } fixed[] = {{"multi-resolution/small/4/roofline/original/1", 151, 172},
                 {"searched-cells/small/4/roofline/original/1", 478, 515},
                 {"pyramid/small/4/roofline/original/1", 224, 251},
                 {"unet/small/4/roofline/original/1", 77, 86},
                 {"towers/small/4/roofline/original/1", 332, 395},
                 {"experts/small/4/roofline/original/1", 223, 277},
                 {"recommender/small/4/roofline/original/1", 129, 128},
                 {"ensemble/small/4/roofline/original/1", 242, 265}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        moirai_problem *p = problem_of(fixed[i].name), *again = problem_of(fixed[i].name);
        if (p->n_ops != fixed[i].n_ops || p->n_edges != fixed[i].n_edges)
            fail_msg("%s: %d operators, %d edges", fixed[i].name, p->n_ops, p->n_edges);
        assert_true(moirai_problem_digest(p) == moirai_problem_digest(again));
        assert_int_equal(components(p), 1);
        moirai_problem_free(p);
        moirai_problem_free(again);
    }
}

static bool binds(const moirai_problem *p)
{
    int64_t need = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        need += p->op_memory_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (p->device_memory_bytes[k] >= need)
            return false;
    return true;
}

/* Where no device holds everything a list scheduler still finds a plan. */
static void test_bench_generate_memory_binds_in_some_and_can_be_met(void **state)
{
    (void)state;
    char name[GENERATE_NAME];
    int bound = 0;
    for (int i = 0; i < generate_count(); i++) {
        generate_name(name, i);
        if (atoi(parts_of(name).size) > 2000)
            continue;
        moirai_problem *p = problem_of(name);
        if (binds(p)) {
            moirai_plan *plan;
            assert_ok(moirai_place(&plan, p, "heft", NULL));
            moirai_plan_free(plan);
            bound++;
        }
        moirai_problem_free(p);
    }
    assert_true(bound >= 30);
}

static void test_bench_generate_refuses_what_is_no_name(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"fork-join/100/4/kinds/0.1", "six parts"},         {"fork-join/100/4/kinds/0.1/1/2", "six parts"},
        {"spoon/100/4/kinds/0.1/1", "family 'spoon'"},      {"fork-join/1/4/kinds/0.1/1", "operators '1'"},
        {"fork-join/100/513/kinds/0.1/1", "devices '513'"}, {"fork-join/100/4/odd/0.1/1", "times 'odd'"},
        {"fork-join/100/4/kinds/0.1234/1", "transfer '0."}, {"fork-join/100/4/kinds/.1/1", "transfer '.1'"},
        {"fork-join/100/4/kinds/1./1", "transfer '1.'"},    {"fork-join/100/4/kinds/0.1/x", "seed 'x'"},
        {"unet/huge/4/fitted/original/1", "size 'huge'"},   {"unet/small/moon/fitted/original/1", "cluster 'moon'"},
        {"unet/small/4/guess/original/1", "cost 'guess'"},  {"unet/small/4/fitted/fine/1", "graph 'fine'"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        moirai_problem *p;
        assert_int_equal(generate_problem(&p, bad[i][0]), MOIRAI_EUSAGE);
        assert_null(p);
        assert_non_null(strstr(moirai_error_message(), bad[i][1]));
        assert_true(begins(moirai_error_message(), "problem '"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_generate_list_has_halves_alike),
        cmocka_unit_test(test_bench_generate_makes_what_names_say),
        cmocka_unit_test(test_bench_generate_times_are_related_by_kinds_or_unrelated),
        cmocka_unit_test(test_bench_generate_families_have_their_shape),
        cmocka_unit_test(test_bench_generate_is_the_same_on_every_machine),
        cmocka_unit_test(test_bench_generate_networks_are_fixed_by_their_names),
        cmocka_unit_test(test_bench_generate_memory_binds_in_some_and_can_be_met),
        cmocka_unit_test(test_bench_generate_refuses_what_is_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
