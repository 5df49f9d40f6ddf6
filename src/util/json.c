/* Reading: yyjson finds the structure, this file finds the words for what is wrong. */
#include "util/json.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* ---- messages ---- */

int util_json_fail(const util_json_at *at, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!at->kind)
        return moirai_error(MOIRAI_EINPUT, "%s: %s", at->label, text);
    if (!at->name)
        return moirai_error(MOIRAI_EINPUT, "%s: %s %zu: %s", at->label, at->kind, at->index, text);
    return moirai_error(MOIRAI_EINPUT, "%s: %s '%.200s': %s", at->label, at->kind, at->name, text);
}

int util_json_label(int rc, const char *label)
{
    size_t n = strlen(label);
    const char *message = moirai_error_message();
    if (!strncmp(message, label, n) && !strncmp(message + n, ": ", 2))
        return rc;
    return moirai_error_prefix(rc, "%s", label);
}

/* 1.0 is not 1 to whoever refuses it. */
static void show_real(char buffer[80], yyjson_val *value)
{
    char *text = yyjson_val_write(value, YYJSON_WRITE_ALLOW_INF_AND_NAN, NULL);
    snprintf(buffer, 80, "%.60s", text ? text : "a number");
    free(text);
}

const char *util_json_show(char buffer[80], yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL: return "null";
    case YYJSON_TYPE_BOOL: return yyjson_get_bool(value) ? "true" : "false";
    case YYJSON_TYPE_ARR: return "an array";
    case YYJSON_TYPE_OBJ: return "an object";
    case YYJSON_TYPE_STR:
        snprintf(buffer, 80, "\"%.60s%s", yyjson_get_str(value), yyjson_get_len(value) > 60 ? "...\"" : "\"");
        return buffer;
    case YYJSON_TYPE_RAW:
        snprintf(buffer, 80, "%.60s%s", yyjson_get_raw(value), yyjson_get_len(value) > 60 ? "..." : "");
        return buffer;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_uint(value))
            snprintf(buffer, 80, "%" PRIu64, yyjson_get_uint(value));
        else if (yyjson_is_sint(value))
            snprintf(buffer, 80, "%" PRId64, yyjson_get_sint(value));
        else
            show_real(buffer, value);
        return buffer;
    default: return "nothing";
    }
}

static int wrong_type(const util_json_at *at, yyjson_val *value, const char *key, const char *expected)
{
    char shown[80];
    return util_json_fail(at, "%s is %s, expected %s", key, util_json_show(shown, value), expected);
}

/* ---- documents ---- */

static int syntax_error(const char *label, const char *json, size_t length, const yyjson_read_err *error)
{
    if (error->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return moirai_error(MOIRAI_EFAIL, "%s: out of memory", label);
    size_t line = 1, column = 1;
    for (size_t i = 0; i < error->pos && i < length; i++) {
        if (json[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)json[i] & 0xc0) != 0x80) {
            column++; /* columns are characters: the later bytes of one don't count */
        }
    }
    return moirai_error(MOIRAI_EINPUT, "%s: line %zu, column %zu: bad JSON: %s", label, line, column, error->msg);
}

/* Another kind of file altogether: a complaint about its first byte would puzzle. */
static int no_json(const char *label, const char *text)
{
    if (*text == '\b') /* the field of the version that ONNX files begin with */
        return moirai_error(MOIRAI_EINPUT,
                            "%s: no JSON, but it looks like an ONNX model: 'moirai plan' and 'moirai "
                            "problem' take those",
                            label);
    return moirai_error(MOIRAI_EINPUT, "%s: neither ONNX nor JSON", label);
}

/* ---- keys ---- a reader takes the first of two equal keys, another reader the last: such a file says two things. */

static int compare_keys(const void *a, const void *b)
{
    yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
    size_t m = yyjson_get_len(x), n = yyjson_get_len(y);
    int order = memcmp(yyjson_get_str(x), yyjson_get_str(y), UTIL_MIN(m, n));
    return order ? order : (m > n) - (m < n);
}

/* The second of two equal keys, or NULL. `key` has room for all of them. */
static yyjson_val *repeated_key(yyjson_val *object, yyjson_val **key)
{
    enum { FEW = 16 };
    size_t n = 0, index, max;
    yyjson_val *name, *value;
    yyjson_obj_foreach(object, index, max, name, value) {
        for (size_t i = 0; i < n && max <= FEW; i++)
            if (!compare_keys(&key[i], &name))
                return name;
        key[n++] = name;
    }
    if (max > FEW)
        qsort(key, n, sizeof *key, compare_keys);
    for (size_t i = 1; i < n && max > FEW; i++)
        if (!compare_keys(&key[i - 1], &key[i]))
            return key[i];
    return NULL;
}

/* Named by the innermost object around it that has a name. */
static int refuse_twice(yyjson_val *root, yyjson_val *object, yyjson_val *key, const char *label)
{
    const char *name = NULL;
    for (yyjson_val *around = object; !name && around > root; around--)
        if (yyjson_is_obj(around) && unsafe_yyjson_get_next(around) > object)
            name = yyjson_get_str(yyjson_obj_get(around, "name"));
    return moirai_error(MOIRAI_EINPUT, "%s: %s%.200s%skey '%.60s' is there twice", label, name ? "in '" : "",
                        name ? name : "", name ? "': " : "", yyjson_get_str(key));
}

/* A document's values lie one after the other, each before what is in it: no recursion, however deep it is. */
static int check_keys(yyjson_doc *doc, const char *label)
{
    yyjson_val *root = yyjson_doc_get_root(doc), **key = NULL;
    size_t capacity = 0;
    int rc = 0;
    for (size_t i = 0; i < yyjson_doc_get_val_count(doc) && !rc; i++) {
        yyjson_val *twice;
        if (!yyjson_is_obj(root + i))
            continue;
        rc = util_grow(&key, &capacity, yyjson_obj_size(root + i), sizeof *key);
        if (!rc && (twice = repeated_key(root + i, key)))
            rc = refuse_twice(root, root + i, twice, label);
    }
    free(key);
    return rc;
}

int util_json_parse(yyjson_doc **out, const char *json, size_t length, const char *label)
{
    *out = NULL;
    if (length == 0)
        return moirai_error(MOIRAI_EINPUT, "%s: is empty", label);
    size_t blank = 0;
    while (blank < length && strchr(" \t\r\n", json[blank]) && json[blank])
        blank++;
    if (blank < length && !strchr("{[\"-0123456789tfn", json[blank]))
        return no_json(label, json + blank);
    yyjson_read_err error;
    /* The cast only drops const: without YYJSON_READ_INSITU the text is not written to. */
    *out = yyjson_read_opts((char *)json, length, YYJSON_READ_BIGNUM_AS_RAW, NULL, &error);
    int rc = *out ? check_keys(*out, label) : syntax_error(label, json, length, &error);
    if (rc) {
        yyjson_doc_free(*out);
        *out = NULL;
    }
    return rc;
}

/* What takes the file that was given. */
static const char *kind_hint(const char *found, const char *format)
{
    if (!strcmp(found, "moirai-problem") && !strcmp(format, "moirai-graph"))
        return ": 'moirai place' takes problems";
    if (!strcmp(found, "moirai-graph") && !strcmp(format, "moirai-problem"))
        return ": 'moirai problem' makes a problem of a graph, 'moirai plan' a plan";
    if (!strcmp(found, "moirai-problem") && !strcmp(format, "moirai-plan"))
        return ": the plan is what 'moirai place' writes";
    return "";
}

static int check_header(yyjson_val *root, const char *label, const char *format)
{
    util_json_at at = {.label = label};
    if (!yyjson_is_obj(root))
        return wrong_type(&at, root, "the file", "an object");
    const char *found = NULL;
    int64_t version = 0;
    if (util_json_object(&at, root))
        return MOIRAI_EINPUT;
    if (util_json_string(&found, NULL, &at, root, "format", true))
        return MOIRAI_EINPUT;
    if (strcmp(found, format))
        return util_json_fail(&at, "format is \"%.60s\", expected \"%s\"%s", found, format, kind_hint(found, format));
    if (util_json_int64(&version, &at, root, "version", true, 0))
        return MOIRAI_EINPUT;
    if (version != 1)
        return util_json_fail(&at, "%s version %" PRId64 ", only version 1 is known", format, version);
    return 0;
}

int util_json_open(yyjson_doc **out, const char *json, size_t length, const char *label, const char *format)
{
    int rc = util_json_parse(out, json, length, label);
    if (rc)
        return rc;
    rc = check_header(yyjson_doc_get_root(*out), label, format);
    if (rc) {
        yyjson_doc_free(*out);
        *out = NULL;
    }
    return rc;
}

int util_json_read(yyjson_doc **out, const char *path, const char *format)
{
    char *text;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&text, &length, path);
    if (rc)
        return rc;
    rc = util_json_open(out, text, length, path, format);
    free(text);
    return rc;
}

/* ---- objects ---- */

int util_json_object(const util_json_at *at, yyjson_val *value)
{
    char shown[80];
    return yyjson_is_obj(value) ? 0 : util_json_fail(at, "is %s, expected an object", util_json_show(shown, value));
}

/* The value of a key; NULL, with *result set, where there is nothing to read or nothing was asked for. */
static yyjson_val *find(int *result, const util_json_at *at, yyjson_val *object, const char *key, bool required)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    bool absent = !value || yyjson_is_null(value);
    *result = absent && required ? util_json_fail(at, "key '%s' is missing", key) : 0;
    return absent ? NULL : value;
}

int util_json_array(yyjson_val **out, const util_json_at *at, yyjson_val *object, const char *key, bool required)
{
    int rc;
    yyjson_val *value = find(&rc, at, object, key, required);
    if (!value)
        return rc;
    if (!yyjson_is_arr(value))
        return wrong_type(at, value, key, "an array");
    *out = value;
    return 0;
}

int util_json_value_string(const char **out, size_t *length, const util_json_at *at, yyjson_val *value, const char *key)
{
    if (!yyjson_is_str(value))
        return wrong_type(at, value, key, "a string");
    const char *text = yyjson_get_str(value);
    if (memchr(text, '\0', yyjson_get_len(value)))
        return util_json_fail(at, "%s is \"%.60s\" followed by a NUL character", key, text);
    *out = text;
    if (length)
        *length = yyjson_get_len(value);
    return 0;
}

int util_json_string(const char **out, size_t *length, const util_json_at *at, yyjson_val *object, const char *key,
                     bool required)
{
    int rc;
    yyjson_val *value = find(&rc, at, object, key, required);
    if (!value)
        return rc;
    if (required && yyjson_is_str(value) && yyjson_get_len(value) == 0)
        return util_json_fail(at, "%s is empty", key);
    return util_json_value_string(out, length, at, value, key);
}

int util_json_value_int64(int64_t *out, const util_json_at *at, yyjson_val *value, const char *key, int64_t least)
{
    char shown[80];
    if (yyjson_is_raw(value) && !strpbrk(yyjson_get_raw(value), ".eE"))
        return util_json_fail(at, "%s is %s, beyond 64 bits", key, util_json_show(shown, value));
    if (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX)
        return util_json_fail(at, "%s is %s, beyond 64 bits", key, util_json_show(shown, value));
    if (!yyjson_is_int(value))
        return wrong_type(at, value, key, "a whole number");
    int64_t number = yyjson_is_uint(value) ? (int64_t)yyjson_get_uint(value) : yyjson_get_sint(value);
    if (number < least)
        return util_json_fail(at, "%s is %" PRId64 ", must be at least %" PRId64, key, number, least);
    *out = number;
    return 0;
}

int util_json_int64(int64_t *out, const util_json_at *at, yyjson_val *object, const char *key, bool required,
                    int64_t least)
{
    int rc;
    yyjson_val *value = find(&rc, at, object, key, required);
    return value ? util_json_value_int64(out, at, value, key, least) : rc;
}

int util_json_real(double *out, const util_json_at *at, yyjson_val *object, const char *key, bool required)
{
    int rc;
    yyjson_val *value = find(&rc, at, object, key, required);
    if (!value)
        return rc;
    if (!yyjson_is_num(value))
        return wrong_type(at, value, key, "a number");
    *out = yyjson_get_num(value);
    return 0;
}

int util_json_bool(bool *out, const util_json_at *at, yyjson_val *object, const char *key, bool required)
{
    int rc;
    yyjson_val *value = find(&rc, at, object, key, required);
    if (!value)
        return rc;
    if (!yyjson_is_bool(value))
        return wrong_type(at, value, key, "true or false");
    *out = yyjson_get_bool(value);
    return 0;
}
