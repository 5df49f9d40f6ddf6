/* m-SCT: its linear programme on graphs worked by hand and against all favourite assignments, its rounding, its waiting
 * devices. */
#include <math.h>

#include "place/list/favourites.h"
#include "place/list/lp_whole.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/small_problem.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * (1 + fabs(b));
}

static void need_solver(void)
{
    const char *why;
    if (!lp_whole_available(&why))
        skip();
}

static place_favourites find(const moirai_problem *p, bool whole)
{
    place_favourites f;
    assert_ok(place_favourites_find(&f, p, &(place_favourites_task){.threshold = 0.1, .whole = whole}));
    assert_true(f.complete);
    return f;
}

/* The value, and favourites as "a>b c>d" in the order of operators. */
static void expect(const small_spec *spec, double value, const char *favourites)
{
    moirai_problem *p = small_problem(spec);
    for (int whole = 0; whole < 2; whole++) {
        place_favourites f = find(p, whole);
        char got[256] = "";
        size_t n = 0;
        for (int32_t i = 0; i < p->n_ops; i++)
            if (f.child[i] != MOIRAI_NONE)
                n += (size_t)snprintf(got + n, sizeof got - n, "%s%s>%s", n ? " " : "", p->op_name[i],
                                      p->op_name[f.child[i]]);
        assert_string_equal(got, favourites);
        if (!near(f.lp_ns, value))
            fail_msg("value %.9g, by hand %.9g", f.lp_ns, value);
        place_favourites_clear(&f);
    }
    moirai_problem_free(p);
}

/* Only readers of only producers: no row holds x, and it is 0. 10 + 20 + 30. */
static void test_m_sct_chain_has_no_transfers(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,10", "", "x:8", 0, NULL}, {"b", "10,30", "x", "y:5", 0, NULL}, {"c", "30,30", "y", "", 0, NULL}, {0}};
    expect(&(small_spec){.n_devices = 2, .op = op}, 60, "a>b b>c");
}

/* x_b + x_c >= 1, both paths alike: a half each, 10 + 8/2 + 10, and nobody is at most 0.1. */
static void test_m_sct_even_fork_has_no_favourite(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,10", "", "x:8", 0, NULL}, {"b", "10,10", "x", "", 0, NULL}, {"c", "10,10", "x", "", 0, NULL}, {0}};
    expect(&(small_spec){.n_devices = 2, .op = op}, 24, "");
}

/* 10 + 8 x_b + 20 against 10 + 8 (1 - x_b) + 4: the first is longer even at x_b = 0. */
static void test_m_sct_long_branch_is_the_favourite(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,10", "", "x:8", 0, NULL}, {"b", "20,20", "x", "", 0, NULL}, {"c", "4,4", "x", "", 0, NULL}, {0}};
    expect(&(small_spec){.n_devices = 2, .op = op}, 30, "a>b");
}

/* Mirrored: the child has one favourite parent. And 10 + 8 x + 16 = 10 + 8 (1 - x) + 12 at x = 1/4: 28 + 10. */
static void test_m_sct_join_weighs_its_parents(void **state)
{
    (void)state;
    need_solver();
    const small_op far[] = {
        {"a", "30,30", "", "x:8", 0, NULL}, {"b", "4,4", "", "y:8", 0, NULL}, {"c", "10,10", "x,y", "", 0, NULL}, {0}};
    expect(&(small_spec){.n_devices = 2, .op = far}, 40, "a>c");
    const small_op near[] = {{"a", "26,26", "", "x:8", 0, NULL},
                             {"b", "22,22", "", "y:8", 0, NULL},
                             {"c", "10,10", "x,y", "", 0, NULL},
                             {0}};
    expect(&(small_spec){.n_devices = 2, .op = near}, 38, "");
}

/* Means: times over the devices that can run it, transfers over the channels; two tensors to one reader add up; a group
 * needs none. */
static void test_m_sct_takes_means_and_sums(void **state)
{
    (void)state;
    need_solver();
    const small_op mean[] = {{"a", "10,30", "", "x:0[[0,4],[12,0]],y:2", 0, NULL},
                             {"b", "7,null", "x,y", "", 0, NULL},
                             {"c", "7,7", "x,y", "", 0, NULL},
                             {0}};
    expect(&(small_spec){.n_devices = 2, .op = mean}, 20 + 0.5 * (8 + 2) + 7, "");
    const small_op group[] = {
        {"a", "10,10", "", "x:8", 0, "g"}, {"b", "10,10", "x", "", 0, "g"}, {"c", "4,4", "x", "", 0, NULL}, {0}};
    expect(&(small_spec){.n_devices = 2, .op = group}, 20, "a>c"); /* c alone is worth a transfer: 10 + 4 either way */
}

/* A waist between two forks: the pieces are solved apart, and their values add up. 24 (a fork) - 10 + 10 + 4 + 10 */
static void test_m_sct_pieces_add_up(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {{"a", "10,10", "", "x:8", 0, NULL},  {"b", "10,10", "x", "y:8", 0, NULL},
                           {"c", "10,10", "x", "z:8", 0, NULL}, {"d", "10,10", "y,z", "u:8", 0, NULL},
                           {"e", "10,10", "u", "v:8", 0, NULL}, {"f", "10,10", "u", "w:8", 0, NULL},
                           {"g", "10,10", "v,w", "", 0, NULL},  {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .op = op});
    place_favourites f = find(p, false);
    assert_int_equal(f.n_blocks, 2);
    assert_true(near(f.lp_ns, 10 + 4 + 10 + 4 + 10 + 4 + 10 + 4 + 10));
    place_favourites_clear(&f);
    moirai_problem_free(p);
}

/* ---- all assignments ---- */

typedef struct search {
    const moirai_problem *p;
    const place_favourites *f;
    double *time, *length;
    double best;
    bool has_child[64], has_parent[64], favourite[256];
} search;

static double mean_time(const moirai_problem *p, int32_t i)
{
    double sum = 0;
    int n = 0;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (p->op_devices[i] >> k & 1) {
            sum += (double)moirai_op_ns(p, i, k);
            n++;
        }
    return sum / n;
}

static double path_of(search *s)
{
    double longest = 0;
    for (int32_t i = 0; i < s->p->n_ops; i++)
        s->length[i] = 0;
    for (int32_t r = 0, a = 0; r < s->p->n_ops; r++) {
        int32_t i = s->p->topo[r];
        double finish = s->length[i] + s->time[i];
        longest = fmax(longest, finish);
        for (; a < s->f->n_arcs && s->f->from[a] == i; a++)
            s->length[s->f->to[a]] =
                fmax(s->length[s->f->to[a]], finish + (s->favourite[a] ? 0 : s->f->transfer_ns[a]));
    }
    return longest;
}

static void try_arc(search *s, int32_t a)
{
    if (a == s->f->n_arcs) {
        s->best = fmin(s->best, path_of(s));
        return;
    }
    int32_t i = s->f->from[a], j = s->f->to[a];
    s->favourite[a] = false;
    try_arc(s, a + 1);
    if (s->has_child[i] || s->has_parent[j])
        return;
    s->favourite[a] = s->has_child[i] = s->has_parent[j] = true;
    try_arc(s, a + 1);
    s->favourite[a] = s->has_child[i] = s->has_parent[j] = false;
}

/* No assignment of favourites beats the linear programme; where its solution is whole, it is the best assignment. */
static void test_m_sct_against_all_favourite_assignments(void **state)
{
    (void)state;
    need_solver();
    int whole = 0, compared = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(1500); seed++) {
        random_spec spec = random_spec_draw(seed, 8);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        place_favourites f = find(p, seed % 2);
        search s = {.p = p,
                    .f = &f,
                    .best = HUGE_VAL,
                    .time = calloc(64, sizeof(double)),
                    .length = calloc(64, sizeof(double))};
        bool integral = true;
        for (int32_t i = 0; i < p->n_ops; i++)
            s.time[i] = mean_time(p, i);
        for (int32_t a = 0; a < f.n_arcs; a++)
            integral = integral && (f.x[a] < 1e-9 || f.x[a] > 1 - 1e-9);
        if (f.n_arcs <= 14) {
            try_arc(&s, 0);
            compared++;
            if (f.lp_ns > s.best * (1 + 1e-5) + 1e-6 || (integral && !near(f.lp_ns, s.best)))
                fail_msg("%s: value %.9g, best assignment %.9g%s", random_spec_text(&spec), f.lp_ns, s.best,
                         integral ? ", whole" : "");
            whole += integral;
        }
        free(s.time);
        free(s.length);
        place_favourites_clear(&f);
        moirai_problem_free(p);
    }
    print_message("%d graphs, %d with whole solutions\n", compared, whole);
    assert_true(compared > TEST_SHARE(1000) && whole > TEST_SHARE(300));
}

static void assert_matching(const moirai_problem *p, const place_favourites *f)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (f->child[i] != MOIRAI_NONE)
            assert_int_equal(f->parent[f->child[i]], i);
        if (f->parent[i] != MOIRAI_NONE)
            assert_int_equal(f->child[f->parent[i]], i);
        n += f->child[i] != MOIRAI_NONE;
    }
    assert_int_equal(n, f->n);
}

/* Cut into pieces or not: one value; x obeys every row; favourites are one to one. */
static void test_m_sct_solutions_hold_on_larger_graphs(void **state)
{
    (void)state;
    need_solver();
    for (uint64_t seed = 7000; seed < 7000 + TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed, 80);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        place_favourites f = find(p, false), g = find(p, true);
        double *out = calloc((size_t)p->n_ops, sizeof *out), *in = calloc((size_t)p->n_ops, sizeof *in);
        if (!near(f.lp_ns, g.lp_ns))
            fail_msg("%s: in pieces %.9g, whole %.9g", random_spec_text(&spec), f.lp_ns, g.lp_ns);
        for (int32_t a = 0; a < f.n_arcs; a++) { /* 1 - x: at most 1 per operator, either way */
            assert_true(f.x[a] >= 0 && f.x[a] <= 1);
            out[f.from[a]] += 1 - f.x[a];
            in[f.to[a]] += 1 - f.x[a];
        }
        for (int32_t i = 0; i < p->n_ops; i++)
            assert_true(out[i] <= 1 + 1e-6 && in[i] <= 1 + 1e-6);
        assert_matching(p, &f);
        assert_matching(p, &g);
        free(out);
        free(in);
        place_favourites_clear(&f);
        place_favourites_clear(&g);
        moirai_problem_free(p);
    }
}

static void test_m_sct_equal_layers_are_solved_once(void **state)
{
    (void)state;
    need_solver();
    moirai_problem *p = zoo_problem("gpt3-mini", "inter-server", MOIRAI_FLOW_TENSOR);
    place_favourites f = find(p, false), g = find(p, true);
    assert_true(f.n_blocks > 4 && f.n_solved < f.n_blocks);
    assert_int_equal(g.n_blocks, 1);
    assert_true(near(f.lp_ns, g.lp_ns));
    place_favourites_clear(&f);
    place_favourites_clear(&g);
    moirai_problem_free(p);
}

/* ---- waiting ---- */

static int64_t start_of(const moirai_problem *p, const char *placer, const char *op, const char *device)
{
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, placer, NULL));
    int32_t i = moirai_problem_find_op(p, op);
    int64_t start = plan->op_start_ns[i];
    assert_int_equal(plan->op_device[i], moirai_problem_find_device(p, device));
    moirai_plan_free(plan);
    return start;
}

/* At 10, A has run a and B has run q. b, a's favourite child, can start on A at 12, z at 11: m-ETF takes z and b waits
 * until 31. z is not urgent, since its input is at C at 50 only: m-SCT keeps A awake for b. y keeps B busy. */
static void test_m_sct_waits_for_the_favourite(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,null,null", "", "x:0[[0,100,100],[100,0,100],[100,100,0]]", 0, NULL},
        {"q", "null,10,null", "", "u:0[[0,1,1],[1,0,40],[1,1,0]],v:0[[0,2,2],[2,0,2],[2,2,0]],w:0", 0, NULL},
        {"y", "null,30,null", "w", "", 0, NULL},
        {"z", "20,20,20", "u", "", 0, NULL},
        {"b", "20,20,null", "x,v", "", 0, NULL},
        {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .op = op});
    place_favourites f = find(p, false);
    assert_int_equal(f.child[moirai_problem_find_op(p, "a")], moirai_problem_find_op(p, "b"));
    place_favourites_clear(&f);
    assert_int_equal(start_of(p, "m-etf", "z", "A"), 11);
    assert_int_equal(start_of(p, "m-etf", "b", "A"), 31);
    assert_int_equal(start_of(p, "m-sct", "b", "A"), 12);
    moirai_problem_free(p);
}

/* The same, but z's input is everywhere at 11: it is urgent, and an awake device takes it first. */
static void test_m_sct_takes_urgent_operators_first(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,null,null", "", "x:0[[0,100,100],[100,0,100],[100,100,0]]", 0, NULL},
        {"q", "null,10,null", "", "u:0[[0,1,1],[1,0,1],[1,1,0]],v:0[[0,2,2],[2,0,2],[2,2,0]],w:0", 0, NULL},
        {"y", "null,30,null", "w", "", 0, NULL},
        {"z", "20,20,null", "u", "", 0, NULL},
        {"b", "20,20,null", "x,v", "", 0, NULL},
        {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .op = op});
    assert_int_equal(start_of(p, "m-sct", "z", "A"), 11);
    assert_int_equal(start_of(p, "m-sct", "b", "A"), 31);
    moirai_problem_free(p);
}

/* Stopped before it began: no favourites, and the plan is m-ETF's. */
static void test_m_sct_without_time_is_m_etf(void **state)
{
    (void)state;
    need_solver();
    moirai_problem *p = zoo_problem("gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    moirai_interrupt raised = {0};
    moirai_interrupt_raise(&raised);
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.interrupt = &raised;
    moirai_plan *plan, *etf;
    assert_ok(moirai_place(&plan, p, "m-sct", &o));
    assert_ok(moirai_place(&etf, p, "m-etf", NULL));
    assert_int_equal(plan->makespan_ns, etf->makespan_ns);
    assert_memory_equal(plan->op_device, etf->op_device, (size_t)p->n_ops * sizeof *plan->op_device);
    moirai_plan_free(plan);
    moirai_plan_free(etf);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_m_sct_chain_has_no_transfers),
        cmocka_unit_test(test_m_sct_even_fork_has_no_favourite),
        cmocka_unit_test(test_m_sct_long_branch_is_the_favourite),
        cmocka_unit_test(test_m_sct_join_weighs_its_parents),
        cmocka_unit_test(test_m_sct_takes_means_and_sums),
        cmocka_unit_test(test_m_sct_pieces_add_up),
        cmocka_unit_test(test_m_sct_against_all_favourite_assignments),
        cmocka_unit_test(test_m_sct_solutions_hold_on_larger_graphs),
        cmocka_unit_test(test_m_sct_equal_layers_are_solved_once),
        cmocka_unit_test(test_m_sct_waits_for_the_favourite),
        cmocka_unit_test(test_m_sct_takes_urgent_operators_first),
        cmocka_unit_test(test_m_sct_without_time_is_m_etf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
