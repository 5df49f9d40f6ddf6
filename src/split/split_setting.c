/* With which dimensions a model is read for a plan: the plan remembers how they were set when it was made; what the
 * caller gives for the same name wins. */
#include "split/split.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

/* Do two settings speak of the same dimension or input? The name ends at the last `end`. */
static bool same_name(const char *a, const char *b, char end)
{
    const char *x = strrchr(a, end), *y = strrchr(b, end);
    return x && y && x - a == y - b && !memcmp(a, b, (size_t)(x - a));
}

static bool is_given(const char *text, const char *const *given, int n, char end)
{
    for (int i = 0; i < n; i++)
        if (same_name(text, given[i], end))
            return true;
    return false;
}

/* The caller's settings, then the plan's others, into `text`; returns how many, or an error. */
static int merge(const char **text, yyjson_val *list, const util_json_at *at, const char *const *given, int n, char end)
{
    size_t i, most;
    yyjson_val *item;
    int used = 0;
    for (; used < n; used++)
        text[used] = given[used];
    yyjson_arr_foreach(list, i, most, item) {
        const char *own;
        int rc = util_json_value_string(&own, NULL, at, item, "a setting of onnx");
        if (rc)
            return rc;
        if (!is_given(own, given, n, end))
            text[used++] = own;
    }
    return used;
}

int split_settings_new(split_settings *s, yyjson_val *root, const char *path, const moirai_onnx_options *given)
{
    util_json_at at = {.label = path};
    yyjson_val *onnx = yyjson_obj_get(root, "onnx"), *dims = yyjson_obj_get(onnx, "dims"),
               *shapes = yyjson_obj_get(onnx, "shapes");
    *s = (split_settings){0};
    size_t most = yyjson_arr_size(dims) + yyjson_arr_size(shapes) + (size_t)given->n_dims + (size_t)given->n_shapes;
    if (most > 10000)
        return util_json_fail(&at, "%zu settings of dimensions and shapes", most);
    if (!(s->text = util_alloc(most, sizeof *s->text)))
        return MOIRAI_EFAIL;
    int n = merge(s->text, dims, &at, given->dims, given->n_dims, '=');
    int m = n < 0 ? n : merge(s->text + n, shapes, &at, given->shapes, given->n_shapes, ':');
    if (m < 0)
        return m;
    s->onnx = (moirai_onnx_options){.dims = s->text, .n_dims = n, .shapes = s->text + n, .n_shapes = m};
    return 0;
}

void split_settings_free(split_settings *s)
{
    free(s->text);
}
