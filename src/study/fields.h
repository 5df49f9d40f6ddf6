/* The fields of a row, once, for journal, JSON and CSV. Private. */
#ifndef MOIRAI_STUDY_FIELDS_H
#define MOIRAI_STUDY_FIELDS_H

#include "study/study.h"

typedef enum study_field_kind {
    STUDY_FIELD_TEXT,
    STUDY_FIELD_WORD, /* an enum, by its word */
    STUDY_FIELD_BOOL,
    STUDY_FIELD_INT32,
    STUDY_FIELD_INT64,
    STUDY_FIELD_UINT64,
    STUDY_FIELD_REAL
} study_field_kind;

typedef struct study_field {
    const char *name;
    study_field_kind kind;
    size_t offset, size; /* size: of texts */
    int n_words;
    const char *(*word)(int value);
} study_field;

enum { STUDY_FIELDS = 35 };
extern const study_field study_field_at[STUDY_FIELDS];

void study_put_row(util_writer *w, const moirai_study_row *row); /* an object */
void study_put_field_csv(report_text *t, const study_field *f, const moirai_study_row *row);

#endif
