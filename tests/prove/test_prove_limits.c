/* Time limits and interrupts of the verifier: it stops within what it is judging, says so, and proves nothing. */
#include <moirai/moirai.h>

#include <pthread.h>
#include <unistd.h>

#include "support/check.h"
#include "support/shapes.h"
#include "util/util.h"

#define DEPTH 14 /* 2^14 cases */
#define OPS 400

typedef struct file {
    char *text;
    size_t n;
} file;

static void add(file *f, const char *text)
{
    size_t length = strlen(text);
    f->text = realloc(f->text, f->n + length + 1);
    assert_non_null(f->text);
    memcpy(f->text + f->n, text, length + 1);
    f->n += length;
}

/* Cases within cases, all devices of each operator; a leaf has nothing to say but its longest path. */
static void add_case(file *f, int depth, int devices)
{
    char op[32];
    if (depth == 0) {
        add(f, "{}");
        return;
    }
    snprintf(op, sizeof op, "{\"op\":%d,\"cases\":[", depth);
    add(f, op);
    for (int k = 0; k < devices; k++) {
        if (k > 0)
            add(f, ",");
        if (k < 2)
            add_case(f, depth - 1, devices);
        else
            add(f, "{}");
    }
    add(f, "]}");
}

/* A certificate that takes some seconds, and its problem: a chain on four devices. */
static void slow_files(file *problem, file *certificate)
{
    moirai_problem *p;
    char head[256];
    assert_ok(shape_problem(&p, shape_name[0], OPS, 4));
    assert_ok(moirai_problem_text(&problem->text, &problem->n, p));
    snprintf(head, sizeof head,
             "{\"format\":\"moirai-certificate\",\"version\":1,\"operators\":%d,\"cuts\":[],\"block_class\":[0],",
             p->n_ops);
    add(certificate, head);
    add(certificate,
        "\"lower_bound_ns\":0,\"certified_bound_ns\":0,\"classes\":[{\"pairs\":[{\"entry\":0,\"exit\":0,\"lower_ns\":0,"
        "\"loads\":");
    add_case(certificate, DEPTH, 4);
    add(certificate, "}]}]}");
    moirai_problem_free(p);
}

static int prove(moirai_proof *proof, const file *problem, const file *certificate, const moirai_budget *budget)
{
    moirai_prove_file p = {problem->text, problem->n, "problem"}, c = {certificate->text, certificate->n, "slow"};
    return moirai_prove_text(proof, &p, &c, budget);
}

static void assert_stopped(int rc)
{
    assert_int_equal(rc, MOIRAI_ELIMIT);
    if (!strstr(moirai_error_message(), "stopped before everything was judged: nothing is proven"))
        fail_msg("it says '%s'", moirai_error_message());
}

static void *raise_soon(void *data)
{
    usleep(50000);
    moirai_interrupt_raise(data);
    return NULL;
}

static void test_prove_stops_at_its_limits(void **state)
{
    (void)state;
    file problem = {0}, certificate = {0};
    moirai_proof all, some;
    moirai_budget budget;
    moirai_interrupt interrupt = {0};
    pthread_t thread;
    slow_files(&problem, &certificate);
    double begun = util_seconds();
    assert_ok(prove(&all, &problem, &certificate, NULL));
    double whole_s = util_seconds() - begun;
    assert_true(all.leaves > 1 << (DEPTH - 1));

    moirai_budget_init(&budget);
    budget.time_limit_s = UTIL_MIN(0.05, whole_s / 8);
    assert_stopped(prove(&some, &problem, &certificate, &budget));
    assert_int_equal(some.proven_ns, 0);

    moirai_budget_init(&budget);
    budget.interrupt = &interrupt;
    assert_int_equal(pthread_create(&thread, NULL, raise_soon, &interrupt), 0);
    assert_stopped(prove(&some, &problem, &certificate, &budget));
    pthread_join(thread, NULL);
    assert_stopped(prove(&some, &problem, &certificate, &budget)); /* raised before it begins */
    free(problem.text);
    free(certificate.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prove_stops_at_its_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
