/* JSON for the readers and writers of the four file formats: typed getters over yyjson whose errors name the
 * file, the object, the key and the value; and a small streaming writer. Private to the library and the command. */
#ifndef MOIRAI_UTIL_JSON_H
#define MOIRAI_UTIL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>
#include <moirai/error.h>

/* ---- reading ---- */

/* Where we are in a file, for messages: "cluster.json: device 'B': ...". */
typedef struct moirai_json_at {
    const char *label; /* the file */
    const char *kind;  /* "op", "device", ...; NULL at the top of the file */
    const char *name;  /* of the object; NULL while unknown: then "op 3" by its index */
    size_t index;
} moirai_json_at;

/* Parse and check "format" and "version" 1. Numbers that int64 or double can't hold stay text, so nothing is
 * rounded silently. Syntax errors say line and column. Free *out with yyjson_doc_free. */
int moirai_json_open(yyjson_doc **out, const char *json, size_t length, const char *label, const char *format);
/* Any JSON file, without that check. */
int moirai_json_parse(yyjson_doc **out, const char *json, size_t length, const char *label);

/* MOIRAI_EINPUT with "label: kind 'name': " before the message. */
int moirai_json_fail(const moirai_json_at *at, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* Put "label: " before the current message unless it is there already: for errors that come from below, where the
 * file is not known. */
int moirai_json_label(int result, const char *label);
/* A value in a few characters for a message: numbers and strings as written (long ones cut), "an array", ... */
const char *moirai_json_show(char buffer[80], yyjson_val *value);

/* Fails unless `value` is an object without repeated keys. */
int moirai_json_object(const moirai_json_at *at, yyjson_val *value);

/* Getters by key. A key that is missing, or null, is an error if `required`; otherwise *out keeps what it had. */
int moirai_json_array(yyjson_val **out, const moirai_json_at *at, yyjson_val *object, const char *key, bool required);
/* Never empty when required, never with a NUL inside. `length` may be NULL. */
int moirai_json_string(const char **out, size_t *length, const moirai_json_at *at, yyjson_val *object, const char *key,
                       bool required);
int moirai_json_int64(int64_t *out, const moirai_json_at *at, yyjson_val *object, const char *key, bool required,
                      int64_t least);
int moirai_json_real(double *out, const moirai_json_at *at, yyjson_val *object, const char *key, bool required);
int moirai_json_bool(bool *out, const moirai_json_at *at, yyjson_val *object, const char *key, bool required);

/* Of a value that is already at hand; `key` only names it in messages. */
int moirai_json_value_int64(int64_t *out, const moirai_json_at *at, yyjson_val *value, const char *key, int64_t least);
int moirai_json_value_string(const char **out, size_t *length, const moirai_json_at *at, yyjson_val *value,
                             const char *key);

/* Length of the valid UTF-8 sequence at `s`, 0 if there is none. A NUL ends strings, so no read passes it. */
size_t moirai_utf8_length(const unsigned char *s);

/* ---- writing ----
 * Commas come by themselves; an error (out of memory) is remembered and reported by save or take. The same calls
 * give the same bytes on every machine. */
typedef struct moirai_writer {
    char *data;
    size_t length, capacity;
    int depth;
    bool first;      /* nothing written yet in the innermost object or array */
    bool after_key;
    bool broken;     /* the next item starts on a line of its own */
    bool failed;
} moirai_writer;

void moirai_writer_init(moirai_writer *w);
/* The same for a file of ours: opens its object with "format" and "version" 1, which moirai_json_open looks for. */
void moirai_writer_begin(moirai_writer *w, const char *format);
void moirai_writer_free(moirai_writer *w);
void moirai_writer_open(moirai_writer *w, char bracket); /* '{' or '[' */
void moirai_writer_close(moirai_writer *w, char bracket); /* '}' or ']' */
void moirai_writer_key(moirai_writer *w, const char *key);
void moirai_writer_string(moirai_writer *w, const char *text); /* NULL: null. Invalid UTF-8 becomes U+FFFD */
void moirai_writer_int(moirai_writer *w, int64_t value);
void moirai_writer_uint(moirai_writer *w, uint64_t value);
void moirai_writer_real(moirai_writer *w, double value); /* shortest text that reads back equal; null if not finite */
void moirai_writer_bool(moirai_writer *w, bool value);
void moirai_writer_null(moirai_writer *w);
/* The next item (or closing bracket) starts on a new line, indented by one space per level. */
void moirai_writer_break(moirai_writer *w);
/* `"key": value` in one call. */
void moirai_writer_pair_string(moirai_writer *w, const char *key, const char *text);
void moirai_writer_pair_int(moirai_writer *w, const char *key, int64_t value);
void moirai_writer_pair_open(moirai_writer *w, const char *key, char bracket);

/* Ends the last line, writes the file atomically and frees the writer in every case. */
int moirai_writer_save(moirai_writer *w, const char *path);
/* Hands over the text (free() it) and empties the writer; NULL and a message if memory ran out. */
char *moirai_writer_take(moirai_writer *w, size_t *length);

#endif
