/* Running one case: its problem, its plan, and what the whole model makes of the plan.
 *
 * A setting is the problem of several cases, together with what judging needs: for a coarsened network also the
 * problem of the original operators, on which the plan is played once more with every operator a kernel of its own.
 * That is what a runtime without fusion would do with the placement, as PyTorch 1.12 in the paper.
 *
 * Precision: fp32, or fp16 where the weights in fp32 do not fit the cluster together (GPT-3 13B and Swin 13B on
 * inter-server). Whatever moirai_place hands out has been checked by moirai_plan_check; plans that were carried out in
 * another problem are checked here. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/coarsen.h>
#include <moirai/zoo.h>

#include "util/util.h"

struct moirai_study_setting {
    moirai_study_case of;
    moirai_graph *graph;           /* as it is placed */
    moirai_problem *problem;       /* of it */
    moirai_problem *fine;          /* of the original operators; NULL where the graph is the original */
    int32_t n_ops_original, bytes; /* bytes: of an element */
    int64_t single_ns;
};

/* ---- the setting ---- */

static int make_problem(moirai_problem **out, const moirai_graph *g, const moirai_cluster *c,
                        const moirai_study_case *of)
{
    moirai_problem_options o = {.flow = of->flow, .runtime = of->runtime};
    return moirai_problem_new(out, g, c, &o);
}

static int make_graphs(moirai_study_setting *s, const moirai_cluster *cluster, int element_bytes)
{
    moirai_graph *original = NULL;
    moirai_rules *rules = NULL;
    s->bytes = element_bytes;
    int rc = moirai_zoo_graph_batch(&original, s->of.network, element_bytes, s->of.batch);
    if (!rc) {
        s->n_ops_original = original->n_ops;
        rc = make_problem(&s->problem, original, cluster, &s->of);
    }
    if (!rc && !s->of.coarsened) {
        s->graph = original;
        return 0;
    }
    s->fine = s->problem;
    s->problem = NULL;
    rc = rc ? rc : moirai_rules_open(&rules, "onnxruntime");
    rc = rc ? rc : moirai_coarsen(&s->graph, original, rules, NULL);
    rc = rc ? rc : make_problem(&s->problem, s->graph, cluster, &s->of);
    moirai_rules_free(rules);
    moirai_graph_free(original);
    return rc;
}

static void drop(moirai_study_setting *s)
{
    moirai_problem_free(s->problem);
    moirai_problem_free(s->fine);
    moirai_graph_free(s->graph);
    s->problem = s->fine = NULL;
    s->graph = NULL;
}

static int64_t single_ns(const moirai_problem *p)
{
    moirai_plan *plan;
    if (moirai_place(&plan, p, "single", NULL))
        return MOIRAI_UNKNOWN;
    int64_t ns = plan->makespan_ns;
    moirai_plan_free(plan);
    return ns;
}

int moirai_study_setting_new(moirai_study_setting **out, const moirai_study_case *c)
{
    moirai_cluster *cluster = NULL;
    *out = NULL;
    moirai_study_setting *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->of = *c;
    int rc = moirai_cluster_open(&cluster, c->cluster);
    rc = rc ? rc : make_graphs(s, cluster, 4);
    if (!rc && moirai_problem_check_memory(s->problem) == MOIRAI_EINFEASIBLE) {
        drop(s);
        rc = make_graphs(s, cluster, 2);
    }
    moirai_cluster_free(cluster);
    if (rc) {
        moirai_study_setting_free(s);
        return rc;
    }
    s->single_ns = single_ns(s->problem);
    *out = s;
    return 0;
}

void moirai_study_setting_free(moirai_study_setting *s)
{
    if (s)
        drop(s);
    free(s);
}

bool moirai_study_setting_fits(const moirai_study_setting *s, const moirai_study_case *c)
{
    return s && !strcmp(s->of.network, c->network) && !strcmp(s->of.cluster, c->cluster) &&
           s->of.coarsened == c->coarsened && s->of.flow == c->flow && s->of.runtime == c->runtime &&
           s->of.batch == c->batch;
}

int study_costs(uint64_t *out)
{
    static const char *const cluster[] = {"inter-server", "intra-server"};
    int rc = 0;
    *out = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        moirai_study_case c = {.network = "gpt3-tiny", .coarsened = true, .batch = 1};
        moirai_study_setting *s;
        snprintf(c.cluster, sizeof c.cluster, "%s", cluster[i]);
        rc = moirai_study_setting_new(&s, &c);
        if (!rc)
            *out = 31 * *out + moirai_problem_digest(s->problem) + moirai_problem_digest(s->fine);
        moirai_study_setting_free(rc ? NULL : s);
    }
    *out &= INT64_MAX; /* JSON's whole numbers */
    return rc;
}

/* ---- a case ---- */

/* Bytes by which the fullest device is too full. */
static int64_t excess(const moirai_problem *p, const moirai_plan *plan)
{
    int64_t held[MOIRAI_MAX_DEVICES] = {0}, most = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        held[plan->op_device[i]] += p->op_memory_bytes[i];
    moirai_problem_add_weights(p, plan->op_device, held);
    for (int32_t k = 0; k < p->n_devices; k++)
        most = UTIL_MAX(most, held[k] - p->device_memory_bytes[k]);
    return most;
}

static void fill(moirai_study_row *row, const moirai_problem *p, const moirai_plan *plan)
{
    row->makespan_ns = plan->makespan_ns;
    row->transfers = plan->n_transfers;
    for (int32_t i = 0; i < plan->n_transfers; i++)
        row->transfer_bytes += p->tensor_bytes[plan->transfer[i].tensor];
}

/* Planned without a part of the model, judged with all of it. */
static int run_ablated(moirai_study_row *row, const moirai_study_setting *s, const moirai_place_options *o)
{
    moirai_problem *poorer = NULL;
    moirai_plan *plan = NULL, *real = NULL;
    int rc = study_ablated(&poorer, s->problem, row->of.without);
    rc = rc ? rc : moirai_place(&plan, poorer, row->of.placer, o);
    rc = rc ? rc : study_carried_out(&real, s->problem, plan);
    if (!rc) {
        row->planned_ns = plan->makespan_ns;
        row->generation_ns = plan->generation_ns;
        row->excess_bytes = excess(s->problem, real);
        fill(row, s->problem, real);
    }
    if (!rc && row->excess_bytes == 0)
        rc = moirai_plan_check(s->problem, real, NULL, NULL);
    moirai_plan_free(real);
    moirai_plan_free(plan);
    moirai_problem_free(poorer);
    return rc;
}

/* What launches take of the plan. */
static int find_launches(moirai_study_row *row, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_analysis *a;
    int rc = moirai_analysis_new(&a, p, plan, NULL);
    if (!rc)
        row->launch_ns = a->launch_ns;
    moirai_analysis_free(a);
    return rc;
}

static int run_whole(moirai_study_row *row, const moirai_study_setting *s, const moirai_place_options *o)
{
    moirai_plan *plan = NULL, *unfused = NULL;
    int rc = moirai_place(&plan, s->problem, row->of.placer, o);
    if (!rc) {
        row->planned_ns = plan->makespan_ns;
        row->generation_ns = plan->generation_ns;
        row->lower_bound_ns = plan->lower_bound_ns;
        fill(row, s->problem, plan);
        rc = row->of.part == MOIRAI_STUDY_LATENCY ? find_launches(row, s->problem, plan) : 0;
    }
    if (!rc && s->fine && row->of.part == MOIRAI_STUDY_LATENCY)
        rc = moirai_plan_expand(&unfused, s->fine, s->problem, s->graph, plan);
    if (!rc && unfused) {
        rc = moirai_plan_check(s->fine, unfused, NULL, NULL);
        row->unfused_ns = unfused->makespan_ns;
    }
    moirai_plan_free(unfused);
    moirai_plan_free(plan);
    return rc;
}

/* The row as it is before anything was tried. */
static void begin(moirai_study_row *row, const moirai_study *study)
{
    *row = (moirai_study_row){.of = row->of,
                              .makespan_ns = MOIRAI_UNKNOWN,
                              .planned_ns = MOIRAI_UNKNOWN,
                              .lower_bound_ns = MOIRAI_UNKNOWN,
                              .single_ns = MOIRAI_UNKNOWN,
                              .unfused_ns = MOIRAI_UNKNOWN,
                              .seed = study->seed,
                              .costs = study->costs,
                              .threads = study->threads ? study->threads : util_cores(),
                              .load = study_load(),
                              .version = MOIRAI_VERSION};
    study_machine(row->machine, sizeof row->machine);
    study_date(row->date, sizeof row->date);
}

void moirai_study_run(moirai_study_row *row, const moirai_study_setting *s, const moirai_study *study,
                      const moirai_interrupt *interrupt)
{
    moirai_place_options o;
    begin(row, study);
    row->n_ops = s->problem->n_ops;
    row->n_ops_original = s->n_ops_original;
    row->element_bytes = s->bytes;
    row->single_ns = s->single_ns;
    moirai_place_options_init(&o);
    o.gap = row->of.gap;
    o.budget.time_limit_s = row->of.time_limit_s;
    o.budget.seed = study->seed;
    o.budget.threads = study->threads;
    o.budget.interrupt = interrupt;
    row->result = row->of.without ? run_ablated(row, s, &o) : run_whole(row, s, &o);
    if (row->result)
        snprintf(row->message, sizeof row->message, "%s", moirai_error_message());
    row->done = !moirai_interrupt_raised(interrupt);
}

void moirai_study_fail(moirai_study_row *row, const moirai_study *study, int rc, const char *message)
{
    begin(row, study);
    row->done = true;
    row->result = rc;
    snprintf(row->message, sizeof row->message, "%s", message);
}
