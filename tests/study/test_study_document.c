/* What the rows say: numbers worked out by hand, the same in every form. */
#include "support/check.h"
#include "support/command.h"
#include "support/scale.h"

#include <math.h>

#include <moirai/study.h>

#include "study/study.h"

/* A row that is done, with this makespan in milliseconds. */
static void done(moirai_study_row *r, int64_t ms)
{
    r->done = true;
    r->makespan_ns = r->planned_ns = ms * 1000000;
    r->lower_bound_ns = 80000000;
    r->single_ns = 300000000;
    r->unfused_ns = MOIRAI_UNKNOWN;
    r->generation_ns = 2000000000;
    r->n_ops = r->n_ops_original = 4872;
    r->element_bytes = 4;
    snprintf(r->version, sizeof r->version, "1");
    snprintf(r->machine, sizeof r->machine, "an abacus, 2 cores");
    snprintf(r->date, sizeof r->date, "2026-01-01 00:00");
}

/* gpt3-330M on both testbeds: moirai 100 ms (coarsened: 80 ms, 97 ms unfused), m-sct 150, placeto 250. */
static moirai_study *study(void)
{
    moirai_study_options o;
    moirai_study *s;
    moirai_study_options_init(&o);
    o.networks = "gpt3-330M";
    o.placers = "placeto,m-sct,moirai";
    o.parts = "latency";
    assert_ok(moirai_study_new(&s, &o));
    for (int32_t i = 0; i < s->n; i++) {
        moirai_study_row *r = &s->row[i];
        done(r, !strcmp(r->of.placer, "placeto") ? 250
                : !strcmp(r->of.placer, "m-sct") ? 150
                : r->of.coarsened                ? 80
                                                 : 100);
        if (r->of.coarsened)
            r->unfused_ns = 97000000;
    }
    return s;
}

/* The cell of a table's row that begins with these words; column counted from 0. */
static const char *cell(const study_document *d, const char *table, const char *const *words, int n, int column)
{
    for (size_t i = 0; i < d->n; i++) {
        const study_block *b = &d->block[i];
        if (b->kind != STUDY_TABLE || strcmp(b->name, table) != 0)
            continue;
        assert_int_equal(b->n_cells % b->n_columns, 0);
        for (int r = b->n_columns; r < b->n_cells; r += b->n_columns) {
            bool same = true;
            for (int w = 0; w < n; w++)
                same = same && !strcmp(b->cell[r + w], words[w]);
            if (same)
                return b->cell[r + column];
        }
    }
    fail_msg("table '%s' has no row '%s'", table, words[0]);
    return NULL;
}
#define CELL(d, table, column, ...) \
    cell(d, table, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), \
         column)

static void test_study_document_speedups_worked_out_by_hand(void **state)
{
    (void)state;
    study_document d = {0};
    moirai_study *s = study();
    assert_ok(study_document_make(&d, s));
    assert_string_equal(CELL(&d, "speedups", 3, "inter-server", "original", "m-sct"), "1.77"); /* the paper's */
    assert_string_equal(CELL(&d, "speedups", 4, "inter-server", "original", "m-sct"), "1.50");
    assert_string_equal(CELL(&d, "speedups", 4, "intra-server", "coarsened", "placeto"), "3.12"); /* 250 / 80 */
    assert_string_equal(CELL(&d, "latency-inter-server-original", 3, "gpt3-330M"), "250.0");
    assert_string_equal(CELL(&d, "latency-inter-server-original", 7, "gpt3-330M"), "20.0"); /* gap: 1 - 80 / 100 */
    assert_string_equal(CELL(&d, "coarsening", 4, "gpt3-330M", "inter-server"), "20.0");    /* 100 to 80 */
    assert_string_equal(CELL(&d, "coarsening", 6, "gpt3-330M", "inter-server"), "3.0");     /* 100 to 97 */
    assert_string_equal(CELL(&d, "generation-original", 3, "gpt3-330M"), "2.00 / 2.00");
    assert_string_equal(CELL(&d, "generation-original", 4, "gpt3-330M"), "15.9");
    assert_string_equal(CELL(&d, "operators", 2, "gpt3-330M"), "4872");
    assert_string_equal(CELL(&d, "findings", 3, "speed-up over m-SCT, inter-server, original"),
                        "less"); /* 1.50, 1.77 */
    assert_string_equal(CELL(&d, "findings", 3, "speed-up over Placeto, inter-server, original"), "less");
    assert_string_equal(CELL(&d, "findings", 3, "speed-up over Placeto, inter-server, coarsened"), "as there");
    assert_string_equal(CELL(&d, "findings", 3, "speed-up over GETF, inter-server, original"), "not run");
    study_document_free(&d);
    moirai_study_free(s);
}

/* A plan that does not fit is no plan, however short. */
static void test_study_document_plans_that_do_not_fit_do_not_count(void **state)
{
    (void)state;
    study_document d = {0};
    moirai_study *s = study();
    for (int32_t i = 0; i < s->n; i++)
        if (!strcmp(s->row[i].of.placer, "m-sct"))
            s->row[i].excess_bytes = 1;
    assert_ok(study_document_make(&d, s));
    assert_string_equal(CELL(&d, "speedups", 4, "inter-server", "original", "m-sct"), "-");
    study_document_free(&d);
    moirai_study_free(s);
}

static void test_study_document_is_whole_with_any_rows_missing(void **state)
{
    (void)state;
    moirai_study *s;
    assert_ok(moirai_study_new(&s, NULL));
    for (int32_t step = 0; step < 8; step++) { /* nothing done at first, then more and more */
        study_document d = {0};
        for (int32_t i = 0; i < s->n; i++)
            if (step > 0 && i % (9 - step) == 0 && !s->row[i].done)
                done(&s->row[i], 100 + i % 7);
        assert_ok(study_document_make(&d, s));
        assert_true(d.n > 2);
        study_document_free(&d);
    }
    moirai_study_free(s);
}

typedef int (*maker)(char **, size_t *, const moirai_study *);

static int markdown(char **out, size_t *length, const moirai_study *s)
{
    return moirai_study_markdown(out, length, s, "paper");
}

static void test_study_every_form_says_where_times_come_from(void **state)
{
    (void)state;
    static const maker forms[] = {moirai_study_text, markdown, moirai_study_page, moirai_study_json};
    moirai_study *s = study();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *text;
        size_t length;
        assert_ok(forms[i](&text, &length, s));
        assert_int_equal(strlen(text), length);
        assert_contains(text, "fitted cost");
        assert_contains(text, "an abacus, 2 cores");
        assert_contains(text, "1.77");
        assert_contains(text, "3.12");
        free(text);
    }
    moirai_study_free(s);
}

static void test_study_a_message_never_becomes_markup(void **state)
{
    (void)state;
    char *text;
    size_t length;
    moirai_study *s = study();
    s->row[0].result = MOIRAI_EFAIL;
    snprintf(s->row[0].message, sizeof s->row[0].message, "</li><script>alert(1)</script> **x | y*");
    assert_ok(moirai_study_page(&text, &length, s));
    assert_null(strstr(text, "<script>alert"));
    assert_contains(text, "&lt;script&gt;alert(1)");
    free(text);
    assert_ok(moirai_study_csv(&text, &length, s));
    free(text);
    moirai_study_free(s);
}

/* Tags balance, and no number is NaN or infinite. */
static void well_formed(const char *svg)
{
    int depth = 0;
    for (const char *at = strchr(svg, '<'); at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        depth += at[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
        assert_true(depth >= 0);
    }
    assert_int_equal(depth, 0);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf\""));
}

static void test_study_figures_are_well_formed(void **state)
{
    (void)state;
    moirai_study *s;
    char *svg, name[32], seen[32][32];
    size_t length;
    assert_ok(moirai_study_new(&s, NULL));
    for (int32_t i = 0; i < s->n; i++)
        done(&s->row[i], 100 + i % 5);
    int n = moirai_study_figure_count(s);
    assert_int_equal(n, 4 + 1 + 1 + 3 + 3); /* speed-ups, generation, ablation, maps, batches */
    for (int i = 0; i < n; i++) {
        assert_ok(moirai_study_figure(&svg, &length, name, s, i));
        well_formed(svg);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(seen[j], name);
        memcpy(seen[i], name, sizeof name);
        free(svg);
    }
    assert_int_equal(moirai_study_figure(&svg, &length, name, s, n), MOIRAI_EUSAGE);
    moirai_study_free(s);
}

/* Of the bar that says so. */
static double height_of(const char *svg, const char *says)
{
    const char *at = strstr(svg, says);
    double height;
    assert_non_null(at);
    while (at > svg && strncmp(at, "height=", 7) != 0)
        at--;
    assert_int_equal(sscanf(at, "height=\"%lf\"", &height), 1);
    return height;
}

static void test_study_a_bar_is_as_high_as_its_value(void **state)
{
    (void)state;
    const char *const group[] = {"g"}, *const series[] = {"one", "two"};
    const double value[] = {1, 2};
    study_bars b = {.title = "t", .unit = "", .n_groups = 1, .n_series = 2, .group = group, .series = series};
    report_text t = {0};
    char *svg;
    size_t length;
    b.value = value;
    study_draw_bars(&t, &b);
    assert_ok(report_take(&svg, &length, &t));
    assert_true(fabs(height_of(svg, "g, two: 2<") - 2 * height_of(svg, "g, one: 1<")) < 0.2);
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_study_document_speedups_worked_out_by_hand),
        cmocka_unit_test(test_study_document_plans_that_do_not_fit_do_not_count),
        cmocka_unit_test(test_study_document_is_whole_with_any_rows_missing),
        cmocka_unit_test(test_study_every_form_says_where_times_come_from),
        cmocka_unit_test(test_study_a_message_never_becomes_markup),
        cmocka_unit_test(test_study_a_bar_is_as_high_as_its_value),
        cmocka_unit_test(test_study_figures_are_well_formed),
    };
    return RUN_CASES_AGAIN(6, tests);
}
