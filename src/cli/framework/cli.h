/* The command's framework: one table per command gives parsing, help, the man page and completion.
 *
 * A command is one file cmd_<name>.c with one `cli_command`, and one line in main.c. Its run function
 * returns 0 or a negative moirai_result; main prints the message and turns the result into the exit code.
 * stdout is the result, stderr the story. */
#ifndef MOIRAI_CLI_FRAMEWORK_CLI_H
#define MOIRAI_CLI_FRAMEWORK_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <moirai/budget.h>

#include "util/json.h"
#include "util/text.h"

/* Numbers for people, under the command's own names. */
#define cli_human util_human
#define cli_human_ns util_human_ns
#define cli_human_bytes util_human_bytes
#define cli_human_rate util_human_rate
#define cli_human_count util_human_count
#define cli_human_flops util_human_flops
#define cli_human_gap util_human_gap

/* What a value must look like (checked while parsing) and how the shell completes it. */
typedef enum cli_value_kind {
    CLI_VALUE_FLAG, /* no value */
    CLI_VALUE_TEXT,
    CLI_VALUE_COUNT, /* whole number in [least, most] */
    CLI_VALUE_REAL,  /* number in [least, most] */
    CLI_VALUE_LIMIT, /* the same, or "none", which reads as 0 */
    CLI_VALUE_CHOICE,
    CLI_VALUE_FILE,
    CLI_VALUE_FOLDER,
    CLI_VALUE_COMMAND,
    CLI_VALUE_CLUSTER, /* a built-in cluster or a file */
    CLI_VALUE_NETWORK, /* a network of the zoo or a file */
    CLI_VALUE_PLACER,
    CLI_VALUE_COST,
    CLI_VALUE_RULES /* a shipped rule set or a file */
} cli_value_kind;

typedef struct cli_option {
    const char *name;     /* "time-limit": long name without dashes; NULL ends the table */
    char letter;          /* 'o', or 0 */
    const char *argument; /* "SECONDS"; NULL for a flag */
    const char *help;     /* one sentence, lower case, no full stop */
    const char *standard; /* the default as the user would type it, or NULL */
    cli_value_kind kind;
    const char *choices; /* CLI_VALUE_CHOICE: "edge|tensor" */
    double least, most;  /* CLI_VALUE_COUNT and _REAL; both 0: not limited but non-negative */
    bool repeated;       /* every use counts; otherwise the last one wins */
} cli_option;

typedef struct cli_argument {
    const char *name; /* "PROBLEM"; NULL ends the table */
    cli_value_kind kind;
    const char *help;
    bool optional, repeated; /* only at the end of the table */
} cli_argument;

typedef struct cli_example {
    const char *line; /* "moirai zoo list"; NULL ends the table */
    const char *what; /* what it does, one sentence */
} cli_example;

typedef struct cli_context cli_context;

typedef struct cli_command {
    const char *name;
    const char *summary;           /* one line, lower case, no full stop */
    const char *text;              /* paragraphs, separated by an empty line; or NULL */
    const cli_argument *arguments; /* or NULL */
    const cli_option *options;     /* its own; the common ones are added to every command. Or NULL */
    const cli_example *examples;   /* or NULL */
    int (*run)(cli_context *cli);
} cli_command;

/* For the tables of commands that write a file. */
#define CLI_OPTION_FORCE \
    { \
        .name = "force", .letter = 'f', .help = "replace files that exist", .kind = CLI_VALUE_FLAG \
    }
#define CLI_OPTION_OUTPUT(what) \
    {.name = "output", .letter = 'o', .argument = "FILE", .help = what, .kind = CLI_VALUE_FILE}, CLI_OPTION_FORCE

struct cli_context {
    const cli_command *command;
    int n_args;
    const char **arg; /* positional arguments */
    int n_values;
    struct cli_value {
        const cli_option *option;
        const char *text; /* NULL for a flag */
    } * value;
    char **made; /* values put together while parsing, owned */
    int n_made;
    bool json, quiet;
    double spent_s;    /* of the search's time limit, by steps before it */
    bool stdout_taken; /* `-o -`: the file itself is the result, text goes to stderr */
    yyjson_mut_doc *doc;
    yyjson_mut_val *result; /* the object that --json prints; fill it whether or not --json was given */
};

/* ---- what was typed ---- `name` must be in the command's table. */
bool cli_has(const cli_context *cli, const char *name);
const char *cli_text(const cli_context *cli, const char *name); /* last value, default, or NULL */
double cli_real(const cli_context *cli, const char *name);      /* 0 where not given and no default */
int64_t cli_count(const cli_context *cli, const char *name);
/* Repeated options: how many, and the i-th. */
int cli_uses(const cli_context *cli, const char *name);
const char *cli_use(const cli_context *cli, const char *name, int index);
/* The positional argument or NULL. */
const char *cli_arg(const cli_context *cli, int index);

/* ---- what is said ---- */
/* The result as text: stdout; nothing with --json; stderr while `-o -` owns stdout. */
void cli_print(const cli_context *cli, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* The same to any stream, for text that may come from files: what steers a terminal within %s becomes '?'. */
void cli_vprint(FILE *out, const char *format, va_list args);
/* The story: stderr, silent with --quiet. */
void cli_say(const cli_context *cli, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* May `path` be written? Call for every output before the work begins: an existing file without --force, a missing or
 * read-only folder fail here. NULL and "-" are fine. */
int cli_writable(const cli_context *cli, const char *path);

/* ---- what is going on ---- one line of the terminal, drawn again every second (status.c) */
/* Before anything else; `quiet`: nothing is ever drawn. */
void cli_status_open(bool quiet);
/* Is there a terminal to draw on? */
bool cli_status_terminal(void);
/* "reading model.onnx": shown with its seconds until the next call; "" for nothing. */
void cli_status_set(const char *format, ...) MOIRAI_PRINTF(1, 2);
/* The same, shown at once: news of something that counts. */
void cli_status_now(const char *format, ...) MOIRAI_PRINTF(1, 2);
/* `tick` is asked about every second for the line to show, from another thread, and may write lines of its own after
 * cli_status_clear. NULL ends it: then it runs no more. */
typedef void (*cli_tick_fn)(void *data, char *text, size_t size);
void cli_status_watch(cli_tick_fn tick, void *data);
/* Takes the line away before something else is written; it comes back by itself. */
void cli_status_clear(void);
void cli_status_close(void);

/* ---- framework ---- */
extern const cli_option cli_options_common[];
int cli_command_count(void);
const cli_command *cli_command_at(int index);
const cli_command *cli_command_find(const char *name);

/* Parse argv after the command's name. MOIRAI_EUSAGE with a message, or 0. */
int cli_parse(cli_context *cli, const cli_command *command, int argc, char **argv);
void cli_free(cli_context *cli);
/* The nearest of the '|'-separated `words` to `typed`, or NULL if none is near. */
const char *cli_nearest(char *buffer, size_t size, const char *typed, const char *words);
/* "did you mean 'x'?" with the nearest known word of this kind, else `otherwise`. */
cli_human cli_hint(const char *typed, cli_value_kind kind, const char *otherwise);
/* Is `name` a parameter of some placer? Then --name VALUE stands for --set name=VALUE; *flag: VALUE may be left out. */
bool cli_is_setting(const char *name, bool *flag);

void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const cli_command *command);
void cli_help_man(FILE *out);
void cli_help_bash(FILE *out);
void cli_help_markdown(FILE *out);
/* The synopsis after the command's name: " PROBLEM PLAN [options]". */
void cli_help_synopsis(FILE *out, const cli_command *command);
/* "--time-limit SECONDS", "-o, --output FILE" */
cli_human cli_help_flags(const cli_option *option);
/* Words that complete a value, separated by '|', into `buffer`; "" if there are none. */
const char *cli_help_words(char *buffer, size_t size, cli_value_kind kind, const char *choices);

/* Raised by Ctrl-C, SIGTERM and SIGHUP; a second signal ends the process as usual. */
const moirai_interrupt *cli_interrupt(void);

#endif
