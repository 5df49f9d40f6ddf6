/* The file of weights beside a cut model: written to a temporary, renamed when all is well.
 *
 * A tensor of the model that had its numbers in a file gets them from here, too, since the cut model may lie elsewhere.
 * Messages are shared with the model, so such a tensor names the new file only until the cut model is written. */
#include "shard/shard_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/onnx_message.h"
#include "onnx/onnx_tensors.h"

#define ALIGN 4096 /* so that a runtime can map a tensor */

static int cant_write(const shard_data *d)
{
    return moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", d->path, strerror(errno));
}

int shard_data_open(shard_data *d, onnx_arena *arena, const char *model_path)
{
    *d = (shard_data){0};
    const char *slash = strrchr(model_path, '/');
    if ((size_t)snprintf(d->path, sizeof d->path, "%s.data", model_path) + 8 >= sizeof d->path)
        return moirai_error(MOIRAI_EUSAGE, "%.200s: the path is too long", model_path);
    snprintf(d->temporary, sizeof d->temporary, "%.4080s.XXXXXX", d->path);
    if (!(d->name = onnx_text(arena, "%s.data", slash ? slash + 1 : model_path)))
        return MOIRAI_EFAIL;
    int fd = mkstemp(d->temporary);
    if (fd < 0)
        return cant_write(d);
    fchmod(fd, 0644);
    if (!(d->stream = fdopen(fd, "wb"))) {
        int rc = cant_write(d);
        close(fd);
        unlink(d->temporary);
        return rc;
    }
    return 0;
}

int shard_data_put(shard_data *d, const void *bytes, size_t length)
{
    if (fwrite(bytes, 1, length, d->stream) != length)
        return cant_write(d);
    d->offset += (int64_t)length;
    return 0;
}

int shard_data_begin(shard_data *d)
{
    static const char zeros[ALIGN];
    return shard_data_put(d, zeros, (size_t)((ALIGN - d->offset % ALIGN) % ALIGN));
}

int shard_data_name(shard_builder *b, Onnx__TensorProto *t, int64_t offset, int64_t bytes)
{
    onnx_arena *arena = &b->arena;
    Onnx__StringStringEntryProto **e = onnx_take(arena, 3, sizeof *e);
    if (!e)
        return MOIRAI_EFAIL;
    e[0] = onnx_entry(arena, "location", onnx_text(arena, "%s", b->dry ? "slices" : b->data.name));
    e[1] = onnx_entry(arena, "offset", onnx_text(arena, "%lld", (long long)offset));
    e[2] = onnx_entry(arena, "length", onnx_text(arena, "%lld", (long long)bytes));
    if (!e[0] || !e[1] || !e[2])
        return MOIRAI_EFAIL;
    t->external_data = e;
    t->n_external_data = 3;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return 0;
}

static int take_tensor(void *data, Onnx__TensorProto *t, const Onnx__NodeProto *node)
{
    shard_builder *b = data;
    shard_numbers from = {0};
    onnx_data d;
    int64_t elements, bytes;
    int rc = onnx_tensor_data(&d, b->s->net->model, t);
    if (!rc && d.kind != ONNX_DATA_EXTERNAL)
        return 0;
    rc = rc ? rc : onnx_tensor_size(b->s->net->model, t, &elements, &bytes);
    rc = rc ? rc : shard_numbers_of(&from, b, t, bytes);
    rc = rc ? rc : shard_data_begin(&b->data);
    int64_t offset = b->data.offset;
    rc = rc ? rc : shard_data_put(&b->data, from.bytes, (size_t)bytes);
    shard_numbers_free(&from);
    shard_moved *was = rc ? NULL : onnx_take(&b->arena, 1, sizeof *was);
    if (was) {
        *was = (shard_moved){t, t->external_data, t->n_external_data};
        rc = shard_list_add(&b->moved, was);
        rc = rc ? rc : shard_data_name(b, t, offset, bytes);
    }
    rc = rc ? rc : was ? 0 : MOIRAI_EFAIL;
    return rc ? onnx_tensor_prefix(rc, t, node) : 0;
}

int shard_data_take_external(shard_builder *b, Onnx__ModelProto *model)
{
    size_t all = model->graph->n_initializer;
    model->graph->n_initializer = b->n_whole; /* slices are here already */
    int rc = b->data.stream ? onnx_tensors_each(model, take_tensor, b) : 0;
    model->graph->n_initializer = all;
    return rc ? moirai_error_prefix(rc, "%s", b->s->label) : 0;
}

void shard_data_give_back(shard_builder *b)
{
    for (size_t i = 0; i < b->moved.n; i++) {
        const shard_moved *m = b->moved.item[i];
        m->tensor->external_data = m->external_data;
        m->tensor->n_external_data = m->n_external_data;
    }
    b->moved.n = 0;
}

int shard_data_close(shard_data *d, int rc)
{
    if (!d->stream)
        return rc;
    if (!rc && (fflush(d->stream) || fsync(fileno(d->stream))))
        rc = cant_write(d);
    if (fclose(d->stream) && !rc)
        rc = cant_write(d);
    d->stream = NULL;
    if (!rc && rename(d->temporary, d->path))
        rc = cant_write(d);
    if (rc)
        unlink(d->temporary);
    return rc;
}
