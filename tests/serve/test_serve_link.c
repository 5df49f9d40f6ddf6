/* What a group of ranks says first, and what it says, or does not, when one of them hangs. */
#include "support/check.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <moirai/error.h>

#include "serve/serve_state.h"

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

/* ---- a group that serves ---- */

typedef struct group {
    serve *server;
    serve_link *link;
    int fd; /* of its rank 0 */
} group;

static void open_group(group *g)
{
    static const char *const device[] = {"A", "B"};
    int pair[2];
    serve_options o = {.most_waiting = 8};
    serve_model *m = model();
    assert_int_equal(say(m, 4, SERVE_MAGIC), 0);
    serve_model_sum(m);
    assert_int_equal(serve_open(&g->server, m, &o), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    g->fd = pair[1];
    assert_int_equal(serve_attach(&g->link, g->server, pair[0], 2, device, 4), 0);
}

/* A request arrives at the group. */
static serve_job *ask(group *g)
{
    serve_ask asked;
    char input[8];
    serve_job *j = serve_job_new();
    assert_non_null(j);
    j->deadline_s = 1e300;
    j->request.input = calloc(1, g->server->model->in_bytes);
    assert_true(serve_queue_put(&g->server->queue, j));
    assert_int_equal(recv(g->fd, &asked, sizeof asked, MSG_WAITALL), sizeof asked);
    assert_int_equal(recv(g->fd, input, sizeof input, MSG_WAITALL), g->server->model->in_bytes);
    return j;
}

static void sign(const group *g, int64_t rank, const char *text)
{
    serve_reply r = {SERVE_MAGIC, SERVE_SIGN, text != NULL, text ? (int64_t)strlen(text) : 0, rank};
    assert_int_equal(write(g->fd, &r, sizeof r), sizeof r);
    assert_true(!text || write(g->fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static serve_hang wait_for_hang(const group *g, double stall_s)
{
    serve_hang hang;
    while (!serve_link_hangs(g->link, stall_s, &hang))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return hang;
}

static void close_group(group *g, serve_job *j)
{
    shutdown(g->fd, SHUT_RDWR);
    assert_int_equal(serve_detach(g->link, 0), j != NULL); /* it is asked again */
    close(g->fd);
    if (j)
        serve_job_let_go(&g->server->queue, j);
    serve_close(g->server);
}

static void test_link_a_group_says_who_hangs(void **state)
{
    (void)state;
    group g;
    open_group(&g);
    sign(&g, -1, NULL);
    sign(&g, 1, "device 'B' (rank 1) hangs");
    serve_hang hang = wait_for_hang(&g, 0);
    assert_int_equal(hang.rank, 1);
    assert_string_equal(hang.text, "device 'B' (rank 1) hangs");
    close_group(&g, NULL);
}

static void test_link_rank_0_that_falls_silent_hangs_itself(void **state)
{
    (void)state;
    group g;
    open_group(&g);
    sign(&g, -1, NULL);
    serve_job *j = ask(&g);
    serve_hang hang = wait_for_hang(&g, 0.5);
    assert_int_equal(hang.rank, 0);
    assert_non_null(strstr(hang.text, "device 'A' (rank 0) hangs: no sign of life for "));
    close_group(&g, j);
}

/* Nobody has said anything yet: any of them may be the one that the others wait for. And one without requests sleeps. */
static void test_link_of_a_group_that_does_not_begin_nobody_is_named(void **state)
{
    (void)state;
    group g;
    serve_hang hang;
    open_group(&g);
    for (int i = 0; i < 100; i++) {
        assert_false(serve_link_hangs(g.link, 0.02, &hang));
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    serve_job *j = ask(&g);
    hang = wait_for_hang(&g, 0.1);
    assert_int_equal(hang.rank, -1);
    assert_non_null(strstr(hang.text, "which one hangs can't be told"));
    close_group(&g, j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_outputs_are_set_once),
        cmocka_unit_test(test_link_whoever_is_no_group_is_refused),
        cmocka_unit_test(test_link_a_group_says_who_hangs),
        cmocka_unit_test(test_link_rank_0_that_falls_silent_hangs_itself),
        cmocka_unit_test(test_link_of_a_group_that_does_not_begin_nobody_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
