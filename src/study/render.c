/* The document for terminals and as Markdown.
 *
 * Texts have three marks, those of Markdown: **strong**, *said differently*, `code`. Terminals get them without. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns that a terminal or a source file shows of a text; our own texts are UTF-8. */
static int wide(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ---- terminal ---- */

static void plain(report_text *t, const char *text)
{
    for (; *text; text++)
        if (*text != '*' && *text != '`')
            report_put_bytes(t, text, 1);
}

/* Broken at blanks into lines of at most 110 characters. */
static void wrapped(report_text *t, const char *first, const char *text)
{
    report_text whole = {0};
    size_t at = strlen(first);
    plain(&whole, text);
    report_put_bytes(&whole, "", 1);
    report_put(t, "%s", first);
    for (const char *word = whole.failed ? "" : whole.data; *word;) {
        size_t length = strcspn(word, " ");
        if (at + length > 110 && at > 2) {
            report_put(t, "\n%*s", (int)strlen(first), "");
            at = strlen(first);
        }
        report_put(t, "%.*s ", (int)length, word);
        at += length + 1;
        word += length + (word[length] == ' ');
    }
    report_put(t, "\n");
    t->failed = t->failed || whole.failed;
    free(whole.data);
}

static void text_table(report_text *t, const study_block *b)
{
    int width[64] = {0};
    for (int i = 0; i < b->n_cells; i++) {
        int w = wide(b->cell[i]), c = i % b->n_columns;
        if (c < 64 && w > width[c])
            width[c] = w;
    }
    for (int i = 0; i < b->n_cells; i++) {
        int c = i % b->n_columns, last = c + 1 == b->n_columns, blank = c < 64 ? width[c] - wide(b->cell[i]) : 0;
        if (c >= b->n_left)
            report_put(t, "%*s%s%s", blank, "", b->cell[i], last ? "\n" : "  ");
        else
            report_put(t, "%s%*s%s", b->cell[i], blank, "", last ? "\n" : "  ");
    }
}

int moirai_study_text(char **out, size_t *length, const moirai_study *s)
{
    study_document d = {0};
    report_text t = {0};
    *out = NULL;
    int rc = study_document_make(&d, s);
    for (size_t i = 0; !rc && i < d.n; i++) {
        const study_block *b = &d.block[i];
        bool item = b->kind == STUDY_ITEM, after_item = i > 0 && d.block[i - 1].kind == STUDY_ITEM;
        if (i > 0 && b->kind != STUDY_FIGURE && !(item && after_item))
            report_put(&t, "\n");
        if (b->kind == STUDY_HEADING)
            report_put(&t, "== %s\n", b->text);
        else if (b->kind == STUDY_TABLE)
            text_table(&t, b);
        else if (b->kind != STUDY_FIGURE)
            wrapped(&t, item ? "- " : "", b->text);
    }
    study_document_free(&d);
    if (!rc)
        return report_take(out, length, &t);
    free(t.data);
    return rc;
}

/* ---- Markdown ---- */

/* The page stands among the documents: "docs/zoo.md" is a link there. `bars`: '|' would end a cell. */
static void markdown_text(report_text *t, const char *text, bool bars)
{
    while (*text) {
        size_t name = strncmp(text, "docs/", 5) ? 0 : strspn(text + 5, "abcdefghijklmnopqrstuvwxyz-");
        if (name && !strncmp(text + 5 + name, ".md", 3)) {
            report_put(t, "[%.*s](%.*s)", (int)name + 3, text + 5, (int)name + 3, text + 5);
            text += 5 + name + 3;
            continue;
        }
        if (bars && *text == '|')
            report_put(t, "\\");
        report_put_bytes(t, text++, 1);
    }
}

static void markdown_table(report_text *t, const study_block *b)
{
    for (int i = 0; i < b->n_cells; i++) {
        report_put(t, "%s ", i % b->n_columns ? " |" : "|");
        markdown_text(t, b->cell[i], true);
        if ((i + 1) % b->n_columns)
            continue;
        report_put(t, " |\n");
        for (int c = 0; i + 1 == b->n_columns && c < b->n_columns; c++)
            report_put(t, "%s%s", c < b->n_left ? "|---" : "|---:", c + 1 == b->n_columns ? "|\n" : "");
    }
}

static void markdown_paragraph(report_text *t, const study_block *b)
{
    report_put(t, "%s", b->kind == STUDY_ITEM ? "- " : "");
    markdown_text(t, b->text, false);
    report_put(t, "\n");
}

int moirai_study_markdown(char **out, size_t *length, const moirai_study *s, const char *figures)
{
    study_document d = {0};
    report_text t = {0};
    *out = NULL;
    int rc = study_document_make(&d, s);
    report_put(&t, "# The paper's experiments, repeated\n");
    for (size_t i = 0; !rc && i < d.n; i++) {
        const study_block *b = &d.block[i];
        if (b->kind != STUDY_ITEM || (i > 0 && d.block[i - 1].kind != STUDY_ITEM))
            report_put(&t, "\n");
        if (b->kind == STUDY_HEADING)
            report_put(&t, "## %s\n", b->text);
        else if (b->kind == STUDY_TABLE)
            markdown_table(&t, b);
        else if (b->kind == STUDY_FIGURE)
            report_put(&t, "![%s](%s/%s.svg)\n", b->text, figures, b->name);
        else
            markdown_paragraph(&t, b);
    }
    study_document_free(&d);
    if (!rc)
        return report_take(out, length, &t);
    free(t.data);
    return rc;
}

/* ---- figures as files ---- */

int moirai_study_figure_count(const moirai_study *s)
{
    study_document d = {0};
    int rc = study_document_make(&d, s), n = 0;
    for (size_t i = 0; !rc && i < d.n; i++)
        n += d.block[i].kind == STUDY_FIGURE;
    study_document_free(&d);
    return rc ? rc : n;
}

int moirai_study_figure(char **out, size_t *length, char name[32], const moirai_study *s, int index)
{
    study_document d = {0};
    *out = NULL;
    int rc = study_document_make(&d, s);
    for (size_t i = 0; !rc && i < d.n && !*out; i++)
        if (d.block[i].kind == STUDY_FIGURE && index-- == 0) {
            *out = d.block[i].svg;
            *length = d.block[i].svg_length;
            snprintf(name, 32, "%s", d.block[i].name);
            d.block[i].svg = NULL;
        }
    study_document_free(&d);
    return rc || *out ? rc : moirai_error(MOIRAI_EUSAGE, "study: no such figure");
}
