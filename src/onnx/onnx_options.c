/* What the user says of a model: sizes of symbolic dimensions ("batch=8", "image:2=640" by input and axis), shapes of inputs ("input:1x3x224x224"). */
#include "onnx/onnx_import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int onnx_options_check(const moirai_onnx_options *o)
{
    for (int i = 0; o && i < o->n_dims; i++) {
        const char *equals = strrchr(o->dims[i], '=');
        char *end = NULL;
        errno = 0;
        long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || equals == o->dims[i] || end == equals + 1 || *end || errno || value < 0 || value > INT32_MAX)
            return moirai_error(MOIRAI_EUSAGE,
                                "dimension \"%s\": expected NAME=NUMBER, as batch=8, or INPUT:AXIS=NUMBER", o->dims[i]);
    }
    return 0;
}

bool onnx_options_dim(onnx_import *im, const char *name, int64_t *out)
{
    const moirai_onnx_options *o = im->options;
    size_t length = strlen(name);
    for (int i = 0; o && i < o->n_dims; i++) {
        if (strncmp(o->dims[i], name, length) || o->dims[i][length] != '=')
            continue;
        *out = strtoll(o->dims[i] + length + 1, NULL, 10); /* checked before */
        im->dim_used[i] = true;
        return true;
    }
    return false;
}

int onnx_options_unused(const onnx_import *im, const char *option)
{
    char names[200] = "";
    size_t used = 0;
    for (int32_t i = 0; i < im->n_open && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s", used ? ", " : "", im->open[i].key);
    return moirai_error(MOIRAI_EUSAGE, "dimension \"%s\": no tensor of the model has a dimension of that name; %s%s",
                        option, used ? "open are " : "none is open", names);
}

static int parse_shape(const char *text, int64_t *dim, int32_t *rank)
{
    *rank = 0;
    for (const char *at = text; *at;) {
        char *end;
        errno = 0;
        long long value = strtoll(at, &end, 10);
        if (end == at || errno || value < 0 || *rank == ONNX_MAX_RANK || (*end && *end != 'x' && *end != ','))
            return -1;
        dim[(*rank)++] = value;
        at = *end ? end + 1 : end;
        if (*end && !*at)
            return -1;
    }
    return 0;
}

int onnx_options_shape(onnx_import *im, const char *option)
{
    int64_t dim[ONNX_MAX_RANK];
    int32_t rank;
    const char *colon = strrchr(option, ':'); /* names of inputs may hold colons themselves */
    if (!colon || parse_shape(colon + 1, dim, &rank))
        return moirai_error(MOIRAI_EUSAGE, "shape \"%s\": expected INPUT:NUMBERxNUMBER..., as input:1x3x224x224",
                            option);
    size_t length = (size_t)(colon - option);
    for (int32_t i = 0; i < im->root->n_values; i++) {
        onnx_value *v = im->root->value[i];
        if (v->producer >= 0 || v->constant || strlen(v->name) != length || strncmp(v->name, option, length))
            continue;
        bool set;
        int rc = onnx_value_from_type(im, v, v->declared, false, &set);
        rc = rc ? rc : onnx_value_agrees(v, rank, dim, option);
        if (!rc && !onnx_value_shape(v, v->type, rank, dim))
            rc = moirai_error(MOIRAI_EUSAGE, "shape \"%s\": too large", option);
        return rc;
    }
    return moirai_error(MOIRAI_EUSAGE, "shape \"%s\": the model has no such input", option);
}
