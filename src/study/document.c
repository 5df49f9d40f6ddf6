/* What all renderings show, as a list of blocks: terminal, Markdown, page and JSON are made from the same cells, so
 * that no two of them can disagree. */
#include "study/study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static char *format_text(study_document *d, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        d->failed = true;
        return NULL;
    }
    return text;
}

static study_block *add(study_document *d, study_block_kind kind)
{
    static study_block nowhere;
    if (d->failed || util_grow(&d->block, &d->capacity, d->n + 1, sizeof *d->block)) {
        d->failed = true;
        memset(&nowhere, 0, sizeof nowhere);
        return &nowhere;
    }
    d->block[d->n] = (study_block){.kind = kind};
    return &d->block[d->n++];
}

static void add_text(study_document *d, study_block_kind kind, const char *format, va_list args)
{
    char *text = format_text(d, format, args);
    study_block *b = add(d, kind);
    if (d->failed)
        free(text);
    else
        b->text = text;
}

void study_heading(study_document *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(d, STUDY_HEADING, format, args);
    va_end(args);
}

void study_say(study_document *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(d, STUDY_TEXT, format, args);
    va_end(args);
}

void study_item(study_document *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(d, STUDY_ITEM, format, args);
    va_end(args);
}

static void put_cell(study_document *d, char *text)
{
    study_block *b = d->n && !d->failed ? &d->block[d->n - 1] : NULL;
    size_t capacity = b ? (size_t)b->capacity : 0;
    if (!b || util_grow(&b->cell, &capacity, (size_t)b->n_cells + 1, sizeof *b->cell)) {
        d->failed = true;
        free(text);
        return;
    }
    b->capacity = (int)capacity;
    b->cell[b->n_cells++] = text;
}

void study_cell(study_document *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_cell(d, format_text(d, format, args));
    va_end(args);
}

void study_table(study_document *d, const char *name, int n_left, const char *columns)
{
    study_block *b = add(d, STUDY_TABLE);
    snprintf(b->name, sizeof b->name, "%s", name);
    b->n_left = n_left;
    b->n_columns = 1;
    for (const char *at = columns; *at; at++)
        b->n_columns += *at == '|';
    for (const char *at = columns;; at++) {
        size_t length = strcspn(at, "|");
        study_cell(d, "%.*s", (int)length, at);
        at += length;
        if (!*at)
            break;
    }
}

void study_cell_ms(study_document *d, int64_t ns)
{
    if (ns < 0)
        study_cell(d, "-");
    else
        study_cell(d, "%.*f", ns >= 100000000 ? 1 : 3, (double)ns * 1e-6);
}

void study_cell_times(study_document *d, double ratio)
{
    if (isnan(ratio))
        study_cell(d, "-");
    else
        study_cell(d, "%.2f", ratio);
}

void study_cell_percent(study_document *d, double share)
{
    if (isnan(share))
        study_cell(d, "-");
    else
        study_cell(d, "%.1f", 100 * share);
}

void study_figure(study_document *d, const char *name, report_text *svg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(d, STUDY_FIGURE, format, args);
    va_end(args);
    if (d->failed || report_take(&d->block[d->n - 1].svg, &d->block[d->n - 1].svg_length, svg)) {
        d->failed = true;
        free(svg->data);
        *svg = (report_text){0};
        return;
    }
    snprintf(d->block[d->n - 1].name, sizeof d->block[d->n - 1].name, "%s", name);
}

void study_document_free(study_document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        for (int c = 0; c < d->block[i].n_cells; c++)
            free(d->block[i].cell[c]);
        free(d->block[i].cell);
        free(d->block[i].text);
        free(d->block[i].svg);
    }
    free(d->block);
    *d = (study_document){0};
}
