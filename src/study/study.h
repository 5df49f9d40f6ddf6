/* Inside the study room. Private. */
#ifndef MOIRAI_STUDY_STUDY_PRIVATE_H
#define MOIRAI_STUDY_STUDY_PRIVATE_H

#include <moirai/study.h>

#include "report/report.h"

/* ---- paper_figures.c: what has no place in the public header ---- */
/* Share by which coarsening cut the latency, "up to"; 0 for other clusters. */
double study_paper_latency_cut(const char *testbed);
#define STUDY_PAPER_GENERATION_LEFT 0.7187 /* of the generation time after coarsening, on average */
/* Seconds to make the plan; 0 where the paper has none. */
double study_paper_generation_s(const char *network, bool coarsened, const char *placer);

/* ---- cases.c ---- */
#define STUDY_LATENCY_NS 5000 /* of the links of made-up clusters */
extern const char *const study_without_name[MOIRAI_STUDY_WITHOUTS];
/* Do two cases ask the same? Limits count, names and numbers all. */
bool study_same_case(const moirai_study_case *a, const moirai_study_case *b);

/* ---- run.c ---- */
/* A number that names what networks, coarsening and cost model come to, by the digests of two small problems. */
int study_costs(uint64_t *out);

/* ---- ablate.c ---- */
/* A copy of the problem without that part of the model. */
int study_ablated(moirai_problem **out, const moirai_problem *p, moirai_study_without without);
/* A plan made for a poorer model, carried out in this one: its devices, and the better of its own order and the
 * simulator's. Memory is not looked at. */
int study_carried_out(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan);

/* ---- measured.c ---- */
void study_measured_free(struct moirai_study_measured *all);

/* ---- machine.c: what ran it ---- */
void study_machine(char *text, size_t size); /* "AMD EPYC 7B13, 2 cores" */
void study_date(char *text, size_t size);    /* "2026-11-15 18:00" */
double study_load(void);

/* ---- rows.c: finding rows and what follows from them ---- */
/* What to look for; NULL and negative numbers match everything. Rows that are not done never match. */
typedef struct study_filter {
    int part; /* a moirai_study_part, -1: any */
    const char *network, *cluster, *placer;
    int coarsened, without, runtime, devices, gbps, batch;
} study_filter;
#define STUDY_ANY .part = -1, .coarsened = -1, .without = -1, .runtime = -1, .devices = -1, .gbps = -1, .batch = -1
/* The first match at or after *from, which then stands behind it; NULL where there is none. */
const moirai_study_row *study_next(const moirai_study *s, const study_filter *f, int32_t *from);
const moirai_study_row *study_find(const moirai_study *s, const study_filter *f);
/* A row of the paper's tables. */
const moirai_study_row *study_latency_row(const moirai_study *s, const char *network, const char *cluster,
                                          bool coarsened, const char *placer);
/* Does it have a plan that can run? `r` may be NULL. */
bool study_has_plan(const moirai_study_row *r);
/* slow / fast as times; NAN where either has no plan. */
double study_ratio(const moirai_study_row *slow, const moirai_study_row *fast);
/* Best single device over the plan; NAN where there is no plan or no single device. */
double study_gain(const moirai_study_row *r);
/* (makespan - bound) / makespan; NAN where nothing is proven. */
double study_gap(const moirai_study_row *r);

#define STUDY_MOST_NAMES 32
typedef struct study_names {
    int n;
    const char *name[STUDY_MOST_NAMES]; /* of rows */
} study_names;
/* Names that the done rows of a part have, each once, in their order. */
void study_networks(study_names *out, const moirai_study *s, moirai_study_part part);
void study_clusters(study_names *out, const moirai_study *s, moirai_study_part part);
void study_placers(study_names *out, const moirai_study *s, moirai_study_part part);

/* Least, mean (geometric), most of numbers as they come; NAN is passed over. */
typedef struct study_range {
    int n;
    double least, most, log_sum;
    const char *who; /* has the most */
} study_range;
void study_range_add(study_range *r, double value, const char *who);
double study_range_mean(const study_range *r);

/* ---- document.c: what all renderings show, as blocks ---- */
typedef enum study_block_kind { STUDY_HEADING, STUDY_TEXT, STUDY_ITEM, STUDY_TABLE, STUDY_FIGURE } study_block_kind;
typedef struct study_block {
    study_block_kind kind;
    char name[32];         /* of tables and figures */
    char *text;            /* heading, paragraph, list item, caption */
    int n_columns, n_left; /* table: the first n_left columns are words */
    int n_cells, capacity;
    char **cell; /* the header's first, row by row */
    char *svg;
    size_t svg_length;
} study_block;

typedef struct study_document {
    study_block *block;
    size_t n, capacity;
    bool failed;
} study_document;

void study_document_free(study_document *d);
void study_heading(study_document *d, const char *format, ...) MOIRAI_PRINTF(2, 3);
void study_say(study_document *d, const char *format, ...) MOIRAI_PRINTF(2, 3);
void study_item(study_document *d, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* `columns`: names separated by '|'. Cells follow, row by row. */
void study_table(study_document *d, const char *name, int n_left, const char *columns);
void study_cell(study_document *d, const char *format, ...) MOIRAI_PRINTF(2, 3);
void study_cell_ms(study_document *d, int64_t ns);      /* "-" below 0 */
void study_cell_times(study_document *d, double ratio); /* "1.23", "-" for NAN */
void study_cell_percent(study_document *d, double share);
void study_figure(study_document *d, const char *name, report_text *svg, const char *format, ...) MOIRAI_PRINTF(4, 5);

/* Everything, in order. */
int study_document_make(study_document *d, const moirai_study *s);
/* Its chapters, one file each. */
void study_tell_latency(study_document *d, const moirai_study *s);
void study_tell_generation(study_document *d, const moirai_study *s);
void study_tell_coarsening(study_document *d, const moirai_study *s);
void study_tell_ablation(study_document *d, const moirai_study *s);
void study_tell_sensitivity(study_document *d, const moirai_study *s);
void study_tell_findings(study_document *d, const moirai_study *s);
void study_tell_places(study_document *d, const moirai_study *s);
void study_tell_operators(study_document *d, const moirai_study *s);

/* ---- draw.c: figures as SVG ---- */
typedef struct study_bars {
    const char *title, *unit;
    int n_groups, n_series;
    const char *const *group, *const *series;
    const double *value; /* [group * n_series + series]; NAN: none */
    double line;         /* a dashed line across, with its words; 0: none */
    const char *line_text;
    bool logarithmic;
} study_bars;
void study_draw_bars(report_text *t, const study_bars *b);

typedef struct study_lines {
    const char *title, *unit, *x_unit;
    int n_points, n_series;
    const double *x; /* ascending, above 0: the axis is logarithmic */
    const char *const *series;
    const double *y; /* [series * n_points + point]; NAN: none */
} study_lines;
void study_draw_lines(report_text *t, const study_lines *l);

typedef struct study_map {
    const char *title, *x_title, *y_title;
    int n_columns, n_rows;
    const int *x, *y;
    const double *value; /* [row * n_columns + column], 1 is even; NAN: none */
} study_map;
void study_draw_map(report_text *t, const study_map *m);

/* ---- files compiled in by the build (src/report/embed.cmake) ---- */
extern const char study_file_study_html[], study_file_study_css[], study_file_study_js[];

#endif
