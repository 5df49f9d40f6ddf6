/* Finding coefficients: Levenberg-Marquardt on the relative error of predicted times.
 *
 * Times span five decades, and a factor of two is as wrong for a small kernel as for a large one: hence relative
 * errors. Measured times have outliers (a throttled card, another kernel chosen): hence pseudo-Huber weights, by which
 * a sample far off counts by its distance and not by its square, close to the mean absolute error that the model is
 * judged by. All coefficients are positive, so the search runs over their logarithms, clamped to the range that makes
 * sense; the Jacobian is by finite differences. No randomness, no threads: the same samples give the same numbers.
 *
 * Times of an eager framework and of TensorRT are fitted together: kernels have the same coefficients but for one
 * factor, launches have their own. What no sample speaks of stays where the search starts.
 *
 * Launch costs are the host's and not the device's: one of the machines of the published measurements needs 1.7 times
 * as long as the others for every small kernel. So each device gets a host factor of its own while fitting, which
 * scales its host_ns and start_ns, and the lower median of the factors goes into the coefficients: the launch of an
 * ordinary host. Convolutions are long enough to do without, and TensorRT's launches are alike on all machines.
 *
 * O(rounds x samples x coefficients^2): 50 to 300 ms a class for 1,500 samples. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cost/fitted.h"
#include "util/util.h"

#define MAX_HOSTS 16
#define MAX_C (COST_FITTED_COEFFICIENTS + MAX_HOSTS)
#define ROUNDS 100
#define KNEE 0.02 /* errors beyond about 2 % count by distance */
#define STEP 1e-5 /* of a logarithm, for finite differences */
#define FEW 20    /* times of a source that do not make a launch of their own */
/* What starting a kernel takes in TensorRT is the runtime's, hardly its class's: a logarithm's distance from the usual
 * costs as much, squared, as so many errors of 2 %. Else classes without small kernels have any launch. */
#define USUAL_LAUNCH 1

typedef struct problem {
    cost_class k;
    int n_c, n_hosts;                     /* unknowns: coefficients, then host factors */
    bool fixed[COST_FITTED_COEFFICIENTS]; /* no sample speaks of it */
    const moirai_device_type *host[MAX_HOSTS];
    size_t n;
    const cost_fit_sample **sample; /* those that count */
    int *sample_host;               /* number of the host factor, -1: none */
} problem;

static double residual(const double *theta, const problem *p, size_t i)
{
    double c[COST_FITTED_COEFFICIENTS] = {0};
    for (int j = 0; j < p->n_c; j++)
        c[j] = exp(theta[j]);
    if (p->sample_host[i] >= 0) {
        double factor = exp(theta[p->n_c + p->sample_host[i]]);
        c[0] *= factor;
        c[1] *= factor;
    }
    const cost_fit_sample *s = p->sample[i];
    cost_head h = cost_head_measured(c, s->tensorrt);
    return cost_fitted_ns(c, &s->shape, s->type, &h) / s->ns - 1;
}

/* How far coefficient j is from the usual launch, as a logarithm; 0 for those that are none. */
static double unusual(const double *theta, const problem *p, int j)
{
    bool launch = j == COST_TRT_HOST || j == COST_TRT_START;
    return launch && !p->fixed[j] ? theta[j] - log(cost_fitted_coefficient_at(p->k, j)->start) : 0;
}

static double loss(const double *theta, const problem *p)
{
    double sum = 0;
    for (int j = COST_TRT_HOST; j <= COST_TRT_START; j++)
        sum += USUAL_LAUNCH * unusual(theta, p, j) * unusual(theta, p, j);
    for (size_t i = 0; i < p->n; i++) {
        double r = residual(theta, p, i) / KNEE;
        sum += sqrt(1 + r * r) - 1;
    }
    return sum;
}

/* Normal equations a * step = -g at theta, with each sample's weight. */
static void linearise(const double *theta, const problem *p, double a[MAX_C][MAX_C], double g[MAX_C])
{
    int n = p->n_c + p->n_hosts;
    memset(a, 0, sizeof(double) * MAX_C * MAX_C);
    memset(g, 0, sizeof(double) * MAX_C);
    for (int j = COST_TRT_HOST; j <= COST_TRT_START; j++) {
        a[j][j] = p->fixed[j] ? 0 : 2 * USUAL_LAUNCH * KNEE * KNEE;
        g[j] = 2 * USUAL_LAUNCH * KNEE * KNEE * unusual(theta, p, j);
    }
    for (size_t i = 0; i < p->n; i++) {
        double r = residual(theta, p, i), w = 1 / sqrt(1 + r * r / (KNEE * KNEE)), row[MAX_C] = {0}, near[MAX_C];
        memcpy(near, theta, sizeof near);
        for (int j = 0; j < n; j++) {
            if (j >= p->n_c ? j != p->n_c + p->sample_host[i] : p->fixed[j])
                continue;
            near[j] = theta[j] + STEP;
            row[j] = (residual(near, p, i) - r) / STEP;
            near[j] = theta[j];
        }
        for (int j = 0; j < n; j++) {
            g[j] += w * row[j] * r;
            for (int l = 0; l <= j; l++)
                a[j][l] += w * row[j] * row[l];
        }
    }
}

/* Cholesky of the damped matrix; false where it is not positive. */
static bool solve(double step[MAX_C], double a[MAX_C][MAX_C], const double g[MAX_C], double damping, int n)
{
    double l[MAX_C][MAX_C];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j] + (i == j ? damping * a[i][i] + 1e-9 : 0);
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j && !(sum > 0))
                return false;
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    for (int i = 0; i < n; i++) {
        step[i] = -g[i];
        for (int k = 0; k < i; k++)
            step[i] -= l[i][k] * step[k];
        step[i] /= l[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            step[i] -= l[k][i] * step[k];
        step[i] /= l[i][i];
    }
    return true;
}

static void move(double *to, const double *theta, const double *step, const problem *p)
{
    static const cost_fitted_coefficient factor = {"host factor", 1, 0.2, 5};
    memset(to, 0, sizeof(double) * MAX_C);
    for (int j = 0; j < p->n_c + p->n_hosts; j++) {
        const cost_fitted_coefficient *range = j < p->n_c ? cost_fitted_coefficient_at(p->k, j) : &factor;
        double t = theta[j] + UTIL_MAX(-0.5, UTIL_MIN(0.5, step[j]));
        to[j] = UTIL_MAX(log(range->least), UTIL_MIN(log(range->most), t));
    }
}

static void descend(double theta[MAX_C], const problem *p)
{
    double damping = 1e-2, now = loss(theta, p), a[MAX_C][MAX_C], g[MAX_C], step[MAX_C] = {0}, to[MAX_C];
    for (int round = 0; round < ROUNDS; round++) {
        linearise(theta, p, a, g);
        double before = now;
        for (; damping < 1e8; damping *= 4) {
            if (!solve(step, a, g, damping, p->n_c + p->n_hosts))
                continue;
            move(to, theta, step, p);
            double then = loss(to, p);
            if (then < now) {
                memcpy(theta, to, sizeof to);
                now = then;
                damping = UTIL_MAX(damping / 10, 1e-8);
                break;
            }
        }
        if (!(before - now > 1e-7 * before))
            return;
    }
}

/* Four digits: what is written is what is used, and noise of the last bits does not show. */
static double four_digits(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.3e", x);
    return strtod(text, NULL);
}

static void settle(double *c, const double *theta, const problem *p)
{
    double factor[MAX_HOSTS], reference = 1;
    for (int h = 0; h < p->n_hosts; h++) {
        int at = h;
        double f = exp(theta[p->n_c + h]);
        for (; at && factor[at - 1] > f; at--)
            factor[at] = factor[at - 1];
        factor[at] = f;
    }
    if (p->n_hosts)
        reference = factor[(p->n_hosts - 1) / 2];
    memset(c, 0, sizeof(double) * COST_FITTED_COEFFICIENTS);
    for (int j = 0; j < p->n_c; j++)
        c[j] = four_digits(exp(theta[j]) * (j < 2 ? reference : 1));
}

static int host_of(problem *p, const cost_fit_sample *s)
{
    if (s->tensorrt || p->k == COST_CLASS_CONV || p->k == COST_CLASS_DIRECT)
        return -1;
    for (int h = 0; h < p->n_hosts; h++)
        if (p->host[h] == s->type)
            return h;
    if (p->n_hosts == MAX_HOSTS)
        return -1;
    p->host[p->n_hosts] = s->type;
    return p->n_hosts++;
}

/* Launches of a runtime that nobody measured stay, and so does the factor between the two runtimes' kernels. A handful
 * of TensorRT's times beside many of the other says little more: three coefficients of their own would follow each. */
static void fix_unspoken(problem *p)
{
    size_t tensorrt = 0;
    for (size_t i = 0; i < p->n; i++)
        tensorrt += p->sample[i]->tensorrt;
    bool eager = tensorrt < p->n, few = tensorrt < FEW && eager;
    p->fixed[COST_HOST] = p->fixed[COST_START] = !eager;
    p->fixed[COST_TRT_HOST] = p->fixed[COST_TRT_START] = !tensorrt || few;
    p->fixed[COST_TRT_SPEED] = !eager || !tensorrt || few;
}

bool cost_fit_class(double *c, cost_class k, const cost_fit_sample *sample, size_t n, const moirai_device_type *without)
{
    problem p = {.k = k, .n_c = cost_fitted_coefficient_count(k)};
    double theta[MAX_C] = {0};
    p.sample = util_alloc(n, sizeof *p.sample);
    p.sample_host = util_alloc(n, sizeof *p.sample_host);
    for (size_t i = 0; p.sample && p.sample_host && i < n; i++)
        if (sample[i].shape.k == k && sample[i].type != without) {
            p.sample_host[p.n] = host_of(&p, &sample[i]);
            p.sample[p.n++] = &sample[i];
        }
    bool any = p.n > 0;
    if (any) {
        fix_unspoken(&p);
        for (int j = 0; j < p.n_c; j++)
            theta[j] = log(cost_fitted_coefficient_at(k, j)->start);
        descend(theta, &p);
        settle(c, theta, &p);
    }
    free(p.sample);
    free(p.sample_host);
    return any;
}
