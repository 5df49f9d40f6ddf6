/* A placer on many problems: plan, proven bound, gap, seconds, processor seconds and peak memory as a Markdown table, and
 * means by family, by setting and by group.
 *
 * usage: bench_wide [--half tune|judge|both] [--rows SET,SET] [--only PATTERN,PATTERN] [--per-group N]
 *                   [--limit S] [--cpu S] [--threads N] [--effort E] [--gap G] [--seed N] [--placer NAME] [--set NAME=VALUE] [--off STEP,STEP]
 *                   [--annealer S] [--jobs N] [--until S] [--csv FILE]
 *   --half      which seeds of the generator: `tune` unless told. `judge` is for judging: who tunes does not look at it
 *   --rows      generator (unless told), zoo, onnx, onnx-original, shapes, or names of rows (wide/wide.h)
 *   --only      rows whose names fit a shell pattern
 *   --limit     wall time of each, 30 s unless told; --cpu: processor time, which means the same on a busy machine
 *   --set       a parameter of the placer; --off STEP,STEP is --set off=STEP,STEP
 *   --annealer  beside each plan that of the plain annealer (wide/annealer.c) after so many seconds of
 *               processor time, on one core
 *   --jobs      processes at once; --until: begins nothing that would not end within so many seconds
 *   --csv       a journal: what it has is not run again
 *
 * Rows are printed when they are done. Timings never fail it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"
#include "wide/summary.h"
#include "wide/wide.h"

typedef struct table {
    wide_options o;
    wide_setup annealer;
    wide_rows rows;
    wide_job *job; /* of row i: per_row of them, from per_row * i on */
    size_t per_row;
    double *number; /* room for one per row */
} table;

static const wide_outcome *outcome(const table *t, size_t row, size_t which)
{
    return &t->job[t->per_row * row + which].outcome;
}

/* By how much of the annealer's the plan takes longer, in per cent; 0 where one of them is missing. */
static double behind(const table *t, size_t row)
{
    const wide_outcome *a = outcome(t, row, 0), *b = t->per_row > 1 ? outcome(t, row, 1) : NULL;
    if (!b || !a->done || !b->done || a->plan_ns < 0 || b->plan_ns <= 0)
        return 0;
    return 100.0 * (double)(a->plan_ns - b->plan_ns) / (double)b->plan_ns;
}

static void print_row(void *data, size_t job)
{
    const table *t = data;
    size_t row = job / t->per_row;
    for (size_t i = 0; i < t->per_row; i++)
        if (!outcome(t, row, i)->done)
            return;
    const wide_outcome *o = outcome(t, row, 0);
    printf("| %s | %d | %d |", t->rows.row[row].name, o->n_ops, o->n_devices);
    if (o->message[0]) {
        printf(" %s |\n", o->message);
    } else {
        printf(" %.3f | %.3f | %.2f | %.1f | %.1f | %.0f |", 1e-6 * (double)o->plan_ns, 1e-6 * (double)o->bound_ns,
               wide_gap(o), o->seconds, o->cpu_s, o->peak_mb);
        if (t->per_row > 1 && outcome(t, row, 1)->plan_ns >= 0)
            printf(" %.3f | %+.2f |", 1e-6 * (double)outcome(t, row, 1)->plan_ns, behind(t, row));
        else if (t->per_row > 1)
            printf(" %s | |", outcome(t, row, 1)->message);
        printf("\n");
    }
    fflush(stdout);
}

/* ---- means ---- */

/* What a row is counted under, part by part: "" where it is not. */
typedef void label_fn(char out[WIDE_NAME], const wide_row *r);

static void by_group(char out[WIDE_NAME], const wide_row *r)
{
    snprintf(out, WIDE_NAME, "%s", r->group);
}

static void by_family(char out[WIDE_NAME], const wide_row *r)
{
    snprintf(out, WIDE_NAME, "%.*s", (int)strcspn(r->name, "/"), r->name);
}

static void by_setting(char out[WIDE_NAME], const wide_row *r)
{
    const char *first = strchr(r->name, '/'), *last = strrchr(r->name, '/');
    bool generated = !strchr(r->name, ':');
    snprintf(out, WIDE_NAME, "%.*s", generated ? (int)(last - first - 1) : 0, first ? first + 1 : "");
}

static double transfer_of(const wide_row *r)
{
    const char *at = strrchr(r->name, '/');
    while (at && at > r->name && at[-1] != '/')
        at--;
    return at ? atof(at) : 0;
}

static void by_transfer(char out[WIDE_NAME], const wide_row *r)
{
    bool family = !strcmp(r->group, "families");
    snprintf(out, WIDE_NAME, "%s",
             !family                 ? ""
             : transfer_of(r) <= 0.3 ? "families, transfers to 0.3"
                                     : "families, transfers above");
}

static void by_near_family(char out[WIDE_NAME], const wide_row *r)
{
    by_transfer(out, r);
    if (*out && transfer_of(r) <= 0.3)
        by_family(out, r);
    else
        *out = '\0';
}

/* A line per label, in the order in which labels come up. */
static void print_means(const table *t, const char *what, label_fn *label)
{
    printf("\n| %s | rows | mean gap %% | median | 95 %% within | worst |%s\n|---|---:|---:|---:|---:|---:|%s\n", what,
           t->per_row > 1 ? " behind the annealer by more than 0.5 % | most |" : "",
           t->per_row > 1 ? "---:|---:|" : "");
    for (size_t i = 0; i < t->rows.n; i++) {
        char own[WIDE_NAME], other[WIDE_NAME];
        size_t n = 0, late = 0;
        double most = 0;
        bool first = true;
        label(own, &t->rows.row[i]);
        for (size_t j = 0; j < t->rows.n && *own; j++) {
            label(other, &t->rows.row[j]);
            if (strcmp(own, other) != 0)
                continue;
            first &= j >= i;
            if (wide_gap(outcome(t, j, 0)) >= 0)
                t->number[n++] = wide_gap(outcome(t, j, 0));
            late += behind(t, j) > 0.5;
            most = UTIL_MAX(most, behind(t, j));
        }
        if (!*own || !first || !n)
            continue;
        wide_summary s = wide_summarize(t->number, n);
        printf("| %s | %zu | %.2f | %.2f | %.2f | %.2f |", own, s.n, s.mean, s.median, s.high, s.worst);
        if (t->per_row > 1)
            printf(" %zu | %.2f |", late, most);
        printf("\n");
    }
}

static int run(table *t)
{
    t->per_row = t->o.annealer_s > 0 ? 2 : 1;
    t->annealer = (wide_setup){.placer = "annealer", .limit_s = t->o.annealer_s, .threads = 1, .effort = 1};
    t->job = util_alloc(t->per_row * t->rows.n, sizeof *t->job);
    t->number = util_alloc(t->rows.n, sizeof *t->number);
    if (!t->job || !t->number)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < t->per_row * t->rows.n; i++)
        t->job[i] =
            (wide_job){.row = t->rows.row[i / t->per_row].name, .setup = i % t->per_row ? &t->annealer : &t->o.setup};
    if (strcmp(t->o.half, "tune") != 0)
        printf("Half: %s. These rows judge: they are not for tuning.\n\n", t->o.half);
    printf("| problem | operators | devices | plan ms | bound ms | gap %% | seconds | CPU s | peak MB |%s\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|%s\n",
           t->per_row > 1 ? " annealer ms | longer % |" : "", t->per_row > 1 ? "---:|---:|" : "");
    wide_run r = {.job = t->job,
                  .n_jobs = t->per_row * t->rows.n,
                  .side_by_side = t->o.side_by_side,
                  .until_s = t->o.until_s,
                  .csv_path = t->o.csv_path,
                  .done = print_row,
                  .data = t};
    return wide_run_all(&r);
}

int main(int argc, char **argv)
{
    table t = {0};
    int rc = wide_options_parse(&t.o, argc, argv);
    if (!rc && t.o.steps)
        rc = moirai_error(MOIRAI_EUSAGE, "--ablate is for bench_ablate");
    rc = rc ? rc : wide_rows_list(&t.rows, t.o.sets, t.o.half, t.o.only, t.o.per_group);
    rc = rc ? rc : run(&t);
    if (!rc) {
        print_means(&t, "group", by_group);
        print_means(&t, "transfers", by_transfer);
        print_means(&t, "family, transfers to 0.3", by_near_family);
        print_means(&t, "family", by_family);
        print_means(&t, "setting", by_setting);
    } else {
        fprintf(stderr, "bench_wide: %s\n", moirai_error_message());
    }
    free(t.job);
    free(t.number);
    wide_rows_free(&t.rows);
    return -rc;
}
