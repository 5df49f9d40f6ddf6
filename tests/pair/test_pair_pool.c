/* What the pool of all devices begins with, by hand: who waits for whom, weights of devices, labels and their costs. */
#include <stdlib.h>

#include "pair/pool_state.h"
#include "support/check.h"
#include "support/tiny.h"

/* From start to start: b can follow a on its device after 10 ns; where b can't, its tensor travels for 5. */
static void test_pair_pool_arcs_are_the_least_distances(void **state)
{
    (void)state;
    static const char *const text[] = {"device A 9\ndevice B 9\nop a 10,20 > s:5\nop b 7,3 s > t:0\n",
                                       "device A 9\ndevice B 9\nop a 10,20 > s:5\nop b -,3 s > t:0\n"};
    for (int32_t which = 0; which < 2; which++) {
        moirai_problem *p = tiny_problem(text[which]);
        pair_pool_arc more = {0, 1, 99};
        pair_pool_task job = {.arc = &more, .n_arcs = 1};
        pair_pool_arcs x = {0};
        assert_ok(pair_pool_find_arcs(&x, p, &job));
        assert_int_equal(x.n, 2);
        assert_int_equal(x.arc[0].ns, which ? 15 : 10);
        assert_int_equal(x.arc[1].ns, 99); /* the task's, behind those of edges */
        assert_int_equal(x.out_off[1] - x.out_off[0], 2);
        assert_int_equal(x.in_off[1] - x.in_off[0], 0);
        assert_int_equal(x.in_off[2] - x.in_off[1], 2);
        assert_int_equal(x.in[0] + x.in[1], 1);
        util_release(&x.memory);
        moirai_problem_free(p);
    }
}

typedef struct fixture {
    moirai_problem *p;
    pair_pool_arcs arcs;
    int64_t head[4], tail[4], weight[2], offset[2], paid[3], price[2], cost[16];
    int32_t n[2], late[1], off[3];
    double shape[2];
    pair_pool_trial x;
} fixture;

/* a before b, 10 ns each on either device, within 25 ns: each may start within 5 ns, in steps of 2. */
static void open_trial(fixture *f)
{
    *f = (fixture){.p = tiny_problem("device A 9\ndevice B 9\nop a 10,10 > s:0\nop b 10,10 s > t:0\n"),
                   .head = {0, 0, 10, 10},
                   .tail = {10, 10, 0, 0},
                   .weight = {1, 2},
                   .shape = {1, 3}};
    assert_ok(pair_pool_find_arcs(&f->arcs, f->p, &(pair_pool_task){0}));
    f->x = (pair_pool_trial){.q = f->p,
                             .head = f->head,
                             .tail = f->tail,
                             .weight = f->weight,
                             .n = 2,
                             .K = 2,
                             .E = 1,
                             .arcs = &f->arcs,
                             .length_ns = 25,
                             .step_ns = 2,
                             .bucket_ns = 13,
                             .label = {f->offset, f->n, f->late, f->off, f->cost},
                             .sale = {.shape = f->shape, .price = f->price, .paid = f->paid},
                             .proof = {.n_buckets = 2}};
}

static void close_trial(fixture *f)
{
    util_release(&f->arcs.memory);
    moirai_problem_free(f->p);
}

static void test_pair_pool_labels_keep_to_windows_and_precedence(void **state)
{
    (void)state;
    fixture f;
    open_trial(&f);
    pair_pool_find_windows(&f.x);
    pair_pool_find_lateness(&f.x);
    assert_false(f.x.impossible);
    assert_int_equal(f.offset[0], 0);
    assert_int_equal(f.offset[1], 10);
    assert_int_equal(f.n[0], 3); /* starts from 0 to 5 in steps of 2 */
    assert_int_equal(f.n[1], 3);
    assert_int_equal(f.late[0], 0); /* b begins 10 ns later at its earliest: label by label */
    f.x.length_ns = 19;
    pair_pool_find_windows(&f.x);
    assert_true(f.x.impossible);
    close_trial(&f);
}

/* A label pays for its cheapest start on the lighter device: all of [0, 13) costs one price, from there on three. */
static void test_pair_pool_labels_pay_for_their_time(void **state)
{
    (void)state;
    fixture f;
    open_trial(&f);
    pair_pool_find_windows(&f.x);
    pair_pool_find_lateness(&f.x);
    f.off[1] = f.n[0];
    f.off[2] = f.n[0] + f.n[1];
    pair_pool_set_prices(&f.x);
    int64_t one = f.price[0], three = f.price[1];
    assert_true(one > 1000000 && three >= 3 * one && three <= 3 * one + 2); /* rounded down */
    assert_int_equal(pair_pool_capacity(&f.x), 3 * (13 * one + 12 * three));
    assert_int_equal(f.cost[0], 10 * one);            /* a at 0 */
    assert_int_equal(f.cost[2], 9 * one + three);     /* a at 4: one of its 10 ns lies in the dear bucket */
    assert_int_equal(f.cost[3], 3 * one + 7 * three); /* b at 10 */
    assert_int_equal(f.cost[5], 10 * three);          /* b from 14 on */
    close_trial(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_pool_arcs_are_the_least_distances),
        cmocka_unit_test(test_pair_pool_labels_keep_to_windows_and_precedence),
        cmocka_unit_test(test_pair_pool_labels_pay_for_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
