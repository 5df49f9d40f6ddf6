/* Constants of a sub-model: initializers, and what the importer folded away.
 *
 * The importer knows the value of a folded node but seldom keeps its numbers; a sub-model that reads it gets the node
 * and all that leads to it, and the backend folds it again. Two operators are different: Shape and Size read a tensor
 * that may live on another device, only to ask for its shape, which is known here: they become numbers. Where the shape
 * was guessed they can't, and the model can't be split.
 *
 * Inline weights stay where they are in the model's file (see onnx_model.h); external ones are copied, each once per
 * device. */
#include "split/split_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, COPY_BYTES = 1 << 20 };

/* ---- external data ---- */

static int open_weights(split_builder *b)
{
    weight_file *w = &b->weights;
    char path[4096];
    if (w->stream)
        return 0;
    const char *file = b->p->segment[b->segment].file;
    snprintf(w->name, sizeof w->name, "%.*s.data", (int)(strrchr(file, '-') - file), file);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", b->folder, w->name) >= sizeof path)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", b->folder);
    w->known = util_names_new(64);
    w->stream = fopen(path, "wb");
    w->offset = 0;
    w->n = 0;
    if (!w->known)
        return MOIRAI_EFAIL;
    return w->stream ? 0 : moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", path, strerror(errno));
}

int split_weights_close(split_builder *b)
{
    weight_file *w = &b->weights;
    int rc = 0;
    if (w->stream && (fflush(w->stream) || ferror(w->stream)))
        rc = moirai_error(MOIRAI_EFAIL, "%s/%s: can't write: %s", b->folder, w->name, strerror(errno));
    if (w->stream && fclose(w->stream) && !rc)
        rc = moirai_error(MOIRAI_EFAIL, "%s/%s: can't write: %s", b->folder, w->name, strerror(errno));
    b->report->file_bytes += w->offset;
    util_names_free(w->known);
    free(w->at);
    *w = (weight_file){0};
    return rc;
}

static int copy_range(split_builder *b, FILE *from, const char *path, int64_t length)
{
    weight_file *w = &b->weights;
    char *buffer = util_alloc(COPY_BYTES, 1);
    int rc = buffer ? 0 : MOIRAI_EFAIL;
    while (!rc && length > 0) {
        size_t want = (size_t)UTIL_MIN(length, (int64_t)COPY_BYTES), got = fread(buffer, 1, want, from);
        if (got != want)
            rc = moirai_error(MOIRAI_EINPUT, "%s: ends before the model's weights do", path);
        else if (fwrite(buffer, 1, got, w->stream) != got)
            rc = moirai_error(MOIRAI_EFAIL, "%s/%s: can't write: %s", b->folder, w->name, strerror(errno));
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

/* A plain file below the model's folder, or, where the model itself is a link, beside the file that it leads to (caches of
 * downloads are made of links). A link to anywhere else would copy what is nobody's business, and a pipe never ends. */
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

static int copy_external(split_builder *b, const onnx_data *d, int64_t length, int64_t *offset)
{
    static const char zeros[PAGE];
    weight_file *w = &b->weights;
    char path[4096];
    const char *slash = strrchr(b->model_path, '/');
    int folder = slash ? (int)(slash - b->model_path) + 1 : 0;
    if (*d->location == '/' || strstr(d->location, ".."))
        return moirai_error(MOIRAI_EINPUT, "external data: \"%s\" is not below the model's folder", d->location);
    if ((size_t)snprintf(path, sizeof path, "%.*s%s", folder, b->model_path, d->location) >= sizeof path)
        return moirai_error(MOIRAI_EINPUT, "external data: the path is too long");
    FILE *from;
    int rc = open_data(&from, b->model_path, path);
    if (rc)
        return rc;
    if (fseeko(from, (off_t)d->external_offset, SEEK_SET)) {
        rc = moirai_error(MOIRAI_EINPUT, "%s: can't read the model's weights: %s", path, strerror(errno));
        fclose(from);
        return rc;
    }
    int64_t gap = (PAGE - w->offset % PAGE) % PAGE; /* mapped weights begin at a page */
    rc = fwrite(zeros, 1, (size_t)gap, w->stream) == (size_t)gap ? 0 : MOIRAI_EFAIL;
    if (rc)
        moirai_error(rc, "%s/%s: can't write: %s", b->folder, w->name, strerror(errno));
    *offset = w->offset + gap;
    rc = rc ? rc : copy_range(b, from, path, length);
    w->offset = *offset + length;
    fclose(from);
    return rc;
}

static int place_external(split_builder *b, const onnx_data *d, int64_t length, int64_t *offset)
{
    weight_file *w = &b->weights;
    int rc = open_weights(b);
    char *key =
        rc ? NULL : split_text(b, "%s:%lld:%lld", d->location, (long long)d->external_offset, (long long)length);
    if (rc || !key)
        return rc ? rc : MOIRAI_EFAIL;
    int32_t number = util_names_put(w->known, key, (int32_t)w->n);
    if (number < 0 || util_grow(&w->at, &w->capacity, w->n + 1, sizeof *w->at))
        return MOIRAI_EFAIL;
    if ((size_t)number == w->n) {
        rc = copy_external(b, d, length, &w->at[w->n]);
        w->n++;
    }
    *offset = w->at[number];
    return rc;
}

static Onnx__StringStringEntryProto *entry(split_builder *b, const char *key, char *value)
{
    Onnx__StringStringEntryProto *e = onnx_arena(b->im, 1, sizeof *e);
    if (!e || !value)
        return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)key;
    e->value = value;
    return e;
}

static int take_external(split_builder *b, const Onnx__TensorProto *t, const onnx_data *d)
{
    int64_t elements, bytes, offset = 0;
    int rc = onnx_tensor_size(b->im->model, t, &elements, &bytes);
    rc = rc ? rc : place_external(b, d, d->external_length >= 0 ? d->external_length : bytes, &offset);
    if (rc)
        return rc;
    Onnx__TensorProto *copy = onnx_arena(b->im, 1, sizeof *copy);
    Onnx__StringStringEntryProto **e = onnx_arena(b->im, 3, sizeof *e);
    if (!copy || !e)
        return MOIRAI_EFAIL;
    *copy = *t;
    e[0] = entry(b, "location", split_text(b, "%s", b->weights.name));
    e[1] = entry(b, "offset", split_text(b, "%lld", (long long)offset));
    e[2] = entry(b, "length", split_text(b, "%lld", (long long)bytes));
    copy->external_data = e;
    copy->n_external_data = 3;
    return e[0] && e[1] && e[2] ? split_list_add(&b->initializers, copy) : MOIRAI_EFAIL;
}

/* ---- initializers ---- */

static int take_sparse(split_builder *b, const onnx_value *v)
{
    const Onnx__GraphProto *g = b->im->root->graph;
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        Onnx__SparseTensorProto *s = g->sparse_initializer[i];
        if (s->values && s->values->name && !strcmp(s->values->name, v->name))
            return split_list_add(&b->sparse, s);
    }
    return moirai_error(MOIRAI_EINPUT, "constant '%s' has no value", v->name);
}

static int take_initializer(split_builder *b, const onnx_value *v)
{
    onnx_data d;
    if (!v->tensor)
        return take_sparse(b, v);
    int rc = onnx_tensor_data(&d, b->im->model, v->tensor);
    if (!rc && d.kind == ONNX_DATA_EXTERNAL)
        rc = take_external(b, v->tensor, &d);
    else if (!rc)
        rc = split_list_add(&b->initializers, (void *)v->tensor);
    return rc ? moirai_error_prefix(rc, "%s: initializer '%s'", b->model_path, v->name) : 0;
}

static int take_shape(split_builder *b, const onnx_node *n, const onnx_value *v)
{
    const onnx_value *of = onnx_in(n, 0);
    if (!of || !b->certain[of->stamp] || !v->ints)
        return moirai_error(MOIRAI_EINPUT,
                            "%s: node '%s' (%s): the shape of '%s' is known only when the network runs; "
                            "such a model can't be split",
                            b->model_path, n->proto->name ? n->proto->name : "", n->proto->op_type, of ? of->name : "");
    Onnx__TensorProto *t = onnx_arena(b->im, 1, sizeof *t);
    if (!t)
        return MOIRAI_EFAIL;
    onnx__tensor_proto__init(t);
    t->name = (char *)v->name;
    t->has_data_type = 1;
    t->data_type = ONNX_INT64;
    t->n_dims = (size_t)v->rank;
    t->dims = (int64_t *)v->dim;
    t->n_int64_data = (size_t)v->elements;
    t->int64_data = v->ints;
    return split_list_add(&b->initializers, t);
}

/* ---- what constants are made of ---- */

static int push(split_builder *b, onnx_value *v)
{
    if (!v || b->taken[v->stamp] == b->segment)
        return 0;
    b->taken[v->stamp] = b->segment;
    if (util_grow(&b->stack, &b->stack_capacity, b->n_stack + 1, sizeof *b->stack))
        return MOIRAI_EFAIL;
    b->stack[b->n_stack++] = v;
    return 0;
}

static int take_folded(split_builder *b, int32_t node)
{
    const onnx_node *n = &b->im->root->node[node];
    if (b->node_taken[node] == b->segment)
        return 0;
    b->node_taken[node] = b->segment;
    int rc = util_grow(&b->folded, &b->folded_capacity, b->n_folded + 1, sizeof *b->folded);
    if (rc)
        return rc;
    b->folded[b->n_folded++] = node;
    for (int32_t k = 0; k < n->n_in && !rc; k++)
        rc = push(b, n->in[k]);
    return rc;
}

int split_take_constant(split_builder *b, onnx_value *v)
{
    int rc = push(b, v);
    while (!rc && b->n_stack) {
        const onnx_value *c = b->stack[--b->n_stack];
        const onnx_node *n = c->producer < 0 ? NULL : &b->im->root->node[c->producer];
        if (!n)
            rc = take_initializer(b, c);
        else if (n->rule->flags & ONNX_OF_SHAPE && n->n_in)
            rc = take_shape(b, n, c);
        else
            rc = take_folded(b, c->producer);
    }
    b->n_stack = 0;
    return rc;
}
