/* Loading a model reads its folder and nothing else of the user's, where the kernel has Landlock. */
#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank/ort.h"
#include "rank/host/rank_confine.h"

static void put_file(const char *path, const void *data, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static bool can_read(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

typedef struct looks {
    bool inside, below, linked, outside, host, library, machine;
} looks;

static void look(void *data)
{
    looks *l = data;
    l->inside = can_read("inside/file");
    l->below = can_read("inside/deep/file");
    l->linked = can_read("inside/link");
    l->outside = can_read("outside");
    l->host = can_read("/etc/hostname") || can_read("/etc/passwd");
    l->library = can_read("/etc/ld.so.cache") && can_read("/usr/bin/env");
    l->machine = can_read("/proc/self/status") && can_read("/proc/cpuinfo") && can_read("/dev/zero");
}

static void test_rank_confined_threads_read_the_models_folder(void **state)
{
    looks l = {0};
    (void)state;
    assert_int_equal(mkdir("inside", 0700), 0);
    assert_int_equal(mkdir("inside/deep", 0700), 0);
    put_file("inside/file", "x", 1);
    put_file("inside/deep/file", "x", 1);
    put_file("outside", "x", 1);
    assert_int_equal(symlink("../outside", "inside/link"), 0);
    rank_confined(look, &l, "inside/model.onnx");
    assert_true(l.inside && l.below && l.library && l.machine);
    if (rank_confine_version())
        assert_false(l.outside || l.linked || l.host);
    else
        print_message("this kernel has no Landlock\n");
    rank_confined(look, &l, NULL);
    assert_true(l.library && l.machine);
    assert_false(rank_confine_version() && (l.inside || l.outside || l.host));
    assert_true(can_read("outside") && can_read("inside/file")); /* this thread is free */
    setenv("MOIRAI_LANDLOCK", "0", 1);
    assert_int_equal(rank_confine_version(), 0);
    rank_confined(look, &l, NULL);
    assert_true(l.inside && l.outside);
    unsetenv("MOIRAI_LANDLOCK");
}

/* A model whose output is what a file holds; as no importer has seen it. */
static void make_reader(const char *location)
{
    wire graph = {0}, model = {0}, tensor = {0}, attrs = {0};
    make_external_tensor(&tensor, "c", MAKE_FLOAT, "4", location, "0", "16");
    make_attr_tensor(&attrs, "value", &tensor);
    make_node(&graph, "Constant", "", "c", &attrs);
    make_output(&graph, "c", MAKE_FLOAT, "4");
    wire_text(&graph, 2, "g");
    make_model(&model, &graph);
    put_file("inside/model.onnx", model.data, model.length);
    wire_free(&model);
}

static void test_rank_sessions_read_no_file_of_others(void **state)
{
    char path[1100], here[1000];
    rank_ort *ort;
    rank_ort_device cpu = {.threads = 1};
    OrtSession *session;
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/outside", here);
    assert_int_equal(mkdir("inside", 0700), 0);
    put_file("outside", "0123456789abcdef", 16);
    put_file("inside/own", "0123456789abcdef", 16);
    assert_int_equal(symlink("../outside", "inside/link"), 0);
    assert_ok(rank_ort_open(&ort, &cpu));
    make_reader("own");
    assert_ok(rank_ort_session(&session, ort, "inside/model.onnx"));
    ort->api->ReleaseSession(session);
    const char *const hostile[] = {path, "../outside", "link"};
    for (int i = 0; i < 3 && rank_confine_version(); i++) {
        make_reader(hostile[i]);
        assert_int_equal(rank_ort_session(&session, ort, "inside/model.onnx"), MOIRAI_EFAIL);
        assert_null(session);
    }
    rank_ort_close(ort);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_rank_confined_threads_read_the_models_folder),
        TEST(test_rank_sessions_read_no_file_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
