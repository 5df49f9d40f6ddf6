/* A policy's file is its tensors by name. What the numbers mean is the placer's affair: names and shapes must be just
 * those that it declares, so a file of another design can't be taken for one of this. */
#include "place/learn/policy_file.h"
#include "util/json.h"
#include "util/util.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

/* ---- writing ---- */

/* Nine digits tell any two floats apart. */
static double nine_digits(learn_real x)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", (double)x);
    return strtod(text, NULL);
}

int learn_policy_write(const learn_params *q, const learn_policy_head *head, const char *path)
{
    util_writer w;
    util_writer_begin(&w, "moirai-policy");
    util_writer_pair_string(&w, "placer", head->placer);
    util_writer_pair_int(&w, "devices", head->n_devices);
    if (head->trained_on)
        util_writer_pair_string(&w, "trained_on", head->trained_on);
    util_writer_pair_int(&w, "episodes", head->episodes);
    util_writer_break(&w);
    util_writer_pair_open(&w, "tensors", '[');
    for (int32_t i = 0; i < q->n_tensors; i++) {
        const learn_tensor *t = &q->tensor[i];
        util_writer_break(&w);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "name", t->name);
        util_writer_pair_int(&w, "rows", t->rows);
        util_writer_pair_int(&w, "cols", t->cols);
        util_writer_pair_open(&w, "values", '[');
        for (size_t j = 0; j < (size_t)t->rows * (size_t)t->cols; j++)
            util_writer_real(&w, nine_digits(q->value[t->at + j]));
        util_writer_close(&w, ']');
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}

int learn_policy_writable(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!strcmp(path, "-"))
        return 0;
    if (slash && slash[1] == '\0')
        return moirai_error(MOIRAI_EFAIL, "%s: is a folder", path);
    if (slash && (size_t)(slash - path) >= sizeof folder)
        return moirai_error(MOIRAI_EFAIL, "%.60s...: %s", path, strerror(ENAMETOOLONG));
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (access(*folder ? folder : "/", W_OK) != 0)
        return moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    return 0;
}

/* ---- reading ---- */

static int find_tensor(const learn_params *q, const char *name)
{
    for (int32_t i = 0; i < q->n_tensors; i++)
        if (!strcmp(q->tensor[i].name, name))
            return i;
    return -1;
}

static int read_values(learn_real *into, const util_json_at *at, yyjson_val *list)
{
    size_t index, n;
    yyjson_val *item;
    char shown[80];
    yyjson_arr_foreach(list, index, n, item) {
        double x = yyjson_is_num(item) ? yyjson_get_num(item) : NAN;
        if (!(fabs(x) <= FLT_MAX))
            return util_json_fail(at, "values[%zu]: %s is not a number of a policy", index,
                                  util_json_show(shown, item));
        into[index] = (learn_real)x;
    }
    return 0;
}

static int read_tensor(const learn_params *q, learn_real *value, bool *seen, util_json_at *at, yyjson_val *object)
{
    const char *name = NULL;
    int64_t rows = 0, cols = 0;
    yyjson_val *list = NULL;
    int rc = util_json_object(at, object);
    rc = rc ? rc : util_json_string(&name, NULL, at, object, "name", true);
    if (rc)
        return rc;
    at->name = name;
    int i = find_tensor(q, name);
    if (i < 0)
        return util_json_fail(at, "this placer has no such tensor");
    if (seen[i])
        return util_json_fail(at, "is there twice");
    seen[i] = true;
    rc = util_json_int64(&rows, at, object, "rows", true, 1);
    rc = rc ? rc : util_json_int64(&cols, at, object, "cols", true, 1);
    rc = rc ? rc : util_json_array(&list, at, object, "values", true);
    if (rc)
        return rc;
    const learn_tensor *t = &q->tensor[i];
    if (rows != t->rows || cols != t->cols)
        return util_json_fail(at, "is %lld x %lld, but this policy's is %d x %d", (long long)rows, (long long)cols,
                              t->rows, t->cols);
    if (yyjson_arr_size(list) != (size_t)t->rows * (size_t)t->cols)
        return util_json_fail(at, "%zu values for %d x %d", yyjson_arr_size(list), t->rows, t->cols);
    return read_values(value + t->at, at, list);
}

static int read_head(const util_json_at *at, const learn_policy_head *expected, int64_t *episodes, yyjson_val *root)
{
    const char *placer = NULL;
    int64_t devices = 0;
    *episodes = 0;
    int rc = util_json_string(&placer, NULL, at, root, "placer", true);
    if (!rc && strcmp(placer, expected->placer))
        return util_json_fail(at, "a policy of placer '%s', not of '%s'", placer, expected->placer);
    rc = rc ? rc : util_json_int64(&devices, at, root, "devices", true, 1);
    if (!rc && devices != expected->n_devices)
        return util_json_fail(at, "a policy for %lld devices, but the problem has %d", (long long)devices,
                              expected->n_devices);
    rc = rc ? rc : util_json_int64(episodes, at, root, "episodes", false, 0);
    return rc;
}

static int read_tensors(const learn_params *q, learn_real *value, const char *label, yyjson_val *list)
{
    bool seen[LEARN_MAX_TENSORS] = {false};
    size_t index, n;
    yyjson_val *item;
    int rc = 0;
    yyjson_arr_foreach(list, index, n, item) {
        util_json_at at = {.label = label, .kind = "tensor", .index = index};
        rc = read_tensor(q, value, seen, &at, item);
        if (rc)
            return rc;
    }
    for (int32_t i = 0; i < q->n_tensors; i++)
        if (!seen[i])
            return moirai_error(MOIRAI_EINPUT, "%s: tensor '%s' is missing", label, q->tensor[i].name);
    return 0;
}

int learn_policy_parse(learn_params *q, const learn_policy_head *expected, int64_t *episodes, const char *json,
                       size_t length, const char *label)
{
    yyjson_doc *doc = NULL;
    yyjson_val *list = NULL;
    int rc = util_json_open(&doc, json, length, label, "moirai-policy");
    if (rc)
        return rc;
    util_json_at at = {.label = label};
    learn_real *value = util_alloc(q->n, sizeof *value);
    rc = value ? read_head(&at, expected, episodes, yyjson_doc_get_root(doc)) : MOIRAI_EFAIL;
    rc = rc ? rc : util_json_array(&list, &at, yyjson_doc_get_root(doc), "tensors", true);
    rc = rc ? rc : read_tensors(q, value, label, list);
    if (!rc)
        memcpy(q->value, value, q->n * sizeof *value);
    free(value);
    yyjson_doc_free(doc);
    return rc;
}

int learn_policy_read(learn_params *q, const learn_policy_head *expected, int64_t *episodes, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    int rc = util_file_read(&text, &length, path);
    rc = rc ? rc : learn_policy_parse(q, expected, episodes, text, length, path);
    free(text);
    return rc;
}
