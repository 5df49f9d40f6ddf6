/* External weights of a device: copied from the model's files into one of its own, each range once.
 *
 * Ranges begin at a page, since ONNX Runtime maps them. */
#include "split/split_weight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx/onnx_tensors.h"

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
    if (w->stream && (fflush(w->stream) || ferror(w->stream) || fsync(fileno(w->stream))))
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

static int copy_range(split_weights *w, int from, const char *location, int64_t length)
{
    char *buffer = util_alloc(COPY_BYTES, 1);
    int rc = buffer ? 0 : MOIRAI_EFAIL;
    while (!rc && length > 0) {
        ssize_t got = read(from, buffer, (size_t)UTIL_MIN(length, (int64_t)COPY_BYTES));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            rc = moirai_error(MOIRAI_EINPUT, "external data in '%.200s': %s", location,
                              got ? strerror(errno) : "the file ends before the tensor does");
        else if (fwrite(buffer, 1, (size_t)got, w->stream) != (size_t)got)
            rc = cant_write(w);
        length -= (int64_t)got;
    }
    free(buffer);
    return rc;
}

static int copy_external(split_weights *w, const char *model_path, const onnx_data *d, int64_t length, int64_t *offset)
{
    static const char zeros[PAGE];
    int from, rc = onnx_external_open(&from, model_path, d, length);
    if (rc)
        return rc;
    int64_t gap = (PAGE - w->offset % PAGE) % PAGE;
    if (fwrite(zeros, 1, (size_t)gap, w->stream) != (size_t)gap)
        rc = cant_write(w);
    *offset = w->offset + gap;
    rc = rc ? rc : copy_range(w, from, d->location, length);
    w->offset = *offset + length;
    close(from);
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
