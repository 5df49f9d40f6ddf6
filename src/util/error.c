#include <moirai/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

#define MESSAGE_SIZE 1024

static _Thread_local char message[MESSAGE_SIZE];

static void one_line(char *text)
{
    for (char *c = text; (c = strpbrk(c, "\n\r"));)
        *c = ' ';
    util_clean(text); /* names in files may hold what steers a terminal */
}

const char *moirai_error_message(void)
{
    return message;
}

int moirai_error(int rc, const char *format, ...)
{
    /* Arguments may point into the old message: format into a second buffer first. */
    char text[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    one_line(text);
    memcpy(message, text, sizeof message);
    return rc;
}

int moirai_error_prefix(int rc, const char *format, ...)
{
    char prefix[MESSAGE_SIZE], text[2 * MESSAGE_SIZE + 2];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", prefix, message);
    one_line(text);
    memcpy(message, text, sizeof message - 1);
    message[sizeof message - 1] = '\0';
    return rc;
}

const char *moirai_version(void)
{
    return MOIRAI_VERSION;
}
