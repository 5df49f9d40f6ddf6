/* Inside the report room. Private. */
#ifndef MOIRAI_REPORT_REPORT_H
#define MOIRAI_REPORT_REPORT_H

#include <moirai/report.h>

#include "util/json.h"

/* What a device does: it computes, sends, receives. */
typedef enum report_track { REPORT_COMPUTE, REPORT_SEND, REPORT_RECEIVE, REPORT_TRACKS } report_track;

/* ---- analysis*.c: parts of moirai_analysis_new, in this order ---- */
int report_find_delays(moirai_analysis *a);
int report_find_path(moirai_analysis *a);
int report_find_memory(moirai_analysis *a);
int report_find_levels(moirai_analysis *a);
void report_find_launches(moirai_analysis *a);
void report_find_verdict(moirai_analysis *a);

/* What is busy nearly all the time; device MOIRAI_NONE: nothing is. */
typedef struct report_limit {
    report_track track;
    int32_t device;
    int64_t busy_ns;
} report_limit;
report_limit report_find_limit(const moirai_analysis *a);
int32_t report_largest(const int64_t *value, int32_t n); /* the first of equals */

/* Tasks are operators, then transfers. */
static inline bool report_is_transfer(const moirai_analysis *a, int32_t task)
{
    return task >= a->n_ops;
}

static inline const moirai_transfer *report_transfer(const moirai_analysis *a, int32_t task)
{
    return &a->plan->transfer[task - a->n_ops];
}

/* ---- lanes.c: tasks of one track that do not overlap ---- */

/* An interval with the lane that it was given. */
typedef struct report_slice {
    int64_t start_ns, finish_ns;
    int32_t item; /* the caller's number */
    int32_t lane;
} report_slice;

/* Sorts by (start, finish, item) and gives every slice the lowest lane that is free at its start; returns the number of
 * lanes. Slices that take no time share lane 0 with whatever ends or begins there. O(n log n + n * lanes). */
int32_t report_lanes(report_slice *slice, int32_t n);

/* The slices of one track of a device; of the plan (items: tasks) or of the measured run (items: segments or
 * transfers of the timeline). *slice is allocated; the lanes are assigned. */
int report_track_slices(report_slice **slice, int32_t *n, int32_t *n_lanes, const moirai_analysis *a, int32_t device,
                        report_track track, bool measured);

/* ---- text.c: a growing text, and what must be escaped in it ---- */
typedef struct report_text {
    char *data;
    size_t length, capacity;
    bool failed;
} report_text;

void report_put(report_text *t, const char *format, ...) MOIRAI_PRINTF(2, 3);
void report_put_bytes(report_text *t, const char *data, size_t length);
void report_put_xml(report_text *t, const char *text); /* element content and quoted attributes */
void report_put_dot(report_text *t, const char *text); /* inside "..." */
void report_put_csv(report_text *t, const char *text); /* a whole field, quoted where need be */
/* A string of JSON, with its quotes. '<', '>' and '&' are escaped, too, so that no name can end a script or open a
 * comment. */
void report_put_json(report_text *t, const char *text);
/* Hands the text over, NUL at its end; MOIRAI_EFAIL if memory ran out on the way. Empties `t`. */
int report_take(char **out, size_t *length, report_text *t);
/* The last part of a name, after its last '/', where there is one. */
const char *report_short_name(const char *name);

/* What a box says: the short name; of a fused operator that is named after its last and light member ("relu"), the
 * heaviest one's type behind the part before ("stem0/conv"). */
const char *report_label(char *text, size_t size, const moirai_analysis *a, int32_t task);

/* ---- pieces.c ---- */
typedef struct report_piece {
    const char *base; /* the name of the operator that was cut: its first base_length bytes */
    size_t base_length;
    int number, n; /* the second of three */
    int64_t size, units;
    char unit[24];
} report_piece;
/* Is the operator, or something fused into it, a piece of one that was cut? The name belongs to the problem. */
bool report_piece_of(report_piece *out, const moirai_problem *p, int32_t op);
bool report_same_operator(const report_piece *a, const report_piece *b);

/* ---- colours.c: one palette for page, SVG and DOT ---- */
/* Told apart by people with any colour vision (Okabe and Ito's, in another order); more devices than colours repeat. */
const char *report_colour(int32_t device);

/* ---- page_data.c: everything that the page shows, as JSON in few characters ---- */
/* Nothing where r is NULL. */
void report_put_rate(report_text *t, const moirai_rate *r);
int report_put_data(report_text *t, const moirai_report_plan *plan, int32_t n_plans);

/* ---- exporters, one file each ---- */
extern const moirai_exporter report_export_trace, report_export_dot, report_export_svg, report_export_csv,
    report_export_device_map;

/* ---- files compiled in by the build (src/report/embed.cmake) ---- */
extern const char report_file_page_html[], report_file_page_css[], report_file_draw_js[], report_file_timeline_js[],
    report_file_graph_js[], report_file_charts_js[], report_file_rate_js[], report_file_page_js[];

#endif
