/* The three kinds of figures: bars in groups, lines over a logarithmic axis, a map of ratios. */
#include "study/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- bars ---- */

static void range_of(double *low, double *high, const double *value, int n)
{
    *low = HUGE_VAL;
    *high = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(value[i]) && value[i] > 0) {
            *low = fmin(*low, value[i]);
            *high = fmax(*high, value[i]);
        }
    if (*high == 0)
        *low = *high = 1;
}

static void bar(report_text *t, const study_bars *b, const draw_axis *axis, int g, int s, double x, double width)
{
    double value = b->value[g * b->n_series + s], top;
    char number[24];
    if (isnan(value) || value <= 0)
        return;
    top = draw_at(axis, value);
    draw_number(number, value);
    report_put(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>", x, top, width,
               axis->a - top, report_colour(s));
    report_put_xml(t, b->group[g]);
    report_put(t, ", ");
    report_put_xml(t, b->series[s]);
    report_put(t, ": %s%s</title></rect>\n", number, b->unit);
}

/* "gpt3-330M" and "gpt3-330M inter" in two lines, so that eleven fit beside each other. */
static void group_label(report_text *t, const char *name, double x, double y)
{
    char first[48];
    const char *cut = strrchr(name, ' ');
    cut = cut ? cut : strchr(name, '-');
    snprintf(first, sizeof first, "%.*s", (int)(cut ? cut - name : (ptrdiff_t)strlen(name)), name);
    draw_text(t, x, y, "middle", 11, first);
    if (cut)
        draw_text(t, x, y + 14, "middle", 11, cut + 1);
}

void study_draw_bars(report_text *t, const study_bars *b)
{
    double low, high, width = 1000, height = 300;
    draw_box box = {56, width - 12, 54, height - 40};
    range_of(&low, &high, b->value, b->n_groups * b->n_series);
    high = fmax(high, b->line) * (b->logarithmic ? 1.5 : 1.06);
    draw_axis axis = {b->logarithmic ? pow(10, floor(log10(low))) : 0, high, box.bottom, box.top, b->logarithmic};
    double pitch = (box.right - box.left) / b->n_groups, one = fmin(pitch * 0.84 / b->n_series, 26);
    draw_begin(t, width, height, b->title);
    draw_legend(t, box.left, 40, b->n_series, b->series);
    draw_grid(t, &axis, &box, b->unit);
    for (int g = 0; g < b->n_groups; g++) {
        double x = box.left + pitch * g + (pitch - one * b->n_series) / 2;
        for (int s = 0; s < b->n_series; s++)
            bar(t, b, &axis, g, s, x + one * s, fmax(one - 1, 1));
        group_label(t, b->group[g], box.left + pitch * (g + 0.5), box.bottom + 16);
    }
    if (b->line > 0) {
        double y = draw_at(&axis, b->line);
        report_put(t, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#c2410c\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>",
                   box.left, y, box.right);
        report_put(t, "<path d=\"M%.1f 36.5h24\" stroke=\"#c2410c\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>",
                   box.right - 26 - 6.2 * (double)strlen(b->line_text));
        draw_text(t, box.right, 40, "end", 11.5, b->line_text); /* beside the legend: bars may be anywhere */
    }
    draw_end(t);
}

/* ---- lines ---- */

static void one_line(report_text *t, const study_lines *l, int s, const draw_axis *across, const draw_axis *up)
{
    bool begun = false;
    char number[24];
    report_put(t, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", report_colour(s));
    for (int i = 0; i < l->n_points; i++) {
        double y = l->y[s * l->n_points + i];
        if (isnan(y))
            continue;
        report_put(t, "%c%.1f %.1f", begun ? 'L' : 'M', draw_at(across, l->x[i]), draw_at(up, y));
        begun = true;
    }
    report_put(t, "\"/>\n");
    for (int i = 0; i < l->n_points; i++) {
        double y = l->y[s * l->n_points + i];
        if (isnan(y))
            continue;
        draw_number(number, y);
        report_put(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>", draw_at(across, l->x[i]),
                   draw_at(up, y), report_colour(s));
        report_put_xml(t, l->series[s]);
        report_put(t, ": %s%s at %g%s</title></circle>\n", number, l->unit, l->x[i], l->x_unit);
    }
}

void study_draw_lines(report_text *t, const study_lines *l)
{
    double low, high, width = 1000, height = 300;
    char label[48];
    draw_box box = {56, width - 24, 54, height - 40};
    range_of(&low, &high, l->y, l->n_points * l->n_series);
    double pad = fmax((high - low) * 0.08, 0.02);
    draw_axis up = {fmin(low, 1) - pad, high + pad, box.bottom, box.top, false};
    draw_axis across = {l->x[0], l->x[l->n_points - 1], box.left + 12, box.right - 12, true};
    draw_begin(t, width, height, l->title);
    draw_legend(t, box.left, 40, l->n_series, l->series);
    draw_grid(t, &up, &box, l->unit);
    report_put(t, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#c2410c\" stroke-dasharray=\"6 4\"/>", box.left,
               draw_at(&up, 1), box.right);
    draw_text(t, box.right - 2, draw_at(&up, 1) - 5, "end", 11, "one device");
    for (int i = 0; i < l->n_points; i++) {
        snprintf(label, sizeof label, "%g%s", l->x[i], l->x_unit);
        draw_text(t, draw_at(&across, l->x[i]), box.bottom + 18, "middle", 11, label);
    }
    for (int s = 0; s < l->n_series; s++)
        one_line(t, l, s, &across, &up);
    draw_end(t);
}

/* ---- map ---- */

/* Grey at 1, where one device does as well; blue above, the deeper the more; by the logarithm, full at 4. */
static void map_colour(char text[16], double value)
{
    static const double from[3] = {222, 226, 233}, to[3] = {0, 84, 140};
    double share = fmin(fmax(log(value) / log(4), 0), 1);
    int rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (int)(from[i] + (to[i] - from[i]) * sqrt(share));
    snprintf(text, 16, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

static void map_cell(report_text *t, double value, double x, double y, double w, double h)
{
    char colour[16] = "none", number[24] = "-";
    if (!isnan(value)) {
        map_colour(colour, value);
        snprintf(number, sizeof number, "%.2f", value);
    }
    report_put(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" fill=\"%s\"/>", x, y, w - 3,
               h - 3, colour);
    report_put(t,
               "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"13\" font-weight=\"600\" "
               "fill=\"%s\">%s</text>\n",
               x + (w - 3) / 2, y + h / 2 + 3,
               isnan(value)   ? DRAW_INK
               : value > 1.35 ? "#ffffff"
                              : "#1d2330",
               number);
}

void study_draw_map(report_text *t, const study_map *m)
{
    double cell_w = 110, cell_h = 34, left = 130, top = 34;
    double width = left + cell_w * m->n_columns + 12, height = top + cell_h * m->n_rows + 40;
    char label[48];
    draw_begin(t, width, height, m->title);
    for (int r = 0; r < m->n_rows; r++) {
        snprintf(label, sizeof label, "%d %s", m->y[r], m->y_title);
        draw_text(t, left - 10, top + cell_h * r + cell_h / 2 + 3, "end", 12, label);
        for (int c = 0; c < m->n_columns; c++)
            map_cell(t, m->value[r * m->n_columns + c], left + cell_w * c, top + cell_h * r, cell_w, cell_h);
    }
    for (int c = 0; c < m->n_columns; c++) {
        snprintf(label, sizeof label, "%d%s", m->x[c], m->x_title);
        draw_text(t, left + cell_w * (c + 0.5) - 1, top + cell_h * m->n_rows + 18, "middle", 11.5, label);
    }
    draw_end(t);
}
