/* A folder of hostile models and files: commands read, write and start nothing outside of what they were given, end with a
 * documented code, and say why in one line that steers no terminal. */
#include "support/check.h"
#include "support/command.h"
#include "support/hostile.h"
#include "support/scale.h"
#include "support/trace.h"
#include "util/text.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char here[1000], models[1100], parts[1100];
static const char *const folders[] = {models, parts, NULL};
static const char *traced = "";

static int enter(void **state)
{
    int rc = enter_folder(state);
    if (rc || !getcwd(here, sizeof here))
        return -1;
    snprintf(models, sizeof models, "%s/models/", here);
    snprintf(parts, sizeof parts, "%s/out/", here);
    traced = TEST_AGAIN(false, trace_works()) ? trace_prefix : "";
    if (MOIRAI_TESTS_AGAIN)
        print_message("file accesses were looked at in another build\n");
    else if (!*traced)
        print_message("strace is not here, or may not trace: file accesses are not looked at\n");
    return mkdir("models", 0700) || mkdir("out", 0700);
}

/* Bytes that steer a terminal, or turn a line around. */
static bool is_harmless(const char *text)
{
    char *copy = strdup(text);
    bool same = true;
    for (char *line = copy, *end; same && *line; line = end) {
        end = line + strcspn(line, "\n");
        bool more = *end;
        *end = '\0';
        char before[70000];
        snprintf(before, sizeof before, "%s", line);
        util_clean(line);
        same = !strcmp(before, line);
        end += more;
    }
    free(copy);
    return same;
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* One command on one file; returns its exit code. */
static int try(const char *file, const char *line)
{
    int code = shell("%s %s", traced, line);
    if (code && code != 2 && code != 3 && code != 4)
        fail_msg("%s: '%s' ended with %d: %s", file, line, code, shell_err);
    if (code && (lines_of(shell_err) != 1 || strncmp(shell_err, "moirai: ", 8)))
        fail_msg("%s: '%s' says: %s", file, line, shell_err);
    if (!is_harmless(shell_err) || !is_harmless(shell_out))
        fail_msg("%s: '%s' steers the terminal", file, line);
    const char *fault = *traced ? trace_fault(folders, true) : NULL;
    if (fault)
        fail_msg("%s: '%s' touches %s", file, line, fault);
    return code;
}

/* Nothing beside the folders is new, and what is outside is as it was. */
static void assert_untouched(void)
{
    assert_runs("test \"$(ls -A outside)\" = secret && test \"$(cat outside/secret)\" = SECRETSECRETSECR && "
                "test ! -e /tmp/moirai-evil && test -z \"$(ls out)\"");
}

static int each_file(const char *suffix, void (*check)(const char *name, int number))
{
    struct dirent **list;
    int n = scandir("models", &list, NULL, alphasort), met = 0;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(list[i]->d_name, '.');
        if (dot && !strcmp(dot, suffix))
            check(list[i]->d_name, met++);
        free(list[i]);
    }
    free(list);
    return met;
}

/* ---- models ---- */

static int n_planned, n_split;

/* Every model is planned, and split by a plan of its own or, if it has none, by that of a harmless model with these
 * operators. */
static void check_model(const char *name, int number)
{
    char line[4000];
    snprintf(line, sizeof line,
             "$M plan '%s%s' --cluster '2x v100, 100Gbps 5us' --rules none --placer heft -q --force -o '%splan.json'",
             models, name, parts);
    bool planned = try(name, line) == 0;
    if (!planned && number % TEST_AGAIN(4, 1)) /* refused by the reader that both have */
        return;
    snprintf(line, sizeof line, "$M split '%s%s' '%s%s' -q -o '%sp'", planned ? parts : models,
             planned ? "plan.json" : "harmless.plan", models, name, parts);
    bool split = try(name, line) == 0;
    n_planned += planned;
    n_split += split;
    if (split && shell("! grep -rqa -e SECRET -e /etc/hostname -e outside/secret -e /dev/zero out/p"))
        fail_msg("%s: the parts hold what is outside, or name it", name);
    if (number % 8 == 0) {
        snprintf(line, sizeof line, "$M inspect '%s%s'", models, name);
        try(name, line);
    }
    assert_runs("rm -rf out/*");
}

static void test_cli_hostile_models(void **state)
{
    (void)state;
    int made = make_hostile_models("models");
    assert_true(made >= 200);
    write_text("models/harmless.plan",
               "{\"format\": \"moirai-plan\", \"version\": 1, \"makespan_ns\": 20, \"ops\": ["
               "{\"name\": \"Relu_0\", \"device\": \"A\", \"start_ns\": 0, \"finish_ns\": 10},"
               "{\"name\": \"Neg_1\", \"device\": \"A\", \"start_ns\": 10, \"finish_ns\": 20}], \"transfers\": []}");
    assert_int_equal(each_file(".onnx", check_model), made);
    assert_untouched();
    print_message("%d models, %d planned, %d split%s\n", made, n_planned, n_split, *traced ? ", traced" : "");
    assert_true(n_planned > 0 && n_planned < made && n_split > 0);
}

/* ---- JSON ---- */

static void check_text(const char *name, int number)
{
    char line[4000];
    (void)number;
    if (!strncmp(name, "cluster", 7))
        snprintf(line, sizeof line, "$M plan gpt3-tiny --cluster '%s%s' --placer heft -q -o '%splan.json'", models,
                 name, parts);
    else
        snprintf(line, sizeof line, "$M plan '%s%s' --cluster '1x v100' --placer heft -o '%splan.json' 2>/dev/null",
                 models, name, parts);
    if (strncmp(name, "cluster", 7)) { /* the story may have several lines; the refusal has one */
        shell("%s", line);
        snprintf(line, sizeof line, "$M inspect '%s%s'", models, name);
    }
    try(name, line);
    assert_runs("rm -rf out/*");
}

static void test_cli_hostile_texts(void **state)
{
    (void)state;
    int made = make_hostile_texts("models");
    assert_int_equal(mkdir("outside", 0700), 0);
    write_text("outside/secret", "SECRETSECRETSECR");
    assert_int_equal(each_file(".json", check_text), made);
    assert_untouched();
}

/* ---- the tracer itself ---- */

static void test_cli_hostile_traces_see_what_happens(void **state)
{
    (void)state;
    if (!trace_works())
        skip_because("strace is not here, or may not trace");
    assert_int_equal(mkdir("outside", 0700), 0);
    write_text("outside/secret", "s");
    write_text("models/fine", "s");
    assert_int_equal(symlink("../outside/secret", "models/link"), 0);
    shell("%s cat models/fine", trace_prefix);
    assert_null(trace_fault(folders, true));
    shell("%s cat models/link", trace_prefix);
    assert_non_null(strstr(trace_fault(folders, true), "outside/secret"));
    shell("%s cat /etc/hostname", trace_prefix);
    assert_non_null(strstr(trace_fault(folders, true), "/etc/hostname"));
    shell("%s rm outside/secret", trace_prefix);
    assert_non_null(trace_fault(folders, true));
    shell("%s sh -c 'true; /bin/true; true'", trace_prefix);
    assert_non_null(trace_fault(folders, true));
    assert_null(trace_fault(folders, false));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_hostile_traces_see_what_happens),
        TEST(test_cli_hostile_models),
        TEST(test_cli_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
