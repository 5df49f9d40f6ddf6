/* Edge finding on one machine against all orders of its tasks. */
#include "exact/exact_search.h"
#include "support/check.h"
#include "util/util.h"

#define MOST 6

typedef struct machine {
    exact_job job[MOST];
    int32_t n;
    int64_t below_ns;
    int64_t least_start[MOST], least_rest[MOST]; /* over all orders that are in time; -1: there is none */
} machine;

/* One order: starts from the left, and what follows each finish if all are put as far right as the target allows. */
static void judge(machine *m, const int32_t *order)
{
    int64_t start[MOST], now = 0, end = m->below_ns - 1;
    for (int32_t a = 0; a < m->n; a++) {
        const exact_job *j = &m->job[order[a]];
        now = start[order[a]] = UTIL_MAX(now, j->r);
        now += j->p;
        if (now + j->q >= m->below_ns)
            return;
    }
    for (int32_t a = m->n - 1; a >= 0; a--) {
        int32_t i = order[a];
        end = UTIL_MIN(end, m->below_ns - 1 - m->job[i].q);
        int64_t rest = m->below_ns - 1 - end;
        m->least_start[i] = m->least_start[i] < 0 ? start[i] : UTIL_MIN(m->least_start[i], start[i]);
        m->least_rest[i] = m->least_rest[i] < 0 ? rest : UTIL_MIN(m->least_rest[i], rest);
        end -= m->job[i].p;
    }
}

static void judge_all(machine *m, int32_t *order, int32_t from)
{
    if (from == m->n)
        judge(m, order);
    for (int32_t a = from; a < m->n; a++) {
        int32_t one = order[from];
        order[from] = order[a];
        order[a] = one;
        judge_all(m, order, from + 1);
        order[a] = order[from];
        order[from] = one;
    }
}

static machine draw(uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    machine m = {.n = 3 + (int32_t)util_rng_below(&rng, MOST - 2), .below_ns = 20 + util_rng_below(&rng, 20)};
    int32_t order[MOST];
    for (int32_t i = 0; i < m.n; i++) {
        m.job[i] = (exact_job){util_rng_below(&rng, 16), 1 + util_rng_below(&rng, 8), util_rng_below(&rng, 16), i};
        m.least_start[i] = m.least_rest[i] = -1;
        order[i] = i;
    }
    judge_all(&m, order, 0);
    return m;
}

static void test_no_order_in_time_is_taken_away(void **state)
{
    (void)state;
    int64_t column[5 * MOST], closed = 0, raised = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        machine m = draw(seed);
        exact_search s = {.below_ns = m.below_ns, .work.edge_ns = column};
        exact_job job[MOST];
        bool moved = false;
        for (int32_t i = 0; i < m.n; i++)
            job[i] = m.job[i];
        bool left = exact_edges(&s, job, m.n, &moved);
        assert_true(left || m.least_start[0] < 0);
        closed += !left;
        raised += left && moved && m.least_start[0] >= 0;
        for (int32_t a = 0; a < m.n && left && m.least_start[0] >= 0; a++) {
            int32_t i = job[a].task;
            assert_true(job[a].r >= m.job[i].r && job[a].r <= m.least_start[i]);
            assert_true(job[a].q >= m.job[i].q && job[a].q <= m.least_rest[i]);
            assert_int_equal(job[a].p, m.job[i].p);
        }
    }
    assert_true(closed > 300 && raised > 50);
}

/* Two tasks of 4 fill [2, 10]: the third, which may come before each of them alone, comes behind both. */
static void test_a_full_set_pushes_what_pairs_do_not(void **state)
{
    (void)state;
    int64_t column[15];
    exact_search s = {.below_ns = 21, .work.edge_ns = column};
    exact_job job[] = {{2, 4, 10, 0}, {2, 4, 10, 1}, {1, 3, 0, 2}};
    bool moved = false;
    assert_true(exact_edges(&s, job, 3, &moved));
    assert_true(moved);
    for (int32_t a = 0; a < 3; a++)
        assert_int_equal(job[a].r, job[a].task == 2 ? 10 : 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_order_in_time_is_taken_away),
        cmocka_unit_test(test_a_full_set_pushes_what_pairs_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
