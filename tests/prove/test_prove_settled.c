/* Sends that take no time (docs/theory.md, Lemmas 28 to 32). They hold no port, so that a plan may have one late, within
 * another send, where a leaf about arrivals excludes it: what is proven must still hold, since the plan in which such
 * sends come at once lies in another leaf. */
#include <moirai/plan.h>

#include "support/check.h"
#include "support/false_certificate.h"
#include "support/scale.h"
#include "support/small_problem.h"
#include "support/tiny.h"
#include "util/util.h"

#define PROBLEMS TEST_SHARE(150)

/* ---- by hand ---- */

/* The tensor is on B at once and on C after 10: x there takes 6, y on C 4, the results no time. Hence 14 between the cuts. */
static const small_op two_readers[] = {{"in", "1,null,null", "", "s:0[[0,0,10],[9,0,9],[9,9,0]]", 0, NULL},
                                       {"x", "null,6,null", "s", "t:0[[0,0,0],[0,0,0],[0,0,0]]", 0, NULL},
                                       {"y", "null,null,4", "s", "u:0[[0,0,0],[0,0,0],[0,0,0]]", 0, NULL},
                                       {"out", "1,null,null", "t,u", "", 0, NULL},
                                       {NULL, NULL, NULL, NULL, 0, NULL}};
#define KINDS "\"component_kind\": [0, 1], \"trees\": [[], []], \"shared\": 0"
#define AT_ONCE "{\"receivers\": [1, 2], \"counts\": [-1, 0, 1, 0, 4]"
#define LATE "{\"receivers\": [1, 2], \"counts\": [-1, 0, 1, 5, 9223372036854775807]"
#define EXCLUDES(length, steps) \
    ", \"length_ns\": " #length ", \"step_ns\": 1, \"buckets\": [0, " #steps "], \"prices\": []}"

/* The certificate with these leaves about B before C, and the other orders. */
static const char *with(const moirai_problem *p, const char *leaves)
{
    char text[2048];
    snprintf(text, sizeof text,
             "\"leaves\": [{\"receivers\": []}, {\"receivers\": [1]}, {\"receivers\": [2]}, {\"receivers\": [2, "
             "1]}, %s]",
             leaves);
    return false_certificate_between(p, 0, 0, KINDS, text);
}

/* Puts off the send to B, which takes no time, and x with it. */
static void delay(const moirai_problem *p, moirai_plan *plan, int64_t by_ns)
{
    int32_t x = tiny_op(p, "x");
    plan->op_start_ns[x] += by_ns;
    plan->op_finish_ns[x] += by_ns;
    for (int32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfer[i].to == 1 || plan->transfer[i].from == 1) {
            plan->transfer[i].start_ns += by_ns;
            plan->transfer[i].finish_ns += by_ns;
        }
}

static void test_prove_settled_a_delayed_send_lies_in_an_excluded_leaf(void **state)
{
    (void)state;
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .congestion = "port", .op = two_readers});
    moirai_plan *plan = tiny_place(p, "heft");
    assert_int_equal(plan->makespan_ns, 16);
    delay(p, plan, 5); /* to 5 after the entry's end, while the port sends to C */
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    moirai_plan_free(plan);
    /* On B at 5 or later: "then the send to C is behind it, and y ends at 19", which is not so in that plan. */
    assert_int_equal(false_certificate_proves(p, with(p, AT_ONCE "}, " LATE EXCLUDES(18, 19))), 16);
    false_certificate_rejected(p, with(p, AT_ONCE "}, " LATE EXCLUDES(19, 20)),
                               "prices do not exclude a length of 19 ns");
    /* The plan that stands for it is in the other leaf: that has to be there, and excludes nothing of 14. */
    false_certificate_rejected(p, with(p, LATE EXCLUDES(18, 19)), "the leaves leave cases out");
    false_certificate_rejected(p, with(p, AT_ONCE EXCLUDES(14, 15) ", " LATE EXCLUDES(18, 19)),
                               "prices do not exclude a length of 14 ns");
    moirai_problem_free(p);
}

/* ---- the most that leaves without prices exclude ---- */

#define MOST_LEAVES 16
#define LONGEST 60 /* more than any plan here takes */

typedef struct case_leaf {
    char says[128]; /* receivers and counts */
    int length;     /* excluded, or -1 */
} case_leaf;

typedef struct enemy {
    const moirai_problem *p;
    util_rng rng;
    int sent_ns[2]; /* from A, to B and to C */
    int n;
    case_leaf leaf[MOST_LEAVES];
} enemy;

static int below(enemy *x, int n)
{
    return (int)util_rng_below(&x->rng, (uint32_t)n);
}

/* A table of transfers between three devices, of which half take no time. */
static void write_table(enemy *x, char *out, size_t size, const char *name)
{
    int t[6];
    for (int i = 0; i < 6; i++)
        t[i] = below(x, 2) ? 0 : 1 + below(x, 9);
    if (*name == 's')
        memcpy(x->sent_ns, t, sizeof x->sent_ns);
    snprintf(out, size, "%s:0[[0,%d,%d],[%d,0,%d],[%d,%d,0]]", name, t[0], t[1], t[2], t[3], t[4], t[5]);
}

/* Readers of the entry's tensor on one device each or on any, results back to the exit on A. */
static moirai_problem *draw_problem(enemy *x)
{
    static const char *const congestion[] = {"port", "port", "channel", "none"};
    char sent[64], result[2][64], times[2][32];
    write_table(x, sent, sizeof sent, "s");
    for (int i = 0; i < 2; i++) {
        int ns = 1 + below(x, 6), only = below(x, 2) ? 2 + i : below(x, 4); /* 0: any device */
        write_table(x, result[i], sizeof result[i], i ? "u" : "t");
        if (only)
            snprintf(times[i], sizeof times[i],
                     only == 1   ? "%d,null,null"
                     : only == 2 ? "null,%d,null"
                                 : "null,null,%d",
                     ns);
        else
            snprintf(times[i], sizeof times[i], "%d,%d,%d", 6 + ns, ns, 1 + below(x, 6));
    }
    small_op op[] = {{"in", "1,null,null", "", sent, 0, NULL},
                     {"x", times[0], "s", result[0], 0, NULL},
                     {"y", times[1], "s", result[1], 0, NULL},
                     {"out", "1,null,null", "t,u", "", 0, NULL},
                     {NULL, NULL, NULL, NULL, 0, NULL}};
    return small_problem(&(small_spec){.n_devices = 3, .congestion = congestion[below(x, 4)], .op = op});
}

/* Every order of receivers, each divided by when the tensor is on one of them. */
static void draw_leaves(enemy *x)
{
    static const char *const order[] = {"[]", "[1]", "[2]", "[1, 2]", "[2, 1]"};
    x->n = 0;
    for (int i = 0; i < (x->p->congestion == MOIRAI_CONGESTION_PORT ? 5 : 4); i++) {
        int on = i == 0 ? 0 : i < 3 ? i : 1 + below(x, 2), least = below(x, 12);
        if (on && below(x, 2)) /* as early as it can be, also behind the other */
            least = x->sent_ns[on - 1] + (i < 3 ? 0 : x->sent_ns[2 - on]);
        for (int late = 0; late < (on ? 2 : 1); late++) {
            case_leaf *leaf = &x->leaf[x->n++];
            leaf->length = -1;
            snprintf(leaf->says, sizeof leaf->says, "\"receivers\": %s", order[i]);
            size_t used = strlen(leaf->says);
            if (on && late)
                snprintf(leaf->says + used, sizeof leaf->says - used, ", \"counts\": [-1, 0, %d, %d, %lld]", on,
                         least + 1, (long long)INT64_MAX);
            else if (on)
                snprintf(leaf->says + used, sizeof leaf->says - used, ", \"counts\": [-1, 0, %d, 0, %d]", on, least);
        }
    }
}

static const char *certificate(const enemy *x)
{
    char text[8192] = "\"leaves\": [";
    size_t used = strlen(text);
    for (int i = 0; i < x->n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s{%s", i ? ", " : "", x->leaf[i].says);
        if (x->leaf[i].length >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     ", \"length_ns\": %d, \"step_ns\": 1, \"buckets\": [0, %d], \"prices\": []",
                                     x->leaf[i].length, x->leaf[i].length + 1);
        used += (size_t)snprintf(text + used, sizeof text - used, "}");
    }
    snprintf(text + used, sizeof text - used, "]");
    return false_certificate_between(x->p, 0, 0, KINDS, text);
}

static void test_prove_settled_leaves_about_arrivals_exclude_no_plan(void **state)
{
    (void)state;
    int64_t above = 0;
    for (uint64_t seed = 0; seed < (uint64_t)PROBLEMS; seed++) {
        enemy x = {0};
        util_rng_seed(&x.rng, seed);
        moirai_problem *p = draw_problem(&x);
        x.p = p;
        draw_leaves(&x);
        for (int i = 0; i < x.n; i++) { /* the most that each of them gets away with */
            int good = -1;
            for (int low = 0, high = LONGEST; low <= high;) {
                x.leaf[i].length = (low + high) / 2;
                bool holds = false_certificate_holds(p, certificate(&x));
                good = holds ? x.leaf[i].length : good;
                low = holds ? x.leaf[i].length + 1 : low;
                high = holds ? high : x.leaf[i].length - 1;
            }
            x.leaf[i].length = good;
            above += good >= 0;
        }
        false_certificate_proves(p, certificate(&x));
        moirai_problem_free(p);
    }
    assert_true(above > PROBLEMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_settled_a_delayed_send_lies_in_an_excluded_leaf),
        cmocka_unit_test(test_prove_settled_leaves_about_arrivals_exclude_no_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
