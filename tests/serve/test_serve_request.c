/* Requests read and answered, without a server: types at their ends, and what a request may leave out. The list of requests
 * in which one thing is wrong is in test_http.py, which sends them. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include <moirai/error.h>

#include "serve/serve_request.h"
#include "serve/serve_route.h"

/* One input and one output of this type and shape. */
static serve_model *model_of(const char *plain, int64_t rank, const int64_t *dim)
{
    serve_model *m;
    assert_int_equal(serve_model_new(&m, "m", 1, 1), 0);
    assert_int_equal(serve_tensor_set(&m->input[0], "x", serve_type_of_plain(plain), rank, dim), 0);
    assert_int_equal(serve_tensor_set(&m->output[0], "y", serve_type_of_plain(plain), rank, dim), 0);
    serve_model_sum(m);
    return m;
}

/* Reads "data" of that type and answers with it; NULL if it is refused. The caller frees. */
static char *echo(const char *plain, int n, const char *data)
{
    int64_t dim = n;
    serve_model *m = model_of(plain, 1, &dim);
    serve_request r;
    char body[512], *answer = NULL;
    size_t length, head;
    snprintf(body, sizeof body,
             "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"%s\", \"shape\": [%d], \"data\": %s}]}",
             m->input[0].type->name, n, data);
    if (!serve_request_read(&r, m, body, strlen(body), -1)) {
        assert_int_equal(serve_answer_write(&answer, &length, &head, m, &r, r.input), 0);
        assert_int_equal(head, length);
        answer = realloc(answer, length + 1);
        answer[length] = '\0';
    }
    serve_request_free(&r);
    serve_model_free(m);
    return answer;
}

static void assert_echo(const char *plain, int n, const char *data)
{
    char *answer = echo(plain, n, data);
    if (!answer)
        fail_msg("%s %s: %s", plain, data, moirai_error_message());
    if (!strstr(answer, data))
        fail_msg("%s %s: %s", plain, data, answer);
    free(answer);
}

static void assert_refused(const char *plain, const char *data)
{
    char *answer = echo(plain, 1, data);
    if (answer)
        fail_msg("%s %s was taken as %s", plain, data, answer);
}

static void test_request_numbers_at_the_ends_of_their_types(void **state)
{
    (void)state;
    assert_echo("int8", 2, "[-128, 127]");
    assert_echo("uint8", 2, "[0, 255]");
    assert_echo("int16", 2, "[-32768, 32767]");
    assert_echo("uint16", 1, "[65535]");
    assert_echo("int32", 2, "[-2147483648, 2147483647]");
    assert_echo("uint32", 1, "[4294967295]");
    assert_echo("int64", 2, "[-9223372036854775808, 9223372036854775807]");
    assert_echo("uint64", 1, "[18446744073709551615]");
    assert_echo("bool", 2, "[true, false]");
    assert_echo("float64", 1, "[1e+300]");
    assert_echo("float32", 2, "[0.5, -16777216.0]");
}

static void test_request_numbers_beyond_their_types(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"int8", "[128]"},
        {"int8", "[-129]"},
        {"uint8", "[256]"},
        {"uint8", "[-1]"},
        {"int16", "[32768]"},
        {"uint16", "[65536]"},
        {"int32", "[2147483648]"},
        {"uint32", "[4294967296]"},
        {"int64", "[9223372036854775808]"},
        {"uint64", "[18446744073709551616]"},
        {"bool", "[2]"},
        {"bool", "[\"true\"]"},
        {"float32", "[3.5e38]"},
        {"float32", "[true]"},
        {"float64", "[1e999]"},
        {"int32", "[1.0]"},
        {"int64", "[null]"},
        {"float16", "[1]"},
        {"bfloat16", "[1]"},
        {"float32", "[[]]"},
        {"float32", "[]"},
        {"float32", "[1, 2]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(wrong[i][0], wrong[i][1]);
}

/* The words of the refusal, or NULL where "data" of the shape [2,3,1] was taken as 1 to 6. */
static const char *nested(const char *data)
{
    int64_t dim[] = {2, 3, 1};
    static const unsigned char all[] = {1, 2, 3, 4, 5, 6};
    serve_model *m = model_of("uint8", 3, dim);
    serve_request r;
    char body[512];
    snprintf(body, sizeof body,
             "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"UINT8\", \"shape\": [2, 3, 1], \"data\": %s}]}", data);
    int rc = serve_request_read(&r, m, body, strlen(body), -1);
    if (!rc)
        assert_memory_equal(r.input, all, sizeof all);
    serve_request_free(&r);
    serve_model_free(m);
    return rc ? moirai_error_message() : NULL;
}

static void test_request_data_is_flat_or_nested_as_its_shape(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"[[1, 2, 3], [4, 5, 6]]", "\"data\" is nested as [2,3], its shape is [2,3,1]: flat, or nested as that"},
        {"[[[1], [2]], [[3], [4]], [[5], [6]]]", "nested as [3,2,1], its shape is [2,3,1]"},
        {"[[[[1]], [[2]], [[3]]], [[[4]], [[5]], [[6]]]]", "nested as [2,3,1,1], its shape is [2,3,1]"},
        {"[[[1], [2], [3]], [[4], [5]]]", "is ragged, its shape is [2,3,1]: before element 3 there is no array of 3"},
        {"[[[1], [2], [3]], [[4], [5, 6], []]]",
         "ragged, its shape is [2,3,1]: before element 4 there is no array of 1"},
        {"[[[1], [2], [3]], [[4], 5, [6]]]", "ragged"},
        {"[[[1], [2], [3]], [[4], [5], [[6]]]]", "element 5 is an array, which is no UINT8"},
        {"[[[1], [2], [3]], [[4], [5], [6.0]]]", "element 5 is 6.0, which is no UINT8"},
        {"[1, 2, 3, [4, 5, 6]]", "element 3 is an array, which is no UINT8"},
        {"[[], []]", "nested as [2,0], its shape is [2,3,1]"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "arrays in arrays, more than 16 deep"},
    };
    assert_null(nested("[1, 2, 3, 4, 5, 6]"));
    assert_null(nested("[[[1], [2], [3]], [[4], [5], [6]]]"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *words = nested(wrong[i][0]);
        if (!words || !strstr(words, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], words ? words : "taken");
    }
}

static void test_request_scalars_and_tensors_without_elements(void **state)
{
    (void)state;
    serve_model *m = model_of("float32", 0, NULL);
    serve_request r;
    static const char scalar[] =
        "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [], \"data\": [7]}]}";
    assert_int_equal(serve_request_read(&r, m, scalar, strlen(scalar), -1), 0);
    float seven;
    memcpy(&seven, r.input, sizeof seven);
    assert_true(seven == 7);
    serve_request_free(&r);
    serve_model_free(m);
    assert_echo("float32", 0, "[]");
    int64_t none[] = {2, 0, 3};
    m = model_of("float32", 3, none);
    static const char *const empty[] = {"[]", "[[], []]"};
    for (int i = 0; i < 2; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [2, 0, 3], \"data\": %s}]}",
                 empty[i]);
        assert_int_equal(serve_request_read(&r, m, body, strlen(body), -1), 0);
        serve_request_free(&r);
    }
    serve_model_free(m);
}

/* A client hears of its request, not of files. */
static void test_request_that_is_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"hello", "\b\1", "[1]", "7", "\"{\"", " \n", "\xef\xbb\xbf{}"};
    int64_t dim = 1;
    serve_model *m = model_of("float32", 1, &dim);
    serve_request r;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(serve_request_read(&r, m, wrong[i], strlen(wrong[i]), -1), MOIRAI_EINPUT);
        assert_string_equal(moirai_error_message(), "request: no JSON object");
        serve_request_free(&r);
    }
    serve_model_free(m);
}

/* Bytes that are neither 0 nor 1 are no booleans to what computes with them. */
static void test_request_binary_booleans_are_made_so(void **state)
{
    (void)state;
    int64_t dim = 3;
    serve_model *m = model_of("bool", 1, &dim);
    serve_request r;
    static const char body[] = "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"BOOL\", \"shape\": [3], "
                               "\"parameters\": {\"binary_data_size\": 3}}]}\x00\x02\xff";
    size_t length = sizeof body - 1;
    assert_int_equal(serve_request_read(&r, m, body, length, (int64_t)length - 3), 0);
    assert_memory_equal(r.input, "\0\1\1", 3);
    serve_request_free(&r);
    serve_model_free(m);
}

static void test_request_what_is_not_finite_is_null(void **state)
{
    (void)state;
    int64_t dim = 2;
    serve_model *m = model_of("float32", 1, &dim);
    serve_request r = {.n_outputs = 1, .output = (int[]){0}, .binary = (bool[]){false}};
    float value[] = {(float)HUGE_VAL, 1};
    char *answer;
    size_t length, head;
    assert_int_equal(serve_answer_write(&answer, &length, &head, m, &r, (const char *)value), 0);
    assert_true(memmem(answer, length, "[null, 1.0]", 11) != NULL || memmem(answer, length, "[null, 1]", 9) != NULL);
    free(answer);
    serve_model_free(m);
}

static void test_model_types_that_can_not_be_served(void **state)
{
    (void)state;
    serve_tensor t = {0};
    int64_t huge[] = {INT64_C(1) << 40, 1 << 20};
    assert_null(serve_type_of_plain("string"));
    assert_null(serve_type_of_onnx(14));
    assert_int_equal(serve_tensor_set(&t, "x", NULL, 1, huge), MOIRAI_EINPUT);
    assert_int_equal(serve_tensor_set(&t, "x", serve_type_of_onnx(1), 2, huge), MOIRAI_EINPUT);
    assert_int_equal(serve_tensor_set(&t, "x", serve_type_of_onnx(1), -1, huge), MOIRAI_EINPUT);
    assert_null(t.name);
}

static void test_route_of_a_model_whose_name_begins_another(void **state)
{
    (void)state;
    serve_route r;
    assert_int_equal(serve_route_find(&r, "m", "/v2/models/m/infer", "POST"), 0);
    assert_int_equal(r.what, SERVE_INFER);
    assert_int_equal(serve_route_find(&r, "m", "/v2/models/m/versions/1/infer", "POST"), 0);
    assert_int_equal(serve_route_find(&r, "m", "/v2/models/mm/infer", "POST"), 404);
    assert_int_equal(serve_route_find(&r, "m", "/v2/modelsm/infer", "POST"), 404);
    assert_int_equal(serve_route_find(&r, "m", "/v2/models/m/versions/11/infer", "POST"), 404);
    assert_int_equal(serve_route_find(&r, "m", "/v2/models/m/inferx", "POST"), 404);
    assert_int_equal(serve_route_find(&r, "m", "/v2/models", "GET"), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_numbers_at_the_ends_of_their_types),
        cmocka_unit_test(test_request_numbers_beyond_their_types),
        cmocka_unit_test(test_request_data_is_flat_or_nested_as_its_shape),
        cmocka_unit_test(test_request_scalars_and_tensors_without_elements),
        cmocka_unit_test(test_request_that_is_none),
        cmocka_unit_test(test_request_binary_booleans_are_made_so),
        cmocka_unit_test(test_request_what_is_not_finite_is_null),
        cmocka_unit_test(test_model_types_that_can_not_be_served),
        cmocka_unit_test(test_route_of_a_model_whose_name_begins_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
