/* Cuts, blocks and classes of graphs drawn by hand. */
#include "decompose/cuts.h"
#include "support/check.h"
#include "support/tiny.h"
#include "util/util.h"

#define DEVICES "device A 100\ndevice B 100\n"

/* Names of the cuts, in order, and sizes of the blocks: "a d | 0 2 0". A static buffer. */
static const char *structure(const moirai_problem *p, const decompose_cuts *s)
{
    static char text[512];
    int n = 0;
    for (int32_t i = 0; i < s->n_cuts; i++)
        n += sprintf(text + n, "%s ", p->op_name[s->cut[i]]);
    n += sprintf(text + n, "|");
    for (int32_t b = 0; b < s->n_blocks; b++)
        n += sprintf(text + n, " %d", s->block_size[b]);
    return text;
}

static void has_structure(const char *text, const char *expected)
{
    moirai_problem *p = tiny_problem(text);
    decompose_cuts *s;
    assert_ok(decompose_cuts_new(&s, p));
    assert_string_equal(structure(p, s), expected);
    assert_int_equal(s->n_blocks, s->n_cuts + 1);
    for (int32_t b = 0, first = 0; b < s->n_blocks; b++) {
        assert_int_equal(s->block_first[b], first);
        first += s->block_size[b] + 1;
        assert_int_equal(decompose_entry(s, b), b > 0 ? s->cut[b - 1] : MOIRAI_NONE);
        assert_int_equal(decompose_exit(s, b), b < s->n_cuts ? s->cut[b] : MOIRAI_NONE);
    }
    decompose_cuts_free(s);
    moirai_problem_free(p);
}

static void test_decompose_cuts_of_small_graphs(void **state)
{
    (void)state;
    /* A chain: every operator is a cut. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 t\n", "a b c | 0 0 0 0");
    /* A diamond: the ends. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 s > u:1\nop d 1,1 t u\n", "a d | 0 2 0");
    /* An edge over a cut changes nothing: all comes before b or after it. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 s t\n", "a b c | 0 0 0 0");
    /* Two sources before the first cut, two sinks behind the last. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 > t:1\nop c 1,1 s t > u:1\nop d 1,1 u\nop e 1,1 u\n", "c | 2 2");
    /* Two paths side by side: none. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 s\nop c 1,1 > t:1\nop d 1,1 t\n", "| 4");
    /* One operator. */
    has_structure(DEVICES "op a 1,1\n", "a | 0 0");
    /* Something that nothing depends on, beside a chain: no cut before it could come last. */
    has_structure(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop x 1,1 s\nop c 1,1 t\n", "a | 0 3");
}

static void test_decompose_cuts_do_not_depend_on_the_file_s_order(void **state)
{
    (void)state;
    has_structure(DEVICES "op d 1,1 t u\nop c 1,1 s > u:1\nop a 1,1 > s:1\nop b 1,1 s > t:1\n", "a d | 0 2 0");
}

/* Names of the cuts that no edge jumps over. */
static void has_clean(const char *text, const char *expected)
{
    moirai_problem *p = tiny_problem(text);
    bool clean[8];
    char found[64] = "";
    assert_true(p->n_ops <= 8);
    assert_ok(decompose_cuts_clean(clean, p));
    for (int32_t z = 0; z < p->n_ops; z++)
        if (clean[p->topo[z]])
            strcat(found, p->op_name[p->topo[z]]);
    assert_string_equal(found, expected);
    moirai_problem_free(p);
}

static void test_decompose_cuts_that_no_edge_jumps_over(void **state)
{
    (void)state;
    has_clean(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 t\n", "abc");
    /* From a to c: b is a cut, and c is where that edge ends. */
    has_clean(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 s t > u:1\nop d 1,1 u\n", "acd");
    /* From inside a block over the cut behind it. */
    has_clean(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop c 1,1 s > u:1\nop d 1,1 t u > v:1\nop e 1,1 v t\n", "ae");
    has_clean(DEVICES "op a 1,1 > s:1\nop b 1,1 s\nop c 1,1 > t:1\nop d 1,1 t\n", "");
}

/* Without an operator that is left out others become cuts. */
static void test_decompose_cuts_without_some_operators(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem(DEVICES "op a 1,1 > s:1\nop b 1,1 s > t:1\nop x 1,1 s > u:1\nop c 1,1 t > v:1\nop d 1,1 v u\n");
    bool is_cut[5], gone[5] = {false};
    static const char *const with[] = {"a", "d"}, *const without[] = {"a", "b", "c", "d"};
    assert_ok(decompose_cuts_find(is_cut, p, NULL));
    for (int32_t i = 0; i < 5; i++) {
        const char *name = p->op_name[p->topo[i]];
        assert_int_equal(is_cut[i], !strcmp(name, with[0]) || !strcmp(name, with[1]));
    }
    gone[tiny_op(p, "x")] = true;
    assert_ok(decompose_cuts_find(is_cut, p, gone));
    for (int32_t i = 0, n = 0; i < 5; i++)
        if (is_cut[i])
            assert_string_equal(p->op_name[p->topo[i]], without[n++]);
    assert_false(is_cut[p->topo_rank[tiny_op(p, "x")]]);
    moirai_problem_free(p);
}

/* The definition on random graphs: a cut is comparable with every other operator, and nothing else is one. */
static void test_decompose_cuts_are_the_definition_s(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 5);
    for (int round = 0; round < 150; round++) {
        char text[2048];
        int n = 2 + (int)util_rng_below(&r, 9), at = sprintf(text, DEVICES);
        bool reach[12][12] = {{false}};
        for (int i = 0; i < n; i++) {
            at += sprintf(text + at, "op o%d 1,1", i);
            for (int j = 0; j < i; j++)
                if (util_rng_below(&r, 3) == 0 || j == i - 1 - (int)util_rng_below(&r, 2)) {
                    at += sprintf(text + at, " t%d", j);
                    for (int k = 0; k <= j; k++)
                        reach[k][i] = reach[k][i] || k == j || reach[k][j];
                }
            at += sprintf(text + at, " > t%d:1\n", i);
        }
        moirai_problem *p = tiny_problem(text);
        bool is_cut[12];
        assert_ok(decompose_cuts_find(is_cut, p, NULL));
        for (int i = 0; i < n; i++) {
            bool all = true;
            for (int j = 0; j < n; j++)
                all = all && (i == j || reach[i][j] || reach[j][i]);
            assert_int_equal(is_cut[p->topo_rank[i]], all);
        }
        moirai_problem_free(p);
    }
}

/* ---- classes ---- */

/* Two layers of a fork and a join, between three cuts. %s is put at the end of the second layer's first operator. */
#define LAYERS \
    "op a 1,1 > s:4\nop b 2,3 s > t:5 mem=7\nop c 2,3 s > u:5 mem=7\nop d 1,1 t u > v:4\n" \
    "op %s\nop f 2,3 v > x:5 mem=7\nop g 1,1 w x\n"
static const char second[] = "e 2,3 v > w:5 mem=7";

static int32_t classes_with(const char *operator, int32_t * block_class)
{
    char text[512];
    snprintf(text, sizeof text, DEVICES LAYERS, operator);
    moirai_problem *p = tiny_problem(text);
    decompose_cuts *s;
    assert_ok(decompose_cuts_new(&s, p));
    assert_int_equal(s->n_cuts, 3);
    memcpy(block_class, s->block_class, 4 * sizeof *block_class);
    int32_t n = s->n_classes, all = 0;
    for (int32_t c = 0; c < n; c++) {
        assert_int_equal(s->block_class[s->class_block[c]], c);
        all += s->class_count[c];
    }
    assert_int_equal(all, s->n_blocks);
    decompose_cuts_free(s);
    moirai_problem_free(p);
    return n;
}

static void test_decompose_classes_of_repeated_layers(void **state)
{
    (void)state;
    int32_t c[4];
    assert_int_equal(classes_with(second, c), 3); /* before the first cut, the layers, after the last */
    assert_int_equal(c[0], 0);
    assert_int_equal(c[1], 1);
    assert_int_equal(c[2], 1);
    assert_int_equal(c[3], 2);
}

/* Whatever a block's plans and bounds depend on tells blocks apart. */
static void test_decompose_classes_differ_by_everything_that_matters(void **state)
{
    (void)state;
    static const char *const other[] = {
        "e 2,4 v > w:5 mem=7",     /* a time */
        "e 2,- v > w:5 mem=7",     /* a device */
        "e 2,3 v > w:6 mem=7",     /* bytes of a tensor inside */
        "e 2,3 v > w:5 mem=8",     /* memory */
        "e 2,3 v > w:5 y:5 mem=7", /* an output that nobody reads here changes nothing: the same class */
        "e 2,3 v s > w:5 mem=7",   /* nor does an edge over the cut */
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        int32_t c[4], n = classes_with(other[i], c);
        assert_int_equal(n, i < 4 ? 4 : 3);
        assert_int_equal(c[2] == c[1], i >= 4);
    }
}

static void test_decompose_classes_see_groups(void **state)
{
    (void)state;
    int32_t c[4];
    assert_int_equal(classes_with("e 2,3 v > w:5 mem=7 group=g", c), 4);
    assert_true(c[1] != c[2]);
}

/* Blocks of a chain have nothing inside: the tensor between the cuts tells them apart, not the cuts' own times. */
static void test_decompose_classes_of_empty_blocks(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(DEVICES "op a 1,9 > s:4\nop b 5,5 s > t:4\nop c 7,1 t > u:8\nop d 1,1 u\n");
    decompose_cuts *s;
    assert_ok(decompose_cuts_new(&s, p));
    assert_int_equal(s->n_blocks, 5);
    assert_int_equal(s->block_class[1], s->block_class[2]);
    assert_true(s->block_class[3] != s->block_class[2]);
    assert_int_equal(s->class_count[s->block_class[1]], 2);
    decompose_cuts_free(s);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decompose_cuts_of_small_graphs),
        cmocka_unit_test(test_decompose_cuts_do_not_depend_on_the_file_s_order),
        cmocka_unit_test(test_decompose_cuts_that_no_edge_jumps_over),
        cmocka_unit_test(test_decompose_cuts_without_some_operators),
        cmocka_unit_test(test_decompose_cuts_are_the_definition_s),
        cmocka_unit_test(test_decompose_classes_of_repeated_layers),
        cmocka_unit_test(test_decompose_classes_differ_by_everything_that_matters),
        cmocka_unit_test(test_decompose_classes_see_groups),
        cmocka_unit_test(test_decompose_classes_of_empty_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
