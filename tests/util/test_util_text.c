/* Text of others made harmless, and files that are there whole or not at all. */
#include "support/check.h"
#include "util/json.h"
#include "util/util.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

static void assert_clean(const char *text, const char *expected)
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", text);
    util_clean(copy);
    assert_string_equal(copy, expected);
    moirai_error(MOIRAI_EINPUT, "it is '%s'", text);
    assert_non_null(strstr(moirai_error_message(), expected));
}

static void test_util_text_steers_no_terminal(void **state)
{
    (void)state;
    assert_clean("plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_clean("\x1b[31mred\x7f", "?[31mred?");
    assert_clean("\xc2\x9b"
                 "31mred\xc2\x80\xc2\x9f\xc2\xa0",
                 "?31mred??\xc2\xa0"); /* U+009B is ESC [ in one */
    assert_clean("\x9b"
                 "31mred",
                 "?31mred");
    assert_clean("a\xe2\x80\xae"
                 "cod.exe",
                 "a?cod.exe"); /* right to left from here */
    assert_clean("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad", "????");
    assert_clean("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "????");
    assert_clean("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???");
    assert_clean("caf\xe9 \xff\xfe", "caf? ??");
}

/* The same names come back from a file, and the file steers nothing, either. */
static void test_util_text_is_escaped_in_json(void **state)
{
    static const char name[] = "a\xc2\x9b"
                               "31m\xe2\x80\xae"
                               "b\x7f\xe2\x81\xa9\x1b \xc3\xa9";
    util_writer w;
    yyjson_doc *doc;
    size_t length;
    (void)state;
    util_writer_init(&w);
    util_writer_string(&w, name);
    char *json = util_writer_take(&w, &length);
    assert_non_null(json);
    assert_string_equal(json, "\"a\\u009b31m\\u202eb\\u007f\\u2069\\u001b \xc3\xa9\"\n");
    assert_ok(util_json_parse(&doc, json, length, "x"));
    assert_string_equal(yyjson_get_str(yyjson_doc_get_root(doc)), name);
    yyjson_doc_free(doc);
    free(json);
}

static void test_util_text_formulas(void **state)
{
    (void)state;
    assert_true(util_is_formula("=1+1") && util_is_formula("+1") && util_is_formula("-1") && util_is_formula("@a"));
    assert_true(util_is_formula("\t=1") && util_is_formula("\r=1"));
    assert_false(util_is_formula("") || util_is_formula("a=1") || util_is_formula("1-1") || util_is_formula(" =1"));
}

/* ---- files ---- */

static int n_folders_synced;

/* Stands in for the C library's: what reaches the disk is told, not waited for. */
int fsync(int fd)
{
    struct stat info;
    n_folders_synced += !fstat(fd, &info) && S_ISDIR(info.st_mode);
    return 0;
}

static char folder[200];

static int make_folder(void **state)
{
    (void)state;
    return util_folder_temporary(folder, sizeof folder, "moirai-test");
}

static int remove_folder(void **state)
{
    (void)state;
    util_folder_remove(folder, 3);
    return access(folder, F_OK) == 0;
}

static const char *at(const char *name)
{
    static char path[4][300];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof *path, "%s/%s", folder, name);
    return path[next];
}

static void put(const char *where, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", where, name);
    assert_ok(util_file_write(path, text, strlen(text)));
}

static bool holds(const char *path, const char *text)
{
    char *data;
    size_t length;
    if (util_file_read(&data, &length, path))
        return false;
    bool same = !strcmp(data, text);
    free(data);
    return same;
}

static void test_util_file_write_has_the_folder_on_disk(void **state)
{
    (void)state;
    n_folders_synced = 0;
    assert_ok(util_file_write(at("x"), "x", 1));
    assert_int_equal(n_folders_synced, 1);
    assert_int_equal(chdir(folder), 0);
    assert_ok(util_file_write("y", "y", 1));
    assert_int_equal(n_folders_synced, 2);
    assert_int_equal(chdir("/"), 0);
}

static void test_util_stage_moves_all_at_once(void **state)
{
    util_stage s;
    (void)state;
    assert_ok(util_stage_open(&s, at("new")));
    put(s.inside, "a", "1");
    put(s.inside, "last", "2");
    assert_int_not_equal(access(at("new/a"), F_OK), 0);
    n_folders_synced = 0;
    assert_ok(util_stage_close(&s, 0, "last"));
    assert_true(n_folders_synced > 0);
    assert_true(holds(at("new/a"), "1") && holds(at("new/last"), "2"));
    /* Again, over what is there; what has another name stays. */
    assert_ok(util_stage_open(&s, at("new")));
    put(s.inside, "a", "3");
    assert_ok(util_stage_close(&s, 0, NULL));
    assert_true(holds(at("new/a"), "3") && holds(at("new/last"), "2"));
    assert_int_equal(unlink(at("new/a")) + unlink(at("new/last")), 0);
    assert_int_equal(rmdir(at("new")), 0); /* nothing else is in it */
}

static void test_util_stage_leaves_nothing_of_a_failure(void **state)
{
    util_stage s;
    (void)state;
    assert_ok(util_stage_open(&s, at("new")));
    put(s.inside, "a", "1");
    moirai_error(MOIRAI_EINPUT, "no");
    assert_int_equal(util_stage_close(&s, MOIRAI_EINPUT, "last"), MOIRAI_EINPUT);
    assert_int_not_equal(access(at("new"), F_OK), 0);
    assert_ok(util_folder_make(at("old")));
    put(at("old"), "a", "old");
    assert_ok(util_stage_open(&s, at("old")));
    put(s.inside, "a", "new");
    assert_int_equal(util_stage_close(&s, MOIRAI_EINPUT, NULL), MOIRAI_EINPUT);
    assert_true(holds(at("old/a"), "old"));
    /* A file that can't move: the one that is to be last does not appear before it. */
    assert_ok(util_folder_make(at("old/b")));
    assert_ok(util_stage_open(&s, at("old")));
    put(s.inside, "b", "1");
    put(s.inside, "last", "2");
    assert_int_equal(util_stage_close(&s, 0, "last"), MOIRAI_EFAIL);
    assert_int_not_equal(access(at("old/last"), F_OK), 0);
    put(folder, "file", "x");
    assert_int_equal(util_stage_open(&s, at("file")), MOIRAI_EFAIL);
    assert_int_equal(util_stage_open(&s, at("missing/deep")), MOIRAI_EFAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_util_text_steers_no_terminal),
        cmocka_unit_test(test_util_text_is_escaped_in_json),
        cmocka_unit_test(test_util_text_formulas),
        cmocka_unit_test_setup_teardown(test_util_file_write_has_the_folder_on_disk, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_util_stage_moves_all_at_once, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_util_stage_leaves_nothing_of_a_failure, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
