/* All rows as CSV, and rows, tables and findings as JSON. */
#include "study/fields.h"

#include <stdlib.h>

int moirai_study_csv(char **out, size_t *length, const moirai_study *s)
{
    report_text t = {0};
    *out = NULL;
    for (int f = 0; f < STUDY_FIELDS; f++)
        report_put(&t, "%s%s", f ? "," : "", study_field_at[f].name);
    report_put(&t, ",version\n");
    for (int32_t i = 0; i < s->n; i++) {
        if (!s->row[i].done)
            continue;
        for (int f = 0; f < STUDY_FIELDS; f++) {
            report_put(&t, f ? "," : "");
            study_put_field_csv(&t, &study_field_at[f], &s->row[i]);
        }
        report_put(&t, ",");
        report_put_csv(&t, s->row[i].version);
        report_put(&t, "\n");
    }
    return report_take(out, length, &t);
}

static void put_table(util_writer *w, const study_block *b)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", b->name);
    util_writer_pair_open(w, "columns", '[');
    for (int i = 0; i < b->n_columns && i < b->n_cells; i++)
        util_writer_string(w, b->cell[i]);
    util_writer_close(w, ']');
    util_writer_pair_open(w, "rows", '[');
    for (int i = b->n_columns; i < b->n_cells; i++) {
        if (i % b->n_columns == 0) {
            util_writer_break(w);
            util_writer_open(w, '[');
        }
        util_writer_string(w, b->cell[i]);
        if ((i + 1) % b->n_columns == 0)
            util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static void put_document(util_writer *w, const study_document *d)
{
    const char *chapter = "";
    util_writer_break(w);
    util_writer_pair_open(w, "tables", '[');
    for (size_t i = 0; i < d->n; i++)
        if (d->block[i].kind == STUDY_TABLE)
            put_table(w, &d->block[i]);
    util_writer_close(w, ']');
    util_writer_break(w);
    util_writer_pair_open(w, "texts", '[');
    for (size_t i = 0; i < d->n; i++) {
        const study_block *b = &d->block[i];
        chapter = b->kind == STUDY_HEADING ? b->text : chapter;
        if (b->kind != STUDY_TEXT && b->kind != STUDY_ITEM)
            continue;
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "chapter", chapter);
        util_writer_pair_string(w, "text", b->text);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

int moirai_study_json(char **out, size_t *length, const moirai_study *s)
{
    study_document d = {0};
    util_writer w;
    int32_t done = 0;
    *out = NULL;
    int rc = study_document_make(&d, s);
    if (rc)
        return rc;
    for (int32_t i = 0; i < s->n; i++)
        done += s->row[i].done;
    util_writer_begin(&w, "moirai-study");
    util_writer_pair_string(&w, "library", MOIRAI_VERSION);
    util_writer_pair_int(&w, "cases", s->n);
    util_writer_pair_int(&w, "done", done);
    util_writer_key(&w, "time_limit_s");
    util_writer_real(&w, s->time_limit_s);
    util_writer_break(&w);
    util_writer_pair_open(&w, "rows", '[');
    for (int32_t i = 0; i < s->n; i++)
        if (s->row[i].done) {
            util_writer_break(&w);
            study_put_row(&w, &s->row[i]);
        }
    util_writer_close(&w, ']');
    put_document(&w, &d);
    util_writer_close(&w, '}');
    study_document_free(&d);
    *out = util_writer_take(&w, length);
    return *out ? 0 : MOIRAI_EFAIL;
}
