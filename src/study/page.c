/* The page: a template, the report's style sheet and tip, and the document as HTML with its figures in it.
 *
 * The parts lie beside this file and in src/report, and are compiled in. Texts and cells are escaped before their marks
 * become elements, so that nothing of a message can become markup. */
#include "study/study.h"

#include <stdlib.h>
#include <string.h>

/* **strong**, *said differently*, `code` of an escaped text. A lone mark stays what it is. */
static void put_marked(report_text *t, const char *text)
{
    static const struct {
        const char *mark, *element;
    } marks[] = {{"**", "b"}, {"*", "i"}, {"`", "code"}};
    while (*text) {
        const char *end = NULL;
        size_t m = 0;
        for (; m < 3 && !end; m++) {
            size_t n = strlen(marks[m].mark);
            if (!strncmp(text, marks[m].mark, n) && text[n] != ' ' && (end = strstr(text + n, marks[m].mark))) {
                report_put(t, "<%s>%.*s</%s>", marks[m].element, (int)(end - text - (ptrdiff_t)n), text + n,
                           marks[m].element);
                text = end + n;
            }
        }
        if (!end)
            report_put_bytes(t, text++, 1);
    }
}

static void put_text(report_text *t, const char *text)
{
    report_text escaped = {0};
    report_put_xml(&escaped, text);
    report_put_bytes(&escaped, "", 1);
    if (escaped.failed)
        t->failed = true;
    else
        put_marked(t, escaped.data);
    free(escaped.data);
}

static void put_table(report_text *t, const study_block *b)
{
    report_put(t, "<div class=\"scroll\"><table class=\"numbers\" id=\"table-%s\">\n", b->name);
    for (int i = 0; i < b->n_cells; i++) {
        const char *tag = i < b->n_columns ? "th" : "td";
        int c = i % b->n_columns;
        report_put(t, "%s<%s%s>", c ? "" : "<tr>", tag, c < b->n_left ? " class=\"word\"" : "");
        report_put_xml(t, b->cell[i]);
        report_put(t, "</%s>%s", tag, c + 1 == b->n_columns ? "</tr>\n" : "");
    }
    report_put(t, "</table></div>\n");
}

static void put_block(report_text *t, const study_document *d, size_t i)
{
    const study_block *b = &d->block[i];
    switch (b->kind) {
    case STUDY_HEADING: report_put(t, "%s<section>\n<h2>", i > 0 ? "</section>\n" : ""); break;
    case STUDY_TEXT: report_put(t, "<p>"); break;
    case STUDY_ITEM: report_put(t, "%s<li>", i > 0 && d->block[i - 1].kind == STUDY_ITEM ? "" : "<ul>\n"); break;
    case STUDY_TABLE: put_table(t, b); return;
    case STUDY_FIGURE:
        report_put(t, "<figure id=\"figure-%s\">\n", b->name);
        report_put_bytes(t, b->svg, b->svg_length);
        report_put(t, "<figcaption>");
        break;
    }
    put_text(t, b->text);
    switch (b->kind) {
    case STUDY_HEADING: report_put(t, "</h2>\n"); break;
    case STUDY_TEXT: report_put(t, "</p>\n"); break;
    case STUDY_ITEM:
        report_put(t, "</li>\n%s", i + 1 < d->n && d->block[i + 1].kind == STUDY_ITEM ? "" : "</ul>\n");
        break;
    case STUDY_FIGURE: report_put(t, "</figcaption></figure>\n"); break;
    case STUDY_TABLE: break;
    }
}

static void put_body(report_text *t, const study_document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (i == 0 && d->block[i].kind != STUDY_HEADING)
            report_put(t, "<section>\n");
        put_block(t, d, i);
    }
    report_put(t, "</section>\n");
}

static void put_part(report_text *t, const char *name, size_t length, const study_document *d)
{
    if (!strncmp(name, "css", length)) {
        report_put_bytes(t, report_file_page_css, strlen(report_file_page_css));
        report_put_bytes(t, study_file_study_css, strlen(study_file_study_css));
    } else if (!strncmp(name, "js", length)) {
        report_put_bytes(t, report_file_draw_js, strlen(report_file_draw_js));
        report_put_bytes(t, study_file_study_js, strlen(study_file_study_js));
    } else if (!strncmp(name, "body", length)) {
        put_body(t, d);
    }
}

int moirai_study_page(char **out, size_t *length, const moirai_study *s)
{
    study_document d = {0};
    report_text t = {0};
    const char *rest = study_file_study_html, *at;
    *out = NULL;
    int rc = study_document_make(&d, s);
    while (!rc && (at = strstr(rest, "{{"))) {
        const char *end = strstr(at, "}}");
        report_put_bytes(&t, rest, (size_t)(at - rest));
        put_part(&t, at + 2, (size_t)(end - at - 2), &d);
        rest = end + 2;
    }
    study_document_free(&d);
    if (rc) {
        free(t.data);
        return rc;
    }
    report_put_bytes(&t, rest, strlen(rest));
    return report_take(out, length, &t);
}
