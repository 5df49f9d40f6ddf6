/* One piece, ready to run: its weights, its inputs and its session.
 *
 * Weights are initializers, as in the network, so that ONNX Runtime prepares them once; their numbers lie in one buffer
 * per type that all pieces share. On a GPU inputs and outputs stay there, and a run is over when the GPU has ended. */
#include "rank/profile/rank_profile_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_piece.h"
#include "rank/mpi_clock.h"
#include "util/util.h"

enum { MOST_RANK = 12 };

/* ---- weights ---- */

/* The type if `t` is made-up weights; their bytes. 0: it has its numbers. */
static int32_t weight_of(const Onnx__TensorProto *t, size_t *bytes)
{
    if (!t->n_external_data || !t->has_data_type || t->data_type < 1 || t->data_type >= PROFILE_TYPES)
        return 0;
    int64_t elements = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        if (!util_mul64(&elements, elements, t->dims[i]))
            return 0;
    *bytes = ((size_t)elements * (size_t)onnx_type_bits(t->data_type) + 7) / 8;
    return t->data_type;
}

static int need_weights(profile_weights *b, int32_t type, size_t bytes)
{
    if (bytes <= b->bytes[type])
        return 0;
    free(b->data[type]);
    b->bytes[type] = 0;
    b->data[type] = util_alloc(bytes, 1);
    if (!b->data[type])
        return MOIRAI_EFAIL;
    b->bytes[type] = bytes;
    size_t element = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    if (element)
        rank_profile_fill(b->data[type], type, bytes / element, 0, (uint64_t)type);
    return 0;
}

static int give_weights(profile_trial *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    bool used[PROFILE_TYPES] = {false};
    char name[PROFILE_TYPES][40];
    const char *names[PROFILE_TYPES];
    char *buffers[PROFILE_TYPES];
    size_t lengths[PROFILE_TYPES], n = 0, bytes;
    for (size_t i = 0; i < g->n_initializer; i++) {
        int32_t type = weight_of(g->initializer[i], &bytes);
        if (!type)
            continue;
        if (need_weights(t->weights, type, bytes))
            return MOIRAI_EFAIL;
        used[type] = true;
    }
    for (int32_t type = 0; type < PROFILE_TYPES; type++) {
        if (!used[type])
            continue;
        snprintf(name[n], sizeof name[n], ONNX_PIECE_WEIGHTS "%d", type);
        names[n] = name[n];
        buffers[n] = t->weights->data[type];
        lengths[n++] = t->weights->bytes[type];
    }
    const rank_ort *o = t->ort;
    return n ? rank_ort_check(o,
                              o->api->AddExternalInitializersFromFilesInMemory(t->options, names, buffers, lengths, n),
                              "weights")
             : 0;
}

/* ---- inputs ---- */

static int64_t dims_of(const Onnx__ValueInfoProto *v, int64_t *dim, size_t *rank)
{
    const Onnx__TensorShapeProto *s = v->type->tensor_type->shape;
    int64_t elements = 1;
    *rank = s ? UTIL_MIN(s->n_dim, (size_t)MOST_RANK) : 0;
    for (size_t i = 0; i < *rank; i++)
        if (!util_mul64(&elements, elements, dim[i] = s->dim[i]->dim_value))
            return -1;
    return elements;
}

static size_t find_dims(const Onnx__GraphProto *g, const char *name, int64_t *dim)
{
    size_t rank = 0;
    for (size_t i = 0; i < g->n_input; i++)
        if (!strcmp(g->input[i]->name, name)) {
            dims_of(g->input[i], dim, &rank);
            return rank;
        }
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!strcmp(g->initializer[i]->name, name)) {
            rank = UTIL_MIN(g->initializer[i]->n_dims, (size_t)MOST_RANK);
            memcpy(dim, g->initializer[i]->dims, rank * sizeof *dim);
            return rank;
        }
    return 0;
}

/* Where an input is an index: what it must stay below. 0: it is none. */
static int64_t index_bound(const Onnx__GraphProto *g, const char *input)
{
    static const char *const types[] = {"Gather",          "GatherElements", "GatherND", "Scatter",
                                        "ScatterElements", "ScatterND",      "OneHot",   "EmbedLayerNormalization"};
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        bool indexed = false, among = false;
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            among |= n->op_type && !strcmp(n->op_type, types[k]);
        for (size_t k = 0; k < n->n_input; k++)
            indexed |= !strcmp(n->input[k], input);
        if (!among || !indexed)
            continue;
        int64_t dim[MOST_RANK], axis = onnx_attr_int(n, "axis", strcmp(n->op_type, "Gather") ? -99 : 0), least = 2;
        size_t rank = find_dims(g, n->input[0], dim);
        axis += axis < 0 ? (int64_t)rank : 0;
        if (axis >= 0 && axis < (int64_t)rank)
            return UTIL_MAX(dim[axis], 1);
        for (size_t k = 0; k < rank; k++)
            least = k ? UTIL_MIN(least, dim[k]) : dim[k];
        return UTIL_MAX(least, 1);
    }
    return 0;
}

static int put_on_gpu(profile_trial *t, size_t i, size_t bytes, void **memory)
{
    const rank_cuda *c = t->ort->cuda;
    int rc = rank_cuda_alloc(&t->memory[i], c, bytes);
    *memory = t->memory[i];
    return rc ? rc : rank_cuda_put(c, t->memory[i], t->data[i], bytes);
}

static int make_input(profile_trial *t, size_t i)
{
    const Onnx__GraphProto *g = t->model->graph;
    const Onnx__ValueInfoProto *v = g->input[i];
    int64_t dim[MOST_RANK];
    size_t rank, bytes = 0;
    int32_t type = v->type->tensor_type->elem_type;
    int64_t elements = dims_of(v, dim, &rank);
    size_t element = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    if (!element || elements < 0 || __builtin_mul_overflow((size_t)elements, element, &bytes))
        return moirai_error(MOIRAI_EINPUT, "an input of type %d can't be made up", type);
    t->in_name[i] = v->name;
    t->data[i] = util_alloc(bytes, 1);
    if (!t->data[i])
        return MOIRAI_EFAIL;
    rank_profile_fill(t->data[i], type, (size_t)elements, index_bound(g, v->name), i + 1);
    const rank_ort *o = t->ort;
    void *memory = t->data[i];
    int rc = o->cuda ? put_on_gpu(t, i, bytes, &memory) : 0;
    return rc ? rc
              : rank_ort_check(o,
                               o->api->CreateTensorWithDataAsOrtValue(o->cuda ? o->gpu : o->cpu, memory, bytes, dim,
                                                                      rank, (ONNXTensorElementDataType)type, &t->in[i]),
                               "input");
}

/* ---- a trial ---- */

static void trial_drop_outputs(profile_trial *t)
{
    for (size_t i = 0; t->out && i < t->n_out; i++) {
        if (t->out[i])
            t->ort->api->ReleaseValue(t->out[i]);
        t->out[i] = NULL;
    }
}

void rank_profile_trial_free(profile_trial *t)
{
    const OrtApi *api = t->ort->api;
    rank_bound_close(&t->bound);
    trial_drop_outputs(t);
    for (size_t i = 0; i < t->n_in; i++) {
        if (t->in && t->in[i])
            api->ReleaseValue(t->in[i]);
        if (t->data)
            free(t->data[i]);
        if (t->memory)
            rank_cuda_free(t->ort->cuda, t->memory[i]);
    }
    if (t->session)
        api->ReleaseSession(t->session);
    if (t->options)
        api->ReleaseSessionOptions(t->options);
    if (t->model)
        onnx__model_proto__free_unpacked(t->model, NULL);
    free(t->in_name);
    free(t->out_name);
    free(t->in);
    free(t->out);
    free(t->data);
    free(t->memory);
}

/* Recorded where that is possible, as in `moirai run`. */
static int trial_load(profile_trial *t, const uint8_t *piece, size_t length, const OrtSessionOptions *options)
{
    const rank_ort *o = t->ort;
    const Onnx__GraphProto *g = t->model->graph;
    int rc = rank_ort_check(o, o->api->CloneSessionOptions(options, &t->options), "session options");
    rc = rc ? rc : give_weights(t);
    rc = rc ? rc
            : rank_ort_session_of(&t->session, o, piece, length, t->options, g->n_node ? g->node[0]->op_type : "piece");
    if (rc && t->options) {
        o->api->ReleaseSessionOptions(t->options);
        t->options = NULL;
    }
    return rc;
}

int rank_profile_trial_open(profile_trial *t, const uint8_t *piece, size_t length)
{
    const rank_ort *o = t->ort;
    t->model = onnx__model_proto__unpack(NULL, length, piece);
    if (!t->model || !t->model->graph)
        return moirai_error(MOIRAI_EFAIL, "a piece that is no model");
    const Onnx__GraphProto *g = t->model->graph;
    int rc = o->graphs ? trial_load(t, piece, length, o->graphs) : MOIRAI_EFAIL;
    rc = rc ? trial_load(t, piece, length, o->options) : 0;
    rc = rc || !o->cuda ? rc : rank_bound_open(&t->bound, o, t->session);
    t->in_name = util_alloc(g->n_input, sizeof *t->in_name);
    t->out_name = util_alloc(g->n_output, sizeof *t->out_name);
    t->in = util_alloc(g->n_input, sizeof *t->in);
    t->out = util_alloc(g->n_output, sizeof *t->out);
    t->data = util_alloc(g->n_input, sizeof *t->data);
    t->memory = util_alloc(g->n_input, sizeof *t->memory);
    if (!t->in_name || !t->out_name || !t->in || !t->out || !t->data || !t->memory)
        return MOIRAI_EFAIL;
    t->n_in = g->n_input;
    t->n_out = g->n_output;
    for (size_t i = 0; i < t->n_in && !rc; i++)
        rc = make_input(t, i);
    for (size_t i = 0; i < t->n_out; i++)
        t->out_name[i] = g->output[i]->name;
    return rc;
}

/* On a GPU the first run makes the outputs, and all others run into them. */
static int trial_learn(profile_trial *t)
{
    const char *what = t->model->graph->node[0]->op_type;
    int rc = 0;
    for (size_t i = 0; i < t->n_in && !rc; i++)
        rc = rank_bound_in(&t->bound, t->in_name[i], t->in[i]);
    rc = rc ? rc : rank_bound_learn(&t->bound, t->out_name, t->n_out, t->out, what);
    for (size_t i = 0; i < t->n_out && !rc; i++)
        rc = rank_bound_out(&t->bound, t->out_name[i], t->out[i]);
    t->learned = !rc;
    return rc ? rc : rank_bound_run(&t->bound, what); /* records it */
}

static int trial_run_on_gpu(profile_trial *t, int64_t *ns)
{
    int rc = t->learned ? 0 : trial_learn(t);
    int64_t start = rank_clock_own_ns();
    rc = rc ? rc : rank_bound_run(&t->bound, t->model->graph->node[0]->op_type);
    *ns = rank_clock_own_ns() - start;
    return rc;
}

int rank_profile_trial_run(profile_trial *t, int64_t *ns)
{
    const rank_ort *o = t->ort;
    if (o->cuda)
        return trial_run_on_gpu(t, ns);
    int64_t start = rank_clock_own_ns();
    OrtStatus *status = o->api->Run(t->session, NULL, t->in_name, (const OrtValue *const *)t->in, t->n_in, t->out_name,
                                    t->n_out, t->out);
    *ns = rank_clock_own_ns() - start;
    trial_drop_outputs(t);
    return rank_ort_check(o, status, t->model->graph->node[0]->op_type);
}
