/* Devices that are GPUs, on a machine that has none: a stand-in for CUDA's driver (stand_in_cuda.c) gives them memory,
 * which other ranks really map, and operators run on the CPU. What only a GPU can show is not here: its arithmetic, the
 * order of its streams, CUDA graphs. */
#include "support/check.h"
#include "support/command.h"
#include "support/scale.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>
#include "rank/gpu/cuda.h"
#include "rank/ort.h"
#include "rank/gpu/place.h"

#define DEVICE(name, more) "{\"name\": \"" name "\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1" more "}"
#define LINK(a, b) "{\"from\": \"" a "\", \"to\": \"" b "\", \"bandwidth\": \"100Gbps\", \"both\": true}"
#define EP(ep) ", \"ep\": \"" ep "\""
#define PART(ep, share) EP(ep) ", \"share\": " share
#define RUN "timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 1 --json -q "

static void write_cluster(const char *a, const char *b, const char *c)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"here\", \"devices\": [%s, %s%s%s],"
             "\"links\": [" LINK("A", "B") "%s]}",
             a, b, c ? ", " : "", c ? c : "", c ? ", " LINK("B", "C") : "");
    write_text("c.json", text);
}

/* A service that leaves notes in mps.log, in place of NVIDIA's. */
static const char *const control = "#!/bin/sh\n"
                                   "if [ \"$1\" = -d ]; then\n"
                                   "    echo started >> \"$MPS_LOG\"\n"
                                   "    : > \"$CUDA_MPS_PIPE_DIRECTORY/control\"\n"
                                   "    exit 0\n"
                                   "fi\n"
                                   "read -r word rest\n"
                                   "echo \"$word\" >> \"$MPS_LOG\"\n"
                                   "[ -e \"$CUDA_MPS_PIPE_DIRECTORY/control\" ]\n";

static int enter(void **state)
{
    int rc = enter_folder(state);
    char here[1000], path[4000], log[1100];
    if (rc || !getcwd(here, sizeof here))
        return -1;
    setenv("MOIRAI_CUDA_DRIVER", MOIRAI_STAND_IN_CUDA, 1);
    setenv("STAND_IN_GPUS", "2", 1);
    snprintf(log, sizeof log, "%s/log", here);
    setenv("STAND_IN_LOG", log, 1);
    snprintf(log, sizeof log, "%s/mps.log", here);
    setenv("MPS_LOG", log, 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", here, 1); /* no service is here */
    mkdir("bin", 0777);
    write_text("bin/nvidia-cuda-mps-control", control);
    chmod("bin/nvidia-cuda-mps-control", 0777);
    snprintf(path, sizeof path, "%s/bin:%s", here, getenv("PATH"));
    setenv("PATH", path, 1);
    return 0;
}

static int leave(void **state)
{
    const char *const names[] = {"MOIRAI_CUDA_DRIVER", "STAND_IN_GPUS", "STAND_IN_LOG",           "STAND_IN_BYTES",
                                 "MOIRAI_TRANSPORT",   "MPS_LOG",       "CUDA_MPS_PIPE_DIRECTORY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    char *path = getenv("PATH"), *rest = path ? strchr(path, ':') : NULL;
    if (rest)
        setenv("PATH", rest + 1, 1);
    unlink("bin/nvidia-cuda-mps-control");
    rmdir("bin");
    return leave_folder(state);
}

/* Lines of the stand-in's log that begin with this word. */
static int count(const char *file, const char *word)
{
    char *text = read_text(file);
    int n = 0;
    for (char *line = text; line && *line; line = strchr(line, '\n') + 1)
        n += !strncmp(line, word, strlen(word));
    free(text);
    return n;
}

/* A plan that moves much, over all devices. */
static void make_plan(const char *network)
{
    assert_runs("$M zoo %s --onnx m.onnx --force -q", network);
    assert_runs("$M plan m.onnx --cluster c.json --placer random -q -o plan.json --force");
}

/* The outputs are those of the first run on lasting places, whose memory began as rubbish: what is read too early
 * shows. */
static void run_verified(void)
{
    unlink("log");
    assert_runs(RUN "--verify");
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    assert_true(yyjson_get_sint(yyjson_obj_get(shell_json(), "n_transfers")) > 3);
}

/* ---- transports ---- */

static void test_gpu_ranks_of_one_gpu_read_tensors_where_they_lie(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda:0")), NULL);
    make_plan("gpt3-tiny");
    run_verified();
    assert_true(count("log", "map") >= 1);
    assert_int_equal(count("log", "across"), 0);
    /* To the GPU: the network's inputs, once. From it: what the first run sent, and the outputs. */
    int64_t n = yyjson_get_sint(yyjson_obj_get(shell_json(), "n_transfers"));
    assert_true(count("log", "in ") < n);
    assert_int_equal(count("log", "out "), n + 1);
}

static void test_gpu_ranks_of_two_gpus_copy_from_one_to_the_other(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", EP("cuda:1")), DEVICE("B", EP("cuda:0")), NULL);
    make_plan("gpt3-tiny");
    run_verified();
    int64_t n = yyjson_get_sint(yyjson_obj_get(shell_json(), "n_transfers"));
    assert_int_equal(count("log", "across"), n);
}

static void test_gpu_tensors_go_through_the_host_where_nothing_is_mapped(void **state)
{
    (void)state;
    setenv("MOIRAI_TRANSPORT", "host", 1);
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda")), NULL);
    make_plan("gpt3-tiny");
    run_verified();
    assert_int_equal(count("log", "map"), 0);
    int64_t n = yyjson_get_sint(yyjson_obj_get(shell_json(), "n_transfers"));
    assert_int_equal(count("log", "out "), 2 * n + 1);
}

/* A GPU of its own, a part of another, and a CPU; and chunks of messages, as beyond 2 GiB. */
static void test_gpu_and_cpu_ranks_work_together(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", ""), DEVICE("C", EP("cuda:1")));
    make_plan("inception-tiny");
    run_verified();
    assert_true(count("log", "across") > 0 || count("log", "map") == 0);
    assert_runs("MOIRAI_CHUNK_BYTES=1000 " RUN "--verify");
}

static void test_gpu_ranks_beyond_the_devices_wait(void **state)
{
    (void)state;
    bool open_mpi = !strcmp(MOIRAI_MPI_FLAVOUR, "OPEN_MPI");
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda")), NULL);
    make_plan("inception-tiny");
    assert_runs("timeout 600 " MOIRAI_MPIEXEC " %s -n 3 $M run plan.json m.onnx --cluster c.json --warmup 1 --runs 3 "
                "--verify",
                open_mpi ? geteuid() ? "--oversubscribe" : "--oversubscribe --allow-run-as-root" : "");
}

/* ---- shares ---- */

static void test_gpu_shares_start_a_service_that_ends_with_the_run(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", PART("cuda", "0.3")), DEVICE("B", PART("cuda", "0.4")), DEVICE("C", ""));
    make_plan("inception-tiny");
    run_verified();
    assert_int_equal(count("log", "share 30"), 1);
    assert_int_equal(count("log", "share 40"), 1);
    assert_int_equal(count("mps.log", "started"), 1);
    assert_int_equal(count("mps.log", "quit"), 1);
    write_text("control", ""); /* a service is here now: it is used and left alone */
    assert_runs(RUN);
    assert_int_equal(count("mps.log", "started"), 1);
    assert_int_equal(count("mps.log", "quit"), 1);
}

/* Products in half precision are wrong in shares of some sizes, and nothing says so: docs/pytorch.md. */
static void test_gpu_half_precision_on_shares_is_verified_unasked(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", PART("cuda", "0.3")), DEVICE("B", PART("cuda", "0.4")), NULL);
    make_plan("inception-tiny");
    assert_runs(RUN);
    assert_null(yyjson_obj_get(shell_json(), "verified"));
    make_plan("inception-tiny --dtype fp16");
    assert_runs(RUN);
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    assert_runs("timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 1");
    assert_contains(shell_err, "note: half precision on shares of a GPU: the outputs are verified");
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda")), NULL);
    assert_runs(RUN);
    assert_null(yyjson_obj_get(shell_json(), "verified"));
}

static void test_gpu_a_service_ends_with_a_rank_that_dies(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", PART("cuda", "0.3")), DEVICE("B", PART("cuda", "0.4")), NULL);
    make_plan("inception-tiny");
    int code = shell("timeout 600 $M run plan.json m.onnx --cluster c.json --quiet --runs 1000000 --work w & pid=$!\n"
                     "for i in $(seq 1200); do grep -qs map log && break; sleep 0.1; done\n"
                     "kill -9 $(pgrep -f \"^[^ ]*moirai-rank run $PWD/w/job.json\" | head -1); wait $pid");
    assert_int_equal(code, 1);
    assert_contains(shell_err, "died: signal 9");
    for (int i = 0; i < 100 && !count("mps.log", "quit"); i++)
        usleep(100000);
    assert_int_equal(count("mps.log", "quit"), 1);
}

/* ---- probe and profile ---- */

static void test_gpu_probe_and_profile_know_parts_of_a_gpu(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", PART("cuda", "0.3")), DEVICE("B", PART("cuda", "0.4")), DEVICE("C", EP("cuda:1")));
    assert_runs("timeout 600 $M probe --cluster c.json --seconds 0.3 -o p.json --json");
    assert_true(count("log", "across") > 0); /* to and from C */
    assert_int_equal(count("log", "share 30"), 1);
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx -q");
    assert_runs("timeout 600 $M profile m.onnx --cluster p.json --warmup 1 --runs 5 --cache ./times -o g.json --json");
    yyjson_val *d = yyjson_obj_get(shell_json(), "devices");
    for (size_t i = 0; i < 3; i++) { /* none is taken for another */
        assert_true(yyjson_get_sint(yyjson_obj_get(yyjson_arr_get(d, i), "measured")) > 5);
        assert_int_equal(yyjson_get_sint(yyjson_obj_get(yyjson_arr_get(d, i), "failed")), 0);
    }
}

/* ---- what can be missing ---- */

static void test_gpu_what_is_missing_is_one_line(void **state)
{
    (void)state;
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda")), NULL);
    make_plan("inception-tiny");
    assert_fails(1, "no CUDA driver on this machine", "MOIRAI_CUDA_DRIVER=/no/driver.so " RUN);
    assert_fails(1, "no GPU that it may use", "STAND_IN_GPUS=0 " RUN);
    assert_fails(1, "GPU 0 is out of memory: no room for", "STAND_IN_BYTES=1000 " RUN);
    assert_contains(shell_err, "(0.0 of 0.0 GiB free)");
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda:7")), NULL);
    assert_fails(2, "device 'B': ep \"cuda:7\": this machine has 2 GPUs, numbered from 0", RUN);
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda:x")), NULL);
    assert_fails(2, "expected cpu, dnnl, xnnpack, cuda or cuda:NUMBER", RUN);
    write_cluster(DEVICE("A", PART("cuda", "0.3")), DEVICE("B", EP("cuda")), NULL);
    unlink("bin/nvidia-cuda-mps-control");
    if (access("/usr/bin/nvidia-cuda-mps-control", F_OK)) /* where it is, it would start */
        assert_fails(1, "shares of a GPU need CUDA MPS, and nvidia-cuda-mps-control is not on the PATH",
                     "PATH=/usr/bin:/bin " RUN);
}

static void test_gpu_an_onnx_runtime_without_cuda_says_so(void **state)
{
    (void)state;
    char providers[256];
    assert_ok(rank_ort_providers(providers, sizeof providers));
    if (strstr(providers, "cuda"))
        skip_because("this ONNX Runtime has CUDA");
    unsetenv("MOIRAI_CUDA_DRIVER");
    write_cluster(DEVICE("A", EP("cuda")), DEVICE("B", EP("cuda")), NULL);
    make_plan("inception-tiny");
    assert_fails(1, "was built without it", RUN);
}

/* ---- parts ---- */

static void test_gpu_memory_is_written_copied_and_read_back(void **state)
{
    (void)state;
    rank_cuda *c;
    rank_cuda_handle handle;
    char *a, *b, *mapped, *pinned, back[16] = "";
    assert_ok(rank_cuda_open(&c, 1));
    assert_string_equal(rank_cuda_name(c), "stand-in 1");
    assert_true(rank_cuda_is_host(c));
    assert_ok(rank_cuda_alloc((void **)&a, c, 16));
    assert_ok(rank_cuda_alloc((void **)&b, c, 16));
    assert_ok(rank_cuda_host_alloc((void **)&pinned, c, 16));
    memcpy(pinned, "fifteen letters", 16);
    assert_ok(rank_cuda_put(c, a, pinned, 16));
    assert_ok(rank_cuda_export(&handle, c, a));
    assert_ok(rank_cuda_map((void **)&mapped, c, &handle));
    assert_ptr_not_equal(mapped, a);
    assert_ok(rank_cuda_copy(c, b, mapped, 16));
    assert_ok(rank_cuda_get(c, back, b, 16));
    assert_string_equal(back, "fifteen letters");
    assert_ok(rank_cuda_fill(c, b, 'x', 3));
    assert_ok(rank_cuda_get(c, back, b, 16));
    assert_string_equal(back, "xxxteen letters");
    rank_cuda_unmap(c, mapped);
    rank_cuda_free(c, a);
    rank_cuda_free(c, b);
    rank_cuda_host_free(c, pinned);
    memset(&handle, 0, sizeof handle);
    assert_int_equal(rank_cuda_map((void **)&mapped, c, &handle), MOIRAI_EFAIL);
    assert_contains(moirai_error_message(), "MOIRAI_TRANSPORT=host does without");
    rank_cuda_close(c);
}

static void test_gpu_places_decide_who_maps_whose_memory(void **state)
{
    (void)state;
    rank_place a = {.host = "one", .has_gpu = 1, .gpu = {1}}, b = a;
    assert_true(rank_place_mapped(&a, &b) && rank_place_same_gpu(&a, &b));
    b.gpu[0] = 2;
    assert_true(rank_place_mapped(&a, &b) && !rank_place_same_gpu(&a, &b));
    strcpy(b.host, "two");
    assert_false(rank_place_mapped(&a, &b));
    b = a;
    b.has_gpu = 0;
    assert_false(rank_place_mapped(&a, &b) || rank_place_mapped(&b, &a));
    setenv("MOIRAI_TRANSPORT", "host", 1);
    assert_false(rank_place_mapped(&a, &a));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gpu_ranks_of_one_gpu_read_tensors_where_they_lie),
        TEST(test_gpu_ranks_of_two_gpus_copy_from_one_to_the_other),
        TEST(test_gpu_tensors_go_through_the_host_where_nothing_is_mapped),
        TEST(test_gpu_and_cpu_ranks_work_together),
        TEST(test_gpu_shares_start_a_service_that_ends_with_the_run),
        TEST(test_gpu_a_service_ends_with_a_rank_that_dies),
        TEST(test_gpu_what_is_missing_is_one_line),
        TEST(test_gpu_memory_is_written_copied_and_read_back),
        TEST(test_gpu_places_decide_who_maps_whose_memory),
        TEST(test_gpu_ranks_beyond_the_devices_wait),
        TEST(test_gpu_an_onnx_runtime_without_cuda_says_so),
        TEST(test_gpu_half_precision_on_shares_is_verified_unasked),
        TEST(test_gpu_probe_and_profile_know_parts_of_a_gpu),
    };
    return RUN_CASES_AGAIN(9, tests);
}
