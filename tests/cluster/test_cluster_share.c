/* What devices share, and which can work at the same time. */
#include "support/check.h"

#include "util/util.h"

static moirai_cluster *sharing(const char *devices)
{
    char text[2000];
    moirai_cluster *c;
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": [%s], \"links\": [{\"from\": \"A\", "
             "\"to\": \"B\", \"bandwidth\": \"1Gbps\", \"both\": true}, {\"from\": \"B\", \"to\": \"C\", "
             "\"bandwidth\": \"1Gbps\", \"both\": true}]}",
             devices);
    assert_ok(moirai_cluster_parse(&c, text, strlen(text), "test"));
    return c;
}

/* Cores 0, 1 and 0-1: the first two together, or the third alone. */
static void test_cluster_devices_that_share_cores_are_told_apart(void **state)
{
    (void)state;
    uint64_t set[8] = {0};
    moirai_cluster *c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"cores\": \"0\"}, "
                                "{\"name\": \"B\", \"memory\": \"1GB\", \"cores\": \"1\"}, "
                                "{\"name\": \"C\", \"memory\": \"1GB\", \"cores\": \"0-1\", \"threads\": 2}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 2), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 2), MOIRAI_SHARES_CORES);
    assert_int_equal(moirai_cluster_sharing(c, 2, 1, 0), MOIRAI_SHARES_CORES);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 2), 2);
    assert_true((set[0] | set[1]) == 7 && (set[0] == 3 || set[0] == 4));
    assert_int_equal(moirai_cluster_apart(set, 1, c, 2), 1); /* no more than there is room for */
    moirai_cluster_free(c);
}

static void test_cluster_ep_names_a_gpu(void **state)
{
    (void)state;
    const char *const none[] = {"cpu", "", "cuda:", "cuda:x", "cuda:1x", "cuda1", "cuda:-1", "cuda:99999", "xcuda"};
    assert_int_equal(moirai_ep_gpu("cuda"), 0);
    assert_int_equal(moirai_ep_gpu("CUDA:0"), 0);
    assert_int_equal(moirai_ep_gpu("cuda:12"), 12);
    assert_int_equal(moirai_ep_gpu(NULL), -1);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(moirai_ep_gpu(none[i]), -1);
}

/* Other hosts share nothing; a GPU is shared unless it is divided; threads without cores of their own share what there
 * is, if that is known. */
static void test_cluster_sharing_goes_by_host_and_gpu(void **state)
{
    (void)state;
    uint64_t set[8] = {0};
    moirai_cluster *c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"cores\": \"0\"}, "
                                "{\"name\": \"B\", \"memory\": \"1GB\", \"cores\": \"0\", \"host\": \"other\"}, "
                                "{\"name\": \"C\", \"memory\": \"1GB\", \"threads\": 2}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 2), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 0), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 2), MOIRAI_SHARES_CPU);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 3), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 3), 1);
    assert_true(set[0] == 7);
    moirai_cluster_free(c);
    c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"ep\": \"cuda\", \"share\": 0.5}, "
                "{\"name\": \"B\", \"memory\": \"1GB\", \"ep\": \"cuda\", \"share\": 0.4}, "
                "{\"name\": \"C\", \"memory\": \"1GB\", \"ep\": \"cuda\"}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 1), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 1), MOIRAI_SHARES_GPU);
    assert_int_equal(moirai_cluster_apart(set, 8, c, 1), 2);
    moirai_cluster_free(c);
    c = sharing("{\"name\": \"A\", \"memory\": \"1GB\", \"ep\": \"cuda\"}, "
                "{\"name\": \"B\", \"memory\": \"1GB\", \"ep\": \"cuda:1\"}, "
                "{\"name\": \"C\", \"memory\": \"1GB\", \"ep\": \"cuda:0\"}");
    assert_int_equal(moirai_cluster_sharing(c, 0, 1, 1), MOIRAI_SHARES_NOTHING);
    assert_int_equal(moirai_cluster_sharing(c, 0, 2, 1), MOIRAI_SHARES_GPU);
    moirai_cluster_free(c);
}

/* The sets by trying all subsets, over random sharing. */
static void test_cluster_apart_equals_brute_force(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 5);
    for (int turn = 0; turn < 40; turn++) {
        char line[64];
        uint64_t set[300], apart[7] = {0};
        int n = 2 + (int)util_rng_below(&r, 6), expected = 0;
        moirai_cluster *c;
        snprintf(line, sizeof line, "%dx cpu, 1Gbps", n);
        assert_ok(moirai_cluster_synthetic(&c, line));
        for (int d = 0; d < n; d++) {
            char text[16];
            int from = (int)util_rng_below(&r, 6);
            snprintf(text, sizeof text, "%d-%d", from, from + (int)util_rng_below(&r, 3));
            free(c->device[d].cores);
            c->device[d].cores = util_strdup(text);
        }
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                if (a != b && !moirai_cluster_sharing(c, a, b, 0))
                    apart[a] |= UINT64_C(1) << b;
        int got = moirai_cluster_apart(set, 300, c, 0);
        for (uint64_t s = 1; s < UINT64_C(1) << n; s++) {
            bool fine = true, largest = true, found = false;
            for (int d = 0; d < n; d++) {
                uint64_t rest = s & ~(UINT64_C(1) << d);
                fine &= !(s >> d & 1) || (apart[d] & rest) == rest;
                largest &= (s >> d & 1) || (apart[d] & s) != s;
            }
            for (int i = 0; i < got; i++)
                found |= set[i] == s;
            expected += fine && largest;
            assert_int_equal(found, fine && largest);
        }
        assert_int_equal(got, expected);
        moirai_cluster_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_devices_that_share_cores_are_told_apart),
        cmocka_unit_test(test_cluster_ep_names_a_gpu),
        cmocka_unit_test(test_cluster_sharing_goes_by_host_and_gpu),
        cmocka_unit_test(test_cluster_apart_equals_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
