/* ONNX Runtime's environment and sessions for one device. Debian's build registers the ONNX schemas several times and
 * says so on stderr, hundreds of lines long, when its environment and its first session are made: these two calls run
 * with stderr closed. */
#include "rank/ort.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <onnxruntime_session_options_config_keys.h>

#include <moirai/cluster.h>
#include "rank/ort_cuda.h"
#include "rank/host/rank_confine.h"
#include "util/util.h"

static bool is_out_of_memory(const char *words)
{
    return strstr(words, "out of memory") || strstr(words, "Failed to allocate memory") ||
           strstr(words, "CUDA_ERROR_OUT_OF_MEMORY") || strstr(words, "ALLOC_FAILED");
}

int rank_ort_check(const rank_ort *ort, OrtStatus *status, const char *what)
{
    if (!status)
        return 0;
    const char *words = ort->api->GetErrorMessage(status);
    int rc = moirai_error(MOIRAI_EFAIL, "%s: %s", what, words);
    if (ort->cuda && is_out_of_memory(words)) {
        char room[64];
        rank_cuda_room(room, sizeof room, ort->cuda);
        rc = moirai_error(MOIRAI_EFAIL, "GPU %d is out of memory%s: %s: %.300s", rank_cuda_number(ort->cuda), room,
                          what, words);
    }
    ort->api->ReleaseStatus(status);
    return rc;
}

size_t rank_ort_element_bytes(ONNXTensorElementDataType type)
{
    /* UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64
     * COMPLEX128 BFLOAT16 FLOAT8 x4 */
    static const unsigned char bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1};
    return (size_t)type < sizeof bytes ? bytes[type] : 0;
}

/* ---- the environment ---- */

/* Closes stderr and hands over what opens it again. No output of the calls in between may be lost but that noise: what
 * we ourselves want to say comes as a status. */
static int stderr_close(void)
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (saved >= 0 && nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0)
        close(nowhere);
    return saved;
}

static void stderr_open(int saved)
{
    if (saved < 0)
        return;
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static OrtStatus *create_env_quietly(const rank_ort *ort, const OrtThreadingOptions *threading, OrtEnv **env)
{
    int saved = stderr_close();
    OrtStatus *status = ort->api->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_ERROR, "moirai", threading, env);
    stderr_open(saved);
    return status;
}

/* IR version 8; graph "g": node Identity from x to y, both of them one float; opset 13. Fields' numbers are
 * onnx.proto's. */
const unsigned char rank_ort_identity[RANK_ORT_IDENTITY_BYTES] = {
    0x08, 8,   0x3a, 47,   0x0a, 16,   0x0a, 1,    'x',  0x12, 1,   'y',  0x22, 8,    'I', 'd',  'e', 'n',  't',
    'i',  't', 'y',  0x12, 1,    'g',  0x5a, 11,   0x0a, 1,    'x', 0x12, 6,    0x0a, 4,   0x08, 1,   0x12, 0,
    0x62, 11,  0x0a, 1,    'y',  0x12, 6,    0x0a, 4,    0x08, 1,   0x12, 0,    0x42, 2,   0x10, 13};

static void create_first_session_quietly(const rank_ort *ort)
{
    OrtSession *session = NULL;
    int saved = stderr_close();
    OrtStatus *status =
        ort->api->CreateSessionFromArray(ort->env, rank_ort_identity, sizeof rank_ort_identity, ort->options, &session);
    stderr_open(saved);
    if (status)
        ort->api->ReleaseStatus(status);
    if (session)
        ort->api->ReleaseSession(session);
}

static int open_env(rank_ort *ort)
{
    const OrtApi *api = ort->api;
    OrtThreadingOptions *t = NULL;
    int rc = rank_ort_check(ort, api->CreateThreadingOptions(&t), "ONNX Runtime");
    rc = rc ? rc : rank_ort_check(ort, api->SetGlobalIntraOpNumThreads(t, ort->threads), "threads");
    rc = rc ? rc : rank_ort_check(ort, api->SetGlobalInterOpNumThreads(t, 1), "threads");
    rc = rc ? rc : rank_ort_check(ort, api->SetGlobalSpinControl(t, ort->spins), "threads");
    rc = rc ? rc : rank_ort_check(ort, create_env_quietly(ort, t, &ort->env), "ONNX Runtime");
    if (t)
        api->ReleaseThreadingOptions(t);
    return rc;
}

static int share_arena(rank_ort *ort)
{
    const OrtApi *api = ort->api;
    OrtArenaCfg *arena = NULL;
    int rc = rank_ort_check(ort, api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &ort->cpu), "memory");
    rc = rc ? rc : rank_ort_check(ort, api->CreateArenaCfg(0, -1, -1, -1, &arena), "memory");
    rc = rc ? rc : rank_ort_check(ort, api->CreateAndRegisterAllocator(ort->env, ort->cpu, arena), "memory");
    if (arena)
        api->ReleaseArenaCfg(arena);
    return rc ? rc : rank_ort_check(ort, api->GetAllocatorWithDefaultOptions(&ort->allocator), "memory");
}

/* ---- execution providers ---- */

static int add_dnnl(rank_ort *ort)
{
    OrtDnnlProviderOptions *dnnl = NULL;
    int rc = rank_ort_check(ort, ort->api->CreateDnnlProviderOptions(&dnnl), "execution provider dnnl");
    rc = rc ? rc
            : rank_ort_check(ort, ort->api->SessionOptionsAppendExecutionProvider_Dnnl(ort->options, dnnl),
                             "execution provider dnnl");
    if (dnnl)
        ort->api->ReleaseDnnlProviderOptions(dnnl);
    return rc;
}

/* What ONNX Runtime logs of a library that it can't load is in the status, too. */
static int add_cuda(rank_ort *ort, int number)
{
    int saved = stderr_close();
    int rc = rank_ort_cuda_open(ort, number);
    stderr_open(saved);
    return rc;
}

static int add_xnnpack(rank_ort *ort)
{
    char threads[16];
    const char *key = "intra_op_num_threads", *value = threads;
    snprintf(threads, sizeof threads, "%d", ort->threads);
    return rank_ort_check(ort,
                          ort->api->SessionOptionsAppendExecutionProvider(ort->options, "XNNPACK", &key, &value, 1),
                          "execution provider xnnpack");
}

static int add_provider(rank_ort *ort, const char *ep)
{
    if (!ep || !*ep || !strcasecmp(ep, "cpu"))
        return 0;
    if (!strcasecmp(ep, "dnnl"))
        return add_dnnl(ort);
    if (!strcasecmp(ep, "xnnpack"))
        return add_xnnpack(ort);
    int gpu = moirai_ep_gpu(ep);
    if (gpu >= 0)
        return add_cuda(ort, gpu);
    return moirai_error(MOIRAI_EUSAGE, "execution provider \"%s\": expected cpu, dnnl, xnnpack, cuda or cuda:NUMBER",
                        ep);
}

static int make_options(rank_ort *ort, const char *ep)
{
    const OrtApi *api = ort->api;
    int rc = rank_ort_check(ort, api->CreateSessionOptions(&ort->options), "session options");
    rc = rc ? rc : rank_ort_check(ort, api->DisablePerSessionThreads(ort->options), "session options");
    rc = rc ? rc
            : rank_ort_check(ort, api->SetSessionGraphOptimizationLevel(ort->options, ORT_ENABLE_ALL),
                             "session options");
    rc = rc ? rc
            : rank_ort_check(ort, api->SetSessionLogSeverityLevel(ort->options, ORT_LOGGING_LEVEL_FATAL),
                             "session options");
    rc = rc ? rc
            : rank_ort_check(ort,
                             api->AddSessionConfigEntry(ort->options, kOrtSessionOptionsConfigUseEnvAllocators, "1"),
                             "session options");
    rc = rc ? rc
            : rank_ort_check(ort,
                             api->AddSessionConfigEntry(ort->options, kOrtSessionOptionsConfigAllowIntraOpSpinning,
                                                        ort->spins ? "1" : "0"),
                             "session options");
    return rc ? rc : add_provider(ort, ep);
}

/* Threads that wait for the next operator's share of work without sleeping save a wake-up per operator, and are what
 * ONNX Runtime does by default; on cores that others need they cost more than that. MOIRAI_SPIN=0 or 1 decides instead. */
static bool may_spin(const rank_ort_device *device, int threads)
{
    const char *wish = getenv("MOIRAI_SPIN");
    if (wish && *wish)
        return strcmp(wish, "0") != 0;
    return threads > 1 && device->cores && *device->cores && util_own_cores() >= threads;
}

/* ---- public ---- */

int rank_ort_open(rank_ort **out, const rank_ort_device *device)
{
    *out = NULL;
    int rc = device->cores && *device->cores ? rank_ort_pin(device->cores) : 0;
    if (rc)
        return rc;
    rank_ort *ort = util_alloc(1, sizeof *ort);
    if (!ort)
        return MOIRAI_EFAIL;
    ort->api = rank_ort_api();
    ort->threads = device->threads > 0 ? UTIL_MIN(device->threads, util_cores()) : util_own_cores();
    ort->spins = may_spin(device, ort->threads);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", ort->threads);
    setenv("OMP_NUM_THREADS", threads, 0); /* oneDNN's own threads */
    rc = ort->api ? open_env(ort) : MOIRAI_EFAIL;
    rc = rc ? rc : share_arena(ort);
    rc = rc ? rc : make_options(ort, device->ep);
    if (rc) {
        rank_ort_close(ort);
        return rc;
    }
    create_first_session_quietly(ort);
    *out = ort;
    return 0;
}

void rank_ort_close(rank_ort *ort)
{
    if (!ort)
        return;
    if (ort->options)
        ort->api->ReleaseSessionOptions(ort->options);
    if (ort->cpu)
        ort->api->ReleaseMemoryInfo(ort->cpu);
    rank_ort_cuda_close(ort);
    if (ort->env)
        ort->api->ReleaseEnv(ort->env);
    free(ort);
}

/* A model in a file, or in memory where `bytes` says so. */
typedef struct model {
    const char *path;
    const void *bytes;
    size_t length;
} model;

static OrtStatus *create(OrtSession **out, const rank_ort *ort, const model *m, const OrtSessionOptions *options)
{
    *out = NULL;
    return m->bytes ? ort->api->CreateSessionFromArray(ort->env, m->bytes, m->length, options, out)
                    : ort->api->CreateSession(ort->env, m->path, options, out);
}

/* Loading in a thread that is confined (rank_confine.c): what goes in, what comes out. */
typedef struct loading {
    const rank_ort *ort;
    model from;
    const OrtSessionOptions *only; /* or NULL: the device's, and what helps where these fail */
    OrtSession *session;
    OrtStatus *status; /* why there is none */
} loading;

/* The last of ONNX Runtime's optimisations moves tensors to other layouts, on arm64 those in half precision also to one in
 * which it has no average pooling of opset 19. What fails with it is tried without; the first failure is the one to tell. */
static void load_any(loading *l)
{
    const rank_ort *ort = l->ort;
    OrtSessionOptions *options = NULL;
    l->status = create(&l->session, ort, &l->from, ort->options);
    if (!l->status)
        return;
    OrtStatus *next = ort->api->CloneSessionOptions(ort->options, &options);
    next = next ? next : ort->api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_EXTENDED);
    next = next ? next : create(&l->session, ort, &l->from, options);
    if (options)
        ort->api->ReleaseSessionOptions(options);
    ort->api->ReleaseStatus(next ? next : l->status);
    l->status = next ? l->status : NULL;
}

/* What can't be recorded is run as it is; the second failure is the one to tell. */
static void load(void *data)
{
    loading *l = data;
    const rank_ort *ort = l->ort;
    if (l->only) {
        l->status = create(&l->session, ort, &l->from, l->only);
        return;
    }
    OrtStatus *status = ort->graphs ? create(&l->session, ort, &l->from, ort->graphs) : NULL;
    if (status)
        ort->api->ReleaseStatus(status);
    if (!l->session)
        load_any(l);
}

int rank_ort_session(OrtSession **out, const rank_ort *ort, const char *path)
{
    loading l = {.ort = ort, .from = {.path = path}};
    rank_confined(load, &l, path);
    *out = l.session;
    return rank_ort_check(ort, l.status, path);
}

int rank_ort_session_of(OrtSession **out, const rank_ort *ort, const void *bytes, size_t length,
                        const OrtSessionOptions *options, const char *what)
{
    loading l = {.ort = ort, .from = {.bytes = bytes, .length = length}, .only = options};
    rank_confined(load, &l, NULL);
    *out = l.session;
    return rank_ort_check(ort, l.status, what);
}

int rank_ort_providers(char *out, size_t size)
{
    rank_ort ort = {.api = rank_ort_api()};
    char **name = NULL;
    int n = 0;
    size_t used = 0;
    if (size)
        *out = '\0';
    if (!ort.api)
        return MOIRAI_EFAIL;
    int rc = rank_ort_check(&ort, ort.api->GetAvailableProviders(&name, &n), "execution providers");
    for (int i = 0; !rc && i < n; i++) {
        const char *tail = strstr(name[i], "ExecutionProvider");
        int length = tail ? (int)(tail - name[i]) : (int)strlen(name[i]);
        if (used + (size_t)length + 2 > size)
            break;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? "," : "", length, name[i]);
    }
    for (size_t i = 0; i < used; i++)
        out[i] = (char)tolower((unsigned char)out[i]);
    if (name) {
        OrtStatus *status = ort.api->ReleaseAvailableProviders(name, n);
        if (status)
            ort.api->ReleaseStatus(status);
    }
    return rc;
}
