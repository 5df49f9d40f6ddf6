/* moirai prove: does a certificate prove its bound? */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>

/* "1 pair", "2 pairs" */
static void show_count(cli_context *cli, const char *before, int64_t n, const char *one, const char *many)
{
    cli_print(cli, "%s%s %s", before, cli_human_count(n).s, n == 1 ? one : many);
}

/* How much of the plan's bound that is. */
static void show_share(cli_context *cli, const moirai_proof *proof)
{
    if (proof->proven_ns >= proof->lower_bound_ns)
        cli_print(cli, "certified: all of the plan's bound\n");
    else
        cli_print(cli, "certified: %s of the plan's bound of %s (%lld ns), %.1f %%; no proof of the rest was written\n",
                  cli_human_ns(proof->proven_ns).s, cli_human_ns(proof->lower_bound_ns).s,
                  (long long)proof->lower_bound_ns, 100 * (double)proof->proven_ns / (double)proof->lower_bound_ns);
}

static void show(cli_context *cli, const moirai_proof *proof)
{
    yyjson_mut_doc *doc = cli->doc;
    yyjson_mut_obj_add_int(doc, cli->result, "proven_bound_ns", proof->proven_ns);
    yyjson_mut_obj_add_int(doc, cli->result, "certified_bound_ns", proof->certified_ns);
    yyjson_mut_obj_add_int(doc, cli->result, "lower_bound_ns", proof->lower_bound_ns);
    yyjson_mut_obj_add_int(doc, cli->result, "cuts", proof->cuts);
    yyjson_mut_obj_add_int(doc, cli->result, "classes", proof->classes);
    yyjson_mut_obj_add_int(doc, cli->result, "pairs", proof->pairs);
    yyjson_mut_obj_add_int(doc, cli->result, "leaves", proof->leaves);
    yyjson_mut_obj_add_int(doc, cli->result, "intervals", proof->intervals);
    yyjson_mut_obj_add_int(doc, cli->result, "searched", proof->searched);
    yyjson_mut_obj_add_int(doc, cli->result, "floating", proof->floating);
    cli_print(cli, "proven: no plan takes less than %s (%lld ns)\n", cli_human_ns(proof->proven_ns).s,
              (long long)proof->proven_ns);
    show_count(cli, "by ", proof->cuts, "cut", "cuts");
    show_count(cli, ", ", proof->classes, "class of blocks", "classes of blocks");
    show_count(cli, ", ", proof->pairs, "pair of devices", "pairs of devices");
    show_count(cli, ", ", proof->leaves, "leaf", "leaves");
    if (proof->intervals)
        show_count(cli, ", windows from ", proof->intervals, "interval", "intervals");
    if (proof->searched)
        show_count(cli, ", ", proof->searched, "node of search trees", "nodes of search trees");
    cli_print(cli, "\n");
    if (proof->floating) {
        show_count(cli, "without ", proof->floating, "operator that floats", "operators that float");
        cli_print(cli, " beside the rest\n");
    }
    show_share(cli, proof);
}

static int run(cli_context *cli)
{
    const char *problem_path = cli_arg(cli, 0), *path = cli_arg(cli, 1);
    if (!strcmp(problem_path, "-") && !strcmp(path, "-"))
        return moirai_error(MOIRAI_EUSAGE, "prove: problem and certificate can't both come from stdin");
    moirai_problem *p = NULL;
    moirai_proof proof = {0};
    int rc = cli_problem_read(&p, problem_path);
    cli_status_set("proving %s", path);
    rc = rc ? rc : moirai_prove(&proof, p, path);
    if (!rc)
        show(cli, &proof);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "the problem file"},
    {.name = "CERTIFICATE", .kind = CLI_VALUE_FILE, .help = "what 'moirai place --certificate' wrote"},
    {0},
};
static const cli_example examples[] = {
    {"moirai prove problem.json certificate.json", "Exit code 6 means that it proves less than it claims"},
    {0},
};
const cli_command cli_command_prove = {
    .name = "prove",
    .summary = "prove a bound again from its certificate",
    .text = "Shares no code with the search: every case and every inequality is checked in whole numbers.",
    .arguments = arguments,
    .examples = examples,
    .run = run,
};
