/* moirai placers: the registry, with every parameter. */
#include <yyjson.h>

#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

static void standard_text(char *text, size_t size, const moirai_param *q)
{
    int length = 0;
    while (q->kind == MOIRAI_PARAM_CHOICE && q->choices[length] && q->choices[length] != '|')
        length++;
    if (q->kind == MOIRAI_PARAM_CHOICE)
        snprintf(text, size, "%.*s of %s", length, q->choices, q->choices);
    else if (q->kind == MOIRAI_PARAM_TEXT)
        snprintf(text, size, "none");
    else if (q->kind == MOIRAI_PARAM_BOOL)
        snprintf(text, size, "%s", q->value != 0 ? "on" : "off");
    else
        snprintf(text, size, "%g, %g to %g", q->value, q->least, q->most);
}

static void show_param(cli_context *cli, yyjson_mut_val *list, const moirai_param *q)
{
    static const char *const kinds[] = {"int", "real", "bool", "choice", "text"};
    char text[160];
    standard_text(text, sizeof text, q);
    cli_print(cli, "    %s: %s (%s)\n", q->name, q->help, text);
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_str(cli->doc, o, "name", q->name);
    yyjson_mut_obj_add_str(cli->doc, o, "kind", kinds[q->kind]);
    yyjson_mut_obj_add_str(cli->doc, o, "help", q->help);
    if (q->kind == MOIRAI_PARAM_CHOICE) {
        yyjson_mut_obj_add_str(cli->doc, o, "choices", q->choices);
        return;
    }
    if (q->kind == MOIRAI_PARAM_TEXT) {
        yyjson_mut_obj_add_null(cli->doc, o, "default");
        return;
    }
    yyjson_mut_obj_add_real(cli->doc, o, "default", q->value);
    yyjson_mut_obj_add_real(cli->doc, o, "least", q->least);
    yyjson_mut_obj_add_real(cli->doc, o, "most", q->most);
}

static int run(cli_context *cli)
{
    yyjson_mut_val *placers = yyjson_mut_arr(cli->doc);
    for (int i = 0; i < moirai_placer_count(); i++) {
        const moirai_placer *r = moirai_placer_at(i);
        const char *why = "";
        bool there = !r->available || r->available(&why);
        cli_print(cli, "%-10s %s%s%s%s\n", r->name, r->summary, there ? "" : " [off: ", there ? "" : why,
                  there ? "" : "]");
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, placers);
        yyjson_mut_obj_add_str(cli->doc, o, "name", r->name);
        yyjson_mut_obj_add_str(cli->doc, o, "summary", r->summary);
        yyjson_mut_obj_add_bool(cli->doc, o, "available", there);
        if (!there)
            yyjson_mut_obj_add_strcpy(cli->doc, o, "why", why);
        yyjson_mut_val *params = yyjson_mut_arr(cli->doc);
        for (int j = 0; j < r->n_params; j++)
            show_param(cli, params, &r->params[j]);
        yyjson_mut_obj_add_val(cli->doc, o, "params", params);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "placers", placers);
    return 0;
}

static const cli_example examples[] = {
    {"moirai placers", "Names, what they do, and the parameters for --set"},
    {0},
};
const cli_command cli_command_placers = {
    .name = "placers",
    .summary = "list the placers and their parameters",
    .text = "A parameter is set with --set NAME=VALUE, or with --NAME VALUE.",
    .examples = examples,
    .run = run,
};
