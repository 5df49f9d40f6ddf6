/* Branch and bound over cases that are ranges of whole numbers: the value of a case is the least height in it. */
#include "branch/branch.h"
#include "support/check.h"

#include <string.h>

#define N 64

typedef struct range {
    int32_t first, last;
    int64_t known;  /* no height in it is less */
    int32_t *owned; /* as a case has memory of its own */
} range;

typedef struct world {
    int64_t height[N];
    range *cases; /* best first */
    int32_t n;
    size_t capacity;
    int64_t target, asked;
} world;

static void make_heights(world *w, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    *w = (world){0};
    for (int32_t i = 0; i < N; i++)
        w->height[i] = 10 + (int64_t)util_rng_below(&rng, 90);
}

static int64_t least(const world *w, int32_t first, int32_t last)
{
    int64_t found = INT64_MAX;
    for (int32_t i = first; i <= last; i++)
        found = UTIL_MIN(found, w->height[i]);
    return found;
}

/* What a solve can prove of a range: less than the truth, the more so the wider it is. */
static int64_t provable(const world *w, const range *c)
{
    return least(w, c->first, c->last) - (c->last - c->first);
}

static range range_of(int32_t first, int32_t last)
{
    return (range){first, last, 0, calloc(1, sizeof(int32_t))};
}

static void clear(void *c)
{
    free(((range *)c)->owned);
}

static int divide(void *data, void *c, void *d)
{
    range *low = c, *high = d;
    int32_t middle = (low->first + low->last) / 2;
    (void)data;
    *high = range_of(middle + 1, low->last);
    high->known = low->known;
    low->last = middle;
    return 0;
}

/* The cases leave no number out, and what is known of each is true. */
static void check_cases(const world *w, const range *c, int32_t n)
{
    int32_t times[N] = {0};
    for (int32_t i = 0; i < n; i++) {
        assert_true(c[i].known <= least(w, c[i].first, c[i].last));
        for (int32_t j = c[i].first; j <= c[i].last; j++)
            times[j]++;
    }
    for (int32_t j = 0; j < N; j++)
        assert_int_equal(times[j], 1);
}

static int32_t weakest(void *data, const int32_t *picked, int32_t n)
{
    const world *w = data;
    int32_t found = -1;
    for (int32_t i = 0; i < w->n; i++)
        if (!branch_is_picked(picked, n, i) && (found < 0 || w->cases[i].known < w->cases[found].known))
            found = i;
    return found;
}

static branch_state state_of(void *data, int32_t index)
{
    const world *w = data;
    const range *c = &w->cases[index];
    if (c->known >= w->target)
        return BRANCH_CLOSED;
    if (!*c->owned)
        return BRANCH_UNSOLVED;
    return c->first == c->last ? BRANCH_CLOSED : BRANCH_SOLVED;
}

static int divide_case(void *data, int32_t index)
{
    world *w = data;
    if (util_grow(&w->cases, &w->capacity, (size_t)w->n + 1, sizeof *w->cases))
        return MOIRAI_EFAIL;
    *w->cases[index].owned = 0;
    return divide(NULL, &w->cases[index], &w->cases[w->n++]);
}

static int solve(void *data, int32_t solver, int32_t index)
{
    world *w = data;
    range *c = &w->cases[index];
    assert_true(solver < BRANCH_SOLVERS);
    c->known = UTIL_MAX(c->known, provable(w, c));
    *c->owned = 1;
    return 0;
}

static int solved(void *data, int32_t index)
{
    world *w = data;
    assert_true(*w->cases[index].owned);
    w->asked++;
    return 0;
}

static void test_branch_best_first_finds_the_least(void **state)
{
    (void)state;
    static const util_stop never = {0};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        world w;
        int64_t solves, before;
        make_heights(&w, seed);
        w.target = 1000;
        assert_ok(util_grow(&w.cases, &w.capacity, 1, sizeof *w.cases));
        w.cases[w.n++] = range_of(0, N - 1);
        branch_best_task job = {.data = &w,
                                .solvers = 3,
                                .solves = 7,
                                .threads = 2,
                                .stop = &never,
                                .weakest = weakest,
                                .state = state_of,
                                .divide = divide_case,
                                .solve = solve,
                                .solved = solved};
        assert_ok(branch_best_first(&solves, &job));
        assert_true(solves <= 7 && solves == w.asked);
        check_cases(&w, w.cases, w.n);
        before = solves;
        job.solves = 10000;
        assert_ok(branch_best_first(&solves, &job));
        assert_int_equal(w.asked, before + solves);
        check_cases(&w, w.cases, w.n);
        assert_int_equal(w.cases[weakest(&w, NULL, 0)].known, least(&w, 0, N - 1));
        for (int32_t i = 0; i < w.n; i++)
            clear(&w.cases[i]);
        free(w.cases);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branch_best_first_finds_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
