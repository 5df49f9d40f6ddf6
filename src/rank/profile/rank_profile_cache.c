/* Measured times on disk, by content: the name of a file is a hash of the piece and of all that its time depends on
 * (processor, execution provider, threads, cores, version of ONNX Runtime). What it does not say (drivers, firmware,
 * cooling, a machine that was busy) ends with a file's age. A folder can be shared, copied and deleted at will. A file
 * that can't be read is as good as none. */
#include "rank/profile/rank_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/hash.h"
#include "util/json.h"
#include "util/util.h"

/* Two FNV-1a walks with different beginnings: 128 bits. */
profile_key rank_profile_key(const void *piece, size_t length, const char *device)
{
    profile_key key;
    size_t named = strlen(device) + 1;
    uint64_t a = util_hash_walk(util_hash_walk(UTIL_HASH_BEGIN, device, named), piece, length);
    uint64_t b = util_hash_walk(util_hash_walk(0x6c62272e07bb0142u ^ length, piece, length), device, named);
    snprintf(key.text, sizeof key.text, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
    return key;
}

static int make_folders(char *path)
{
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char end = *at;
        *at = '\0';
        int rc = util_folder_make(path);
        if (rc)
            return moirai_error_prefix(rc, "cache");
        *at = end;
        if (!end)
            return 0;
    }
}

int rank_profile_cache_folder(char *out, size_t size, const char *given)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (given)
        n = snprintf(out, size, "%s", given);
    else if (xdg && *xdg == '/')
        n = snprintf(out, size, "%s/moirai", xdg);
    else if (home && *home)
        n = snprintf(out, size, "%s/.cache/moirai", home);
    else
        return moirai_error(MOIRAI_EUSAGE, "no folder for measured times: neither --cache nor HOME is given");
    if (n < 1 || (size_t)n >= size)
        return moirai_error(MOIRAI_EUSAGE, "cache: the path is empty or too long");
    return make_folders(out);
}

static int file_of(char *out, size_t size, const char *folder, const profile_key *key)
{
    return snprintf(out, size, "%s/%s.json", folder, key->text) < (int)size ? 0 : MOIRAI_EFAIL;
}

static bool is_young(const char *path, double most_days)
{
    struct stat info;
    return !stat(path, &info) && difftime(time(NULL), info.st_mtime) <= most_days * 86400;
}

bool rank_profile_cache_get(profile_time *out, const char *folder, const profile_key *key, double most_days)
{
    char path[4200], *text;
    size_t length;
    yyjson_doc *doc;
    if (file_of(path, sizeof path, folder, key) || access(path, R_OK) || !is_young(path, most_days) ||
        util_file_read(&text, &length, path))
        return false;
    util_json_at at = {.label = path};
    int64_t n = 0;
    profile_time t = {.cached = 1};
    bool fine = !util_json_parse(&doc, text, length, path);
    if (fine) {
        yyjson_val *root = yyjson_doc_get_root(doc);
        fine = !util_json_object(&at, root) && !util_json_int64(&t.median_ns, &at, root, "median_ns", true, 0) &&
               !util_json_int64(&t.cold_ns, &at, root, "cold_ns", true, 0) &&
               !util_json_real(&t.spread, &at, root, "spread", true) &&
               !util_json_int64(&n, &at, root, "runs", true, 1);
        yyjson_doc_free(doc);
    }
    t.n = (int32_t)UTIL_MIN(n, INT32_MAX);
    if (fine)
        *out = t;
    free(text);
    return fine;
}

int rank_profile_cache_put(const profile_time *measured, const char *folder, const profile_key *key, const char *device)
{
    char path[4200];
    util_writer w;
    if (file_of(path, sizeof path, folder, key))
        return moirai_error(MOIRAI_EUSAGE, "cache: the path is too long");
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "device", device);
    util_writer_pair_int(&w, "median_ns", measured->median_ns);
    util_writer_pair_int(&w, "cold_ns", measured->cold_ns);
    util_writer_key(&w, "spread");
    util_writer_real(&w, measured->spread);
    util_writer_pair_int(&w, "runs", measured->n);
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
