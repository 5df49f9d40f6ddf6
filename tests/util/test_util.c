/* The small things that every room stands on. */
#include "support/check.h"

#include "util/json.h"
#include "util/sort.h"
#include "util/util.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

static void test_strings_store_equal_ones_once(void **state)
{
    (void)state;
    util_strings *s = util_strings_new();
    const char *first[3000];
    char name[32];
    for (int i = 0; i < 3000; i++)
        first[i] = util_strings_add(s, name, (size_t)sprintf(name, "name-%d", i));
    for (int i = 0; i < 3000; i++) {
        size_t n = (size_t)sprintf(name, "name-%d", i);
        assert_ptr_equal(util_strings_add(s, name, n), first[i]);
        assert_string_equal(first[i], name);
    }
    char *large = calloc(200001, 1);
    memset(large, 'x', 200000);
    assert_string_equal(util_strings_add(s, large, 200000), large);
    assert_string_equal(util_strings_add(s, "", 0), "");
    free(large);
    util_strings_free(s);
    util_strings_free(NULL);
}

static void test_names_keep_the_first_number(void **state)
{
    (void)state;
    util_names *m = util_names_new(0);
    static char name[2000][16];
    for (int i = 0; i < 2000; i++) {
        sprintf(name[i], "k%d", i);
        assert_int_equal(util_names_put(m, name[i], i), i);
    }
    assert_int_equal(util_names_put(m, "k7", 99), 7);
    assert_int_equal(util_names_get(m, "k1999"), 1999);
    assert_int_equal(util_names_get(m, "k2000"), -1);
    util_names_free(m);
}

static void test_memory_overflow_is_an_error(void **state)
{
    (void)state;
    char *p = NULL;
    size_t capacity = 0;
    assert_null(util_alloc(SIZE_MAX / 2, 4));
    assert_null(util_resize(NULL, SIZE_MAX / 2, 4));
    assert_int_equal(util_grow(&p, &capacity, SIZE_MAX / 2, 4), MOIRAI_EFAIL);
    assert_ok(util_grow(&p, &capacity, 5, 1));
    assert_true(capacity >= 5);
    free(p);
}

static void test_random_numbers_are_the_same_everywhere(void **state)
{
    (void)state;
    util_rng a, b;
    util_rng_seed(&a, 1);
    util_rng_seed(&b, 1);
    uint32_t seen[6] = {0};
    for (int i = 0; i < 6000; i++) {
        assert_true(util_rng_next(&a) == util_rng_next(&b));
        seen[util_rng_below(&a, 6)]++;
        (void)util_rng_next(&b);
        double x = util_rng_real(&a);
        (void)util_rng_next(&b);
        assert_true(x >= 0 && x < 1);
    }
    for (int i = 0; i < 6; i++)
        assert_true(seen[i] > 800 && seen[i] < 1200);
    util_rng known = {{1, 2, 3, 4}}; /* the first outputs of xoshiro256** from this state */
    assert_true(util_rng_next(&known) == 11520);
    assert_true(util_rng_next(&known) == 0);
    assert_true(util_rng_next(&known) == 1509978240);
}

static void test_file_write_replaces_whole_files_and_keeps_links(void **state)
{
    (void)state;
    char *path = temporary_path("file"), *link = temporary_path("link"), *data;
    size_t n;
    struct stat info;
    assert_ok(util_file_write(path, "old content", 11));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_ok(util_file_write(link, "new", 3));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_ok(util_file_read(&data, &n, path));
    assert_int_equal(n, 3);
    assert_string_equal(data, "new");
    free(data);
    remove(link);
    remove(path);
}

static void test_file_write_fails_with_one_line(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(util_file_write("/nonexistent/x.json", "x", 1), MOIRAI_EFAIL);
    assert_string_equal(moirai_error_message(), "/nonexistent/x.json: can't create: No such file or directory");
    assert_int_equal(util_file_write("/", "x", 1), MOIRAI_EFAIL);
    assert_string_equal(moirai_error_message(), "/: is a folder");
    assert_ok(util_file_write("/dev/null", "x", 1));
    char *data;
    size_t n;
    assert_int_equal(util_file_read(&data, &n, "/nonexistent/x.json"), MOIRAI_EINPUT);
    snprintf(text, sizeof text, "%s", moirai_error_message());
    assert_string_equal(text, "/nonexistent/x.json: can't open: No such file or directory");
}

/* A file that claims to be enormous is refused before it is read, a device without end soon: neither may take all memory. */
static void test_file_read_ends_where_the_file_does_not(void **state)
{
    (void)state;
    char path[] = "/tmp/moirai-test-XXXXXX", *data;
    size_t n;
    int fd = mkstemp(path);
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    few = before;
#ifndef __SANITIZE_ADDRESS__ /* which needs all addresses */
    few.rlim_cur = UTIL_MIN((rlim_t)3 << 30, before.rlim_max);
#endif
    assert_true(fd >= 0 && !ftruncate(fd, (off_t)6 << 30) && !setrlimit(RLIMIT_AS, &few));
    close(fd);
    int large = util_file_read(&data, &n, path), endless = util_file_read(&data, &n, "/dev/zero");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(large, MOIRAI_EINPUT);
    assert_int_equal(endless, MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), "/dev/zero: more than 64 MiB, which no file of moirai's is");
    assert_ok(util_file_read(&data, &n, "/dev/null"));
    assert_int_equal(n, 0);
    free(data);
    remove(path);
}

static void test_writer_is_valid_json_whatever_the_text(void **state)
{
    (void)state;
    util_writer w;
    size_t n;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "text", "a\"b\\c\n\t\x01 \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80");
    util_writer_pair_int(&w, "least", INT64_MIN);
    util_writer_break(&w);
    util_writer_key(&w, "list");
    util_writer_open(&w, '[');
    util_writer_real(&w, 0.1);
    util_writer_real(&w, 3);
    util_writer_real(&w, 1.0 / 0.0);
    util_writer_bool(&w, true);
    util_writer_uint(&w, UINT64_MAX);
    util_writer_string(&w, NULL);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    char *text = util_writer_take(&w, &n);
    assert_string_equal(
        text, "{\"text\": \"a\\\"b\\\\c\\n\\t\\u0001 \xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
              "\xf0\x9f\x98\x80\", \"least\": -9223372036854775808,\n"
              " \"list\": [0.1, 3.0, null, true, 18446744073709551615, null]}\n");
    assert_int_equal(n, strlen(text));
    yyjson_doc *doc;
    assert_ok(util_json_parse(&doc, text, n, "text"));
    yyjson_doc_free(doc);
    free(text);
}

static void test_json_repeated_keys_are_found_in_large_objects_too(void **state)
{
    (void)state;
    char json[2048];
    int used = sprintf(json, "{\"format\": \"f\", \"version\": 1");
    for (int i = 0; i < 40; i++)
        used += sprintf(json + used, ", \"k%d\": 1", i == 39 ? 5 : i);
    sprintf(json + used, "}");
    yyjson_doc *doc;
    assert_int_equal(util_json_open(&doc, json, strlen(json), "x.json", "f"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), "x.json: key 'k5' is there twice");
    assert_null(doc);
}

static void test_json_syntax_errors_count_characters(void **state)
{
    (void)state;
    const char *json = "{\"a\": \"\xc3\xa9\",\n  \"b\": }";
    yyjson_doc *doc;
    assert_int_equal(util_json_parse(&doc, json, strlen(json), "x.json"), MOIRAI_EINPUT);
    assert_memory_equal(moirai_error_message(), "x.json: line 2, column 8: bad JSON: ", 36);
    json = "{\"\xc3\xa9\" 1}";
    assert_int_equal(util_json_parse(&doc, json, strlen(json), "x.json"), MOIRAI_EINPUT);
    assert_memory_equal(moirai_error_message(), "x.json: line 1, column 6: bad JSON: ", 36);
}

static void test_util_sort_is_stable(void **state)
{
    (void)state;
    uint64_t key[] = {300, 5, UINT64_C(1) << 40, 5, 0, 300}, spare[6];
    int32_t item[] = {0, 1, 2, 3, 4, 5}, item_spare[6];
    util_sort(key, item, spare, item_spare, 6);
    static const int32_t expected[] = {4, 1, 3, 0, 5, 2};
    assert_memory_equal(item, expected, sizeof expected);
    util_sort(key, item, spare, item_spare, 0);
}

/* Against insertion, over keys that differ in high bits, in low bits, and in both. */
static void test_util_percentile_is_the_nearest_rank(void **state)
{
    (void)state;
    const int64_t number[] = {10, 20, 30, 40};
    assert_int_equal(util_percentile(number, 4, 50), 20);
    assert_int_equal(util_percentile(number, 4, 51), 30);
    assert_int_equal(util_percentile(number, 4, 99), 40);
    assert_int_equal(util_percentile(number, 4, 0), 10);
    assert_int_equal(util_percentile(number, 1, 90), 10);
}

static void test_util_sort_of_random_keys(void **state)
{
    (void)state;
    enum { N = 200 };
    for (int round = 0; round < 64; round++) {
        uint64_t key[N], was[N], spare[N], random = (uint64_t)round + 1;
        int32_t item[N], item_spare[N];
        for (int32_t i = 0; i < N; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            was[i] = key[i] = random >> (round & 31) << (round >> 5) * 20;
            item[i] = i;
        }
        util_sort(key, item, spare, item_spare, N);
        for (int32_t i = 0; i < N; i++) {
            assert_true(was[item[i]] == key[i]);
            assert_true(i == 0 || key[i - 1] < key[i] || (key[i - 1] == key[i] && item[i - 1] < item[i]));
        }
    }
}

/* So many that they are divided by their highest digit first: few times, times that are close together far from 0, and all of 64 bits. */
static void test_util_sort_of_many_keys(void **state)
{
    (void)state;
    enum { N = 300000 };
    static const int bits[] = {3, 20, 36, 64};
    uint64_t *key = util_alloc(2 * N, sizeof *key), random = 1;
    int32_t *item = util_alloc(2 * N, sizeof *item);
    assert_non_null(key);
    assert_non_null(item);
    for (int round = 0; round < 4; round++) {
        uint64_t sum = 0, sorted = 0;
        for (int32_t i = 0; i < N; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            key[i] = (random >> (64 - bits[round])) + (round == 1 ? UINT64_C(1) << 50 : 0);
            item[i] = i;
            sum += key[i] * (uint64_t)(i + 1);
        }
        util_sort(key, item, key + N, item + N, N);
        for (int32_t i = 0; i < N; i++) {
            assert_true(i == 0 || key[i - 1] < key[i] || (key[i - 1] == key[i] && item[i - 1] < item[i]));
            sorted += key[i] * (uint64_t)(item[i] + 1);
        }
        assert_true(sorted == sum); /* each with its own */
    }
    free(item);
    free(key);
}

static void test_trimmed_mean_leaves_the_ends_out(void **state)
{
    (void)state;
    double one[] = {7}, two[] = {4, 8}, four[] = {1000, 2, 4, -50}, five[] = {1, 2, 3, 4, 1e9};
    assert_true(util_trimmed_mean(one, 1) == 7 && util_trimmed_mean(one, 0) == 0);
    assert_true(util_trimmed_mean(two, 2) == 6);
    assert_true(util_trimmed_mean(four, 4) == 3);
    assert_true(util_trimmed_mean(five, 5) == 3);
    double many[30]; /* three are left out at each end: of the heap at 10 seven stay, of that at 20 seventeen */
    for (int i = 0; i < 30; i++)
        many[i] = i % 3 ? 20 : 10;
    assert_true(util_trimmed_mean(many, 30) == (7 * 10 + 17 * 20) / 24.0);
}

static void test_folders_are_made_once_and_named(void **state)
{
    (void)state;
    char path[200], inside[240];
    assert_ok(util_folder_temporary(path, sizeof path, "moirai-test"));
    assert_non_null(strstr(path, "/moirai-test-"));
    snprintf(inside, sizeof inside, "%s/f", path);
    assert_ok(util_folder_make(inside));
    assert_ok(util_folder_make(inside));
    assert_int_equal(remove(inside), 0);
    assert_ok(util_file_write(inside, "x", 1));
    assert_int_equal(util_folder_make(inside), MOIRAI_EFAIL);
    assert_non_null(strstr(moirai_error_message(), "not a folder"));
    assert_int_equal(util_folder_temporary(path, 12, "moirai-test"), MOIRAI_EFAIL);
    assert_string_equal(path, "");
    assert_int_equal(remove(inside), 0);
    *strrchr(inside, '/') = '\0';
    assert_int_equal(remove(inside), 0);
    assert_true(util_own_cores() >= 1);
}

/* Arrays are zero and do not touch each other; one that is too large is remembered, the others are freed as ever. */
static void test_util_memory_is_taken_together_and_freed_together(void **state)
{
    (void)state;
    util_memory m = {0};
    int64_t *a = util_take(&m, 100, sizeof *a);
    unsigned char *b, *none;
    UTIL_TAKE(&m, b, 1000);
    assert_int_equal(util_taken_all(&m), 0);
    assert_int_equal((uintptr_t)a % _Alignof(max_align_t), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(a[i], 0);
        a[i] = -1;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(b[i], 0);
    assert_null(UTIL_TAKE(&m, none, SIZE_MAX - 8));
    assert_int_equal(util_taken_all(&m), MOIRAI_EFAIL);
    util_release(&m);
    assert_null(m.last);
    assert_int_equal(util_taken_all(&m), 0);
    util_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_util_memory_is_taken_together_and_freed_together),
        cmocka_unit_test(test_strings_store_equal_ones_once),
        cmocka_unit_test(test_names_keep_the_first_number),
        cmocka_unit_test(test_memory_overflow_is_an_error),
        cmocka_unit_test(test_random_numbers_are_the_same_everywhere),
        cmocka_unit_test(test_file_write_replaces_whole_files_and_keeps_links),
        cmocka_unit_test(test_file_write_fails_with_one_line),
        cmocka_unit_test(test_writer_is_valid_json_whatever_the_text),
        cmocka_unit_test(test_json_repeated_keys_are_found_in_large_objects_too),
        cmocka_unit_test(test_json_syntax_errors_count_characters),
        cmocka_unit_test(test_util_sort_is_stable),
        cmocka_unit_test(test_util_percentile_is_the_nearest_rank),
        cmocka_unit_test(test_util_sort_of_random_keys),
        cmocka_unit_test(test_util_sort_of_many_keys),
        cmocka_unit_test(test_file_read_ends_where_the_file_does_not),
        cmocka_unit_test(test_trimmed_mean_leaves_the_ends_out),
        cmocka_unit_test(test_folders_are_made_once_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
