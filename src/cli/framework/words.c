/* The words that the library knows for a kind of value: for completion and for suggestions. */
#include "cli/framework/cli.h"

#include <string.h>
#include <moirai/moirai.h>

static void add(char *buffer, size_t size, const char *word)
{
    size_t used = strlen(buffer);
    if (used + strlen(word) + 2 < size)
        snprintf(buffer + used, size - used, "%s%s", used ? "|" : "", word);
}

const char *cli_help_words(char *buffer, size_t size, cli_value_kind kind, const char *choices)
{
    snprintf(buffer, size, "%s", choices ? choices : "");
    switch (kind) {
    case CLI_VALUE_COMMAND:
        for (int i = 0; i < cli_command_count(); i++)
            add(buffer, size, cli_command_at(i)->name);
        break;
    case CLI_VALUE_NETWORK:
        for (int i = 0; i < moirai_zoo_count(); i++)
            add(buffer, size, moirai_zoo_at(i)->name);
        break;
    case CLI_VALUE_CLUSTER:
        for (int i = 0; i < moirai_cluster_builtin_count(); i++)
            add(buffer, size, moirai_cluster_builtin_name(i));
        break;
    case CLI_VALUE_PLACER:
        for (int i = 0; i < moirai_placer_count(); i++)
            add(buffer, size, moirai_placer_at(i)->name);
        break;
    case CLI_VALUE_COST:
        for (int i = 0; i < moirai_cost_model_count(); i++)
            add(buffer, size, moirai_cost_model_at(i)->name);
        break;
    case CLI_VALUE_RULES: add(buffer, size, "eigen|onnxruntime|none"); break;
    default: break;
    }
    return buffer;
}

cli_human cli_hint(const char *typed, cli_value_kind kind, const char *otherwise)
{
    char words[4096], near[48];
    cli_human t;
    cli_help_words(words, sizeof words, kind, NULL);
    if (cli_nearest(near, sizeof near, typed, words))
        snprintf(t.s, sizeof t.s, "did you mean '%s'?", near);
    else
        snprintf(t.s, sizeof t.s, "%s", otherwise);
    return t;
}

bool cli_is_setting(const char *name, bool *flag)
{
    for (int i = 0; i < moirai_placer_count(); i++) {
        const moirai_placer *r = moirai_placer_at(i);
        for (int j = 0; j < r->n_params; j++)
            if (!strcmp(r->params[j].name, name)) {
                *flag = r->params[j].kind == MOIRAI_PARAM_BOOL;
                return true;
            }
    }
    return false;
}
