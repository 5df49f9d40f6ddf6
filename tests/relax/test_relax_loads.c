/* Prices on loads: worked out on paper, and never above the optimum, whatever the numbers. */
#include <moirai/moirai.h>

#include "relax/chain.h"
#include "relax/messages.h"
#include "relax/relax.h"
#include "support/scale.h"
#include "support/check.h"
#include "support/false_bound.h"
#include "support/random_layers.h"
#include "support/random_problem.h"
#include "support/tiny.h"
#include "util/util.h"

/* Whether leaves first .. last - 1, which agree on their first `depth` operators, leave nothing out. They come as the cases were divided, so
 * that those of one device are neighbours. */
static bool complete(const moirai_problem *p, const relax_leaf *leaf, int32_t first, int32_t last, int32_t depth)
{
    if (last - first == 1 && leaf[first].n_fixed == depth)
        return true;
    uint64_t seen = 0;
    int32_t op = leaf[first].n_fixed > depth ? leaf[first].fixed[depth].op : MOIRAI_NONE;
    if (op < 0 || op >= p->n_ops)
        return false;
    for (int32_t i = first, next; i < last; i = next) {
        if (leaf[i].n_fixed <= depth || leaf[i].fixed[depth].op != op)
            return false;
        int32_t k = leaf[i].fixed[depth].device;
        for (next = i + 1; next < last && leaf[next].n_fixed > depth && leaf[next].fixed[depth].op == op &&
                           leaf[next].fixed[depth].device == k;)
            next++;
        if (k < 0 || k >= p->n_devices || !complete(p, leaf, i, next, depth + 1))
            return false;
        seen |= UINT64_C(1) << k;
    }
    return (p->op_devices[op] & ~seen) == 0;
}

/* The least of all leaves, 0 where they leave something out. */
static int check(int64_t *lower_ns, const moirai_problem *p, const relax_proof *proof)
{
    int64_t least = INT64_MAX, one = 0;
    *lower_ns = 0;
    if (proof->n_leaves < 1 || (proof->rate && proof->n_leaves > 1) || !complete(p, proof->leaf, 0, proof->n_leaves, 0))
        return 0;
    for (int32_t i = 0; i < proof->n_leaves; i++) {
        int rc = relax_evaluate(&one, p, &proof->leaf[i], proof->rate, NULL);
        if (rc)
            return rc;
        least = UTIL_MIN(least, one);
    }
    *lower_ns = least;
    return 0;
}

static relax_task task_of(int32_t cases, int32_t rounds)
{
    return (relax_task){.goal_ns = INT64_MAX / 4, .cases = cases, .rounds = rounds, .plans = true, .threads = 1};
}

static int64_t solve(relax_answer *answer, const moirai_problem *p, const relax_task *job)
{
    int64_t checked = -1;
    assert_ok(relax_solve(answer, p, job));
    assert_ok(check(&checked, p, &answer->proof));
    assert_int_equal(checked, answer->proof.proven_ns);
    return checked;
}

/* a: 10 and 30, b: 30 and 10 ns: each where it is quick. Prices 1/2 and 1/2 prove 10. */
static void test_relax_work_goes_where_it_is_quick(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,30 > t:0\nop b 30,10 > u:0\n");
    relax_answer answer;
    relax_task job = task_of(1, 50);
    assert_int_equal(solve(&answer, p, &job), 10);
    assert_int_equal(answer.n_choices, 1);
    assert_int_equal(answer.choice[0].load_ns, 10);
    assert_int_equal(answer.choice[0].device[0], 0);
    assert_int_equal(answer.choice[0].device[1], 1);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

/* Four branches of 10 ns on either device, whose results (10 bytes at 1 byte per ns) a sum of 0 ns reads. Without cases the sum is half here
 * and half there, and nothing need be sent: 20. With the sum on x, work on y is sent: of n branches there, x has 40 - 10 n, y has 10 n and then the
 * port 10 n, which begins no earlier than 10: the best is 20 + something, and 30 is what a plan takes. */
#define JOIN \
    "device x 99\ndevice y 99\nop a 10,10 > a:10\nop b 10,10 > b:10\nop c 10,10 > c:10\nop d 10,10 > d:10\n" \
    "op sum 1,1 a b c d > s:0\n"

static void test_relax_hubs_are_cases(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(JOIN);
    relax_answer answer;
    relax_task plain = task_of(1, 50), cases = task_of(50, 50);
    int64_t optimum = false_bound_optimum(p), without = solve(&answer, p, &plain);
    relax_answer_clear(&answer);
    int64_t with = solve(&answer, p, &cases);
    assert_true(with > without);
    assert_true(with <= optimum);
    assert_true(answer.proof.n_leaves > 1);

    int64_t checked = -1;
    answer.proof.n_leaves--; /* a case is missing */
    assert_ok(check(&checked, p, &answer.proof));
    answer.proof.n_leaves++;
    assert_int_equal(checked, 0);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

/* The sum on one of three equal devices: the same numbers, with two devices exchanged, prove as much of each of the others, with
 * every congestion. */
static void test_relax_ends_serve_all_devices(void **state)
{
    (void)state;
    static const char *const mode[] = {"port", "channel", "device"};
    for (size_t m = 0; m < sizeof mode / sizeof *mode; m++) {
        char text[512];
        snprintf(text, sizeof text, "congestion %s\n%s", mode[m],
                 "device x 99\ndevice y 99\ndevice z 99\nop a 10,10,10 > a:10\nop b 10,10,10 > b:10\n"
                 "op c 10,10,10 > c:10\nop d 10,10,10 > d:10\nop e 10,10,10 > e:10\nop sum 1,1,1 a b c d e > s:0\n");
        moirai_problem *p = tiny_problem(text);
        relax_task job = task_of(1, 50);
        relax_fixed end = {tiny_op(p, "sum"), 1};
        relax_answer answer;
        job.fixed = &end;
        job.n_fixed = 1;
        assert_ok(relax_solve(&answer, p, &job));
        int64_t proven = answer.proof.proven_ns;
        assert_true(proven > moirai_bound_load(p));
        assert_true(proven <= (m < 2 ? false_bound_optimum(p) : 51)); /* all on one device */
        for (int32_t k = 0; k < 3; k++) {
            relax_leaf leaf;
            assert_ok(relax_leaf_exchange(&leaf, answer.proof.leaf, p, k, NULL));
            assert_int_equal(leaf.proven_ns, proven);
            assert_int_equal(leaf.fixed[0].device, k);
            relax_leaf_clear(&leaf);
        }
        relax_answer_clear(&answer);
        moirai_problem_free(p);
    }
}

/* A fork of 40 operators on 16 devices of which each is slower than the one before: a few rounds of prices prove what the load bound does. */
static void test_relax_many_devices_begin_at_their_loads(void **state)
{
    (void)state;
    enum { DEVICES = 16, OPS = 40 };
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    util_rng rng;
    assert_non_null(out);
    util_rng_seed(&rng, 7);
    for (int k = 0; k < DEVICES; k++)
        fprintf(out, "device d%d 999\n", k);
    for (int i = 0; i < OPS; i++) {
        fprintf(out, "op o%d ", i);
        for (int k = 0; k < DEVICES; k++)
            fprintf(out, "%s%d", k ? "," : "", (1 + k) * (1000 + (int)util_rng_below(&rng, 9000)));
        if (i)
            fprintf(out, " t > u%d:1\n", i);
        else
            fprintf(out, " > t:1\n");
    }
    fclose(out);
    moirai_problem *p = tiny_problem(text);
    relax_answer answer;
    relax_task job = task_of(1, 12);
    int64_t load = moirai_bound_load(p);
    assert_true(solve(&answer, p, &job) > load - load / 1000);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
    free(text);
}

/* Numbers that are evaluated without time prove less, never more; with time, what they proved before. */
static void test_relax_evaluation_ends_with_the_time(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(JOIN);
    moirai_interrupt interrupt = {0};
    util_stop stop = {.interrupt = &interrupt};
    relax_answer answer;
    relax_task job = task_of(1, 50);
    int64_t lower = -1, all = solve(&answer, p, &job);
    assert_ok(relax_evaluate(&lower, p, answer.proof.leaf, false, &stop));
    assert_int_equal(lower, all);
    moirai_interrupt_raise(&interrupt);
    assert_ok(relax_evaluate(&lower, p, answer.proof.leaf, false, &stop));
    assert_true(lower >= 0 && lower < all);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

/* Two operators of 3 bytes that are quick on x. Shared out as well as can be they take 100 / 6 ns; if x holds 4 bytes, two thirds of one of
 * them are on y for 100 / 3 ns. */
static void test_relax_bytes_have_prices(void **state)
{
    (void)state;
    moirai_problem *free_ = tiny_problem("device x 9\ndevice y 9\nop a 10,50 mem=3 > t:0\nop b 10,50 mem=3 > u:0\n"),
                   *p = tiny_problem("device x 4\ndevice y 9\nop a 10,50 mem=3 > t:0\nop b 10,50 mem=3 > u:0\n");
    relax_answer answer;
    relax_task job = task_of(1, 60);
    int64_t plain = solve(&answer, free_, &job);
    relax_answer_clear(&answer);
    int64_t tight = solve(&answer, p, &job);
    relax_answer_clear(&answer);
    assert_int_equal(plain, 17);
    assert_int_equal(tight, 34);
    moirai_problem_free(free_);
    moirai_problem_free(p);
}

/* Twelve operators of 100 to 199 ns side by side on two equal devices: half of all on each, but for a nanosecond. Single
 * moves do not get there. */
static void test_relax_choices_exchange_operators(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 7);
    for (int32_t i = 0; i < 20; i++) {
        char text[1024];
        int length = snprintf(text, sizeof text, "device x 9\ndevice y 9\n");
        int64_t all = 0;
        for (int32_t op = 0; op < 12; op++) {
            int32_t ns = 100 + (int32_t)util_rng_below(&rng, 100);
            all += ns;
            length += snprintf(text + length, sizeof text - (size_t)length, "op o%d %d,%d > t%d:0\n", (int)op, (int)ns,
                               (int)ns, (int)op);
        }
        moirai_problem *p = tiny_problem(text);
        relax_answer answer;
        relax_task job = task_of(1, 60);
        solve(&answer, p, &job);
        assert_true(answer.choice[0].load_ns <= (all + 1) / 2 + 1);
        relax_answer_clear(&answer);
        moirai_problem_free(p);
    }
}

/* Six operators of 2 bytes that are three times as quick on x, which holds two of them: loads alone would put four there. */
static void test_relax_choices_fit_the_memory(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 5\ndevice y 99\nop a 10,30 mem=2 > a:0\nop b 11,33 mem=2 > b:0\n"
                                     "op c 12,36 mem=2 > c:0\nop d 13,39 mem=2 > d:0\nop e 14,42 mem=2 > e:0\n"
                                     "op f 15,45 mem=2 > f:0\n");
    relax_answer answer;
    relax_task job = task_of(1, 60);
    solve(&answer, p, &job);
    int32_t on_x = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        on_x += answer.choice[0].device[i] == 0;
    assert_int_equal(on_x, 2);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

/* ---- at random ---- */

static int64_t any_number(util_rng *rng)
{
    int32_t bits = (int32_t)util_rng_below(rng, 40);
    int64_t size = (int64_t)(util_rng_next(rng) >> (63 - bits));
    return util_rng_below(rng, 2) ? size : -size;
}

/* Some of a leaf's numbers become others: what it proves then is true as well. */
static void attack(relax_proof *proof, const moirai_problem *p, util_rng *rng)
{
    int32_t K = p->n_devices;
    int64_t longest = UTIL_MIN(moirai_bound_critical_path(p), INT32_MAX);
    for (int32_t i = 0; i < proof->n_leaves; i++) {
        relax_leaf *leaf = &proof->leaf[i];
        for (int32_t z = 0; z < 4; z++) {
            leaf->price[util_rng_below(rng, (uint32_t)relax_leaf_prices(leaf, p))] = llabs(any_number(rng));
            if (leaf->rows.n_shifts > 0)
                leaf->rows.shift[util_rng_below(rng, (uint32_t)leaf->rows.n_shifts)] = (relax_shift){
                    util_rng_below(rng, (uint32_t)longest + 1), util_rng_below(rng, (uint32_t)longest + 1)};
            if (leaf->rows.n_paths > 0) /* most are paths no more, and prove nothing */
                leaf->rows.path_op[util_rng_below(rng, (uint32_t)leaf->rows.path_off[leaf->rows.n_paths])] =
                    (int32_t)util_rng_below(rng, (uint32_t)p->n_ops);
            if (leaf->byte_price)
                leaf->byte_price[util_rng_below(rng, (uint32_t)K)] = llabs(any_number(rng));
            if (leaf->from && p->n_edges > 0) {
                uint32_t at = util_rng_below(rng, (uint32_t)(p->n_edges * K));
                leaf->from[at] += any_number(rng);
                leaf->to[at] -= any_number(rng);
            }
        }
    }
}

typedef struct counts {
    int64_t optimal, raised, attacked, plans, chains, shifts, paths, higher;
} counts;

static void check_attacks(const moirai_problem *p, relax_proof *proof, int64_t optimum, uint64_t seed, util_rng *rng,
                          counts *n)
{
    int64_t checked = 0;
    for (int32_t i = 0; i < 8; i++) {
        attack(proof, p, rng);
        assert_ok(check(&checked, p, proof));
        if (checked > optimum)
            fail_msg("seed %llu: changed numbers prove %lld, optimum %lld", (unsigned long long)seed,
                     (long long)checked, (long long)optimum);
        n->attacked += checked > 0;
    }
}

/* Loads within shifts prove no more than the optimum, whatever the shifts and their prices. */
static void check_shifts(const moirai_problem *p, const relax_task *job, int64_t without, int64_t optimum,
                         uint64_t seed, counts *n)
{
    util_rng rng;
    relax_answer answer;
    relax_task own = *job;
    own.plans = false;
    assert_ok(relax_solve_shifts(&answer, p, &own));
    if (answer.lower_ns > optimum)
        fail_msg("seed %llu: shifts prove %lld, optimum %lld", (unsigned long long)seed, (long long)answer.lower_ns,
                 (long long)optimum);
    n->shifts += answer.proof.leaf->rows.n_shifts > 0;
    n->paths += answer.proof.leaf->rows.n_paths > 0;
    n->higher += answer.lower_ns > without;
    util_rng_seed(&rng, seed + 1);
    check_attacks(p, &answer.proof, optimum, seed, &rng, n);
    relax_answer_clear(&answer);
}

static void check_plans(const moirai_problem *p, const relax_answer *answer, int64_t optimum, counts *n)
{
    for (int32_t i = 0; i < answer->n_choices; i++) {
        moirai_plan *plan;
        assert_ok(relax_plan(&plan, p, &answer->choice[i], false, &(util_stop){0}));
        if (!plan)
            continue;
        assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        assert_true(plan->makespan_ns >= optimum);
        n->plans++;
        moirai_plan_free(plan);
    }
}

/* Blocks in a row prove no more than the optimum, either. */
static void check_chain(const moirai_problem *p, const relax_task *job, int64_t optimum, uint64_t seed, counts *n)
{
    relax_answer answer;
    relax_task blocks = *job;
    blocks.ends = seed / 4 % 2;
    int rc = relax_solve_chain(&answer, p, &blocks);
    if (!rc) {
        if (answer.lower_ns > optimum)
            fail_msg("seed %llu: blocks prove %lld, optimum %lld", (unsigned long long)seed, (long long)answer.lower_ns,
                     (long long)optimum);
        check_plans(p, &answer, optimum, n);
        n->chains++;
    }
    assert_true(rc == 0 || rc == MOIRAI_ELIMIT);
    relax_answer_clear(&answer);
}

static void check_problem(const moirai_problem *p, uint64_t seed, counts *n)
{
    int64_t optimum = false_bound_optimum(p);
    util_rng rng;
    if (optimum < 0)
        return;
    util_rng_seed(&rng, seed);
    relax_answer answer;
    relax_task job = task_of(1 + (int32_t)util_rng_below(&rng, 40), 1 + (int32_t)util_rng_below(&rng, 30));
    if (solve(&answer, p, &job) > optimum || answer.lower_ns > optimum)
        fail_msg("seed %llu proves %lld, optimum %lld", (unsigned long long)seed, (long long)answer.lower_ns,
                 (long long)optimum);
    n->optimal++;
    n->raised += answer.lower_ns > UTIL_MAX(moirai_bound_load(p), moirai_bound_critical_path(p));
    check_plans(p, &answer, optimum, n);
    check_chain(p, &job, optimum, seed, n);
    check_shifts(p, &job, answer.lower_ns, optimum, seed, n);
    check_attacks(p, &answer.proof, optimum, seed, &rng, n);
    relax_answer_clear(&answer);
}

static void test_relax_is_never_above_the_optimum(void **state)
{
    (void)state;
    counts n = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(1600); seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        moirai_problem *p = seed % 2 ? random_layers(seed, seed % 4 == 1 ? 10 : 7) : random_problem(&spec);
        if (p)
            check_problem(p, seed, &n);
        moirai_problem_free(p);
    }
    assert_true(n.optimal > TEST_SHARE(800)); /* the hunt has seen something */
    assert_true(n.raised > TEST_SHARE(80));
    assert_true(n.attacked > TEST_SHARE(800));
    assert_true(n.plans > TEST_SHARE(800));
    assert_true(n.chains > TEST_SHARE(6));
    assert_true(n.shifts > TEST_SHARE(200));
    assert_true(n.paths > TEST_SHARE(20));
    assert_true(n.higher > TEST_SHARE(20));
}

/* The rate's bound knows no heads, tails and cases: no more than the one of a single request. */
static void test_relax_rate_is_of_loads_alone(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(JOIN);
    relax_answer answer;
    relax_task job = task_of(50, 50);
    job.rate = true;
    assert_true(solve(&answer, p, &job) <= 21);
    assert_int_equal(answer.proof.n_leaves, 1);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_relax_work_goes_where_it_is_quick),
                                       cmocka_unit_test(test_relax_hubs_are_cases),
                                       cmocka_unit_test(test_relax_ends_serve_all_devices),
                                       cmocka_unit_test(test_relax_many_devices_begin_at_their_loads),
                                       cmocka_unit_test(test_relax_evaluation_ends_with_the_time),
                                       cmocka_unit_test(test_relax_bytes_have_prices),
                                       cmocka_unit_test(test_relax_choices_exchange_operators),
                                       cmocka_unit_test(test_relax_choices_fit_the_memory),
                                       cmocka_unit_test(test_relax_is_never_above_the_optimum),
                                       cmocka_unit_test(test_relax_rate_is_of_loads_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
