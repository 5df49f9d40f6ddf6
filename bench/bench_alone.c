/* A model in ONNX Runtime as anybody would run it (its own session, default options but for the number of threads) against
 * the sub-model that moirai-rank runs, opened by moirai-rank's own code.
 *
 *     bench_alone MODEL PART THREADS RUNS stock|ours
 *
 * Runs take turns in one process. The last word is what is opened first: a session's memory is worth a percent. Prints pairs
 * of nanoseconds of processor time, stock and ours, as JSON. onnx_alone.py makes the models and the table. Inputs are small
 * numbers by chance; whole ones are 0 or 1, which any vocabulary has. */
#include "rank/ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <moirai/error.h>

#define MOST 16 /* inputs or outputs */
#define WARM_UP 3

static const OrtApi *api;

static void need(OrtStatus *status)
{
    if (!status)
        return;
    fprintf(stderr, "bench_alone: %s\n", api->GetErrorMessage(status));
    exit(1);
}

/* Of all threads: a busy machine does not change it. */
static int64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void fill(void *data, size_t n, ONNXTensorElementDataType type)
{
    for (size_t i = 0; i < n; i++) {
        if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
            ((float *)data)[i] = (float)(i * 2654435761u % 1000) / 500.0f - 1.0f;
        else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)
            ((int64_t *)data)[i] = (int64_t)(i % 2);
    }
}

static OrtValue *input_of(const OrtSession *session, OrtAllocator *allocator, size_t i)
{
    OrtTypeInfo *info;
    const OrtTensorTypeAndShapeInfo *tensor;
    ONNXTensorElementDataType type;
    size_t rank, n = 1;
    int64_t dim[16];
    OrtValue *value;
    void *data;
    need(api->SessionGetInputTypeInfo(session, i, &info));
    need(api->CastTypeInfoToTensorInfo(info, &tensor));
    need(api->GetTensorElementType(tensor, &type));
    need(api->GetDimensionsCount(tensor, &rank));
    need(api->GetDimensions(tensor, dim, rank < 16 ? rank : 16));
    for (size_t k = 0; k < rank; k++) {
        dim[k] = dim[k] < 1 ? 1 : dim[k];
        n *= (size_t)dim[k];
    }
    need(api->CreateTensorAsOrtValue(allocator, dim, rank, type, &value));
    need(api->GetTensorMutableData(value, &data));
    fill(data, n, type);
    api->ReleaseTypeInfo(info);
    return value;
}

typedef struct alone {
    OrtSession *session;
    size_t n_in, n_out;
    char *in_name[MOST], *out_name[MOST];
    OrtValue *in[MOST];
} alone;

static OrtSession *stock_session(const char *path, int threads)
{
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    need(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "alone", &env));
    need(api->CreateSessionOptions(&options));
    need(api->SetIntraOpNumThreads(options, threads));
    need(api->CreateSession(env, path, options, &session));
    return session;
}

static void open_model(alone *x, OrtSession *session)
{
    OrtAllocator *allocator;
    x->session = session;
    need(api->GetAllocatorWithDefaultOptions(&allocator));
    need(api->SessionGetInputCount(x->session, &x->n_in));
    need(api->SessionGetOutputCount(x->session, &x->n_out));
    if (x->n_in > MOST || x->n_out > MOST) {
        fprintf(stderr, "bench_alone: %zu inputs, %zu outputs: at most %d\n", x->n_in, x->n_out, MOST);
        exit(1);
    }
    for (size_t i = 0; i < x->n_in; i++) {
        need(api->SessionGetInputName(x->session, i, allocator, &x->in_name[i]));
        x->in[i] = input_of(x->session, allocator, i);
    }
    for (size_t i = 0; i < x->n_out; i++)
        need(api->SessionGetOutputName(x->session, i, allocator, &x->out_name[i]));
}

/* As rank_exec.c runs a segment: outputs are ONNX Runtime's own, and go when they are dead. */
static int64_t run_ns(const alone *x)
{
    OrtValue *out[MOST] = {NULL};
    int64_t start_ns = processor_ns();
    need(api->Run(x->session, NULL, (const char *const *)x->in_name, (const OrtValue *const *)x->in, x->n_in,
                  (const char *const *)x->out_name, x->n_out, out));
    int64_t took_ns = processor_ns() - start_ns;
    for (size_t k = 0; k < x->n_out; k++)
        api->ReleaseValue(out[k]);
    return took_ns;
}

/* The second of two: the first one finds the other's numbers in the caches. */
static int64_t warm_ns(const alone *x)
{
    run_ns(x);
    return run_ns(x);
}

static void open_stock(alone *x, const char *path, int threads)
{
    open_model(x, stock_session(path, threads));
}

/* "-": stock against itself, which says what the measurement is worth. */
static int open_ours(alone *x, const rank_ort *ort, char **argv)
{
    OrtSession *session;
    if (!strcmp(argv[2], "-")) {
        open_stock(x, argv[1], ort->threads);
        return 0;
    }
    int rc = rank_ort_session(&session, ort, argv[2]);
    if (!rc)
        open_model(x, session);
    return rc;
}

int main(int argc, char **argv)
{
    alone stock = {0}, ours = {0};
    rank_ort *ort = NULL;
    if (argc != 6) {
        fprintf(stderr, "usage: bench_alone MODEL PART THREADS RUNS stock|ours\n");
        return 2;
    }
    rank_ort_device device = {.ep = "cpu", .threads = atoi(argv[3])};
    bool stock_first = !strcmp(argv[5], "stock");
    int rc = rank_ort_open(&ort, &device);
    api = rc ? NULL : ort->api;
    if (!rc && stock_first)
        open_stock(&stock, argv[1], ort->threads);
    rc = rc ? rc : open_ours(&ours, ort, argv);
    if (rc) {
        fprintf(stderr, "bench_alone: %s\n", moirai_error_message());
        return 1;
    }
    if (!stock_first)
        open_stock(&stock, argv[1], ort->threads);
    for (int i = -WARM_UP; i < atoi(argv[4]); i++) {
        bool first = i % 2;
        int64_t a = first ? warm_ns(&stock) : 0, b = warm_ns(&ours);
        a = first ? a : warm_ns(&stock);
        if (i >= 0)
            printf("%s[%lld, %lld]", i ? ", " : "[", (long long)a, (long long)b);
    }
    printf("]\n");
    rank_ort_close(ort);
    return 0;
}
