/* The cheapest schedule of each component under given prices, worked out on paper; and when a shared tensor is where.
 */
#include "pricing/pricer_state.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "util/util.h"

static const pricing_sending anyhow = {.fixed = false};

typedef struct fixture {
    tiny_block t;
    pricing_pricer *w;
    pricing_grid grid;
    int64_t price[512];
} fixture;

/* Case and grid of the fixture from here on. */
static void set_case(fixture *f, const pricing_sending *how, const pricing_branch *branch)
{
    pricing_pricer_set(f->w, &(pricing_case){.how = how, .n_branches = branch != NULL, .branch = branch}, &f->grid);
}

/* The block between the first two cuts, entry and exit on A, T = length in steps of `step`. */
static void open_pricer(fixture *f, const char *text, int64_t length, int64_t step, int32_t buckets,
                        const pricing_sending *how)
{
    *f = (fixture){.t = tiny_block_open(text, 1)};
    decompose_block_pin(f->t.b, 0, 0);
    assert_ok(pricing_pricer_new(&f->w, f->t.b, 600));
    pricing_grid_init(&f->grid, length, step, buckets);
    set_case(f, how, NULL);
}

static void close_pricer(fixture *f)
{
    pricing_pricer_free(f->w);
    tiny_block_close(&f->t);
}

static int64_t cost_of(fixture *f)
{
    pricing_prices prices = {.resource = f->price};
    return pricing_pricer_cost(f->w, &prices, NULL, NULL);
}

/* Within 15 both stay on A and pay 10 each; from 16 on they can go to B, where nothing costs. */
static void test_pricing_cost_of_two_operators(void **state)
{
    (void)state;
    static const struct {
        int64_t length, step, cost;
    } list[] = {
        {15, 1, 20}, {16, 1, 0},  {10, 1, 20}, {9, 1, PRICING_NONE}, /* nobody is done by 9 */
        {13, 2, 20}, {14, 2, 20}, {15, 2, 0},                        /* steps round the way to B and back down */
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        open_pricer(&f, TINY_TWO, list[i].length, list[i].step, 1, &anyhow);
        f.price[0] = 1; /* device A */
        assert_int_equal(cost_of(&f), list[i].cost);
        close_pricer(&f);
    }
}

/* Price 1 until 8 and 3 behind: ten nanoseconds in fifteen cost least from 0 on, 8 * 1 + 2 * 3; the other way round
 * from 5 on. */
static void test_pricing_cost_by_buckets(void **state)
{
    (void)state;
    fixture f;
    open_pricer(&f, TINY_TWO, 15, 1, 2, &anyhow);
    assert_int_equal(f.grid.bucket_step[1], 8);
    f.price[0] = 1;
    f.price[1] = 3;
    assert_int_equal(cost_of(&f), 2 * (8 + 2 * 3));
    f.price[0] = 3;
    f.price[1] = 1;
    assert_int_equal(cost_of(&f), 2 * (3 * 3 + 7));
    close_pricer(&f);
}

/* A task may start anywhere within a step: where its end meets a boundary is cheapest here, at 6 of steps of 4. */
static void test_pricing_cost_at_a_kink(void **state)
{
    (void)state;
    fixture f;
    open_pricer(&f,
                "flow edge\ncongestion none\ndevice A 9\nop in 1 > s:0\nop x 6 s > t:0\nop y 6 s > u:0\nop out 1 t u\n",
                16, 4, 3, &anyhow);
    f.grid.bucket_step[1] = 1; /* 0..4, 4..12, 12..16 */
    f.grid.bucket_step[2] = 3;
    f.price[0] = 9;
    f.price[1] = 1;
    f.price[2] = 9;
    assert_int_equal(cost_of(&f), 2 * 6);
    close_pricer(&f);
}

/* What resource r costs from `from` to `to`, one nanosecond after the other. */
static int64_t worth(const fixture *f, int32_t r, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (int64_t t = from, i = 0; t < to; t++) {
        while (f->grid.bucket_step[i + 1] <= t / f->grid.step_ns)
            i++;
        sum += f->price[r * f->grid.n_buckets + i];
    }
    return sum;
}

/* Lines of costs are made of pieces between the buckets' ends: the least over all starts within a step, at two ports, a
 * third of it for each reader. */
static void test_pricing_transfers_cost_the_least_within_a_step(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 5);
    for (int32_t buckets = 1; buckets <= 9; buckets++)
        for (int64_t step = 1; step <= 23; step += 2) {
            fixture f;
            open_pricer(&f, TINY_THREE, 240 + step, step, buckets, &anyhow);
            for (int32_t i = 0; i < 6 * f.grid.n_buckets; i++)
                f.price[i] = (int64_t)util_rng_below(&rng, 50);
            assert_true(cost_of(&f) < PRICING_NONE);
            const int64_t *line = pricing_pricer_transfer_costs(f.w, f.w->shared_tensor, 0, 1);
            for (int64_t g = 0; g < f.grid.n_steps; g++) {
                int64_t least = PRICING_NONE * 3;
                for (int64_t t = g * step; t <= (g + 1) * step && t + 20 <= f.grid.length_ns; t++)
                    least = UTIL_MIN(least, worth(&f, 2, t, t + 20) + worth(&f, 5, t, t + 20));
                assert_int_equal(line[g], least / 3);
            }
            close_pricer(&f);
        }
}

typedef struct columns {
    int n;
    int32_t kind[16];
    int8_t device[16];
    int64_t start[16], finish[16];
    int32_t n_uses[16];
    pricing_use use[16][8];
} columns;

static void keep(void *data, const pricing_column *c)
{
    columns *x = data;
    assert_true(x->n < 16 && c->n_uses <= 8);
    x->kind[x->n] = c->kind;
    x->device[x->n] = c->n_ops ? c->device[c->n_ops - 1] : -1;
    x->start[x->n] = c->n_ops ? c->start[c->n_ops - 1] : -1;
    x->finish[x->n] = c->finish_ns;
    x->n_uses[x->n] = c->n_uses;
    memcpy(x->use[x->n], c->use, sizeof *c->use * (size_t)c->n_uses);
    x->n++;
}

/* The cheapest schedule for every device of the last operator: on A from 0 to 10, on B from 3 to 13 with two transfers.
 */
static void test_pricing_columns_are_the_schedules(void **state)
{
    (void)state;
    fixture f;
    columns x = {0};
    char text[512];
    snprintf(text, sizeof text, "%s", TINY_TWO);
    memcpy(strstr(text, "congestion none"), "congestion port", 15);
    open_pricer(&f, text, 16, 1, 1, &anyhow);
    pricing_prices prices = {.resource = f.price};
    assert_int_equal(pricing_pricer_cost(f.w, &prices, keep, &x), 0);
    assert_int_equal(x.n, 2);
    assert_int_equal(x.device[0], 0);
    assert_int_equal(x.n_uses[0], 1);
    assert_int_equal(x.use[0][0].r1, 0);
    assert_int_equal(x.use[0][0].ns, 10);
    assert_int_equal(x.device[1], 1);
    assert_int_equal(x.start[1], 3);
    assert_int_equal(x.finish[1], 16);
    assert_int_equal(x.n_uses[1], 3);
    int sends = 0;
    for (int i = 0; i < 3; i++) {
        const pricing_use *u = &x.use[1][i];
        if (u->r1 >= 2) { /* send and receive ports: K + from, 2K + to */
            assert_int_equal(u->r1 - 2, u->start_ns == 0 ? 0 : 1);
            assert_int_equal(u->r2 - 4, u->start_ns == 0 ? 1 : 0);
            assert_int_equal(u->ns, 3);
            assert_true(u->part == 1);
            sends++;
        }
    }
    assert_int_equal(sends, 2);
    close_pricer(&f);
}

/* Flow tensor: each of three readers pays a third of the transfer, rounded down. At price 2 on B's receiver, 40 / 3
 * each. */
static void test_pricing_readers_share_a_transfer(void **state)
{
    (void)state;
    fixture f;
    open_pricer(&f, TINY_THREE, 400, 1, 1, &anyhow);
    assert_int_equal(decompose_block_shared_tensor(f.t.b), 0);
    f.price[0] = 1;         /* device A: 100 each */
    f.price[2 * 2 + 1] = 2; /* receiver B */
    assert_int_equal(cost_of(&f), 3 * 13);
    f.price[1] = 1; /* device B: 110 more */
    assert_int_equal(cost_of(&f), 3 * 100);
    close_pricer(&f);
}

/* The case "B receives it": readers there wait and pay nothing, the send pays once, as a component of its own. */
static void test_pricing_a_sending_pays_once(void **state)
{
    (void)state;
    fixture f;
    pricing_sending to_b = {.fixed = true, .n_receivers = 1, .receiver = {1}}, nobody = {.fixed = true};
    columns x = {0};
    open_pricer(&f, TINY_THREE, 400, 1, 1, &to_b);
    f.price[0] = 1;
    f.price[2 * 2 + 1] = 2;
    pricing_prices prices = {.resource = f.price};
    assert_int_equal(pricing_pricer_cost(f.w, &prices, keep, &x), 40);
    assert_int_equal(x.kind[0], -1);
    assert_int_equal(x.finish[0], 20);
    assert_int_equal(x.n, 1 + 2); /* the send, and a schedule for each device */
    set_case(&f, &nobody, NULL);
    assert_int_equal(cost_of(&f), 3 * 100); /* B is out of reach */
    close_pricer(&f);
}

/* Whoever has its operator on B pays 7 more, or 30 less. */
static void test_pricing_branches_have_prices(void **state)
{
    (void)state;
    fixture f;
    pricing_branch on_b = {.on = PRICING_NUMBER, .kind = 0, .op = 0, .device = 1, .least = 0, .most = 3};
    open_pricer(&f, TINY_THREE, 400, 1, 1, &anyhow);
    f.price[0] = 1;
    set_case(&f, &anyhow, &on_b);
    int64_t *branch_price = &f.price[6]; /* behind two devices and four ports, a bucket each */
    *branch_price = 7;
    pricing_prices prices = {.resource = f.price};
    assert_int_equal(pricing_pricer_cost(f.w, &prices, NULL, NULL), 3 * 7);
    *branch_price = -30;
    assert_int_equal(pricing_pricer_cost(f.w, &prices, NULL, NULL), 3 * -30);
    *branch_price = 500;
    assert_int_equal(pricing_pricer_cost(f.w, &prices, NULL, NULL), 3 * 100);
    close_pricer(&f);
}

/* Ten bytes at 4 on A and 1 on B. */
static void test_pricing_bytes_have_prices(void **state)
{
    (void)state;
    fixture f;
    int64_t per_byte[2] = {4, 1};
    open_pricer(&f, TINY_TWO, 100, 1, 1, &anyhow);
    pricing_prices prices = {.resource = f.price, .memory = per_byte};
    assert_int_equal(pricing_pricer_cost(f.w, &prices, NULL, NULL), 2 * 10);
    f.price[1] = 7;
    assert_int_equal(pricing_pricer_cost(f.w, &prices, NULL, NULL), 2 * 40);
    close_pricer(&f);
}

/* ---- arrivals ---- */

#define FAN \
    "device A 9\ndevice B 9\ndevice C 9\nop in 1,-,- > s:20\nop x 5,5,5 s > t:0\nop y 5,5,5 s > u:0\nop out 1,-,- t " \
    "u\n"

static void test_pricing_arrivals_in_turn_through_one_port(void **state)
{
    (void)state;
    pricing_sending b_then_c = {.fixed = true, .n_receivers = 2, .receiver = {1, 2}},
                    c_alone = {.fixed = true, .n_receivers = 1, .receiver = {2}};
    fixture f;
    open_pricer(&f, FAN, 200, 1, 1, &b_then_c);
    assert_int_equal(pricing_pricer_arrival(f.w, 0), 0);
    assert_int_equal(pricing_pricer_arrival(f.w, 1), 20);
    assert_int_equal(pricing_pricer_arrival(f.w, 2), 40);
    pricing_branch late = {.on = PRICING_ARRIVAL, .device = 1, .least = 50, .most = INT64_MAX};
    set_case(&f, &b_then_c, &late);
    assert_int_equal(pricing_pricer_arrival(f.w, 1), 50);
    assert_int_equal(pricing_pricer_arrival(f.w, 2), 70); /* the next is sent after it */
    set_case(&f, &c_alone, NULL);
    assert_int_equal(pricing_pricer_arrival(f.w, 1), -1);
    assert_int_equal(pricing_pricer_arrival(f.w, 2), 20);
    close_pricer(&f);
    open_pricer(&f, "congestion channel\n" FAN, 200, 1, 1, &b_then_c);
    assert_int_equal(pricing_pricer_arrival(f.w, 1), 20);
    assert_int_equal(pricing_pricer_arrival(f.w, 2), 20); /* channels do not wait for each other */
    close_pricer(&f);
}

/* A send that must arrive between 20 and 25 holds its port from 5 to 20, whenever it is. */
static void test_pricing_sends_hold_what_they_must(void **state)
{
    (void)state;
    pricing_sending to_b = {.fixed = true, .n_receivers = 1, .receiver = {1}};
    pricing_branch soon = {.on = PRICING_ARRIVAL, .device = 1, .least = 0, .most = 25};
    fixture f;
    double held[9 * 4];
    open_pricer(&f, FAN, 39, 1, 4, &to_b); /* buckets of 10 */
    set_case(&f, &to_b, &soon);
    pricing_pricer_held(f.w, held);
    assert_true(held[3 * 4 + 0] == 5 && held[3 * 4 + 1] == 10 && held[3 * 4 + 2] == 0); /* sender A is K + 0 */
    assert_true(held[7 * 4 + 0] == 5 && held[7 * 4 + 1] == 10 && held[7 * 4 + 2] == 0); /* receiver B is 2K + 1 */
    assert_true(held[0] == 0 && held[4 * 4] == 0);
    set_case(&f, &to_b, NULL);
    pricing_pricer_held(f.w, held); /* by 39 at the latest: from 19 to 20 it is on its way in any case */
    assert_true(held[3 * 4 + 0] == 0 && held[3 * 4 + 1] == 1);
    close_pricer(&f);
}

/* Columns found on one grid are kept for others: by their end, and by what they read when. */
static void test_pricing_columns_that_still_fit(void **state)
{
    (void)state;
    pricing_sending to_b = {.fixed = true, .n_receivers = 1, .receiver = {1}};
    int8_t on_b = 1, on_c = 2;
    int64_t at_20 = 20, at_19 = 19;
    fixture f;
    open_pricer(&f, FAN, 100, 1, 1, &to_b);
    pricing_column c = {.kind = 0, .n_ops = 1, .device = &on_b, .start = &at_20, .finish_ns = 25};
    assert_true(pricing_pricer_fits(f.w, &c));
    c.start = &at_19;
    assert_false(pricing_pricer_fits(f.w, &c)); /* read before it arrives */
    c.start = &at_20;
    c.device = &on_c;
    assert_false(pricing_pricer_fits(f.w, &c)); /* it never does */
    c.device = &on_b;
    c.finish_ns = 101;
    assert_false(pricing_pricer_fits(f.w, &c)); /* after T */
    pricing_column send = {.kind = -1, .finish_ns = 20};
    assert_true(pricing_pricer_fits(f.w, &send));
    pricing_branch late = {.on = PRICING_ARRIVAL, .device = 1, .least = 50, .most = INT64_MAX};
    set_case(&f, &to_b, &late);
    assert_false(pricing_pricer_fits(f.w, &send));
    close_pricer(&f);
}

/* ---- trees and edges ---- */

/* A diamond inside: of its four edges the tree keeps the three that are slowest to send. */
static void test_pricing_trees_keep_the_slowest_edges(void **state)
{
    (void)state;
    tiny_block t =
        tiny_block_open("flow edge\ndevice A 9\ndevice B 9\nop in 1,1 > s:1\nop a 1,1 s > p:9 q:2\nop b 1,1 p > r:8\n"
                        "op c 1,1 q > v:7\nop d 1,1 r v > w:1\nop e 1,1 s > z:1\nop out 1,1 w z\n",
                        1);
    pricing_pricer *w;
    pricing_tree_edge edge[8];
    int64_t bytes = 0;
    assert_ok(pricing_pricer_new(&w, t.b, 10));
    int32_t kind = t.b->component_kind[t.b->op_component[1]];
    assert_int_equal(pricing_pricer_tree(w, kind, edge), 3);
    for (int i = 0; i < 3; i++)
        bytes += t.b->problem.tensor_bytes[edge[i].tensor];
    assert_int_equal(bytes, 9 + 8 + 7);
    pricing_pricer_free(w);
    tiny_block_close(&t);
}

/* A chain u -> v over two devices: the dynamic programme follows the tree. Both end by 26 at the soonest. */
static void test_pricing_cost_of_a_chain(void **state)
{
    (void)state;
    static const char text[] =
        "flow edge\ncongestion none\ndevice A 9\ndevice B 9\nop in 1,- > s:0\nop u 10,- s > a:3\nop v -,10 a > b:3\n"
        "op w 10,- s > c:3\nop x -,10 c > d:3\nop out 1,- b d\n";
    fixture f;
    open_pricer(&f, text, 25, 1, 1, &anyhow);
    assert_int_equal(cost_of(&f), PRICING_NONE);
    close_pricer(&f);
    open_pricer(&f, text, 35, 1, 2, &anyhow);
    f.grid.bucket_step[1] = 19; /* u begins in step 9 at the latest, and within it no later than at 10 */
    f.price[0] = 1;
    assert_int_equal(cost_of(&f), 2 * 9);
    f.grid.bucket_step[1] = 20;
    assert_int_equal(cost_of(&f), 2 * 10);
    f.grid.bucket_step[1] = 19;
    f.price[0] = 0;
    f.price[2 + 1] = 1; /* B behind 19: v from 13 on has 6 before it */
    assert_int_equal(cost_of(&f), 2 * 4);
    close_pricer(&f);
}

/* A tensor from cut to cut takes its time, too: here 30 from A to B. */
static void test_pricing_direct_edges_must_fit(void **state)
{
    (void)state;
    tiny_block t = tiny_block_open("flow edge\ndevice A 9\ndevice B 9\nop in 1,1 > s:0 r:30\nop x 1,1 s > t:0\nop y "
                                   "1,1 s > u:0\nop out 1,1 t u r\n",
                                   1);
    pricing_pricer *w;
    pricing_grid grid;
    int64_t price[12] = {0};
    pricing_prices prices = {.resource = price};
    assert_ok(pricing_pricer_new(&w, t.b, 100));
    for (int64_t length = 29; length <= 30; length++) {
        pricing_grid_init(&grid, length, 1, 1);
        decompose_block_pin(t.b, 0, 1);
        pricing_pricer_set(w, &(pricing_case){.how = &anyhow}, &grid);
        assert_int_equal(pricing_pricer_cost(w, &prices, NULL, NULL), length < 30 ? PRICING_NONE : 0);
        decompose_block_pin(t.b, 0, 0);
        pricing_pricer_set(w, &(pricing_case){.how = &anyhow}, &grid);
        assert_int_equal(pricing_pricer_cost(w, &prices, NULL, NULL), 0);
    }
    pricing_pricer_free(w);
    tiny_block_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_cost_of_two_operators),
        cmocka_unit_test(test_pricing_cost_by_buckets),
        cmocka_unit_test(test_pricing_cost_at_a_kink),
        cmocka_unit_test(test_pricing_transfers_cost_the_least_within_a_step),
        cmocka_unit_test(test_pricing_columns_are_the_schedules),
        cmocka_unit_test(test_pricing_readers_share_a_transfer),
        cmocka_unit_test(test_pricing_a_sending_pays_once),
        cmocka_unit_test(test_pricing_branches_have_prices),
        cmocka_unit_test(test_pricing_bytes_have_prices),
        cmocka_unit_test(test_pricing_arrivals_in_turn_through_one_port),
        cmocka_unit_test(test_pricing_sends_hold_what_they_must),
        cmocka_unit_test(test_pricing_columns_that_still_fit),
        cmocka_unit_test(test_pricing_trees_keep_the_slowest_edges),
        cmocka_unit_test(test_pricing_cost_of_a_chain),
        cmocka_unit_test(test_pricing_direct_edges_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
