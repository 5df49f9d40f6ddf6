/* The judge of the cost models: the tables of docs/cost-models.md, as they stand there.
 *
 * Everything is said of a GPU whose times were left out: coefficients come from all measurements but its own.
 *
 *  1. Errors by class and source (an eager framework's times, TensorRT's), beside the roofline; and with the other source
 *     left out as well.
 *  2. The ratio of two GPUs, by class: what a plan lives on.
 *  3. Networks in TensorRT: fused as the planner fuses them, the sum of their predicted times against the measured time
 *     of the whole.
 *  4. How often a time lies in its 80 % interval.
 *  5. A network in an eager framework: the sum of its operators against the measured ones, and the whole.
 *
 *  6. Each network left out in turn, all GPUs seen (with --networks: half a minute more).
 *  7. The verdict: every figure that has a limit (docs/cost-models.md), beside it, and whether it is met.
 *  8. Of what is missed, what the measurements leave whoever fits them.
 *
 * Usage: bench_cost TIMES.csv [--eager GRAPH] [--figures FILE.h] [--samples FILE.csv] [--networks] [GRAPH...] (graphs
 * measured in TensorRT). --samples writes every time beside its prediction: what bench/cost_yardstick.py learns from. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "cost_judge.h"
#include "util/json.h"

#define MAX_DEVICES COST_FIT_DEVICES
#define MOST_NETWORKS 256

static cost_fitted_set without[MAX_DEVICES]; /* coefficients without each device */
static cost_fitted_set other_source[2];      /* coefficients from the other source alone */

double cost_judge_predict(const cost_fitted_set *set, const cost_fit_sample *s)
{
    const double *c = set->c[s->shape.k];
    cost_head h = cost_head_measured(c, s->tensorrt);
    return cost_fitted_ns(c, &s->shape, s->type, &h);
}

int cost_judge_device(const moirai_fit *fit, const cost_fit_sample *s)
{
    int d = 0;
    while (fit->device[d] != s->type)
        d++;
    return d;
}

/* A mean of absolute errors. */
typedef struct mean {
    double sum;
    int64_t n;
} mean;

static void add(mean *m, double predicted, double measured)
{
    m->sum += fabs(predicted / measured - 1);
    m->n++;
}

static void show(const mean *m)
{
    if (m->n)
        printf(" %.1f |", 100 * m->sum / (double)m->n);
    else
        printf(" |");
}

static void print_rule(int columns)
{
    printf("\n|");
    for (int i = 0; i < columns; i++)
        printf("---|");
    printf("\n");
}

/* ---- 1: errors ---- */

static void errors_of(const moirai_fit *fit, bool tensorrt)
{
    printf("\n%s: mean absolute error in %%, the column's GPU left out\n\n| class |", tensorrt ? "TensorRT" : "Eager");
    for (int d = 0; d < fit->n_devices; d++)
        printf(" %s |", fit->device[d]->name);
    printf(" **mean** | this source left out | roofline |");
    print_rule(fit->n_devices + 4);
    for (int k = 0; k < COST_CLASS_MEASURED; k++) {
        mean by_device[MAX_DEVICES] = {0}, all = {0}, foreign = {0}, roofline = {0};
        bool elsewhere = false; /* does the other source know the class? */
        for (size_t i = 0; i < fit->n; i++)
            elsewhere |= (int)fit->sample[i].shape.k == k && fit->sample[i].tensorrt != tensorrt;
        for (size_t i = 0; i < fit->n; i++) {
            const cost_fit_sample *s = &fit->sample[i];
            if ((int)s->shape.k != k || s->tensorrt != tensorrt)
                continue;
            add(&by_device[cost_judge_device(fit, s)], cost_judge_predict(&without[cost_judge_device(fit, s)], s),
                s->ns);
            if (elsewhere)
                add(&foreign, cost_judge_predict(&other_source[tensorrt], s), s->ns);
            add(&roofline, cost_roofline_ns(s->shape.flops, s->shape.bytes, s->type), s->ns);
        }
        if (!roofline.n)
            continue;
        printf("| %s |", cost_class_name((cost_class)k));
        for (int d = 0; d < fit->n_devices; d++) {
            show(&by_device[d]);
            if (by_device[d].n) {
                all.sum += by_device[d].sum / (double)by_device[d].n;
                all.n++;
            }
        }
        printf(" **%.1f** |", 100 * all.sum / (double)all.n);
        cost_judge_at_most(COST_JUDGE_CLASS, cost_class_name((cost_class)k), tensorrt ? "TensorRT" : "eager",
                           100 * all.sum / (double)all.n, cost_judge_class_limit(k));
        show(&foreign);
        show(&roofline);
        printf("\n");
    }
}

/* ---- 2: ratios ---- */

bool cost_judge_same(const cost_fit_sample *a, const cost_fit_sample *b)
{
    const cost_shape *x = &a->shape, *y = &b->shape;
    return x->k == y->k && a->tensorrt == b->tensorrt && x->b == y->b && x->m == y->m && x->n == y->n &&
           x->depth == y->depth && x->rows == y->rows && x->row == y->row && x->bytes == y->bytes &&
           x->out_bytes == y->out_bytes;
}

/* Of graphs' operators, whose times on several GPUs stand side by side; the first GPU of a pair is the one left out. */
static void ratios_of(const moirai_fit *fit)
{
    printf("\nTensorRT, ratio of two GPUs: mean absolute error in %%, the first of the pair left out\n\n| class |");
    bool beside[MAX_DEVICES] = {false};
    int columns = 1;
    for (size_t i = 0; i < fit->n; i++)
        beside[cost_judge_device(fit, &fit->sample[i])] |= fit->sample[i].tensorrt;
    for (int a = 0; a < fit->n_devices; a++)
        for (int b = 0; b < fit->n_devices; b++)
            if (a != b && beside[a] && beside[b]) {
                printf(" %s : %s |", fit->device[a]->name, fit->device[b]->name);
                columns++;
            }
    print_rule(columns);
    for (int k = 0; k < COST_CLASS_MEASURED; k++) {
        static mean pair[MAX_DEVICES][MAX_DEVICES];
        int64_t n = 0;
        memset(pair, 0, sizeof pair);
        for (size_t i = 0; i < fit->n; i++)
            for (size_t j = i > 8 ? i - 8 : 0; j < fit->n && j < i + 8; j++) {
                const cost_fit_sample *x = &fit->sample[i], *y = &fit->sample[j];
                if ((int)x->shape.k != k || !x->tensorrt || x->type == y->type || !cost_judge_same(x, y))
                    continue;
                int a = cost_judge_device(fit, x), b = cost_judge_device(fit, y);
                add(&pair[a][b], cost_judge_predict(&without[a], x) / cost_judge_predict(&without[a], y),
                    x->ns / y->ns);
                n++;
            }
        if (!n)
            continue;
        printf("| %s |", cost_class_name((cost_class)k));
        double worst = 0;
        for (int a = 0; a < fit->n_devices; a++)
            for (int b = 0; b < fit->n_devices; b++)
                if (a != b && beside[a] && beside[b]) {
                    show(&pair[a][b]);
                    worst = fmax(worst, pair[a][b].n ? pair[a][b].sum / (double)pair[a][b].n : 0);
                }
        printf("\n");
        cost_judge_at_most(COST_JUDGE_RATIO, cost_class_name((cost_class)k), "", 100 * worst, 15);
    }
}

/* ---- 3 and 5: networks ---- */

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

/* The network on one GPU by one model, as if nothing of it had been measured there; `set` NULL: what was measured. */
static double total_ns(const moirai_graph *g, const char *device, const cost_fitted_set *set,
                       const moirai_cost_model *model, moirai_runtime runtime)
{
    moirai_cluster *c;
    moirai_cost_context *x;
    char text[64];
    double sum = 0;
    snprintf(text, sizeof text, "1x %s", device);
    if (moirai_cluster_synthetic(&c, text))
        return NAN;
    if (!cost_context_new(&x, g, c)) {
        if (set) {
            if (x->type_key[0] != MOIRAI_NONE)
                x->key_type[x->type_key[0]] = NULL;
            x->type_key[0] = MOIRAI_NONE;
            x->set = set;
        }
        x->runtime = runtime;
        x->launch_ns[0] = runtime == MOIRAI_RUNTIME_UNSET ? 0 : (double)moirai_runtime_launch_ns(runtime);
        for (int32_t i = 0; i < g->n_ops; i++) {
            int64_t ns = model->op_ns(x, i, 0);
            sum += ns == MOIRAI_UNKNOWN ? NAN : (double)ns;
        }
        cost_context_free(x);
    }
    moirai_cluster_free(c);
    return sum;
}

static void networks_in_tensorrt(const moirai_fit *fit, char **path, int n)
{
    mean fitted[MAX_DEVICES] = {0}, roofline[MAX_DEVICES] = {0};
    moirai_rules *rules;
    if (n == 0 || moirai_rules_open(&rules, "onnxruntime"))
        return;
    printf("\nNetworks in TensorRT, fused: error in %% of the sum, the column's GPU left out\n\n| network |");
    for (int d = 0; d < fit->n_devices; d++)
        printf(" %s |", fit->device[d]->name);
    print_rule(fit->n_devices + 1);
    for (int i = 0; i < n; i++) {
        moirai_graph *g, *coarse = NULL;
        if (moirai_graph_read(&g, path[i]))
            continue;
        if (!moirai_coarsen(&coarse, g, rules, NULL)) {
            printf("| %s |", g->name);
            for (int d = 0; d < fit->n_devices; d++) {
                const char *name = fit->device[d]->name;
                double whole = end_to_end_ns(path[i], name);
                if (!(whole > 0)) {
                    printf(" |");
                    continue;
                }
                double ns = total_ns(coarse, name, &without[d], &cost_fitted, MOIRAI_RUNTIME_TENSORRT);
                add(&fitted[d], ns, whole);
                add(&roofline[d], total_ns(coarse, name, &without[d], &cost_roofline, MOIRAI_RUNTIME_UNSET), whole);
                printf(" %+.1f |", 100 * (ns / whole - 1));
            }
            printf("\n");
        }
        moirai_graph_free(coarse);
        moirai_graph_free(g);
    }
    printf("| **mean, absolute** |");
    for (int d = 0; d < fit->n_devices; d++) {
        show(&fitted[d]);
        if (fitted[d].n)
            cost_judge_at_most("fused networks in TensorRT", fit->device[d]->name, "",
                               100 * fitted[d].sum / (double)fitted[d].n, 12);
    }
    printf("\n| roofline |");
    for (int d = 0; d < fit->n_devices; d++)
        show(&roofline[d]);
    printf("\n");
    moirai_rules_free(rules);
}

static void network_in_eager(const moirai_fit *fit, const char *path)
{
    static const moirai_cost_model *const models[] = {&cost_roofline, &cost_wave, &cost_fitted, &cost_scaled};
    mean error[4] = {0};
    moirai_graph *g;
    if (moirai_graph_read(&g, path)) {
        printf("\nskipped: %s\n", moirai_error_message());
        return;
    }
    printf("\n%s: error in %% of the sum of operators, that GPU left out, against measured operators / measured end to "
           "end\n\n| GPU | operators, ms | end to end, ms | roofline | wave | fitted | scaled |",
           g->name);
    print_rule(7);
    for (int d = 0; d < fit->n_devices; d++) {
        const char *name = fit->device[d]->name;
        double measured = total_ns(g, name, NULL, &cost_table, MOIRAI_RUNTIME_UNSET), whole = end_to_end_ns(path, name);
        if (!(measured > 0) || !(whole > 0))
            continue;
        printf("| %s | %.1f | %.1f |", name, measured / 1e6, whole / 1e6);
        for (int m = 0; m < 4; m++) {
            double ns = total_ns(g, name, &without[d], models[m], MOIRAI_RUNTIME_UNSET);
            printf(" %+.1f / %+.1f |", 100 * (ns / measured - 1), 100 * (ns / whole - 1));
            add(&error[m], ns, whole);
        }
        printf("\n");
    }
    printf("| mean, absolute | | |");
    for (int m = 0; m < 4; m++)
        show(&error[m]);
    printf("\n");
    if (error[2].n)
        cost_judge_at_most("network under an eager framework", "gpt2-large", "",
                           100 * error[2].sum / (double)error[2].n, 8);
    moirai_graph_free(g);
}

/* ---- the whole ---- */

/* Every time, and what coefficients without its GPU say. */
static void write_samples(const moirai_fit *fit, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "cannot write %s\n", path);
        return;
    }
    fprintf(out,
            "class,runtime,device,gflops,gb_s,multiprocessors,mhz,l2_mb,watt,nm,b,m,n,depth,bytes,weight_bytes,side,"
            "rows,row,ns,ns_predicted\n");
    for (size_t i = 0; i < fit->n; i++) {
        const cost_fit_sample *s = &fit->sample[i];
        const cost_shape *x = &s->shape;
        const moirai_device_type *f = s->type;
        fprintf(out, "%s,%s,%s,%g,%g,%d,%g,%g,%g,%g,", cost_class_name(x->k), s->tensorrt ? "tensorrt" : "eager",
                f->name, f->gflops_fp32, f->bandwidth_gb_s, (int)f->sm, (double)f->clock_mhz, f->l2_mb, (double)f->watt,
                (double)f->process_nm);
        fprintf(out, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%g,%.9g,%.9g,%.9g,%.9g\n", x->b, x->m, x->n, x->depth, x->bytes,
                x->weight_bytes, x->side, x->rows, x->row, s->ns,
                cost_judge_predict(&without[cost_judge_device(fit, s)], s));
    }
    fclose(out);
}

static void only(moirai_fit *fit, bool tensorrt)
{
    moirai_fit half = {.set = cost_fitted_shipped};
    half.sample = malloc(fit->n * sizeof *half.sample);
    for (size_t i = 0; half.sample && i < fit->n; i++)
        if (fit->sample[i].tensorrt == tensorrt)
            half.sample[half.n++] = fit->sample[i];
    for (int k = 0; k < COST_CLASS_MEASURED; k++)
        cost_fit_class(half.set.c[k], (cost_class)k, half.sample, half.n, NULL);
    other_source[!tensorrt] = half.set;
    free(half.sample);
}

int main(int argc, char **argv)
{
    moirai_fit *fit;
    const char *eager = NULL, *figures = NULL, *samples = NULL;
    bool networks = false;
    size_t end[MOST_NETWORKS + 1] = {0};
    int first = 2;
    for (; first + 1 < argc && !strncmp(argv[first], "--", 2); first++) {
        const char *option = argv[first];
        if (!strcmp(option, "--networks"))
            networks = true;
        else if (!strcmp(option, "--eager"))
            eager = argv[++first];
        else if (!strcmp(option, "--samples"))
            samples = argv[++first];
        else
            figures = argv[++first];
    }
    if (argc < 2 || argc - first > MOST_NETWORKS) {
        fprintf(stderr,
                "usage: bench_cost TIMES.csv [--eager GRAPH] [--figures FILE.h] [--samples FILE.csv] [--networks] "
                "[GRAPH...]\n");
        return 2;
    }
    double begin = util_seconds();
    int rc = moirai_fit_read(&fit, argv[1]);
    for (int i = first; !rc && i < argc; i++) {
        end[i - first] = fit->n;
        rc = moirai_fit_add_graph(fit, argv[i]);
        end[i - first + 1] = fit->n;
    }
    if (rc) {
        printf("skipped: %s\n", moirai_error_message());
        return 0;
    }
    for (int d = 0; d < fit->n_devices; d++) {
        moirai_fit_solve(fit, d);
        without[d] = fit->set;
    }
    if (samples)
        write_samples(fit, samples);
    only(fit, false);
    only(fit, true);
    errors_of(fit, false);
    errors_of(fit, true);
    ratios_of(fit);
    networks_in_tensorrt(fit, argv + first, argc - first);
    moirai_fit_solve(fit, -1);
    cost_judge_spread(fit, without, &fit->set, figures);
    if (eager)
        network_in_eager(fit, eager);
    if (networks)
        cost_judge_networks(fit, argv + first, end, argc - first);
    cost_judge_verdict();
    cost_judge_floor(fit, without);
    fprintf(stderr, "%d fits in %.1f s\n", fit->n_devices + 2, util_seconds() - begin);
    moirai_fit_free(fit);
    return 0;
}
