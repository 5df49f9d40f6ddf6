/* Files that tensors name ("external data"): which of them a model may read.
 *
 * A model is somebody else's file, and ONNX Runtime opens whatever path a tensor names. Here a tensor's file must be a
 * plain one below the model's folder or, where the model itself is a link, beside the file that it leads to (caches of
 * downloads are made of links). Links are resolved before that is judged: one that leads to anywhere else would read what
 * is nobody's business. Pipes and devices are told apart before they are opened: a pipe never ends, and opening some
 * devices does something. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/onnx_tensors.h"
#include "util/util.h"

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

static int refuse(const char *location, const char *why)
{
    return moirai_error(MOIRAI_EINPUT, "external data in '%.200s': %s", location, why);
}

/* What a path can tell without a look at the disk. */
static int check_location(const char *location)
{
    if (*location == '/')
        return refuse(location, "a path from the root; it must be below the model's folder");
    for (const char *at = location;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 2 && !strncmp(at, "..", 2))
            return refuse(location, "it must be below the model's folder");
        at += n;
        if (!*at)
            return *location ? 0 : refuse(location, "the location is empty");
    }
}

static int check_range(const onnx_data *d, int64_t bytes, int64_t size)
{
    int64_t end;
    bool fits = util_add64(&end, d->external_offset, bytes) && end <= size;
    return fits ? 0
                : moirai_error(MOIRAI_EINPUT, "external data in '%.200s': %lld bytes from %lld on, the file has %lld",
                               d->location, (long long)bytes, (long long)d->external_offset, (long long)size);
}

/* The file behind a location, to be freed. NULL with result 0: there is none. */
static int resolve(char **out, struct stat *info, const char *model_path, const char *location)
{
    const char *slash = strrchr(model_path, '/');
    int folder = slash ? (int)(slash - model_path) + 1 : 0;
    char path[4096];
    *out = NULL;
    int rc = check_location(location);
    if (rc)
        return rc;
    if ((size_t)snprintf(path, sizeof path, "%.*s%s", folder, model_path, location) >= sizeof path)
        return refuse(location, "the path is too long");
    char *file = realpath(path, NULL);
    if (!file)
        return errno == ENOENT ? 0 : refuse(location, strerror(errno));
    char *here = folder_of(model_path, false), *there = folder_of(model_path, true);
    if (!is_below(file, here) && !is_below(file, there))
        rc = moirai_error(MOIRAI_EINPUT, "external data in '%.200s': leads to '%.200s', not below the model's folder",
                          location, file);
    else if (stat(file, info))
        rc = refuse(location, strerror(errno));
    else if (!S_ISREG(info->st_mode))
        rc = refuse(location, "not a plain file");
    free(here);
    free(there);
    if (rc)
        free(file);
    else
        *out = file;
    return rc;
}

int onnx_external_open(int *fd, const char *model_path, const onnx_data *d, int64_t bytes)
{
    struct stat info;
    char *file;
    *fd = -1;
    int rc = resolve(&file, &info, model_path, d->location);
    if (rc)
        return rc;
    if (!file)
        return refuse(d->location, "no such file");
    int opened = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* as it was a moment ago */
    if (opened < 0 || fstat(opened, &info) || lseek(opened, (off_t)d->external_offset, SEEK_SET) < 0)
        rc = refuse(d->location, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        rc = refuse(d->location, "not a plain file");
    rc = rc ? rc : check_range(d, bytes, info.st_size);
    if (rc && opened >= 0)
        close(opened);
    else
        *fd = opened;
    free(file);
    return rc;
}

/* ---- all of a model ---- */

typedef struct check {
    const onnx_model *model;
    const char *path;
    const char *location; /* the last one that was looked up: most models have one file */
    int64_t size;         /* of it; -1: not there */
} check;

static int look_up(check *c, const char *location)
{
    struct stat info;
    char *file;
    if (c->location && !strcmp(c->location, location))
        return 0;
    int rc = c->path ? resolve(&file, &info, c->path, location) : check_location(location);
    if (rc)
        return rc;
    c->location = location;
    c->size = c->path && file ? info.st_size : -1;
    if (c->path)
        free(file);
    return 0;
}

static int check_tensor(void *data, Onnx__TensorProto *tensor, const Onnx__NodeProto *node)
{
    check *c = data;
    onnx_data d;
    int64_t elements, bytes;
    int rc = onnx_tensor_data(&d, c->model, tensor);
    if (!rc && d.kind != ONNX_DATA_EXTERNAL)
        return 0;
    rc = rc ? rc : onnx_tensor_size(c->model, tensor, &elements, &bytes);
    rc = rc ? rc : look_up(c, d.location);
    if (!rc && c->size >= 0)
        rc = check_range(&d, UTIL_MAX(bytes, d.external_length), c->size);
    return rc ? onnx_tensor_prefix(rc, tensor, node) : 0;
}

int onnx_external_check(const onnx_model *model, const char *path)
{
    check c = {.model = model, .path = path};
    return onnx_tensors_each(model->proto, check_tensor, &c);
}
