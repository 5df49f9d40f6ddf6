/* --split-operators: the network cut before it is planned. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/util.h"

#define SHARE_OF_TIME 0.4 /* of the search's, for the choice */

void cli_cut_free(cli_cut *cut)
{
    free(cut->text);
    moirai_shard_choice_free(&cut->choice);
    moirai_shards_free(cut->shards);
    moirai_graph_free(cut->whole);
    *cut = (cli_cut){0};
}

static int check(const cli_context *cli, const char *how)
{
    if (strchr(how, ':') && access(how, F_OK))
        return moirai_error(
            MOIRAI_EUSAGE,
            "%s: --split-operators '%.100s': no such file; a cut as text is for 'moirai shard --cut', here "
            "it is in a FILE",
            cli->command->name, how);
    if (!cli_is_onnx(cli_arg(cli, 0)))
        return moirai_error(MOIRAI_EUSAGE,
                            "%s: --split-operators %.100s: '%.200s' is no ONNX file: only those can be cut",
                            cli->command->name, how, cli_arg(cli, 0));
    if (!strcmp(how, "auto") && cli_text(cli, "objective") && !strcmp(cli_text(cli, "objective"), "rate"))
        return moirai_error(
            MOIRAI_EUSAGE,
            "%s: --split-operators auto and --objective rate do not go together: cuts are chosen for the "
            "latency of one inference; a FILE may have any",
            cli->command->name);
    static const char *const wish[] = {"pin", "forbid", "together"};
    for (size_t i = 0; i < sizeof wish / sizeof *wish; i++)
        if (cli_uses(cli, wish[i]))
            return moirai_error(
                MOIRAI_EUSAGE,
                "%s: --split-operators and --%s do not go together: operators get other names: cut with "
                "'moirai shard', then plan the cut model",
                cli->command->name, wish[i]);
    return 0;
}

static int choose(cli_cut *cut, cli_context *cli, const moirai_graph *g, const moirai_cluster *c)
{
    moirai_shard_choose_options o = {.cluster = c};
    moirai_rules *rules = NULL;
    double begin_s = util_seconds();
    moirai_budget_init(&o.budget);
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.budget.time_limit_s = SHARE_OF_TIME * cli_time_limit_s(cli);
    o.budget.interrupt = cli_interrupt();
    int rc = cli_problem_options(&o.problem, cli, g);
    rc = rc ? rc : moirai_rules_open(&rules, cli_text(cli, "rules"));
    o.rules = rules;
    cli_status_set("judging cuts");
    rc = rc ? rc : moirai_shards_choose(&cut->choice, cut->shards, &o);
    moirai_rules_free(rules);
    cli->spent_s = util_seconds() - begin_s;
    if (!rc && !(cut->text = util_strdup(cut->choice.cut)))
        rc = MOIRAI_EFAIL;
    return rc;
}

int cli_cut_check(const cli_context *cli)
{
    const char *how = cli_text(cli, "split-operators");
    if (!cli_text(cli, "cut-out") || (how && strcmp(how, "off")))
        return 0;
    return moirai_error(MOIRAI_EUSAGE, "%s: --cut-out is for a cut model: --split-operators auto or FILE says how",
                        cli->command->name);
}

int cli_cut_network(cli_cut *cut, moirai_graph **graph, cli_context *cli, const moirai_cluster *c)
{
    const char *how = cli_text(cli, "split-operators");
    moirai_onnx_options options;
    moirai_graph *made = NULL;
    *cut = (cli_cut){0};
    if (!how || !strcmp(how, "off"))
        return cli_cut_check(cli);
    int rc = check(cli, how);
    if (rc || (rc = cli_onnx_options(&options, cli)))
        return rc;
    size_t length;
    if (strcmp(how, "auto"))
        rc = util_file_read(&cut->text, &length, how);
    rc = rc ? rc : moirai_shards_open(&cut->shards, cli_arg(cli, 0), &options);
    cli_onnx_options_free(&options);
    rc = rc || cut->text ? rc : choose(cut, cli, *graph, c);
    if (rc || !*cut->text)
        return rc;
    rc = moirai_shards_graph(&made, cut->shards, cut->text, MOIRAI_SHARD_CHAIN, NULL);
    if (rc)
        return rc;
    cut->whole = *graph;
    *graph = made;
    return 0;
}

int cli_cut_write(const cli_cut *cut, const cli_context *cli)
{
    const char *path = cli_text(cli, "cut-out");
    if (!path || !cut->text || !*cut->text)
        return 0;
    return moirai_shards_write(cut->shards, cut->text, MOIRAI_SHARD_CHAIN, path, NULL);
}

static void show_class(cli_context *cli, yyjson_mut_val *list, const moirai_shard_judgement *j)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "strip", j->strip);
    yyjson_mut_obj_add_int(cli->doc, o, "strips", j->n_strips);
    yyjson_mut_obj_add_int(cli->doc, o, "candidates", j->n_candidates);
    yyjson_mut_obj_add_sint(cli->doc, o, "whole_ns", j->whole_ns);
    yyjson_mut_obj_add_sint(cli->doc, o, "cut_ns", j->cut_ns);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "sizes", j->sizes);
    yyjson_mut_obj_add_bool(cli->doc, o, "cut", j->cut);
    if (j->cut && j->cut_ns < 0) /* judged together with others */
        cli_print(cli, "             %s%s: %s\n", j->strip, j->n_strips > 1 ? " and alike" : "", j->sizes);
    else if (j->cut)
        cli_print(cli, "             %s%s: %s; one takes %s, whole %s\n", j->strip, j->n_strips > 1 ? " and alike" : "",
                  j->sizes, cli_human_ns(j->cut_ns).s, j->whole_ns < 0 ? "-" : cli_human_ns(j->whole_ns).s);
}

void cli_show_cut(const cli_cut *cut, cli_context *cli)
{
    const moirai_shard_choice *x = &cut->choice;
    if (!cut->text)
        return;
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "cut", cut->text);
    if (x->judgement) {
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "uncut_ns", x->whole_ns);
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "quick_cut_ns", x->cut_ns);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "networks_judged", x->n_judged);
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "all_cuts_bound_ns", x->least_ns);
    }
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "cut_classes");
    if (!*cut->text)
        cli_print(cli, "cut          no cut pays: whole operators take %s in a quick plan\n",
                  x->whole_ns < 0 ? "-" : cli_human_ns(x->whole_ns).s);
    else if (x->judgement)
        cli_print(cli, "cut          operators in pieces: %s in a quick plan, whole %s\n", cli_human_ns(x->cut_ns).s,
                  x->whole_ns < 0 ? "fits on no devices" : cli_human_ns(x->whole_ns).s);
    else
        cli_print(cli, "cut          as the file says\n");
    if (x->least_ns > 0)
        cli_print(
            cli,
            "             all-cuts bound: no cut of these strips, fused as those that were tried, takes less than %s\n",
            cli_human_ns(x->least_ns).s);
    for (int32_t i = 0; i < x->n_classes; i++)
        show_class(cli, list, &x->judgement[i]);
    if (*cut->text)
        cli_print(cli, "             the plan and its bound are those of the cut network%s\n",
                  cli_text(cli, "cut-out") ? "" : "; --cut-out FILE writes the model that runs it");
}
