/* A block as a problem of its own, the components it falls into, their kinds; and the spine of an encoder-decoder drawn
 * by hand. */
#include "decompose/block.h"
#include "decompose/spine.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

/* Three heads between two cuts, the third slower; an edge over the first cut, and something behind. */
static const char heads[] = "device A 100\n"
                            "device B 200\n"
                            "op first 1,1 > z:9\n"
                            "op in 5,6 z > s:4 r:2 mem=50\n"
                            "op h0 2,3 s > a0:1 mem=7\n"
                            "op k0 4,5 a0 > b0:1\n"
                            "op h1 2,3 s > a1:1 mem=7\n"
                            "op k1 4,5 a1 > b1:1\n"
                            "op h2 2,3 s z > a2:1 mem=7\n"
                            "op k2 4,9 a2 > b2:1\n"
                            "op out 8,8 b0 b1 b2 r > y:3 mem=60\n"
                            "op last 1,- y\n";

static void test_decompose_block_is_a_problem_of_its_own(void **state)
{
    (void)state;
    tiny_block f = tiny_block_open(heads, 2); /* after first and in */
    const moirai_problem *q = &f.b->problem;
    assert_int_equal(f.s->n_cuts, 4);
    assert_int_equal(f.b->n_interior, 6);
    assert_int_equal(q->n_ops, 8);
    assert_int_equal(f.b->entry, 0);
    assert_int_equal(f.b->first, 1);
    assert_int_equal(f.b->exit, 7);
    assert_string_equal(q->op_name[0], "in");
    assert_string_equal(q->op_name[7], "out");
    /* The cuts take no time and no memory here: both are counted where the chain is. */
    for (int32_t k = 0; k < 2; k++) {
        assert_int_equal(moirai_op_ns(q, 0, k), 0);
        assert_int_equal(moirai_op_ns(q, 7, k), 0);
    }
    assert_int_equal(q->op_memory_bytes[0], 0);
    assert_int_equal(q->op_memory_bytes[7], 0);
    assert_int_equal(q->op_memory_bytes[1], 7);
    assert_int_equal(moirai_op_ns(q, 2, 1), 5);
    /* s to three readers, r to the exit, six inside; not z, which jumps over the cut, and not what the exit writes. */
    assert_int_equal(q->n_edges, 3 + 1 + 3 + 3);
    assert_int_equal(q->n_tensors, 2 + 6);
    for (int32_t t = 0; t < q->n_tensors; t++)
        assert_true(strcmp(q->tensor_name[t], "z") && strcmp(q->tensor_name[t], "y"));
    assert_int_equal(moirai_transfer_ns(q, 0, 0, 1), 4);
    tiny_block_close(&f);
}

static void test_decompose_block_numbers_lead_back(void **state)
{
    (void)state;
    tiny_block f = tiny_block_open(heads, 2);
    for (int32_t i = 0; i < f.b->problem.n_ops; i++) {
        int32_t op = decompose_block_global_op(f.b, f.p, f.s, 2, i);
        assert_string_equal(f.p->op_name[op], f.b->problem.op_name[i]);
    }
    for (int32_t t = 0; t < f.b->problem.n_tensors; t++) {
        int32_t tensor = decompose_block_global_tensor(f.b, f.p, f.s, 2, t);
        assert_string_equal(f.p->tensor_name[tensor], f.b->problem.tensor_name[t]);
    }
    tiny_block_close(&f);
}

static void test_decompose_block_without_entry_or_exit(void **state)
{
    (void)state;
    tiny_block f = tiny_block_open("device A 9\nop a 1 > s:1\nop b 1 > t:1\nop c 1 s t > u:1\nop d 1 u\nop e 1 u\n", 0);
    assert_int_equal(f.b->entry, MOIRAI_NONE);
    assert_int_equal(f.b->first, 0);
    assert_int_equal(f.b->exit, 2);
    assert_int_equal(f.b->n_components, 2);
    tiny_block_close(&f);
    f = tiny_block_open("device A 9\nop a 1 > s:1\nop b 1 > t:1\nop c 1 s t > u:1\nop d 1 u\nop e 1 u\n", 1);
    assert_int_equal(f.b->entry, 0);
    assert_int_equal(f.b->exit, MOIRAI_NONE);
    assert_int_equal(f.b->n_interior, 2);
    assert_int_equal(f.b->n_kinds, 1);
    tiny_block_close(&f);
}

static void test_decompose_block_pins_its_cuts(void **state)
{
    (void)state;
    tiny_block f = tiny_block_open(heads, 2);
    decompose_block_pin(f.b, 1, 0);
    assert_int_equal(f.b->problem.op_devices[f.b->entry], 2);
    assert_int_equal(f.b->problem.op_devices[f.b->exit], 1);
    assert_int_equal(f.b->problem.op_devices[1], 3);
    decompose_block_pin(f.b, 0, 1);
    assert_int_equal(f.b->problem.op_devices[f.b->entry], 1);
    assert_int_equal(f.b->problem.op_devices[f.b->exit], 2);
    assert_int_equal(f.p->op_devices[1], 3); /* the whole is as it was */
    tiny_block_close(&f);
}

static void test_decompose_components_and_kinds(void **state)
{
    (void)state;
    tiny_block f = tiny_block_open(heads, 2);
    const decompose_block *b = f.b;
    assert_int_equal(b->n_components, 3);
    for (int32_t c = 0; c < 3; c++) {
        assert_int_equal(b->component_off[c + 1] - b->component_off[c], 2);
        for (int32_t x = b->component_off[c]; x < b->component_off[c + 1]; x++)
            assert_int_equal(b->op_component[b->component_op[x]], c);
    }
    assert_int_equal(b->op_component[b->entry], MOIRAI_NONE);
    assert_int_equal(b->op_component[b->exit], MOIRAI_NONE);
    assert_int_equal(b->n_kinds, 2); /* the third is slower on B */
    assert_int_equal(b->kind_count[0], 2);
    assert_int_equal(b->kind_count[1], 1);
    assert_int_equal(b->component_kind[0], b->component_kind[1]);
    assert_int_equal(b->component_kind[2], 1);
    assert_int_equal(b->kind_component[1], 2);
    tiny_block_close(&f);
}

/* What makes two components different kinds, one thing at a time. */
static void test_decompose_kinds_differ_by_everything_that_matters(void **state)
{
    (void)state;
    static const struct {
        const char *operators;
        int32_t n_kinds;
    } list[] = {
        {"op x 2,3 s > a:1\nop y 2,3 s > b:1\n", 1},
        {"op x 2,3 s > a:1\nop y 2,4 s > b:1\n", 2},       /* time */
        {"op x 2,3 s > a:1\nop y 2,- s > b:1\n", 2},       /* devices */
        {"op x 2,3 s > a:1 mem=1\nop y 2,3 s > b:1\n", 2}, /* memory */
        {"op x 2,3 s > a:1\nop y 2,3 s > b:2\n", 2},       /* what is sent to the exit */
        {"op x 2,3 s > a:1\nop y 2,3 r > b:1\n", 2},       /* another tensor of the entry: it may be there already */
        {"op x 2,3 s > a:1 group=g\nop y 2,3 s > b:1 group=g\n", 2}, /* groups tie them together */
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[512];
        snprintf(text, sizeof text, "device A 9\ndevice B 9\nop in 1,1 > s:4 r:4\n%sop out 1,1 a b\n",
                 list[i].operators);
        tiny_block f = tiny_block_open(text, 1);
        assert_int_equal(f.b->n_kinds, list[i].n_kinds);
        assert_int_equal(f.b->n_components, 2);
        tiny_block_close(&f);
    }
}

/* ---- the spine ---- */

enum { LAYERS = 24 };

/* Encoder e0 .. e23 and decoder d0 .. d23, 10 ns each. The decoder begins with p0, p1 of its own; its layer i reads
 * k<i>, made from the encoder's output. */
static moirai_problem *encoder_decoder(const char *memory)
{
    char text[8192];
    int n = sprintf(text, "memory %s\ndevice A 1000\ndevice B 1000\nop e0 10,20 > e0:1\n", memory);
    for (int i = 1; i < LAYERS; i++)
        n += sprintf(text + n, "op e%d 10,20 e%d > e%d:1\n", i, i - 1, i);
    for (int i = 0; i < LAYERS; i++)
        n += sprintf(text + n, "op k%d 2,4 e%d > k%d:1\n", i, LAYERS - 1, i);
    n += sprintf(text + n, "op p0 1,2 > p0:1\nop p1 1,2 p0 > p1:1\nop d0 10,20 p1 k0 > d0:1\n");
    for (int i = 1; i < LAYERS; i++)
        n += sprintf(text + n, "op d%d 10,20 d%d k%d > d%d:1\n", i, i - 1, i, i);
    return tiny_problem(text);
}

/* Floating: the decoder's own beginning, and every key but the first two. The chain from encoder to decoder needs k0;
 * k1 spoils one small block, (14^2 - 10^2 - 2^2) / 532^2 of squares, and to float would cost 0.25 * 2 / 532, which is
 * more. */
static void test_decompose_spine_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = encoder_decoder("peak");
    decompose_cuts *whole, *rest;
    decompose_spine *s;
    assert_ok(decompose_cuts_new(&whole, p));
    assert_int_equal(whole->n_cuts, 1); /* the end alone */
    assert_ok(decompose_spine_new(&s, p, &(util_stop){0}));
    assert_non_null(s);
    assert_int_equal(s->n_floating, 2 + LAYERS - 2);
    for (int32_t i = 0; i < p->n_ops; i++) {
        const char *name = p->op_name[i];
        bool floats = name[0] == 'p' || (name[0] == 'k' && strcmp(name, "k0") != 0 && strcmp(name, "k1") != 0);
        assert_int_equal(s->floating[i], floats);
    }
    assert_int_equal(s->problem->n_ops, 2 * LAYERS + 2);
    assert_int_equal(s->problem->memory, MOIRAI_MEMORY_STATIC); /* peaks of a part say nothing of the whole */
    for (int32_t i = 0; i < s->problem->n_ops; i++)
        assert_string_equal(s->problem->op_name[i], p->op_name[s->whole_op[i]]);
    for (int32_t t = 0; t < s->problem->n_tensors; t++)
        assert_string_equal(s->problem->tensor_name[t], p->tensor_name[s->whole_tensor[t]]);
    assert_ok(decompose_cuts_new(&rest, s->problem));
    assert_int_equal(rest->n_cuts, 2 * LAYERS - 1); /* a chain but for k0, k1 and d0 */
    decompose_cuts_free(whole);
    decompose_cuts_free(rest);
    decompose_spine_free(s);
    moirai_problem_free(p);
}

/* Nothing floats where cuts do, and nothing where the work beside is half of all. */
static void test_decompose_spine_where_it_does_not_help(void **state)
{
    (void)state;
    char text[8192];
    decompose_spine *s;
    int n = sprintf(text, "device A 1000\nop a0 10 > a0:1\n");
    for (int i = 1; i < 60; i++)
        n += sprintf(text + n, "op a%d 10 a%d > a%d:1\n", i, i - 1, i);
    moirai_problem *p = tiny_problem(text);
    assert_ok(decompose_spine_new(&s, p, &(util_stop){0}));
    assert_null(s);
    moirai_problem_free(p);
    for (int i = 0; i < 60; i++) /* a second chain beside the first */
        n += i ? sprintf(text + n, "op b%d 10 b%d > b%d:1\n", i, i - 1, i) : sprintf(text + n, "op b0 10 > b0:1\n");
    p = tiny_problem(text);
    assert_ok(decompose_spine_new(&s, p, &(util_stop){0}));
    assert_null(s);
    moirai_problem_free(p);
}

static void test_decompose_spine_from_a_given_set(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop a 1 > s:1\nop b 1 s > t:1\nop x 1 s > u:1\nop c 1 t u\n");
    bool floating[4] = {false};
    decompose_spine *s;
    floating[tiny_op(p, "x")] = true;
    assert_ok(decompose_spine_from(&s, p, floating));
    assert_int_equal(s->n_floating, 1);
    assert_int_equal(s->problem->n_ops, 3);
    assert_int_equal(s->problem->n_edges, 2); /* u comes from outside now */
    assert_int_equal(s->whole_op[2], 3);
    assert_int_equal(s->problem->op_in_off[3] - s->problem->op_in_off[2], 1);
    decompose_spine_free(s);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decompose_block_is_a_problem_of_its_own),
        cmocka_unit_test(test_decompose_block_numbers_lead_back),
        cmocka_unit_test(test_decompose_block_without_entry_or_exit),
        cmocka_unit_test(test_decompose_block_pins_its_cuts),
        cmocka_unit_test(test_decompose_components_and_kinds),
        cmocka_unit_test(test_decompose_kinds_differ_by_everything_that_matters),
        cmocka_unit_test(test_decompose_spine_by_hand),
        cmocka_unit_test(test_decompose_spine_where_it_does_not_help),
        cmocka_unit_test(test_decompose_spine_from_a_given_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
