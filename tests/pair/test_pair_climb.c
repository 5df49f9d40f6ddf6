/* Target by target: what it proves, that its cases leave nothing out, and that threads do not matter. */
#include "pair/cases.h"
#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/tiny_block.h"

/* Six heads of two operators read a tensor that takes 60 to each of two other devices; what they hand on takes 9. */
#define HEADS \
    "device A 9\ndevice B 9\ndevice C 9\nop in 1,-,- > s:60\n" \
    "op a0 20,15,25 s > x0:9\nop b0 30,22,35 x0 > y0:3\nop a1 20,15,25 s > x1:9\nop b1 30,22,35 x1 > y1:3\n" \
    "op a2 20,15,25 s > x2:9\nop b2 30,22,35 x2 > y2:3\nop a3 20,15,25 s > x3:9\nop b3 30,22,35 x3 > y3:3\n" \
    "op a4 20,15,25 s > x4:9\nop b4 30,22,35 x4 > y4:3\nop a5 20,15,25 s > x5:9\nop b5 30,22,35 x5 > y5:3\n" \
    "op out 1,-,- y0 y1 y2 y3 y4 y5\n"

static void open_heads(tiny_pair *f)
{
    tiny_pair_open(f, "flow tensor\ncongestion port\n" HEADS);
    assert_int_equal(f->x->sending.n, 5);
}

static void climb(tiny_pair *f, int32_t solves, int threads)
{
    pair_bound_task r = {.pair = f->x,
                         .need_ns = INT64_MAX,
                         .buckets = 8,
                         .sent_buckets = 8,
                         .rounds = 50,
                         .numbers = 10,
                         .by_targets = true,
                         .solvers = PAIR_SOLVERS,
                         .solves = solves,
                         .threads = threads};
    assert_ok(pair_cases_solve(&r));
    pair_bound_clear(&r);
}

/* Whether some case of the sending allows these arrivals, one per device. */
static int32_t cases_with(const pair_state *x, int32_t sending, const int64_t *arrival)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->n_cases; i++) {
        const pair_case *c = &x->cases[i];
        bool allowed = c->sending == sending;
        for (int32_t j = 0; j < c->n_branches && allowed; j++)
            if (c->branch[j].on == PRICING_ARRIVAL) {
                int64_t at = arrival[c->branch[j].device];
                allowed = at >= c->branch[j].least && at <= c->branch[j].most;
            }
        n += allowed;
    }
    return n;
}

/* Every leaf excludes what the pair claims, with prices that are its own, and whenever the tensor arrives there is one. */
static void test_pair_climb_leaves_no_arrival_out(void **state)
{
    (void)state;
    tiny_pair f;
    open_heads(&f);
    climb(&f, 60, 1);
    int64_t proven = f.x->cases[pair_cases_weakest(f.x)].proven_ns;
    assert_true(proven > f.x->path_ns && proven <= f.x->plan.length_ns);
    assert_int_equal(f.x->lower_ns, proven);
    assert_int_equal(pair_certified_ns(f.x), proven);
    for (int32_t i = 0; i < f.x->n_cases; i++) {
        assert_non_null(f.x->cases[i].proof.price);
        assert_int_equal(f.x->cases[i].proof.grid.length_ns, f.x->cases[i].proven_ns - 1);
    }
    int32_t divided = 0;
    for (int32_t s = 0; s < f.x->sending.n; s++)
        for (int64_t b = 0; b < 200; b += 3)
            for (int64_t c = 0; c < 200; c += 3) {
                int64_t arrival[3] = {0, b, c};
                int32_t n = cases_with(f.x, s, arrival);
                assert_true(n > 0);
            }
    for (int32_t i = 0; i < f.x->n_cases; i++)
        divided += f.x->cases[i].n_branches > 0;
    assert_true(divided > 0); /* else this says nothing */
    tiny_pair_close(&f);
}

/* It proves what one solve of each sending does not, and going on never loses. */
static void test_pair_climb_proves_more_with_more_questions(void **state)
{
    (void)state;
    tiny_pair f;
    open_heads(&f);
    climb(&f, 1, 1);
    int64_t first = f.x->lower_ns;
    climb(&f, 10, 1);
    int64_t second = f.x->lower_ns;
    climb(&f, 200, 1);
    assert_true(first <= second && second <= f.x->lower_ns);
    assert_true(f.x->lower_ns > first);
    assert_true(f.x->lower_ns <= f.x->plan.length_ns);
    tiny_pair_close(&f);
}

static void test_pair_climb_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    tiny_pair f, g;
    open_heads(&f);
    open_heads(&g);
    climb(&f, 40, 1);
    climb(&g, 40, 4);
    assert_int_equal(f.x->lower_ns, g.x->lower_ns);
    assert_int_equal(f.x->solves, g.x->solves);
    assert_int_equal(f.x->n_cases, g.x->n_cases);
    for (int32_t i = 0; i < f.x->n_cases; i++) {
        const pair_case *c = &f.x->cases[i], *d = &g.x->cases[i];
        assert_int_equal(c->sending, d->sending);
        assert_int_equal(c->proven_ns, d->proven_ns);
        assert_int_equal(c->n_branches, d->n_branches);
        if (c->n_branches)
            assert_memory_equal(c->branch, d->branch, sizeof *c->branch * (size_t)c->n_branches);
    }
    tiny_pair_close(&f);
    tiny_pair_close(&g);
}

/* No more is asked than is needed. */
static void test_pair_climb_stops_at_what_is_needed(void **state)
{
    (void)state;
    tiny_pair f;
    open_heads(&f);
    int64_t need = f.x->path_ns + 10;
    pair_bound_task r = {.pair = f.x,
                         .need_ns = need,
                         .buckets = 8,
                         .sent_buckets = 8,
                         .rounds = 50,
                         .numbers = 10,
                         .by_targets = true,
                         .solvers = 1,
                         .solves = 100,
                         .threads = 1};
    assert_ok(pair_cases_solve(&r));
    pair_bound_clear(&r);
    assert_int_equal(f.x->lower_ns, need);
    assert_int_equal(f.x->n_cases, f.x->sending.n);
    tiny_pair_close(&f);
}

/* Without the exhaustive search, which would end it at once. */
static pair_refine_task second_level(const tiny_pair *f, int64_t stride_ns, int threads)
{
    return (pair_refine_task){.class_ = f->class_,
                              .level = 2,
                              .need_ns = INT64_MAX,
                              .stride_ns = stride_ns,
                              .prices_only = true,
                              .improve = true,
                              .effort = 1,
                              .seed = 1,
                              .threads = threads};
}

/* A climb that is left after each stride gains with every call, spends its questions once, and ends its level with no
 * less than a few short of what one call proves. */
static void test_pair_climb_by_strides_goes_on_where_it_was(void **state)
{
    (void)state;
    tiny_pair f, g;
    open_heads(&f);
    open_heads(&g);
    pair_refine_task whole = second_level(&f, 0, 1), part = second_level(&g, 5, 1);
    assert_ok(pair_refine(f.c, &whole));
    assert_int_equal(f.x->level, 2);
    assert_false(f.x->climb.on);
    assert_ok(pair_refine(g.c, &part));
    assert_true(g.x->climb.on); /* else this says nothing */
    assert_int_equal(g.x->level, 0);
    assert_true(g.x->lower_ns < f.x->lower_ns);
    int32_t calls = 1;
    for (int64_t left = g.x->climb.questions; g.x->climb.on && calls < 100; calls++, left = g.x->climb.questions) {
        int64_t before = g.x->lower_ns;
        assert_ok(pair_refine(g.c, &part));
        assert_true(g.x->climb.questions < left);
        assert_true(!g.x->climb.on || g.x->lower_ns >= before + 5 || g.x->lower_ns >= g.x->plan.length_ns);
    }
    assert_true(calls > 2 && calls < 100);
    assert_int_equal(g.x->level, 2);
    assert_true(g.x->lower_ns >= f.x->lower_ns - f.x->lower_ns / 50);
    tiny_pair_close(&f);
    tiny_pair_close(&g);
}

/* Runs of annealing side by side: the same plan, too. */
static void test_pair_refine_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    tiny_pair f, g;
    open_heads(&f);
    open_heads(&g);
    pair_refine_task one = second_level(&f, 0, 1), four = second_level(&g, 0, 4);
    one.effort = four.effort = 0.2;
    assert_ok(pair_refine(f.c, &one));
    assert_ok(pair_refine(g.c, &four));
    assert_int_equal(f.x->lower_ns, g.x->lower_ns);
    assert_int_equal(f.x->plan.length_ns, g.x->plan.length_ns);
    assert_int_equal(f.x->plan.n_order, g.x->plan.n_order);
    assert_memory_equal(f.x->plan.device, g.x->plan.device,
                        sizeof *f.x->plan.device * (size_t)f.x->block.problem.n_ops);
    assert_memory_equal(f.x->plan.order, g.x->plan.order, sizeof *f.x->plan.order * (size_t)f.x->plan.n_order);
    tiny_pair_close(&f);
    tiny_pair_close(&g);
}

/* Plans alone leave the bound and the level where they are. */
static void test_pair_refine_of_plans_alone_leaves_the_bound(void **state)
{
    (void)state;
    tiny_pair f;
    open_heads(&f);
    pair_refine_task job = second_level(&f, 0, 1);
    int64_t lower = pair_leaves_ns(f.x), plan = f.x->plan.length_ns;
    job.plans_only = true;
    assert_ok(pair_refine(f.c, &job));
    assert_int_equal(pair_leaves_ns(f.x), lower);
    assert_int_equal(f.x->level, 0);
    assert_int_equal(f.x->plan_level, 2);
    assert_true(f.x->plan.length_ns < plan);
    tiny_pair_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_climb_leaves_no_arrival_out),
        cmocka_unit_test(test_pair_climb_proves_more_with_more_questions),
        cmocka_unit_test(test_pair_climb_is_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_pair_climb_stops_at_what_is_needed),
        cmocka_unit_test(test_pair_climb_by_strides_goes_on_where_it_was),
        cmocka_unit_test(test_pair_refine_is_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_pair_refine_of_plans_alone_leaves_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
