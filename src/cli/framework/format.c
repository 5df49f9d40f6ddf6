/* printf in which text from files can do no harm: names of operators, devices and files may hold line breaks and escape
 * sequences, which would break a table apart or steer the terminal. Every %s is printed with what steers a terminal as '?' (util/text.h);
 * those of the format itself stay. Knows what our formats use: flags, width and precision (also '*'), and the
 * conversions d i u x s c f e g with h l ll z. */
#include "cli/framework/cli.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

typedef struct spec {
    char text[64]; /* "%-*.3ld" with the stars filled in */
    char length[3];
    char conversion;
} spec;

/* Reads one conversion after its '%'; returns what follows it. */
static const char *read_spec(spec *s, const char *at, va_list *args)
{
    size_t used = 1, n = 0;
    s->text[0] = '%';
    for (; *at && strchr("-+ #0123456789.*", *at); at++) {
        if (used + 16 >= sizeof s->text)
            continue;
        if (*at == '*')
            used += (size_t)snprintf(s->text + used, sizeof s->text - used, "%d", va_arg(*args, int));
        else
            s->text[used++] = *at;
    }
    for (; *at && strchr("hlz", *at); at++)
        if (n < 2) {
            s->length[n++] = *at;
            s->text[used++] = *at;
        }
    s->length[n] = '\0';
    s->conversion = *at;
    s->text[used++] = *at;
    s->text[used] = '\0';
    return *at ? at + 1 : at;
}

static void put_text(FILE *out, const char *format, const char *text)
{
    const char *dot = strrchr(format, '.');
    /* A precision may be all that ends the text. */
    size_t most = dot ? (size_t)strtoul(dot + 1, NULL, 10) : SIZE_MAX;
    char *copy = text ? strndup(text, most) : NULL;
    if (copy)
        util_clean(copy);
    fprintf(out, format, copy ? copy : "?");
    free(copy);
}

static void put_number(FILE *out, const spec *s, va_list *args)
{
    bool real = strchr("feg", s->conversion) != NULL;
    if (real)
        fprintf(out, s->text, va_arg(*args, double));
    else if (!strcmp(s->length, "ll"))
        fprintf(out, s->text, va_arg(*args, long long));
    else if (!strcmp(s->length, "l"))
        fprintf(out, s->text, va_arg(*args, long));
    else if (!strcmp(s->length, "z"))
        fprintf(out, s->text, va_arg(*args, size_t));
    else
        fprintf(out, s->text, va_arg(*args, int));
}

void cli_vprint(FILE *out, const char *format, va_list given)
{
    va_list args;
    va_copy(args, given);
    while (*format) {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, out);
        format += plain;
        if (!*format)
            break;
        spec s;
        format = read_spec(&s, format + 1, &args);
        if (s.conversion == '%')
            fputc('%', out);
        else if (s.conversion == 's')
            put_text(out, s.text, va_arg(args, const char *));
        else
            put_number(out, &s, &args);
    }
    va_end(args);
}
