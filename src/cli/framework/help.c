/* Help on the terminal, from the commands' tables. */
#include "cli/framework/cli.h"

#include <string.h>

const cli_option cli_options_common[] = {
    {.name = "json", .help = "print the result as JSON", .kind = CLI_VALUE_FLAG},
    {.name = "quiet", .letter = 'q', .help = "say nothing on stderr but errors", .kind = CLI_VALUE_FLAG},
    {.name = "help", .letter = 'h', .help = "show this help", .kind = CLI_VALUE_FLAG},
    {0},
};

cli_human cli_help_flags(const cli_option *o)
{
    cli_human t;
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(t.s, sizeof t.s, "%s--%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    return t;
}

void cli_help_synopsis(FILE *out, const cli_command *c)
{
    for (const cli_argument *a = c->arguments; a && a->name; a++)
        fprintf(out, a->optional ? " [%s%s]" : " %s%s", a->name, a->repeated ? "..." : "");
    fprintf(out, " [options]");
}

void cli_help_overview(FILE *out)
{
    fprintf(out, "moirai: places neural networks on unequal devices\n\nusage: moirai COMMAND [options] arguments\n\n");
    for (int i = 0; i < cli_command_count(); i++) {
        const cli_command *c = cli_command_at(i);
        fprintf(out, "  %-10s %s\n", c->name, c->summary);
    }
    fprintf(out, "\n'moirai COMMAND --help' explains a command and shows examples.\n");
}

/* Words of `text` filled into lines of 100 columns after `indent` spaces; the cursor is at `column`. */
static void fill(FILE *out, const char *text, int indent, int column)
{
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (column + (int)length > 100) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        fprintf(out, "%.*s", (int)length, text);
        column += (int)length;
        text += length;
        if (text[0] == '\n' && text[1] == '\n') {
            fprintf(out, "\n\n%*s", indent, "");
            column = indent;
            text += 2;
        } else if (*text) {
            fputc(' ', out);
            column++;
            text++;
        }
    }
    fputc('\n', out);
}

static void show_options(FILE *out, const cli_option *o)
{
    for (; o && o->name; o++) {
        char text[512];
        int used = snprintf(text, sizeof text, "%s", o->help);
        if (o->choices)
            used += snprintf(text + used, sizeof text - (size_t)used, ": %s", o->choices);
        if (o->repeated)
            used += snprintf(text + used, sizeof text - (size_t)used, " (may be given several times)");
        if (o->standard)
            snprintf(text + used, sizeof text - (size_t)used, " (default %s)", o->standard);
        fprintf(out, "  %-26s ", cli_help_flags(o).s);
        int width = (int)strlen(cli_help_flags(o).s);
        fill(out, text, 29, width > 26 ? width + 3 : 29);
    }
}

void cli_help_command(FILE *out, const cli_command *c)
{
    fprintf(out, "moirai %s: %s\n\nusage: moirai %s", c->name, c->summary, c->name);
    cli_help_synopsis(out, c);
    fprintf(out, "\n");
    if (c->text) {
        fprintf(out, "\n");
        fill(out, c->text, 0, 0);
    }
    if (c->arguments && c->arguments->name)
        fprintf(out, "\narguments:\n");
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        fprintf(out, "  %-26s ", a->name);
        fill(out, a->help, 29, 29);
    }
    fprintf(out, "\noptions:\n");
    show_options(out, c->options);
    show_options(out, cli_options_common);
    if (c->examples)
        fprintf(out, "\nexamples:\n");
    for (const cli_example *e = c->examples; e && e->line; e++)
        fprintf(out, "  %s\n      %s\n", e->line, e->what);
}
