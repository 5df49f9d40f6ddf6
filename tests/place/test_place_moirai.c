/* The placer `moirai`: the structure it finds, what it promises of its plans, and that threads change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <moirai/moirai.h>

#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"

static moirai_plan *place(const moirai_problem *p, const char *placer, double effort, int threads)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_place_options_init(&o);
    o.budget.effort = effort;
    o.budget.threads = threads;
    if (moirai_place(&plan, p, placer, &o))
        return NULL;
    return plan;
}

/* All but the heads lie on the spine; the heads of all layers are one class of blocks, and of one kind. */
static void test_moirai_structure_of_a_transformer(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("gpt3-330M", "inter-server", MOIRAI_FLOW_EDGE);
    pair_chain *c;
    assert_int_equal(pair_chain_new(&c, p), 0);
    assert_int_equal(c->s->n_cuts, 24 * 11);
    int heads = 0;
    for (int32_t i = 0; i < c->s->n_classes; i++)
        if (pair_chain_block(c, i)->n_interior > 0) {
            heads++;
            assert_int_equal(c->s->class_count[i], 24);
            assert_int_equal(c->block[i]->n_interior, 16 * 12);
            assert_int_equal(c->block[i]->n_components, 16);
            assert_int_equal(c->block[i]->n_kinds, 1);
        }
    assert_int_equal(heads, 1);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Every operator between two cuts descends from the first and precedes the second: no edge enters a block from beyond.
 */
static void test_moirai_cuts_are_comparable_with_everything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_spec spec = random_spec_draw(seed, 14);
        moirai_problem *p = random_problem(&spec);
        pair_chain *c;
        if (!p)
            continue;
        assert_int_equal(pair_chain_new(&c, p), 0);
        for (int32_t i = 0; i < c->s->n_cuts; i++) {
            uint8_t after[64] = {0}, before[64] = {0};
            after[c->s->cut[i]] = before[c->s->cut[i]] = 1;
            for (int32_t z = 0; z < p->n_ops; z++)
                for (int32_t j = p->op_in_off[p->topo[z]]; j < p->op_in_off[p->topo[z] + 1]; j++)
                    after[p->topo[z]] |= after[p->tensor_producer[p->op_in[j]]];
            for (int32_t z = p->n_ops - 1; z >= 0; z--)
                for (int32_t j = p->op_in_off[p->topo[z]]; j < p->op_in_off[p->topo[z] + 1]; j++)
                    before[p->tensor_producer[p->op_in[j]]] |= before[p->topo[z]];
            for (int32_t op = 0; op < p->n_ops; op++)
                assert_true(after[op] || before[op]);
        }
        pair_chain_free(c);
        moirai_problem_free(p);
    }
}

static void test_moirai_same_plan_on_one_and_two_threads(void **state)
{
    (void)state;
    static const char *const network[] = {"gpt3-mini", "inception-tiny"};
    double effort = TEST_SHARE(12) / 1200.0;
    for (int i = 0; i < 2; i++) {
        moirai_problem *p = zoo_problem(network[i], "inter-server", i ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR);
        moirai_plan *one = place(p, "moirai", effort, 1), *two = place(p, "moirai", effort, 2);
        assert_schedules_equal(one, two);
        assert_int_equal(one->lower_bound_ns, two->lower_bound_ns);
        moirai_plan_free(one);
        moirai_plan_free(two);
        moirai_problem_free(p);
    }
}

static void test_moirai_is_never_worse_than_its_starts(void **state)
{
    (void)state;
    static const char *const others[] = {"single", "heft", "m-topo", "m-etf", "random"};
    for (uint64_t seed = 300; seed < 300 + TEST_SHARE(16); seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        moirai_plan *best = place(p, "moirai", 0.004, 2);
        for (int i = 0; i < 5; i++) {
            moirai_plan *other = place(p, others[i], 1, 1);
            if (other && (!best || best->makespan_ns > other->makespan_ns || best->lower_bound_ns > other->makespan_ns))
                fail_msg("%s: %s is better, or below the bound", random_spec_text(&spec), others[i]);
            moirai_plan_free(other);
        }
        moirai_plan_free(best);
        moirai_problem_free(p);
    }
}

/* A chain of layers that no device can hold alone: the plan fits, and the bound knows that it must be spread. */
static void test_moirai_keeps_to_memory_that_binds(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("gpt3-mini", "inter-server", MOIRAI_FLOW_TENSOR);
    int64_t total = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        total += p->op_memory_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_memory_bytes[k] = total * 2 / 5;
    moirai_plan *plan = place(p, "moirai", TEST_SHARE(12) / 1200.0, 2);
    assert_non_null(plan);
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    assert_true(plan->lower_bound_ns <= plan->makespan_ns);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* Layers of one component each, where all branches read the entry's tensor and one can run on B alone: not every start
 * of the search is allowed, and neither device has the memory for all. */
static char *pinned_layers(int layers)
{
    size_t room = 2048 + (size_t)layers * 1024, n;
    char *json = malloc(room);
    assert_non_null(json);
    n = (size_t)snprintf(
        json, room,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"pinned\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":%d},{\"name\":\"B\",\"memory_bytes\":%d}],"
        "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000000000}],\"ops\":[",
        70 * layers, 70 * layers);
    for (int i = 0; i < layers; i++) {
        char before[64] = "";
        if (i)
            snprintf(before, sizeof before, "\"j%d\",\"c%d\"", i - 1, i - 1);
        n += (size_t)snprintf(json + n, room - n,
                              "%s{\"name\":\"in%d\",\"type\":\"T\",\"memory_bytes\":5,\"time_ns\":[10,10],\"inputs\":[%"
                              "s],\"outputs\":[{\"name\":\"t%d\",\"bytes\":20}]},"
                              "{\"name\":\"a%d\",\"type\":\"T\",\"memory_bytes\":40,\"time_ns\":[50,100],\"inputs\":["
                              "\"t%d\"],\"outputs\":[{\"name\":\"a%d\",\"bytes\":5}]},"
                              "{\"name\":\"b%d\",\"type\":\"T\",\"memory_bytes\":40,\"time_ns\":[50,110],\"inputs\":["
                              "\"t%d\"],\"outputs\":[{\"name\":\"b%d\",\"bytes\":5}]},"
                              "{\"name\":\"c%d\",\"type\":\"T\",\"memory_bytes\":5,\"time_ns\":[null,40],\"inputs\":["
                              "\"t%d\",\"a%d\"],\"outputs\":[{\"name\":\"c%d\",\"bytes\":5}]},"
                              "{\"name\":\"j%d\",\"type\":\"T\",\"memory_bytes\":5,\"time_ns\":[20,20],\"inputs\":[\"a%"
                              "d\",\"b%d\"],\"outputs\":[{\"name\":\"j%d\",\"bytes\":5}]}",
                              i ? "," : "", i, before, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
    }
    snprintf(json + n, room - n, "]}");
    return json;
}

static void test_moirai_memory_binds_where_starts_are_not_allowed(void **state)
{
    (void)state;
    char *json = pinned_layers(14);
    moirai_problem *p;
    assert_int_equal(moirai_problem_parse(&p, json, strlen(json), "pinned"), 0);
    moirai_plan *plan = place(p, "moirai", TEST_SHARE(12) / 600.0, 2);
    assert_non_null(plan);
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    assert_true(plan->lower_bound_ns <= plan->makespan_ns);
    assert_true(plan->device_memory_bytes[0] > 0 && plan->device_memory_bytes[1] > 0);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moirai_structure_of_a_transformer),
        cmocka_unit_test(test_moirai_cuts_are_comparable_with_everything),
        cmocka_unit_test(test_moirai_same_plan_on_one_and_two_threads),
        cmocka_unit_test(test_moirai_is_never_worse_than_its_starts),
        cmocka_unit_test(test_moirai_keeps_to_memory_that_binds),
        cmocka_unit_test(test_moirai_memory_binds_where_starts_are_not_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
