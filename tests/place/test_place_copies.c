/* Layers: annealed each by itself, copies once, whatever the number of threads, and the same for all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <moirai/moirai.h>

#include "place/moirai/engine.h"
#include "support/check.h"

#define EXPERTS 10

typedef struct text {
    char s[1 << 17];
    size_t n;
} text;

static void put_op(text *t, const char *name, int slow, int fast, const char *inputs, int bytes)
{
    t->n += (size_t)snprintf(t->s + t->n, sizeof t->s - t->n,
                             "%s{\"name\":\"%s\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[%d,%d],\"inputs\":[%s],"
                             "\"outputs\":[{\"name\":\"%s_t\",\"bytes\":%d}]}",
                             t->s[t->n - 1] == '[' ? "" : ",", name, fast, slow, inputs, name, bytes);
}

/* Experts of three operators side by side behind a router, added up one after the other: one component. Where layers are not
 * alike, experts read past the router, too. */
static void put_layer(text *t, int layer, bool alike)
{
    char name[32], inputs[96];
    int more = alike ? 0 : 100 * layer;
    snprintf(name, sizeof name, "r%d", layer);
    inputs[0] = '\0';
    if (layer)
        snprintf(inputs, sizeof inputs, "\"s%d_%d_t\"", layer - 1, EXPERTS - 1);
    put_op(t, name, 500, 400, inputs, 3000);
    for (int i = 0; i < EXPERTS; i++) {
        for (int j = 0; j < 3; j++) {
            snprintf(name, sizeof name, "e%d_%d_%d", layer, i, j);
            if (j)
                snprintf(inputs, sizeof inputs, "\"e%d_%d_%d_t\"", layer, i, j - 1);
            else
                snprintf(inputs, sizeof inputs, alike || !layer ? "\"r%d_t\"" : "\"r%d_t\",\"s%d_%d_t\"", layer,
                         layer - 1, EXPERTS - 1);
            put_op(t, name, 2300 + more, 1700 + more, inputs, j == 2 ? 3000 : 12000);
        }
        snprintf(name, sizeof name, "s%d_%d", layer, i);
        if (i)
            snprintf(inputs, sizeof inputs, "\"s%d_%d_t\",\"e%d_%d_2_t\"", layer, i - 1, layer, i);
        else
            snprintf(inputs, sizeof inputs, "\"e%d_%d_2_t\"", layer, i);
        put_op(t, name, 300, 300, inputs, 3000);
    }
}

static moirai_problem *layers(int n, bool alike)
{
    static text t;
    t.n = (size_t)snprintf(
        t.s, sizeof t.s,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"copies\",\"flow\":\"tensor\","
        "\"congestion\":\"port\",\"memory\":\"static\",\"devices\":[{\"name\":\"x\",\"memory_bytes\":9},"
        "{\"name\":\"y\",\"memory_bytes\":9}],\"channels\":["
        "{\"from\":\"x\",\"to\":\"y\",\"bytes_per_second\":3000000000,\"latency_ns\":0},"
        "{\"from\":\"y\",\"to\":\"x\",\"bytes_per_second\":3000000000,\"latency_ns\":0}],\"ops\":[");
    for (int i = 0; i < n; i++)
        put_layer(&t, i, alike);
    t.n += (size_t)snprintf(t.s + t.n, sizeof t.s - t.n, "]}");
    moirai_problem *p = NULL;
    assert_ok(moirai_problem_parse(&p, t.s, t.n, "copies"));
    return p;
}

static moirai_plan *place(const moirai_problem *p, int threads)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_place_options_init(&o);
    o.budget.effort = 0.02;
    o.budget.time_limit_s = 0;
    o.budget.threads = threads;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    return plan;
}

static void test_more_layers_take_no_more_time_each(void **state)
{
    (void)state;
    moirai_problem *few = layers(3, true), *many = layers(9, true);
    moirai_plan *short_plan = place(few, 1), *long_plan = place(many, 1);
    assert_true((double)long_plan->makespan_ns < 1.03 * 3 * (double)short_plan->makespan_ns);
    assert_true(short_plan->lower_bound_ns <= short_plan->makespan_ns);
    moirai_plan_free(short_plan);
    moirai_plan_free(long_plan);
    moirai_problem_free(few);
    moirai_problem_free(many);
}

static void test_copies_do_not_depend_on_threads(void **state)
{
    (void)state;
    moirai_problem *p = layers(4, true);
    moirai_plan *one = place(p, 1), *three = place(p, 3);
    assert_schedules_equal(one, three);
    assert_int_equal(one->lower_bound_ns, three->lower_bound_ns);
    moirai_plan_free(one);
    moirai_plan_free(three);
    moirai_problem_free(p);
}

/* Between cuts that no edge jumps over lengths of plans add up: the path of the chain is a plan, and the best is no longer. */
static void test_layers_that_differ_are_annealed_each(void **state)
{
    (void)state;
    moirai_problem *p = layers(4, false);
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.effort = 0.02;
    o.budget.time_limit_s = 0;
    engine *x = engine_new(p, &o);
    assert_non_null(x);
    assert_ok(engine_take_turn(x, &(engine_turn){.step = &step_starts}));
    int64_t before = x->in.best->makespan_ns;
    assert_ok(engine_take_turn(x, &(engine_turn){.step = &step_layers, .share = 1}));
    assert_true(blocks_have_layers(x->layers) && !x->copies);
    assert_int_equal(x->layers->c->s->n_cuts, 5); /* the first router, and the last sum of each layer */
    int64_t length = pair_chain_path(x->layers->c, PAIR_CHAIN_UPPER, x->layers->plan_device);
    assert_true(x->in.best->makespan_ns <= length);
    assert_true(x->in.best->makespan_ns < before);
    engine_free(x);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_layers_take_no_more_time_each),
        cmocka_unit_test(test_copies_do_not_depend_on_threads),
        cmocka_unit_test(test_layers_that_differ_are_annealed_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
