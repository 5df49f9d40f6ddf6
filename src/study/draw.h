/* What all figures are drawn with. Private. */
#ifndef MOIRAI_STUDY_DRAW_H
#define MOIRAI_STUDY_DRAW_H

#include "study/study.h"

/* Greys that can be read on white and on black: the figures stand on pages of either kind. */
#define DRAW_INK "#6b7688"
#define DRAW_LINE "#8893a5"

typedef struct draw_box {
    double left, right, top, bottom; /* of what is plotted, in pixels */
} draw_box;

/* An axis of values from `low` to `high` onto pixels a .. b. */
typedef struct draw_axis {
    double low, high, a, b;
    bool logarithmic;
} draw_axis;

void draw_begin(report_text *t, double width, double height, const char *title);
void draw_end(report_text *t);
/* `anchor`: start, middle, end. */
void draw_text(report_text *t, double x, double y, const char *anchor, double size, const char *text);
void draw_legend(report_text *t, double x, double y, int n, const char *const *name);
double draw_at(const draw_axis *axis, double value);
/* Lines across the box at round values of the upright axis, with their numbers. */
void draw_grid(report_text *t, const draw_axis *axis, const draw_box *box, const char *unit);
/* 3.2, 0.015, 14,400 without needless zeros */
void draw_number(char text[24], double value);

#endif
