/* Weights that several operators read: a device that runs several of the readers holds them once. */
#include <moirai/moirai.h>

#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "util/util.h"

#include <yyjson.h>

/* A random problem, some of whose operators read one of two or three weights of about a device's room. */
static moirai_problem *problem_with_weights(uint64_t seed)
{
    random_spec spec = random_spec_draw(seed, 6);
    spec.tight = seed % 3 == 0;
    util_rng rng;
    util_rng_seed(&rng, seed);
    size_t length;
    char *text = random_problem_json(&spec, &length);
    yyjson_doc *read = yyjson_read(text, length, 0);
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(read, NULL);
    yyjson_mut_val *ops = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "ops"), *op;
    int64_t bytes[3];
    for (int w = 0; w < 3; w++)
        bytes[w] = (1 + (int64_t)util_rng_below(&rng, 8)) * spec.scale;
    size_t i, n;
    yyjson_mut_arr_foreach(ops, i, n, op) {
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, op, "shared_weights");
        for (int w = 0; w < 3; w++) {
            if (util_rng_below(&rng, 2))
                continue;
            yyjson_mut_val *weight = yyjson_mut_arr_add_obj(doc, list);
            char name[8];
            snprintf(name, sizeof name, "w%d", w);
            yyjson_mut_obj_add_strcpy(doc, weight, "name", name);
            yyjson_mut_obj_add_int(doc, weight, "bytes", bytes[w]);
        }
    }
    char *json = yyjson_mut_write(doc, 0, &length);
    moirai_problem *p = NULL;
    assert_ok(moirai_problem_parse(&p, json, length, "shared"));
    free(json);
    free(text);
    yyjson_doc_free(read);
    yyjson_mut_doc_free(doc);
    return p;
}

/* exact finds the optimum; nobody is faster, no bound is above it, and who says "impossible" is right (exact, milp). */
static void test_problem_shared_weights_all_placers_against_brute_force(void **state)
{
    (void)state;
    int bound = 0, infeasible = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)TEST_SHARE(80); seed++) {
        moirai_problem *p = problem_with_weights(seed);
        int64_t best = brute_force(p, 4000000, NULL);
        for (int i = 0; i < moirai_placer_count() && best != BRUTE_GAVE_UP; i++) {
            const char *name = moirai_placer_at(i)->name, *why;
            moirai_place_options o;
            moirai_place_options_init(&o);
            o.budget.effort = 0.1;
            o.gap = 0;
            moirai_plan *plan = NULL;
            if (moirai_placer_at(i)->available && !moirai_placer_at(i)->available(&why))
                continue;
            int rc = moirai_place(&plan, p, name, &o); /* checks the plan */
            bool exact = !strcmp(name, "exact");
            if (rc && rc != MOIRAI_EINFEASIBLE && rc != MOIRAI_ELIMIT)
                fail_msg("seed %d, %s: %s", (int)seed, name, moirai_error_message());
            if (best == BRUTE_INFEASIBLE ? rc == 0 : exact && rc)
                fail_msg("seed %d, %s: %s", (int)seed, name, rc ? moirai_error_message() : "a plan that can't be");
            if (!rc &&
                (plan->makespan_ns < best || plan->lower_bound_ns > best || (exact && plan->makespan_ns != best)))
                fail_msg("seed %d, %s: %lld, bound %lld, the truth is %lld", (int)seed, name,
                         (long long)plan->makespan_ns, (long long)plan->lower_bound_ns, (long long)best);
            moirai_plan_free(plan);
        }
        infeasible += best == BRUTE_INFEASIBLE;
        bound += best >= 0 && p->n_weights;
        moirai_problem_free(p);
    }
    assert_true(bound > TEST_SHARE(10) && infeasible > 0);
}

/* Two readers of one weight of 60 bytes, devices of 100 bytes: together they fit, counted twice they would not. */
static const char two_readers[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"two\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_bytes\":10}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":[{\"name\":\"a\",\"type\":\"T\",\"memory_bytes\":15,\"time_ns\":[10,10],\"inputs\":[],"
    "\"outputs\":[{\"name\":\"t\",\"bytes\":2}],\"shared_weights\":[{\"name\":\"w\",\"bytes\":60}]},"
    "{\"name\":\"b\",\"type\":\"T\",\"memory_bytes\":%d,\"time_ns\":[10,10],\"inputs\":[\"t\"],\"outputs\":[],"
    "\"shared_weights\":[{\"name\":\"w\",\"bytes\":60}]}]}";

static void test_problem_shared_weights_count_once_per_device(void **state)
{
    (void)state;
    char text[2000];
    for (int bytes = 25; bytes <= 26; bytes++) {
        moirai_problem *p;
        moirai_plan *plan = NULL;
        snprintf(text, sizeof text, two_readers, bytes);
        assert_ok(moirai_problem_parse(&p, text, strlen(text), "two"));
        assert_int_equal(p->n_weights, 1);
        int rc = moirai_place(&plan, p, "heft", NULL);
        assert_int_equal(rc, bytes == 25 ? 0 : MOIRAI_EINFEASIBLE);
        if (!rc) {
            assert_int_equal(plan->device_memory_bytes[0], 100);
            assert_int_equal(plan->device_memory_bytes[1], 0);
        }
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

static void test_problem_shared_weights_survive_files(void **state)
{
    (void)state;
    char text[2000], *path = temporary_path("shared.json");
    moirai_problem *p, *again;
    snprintf(text, sizeof text, two_readers, 25);
    assert_ok(moirai_problem_parse(&p, text, strlen(text), "two"));
    assert_ok(moirai_problem_write(p, path));
    assert_ok(moirai_problem_read(&again, path));
    assert_true(moirai_problem_digest(p) == moirai_problem_digest(again));
    assert_int_equal(again->n_weights, 1);
    assert_int_equal(again->weight_bytes[0], 60);
    moirai_problem_free(p);
    moirai_problem_free(again);
    remove(path);
}

static void test_problem_shared_weights_of_one_group_are_its_own(void **state)
{
    (void)state;
    char text[2000];
    moirai_problem *p;
    moirai_wish together = {MOIRAI_TOGETHER, "*", NULL};
    snprintf(text, sizeof text, two_readers, 25);
    assert_ok(moirai_problem_parse(&p, text, strlen(text), "two"));
    assert_ok(moirai_problem_wish(p, &together, 1));
    assert_int_equal(p->n_weights, 0);
    assert_int_equal(p->op_memory_bytes[0], 75);
    moirai_problem_free(p);
}

static void test_problem_shared_weights_two_sizes_are_refused(void **state)
{
    (void)state;
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "g"));
    for (int i = 0; i < 2; i++) {
        int32_t op = moirai_graph_builder_op(b, i ? "b" : "a", "T");
        moirai_graph_builder_shared_weight(b, op, "w", 5 + i);
    }
    assert_int_equal(moirai_graph_builder_finish(&g, b), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "'w' has 6 bytes here, 5 before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_shared_weights_count_once_per_device),
        cmocka_unit_test(test_problem_shared_weights_survive_files),
        cmocka_unit_test(test_problem_shared_weights_of_one_group_are_its_own),
        cmocka_unit_test(test_problem_shared_weights_two_sizes_are_refused),
        cmocka_unit_test(test_problem_shared_weights_all_placers_against_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
