/* How far predictions are off, by class: the figures behind intervals, and whether these hold what they promise.
 *
 * Of the logarithm of predicted over measured on a GPU that was left out: the common part is the median of its class on
 * that GPU, by source; the whole is what 80 % of its errors stay below. An interval is honest where 80 % of the times of
 * a GPU lie in the one that the other GPUs' errors make. */
#include "cost_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors of one class, by GPU and source. */
typedef struct errors {
    double *log_ratio;
    int *group; /* 2 x device + source */
    size_t n;
} errors;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *value, size_t n, double share)
{
    if (!n)
        return 0;
    qsort(value, n, sizeof *value, by_value);
    return value[(size_t)(share * (double)(n - 1))];
}

static double median_of(const errors *e, int group, double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->group[i] == group)
            scratch[n++] = e->log_ratio[i];
    return n ? quantile(scratch, n, 0.5) : NAN;
}

/* Of n numbers around 0 the root of their mean square tells too little: one more lies within 80 % of Student's
 * distribution, which is wider than the normal one by this factor (Cornish and Fisher's first two terms). */
static double student(int n)
{
    return 1 + 0.661 / n + 0.446 / (n * n);
}

/* What one more error like these stays below four times of five, in standard deviations; NAN where there are none. All
 * groups but those of a GPU (`group` -1), or one group. */
static double whole_of(const errors *e, int group, int without, double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->group[i] / 2 != without && (group < 0 || e->group[i] == group))
            scratch[n++] = fabs(e->log_ratio[i]);
    if (!n)
        return NAN;
    qsort(scratch, n, sizeof *scratch, by_value);
    size_t at = (size_t)ceil(0.8 * (double)(n + 1)); /* of n + 1 errors, the last is not yet known */
    return scratch[at < n ? at - 1 : n - 1] / COST_SPREAD_80;
}

/* All GPUs but `without` (-1: all). The common part is that of one more GPU; what is each operator's own is what the
 * common parts of these leave. What comes next is a time of another GPU: the whole is that of all times, or, where GPUs
 * differ more than their numbers of times tell, that of all GPUs. */
static cost_spread spread_of(const errors *e, int without, double *scratch)
{
    double common = 0, gpus = 0, times = whole_of(e, -1, without, scratch);
    int n = 0;
    for (int group = 0; group < 2 * COST_FIT_DEVICES; group++) {
        double m = group / 2 == without ? NAN : median_of(e, group, scratch);
        if (isnan(m))
            continue;
        common += m * m;
        gpus += pow(whole_of(e, group, without, scratch), 2);
        n++;
    }
    if (!n)
        return (cost_spread){0, 0};
    double whole = fmax(gpus / n, times * times);
    return (cost_spread){student(n) * sqrt(common / n), sqrt(fmax(whole - common / n, 1e-4))};
}

static double covered(const errors *e, double *scratch)
{
    size_t in = 0;
    cost_spread by_device[COST_FIT_DEVICES];
    bool known[COST_FIT_DEVICES] = {false};
    for (size_t i = 0; i < e->n; i++) {
        int d = e->group[i] / 2;
        if (!known[d])
            by_device[d] = spread_of(e, d, scratch);
        known[d] = true;
        in += fabs(e->log_ratio[i]) <= COST_SPREAD_80 * hypot(by_device[d].bias, by_device[d].noise);
    }
    return e->n ? (double)in / (double)e->n : 0;
}

static void gather(errors *e, const moirai_fit *fit, int k, const cost_fitted_set *set, bool one_set)
{
    e->n = 0;
    for (size_t i = 0; i < fit->n; i++) {
        const cost_fit_sample *s = &fit->sample[i];
        if ((int)s->shape.k != k)
            continue;
        int d = cost_judge_device(fit, s);
        e->log_ratio[e->n] = log(cost_judge_predict(one_set ? set : &set[d], s) / s->ns);
        e->group[e->n++] = 2 * d + s->tensorrt;
    }
}

void cost_judge_spread(const moirai_fit *fit, const cost_fitted_set *without, const cost_fitted_set *all,
                       const char *figures)
{
    errors e = {malloc(fit->n * sizeof *e.log_ratio), malloc(fit->n * sizeof *e.group), 0};
    double *scratch = malloc(fit->n * sizeof *scratch), in = 0, n = 0;
    FILE *out = figures ? fopen(figures, "w") : NULL;
    if (out)
        fprintf(out, "/* Written by bench_cost --figures: do not edit. {seen, unseen} by class: cost_class.h. */\n");
    printf(
        "\nHow sure: standard deviations of the logarithm of predicted over measured; of times on a GPU left out, how "
        "many lie in the 80 %% interval that the others' errors make\n\n"
        "| class | seen GPU: common | own | unseen GPU: common | own | 80 %% interval | in it, %% |\n"
        "|---|---|---|---|---|---|---|\n");
    for (int k = 0; e.log_ratio && e.group && scratch && k < COST_CLASS_MEASURED; k++) {
        gather(&e, fit, k, all, true);
        cost_spread seen = spread_of(&e, -1, scratch);
        gather(&e, fit, k, without, false);
        cost_spread unseen = spread_of(&e, -1, scratch);
        double share = covered(&e, scratch), factor = exp(COST_SPREAD_80 * hypot(unseen.bias, unseen.noise));
        printf("| %s | %.2f | %.2f | %.2f | %.2f | / %.2f to x %.2f | %.0f |\n", cost_class_name((cost_class)k),
               seen.bias, seen.noise, unseen.bias, unseen.noise, factor, factor, 100 * share);
        cost_judge_at_least("times in the 80 % interval", cost_class_name((cost_class)k), 100 * share, 80);
        if (out)
            fprintf(out, "/* %-9s */ {{%.3f, %.3f}, {%.3f, %.3f}},\n", cost_class_name((cost_class)k), seen.bias,
                    seen.noise, unseen.bias, unseen.noise);
        in += share * (double)e.n;
        n += (double)e.n;
    }
    printf("| **all** | | | | | | **%.0f** |\n", n > 0 ? 100 * in / n : 0);
    cost_judge_at_least("times in the 80 % interval", "all", n > 0 ? 100 * in / n : 0, 80);
    if (out)
        fclose(out);
    free(e.log_ratio);
    free(e.group);
    free(scratch);
}
