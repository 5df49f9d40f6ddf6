/* Writing: text appended to one buffer. Readable by line (the caller breaks lines, one operator on each), compact
 * within a line, and the same bytes for the same calls. */
#include "util/json.h"
#include "util/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

void util_writer_init(util_writer *w)
{
    memset(w, 0, sizeof *w);
    w->first = true;
}

void util_writer_free(util_writer *w)
{
    free(w->data);
    util_writer_init(w);
}

static bool reserve(util_writer *w, size_t more)
{
    if (!w->failed && (more > SIZE_MAX - w->length || util_grow(&w->data, &w->capacity, w->length + more, 1)))
        w->failed = true;
    return !w->failed;
}

static void append(util_writer *w, const char *text, size_t length)
{
    if (!reserve(w, length))
        return;
    memcpy(w->data + w->length, text, length);
    w->length += length;
}

static void new_line(util_writer *w)
{
    append(w, "\n", 1);
    for (int i = 0; i < w->depth; i++)
        append(w, " ", 1);
    w->broken = false;
}

/* What must stand between the previous item and the next. */
static void separate(util_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (!w->first)
        append(w, ",", 1);
    if (w->broken)
        new_line(w);
    else if (!w->first)
        append(w, " ", 1);
    w->first = false;
}

void util_writer_open(util_writer *w, char bracket)
{
    separate(w);
    append(w, &bracket, 1);
    w->depth++;
    w->first = true;
}

void util_writer_close(util_writer *w, char bracket)
{
    w->depth--;
    if (w->broken)
        new_line(w);
    append(w, &bracket, 1);
    w->first = false;
}

static void escape(util_writer *w, uint32_t c)
{
    static const char letters[] = "\b"
                                  "b"
                                  "\f"
                                  "f"
                                  "\n"
                                  "n"
                                  "\r"
                                  "r"
                                  "\t"
                                  "t"
                                  "\"\""
                                  "\\\\";
    for (const char *l = letters; *l; l += 2) {
        if ((unsigned char)*l == c) {
            char pair[2] = {'\\', l[1]};
            append(w, pair, 2);
            return;
        }
    }
    char code[8];
    append(w, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)c & 0xffff));
}

static void append_quoted(util_writer *w, const char *text)
{
    append(w, "\"", 1);
    const unsigned char *start = (const unsigned char *)text, *s = start;
    while (*s) {
        size_t n = util_utf8_length(s);
        uint32_t code = util_utf8_code(s, n);
        if (n && *s != '"' && *s != '\\' && !util_steers(code)) {
            s += n;
            continue;
        }
        append(w, (const char *)start, (size_t)(s - start));
        if (n)
            escape(w, code);
        else
            append(w, "\xef\xbf\xbd", 3);
        start = s += n ? n : 1;
    }
    append(w, (const char *)start, (size_t)(s - start));
    append(w, "\"", 1);
}

void util_writer_key(util_writer *w, const char *key)
{
    separate(w);
    append_quoted(w, key);
    append(w, ": ", 2);
    w->after_key = true;
}

void util_writer_string(util_writer *w, const char *text)
{
    if (!text) {
        util_writer_null(w);
        return;
    }
    separate(w);
    append_quoted(w, text);
}

static void append_digits(util_writer *w, uint64_t value, bool negative)
{
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    if (negative)
        *--at = '-';
    append(w, at, (size_t)(digits + sizeof digits - at));
}

void util_writer_int(util_writer *w, int64_t value)
{
    separate(w);
    append_digits(w, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void util_writer_uint(util_writer *w, uint64_t value)
{
    separate(w);
    append_digits(w, value, false);
}

void util_writer_real(util_writer *w, double value)
{
    if (!isfinite(value)) {
        util_writer_null(w);
        return;
    }
    char text[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (!strpbrk(text, ".,e"))
        strcat(text, ".0"); /* keeps its kind when read back */
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.'; /* some locales */
    separate(w);
    append(w, text, strlen(text));
}

void util_writer_bool(util_writer *w, bool value)
{
    separate(w);
    append(w, value ? "true" : "false", value ? 4 : 5);
}

void util_writer_null(util_writer *w)
{
    separate(w);
    append(w, "null", 4);
}

void util_writer_break(util_writer *w)
{
    w->broken = true;
}

void util_writer_pair_string(util_writer *w, const char *key, const char *text)
{
    util_writer_key(w, key);
    util_writer_string(w, text);
}

void util_writer_pair_int(util_writer *w, const char *key, int64_t value)
{
    util_writer_key(w, key);
    util_writer_int(w, value);
}

void util_writer_pair_open(util_writer *w, const char *key, char bracket)
{
    util_writer_key(w, key);
    util_writer_open(w, bracket);
}

void util_writer_pair_ints(util_writer *w, const char *key, const int32_t *value, int64_t n)
{
    util_writer_pair_open(w, key, '[');
    for (int64_t i = 0; i < n; i++)
        util_writer_int(w, value[i]);
    util_writer_close(w, ']');
}

void util_writer_pair_longs(util_writer *w, const char *key, const int64_t *value, int64_t n)
{
    util_writer_pair_open(w, key, '[');
    for (int64_t i = 0; i < n; i++)
        util_writer_int(w, value[i]);
    util_writer_close(w, ']');
}

void util_writer_begin(util_writer *w, const char *format)
{
    util_writer_init(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "format", format);
    util_writer_pair_int(w, "version", 1);
}

int util_writer_save(util_writer *w, const char *path)
{
    append(w, "\n", 1);
    int rc = w->failed ? MOIRAI_EFAIL : util_file_write(path, w->data, w->length);
    util_writer_free(w);
    return rc;
}

char *util_writer_take(util_writer *w, size_t *length)
{
    append(w, "\n", 2); /* with its NUL */
    if (w->failed) {
        util_writer_free(w);
        return NULL;
    }
    char *text = w->data;
    if (length)
        *length = w->length - 1;
    w->data = NULL;
    util_writer_free(w);
    return text;
}

int util_json_save(const yyjson_mut_doc *doc, const char *path)
{
    size_t length = 0;
    char *text = yyjson_mut_write(doc, 0, &length);
    int rc = text ? util_file_write(path, text, length) : moirai_error(MOIRAI_EFAIL, "out of memory for %s", path);
    free(text);
    return rc;
}
