/* JSON for the readers and writers of files: typed getters over yyjson whose errors name the
 * file, the object, the key and the value; and a small streaming writer. Private to the library and the command. */
#ifndef MOIRAI_UTIL_JSON_H
#define MOIRAI_UTIL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

#include "util/text.h"

/* As <yyjson.h> has them, for those who only pass them on: reading its eight thousand lines took as long as compiling a small file. */
typedef struct yyjson_doc yyjson_doc;
typedef struct yyjson_val yyjson_val;
typedef struct yyjson_mut_doc yyjson_mut_doc;
typedef struct yyjson_mut_val yyjson_mut_val;

/* ---- reading ---- */

/* Where we are in a file, for messages: "cluster.json: device 'B': ...". */
typedef struct util_json_at {
    const char *label; /* the file */
    const char *kind;  /* "op", "device", ...; NULL at the top of the file */
    const char *name;  /* of the object; NULL while unknown: then "op 3" by its index */
    size_t index;
} util_json_at;

/* Parse and check "format" and "version" 1. Numbers that int64 or double can't hold stay text, so nothing is
 * rounded silently. Syntax errors say line and column. A key twice in an object, anywhere, is an error. Free *out with yyjson_doc_free. */
int util_json_open(yyjson_doc **out, const char *json, size_t length, const char *label, const char *format);
/* The same of a file, whose path is the label; *out is NULL on failure. */
int util_json_read(yyjson_doc **out, const char *path, const char *format);
/* Any JSON file, without that check. */
int util_json_parse(yyjson_doc **out, const char *json, size_t length, const char *label);

/* A document that was changed, as a file. */
int util_json_save(const yyjson_mut_doc *doc, const char *path);

/* MOIRAI_EINPUT with "label: kind 'name': " before the message. */
int util_json_fail(const util_json_at *at, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* Put "label: " before the current message unless it is there already: for errors that come from below, where the
 * file is not known. */
int util_json_label(int rc, const char *label);
/* A value in a few characters for a message: numbers and strings as written (long ones cut), "an array", ... */
const char *util_json_show(char buffer[80], yyjson_val *value);

/* Fails unless `value` is an object. */
int util_json_object(const util_json_at *at, yyjson_val *value);

/* Getters by key. A key that is missing, or null, is an error if `required`; otherwise *out keeps what it had. */
int util_json_array(yyjson_val **out, const util_json_at *at, yyjson_val *object, const char *key, bool required);
/* Never empty when required, never with a NUL inside. `length` may be NULL. */
int util_json_string(const char **out, size_t *length, const util_json_at *at, yyjson_val *object, const char *key,
                     bool required);
int util_json_int64(int64_t *out, const util_json_at *at, yyjson_val *object, const char *key, bool required,
                    int64_t least);
int util_json_real(double *out, const util_json_at *at, yyjson_val *object, const char *key, bool required);
int util_json_bool(bool *out, const util_json_at *at, yyjson_val *object, const char *key, bool required);

/* Of a value that is already at hand; `key` only names it in messages. */
int util_json_value_int64(int64_t *out, const util_json_at *at, yyjson_val *value, const char *key, int64_t least);
int util_json_value_string(const char **out, size_t *length, const util_json_at *at, yyjson_val *value,
                           const char *key);

/* ---- writing ----
 * Commas come by themselves; an error (out of memory) is remembered and reported by save or take. The same calls
 * give the same bytes on every machine. */
typedef struct util_writer {
    char *data;
    size_t length, capacity;
    int depth;
    bool first; /* nothing written yet in the innermost object or array */
    bool after_key;
    bool broken; /* the next item starts on a line of its own */
    bool failed;
} util_writer;

void util_writer_init(util_writer *w);
/* The same for a file of ours: opens its object with "format" and "version" 1, which util_json_open looks for. */
void util_writer_begin(util_writer *w, const char *format);
void util_writer_free(util_writer *w);
void util_writer_open(util_writer *w, char bracket);  /* '{' or '[' */
void util_writer_close(util_writer *w, char bracket); /* '}' or ']' */
void util_writer_key(util_writer *w, const char *key);
/* NULL: null. Invalid UTF-8 becomes U+FFFD; what steers terminals is escaped. */
void util_writer_string(util_writer *w, const char *text);
void util_writer_int(util_writer *w, int64_t value);
void util_writer_uint(util_writer *w, uint64_t value);
void util_writer_real(util_writer *w, double value); /* shortest text that reads back equal; null if not finite */
void util_writer_bool(util_writer *w, bool value);
void util_writer_null(util_writer *w);
/* The next item (or closing bracket) starts on a new line, indented by one space per level. */
void util_writer_break(util_writer *w);
/* `"key": value` in one call. */
void util_writer_pair_string(util_writer *w, const char *key, const char *text);
void util_writer_pair_int(util_writer *w, const char *key, int64_t value);
void util_writer_pair_open(util_writer *w, const char *key, char bracket);
/* A list of n numbers. */
void util_writer_pair_ints(util_writer *w, const char *key, const int32_t *value, int64_t n);
void util_writer_pair_longs(util_writer *w, const char *key, const int64_t *value, int64_t n);

/* Ends the last line, writes the file atomically and frees the writer in every case. */
int util_writer_save(util_writer *w, const char *path);
/* Hands over the text (free() it) and empties the writer; NULL and a message if memory ran out. */
char *util_writer_take(util_writer *w, size_t *length);

#endif
