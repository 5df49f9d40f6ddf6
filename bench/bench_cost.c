/* How accurate the cost models are: the tables of docs/cost-models.md, as they stand there.
 *
 *  1. Leave one GPU out: fit to the measured times of all other GPUs, predict this one's. Mean absolute relative error
 * per class, the mean over GPUs, beside roofline (nothing fitted), wave and scaled (same shape measured on another GPU;
 * scaled by coefficients that have not seen the GPU either).
 *  2. GPT-2 large: the sum of its operators' predicted times on each of four GPUs, without that GPU's measurements,
 *     against the sum of its measured operators and its measured end-to-end time.
 *
 * Usage: bench_cost TIMES.csv [gpt2-large.graph.json] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <moirai/moirai.h>
#include "cost/fit.h"
#include "util/json.h"

#define MAX_DEVICES COST_FIT_DEVICES

static cost_fitted_set without[MAX_DEVICES]; /* coefficients without each device */

/* Sums of errors over devices. */
typedef struct means {
    double fitted, launch, roofline, wave, scaled, fitted_elsewhere;
    int n, n_elsewhere;
} means;

static void add(means *m, const moirai_fit_error *e)
{
    m->fitted += e->fitted;
    m->launch += e->fitted_launch;
    m->roofline += e->roofline;
    m->n++;
    if (!e->n_elsewhere)
        return;
    m->wave += e->wave;
    m->scaled += e->scaled;
    m->fitted_elsewhere += e->fitted_elsewhere;
    m->n_elsewhere++;
}

static void print_means(const means *m)
{
    printf(" **%.1f** | %.1f | %.1f |", 100 * m->fitted / m->n, 100 * m->launch / m->n, 100 * m->roofline / m->n);
    if (m->n_elsewhere)
        printf(" %.1f | %.1f | %.1f |\n", 100 * m->fitted_elsewhere / m->n_elsewhere, 100 * m->scaled / m->n_elsewhere,
               100 * m->wave / m->n_elsewhere);
    else
        printf(" - | - | - |\n");
}

static void print_class(means *all, const moirai_fit_error *error, int n_devices, const char *name)
{
    means m = {0};
    printf("| %s |", name);
    for (int d = 0; d < n_devices; d++) {
        if (!error[d].n) {
            printf(" - |");
            continue;
        }
        printf(" %.1f |", 100 * error[d].fitted);
        add(&m, &error[d]);
        add(all, &error[d]);
    }
    print_means(&m);
}

static void leave_one_out(moirai_fit *fit)
{
    static moirai_fit_error error[64][MAX_DEVICES];
    means all = {0};
    int n_devices = moirai_fit_device_count(fit), n_classes = moirai_fit_class_count();
    for (int d = 0; d < n_devices; d++) {
        moirai_fit_solve(fit, d);
        without[d] = fit->set;
        for (int k = 0; k < n_classes; k++)
            moirai_fit_measure(&error[k][d], fit, k, d);
    }
    printf("Leave one GPU out, mean absolute error in %%: coefficients from the times of all GPUs but the "
           "column's\n\n| class |");
    for (int d = 0; d < n_devices; d++)
        printf(" %s |", moirai_fit_device_name(fit, d));
    printf(" **fitted** | launch known | roofline | fitted* | scaled* | wave* |\n|---|");
    for (int d = 0; d < n_devices + 6; d++)
        printf("---|");
    printf("\n");
    for (int k = 0; k < n_classes; k++)
        print_class(&all, error[k], n_devices, moirai_fit_class_name(k));
    printf("| all |");
    for (int d = 0; d < n_devices; d++)
        printf(" |");
    print_means(&all);
}

/* The graph's other keys are ignored by its reader: the end-to-end times need a look of their own. */
static double end_to_end_ns(const char *path, const char *device)
{
    char *data;
    size_t length;
    yyjson_doc *doc = NULL;
    double ns = NAN;
    if (util_file_read(&data, &length, path))
        return ns;
    if (!util_json_parse(&doc, data, length, path))
        ns = yyjson_get_num(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "measured_end_to_end_ns"), device));
    yyjson_doc_free(doc);
    free(data);
    return ns;
}

static double total_ns(const moirai_cost_context *x, const moirai_cost_model *model)
{
    double sum = 0;
    for (int32_t i = 0; i < x->g->n_ops; i++)
        sum += (double)model->op_ns(x, i, 0);
    return sum;
}

static void print_device(double sum[4], int *n, const moirai_graph *g, const moirai_fit *fit, int d, const char *path)
{
    const char *name = moirai_fit_device_name(fit, d);
    moirai_cluster *c;
    moirai_cost_context *x;
    char text[64];
    snprintf(text, sizeof text, "1x %s", name);
    if (moirai_cluster_synthetic(&c, text))
        return;
    if (!cost_context_new(&x, g, c) && x->type_key[0] != MOIRAI_NONE) {
        double measured = total_ns(x, &cost_table), whole = end_to_end_ns(path, name);
        const moirai_cost_model *models[] = {&cost_roofline, &cost_wave, &cost_fitted, &cost_scaled};
        x->key_type[x->type_key[0]] = NULL; /* from here on this GPU was never measured */
        x->type_key[0] = MOIRAI_NONE;
        x->set = &without[d];
        printf("| %s | %.1f | %.1f |", name, measured / 1e6, whole / 1e6);
        for (int m = 0; m < 4; m++) {
            double ns = total_ns(x, models[m]);
            printf(" %+.1f / %+.1f |", 100 * (ns / measured - 1), 100 * (ns / whole - 1));
            sum[m] += fabs(ns / whole - 1);
        }
        printf("\n");
        ++*n;
    }
    cost_context_free(x);
    moirai_cluster_free(c);
}

static void end_to_end(const moirai_fit *fit, const char *path)
{
    moirai_graph *g;
    double sum[4] = {0};
    int n = 0;
    if (moirai_graph_read(&g, path)) {
        printf("\nskipped: %s\n", moirai_error_message());
        return;
    }
    printf("\nGPT-2 large: error in %% of the sum of operators, by coefficients without that GPU's times, against "
           "measured "
           "operators / measured end to end\n\n"
           "| GPU | operators, ms | end to end, ms | roofline | wave | fitted | scaled "
           "|\n|---|---|---|---|---|---|---|\n");
    for (int d = 0; d < moirai_fit_device_count(fit); d++)
        print_device(sum, &n, g, fit, d, path);
    printf("| mean, absolute | | |");
    for (int m = 0; m < 4; m++)
        printf(" %.1f |", n ? 100 * sum[m] / n : 0);
    printf("\n");
    moirai_graph_free(g);
}

int main(int argc, char **argv)
{
    moirai_fit *fit;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_cost TIMES.csv [gpt2-large.graph.json]\n");
        return 2;
    }
    double begin = util_seconds();
    if (moirai_fit_read(&fit, argv[1])) {
        printf("skipped: %s\n", moirai_error_message());
        return 0;
    }
    leave_one_out(fit);
    if (argc > 2)
        end_to_end(fit, argv[2]);
    fprintf(stderr, "%d fits in %.1f s\n", moirai_fit_device_count(fit), util_seconds() - begin);
    moirai_fit_free(fit);
    return 0;
}
