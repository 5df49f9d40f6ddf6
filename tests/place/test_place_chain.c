/* chain against every contiguous split; sequential by hand. */
#include "place/list/chain_split.h"
#include "place/list/contiguous.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/small_problem.h"

#include <moirai/placer.h>

/* ---- every split, from the definition ---- */

typedef struct every {
    const moirai_problem *p;
    const int32_t *order; /* devices must come in this order, or NULL */
    int32_t piece[16];    /* per rank: which piece */
    int32_t device[16];   /* per piece */
    int64_t best;
} every;

static bool piece_fits(const every *x, int32_t piece)
{
    const moirai_problem *p = x->p;
    int32_t k = x->device[piece];
    int64_t own = 0, most = 0;
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t op = p->topo[r];
        if (x->piece[r] != piece)
            continue;
        if (!(p->op_devices[op] >> k & 1))
            return false;
        own += p->op_memory_bytes[op];
        int64_t alive = 0; /* written by now, read now or later, or by nobody */
        for (int32_t t = 0; t < p->n_tensors; t++) {
            int32_t last = p->tensor_edge_off[t] == p->tensor_edge_off[t + 1] ? p->n_ops : 0;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                last = p->topo_rank[p->edge_reader[e]] > last ? p->topo_rank[p->edge_reader[e]] : last;
            if (p->topo_rank[p->tensor_producer[t]] <= r && last >= r)
                alive += p->tensor_bytes[t];
        }
        most = alive > most ? alive : most;
    }
    return own + (p->memory == MOIRAI_MEMORY_PEAK ? most : 0) <= p->device_memory_bytes[k];
}

static bool groups_whole(const every *x)
{
    for (int32_t i = 0; i < x->p->n_ops; i++)
        for (int32_t j = 0; j < i; j++)
            if (x->p->op_group[i] != MOIRAI_NONE && x->p->op_group[i] == x->p->op_group[j] &&
                x->piece[x->p->topo_rank[i]] != x->piece[x->p->topo_rank[j]])
                return false;
    return true;
}

static int64_t cost_of(const every *x)
{
    const moirai_problem *p = x->p;
    int64_t cost = 0;
    for (int32_t r = 0; r < p->n_ops; r++)
        cost += moirai_op_ns(p, p->topo[r], x->device[x->piece[r]]);
    for (int32_t r = 1; r < p->n_ops; r++) {
        if (x->piece[r] == x->piece[r - 1])
            continue;
        int32_t from = x->device[x->piece[r - 1]], to = x->device[x->piece[r]];
        for (int32_t t = 0; t < p->n_tensors; t++) {
            int32_t behind = 0;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                behind += p->topo_rank[p->tensor_producer[t]] < r && p->topo_rank[p->edge_reader[e]] >= r;
            if (behind > 0)
                cost += moirai_transfer_ns(p, t, from, to) * (p->flow == MOIRAI_FLOW_EDGE ? behind : 1);
        }
    }
    return cost;
}

static bool in_order(const every *x, int32_t n_pieces)
{
    for (int32_t i = 1; i < n_pieces; i++) {
        int32_t before = -1, here = -1;
        for (int32_t at = 0; at < x->p->n_devices; at++) {
            before = x->order[at] == x->device[i - 1] ? at : before;
            here = x->order[at] == x->device[i] ? at : here;
        }
        if (here <= before)
            return false;
    }
    return true;
}

static void try_devices(every *x, int32_t piece, int32_t n_pieces, int32_t used)
{
    if (piece == n_pieces) {
        if (x->order && !in_order(x, n_pieces))
            return;
        for (int32_t i = 0; i < n_pieces; i++)
            if (!piece_fits(x, i))
                return;
        int64_t cost = cost_of(x);
        x->best = x->best < 0 || cost < x->best ? cost : x->best;
        return;
    }
    for (int32_t k = 0; k < x->p->n_devices; k++)
        if (!(used >> k & 1)) {
            x->device[piece] = k;
            try_devices(x, piece + 1, n_pieces, used | 1 << k);
        }
}

static int64_t best_of_all(const moirai_problem *p, const int32_t *order)
{
    every x = {.p = p, .order = order, .best = -1};
    for (int32_t cuts = 0; cuts < 1 << (p->n_ops - 1); cuts++) {
        int32_t n = 0;
        for (int32_t r = 1; r < p->n_ops; r++)
            x.piece[r] = n += cuts >> (r - 1) & 1;
        if (n < p->n_devices && groups_whole(&x))
            try_devices(&x, 0, n + 1, 0);
    }
    return x.best;
}

/* The cost of what was found, by the same definition. */
static int64_t cost_of_split(const moirai_problem *p, const place_split *s)
{
    every x = {.p = p};
    for (int32_t piece = 0, r = 0; piece < s->n_pieces; piece++) {
        x.device[piece] = s->device[piece];
        for (; r < s->end[piece]; r++)
            x.piece[r] = piece;
    }
    for (int32_t piece = 0; piece < s->n_pieces; piece++)
        assert_true(piece_fits(&x, piece));
    assert_true(groups_whole(&x));
    return cost_of(&x);
}

static void test_chain_is_the_best_contiguous_split(void **state)
{
    (void)state;
    int found = 0, none = 0, pieces[5] = {0};
    for (uint64_t seed = 1; seed <= 1200; seed++) {
        random_spec spec = random_spec_draw(seed, 8);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        const int32_t order[2][4] = {{3, 1, 0, 2}, {0, 1, 2, 3}};
        int32_t mine[4], n = 0;
        for (int32_t at = 0; at < 4; at++)
            if (order[seed % 2][at] < p->n_devices)
                mine[n++] = order[seed % 2][at];
        for (int fixed = 0; fixed < 2; fixed++) {
            place_split s;
            int rc = place_split_find(&s, p, &(place_split_task){.order = fixed ? mine : NULL});
            int64_t best = best_of_all(p, fixed ? mine : NULL);
            if ((rc == 0) != (best >= 0) || (rc == 0 && s.cost_ns != best))
                fail_msg("%s, %s order: found %lld (%d), best %lld", random_spec_text(&spec), fixed ? "fixed" : "any",
                         (long long)s.cost_ns, rc, (long long)best);
            if (rc == 0) {
                assert_int_equal(cost_of_split(p, &s), s.cost_ns);
                pieces[s.n_pieces]++;
            } else {
                assert_int_equal(rc, MOIRAI_EINFEASIBLE);
            }
            found += rc == 0;
            none += rc != 0;
            place_split_clear(&s);
        }
        moirai_problem_free(p);
    }
    print_message("%d splits (%d, %d, %d, %d of 1, 2, 3, 4 pieces), %d times none\n", found, pieces[1], pieces[2],
                  pieces[3], pieces[4], none);
    assert_true(found > 1000 && none > 50 && pieces[2] > 50 && pieces[3] > 10);
}

static void test_chain_plans_are_contiguous(void **state)
{
    (void)state;
    int plans = 0, several = 0;
    for (uint64_t seed = 2000; seed < 2300; seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem *p = random_problem(&spec);
        moirai_plan *plan;
        if (!p)
            continue;
        int rc = moirai_place(&plan, p, "chain", NULL);
        if (rc != 0)
            assert_int_equal(rc, MOIRAI_EINFEASIBLE);
        uint64_t over = 0;
        for (int32_t r = 1; rc == 0 && r < p->n_ops; r++) {
            int32_t before = plan->op_device[p->topo[r - 1]], here = plan->op_device[p->topo[r]];
            if (here == before)
                continue;
            over |= (uint64_t)1 << before;
            assert_false(over >> here & 1);
        }
        plans += rc == 0;
        several += over != 0;
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    assert_true(plans > 150 && several > 20);
}

/* A chain, memory for two each: cut where the tensor is small, in the order of devices that is quickest. Worked by
 * hand: a, b on B (5 + 5), x:3 across, c on A (10). */
static void test_chain_cuts_where_it_is_cheap(void **state)
{
    (void)state;
    const small_op op[] = {
        {"a", "9,5", "", "w:90", 5, NULL}, {"b", "9,5", "w", "x:3", 5, NULL}, {"c", "10,9", "x", "", 5, NULL}, {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .memory = 10, .op = op});
    moirai_plan *plan;
    place_split s;
    assert_ok(place_split_find(&s, p, &(place_split_task){0}));
    assert_int_equal(s.cost_ns, 5 + 5 + 3 + 10);
    place_split_clear(&s);
    assert_ok(moirai_place(&plan, p, "chain", NULL));
    assert_int_equal(plan->makespan_ns, 23);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* Two of three fit a device, but they are not neighbours: `chain` has no plan, and says so; others find one. */
static void test_chain_says_that_nothing_contiguous_fits(void **state)
{
    (void)state;
    const small_op op[] = {
        {"a", "1,1", "", "x:1", 4, NULL}, {"b", "1,1", "x", "y:1", 8, NULL}, {"c", "1,1", "y", "", 4, NULL}, {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .memory = 8, .op = op});
    moirai_plan *plan;
    assert_int_equal(moirai_place(&plan, p, "chain", NULL), MOIRAI_EINFEASIBLE);
    assert_null(plan);
    assert_non_null(strstr(moirai_error_message(), "no split"));
    assert_ok(moirai_place(&plan, p, "sequential", NULL)); /* which is mended */
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* ---- sequential ---- */

static void expect_devices(const moirai_problem *p, const char *order, const char *devices)
{
    moirai_setting setting = {"order", order};
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    o.setting = &setting;
    o.n_settings = 1;
    assert_ok(moirai_place(&plan, p, "sequential", &o));
    for (int32_t i = 0; i < p->n_ops; i++)
        if ('A' + plan->op_device[i] != devices[i])
            fail_msg("order %s: operator %d on %c, by hand %c", order, i, 'A' + plan->op_device[i], devices[i]);
    moirai_plan_free(plan);
}

static void test_sequential_fills_one_after_the_other(void **state)
{
    (void)state;
    const small_op op[] = {{"a", "9,5,7", "", "w:1", 5, NULL},  {"b", "9,5,7", "w", "x:1", 5, NULL},
                           {"c", "9,5,7", "x", "y:1", 4, NULL}, {"d", "9,5,7", "y", "z:1", 5, NULL},
                           {"e", "9,5,7", "z", "", 1, NULL},    {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .memory = 10, .op = op});
    expect_devices(p, "given", "AABBB");
    expect_devices(p, "fastest", "BBCCC");
    moirai_problem_free(p);
    /* c can't run on B: the next one that can takes it, and B goes on; d and a are a group. */
    const small_op odd[] = {{"a", "9,5,7", "", "w:1", 2, "g"},      {"b", "9,5,7", "w", "x:1", 2, NULL},
                            {"c", "9,null,7", "x", "y:1", 4, NULL}, {"d", "9,5,7", "y", "z:1", 5, "g"},
                            {"e", "9,5,7", "z", "", 2, NULL},       {0}};
    p = small_problem(&(small_spec){.n_devices = 3, .memory = 10, .op = odd});
    expect_devices(p, "fastest", "BBCBC");
    moirai_problem_free(p);
}

/* Peak: a's output of 6 is there while b runs, so that a and b, 2 each, need 12 with b's 2. */
static void test_sequential_counts_tensors_alive(void **state)
{
    (void)state;
    const small_op op[] = {
        {"a", "5,6", "", "w:6", 2, NULL}, {"b", "5,6", "w", "x:2", 2, NULL}, {"c", "5,6", "x", "", 2, NULL}, {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .memory = 12, .mode = "peak", .op = op});
    int64_t alive[3];
    place_alive_bytes(p, alive);
    assert_int_equal(alive[0], 6);
    assert_int_equal(alive[1], 8);
    assert_int_equal(alive[2], 2);
    expect_devices(p, "given", "AAB"); /* 2 + 2 + 8 fits 12; with c, 14 would not */
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_is_the_best_contiguous_split),
        cmocka_unit_test(test_chain_plans_are_contiguous),
        cmocka_unit_test(test_chain_cuts_where_it_is_cheap),
        cmocka_unit_test(test_chain_says_that_nothing_contiguous_fits),
        cmocka_unit_test(test_sequential_fills_one_after_the_other),
        cmocka_unit_test(test_sequential_counts_tensors_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
