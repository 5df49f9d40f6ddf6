/* Mixtures, against the linear programme over all assignments of small problems. */
#include <math.h>
#include <moirai/moirai.h>
#include <stdlib.h>
#include <string.h>

#include "lp/simplex.h"
#include "rate/search.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

#define MOST_ASSIGNMENTS 1000

typedef struct programme {
    pricing_simplex *lp;
    int32_t R, row[200];
    double entry[200];
} programme;

/* The largest load T, of which all loads are at most, is the first column. */
static void open_programme(programme *x, int32_t R)
{
    double lower[200] = {0}, upper[200];
    x->R = R;
    for (int32_t r = 0; r <= R; r++) {
        x->row[r] = r;
        x->entry[r] = 1;
        upper[r] = HUGE_VAL;
    }
    lower[R] = upper[R] = 1;
    assert_ok(pricing_simplex_new(&x->lp, R + 1, lower, upper));
    assert_ok(pricing_simplex_add_column(x->lp, 1, R, x->row, x->entry));
}

/* The least T of all mixtures of all assignments that keep groups together; 0: too many assignments. */
static double best_mixture(const rate_search *s)
{
    const relax_view *v = &s->v;
    programme x;
    int32_t of_unit[16] = {0};
    double best = 0;
    if (s->units->n > 16 || pow(v->K, s->units->n) > MOST_ASSIGNMENTS)
        return 0;
    uint8_t *device = util_alloc((size_t)v->n, sizeof *device);
    int64_t *load = util_alloc((size_t)v->n_resources, sizeof *load);
    open_programme(&x, v->n_resources);
    for (int32_t i = 0; i < s->units->n;) {
        bool may = true;
        for (int32_t op = 0; op < v->n; op++) {
            device[op] = (uint8_t)of_unit[s->units->of_op[op]];
            may &= place_unit_may(s->units, s->units->of_op[op], device[op]);
        }
        memset(load, 0, sizeof *load * (size_t)v->n_resources);
        relax_loads(load, v, device);
        for (int32_t r = 0; r < x.R; r++)
            x.entry[r] = -(double)load[r];
        x.entry[x.R] = 1;
        if (may)
            assert_ok(pricing_simplex_add_column(x.lp, 0, x.R + 1, x.row, x.entry));
        for (i = 0; i < s->units->n && ++of_unit[i] == v->K; i++)
            of_unit[i] = 0;
    }
    util_stop stop = {0};
    assert_ok(pricing_simplex_solve(x.lp, &stop, &best, NULL, NULL));
    pricing_simplex_free(x.lp);
    free(device);
    free(load);
    return best;
}

typedef struct counts {
    int32_t problems, mixed, bounded;
} counts;

/* The least load of all candidates is the best mixture's, but for shares that are whole parts; and the bound is not above it. */
static void check_one(const moirai_problem *p, counts *n)
{
    moirai_rate_options o;
    moirai_rate_options_init(&o);
    o.budget.effort = 0.05;
    o.budget.time_limit_s = 0;
    o.budget.threads = 1;
    rate_search s = {.p = p, .o = &o, .in_flight = 8};
    assert_ok(rate_search_open(&s));
    double best = s.v.bytes_bind ? 0 : best_mixture(&s), found = HUGE_VAL;
    if (best > 0) {
        assert_non_null(s.columns.least);
        assert_ok(rate_add_mixtures(&s, 1));
        for (int32_t i = 0; i < s.n_candidates; i++)
            if (!s.candidate[i]->alone && s.candidate[i]->load_ns > 0)
                found = fmin(found, (double)s.candidate[i]->load_ns);
        assert_true((double)s.relaxed.lower_ns <= ceil(best) + 1e-6 * best);
        assert_true(found >= best * (1 - 1e-6));
        assert_true(found <= ceil(best * 1.006) + 1);
        n->problems++;
        n->mixed += s.n_candidates > 0 && s.candidate[s.n_candidates - 1]->n_copies > 1;
        n->bounded += (double)s.relaxed.lower_ns >= best * 0.999 - 1;
    }
    rate_search_close(&s);
}

static void test_rate_mixtures_are_the_best_of_all_assignments(void **state)
{
    (void)state;
    counts n = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(600); seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        spec.tight = false;
        spec.scale = 1000;
        moirai_problem *p = random_problem(&spec);
        if (p && p->n_ops > 0)
            check_one(p, &n);
        moirai_problem_free(p);
    }
    print_message("%d problems, %d with a mixture, %d bounds within a thousandth of the best\n", n.problems, n.mixed,
                  n.bounded);
    assert_true(n.problems > TEST_SHARE(200));
    assert_true(n.mixed > n.problems / 3);
    assert_true(n.bounded > 4 * n.problems / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_mixtures_are_the_best_of_all_assignments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
