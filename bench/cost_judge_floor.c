/* What is missed, beside what the measurements themselves leave: how far a model could come that knew all that shapes tell.
 *
 * Three predictors that no formula has to beat, since each looks at what it judges by:
 *
 *  - the same shape, measured again on that GPU: the median of the other times. No function of shapes does better; shapes
 *    that were measured once do not count.
 *  - neighbours on the same GPU: the formula's errors there, smoothed over all other shapes by Gaussian weights over the
 *    logarithms of sizes, are taken off it; of several widths the best.
 *  - neighbours on the other GPUs: the same with their errors, which is what is left to a GPU that nobody measured.
 *
 * Of a ratio, the errors are those of the pair, and only the first two make sense. Quadratic in the times of a class. */
#include "cost_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZES 7
#define MOST_TIMES 512 /* of one shape */

/* The logarithm of predicted over measured, and where among shapes. */
typedef struct point {
    double x[SIZES], error;
} point;

typedef struct cloud {
    point *p;
    size_t n;
} cloud;

static void put(cloud *c, const cost_shape *s, double error)
{
    const double size[SIZES] = {s->b, s->m, s->n, s->depth, s->rows, s->row, s->bytes};
    for (int i = 0; i < SIZES; i++)
        c->p[c->n].x[i] = log(fmax(size[i], 1));
    c->p[c->n++].error = error;
}

static double distance(const point *a, const point *b)
{
    double sum = 0;
    for (int i = 0; i < SIZES; i++)
        sum += (a->x[i] - b->x[i]) * (a->x[i] - b->x[i]);
    return sum;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A mean over GPUs of means over times, in %. */
typedef struct floor_mean {
    double sum;
    int n;
} floor_mean;

static void add_mean(floor_mean *m, double sum, size_t n)
{
    if (n) {
        m->sum += 100 * sum / (double)n;
        m->n++;
    }
}

static void show(const floor_mean *m)
{
    if (m->n)
        printf(" %.1f |", m->sum / m->n);
    else
        printf(" |");
}

/* Every time by the median of the others of its shape. */
static void again(floor_mean *out, const cloud *c)
{
    double sum = 0, other[MOST_TIMES];
    size_t times = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t n = 0;
        for (size_t j = 0; j < c->n && n < MOST_TIMES; j++)
            if (i != j && distance(&c->p[i], &c->p[j]) < 1e-18)
                other[n++] = c->p[j].error;
        if (!n)
            continue;
        qsort(other, n, sizeof *other, by_value);
        sum += fabs(exp(c->p[i].error - (other[(n - 1) / 2] + other[n / 2]) / 2) - 1);
        times++;
    }
    add_mean(out, sum, times);
}

/* Errors of `c` that are left by those of `by`, smoothed; itself never counts. */
static double smoothed(const cloud *c, const cloud *by, double width)
{
    double left = 0;
    for (size_t i = 0; i < c->n; i++) {
        double sum = 0, weights = 1e-12;
        for (size_t j = 0; j < by->n; j++) {
            if (&by->p[j] == &c->p[i])
                continue;
            double w = exp(-distance(&c->p[i], &by->p[j]) / (2 * width * width));
            sum += w * by->p[j].error;
            weights += w;
        }
        left += fabs(exp(c->p[i].error - sum / weights) - 1);
    }
    return left;
}

static void neighbours(floor_mean *out, const cloud *c, const cloud *by)
{
    static const double widths[] = {0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 3};
    double best = INFINITY;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        best = fmin(best, smoothed(c, by, widths[i]));
    if (by->n)
        add_mean(out, best, c->n);
}

/* Times of a class and source on a GPU, and on all others, by the coefficients that have not seen it. */
static void floor_of_class(const moirai_fit *fit, const cost_fitted_set *without, int k, bool tensorrt, cloud *own,
                           cloud *others)
{
    floor_mean same_shape = {0}, near = {0}, elsewhere = {0};
    for (int d = 0; d < fit->n_devices; d++) {
        own->n = others->n = 0;
        for (size_t i = 0; i < fit->n; i++) {
            const cost_fit_sample *s = &fit->sample[i];
            if ((int)s->shape.k == k && s->tensorrt == tensorrt)
                put(s->type == fit->device[d] ? own : others, &s->shape,
                    log(cost_judge_predict(&without[d], s) / s->ns));
        }
        if (!own->n)
            continue;
        again(&same_shape, own);
        neighbours(&near, own, own);
        neighbours(&elsewhere, own, others);
    }
    show(&same_shape);
    show(&near);
    show(&elsewhere);
    printf("\n");
}

/* Of the pair of GPUs whose ratio is the worst. */
static void floor_of_ratio(const moirai_fit *fit, const cost_fitted_set *without, int k, cloud *own)
{
    double worst = 0;
    floor_mean worst_again = {0}, worst_near = {0};
    for (int pair = 0; pair < fit->n_devices * fit->n_devices; pair++) {
        int a = pair / fit->n_devices, b = pair % fit->n_devices;
        floor_mean same_shape = {0}, near = {0};
        double sum = 0;
        own->n = 0;
        for (size_t i = 0; i < fit->n && a != b; i++)
            for (size_t j = i > 8 ? i - 8 : 0; j < fit->n && j < i + 8; j++) {
                const cost_fit_sample *x = &fit->sample[i], *y = &fit->sample[j];
                if ((int)x->shape.k != k || x->type != fit->device[a] || y->type != fit->device[b] ||
                    !cost_judge_same(x, y))
                    continue;
                double error =
                    log(cost_judge_predict(&without[a], x) / cost_judge_predict(&without[a], y) * y->ns / x->ns);
                put(own, &x->shape, error);
                sum += fabs(exp(error) - 1);
            }
        if (!own->n || sum / (double)own->n < worst)
            continue;
        worst = sum / (double)own->n;
        again(&same_shape, own);
        neighbours(&near, own, own);
        worst_again = same_shape;
        worst_near = near;
    }
    show(&worst_again);
    show(&worst_near);
    printf(" |\n");
}

void cost_judge_floor(const moirai_fit *fit, const cost_fitted_set *without)
{
    size_t pairs = 16 * fit->n;
    cloud own = {malloc(pairs * sizeof(point)), 0}, others = {malloc(fit->n * sizeof(point)), 0};
    printf("\nWhat is missed, and what the measurements leave whoever fits them, in %%\n\n"
           "| what | of | found | asked | the same shape again | neighbours on the same GPU | on other GPUs |\n"
           "|---|---|---|---|---|---|---|\n");
    for (int k = 0; own.p && others.p && k < COST_CLASS_MEASURED; k++)
        for (int what = 0; what < 3; what++) {
            const char *where = what == 2 ? "" : what ? "TensorRT" : "eager";
            double found, asked;
            if (!cost_judge_missed(what == 2 ? COST_JUDGE_RATIO : COST_JUDGE_CLASS, k, where, &found, &asked))
                continue;
            printf("| %s | %s%s%s | %.1f | %g |", what == 2 ? COST_JUDGE_RATIO : COST_JUDGE_CLASS,
                   cost_class_name((cost_class)k), *where ? ", " : "", where, found, asked);
            if (what == 2)
                floor_of_ratio(fit, without, k, &own);
            else
                floor_of_class(fit, without, k, what == 1, &own, &others);
        }
    free(own.p);
    free(others.p);
}
