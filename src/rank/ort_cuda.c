/* ONNX Runtime on a GPU: the options of its CUDA provider, and sessions whose tensors stay on the GPU.
 *
 * Every session of a rank computes on one stream of ours. A session is recorded as a CUDA graph where ONNX Runtime can
 * (all operators on the GPU, no control flow): a run is then one launch in place of one per operator, which on small
 * operators is most of the time. Recording needs tensors at fixed addresses, so the first run of a session, whose sizes
 * are not known, goes without; MOIRAI_CUDA_GRAPHS=0 turns it off for all.
 *
 * Products and convolutions of float32 are computed in float32: TF32, which CUDA would take on newer GPUs, has 10 bits
 * of mantissa and would show in --verify. Convolutions take the algorithm that cuDNN's heuristics name, not the one
 * that wins a race at loading time: the race is run beside other ranks, and its winner changes from run to run
 * (MOIRAI_CUDNN_SEARCH=EXHAUSTIVE has it run all the same). */
#include "rank/ort_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_run_options_config_keys.h>

#include "util/util.h"

#define WHAT "execution provider cuda"

static int has_provider(void)
{
    char names[256];
    int rc = rank_ort_providers(names, sizeof names);
    if (rc || strstr(names, "cuda"))
        return rc;
    return moirai_error(MOIRAI_EFAIL,
                        WHAT ": ONNX Runtime %s here was built without it, it has %s (the package "
                             "onnxruntime-gpu has it)",
                        rank_ort_version(), names);
}

static int append(const rank_ort *ort, OrtSessionOptions *options, bool graphs)
{
    const OrtApi *api = ort->api;
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    char number[16];
    const char *search = getenv("MOIRAI_CUDNN_SEARCH");
    const char *const keys[] = {"device_id", "arena_extend_strategy", "cudnn_conv_algo_search", "use_tf32",
                                "enable_cuda_graph"};
    const char *const values[] = {number, "kSameAsRequested", search ? search : "HEURISTIC", "0", graphs ? "1" : "0"};
    snprintf(number, sizeof number, "%d", rank_cuda_number(ort->cuda));
    int rc = rank_ort_check(ort, api->CreateCUDAProviderOptions(&cuda), WHAT);
    rc = rc ? rc
            : rank_ort_check(ort, api->UpdateCUDAProviderOptions(cuda, keys, values, sizeof keys / sizeof *keys), WHAT);
    rc =
        rc ? rc
           : rank_ort_check(
                 ort, api->UpdateCUDAProviderOptionsWithValue(cuda, "user_compute_stream", rank_cuda_stream(ort->cuda)),
                 WHAT);
    rc = rc ? rc : rank_ort_check(ort, api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda), WHAT);
    if (cuda)
        api->ReleaseCUDAProviderOptions(cuda);
    return rc;
}

static int add_provider(rank_ort *ort)
{
    const OrtApi *api = ort->api;
    const char *graphs = getenv("MOIRAI_CUDA_GRAPHS");
    int rc = 0;
    if (!graphs || strcmp(graphs, "0")) {
        rc = rank_ort_check(ort, api->CloneSessionOptions(ort->options, &ort->graphs), WHAT);
        rc = rc ? rc : append(ort, ort->graphs, true);
    }
    rc = rc ? rc : append(ort, ort->options, false);
    return rc ? rc
              : rank_ort_check(ort,
                               api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, rank_cuda_number(ort->cuda),
                                                     OrtMemTypeDefault, &ort->gpu),
                               WHAT);
}

int rank_ort_cuda_open(rank_ort *ort, int number)
{
    const OrtApi *api = ort->api;
    const char *stand_in = getenv("MOIRAI_CUDA_DRIVER");
    int rc = stand_in ? 0 : has_provider();
    rc = rc ? rc : rank_cuda_open(&ort->cuda, number);
    if (rc)
        return rc;
    rc = rank_ort_check(ort, api->CreateRunOptions(&ort->first_run), WHAT);
    rc = rc ? rc
            : rank_ort_check(ort, api->AddRunConfigEntry(ort->first_run, kOrtRunOptionsConfigCudaGraphAnnotation, "-1"),
                             WHAT);
    if (rc || !rank_cuda_is_host(ort->cuda))
        return rc ? rc : add_provider(ort);
    return rank_ort_check(ort, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &ort->gpu), WHAT);
}

void rank_ort_cuda_close(rank_ort *ort)
{
    if (ort->first_run)
        ort->api->ReleaseRunOptions(ort->first_run);
    if (ort->graphs)
        ort->api->ReleaseSessionOptions(ort->graphs);
    if (ort->gpu)
        ort->api->ReleaseMemoryInfo(ort->gpu);
    rank_cuda_close(ort->cuda);
}

/* ---- tensors ---- */

int rank_gpu_value(OrtValue **out, const rank_ort *ort, void *memory, size_t bytes, const rank_shape *s)
{
    *out = NULL;
    return rank_ort_check(ort,
                          ort->api->CreateTensorWithDataAsOrtValue(ort->gpu, memory, bytes, s->dim, (size_t)s->rank,
                                                                   (ONNXTensorElementDataType)s->type, out),
                          "tensor on the GPU");
}

/* ---- runs ---- */

static int run(const rank_bound *b, const OrtRunOptions *options, const char *what)
{
    int rc = rank_ort_check(b->ort, b->ort->api->RunWithBinding(b->session, options, b->binding), what);
    return rc ? rc : rank_cuda_wait(b->ort->cuda);
}

int rank_bound_open(rank_bound *b, const rank_ort *ort, OrtSession *session)
{
    *b = (rank_bound){.ort = ort, .session = session};
    return rank_ort_check(ort, ort->api->CreateIoBinding(session, &b->binding), "binding");
}

void rank_bound_close(rank_bound *b)
{
    if (b->binding)
        b->ort->api->ReleaseIoBinding(b->binding);
    b->binding = NULL;
}

int rank_bound_in(rank_bound *b, const char *name, const OrtValue *value)
{
    return rank_ort_check(b->ort, b->ort->api->BindInput(b->binding, name, value), name);
}

int rank_bound_out(rank_bound *b, const char *name, const OrtValue *value)
{
    return rank_ort_check(b->ort, b->ort->api->BindOutput(b->binding, name, value), name);
}

int rank_bound_learn(rank_bound *b, const char *const *out, size_t n, OrtValue **value, const char *what)
{
    const OrtApi *api = b->ort->api;
    OrtValue **made = NULL;
    size_t n_made = 0;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = rank_ort_check(b->ort, api->BindOutputToDevice(b->binding, out[i], b->ort->gpu), out[i]);
    rc = rc ? rc : run(b, b->ort->first_run, what);
    rc = rc ? rc
            : rank_ort_check(b->ort, api->GetBoundOutputValues(b->binding, b->ort->allocator, &made, &n_made), what);
    if (!rc && n_made != n)
        rc = moirai_error(MOIRAI_EFAIL, "%s: %zu outputs in place of %zu", what, n_made, n);
    for (size_t i = 0; i < n_made; i++) {
        if (!rc)
            value[i] = made[i];
        else
            api->ReleaseValue(made[i]);
    }
    OrtStatus *freed = made ? api->AllocatorFree(b->ort->allocator, made) : NULL;
    if (freed)
        api->ReleaseStatus(freed);
    api->ClearBoundOutputs(b->binding);
    return rc;
}

int rank_bound_run(rank_bound *b, const char *what)
{
    return run(b, NULL, what);
}
