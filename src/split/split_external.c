/* External data of a sub-model, wherever its tensors are: initializers, values of Constants, graphs inside of nodes,
 * functions.
 *
 * A sub-model shares its messages with the model, so a tensor can't name another file for good: it does while its
 * sub-model is written, and gets back what it said before. Copies are made once per device (split_weight.c). */
#include "split/split_build.h"

#include <stdio.h>
#include <string.h>

#include "onnx/onnx_message.h"
#include "onnx/onnx_tensors.h"

static int open_weights(split_builder *b)
{
    char name[320];
    const char *file = b->p->segment[b->segment].file;
    if (b->weights.stream)
        return 0;
    snprintf(name, sizeof name, "%.*s.data", (int)(strrchr(file, '-') - file), file); /* one for all of a device */
    return split_weights_open(&b->weights, b->folder, name);
}

static int rename_file(split_builder *b, Onnx__TensorProto *t, int64_t offset, int64_t bytes)
{
    onnx_arena *arena = &b->net->im.arena;
    Onnx__StringStringEntryProto **e = onnx_take(arena, 3, sizeof *e);
    if (!e || util_grow(&b->moved, &b->moved_capacity, b->n_moved + 1, sizeof *b->moved))
        return MOIRAI_EFAIL;
    e[0] = onnx_entry(arena, "location", onnx_text(arena, "%s", b->weights.name));
    e[1] = onnx_entry(arena, "offset", onnx_text(arena, "%lld", (long long)offset));
    e[2] = onnx_entry(arena, "length", onnx_text(arena, "%lld", (long long)bytes));
    if (!e[0] || !e[1] || !e[2])
        return MOIRAI_EFAIL;
    b->moved[b->n_moved++] = (split_moved){t, t->external_data, t->n_external_data};
    t->external_data = e;
    t->n_external_data = 3;
    return 0;
}

static int move_tensor(void *data, Onnx__TensorProto *t, const Onnx__NodeProto *node)
{
    split_builder *b = data;
    onnx_data d;
    int64_t elements, bytes, offset = 0;
    int rc = onnx_tensor_data(&d, b->net->model, t);
    if (!rc && d.kind != ONNX_DATA_EXTERNAL)
        return 0;
    rc = rc ? rc : onnx_tensor_size(b->net->model, t, &elements, &bytes);
    rc = rc ? rc : open_weights(b);
    rc = rc ? rc : split_weights_put(&b->weights, b->net->label, &d, bytes, &offset);
    rc = rc ? rc : rename_file(b, t, offset, bytes);
    return rc ? onnx_tensor_prefix(rc, t, node) : 0;
}

int split_move_external(split_builder *b, const Onnx__ModelProto *part)
{
    b->n_moved = 0;
    int rc = onnx_tensors_each(part, move_tensor, b);
    return rc ? moirai_error_prefix(rc, "%s", b->net->label) : 0;
}

void split_restore_external(split_builder *b)
{
    for (size_t i = 0; i < b->n_moved; i++) {
        b->moved[i].tensor->external_data = b->moved[i].external_data;
        b->moved[i].tensor->n_external_data = b->moved[i].n_external_data;
    }
    b->n_moved = 0;
}
