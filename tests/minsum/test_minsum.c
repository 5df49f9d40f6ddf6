/* The least sum, against all states of small problems. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "minsum/minsum.h"
#include "support/check.h"
#include "support/scale.h"
#include "util/util.h"

#define MOST_VARS 7
#define MOST_TERMS 14
#define MOST_VALUES 4096

typedef struct example {
    int32_t states[MOST_VARS], off[MOST_TERMS + 1], var[4 * MOST_TERMS];
    int64_t at[MOST_TERMS];
    double value[MOST_VALUES];
    minsum_shape shape;
} example;

/* Functions of up to four variables, a seventh of the values forbidden. */
static void draw(example *e, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    int32_t n = 1 + (int32_t)util_rng_below(&rng, MOST_VARS), n_terms = (int32_t)util_rng_below(&rng, MOST_TERMS + 1);
    int64_t n_values = 0;
    e->off[0] = 0;
    for (int32_t v = 0; v < n; v++)
        e->states[v] = 1 + (int32_t)util_rng_below(&rng, 4);
    for (int32_t t = 0; t < n_terms; t++) {
        int32_t size = 1 + (int32_t)util_rng_below(&rng, (uint32_t)UTIL_MIN(n, 4)),
                first = (int32_t)util_rng_below(&rng, (uint32_t)n);
        int64_t cells = 1;
        for (int32_t i = 0; i < size; i++) {
            int32_t v = (first + i * 3) % n; /* all different where n is no multiple of 3 */
            for (int32_t j = 0; j < i; j++)
                size = e->var[e->off[t] + j] == v ? i : size;
            if (i < size)
                cells *= e->states[e->var[e->off[t] + i] = v];
        }
        e->off[t + 1] = e->off[t] + size;
        e->at[t] = n_values;
        for (; cells > 0; cells--)
            e->value[n_values++] = util_rng_below(&rng, 7) ? util_rng_below(&rng, 1000) : HUGE_VAL;
    }
    e->shape = (minsum_shape){.n_vars = n, .states = e->states, .n_terms = n_terms, .off = e->off, .var = e->var};
}

static double sum_of(const example *e, const int32_t *state)
{
    double sum = 0;
    for (int32_t t = 0; t < e->shape.n_terms; t++) {
        int64_t cell = 0;
        for (int32_t i = e->off[t]; i < e->off[t + 1]; i++)
            cell = cell * e->states[e->var[i]] + state[e->var[i]];
        sum += e->value[e->at[t] + cell];
    }
    return sum;
}

static double by_brute_force(const example *e)
{
    int32_t state[MOST_VARS] = {0};
    double least = HUGE_VAL;
    for (int32_t v = 0; v < e->shape.n_vars;) {
        least = fmin(least, sum_of(e, state));
        for (v = 0; v < e->shape.n_vars && ++state[v] == e->states[v]; v++)
            state[v] = 0;
    }
    return least;
}

static void test_minsum_is_the_least_of_all_states(void **state)
{
    (void)state;
    static example e;
    util_stop stop = {0};
    int32_t found[MOST_VARS], possible = 0, n = TEST_SHARE(4000);
    for (int32_t seed = 1; seed <= n; seed++) {
        minsum *m;
        double least;
        draw(&e, (uint64_t)seed);
        assert_ok(minsum_new(&m, &e.shape, 1 << 20, &stop));
        assert_ok(minsum_solve(m, e.value, found, &least, &stop));
        double expected = by_brute_force(&e);
        if (expected == HUGE_VAL)
            assert_true(least == HUGE_VAL);
        else
            assert_true(fabs(least - expected) < 1e-6 && fabs(sum_of(&e, found) - expected) < 1e-6);
        possible += expected < HUGE_VAL;
        minsum_free(m);
    }
    assert_true(possible > n / 2);
}

/* A long ladder is narrow: so many cells per rung, however long it is. All alike, but for the first; another state costs 3. */
static void test_minsum_is_linear_in_long_networks(void **state)
{
    (void)state;
    enum { RUNGS = 5000, N = 2 * RUNGS, TERMS = 3 * RUNGS - 1 };
    int32_t *states = util_alloc(N, sizeof *states), *off = util_alloc(TERMS + 1, sizeof *off),
            *var = util_alloc(2 * (size_t)TERMS, sizeof *var), *found = util_alloc(N, sizeof *found), n = 0;
    double *value = util_alloc(9 * TERMS, sizeof *value), least;
    static const double differ[9] = {0, 3, 3, 3, 0, 3, 3, 3, 0}, first[3] = {7, 2, 5};
    for (int32_t v = 0; v < N; v++)
        states[v] = 3;
    for (int32_t r = 0; r < RUNGS; r++)
        for (int32_t i = 0; i < 3 && n < TERMS - 1; i++, off[n + 1] = off[n] + 2, n++) {
            if (i > 0 && r == RUNGS - 1)
                continue;
            memcpy(value + (ptrdiff_t)9 * n, differ, sizeof differ);
            var[off[n]] = i == 2 ? 2 * r + 1 : 2 * r;
            var[off[n] + 1] = i == 0 ? 2 * r + 1 : i == 1 ? 2 * r + 2 : 2 * r + 3;
        }
    memcpy(value + (ptrdiff_t)9 * n, first, sizeof first);
    var[off[n]] = 0;
    off[n + 1] = off[n] + 1;
    n++;
    minsum_shape shape = {.n_vars = N, .states = states, .n_terms = n, .off = off, .var = var};
    util_stop stop = {0};
    minsum *m;
    assert_ok(minsum_new(&m, &shape, 27 * N, &stop));
    assert_ok(minsum_solve(m, value, found, &least, &stop));
    assert_true(least == 2);
    for (int32_t v = 0; v < N; v++)
        assert_int_equal(found[v], 1);
    minsum_free(m);
    void *all[] = {states, off, var, found, value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Twelve variables that all know each other have a table of 4^12 cells. */
static void test_minsum_refuses_wide_networks(void **state)
{
    (void)state;
    enum { N = 12, TERMS = N * (N - 1) / 2 };
    int32_t states[N], off[TERMS + 1] = {0}, var[2 * TERMS], n = 0;
    for (int32_t a = 0; a < N; a++) {
        states[a] = 4;
        for (int32_t b = 0; b < a; b++, n++) {
            var[2 * n] = a;
            var[2 * n + 1] = b;
            off[n + 1] = 2 * (n + 1);
        }
    }
    minsum_shape shape = {.n_vars = N, .states = states, .n_terms = n, .off = off, .var = var};
    util_stop stop = {0};
    minsum *m;
    assert_int_equal(minsum_new(&m, &shape, 1 << 20, &stop), MOIRAI_ELIMIT);
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minsum_is_the_least_of_all_states),
        cmocka_unit_test(test_minsum_is_linear_in_long_networks),
        cmocka_unit_test(test_minsum_refuses_wide_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
