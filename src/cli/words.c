/* The words that the library knows for a kind of value: for completion and for suggestions. */
#include "cli/cli.h"

#include <string.h>

static void add(char *buffer, size_t size, const char *word)
{
    size_t used = strlen(buffer);
    if (used + strlen(word) + 2 < size)
        snprintf(buffer + used, size - used, "%s%s", used ? " " : "", word);
}

const char *moirai_help_words(char *buffer, size_t size, moirai_value_kind kind, const char *choices)
{
    buffer[0] = '\0';
    if (choices) {
        snprintf(buffer, size, "%s", choices);
        for (char *c = buffer; *c; c++)
            if (*c == '|')
                *c = ' ';
    }
    if (kind == MOIRAI_VALUE_COMMAND)
        for (int i = 0; i < moirai_command_count(); i++)
            add(buffer, size, moirai_command_at(i)->name);
    return buffer;
}
