/* What-ifs: the changed problem is the one that a hand edit of the file gives, the claims are what runs of their own on
 * it give, and they hold against the true optimum. */
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"

#include <moirai/moirai.h>
#include <yyjson.h>

static int64_t half_up(int64_t x)
{
    return x / 2 + x % 2;
}

/* ---- the change as an edit of the problem's JSON: shares nothing with the library ---- */

static yyjson_mut_val *get(yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(object, key);
    assert_non_null(v);
    return v;
}

static void halve(yyjson_mut_val *number)
{
    if (yyjson_mut_is_int(number))
        yyjson_mut_set_sint(number, half_up(yyjson_mut_get_sint(number)));
}

static void double_it(yyjson_mut_val *number)
{
    yyjson_mut_set_sint(number, 2 * yyjson_mut_get_sint(number));
}

static bool is_pair(const moirai_problem *p, yyjson_mut_val *channel, int32_t a, int32_t b)
{
    const char *from = yyjson_mut_get_str(get(channel, "from")), *to = yyjson_mut_get_str(get(channel, "to"));
    return (!strcmp(from, p->device_name[a]) && !strcmp(to, p->device_name[b])) ||
           (!strcmp(from, p->device_name[b]) && !strcmp(to, p->device_name[a]));
}

static void edit_link(yyjson_mut_val *root, const moirai_problem *p, int32_t a, int32_t b)
{
    size_t i, n;
    yyjson_mut_val *v, *channels = get(root, "channels"), *ops = get(root, "ops");
    yyjson_mut_arr_foreach(channels, i, n, v) {
        if (is_pair(p, v, a, b)) {
            double_it(get(v, "bytes_per_second"));
            if (yyjson_mut_obj_get(v, "latency_ns"))
                halve(get(v, "latency_ns"));
        }
    }
    yyjson_mut_arr_foreach(ops, i, n, v) {
        size_t j, m;
        yyjson_mut_val *t;
        yyjson_mut_arr_foreach(get(v, "outputs"), j, m, t) {
            yyjson_mut_val *table = yyjson_mut_obj_get(t, "transfer_ns");
            if (!table)
                continue;
            halve(yyjson_mut_arr_get(yyjson_mut_arr_get(table, (size_t)a), (size_t)b));
            halve(yyjson_mut_arr_get(yyjson_mut_arr_get(table, (size_t)b), (size_t)a));
        }
    }
}

static void edit_speed(yyjson_mut_val *root, int32_t a)
{
    size_t i, n;
    yyjson_mut_val *v;
    yyjson_mut_arr_foreach(get(root, "ops"), i, n, v) {
        halve(yyjson_mut_arr_get(get(v, "time_ns"), (size_t)a));
    }
}

static void edit_less(yyjson_mut_val *root, const moirai_problem *p, int32_t a)
{
    size_t i, n, j, m;
    yyjson_mut_val *v, *t, *channels = get(root, "channels");
    yyjson_mut_arr_remove(get(root, "devices"), (size_t)a);
    for (i = yyjson_mut_arr_size(channels); i-- > 0;) {
        v = yyjson_mut_arr_get(channels, i);
        if (!strcmp(yyjson_mut_get_str(get(v, "from")), p->device_name[a]) ||
            !strcmp(yyjson_mut_get_str(get(v, "to")), p->device_name[a]))
            yyjson_mut_arr_remove(channels, i);
    }
    yyjson_mut_arr_foreach(get(root, "ops"), i, n, v) {
        yyjson_mut_arr_remove(get(v, "time_ns"), (size_t)a);
        yyjson_mut_arr_foreach(get(v, "outputs"), j, m, t) {
            yyjson_mut_val *table = yyjson_mut_obj_get(t, "transfer_ns");
            if (!table)
                continue;
            yyjson_mut_arr_remove(table, (size_t)a);
            for (size_t r = 0; r < yyjson_mut_arr_size(table); r++)
                yyjson_mut_arr_remove(yyjson_mut_arr_get(table, r), (size_t)a);
        }
    }
}

/* Best channel of a, as the header promises, or that to b. */
static int32_t partner(const moirai_problem *p, int32_t a, int32_t b)
{
    int32_t best = MOIRAI_NONE;
    if (b != MOIRAI_NONE)
        return b;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (k != a && (best == MOIRAI_NONE ||
                       p->bytes_per_second[a * p->n_devices + k] > p->bytes_per_second[a * p->n_devices + best]))
            best = k;
    return best;
}

static void add_channel(yyjson_mut_doc *d, yyjson_mut_val *channels, const char *from, const char *to, int64_t rate,
                        int64_t latency)
{
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(d, channels);
    yyjson_mut_obj_add_strcpy(d, v, "from", from);
    yyjson_mut_obj_add_strcpy(d, v, "to", to);
    yyjson_mut_obj_add_int(d, v, "bytes_per_second", rate);
    yyjson_mut_obj_add_int(d, v, "latency_ns", latency);
}

static void edit_more(yyjson_mut_doc *d, yyjson_mut_val *root, const moirai_problem *p, int32_t a, int32_t b)
{
    char name[200];
    size_t i, n, j, m;
    int32_t K = p->n_devices, like = partner(p, a, b);
    yyjson_mut_val *v, *t;
    snprintf(name, sizeof name, "%s'", p->device_name[a]);
    v = yyjson_mut_arr_add_obj(d, get(root, "devices"));
    yyjson_mut_obj_add_strcpy(d, v, "name", name);
    yyjson_mut_obj_add_int(d, v, "memory_bytes", p->device_memory_bytes[a]);
    for (int32_t k = 0; k < K; k++) {
        int32_t out = k == a ? like : k;
        int32_t from = a * K + out, to = k == a ? from : k * K + a; /* the pair of copies: as a talks to its partner */
        if (k ==
            a) { /* a -> copy as a -> partner; copy -> a: by a's quickest channel, or as partner -> a where given */
            add_channel(d, get(root, "channels"), p->device_name[a], name, p->bytes_per_second[from],
                        p->latency_ns[from]);
            to = b == MOIRAI_NONE ? from : b * K + a;
            add_channel(d, get(root, "channels"), name, p->device_name[a], p->bytes_per_second[to], p->latency_ns[to]);
            continue;
        }
        add_channel(d, get(root, "channels"), name, p->device_name[k], p->bytes_per_second[from], p->latency_ns[from]);
        add_channel(d, get(root, "channels"), p->device_name[k], name, p->bytes_per_second[to], p->latency_ns[to]);
    }
    yyjson_mut_arr_foreach(get(root, "ops"), i, n, v) {
        yyjson_mut_val *times = get(v, "time_ns");
        yyjson_mut_arr_append(times, yyjson_mut_val_mut_copy(d, yyjson_mut_arr_get(times, (size_t)a)));
        yyjson_mut_arr_foreach(get(v, "outputs"), j, m, t) {
            yyjson_mut_val *table = yyjson_mut_obj_get(t, "transfer_ns");
            if (!table)
                continue;
            yyjson_mut_val *row = yyjson_mut_val_mut_copy(d, yyjson_mut_arr_get(table, (size_t)a));
            for (int32_t k = 0; k < K; k++) { /* column of the copy */
                yyjson_mut_val *r = yyjson_mut_arr_get(table, (size_t)k);
                yyjson_mut_arr_append(r,
                                      yyjson_mut_val_mut_copy(d, yyjson_mut_arr_get(r, (size_t)(k == a ? like : a))));
            }
            yyjson_mut_val *back = b == MOIRAI_NONE
                                       ? yyjson_mut_arr_get(row, (size_t)like)
                                       : yyjson_mut_arr_get(yyjson_mut_arr_get(table, (size_t)b), (size_t)a);
            yyjson_mut_arr_replace(row, (size_t)a, yyjson_mut_val_mut_copy(d, back));
            yyjson_mut_arr_append(row, yyjson_mut_int(d, 0));
            yyjson_mut_arr_append(table, row);
        }
    }
}

static moirai_problem *edited(const char *json, size_t length, const moirai_problem *p, const moirai_change *c)
{
    yyjson_doc *read = yyjson_read(json, length, 0);
    yyjson_mut_doc *d = yyjson_doc_mut_copy(read, NULL);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
    moirai_problem *q = NULL;
    if (c->kind == MOIRAI_CHANGE_LINK)
        edit_link(root, p, c->a, c->b);
    else if (c->kind == MOIRAI_CHANGE_SPEED)
        edit_speed(root, c->a);
    else if (c->kind == MOIRAI_CHANGE_MEMORY)
        double_it(get(yyjson_mut_arr_get(get(root, "devices"), (size_t)c->a), "memory_bytes"));
    else if (c->kind == MOIRAI_CHANGE_LESS)
        edit_less(root, p, c->a);
    else if (c->kind == MOIRAI_CHANGE_MORE)
        edit_more(d, root, p, c->a, c->b);
    size_t n;
    char *text = yyjson_mut_write(d, 0, &n);
    assert_non_null(text);
    (void)!moirai_problem_parse(&q, text, n, "edited");
    free(text);
    yyjson_mut_doc_free(d);
    yyjson_doc_free(read);
    return q;
}

/* ---- tests ---- */

static void each_change(const moirai_problem *p, const char *json, size_t length, int *seen)
{
    int32_t K = p->n_devices;
    for (int kind = MOIRAI_CHANGE_NONE; kind <= MOIRAI_CHANGE_MORE; kind++)
        for (int32_t a = 0; a < K; a++)
            for (int32_t b = MOIRAI_NONE; b < K; b++) {
                bool pair = kind == MOIRAI_CHANGE_LINK || kind == MOIRAI_CHANGE_MORE;
                if (b == a || (kind == MOIRAI_CHANGE_LINK && b < 0) || (!pair && b >= 0))
                    continue;
                moirai_change c = {kind, a, b};
                moirai_problem *q = NULL, *e = edited(json, length, p, &c);
                int rc = moirai_problem_change(&q, p, NULL, &c);
                if ((rc == 0) != (e != NULL))
                    fail_msg("change %d of %d and %d: %d, %s", kind, a, b, rc, moirai_error_message());
                assert_true((rc == 0) == (e != NULL)); /* without a device both may be impossible */
                if (q) {
                    assert_problems_equal(q, e);
                    seen[kind]++;
                }
                moirai_problem_free(q);
                moirai_problem_free(e);
            }
}

static void test_change_is_an_edit_of_the_file(void **state)
{
    (void)state;
    int seen[8] = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        spec.tight = false;
        size_t length;
        char *json = random_problem_json(&spec, &length);
        moirai_problem *p = random_problem(&spec);
        assert_non_null(p);
        each_change(p, json, length, seen);
        moirai_problem_free(p);
        free(json);
    }
    for (int kind = 0; kind <= MOIRAI_CHANGE_MORE; kind++)
        assert_true(seen[kind] > 0);
}

typedef struct setting {
    moirai_problem *p;
    moirai_plan *plan;
    moirai_analysis *a;
    char *json;
    size_t length;
} setting;

/* A random problem with a plan that is not the best; false where it has none. */
static bool set_up(setting *s, uint64_t seed, int max_ops, int max_devices)
{
    random_spec spec = random_spec_draw(seed, max_ops);
    moirai_place_options o;
    memset(s, 0, sizeof *s);
    if (spec.n_devices > max_devices)
        spec.n_devices = max_devices;
    spec.tight = seed % 3 == 0;
    s->json = random_problem_json(&spec, &s->length);
    s->p = random_problem(&spec);
    assert_non_null(s->p);
    moirai_place_options_init(&o);
    if (moirai_place(&s->plan, s->p, "heft", &o))
        return false;
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
    return true;
}

static void tear_down(setting *s)
{
    moirai_analysis_free(s->a);
    moirai_plan_free(s->plan);
    moirai_problem_free(s->p);
    free(s->json);
}

/* A run of its own on the edited file. */
static void assert_own_run(const setting *s, const moirai_what_if *w, const moirai_what_if_options *o)
{
    moirai_problem *q = edited(s->json, s->length, s->p, &w->change);
    moirai_plan *plan = NULL;
    moirai_place_options po;
    moirai_place_options_init(&po);
    po.budget.seed = o->budget.seed;
    po.budget.effort = o->budget.effort;
    po.gap = o->gap;
    moirai_plan *start = NULL;
    if (w->replay_ns >= 0)
        assert_ok(moirai_plan_tighten(&start, q, s->plan));
    po.start = start;
    int rc = q ? moirai_place(&plan, q, o->placer, &po) : MOIRAI_EINFEASIBLE;
    moirai_plan_free(start);
    assert_int_equal(w->result, rc);
    assert_false(w->cut_short);
    if (!rc) {
        assert_true(w->search_ns == plan->makespan_ns);
        assert_true(w->search_bound_ns == plan->lower_bound_ns);
        assert_true(w->makespan_ns <= plan->makespan_ns && w->lower_bound_ns >= plan->lower_bound_ns);
    }
    moirai_plan_free(plan);
    moirai_problem_free(q);
}

static void test_what_if_is_a_run_of_its_own(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(24); seed++) {
        setting s;
        moirai_what_if *list = NULL, *again = NULL;
        int32_t n = 0, m = 0;
        moirai_what_if_options o;
        moirai_what_if_options_init(&o);
        o.budget.time_limit_s = 0;
        o.budget.effort = 0.05;
        o.budget.threads = 2;
        o.placer = seed % 2 ? "moirai" : "m-etf";
        if (set_up(&s, seed, 14, 3) && !moirai_what_if_run(&list, &n, s.a, &o)) {
            assert_true(list[0].change.kind == MOIRAI_CHANGE_NONE);
            for (int32_t i = 0; i < n; i++)
                assert_own_run(&s, &list[i], &o);
            o.budget.threads = 1;
            assert_ok(moirai_what_if_run(&again, &m, s.a, &o));
            assert_int_equal(n, m);
            for (int32_t i = 0; i < n; i++)
                assert_true(list[i].makespan_ns == again[i].makespan_ns &&
                            list[i].lower_bound_ns == again[i].lower_bound_ns);
            done += n;
        }
        free(list);
        free(again);
        tear_down(&s);
    }
    assert_true(done > 30);
}

/* bound <= optimum <= makespan, for every change; and the word about what moved is true. */
static void assert_true_of_optimum(const setting *s, const moirai_what_if *base, const moirai_what_if *w,
                                   int64_t base_optimum)
{
    moirai_problem *q = edited(s->json, s->length, s->p, &w->change);
    moirai_plan *best = NULL;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.gap = 0;
    if (q && !w->result && !moirai_place(&best, q, "exact", &o) && moirai_plan_is_optimal(best)) {
        assert_true(w->lower_bound_ns <= best->makespan_ns && best->makespan_ns <= w->makespan_ns);
        const char *moved = moirai_what_if_moved(base, w);
        if (!strcmp(moved, "bound"))
            assert_true(best->makespan_ns < base_optimum);
        if (!strcmp(moved, "worse"))
            assert_true(best->makespan_ns > base->makespan_ns);
    }
    moirai_plan_free(best);
    moirai_problem_free(q);
}

static void test_what_if_claims_hold_for_the_optimum(void **state)
{
    (void)state;
    int moved = 0;
    for (uint64_t seed = 100; seed < 100 + TEST_SHARE(30); seed++) {
        setting s;
        moirai_what_if *list = NULL;
        moirai_plan *best = NULL;
        int32_t n = 0;
        moirai_what_if_options o;
        moirai_place_options po;
        moirai_place_options_init(&po);
        po.gap = 0;
        moirai_what_if_options_init(&o);
        o.budget.time_limit_s = 0;
        o.budget.effort = 0.05;
        if (set_up(&s, seed, 7, 3) && !moirai_what_if_run(&list, &n, s.a, &o) &&
            !moirai_place(&best, s.p, "exact", &po) && moirai_plan_is_optimal(best))
            for (int32_t i = 0; i < n; i++) {
                assert_true_of_optimum(&s, &list[0], &list[i], best->makespan_ns);
                moved += !strcmp(moirai_what_if_moved(&list[0], &list[i]), "bound");
                if (list[i].change.kind != MOIRAI_CHANGE_LESS)
                    assert_true(list[i].result || list[i].makespan_ns <= list[0].makespan_ns);
            }
        moirai_plan_free(best);
        free(list);
        tear_down(&s);
    }
    assert_true(moved > 10);
}

/* A time that is enough for few searches goes to the most promising ones; nothing that was not searched has numbers. */
static void test_what_if_tries_few_rather_than_all_badly(void **state)
{
    (void)state;
    moirai_cluster *c;
    moirai_graph *g;
    setting s = {0};
    moirai_problem_options po = {0};
    moirai_what_if_options o;
    moirai_what_if *list;
    int32_t n, tried = 0;
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_ok(moirai_zoo_graph(&g, "gpt3-mini", 4));
    assert_ok(moirai_problem_new(&s.p, g, c, &po));
    assert_ok(moirai_place(&s.plan, s.p, "heft", NULL));
    assert_ok(moirai_analysis_new(&s.a, s.p, s.plan, NULL));
    moirai_what_if_options_init(&o);
    o.budget.time_limit_s = 1;
    o.budget.threads = 1;
    assert_ok(moirai_what_if_run(&list, &n, s.a, &o));
    assert_true(n > 5);
    for (int32_t i = 0; i < n; i++) {
        assert_true(list[i].change.kind != MOIRAI_CHANGE_MEMORY); /* everything fits everywhere */
        tried += list[i].result != MOIRAI_ELIMIT;
        if (list[i].result == MOIRAI_ELIMIT)
            assert_true(list[i].makespan_ns < 0 && list[i].lower_bound_ns < 0 && strstr(list[i].message, "not tried"));
        else if (list[i].change.kind != MOIRAI_CHANGE_LESS)
            assert_true(list[i].replay_ns >= 0 && list[i].search_ns <= list[i].replay_ns);
    }
    assert_int_equal(tried, 2); /* 428 operators: a second is one useful search, and one change is always tried */
    free(list);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    tear_down(&s);
}

/* Searches that end before their time leave it to the others: the budget is used, and nothing is left untried in it. */
static void test_what_if_spends_what_is_left_on_the_rest(void **state)
{
    (void)state;
    moirai_cluster *c;
    moirai_graph *g;
    setting s = {0};
    moirai_problem_options po = {0};
    moirai_what_if_options o;
    moirai_what_if *list;
    int32_t n;
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_ok(moirai_zoo_graph(&g, "gpt3-mini", 4));
    assert_ok(moirai_problem_new(&s.p, g, c, &po));
    assert_ok(moirai_place(&s.plan, s.p, "heft", NULL));
    assert_ok(moirai_analysis_new(&s.a, s.p, s.plan, NULL));
    moirai_what_if_options_init(&o);
    o.placer = "heft"; /* takes a millisecond, where 856 count as useful */
    o.budget.time_limit_s = 5;
    o.budget.threads = 1;
    assert_ok(moirai_what_if_run(&list, &n, s.a, &o));
    assert_true(n > 7);
    for (int32_t i = 0; i < n; i++)
        assert_true(list[i].result != MOIRAI_ELIMIT);
    free(list);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    tear_down(&s);
}

/* Raised before it begins: the base is what the plan says, the others were not searched and say so. */
static void test_what_if_marks_what_an_interrupt_cut(void **state)
{
    (void)state;
    setting s;
    moirai_what_if_options o;
    moirai_what_if *list;
    moirai_interrupt interrupt = {0};
    int32_t n;
    moirai_interrupt_raise(&interrupt);
    moirai_what_if_options_init(&o);
    o.budget.time_limit_s = 0;
    o.budget.interrupt = &interrupt;
    for (uint64_t seed = 1; seed < 9; seed++) {
        if (set_up(&s, seed, 14, 3) && !moirai_what_if_run(&list, &n, s.a, &o)) {
            assert_int_equal(list[0].result, 0);
            assert_true(list[0].makespan_ns <= s.plan->makespan_ns);
            assert_true(list[0].cut_short || list[0].makespan_ns == list[0].search_bound_ns);
            for (int32_t i = 1; i < n; i++)
                assert_true(list[i].result == MOIRAI_ELIMIT && strstr(list[i].message, "interrupted"));
            free(list);
        }
        tear_down(&s);
    }
}

/* A link of a cluster carries more than its own pair: the mesh is closed anew. */
static void test_change_of_a_link_closes_the_mesh_again(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"line\", \"devices\": ["
        "{\"name\": \"A\", \"memory\": \"1GB\", \"type\": \"t4\"}, {\"name\": \"B\", \"memory\": \"1GB\", \"type\": "
        "\"t4\"},"
        "{\"name\": \"C\", \"memory\": \"1GB\", \"type\": \"t4\"}], \"links\": ["
        "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1GB/s\", \"latency\": \"10us\", \"both\": true},"
        "{\"from\": \"B\", \"to\": \"C\", \"bandwidth\": \"8GB/s\", \"latency\": \"2us\", \"both\": true}]}";
    moirai_cluster *c;
    moirai_graph *g;
    moirai_problem *p, *q;
    moirai_problem_options o = {0};
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "line"));
    assert_ok(moirai_zoo_graph(&g, "gpt3-tiny", 4));
    assert_ok(moirai_problem_new(&p, g, c, &o));
    moirai_change change = {MOIRAI_CHANGE_LINK, 0, 1};
    assert_ok(moirai_problem_change(&q, p, c, &change));
    assert_true(q->bytes_per_second[0 * 3 + 1] == 2000000000 && q->bytes_per_second[0 * 3 + 2] == 2000000000);
    assert_true(q->latency_ns[0 * 3 + 2] == 7000 && q->bytes_per_second[1 * 3 + 2] == 8000000000);
    moirai_problem_free(q);
    change = (moirai_change){MOIRAI_CHANGE_LINK, 0, 2}; /* no such link */
    assert_int_equal(moirai_problem_change(&q, p, c, &change), MOIRAI_EINPUT);
    p->latency_ns[1]++; /* another cluster's problem */
    change = (moirai_change){MOIRAI_CHANGE_LINK, 0, 1};
    assert_int_equal(moirai_problem_change(&q, p, c, &change), MOIRAI_EINPUT);
    moirai_problem_free(p);
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change_is_an_edit_of_the_file),
        cmocka_unit_test(test_what_if_is_a_run_of_its_own),
        cmocka_unit_test(test_what_if_claims_hold_for_the_optimum),
        cmocka_unit_test(test_what_if_tries_few_rather_than_all_badly),
        cmocka_unit_test(test_what_if_spends_what_is_left_on_the_rest),
        cmocka_unit_test(test_what_if_marks_what_an_interrupt_cut),
        cmocka_unit_test(test_change_of_a_link_closes_the_mesh_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
