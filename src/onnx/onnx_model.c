/* Opening and writing of ONNX files; see onnx_wire.c for how the weights stay out of memory. */
#include "onnx/onnx_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/util.h"

static int unpack(onnx_model *m)
{
    int rc = onnx_wire_scan(&m->slim, &onnx__model_proto__descriptor, m->file, m->length);
    if (rc)
        return rc;
    m->proto = onnx__model_proto__unpack(NULL, m->slim.length, m->slim.data);
    free(m->slim.data);
    m->slim.data = NULL;
    if (!m->proto)
        return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: its fields do not fit onnx.proto");
    if (!m->proto->graph)
        return moirai_error(MOIRAI_EINPUT, "not a valid ONNX file: it holds no graph");
    return 0;
}

static int finish_open(onnx_model **out, onnx_model *m)
{
    int rc = unpack(m);
    if (rc) {
        onnx_model_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

int onnx_model_parse(onnx_model **out, const void *data, size_t length)
{
    *out = NULL;
    onnx_model *m = util_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    m->file = data;
    m->length = length;
    return finish_open(out, m);
}

static int map_file(onnx_model *m, int fd)
{
    struct stat info;
    if (fstat(fd, &info))
        return moirai_error(MOIRAI_EFAIL, "can't read: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return moirai_error(MOIRAI_EINPUT, "not a plain file");
    if (info.st_size == 0)
        return moirai_error(MOIRAI_EINPUT, "the file is empty");
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return moirai_error(MOIRAI_EFAIL, "can't map: %s", strerror(errno));
    /* Between two headers lies a weight that nobody reads now: reading ahead would only fill memory. */
    madvise(map, (size_t)info.st_size, MADV_RANDOM);
    m->file = map;
    m->length = (size_t)info.st_size;
    m->mapped = true;
    return 0;
}

int onnx_model_open(onnx_model **out, const char *path)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused below, not waited for */
    if (fd < 0)
        return moirai_error(MOIRAI_EINPUT, "can't open: %s", strerror(errno));
    onnx_model *m = util_alloc(1, sizeof *m);
    int rc = m ? map_file(m, fd) : MOIRAI_EFAIL;
    close(fd);
    if (rc) {
        onnx_model_free(m);
        return rc;
    }
    return finish_open(out, m);
}

void onnx_model_free(onnx_model *model)
{
    if (!model)
        return;
    if (model->proto)
        onnx__model_proto__free_unpacked(model->proto, NULL);
    onnx_slim_free(&model->slim);
    if (model->mapped)
        munmap((void *)model->file, model->length);
    free(model);
}

/* ---- writing ---- */

static int to_stream(void *data, const void *bytes, size_t length)
{
    if (length && fwrite(bytes, 1, length, data) != length)
        return moirai_error(MOIRAI_EFAIL, "can't write: %s", strerror(errno));
    return 0;
}

static int write_stream(const onnx_model *m, const Onnx__ModelProto *proto, FILE *stream)
{
    size_t length = onnx__model_proto__get_packed_size(proto);
    uint8_t *packed = util_alloc(length, 1);
    if (!packed)
        return MOIRAI_EFAIL;
    onnx__model_proto__pack(proto, packed);
    int rc = onnx_wire_expand(&onnx__model_proto__descriptor, packed, length, m ? m->slim.cut : NULL,
                              m ? m->slim.n_cuts : 0, m ? m->file : NULL, to_stream, stream);
    free(packed);
    if (!rc && (fflush(stream) || fsync(fileno(stream))))
        rc = moirai_error(MOIRAI_EFAIL, "can't write: %s", strerror(errno));
    return rc;
}

int onnx_model_write(const onnx_model *model, const Onnx__ModelProto *proto, const char *path)
{
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", path);
    int fd = mkstemp(temporary);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!stream) {
        int rc = moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return rc;
    }
    fchmod(fd, 0644);
    int rc = write_stream(model, proto, stream);
    if (fclose(stream) && !rc)
        rc = moirai_error(MOIRAI_EFAIL, "can't write: %s", strerror(errno));
    if (!rc && rename(temporary, path))
        rc = moirai_error(MOIRAI_EFAIL, "can't rename: %s", strerror(errno));
    if (rc) {
        unlink(temporary);
        return moirai_error_prefix(rc, "%s", path);
    }
    return util_folder_sync(path);
}
