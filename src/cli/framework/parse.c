/* Reads a command line against a command's table. Options stand before or after positional arguments,
 * as --name=value, --name value, -x value or -xvalue; "--" ends them and "-" alone is an argument. */
#include "cli/framework/cli.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static const cli_option *find_in(const cli_option *table, const char *name, size_t length)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == length && !memcmp(table->name, name, length))
            return table;
    return NULL;
}

static const cli_option *find_option(const cli_command *c, const char *name, size_t length)
{
    const cli_option *o = find_in(c->options, name, length);
    return o ? o : find_in(cli_options_common, name, length);
}

static const cli_option *find_letter(const cli_command *c, char letter)
{
    for (const cli_option *o = c->options; o && o->name; o++)
        if (o->letter == letter)
            return o;
    for (const cli_option *o = cli_options_common; o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn one short word into the other. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 40 };
    int row[3][MOST + 1], n = (int)strlen(b);
    if (strlen(a) > MOST || n > MOST)
        return MOST;
    int *two = row[0], *one = row[1], *now = row[2];
    for (int j = 0; j <= n; j++)
        one[j] = two[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            int least = one[j - 1] + (a[i - 1] != b[j - 1]);
            least = one[j] + 1 < least ? one[j] + 1 : least;
            least = now[j - 1] + 1 < least ? now[j - 1] + 1 : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < least)
                least = two[j - 2] + 1;
            now[j] = least;
        }
        int *spare = two;
        two = one;
        one = now;
        now = spare;
    }
    return one[n];
}

const char *cli_nearest(char *buffer, size_t size, const char *typed, const char *words)
{
    char word[64];
    int best = (int)strlen(typed) / 3 + 2; /* strictly nearer than this */
    const char *found = NULL;
    for (const char *w = words; *w; w += strspn(w, "|")) {
        size_t length = strcspn(w, "|");
        if (length < sizeof word) {
            memcpy(word, w, length);
            word[length] = '\0';
            int d = distance(typed, word);
            if (strlen(typed) >= 3 && !strncmp(word, typed, strlen(typed)))
                d = 0; /* an unfinished word */
            if (d < best && length < size) {
                best = d;
                memcpy(buffer, word, length + 1);
                found = buffer;
            }
        }
        w += length;
    }
    return found;
}

static int unknown_option(const cli_command *c, const char *typed)
{
    char words[2048] = "", near[64];
    const cli_option *tables[] = {c->options, cli_options_common};
    size_t used = 0;
    for (int t = 0; t < 2; t++)
        for (const cli_option *o = tables[t]; o && o->name; o++)
            if (used + strlen(o->name) + 2 < sizeof words)
                used += (size_t)sprintf(words + used, "%s|", o->name);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed + strspn(typed, "-"), "="), typed + strspn(typed, "-"));
    const char *hint = cli_nearest(near, sizeof near, name, words);
    if (hint)
        return moirai_error(MOIRAI_EUSAGE, "%s: unknown option '%s': did you mean '--%s'?", c->name, typed, hint);
    return moirai_error(MOIRAI_EUSAGE, "%s: unknown option '%s': see 'moirai %s --help'", c->name, typed, c->name);
}

static int check_choice(const cli_option *o, const char *text)
{
    char near[64];
    for (const char *w = o->choices; *w; w += strspn(w, "|")) {
        size_t length = strcspn(w, "|");
        if (strlen(text) == length && !memcmp(w, text, length))
            return 0;
        w += length;
    }
    const char *hint = cli_nearest(near, sizeof near, text, o->choices);
    return moirai_error(MOIRAI_EUSAGE, "--%s '%s': not one of %s%s%s%s", o->name, text, o->choices,
                        hint ? ": did you mean '" : "", hint ? hint : "", hint ? "'?" : "");
}

static int check_number(const cli_option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    double x;
    if (o->kind == CLI_VALUE_COUNT)
        x = (double)strtoll(text, &end, 10);
    else
        x = strtod(text, &end);
    if (!*text || *end || errno || !isfinite(x) || strpbrk(text, " \t\n"))
        return moirai_error(MOIRAI_EUSAGE, "--%s '%s': not a %snumber", o->name, text,
                            o->kind == CLI_VALUE_COUNT ? "whole " : "");
    if (o->least == 0 && o->most == 0) {
        if (x < 0)
            return moirai_error(MOIRAI_EUSAGE, "--%s '%s': must not be negative", o->name, text);
    } else if (x < o->least || x > o->most) {
        return moirai_error(MOIRAI_EUSAGE, "--%s '%s': must be from %g to %g", o->name, text, o->least, o->most);
    }
    return 0;
}

static int add_value(cli_context *cli, const cli_option *o, const char *text)
{
    int rc = 0;
    bool none = o->kind == CLI_VALUE_LIMIT && !strcmp(text, "none");
    if (o->kind == CLI_VALUE_COUNT || o->kind == CLI_VALUE_REAL || (o->kind == CLI_VALUE_LIMIT && !none))
        rc = check_number(o, text);
    else if (o->kind == CLI_VALUE_CHOICE)
        rc = check_choice(o, text);
    else if (o->kind != CLI_VALUE_FLAG && o->kind != CLI_VALUE_TEXT && !*text)
        rc = moirai_error(MOIRAI_EUSAGE, "--%s: the value is empty", o->name);
    if (rc)
        return moirai_error_prefix(rc, "%s", cli->command->name);
    cli->value[cli->n_values].option = o;
    cli->value[cli->n_values++].text = text;
    return 0;
}

/* --formulation paper as --set formulation=paper, where some placer has that parameter. 1: it is none. */
static int parse_setting(cli_context *cli, int argc, char **argv, int *index)
{
    char name[64];
    bool flag = false;
    const char *word = argv[*index] + 2, *value = strchr(word, '=');
    const cli_option *set = find_in(cli->command->options, "set", 3);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (!set || !cli_is_setting(name, &flag))
        return 1;
    if (value)
        value++;
    else if (flag)
        value = "1";
    else if (*index + 1 < argc)
        value = argv[++*index];
    else
        return moirai_error(MOIRAI_EUSAGE, "%s: --%s needs a value", cli->command->name, name);
    char *text = malloc(strlen(name) + strlen(value) + 2);
    if (!text)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    sprintf(text, "%s=%s", name, value);
    cli->made[cli->n_made++] = text;
    return add_value(cli, set, text);
}

/* An option with its value, which may be in the next word; *index moves past that. */
static int parse_option(cli_context *cli, int argc, char **argv, int *index)
{
    const char *word = argv[*index], *value = NULL;
    const cli_option *o;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        o = find_option(cli->command, word + 2, length);
        if (word[2 + length])
            value = word + 2 + length + 1;
    } else {
        o = find_letter(cli->command, word[1]);
        if (word[2])
            value = word + 2;
    }
    if (!o) {
        int rc = word[1] == '-' ? parse_setting(cli, argc, argv, index) : 1;
        return rc == 1 ? unknown_option(cli->command, word) : rc;
    }
    if (o->kind == CLI_VALUE_FLAG) {
        if (value)
            return moirai_error(MOIRAI_EUSAGE, "%s: --%s takes no value", cli->command->name, o->name);
        return add_value(cli, o, NULL);
    }
    if (!value) {
        if (*index + 1 >= argc)
            return moirai_error(MOIRAI_EUSAGE, "%s: --%s needs %s", cli->command->name, o->name, o->argument);
        value = argv[++*index];
    }
    return add_value(cli, o, value);
}

static int check_arguments(const cli_context *cli)
{
    const cli_argument *a = cli->command->arguments;
    int least = 0, most = 0;
    bool endless = false;
    for (; a && a->name; a++) {
        least += !a->optional;
        most++;
        endless |= a->repeated;
    }
    if (cli->n_args < least)
        return moirai_error(MOIRAI_EUSAGE, "%s: %s is missing: see 'moirai %s --help'", cli->command->name,
                            cli->command->arguments[cli->n_args].name, cli->command->name);
    if (cli->n_args > most && !endless)
        return moirai_error(MOIRAI_EUSAGE, "%s: '%s' is one argument too many: see 'moirai %s --help'",
                            cli->command->name, cli->arg[most], cli->command->name);
    return 0;
}

/* On a wrong word the rest is still looked at, so that --json holds wherever it stands; the first complaint stays. */
static int parse_words(cli_context *cli, int argc, char **argv)
{
    bool options = true;
    for (int i = 0; i < argc; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            int rc = parse_option(cli, argc, argv, &i);
            if (rc) {
                for (i++; i < argc; i++)
                    if (!strcmp(argv[i], "--json"))
                        add_value(cli, find_option(cli->command, "json", 4), NULL);
                return rc;
            }
        } else {
            cli->arg[cli->n_args++] = argv[i];
        }
    }
    return 0;
}

int cli_parse(cli_context *cli, const cli_command *command, int argc, char **argv)
{
    *cli = (cli_context){.command = command};
    cli->arg = calloc((size_t)argc + 1, sizeof *cli->arg);
    cli->value = calloc((size_t)argc + 1, sizeof *cli->value);
    cli->made = calloc((size_t)argc + 1, sizeof *cli->made);
    cli->doc = yyjson_mut_doc_new(NULL);
    cli->result = yyjson_mut_obj(cli->doc);
    if (!cli->arg || !cli->value || !cli->made || !cli->result)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    yyjson_mut_doc_set_root(cli->doc, cli->result);
    int rc = parse_words(cli, argc, argv);
    cli->json = cli_has(cli, "json");
    cli->quiet = cli_has(cli, "quiet");
    if (find_in(command->options, "output", 6)) {
        const char *output = cli_text(cli, "output");
        cli->stdout_taken = output && !strcmp(output, "-");
    }
    return rc || cli_has(cli, "help") ? rc : check_arguments(cli);
}

void cli_free(cli_context *cli)
{
    for (int i = 0; i < cli->n_made; i++)
        free(cli->made[i]);
    free(cli->made);
    free(cli->arg);
    free(cli->value);
    yyjson_mut_doc_free(cli->doc);
    *cli = (cli_context){0};
}

int cli_uses(const cli_context *cli, const char *name)
{
    int n = 0;
    for (int i = 0; i < cli->n_values; i++)
        n += !strcmp(cli->value[i].option->name, name);
    return n;
}

const char *cli_use(const cli_context *cli, const char *name, int index)
{
    for (int i = 0; i < cli->n_values; i++)
        if (!strcmp(cli->value[i].option->name, name) && index-- == 0)
            return cli->value[i].text;
    return NULL;
}

bool cli_has(const cli_context *cli, const char *name)
{
    return cli_uses(cli, name) > 0;
}

const char *cli_text(const cli_context *cli, const char *name)
{
    const cli_option *o = find_option(cli->command, name, strlen(name));
    assert(o && "option is not in the command's table");
    int n = cli_uses(cli, name);
    return n ? cli_use(cli, name, n - 1) : o->standard;
}

double cli_real(const cli_context *cli, const char *name)
{
    const char *text = cli_text(cli, name);
    return text ? strtod(text, NULL) : 0;
}

int64_t cli_count(const cli_context *cli, const char *name)
{
    const char *text = cli_text(cli, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

const char *cli_arg(const cli_context *cli, int index)
{
    return index < cli->n_args ? cli->arg[index] : NULL;
}
