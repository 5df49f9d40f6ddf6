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
    int32_t narrowest; /* ranges of so many are not divided */
    range *cases;      /* best first */
    int32_t n;
    size_t capacity;
    int64_t target, asked;
} world;

static void make_heights(world *w, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    *w = (world){.narrowest = 1};
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

/* ---- target by target ---- */

static bool reached(const void *c, int64_t target)
{
    return ((const range *)c)->known >= target;
}

static int32_t solver_of(void *data, const void *c, int32_t index, int32_t rank, int32_t below)
{
    (void)data, (void)c, (void)index;
    return (int32_t)((int64_t)rank * BRANCH_SOLVERS / below);
}

static int ask(void *data, int32_t solver, void *case_, bool begun, branch_answer *out)
{
    const world *w = data;
    range *c = case_;
    (void)solver, (void)begun;
    c->known = UTIL_MAX(c->known, UTIL_MIN(provable(w, c), w->target));
    bool narrow = c->last - c->first < w->narrowest;
    out->verdict = c->known >= w->target ? BRANCH_REACHED : narrow ? BRANCH_STUCK : BRANCH_DIVIDE;
    out->stuck_at = c->known;
    return 0;
}

static branch_target_task task_of(world *w, int64_t target, int32_t questions, int threads)
{
    static const util_stop never = {0};
    w->target = target;
    return (branch_target_task){.data = w,
                                .case_size = sizeof(range),
                                .target = target,
                                .solvers = BRANCH_SOLVERS,
                                .questions = questions,
                                .threads = threads,
                                .stop = &never,
                                .reached = reached,
                                .solver_of = solver_of,
                                .ask = ask,
                                .divide = divide,
                                .clear = clear};
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

static void first_cases(branch_list *list, int32_t n)
{
    list->n = n;
    list->capacity = (size_t)n;
    list->cases = calloc((size_t)n, sizeof(range));
    for (int32_t i = 0; i < n; i++)
        ((range *)list->cases)[i] = range_of(i * N / n, (i + 1) * N / n - 1);
}

static void free_cases(branch_list *list)
{
    for (int32_t i = 0; i < list->n; i++)
        clear((range *)list->cases + i);
    free(list->cases);
}

static void test_branch_reaches_what_is_true(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        world w;
        branch_list list;
        branch_target_result found;
        make_heights(&w, seed);
        int64_t truth = least(&w, 0, N - 1);
        first_cases(&list, 1 + (int32_t)(seed % 5));
        branch_target_task half = task_of(&w, truth - 5, 1000, 2);
        assert_ok(branch_attempt(&found, &list, &half));
        assert_true(found.reached && found.stuck_at == INT64_MAX && found.asked >= 1);
        check_cases(&w, list.cases, list.n);
        branch_target_task all = task_of(&w, truth, 1000, 2); /* goes on with the cases at hand */
        assert_ok(branch_attempt(&found, &list, &all));
        assert_true(found.reached);
        check_cases(&w, list.cases, list.n);
        branch_target_task more = task_of(&w, truth + 1, 1000, 2);
        assert_ok(branch_attempt(&found, &list, &more));
        assert_false(found.reached);
        assert_int_equal(found.stuck_at, truth);
        check_cases(&w, list.cases, list.n);
        free_cases(&list);
    }
}

static void test_branch_keeps_to_its_questions(void **state)
{
    (void)state;
    world w;
    branch_list list;
    branch_target_result found;
    make_heights(&w, 1);
    first_cases(&list, 4);
    branch_target_task job = task_of(&w, least(&w, 0, N - 1), 2, 1);
    assert_ok(branch_attempt(&found, &list, &job));
    assert_false(found.reached);
    assert_int_equal(found.stuck_at, INT64_MAX); /* too few to tell */
    assert_true(found.asked > BRANCH_SOLVERS && found.asked <= 2 * BRANCH_SOLVERS);
    check_cases(&w, list.cases, list.n);
    free_cases(&list);
}

static void test_branch_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    world w;
    branch_list one, four;
    branch_target_result a, b;
    make_heights(&w, 9);
    first_cases(&one, 3);
    first_cases(&four, 3);
    branch_target_task job = task_of(&w, least(&w, 0, N - 1), 9, 1);
    assert_ok(branch_attempt(&a, &one, &job));
    job.threads = 4;
    assert_ok(branch_attempt(&b, &four, &job));
    assert_true(a.reached == b.reached && a.asked == b.asked && one.n == four.n);
    for (int32_t i = 0; i < one.n; i++) {
        const range *x = (range *)one.cases + i, *y = (range *)four.cases + i;
        assert_true(x->first == y->first && x->last == y->last && x->known == y->known);
    }
    free_cases(&one);
    free_cases(&four);
}

/* ---- best first ---- */

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
        cmocka_unit_test(test_branch_reaches_what_is_true),
        cmocka_unit_test(test_branch_keeps_to_its_questions),
        cmocka_unit_test(test_branch_is_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_branch_best_first_finds_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
