/* A growing text, and the escapes of the formats that are written with it. A name may hold anything that JSON can: each
 * function here lets none of it end the place where it stands. */
#include "report/report.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/util.h"

void report_put_bytes(report_text *t, const char *data, size_t length)
{
    if (t->failed || util_grow(&t->data, &t->capacity, t->length + length + 1, 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->data + t->length, data, length);
    t->length += length;
}

void report_put(report_text *t, const char *format, ...)
{
    char buffer[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof buffer) {
        report_put_bytes(t, buffer, (size_t)n);
    } else if (n < 0 || t->failed || util_grow(&t->data, &t->capacity, t->length + (size_t)n + 1, 1)) {
        t->failed = true;
    } else {
        vsnprintf(t->data + t->length, (size_t)n + 1, format, again);
        t->length += (size_t)n;
    }
    va_end(again);
}

/* The character at *text as it is, or U+FFFD for a byte that is none; *text moves past it. */
static void put_character(report_text *t, const char **text)
{
    size_t n = util_utf8_length((const unsigned char *)*text);
    report_put_bytes(t, n ? *text : "\xef\xbf\xbd", n ? n : 3);
    *text += n ? n : 1;
}

/* XML has no way to write most control characters, not even escaped. */
void report_put_xml(report_text *t, const char *text)
{
    while (*text) {
        unsigned char c = (unsigned char)*text;
        const char *entity = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
        if (entity)
            report_put(t, "%s", entity);
        else if (c == '\'' || c == '\t' || c == '\n' || c == '\r')
            report_put(t, "&#%d;", c);
        else if (c < 0x20 || c == 0x7f)
            report_put(t, "\xef\xbf\xbd");
        else {
            put_character(t, &text);
            continue;
        }
        text++;
    }
}

/* A backslash would start one of dot's own escapes (\N is the node's name), an ampersand an entity. */
void report_put_dot(report_text *t, const char *text)
{
    while (*text) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            report_put(t, "\\%c", c);
        else if (c == '&')
            report_put(t, "&amp;");
        else if (c < 0x20 || c == 0x7f)
            report_put(t, " ");
        else {
            put_character(t, &text);
            continue;
        }
        text++;
    }
}

/* RFC 4180: a field with a quote, a comma or a line break stands in quotes, quotes in it are doubled. An apostrophe stands
 * before what a spreadsheet would compute. */
void report_put_csv(report_text *t, const char *text)
{
    bool quoted = strpbrk(text, "\",\r\n") != NULL;
    report_put(t, quoted ? "\"" : "");
    report_put(t, util_is_formula(text) ? "'" : "");
    while (*text) {
        if (*text == '"')
            report_put(t, "\"");
        put_character(t, &text);
    }
    report_put(t, quoted ? "\"" : "");
}

void report_put_json(report_text *t, const char *text)
{
    util_writer w;
    size_t length;
    util_writer_init(&w);
    util_writer_string(&w, text);
    char *json = util_writer_take(&w, &length);
    if (!json) {
        t->failed = true;
        return;
    }
    for (size_t i = 0, done = 0; i < length; i++) { /* the last byte is the writer's line break */
        if (i + 1 < length && !strchr("<>&", json[i]))
            continue;
        report_put_bytes(t, json + done, i - done);
        if (i + 1 < length)
            report_put(t, "\\u%04x", (unsigned)json[i]);
        done = i + 1;
    }
    free(json);
}

int report_take(char **out, size_t *length, report_text *t)
{
    report_put_bytes(t, "", 0); /* an empty text, too, has its NUL */
    if (t->failed) {
        free(t->data);
        *t = (report_text){0};
        *out = NULL;
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    }
    t->data[t->length] = '\0';
    *out = t->data;
    if (length)
        *length = t->length;
    *t = (report_text){0};
    return 0;
}

const char *report_short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

/* Conv, MatMul, Gemm and Attention take the time of what is fused around them. */
static const char *heaviest(const char *types, int *length)
{
    static const char *const heavy[] = {"Conv", "MatMul", "Gemm", "Attention"};
    for (const char *at = types; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL)
        for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
            if (!strncmp(at, heavy[i], strlen(heavy[i]))) {
                *length = (int)strcspn(at, "+");
                return at;
            }
    *length = (int)strcspn(types, "+");
    return types;
}

const char *report_label(char *text, size_t size, const moirai_analysis *a, int32_t task)
{
    const char *name = moirai_task_name(a, task), *brief = report_short_name(name);
    const char *type = report_is_transfer(a, task) ? "" : a->problem->op_type[task], *last = strrchr(type, '+');
    int length = 0;
    if (!last || strcasecmp(last + 1, brief))
        return brief;
    const char *heavy = heaviest(type, &length), *part = brief > name ? brief - 1 : name;
    while (part > name && part[-1] != '/')
        part--;
    int n = snprintf(text, size, "%.*s%.*s", (int)(brief - part), part, length, heavy);
    if (n < length || n >= (int)size)
        return brief;
    for (char *c = text + n - length; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return text;
}
