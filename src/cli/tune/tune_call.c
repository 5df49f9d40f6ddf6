/* What the steps of `moirai tune` share: the commands that a user would type, called in this process with the same words.
 * What they find out is read from the object that --json would print, so that a step means exactly what its command
 * means and can be repeated by hand. */
#include <yyjson.h>

#include "cli/tune/tune_call.h"

#include "util/json.h"
#include "util/util.h"

void tune_say(tune_words *w, const char *word)
{
    if (word && w->n < TUNE_MOST_WORDS)
        w->word[w->n++] = word;
}

void tune_say_option(tune_words *w, const char *option, const char *value)
{
    if (!value)
        return;
    tune_say(w, option);
    tune_say(w, value);
}

void tune_hand_on(tune_words *w, const cli_context *cli, const char *name, const char *option)
{
    for (int i = 0; i < cli_uses(cli, name); i++)
        tune_say_option(w, option, cli_use(cli, name, i));
}

int tune_parse(cli_context *sub, const tune *t, const cli_command *command, tune_words *w, bool quiet)
{
    int rc = cli_parse(sub, command, UTIL_MIN(w->n, TUNE_MOST_WORDS - 1), (char **)w->word);
    sub->json = true;
    sub->quiet = quiet || t->cli->quiet;
    if (w->n >= TUNE_MOST_WORDS)
        return moirai_error(MOIRAI_EUSAGE, "tune: too many arguments for '%s'", command->name);
    return rc;
}

int tune_call(cli_context *sub, const tune *t, const cli_command *command, tune_words *w, bool quiet)
{
    int rc = tune_parse(sub, t, command, w, quiet);
    return rc ? rc : command->run(sub);
}

int64_t tune_result(const cli_context *sub, const char *key)
{
    yyjson_mut_val *value = yyjson_mut_obj_get(sub->result, key);
    return value ? yyjson_mut_get_sint(value) : MOIRAI_UNKNOWN;
}
