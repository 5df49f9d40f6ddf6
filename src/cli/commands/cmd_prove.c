/* moirai prove: does a certificate prove its bound? */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>

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
    yyjson_mut_obj_add_int(doc, cli->result, "floating", proof->floating);
    cli_print(cli, "proven: no plan takes less than %s (%lld ns)\n", cli_human_ns(proof->proven_ns).s,
              (long long)proof->proven_ns);
    cli_print(cli, "by %s cuts, %s classes of blocks, %s pairs of devices, %s leaves\n", cli_human_count(proof->cuts).s,
              cli_human_count(proof->classes).s, cli_human_count(proof->pairs).s, cli_human_count(proof->leaves).s);
    if (proof->floating)
        cli_print(cli, "without %s operators that float beside the rest\n", cli_human_count(proof->floating).s);
    if (proof->lower_bound_ns > proof->proven_ns)
        cli_print(
            cli,
            "the search's own bound is %s (%lld ns): what is above the certificate it has from trying out all cases, "
            "and wrote no proof of\n",
            cli_human_ns(proof->lower_bound_ns).s, (long long)proof->lower_bound_ns);
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
