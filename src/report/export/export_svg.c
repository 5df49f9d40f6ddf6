/* A Gantt chart as SVG, fit for a paper: a row per device with its operators, below it what it sends and receives; the
 * critical path as a black line; a scale in round units. Slices narrower than a hair are joined with their neighbours,
 * so that 50,000 operators are some thousand rectangles. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text.h"
#include "util/util.h"

enum { WIDTH = 760, LEFT = 84, RIGHT = 16, TOP = 44, BAR = 26, PORT = 5, GAP = 14, BOTTOM = 56 };
#define HAIR 0.35 /* pixels */

/* Every rule names the chart, so that nothing around it changes where it stands in a page. */
static const char style[] = "<style>.moirai-gantt text{font:11px Helvetica,Arial,sans-serif;fill:#333}"
                            ".moirai-gantt .device{font-weight:bold;font-size:12px;text-anchor:end}"
                            ".moirai-gantt .scale{fill:#667}.moirai-gantt text.scale{text-anchor:middle}"
                            ".moirai-gantt .in{font-size:10px;fill:#fff;text-anchor:middle}"
                            ".moirai-gantt .title{font-size:13px;font-weight:bold}.moirai-gantt .title "
                            ".scale{font-size:11px;font-weight:normal}"
                            ".moirai-gantt .tick{stroke:#d5d9e0;stroke-width:.7}</style>\n";

typedef struct chart {
    report_text t;
    const moirai_analysis *a;
    double ns_per_px;
    double end_px;
} chart;

static double x_of(const chart *c, int64_t ns)
{
    return LEFT + (double)ns / c->ns_per_px;
}

static void put_rect(chart *c, double x, double y, double width, double height, const char *fill)
{
    report_put(&c->t, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y,
               UTIL_MAX(width, HAIR), height, fill);
}

/* Joins what can't be told apart; leaves a fine gap between slices that can. */
static void put_slices(chart *c, const report_slice *s, int32_t n, double y, double height, const char *fill,
                       bool path_only)
{
    double open = -1, end = -1;
    for (int32_t i = 0; i < n; i++) {
        if (path_only && !c->a->on_path[s[i].item])
            continue;
        double from = x_of(c, s[i].start_ns), to = x_of(c, s[i].finish_ns);
        bool wide = !path_only && to - from > 4;
        if (open >= 0 && from - end <= HAIR && !wide) {
            end = UTIL_MAX(end, to);
            continue;
        }
        if (open >= 0)
            put_rect(c, open, y, end - open, height, fill);
        open = from;
        end = wide ? to - 0.6 : to;
    }
    if (open >= 0)
        put_rect(c, open, y, end - open, height, fill);
}

/* Names where there is room for them. */
static void put_names(chart *c, const report_slice *s, int32_t n, double y)
{
    for (int32_t i = 0; i < n; i++) {
        double width = (double)(s[i].finish_ns - s[i].start_ns) / c->ns_per_px;
        char text[120];
        const char *name = report_label(text, sizeof text, c->a, s[i].item);
        size_t length = 0;
        while (name[length] && length <= 40)
            length++;
        if (width < 6 * (double)length + 6 || length > 40)
            continue;
        report_put(&c->t, "<text x=\"%.2f\" y=\"%.1f\" class=\"in\">",
                   (x_of(c, s[i].start_ns) + x_of(c, s[i].finish_ns)) / 2, y + BAR / 2.0 + 3.2);
        report_put_xml(&c->t, name);
        report_put(&c->t, "</text>\n");
    }
}

/* The name of a device, cut on a character of UTF-8. */
static void put_device_name(chart *c, const char *name, double y)
{
    char text[40];
    size_t n = 0, columns = 0;
    while (name[n] && n < sizeof text - 8 && columns < 11) {
        columns += ((unsigned char)name[n] & 0xc0) != 0x80;
        text[n] = name[n];
        n++;
    }
    while (name[n] && n < sizeof text - 8 && ((unsigned char)name[n] & 0xc0) == 0x80) {
        text[n] = name[n];
        n++;
    }
    text[n] = '\0';
    report_put(&c->t, "<text x=\"%d\" y=\"%.1f\" class=\"device\">", LEFT - 10, y + BAR / 2.0 + 4);
    report_put_xml(&c->t, text);
    report_put(&c->t, "%s</text>\n", name[n] ? "\xe2\x80\xa6" : "");
}

static int put_device(chart *c, int32_t k, double y)
{
    static const char *const grey[] = {"#6b7280", "#b6bcc6"};
    put_device_name(c, c->a->problem->device_name[k], y);
    report_put(&c->t, "<rect x=\"%d\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"#f2f4f7\"/>\n", LEFT, y,
               c->end_px - LEFT, BAR);
    for (int track = 0; track < REPORT_TRACKS; track++) {
        report_slice *s;
        int32_t n, lanes;
        double top = track ? y + BAR + 2 + (track - 1) * (PORT + 1) : y;
        int rc = report_track_slices(&s, &n, &lanes, c->a, k, track, false);
        if (rc)
            return rc;
        put_slices(c, s, n, top, track ? PORT : BAR, track ? grey[track - 1] : report_colour(k), false);
        put_slices(c, s, n, track ? top : top + BAR - 3, track ? PORT : 3, "#111111", true);
        if (!track)
            put_names(c, s, n, y);
        free(s);
    }
    return 0;
}

/* 1, 2 or 5 times a power of ten, for some seven ticks. */
static int64_t tick_of(int64_t span_ns)
{
    int64_t step = 1;
    while (span_ns / step > 8)
        step *= span_ns / step > 40 ? 10 : span_ns / step > 16 ? 5 : 2;
    return step;
}

static void put_axis(chart *c, double y)
{
    int64_t span = UTIL_MAX(c->a->plan->makespan_ns, 1), tick = tick_of(span);
    double unit = span >= 1000000000 ? 1e9 : span >= 1000000 ? 1e6 : span >= 1000 ? 1e3 : 1;
    const char *name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "\xc2\xb5s" : "ns";
    for (int64_t ns = 0; ns <= span; ns += tick) {
        double x = x_of(c, ns);
        report_put(&c->t, "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%.1f\" class=\"tick\"/>\n", x, TOP - 4, x,
                   y + 4);
        report_put(&c->t, "<text x=\"%.2f\" y=\"%.1f\" class=\"scale\">%.10g</text>\n", x, y + 16, (double)ns / unit);
    }
    report_put(&c->t, "<text x=\"%d\" y=\"%.1f\" class=\"scale\" style=\"text-anchor:end\">%s</text>\n", LEFT - 10,
               y + 16, name);
}

static void put_legend(chart *c, double y)
{
    static const struct {
        const char *fill, *text;
        double wide;
    } item[] = {{"#0072b2", "computes", 70},
                {"#6b7280", "sends", 56},
                {"#b6bcc6", "receives", 70},
                {"#111111", "critical path", 90}};
    double x = LEFT;
    for (size_t i = 0; i < sizeof item / sizeof *item; i++) {
        bool compute = i == 0;
        report_put(&c->t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"%d\" fill=\"%s\"/>", x,
                   y - (compute ? 9 : 6), compute ? 10 : 4, item[i].fill);
        report_put(&c->t, "<text x=\"%.1f\" y=\"%.1f\" class=\"legend\">%s</text>\n", x + 17, y, item[i].text);
        x += 17 + item[i].wide;
    }
}

static void put_title(chart *c)
{
    const moirai_plan *plan = c->a->plan;
    report_put(&c->t, "<text x=\"%d\" y=\"20\" class=\"title\">", LEFT);
    report_put_xml(&c->t, c->a->problem->name);
    report_put(&c->t, "<tspan class=\"scale\" dx=\"8\">");
    report_put_xml(&c->t, plan->placer ? plan->placer : "");
    report_put(&c->t, ": %s", util_human_ns(plan->makespan_ns).s);
    if (moirai_plan_is_optimal(plan))
        report_put(&c->t, ", %s", moirai_plan_verdict(plan));
    else if (plan->lower_bound_ns >= 0)
        report_put(&c->t, ", proven within %s of the best", util_human_gap(moirai_plan_gap(plan)).s);
    report_put(&c->t, "</tspan></text>\n");
}

static int write_svg(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o)
{
    (void)o;
    chart c = {.a = a,
               .ns_per_px = (double)UTIL_MAX(a->plan->makespan_ns, 1) / (WIDTH - LEFT - RIGHT),
               .end_px = WIDTH - RIGHT};
    int row = BAR + 2 * (PORT + 1) + GAP, height = TOP + row * a->n_devices + BOTTOM - GAP;
    int rc = 0;
    report_put(&c.t,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"moirai-gantt\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" role=\"img\">\n",
               WIDTH, height, WIDTH, height);
    report_put(&c.t, "%s", style);
    report_put(&c.t, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height);
    put_title(&c);
    double bottom = TOP + row * a->n_devices - GAP;
    put_axis(&c, bottom);
    for (int32_t k = 0; k < a->n_devices && !rc; k++)
        rc = put_device(&c, k, TOP + row * k);
    put_legend(&c, bottom + 38);
    report_put(&c.t, "</svg>\n");
    if (!rc)
        return report_take(out, length, &c.t);
    free(c.t.data);
    return rc;
}

const moirai_exporter report_export_svg = {
    .name = "svg",
    .summary = "a Gantt chart, fit for a paper",
    .write = write_svg,
};

int moirai_report_svg(char **out, size_t *length, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_analysis *a;
    *out = NULL;
    int rc = moirai_analysis_new(&a, p, plan, NULL);
    if (rc)
        return rc;
    rc = moirai_export(out, length, a, "svg", NULL);
    moirai_analysis_free(a);
    return rc;
}
