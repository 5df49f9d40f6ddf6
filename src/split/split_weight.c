/* External weights of a device: copied from the model's files into one of its own, each range once.
 *
 * Ranges begin at a page, since ONNX Runtime maps them. */
#include "split/split_weight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, COPY_BYTES = 1 << 20 };

static int cant_write(const split_weights *w)
{
    return moirai_error(MOIRAI_EFAIL, "%s/%s: can't write: %s", w->folder, w->name, strerror(errno));
}

int split_weights_open(split_weights *w, const char *folder, const char *name)
{
    char path[4096];
    *w = (split_weights){.folder = folder};
    snprintf(w->name, sizeof w->name, "%s", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, w->name) >= sizeof path)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", folder);
    w->known = util_names_new(64);
    if (!w->known)
        return MOIRAI_EFAIL;
    w->stream = fopen(path, "wb");
    return w->stream ? 0 : moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", path, strerror(errno));
}

int split_weights_close(split_weights *w)
{
    int rc = 0;
    if (w->stream && (fflush(w->stream) || ferror(w->stream)))
        rc = cant_write(w);
    if (w->stream && fclose(w->stream) && !rc)
        rc = cant_write(w);
    for (size_t i = 0; i < w->n; i++)
        free(w->key[i]);
    free(w->key);
    free(w->at);
    util_names_free(w->known);
    *w = (split_weights){0};
    return rc;
}

static int copy_range(split_weights *w, FILE *from, const char *path, int64_t length)
{
    char *buffer = util_alloc(COPY_BYTES, 1);
    int rc = buffer ? 0 : MOIRAI_EFAIL;
    while (!rc && length > 0) {
        size_t want = (size_t)UTIL_MIN(length, (int64_t)COPY_BYTES), got = fread(buffer, 1, want, from);
        if (got != want)
            rc = moirai_error(MOIRAI_EINPUT, "%s: ends before the model's weights do", path);
        else if (fwrite(buffer, 1, got, w->stream) != got)
            rc = cant_write(w);
        length -= (int64_t)got;
    }
    free(buffer);
    return rc;
}

/* The folder of a path, links resolved: of the path as given, or of the file that it leads to. NULL: there is none. */
static char *folder_of(const char *path, bool resolve_file)
{
    char *full = resolve_file ? realpath(path, NULL) : NULL, *copy = full ? NULL : util_strdup(path);
    char *slash = full ? strrchr(full, '/') : copy ? strrchr(copy, '/') : NULL;
    if (full) {
        slash[slash == full] = '\0';
        return full;
    }
    if (slash)
        slash[slash == copy] = '\0';
    full = copy ? realpath(slash ? copy : ".", NULL) : NULL;
    free(copy);
    return full;
}

static bool is_below(const char *file, const char *folder)
{
    size_t n = folder ? strlen(folder) : 0;
    return n && !strncmp(file, folder, n) && (file[n] == '/' || n == 1);
}

/* A plain file below the model's folder, or, where the model itself is a link, beside the file that it leads to (caches
 * of downloads are made of links). A link to anywhere else would copy what is nobody's business, and a pipe never ends.
 */
static int open_data(FILE **out, const char *model_path, const char *path)
{
    char *file = realpath(path, NULL), *here = folder_of(model_path, false), *there = folder_of(model_path, true);
    struct stat info;
    int rc = 0, fd = -1;
    *out = NULL;
    if (!file)
        rc = moirai_error(MOIRAI_EINPUT, "%s: can't read the model's weights: %s", path, strerror(errno));
    else if (!is_below(file, here) && !is_below(file, there))
        rc = moirai_error(MOIRAI_EINPUT, "%s: leads to '%s', which is not below the model's folder", path, file);
    else if ((fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) < 0 || fstat(fd, &info))
        rc = moirai_error(MOIRAI_EINPUT, "%s: can't read the model's weights: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        rc = moirai_error(MOIRAI_EINPUT, "%s: weights must be in a plain file", path);
    else if (!(*out = fdopen(fd, "rb")))
        rc = moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    if (rc && fd >= 0)
        close(fd);
    free(file);
    free(here);
    free(there);
    return rc;
}

static int open_model_file(FILE **out, char *path, size_t room, const char *model_path, const onnx_data *d)
{
    const char *slash = strrchr(model_path, '/');
    int folder = slash ? (int)(slash - model_path) + 1 : 0;
    if (*d->location == '/' || strstr(d->location, ".."))
        return moirai_error(MOIRAI_EINPUT, "external data: \"%s\" is not below the model's folder", d->location);
    if ((size_t)snprintf(path, room, "%.*s%s", folder, model_path, d->location) >= room)
        return moirai_error(MOIRAI_EINPUT, "external data: the path is too long");
    int rc = open_data(out, model_path, path);
    if (rc || !fseeko(*out, (off_t)d->external_offset, SEEK_SET))
        return rc;
    rc = moirai_error(MOIRAI_EINPUT, "%s: can't read the model's weights: %s", path, strerror(errno));
    fclose(*out);
    return rc;
}

static int copy_external(split_weights *w, const char *model_path, const onnx_data *d, int64_t length, int64_t *offset)
{
    static const char zeros[PAGE];
    char path[4096];
    FILE *from = NULL;
    int rc = open_model_file(&from, path, sizeof path, model_path, d);
    if (rc)
        return rc;
    int64_t gap = (PAGE - w->offset % PAGE) % PAGE;
    if (fwrite(zeros, 1, (size_t)gap, w->stream) != (size_t)gap)
        rc = cant_write(w);
    *offset = w->offset + gap;
    rc = rc ? rc : copy_range(w, from, path, length);
    w->offset = *offset + length;
    fclose(from);
    return rc;
}

int split_weights_put(split_weights *w, const char *model_path, const onnx_data *d, int64_t length, int64_t *offset)
{
    size_t room = strlen(d->location) + 48;
    char *key = util_alloc(room, 1);
    if (!key || util_grow(&w->at, &w->at_capacity, w->n + 1, sizeof *w->at) ||
        util_grow(&w->key, &w->key_capacity, w->n + 1, sizeof *w->key)) {
        free(key);
        return MOIRAI_EFAIL;
    }
    snprintf(key, room, "%s:%lld:%lld", d->location, (long long)d->external_offset, (long long)length);
    int32_t number = util_names_put(w->known, key, (int32_t)w->n);
    if (number < 0 || (size_t)number < w->n) {
        free(key);
        if (number >= 0)
            *offset = w->at[number];
        return number < 0 ? MOIRAI_EFAIL : 0;
    }
    w->key[w->n] = key;
    int rc = copy_external(w, model_path, d, length, &w->at[w->n]);
    *offset = w->at[w->n++];
    return rc;
}
