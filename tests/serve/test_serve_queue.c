/* The queue: order, limits, deadlines, and what becomes of requests whose carrier died. */
#include "support/check.h"

#include <stdlib.h>

#include "serve/serve_queue.h"

static const atomic_bool go_on = false, stop = true;
static const char carrier_a, carrier_b;

static void count(void *owner)
{
    ++*(int *)owner;
}

static serve_job *put(serve_queue *q, double deadline_s, int *n_woken)
{
    serve_job *j = serve_job_new();
    assert_non_null(j);
    j->deadline_s = deadline_s;
    j->wake = count;
    j->owner = n_woken;
    serve_queue_put(q, j);
    return j;
}

/* The next one, as a sender that has sent it. */
static serve_job *take(serve_queue *q, const void *carrier, const atomic_bool *until)
{
    serve_job *j = serve_queue_take(q, carrier, until);
    if (j)
        serve_job_let_go(q, j);
    return j;
}

static char *some(void)
{
    return calloc(1, 1);
}

static void test_queue_answers_in_the_order_of_a_carrier(void **state)
{
    (void)state;
    serve_queue q;
    int woken = 0;
    serve_job *j[3];
    serve_queue_init(&q, 10);
    for (int i = 0; i < 3; i++)
        j[i] = put(&q, 1e300, &woken);
    assert_ptr_equal(take(&q, &carrier_a, &go_on), j[0]);
    assert_ptr_equal(take(&q, &carrier_b, &go_on), j[1]);
    assert_null(take(&q, &carrier_a, &stop));
    assert_false(serve_queue_answer(&q, &carrier_b, j[0]->id, some(), NULL)); /* it has another one */
    assert_true(serve_queue_answer(&q, &carrier_b, j[1]->id, some(), NULL));
    assert_true(serve_queue_answer(&q, &carrier_a, j[0]->id, NULL, "no"));
    assert_int_equal(woken, 2);
    assert_int_equal(j[1]->code, 200);
    assert_int_equal(j[0]->code, 500);
    assert_string_equal(j[0]->text, "no");
    assert_false(serve_queue_idle(&q));
    for (int i = 0; i < 3; i++)
        serve_job_let_go(&q, j[i]);
    serve_queue_end(&q);
}

static void test_queue_refuses_what_is_too_much_too_late_or_after_its_end(void **state)
{
    (void)state;
    serve_queue q;
    int woken = 0;
    serve_job *j[4];
    serve_queue_init(&q, 1);
    j[0] = put(&q, 0, &woken);
    j[1] = put(&q, 1e300, &woken);
    j[2] = put(&q, 1e300, &woken);
    serve_queue_close(&q);
    j[3] = put(&q, 1e300, &woken);
    assert_int_equal(j[0]->code, 504);
    assert_int_equal(j[1]->code, 0);
    assert_int_equal(j[2]->code, 429);
    assert_int_equal(j[3]->code, 503);
    assert_int_equal(woken, 3);
    assert_int_equal(q.n_accepted, 1);
    for (int i = 0; i < 4; i++)
        serve_job_let_go(&q, j[i]);
    serve_queue_end(&q);
}

/* Those of a dead carrier come first again, in their order; nobody hears of it. */
static void test_queue_repeats_what_a_dead_carrier_had(void **state)
{
    (void)state;
    serve_queue q;
    int woken = 0;
    serve_job *j[5];
    serve_queue_init(&q, 10);
    for (int i = 0; i < 5; i++)
        j[i] = put(&q, 1e300, &woken);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(take(&q, i == 1 ? &carrier_b : &carrier_a, &go_on), j[i]);
    assert_true(serve_queue_answer(&q, &carrier_a, j[0]->id, some(), NULL));
    assert_int_equal(serve_queue_return(&q, &carrier_a), 2);
    static const int order[] = {2, 3, 4};
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(take(&q, &carrier_b, &go_on), j[order[i]]);
    assert_int_equal(serve_queue_return(&q, &carrier_a), 0);
    assert_int_equal(serve_queue_return(&q, &carrier_b), 4);
    assert_ptr_equal(take(&q, &carrier_a, &go_on), j[1]);
    assert_int_equal(woken, 1);
    assert_int_equal(q.n_repeated, 6);
    serve_job *last = put(&q, 1e300, &woken); /* behind what came back */
    for (int i = 0; i < 3; i++)
        take(&q, &carrier_a, &go_on);
    assert_ptr_equal(take(&q, &carrier_a, &go_on), last);
    serve_job_let_go(&q, last);
    for (int i = 0; i < 5; i++)
        serve_job_let_go(&q, j[i]);
    serve_queue_end(&q);
}

/* An answer may overtake the end of the sending: what is being sent stays until the sender lets go of it. */
static void test_queue_what_is_being_sent_outlives_its_answer(void **state)
{
    (void)state;
    serve_queue q;
    int woken = 0;
    serve_queue_init(&q, 10);
    serve_job *j = put(&q, 1e300, &woken);
    assert_ptr_equal(serve_queue_take(&q, &carrier_a, &go_on), j);
    assert_true(serve_queue_answer(&q, &carrier_a, j->id, some(), NULL));
    serve_job_let_go(&q, j); /* its owner has the answer */
    assert_int_equal(j->n_holders, 1);
    serve_job_let_go(&q, j);
    serve_queue_end(&q);
}

/* One that is answered because it took too long is not asked again, and what comes for it later is dropped. */
static void test_queue_deadlines(void **state)
{
    (void)state;
    serve_queue q;
    int woken = 0;
    serve_queue_init(&q, 10);
    serve_job *sent = put(&q, 1e200, &woken), *lost = put(&q, 1e200, &woken), *waits = put(&q, 1e200, &woken);
    serve_job *later = put(&q, 1e250, &woken);
    take(&q, &carrier_a, &go_on);
    take(&q, &carrier_b, &go_on);
    serve_queue_expire(&q, 1e199);
    assert_int_equal(woken, 0);
    serve_queue_expire(&q, 1e200);
    assert_int_equal(woken, 3);
    assert_int_equal(sent->code, 504);
    assert_int_equal(waits->code, 504);
    assert_true(serve_queue_answer(&q, &carrier_a, sent->id, some(), NULL));
    assert_null(sent->output);
    assert_int_equal(sent->code, 504);
    assert_int_equal(serve_queue_return(&q, &carrier_b), 0);
    assert_int_equal(woken, 3);
    assert_ptr_equal(take(&q, &carrier_a, &go_on), later);
    serve_job *all[] = {sent, lost, waits, later};
    for (int i = 0; i < 4; i++)
        serve_job_let_go(&q, all[i]);
    serve_queue_end(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_answers_in_the_order_of_a_carrier),
        cmocka_unit_test(test_queue_refuses_what_is_too_much_too_late_or_after_its_end),
        cmocka_unit_test(test_queue_repeats_what_a_dead_carrier_had),
        cmocka_unit_test(test_queue_what_is_being_sent_outlives_its_answer),
        cmocka_unit_test(test_queue_deadlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
