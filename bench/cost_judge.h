/* What the files of the cost models' judge share. */
#ifndef MOIRAI_BENCH_COST_JUDGE_H
#define MOIRAI_BENCH_COST_JUDGE_H

#include <moirai/moirai.h>
#include "cost/fit.h"
#include "cost/spread.h"

/* A measured time as coefficients have it. */
double cost_judge_predict(const cost_fitted_set *set, const cost_fit_sample *s);
/* The number of its device in the fit. */
int cost_judge_device(const moirai_fit *fit, const cost_fit_sample *s);
/* The table of intervals, by coefficients without each device and from all; `figures` NULL or a C table to write. */
void cost_judge_spread(const moirai_fit *fit, const cost_fitted_set *without, const cost_fitted_set *all,
                       const char *figures);

/* Whether two times are of the same shape in the same runtime. */
bool cost_judge_same(const cost_fit_sample *a, const cost_fit_sample *b);
/* Each network left out; the times of network i are those from end[i] to end[i + 1]. */
void cost_judge_networks(const moirai_fit *fit, char **name, const size_t *end, int n);
/* What the measurements leave of all that is missed. */
void cost_judge_floor(const moirai_fit *fit, const cost_fitted_set *without);

#define COST_JUDGE_CLASS "error of a class"
#define COST_JUDGE_RATIO "ratio of two GPUs, worst pair"
/* A row of the last table: a figure in % that is to be at most, or at least, what was asked. Names are not copied. */
void cost_judge_at_most(const char *what, const char *of, const char *where, double found, double asked);
void cost_judge_at_least(const char *what, const char *of, double found, double asked);
/* What is asked of a class, in %. */
double cost_judge_class_limit(int k);
/* Whether that row was missed, and its figures. */
bool cost_judge_missed(const char *what, int k, const char *where, double *found, double *asked);
/* The table of all rows. */
void cost_judge_verdict(void);

#endif
