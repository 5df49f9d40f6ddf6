/* Bash completion from the commands' tables: a case per command, a case per option that takes a value. */
#include "cli/framework/cli.h"

#include <string.h>

static void word_list(FILE *out, const cli_command *c)
{
    const cli_option *tables[] = {c->options, cli_options_common};
    for (int t = 0; t < 2; t++)
        for (const cli_option *o = tables[t]; o && o->name; o++) {
            fprintf(out, " --%s", o->name);
            if (o->letter)
                fprintf(out, " -%c", o->letter);
        }
}

/* The line that offers values of one kind. */
static void offer(FILE *out, cli_value_kind kind, const char *choices)
{
    char buffer[4096];
    cli_help_words(buffer, sizeof buffer, kind, choices);
    bool files =
        kind == CLI_VALUE_FILE || kind == CLI_VALUE_CLUSTER || kind == CLI_VALUE_NETWORK || kind == CLI_VALUE_RULES;
    for (char *c = buffer; *c; c++)
        if (*c == '|')
            *c = ' ';
    const char *action = files ? "-f" : kind == CLI_VALUE_FOLDER ? "-d" : "";
    fprintf(out, "COMPREPLY=($(compgen %s -W '%s' -- \"$cur\"))", action, buffer);
}

static void complete_command(FILE *out, const cli_command *c)
{
    fprintf(out, "    %s)\n        case $prev in\n", c->name);
    for (const cli_option *o = c->options; o && o->name; o++) {
        if (o->kind == CLI_VALUE_FLAG)
            continue;
        fprintf(out, "        --%s", o->name);
        if (o->letter)
            fprintf(out, "|-%c", o->letter);
        fputs(") ", out);
        offer(out, o->kind, o->choices);
        fputs("; return;;\n", out);
    }
    fputs("        esac\n        if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '", out);
    word_list(out, c);
    fputs("' -- \"$cur\"))\n        else ", out);
    offer(out, c->arguments ? c->arguments->kind : CLI_VALUE_FLAG, NULL);
    fputs("; fi;;\n", out);
}

void cli_help_bash(FILE *out)
{
    fputs("# bash completion of moirai, written by 'moirai help --bash'\n"
          "_moirai()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '",
          out);
    for (int i = 0; i < cli_command_count(); i++)
        fprintf(out, "%s ", cli_command_at(i)->name);
    fputs("--help --version' -- \"$cur\"))\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          out);
    for (int i = 0; i < cli_command_count(); i++)
        complete_command(out, cli_command_at(i));
    fputs("    esac\n}\ncomplete -o filenames -F _moirai moirai\n", out);
}
