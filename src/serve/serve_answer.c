/* What the server says: answers, errors, and what it serves. */
#include "serve/serve_request.h"

#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/util.h"

static int take(char **body, size_t *length, util_writer *w)
{
    *body = util_writer_take(w, length);
    return *body ? 0 : MOIRAI_EFAIL;
}

/* ---- tensors ---- */

static void write_int(util_writer *w, const char *at, const serve_type *type)
{
    uint64_t n = 0;
    memcpy(&n, at, type->bytes); /* little-endian */
    int shift = 64 - 8 * (int)type->bytes;
    if (type->name[0] == 'I')
        util_writer_int(w, (int64_t)(n << shift) >> shift);
    else
        util_writer_uint(w, n);
}

/* What is not finite has no number in JSON: null. */
static void write_real(util_writer *w, const char *at, const serve_type *type)
{
    double x = 0;
    float f = 0;
    if (type->bytes == 8) {
        memcpy(&x, at, sizeof x);
    } else {
        memcpy(&f, at, sizeof f);
        x = (double)f;
    }
    util_writer_real(w, x);
}

static void write_data(util_writer *w, const serve_tensor *t, const char *data)
{
    const serve_type *type = t->type;
    util_writer_pair_open(w, "data", '[');
    for (int64_t i = 0; i < t->elements; i++) {
        const char *at = data + (size_t)i * type->bytes;
        if (!strncmp(type->name, "FP", 2))
            write_real(w, at, type);
        else if (!strcmp(type->name, "BOOL"))
            util_writer_bool(w, *at != 0);
        else
            write_int(w, at, type);
    }
    util_writer_close(w, ']');
}

static void write_head(util_writer *w, const serve_tensor *t)
{
    util_writer_pair_string(w, "name", t->name);
    util_writer_pair_string(w, "datatype", t->type->name);
    util_writer_pair_open(w, "shape", '[');
    for (int64_t i = 0; i < t->rank; i++)
        util_writer_int(w, t->dim[i]);
    util_writer_close(w, ']');
}

static void write_output(util_writer *w, const serve_tensor *t, const char *data, bool binary)
{
    util_writer_open(w, '{');
    write_head(w, t);
    if (binary) {
        util_writer_pair_open(w, "parameters", '{');
        util_writer_pair_int(w, "binary_data_size", (int64_t)t->bytes);
        util_writer_close(w, '}');
    } else {
        write_data(w, t, data);
    }
    util_writer_close(w, '}');
}

static const char *output_at(const serve_model *m, const char *output, int index)
{
    for (int i = 0; i < index; i++)
        output += m->output[i].bytes;
    return output;
}

/* ---- an answer ---- */

static int append_binary(char **body, size_t *length, const serve_model *m, const serve_request *r, const char *output)
{
    size_t more = 0;
    for (int i = 0; i < r->n_outputs; i++)
        more += r->binary[i] ? m->output[r->output[i]].bytes : 0;
    char *all = util_resize(*body, *length + more, 1);
    if (!all) {
        free(*body);
        *body = NULL;
        return MOIRAI_EFAIL;
    }
    *body = all;
    for (int i = 0; i < r->n_outputs; i++) {
        const serve_tensor *t = &m->output[r->output[i]];
        if (!r->binary[i])
            continue;
        memcpy(all + *length, output_at(m, output, r->output[i]), t->bytes);
        *length += t->bytes;
    }
    return 0;
}

int serve_answer_write(char **body, size_t *length, size_t *json_bytes, const serve_model *m, const serve_request *r,
                       const char *output)
{
    util_writer w;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "model_name", m->name);
    util_writer_pair_string(&w, "model_version", SERVE_VERSION);
    if (*r->id)
        util_writer_pair_string(&w, "id", r->id);
    util_writer_pair_open(&w, "outputs", '[');
    for (int i = 0; i < r->n_outputs; i++)
        write_output(&w, &m->output[r->output[i]], output_at(m, output, r->output[i]), r->binary[i]);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    int rc = take(body, length, &w);
    *json_bytes = rc ? 0 : *length;
    return rc ? rc : append_binary(body, length, m, r, output);
}

int serve_error_write(char **body, size_t *length, const char *text)
{
    util_writer w;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "error", text);
    util_writer_close(&w, '}');
    return take(body, length, &w);
}

/* ---- what is served ---- */

int serve_about_server(char **body, size_t *length)
{
    util_writer w;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "name", "moirai");
    util_writer_pair_string(&w, "version", moirai_version());
    util_writer_pair_open(&w, "extensions", '[');
    util_writer_string(&w, "binary_tensor_data");
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return take(body, length, &w);
}

static void write_list(util_writer *w, const char *key, const serve_tensor *t, int n)
{
    util_writer_pair_open(w, key, '[');
    for (int i = 0; i < n; i++) {
        util_writer_open(w, '{');
        write_head(w, &t[i]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

/* The same list of several models; -1 is a dimension that is not the same in all. */
static void write_common(util_writer *w, const char *key, const serve_model *const *models, int n, bool inputs)
{
    const serve_model *m = models[0];
    util_writer_pair_open(w, key, '[');
    for (int i = 0; i < (inputs ? m->n_inputs : m->n_outputs); i++) {
        serve_tensor t = inputs ? m->input[i] : m->output[i];
        for (int k = 1; k < n; k++) {
            const serve_tensor *other = inputs ? &models[k]->input[i] : &models[k]->output[i];
            for (int64_t d = 0; d < t.rank; d++)
                t.dim[d] = t.dim[d] == other->dim[d] ? t.dim[d] : -1;
        }
        util_writer_open(w, '{');
        write_head(w, &t);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_buckets(util_writer *w, const serve_model *const *models, int n)
{
    util_writer_pair_open(w, "buckets", '[');
    for (int k = 0; k < n; k++) {
        util_writer_open(w, '{');
        write_list(w, "inputs", models[k]->input, models[k]->n_inputs);
        write_list(w, "outputs", models[k]->output, models[k]->n_outputs);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

int serve_about_model(char **body, size_t *length, const serve_model *const *models, int n)
{
    util_writer w;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "name", models[0]->name);
    util_writer_pair_open(&w, "versions", '[');
    util_writer_string(&w, SERVE_VERSION);
    util_writer_close(&w, ']');
    util_writer_pair_string(&w, "platform", "moirai_onnx");
    write_common(&w, "inputs", models, n, true);
    write_common(&w, "outputs", models, n, false);
    if (n > 1)
        write_buckets(&w, models, n);
    util_writer_close(&w, '}');
    return take(body, length, &w);
}
