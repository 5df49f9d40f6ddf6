/* What a group of ranks says first. */
#include "support/check.h"

#include <sys/socket.h>
#include <unistd.h>

#include <moirai/error.h>

#include "serve/serve.h"

static int say(serve_model *m, int64_t dim, int64_t magic)
{
    int pair[2], n_ranks = 0;
    serve_hello hello = {magic, 3, 1};
    serve_hello_tensor t = {.type = 1, .rank = 1, .dim = {dim}};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(write(pair[1], &hello, sizeof hello), sizeof hello);
    assert_int_equal(write(pair[1], &t, sizeof t), sizeof t);
    int rc = serve_hello_read(m, pair[0], &n_ranks, 5);
    assert_true(rc || n_ranks == 3);
    close(pair[0]);
    close(pair[1]);
    return rc;
}

static serve_model *model(void)
{
    serve_model *m;
    int64_t dim = 2;
    assert_int_equal(serve_model_new(&m, "m", 1, 1), 0);
    assert_int_equal(serve_tensor_set(&m->input[0], "x", serve_type_of_onnx(1), 1, &dim), 0);
    m->output[0].name = strdup("y");
    return m;
}

/* Answers are being written by these shapes while another group says hello: nothing may change, not even for a moment. */
static void test_link_outputs_are_set_once(void **state)
{
    (void)state;
    serve_model *m = model();
    assert_int_equal(say(m, 4, SERVE_MAGIC), 0);
    assert_int_equal(m->output[0].bytes, 16);
    serve_tensor before = m->output[0];
    assert_int_equal(say(m, 4, SERVE_MAGIC), 0);
    assert_int_equal(say(m, 5, SERVE_MAGIC), MOIRAI_EFAIL);
    assert_non_null(strstr(moirai_error_message(), "output 'y' has another shape"));
    assert_memory_equal(&m->output[0], &before, sizeof before);
    serve_model_free(m);
}

static void test_link_whoever_is_no_group_is_refused(void **state)
{
    (void)state;
    serve_model *m = model();
    assert_int_equal(say(m, 4, SERVE_MAGIC + 1), MOIRAI_EFAIL);
    assert_int_equal(say(m, -4, SERVE_MAGIC), MOIRAI_EINPUT);
    assert_null(m->output[0].type);
    serve_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_outputs_are_set_once),
        cmocka_unit_test(test_link_whoever_is_no_group_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
