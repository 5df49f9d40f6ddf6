/* Every object of a certificate is complete before anything is judged: what lacks a key, has it twice or has it in
 * another type is refused with a line that names it, wherever it stands. */
#include "support/check.h"
#include "support/proving.h"

#include <moirai/moirai.h>
#include <yyjson.h>

static const char problem_json[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"two\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":9},{\"name\":\"B\",\"memory_bytes\":9}],"
    "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\","
    "\"bytes_per_second\":1000000000}],\"ops\":["
    "{\"name\":\"a\",\"memory_bytes\":1,\"time_ns\":[10,10],\"inputs\":[],\"outputs\":[{\"name\":\"x\",\"bytes\":5}]},"
    "{\"name\":\"b\",\"memory_bytes\":1,\"time_ns\":[10,10],\"inputs\":[\"x\"],\"outputs\":[]}]}";

/* A certificate with everything that one can have; what it claims is little. */
#define LEAF \
    "{\"counts\":[0,0,0,0,1],\"length_ns\":5,\"step_ns\":5,\"buckets\":[0,2],\"prices\":[0,0,1],\"count_prices\":[0]}"
#define POOL "{\"length_ns\":19,\"step_ns\":1,\"bucket_ns\":19,\"weights\":[1,1],\"prices\":[0],\"flows\":[]}"
#define SEARCH "{\"length_ns\":19,\"tree\":[-1]}"
#define LOADS "{\"prices\":[1,1,0,0,0,0],\"unit\":1,\"from\":[],\"to\":[]}"
#define CLASS \
    "\"component_kind\":[0],\"trees\":[[0,0,1]],\"pairs\":[{\"entry\":0,\"exit\":0,\"lower_ns\":0,\"loads\":" LOADS \
    ",\"search\":" SEARCH ",\"leaves\":[]}]"
static const char whole[] =
    "{\"format\":\"moirai-certificate\",\"version\":1,\"problem\":\"two\",\"problem_digest\":\"0\",\"operators\":2,"
    "\"floating\":[],\"cuts\":[],\"block_class\":[0],\"classes\":[{" CLASS "}],\"memory\":{\"unit\":1,\"byte_prices\":"
    "[0,0],\"pairs\":[{\"class\":0,\"entry\":0,\"exit\":0,\"leaves\":[{}]}]},\"lower_bound_ns\":20,\"certified_bound_"
    "ns\":20}";

static int prove(const char *text, moirai_proof *proof)
{
    moirai_prove_file problem = {problem_json, strlen(problem_json), "p.json"}, file = {text, strlen(text), "c.json"};
    return moirai_prove_text(proof, &problem, &file, NULL);
}

static void refuses(const char *text, const char *says)
{
    moirai_proof proof;
    int rc = prove(text, &proof);
    assert_true(rc == MOIRAI_EVERIFY || rc == MOIRAI_EINPUT);
    if (!strstr(moirai_error_message(), says))
        fail_msg("it says '%s', not '%s'", moirai_error_message(), says);
}

/* The text with the first `old` replaced. */
static const char *instead(const char *old, const char *new)
{
    static char text[8192];
    const char *at = strstr(whole, old);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
    return text;
}

static void test_prove_shape_complete_is_accepted(void **state)
{
    (void)state;
    moirai_proof proof;
    assert_ok(prove(whole, &proof));
    assert_int_equal(proof.proven_ns, 20);
}

/* Kinds of proof that are verified no longer are refused by their name, not by what they lack. */
static void test_prove_shape_kinds_that_are_gone(void **state)
{
    (void)state;
    refuses(instead("\"loads\":" LOADS, "\"static\":[{\"upper_ns\":100,\"loads\":[0,0,0,0],\"duals\":[0,0]}]"),
            "classes 0: pairs 0: static: such proofs are no longer verified");
    refuses(instead("\"search\":" SEARCH, "\"pool\":" POOL), "pairs 0: pool: such proofs are no longer verified");
    refuses(instead("\"lower_bound_ns\":20", "\"windows\":{\"intervals\":[]},\"lower_bound_ns\":20"),
            "windows: such proofs are no longer verified");
}

static void test_prove_shape_key_twice(void **state)
{
    (void)state;
    refuses(instead("\"from\":[]", "\"from\":[],\"from\":[]"), "from");
    refuses(instead("\"entry\":0", "\"entry\":0,\"entry\":1"), "entry");
    refuses(instead("\"operators\":2", "\"operators\":2,\"operators\":2"), "operators");
}

static void test_prove_shape_other_types(void **state)
{
    (void)state;
    refuses(instead("\"tree\":[-1]", "\"tree\":-1"), "search: tree is no list");
    refuses(instead("\"tree\":[-1]", "\"tree\":[\"-1\"]"), "tree is no whole number");
    refuses(instead("\"trees\":[[0,0,1]]", "\"trees\":[0,0,1]"), "trees 0: trees is no list");
    refuses(instead("\"prices\":[1,1,0,0,0,0]", "\"prices\":-1"), "prices is no list of numbers, 1 each");
    refuses(instead("\"memory\":{\"unit\":1", "\"memory\":{\"unit\":0"), "memory: unit is 0");
    refuses(instead("\"cuts\":[]", "\"cuts\":[1e3]"), "cuts is no whole number");
    refuses(instead("\"memory\":{", "\"memory\":[],\"m\":{"), "memory: no object");
}

/* ---- without any one key ---- */

typedef enum change { GONE, OF_ANOTHER_TYPE, NOTHING, N_CHANGES } change;

/* A copy in which key number `at`, counted from here on, is changed; *at is less by the keys that were met. */
static yyjson_mut_val *copy(yyjson_mut_doc *doc, yyjson_val *from, int *at, change how)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (yyjson_is_arr(from)) {
        yyjson_mut_val *list = yyjson_mut_arr(doc);
        yyjson_arr_foreach(from, i, n, value)
            yyjson_mut_arr_append(list, copy(doc, value, at, how));
        return list;
    }
    if (!yyjson_is_obj(from))
        return yyjson_val_mut_copy(doc, from);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_obj_foreach(from, i, n, key, value) {
        bool mine = (*at)-- == 0;
        yyjson_mut_val *other = mine && how == OF_ANOTHER_TYPE ? yyjson_mut_real(doc, 0.5)
                                : mine                         ? yyjson_mut_null(doc)
                                                               : copy(doc, value, at, how);
        if (!mine || how != GONE)
            yyjson_mut_obj_add(object, yyjson_val_mut_copy(doc, key), other);
    }
    return object;
}

static void test_prove_shape_without_any_one_key(void **state)
{
    (void)state;
    yyjson_doc *read = yyjson_read(whole, strlen(whole), 0);
    int tried = 0, refused = 0;
    for (int key = 0, left = -1; left < 0; key++)
        for (change how = 0; how < N_CHANGES; how++) {
            yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
            left = key;
            yyjson_mut_doc_set_root(doc, copy(doc, yyjson_doc_get_root(read), &left, how));
            char *json = yyjson_mut_write(doc, 0, NULL);
            moirai_proof proof;
            int rc = prove(json, &proof);
            assert_true(!rc || rc == MOIRAI_EVERIFY || rc == MOIRAI_EINPUT);
            assert_true(rc || proof.proven_ns <= 20);
            if (left < 0 && how == OF_ANOTHER_TYPE && !rc)
                fail_msg("0.5 for key %d is accepted", key);
            tried += left < 0;
            refused += rc != 0;
            free(json);
            yyjson_mut_doc_free(doc);
        }
    if (tried < 100 || refused < tried / 2)
        fail_msg("%d of %d refused", refused, tried);
    yyjson_doc_free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_shape_complete_is_accepted),
        cmocka_unit_test(test_prove_shape_kinds_that_are_gone),
        cmocka_unit_test(test_prove_shape_key_twice),
        cmocka_unit_test(test_prove_shape_other_types),
        cmocka_unit_test(test_prove_shape_without_any_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
