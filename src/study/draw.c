/* The parts of every figure: frame, title, legend, axes. SVG as text, with one palette for all that the project draws
 * (report_colour); what is under the pointer is told by <title>, which needs no script. */
#include "study/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void draw_begin(report_text *t, double width, double height, const char *title)
{
    report_put(t,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"system-ui, 'Segoe "
               "UI', Roboto, Arial, sans-serif\" font-size=\"11.5\" fill=\"" DRAW_INK "\" role=\"img\">\n<title>",
               width, height);
    report_put_xml(t, title);
    report_put(t, "</title>\n<text x=\"8\" y=\"18\" font-size=\"13.5\" font-weight=\"600\">");
    report_put_xml(t, title);
    report_put(t, "</text>\n");
}

void draw_end(report_text *t)
{
    report_put(t, "</svg>\n");
}

void draw_text(report_text *t, double x, double y, const char *anchor, double size, const char *text)
{
    report_put(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%.1f\">", x, y, anchor, size);
    report_put_xml(t, text);
    report_put(t, "</text>\n");
}

void draw_legend(report_text *t, double x, double y, int n, const char *const *name)
{
    for (int i = 0; i < n; i++) {
        report_put(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"9\" rx=\"2\" fill=\"%s\"/>", x, y - 8.5,
                   report_colour(i));
        draw_text(t, x + 17, y, "start", 11.5, name[i]);
        x += 17 + 6.6 * (double)strlen(name[i]) + 16;
    }
}

double draw_at(const draw_axis *axis, double value)
{
    double share = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                     : (value - axis->low) / (axis->high - axis->low);
    return axis->a + fmin(fmax(share, 0), 1) * (axis->b - axis->a);
}

void draw_number(char text[24], double value)
{
    if (value >= 10000)
        snprintf(text, 24, "%.0f,%03.0f", floor(value / 1000), fmod(value, 1000));
    else
        snprintf(text, 24, "%.4g", value);
}

static void grid_line(report_text *t, const draw_axis *axis, const draw_box *box, double value, const char *unit)
{
    char number[24], label[48];
    double y = draw_at(axis, value);
    draw_number(number, value);
    snprintf(label, sizeof label, "%s%s", number, unit);
    report_put(t, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"" DRAW_LINE "\" stroke-opacity=\".3\"/>", box->left, y,
               box->right);
    draw_text(t, box->left - 6, y + 4, "end", 11, label);
}

void draw_grid(report_text *t, const draw_axis *axis, const draw_box *box, const char *unit)
{
    if (axis->logarithmic) {
        for (double v = pow(10, ceil(log10(axis->low) - 1e-9)); v <= axis->high * 1.0001; v *= 10)
            grid_line(t, axis, box, v, unit);
        return;
    }
    double raw = (axis->high - axis->low) / 5, power = pow(10, floor(log10(raw))), x = raw / power;
    double step = (x <= 1 ? 1 : x <= 2 ? 2 : x <= 5 ? 5 : 10) * power;
    for (double v = ceil(axis->low / step) * step; v <= axis->high * 1.0001; v += step)
        grid_line(t, axis, box, v, unit);
}
