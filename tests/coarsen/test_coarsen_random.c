/* GCOF on random graphs and random rules, against the definition; and on the whole zoo. */
#include <moirai/coarsen.h>
#include <moirai/zoo.h>
#include "support/check.h"
#include "util/util.h"

enum { MOST_OPS = 48, MOST_RULES = 6, TYPES = 3 };

/* A random graph, kept as plain lists so that it can be stored in any order. */
typedef struct random_graph {
    int n;
    int type[MOST_OPS], n_in[MOST_OPS], in[MOST_OPS][3], n_out[MOST_OPS]; /* in: 2 * producer + output */
} random_graph;

typedef struct random_rules {
    int n, length[MOST_RULES], type[MOST_RULES][4];
} random_rules;

static void graph_draw(random_graph *x, util_rng *rng)
{
    x->n = 1 + (int)util_rng_below(rng, MOST_OPS);
    for (int i = 0; i < x->n; i++) {
        x->type[i] = (int)util_rng_below(rng, TYPES);
        x->n_out[i] = 1 + (util_rng_below(rng, 5) == 0);
        x->n_in[i] = i ? (int)util_rng_below(rng, 4) : 0;
        for (int k = 0; k < x->n_in[i]; k++) {
            /* Mostly near neighbours, so that chains arise. */
            int back = 1 + (int)util_rng_below(rng, util_rng_below(rng, 3) ? 3 : (uint32_t)i);
            int p = UTIL_MAX(i - back, 0);

            x->in[i][k] = 2 * p + (int)util_rng_below(rng, (uint32_t)x->n_out[p]);
        }
    }
}

static moirai_graph *graph_build(const random_graph *x, const int *order)
{
    moirai_graph_builder *b;
    moirai_graph *g = NULL;
    char name[32];

    assert_ok(moirai_graph_builder_new(&b, "random"));
    for (int j = 0; j < x->n; j++) {
        int i = order ? order[j] : j;
        int32_t op;

        snprintf(name, sizeof name, "o%d", i);
        op = moirai_graph_builder_op(b, name, (const char *[]){"A", "B", "C"}[x->type[i]]);
        assert_true(op >= 0);
        for (int k = 0; k < x->n_out[i]; k++) {
            snprintf(name, sizeof name, "t%d", 2 * i + k);
            assert_ok(moirai_graph_builder_output(b, op, name, 100 + i));
        }
        for (int k = 0; k < x->n_in[i]; k++) {
            snprintf(name, sizeof name, "t%d", x->in[i][k]);
            assert_ok(moirai_graph_builder_input(b, op, name));
        }
        assert_ok(moirai_graph_builder_cost(b, op, i, 2 * i, 3 * i, 1000 + i));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static moirai_rules *rules_draw(random_rules *x, util_rng *rng)
{
    char text[256] = "";
    moirai_rules *r = NULL;

    x->n = 1 + (int)util_rng_below(rng, MOST_RULES);
    for (int i = 0; i < x->n; i++) {
        x->length[i] = 2 + (int)util_rng_below(rng, 3);
        for (int k = 0; k < x->length[i]; k++) {
            x->type[i][k] = (int)util_rng_below(rng, TYPES);
            strcat(text, (const char *[]){"a ", "B ", "c "}[x->type[i][k]]);
        }
        strcat(text, "\n");
    }
    assert_ok(moirai_rules_parse(&r, text, "random"));
    return r;
}

/* The only consumer, from the plain lists. */
static int next_of(const random_graph *x, int op)
{
    int only = -1;

    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->n_in[i]; k++)
            if (x->in[i][k] / 2 == op) {
                if (only >= 0 && only != i)
                    return -1;
                only = i;
            }
    return only;
}

/* Length of rule r if it is spelt from `op` on, else 0. */
static int spelt(const random_graph *x, const random_rules *rules, int r, int op)
{
    for (int k = 0; k < rules->length[r]; k++) {
        if (op < 0 || x->type[op] != rules->type[r][k])
            return 0;
        if (k + 1 < rules->length[r])
            op = next_of(x, op);
    }
    return rules->length[r];
}

/* owner[i]: number of the coarse operator that i is in; size[i]: how many are in it. Checks what is fused. */
static void owners(const random_graph *x, const random_rules *rules, const moirai_graph *c, int *owner, int *size)
{
    memset(owner, -1, (size_t)x->n * sizeof *owner);
    for (int32_t i = 0; i < c->n_ops; i++) {
        int n = c->op_member_off[i + 1] - c->op_member_off[i], first, previous = -1, found = 0;
        const char **member = n ? c->op_member + c->op_member_off[i] : &c->op_name[i];

        first = atoi(member[0] + 1);
        for (int k = 0; k < UTIL_MAX(n, 1); k++) {
            int op = atoi(member[k] + 1);

            assert_int_equal(owner[op], -1);
            owner[op] = i;
            size[op] = UTIL_MAX(n, 1);
            if (k)
                assert_int_equal(next_of(x, previous), op);
            previous = op;
        }
        assert_string_equal(member[UTIL_MAX(n, 1) - 1], c->op_name[i]);
        for (int r = 0; n && r < rules->n; r++)
            found |= spelt(x, rules, r, first) == n;
        assert_true(!n || found);
    }
    for (int i = 0; i < x->n; i++)
        assert_true(owner[i] >= 0);
}

/* Every match is in the result, or shares an operator with one that is in and not shorter. */
static void check_maximal(const random_graph *x, const random_rules *rules, const int *size)
{
    for (int r = 0; r < rules->n; r++)
        for (int i = 0; i < x->n; i++) {
            int n = spelt(x, rules, r, i), best = 0;

            for (int k = 0, op = i; k < n; k++, op = next_of(x, op))
                best = size[op] > 1 ? UTIL_MAX(best, size[op]) : best;
            assert_true(best >= n);
        }
}

static void check_sums(const moirai_graph *g, const moirai_graph *c)
{
    int64_t sum[4] = {0};

    for (int32_t i = 0; i < g->n_ops; i++) {
        sum[0] += g->op_weight_bytes[i];
        sum[1] += g->op_flops[i];
    }
    for (int32_t i = 0; i < c->n_ops; i++) {
        sum[2] += c->op_weight_bytes[i];
        sum[3] += c->op_flops[i];
    }
    assert_int_equal(sum[0], sum[2]);
    assert_int_equal(sum[1], sum[3]);
}

/* Building the coarse graph fails on a cycle: that it succeeds is the DAG property. */
static void test_coarsen_random_graphs_and_rules(void **state)
{
    util_rng rng;

    (void)state;
    util_rng_seed(&rng, 20);
    for (int round = 0; round < 1000; round++) {
        random_graph x;
        random_rules rules;
        int owner[MOST_OPS], size[MOST_OPS], again[MOST_OPS], order[MOST_OPS];
        moirai_rules *r = rules_draw(&rules, &rng);
        moirai_graph *g, *c, *shuffled, *d;
        int64_t count[MOST_RULES], fused = 0;

        graph_draw(&x, &rng);
        g = graph_build(&x, NULL);
        assert_ok(moirai_coarsen(&c, g, r, count));
        owners(&x, &rules, c, owner, size);
        check_maximal(&x, &rules, size);
        check_sums(g, c);
        for (int32_t i = 0; i < c->n_ops; i++)
            fused += c->op_member_off[i + 1] > c->op_member_off[i];
        for (int k = 0; k < rules.n; k++)
            fused -= count[k];
        assert_int_equal(fused, 0);

        for (int i = 0; i < x.n; i++) {
            int j = (int)util_rng_below(&rng, (uint32_t)i + 1);

            order[i] = order[j];
            order[j] = i;
        }
        shuffled = graph_build(&x, order);
        assert_ok(moirai_coarsen(&d, shuffled, r, NULL));
        owners(&x, &rules, d, again, size);
        for (int i = 0; i < x.n; i++)
            assert_string_equal(c->op_name[owner[i]], d->op_name[again[i]]);
        moirai_graph_free(g);
        moirai_graph_free(c);
        moirai_graph_free(shuffled);
        moirai_graph_free(d);
        moirai_rules_free(r);
    }
}

/* Operators left by each rule set. Per layer of H heads, onnxruntime leaves 4 H + 8: per head q, k, v with their biases
 * (k with its transpose) and the attention; norm, concat, projection, add, norm, fc1 with bias and activation, fc2,
 * add. */
static void test_coarsen_zoo_counts(void **state)
{
    static const struct {
        const char *name;
        int32_t eigen, onnxruntime;
    } expected[] = {
        {"swin-1.8B", 6496, 32 * 72},          {"swin-6.6B", 14352, 48 * 104},
        {"swin-13B", 22120, 56 * 136},         {"gpt3-330M", 4872, 24 * 72},
        {"gpt3-1.3B", 9480, 24 * 136},         {"gpt3-2.7B", 12640, 32 * 136},
        {"gpt3-13B", 19640, 40 * 168},         {"alphafold2-87M", 5136, 48 * 40},
        {"alphafold2-930M", 12992, 64 * 72},   {"alphafold2-2.4B", 37920, 96 * 136},
        {"alphafold2-3.2B", 50560, 128 * 136}, {"inception-tiny", 63 - 37, 63 - 37},
    };
    moirai_rules *eigen, *onnxruntime;

    (void)state;
    assert_ok(moirai_rules_open(&eigen, "eigen"));
    assert_ok(moirai_rules_open(&onnxruntime, "onnxruntime"));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        moirai_graph *g, *c;

        assert_ok(moirai_zoo_graph(&g, expected[i].name, 4));
        if (g->n_ops < 10000) { /* the larger ones have the same layers */
            assert_ok(moirai_coarsen(&c, g, eigen, NULL));
            assert_int_equal(c->n_ops, expected[i].eigen);
            moirai_graph_free(c);
        }
        assert_ok(moirai_coarsen(&c, g, onnxruntime, NULL));
        assert_int_equal(c->n_ops, expected[i].onnxruntime);
        moirai_graph_free(c);
        moirai_graph_free(g);
    }
    moirai_rules_free(eigen);
    moirai_rules_free(onnxruntime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coarsen_random_graphs_and_rules),
        cmocka_unit_test(test_coarsen_zoo_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
