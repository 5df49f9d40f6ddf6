/* The command's framework: one table per command gives parsing, help, the man page and completion.
 *
 * A command is one file cmd_<name>.c with one `moirai_command`, and one line in main.c. Its run function
 * returns 0 or a negative moirai_result; main prints the message and turns the result into the exit code.
 * stdout is the result, stderr the story. */
#ifndef MOIRAI_CLI_H
#define MOIRAI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yyjson.h>
#include <moirai/error.h>

#include "util/text.h" /* numbers for people */

/* What a value must look like (checked while parsing) and how the shell completes it. */
typedef enum moirai_value_kind {
    MOIRAI_VALUE_FLAG, /* no value */
    MOIRAI_VALUE_TEXT,
    MOIRAI_VALUE_COUNT, /* whole number in [least, most] */
    MOIRAI_VALUE_REAL,  /* number in [least, most] */
    MOIRAI_VALUE_CHOICE,
    MOIRAI_VALUE_FILE,
    MOIRAI_VALUE_FOLDER,
    MOIRAI_VALUE_COMMAND,
    MOIRAI_VALUE_CLUSTER, /* a built-in cluster or a file */
    MOIRAI_VALUE_NETWORK, /* a network of the zoo or a file */
    MOIRAI_VALUE_PLACER,
    MOIRAI_VALUE_COST,
    MOIRAI_VALUE_RULES /* a shipped rule set or a file */
} moirai_value_kind;

typedef struct moirai_option {
    const char *name;     /* "time-limit": long name without dashes; NULL ends the table */
    char letter;          /* 'o', or 0 */
    const char *argument; /* "SECONDS"; NULL for a flag */
    const char *help;     /* one sentence, lower case, no full stop */
    const char *standard; /* the default as the user would type it, or NULL */
    moirai_value_kind kind;
    const char *choices; /* MOIRAI_VALUE_CHOICE: "edge|tensor" */
    double least, most;  /* MOIRAI_VALUE_COUNT and _REAL; both 0: not limited but non-negative */
    bool repeated;       /* every use counts; otherwise the last one wins */
} moirai_option;

typedef struct moirai_argument {
    const char *name; /* "PROBLEM"; NULL ends the table */
    moirai_value_kind kind;
    const char *help;
    bool optional, repeated; /* only at the end of the table */
} moirai_argument;

typedef struct moirai_example {
    const char *line; /* "moirai zoo list"; NULL ends the table */
    const char *what; /* what it does, one sentence */
} moirai_example;

typedef struct moirai_cli moirai_cli;

typedef struct moirai_command {
    const char *name;
    const char *summary; /* one line, lower case, no full stop */
    const char *text;    /* paragraphs, separated by an empty line; or NULL */
    const moirai_argument *arguments; /* or NULL */
    const moirai_option *options;     /* its own; the common ones are added to every command. Or NULL */
    const moirai_example *examples;   /* or NULL */
    int (*run)(moirai_cli *cli);
} moirai_command;

/* For the tables of commands that write a file. */
#define MOIRAI_OPTION_FORCE \
    {.name = "force", .letter = 'f', .help = "replace files that exist", .kind = MOIRAI_VALUE_FLAG}
#define MOIRAI_OPTION_OUTPUT(what) \
    {.name = "output", .letter = 'o', .argument = "FILE", .help = what, .kind = MOIRAI_VALUE_FILE}, MOIRAI_OPTION_FORCE

struct moirai_cli {
    const moirai_command *command;
    int n_args;
    const char **arg; /* positional arguments */
    int n_values;
    struct moirai_cli_value {
        const moirai_option *option;
        const char *text; /* NULL for a flag */
    } *value;
    char **made; /* values put together while parsing, owned */
    int n_made;
    bool json, quiet;
    bool stdout_taken; /* `-o -`: the file itself is the result, text goes to stderr */
    yyjson_mut_doc *doc;
    yyjson_mut_val *result; /* the object that --json prints; fill it whether or not --json was given */
};

/* ---- what was typed ---- `name` must be in the command's table. */
bool moirai_cli_has(const moirai_cli *cli, const char *name);
const char *moirai_cli_text(const moirai_cli *cli, const char *name); /* last value, default, or NULL */
double moirai_cli_real(const moirai_cli *cli, const char *name);      /* 0 where not given and no default */
int64_t moirai_cli_count(const moirai_cli *cli, const char *name);
/* Repeated options: how many, and the i-th. */
int moirai_cli_uses(const moirai_cli *cli, const char *name);
const char *moirai_cli_use(const moirai_cli *cli, const char *name, int index);
/* The positional argument or NULL. */
const char *moirai_cli_arg(const moirai_cli *cli, int index);

/* ---- what is said ---- */
/* The result as text: stdout; nothing with --json; stderr while `-o -` owns stdout. */
void moirai_cli_print(const moirai_cli *cli, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* The story: stderr, silent with --quiet. */
void moirai_cli_say(const moirai_cli *cli, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* May `path` be written? Call for every output before the work begins: an existing file without --force, a missing or
 * read-only folder fail here. NULL and "-" are fine. */
int moirai_cli_writable(const moirai_cli *cli, const char *path);

/* ---- framework ---- */
extern const moirai_option moirai_options_common[];
int moirai_command_count(void);
const moirai_command *moirai_command_at(int index);
const moirai_command *moirai_command_find(const char *name);

/* Parse argv after the command's name. MOIRAI_EUSAGE with a message, or 0. */
int moirai_cli_parse(moirai_cli *cli, const moirai_command *command, int argc, char **argv);
void moirai_cli_free(moirai_cli *cli);
/* The nearest of the '|'-separated `words` to `typed`, or NULL if none is near. */
const char *moirai_cli_nearest(char *buffer, size_t size, const char *typed, const char *words);
/* "did you mean 'x'?" with the nearest known word of this kind, else `otherwise`. */
moirai_text moirai_cli_hint(const char *typed, moirai_value_kind kind, const char *otherwise);
/* Is `name` a parameter of some placer? Then --name VALUE stands for --set name=VALUE; *flag: VALUE may be left out. */
bool moirai_cli_is_setting(const char *name, bool *flag);

void moirai_help_overview(FILE *out);
void moirai_help_command(FILE *out, const moirai_command *command);
void moirai_help_man(FILE *out);
void moirai_help_bash(FILE *out);
void moirai_help_markdown(FILE *out);
/* The synopsis after the command's name: " PROBLEM PLAN [options]". */
void moirai_help_synopsis(FILE *out, const moirai_command *command);
/* "--time-limit SECONDS", "-o, --output FILE" */
moirai_text moirai_help_flags(const moirai_option *option);
/* Words that complete a value, separated by '|', into `buffer`; "" if there are none. */
const char *moirai_help_words(char *buffer, size_t size, moirai_value_kind kind, const char *choices);

/* Non-zero after Ctrl-C; a second Ctrl-C ends the process as usual. */
const volatile int *moirai_cli_interrupt(void);

#endif
