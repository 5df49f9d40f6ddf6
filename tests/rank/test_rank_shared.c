/* Memory of several processes of one host: who can have it, and who can't. */
#include "support/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank/host/rank_shared.h"

enum { BYTES = 1 << 16 };

static void *new_one(rank_shared *s)
{
    rank_shared_self(s, true);
    return rank_shared_new(s, BYTES);
}

/* Another process, which inherits no mapping of it, reads what was written and answers in it. */
static int answer(const rank_shared *s, int expected)
{
    char *memory = rank_shared_map(s);
    if (!memory)
        return 2;
    int found = memory[BYTES - 1];
    memory[RANK_SHARED_LINE] = 7;
    rank_shared_free(memory, s->bytes);
    return found != expected;
}

static void test_rank_shared_memory_is_seen_by_both(void **state)
{
    rank_shared s;
    int status;
    char *memory = new_one(&s);
    (void)state;
    assert_non_null(memory);
    memory[BYTES - 1] = 42;
    pid_t child = fork();
    if (!child)
        _exit(answer(&s, 42));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(memory[RANK_SHARED_LINE], 7);
    rank_shared_free(memory, s.bytes);
    close(s.fd);
    assert_null(rank_shared_map(&s)); /* what was closed is gone for those who come late */
}

/* A process of another container has the same number: its file is another one. */
static void test_rank_shared_memory_of_others_is_not_taken(void **state)
{
    rank_shared s, other;
    char *memory = new_one(&s);
    (void)state;
    assert_non_null(memory);
    other = s;
    other.token[0]++;
    assert_null(rank_shared_map(&other));
    other = s;
    other.bytes *= 2;
    assert_null(rank_shared_map(&other));
    other = s;
    other.fd = 0;
    assert_null(rank_shared_map(&other));
    rank_shared_self(&other, true);
    assert_null(rank_shared_map(&other)); /* has none */
    rank_shared_free(memory, s.bytes);
    close(s.fd);
}

static void test_rank_shared_memory_is_for_one_host(void **state)
{
    rank_shared a, b;
    (void)state;
    rank_shared_self(&a, true);
    b = a;
    assert_true(rank_shared_can(&a, &b));
    b.host[0]++;
    assert_false(rank_shared_can(&a, &b));
    b = a;
    b.network++;
    assert_false(rank_shared_can(&a, &b));
    rank_shared_self(&b, false);
    assert_false(rank_shared_can(&a, &b));
    setenv("MOIRAI_TRANSPORT", "host", 1);
    rank_shared_self(&b, true);
    unsetenv("MOIRAI_TRANSPORT");
    assert_false(rank_shared_can(&a, &b));
}

/* Where the system gives none, that is said, and nobody dies of it: messages do as well. */
static void test_rank_shared_memory_may_be_refused(void **state)
{
    rank_shared s;
    struct rlimit before, small = {4096, 4096};
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    void *memory = new_one(&s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_null(memory);
    assert_int_equal(s.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_shared_memory_is_seen_by_both),
        cmocka_unit_test(test_rank_shared_memory_of_others_is_not_taken),
        cmocka_unit_test(test_rank_shared_memory_is_for_one_host),
        cmocka_unit_test(test_rank_shared_memory_may_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
