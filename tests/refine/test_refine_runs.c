/* What several runs say together: runs of one plan are one, transfers of several sizes tell a bandwidth, and for
 * predictions a run counts as it was. */
#include "support/check.h"

#include <math.h>

#include <moirai/refine.h>

enum { STEPS = 8 };
#define KNOWN_RATE 1000000000ll

static const char two[] =
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
    "{\"name\": \"x\", \"memory\": \"1GB\"}, {\"name\": \"y\", \"memory\": \"1GB\"}], \"links\": ["
    "{\"from\": \"x\", \"to\": \"y\", \"bandwidth\": \"1GB/s\", \"latency\": \"1us\", \"both\": true}]}";

static int64_t bytes_of(int i)
{
    return (int64_t)10000 << i;
}

/* A chain of 2 x STEPS operators of 100 us; operator 2i makes a tensor of bytes_of(i). */
static moirai_graph *make_chain(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    char name[2 * STEPS][8];
    assert_ok(moirai_graph_builder_new(&b, "chain"));
    for (int i = 0; i < 2 * STEPS; i++) {
        snprintf(name[i], sizeof name[i], "o%d", i);
        int32_t op = moirai_graph_builder_op(b, name[i], "Relu");
        moirai_graph_builder_input(b, op, i ? name[i - 1] : "in");
        moirai_graph_builder_output(b, op, name[i], i % 2 ? 8 : bytes_of(i / 2));
        moirai_graph_builder_time(b, op, "x", 100000);
        moirai_graph_builder_time(b, op, "y", 100000);
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

/* Even operators on x, odd ones on y, `late` x 100 us each: a transfer of bytes_of(i) at `rate` from x to y takes 20 us
 * beside its bytes, one back 21 us. `share`: of what the latency is, what the plan promised. `took`: of the sum of all
 * that, what the run took end to end. */
static char *write_run_of(const char *file, double late, double rate, double share, double took)
{
    char *path = temporary_path(file), x[4000] = "", y[4000] = "", moved[8000] = "";
    double now = 0;
    for (int i = 0; i < 2 * STEPS; i++) {
        char *list = i % 2 ? y : x;
        size_t used = strlen(list);
        snprintf(list + used, 4000 - used,
                 "%s{\"ops\": [\"o%d\"], \"start_ns\": %.0f, \"finish_ns\": %.0f, \"median_ns\": %.0f}",
                 used ? ", " : "", i, now, now + late * 1e5, late * 1e5);
        now += late * 1e5;
        if (i == 2 * STEPS - 1)
            break;
        double takes = i % 2 ? 21000 : 20000 + (double)bytes_of(i / 2) * 1e9 / rate;
        used = strlen(moved);
        snprintf(moved + used, sizeof moved - used,
                 "%s{\"tensor\": \"o%d\", \"from\": \"%s\", \"to\": \"%s\", \"bytes\": %lld, \"start_ns\": %.0f, "
                 "\"finish_ns\": %.0f, \"median_ns\": %.0f}",
                 used ? ", " : "", i, i % 2 ? "y" : "x", i % 2 ? "x" : "y", i % 2 ? 8ll : (long long)bytes_of(i / 2),
                 now, now + takes, takes);
        now += takes;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"format\": \"moirai-timeline\", \"version\": 1, \"median_ns\": %.0f, \"planned_ns\": %.0f, \"devices\": "
            "[{\"name\": \"x\", \"segments\": [%s]}, {\"name\": \"y\", \"segments\": [%s]}], \"transfers\": [%s]}",
            now * took, now * share, x, y, moved);
    assert_int_equal(fclose(f), 0);
    return path;
}

static char *write_run(const char *file, double late, double rate, double share)
{
    return write_run_of(file, late, rate, share, 1);
}

/* Operators stay 100 us, and what transfers took is left to the links. */
static void refine_run(moirai_graph **g, moirai_cluster **c, const char *path, bool as_measured,
                       moirai_refine_report *r)
{
    const moirai_refine_options o = {.as_measured = as_measured};
    *g = make_chain();
    assert_ok(moirai_cluster_parse(c, two, strlen(two), "two"));
    assert_ok(moirai_refine_with(*g, *c, &path, 1, &o, r));
}

static void test_refine_transfers_of_several_sizes_tell_a_bandwidth(void **state)
{
    moirai_graph *g;
    moirai_cluster *c;
    moirai_refine_report r;
    char *path = write_run("slow.json", 1, 4e8, 1);
    (void)state;
    refine_run(&g, &c, path, true, &r);
    assert_int_equal(r.n_rates, 1);
    assert_true(llabs(c->bytes_per_second[1] - 400000000) < 4000000);
    assert_int_equal(c->bytes_per_second[2], KNOWN_RATE); /* back there are messages of one size */
    assert_int_equal(c->n_links, 2);
    assert_int_equal(c->link[0].bytes_per_second, c->bytes_per_second[1]);
    remove(path);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* 50 times slower than known: something else was in the way. */
static void test_refine_keeps_a_bandwidth_that_runs_are_far_from(void **state)
{
    moirai_graph *g;
    moirai_cluster *c;
    moirai_refine_report r;
    char *path = write_run("far.json", 1, 2e7, 1);
    (void)state;
    refine_run(&g, &c, path, true, &r);
    assert_int_equal(r.n_rates, 0);
    assert_int_equal(c->bytes_per_second[1], KNOWN_RATE);
    remove(path);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* The plan promised half of what the run took: the next one is taken to be too good by as much, unless it is the run
 * itself that is to be predicted. */
static void test_refine_as_measured_has_no_doubt(void **state)
{
    moirai_graph *g[2];
    moirai_cluster *c[2];
    moirai_refine_report r[2];
    char *path = write_run("late.json", 1, 1e9, 0.5);
    (void)state;
    for (int k = 0; k < 2; k++)
        refine_run(&g[k], &c[k], path, k, &r[k]);
    assert_true(c[0]->latency_ns[1] > c[1]->latency_ns[1] + 10000);
    assert_true(llabs(c[1]->latency_ns[1] - 20000) < 2000);
    remove(path);
    for (int k = 0; k < 2; k++) {
        moirai_cluster_free(c[k]);
        moirai_graph_free(g[k]);
    }
}

/* All on x took 150 us an operator, alternating devices 100: a prediction of the last run meets that one, new plans go by
 * what the whole network took. */
static void test_refine_as_measured_meets_the_last_run(void **state)
{
    char all[400] = "", *whole = temporary_path("whole.json"), *path[] = {whole, write_run("split.json", 1, 1e9, 1)};
    (void)state;
    for (int i = 0; i < 2 * STEPS; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s\"o%d\"", i ? ", " : "", i);
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"format\": \"moirai-timeline\", \"version\": 1, \"median_ns\": 2400000, \"devices\": [{\"name\": \"x\", "
            "\"segments\": [{\"ops\": [%s], \"start_ns\": 0, \"finish_ns\": 2400000, \"median_ns\": 2400000}]}]}",
            all);
    assert_int_equal(fclose(f), 0);
    for (int k = 0; k < 2; k++) {
        const moirai_refine_options o = {.as_measured = k};
        moirai_graph *g = make_chain();
        moirai_cluster *c;
        assert_ok(moirai_cluster_parse(&c, two, strlen(two), "two"));
        assert_ok(moirai_refine_with(g, c, (const char *const *)path, 2, &o, NULL));
        int64_t on_x = g->time_ns[0];
        assert_true(k ? on_x <= 100000 : on_x > 140000);
        moirai_cluster_free(c);
        moirai_graph_free(g);
    }
    remove(path[0]);
    remove(path[1]);
}

/* Operators on their devices and all transfers, one after the other: the makespan of the chain. */
static double chain_ns(const moirai_graph *g, const moirai_cluster *c)
{
    double sum = 0;
    for (int i = 0; i < 2 * STEPS; i++) {
        int pair = i % 2 ? 2 : 1; /* from x (device 0) to y, or back */
        sum += (double)g->time_ns[i * g->n_time_keys + i % 2];
        if (i < 2 * STEPS - 1)
            sum += (double)c->latency_ns[pair] +
                   (i % 2 ? 8 : (double)bytes_of(i / 2)) * 1e9 / (double)c->bytes_per_second[pair];
    }
    return sum;
}

/* Medians of segments and of the whole are medians over other runs: the whole may be shorter than its segments alone, or
 * far longer. A model that is taught by a run ends when that run did. */
static void test_refine_as_measured_ends_when_the_run_did(void **state)
{
    static const double took[] = {0.4, 0.8, 1, 1.02, 1.5, 8};
    (void)state;
    for (size_t k = 0; k < sizeof took / sizeof *took; k++) {
        moirai_graph *g;
        moirai_cluster *c;
        moirai_refine_report r;
        char *path = write_run_of("end.json", 1, 1e9, 1, took[k]);
        double all = 2 * STEPS * 1e5 + STEPS * 20000 + (STEPS - 1) * 21000;
        for (int i = 0; i < STEPS; i++)
            all += (double)bytes_of(i);
        refine_run(&g, &c, path, true, &r);
        if (fabs(chain_ns(g, c) / (took[k] * all) - 1) > 0.002)
            fail_msg("took %.1f: the model ends at %.0f, the run did at %.0f", took[k], chain_ns(g, c), took[k] * all);
        remove(path);
        moirai_cluster_free(c);
        moirai_graph_free(g);
    }
}

/* Of four runs of one plan, one at half speed and one at double speed move nothing; each file has its report. */
static void test_refine_runs_of_one_plan_are_one(void **state)
{
    static const double late[] = {1.1, 2.2, 1.1, 0.55};
    moirai_graph *g = make_chain();
    moirai_cluster *c;
    moirai_refine_report r[4];
    char *path[4];
    (void)state;
    assert_ok(moirai_cluster_parse(&c, two, strlen(two), "two"));
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "again%d.json", i);
        path[i] = write_run(name, late[i], 1e9, 1);
    }
    assert_ok(moirai_refine(g, NULL, (const char *const *)path, 4, r));
    for (int32_t op = 0; op < g->n_ops; op++)
        assert_true(llabs(g->time_ns[op * g->n_time_keys] - 110000) <= 100);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r[i].n_segments, 2 * STEPS);
        assert_true(r[i].median > 0.99 * late[i] && r[i].median < 1.01 * late[i]);
        remove(path[i]);
    }
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refine_transfers_of_several_sizes_tell_a_bandwidth),
        cmocka_unit_test(test_refine_keeps_a_bandwidth_that_runs_are_far_from),
        cmocka_unit_test(test_refine_as_measured_has_no_doubt),
        cmocka_unit_test(test_refine_as_measured_meets_the_last_run),
        cmocka_unit_test(test_refine_as_measured_ends_when_the_run_did),
        cmocka_unit_test(test_refine_runs_of_one_plan_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
