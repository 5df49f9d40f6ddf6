/* moirai prove: does a certificate prove its bound, and how much of a plan's bound is that? */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

/* "1 pair", "2 pairs" */
static void show_count(cli_context *cli, const char *before, int64_t n, const char *one, const char *many)
{
    cli_print(cli, "%s%s %s", before, cli_human_count(n).s, n == 1 ? one : many);
}

static void show_proof(cli_context *cli, const moirai_proof *proof)
{
    const struct {
        const char *key;
        int64_t value;
    } all[] = {{"proven_bound_ns", proof->proven_ns},
               {"certified_bound_ns", proof->certified_ns},
               {"cuts", proof->cuts},
               {"classes", proof->classes},
               {"pairs", proof->pairs},
               {"leaves", proof->leaves},
               {"searched", proof->searched},
               {"floating", proof->floating},
               {NULL, 0}};
    for (size_t i = 0; all[i].key; i++)
        yyjson_mut_obj_add_int(cli->doc, cli->result, all[i].key, all[i].value);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "objective", proof->of_rate ? "rate" : "latency");
    if (proof->in_flight)
        yyjson_mut_obj_add_int(cli->doc, cli->result, "in_flight", proof->in_flight);
    cli_print(cli, "proven: no plan %s less than %s (%lld ns)\n", proof->of_rate ? "has a period of" : "takes",
              cli_human_ns(proof->proven_ns).s, (long long)proof->proven_ns);
    if (proof->in_flight)
        cli_print(cli, "with at most %d request%s under way\n", proof->in_flight, proof->in_flight == 1 ? "" : "s");
    show_count(cli, "by ", proof->cuts, "cut", "cuts");
    show_count(cli, ", ", proof->classes, "class of blocks", "classes of blocks");
    show_count(cli, ", ", proof->pairs, "pair of devices", "pairs of devices");
    show_count(cli, ", ", proof->leaves, "leaf", "leaves");
    if (proof->searched)
        show_count(cli, ", ", proof->searched, "node of search trees", "nodes of search trees");
    cli_print(cli, "\n");
    if (proof->floating) {
        show_count(cli, "without ", proof->floating, "operator that floats", "operators that float");
        cli_print(cli, " beside the rest\n");
    }
}

/* Whether the plan is one that the certificate says something of. */
static int check_plan(const moirai_proof *proof, const moirai_problem *p, const moirai_plan *plan, const char *path)
{
    if (proof->of_rate && !plan->rate)
        return moirai_error(MOIRAI_EVERIFY, "%s: is a plan of one request, the certificate is about the period of many",
                            path);
    if (proof->of_rate && proof->in_flight && plan->rate->in_flight > proof->in_flight)
        return moirai_error(MOIRAI_EVERIFY, "%s: has %d requests in flight, the certificate is about at most %d", path,
                            plan->rate->in_flight, proof->in_flight);
    if (plan->problem_digest && plan->problem_digest != moirai_problem_digest(p))
        return moirai_error(MOIRAI_EVERIFY,
                            "%s: is a plan of another problem: its digest is %016" PRIx64 ", not %016" PRIx64, path,
                            plan->problem_digest, moirai_problem_digest(p));
    int rc = moirai_plan_check(p, plan, NULL, NULL);
    rc = rc || !proof->of_rate ? rc : moirai_rate_check(p, plan, NULL, NULL);
    return rc ? moirai_error_prefix(MOIRAI_EVERIFY, "%s: is no plan of this problem", path) : 0;
}

/* How much of the plan's bound that is. What the certificate itself says of a plan counts for nothing. */
static int show_share(cli_context *cli, const moirai_proof *proof, const moirai_problem *p, moirai_plan *plan,
                      const char *path)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(cli->doc, cli->result, "plan");
    bool rate = proof->of_rate;
    int rc = check_plan(proof, p, plan, path);
    if (rc)
        return rc;
    const char *bound_key = rate ? "period_bound_ns" : "lower_bound_ns";
    int64_t length_ns = rate ? plan->rate->period_ns : plan->makespan_ns;
    int64_t bound_ns = rate ? plan->rate->period_bound_ns : plan->lower_bound_ns;
    bool all = proof->proven_ns >= bound_ns, optimal = proof->proven_ns >= length_ns;
    yyjson_mut_obj_add_int(cli->doc, o, rate ? "period_ns" : "makespan_ns", length_ns);
    yyjson_mut_obj_add_bool(cli->doc, o, "names_its_problem", plan->problem_digest != 0);
    if (bound_ns < 0) {
        yyjson_mut_obj_add_null(cli->doc, o, bound_key);
        cli_print(cli, "the plan has no bound of its own\n");
        return 0;
    }
    double share = all ? 1 : (double)proof->proven_ns / (double)bound_ns;
    yyjson_mut_obj_add_int(cli->doc, o, bound_key, bound_ns);
    yyjson_mut_obj_add_real(cli->doc, o, "certified_share", share);
    plan->certified_bound_ns = proof->proven_ns;
    plan->lower_bound_ns = bound_ns = all ? proof->proven_ns : bound_ns;
    plan->makespan_ns = length_ns; /* the verdict's words are the same for both */
    plan->solver_bound_ns = rate ? MOIRAI_UNKNOWN : plan->solver_bound_ns;
    yyjson_mut_obj_add_str(cli->doc, o, "verdict", moirai_plan_verdict(plan));
    if (!plan->problem_digest)
        cli_print(cli, "the plan does not name its problem by a digest; it is a right plan of this one\n");
    if (all)
        cli_print(cli, "certified: all of the plan's bound of %s (%lld ns)\n", cli_human_ns(bound_ns).s,
                  (long long)bound_ns);
    else
        cli_print(cli, "certified: %s of the plan's bound of %s (%lld ns), %.1f %%; no proof of the rest was written\n",
                  cli_human_ns(proof->proven_ns).s, cli_human_ns(bound_ns).s, (long long)bound_ns, 100 * share);
    if (optimal)
        cli_print(cli, "the plan is optimal (certified): no other %s\n", rate ? "has a shorter period" : "is faster");
    return 0;
}

/* What fails and was written for other content is most likely not forged but mistaken. */
static int blame_digest(int rc, const char *path, const char *found, const moirai_problem *p)
{
    char own[24];
    if (!*found || !p || strstr(moirai_error_message(), "belongs to another problem"))
        return rc;
    snprintf(own, sizeof own, "%016" PRIx64, moirai_problem_digest(p));
    return strcmp(found, own)
               ? moirai_error(rc, "%s: belongs to another problem: its digest is %s, not %s", path, found, own)
               : rc;
}

static int run(cli_context *cli)
{
    const char *problem_path = cli_arg(cli, 0), *path = cli_arg(cli, 1), *plan_path = cli_arg(cli, 2);
    if (!strcmp(problem_path, "-") + !strcmp(path, "-") + (plan_path && !strcmp(plan_path, "-")) > 1)
        return moirai_error(MOIRAI_EUSAGE, "prove: only one file can come from stdin");
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL;
    moirai_proof proof = {0};
    char *problem = NULL, *certificate = NULL;
    moirai_prove_file files[] = {{.label = problem_path}, {.label = path}};
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.interrupt = cli_interrupt();
    budget.time_limit_s = cli_real(cli, "time-limit");
    cli_status_set("proving %s", path);
    int rc = util_file_read(&problem, &files[0].length, problem_path);
    rc = rc ? rc : util_file_read(&certificate, &files[1].length, path);
    files[0].text = problem;
    files[1].text = certificate;
    rc = rc ? rc : moirai_prove_text(&proof, &files[0], &files[1], &budget);
    if (rc == MOIRAI_EVERIFY || (!rc && plan_path)) { /* the library's reader: for digests and plans alone */
        char why[512];
        snprintf(why, sizeof why, "%s", moirai_error_message());
        int known = moirai_problem_parse(&p, problem, files[0].length, problem_path);
        rc = rc ? blame_digest(moirai_error(rc, "%s", why), path, proof.problem_digest, p) : known;
    }
    rc = rc || !plan_path ? rc : moirai_plan_read(&plan, p, plan_path);
    if (!rc)
        show_proof(cli, &proof);
    rc = rc || !plan ? rc : show_share(cli, &proof, p, plan, plan_path);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    free(problem);
    free(certificate);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "the problem file"},
    {.name = "CERTIFICATE", .kind = CLI_VALUE_FILE, .help = "what 'moirai place --certificate' wrote"},
    {.name = "PLAN", .kind = CLI_VALUE_FILE, .optional = true, .help = "a plan: how much of its bound that is"},
    {0},
};
static const cli_option options[] = {
    {.name = "time-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_LIMIT,
     .least = 1e-3,
     .most = 1e9,
     .help = "give up after this time, with exit code 5 (default none)"},
    {0},
};
static const cli_example examples[] = {
    {"moirai prove problem.json certificate.json", "Exit code 6 means that it proves less than it claims"},
    {"moirai prove problem.json certificate.json plan.json", "What share of that plan's bound is certified"},
    {0},
};
const cli_command cli_command_prove = {
    .name = "prove",
    .summary = "prove a bound again from its certificate",
    .text = "Shares no code with the search, nor its reader of problems: every case and every inequality is checked in "
            "whole numbers.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
