/* The same tables as a man page and as docs/commands.md. */
#include "cli/framework/cli.h"

#include <string.h>

/* The exit codes are moirai_result, negated. */
static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "ok"},
    {1, "failure: a plan that breaks the rules, a file that exists, input or output, out of memory"},
    {2, "usage: the command line makes no sense"},
    {3, "bad input: a file or value is malformed"},
    {4, "infeasible: no plan exists, or this method finds none that fits"},
    {5, "no plan within the time or effort limit"},
    {6, "verification failed: results differ from the reference"},
};
enum { N_CODES = sizeof exit_codes / sizeof *exit_codes };

/* Text with what roff reads as commands made harmless. */
static void roff(FILE *out, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (text[0] == '\n' && text[1] == '\n') {
            fputs("\n.PP\n", out);
            text++;
            start = true;
            continue;
        }
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        start = *text == '\n';
    }
}

static void man_options(FILE *out, const cli_option *o)
{
    for (; o && o->name; o++) {
        fputs(".TP\n.B ", out);
        roff(out, cli_help_flags(o).s);
        fputc('\n', out);
        roff(out, o->help);
        if (o->choices) {
            fputs(": ", out);
            roff(out, o->choices);
        }
        if (o->repeated)
            fputs("; may be given several times", out);
        if (o->standard) {
            fputs("; default ", out);
            roff(out, o->standard);
        }
        fputs(".\n", out);
    }
}

static void man_command(FILE *out, const cli_command *c)
{
    fprintf(out, ".SS moirai %s", c->name);
    cli_help_synopsis(out, c);
    fputc('\n', out);
    roff(out, c->summary);
    fputs(".\n", out);
    if (c->text) {
        fputs(".PP\n", out);
        roff(out, c->text);
        fputc('\n', out);
    }
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        fprintf(out, ".TP\n.I %s\n", a->name);
        roff(out, a->help);
        fputs(".\n", out);
    }
    man_options(out, c->options);
    for (const cli_example *e = c->examples; e && e->line; e++) {
        fputs(".PP\n", out);
        roff(out, e->what);
        fputs(":\n.PP\n.RS\n.nf\n", out);
        roff(out, e->line);
        fputs("\n.fi\n.RE\n", out);
    }
}

void cli_help_man(FILE *out)
{
    fputs(".TH MOIRAI 1 \"\" \"moirai " MOIRAI_VERSION "\" \"User Commands\"\n", out);
    fputs(".SH NAME\nmoirai \\- places neural networks on unequal devices\n", out);
    fputs(".SH SYNOPSIS\n.B moirai\n.I COMMAND\n[options] arguments\n", out);
    fputs(".SH DESCRIPTION\nMoirai reads a network, a cluster of unequal devices and their links, and finds a device "
          "and a "
          "start for every operator, with a proven bound on how much faster any plan could be.\n.PP\n"
          "Standard output is the result, standard error the story. A file name of \\- is standard input or output. "
          "Existing files are kept unless \\-\\-force is given (but the timeline that moirai run writes is replaced); "
          "files appear complete or not at all.\n",
          out);
    fputs(".SH COMMON OPTIONS\n", out);
    man_options(out, cli_options_common);
    fputs(".SH COMMANDS\n", out);
    for (int i = 0; i < cli_command_count(); i++)
        man_command(out, cli_command_at(i));
    fputs(".SH EXIT STATUS\n", out);
    for (int i = 0; i < N_CODES; i++)
        fprintf(out, ".TP\n.B %d\n%s.\n", exit_codes[i].code, exit_codes[i].meaning);
}

/* '|' ends a table's cell. */
static void cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void markdown_options(FILE *out, const cli_option *o)
{
    for (; o && o->name; o++) {
        fputs("| `", out);
        cell(out, cli_help_flags(o).s);
        fputs("` | ", out);
        cell(out, o->help);
        if (o->choices) {
            fputs(": ", out);
            cell(out, o->choices);
        }
        fprintf(out, "%s | ", o->repeated ? "; may be given several times" : "");
        if (o->standard)
            cell(out, o->standard);
        fputs(" |\n", out);
    }
}

static void markdown_command(FILE *out, const cli_command *c)
{
    fprintf(out, "\n## moirai %s\n\n    moirai %s", c->name, c->name);
    cli_help_synopsis(out, c);
    fprintf(out, "\n\n%c%s.\n", c->summary[0] & ~0x20, c->summary + 1);
    if (c->text)
        fprintf(out, "\n%s\n", c->text);
    if (c->arguments && c->arguments->name)
        fputs("\n| argument | meaning |\n|---|---|\n", out);
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        fprintf(out, "| `%s` | ", a->name);
        cell(out, a->help);
        fputs(" |\n", out);
    }
    if (c->options && c->options->name) {
        fputs("\n| option | meaning | default |\n|---|---|---|\n", out);
        markdown_options(out, c->options);
    }
    for (const cli_example *e = c->examples; e && e->line; e++)
        fprintf(out, "\n%s:\n\n    %s\n", e->what, e->line);
}

void cli_help_markdown(FILE *out)
{
    fputs("# Commands\n\nWritten by `moirai help --markdown` from the tables that the command parses with.\n\n"
          "Standard output is the result, standard error the story. A file name of `-` is standard input or output.\n"
          "Existing files are kept unless `--force` is given (but the timeline that `moirai run` writes is replaced); "
          "files appear complete or not at all.\n\n"
          "Every command takes these:\n\n| option | meaning | default |\n|---|---|---|\n",
          out);
    markdown_options(out, cli_options_common);
    fputs("\n| exit code | meaning |\n|---|---|\n", out);
    for (int i = 0; i < N_CODES; i++)
        fprintf(out, "| %d | %s |\n", exit_codes[i].code, exit_codes[i].meaning);
    for (int i = 0; i < cli_command_count(); i++)
        markdown_command(out, cli_command_at(i));
}
