/* The analysis against what can be counted by hand on random plans, and the exports against their formats. */
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"

#include <inttypes.h>
#include <moirai/moirai.h>
#include <unistd.h>
#include <yyjson.h>

typedef struct setting {
    moirai_problem *p;
    moirai_plan *plan;
    moirai_analysis *a;
} setting;

static void tear_down(setting *s)
{
    moirai_analysis_free(s->a);
    moirai_plan_free(s->plan);
    moirai_problem_free(s->p);
}

/* A random problem in a random mode with a random plan. */
static bool set_up(setting *s, uint64_t seed)
{
    static const char *const placers[] = {"random", "heft", "m-topo"};
    random_spec spec = random_spec_draw(seed, 30);
    moirai_place_options o;
    memset(s, 0, sizeof *s);
    spec.tight = false;
    s->p = random_problem(&spec);
    assert_non_null(s->p);
    moirai_place_options_init(&o);
    o.budget.seed = seed;
    if (moirai_place(&s->plan, s->p, placers[seed % 3], &o)) {
        tear_down(s);
        return false;
    }
    if (seed % 4 == 0) /* a plan that starts everything later than it could */
        for (int32_t i = 0; i < s->plan->n_ops; i++) {
            s->plan->op_start_ns[i] += 1000;
            s->plan->op_finish_ns[i] += 1000;
        }
    for (int32_t x = 0; seed % 4 == 0 && x < s->plan->n_transfers; x++) {
        s->plan->transfer[x].start_ns += 1000;
        s->plan->transfer[x].finish_ns += 1000;
    }
    if (seed % 4 == 0 && s->plan->n_ops)
        s->plan->makespan_ns += 1000;
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
    return true;
}

static char *export_text(const moirai_analysis *a, const char *format, size_t *length)
{
    char *text;
    assert_ok(moirai_export(&text, length, a, format, NULL));
    assert_int_equal(strlen(text), *length);
    return text;
}

/* ---- the analysis ---- */

/* When tensor t is on device d, looked up the slow way. */
static int64_t there_at(const setting *s, int32_t t, int32_t reader, int32_t d)
{
    int32_t producer = s->p->tensor_producer[t];
    if (s->plan->op_device[producer] == d)
        return s->plan->op_finish_ns[producer];
    for (int32_t x = 0; x < s->plan->n_transfers; x++) {
        const moirai_transfer *y = &s->plan->transfer[x];
        if (y->tensor == t && y->to == d && (y->reader == MOIRAI_NONE || y->reader == reader))
            return y->finish_ns;
    }
    fail_msg("a tensor that is read never comes");
    return -1;
}

/* Nanoseconds of [from, to) in which operator or transfer `task` could not start, counted one by one where short. */
static int64_t taken(const setting *s, int32_t task, int64_t from, int64_t to)
{
    int32_t n_ops = s->plan->n_ops;
    int64_t sum = 0, at = from;
    while (at < to) { /* to the next moment at which something changes */
        int64_t next = to;
        bool busy = false;
        for (int32_t j = 0; j < n_ops + s->plan->n_transfers; j++) {
            bool op = j < n_ops;
            const moirai_transfer *y = op ? NULL : &s->plan->transfer[j - n_ops],
                                  *mine = task < n_ops ? NULL : &s->plan->transfer[task - n_ops];
            if (op != (task < n_ops) || j == task)
                continue;
            if (op && s->plan->op_device[j] != s->plan->op_device[task])
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_NONE)
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_PORT && y->from != mine->from && y->to != mine->to)
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_CHANNEL && (y->from != mine->from || y->to != mine->to))
                continue;
            int64_t a = op ? s->plan->op_start_ns[j] : y->start_ns, b = op ? s->plan->op_finish_ns[j] : y->finish_ns;
            if (a <= at && at < b) {
                busy = true;
                next = b < next ? b : next;
            } else if (a > at && a < next && b > a) {
                next = a;
            }
        }
        sum += busy ? next - at : 0;
        at = next;
    }
    return sum;
}

static void test_analysis_delays_are_what_counting_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(120); seed++) {
        setting s;
        if (!set_up(&s, seed))
            continue;
        for (int32_t i = 0; i < s.p->n_ops; i++) {
            int64_t ready = 0;
            for (int32_t j = s.p->op_in_off[i]; j < s.p->op_in_off[i + 1]; j++) {
                int64_t there = there_at(&s, s.p->op_in[j], i, s.plan->op_device[i]);
                ready = there > ready ? there : ready;
            }
            assert_true(s.a->delay[i].ready_ns == ready);
        }
        for (int32_t task = 0; task < s.a->n_ops + s.a->n_transfers; task++) {
            const moirai_delay *d = &s.a->delay[task];
            int64_t start = moirai_task_start(s.a, task);
            assert_true(d->busy_ns == taken(&s, task, d->ready_ns, start));
            assert_true(d->held_ns == start - d->ready_ns - d->busy_ns && d->held_ns >= 0);
            assert_true((d->behind != MOIRAI_NONE) == (d->busy_ns > 0));
        }
        tear_down(&s);
    }
}

static void test_analysis_path_fills_the_makespan(void **state)
{
    (void)state;
    int64_t seen[MOIRAI_SHARES] = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(200); seed++) {
        setting s;
        if (!set_up(&s, seed))
            continue;
        const moirai_analysis *a = s.a;
        int64_t sum = 0, now = 0;
        for (int k = 0; k < MOIRAI_SHARES; k++) {
            sum += a->share_ns[k];
            seen[k] += a->share_ns[k];
        }
        assert_true(sum == s.plan->makespan_ns);
        for (int32_t i = 0; i < a->n_steps; i++) { /* each step begins where the one before ended */
            assert_true(a->delay[a->step[i]].ready_ns == now);
            assert_int_equal(a->delay[a->step[i]].cause, i ? a->step[i - 1] : MOIRAI_NONE);
            assert_true(a->on_path[a->step[i]]);
            now = moirai_task_finish(a, a->step[i]);
        }
        assert_true(now == s.plan->makespan_ns);
        tear_down(&s);
    }
    for (int k = 0; k < MOIRAI_SHARES; k++)
        assert_true(seen[k] > 0);
}

static void test_analysis_memory_is_the_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(120); seed++) {
        setting s;
        if (!set_up(&s, seed))
            continue;
        for (int32_t k = 0; k < s.p->n_devices; k++) {
            assert_true(s.a->resident_bytes[k] == s.plan->device_memory_bytes[k]);
            assert_true(s.a->peak_bytes[k] == s.plan->device_peak_bytes[k]);
            assert_true(s.a->busy_ns[k] == s.plan->device_busy_ns[k]);
            for (int32_t j = s.a->memory_off[k]; j + 1 < s.a->memory_off[k + 1]; j++)
                assert_true(s.a->memory_ns[j] < s.a->memory_ns[j + 1]);
        }
        tear_down(&s);
    }
}

static void test_analysis_refuses_a_wrong_plan(void **state)
{
    (void)state;
    setting s;
    moirai_analysis *a;
    assert_true(set_up(&s, 2) && s.plan->n_ops > 0);
    s.plan->op_finish_ns[0]++;
    assert_int_equal(moirai_analysis_new(&a, s.p, s.plan, NULL), MOIRAI_EFAIL);
    assert_null(a);
    assert_non_null(strstr(moirai_error_message(), "breaks the rules"));
    tear_down(&s);
}

/* Moving an operator is what simulating the moved plan gives. */
static void test_explain_op_is_a_simulation(void **state)
{
    (void)state;
    int moved = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(40); seed++) {
        setting s;
        moirai_elsewhere where[MOIRAI_MAX_DEVICES];
        char text[600];
        if (!set_up(&s, seed * 4 + 1) || !s.p->n_ops)
            continue;
        for (int32_t op = 0; op < s.p->n_ops; op += 5) {
            assert_ok(moirai_explain_op(where, s.a, op));
            for (int32_t d = 0; d < s.p->n_devices; d++) {
                assert_true((where[d].makespan_ns >= 0) == (s.p->op_devices[op] >> d & 1));
                moirai_plan *copy, *again;
                if (where[d].makespan_ns < 0 || s.p->op_group[op] != MOIRAI_NONE || s.p->memory == MOIRAI_MEMORY_PEAK ||
                    d == s.plan->op_device[op])
                    continue;
                assert_ok(moirai_plan_copy(&copy, s.plan));
                copy->op_device[op] = d;
                assert_ok(moirai_plan_tighten(&again, s.p, copy));
                assert_true(again->makespan_ns == where[d].makespan_ns);
                moirai_plan_free(copy);
                moirai_plan_free(again);
                moved++;
            }
            moirai_explain_op_text(text, sizeof text, s.a, op, where);
            assert_non_null(strstr(text, s.p->op_name[op]));
        }
        tear_down(&s);
    }
    assert_true(moved > 10);
}

/* ---- the trace ---- */

typedef struct slice {
    int64_t pid, tid, start_ns, finish_ns;
} slice;

static int by_track(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->finish_ns > y->finish_ns) - (x->finish_ns < y->finish_ns);
}

/* "12.345" microseconds as nanoseconds, exactly. */
static int64_t raw_ns(yyjson_val *v)
{
    long long whole;
    int part;
    assert_true(yyjson_is_raw(v));
    assert_int_equal(sscanf(yyjson_get_raw(v), "%lld.%3d", &whole, &part), 2);
    return whole * 1000 + part;
}

/* The slices of a trace in `list`; returns their number. Arrows must go forward. */
static size_t read_trace(slice *list, const char *text, size_t length)
{
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text, length, YYJSON_READ_NUMBER_AS_RAW, NULL, NULL);
    assert_non_null(doc);
    size_t i, n, found = 0;
    yyjson_val *e;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents"), i, n, e) {
        const char *phase = yyjson_get_str(yyjson_obj_get(e, "ph"));
        assert_non_null(strstr("X M s t f C", phase));
        if (*phase != 'X')
            continue;
        int64_t start = raw_ns(yyjson_obj_get(e, "ts"));
        list[found++] =
            (slice){atoll(yyjson_get_raw(yyjson_obj_get(e, "pid"))), atoll(yyjson_get_raw(yyjson_obj_get(e, "tid"))),
                    start, start + raw_ns(yyjson_obj_get(e, "dur"))};
    }
    yyjson_doc_free(doc);
    return found;
}

static void assert_tracks_nest(slice *list, size_t n)
{
    qsort(list, n, sizeof *list, by_track);
    for (size_t i = 1; i < n; i++)
        if (list[i].pid == list[i - 1].pid && list[i].tid == list[i - 1].tid)
            assert_true(list[i].start_ns >= list[i - 1].finish_ns || list[i].finish_ns <= list[i - 1].finish_ns);
}

static void test_trace_slices_follow_or_nest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(150); seed++) {
        setting s;
        size_t length, most;
        if (!set_up(&s, seed))
            continue;
        char *text = export_text(s.a, "trace", &length);
        most = (size_t)s.plan->n_ops + 2 * (size_t)s.plan->n_transfers;
        slice *list = calloc(most + 1, sizeof *list);
        assert_int_equal(read_trace(list, text, length), most);
        assert_tracks_nest(list, most);
        free(list);
        free(text);
        tear_down(&s);
    }
}

/* ---- hostile names ---- */

/* All that could end a string, a tag, a label or a field. */
static const char *const hostile[] = {
    "</script><script>window.hacked=1</script>",
    "\"><img src=x onerror=window.hacked=1>",
    "a\nb\r\nc",
    "'; window.hacked=1; '",
    "\\N \\\" \\",
    "<!--",
    "]]>",
    "&lt;b&gt; &amp;",
    "comma, \"quoted\", field",
    "\xe2\x80\xa8 line separator",
    "{{data}}",
    "=1+1",
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

static void add_string(yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, const char *text)
{
    yyjson_mut_obj_add_strcpy(d, o, key, text);
}

/* A chain of operators with those names over two devices with such names, too. */
static char *hostile_problem(size_t *length)
{
    yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(d), *list, *o, *l;
    yyjson_mut_doc_set_root(d, root);
    add_string(d, root, "format", "moirai-problem");
    yyjson_mut_obj_add_int(d, root, "version", 1);
    add_string(d, root, "name", hostile[0]);
    add_string(d, root, "flow", "tensor");
    add_string(d, root, "congestion", "port");
    add_string(d, root, "memory", "peak");
    list = yyjson_mut_obj_add_arr(d, root, "devices");
    for (int k = 0; k < 2; k++) {
        o = yyjson_mut_arr_add_obj(d, list);
        add_string(d, o, "name", hostile[k]);
        yyjson_mut_obj_add_int(d, o, "memory_bytes", 1000000);
    }
    list = yyjson_mut_obj_add_arr(d, root, "channels");
    for (int k = 0; k < 2; k++) {
        o = yyjson_mut_arr_add_obj(d, list);
        add_string(d, o, "from", hostile[k]);
        add_string(d, o, "to", hostile[1 - k]);
        yyjson_mut_obj_add_int(d, o, "bytes_per_second", 1000000000);
        yyjson_mut_obj_add_int(d, o, "latency_ns", 10);
    }
    list = yyjson_mut_obj_add_arr(d, root, "ops");
    for (int i = 0; i < HOSTILE; i++) {
        o = yyjson_mut_arr_add_obj(d, list);
        add_string(d, o, "name", hostile[i]);
        add_string(d, o, "type", hostile[(i + 1) % HOSTILE]);
        yyjson_mut_obj_add_int(d, o, "memory_bytes", 100);
        l = yyjson_mut_obj_add_arr(d, o, "time_ns"); /* in turn */
        for (int k = 0; k < 2; k++)
            if (i % 2 == k)
                yyjson_mut_arr_add_int(d, l, 100000);
            else
                yyjson_mut_arr_add_null(d, l);
        l = yyjson_mut_obj_add_arr(d, o, "inputs");
        if (i)
            yyjson_mut_arr_add_strcpy(d, l, hostile[i - 1]);
        l = yyjson_mut_obj_add_arr(d, o, "outputs");
        o = yyjson_mut_arr_add_obj(d, l);
        add_string(d, o, "name", hostile[i]);
        yyjson_mut_obj_add_int(d, o, "bytes", 1000);
    }
    char *text = yyjson_mut_write(d, 0, length);
    yyjson_mut_doc_free(d);
    return text;
}

static void set_up_hostile(setting *s)
{
    size_t length;
    char *json = hostile_problem(&length);
    memset(s, 0, sizeof *s);
    assert_ok(moirai_problem_parse(&s->p, json, length, "hostile"));
    assert_ok(moirai_place(&s->plan, s->p, "heft", NULL));
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
    free(json);
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

static void test_page_holds_hostile_names_as_data_only(void **state)
{
    (void)state;
    setting s;
    char *page;
    size_t length;
    set_up_hostile(&s);
    assert_ok(moirai_report_html(&page, &length, s.p, s.plan));
    assert_int_equal(strlen(page), length);
    assert_int_equal(count_of(page, "<script"), 2);
    assert_int_equal(count_of(page, "</script"), 2);
    assert_int_equal(count_of(page, "<img"), 0);
    const char *data = strstr(page, "id=\"data\">") + strlen("id=\"data\">"), *end = strstr(data, "</script>");
    yyjson_doc *doc = yyjson_read(data, (size_t)(end - data), 0);
    assert_non_null(doc);
    yyjson_val *names = yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "problem"), "ops");
    for (size_t i = 0; i < HOSTILE; i++)
        assert_string_equal(yyjson_get_str(yyjson_arr_get(names, i)), hostile[i]);
    yyjson_doc_free(doc);
    free(page);
    tear_down(&s);
}

static void test_trace_holds_hostile_names(void **state)
{
    (void)state;
    setting s;
    size_t length, i, n, found = 0;
    yyjson_val *e;
    set_up_hostile(&s);
    char *text = export_text(s.a, "trace", &length);
    yyjson_doc *doc = yyjson_read(text, length, 0);
    assert_non_null(doc);
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents"), i, n, e) {
        const char *category = yyjson_get_str(yyjson_obj_get(e, "cat"));
        for (size_t j = 0; category && !strcmp(category, "operator") && j < HOSTILE; j++)
            found += !strcmp(yyjson_get_str(yyjson_obj_get(e, "name")), hostile[j]);
    }
    yyjson_doc_free(doc);
    assert_null(strstr(text, "</script"));
    free(text);
    tear_down(&s);
    assert_int_equal(found, HOSTILE);
}

/* ---- CSV ---- */

/* Cuts one field off a CSV text, as RFC 4180 says; *end gets the character behind it. */
static char *csv_field(const char **text, char *end)
{
    static char field[400];
    size_t n = 0;
    bool quoted = **text == '"';
    *text += quoted;
    for (; **text; ++*text) {
        if (quoted && **text == '"') {
            if ((*text)[1] != '"') {
                ++*text;
                break;
            }
            ++*text;
        } else if (!quoted && (**text == ',' || **text == '\n')) {
            break;
        }
        field[n++] = **text;
    }
    field[n] = '\0';
    *end = **text;
    *text += **text != '\0';
    return field;
}

static void test_csv_gives_names_and_times_back(void **state)
{
    (void)state;
    setting s;
    size_t length;
    set_up_hostile(&s);
    char *text = export_text(s.a, "csv", &length), end;
    const char *at = text;
    for (int32_t line = -1; *at; line++) {
        int fields = 0;
        do {
            const char *field = csv_field(&at, &end);
            if (line >= 0 && fields == 1)
                assert_string_equal(field, moirai_task_name(s.a, line));
            if (line >= 0 && fields == 6)
                assert_true(atoll(field) == moirai_task_start(s.a, line));
            if (line >= 0 && fields == 7)
                assert_true(atoll(field) == moirai_task_finish(s.a, line));
            fields++;
        } while (end == ',');
        assert_int_equal(fields, 13);
        assert_true(line < s.a->n_ops + s.a->n_transfers);
    }
    free(text);
    tear_down(&s);
}

/* ---- DOT and SVG ---- */

static bool have(const char *program)
{
    char line[100];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", program);
    return system(line) == 0;
}

/* The program accepts the text without a word. */
static void assert_accepts(const char *program, const char *text)
{
    char line[600];
    char *in = temporary_path("in"), *out = temporary_path("out");
    FILE *f = fopen(in, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    snprintf(line, sizeof line, "%s %s >%s 2>&1", program, in, out);
    if (system(line))
        fail_msg("%s refuses: %.400s", program, text);
    unlink(in);
    unlink(out);
}

static void accepted(const char *format, const char *program, const char *line)
{
    setting s;
    size_t length;
    if (!have(program)) {
        print_message("skipped: %s is not here\n", program);
        skip();
    }
    for (uint64_t seed = 0; seed <= TEST_SHARE(8); seed++) {
        if (seed == 0)
            set_up_hostile(&s);
        else if (!set_up(&s, seed))
            continue;
        char *text = export_text(s.a, format, &length);
        assert_accepts(line, text);
        free(text);
        tear_down(&s);
    }
}

static void test_dot_is_accepted_by_graphviz(void **state)
{
    (void)state;
    accepted("dot", "dot", "dot -Tdot");
}

static void test_svg_is_accepted_by_a_renderer(void **state)
{
    (void)state;
    accepted("svg", "rsvg-convert", "rsvg-convert");
}

/* Labels in DOT say what the names say: read back by Graphviz itself. */
static void test_dot_keeps_every_name(void **state)
{
    (void)state;
    setting s;
    size_t length;
    set_up_hostile(&s);
    char *text = export_text(s.a, "dot", &length);
    assert_int_equal(count_of(text, "subgraph cluster_"), 2);
    assert_int_equal(count_of(text, " -> "), HOSTILE - 1);
    for (int i = 0; i < HOSTILE; i++) {
        char node[20];
        snprintf(node, sizeof node, " n%d [label", i);
        assert_int_equal(count_of(text, node), 1);
    }
    free(text);
    tear_down(&s);
}

/* ---- device map ---- */

static char *map_problem(const char *device2)
{
    static char text[3000];
    snprintf(
        text, sizeof text,
        "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"m\", \"flow\": \"tensor\", \"congestion\": "
        "\"port\", \"memory\": \"static\","
        "\"devices\": [{\"name\": \"A\", \"memory_bytes\": 1000}, {\"name\": \"B\", \"memory_bytes\": 1000}],"
        "\"channels\": [{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 1000, \"latency_ns\": 0},"
        "{\"from\": \"B\", \"to\": \"A\", \"bytes_per_second\": 1000, \"latency_ns\": 0}], \"ops\": ["
        "{\"name\": \"/model/embed/Gather\", \"type\": \"Gather\", \"memory_bytes\": 10, \"time_ns\": [1, null], "
        "\"inputs\": [\"ids\", \"model.embed.weight\"], \"outputs\": [{\"name\": \"e\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.0/fc/MatMul\", \"type\": \"MatMul+Add\", \"memory_bytes\": 10, \"time_ns\": [1, "
        "null], \"inputs\": [\"e\"], \"outputs\": [{\"name\": \"x\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.0/act/Relu\", \"type\": \"Relu\", \"memory_bytes\": 0, \"time_ns\": [null, 1], "
        "\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.1/fc/MatMul\", \"type\": \"MatMul\", \"memory_bytes\": 10, \"time_ns\": [null, 1], "
        "\"inputs\": [\"y\", \"model.layers.1.fc.weight\"], \"outputs\": [{\"name\": \"z\", \"bytes\": 1}]},"
        "{\"name\": \"/model/layers.1/fc/Add_1\", \"type\": \"Add\", \"memory_bytes\": 10, \"time_ns\": %s, "
        "\"inputs\": [\"z\", \"model.layers.1.fc.bias\"], \"outputs\": [{\"name\": \"w\", \"bytes\": 1}]}]}",
        device2);
    return text;
}

static void set_up_map(setting *s, const char *device2)
{
    const char *json = map_problem(device2);
    memset(s, 0, sizeof *s);
    assert_ok(moirai_problem_parse(&s->p, json, strlen(json), "map"));
    assert_ok(moirai_place(&s->plan, s->p, "heft", NULL));
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
}

static void test_device_map_has_shortest_prefixes(void **state)
{
    (void)state;
    setting s;
    size_t length;
    set_up_map(&s, "[null, 1]");
    char *text = export_text(s.a, "device-map", &length);
    yyjson_doc *doc = yyjson_read(text, length, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_int_equal(yyjson_obj_size(root), 3);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.embed")), "A");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.layers.0")), "A");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "model.layers.1")), "B");
    yyjson_doc_free(doc);
    free(text);
    moirai_export_options o = {.depth = 2};
    assert_int_equal(moirai_export(&text, &length, s.a, "device-map", &o), MOIRAI_EINPUT); /* model.layers is on both */
    assert_non_null(strstr(moirai_error_message(), "module 'model.layers' is split"));
    tear_down(&s);
}

static void test_device_map_names_a_split_module(void **state)
{
    (void)state;
    setting s;
    char *text;
    size_t length;
    set_up_map(&s, "[1, null]");
    assert_int_equal(moirai_export(&text, &length, s.a, "device-map", NULL), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(),
                           "module 'model.layers.1.fc' is split over devices: 'model.layers.1.fc.bias' is "
                           "on 'A', 'model.layers.1.fc.weight' on 'B'"));
    tear_down(&s);
}

/* Is `name`, '/' as '.', under one of the keys? Then the key's device; NULL otherwise. */
static const char *looked_up(yyjson_val *map, const char *name)
{
    char dotted[300];
    const char *found = NULL;
    size_t i, n, best = 0;
    yyjson_val *key, *value;
    snprintf(dotted, sizeof dotted, "%s", name);
    for (char *c = dotted; *c; c++)
        *c = *c == '/' ? '.' : *c;
    yyjson_obj_foreach(map, i, n, key, value) {
        size_t length = yyjson_get_len(key);
        bool under =
            !strncmp(dotted, yyjson_get_str(key), length) && (!dotted[length] || dotted[length] == '.' || !length);
        if (under && (!found || length > best)) {
            found = yyjson_get_str(value);
            best = length;
        }
    }
    return found;
}

static void test_device_map_covers_every_weight(void **state)
{
    (void)state;
    static const char *const networks[] = {"gpt3-tiny", "gpt3-mini", "inception-tiny", "swin-1.8B"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        setting s = {0};
        size_t length;
        s.p = zoo_problem(networks[i], "inter-server", MOIRAI_FLOW_TENSOR);
        assert_ok(moirai_place(&s.plan, s.p, "m-etf", NULL));
        assert_ok(moirai_analysis_new(&s.a, s.p, s.plan, NULL));
        char *text = export_text(s.a, "device-map", &length);
        yyjson_doc *doc = yyjson_read(text, length, 0);
        assert_non_null(doc);
        for (int32_t j = 0; j < s.p->n_ops; j++) {
            if (!s.p->op_memory_bytes[j])
                continue;
            const char *device = looked_up(yyjson_doc_get_root(doc), s.p->op_name[j]);
            assert_non_null(device);
            assert_string_equal(device, s.p->device_name[s.plan->op_device[j]]);
        }
        yyjson_doc_free(doc);
        free(text);
        tear_down(&s);
    }
}

/* ---- files around a plan ---- */

static void test_plan_alone_shows_its_timeline(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(40); seed++) {
        setting s;
        moirai_problem *p;
        moirai_plan *plan;
        moirai_analysis *a;
        size_t length;
        const char *path = temporary_path("plan.json");
        if (!set_up(&s, seed) || !s.plan->n_ops)
            continue;
        assert_ok(moirai_plan_write(s.plan, s.p, path));
        assert_ok(moirai_problem_of_plan(&p, path));
        assert_ok(moirai_plan_read(&plan, p, path));
        assert_ok(moirai_analysis_new(&a, p, plan, NULL));
        assert_int_equal(a->n_ops, s.plan->n_ops);
        assert_int_equal(a->n_transfers, s.plan->n_transfers);
        assert_true(plan->makespan_ns == s.plan->makespan_ns && a->sent_bytes == s.a->sent_bytes && a->n_steps == 0);
        char *text = export_text(a, "trace", &length), *page;
        slice *list = calloc((size_t)a->n_ops + 2 * (size_t)a->n_transfers, sizeof *list);
        assert_tracks_nest(list, read_trace(list, text, length));
        assert_ok(moirai_report_page(&page, &length, &(moirai_report_plan){.analysis = a}, 1));
        free(page);
        free(list);
        free(text);
        moirai_analysis_free(a);
        moirai_plan_free(plan);
        moirai_problem_free(p);
        unlink(path);
        tear_down(&s);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_search_log_is_read_or_refused(void **state)
{
    (void)state;
    const char *path = temporary_path("log.json");
    moirai_search_event *e;
    int32_t n;
    write_file(path, "{\"seconds\": 0.5, \"makespan_ns\": 90, \"lower_bound_ns\": null}\n\n{\"makespan_ns\": 80, "
                     "\"lower_bound_ns\": 70}\n");
    assert_ok(moirai_search_log_read(&e, &n, path));
    assert_int_equal(n, 2);
    assert_true(e[0].seconds == 0.5 && e[0].makespan_ns == 90 && e[0].lower_bound_ns == MOIRAI_UNKNOWN);
    assert_true(e[1].seconds == 2 && e[1].makespan_ns == 80 && e[1].lower_bound_ns == 70);
    free(e);
    write_file(path, "{\"seconds\": 0.5}\nnonsense\n");
    assert_int_equal(moirai_search_log_read(&e, &n, path), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "line 2"));
    unlink(path);
}

static void test_timeline_names_are_the_problems(void **state)
{
    (void)state;
    setting s;
    moirai_measured *t;
    set_up_map(&s, "[null, 1]");
    static const char good[] = "{\"format\": \"moirai-timeline\", \"version\": 1, \"median_ns\": 9, \"devices\": "
                               "[{\"name\": \"B\", \"segments\": [{\"start_ns\": 2, \"finish_ns\": 9, "
                               "\"median_ns\": 7, \"ops\": [\"/model/layers.0/act/Relu\"]}]}, {\"name\": \"A\", "
                               "\"segments\": []}], \"transfers\": [{\"tensor\": \"x\", \"from\": \"A\", "
                               "\"to\": \"B\", \"bytes\": 1, \"start_ns\": 1, \"finish_ns\": 2, \"median_ns\": 1}]}";
    assert_ok(moirai_measured_parse(&t, s.p, good, strlen(good), "t"));
    assert_true(t->latency_ns == 9 && t->n_segments == 1 && t->segment[0].device == 1 && t->op[0] == 2);
    assert_true(t->n_transfers == 1 && t->transfer[0].from == 0 && t->transfer[0].to == 1 &&
                !strcmp(t->transfer[0].tensor, "x"));
    moirai_measured_free(t);
    static const char bad[] =
        "{\"format\": \"moirai-timeline\", \"version\": 1, \"devices\": [{\"name\": \"Z\", \"segments\": []}]}";
    assert_int_equal(moirai_measured_parse(&t, s.p, bad, strlen(bad), "t"), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "device 'Z'"));
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analysis_delays_are_what_counting_gives),
        cmocka_unit_test(test_analysis_path_fills_the_makespan),
        cmocka_unit_test(test_analysis_memory_is_the_plans),
        cmocka_unit_test(test_analysis_refuses_a_wrong_plan),
        cmocka_unit_test(test_explain_op_is_a_simulation),
        cmocka_unit_test(test_trace_slices_follow_or_nest),
        cmocka_unit_test(test_page_holds_hostile_names_as_data_only),
        cmocka_unit_test(test_trace_holds_hostile_names),
        cmocka_unit_test(test_csv_gives_names_and_times_back),
        cmocka_unit_test(test_dot_is_accepted_by_graphviz),
        cmocka_unit_test(test_svg_is_accepted_by_a_renderer),
        cmocka_unit_test(test_dot_keeps_every_name),
        cmocka_unit_test(test_device_map_has_shortest_prefixes),
        cmocka_unit_test(test_device_map_names_a_split_module),
        cmocka_unit_test(test_device_map_covers_every_weight),
        cmocka_unit_test(test_plan_alone_shows_its_timeline),
        cmocka_unit_test(test_search_log_is_read_or_refused),
        cmocka_unit_test(test_timeline_names_are_the_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
