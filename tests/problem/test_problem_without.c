/* A problem without some of its operators, the wishes' patterns, and names of modes: small things that others lean on.
 */
#include "support/check.h"
#include "support/tiny.h"

/* a -> b -> d and a -> c -> d; b and c share a group with e. */
static const char whole[] =
    "device A 9\ndevice B 9\nop a 1,2 > s:4 r:1 mem=1\nop b 3,4 s > t:5 mem=2 group=g\nop c 5,- s > u:6 mem=3 group=h\n"
    "op d 7,8 t u r > v:7 mem=4\nop e 9,9 group=g mem=5\nop f 1,1 group=h\n";

static moirai_problem *without(const moirai_problem *p, const char *names)
{
    bool gone[16] = {false};
    moirai_problem *q;
    for (; *names; names++)
        gone[tiny_op(p, (char[]){*names, '\0'})] = true;
    assert_ok(moirai_problem_without(&q, p, gone));
    return q;
}

static void test_problem_without_an_operator(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(whole), *q = without(p, "b");
    assert_int_equal(q->n_ops, 5);
    assert_string_equal(q->op_name[1], "c"); /* the others keep their order */
    assert_int_equal(moirai_problem_find_op(q, "b"), MOIRAI_NONE);
    assert_int_equal(moirai_problem_find_tensor(q, "t"), MOIRAI_NONE);
    /* s has one reader left; t comes from outside now. */
    int32_t s = tiny_tensor(q, "s"), d = tiny_op(q, "d");
    assert_int_equal(q->tensor_edge_off[s + 1] - q->tensor_edge_off[s], 1);
    assert_int_equal(q->op_in_off[d + 1] - q->op_in_off[d], 2);
    assert_int_equal(q->op_extern_off[d + 1] - q->op_extern_off[d], 1);
    assert_string_equal(q->op_extern[q->op_extern_off[d]], "t");
    assert_int_equal(moirai_op_ns(q, d, 1), 8);
    assert_int_equal(moirai_transfer_ns(q, s, 0, 1), 4);
    assert_int_equal(q->tensor_bytes[tiny_tensor(q, "u")], 6);
    assert_int_equal(q->tensor_producer[tiny_tensor(q, "u")], tiny_op(q, "c"));
    assert_int_equal(q->op_memory_bytes[d], 4);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

static void test_problem_without_a_reader_keeps_its_tensor(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(whole), *q = without(p, "d");
    int32_t t = tiny_tensor(q, "t");
    assert_int_equal(q->tensor_edge_off[t + 1] - q->tensor_edge_off[t], 0); /* read by nobody: an output */
    assert_int_equal(q->n_edges, 2);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

/* What a group allows stays as it was: f may run on A alone, with c or without it. */
static void test_problem_without_members_of_a_group(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(whole);
    assert_int_equal(p->op_devices[tiny_op(p, "f")], 1);
    moirai_problem *q = without(p, "b");
    assert_true(q->op_group[tiny_op(q, "c")] == q->op_group[tiny_op(q, "f")]);
    assert_true(q->n_groups <= 2);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

static void test_problem_without_nothing_is_the_same(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(whole), *q = without(p, "");
    assert_int_equal(q->n_ops, p->n_ops);
    assert_int_equal(q->n_edges, p->n_edges);
    assert_memory_equal(q->op_time_ns, p->op_time_ns, sizeof *p->op_time_ns * 12);
    assert_memory_equal(q->topo, p->topo, sizeof *p->topo * 6);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

/* ---- modes by name ---- */

static void test_problem_modes_have_names(void **state)
{
    (void)state;
    moirai_flow f;
    moirai_congestion c;
    moirai_memory m;
    for (int i = 0; i < 3; i++) {
        assert_ok(moirai_congestion_parse(&c, moirai_congestion_name((moirai_congestion)i)));
        assert_int_equal((int)c, i);
        if (i == 2)
            break;
        assert_ok(moirai_flow_parse(&f, moirai_flow_name((moirai_flow)i)));
        assert_ok(moirai_memory_parse(&m, moirai_memory_name((moirai_memory)i)));
        assert_true((int)f == i && (int)m == i);
    }
    assert_int_not_equal(moirai_flow_parse(&f, "river"), MOIRAI_OK);
    assert_int_not_equal(moirai_congestion_parse(&c, ""), MOIRAI_OK);
    assert_int_not_equal(moirai_memory_parse(&m, "Peak"), MOIRAI_OK);
}

/* ---- wishes ---- */

static int wish(moirai_problem *p, moirai_wish_kind kind, const char *pattern, const char *devices)
{
    moirai_wish w = {kind, pattern, devices};
    return moirai_problem_wish(p, &w, 1);
}

static void test_problem_wishes_by_pattern(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(
        "device A 9\ndevice B 9\ndevice C 9\nop L0/a 1,1,1\nop L0/b 1,1,1\nop L1/a 1,1,1\nop L10/a 1,1,1\n");
    assert_ok(wish(p, MOIRAI_PIN, "L?/a", "B,C"));
    assert_int_equal(p->op_devices[0], 6);
    assert_int_equal(p->op_devices[2], 6);
    assert_int_equal(p->op_devices[3], 7); /* two digits: not meant */
    assert_ok(wish(p, MOIRAI_FORBID, "*/a", "C"));
    assert_int_equal(p->op_devices[0], 2);
    assert_int_equal(p->op_devices[3], 3);
    assert_ok(wish(p, MOIRAI_TOGETHER, "L1*/a", NULL));
    assert_int_equal(p->op_group[2], p->op_group[3]);
    assert_int_equal(p->op_devices[3], 2);                                  /* what the group can */
    assert_int_equal(wish(p, MOIRAI_PIN, "L0/a", "A"), MOIRAI_EINFEASIBLE); /* nothing is left of it */
    assert_int_equal(p->op_devices[0], 2);
    assert_int_equal(wish(p, MOIRAI_PIN, "nobody", "A"), MOIRAI_EINPUT);
    assert_int_equal(wish(p, MOIRAI_FORBID, "L0/b", "D"), MOIRAI_EINPUT);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_without_an_operator),
        cmocka_unit_test(test_problem_without_a_reader_keeps_its_tensor),
        cmocka_unit_test(test_problem_without_members_of_a_group),
        cmocka_unit_test(test_problem_without_nothing_is_the_same),
        cmocka_unit_test(test_problem_modes_have_names),
        cmocka_unit_test(test_problem_wishes_by_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
