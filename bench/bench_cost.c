/* How accurate the cost models are: the two tables of docs/cost-models.md.
 *
 *  1. Leave one GPU out: fit to the measured times of all other GPUs, predict this one's. Mean absolute relative error
 * per class, the mean over GPUs, beside roofline (nothing fitted) and wave (same shape measured on another GPU).
 *  2. GPT-2 large: the sum of its operators' predicted times on each of four GPUs, without that GPU's measurements,
 *     against the sum of its measured operators and its measured end-to-end time.
 *
 * Usage: bench_cost [folder with optimes.csv and graphs/gpt2-large.graph.json] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <moirai/moirai.h>
#include "cost/fit.h"
#include "util/json.h"

#define MAX_DEVICES COST_FIT_DEVICES

static cost_fitted_set without[MAX_DEVICES]; /* coefficients without each device */

static void print_class(const moirai_fit_error *error, int n_devices, const char *name)
{
    double fitted = 0, roofline = 0, wave = 0;
    int n = 0, n_wave = 0;
    printf("%-8s", name);
    for (int d = 0; d < n_devices; d++) {
        if (!error[d].n) {
            printf(" %9s", "-");
            continue;
        }
        printf(" %8.1f%%", 100 * error[d].fitted);
        fitted += error[d].fitted;
        roofline += error[d].roofline;
        n++;
        if (error[d].n_wave) {
            wave += error[d].wave;
            n_wave++;
        }
    }
    printf(" | %7.1f%% %8.1f%% %7.1f%%\n", 100 * fitted / n, 100 * roofline / n, n_wave ? 100 * wave / n_wave : 0);
}

static void leave_one_out(moirai_fit *fit)
{
    static moirai_fit_error error[64][MAX_DEVICES];
    int n_devices = moirai_fit_device_count(fit), n_classes = moirai_fit_class_count();
    for (int d = 0; d < n_devices; d++) {
        moirai_fit_solve(fit, d);
        without[d] = fit->set;
        for (int k = 0; k < n_classes; k++)
            moirai_fit_measure(&error[k][d], fit, k, d);
    }
    printf("leave one GPU out: mean absolute error of the fitted model per GPU left out; means over GPUs\n%-8s",
           "class");
    for (int d = 0; d < n_devices; d++)
        printf(" %9s", moirai_fit_device_name(fit, d));
    printf(" | %8s %9s %8s\n", "fitted", "roofline", "wave");
    for (int k = 0; k < n_classes; k++)
        print_class(error[k], n_devices, moirai_fit_class_name(k));
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

static void print_device(const moirai_graph *g, const moirai_fit *fit, int d, const char *path)
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
        printf("%-6s %9.1f %9.1f |", name, measured / 1e6, whole / 1e6);
        for (int m = 0; m < 4; m++) {
            double ns = total_ns(x, models[m]);
            printf(" %8.1f %+6.1f%% %+6.1f%% |", ns / 1e6, 100 * (ns / measured - 1), 100 * (ns / whole - 1));
        }
        printf("\n");
    }
    cost_context_free(x);
    moirai_cluster_free(c);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : MOIRAI_SHARED_DIR "/data";
    char path[4096];
    moirai_fit *fit;
    moirai_graph *g;
    snprintf(path, sizeof path, "%s/optimes.csv", folder);
    double begin = util_seconds();
    if (moirai_fit_read(&fit, path)) {
        printf("skipped: %s\n", moirai_error_message());
        return 0;
    }
    leave_one_out(fit);
    printf("%d fits in %.1f s\n\n", moirai_fit_device_count(fit), util_seconds() - begin);
    snprintf(path, sizeof path, "%s/graphs/gpt2-large.graph.json", folder);
    if (!moirai_graph_read(&g, path)) {
        printf("GPT-2 large, ms: measured operators, measured end to end | each model without that GPU's data: sum of "
               "operators, error against either\n%-6s %9s %9s | %-24s | %-24s | %-24s | %-24s |\n",
               "GPU", "operators", "whole", "roofline", "wave", "fitted", "scaled");
        for (int d = 0; d < moirai_fit_device_count(fit); d++)
            print_device(g, fit, d, path);
        moirai_graph_free(g);
    }
    moirai_fit_free(fit);
    return 0;
}
