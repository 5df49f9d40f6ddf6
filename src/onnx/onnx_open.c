/* Dimensions of inputs that the file leaves open and nobody has set.
 *
 * A batch is taken as 1. Everything else decides what the network costs, so that it gets the size that such inputs
 * usually have: images 224 pixels wide and high, 640 where the network looks for objects (it suppresses boxes, or
 * enlarges maps and joins them); texts of 128 tokens; a second of sound. A cache of keys and values is empty, or holds 128
 * tokens where the network takes one at a time. A size must go through the network: where operators refuse it
 * ("inputs of shapes 1x25088 and 512x10 do not go together"), the next of the list is tried (onnx_import.c); where none
 * goes, the user is asked. What was assumed is part of the graph, and stands beside every verdict.
 *
 * What a dimension is follows from its name, else from its place: N x C x H x W or N x H x W x C for four dimensions, N x
 * tokens for whole numbers, N x samples for reals, N x tokens x features for three. */
#include "onnx/onnx_import.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 128
#define FRAMES 16
#define CHANNELS 3

static const int64_t image_sizes[] = {224, 256,  299, 300, 320, 384, 416, 448, 480, 512, 518, 608, 640,
                                      800, 1024, 240, 192, 160, 128, 112, 96,  64,  48,  32,  28};
static const int64_t token_sizes[] = {128, 64, 32, 16, 256, 512, 384, 1024, 77, 50, 100, 200, 80, 8, 4, 2, 1};
static const int64_t sample_sizes[] = {16000, 512, 1024, 1536, 8000, 32000, 48000, 128, 256, 64};

int onnx_open_attempts(void)
{
    return (int)(sizeof image_sizes / sizeof *image_sizes);
}

static int64_t take(const int64_t *size, size_t n, int attempt)
{
    return size[(size_t)attempt < n ? (size_t)attempt : n - 1];
}
#define TAKE(list, attempt) take(list, sizeof(list) / sizeof *(list), attempt)

/* Does the network look for objects? */
static bool detects(const Onnx__GraphProto *g)
{
    bool enlarges = false, joins = false;
    for (size_t i = 0; i < g->n_node; i++) {
        const char *type = g->node[i]->op_type ? g->node[i]->op_type : "";
        if (!strcmp(type, "NonMaxSuppression"))
            return true;
        enlarges |= !strcmp(type, "Resize") || !strcmp(type, "Upsample");
        joins |= !strcmp(type, "Concat");
    }
    return enlarges && joins;
}

static int64_t image_size(const onnx_import *im)
{
    if (!detects(im->model->proto->graph))
        return TAKE(image_sizes, im->attempt);
    return im->attempt ? TAKE(image_sizes, im->attempt - 1) : 640;
}

static bool has(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (; *name; name++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)name[i]) == word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static bool is(const char *name, const char *word)
{
    return strlen(name) == strlen(word) && has(name, word);
}

static onnx_open_kind kind_by_name(const char *name)
{
    if (has(name, "batch") || is(name, "n") || is(name, "bs"))
        return ONNX_OPEN_BATCH;
    if (has(name, "past") || has(name, "cache"))
        return ONNX_OPEN_CACHE;
    if (has(name, "total"))
        return ONNX_OPEN_TOTAL;
    if (has(name, "height") || has(name, "width") || is(name, "h") || is(name, "w"))
        return ONNX_OPEN_SPACE;
    if (has(name, "channel"))
        return ONNX_OPEN_CHANNELS;
    if (has(name, "sample"))
        return ONNX_OPEN_SAMPLES;
    if (has(name, "seq") || has(name, "token") || has(name, "length"))
        return ONNX_OPEN_TOKENS;
    return ONNX_OPEN_UNSAID;
}

static int64_t fixed(const Onnx__TensorShapeProto *s, size_t axis)
{
    const Onnx__TensorShapeProto__Dimension *d = s->dim[axis];
    return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ? d->dim_value : -1;
}

static bool is_channels(int64_t size)
{
    return size == 1 || size == 3 || size == 4;
}

static onnx_open_kind kind_by_place(const onnx_value *v, const Onnx__TensorShapeProto *s, size_t axis)
{
    bool real = onnx_is_real(v->type);
    if (has(v->name, "past") || has(v->name, "cache"))
        return axis ? ONNX_OPEN_CACHE : ONNX_OPEN_BATCH;
    if (s->n_dim == 3 && is_channels(fixed(s, 0)) && fixed(s, 1) < 0 && fixed(s, 2) < 0)
        return ONNX_OPEN_SPACE; /* an image alone */
    if (axis == 0)
        return ONNX_OPEN_BATCH;
    if (s->n_dim >= 4) {
        bool last = is_channels(fixed(s, s->n_dim - 1)) && !is_channels(fixed(s, 1));
        if (axis == (last ? s->n_dim - 1 : 1))
            return ONNX_OPEN_CHANNELS;
        return s->n_dim == 5 && axis == (last ? 1u : 2u) ? ONNX_OPEN_FRAMES : ONNX_OPEN_SPACE;
    }
    return s->n_dim == 2 && real ? ONNX_OPEN_SAMPLES : ONNX_OPEN_TOKENS;
}

static const onnx_open *find(const onnx_import *im, const char *key)
{
    for (int32_t i = 0; i < im->n_open; i++)
        if (!strcmp(im->open[i].key, key))
            return &im->open[i];
    return NULL;
}

/* Some exporters write "past_sequence_length + sequence_length": the sum of what its parts are. */
static bool sum_of_parts(onnx_import *im, const char *name, int64_t *out)
{
    char part[128];
    *out = 0;
    if (!strstr(name, " + "))
        return false;
    for (const char *at = name; *at;) {
        const char *plus = strstr(at, " + ");
        size_t n = plus ? (size_t)(plus - at) : strlen(at);
        int64_t value;
        if (!n || n >= sizeof part)
            return false;
        memcpy(part, at, n);
        part[n] = '\0';
        if (isdigit((unsigned char)part[0]))
            value = strtoll(part, NULL, 10);
        else if (!onnx_open_named(im, part, &value))
            return false;
        *out = onnx_add(*out, value);
        at += n + (plus ? 3 : 0);
    }
    return true;
}

bool onnx_open_named(onnx_import *im, const char *name, int64_t *out)
{
    const onnx_open *known = find(im, name);
    if (known)
        *out = known->size;
    return known || onnx_options_dim(im, name, out);
}

static int64_t size_of(onnx_import *im, const onnx_open *o)
{
    bool one_by_one = !im->takes_tokens;
    int64_t cache = one_by_one ? TOKENS : 0;
    switch (o->kind) {
    case ONNX_OPEN_SPACE: return image_size(im);
    case ONNX_OPEN_TOKENS: return TAKE(token_sizes, im->attempt);
    case ONNX_OPEN_SAMPLES: return TAKE(sample_sizes, im->attempt);
    case ONNX_OPEN_CACHE: return cache;
    case ONNX_OPEN_TOTAL: return cache + (one_by_one ? 1 : TAKE(token_sizes, im->attempt));
    case ONNX_OPEN_CHANNELS: return CHANNELS;
    case ONNX_OPEN_FRAMES: return FRAMES;
    default: return 1;
    }
}

static int add(onnx_import *im, const onnx_value *v, const Onnx__TensorShapeProto *s, size_t axis)
{
    const Onnx__TensorShapeProto__Dimension *d = s->dim[axis];
    bool param = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    const char *name = param && d->dim_param && onnx_is_dim_name(d->dim_param) ? d->dim_param : "";
    char *key = onnx_open_key(im, name, v->name, axis);
    int64_t set;
    if (!key)
        return MOIRAI_EFAIL;
    if (find(im, key) || onnx_options_dim(im, key, &set) ||
        onnx_options_dim(im, onnx_open_key(im, "", v->name, axis), &set))
        return 0;
    onnx_open *o = onnx_take(&im->arena, 1, sizeof *o);
    if (!o || util_grow(&im->open, &im->open_capacity, (size_t)im->n_open + 1, sizeof *im->open))
        return MOIRAI_EFAIL;
    onnx_open_kind kind = kind_by_name(name);
    *o = (onnx_open){key, v->name, !*name, kind ? kind : kind_by_place(v, s, axis), 1};
    im->takes_tokens |= o->kind == ONNX_OPEN_TOKENS;
    im->flexible |= o->kind == ONNX_OPEN_SPACE || o->kind == ONNX_OPEN_TOKENS || o->kind == ONNX_OPEN_SAMPLES;
    im->open[im->n_open++] = *o;
    return 0;
}

char *onnx_open_key(onnx_import *im, const char *name, const char *input, size_t axis)
{
    size_t room = strlen(name) + strlen(input) + 32;
    char *key = onnx_take(&im->arena, room, 1);
    if (key && *name)
        snprintf(key, room, "%s", name);
    else if (key)
        snprintf(key, room, "%s:%zu", input, axis);
    return key;
}

int onnx_open_find(onnx_import *im)
{
    int rc = 0;
    for (int32_t i = 0; i < im->root->n_values && !rc; i++) {
        onnx_value *v = im->root->value[i];
        bool set;
        if (v->producer >= 0 || v->shaped || v->constant)
            continue;
        const Onnx__TensorShapeProto *s = onnx_value_declared(v);
        if (!s || s->n_dim > ONNX_MAX_RANK)
            continue;
        rc = onnx_value_from_type(im, v, v->declared, false, &set); /* for its type */
        v->shaped = false;
        for (size_t axis = 0; axis < s->n_dim && !rc; axis++)
            if (fixed(s, axis) < 0)
                rc = add(im, v, s, axis);
    }
    for (int32_t i = 0; i < im->n_open && !rc; i++)
        im->open[i].size = size_of(im, &im->open[i]);
    for (int32_t i = 0; i < im->n_open && !rc; i++)
        if (!im->open[i].unnamed && strstr(im->open[i].key, " + ")) {
            int64_t sum;
            if (sum_of_parts(im, im->open[i].key, &sum))
                im->open[i].size = sum;
        }
    return rc;
}

int onnx_open_ask(const onnx_import *im, const char *why)
{
    char names[256] = "", options[256] = "";
    const char *input = NULL;
    size_t n = 0, m = 0;
    for (int32_t i = 0; i < im->n_open; i++) {
        const onnx_open *o = &im->open[i];
        if (o->kind == ONNX_OPEN_BATCH)
            continue;
        input = input ? input : o->input;
        if (n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s'%.60s'", n ? ", " : "", o->key);
        if (m < sizeof options)
            m += (size_t)snprintf(options + m, sizeof options - m, " --dim '%.60s=N'", o->key);
    }
    return moirai_error(MOIRAI_EINPUT,
                        "input '%.80s' leaves dimensions open (%s) and no usual size goes through the network "
                        "(%.200s): set them,%s",
                        input ? input : "", names, why, options);
}
