/* The fit as the public sees it: solve, look at the coefficients, measure errors, write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cost/fit.h"
#include "util/json.h"

int64_t moirai_fit_used(const moirai_fit *fit)
{
    return (int64_t)fit->n;
}

int64_t moirai_fit_skipped(const moirai_fit *fit)
{
    return fit->n_skipped;
}

int moirai_fit_class_count(void)
{
    return COST_CLASS_MEASURED;
}

const char *moirai_fit_class_name(int op_class)
{
    return cost_class_name((cost_class)op_class);
}

int moirai_fit_device_count(const moirai_fit *fit)
{
    return fit->n_devices;
}

const char *moirai_fit_device_name(const moirai_fit *fit, int device)
{
    return device >= 0 && device < fit->n_devices ? fit->device[device]->name : "";
}

int moirai_fit_solve(moirai_fit *fit, int without)
{
    if (without < -1 || without >= fit->n_devices)
        return moirai_error(MOIRAI_EUSAGE, "no device number %d: %d were measured", without, fit->n_devices);
    const moirai_device_type *type = without >= 0 ? fit->device[without] : NULL;
    fit->set = cost_fitted_shipped;
    for (int k = 0; k < COST_CLASS_MEASURED; k++)
        cost_fit_class(fit->set.c[k], (cost_class)k, fit->sample, fit->n, type);
    return 0;
}

int moirai_fit_coefficient_count(int op_class)
{
    return op_class >= 0 && op_class < COST_CLASS_MEASURED ? cost_fitted_coefficient_count((cost_class)op_class) : 0;
}

const char *moirai_fit_coefficient_name(int op_class, int index)
{
    const cost_fitted_coefficient *c = cost_fitted_coefficient_at((cost_class)op_class, index);
    return c ? c->name : "";
}

double moirai_fit_coefficient(const moirai_fit *fit, int op_class, int index)
{
    return index >= 0 && index < moirai_fit_coefficient_count(op_class) ? fit->set.c[op_class][index] : 0;
}

/* As the coefficients have it, on a host whose launches are this share of theirs. */
static double predicted(const moirai_fit *fit, const cost_fit_sample *s, double share)
{
    const double *c = fit->set.c[s->shape.k];
    cost_head h = cost_head_measured(c, s->tensorrt);
    h.host_ns *= share;
    h.start_ns *= share;
    return cost_fitted_ns(c, &s->shape, s->type, &h);
}

static bool same_shape(const cost_shape *a, const cost_shape *b)
{
    return a->k == b->k && a->b == b->b && a->m == b->m && a->n == b->n && a->depth == b->depth && a->rows == b->rows &&
           a->row == b->row && a->bytes == b->bytes;
}

/* What `scaled` and `wave` would say, as the models do it: scaled from all other devices that measured this shape, by
 * the geometric mean; wave from the one whose bandwidth is closest. Quadratic in the measurements: a thousand or two of
 * a class. */
static void measure_elsewhere(moirai_fit_error *out, const moirai_fit *fit, const cost_fit_sample *target)
{
    const cost_fit_sample *nearest = NULL;
    double own = predicted(fit, target, 1), sum = 0, best = INFINITY;
    int n = 0;
    for (size_t i = 0; i < fit->n; i++) {
        const cost_fit_sample *origin = &fit->sample[i];
        if (origin->type == target->type || origin->tensorrt != target->tensorrt ||
            !same_shape(&origin->shape, &target->shape))
            continue;
        double distance = fabs(log(origin->type->bandwidth_gb_s / target->type->bandwidth_gb_s));
        nearest = distance < best ? origin : nearest;
        best = UTIL_MIN(best, distance);
        sum += log(origin->ns * own / predicted(fit, origin, 1));
        n++;
    }
    if (!n)
        return;
    double wave = cost_wave_ns(nearest->ns, target->shape.flops, target->shape.bytes, nearest->type, target->type);
    out->n_elsewhere++;
    out->wave += fabs(wave / target->ns - 1);
    out->scaled += fabs(exp(sum / n) / target->ns - 1);
    out->fitted_elsewhere += fabs(own / target->ns - 1);
}

/* Launches of a device's host, as a share of the coefficients': by its fastest addition. */
static double launch_share(const moirai_fit *fit, const moirai_device_type *type)
{
    double least = INFINITY;
    for (size_t i = 0; i < fit->n; i++)
        if (fit->sample[i].type == type && fit->sample[i].shape.k == COST_CLASS_ADD && !fit->sample[i].tensorrt)
            least = UTIL_MIN(least, fit->sample[i].ns);
    return isfinite(least) ? least / fit->set.c[COST_CLASS_ADD][0] : 1;
}

void moirai_fit_measure(moirai_fit_error *out, const moirai_fit *fit, int op_class, int device)
{
    memset(out, 0, sizeof *out);
    double share = device >= 0 && device < fit->n_devices ? launch_share(fit, fit->device[device]) : 1;
    for (size_t i = 0; i < fit->n && device >= 0 && device < fit->n_devices; i++) {
        const cost_fit_sample *s = &fit->sample[i];
        if ((int)s->shape.k != op_class || s->type != fit->device[device])
            continue;
        out->n++;
        out->fitted += fabs(predicted(fit, s, 1) / s->ns - 1);
        out->fitted_launch += fabs(predicted(fit, s, s->tensorrt ? 1 : share) / s->ns - 1);
        out->roofline += fabs(cost_roofline_ns(s->shape.flops, s->shape.bytes, s->type) / s->ns - 1);
        measure_elsewhere(out, fit, s);
    }
    if (out->n) {
        out->fitted /= (double)out->n;
        out->fitted_launch /= (double)out->n;
        out->roofline /= (double)out->n;
    }
    if (out->n_elsewhere) {
        out->wave /= (double)out->n_elsewhere;
        out->scaled /= (double)out->n_elsewhere;
        out->fitted_elsewhere /= (double)out->n_elsewhere;
    }
}

static int write_header(const moirai_fit *fit, const char *path)
{
    size_t size = 1 << 15, length = 0;
    char *text = util_alloc(size, 1);
    if (!text)
        return MOIRAI_EFAIL;
    length += (size_t)snprintf(text, size,
                               "/* Written by `moirai fit`: do not edit. Order of classes and coefficients: %s */\n",
                               "cost_class.h, fitted_formula.c.");
    for (int k = 0; k < COST_CLASS_MEASURED; k++) {
        length += (size_t)snprintf(text + length, size - length, "/* %-9s */ {", moirai_fit_class_name(k));
        for (int j = 0; j < moirai_fit_coefficient_count(k); j++)
            length += (size_t)snprintf(text + length, size - length, "%s%.4g", j ? ", " : "", fit->set.c[k][j]);
        length += (size_t)snprintf(text + length, size - length, "},\n");
    }
    int rc = util_file_write(path, text, length);
    free(text);
    return rc;
}

int moirai_fit_write(const moirai_fit *fit, const char *path)
{
    size_t n = strlen(path);
    if (n > 2 && !strcmp(path + n - 2, ".h"))
        return write_header(fit, path);
    util_writer w;
    util_writer_begin(&w, "moirai-coefficients");
    util_writer_pair_open(&w, "classes", '{');
    for (int k = 0; k < COST_CLASS_MEASURED; k++) {
        util_writer_break(&w);
        util_writer_pair_open(&w, moirai_fit_class_name(k), '{');
        for (int j = 0; j < moirai_fit_coefficient_count(k); j++) {
            util_writer_key(&w, moirai_fit_coefficient_name(k, j));
            util_writer_real(&w, fit->set.c[k][j]);
        }
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, '}');
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
