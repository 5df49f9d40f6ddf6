/* Reading JSON by key: what is taken, what is refused, and in which words; writing it, byte by byte. */
#include <yyjson.h>

#include "support/check.h"
#include "util/json.h"
#include "util/util.h"

static const char text[] =
    "{\"format\": \"f\", \"version\": 1, \"n\": 7, \"least\": -9223372036854775808, \"big\": 9223372036854775808,"
    " \"huge\": 99999999999999999999999, \"real\": 1.5, \"s\": \"word\", \"empty\": \"\", \"nul\": \"a\\u0000b\","
    " \"yes\": true, \"none\": null, \"list\": [1, 2], \"object\": {\"k\": 1, \"l\": 2}}";

typedef struct fixture {
    yyjson_doc *doc;
    yyjson_val *root;
    util_json_at at;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    if (util_json_open(&f.doc, text, strlen(text), "x.json", "f"))
        return -1;
    f.root = yyjson_doc_get_root(f.doc);
    f.at = (util_json_at){.label = "x.json", .kind = "op", .name = "fc1"};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    yyjson_doc_free(((fixture *)*state)->doc);
    return 0;
}

#define SAYS(call, message) \
    do { \
        assert_int_equal(call, MOIRAI_EINPUT); \
        assert_string_equal(moirai_error_message(), message); \
    } while (0)

static void test_util_json_whole_numbers(void **state)
{
    fixture *f = *state;
    int64_t x = 99;
    assert_ok(util_json_int64(&x, &f->at, f->root, "n", true, 0));
    assert_int_equal(x, 7);
    assert_ok(util_json_int64(&x, &f->at, f->root, "least", true, INT64_MIN));
    assert_true(x == INT64_MIN);
    SAYS(util_json_int64(&x, &f->at, f->root, "n", true, 8), "x.json: op 'fc1': n is 7, must be at least 8");
    SAYS(util_json_int64(&x, &f->at, f->root, "big", true, 0),
         "x.json: op 'fc1': big is 9223372036854775808, beyond 64 bits");
    SAYS(util_json_int64(&x, &f->at, f->root, "huge", true, 0),
         "x.json: op 'fc1': huge is 99999999999999999999999, beyond 64 bits");
    SAYS(util_json_int64(&x, &f->at, f->root, "real", true, 0),
         "x.json: op 'fc1': real is 1.5, expected a whole number");
    SAYS(util_json_int64(&x, &f->at, f->root, "yes", true, 0),
         "x.json: op 'fc1': yes is true, expected a whole number");
    SAYS(util_json_int64(&x, &f->at, f->root, "s", true, 0),
         "x.json: op 'fc1': s is \"word\", expected a whole number");
}

/* A key that is missing or null: an error where it is required, and no change where it is not. */
static void test_util_json_missing_keys(void **state)
{
    fixture *f = *state;
    int64_t n = 42;
    double real = 0.5;
    bool flag = true;
    const char *word = "kept";
    yyjson_val *list = f->root;
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "none" : "absent";
        assert_ok(util_json_int64(&n, &f->at, f->root, key, false, 0));
        assert_ok(util_json_real(&real, &f->at, f->root, key, false));
        assert_ok(util_json_bool(&flag, &f->at, f->root, key, false));
        assert_ok(util_json_string(&word, NULL, &f->at, f->root, key, false));
        assert_ok(util_json_array(&list, &f->at, f->root, key, false));
    }
    assert_true(n == 42 && real == 0.5 && flag && list == f->root);
    assert_string_equal(word, "kept");
    SAYS(util_json_int64(&n, &f->at, f->root, "absent", true, 0), "x.json: op 'fc1': key 'absent' is missing");
    SAYS(util_json_array(&list, &f->at, f->root, "none", true), "x.json: op 'fc1': key 'none' is missing");
}

static void test_util_json_strings_reals_bools_and_arrays(void **state)
{
    fixture *f = *state;
    const char *word = NULL;
    size_t length = 0;
    double real = 0;
    bool flag = false;
    yyjson_val *list = NULL;
    assert_ok(util_json_string(&word, &length, &f->at, f->root, "s", true));
    assert_string_equal(word, "word");
    assert_int_equal(length, 4);
    assert_ok(util_json_string(&word, &length, &f->at, f->root, "empty", false));
    assert_int_equal(length, 0);
    SAYS(util_json_string(&word, NULL, &f->at, f->root, "empty", true), "x.json: op 'fc1': empty is empty");
    SAYS(util_json_string(&word, NULL, &f->at, f->root, "nul", true),
         "x.json: op 'fc1': nul is \"a\" followed by a NUL character");
    SAYS(util_json_string(&word, NULL, &f->at, f->root, "n", true), "x.json: op 'fc1': n is 7, expected a string");
    assert_ok(util_json_real(&real, &f->at, f->root, "n", true));
    assert_true(real == 7);
    assert_ok(util_json_real(&real, &f->at, f->root, "real", true));
    assert_true(real == 1.5);
    SAYS(util_json_real(&real, &f->at, f->root, "s", true), "x.json: op 'fc1': s is \"word\", expected a number");
    assert_ok(util_json_bool(&flag, &f->at, f->root, "yes", true));
    assert_true(flag);
    SAYS(util_json_bool(&flag, &f->at, f->root, "n", true), "x.json: op 'fc1': n is 7, expected true or false");
    assert_ok(util_json_array(&list, &f->at, f->root, "list", true));
    assert_int_equal(yyjson_arr_size(list), 2);
    SAYS(util_json_array(&list, &f->at, f->root, "object", true),
         "x.json: op 'fc1': object is an object, expected an array");
}

static void test_util_json_objects(void **state)
{
    fixture *f = *state;
    assert_ok(util_json_object(&f->at, f->root));
    assert_ok(util_json_object(&f->at, yyjson_obj_get(f->root, "object")));
    SAYS(util_json_object(&f->at, yyjson_obj_get(f->root, "list")),
         "x.json: op 'fc1': is an array, expected an object");
}

/* In any object, however deep, of any file. */
static void test_util_json_keys_come_once(void **state)
{
    static const struct {
        const char *json, *says;
    } list[] = {
        {"{\"a\": 1, \"a\": 1}", "k.json: key 'a' is there twice"},
        {"{\"pairs\": [{\"upper_ns\": 1, \"upper_ns\": 2}]}", "k.json: key 'upper_ns' is there twice"},
        {"[1, {}, {\"a\": {\"name\": \"B\", \"b\": [], \"b\": []}}]", "k.json: in 'B': key 'b' is there twice"},
        {"{\"a\": [[[[{\"x\": {\"\": 0, \"y\": 1, \"\": 2}}]]]]}", "k.json: key '' is there twice"},
        {"[{\"name\": \"no\"}, {\"t\": {\"x\": 1, \"x\": 1}, \"name\": \"A\"}]",
         "k.json: in 'A': key 'x' is there twice"},
        {"{\"\\u0061\": 1, \"a\": 2}", "k.json: key 'a' is there twice"},
    };
    yyjson_doc *doc;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        SAYS(util_json_parse(&doc, list[i].json, strlen(list[i].json), "k.json"), list[i].says);
        assert_null(doc);
    }
    static const char fine[] = "{\"a\": {\"a\": {\"a\": 1, \"b\": 2}, \"b\": [{\"a\": 1}, {\"a\": 1}]}, \"b\": \"a\"}";
    assert_ok(util_json_parse(&doc, fine, sizeof fine - 1, "k.json"));
    yyjson_doc_free(doc);
    enum { DEEP = 200000 }; /* no recursion that a file could overflow */
    char *deep = malloc(6 * DEEP + 64);
    assert_non_null(deep);
    for (int i = 0; i < DEEP; i++)
        memcpy(deep + 5 * i, "{\"a\":", 5);
    sprintf(deep + 5 * DEEP, "{\"b\":0,\"b\":0}");
    size_t used = strlen(deep);
    memset(deep + used, '}', DEEP);
    SAYS(util_json_parse(&doc, deep, used + DEEP, "k.json"), "k.json: key 'b' is there twice");
    free(deep);
}

/* Where it is: by name, by number while the name is not known, at the top of the file. */
static void test_util_json_says_where(void **state)
{
    (void)state;
    util_json_at by_number = {.label = "x.json", .kind = "op", .index = 3}, top = {.label = "x.json"};
    SAYS(util_json_fail(&by_number, "is odd"), "x.json: op 3: is odd");
    SAYS(util_json_fail(&top, "is odd"), "x.json: is odd");
    moirai_error(MOIRAI_EINPUT, "is odd");
    SAYS(util_json_label(MOIRAI_EINPUT, "y.json"), "y.json: is odd");
    SAYS(util_json_label(MOIRAI_EINPUT, "y.json"), "y.json: is odd"); /* once is enough */
}

static void test_util_json_headers(void **state)
{
    (void)state;
    yyjson_doc *doc;
    static const struct {
        const char *json, *says;
    } list[] = {
        {"", "h.json: is empty"},
        {"[]", "h.json: the file is an array, expected an object"},
        {"{}", "h.json: key 'format' is missing"},
        {"{\"format\": \"g\", \"version\": 1}", "h.json: format is \"g\", expected \"f\""},
        {"{\"format\": \"f\"}", "h.json: key 'version' is missing"},
        {"{\"format\": \"f\", \"version\": 2}", "h.json: f version 2, only version 1 is known"},
        {"{\"format\": \"f\", \"version\": 1, \"version\": 1}", "h.json: key 'version' is there twice"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        SAYS(util_json_open(&doc, list[i].json, strlen(list[i].json), "h.json", "f"), list[i].says);
        assert_null(doc);
    }
}

static void test_util_json_writer_lays_out_lines(void **state)
{
    (void)state;
    util_writer w;
    util_writer_begin(&w, "f");
    util_writer_break(&w);
    util_writer_pair_open(&w, "list", '[');
    for (int i = 0; i < 2; i++) {
        util_writer_break(&w);
        util_writer_open(&w, '{');
        util_writer_pair_int(&w, "i", i);
        util_writer_pair_string(&w, "s", NULL);
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "empty", '{');
    util_writer_close(&w, '}');
    util_writer_close(&w, '}');
    char *written = util_writer_take(&w, NULL);
    assert_string_equal(
        written,
        "{\"format\": \"f\", \"version\": 1,\n \"list\": [\n  {\"i\": 0, \"s\": null},\n  {\"i\": 1, \"s\": null}],"
        " \"empty\": {}}\n");
    free(written);
}

static void test_util_json_writer_saves_files(void **state)
{
    (void)state;
    util_writer w;
    char *path = temporary_path("w.json"), *data;
    size_t n;
    util_writer_begin(&w, "f");
    util_writer_close(&w, '}');
    assert_ok(util_writer_save(&w, path));
    assert_ok(util_file_read(&data, &n, path));
    assert_string_equal(data, "{\"format\": \"f\", \"version\": 1}\n");
    free(data);
    remove(path);
    util_writer_begin(&w, "f");
    assert_int_equal(util_writer_save(&w, "/nonexistent/w.json"), MOIRAI_EFAIL);
    assert_null(w.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_util_json_whole_numbers),
        cmocka_unit_test(test_util_json_missing_keys),
        cmocka_unit_test(test_util_json_strings_reals_bools_and_arrays),
        cmocka_unit_test(test_util_json_objects),
        cmocka_unit_test(test_util_json_keys_come_once),
        cmocka_unit_test(test_util_json_says_where),
        cmocka_unit_test(test_util_json_headers),
        cmocka_unit_test(test_util_json_writer_lays_out_lines),
        cmocka_unit_test(test_util_json_writer_saves_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
