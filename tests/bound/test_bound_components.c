/* Every registered bound on problems worked out on paper, and the certificates that carry them, leaf by leaf. */
#include <yyjson.h>
#include <moirai/bound.h>
#include <moirai/prove.h>
#include <moirai/zoo.h>

#include "bound/certificate.h"
#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "support/proving.h"

static int64_t value_of(const moirai_problem *p, const char *name)
{
    moirai_budget budget;
    int64_t lower = -7;
    moirai_budget_init(&budget);
    budget.threads = 1;
    const moirai_bound *b = moirai_bound_find(name);
    assert_non_null(b);
    assert_ok(b->find(&lower, p, &budget));
    return lower;
}

/* Found by name, all with a summary, and the cheap ones first; others may come in between. */
static void test_bound_registry(void **state)
{
    (void)state;
    static const char *const names[] = {"critical-path", "load",      "transfers", "blocks",   "prices-1",
                                        "spine",         "prices-2",  "prices-3",  "prices-4", "bytes",
                                        "loads",         "intervals", "search"};
    size_t known = 0;
    for (int i = 0; i < moirai_bound_count(); i++) {
        const moirai_bound *b = moirai_bound_at(i);
        assert_true(strlen(b->summary) > 10);
        assert_ptr_equal(moirai_bound_find(b->name), b);
        known += known < sizeof names / sizeof *names && strcmp(b->name, names[known]) == 0;
    }
    assert_int_equal(known, sizeof names / sizeof *names);
    assert_null(moirai_bound_find("guess"));
}

typedef struct expected {
    const char *name;
    int64_t ns;
} expected;

static void has_bounds(const char *text, const expected *list)
{
    moirai_problem *p = tiny_problem(text);
    for (; list->name; list++)
        if (value_of(p, list->name) != list->ns)
            fail_msg("%s: %lld, not %lld", list->name, (long long)value_of(p, list->name), (long long)list->ns);
    moirai_problem_free(p);
}

/* 1 + 10 + 1 on the longest path; 10 + 10 of work and two cuts over two devices; the block's prices say 16. */
static void test_bound_of_two_operators(void **state)
{
    (void)state;
    has_bounds(TINY_TWO, (expected[]){{"critical-path", 12},
                                      {"load", 11},
                                      {"transfers", 12},
                                      {"blocks", 12},
                                      {"prices-1", 18},
                                      {"prices-2", 18},
                                      {"prices-3", 18},
                                      {"prices-4", 18},
                                      {"search", 18},
                                      {NULL, 0}});
}

static void test_bound_of_three_operators(void **state)
{
    (void)state;
    has_bounds(TINY_THREE, (expected[]){{"critical-path", 120},
                                        {"transfers", 120},
                                        {"blocks", 120},
                                        {"prices-1", 220},
                                        {"search", 220},
                                        {NULL, 0}});
}

/* Only transfers see that b must go to B: 5 + 7 + 6; ports in the block make it 5 + 7 + 8 + 6. */
static void test_bound_of_transfers(void **state)
{
    (void)state;
    has_bounds("device A 9\ndevice B 9\nop a 5,- > s:7\nop b -,6 s\n",
               (expected[]){{"critical-path", 11}, {"transfers", 18}, {"blocks", 18}, {"search", 18}, {NULL, 0}});
    has_bounds("device A 9\ndevice B 9\nop a 5,- > s:7 t:8\nop b -,6 s t\n",
               (expected[]){{"critical-path", 11}, {"transfers", 19}, {"blocks", 26}, {"search", 26}, {NULL, 0}});
}

static void test_bound_of_memory(void **state)
{
    (void)state;
    has_bounds(TINY_TIGHT,
               (expected[]){
                   {"critical-path", 20}, {"blocks", 20}, {"prices-1", 20}, {"bytes", 40}, {"search", 40}, {NULL, 0}});
}

/* A chain on one device leaves no bound anything to miss. */
static void test_bound_of_a_chain(void **state)
{
    (void)state;
    has_bounds("device A 9\nop a 3 > s:1\nop b 4 s > t:1\nop c 5 t\n", (expected[]){{"critical-path", 12},
                                                                                    {"load", 12},
                                                                                    {"transfers", 12},
                                                                                    {"blocks", 12},
                                                                                    {"prices-1", 12},
                                                                                    {"prices-4", 12},
                                                                                    {"bytes", 12},
                                                                                    {"search", 12},
                                                                                    {NULL, 0}});
}

/* Too large for the exhaustive search: it does not claim anything. Problems without a plan are an error. */
static void test_bound_search_knows_its_limits(void **state)
{
    (void)state;
    char text[4096];
    int n = sprintf(text, "device A 99\n");
    for (int i = 0; i < 49; i++)
        n += sprintf(text + n, "op o%d 1 > t%d:0\n", i, i);
    moirai_problem *p = tiny_problem(text);
    assert_int_equal(value_of(p, "search"), MOIRAI_UNKNOWN);
    moirai_problem_free(p);
    p = tiny_problem("device A 9\ndevice B 9\nop a 1,1 mem=6\nop b 1,1 mem=6\nop c 1,1 mem=6\n");
    moirai_budget budget;
    int64_t lower;
    moirai_budget_init(&budget);
    assert_int_equal(moirai_bound_find("search")->find(&lower, p, &budget), MOIRAI_EINFEASIBLE);
    moirai_problem_free(p);
}

/* An encoder and a decoder that shares its output: without what floats it is a chain of 30 + 30 operators. */
static void test_bound_of_a_spine(void **state)
{
    (void)state;
    enum { LAYERS = 30 };
    char text[8192];
    int n = sprintf(text, "device A 1000\nop e0 10 > e0:1\n");
    for (int i = 1; i < LAYERS; i++)
        n += sprintf(text + n, "op e%d 10 e%d > e%d:1\n", i, i - 1, i);
    for (int i = 0; i < LAYERS; i++)
        n += sprintf(text + n, "op k%d 2 e%d > k%d:1\n", i, LAYERS - 1, i);
    n += sprintf(text + n, "op d0 10 k0 > d0:1\n");
    for (int i = 1; i < LAYERS; i++)
        n += sprintf(text + n, "op d%d 10 d%d k%d > d%d:1\n", i, i - 1, i, i);
    moirai_problem *p = tiny_problem(text);
    int64_t spine = value_of(p, "spine"), path = value_of(p, "critical-path");
    assert_int_equal(path, 2 * LAYERS * 10 + 2);
    assert_true(spine >= path && spine <= 2 * LAYERS * 10 + 2 * LAYERS);
    moirai_problem_free(p);
    p = tiny_problem(TINY_TWO); /* has cuts: no spine is needed, and 0 would look like an answer */
    assert_int_equal(value_of(p, "spine"), MOIRAI_UNKNOWN);
    moirai_problem_free(p);
}

/* More resources than the master of prices on loads takes: no bound of that kind, and no failure either. */
static void test_bound_of_too_many_channels(void **state)
{
    (void)state;
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    assert_ok(moirai_zoo_graph(&g, "inception-tiny", 4));
    assert_ok(moirai_cluster_open(&c, "32x v100, 8Gbps 5us"));
    assert_ok(moirai_problem_new(
        &p, g, c, &(moirai_problem_options){.congestion = MOIRAI_CONGESTION_CHANNEL, .cost_model = "roofline"}));
    moirai_graph_free(g);
    moirai_cluster_free(c);
    assert_int_equal(value_of(p, "loads"), MOIRAI_UNKNOWN);
    assert_true(value_of(p, "shifts") > 0); /* has prices without it */
    moirai_problem_free(p);
}

static void test_bound_stops_when_asked(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_THREE);
    moirai_interrupt now = {0};
    moirai_budget budget;
    moirai_interrupt_raise(&now);
    moirai_budget_init(&budget);
    budget.interrupt = &now;
    for (int i = 0; i < moirai_bound_count(); i++) {
        int64_t lower = -1;
        assert_ok(moirai_bound_at(i)->find(&lower, p, &budget));
        assert_true(lower == MOIRAI_UNKNOWN || (lower >= 0 && lower <= 220)); /* valid, whatever it is */
    }
    moirai_problem_free(p);
}

/* ---- certificates ---- */

typedef struct certified {
    moirai_problem *p;
    pair_chain *c;
    char *text;
    yyjson_doc *doc;
} certified;

static yyjson_val *certify(certified *x, const char *text, int32_t levels)
{
    size_t length;
    x->p = tiny_problem(text);
    assert_ok(pair_chain_new(&x->c, x->p));
    assert_ok(pair_chain_open_all(x->c, 1, &(util_stop){0}));
    bound_certify_task job = {
        .goal_ns = INT64_MAX, .levels = levels, .nodes = 20000, .effort = 1, .threads = 1, .seed = 1};
    assert_ok(bound_certify(x->c, &job));
    int64_t bound = pair_chain_path(x->c, PAIR_CHAIN_CERTIFIED, NULL);
    x->text = bound_certificate_text(&(bound_certificate){.c = x->c, .lower_bound_ns = bound}, &length);
    assert_non_null(x->text);
    assert_ok(util_json_open(&x->doc, x->text, length, "c.json", "moirai-certificate"));
    return yyjson_doc_get_root(x->doc);
}

static void forget(certified *x)
{
    yyjson_doc_free(x->doc);
    free(x->text);
    pair_chain_free(x->c);
    moirai_problem_free(x->p);
}

static int64_t number(yyjson_val *object, const char *key)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_int(value))
        fail_msg("no number '%s'", key);
    return yyjson_get_sint(value);
}

/* A list as text: "0 3". A static buffer. */
static const char *list(yyjson_val *object, const char *key)
{
    static char text[256];
    int n = 0;
    size_t i, max;
    yyjson_val *value;
    *text = '\0';
    if (!yyjson_is_arr(yyjson_obj_get(object, key)))
        return "none";
    yyjson_arr_foreach(yyjson_obj_get(object, key), i, max, value)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", i ? " " : "", (long long)yyjson_get_sint(value));
    return text;
}

static yyjson_val *pair_of(yyjson_val *root, size_t class_)
{
    yyjson_val *pairs = yyjson_obj_get(yyjson_arr_get(yyjson_obj_get(root, "classes"), class_), "pairs");
    assert_int_equal(yyjson_arr_size(pairs), 1);
    return yyjson_arr_get(pairs, 0);
}

/* Everything but the price itself is known: one leaf, one price on A that excludes 15. */
static void test_bound_certificate_of_two_operators(void **state)
{
    (void)state;
    certified x;
    yyjson_val *root = certify(&x, TINY_TWO, 1);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "problem")), "tiny");
    assert_int_equal(number(root, "operators"), 4);
    assert_string_equal(list(root, "cuts"), "0 3");
    assert_string_equal(list(root, "block_class"), "0 1 2");
    assert_int_equal(number(root, "lower_bound_ns"), 18);
    assert_int_equal(number(root, "certified_bound_ns"), 18);
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(root, "classes")), 3);
    yyjson_val *middle = yyjson_arr_get(yyjson_obj_get(root, "classes"), 1), *pair = pair_of(root, 1);
    assert_string_equal(list(middle, "component_kind"), "0 0");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(middle, "trees")), 1);
    assert_null(yyjson_obj_get(middle, "shared"));
    assert_int_equal(number(pair, "entry"), 0);
    assert_int_equal(number(pair, "exit"), 0);
    assert_int_equal(number(pair, "lower_ns"), 16);
    yyjson_val *leaves = yyjson_obj_get(pair, "leaves"), *leaf = yyjson_arr_get(leaves, 0);
    assert_int_equal(yyjson_arr_size(leaves), 1);
    assert_null(yyjson_obj_get(leaf, "receivers"));
    assert_null(yyjson_obj_get(leaf, "counts"));
    assert_int_equal(number(leaf, "length_ns"), 15);
    assert_int_equal(number(leaf, "step_ns"), 1);
    assert_string_equal(list(leaf, "buckets"), "0 16");
    yyjson_val *prices = yyjson_obj_get(leaf, "prices");
    assert_int_equal(yyjson_get_sint(yyjson_arr_get(prices, 0)), 0); /* device A, bucket 0 */
    assert_int_equal(yyjson_get_sint(yyjson_arr_get(prices, 1)), 0);
    assert_true(yyjson_get_sint(yyjson_arr_get(prices, 2)) > 0);
    forget(&x);
}

/* Three leaves: nobody receives the tensor; B does, and has at most one; B has two or more. Branches as fives, their
 * prices beside. */
static void test_bound_certificate_of_three_operators(void **state)
{
    (void)state;
    certified x;
    yyjson_val *root = certify(&x, TINY_THREE, 1), *leaf;
    yyjson_val *leaves = yyjson_obj_get(pair_of(root, 1), "leaves");
    assert_int_equal(number(yyjson_arr_get(yyjson_obj_get(root, "classes"), 1), "shared"), 0);
    assert_int_equal(yyjson_arr_size(leaves), 3);
    size_t i, max, nobody = 0, low = 0, high = 0;
    yyjson_arr_foreach(leaves, i, max, leaf) {
        assert_int_equal(number(leaf, "length_ns"), 199);
        if (strcmp(list(leaf, "receivers"), "") == 0) {
            nobody++;
            continue;
        }
        assert_string_equal(list(leaf, "receivers"), "1");
        const char *counts = list(leaf, "counts");
        low += !strcmp(counts, "0 0 1 0 1") || !strcmp(counts, "0 0 0 0 1");
        high += !strcmp(counts, "0 0 1 2 3") || !strcmp(counts, "0 0 0 2 3");
        assert_int_equal(yyjson_arr_size(yyjson_obj_get(leaf, "count_prices")), 1);
    }
    assert_true(nobody == 1 && low == 1 && high == 1);
    moirai_proof proof;
    assert_ok(proving_text(&proof, x.p, x.text, strlen(x.text), "c.json"));
    assert_int_equal(proof.proven_ns, 220);
    assert_int_equal(proof.leaves, 3);
    forget(&x);
}

/* Where the longest path says all there is to say, pairs are left out. */
static void test_bound_certificate_leaves_out_what_the_verifier_finds(void **state)
{
    (void)state;
    certified x;
    yyjson_val *root = certify(&x, "device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s\n", 2), *class_;
    size_t i, max;
    yyjson_arr_foreach(yyjson_obj_get(root, "classes"), i, max, class_)
        assert_int_equal(yyjson_obj_size(class_), 0);
    assert_int_equal(number(root, "certified_bound_ns"), 18);
    forget(&x);
}

/* Operators in a chain inside a block: the tree that prices it is written as place, output, place. */
static void test_bound_certificate_writes_trees(void **state)
{
    (void)state;
    certified x;
    yyjson_val *root = certify(
        &x,
        "flow edge\ncongestion none\ndevice A 9\ndevice B 9\nop in 1,- > s:0\nop u 10,- s > a:3\nop v -,10 a > b:3\n"
        "op w 10,- s > c:3\nop x -,10 c > d:3\nop out 1,- b d\n",
        4);
    yyjson_val *trees = yyjson_obj_get(yyjson_arr_get(yyjson_obj_get(root, "classes"), 1), "trees");
    assert_int_equal(yyjson_arr_size(trees), 1);
    yyjson_val *tree = yyjson_arr_get(trees, 0);
    assert_int_equal(yyjson_arr_size(tree), 3);
    assert_int_equal(yyjson_get_sint(yyjson_arr_get(tree, 0)), 0);
    assert_int_equal(yyjson_get_sint(yyjson_arr_get(tree, 1)), 0);
    assert_int_equal(yyjson_get_sint(yyjson_arr_get(tree, 2)), 1);
    moirai_proof proof;
    assert_ok(proving_text(&proof, x.p, x.text, strlen(x.text), "c.json"));
    assert_true(proof.proven_ns >= 36 && proof.proven_ns <= 38);
    forget(&x);
}

/* The part about bytes: units, one price per device, what is proven with it. */
static void test_bound_certificate_of_memory(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_TIGHT);
    pair_chain *c;
    bytes_prices *m;
    int64_t lower;
    size_t length;
    assert_ok(pair_chain_new(&c, p));
    assert_ok(pair_chain_open_all(c, 1, &(util_stop){0}));
    assert_ok(bytes_prices_new(&m, c));
    bytes_bound_task job = {.upper_ns = 60, .rounds = 12, .buckets = 8, .solves = 20, .threads = 1};
    assert_ok(bytes_bound(&lower, m, &job));
    assert_ok(bytes_settle(m, &job));
    char *text = bound_certificate_text(&(bound_certificate){.c = c, .memory = m, .lower_bound_ns = 40}, &length);
    yyjson_doc *doc;
    assert_ok(util_json_open(&doc, text, length, "c.json", "moirai-certificate"));
    yyjson_val *root = yyjson_doc_get_root(doc), *memory = yyjson_obj_get(root, "memory");
    assert_int_equal(number(memory, "unit"), DECOMPOSE_MOST_UNITS);
    char prices[64];
    snprintf(prices, sizeof prices, "%lld 0", (long long)(2 * DECOMPOSE_MOST_UNITS));
    assert_string_equal(list(memory, "byte_prices"), prices);
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(memory, "pairs")), 0);
    assert_int_equal(number(root, "certified_bound_ns"), 40);
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, text, length, "c.json"));
    assert_int_equal(proof.proven_ns, 40);
    yyjson_doc_free(doc);
    free(text);
    bytes_prices_free(m);
    pair_chain_free(c);
    moirai_problem_free(p);
}

static void test_bound_certificate_as_a_file(void **state)
{
    (void)state;
    certified x;
    certify(&x, TINY_TWO, 1);
    char *path = temporary_path("c.json");
    moirai_proof proof;
    assert_ok(bound_certificate_write(&(bound_certificate){.c = x.c, .lower_bound_ns = 18}, path));
    assert_ok(proving_file(&proof, x.p, path));
    assert_int_equal(proof.proven_ns, 18);
    remove(path);
    assert_int_equal(
        bound_certificate_write(&(bound_certificate){.c = x.c, .lower_bound_ns = 18}, "/nonexistent/c.json"),
        MOIRAI_EFAIL);
    forget(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_registry),
        cmocka_unit_test(test_bound_of_two_operators),
        cmocka_unit_test(test_bound_of_three_operators),
        cmocka_unit_test(test_bound_of_transfers),
        cmocka_unit_test(test_bound_of_memory),
        cmocka_unit_test(test_bound_of_a_chain),
        cmocka_unit_test(test_bound_search_knows_its_limits),
        cmocka_unit_test(test_bound_of_a_spine),
        cmocka_unit_test(test_bound_of_too_many_channels),
        cmocka_unit_test(test_bound_stops_when_asked),
        cmocka_unit_test(test_bound_certificate_of_two_operators),
        cmocka_unit_test(test_bound_certificate_of_three_operators),
        cmocka_unit_test(test_bound_certificate_leaves_out_what_the_verifier_finds),
        cmocka_unit_test(test_bound_certificate_writes_trees),
        cmocka_unit_test(test_bound_certificate_of_memory),
        cmocka_unit_test(test_bound_certificate_as_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
