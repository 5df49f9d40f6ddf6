/* The times of operators on one device, from the measured times of its segments in all timelines.
 *
 * A segment takes p + sum of r(class) x (known time) over its operators. The price p of a segment is the intercept of
 * the line through (known sum, measured time) by Theil and Sen (refine_line.c); never above the shortest segment. Without
 * a cluster there is nowhere to put it, and p = 0.
 *
 * The factors r, one per class of equal operators, make relative errors of the segments small in the least-squares
 * sense (a segment that is mostly price counts little), held near the device's own factor (all segments together) by a
 * penalty of RIDGE: a class that few segments tell of, or always beside the same others, stays near that. Solved by
 * coordinate descent, which also keeps factors from LEAST_FACTOR on: what looks too cheap is what a placer would
 * choose. Segments that hold at least half of the network then scale all factors: the network on one device is
 * predicted as it was measured. O(operators of all segments x SWEEPS + segments^2). */
#include "refine/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

enum { FEWEST_SEGMENTS = 4, FEWEST_SHORT = 2, SWEEPS = 200 };
#define RIDGE 0.1
#define LEAST_FACTOR 0.7 /* of the device's own */

typedef struct row {
    double known_ns, measured_ns, weight;
    const refine_timeline *t;
    const refine_segment *s;
} row;

typedef struct entry {
    int32_t row;
    double value; /* known time x weight of the segment */
} entry;

typedef struct fit {
    refiner *r;
    int32_t key;
    size_t n_rows, n_entries;
    row *row;
    double price_ns, device; /* device: factor of all segments together */
    int32_t *off;            /* [class] in `entry` */
    entry *entry;
    double *factor; /* [class] */
    double *rest;   /* [row] */
} fit;

/* ---- equal operators ---- */

static int compare_ops(const void *a, const void *b, void *data)
{
    const moirai_graph *g = data;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int order = strcmp(g->op_type[x], g->op_type[y]);
    for (int32_t k = 0; k < g->n_time_keys && !order; k++) {
        int64_t s = g->time_ns[refine_cell(g, x, k)], t = g->time_ns[refine_cell(g, y, k)];
        order = (s > t) - (s < t);
    }
    return order;
}

int refine_classes(refiner *r)
{
    size_t n = (size_t)r->g->n_ops;
    int32_t *order = util_alloc(n, sizeof *order);
    if (!order)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    qsort_r(order, n, sizeof *order, compare_ops, r->g);
    for (size_t i = 0; i < n; i++) {
        r->n_classes += i == 0 || compare_ops(&order[i - 1], &order[i], r->g);
        r->class_of[order[i]] = r->n_classes - 1;
    }
    free(order);
    return 0;
}

/* ---- rows ---- */

static void sum_row(fit *f, row *x)
{
    for (int32_t i = 0; i < x->s->n_ops; i++)
        x->known_ns += (double)f->r->g->time_ns[refine_cell(f->r->g, x->t->op_number[x->s->first_op + i], f->key)];
}

/* A run that is one segment took its latency: what passes before the segment starts is paid by no cut. */
static double length_of(const refine_timeline *t, const refine_segment *x)
{
    return (double)(t->n_segments == 1 && t->latency_ns >= x->median_ns ? t->latency_ns : x->median_ns);
}

/* The operators of each segment of the last run sum to its time, without its price where a cut pays that. */
void refine_meet_last(refiner *r)
{
    const refine_timeline *t = r->n ? &r->t[r->n - 1] : NULL;
    for (size_t s = 0; t && s < t->n_segments; s++) {
        const refine_segment *x = &t->segment[s];
        int32_t key = t->key[x->device];
        double sum = 0, price = t->n_segments > 1 ? (double)UTIL_MAX(r->segment_ns[key], 0) : 0;
        double target = length_of(t, x) - price;
        for (int32_t i = 0; i < x->n_ops; i++)
            sum += (double)r->time_ns[refine_cell(r->g, t->op_number[x->first_op + i], key)];
        for (int32_t i = 0; i < x->n_ops && sum > 0 && target > 0 && target < 4e18; i++) {
            int64_t *ns = &r->time_ns[refine_cell(r->g, t->op_number[x->first_op + i], key)];
            *ns = (int64_t)((double)*ns * target / sum + 0.5);
        }
    }
}

static int collect_rows(fit *f)
{
    size_t most = 0;
    for (int32_t i = 0; i < f->r->n; i++)
        most += f->r->t[i].n_segments;
    if (!(f->row = util_alloc(most, sizeof *f->row)))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < f->r->n; i++)
        for (size_t s = 0; s < f->r->t[i].n_segments; s++) {
            const refine_segment *x = &f->r->t[i].segment[s];
            if (f->r->t[i].key[x->device] != f->key || x->median_ns <= 0 || !x->n_ops)
                continue;
            f->row[f->n_rows] = (row){.measured_ns = length_of(&f->r->t[i], x), .t = &f->r->t[i], .s = x};
            sum_row(f, &f->row[f->n_rows++]);
            f->n_entries += (size_t)x->n_ops;
        }
    return 0;
}

/* ---- the price of a segment ---- */

static int price(fit *f)
{
    double slope, intercept, least = INFINITY;
    refine_point *p = util_alloc(f->n_rows, sizeof *p);
    if (!p)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < f->n_rows; i++) {
        p[i] = (refine_point){f->row[i].known_ns, f->row[i].measured_ns};
        least = UTIL_MIN(least, f->row[i].measured_ns);
    }
    int rc = refine_line(&slope, &intercept, p, f->n_rows);
    f->price_ns = rc ? 0 : floor(UTIL_MAX(UTIL_MIN(intercept, least), 0));
    free(p);
    return rc;
}

/* A line needs short segments, too: several below half of the longest. */
static bool has_line(const fit *f)
{
    double longest = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->n_rows; i++)
        longest = UTIL_MAX(longest, f->row[i].known_ns);
    for (size_t i = 0; i < f->n_rows; i++)
        n += f->row[i].known_ns < longest / 2;
    return f->r->c && f->n_rows >= FEWEST_SEGMENTS && n >= FEWEST_SHORT;
}

/* ---- factors ---- */

static int lay_entries(fit *f)
{
    size_t classes = (size_t)f->r->n_classes;
    f->off = util_alloc(classes + 1, sizeof *f->off);
    f->entry = util_alloc(f->n_entries, sizeof *f->entry);
    f->factor = util_alloc(classes, sizeof *f->factor);
    f->rest = util_alloc(f->n_rows, sizeof *f->rest);
    if (!f->off || !f->entry || !f->factor || !f->rest || f->n_entries > INT32_MAX)
        return MOIRAI_EFAIL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < f->n_rows; i++)
            for (int32_t k = 0; k < f->row[i].s->n_ops; k++) {
                int32_t op = f->row[i].t->op_number[f->row[i].s->first_op + k], class = f->r->class_of[op];
                double ns = (double)f->r->g->time_ns[refine_cell(f->r->g, op, f->key)];
                if (pass)
                    f->entry[f->off[class]++] = (entry){(int32_t)i, ns * f->row[i].weight};
                else
                    f->off[class + 1]++;
            }
        for (size_t c = 0; c < classes && !pass; c++)
            f->off[c + 1] += f->off[c];
    }
    for (size_t c = classes; c > 0; c--)
        f->off[c] = f->off[c - 1];
    f->off[0] = 0;
    return 0;
}

static void descend(fit *f)
{
    for (size_t i = 0; i < f->n_rows; i++)
        f->rest[i] = (f->row[i].measured_ns - f->price_ns - f->device * f->row[i].known_ns) * f->row[i].weight;
    for (int32_t c = 0; c < f->r->n_classes; c++)
        f->factor[c] = f->device;
    double most = 1, ridge = RIDGE / (f->device * f->device); /* of factors relative to the device's */
    for (int sweep = 0; sweep < SWEEPS && most > 1e-7; sweep++) {
        most = 0;
        for (int32_t c = 0; c < f->r->n_classes; c++) {
            double up = ridge * (f->device - f->factor[c]), down = ridge;
            for (int32_t e = f->off[c]; e < f->off[c + 1]; e++) {
                up += f->entry[e].value * f->rest[f->entry[e].row];
                down += f->entry[e].value * f->entry[e].value;
            }
            double change = UTIL_MAX(up / down, LEAST_FACTOR * f->device - f->factor[c]);
            f->factor[c] += change;
            most = UTIL_MAX(most, fabs(change) / f->device);
            for (int32_t e = f->off[c]; e < f->off[c + 1]; e++)
                f->rest[f->entry[e].row] -= f->entry[e].value * change;
        }
    }
}

static double fitted_ns(const fit *f, const row *x)
{
    double sum = 0;
    for (int32_t i = 0; i < x->s->n_ops; i++) {
        int32_t op = x->t->op_number[x->s->first_op + i];
        sum += f->factor[f->r->class_of[op]] * (double)f->r->g->time_ns[refine_cell(f->r->g, op, f->key)];
    }
    return sum;
}

static void anchor(fit *f)
{
    double measured = 0, fitted = 0;
    for (size_t i = 0; i < f->n_rows; i++)
        if (2 * (int64_t)f->row[i].s->n_ops >= f->r->g->n_ops) {
            measured += f->row[i].measured_ns; /* no cut pays for this segment: its price stays with the operators */
            fitted += fitted_ns(f, &f->row[i]);
        }
    for (int32_t c = 0; c < f->r->n_classes && measured > 0 && fitted > 0; c++)
        f->factor[c] *= measured / fitted;
    f->device *= measured > 0 && fitted > 0 ? measured / fitted : 1;
}

/* ---- a device ---- */

static void set_time(refiner *r, int32_t op, int32_t key, double ns)
{
    r->time_ns[refine_cell(r->g, op, key)] = ns < 4e18 ? (int64_t)(ns + 0.5) : (int64_t)4e18;
}

static void write_times(const fit *f)
{
    const moirai_graph *g = f->r->g;
    for (int32_t i = 0; i < g->n_ops; i++) {
        int64_t known = g->time_ns[refine_cell(g, i, f->key)];
        bool told = f->factor && f->off[f->r->class_of[i]] < f->off[f->r->class_of[i] + 1];
        if (known >= 0)
            set_time(f->r, i, f->key, (double)known * (told ? f->factor[f->r->class_of[i]] : f->device));
    }
    for (size_t i = 0; i < f->n_rows; i++) /* nothing was known of them: even shares */
        for (int32_t k = 0; k < f->row[i].s->n_ops && f->row[i].known_ns <= 0; k++)
            set_time(f->r, f->row[i].t->op_number[f->row[i].s->first_op + k], f->key,
                     (f->row[i].measured_ns - f->price_ns) / f->row[i].s->n_ops);
}

static int fit_device(fit *f, double *known, double *measured)
{
    double own_known = 0, own_measured = 0;
    int rc = collect_rows(f);
    bool line = !rc && has_line(f);
    if (line)
        rc = price(f);
    for (size_t i = 0; i < f->n_rows; i++) {
        row *x = &f->row[i];
        x->weight = UTIL_MAX(1 - f->price_ns / x->measured_ns, 0) / x->measured_ns;
        if (x->known_ns > 0) {
            own_known += x->known_ns;
            own_measured += x->measured_ns - f->price_ns;
        }
    }
    *known += own_known;
    *measured += own_measured;
    f->device = own_known > 0 && own_measured > 0 ? own_measured / own_known : 0;
    if (!rc && f->device > 0) {
        rc = lay_entries(f);
        if (!rc) {
            descend(f);
            anchor(f);
        }
    }
    f->r->segment_ns[f->key] = line ? (int64_t)f->price_ns : -1;
    return rc;
}

static void fit_free(fit *f)
{
    free(f->row);
    free(f->off);
    free(f->entry);
    free(f->factor);
    free(f->rest);
}

int refine_fit(refiner *r)
{
    double known = 0, measured = 0;
    int32_t n = r->g->n_time_keys;
    fit *list = util_alloc((size_t)n, sizeof *list);
    int rc = list ? 0 : MOIRAI_EFAIL;
    for (int32_t k = 0; k < n && !rc; k++) {
        list[k] = (fit){.r = r, .key = k};
        rc = fit_device(&list[k], &known, &measured);
    }
    for (int32_t k = 0; k < n && !rc; k++) {
        if (list[k].device <= 0)
            list[k].device = known > 0 && measured > 0 && !list[k].n_rows ? measured / known : 1;
        write_times(&list[k]);
    }
    for (int32_t k = 0; list && k < n; k++)
        fit_free(&list[k]);
    free(list);
    return rc;
}
