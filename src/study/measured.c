/* What was measured: a line of JSON each, as bench/paper_measured.py writes them.
 *
 * A line says in "what" what it is of; lines of other kinds ("failed", for one) are passed over, and so is a last line
 * that a crash cut off. Of two lines about the same the later one counts: whoever measures again adds to the file. */
#include "study/measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "study/lines.h"
#include "util/util.h"

static const char *const kind_name[STUDY_MEASURES] = {"parts", "link",   "baseline", "plan",
                                                      "none",  "memory", "curve",    "operators"};

/* ---- reading ---- */

/* [0.31, 0.31] as "0.31, 0.31". */
static int read_list(char *out, size_t size, const util_json_at *at, yyjson_val *object, const char *key)
{
    yyjson_val *array, *value;
    size_t i, n, used = 0;
    int rc = util_json_array(&array, at, object, key, false);
    *out = '\0';
    if (rc || !array)
        return rc;
    yyjson_arr_foreach(array, i, n, value) {
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%g", i ? ", " : "", yyjson_get_num(value));
    }
    return 0;
}

/* The two numbers that a line of this kind has to have. */
static int read_numbers(study_measure *m, const util_json_at *at, yyjson_val *object)
{
    static const char *const keys[STUDY_MEASURES][2] = {[STUDY_MEASURE_LINK] = {"latency_us", "gb_s"},
                                                        [STUDY_MEASURE_BASELINE] = {NULL, "ms"},
                                                        [STUDY_MEASURE_PLAN] = {"predicted_ms", "measured_ms"},
                                                        [STUDY_MEASURE_MEMORY] = {"computed", "measured"},
                                                        [STUDY_MEASURE_CURVE] = {NULL, "ms"},
                                                        [STUDY_MEASURE_OPERATORS] = {"median_us", "mean_us"}};
    const char *first = keys[m->kind][0], *second = keys[m->kind][1];
    int rc = first ? util_json_real(&m->predicted, at, object, first, true) : 0;
    rc = rc || !second ? rc : util_json_real(&m->took, at, object, second, true);
    rc = rc ? rc : util_json_int64(&m->round, at, object, "round", false, 0);
    rc = rc ? rc : util_json_int64(&m->operators, at, object, "operators", false, 0);
    rc = rc || m->kind != STUDY_MEASURE_PLAN ? rc : util_json_int64(&m->parts, at, object, "parts", true, 1);
    rc = rc ? rc : util_json_int64(&m->bytes, at, object, "weights", false, 0);
    if (rc || (m->kind != STUDY_MEASURE_CURVE && m->kind != STUDY_MEASURE_OPERATORS))
        return rc;
    bool curve = m->kind == STUDY_MEASURE_CURVE;
    rc = util_json_real(&m->seconds, at, object, curve ? "seconds" : "longest_us", true);
    return rc ? rc : util_json_real(&m->cpu_s, at, object, curve ? "cpu_s" : "short", true);
}

static int read_row(study_measure *m, const util_json_at *at, yyjson_val *object)
{
    int rc = study_read_text(m->network, sizeof m->network, at, object, "network");
    rc = rc ? rc : study_read_text(m->testbed, sizeof m->testbed, at, object, "testbed");
    rc = rc ? rc : study_read_text(m->graph, sizeof m->graph, at, object, "graph");
    rc = rc ? rc : study_read_text(m->link, sizeof m->link, at, object, "link");
    rc = rc ? rc : study_read_text(m->placer, sizeof m->placer, at, object, "placer");
    rc = rc ? rc : study_read_text(m->how, sizeof m->how, at, object, "how");
    rc = rc ? rc : study_read_text(m->part, sizeof m->part, at, object, "part");
    rc = rc ? rc : study_read_text(m->date, sizeof m->date, at, object, "date");
    rc = rc ? rc
            : study_read_text(m->text, sizeof m->text, at, object, m->kind == STUDY_MEASURE_PARTS ? "device" : "why");
    rc = rc || m->kind != STUDY_MEASURE_PARTS ? rc : read_list(m->list[0], sizeof m->list[0], at, object, "share");
    rc = rc || m->kind != STUDY_MEASURE_PARTS ? rc : read_list(m->list[1], sizeof m->list[1], at, object, "sm");
    return rc ? rc : read_numbers(m, at, object);
}

static bool about_the_same(const study_measure *a, const study_measure *b)
{
    bool plan = a->kind == STUDY_MEASURE_PLAN || a->kind == STUDY_MEASURE_NONE;
    bool other = b->kind == STUDY_MEASURE_PLAN || b->kind == STUDY_MEASURE_NONE;
    return (a->kind == b->kind || (plan && other)) && a->round == b->round && a->seconds == b->seconds &&
           !strcmp(a->network, b->network) && !strcmp(a->testbed, b->testbed) && !strcmp(a->graph, b->graph) &&
           !strcmp(a->link, b->link) && !strcmp(a->placer, b->placer) && !strcmp(a->how, b->how) &&
           !strcmp(a->part, b->part);
}

static int keep(struct moirai_study_measured *all, const study_measure *m)
{
    for (size_t i = 0; i < all->n; i++)
        if (about_the_same(&all->row[i], m)) {
            all->row[i] = *m;
            return 0;
        }
    int rc = util_grow(&all->row, &all->capacity, all->n + 1, sizeof *all->row);
    if (!rc)
        all->row[all->n++] = *m;
    return rc;
}

static int take_row(void *to, const util_json_at *at, yyjson_val *object)
{
    study_measure m = {0};
    const char *what;
    int kind = 0, rc = util_json_string(&what, NULL, at, object, "what", true);
    while (!rc && kind < STUDY_MEASURES && strcmp(what, kind_name[kind]))
        kind++;
    if (rc || kind == STUDY_MEASURES)
        return rc;
    m.kind = (study_measure_kind)kind;
    rc = read_row(&m, at, object);
    return rc ? rc : keep(to, &m);
}

void study_measured_free(struct moirai_study_measured *all)
{
    if (all)
        free(all->row);
    free(all);
}

int moirai_study_measured_parse(moirai_study *s, const char *data, size_t length, const char *label)
{
    if (!s->measured && !(s->measured = util_alloc(1, sizeof *s->measured)))
        return MOIRAI_EFAIL;
    return study_each_line(data, length, label, take_row, s->measured);
}

int moirai_study_measured_read(moirai_study *s, const char *path)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = moirai_study_measured_parse(s, data, length, path);
    free(data);
    return rc;
}

/* ---- finding ---- */

static bool text_fits(const char *wanted, const char *there)
{
    return !wanted || !strcmp(wanted, there);
}

const study_measure *study_measure_next(const moirai_study *s, const study_measure_filter *f, size_t *from)
{
    while (s->measured && *from < s->measured->n) {
        const study_measure *m = &s->measured->row[(*from)++];
        if (m->kind == f->kind && text_fits(f->network, m->network) && text_fits(f->testbed, m->testbed) &&
            text_fits(f->graph, m->graph) && text_fits(f->link, m->link) && text_fits(f->placer, m->placer) &&
            text_fits(f->how, m->how) && (f->round < 0 || f->round == m->round))
            return m;
    }
    return NULL;
}

const study_measure *study_measure_find(const moirai_study *s, const study_measure_filter *f)
{
    size_t from = 0;
    return study_measure_next(s, f, &from);
}

void study_measure_names(study_names *out, const moirai_study *s, study_measure_kind kind, study_by column)
{
    study_measure_filter f = {.kind = kind, .round = -1};
    const study_measure *m;
    out->n = 0;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        const char *word = column == STUDY_BY_NETWORK   ? m->network
                           : column == STUDY_BY_TESTBED ? m->testbed
                           : column == STUDY_BY_LINK    ? m->link
                                                        : m->placer;
        int i = 0;
        while (i < out->n && strcmp(out->name[i], word))
            i++;
        if (i == out->n && out->n < STUDY_MOST_NAMES)
            out->name[out->n++] = word;
    }
}
