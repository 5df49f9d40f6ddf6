/* Signals and the terminal: what is found is kept, nothing is left behind, and there is always something to see. */
#include "support/check.h"
#include "support/command.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap(void)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* Starts the command in the background; its own process, so that its signals can be tried. */
static pid_t start(char *const *argv)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL); /* which a test that runs behind a shell, or after nohup, is told to ignore */
        signal(SIGHUP, SIG_DFL);
        if (!freopen("out", "w", stdout) || !freopen("err", "w", stderr))
            _exit(99);
        execv(MOIRAI_COMMAND, argv);
        _exit(98);
    }
    assert_true(child > 0);
    return child;
}

/* Until the file has something in it; the search is under way then. */
static void wait_for(const char *path)
{
    char *text = NULL;
    for (int i = 0; i < 3000 && (!text || !*text); i++) {
        free(text);
        nap();
        text = read_text(path);
    }
    assert_true(text && *text);
    free(text);
}

/* A search without any limit ends soon after the signal, and the plan is there and right. */
static void keeps_the_plan(int number)
{
    char *argv[] = {"moirai", "place",    "problem.json", "--time-limit", "none",      "--gap",   "0", "--log-json",
                    "log",    "--effort", "1000",         "-o",           "plan.json", "--force", NULL};
    int status;
    remove("plan.json");
    remove("log");
    pid_t child = start(argv);
    wait_for("log");
    assert_int_equal(kill(child, number), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    char *err = read_text("err");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("signal %d: status %d: %s", number, status, err);
    assert_contains(err, "interrupted: this is the best plan so far");
    free(err);
    assert_runs("$M check problem.json plan.json");
}

static void test_cli_signals_keep_the_best_plan(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-mini --cluster inter-server -q -o problem.json");
    keeps_the_plan(SIGINT);
    keeps_the_plan(SIGTERM);
    keeps_the_plan(SIGHUP);
}

/* A pipe whose other end nobody opens, or of which nothing comes: one signal is enough, and the line says what was waited for. */
static void ends_on_one(char **argv, const char *says)
{
    int status;
    remove("err");
    pid_t child = start(argv), ended = 0;
    for (int i = 0; i < 15; i++)
        nap();
    assert_int_equal(waitpid(child, &status, WNOHANG), 0); /* it waits */
    assert_int_equal(kill(child, SIGTERM), 0);
    for (int i = 0; i < 500 && !ended; i++) {
        nap();
        ended = waitpid(child, &status, WNOHANG);
    }
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("%s %s: it does not end", argv[1], argv[2]);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    char *err = read_text("err");
    assert_contains(err, says);
    free(err);
}

static void test_cli_signals_end_what_waits_for_a_pipe(void **state)
{
    (void)state;
    assert_runs("mkfifo silent busy && $M zoo gpt3-tiny -q -o graph.json");
    ends_on_one((char *[]){"moirai", "inspect", "silent", NULL}, "silent: interrupted while it was waited for");
    int writer = open("busy", O_RDWR); /* open, but without a word */
    assert_true(writer >= 0);
    ends_on_one((char *[]){"moirai", "inspect", "busy", NULL}, "busy: interrupted while it was waited for");
    close(writer);
    char *unread[] = {"moirai", "problem", "graph.json", "--cluster", "inter-server", "-o", "silent", "--force", NULL};
    ends_on_one(unread, "silent: interrupted while it was waited for");
    /* Whoever comes late is served. */
    assert_runs("(sleep 0.3; cat graph.json >silent) & $M inspect silent");
    assert_runs(
        "$M problem graph.json --cluster inter-server -q -o silent --force & sleep 0.3; cat silent >late.json; wait; "
        "$M problem graph.json --cluster inter-server -q -o soon.json && cmp late.json soon.json");
}

/* What-ifs that nobody searched must not look as if somebody had. */
static void test_cli_signals_end_what_ifs_openly(void **state)
{
    (void)state;
    char *argv[] = {"moirai", "explain", "plan.json", "--problem", "problem.json", "--what-if", "100000", NULL};
    int status;
    assert_runs("$M plan gpt3-mini --cluster inter-server --rules none --placer heft -o plan.json --problem-out "
                "problem.json -q");
    remove("err");
    pid_t child = start(argv);
    wait_for("err"); /* "what if: placing again" */
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    char *err = read_text("err"), *out = read_text("out");
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    assert_contains(err, "interrupted: these are the what-ifs so far");
    assert_contains(out, "not tried (interrupted): ");
    assert_contains(out, "* search cut short by the interrupt");
    free(err);
    free(out);
}

static void test_cli_signals_nohup_is_respected(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o problem.json");
    /* Ignored when it begins, ignored to the end: the plan is made as if nothing had happened. */
    assert_runs("trap '' HUP; $M place problem.json --effort 0.01 -o plan.json & p=$!; kill -HUP $p; wait $p");
    assert_null(strstr(shell_err, "interrupted"));
}

/* All that a command writes to a terminal. */
static char *on_terminal(char *const *argv, int *status)
{
    static char text[1 << 16];
    int terminal;
    size_t used = 0;
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(child >= 0);
    if (child == 0) {
        execv(MOIRAI_COMMAND, argv);
        _exit(98);
    }
    for (ssize_t got; used + 1 < sizeof text && (got = read(terminal, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)got;
    text[used] = '\0';
    close(terminal);
    assert_int_equal(waitpid(child, status, 0), child);
    return text;
}

static void test_cli_status_shows_plan_gap_and_silence(void **state)
{
    (void)state;
    int status;
    char *argv[] = {"moirai", "place", "problem.json", "--time-limit", "3.5", "--gap", "0", NULL};
    assert_runs("$M problem gpt3-mini --cluster inter-server -q -o problem.json");
    char *text = on_terminal(argv, &status);
    assert_int_equal(status, 0);
    /* The first plan is a line of the log, shown at once; then the status line, drawn over itself. */
    assert_contains(text, "found by: ");
    assert_contains(text, "\r\033[Kplan ");
    assert_contains(text, " %: no better plan in ");
    /* It is gone when the result is written. */
    const char *last = strstr(text, "plan         gpt3-mini-inter-server by moirai");
    assert_non_null(last);
    assert_null(strstr(last, "\033[K"));
}

static void test_cli_status_is_silent_without_a_terminal(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster inter-server --effort 0.01");
    assert_null(strstr(shell_err, "\033["));
    assert_null(strstr(shell_out, "\033["));
}

static void test_cli_status_names_what_is_read(void **state)
{
    (void)state;
    int status;
    char *argv[] = {"moirai", "inspect", "slow", NULL};
    /* A pipe that answers late: reading is what it waits for. */
    assert_runs("mkfifo slow && $M zoo gpt3-tiny -q -o graph.json");
    pid_t writer = fork();
    if (writer == 0) {
        execl("/bin/sh", "sh", "-c", "exec 3>slow; sleep 2.5; cat graph.json >&3", (char *)NULL);
        _exit(98);
    }
    char *text = on_terminal(argv, &status);
    waitpid(writer, NULL, 0);
    assert_int_equal(status, 0);
    assert_contains(text, "reading slow ... ");
    assert_contains(text, "gpt3-tiny");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_signals_keep_the_best_plan, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_signals_end_what_waits_for_a_pipe, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_signals_end_what_ifs_openly, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_signals_nohup_is_respected, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_status_shows_plan_gap_and_silence, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_status_is_silent_without_a_terminal, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_status_names_what_is_read, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
