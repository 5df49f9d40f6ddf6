/* Many problems, each with several setups, in processes of their own, side by side, with a journal that is gone on with
 * after an interruption. For bench_wide and bench_ablate. */
#ifndef MOIRAI_WIDE_WIDE_H
#define MOIRAI_WIDE_WIDE_H

#include <stdio.h>

#include <moirai/placer.h>

enum { WIDE_NAME = 128, WIDE_KEY = 512, WIDE_SETTINGS = 16, WIDE_MESSAGE = 200 };

/* ---- rows ---- problems by name:
 *   zoo:NETWORK/TESTBED/GRAPH/FLOW    the paper's networks; GRAPH original or coarsened, FLOW tensor or edge
 *   onnx:FILE/TESTBED/GRAPH           ../shared/data/onnx, flow tensor, fitted costs with eager launches
 *   shape:SHAPE/OPERATORS/DEVICES     tests/support/shapes.h
 *   anything else                     the generator's */

enum { WIDE_GROUPS = 7 };
extern const char *const wide_groups[WIDE_GROUPS]; /* "families", "networks", "zoo", ... */

typedef struct wide_row {
    char name[WIDE_NAME];
    const char *group; /* one of wide_groups */
} wide_row;

typedef struct wide_rows {
    wide_row *row;
    size_t n, room;
} wide_rows;

/* Rows of the sets in `sets` (zoo, onnx, onnx-original, shapes, generator, or a row's own name) and, of the generator's
 * list, of the half ("tune", "judge", "both") whose names fit one
 * of the patterns in `only` (NULL: all), groups in turns so that every beginning is a fair sample; at most `per_group` of
 * each (0: all). MOIRAI_EUSAGE for a set or half that there is not. */
int wide_rows_list(wide_rows *out, const char *sets, const char *half, const char *only, int per_group);
void wide_rows_free(wide_rows *rows);
int wide_problem(moirai_problem **out, const char *row);

/* ---- setups ---- */

typedef struct wide_setup {
    const char *placer; /* "annealer": the judge */
    double limit_s, cpu_s, effort, gap;
    int threads;
    int seed; /* 0: the placer's own */
    moirai_setting setting[WIDE_SETTINGS];
    int n_settings;
} wide_setup;

/* All that a result hangs on, in one word of a journal. */
void wide_setup_key(char out[WIDE_KEY], const wide_setup *s);

typedef struct wide_outcome {
    bool done;
    int32_t n_ops, n_devices;
    int64_t plan_ns, bound_ns; /* bound: MOIRAI_UNKNOWN where nothing is proven */
    double seconds, cpu_s, peak_mb;
    char message[WIDE_MESSAGE]; /* why there is no plan, or "" */
} wide_outcome;

/* (plan - bound) / plan in per cent; -1 where there is no plan or no bound. */
double wide_gap(const wide_outcome *o);

/* ---- jobs ---- */

typedef struct wide_job {
    const char *row;
    const wide_setup *setup;
    wide_outcome outcome;
} wide_job;

/* Called in the order in which jobs end; those of the journal first. */
typedef void wide_done_fn(void *data, size_t job);

typedef struct wide_run {
    wide_job *job;
    size_t n_jobs;
    int side_by_side;     /* processes at once */
    double until_s;       /* no job is begun that is not to end within this; 0: no limit */
    const char *csv_path; /* or NULL */
    wide_done_fn *done;
    void *data;
} wide_run;

/* Runs what the journal does not have yet, in order. 0, or a failure of the journal. */
int wide_run_all(wide_run *r);
/* One problem in this process. */
void wide_run_here(wide_outcome *out, const char *row, const wide_setup *setup);

/* ---- journal ---- a CSV file: row, setup, and the outcome's numbers. */
/* Fills in the outcomes that the file has; a file that is not there has none. MOIRAI_EINPUT names the line that is none. */
int wide_csv_read(const char *path, wide_job *job, size_t n_jobs);
/* The file to append to, with its head and without a line that was cut off; NULL and a message where that fails. */
FILE *wide_csv_open(const char *path);
void wide_csv_row(FILE *out, const wide_job *job);

/* ---- options of both programs ---- */

typedef struct wide_options {
    wide_setup setup;
    const char *sets, *half, *only, *csv_path, *steps;
    double until_s, annealer_s;
    int side_by_side, per_group;
} wide_options;

/* Defaults, then the command line; MOIRAI_EUSAGE names the option that is not understood. Texts are those of argv. */
int wide_options_parse(wide_options *out, int argc, char **argv);

/* ---- the judge ---- */

/* A plan by plain annealing, for so many seconds of processor time, from a seed; annealer.c. MOIRAI_EUSAGE for what it does not
 * know: groups, shared weights, memory mode peak. */
int wide_anneal(moirai_plan **out, const moirai_problem *p, double seconds, uint64_t seed);

#endif
