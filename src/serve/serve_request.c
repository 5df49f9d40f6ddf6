/* Reading a request. Everything in it is somebody else's: every name, shape, type and length is held against the model
 * before a byte is copied, and memory is only taken for what the model's own shapes say. Whole numbers in JSON are taken
 * exactly or not at all, others rounded to the nearest that their type has: one beyond its ends is an error. */
#include "serve/serve_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

typedef struct reading {
    serve_request *r;
    const serve_model *m;
    const char *rest; /* binary tensors that were not taken yet */
    size_t n_rest;
    bool *given; /* [input] */
} reading;

/* ---- numbers ---- */

/* The value as its type's bytes at `out`; false: it does not fit. */
static bool put_int(char *out, yyjson_val *v, const serve_type *type)
{
    bool is_signed = type->name[0] == 'I';
    int bits = 8 * (int)type->bytes;
    if (!yyjson_is_int(v))
        return false;
    if (yyjson_is_sint(v)) { /* negative */
        int64_t n = yyjson_get_sint(v);
        if (!is_signed || (bits < 64 && n < -(INT64_C(1) << (bits - 1))))
            return false;
        memcpy(out, &n, type->bytes); /* little-endian, as all machines that ONNX Runtime runs on */
        return true;
    }
    uint64_t n = yyjson_get_uint(v), most = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
    if (n > most)
        return false;
    memcpy(out, &n, type->bytes);
    return true;
}

static bool put_real(char *out, yyjson_val *v, const serve_type *type)
{
    if (!yyjson_is_num(v))
        return false;
    double x = yyjson_get_num(v);
    float f = (float)x;
    if (type->bytes == 8)
        memcpy(out, &x, sizeof x);
    else if (isfinite(f))
        memcpy(out, &f, sizeof f);
    else
        return false;
    return true;
}

static bool put_bool(char *out, yyjson_val *v)
{
    bool is_number = yyjson_is_uint(v) && yyjson_get_uint(v) <= 1;
    *out = (char)(is_number ? yyjson_get_uint(v) : yyjson_get_bool(v));
    return is_number || yyjson_is_bool(v);
}

static bool put_number(char *out, yyjson_val *v, const serve_type *type)
{
    if (!strncmp(type->name, "FP", 2))
        return put_real(out, v, type);
    return !strcmp(type->name, "BOOL") ? put_bool(out, v) : put_int(out, v, type);
}

/* ---- tensors ---- */

/* "data" is flat, or nested as the shape is: other brackets around as many elements are a mistake, and be it of two
 * dimensions that changed places. */
typedef struct elements {
    const serve_tensor *t;
    char *out;
    int64_t n;
} elements;

static int put_element(elements *e, yyjson_val *v)
{
    const serve_tensor *t = e->t;
    char shown[80];
    if (e->n >= t->elements)
        return moirai_error(MOIRAI_EINPUT, "input '%s': \"data\" has more than its %lld elements", t->name,
                            (long long)t->elements);
    if (!put_number(e->out + (size_t)e->n * t->type->bytes, v, t->type))
        return moirai_error(MOIRAI_EINPUT, "input '%s': element %lld is %s, which is no %s", t->name, (long long)e->n,
                            util_json_show(shown, v), t->type->name);
    e->n++;
    return 0;
}

/* The shape of the brackets, by the first of every depth. False: deeper than a shape can be. */
static bool nesting(int64_t *dim, int64_t *rank, yyjson_val *data)
{
    *rank = 0;
    for (yyjson_val *v = data; yyjson_is_arr(v); v = yyjson_arr_get_first(v)) {
        if (*rank == SERVE_MOST_DIMS)
            return false;
        dim[(*rank)++] = (int64_t)yyjson_arr_size(v);
    }
    return true;
}

static int check_nesting(const serve_tensor *t, yyjson_val *data)
{
    int64_t dim[SERVE_MOST_DIMS], rank;
    char has[256], wants[256];
    if (!nesting(dim, &rank, data))
        return moirai_error(MOIRAI_EINPUT, "input '%s': \"data\" has arrays in arrays, more than %d deep", t->name,
                            SERVE_MOST_DIMS);
    bool same = true; /* nothing is inside of what has no elements */
    for (int64_t i = 0; i < UTIL_MIN(rank, t->rank); i++)
        same = same && dim[i] == t->dim[i];
    if (same && (rank == t->rank || (rank < t->rank && !dim[rank - 1])))
        return 0;
    serve_shape_text(has, sizeof has, dim, rank);
    serve_shape_text(wants, sizeof wants, t->dim, t->rank);
    return moirai_error(MOIRAI_EINPUT, "input '%s': \"data\" is nested as %s, its shape is %s: flat, or nested as that",
                        t->name, has, wants);
}

/* An array of the depth `depth`, whose like was found at the beginning. */
static int read_nested(elements *e, yyjson_val *list, int64_t depth)
{
    const serve_tensor *t = e->t;
    char wants[256];
    yyjson_val *v;
    size_t i, n;
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) != (size_t)t->dim[depth]) {
        serve_shape_text(wants, sizeof wants, t->dim, t->rank);
        return moirai_error(MOIRAI_EINPUT,
                            "input '%s': \"data\" is ragged, its shape is %s: before element %lld there is no array of "
                            "%lld",
                            t->name, wants, (long long)e->n, (long long)t->dim[depth]);
    }
    yyjson_arr_foreach(list, i, n, v) {
        int rc = depth + 1 < t->rank ? read_nested(e, v, depth + 1) : put_element(e, v);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_flat(elements *e, yyjson_val *list)
{
    yyjson_val *v;
    size_t i, n;
    yyjson_arr_foreach(list, i, n, v) {
        int rc = put_element(e, v);
        if (rc)
            return rc;
    }
    if (e->n != e->t->elements)
        return moirai_error(MOIRAI_EINPUT, "input '%s': \"data\" has %lld elements, its shape %lld", e->t->name,
                            (long long)e->n, (long long)e->t->elements);
    return 0;
}

static int read_json_data(char *out, yyjson_val *data, const serve_tensor *t)
{
    elements e = {.t = t, .out = out};
    if (!yyjson_is_arr(data))
        return moirai_error(MOIRAI_EINPUT, "input '%s' has neither \"data\", an array, nor \"binary_data_size\"",
                            t->name);
    if (t->type->bytes == 2 && strstr(t->type->name, "F"))
        return moirai_error(MOIRAI_EINPUT, "input '%s': %s goes as binary data only", t->name, t->type->name);
    if (!yyjson_is_arr(yyjson_arr_get_first(data)))
        return read_flat(&e, data);
    int rc = check_nesting(t, data);
    return rc ? rc : read_nested(&e, data, 0);
}

static int take_binary(reading *g, char *out, yyjson_val *size, const serve_tensor *t)
{
    char shown[80];
    if (!yyjson_is_uint(size) || yyjson_get_uint(size) != t->bytes)
        return moirai_error(MOIRAI_EINPUT, "input '%s': binary_data_size is %s, its shape and type take %zu bytes",
                            t->name, util_json_show(shown, size), t->bytes);
    if (g->n_rest < t->bytes)
        return moirai_error(MOIRAI_EINPUT, "input '%s': %zu of its %zu bytes are there", t->name, g->n_rest, t->bytes);
    memcpy(out, g->rest, t->bytes);
    for (size_t i = 0; !strcmp(t->type->name, "BOOL") && i < t->bytes; i++)
        out[i] = out[i] != 0; /* others are no booleans to ONNX Runtime */
    g->rest += t->bytes;
    g->n_rest -= t->bytes;
    return 0;
}

static int check_shape(const serve_tensor *t, yyjson_val *shape)
{
    int64_t dim[SERVE_MOST_DIMS];
    size_t n = yyjson_arr_size(shape);
    char has[256], wants[256];
    bool same = yyjson_is_arr(shape) && n == (size_t)t->rank;
    if (!yyjson_is_arr(shape) || n > SERVE_MOST_DIMS)
        return moirai_error(MOIRAI_EINPUT, "input '%s': \"shape\" must be an array of at most %d numbers", t->name,
                            SERVE_MOST_DIMS);
    for (size_t i = 0; i < n; i++) {
        yyjson_val *v = yyjson_arr_get(shape, i);
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) > INT64_MAX)
            return moirai_error(MOIRAI_EINPUT, "input '%s': \"shape\" has %s", t->name, util_json_show(has, v));
        dim[i] = (int64_t)yyjson_get_uint(v);
        same = same && dim[i] == t->dim[i];
    }
    if (same)
        return 0;
    serve_shape_text(has, sizeof has, dim, (int64_t)n);
    serve_shape_text(wants, sizeof wants, t->dim, t->rank);
    return moirai_error(MOIRAI_EINPUT, "input '%s' has shape %s, the plan is for %s", t->name, has, wants);
}

static int find(int *out, const serve_tensor *list, int n, yyjson_val *item, const char *kind)
{
    yyjson_val *name = yyjson_obj_get(item, "name");
    if (!yyjson_is_str(name))
        return moirai_error(MOIRAI_EINPUT, "an %s without \"name\"", kind);
    for (*out = 0; *out < n; ++*out)
        if (yyjson_equals_str(name, list[*out].name)) /* all of it: there may be a zero inside */
            return 0;
    return moirai_error(MOIRAI_EINPUT, "the model has no %s '%.200s'", kind, yyjson_get_str(name));
}

static int read_input(reading *g, yyjson_val *item)
{
    int at, rc = find(&at, g->m->input, g->m->n_inputs, item, "input");
    if (rc)
        return rc;
    const serve_tensor *t = &g->m->input[at];
    yyjson_val *type = yyjson_obj_get(item, "datatype");
    yyjson_val *size = yyjson_obj_get(yyjson_obj_get(item, "parameters"), "binary_data_size");
    char *out = g->r->input;
    for (int i = 0; i < at; i++)
        out += g->m->input[i].bytes;
    if (g->given[at])
        return moirai_error(MOIRAI_EINPUT, "input '%s' is given twice", t->name);
    g->given[at] = true;
    if (!yyjson_equals_str(type, t->type->name))
        return moirai_error(MOIRAI_EINPUT, "input '%s' has datatype %.40s, the model has %s", t->name,
                            yyjson_is_str(type) ? yyjson_get_str(type) : "none", t->type->name);
    rc = check_shape(t, yyjson_obj_get(item, "shape"));
    if (rc)
        return rc;
    if (size && yyjson_obj_get(item, "data"))
        return moirai_error(MOIRAI_EINPUT, "input '%s' has both \"data\" and \"binary_data_size\"", t->name);
    return size ? take_binary(g, out, size, t) : read_json_data(out, yyjson_obj_get(item, "data"), t);
}

static int read_inputs(reading *g, yyjson_val *root)
{
    yyjson_val *inputs = yyjson_obj_get(root, "inputs"), *item;
    size_t i, n;
    int rc = 0;
    if (!yyjson_is_arr(inputs))
        return moirai_error(MOIRAI_EINPUT, "the request has no \"inputs\", an array");
    yyjson_arr_foreach(inputs, i, n, item) {
        rc = read_input(g, item);
        if (rc)
            return rc;
    }
    for (int k = 0; k < g->m->n_inputs; k++)
        if (!g->given[k])
            return moirai_error(MOIRAI_EINPUT, "input '%s' is missing", g->m->input[k].name);
    if (g->n_rest)
        return moirai_error(MOIRAI_EINPUT, "%zu bytes of binary data belong to no input", g->n_rest);
    return 0;
}

/* ---- what is wanted ---- */

/* A parameter of an object that may have some; *out NULL where it has not. */
static int parameter(yyjson_val **out, yyjson_val *owner, const char *name)
{
    yyjson_val *all = yyjson_obj_get(owner, "parameters");
    *out = yyjson_obj_get(all, name);
    return !all || yyjson_is_obj(all) ? 0 : moirai_error(MOIRAI_EINPUT, "\"parameters\" must be an object");
}

/* The same, true or false: *out stays what it is where there is none. */
static int flag(bool *out, yyjson_val *owner, const char *name)
{
    yyjson_val *v;
    int rc = parameter(&v, owner, name);
    if (!rc && v && !yyjson_is_bool(v))
        rc = moirai_error(MOIRAI_EINPUT, "parameter \"%s\" must be true or false", name);
    *out = !rc && v ? yyjson_get_bool(v) : *out;
    return rc;
}

static int add_output(reading *g, int at, bool binary)
{
    const serve_tensor *t = &g->m->output[at];
    serve_request *r = g->r;
    for (int i = 0; i < r->n_outputs; i++)
        if (r->output[i] == at)
            return moirai_error(MOIRAI_EINPUT, "output '%s' is asked for twice", t->name);
    if (!binary && t->type->bytes == 2 && strstr(t->type->name, "F"))
        return moirai_error(MOIRAI_EINPUT, "output '%s': %s goes as binary data only: ask for \"binary_data\"", t->name,
                            t->type->name);
    r->output[r->n_outputs] = at;
    r->binary[r->n_outputs++] = binary;
    return 0;
}

static int read_outputs(reading *g, yyjson_val *root)
{
    yyjson_val *outputs = yyjson_obj_get(root, "outputs"), *item;
    bool all_binary = false;
    size_t i, n;
    int rc = flag(&all_binary, root, "binary_data_output");
    if (rc)
        return rc;
    if (outputs && !yyjson_is_arr(outputs))
        return moirai_error(MOIRAI_EINPUT, "\"outputs\" must be an array");
    yyjson_arr_foreach(outputs, i, n, item) {
        int at;
        bool binary = all_binary;
        rc = find(&at, g->m->output, g->m->n_outputs, item, "output");
        rc = rc ? rc : flag(&binary, item, "binary_data");
        rc = rc ? rc : add_output(g, at, binary);
        if (rc)
            return rc;
    }
    for (int k = 0; !yyjson_arr_size(outputs) && k < g->m->n_outputs && !rc; k++)
        rc = add_output(g, k, all_binary);
    return rc;
}

/* "timeout" is in microseconds, as Triton's clients send it. */
static int read_settings(serve_request *r, yyjson_val *root)
{
    yyjson_val *id = yyjson_obj_get(root, "id");
    yyjson_val *timeout = yyjson_obj_get(yyjson_obj_get(root, "parameters"), "timeout");
    if (id &&
        (!yyjson_is_str(id) || yyjson_get_len(id) >= sizeof r->id || strlen(yyjson_get_str(id)) < yyjson_get_len(id)))
        return moirai_error(MOIRAI_EINPUT, "\"id\" must be a string of less than %zu bytes, none of them zero",
                            sizeof r->id);
    if (id)
        memcpy(r->id, yyjson_get_str(id), yyjson_get_len(id));
    if (timeout && !yyjson_is_uint(timeout))
        return moirai_error(MOIRAI_EINPUT, "parameter \"timeout\" must be a whole number of microseconds");
    r->timeout_s = (double)yyjson_get_uint(timeout) / 1e6;
    return 0;
}

static int read_root(reading *g, yyjson_val *root)
{
    const serve_model *m = g->m;
    g->r->input = util_alloc(m->in_bytes, 1);
    g->r->output = util_alloc((size_t)m->n_outputs, sizeof *g->r->output);
    g->r->binary = util_alloc((size_t)m->n_outputs, sizeof *g->r->binary);
    if (!g->r->input || !g->r->output || !g->r->binary)
        return MOIRAI_EFAIL;
    int rc = read_settings(g->r, root);
    rc = rc ? rc : read_outputs(g, root);
    return rc ? rc : read_inputs(g, root);
}

/* ---- which shapes ---- */

static bool has_shape(const serve_tensor *t, yyjson_val *shape)
{
    bool same = yyjson_is_arr(shape) && yyjson_arr_size(shape) == (size_t)t->rank;
    for (size_t i = 0; same && i < (size_t)t->rank; i++) {
        yyjson_val *v = yyjson_arr_get(shape, i);
        same = yyjson_is_uint(v) && yyjson_get_uint(v) == (uint64_t)t->dim[i];
    }
    return same;
}

/* Whether all inputs that the model has are of its shapes. */
static bool has_shapes(const serve_model *m, yyjson_val *root)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(root, "inputs"), i, n, item) {
        yyjson_val *name = yyjson_obj_get(item, "name");
        for (int k = 0; k < m->n_inputs; k++)
            if (yyjson_equals_str(name, m->input[k].name) && !has_shape(&m->input[k], yyjson_obj_get(item, "shape")))
                return false;
    }
    return true;
}

/* "x [1,4], i [2]" */
static void shapes_text(char *out, size_t size, const serve_model *m)
{
    char shape[256];
    size_t used = 0;
    *out = '\0';
    for (int i = 0; i < m->n_inputs && used < size; i++) {
        serve_shape_text(shape, sizeof shape, m->input[i].dim, m->input[i].rank);
        used += (size_t)snprintf(out + used, size - used, "%s%.60s %s", i ? ", " : "", m->input[i].name, shape);
    }
}

/* An input whose shape no plan has, or none whose shapes are together in one. */
static int no_plan(const serve_model *const *models, int n)
{
    char all[600], one[200];
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof all; i++) {
        shapes_text(one, sizeof one, models[i]);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? "; " : "", one);
    }
    return moirai_error(MOIRAI_EINPUT,
                        "there is no plan for these shapes, and nothing is padded: there are plans for %s", all);
}

static int choose(int *which, const serve_model *const *models, int n, yyjson_val *root)
{
    for (*which = 0; *which < n; ++*which)
        if (n == 1 || has_shapes(models[*which], root))
            return 0;
    *which = 0;
    return no_plan(models, n);
}

/* What is no request at all gets a line of its own: that of files would speak of kinds of files. */
static int parse(yyjson_doc **doc, const char *text, size_t length)
{
    size_t blank = 0;
    while (blank < length && text[blank] && strchr(" \t\r\n", text[blank]))
        blank++;
    *doc = NULL;
    if (length && (blank == length || text[blank] != '{'))
        return moirai_error(MOIRAI_EINPUT, "request: no JSON object");
    return util_json_parse(doc, text, length, "request");
}

int serve_request_read_any(serve_request *r, int *which, const serve_model *const *models, int n, const char *body,
                           size_t length, int64_t json_bytes)
{
    yyjson_doc *doc = NULL;
    memset(r, 0, sizeof *r);
    *which = 0;
    if (json_bytes > (int64_t)length)
        return moirai_error(MOIRAI_EINPUT, "Inference-Header-Content-Length is %lld, the body has %zu bytes",
                            (long long)json_bytes, length);
    size_t n_json = json_bytes < 0 ? length : (size_t)json_bytes;
    int rc = parse(&doc, body, n_json);
    rc = rc ? rc : choose(which, models, n, yyjson_doc_get_root(doc));
    reading g = {.r = r, .m = models[*which], .rest = body + n_json, .n_rest = length - n_json};
    g.given = rc ? NULL : util_alloc((size_t)g.m->n_inputs, sizeof *g.given);
    rc = rc || g.given ? rc : MOIRAI_EFAIL;
    rc = rc ? rc : read_root(&g, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    free(g.given);
    return rc;
}

int serve_request_read(serve_request *r, const serve_model *m, const char *body, size_t length, int64_t json_bytes)
{
    int which;
    return serve_request_read_any(r, &which, &m, 1, body, length, json_bytes);
}

void serve_request_free(serve_request *r)
{
    free(r->input);
    free(r->output);
    free(r->binary);
    memset(r, 0, sizeof *r);
}
