/* Other commands, called in this process as if they were typed. */
#ifndef MOIRAI_CLI_TUNE_TUNE_CALL_H
#define MOIRAI_CLI_TUNE_TUNE_CALL_H

#include "cli/tune/tune.h"

enum { TUNE_MOST_WORDS = 2048 };
typedef struct tune_words {
    const char *word[TUNE_MOST_WORDS]; /* not owned */
    int n;
} tune_words;

/* The words of `moirai run` that say what is run where (tune_run.c). */
void tune_say_run(tune_words *w, const tune *t, const tune_case *x);
/* One more word; NULL: none. */
void tune_say(tune_words *w, const char *word);
/* An option and its value; NULL: neither. */
void tune_say_option(tune_words *w, const char *option, const char *value);
/* An option that tune has, too, as it was typed, as often as it was. */
void tune_hand_on(tune_words *w, const cli_context *cli, const char *name, const char *option);
/* Parses the words into `sub`, to be freed with cli_free also after a failure. */
int tune_parse(cli_context *sub, const tune *t, const cli_command *command, tune_words *w, bool quiet);
/* The same, and runs the command. Its result is in `sub` until cli_free; `quiet`: the story is left out, too. */
int tune_call(cli_context *sub, const tune *t, const cli_command *command, tune_words *w, bool quiet);
/* A number of that result, or MOIRAI_UNKNOWN. */
int64_t tune_result(const cli_context *sub, const char *key);

#endif
