/* The parts of a rank that need no other rank: jobs and manifests, tensors and their files, one clock for all,
 * remembered times. */
#include <math.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rank/mpi_clock.h"
#include "rank/probe/rank_probe.h"
#include "rank/profile/rank_profile.h"
#include "rank/rank_job.h"
#include "support/check.h"
#include "support/command.h"

enum { FLOAT = 1, UINT8 = 2, INT64 = 7, BOOL = 9, HALF = 10, DOUBLE = 11, BRAIN = 16 };

/* ---- jobs ---- */

static const char manifest[] =
    "{\"format\": \"moirai-manifest\", \"version\": 1, \"model\": \"m.onnx\", \"makespan_ns\": 500,\n"
    " \"inputs\": [{\"name\": \"x\", \"type\": \"float32\", \"shape\": [2, 3]}, {\"name\": \"y\", \"type\": "
    "\"int64\"}],\n"
    " \"outputs\": [{\"name\": \"z\", \"type\": \"float32\", \"shape\": []}],\n"
    " \"devices\": [{\"name\": \"A\", \"segments\": [{\"file\": \"0.onnx\", \"start_ns\": 0, \"finish_ns\": 9, "
    "\"work_ns\": 8,"
    " \"inputs\": [\"x\"], \"outputs\": [\"h\"], \"ops\": [\"a\", \"b\"]}]},\n"
    "  {\"name\": \"idle\", \"segments\": []},\n"
    "  {\"name\": \"B\", \"segments\": [{\"file\": \"1.onnx\", \"start_ns\": 20, \"finish_ns\": 30, \"work_ns\": 10,"
    " \"inputs\": [\"h\"], \"outputs\": [\"z\"], \"ops\": [\"c\"]}]}],\n"
    " \"transfers\": [{\"tensor\": \"h\", \"from\": \"A\", \"to\": \"B\", \"bytes\": 24, \"start_ns\": 9, "
    "\"finish_ns\": 20},\n"
    "  {\"tensor\": \"g\", \"from\": \"A\", \"to\": \"B\", \"bytes\": 8, \"start_ns\": 20, \"finish_ns\": 25}]}\n";
static const char job_text[] = "{\"format\": \"moirai-job\", \"version\": 1, \"folder\": \".\", \"model\": \"m.onnx\", "
                               "\"outputs\": \"out\", \"result\": \"t.json\","
                               " \"warmup\": 2, \"runs\": 5, \"seed\": 7, \"stall_s\": 1.5,\n"
                               " \"devices\": [{\"name\": \"B\", \"ep\": \"cpu\", \"cores\": \"0\", \"threads\": 3}], "
                               "\"inputs\": [{\"name\": \"y\", \"file\": \"y.npy\"}]}\n";

static void write_changed(const char *path, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *copy = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(copy);
    sprintf(copy, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(path, copy);
    free(copy);
}

static void test_rank_job_reads_devices_transfers_and_inputs(void **state)
{
    (void)state;
    rank_job *job;
    write_text("manifest.json", manifest);
    write_text("job.json", job_text);
    assert_ok(rank_job_read(&job, "job.json"));
    assert_int_equal(job->n_devices, 3);
    assert_int_equal(job->n_ranks, 2); /* who runs nothing has no rank */
    assert_int_equal(job->device[0].rank, 0);
    assert_int_equal(job->device[1].rank, -1);
    assert_int_equal(job->device[2].rank, 1);
    assert_string_equal(job->device[2].ort.cores, "0");
    assert_int_equal(job->device[2].ort.threads, 3);
    assert_null(job->device[0].ort.ep);
    assert_int_equal(job->device[0].segment[0].n_ops, 2);
    assert_int_equal(job->device[0].segment[0].work_ns, 8);
    assert_string_equal(job->device[2].segment[0].input[0], "h");
    assert_int_equal(job->n_transfers, 2);
    assert_int_equal(job->transfer[0].tag, 0);
    assert_int_equal(job->transfer[1].tag, 1); /* of one pair of devices, told apart by their order */
    assert_int_equal(job->transfer[1].to, 2);
    assert_int_equal(job->n_inputs, 2);
    assert_int_equal(job->input[0].shape.rank, 2);
    assert_int_equal(job->input[0].shape.type, FLOAT);
    assert_null(job->input[0].file);
    assert_int_equal(job->input[1].shape.rank, -1); /* not known */
    assert_string_equal(job->input[1].file, "y.npy");
    assert_int_equal(job->output[0].shape.rank, 0); /* a scalar */
    assert_true(job->warmup == 2 && job->runs == 5 && job->seed == 7 && job->stall_s == 1.5 && job->makespan_ns == 500);
    rank_job_free(job);
    rank_job_free(NULL);
}

static void test_rank_job_refuses_what_does_not_fit_together(void **state)
{
    (void)state;
    static const struct {
        bool in_job;
        const char *from, *to, *says;
    } list[] = {
        {true, "\"runs\": 5", "\"runs\": 0", "runs is 0, must be at least 1"},
        {true, "\"name\": \"B\"", "\"name\": \"Z\"", "name 'Z' is not a device"},
        {true, "\"name\": \"y\"", "\"name\": \"w\"", "input 'w': the model has no such input"},
        {true, "moirai-job", "moirai-plan", "format is"},
        {true, "\"folder\": \".\"", "\"folder\": \"gone\"", "gone/manifest.json"},
        {false, "\"to\": \"B\"", "\"to\": \"idle\"", "one runs nothing"},
        {false, "\"from\": \"A\"", "\"from\": \"C\"", "from 'C' is not a device"},
        {false, "\"work_ns\": 8", "\"work_ns\": -1", "work_ns is -1"},
        {false, "[2, 3]", "[2, -3]", "shape is -3"},
        {false, "\"outputs\": [\"h\"], ", "", "key 'outputs' is missing"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rank_job *job;
        write_changed("manifest.json", manifest, list[i].in_job ? "manifest" : list[i].from,
                      list[i].in_job ? "manifest" : list[i].to);
        write_changed("job.json", job_text, list[i].in_job ? list[i].from : "job", list[i].in_job ? list[i].to : "job");
        int rc = rank_job_read(&job, "job.json");
        assert_true(rc == MOIRAI_EINPUT || rc == MOIRAI_EUSAGE);
        assert_null(job);
        assert_contains(moirai_error_message(), list[i].says);
    }
}

/* ---- shapes and types ---- */

static void test_rank_shapes(void **state)
{
    (void)state;
    size_t bytes;
    char text[64];
    rank_shape s = {FLOAT, 4, {1, 3, 64, 64}}, scalar = {HALF, 0, {0}}, empty = {INT64, 2, {0, 9}};
    assert_ok(rank_shape_bytes(&bytes, &s));
    assert_int_equal(bytes, 4 * 3 * 64 * 64);
    rank_shape_text(text, sizeof text, &s);
    assert_string_equal(text, "float32 1x3x64x64");
    assert_ok(rank_shape_bytes(&bytes, &scalar));
    assert_int_equal(bytes, 2);
    rank_shape_text(text, sizeof text, &scalar);
    assert_string_equal(text, "float16 scalar");
    assert_ok(rank_shape_bytes(&bytes, &empty));
    assert_int_equal(bytes, 0);
    s.dim[2] = -1;
    assert_int_equal(rank_shape_bytes(&bytes, &s), MOIRAI_EINPUT);
    s.dim[2] = INT64_MAX;
    assert_int_equal(rank_shape_bytes(&bytes, &s), MOIRAI_EINPUT);
    s = (rank_shape){8, 0, {0}}; /* strings */
    assert_int_equal(rank_shape_bytes(&bytes, &s), MOIRAI_EINPUT);
    for (int64_t type = 1; type <= 16; type++) {
        int64_t again = 0;
        if (strcmp(rank_type_name(type), "other") == 0 || rank_type_of_name(&again, rank_type_name(type)))
            continue;
        assert_int_equal(again, type);
    }
    int64_t type;
    assert_int_equal(rank_type_of_name(&type, "float33"), MOIRAI_EINPUT);
}

/* ---- numbers ---- */

/* The same for a seed and a name; reals within [-1, 1] in eighths, whole numbers 0 or 1. */
static void test_rank_random_numbers(void **state)
{
    (void)state;
    rank_shape s = {FLOAT, 1, {100}}, whole = {INT64, 1, {100}};
    float a[100], b[100], c[100];
    int64_t n[100];
    bool some = false;
    rank_random(a, sizeof a, &s, 7, "x");
    rank_random(b, sizeof b, &s, 7, "x");
    rank_random(c, sizeof c, &s, 7, "y");
    rank_random(n, sizeof n, &whole, 7, "x");
    assert_memory_equal(a, b, sizeof a);
    assert_true(memcmp(a, c, sizeof a) != 0);
    for (int i = 0; i < 100; i++) {
        assert_true(fabsf(a[i]) <= 1 && a[i] * 8 == floorf(a[i] * 8));
        assert_true(n[i] == 0 || n[i] == 1);
        some = some || n[i];
    }
    assert_true(some);
}

static void test_rank_compare_by_tolerance(void **state)
{
    (void)state;
    rank_shape s = {FLOAT, 1, {4}}, whole = {INT64, 1, {2}};
    float want[] = {1, 100, -5, 0}, got[] = {1.5f, 100, -5, 0};
    rank_difference d;
    rank_compare(&d, &s, got, want, 0.5, 0);
    assert_true(d.n == 4 && d.n_bad == 0 && d.largest == 0.5 && d.worst == 0);
    rank_compare(&d, &s, got, want, 0.4, 0);
    assert_int_equal(d.n_bad, 1);
    got[0] = 1;
    got[1] = 101;
    rank_compare(&d, &s, got, want, 0, 0.01);
    assert_int_equal(d.n_bad, 0); /* one in a hundred */
    rank_compare(&d, &s, got, want, 0, 0.009);
    assert_true(d.n_bad == 1 && d.worst == 1 && d.got == 101 && d.expected == 100);
    got[1] = NAN;
    rank_compare(&d, &s, got, want, 1e9, 1e9);
    assert_true(d.n_bad == 1 && isinf(d.largest));
    want[1] = NAN; /* both are none: equal */
    rank_compare(&d, &s, got, want, 0, 0);
    assert_int_equal(d.n_bad, 0);
    want[2] = 0.0f;
    got[2] = -0.0f;
    rank_compare(&d, &s, got, want, 0, 0);
    assert_int_equal(d.n_bad, 0);
    int64_t i[] = {5, 6}, j[] = {5, 7};
    rank_compare(&d, &whole, i, j, 100, 100);
    assert_int_equal(d.n_bad, 1); /* whole numbers must be equal */
    rank_shape half = {HALF, 1, {2}};
    uint16_t one[] = {0x3c00, 0x7c00}, two[] = {0x4000, 0x7c00}; /* 1 and 2; infinity */
    rank_compare(&d, &half, one, two, 0.5, 0);
    assert_true(d.n_bad == 1 && d.got == 1 && d.expected == 2);
}

/* Numbers that no operator can stumble over: positive, below 1; indices below their bound. */
static void test_rank_profile_numbers(void **state)
{
    (void)state;
    float f[200];
    int64_t n[200];
    uint16_t h[200];
    bool b[200];
    rank_profile_fill(f, FLOAT, 200, 0, 3);
    rank_profile_fill(n, INT64, 200, 5, 3);
    rank_profile_fill(h, HALF, 200, 0, 3);
    rank_profile_fill(b, BOOL, 200, 0, 3);
    for (int i = 0; i < 200; i++) {
        assert_true(f[i] >= 0.05f && f[i] < 1);
        assert_true(n[i] >= 0 && n[i] < 5);
        assert_true((h[i] >> 10) >= 12 && (h[i] >> 10) <= 14);
    }
    rank_profile_fill(n, INT64, 200, 0, 3);
    assert_int_equal(n[17], 1); /* a size, a divisor, a trip count */
}

/* ---- files ---- */

static rank_ort *ort; /* one per process */

static int open_ort(void **state)
{
    (void)state;
    rank_ort_device device = {.threads = 1};
    return rank_ort_open(&ort, &device);
}

static int close_ort(void **state)
{
    (void)state;
    rank_ort_close(ort);
    return 0;
}

static void test_rank_npy_round_trip(void **state)
{
    (void)state;
    static const int64_t types[] = {FLOAT, UINT8, INT64, BOOL, HALF, DOUBLE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int64_t rank = 0; rank <= 3; rank++) {
            rank_shape s = {types[i], rank, {2, 3, 5}}, again;
            unsigned char data[8 * 30], *read;
            size_t bytes, length;
            OrtValue *value;
            void *at;
            assert_ok(rank_shape_bytes(&bytes, &s));
            rank_random(data, bytes, &s, 1, "x");
            assert_ok(rank_npy_write("a.npy", &s, data, bytes));
            assert_ok(rank_npy_read(&value, &again, ort, "a.npy"));
            assert_int_equal(again.type, s.type);
            assert_int_equal(again.rank, s.rank);
            assert_memory_equal(again.dim, s.dim, sizeof s.dim[0] * (size_t)rank);
            assert_ok(rank_value_look(&again, &at, &length, ort, value, "a"));
            read = at;
            assert_int_equal(length, bytes);
            assert_memory_equal(read, data, bytes);
            ort->api->ReleaseValue(value);
        }
}

/* What NumPy writes and reads: by NumPy itself where it is there, else by the bytes of its format. */
static void test_rank_npy_is_the_format(void **state)
{
    (void)state;
    rank_shape s = {FLOAT, 2, {1, 2}};
    float data[] = {1.5f, -2};
    assert_ok(rank_npy_write("a.npy", &s, data, sizeof data));
    FILE *f = fopen("a.npy", "rb");
    char all[256] = {0};
    size_t n = fread(all, 1, sizeof all, f);
    fclose(f);
    assert_memory_equal(all, "\x93NUMPY\x01\0", 8);
    assert_int_equal((n - sizeof data) % 64, 0);
    assert_memory_equal(all + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2,), }", 60);
    assert_true(all[n - sizeof data - 1] == '\n');
    assert_memory_equal(all + n - sizeof data, data, sizeof data);
}

static void refuses_npy(const char *header, size_t extra, const char *says)
{
    char file[256] = "\x93NUMPY\x01";
    OrtValue *value;
    rank_shape s;
    size_t n = strlen(header);
    file[8] = (char)n;
    memcpy(file + 10, header, n);
    FILE *f = fopen("bad.npy", "wb");
    fwrite(file, 1, 10 + n + extra, f);
    fclose(f);
    assert_int_equal(rank_npy_read(&value, &s, ort, "bad.npy"), MOIRAI_EINPUT);
    assert_null(value);
    assert_contains(moirai_error_message(), says);
}

static void test_rank_npy_refuses_nonsense(void **state)
{
    (void)state;
    refuses_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 8,
                "its shape makes 12 bytes, the file has 8");
    refuses_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", 8, "Fortran order");
    refuses_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8, "not supported");
    refuses_npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, "not supported");
    refuses_npy("{'fortran_order': False, 'shape': (2,)}", 8, "makes no sense");
    refuses_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, "makes no sense");
    OrtValue *value;
    rank_shape s;
    write_text("short.npy", "\x93NUM");
    assert_int_equal(rank_npy_read(&value, &s, ort, "short.npy"), MOIRAI_EINPUT);
    assert_contains(moirai_error_message(), "not a .npy file");
    assert_int_equal(rank_npy_read(&value, &s, ort, "gone.npy"), MOIRAI_EINPUT);
}

/* Inputs of a job: from a file of the right shape, or random by seed and name; others are refused. */
static void test_rank_job_makes_inputs(void **state)
{
    (void)state;
    rank_job *job;
    OrtValue *value, *again;
    rank_shape s;
    void *a, *b;
    size_t bytes;
    int64_t y[] = {4, 5};
    rank_shape shape = {INT64, 1, {2}}, wrong = {FLOAT, 1, {2}};
    write_text("manifest.json", manifest);
    write_text("job.json", job_text);
    assert_ok(rank_job_read(&job, "job.json"));
    assert_ok(rank_job_input(&value, job, ort, 0));
    assert_ok(rank_job_input(&again, job, ort, 0));
    assert_ok(rank_value_look(&s, &a, &bytes, ort, value, "x"));
    assert_ok(rank_value_look(&s, &b, &bytes, ort, again, "x"));
    assert_int_equal(bytes, 24);
    assert_memory_equal(a, b, bytes);
    ort->api->ReleaseValue(value);
    ort->api->ReleaseValue(again);
    assert_ok(rank_npy_write("y.npy", &shape, y, sizeof y));
    assert_ok(rank_job_input(&value, job, ort, 1));
    assert_ok(rank_value_look(&s, &a, &bytes, ort, value, "y"));
    assert_memory_equal(a, y, sizeof y);
    ort->api->ReleaseValue(value);
    assert_ok(rank_npy_write("y.npy", &wrong, y, 8));
    assert_int_equal(rank_job_input(&value, job, ort, 1), MOIRAI_EINPUT);
    assert_contains(moirai_error_message(), "input 'y' is given as float32 2, the plan is for int64");
    job->input[1].file = NULL;
    assert_int_equal(rank_job_input(&value, job, ort, 1), MOIRAI_EINPUT);
    assert_contains(moirai_error_message(), "its shape is not known");
    rank_job_free(job);
}

static void test_rank_ort_runs_the_smallest_model(void **state)
{
    (void)state;
    OrtSession *session;
    char names[256];
    assert_ok(rank_ort_session_of(&session, ort, rank_ort_identity, RANK_ORT_IDENTITY_BYTES, ort->options, "identity"));
    ort->api->ReleaseSession(session);
    assert_int_equal(rank_ort_session_of(&session, ort, "nonsense", 8, ort->options, "broken"), MOIRAI_EFAIL);
    assert_contains(moirai_error_message(), "broken: ");
    assert_ok(rank_ort_providers(names, sizeof names));
    assert_contains(names, "cpu");
    assert_int_equal(rank_ort_pin("3-x"), MOIRAI_EUSAGE);
    assert_int_equal(rank_ort_pin("99999"), MOIRAI_EUSAGE);
}

/* ---- one clock ---- */

/* 100 behind at first and 200 behind 1000 ns later: a tenth of a nanosecond per nanosecond in between. */
static void test_rank_clock_is_linear_between_two_looks(void **state)
{
    (void)state;
    rank_clock c = {.at_ns = {1000, 2000}, .offset_ns = {100, 200}};
    assert_int_equal(rank_clock_common_ns(&c, 1000), 1100);
    assert_int_equal(rank_clock_common_ns(&c, 1500), 1650);
    assert_int_equal(rank_clock_common_ns(&c, 2000), 2200);
    assert_int_equal(rank_clock_common_ns(&c, 2500), 2750); /* and goes on */
    assert_int_equal(rank_clock_from_common_ns(&c, 1100), 1000);
    rank_clock one = {.at_ns = {1000, 1000}, .offset_ns = {-7, -7}};
    assert_int_equal(rank_clock_common_ns(&one, 5000), 4993);
    int64_t before = rank_clock_own_ns();
    assert_true(rank_clock_own_ns() >= before);
}

/* ---- remembered times ---- */

static void test_rank_cache_remembers_by_content(void **state)
{
    (void)state;
    profile_key a = rank_profile_key("piece", 5, "cpu, 2 threads"), b = rank_profile_key("piece", 5, "cpu, 4 threads"),
                c = rank_profile_key("pieces", 6, "cpu, 2 threads"),
                again = rank_profile_key("piece", 5, "cpu, 2 threads");
    profile_time t = {.median_ns = 1234, .cold_ns = 2345, .spread = 0.25, .n = 30}, found = {0};
    char folder[256];
    assert_string_equal(a.text, again.text);
    assert_int_equal(strlen(a.text), 32);
    assert_true(strcmp(a.text, b.text) && strcmp(a.text, c.text));
    assert_ok(rank_profile_cache_folder(folder, sizeof folder, "deep/er/cache"));
    assert_false(rank_profile_cache_get(&found, folder, &a, 30));
    assert_ok(rank_profile_cache_put(&t, folder, &a, "cpu, 2 threads"));
    assert_true(rank_profile_cache_get(&found, folder, &a, 30));
    assert_true(found.median_ns == 1234 && found.spread == 0.25 && found.n == 30 && found.cached);
    assert_int_equal(found.cold_ns, 2345);
    assert_false(rank_profile_cache_get(&found, folder, &b, 30));
    char path[512];
    snprintf(path, sizeof path, "%s/%s.json", folder, a.text);
    struct timespec when[2] = {{.tv_sec = time(NULL) - 40 * 86400}, {.tv_sec = time(NULL) - 40 * 86400}};
    assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
    assert_false(rank_profile_cache_get(&found, folder, &a, 30)); /* times age */
    assert_true(rank_profile_cache_get(&found, folder, &a, 50));
    write_text(path, "{\"median_ns\": 3, \"spread\": 0, \"runs\": 1}"); /* from before cold runs were measured */
    assert_false(rank_profile_cache_get(&found, folder, &a, 30));
    write_text(path, "{\"median_ns\": -3, \"cold_ns\": 4, \"spread\": 0, \"runs\": 1}"); /* spoilt: as good as none */
    assert_false(rank_profile_cache_get(&found, folder, &a, 30));
    write_text(path, "{\"median_");
    assert_false(rank_profile_cache_get(&found, folder, &a, 30));
}

static void test_rank_cache_folder_by_the_environment(void **state)
{
    (void)state;
    char here[4096], folder[4200], wanted[4200];
    assert_non_null(getcwd(here, sizeof here));
    setenv("XDG_CACHE_HOME", here, 1);
    assert_ok(rank_profile_cache_folder(folder, sizeof folder, NULL));
    snprintf(wanted, sizeof wanted, "%s/moirai", here);
    assert_string_equal(folder, wanted);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", here, 1);
    assert_ok(rank_profile_cache_folder(folder, sizeof folder, NULL));
    snprintf(wanted, sizeof wanted, "%s/.cache/moirai", here);
    assert_string_equal(folder, wanted);
    assert_int_equal(rank_profile_cache_folder(folder, sizeof folder, ""), MOIRAI_EUSAGE);
    write_text("file", "");
    assert_int_equal(rank_profile_cache_folder(folder, sizeof folder, "file/cache"), MOIRAI_EFAIL);
    unsetenv("XDG_CACHE_HOME");
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

/* ---- what a machine is ---- */

static void test_rank_probe_describes_this_machine(void **state)
{
    (void)state;
    probe_rank r;
    assert_ok(rank_probe_describe(&r));
    assert_true(strlen(r.host) > 0 && strlen(r.cpu) > 0 && strlen(r.onnxruntime) > 0);
    assert_true(r.n_threads >= 1 && r.n_own >= 1 && r.n_own <= r.n_threads && r.memory_bytes > 1000000);
    assert_contains(r.providers, "cpu");
}

/* ---- the line through message times ---- */

static probe_link make_link(double latency_ns, double ns_per_byte, int64_t free_bytes)
{
    probe_link k = {.n_sizes = 9};
    for (int i = 0; i < k.n_sizes; i++) {
        int64_t bytes = i ? (int64_t)1024 << (2 * (i - 1)) : 0, paid = bytes > free_bytes ? bytes - free_bytes : 0;
        k.size[i] =
            (probe_size){.bytes = bytes, .n = 1, .quartile_ns = (int64_t)(latency_ns + ns_per_byte * (double)paid)};
    }
    return k;
}

static void test_rank_probe_fit_of_a_line_is_the_line(void **state)
{
    (void)state;
    probe_link k = make_link(25000, 8, 0);
    rank_probe_fit(&k);
    assert_int_equal(k.latency_ns, 25000);
    assert_true(llabs(k.bytes_per_second - 125000000) < 10000);
    assert_true(k.error < 1e-6);
}

/* A shaped link: the first bytes are free. */
static void test_rank_probe_fit_looks_through_a_bucket(void **state)
{
    (void)state;
    probe_link k = make_link(25000, 8, 65536);
    rank_probe_fit(&k);
    assert_true(llabs(k.bytes_per_second - 125000000) < 125000000 / 25);
    assert_true(k.error > 0.5); /* and says that small messages are off */
}

static void test_rank_probe_fit_survives_anything(void **state)
{
    (void)state;
    probe_link none = {0}, flat = make_link(1000, 0, 0), back = make_link(1000, 1, 0);
    back.size[8].quartile_ns = 1;
    rank_probe_fit(&none);
    assert_true(none.bytes_per_second >= 1 && none.latency_ns == 0);
    rank_probe_fit(&flat);
    assert_true(flat.bytes_per_second >= 1 && flat.latency_ns == 1000);
    rank_probe_fit(&back);
    assert_true(back.bytes_per_second >= 1 && back.latency_ns >= 0);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_rank_job_reads_devices_transfers_and_inputs),
        IN_FOLDER(test_rank_job_refuses_what_does_not_fit_together),
        cmocka_unit_test(test_rank_shapes),
        cmocka_unit_test(test_rank_random_numbers),
        cmocka_unit_test(test_rank_compare_by_tolerance),
        cmocka_unit_test(test_rank_profile_numbers),
        IN_FOLDER(test_rank_npy_round_trip),
        IN_FOLDER(test_rank_npy_is_the_format),
        IN_FOLDER(test_rank_npy_refuses_nonsense),
        IN_FOLDER(test_rank_job_makes_inputs),
        cmocka_unit_test(test_rank_ort_runs_the_smallest_model),
        cmocka_unit_test(test_rank_clock_is_linear_between_two_looks),
        IN_FOLDER(test_rank_cache_remembers_by_content),
        IN_FOLDER(test_rank_cache_folder_by_the_environment),
        cmocka_unit_test(test_rank_probe_describes_this_machine),
        cmocka_unit_test(test_rank_probe_fit_of_a_line_is_the_line),
        cmocka_unit_test(test_rank_probe_fit_looks_through_a_bucket),
        cmocka_unit_test(test_rank_probe_fit_survives_anything),
    };
    return cmocka_run_group_tests(tests, open_ort, close_ort);
}
