/* Measured times from a table of comma-separated values, and from graphs whose operators were measured one by one.
 *
 * Columns go by name, in any order. A line that can't be used is skipped and counted, never fatal: profiles are noisy.
 * The first of several equal things wins nowhere: every line is a sample. O(length of the text). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cost/fit.h"

enum { DEVICE, OP, LATENCY, B, M, N, K, H, IN_CHANNEL, OUT_CHANNEL, IN_SIZE, KERNEL, STRIDE, PADDING, N_COLUMNS };
static const char *const COLUMNS[N_COLUMNS] = {
    "device",         "op",         "latency_ns",  "b",      "m",      "n", "k", "h", "input_channel",
    "output_channel", "input_size", "kernel_size", "stride", "padding"};

#define MOST_FIELDS 64
#define FP32_BYTES 4

typedef struct line {
    const char *field[MOST_FIELDS];
    int n;
} line;

/* Cut one line at its commas, in place; the start of the next line. */
static char *cut(line *out, char *text)
{
    char *end = text + strcspn(text, "\r\n"), *next = end + strspn(end, "\r\n");
    *end = 0;
    out->n = 0;
    for (char *p = text; out->n < MOST_FIELDS; p++) {
        out->field[out->n++] = p;
        p += strcspn(p, ",");
        if (!*p)
            break;
        *p = 0;
    }
    return next;
}

/* A positive finite number, or 0. */
static double number(const line *l, const int *column, int which)
{
    if (column[which] < 0 || column[which] >= l->n)
        return 0;
    char *end;
    double x = strtod(l->field[column[which]], &end);
    return end != l->field[column[which]] && !*end && isfinite(x) && x > 0 && x < 1e15 ? x : 0;
}

/* Frameworks write m x n by n x k: the sum goes over n, and k are the columns of the result. */
static bool shape_of_product(cost_shape *s, const line *l, const int *column)
{
    s->b = number(l, column, B);
    s->m = number(l, column, M);
    s->n = number(l, column, K);
    s->depth = number(l, column, N);
    s->out_bytes = FP32_BYTES * s->b * s->m * s->n;
    s->weight_bytes = s->k == COST_CLASS_LINEAR ? FP32_BYTES * s->b * s->depth * s->n : 0;
    s->bytes = s->out_bytes + FP32_BYTES * s->b * s->depth * (s->m + s->n);
    return s->b * s->m * s->n * s->depth > 0;
}

static bool shape_of_conv(cost_shape *s, const line *l, const int *column)
{
    double batch = number(l, column, B), in = number(l, column, IN_CHANNEL), size = number(l, column, IN_SIZE);
    double kernel = number(l, column, KERNEL), stride = number(l, column, STRIDE);
    if (!(batch * in * size * kernel * stride > 0))
        return false;
    double out_size = floor((size + 2 * number(l, column, PADDING) - kernel) / stride) + 1;
    s->b = 1;
    s->m = batch * out_size * out_size;
    s->n = number(l, column, OUT_CHANNEL);
    s->depth = in * kernel * kernel;
    s->side = out_size;
    if (kernel != 3 || stride != 1)
        s->k = COST_CLASS_DIRECT;
    s->weight_bytes = FP32_BYTES * s->n * s->depth;
    s->out_bytes = FP32_BYTES * s->m * s->n;
    s->bytes = s->out_bytes + FP32_BYTES * (batch * in * size * size + s->n * s->depth);
    return out_size >= 1 && s->n > 0;
}

static bool shape_of_rows(cost_shape *s, const line *l, const int *column)
{
    bool two = s->k == COST_CLASS_ADD || s->k == COST_CLASS_MUL || s->k == COST_CLASS_DIV || s->k == COST_CLASS_POW;
    s->rows = number(l, column, B);
    s->row = number(l, column, H);
    s->out_bytes = FP32_BYTES * s->rows * s->row;
    s->bytes = s->out_bytes * (two ? 3 : 2);
    return s->out_bytes > 0;
}

static bool sample_of(cost_fit_sample *out, const line *l, const int *column)
{
    if (column[DEVICE] >= l->n || column[OP] >= l->n)
        return false;
    cost_shape *s = &out->shape;
    memset(out, 0, sizeof *out);
    out->type = moirai_device_type_find(l->field[column[DEVICE]]);
    out->ns = number(l, column, LATENCY);
    s->k = cost_class_find(l->field[column[OP]]);
    s->element_bytes = FP32_BYTES;
    if (!out->type || out->type->processor || !cost_fitted_applies(out->type) || !(out->ns > 0) ||
        s->k == COST_CLASS_UNKNOWN)
        return false;
    if (s->k != COST_CLASS_LINEAR && s->k != COST_CLASS_BMM && s->k != COST_CLASS_CONV)
        return shape_of_rows(s, l, column);
    bool ok = s->k == COST_CLASS_CONV ? shape_of_conv(s, l, column) : shape_of_product(s, l, column);
    s->flops = 2 * s->b * s->m * s->n * s->depth;
    return ok && isfinite(s->flops) && isfinite(s->bytes);
}

static void add_device(moirai_fit *fit, const moirai_device_type *type)
{
    for (int d = 0; d < fit->n_devices; d++)
        if (fit->device[d] == type)
            return;
    if (fit->n_devices < COST_FIT_DEVICES)
        fit->device[fit->n_devices++] = type;
}

static int read_header(int *column, const line *l, const char *label)
{
    for (int c = 0; c < N_COLUMNS; c++) {
        column[c] = -1;
        for (int i = 0; i < l->n && column[c] < 0; i++)
            if (!strcmp(l->field[i], COLUMNS[c]))
                column[c] = i;
        if (c <= LATENCY && column[c] < 0)
            return moirai_error(MOIRAI_EINPUT, "%s: no column '%s' in the first line", label, COLUMNS[c]);
    }
    return 0;
}

static int read_lines(moirai_fit *fit, char *text, const char *label)
{
    int column[N_COLUMNS];
    line l;
    char *p = cut(&l, text);
    int rc = read_header(column, &l, label);
    while (!rc && *p) {
        p = cut(&l, p);
        if ((rc = util_grow(&fit->sample, &fit->capacity, fit->n + 1, sizeof *fit->sample)))
            return rc;
        if (sample_of(&fit->sample[fit->n], &l, column))
            add_device(fit, fit->sample[fit->n++].type);
        else
            fit->n_skipped++;
    }
    if (!rc && !fit->n)
        rc = moirai_error(MOIRAI_EINPUT,
                          "%s: none of the %lld lines has a known device, a known operator and positive numbers", label,
                          (long long)fit->n_skipped);
    return rc;
}

int moirai_fit_parse(moirai_fit **out, const char *text, size_t length, const char *label)
{
    *out = NULL;
    moirai_fit *fit = util_alloc(1, sizeof *fit);
    char *copy = util_alloc(length + 1, 1);
    int rc = fit && copy ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        memcpy(copy, text, length);
        if (memchr(copy, 0, length))
            rc = moirai_error(MOIRAI_EINPUT, "%s: not a table of times: it has a zero byte", label);
        fit->set = cost_fitted_shipped;
    }
    rc = rc ? rc : read_lines(fit, copy, label);
    free(copy);
    if (rc)
        moirai_fit_free(fit);
    else
        *out = fit;
    return rc;
}

int moirai_fit_read(moirai_fit **out, const char *path)
{
    char *data;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = moirai_fit_parse(out, data, length, path);
    free(data);
    return rc;
}

/* Every operator with a class and every device type that it was measured on. Views are no kernels. */
static int add_graph(moirai_fit *fit, const moirai_graph *g)
{
    moirai_cluster *c;
    moirai_cost_context *x = NULL;
    int rc = moirai_cluster_synthetic(&c, "1x v100"); /* any: shapes do not hang on it */
    rc = rc ? rc : cost_context_new(&x, g, c);
    for (int64_t i = 0; !rc && i < (int64_t)g->n_ops * g->n_time_keys; i++) {
        int32_t op = (int32_t)(i / g->n_time_keys), key = (int32_t)(i % g->n_time_keys);
        const moirai_device_type *type = x->key_type[key];
        const cost_shape *s = &x->shape[op];
        if (g->time_ns[i] <= 0 || !type || type->processor || s->k >= COST_CLASS_MEASURED || !(s->bytes > 0)) {
            fit->n_skipped++;
            continue;
        }
        if ((rc = util_grow(&fit->sample, &fit->capacity, fit->n + 1, sizeof *fit->sample)))
            break;
        fit->sample[fit->n++] = (cost_fit_sample){*s, type, (double)g->time_ns[i], true};
        add_device(fit, type);
    }
    cost_context_free(x);
    moirai_cluster_free(c);
    return rc;
}

int moirai_fit_add_graph(moirai_fit *fit, const char *path)
{
    moirai_graph *g;
    int rc = moirai_graph_read(&g, path);
    if (rc)
        return rc;
    rc = add_graph(fit, g);
    moirai_graph_free(g);
    return rc;
}

void moirai_fit_free(moirai_fit *fit)
{
    if (!fit)
        return;
    free(fit->sample);
    free(fit);
}
