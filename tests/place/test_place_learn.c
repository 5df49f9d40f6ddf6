/* The learning placers: optimiser, groups, policy files, what they learn and how they are used. */
#include "place/learn/placeto_graph.h"
#include "place/learn/policy_file.h"
#include "place/learn/train.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"

#include <math.h>
#include <unistd.h>

static const learn_method *const methods[] = {&learn_placeto, &learn_hrl};

/* ---- optimiser ---- */

static void test_learn_clip_keeps_the_direction(void **state)
{
    (void)state;
    learn_real grad[] = {3, 0, -4};
    assert_true(fabs(learn_clip(grad, 3, 10) - 5) < 1e-6);
    assert_true(grad[0] == 3 && grad[2] == -4);
    assert_true(fabs(learn_clip(grad, 3, 1) - 5) < 1e-6);
    assert_true(fabs((double)grad[0] - 0.6) < 1e-6 && grad[1] == 0 && fabs((double)grad[2] + 0.8) < 1e-6);
}

/* The first step of Adam has the length of the rate, whatever the gradient's; and it finds the bottom of a bowl. */
static void test_learn_adam_goes_down(void **state)
{
    (void)state;
    learn_params q = {0};
    learn_params_add(&q, "x", 1, 2);
    assert_ok(learn_params_make(&q));
    q.value[0] = 1;
    q.value[1] = -2;
    learn_real first[] = {2000, -4};
    learn_adam(&q, first, 0.01);
    assert_true(fabs((double)q.value[0] - 0.99) < 1e-5 && fabs((double)q.value[1] + 1.99) < 1e-5);
    q.mean[0] = q.mean[1] = q.square[0] = q.square[1] = 0;
    q.steps = 0;
    for (int i = 0; i < 2000; i++) {
        learn_real grad[] = {2 * (q.value[0] - 3), 20 * (q.value[1] - (learn_real)0.5)};
        learn_adam(&q, grad, 0.01);
    }
    assert_true(fabs((double)q.value[0] - 3) < 0.01 && fabs((double)q.value[1] - 0.5) < 0.01);
    learn_params_free(&q);
}

/* ---- groups ---- */

static void check_graph(const moirai_problem *p, const placeto_graph *g, const place_units *u, const char *what)
{
    int32_t *node = util_alloc((size_t)p->n_ops, sizeof *node);
    assert_int_equal(g->off[g->n], p->n_ops);
    for (int32_t v = 0; v < g->n; v++) {
        uint64_t devices = UINT64_MAX;
        int64_t bytes = 0;
        assert_true(g->off[v] < g->off[v + 1]);
        for (int32_t j = g->off[v]; j < g->off[v + 1]; j++) {
            node[g->op[j]] = v;
            devices &= p->op_devices[g->op[j]];
            bytes += p->op_memory_bytes[g->op[j]];
        }
        if (g->devices[v] == 0 || g->devices[v] != devices || g->memory_bytes[v] != bytes)
            fail_msg("%s: node %d: devices or bytes are not its operators'", what, v);
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        assert_int_equal(node[i], node[u->op[u->off[u->of_op[i]]]]); /* units are undivided */
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t from = node[p->tensor_producer[p->edge_tensor[e]]], to = node[p->edge_reader[e]];
        bool found = from == to;
        for (int32_t j = g->child_off[from]; j < g->child_off[from + 1]; j++)
            found = found || g->child[j] == to;
        if (!found || (from != to && g->relation[(size_t)from * (size_t)g->n + (size_t)to] == PLACETO_PARALLEL))
            fail_msg("%s: edge %d is not in the graph of nodes", what, e);
    }
    free(node);
}

static void test_placeto_graph_holds_every_operator_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed, 80);
        moirai_problem *p = random_problem(&spec);
        place_units *u;
        placeto_graph *g;
        assert_non_null(p);
        assert_ok(place_units_new(&u, p));
        for (int32_t limit = 2; limit <= 128; limit *= 8) {
            assert_ok(placeto_graph_new(&g, p, u, limit));
            check_graph(p, g, u, random_spec_text(&spec));
            if (!spec.nulls && g->n > limit)
                fail_msg("%s: %d nodes for a limit of %d", random_spec_text(&spec), g->n, limit);
            placeto_graph_free(g);
        }
        place_units_free(u);
        moirai_problem_free(p);
    }
}

/* A chain of 8 equal operators on 1 device may hold a quarter of the work per node: 4 pairs. */
static void test_placeto_graph_joins_chains_within_the_cap(void **state)
{
    (void)state;
    char text[4096];
    int at = snprintf(
        text, sizeof text,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"chain\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":100}],\"channels\":[],\"ops\":[");
    for (int i = 0; i < 8; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"name\":\"o%d\",\"type\":\"X\",\"memory_bytes\":1,\"time_ns\":[10],\"inputs\":[%s%.*s%s],"
                       "\"outputs\":[{\"name\":\"t%d\",\"bytes\":1}]}",
                       i ? "," : "", i, i ? "\"t" : "", i ? 1 : 0, i ? &"01234567"[i - 1] : "", i ? "\"" : "", i);
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    moirai_problem *p;
    place_units *u;
    placeto_graph *g;
    assert_ok(moirai_problem_parse(&p, text, strlen(text), "chain"));
    assert_ok(place_units_new(&u, p));
    assert_ok(placeto_graph_new(&g, p, u, 100));
    assert_int_equal(g->n, 4);
    for (int32_t v = 0; v < 4; v++) {
        assert_int_equal(g->time_ns[v], 20);
        assert_int_equal(g->out_bytes[v], v < 3);
        assert_int_equal(g->op[g->off[v]], 2 * v);
    }
    assert_int_equal(g->relation[1 * 4 + 0], PLACETO_ANCESTOR);
    assert_int_equal(g->relation[1 * 4 + 3], PLACETO_DESCENDANT);
    placeto_graph_free(g);
    place_units_free(u);
    moirai_problem_free(p);
}

/* ---- learning ---- */

typedef struct means {
    int batches;
    double first, last; /* over the first and the last quarter */
    int total;
} means;

static void watch_means(void *data, const learn_news *news)
{
    means *m = data;
    if (m->batches < m->total / 4)
        m->first += news->mean_ns / (m->total / 4);
    else if (m->batches >= m->total - m->total / 4)
        m->last += news->mean_ns / (m->total / 4);
    m->batches++;
}

/* Four parallel branches on two devices, of which one is four times as fast and links are slow: random placements are
 * far from good. */
static moirai_problem *uneven_problem(void)
{
    random_spec spec = {.seed = 12, .shape = SHAPE_FORK_JOIN, .n_ops = 12, .n_devices = 3, .scale = 1000};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 1; k < 3; k++)
            p->op_time_ns[i * 3 + k] = 4 * p->op_time_ns[i * 3]; /* device 0 is the one */
    return p;
}

static void test_learners_get_better(void **state)
{
    (void)state;
    moirai_problem *p = uneven_problem();
    for (int m = 0; m < 2; m++) {
        char episodes[16];
        int batch = methods[m]->lanes * methods[m]->width;
        means seen = {.total = 80};
        moirai_place_options o;
        moirai_place_options_init(&o);
        snprintf(episodes, sizeof episodes, "%d", seen.total * batch);
        moirai_setting set[] = {{"episodes", episodes}};
        o.setting = set;
        o.n_settings = 1;
        o.gap = 0;
        o.budget.threads = 1;
        moirai_plan *plan;
        assert_ok(learn_place(&plan, methods[m], p, &o, watch_means, &seen));
        assert_int_equal(seen.batches, seen.total);
        print_message("%s: mean makespan %.0f, then %.0f\n", methods[m]->placer->name, seen.first, seen.last);
        assert_true(seen.last < 0.9 * seen.first);
        assert_true((double)plan->makespan_ns <= seen.last);
        moirai_plan_free(plan);
    }
    moirai_problem_free(p);
}

static void test_learners_do_not_depend_on_threads(void **state)
{
    (void)state;
    random_spec spec = {.seed = 5, .shape = SHAPE_LAYERED, .n_ops = 30, .n_devices = 3, .scale = 1000};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    for (int m = 0; m < 2; m++) {
        char *file[2] = {temporary_path("one.json"), temporary_path("four.json")};
        char *text[2];
        for (int i = 0; i < 2; i++) {
            moirai_setting set[] = {{"episodes", "48"}, {"save", file[i]}};
            moirai_place_options o;
            moirai_plan *plan;
            size_t length;
            moirai_place_options_init(&o);
            o.setting = set;
            o.n_settings = 2;
            o.budget.threads = i == 0 ? 1 : 4;
            assert_ok(moirai_place(&plan, p, methods[m]->placer->name, &o));
            moirai_plan_free(plan);
            assert_ok(util_file_read(&text[i], &length, file[i]));
            unlink(file[i]);
        }
        assert_string_equal(text[0], text[1]); /* every weight, to the last digit */
        free(text[0]);
        free(text[1]);
    }
    moirai_problem_free(p);
}

/* ---- policies ---- */

static void keep_mean(void *data, const learn_news *news)
{
    *(double *)data = news->mean_ns;
}

/* Mean makespan of a batch of draws, without training; file NULL: untrained. */
static double use_policy(const learn_method *method, const moirai_problem *p, const char *file)
{
    moirai_setting set[] = {{"train", "false"}, {"load", file}};
    moirai_place_options o;
    moirai_plan *plan;
    double mean = 0;
    moirai_place_options_init(&o);
    o.setting = set;
    o.n_settings = file ? 2 : 1;
    assert_ok(learn_place(&plan, method, p, &o, keep_mean, &mean));
    moirai_plan_free(plan);
    return mean;
}

/* Layers of one kind on devices of which one is by far the best: what is learnt on the small graph holds on the larger
 * one. */
static moirai_problem *family(int n_ops)
{
    random_spec spec = {.seed = 21, .shape = SHAPE_LAYERED, .n_ops = n_ops, .n_devices = 3, .scale = 1000};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 1; k < 3; k++)
            p->op_time_ns[i * 3 + k] = 10 * p->op_time_ns[i * 3];
    return p;
}

static void test_trained_policy_beats_an_untrained_one_elsewhere(void **state)
{
    (void)state;
    moirai_problem *small = family(14), *large = family(40);
    for (int m = 0; m < 2; m++) {
        char *file = temporary_path("policy.json");
        moirai_setting set[] = {{"episodes", "800"}, {"save", file}};
        moirai_place_options o;
        moirai_plan *plan;
        moirai_place_options_init(&o);
        o.setting = set;
        o.n_settings = 2;
        assert_ok(moirai_place(&plan, small, methods[m]->placer->name, &o));
        moirai_plan_free(plan);
        double untrained = use_policy(methods[m], large, NULL), trained = use_policy(methods[m], large, file);
        print_message("%s: mean makespan %.0f untrained, %.0f trained on another network\n", methods[m]->placer->name,
                      untrained, trained);
        assert_true(trained < 0.9 * untrained);
        unlink(file);
    }
    moirai_problem_free(small);
    moirai_problem_free(large);
}

static void make_params(learn_params *q)
{
    *q = (learn_params){0};
    learn_params_add(q, "a.w", 3, 2);
    learn_params_add(q, "a.b", 1, 2);
    assert_ok(learn_params_make(q));
    learn_params_draw(q, 3);
}

static const learn_policy_head head = {"placeto", 4, "net", 16};

static void test_policy_file_reads_back_what_it_wrote(void **state)
{
    (void)state;
    learn_params q, again;
    int64_t episodes = 0;
    make_params(&q);
    make_params(&again);
    q.value[0] = (learn_real)(1.0 / 3);
    q.value[7] = (learn_real)-1e-30;
    memset(again.value, 0, again.n * sizeof *again.value);
    char *path = temporary_path("written.json");
    assert_ok(learn_policy_write(&q, &head, path));
    assert_ok(learn_policy_read(&again, &head, &episodes, path));
    assert_memory_equal(q.value, again.value, q.n * sizeof *q.value);
    assert_int_equal(episodes, 16);
    unlink(path);
    learn_params_free(&q);
    learn_params_free(&again);
}

static void expect_bad(const char *text, const char *part)
{
    learn_params q;
    int64_t episodes;
    make_params(&q);
    learn_real keep = q.value[0];
    if (learn_policy_parse(&q, &head, &episodes, text, strlen(text), "p.json") != MOIRAI_EINPUT)
        fail_msg("accepted: %s", text);
    if (strncmp(moirai_error_message(), "p.json: ", 8) != 0 || strstr(moirai_error_message(), part) == NULL ||
        strchr(moirai_error_message(), '\n') != NULL)
        fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), part);
    assert_true(q.value[0] == keep); /* untouched */
    learn_params_free(&q);
}

#define POLICY(head_text, tensors) "{\"format\":\"moirai-policy\",\"version\":1," head_text "\"tensors\":[" tensors "]}"
#define HEAD "\"placer\":\"placeto\",\"devices\":4,"
#define AW "{\"name\":\"a.w\",\"rows\":3,\"cols\":2,\"values\":[1,2,3,4,5,6.5]}"
#define AB "{\"name\":\"a.b\",\"rows\":1,\"cols\":2,\"values\":[0,-1e-3]}"

static void test_policy_file_says_what_is_wrong(void **state)
{
    (void)state;
    expect_bad("", "");
    expect_bad("[]", "");
    expect_bad("{\"format\":\"moirai-plan\",\"version\":1}", "moirai-policy");
    expect_bad(POLICY("\"placer\":\"hrl\",\"devices\":4,", AW "," AB), "a policy of placer 'hrl', not of 'placeto'");
    expect_bad(POLICY("\"placer\":\"placeto\",\"devices\":2,", AW "," AB), "for 2 devices, but the problem has 4");
    expect_bad(POLICY("\"placer\":\"placeto\",", AW "," AB), "devices");
    expect_bad(POLICY(HEAD, AW), "tensor 'a.b' is missing");
    expect_bad(POLICY(HEAD, AW "," AW), "tensor 'a.w': is there twice");
    expect_bad(POLICY(HEAD, AW ",{\"name\":\"c\"}"), "tensor 'c': this placer has no such tensor");
    expect_bad(POLICY(HEAD, "{\"name\":\"a.b\",\"rows\":2,\"cols\":2,\"values\":[0,0]}"),
               "is 2 x 2, but this policy's is 1 x 2");
    expect_bad(POLICY(HEAD, "{\"name\":\"a.b\",\"rows\":1,\"cols\":2,\"values\":[0]}"), "1 values for 1 x 2");
    expect_bad(POLICY(HEAD, "{\"name\":\"a.b\",\"rows\":1,\"cols\":2,\"values\":[0,\"x\"]}"), "values[1]");
    expect_bad(POLICY(HEAD, "{\"name\":\"a.b\",\"rows\":1,\"cols\":2,\"values\":[0,1e300]}"), "values[1]");
    expect_bad(POLICY(HEAD, "7"), "tensor");
}

/* Cut anywhere, or with any byte changed, a file is read or refused in one line; never more. */
static void test_policy_file_survives_cuts_and_noise(void **state)
{
    (void)state;
    static const char good[] = POLICY(HEAD, AW "," AB);
    learn_params q;
    int64_t episodes;
    char text[sizeof good];
    int accepted = 0;
    make_params(&q);
    assert_ok(learn_policy_parse(&q, &head, &episodes, good, sizeof good - 1, "good"));
    for (size_t length = 0; length + 1 < sizeof good; length++) {
        char *cut = malloc(length + 1); /* no byte more: a sanitizer sees reading past the end */
        memcpy(cut, good, length);
        assert_int_equal(learn_policy_parse(&q, &head, &episodes, cut, length, "cut"), MOIRAI_EINPUT);
        free(cut);
    }
    util_rng rng;
    util_rng_seed(&rng, 4);
    for (int i = 0; i < 4000; i++) {
        memcpy(text, good, sizeof good);
        for (uint32_t n = 1 + util_rng_below(&rng, 3); n > 0; n--)
            text[util_rng_below(&rng, sizeof good - 1)] = (char)util_rng_below(&rng, 256);
        int rc = learn_policy_parse(&q, &head, &episodes, text, sizeof good - 1, "noise");
        assert_true(rc == 0 || rc == MOIRAI_EINPUT);
        accepted += rc == 0;
    }
    assert_true(accepted > 0 && accepted < 2000);
    learn_params_free(&q);
}

static void test_learners_refuse_bad_files_early(void **state)
{
    (void)state;
    moirai_problem *p = uneven_problem();
    moirai_plan *plan;
    moirai_place_options o;
    moirai_place_options_init(&o);
    moirai_setting load = {"load", "/nowhere/policy.json"}, save = {"save", "/nowhere/policy.json"},
                   none = {"save", ""};
    o.n_settings = 1;
    o.setting = &load;
    assert_true(moirai_place(&plan, p, "placeto", &o) != 0);
    assert_non_null(strstr(moirai_error_message(), "/nowhere/policy.json"));
    o.setting = &save;
    assert_true(moirai_place(&plan, p, "hrl", &o) != 0);
    assert_non_null(strstr(moirai_error_message(), "/nowhere/policy.json"));
    o.setting = &none;
    assert_int_equal(moirai_place(&plan, p, "hrl", &o), MOIRAI_EUSAGE);
    moirai_problem_free(p);
}

static void test_learners_begin_from_a_given_plan_and_never_end_worse(void **state)
{
    (void)state;
    moirai_problem *p = family(40);
    moirai_plan *start, *plan;
    moirai_setting set[] = {{"episodes", "1"}};
    moirai_place_options o;
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&start, p, "heft", NULL));
    o.start = start;
    o.setting = set;
    o.n_settings = 1;
    for (int m = 0; m < 2; m++) {
        assert_ok(moirai_place(&plan, p, methods[m]->placer->name, &o));
        assert_true(plan->makespan_ns <= start->makespan_ns);
        moirai_plan_free(plan);
    }
    moirai_plan_free(start);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learn_clip_keeps_the_direction),
        cmocka_unit_test(test_learn_adam_goes_down),
        cmocka_unit_test(test_placeto_graph_holds_every_operator_once),
        cmocka_unit_test(test_placeto_graph_joins_chains_within_the_cap),
        cmocka_unit_test(test_learners_get_better),
        cmocka_unit_test(test_policy_file_reads_back_what_it_wrote),
        cmocka_unit_test(test_policy_file_says_what_is_wrong),
        cmocka_unit_test(test_policy_file_survives_cuts_and_noise),
        cmocka_unit_test(test_learners_refuse_bad_files_early),
        cmocka_unit_test(test_learners_begin_from_a_given_plan_and_never_end_worse),
        cmocka_unit_test(test_learners_do_not_depend_on_threads),
        cmocka_unit_test(test_trained_policy_beats_an_untrained_one_elsewhere),
    };
    return RUN_CASES_AGAIN(10, tests);
}
