/* Longest paths with a choice of device, the replay with arcs and the player of task graphs, on numbers worked by hand.
 */
#include "support/check.h"
#include "support/random_problem.h"

#include <moirai/schedule.h>
#include "schedule/paths.h"
#include "schedule/sim.h"
#include "schedule/tasks.h"
#include "util/util.h"

#define OP(name, time, in, out, more) \
    "{\"name\": \"" name "\", \"type\": \"X\", \"memory_bytes\": 1, \"time_ns\": [" time "], \"inputs\": [" in \
    "], \"outputs\": [" out "]" more "}"
#define TENSOR(name) "{\"name\": \"" name "\", \"bytes\": 10}"
#define CHANNEL(a, b) "{\"from\": \"" a "\", \"to\": \"" b "\", \"bytes_per_second\": 1000000000, \"latency_ns\": 5}"

/* a -> b, c -> d; every transfer takes 15 ns. */
static moirai_problem *diamond(void)
{
    static const char json[] =
        "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"p\", \"flow\": \"tensor\", \"congestion\": "
        "\"port\", \"memory\": \"static\", \"devices\": [{\"name\": \"A\", \"memory_bytes\": 10}, {\"name\": \"B\", "
        "\"memory_bytes\": 10}], \"channels\": [" CHANNEL("A", "B") "," CHANNEL("B", "A") "], \"ops\": [" OP(
            "a", "10, 20", "", TENSOR("ta"),
            "") "," OP("b", "31, 5", "\"ta\"", TENSOR("tb"),
                       ", \"group\": \"g\"") "," OP("c", "5, 30", "\"ta\"", TENSOR("tc"),
                                                    "") "," OP("d", "10, 10", "\"tb\", \"tc\"", "",
                                                               ", \"group\": \"g\"") "]}";
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, json, sizeof json - 1, "p.json"));
    return p;
}

static void assert_row(const int64_t *row, const int64_t *expected, int n)
{
    for (int i = 0; i < n; i++)
        if (row[i] != expected[i])
            fail_msg("entry %d is %lld, not %lld", i, (long long)row[i], (long long)expected[i]);
}

static void test_paths_take_each_input_from_where_it_is_soonest(void **state)
{
    (void)state;
    moirai_problem *p = diamond();
    const int64_t heads[] = {0, 0, 10, 20, 10, 20, 40, 30}, tails[] = {30, 30, 10, 10, 10, 10, 0, 0};
    int64_t row[8];
    schedule_heads(row, &(schedule_paths){.p = p});
    assert_row(row, heads, 8);
    schedule_tails(row, &(schedule_paths){.p = p});
    assert_row(row, tails, 8);
    assert_int_equal(schedule_longest_path(&(schedule_paths){.p = p}), 40);
    moirai_problem_free(p);
}

static void test_paths_keep_groups_together_if_asked(void **state)
{
    (void)state;
    moirai_problem *p = diamond();
    int64_t head[8];
    schedule_heads(head, &(schedule_paths){.p = p, .groups = true});
    assert_int_equal(head[3 * 2 + 0], 41); /* b must be on A as well: no 40 by way of B */
    assert_int_equal(head[3 * 2 + 1], 30);
    moirai_problem_free(p);
}

static void test_paths_never_use_a_device_that_is_gone(void **state)
{
    (void)state;
    moirai_problem *p = diamond();
    const uint64_t left[] = {1, 3, 3, 2}, none[] = {3, 0, 3, 3};
    int64_t head[8];
    schedule_heads(head, &(schedule_paths){.p = p, .devices = left});
    assert_true(head[0 * 2 + 1] == SCHEDULE_NEVER_NS && head[3 * 2 + 0] == SCHEDULE_NEVER_NS);
    assert_int_equal(head[1 * 2 + 1], 25); /* from A alone */
    schedule_heads(head, &(schedule_paths){.p = p, .devices = none});
    assert_true(head[3 * 2 + 0] == SCHEDULE_NEVER_NS && head[2 * 2 + 0] == 10);
    moirai_problem_free(p);
}

/* Head, time and tail of an operator where a plan runs it never exceed the plan. */
static void test_paths_hold_for_every_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        moirai_problem *p = random_problem(&spec);
        moirai_sim *sim;
        assert_non_null(p);
        assert_ok(moirai_sim_new(&sim, p));
        size_t n = (size_t)p->n_ops * (size_t)p->n_devices;
        int64_t *head = calloc(n + 1, sizeof *head), *tail = calloc(n + 1, sizeof *tail);
        int32_t *device = calloc((size_t)p->n_ops + 1, sizeof *device);
        for (int32_t i = 0; i < p->n_ops; i++)
            device[i] = __builtin_ctzll(p->op_devices[i]); /* one mask per group: members agree */
        schedule_heads(head, &(schedule_paths){.p = p, .groups = true});
        schedule_tails(tail, &(schedule_paths){.p = p, .groups = true});
        int64_t end = moirai_sim_dispatch(sim, device, NULL);
        assert_true(end >= 0);
        for (int32_t i = 0; i < p->n_ops; i++) {
            int64_t at = (int64_t)i * p->n_devices + device[i], start = moirai_sim_op_start(sim)[i];
            assert_true(head[at] <= start);
            assert_true(tail[at] <= end - start - moirai_op_ns(p, i, device[i]));
        }
        free(head);
        free(tail);
        free(device);
        moirai_sim_free(sim);
        moirai_problem_free(p);
    }
}

/* Heads, or tails, of one operator from those of its neighbours, without any short cut. */
static void plain_row(int64_t *path, const moirai_problem *p, bool groups, int32_t op, bool forwards)
{
    int32_t K = p->n_devices;
    for (int32_t k = 0; k < K; k++)
        path[op * K + k] = moirai_op_may(p, op, k) ? 0 : SCHEDULE_NEVER_NS;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e], from = p->tensor_producer[t], to = p->edge_reader[e],
                other = forwards ? from : to;
        bool together = groups && p->op_group[from] != MOIRAI_NONE && p->op_group[from] == p->op_group[to];
        if ((forwards ? to : from) != op)
            continue;
        for (int32_t k = 0; k < K; k++) {
            int64_t least = SCHEDULE_NEVER_NS;
            for (int32_t l = 0; l < K; l++)
                if (moirai_op_may(p, other, l) && (l == k || !together))
                    least = UTIL_MIN(least, path[other * K + l] + moirai_op_ns(p, other, l) +
                                                moirai_transfer_ns(p, t, forwards ? l : k, forwards ? k : l));
            if (moirai_op_may(p, op, k))
                path[op * K + k] = UTIL_MAX(path[op * K + k], least);
        }
    }
}

/* All links alike: the sweep takes a short cut, operator by operator nothing does. */
static void test_paths_over_equal_links_are_the_same(void **state)
{
    (void)state;
    int even = 0, uneven = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed, 14);
        spec.n_devices = 4;
        moirai_problem *p = random_problem(&spec);
        assert_non_null(p);
        int32_t K = p->n_devices;
        for (int32_t c = 0; seed % 3 && c < p->n_classes * K * K; c++)
            p->class_transfer_ns[c] = c / K % K == c % K ? 0 : 7 + c / K / K;
        even += seed % 3 != 0;
        uneven += seed % 3 == 0;
        size_t cells = (size_t)p->n_ops * (size_t)K;
        int64_t *swept = calloc(cells, sizeof *swept), *each = calloc(cells, sizeof *each);
        schedule_paths paths = {.p = p, .groups = seed % 2};
        schedule_heads(swept, &paths);
        for (int32_t r = 0; r < p->n_ops; r++)
            plain_row(each, p, paths.groups, p->topo[r], true);
        assert_memory_equal(swept, each, cells * sizeof *each);
        schedule_tails(swept, &paths);
        for (int32_t r = p->n_ops - 1; r >= 0; r--)
            plain_row(each, p, paths.groups, p->topo[r], false);
        assert_memory_equal(swept, each, cells * sizeof *each);
        free(swept);
        free(each);
        moirai_problem_free(p);
    }
    assert_true(even > 20 && uneven > 10);
}

/* Ended before it begins, a sweep knows where operators may be, and nothing else. */
static void test_paths_end_with_the_time(void **state)
{
    (void)state;
    moirai_problem *p = diamond();
    moirai_interrupt interrupt = {0};
    moirai_interrupt_raise(&interrupt);
    util_stop stop = {.interrupt = &interrupt};
    uint64_t devices[] = {1, 3, 2, 3};
    const int64_t none = SCHEDULE_NEVER_NS, expected[] = {0, none, 0, 0, none, 0, 0, 0};
    int64_t row[8];
    schedule_heads(row, &(schedule_paths){.p = p, .devices = devices, .stop = &stop});
    assert_row(row, expected, 8);
    schedule_tails(row, &(schedule_paths){.p = p, .devices = devices, .stop = &stop});
    assert_row(row, expected, 8);
    moirai_problem_free(p);
}

static void test_replay_waits_for_arcs(void **state)
{
    (void)state;
    moirai_problem *p = diamond();
    moirai_sim *sim;
    assert_ok(moirai_sim_new(&sim, p));
    enum { TA_TO_B = 4 + 0 * 2 + 1, TC_TO_A = 4 + 2 * 2 + 0, N_TASKS = 4 + 3 * 2 };
    const int32_t device[] = {0, 0, 1, 0};
    const moirai_task order[] = {0, 1, TA_TO_B, 2, TC_TO_A, 3};
    int64_t off[N_TASKS + 1] = {0}, to[] = {TA_TO_B};
    assert_int_equal(schedule_sim_replay_arcs(sim, device, order, 6, off, to), 80);
    assert_int_equal(moirai_sim_replay(sim, device, order, 6), 80);
    for (int i = 2; i <= N_TASKS; i++) /* b, which ends at 41, before ta leaves */
        off[i] = 1;
    assert_int_equal(schedule_sim_replay_arcs(sim, device, order, 6, off, to), 111);
    assert_int_equal(moirai_sim_op_start(sim)[2], 56);
    const int32_t split[] = {0, 0, 1, 1}; /* b and d are a group */
    assert_int_equal(schedule_sim_replay_arcs(sim, split, order, 6, off, to), -1);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

static void test_tasks_start_when_all_they_wait_for_is_done(void **state)
{
    (void)state;
    schedule_tasks g;
    double end;
    assert_ok(schedule_tasks_init(&g, 4, 4));
    schedule_tasks_reset(&g, 4);
    const double length[] = {2, 7, 3, 1.5}, finish[] = {2, 9, 5, 10.5};
    memcpy(g.length_ns, length, sizeof length);
    schedule_tasks_wait(&g, 1, 0);
    schedule_tasks_wait(&g, 2, 0);
    schedule_tasks_wait(&g, 3, 1);
    schedule_tasks_wait(&g, 3, 2);
    for (int again = 0; again < 2; again++) {
        assert_true(schedule_tasks_play(&g, &end));
        assert_true(end == 10.5);
        for (int i = 0; i < 4; i++)
            assert_true(g.finish_ns[i] == finish[i]);
    }
    g.length_ns[2] = 20;
    assert_true(schedule_tasks_play(&g, &end) && end == 23.5);
    schedule_tasks_free(&g);
}

static void test_tasks_in_a_circle_do_not_run(void **state)
{
    (void)state;
    schedule_tasks g;
    double end;
    assert_ok(schedule_tasks_init(&g, 3, 3));
    schedule_tasks_reset(&g, 3);
    schedule_tasks_wait(&g, 1, 0);
    schedule_tasks_wait(&g, 2, 1);
    schedule_tasks_wait(&g, 1, 2);
    assert_false(schedule_tasks_play(&g, &end));
    schedule_tasks_reset(&g, 3);
    assert_true(schedule_tasks_play(&g, &end) && end == 0);
    schedule_tasks_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_take_each_input_from_where_it_is_soonest),
        cmocka_unit_test(test_paths_keep_groups_together_if_asked),
        cmocka_unit_test(test_paths_never_use_a_device_that_is_gone),
        cmocka_unit_test(test_paths_hold_for_every_plan),
        cmocka_unit_test(test_paths_over_equal_links_are_the_same),
        cmocka_unit_test(test_paths_end_with_the_time),
        cmocka_unit_test(test_replay_waits_for_arcs),
        cmocka_unit_test(test_tasks_start_when_all_they_wait_for_is_done),
        cmocka_unit_test(test_tasks_in_a_circle_do_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
