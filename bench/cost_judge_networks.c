/* Networks left out, all GPUs seen: coefficients come from all measurements but those of the network, and its times are
 * compared with the intervals of a seen GPU. A network that alone shows a kind of kernel is judged by what the others know
 * of it. One fit for each class of each network. */
#include "cost_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors of one network by coefficients without it: their sum, and how many lie in the interval. */
static void judge(const moirai_fit *fit, size_t begin, size_t end, cost_fit_sample *rest, double *sum, size_t *in)
{
    cost_fitted_set set = cost_fitted_shipped;
    bool known[COST_CLASS_MEASURED] = {false};
    size_t n = fit->n - (end - begin);
    memcpy(rest, fit->sample, begin * sizeof *rest);
    memcpy(rest + begin, fit->sample + end, (fit->n - end) * sizeof *rest);
    for (size_t i = begin; i < end; i++) {
        const cost_fit_sample *s = &fit->sample[i];
        cost_class k = s->shape.k;
        if (!known[k])
            cost_fit_class(set.c[k], k, rest, n, NULL);
        known[k] = true;
        double error = cost_judge_predict(&set, s) / s->ns;
        cost_spread spread = cost_spread_of(k, true);
        *sum += fabs(error - 1);
        *in += fabs(log(error)) <= COST_SPREAD_80 * hypot(spread.bias, spread.noise);
    }
}

void cost_judge_networks(const moirai_fit *fit, char **name, const size_t *end, int n)
{
    cost_fit_sample *rest = malloc(fit->n * sizeof *rest);
    double all = 0;
    size_t all_in = 0;
    printf("\nOne network left out, all GPUs seen: mean absolute error in %% of its operators in TensorRT, and how "
           "many lie in "
           "the 80 %% interval of a seen GPU\n\n| network | error | in it, %% |\n|---|---|---|\n");
    for (int i = 0; rest && i < n; i++) {
        double sum = 0;
        size_t in = 0, times = end[i + 1] - end[i];
        const char *slash = strrchr(name[i], '/'), *base = slash ? slash + 1 : name[i];
        if (!times)
            continue;
        judge(fit, end[i], end[i + 1], rest, &sum, &in);
        printf("| %.*s | %.1f | %.0f |\n", (int)strcspn(base, "."), base, 100 * sum / (double)times,
               100 * (double)in / (double)times);
        all += sum;
        all_in += in;
    }
    if (n > 0 && end[n] > end[0]) {
        double times = (double)(end[n] - end[0]);
        printf("| **all** | **%.1f** | **%.0f** |\n", 100 * all / times, 100 * (double)all_in / times);
    }
    free(rest);
}
