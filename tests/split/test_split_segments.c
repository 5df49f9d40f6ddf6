/* Segments from inside: a plan read against a graph, cut where the schedule asks for it, and merged where a cut costs
 * more. */
#include "split/split.h"
#include "support/check.h"
#include "support/command.h"
#include "util/util.h"

/* a -> b -> c -> d in a row, and e that reads a and d. */
static moirai_graph *make_graph(void)
{
    static const char json[] =
        "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"ops\": ["
        "{\"name\": \"a\", \"type\": \"Relu\", \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"ta\", \"bytes\": 4}]},"
        "{\"name\": \"b\", \"type\": \"Relu\", \"inputs\": [\"ta\"], \"outputs\": [{\"name\": \"tb\", \"bytes\": 4}]},"
        "{\"name\": \"c\", \"type\": \"Relu\", \"inputs\": [\"tb\"], \"outputs\": [{\"name\": \"tc\", \"bytes\": 4}]},"
        "{\"name\": \"d\", \"type\": \"Relu\", \"inputs\": [\"tc\"], \"outputs\": [{\"name\": \"td\", \"bytes\": 4}]},"
        "{\"name\": \"e\", \"type\": \"Add\", \"inputs\": [\"ta\", \"td\"], \"outputs\": [{\"name\": \"last\", "
        "\"bytes\": 4}]}]}";
    moirai_graph *g;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g"));
    return g;
}

/* ops: "a A 0 10;b B 15 20"; moves: "ta A B 10 15". */
static void write_plan(const char *ops, const char *moves)
{
    char text[4096], part[256];
    int n = sprintf(
        text, "{\"format\": \"moirai-plan\", \"version\": 1, \"placer\": \"hand\", \"makespan_ns\": 100, \"ops\": [");
    for (int k = 0; k < 2; k++) {
        const char *at = k ? moves : ops;
        for (bool first = true; *at; first = false) {
            size_t length = strcspn(at, ";");
            char a[32], b[32], c[32];
            int start, finish;
            snprintf(part, sizeof part, "%.*s", (int)length, at);
            if (k == 0) {
                assert_int_equal(sscanf(part, "%31s %31s %d %d", a, b, &start, &finish), 4);
                n += sprintf(text + n, "%s{\"name\": \"%s\", \"device\": \"%s\", \"start_ns\": %d, \"finish_ns\": %d}",
                             first ? "" : ", ", a, b, start, finish);
            } else {
                assert_int_equal(sscanf(part, "%31s %31s %31s %d %d", a, b, c, &start, &finish), 5);
                n += sprintf(text + n,
                             "%s{\"tensor\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"start_ns\": %d, "
                             "\"finish_ns\": %d, \"bytes\": 4}",
                             first ? "" : ", ", a, b, c, start, finish);
            }
            at += length + (at[length] == ';');
        }
        n += sprintf(text + n, k ? "]" : "], \"transfers\": [");
    }
    sprintf(text + n, ", \"devices\": [{\"name\": \"A\"}, {\"name\": \"B\"}]}");
    write_text("plan.json", text);
}

static split_plan *read_plan(const moirai_graph *g)
{
    split_plan *p;
    assert_ok(split_plan_read(&p, "plan.json", g, "none"));
    return p;
}

/* Segments as text: "A:ab A:cd B:e". A static buffer. */
static const char *shown(const split_plan *p)
{
    static char text[256];
    int n = 0;
    *text = '\0';
    for (int32_t s = 0; s < p->n_segments; s++) {
        n += sprintf(text + n, "%s%s:", s ? " " : "", p->device[p->segment[s].device]);
        for (int32_t u = 0; u < p->segment[s].n_units; u++)
            n += sprintf(text + n, "%s", p->units->op_name[p->order[p->segment[s].first + u]]);
    }
    return text;
}

static void cuts_into(const char *ops, const char *moves, const char *segments)
{
    moirai_graph *g = make_graph();
    write_plan(ops, moves);
    split_plan *p = read_plan(g);
    assert_ok(split_segments(p));
    assert_string_equal(shown(p), segments);
    split_plan_free(p);
    moirai_graph_free(g);
}

static void test_split_plan_is_read(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    write_plan("a A 0 10;b B 15 20;c A 25 30;d A 30 40;e A 40 50", "ta A B 10 15;tb B A 20 25");
    split_plan *p = read_plan(g);
    assert_string_equal(p->placer, "hand");
    assert_int_equal(p->n_devices, 2);
    assert_int_equal(p->n_transfers, 2);
    assert_int_equal(p->makespan_ns, 100);
    assert_int_equal(p->unit_device[moirai_graph_find(g, "b")], 1);
    assert_int_equal(p->unit_start_ns[moirai_graph_find(g, "c")], 25);
    assert_int_equal(p->device_off[1], 4); /* four on A */
    assert_string_equal(g->tensor_name[p->transfer[1].tensor], "tb");
    split_plan_free(p);
    moirai_graph_free(g);
}

/* One device, one segment. */
static void test_split_one_device_is_one_segment(void **state)
{
    (void)state;
    cuts_into("a A 0 10;b A 10 20;c A 20 30;d A 30 40;e A 40 50", "", "A:abcde");
}

/* a must leave at once, c waits for b: A's operators fall in two. */
static void test_split_cuts_where_something_leaves_or_arrives(void **state)
{
    (void)state;
    cuts_into("a A 0 10;b B 15 20;c A 25 30;d A 30 40;e A 40 50", "ta A B 10 15;tb B A 20 25", "A:a A:cde B:b");
}

/* What leaves late, and what has come before, cuts nothing: e's input waits until d is done, and d's came long ago. */
static void test_split_does_not_cut_where_there_is_time(void **state)
{
    (void)state;
    cuts_into("a A 0 10;b A 10 20;c B 25 30;d B 30 40;e B 60 70", "tb A B 20 25;ta A B 20 25", "A:ab B:cde");
    cuts_into("a A 0 10;b A 10 20;c B 25 30;d B 30 40;e B 60 70", "tb A B 20 25;ta A B 10 50", "A:a A:b B:cd B:e");
}

static void test_split_segments_have_planned_times(void **state)
{
    (void)state;
    moirai_graph *g = make_graph();
    write_plan("a A 0 10;b B 15 20;c A 25 30;d A 32 40;e A 40 50", "ta A B 10 15;tb B A 20 25");
    split_plan *p = read_plan(g);
    assert_ok(split_segments(p));
    const split_segment *s = &p->segment[1]; /* c d e on A */
    assert_true(s->start_ns == 25 && s->finish_ns == 50 && s->work_ns == 5 + 8 + 10);
    assert_int_equal(p->unit_segment[moirai_graph_find(g, "d")], 1);
    split_plan_free(p);
    moirai_graph_free(g);
}

/* What a segment costs decides: free segments stay apart; dear ones merge as long as nobody waits in a circle. a and c
 * can't be one: b stands between them. */
static void test_split_merges_by_price(void **state)
{
    (void)state;
    static const struct {
        int64_t price_ns;
        const char *segments;
    } list[] = {{0, "A:a A:b B:cd B:e"}, {1000000, "A:ab B:cde"}};
    for (size_t i = 0; i < 2; i++) {
        moirai_graph *g = make_graph();
        write_plan("a A 0 10;b A 10 20;c B 25 30;d B 30 40;e B 60 70", "tb A B 20 25;ta A B 10 50");
        split_plan *p = read_plan(g);
        assert_ok(split_segments(p));
        assert_ok(split_merge(p, list[i].price_ns));
        assert_string_equal(shown(p), list[i].segments);
        split_plan_free(p);
        moirai_graph_free(g);
    }
    moirai_graph *g = make_graph();
    write_plan("a A 0 10;b B 15 20;c A 25 30;d A 30 40;e A 40 50", "ta A B 10 15;tb B A 20 25");
    split_plan *p = read_plan(g);
    assert_ok(split_segments(p));
    assert_ok(split_merge(p, 1000000));
    assert_string_equal(shown(p), "A:a A:cde B:b");
    split_plan_free(p);
    moirai_graph_free(g);
}

static void refused(const char *ops, const char *moves, const char *says)
{
    moirai_graph *g = make_graph();
    split_plan *p = NULL;
    write_plan(ops, moves);
    assert_int_equal(split_plan_read(&p, "plan.json", g, "none"), MOIRAI_EINPUT);
    assert_null(p);
    assert_contains(moirai_error_message(), says);
    moirai_graph_free(g);
}

static void test_split_refuses_plans_of_other_graphs(void **state)
{
    (void)state;
    refused("a A 0 10;b A 10 20;c A 20 30;d A 30 40", "", "e");            /* an operator is missing */
    refused("a A 0 10;b A 10 20;c A 20 30;d A 30 40;f A 40 50", "", "f");  /* another is unknown */
    refused("a A 0 10;b A 10 20;c A 20 30;d A 30 40;e C 40 50", "", "C");  /* a device is */
    refused("a A 0 10;b B 10 20;c B 20 30;d B 30 40;e B 40 50", "", "ta"); /* nothing brings it to B */
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_split_plan_is_read),
        IN_FOLDER(test_split_one_device_is_one_segment),
        IN_FOLDER(test_split_cuts_where_something_leaves_or_arrives),
        IN_FOLDER(test_split_does_not_cut_where_there_is_time),
        IN_FOLDER(test_split_segments_have_planned_times),
        IN_FOLDER(test_split_merges_by_price),
        IN_FOLDER(test_split_refuses_plans_of_other_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
