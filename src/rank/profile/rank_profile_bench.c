/* The time of a piece: a session of its own, warm-up, runs, the median.
 *
 * A batch is a few runs; its spread is the interquartile range over the median. Where that is more than MOST_SPREAD,
 * something else was on the machine: the batch is measured again, up to MOST_BATCHES times, and the calmest one counts.
 * Every run of a session has a price of its own, a few microseconds, which an operator inside a longer sub-model does
 * not pay: what an Identity of one number takes is measured once and taken off. Weights are initializers, as in the
 * network, so that ONNX Runtime prepares them once; their numbers lie in one buffer per type that all pieces share. */
#include "rank/profile/rank_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx/onnx_model.h"
#include "onnx/onnx_piece.h"
#include "rank/mpi_clock.h"
#include "rank/ort_cuda.h"
#include "util/util.h"

enum { MOST_BATCHES = 3, FEWEST = 5, N_TYPES = 24, MOST_RUNS = 1000, MOST_RANK = 12, COLD_RUNS = 3 };
#define MOST_SPREAD 0.1
#define GPU_SWEEP ((size_t)256 << 20) /* GPUs have at most 128 MiB of cache today */

struct profile_bench {
    const rank_ort *ort;
    profile_effort effort;
    int64_t overhead_ns;
    char *sweep; /* what fills the caches with something else */
    size_t sweep_bytes;
    void *gpu_sweep;
    char *weights[N_TYPES]; /* by TensorProto type */
    size_t weight_bytes[N_TYPES];
};

/* One piece, ready to run. */
typedef struct trial {
    profile_bench *b;
    Onnx__ModelProto *model;
    OrtSessionOptions *options;
    OrtSession *session;
    size_t n_in, n_out;
    const char **in_name, **out_name;
    OrtValue **in, **out;
    void **data; /* of the inputs */
    /* On a GPU: */
    rank_bound bound;
    void **memory; /* of the inputs, there */
    bool learned;  /* the outputs have their lasting places */
} trial;

/* ---- weights ---- */

/* The type if `t` is made-up weights; their bytes. 0: it has its numbers. */
static int32_t weight_of(const Onnx__TensorProto *t, size_t *bytes)
{
    if (!t->n_external_data || !t->has_data_type || t->data_type < 1 || t->data_type >= N_TYPES)
        return 0;
    int64_t elements = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        if (!util_mul64(&elements, elements, t->dims[i]))
            return 0;
    *bytes = ((size_t)elements * (size_t)onnx_type_bits(t->data_type) + 7) / 8;
    return t->data_type;
}

static int need_weights(profile_bench *b, int32_t type, size_t bytes)
{
    if (bytes <= b->weight_bytes[type])
        return 0;
    free(b->weights[type]);
    b->weight_bytes[type] = 0;
    b->weights[type] = util_alloc(bytes, 1);
    if (!b->weights[type])
        return MOIRAI_EFAIL;
    b->weight_bytes[type] = bytes;
    size_t element = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    if (element)
        rank_profile_fill(b->weights[type], type, bytes / element, 0, (uint64_t)type);
    return 0;
}

static int give_weights(trial *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    bool used[N_TYPES] = {false};
    char name[N_TYPES][40];
    const char *names[N_TYPES];
    char *buffers[N_TYPES];
    size_t lengths[N_TYPES], n = 0, bytes;
    for (size_t i = 0; i < g->n_initializer; i++) {
        int32_t type = weight_of(g->initializer[i], &bytes);
        if (!type)
            continue;
        if (need_weights(t->b, type, bytes))
            return MOIRAI_EFAIL;
        used[type] = true;
    }
    for (int32_t type = 0; type < N_TYPES; type++) {
        if (!used[type])
            continue;
        snprintf(name[n], sizeof name[n], ONNX_PIECE_WEIGHTS "%d", type);
        names[n] = name[n];
        buffers[n] = t->b->weights[type];
        lengths[n++] = t->b->weight_bytes[type];
    }
    const rank_ort *o = t->b->ort;
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

static int put_on_gpu(trial *t, size_t i, size_t bytes, void **memory)
{
    const rank_cuda *c = t->b->ort->cuda;
    int rc = rank_cuda_alloc(&t->memory[i], c, bytes);
    *memory = t->memory[i];
    return rc ? rc : rank_cuda_put(c, t->memory[i], t->data[i], bytes);
}

static int make_input(trial *t, size_t i)
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
    const rank_ort *o = t->b->ort;
    void *memory = t->data[i];
    int rc = o->cuda ? put_on_gpu(t, i, bytes, &memory) : 0;
    return rc ? rc
              : rank_ort_check(o,
                               o->api->CreateTensorWithDataAsOrtValue(o->cuda ? o->gpu : o->cpu, memory, bytes, dim,
                                                                      rank, (ONNXTensorElementDataType)type, &t->in[i]),
                               "input");
}

/* ---- a trial ---- */

static void trial_drop_outputs(trial *t)
{
    for (size_t i = 0; t->out && i < t->n_out; i++) {
        if (t->out[i])
            t->b->ort->api->ReleaseValue(t->out[i]);
        t->out[i] = NULL;
    }
}

static void trial_free(trial *t)
{
    const OrtApi *api = t->b->ort->api;
    rank_bound_close(&t->bound);
    trial_drop_outputs(t);
    for (size_t i = 0; i < t->n_in; i++) {
        if (t->in && t->in[i])
            api->ReleaseValue(t->in[i]);
        if (t->data)
            free(t->data[i]);
        if (t->memory)
            rank_cuda_free(t->b->ort->cuda, t->memory[i]);
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
static int trial_load(trial *t, const uint8_t *piece, size_t length, const OrtSessionOptions *options)
{
    const rank_ort *o = t->b->ort;
    const Onnx__GraphProto *g = t->model->graph;
    int rc = rank_ort_check(o, o->api->CloneSessionOptions(options, &t->options), "session options");
    rc = rc ? rc : give_weights(t);
    rc = rc ? rc
            : rank_ort_check(o, o->api->CreateSessionFromArray(o->env, piece, length, t->options, &t->session),
                             g->n_node ? g->node[0]->op_type : "piece");
    if (rc && t->options) {
        o->api->ReleaseSessionOptions(t->options);
        t->options = NULL;
    }
    return rc;
}

static int trial_open(trial *t, const uint8_t *piece, size_t length)
{
    const rank_ort *o = t->b->ort;
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
static int trial_learn(trial *t)
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

static int trial_run_on_gpu(trial *t, int64_t *ns)
{
    int rc = t->learned ? 0 : trial_learn(t);
    int64_t start = rank_clock_own_ns();
    rc = rc ? rc : rank_bound_run(&t->bound, t->model->graph->node[0]->op_type);
    *ns = rank_clock_own_ns() - start;
    return rc;
}

static int trial_run(trial *t, int64_t *ns)
{
    const rank_ort *o = t->b->ort;
    if (o->cuda)
        return trial_run_on_gpu(t, ns);
    int64_t start = rank_clock_own_ns();
    OrtStatus *status = o->api->Run(t->session, NULL, t->in_name, (const OrtValue *const *)t->in, t->n_in, t->out_name,
                                    t->n_out, t->out);
    *ns = rank_clock_own_ns() - start;
    trial_drop_outputs(t);
    return rank_ort_check(o, status, t->model->graph->node[0]->op_type);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int batch(profile_time *out, trial *t)
{
    int64_t ns[MOST_RUNS];
    const profile_effort *e = &t->b->effort;
    double end = util_seconds() + e->seconds;
    int n = 0, most = UTIL_MIN(UTIL_MAX(e->runs, FEWEST), MOST_RUNS);
    while (n < most && (n < FEWEST || util_seconds() < end)) {
        int rc = trial_run(t, &ns[n]);
        if (rc)
            return rc;
        n++;
    }
    qsort(ns, (size_t)n, sizeof *ns, by_time);
    int64_t median = UTIL_MAX(ns[n / 2], 1);
    *out = (profile_time){.median_ns = median, .n = n, .spread = (double)(ns[3 * n / 4] - ns[n / 4]) / (double)median};
    return 0;
}

/* Writes more than the caches hold: the host's, or the GPU's. */
static int sweep(const profile_bench *b)
{
    if (b->ort->cuda)
        return rank_cuda_fill(b->ort->cuda, b->gpu_sweep, 1, GPU_SWEEP);
    volatile char *at = b->sweep;
    for (size_t k = 0; k < b->sweep_bytes; k += 64)
        at[k] = (char)(at[k] + 1);
    return 0;
}

/* In a network each operator runs once, and its weights were last touched a whole network ago: where that is more than
 * the caches hold, they come from memory. A run after a walk over a buffer that is larger than the caches is the other
 * end of what can happen: inputs are cold as well. */
static int measure_cold(profile_time *out, trial *t)
{
    int64_t ns[COLD_RUNS];
    for (int i = 0; i < COLD_RUNS; i++) {
        int rc = sweep(t->b);
        rc = rc ? rc : trial_run(t, &ns[i]);
        if (rc)
            return rc;
    }
    qsort(ns, COLD_RUNS, sizeof *ns, by_time);
    out->cold_ns = UTIL_MAX(ns[COLD_RUNS / 2], out->median_ns); /* noise aside, never faster */
    return 0;
}

static int measure(profile_time *out, trial *t)
{
    int64_t ns;
    double end = util_seconds() + t->b->effort.seconds;
    int rc = trial_run(t, &ns);
    for (int i = 1; i < t->b->effort.warmup && !rc && util_seconds() < end; i++)
        rc = trial_run(t, &ns);
    int k = 0;
    for (bool calm = false; k < MOST_BATCHES && !calm && !rc; k++) {
        profile_time one;
        rc = batch(&one, t);
        if (!rc && (k == 0 || one.spread < out->spread))
            *out = one;
        calm = one.spread <= MOST_SPREAD;
    }
    out->batches = k;
    return rc ? rc : measure_cold(out, t);
}

int rank_profile_bench_run(profile_time *out, profile_bench *b, const uint8_t *piece, size_t length)
{
    trial t = {.b = b};
    *out = (profile_time){.median_ns = -1};
    int rc = trial_open(&t, piece, length);
    rc = rc ? rc : measure(out, &t);
    trial_free(&t);
    if (rc)
        out->median_ns = -1;
    else
        out->median_ns = UTIL_MAX(out->median_ns - b->overhead_ns, 0);
    out->cold_ns = UTIL_MAX(out->cold_ns - b->overhead_ns, 0);
    return rc;
}

/* ---- the overhead ---- */

static int measure_overhead(profile_bench *b)
{
    profile_time t;
    int rc = rank_profile_bench_run(&t, b, rank_ort_identity, sizeof rank_ort_identity);
    b->overhead_ns = rc ? 0 : t.median_ns;
    return rc;
}

/* Twice the largest cache, where the system knows it; at most 64 MiB, which takes some 10 ms to walk over. */
static size_t sweep_size(void)
{
    long largest = UTIL_MAX(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
    size_t most = (size_t)64 << 20;
    return largest > 0 ? UTIL_MIN(2 * (size_t)largest, most) : most / 2;
}

int rank_profile_bench_open(profile_bench **out, const rank_ort *ort, const profile_effort *effort)
{
    profile_bench *b = util_alloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return MOIRAI_EFAIL;
    b->ort = ort;
    b->effort = *effort;
    b->sweep_bytes = sweep_size();
    b->sweep = util_alloc(b->sweep_bytes, 1);
    int rc = b->sweep ? 0 : MOIRAI_EFAIL;
    if (!rc && ort->cuda)
        rc = rank_cuda_alloc(&b->gpu_sweep, ort->cuda, GPU_SWEEP);
    rc = rc ? rc : measure_overhead(b);
    if (rc) {
        rank_profile_bench_free(b);
        return rc;
    }
    *out = b;
    return 0;
}

void rank_profile_bench_free(profile_bench *b)
{
    if (!b)
        return;
    for (int i = 0; i < N_TYPES; i++)
        free(b->weights[i]);
    free(b->sweep);
    if (b->gpu_sweep)
        rank_cuda_free(b->ort->cuda, b->gpu_sweep);
    free(b);
}

int64_t rank_profile_bench_overhead(const profile_bench *b)
{
    return b->overhead_ns;
}
