/* Names that could end a string, a tag, a label or a field are names wherever they are written. */
#include "support/analysed.h"
#include "support/check.h"
#include "support/scale.h"

#include <inttypes.h>
#include <moirai/moirai.h>
#include <unistd.h>
#include <yyjson.h>

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
    "@sum",
    "-2",
    "+3, \"4\"",
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

static void set_up_hostile(analysed *s)
{
    size_t length;
    char *json = hostile_problem(&length);
    analysed_parse(s, json, length);
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
    analysed s;
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
    analysed_close(&s);
}

static void test_trace_holds_hostile_names(void **state)
{
    (void)state;
    analysed s;
    size_t length, i, n, found = 0;
    yyjson_val *e;
    set_up_hostile(&s);
    char *text = analysed_export(s.a, "trace", &length);
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
    analysed_close(&s);
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
    analysed s;
    size_t length;
    set_up_hostile(&s);
    char *text = analysed_export(s.a, "csv", &length), end;
    const char *at = text;
    for (int32_t line = -1; *at; line++) {
        int fields = 0;
        do {
            const char *field = csv_field(&at, &end);
            if (line >= 0 && fields == 1) {
                const char *name = moirai_task_name(s.a, line);
                assert_null(strchr("=+-@", *field)); /* no spreadsheet computes it */
                assert_string_equal(field + (*name && strchr("=+-@", *name)), name);
            }
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
    analysed_close(&s);
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
    analysed s;
    size_t length;
    if (!have(program)) {
        skip_because("%s is not here", program);
    }
    for (uint64_t seed = 0; seed <= TEST_SHARE(8); seed++) {
        if (seed == 0)
            set_up_hostile(&s);
        else if (!analysed_draw(&s, seed))
            continue;
        char *text = analysed_export(s.a, format, &length);
        assert_accepts(line, text);
        free(text);
        analysed_close(&s);
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
    analysed s;
    size_t length;
    set_up_hostile(&s);
    char *text = analysed_export(s.a, "dot", &length);
    assert_int_equal(count_of(text, "subgraph cluster_"), 2);
    assert_int_equal(count_of(text, " -> "), HOSTILE - 1);
    for (int i = 0; i < HOSTILE; i++) {
        char node[20];
        snprintf(node, sizeof node, " n%d [label", i);
        assert_int_equal(count_of(text, node), 1);
    }
    free(text);
    analysed_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_holds_hostile_names_as_data_only),
        cmocka_unit_test(test_trace_holds_hostile_names),
        cmocka_unit_test(test_csv_gives_names_and_times_back),
        cmocka_unit_test(test_dot_is_accepted_by_graphviz),
        cmocka_unit_test(test_svg_is_accepted_by_a_renderer),
        cmocka_unit_test(test_dot_keeps_every_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
