/* Tensors in NumPy's .npy files: versions 1 to 3, C order. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank/rank_tensor.h"
#include "util/util.h"

static const struct {
    const char *code;
    int type;
} npy_types[] = {{"f4", 1}, {"u1", 2}, {"i1", 3},  {"u2", 4},  {"i2", 5},  {"i4", 6},
                 {"i8", 7}, {"b1", 9}, {"f2", 10}, {"f8", 11}, {"u4", 12}, {"u8", 13}};
enum { N_NPY_TYPES = sizeof npy_types / sizeof *npy_types };

/* The value of a key in the header, which is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3,)} */
static const char *npy_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at, ':') : NULL;
    for (at = at ? at + 1 : NULL; at && *at == ' '; at++)
        ;
    return at;
}

static int npy_shape(rank_shape *s, const char *at)
{
    if (!at || *at++ != '(')
        return -1;
    while (*at != ')') {
        char *end;
        errno = 0;
        long long n = strtoll(at, &end, 10);
        if (end == at || errno || n < 0 || s->rank == RANK_MAX_DIMS)
            return -1;
        s->dim[s->rank++] = n;
        for (at = end; *at == ',' || *at == ' ' || *at == 'L'; at++)
            ;
    }
    return 0;
}

static int npy_header(rank_shape *s, const char *header, const char *path)
{
    const char *descr = npy_key(header, "'descr'"), *order = npy_key(header, "'fortran_order'");
    *s = (rank_shape){0};
    if (!descr || !order || npy_shape(s, npy_key(header, "'shape'")))
        return moirai_error(MOIRAI_EINPUT, "%s: not a .npy file: its header makes no sense", path);
    if (!strncmp(order, "True", 4))
        return moirai_error(MOIRAI_EINPUT, "%s: the array is in Fortran order: save numpy.ascontiguousarray of it",
                            path);
    if (*descr == '\'')
        descr++;
    for (int i = 0; i < N_NPY_TYPES && *descr && *descr != '>'; i++)
        if (!strncmp(descr + 1, npy_types[i].code, 2))
            s->type = npy_types[i].type;
    return s->type ? 0 : moirai_error(MOIRAI_EINPUT, "%s: numbers of type \"%.4s\" are not supported", path, descr);
}

static int npy_parse(OrtValue **out, rank_shape *s, const rank_ort *ort, const char *data, size_t length,
                     const char *path)
{
    size_t at = 10, header = 0, bytes;
    if (length >= 12 && !memcmp(data, "\x93NUMPY", 6)) {
        const unsigned char *u = (const unsigned char *)data;
        at = u[6] == 1 ? 10 : 12;
        header = u[6] == 1 ? (size_t)u[8] | (size_t)u[9] << 8
                           : (size_t)u[8] | (size_t)u[9] << 8 | (size_t)u[10] << 16 | (size_t)u[11] << 24;
    }
    if (!header || header > length - at)
        return moirai_error(MOIRAI_EINPUT, "%s: not a .npy file", path);
    char *text = strndup(data + at, header);
    int rc = text ? npy_header(s, text, path) : moirai_error(MOIRAI_EFAIL, "out of memory");
    free(text);
    rc = rc ? rc : rank_shape_bytes(&bytes, s);
    if (rc)
        return rc;
    if (length - at - header != bytes)
        return moirai_error(MOIRAI_EINPUT, "%s: its shape makes %zu bytes, the file has %zu", path, bytes,
                            length - at - header);
    void *to;
    rc = rank_value_new(out, &to, ort, s);
    if (!rc)
        memcpy(to, data + at + header, bytes);
    return rc;
}

int rank_npy_read(OrtValue **out, rank_shape *s, const rank_ort *ort, const char *path)
{
    char *data;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = npy_parse(out, s, ort, data, length, path);
    free(data);
    return rc;
}

int rank_npy_write(const char *path, const rank_shape *s, const void *data, size_t bytes)
{
    const char *code = "u2"; /* bfloat16, which NumPy does not know: its bits */
    char shape[512] = "", header[1024];
    int used = 0;
    for (int i = 0; i < N_NPY_TYPES; i++)
        if (npy_types[i].type == s->type)
            code = npy_types[i].code;
    for (int64_t i = 0; i < s->rank; i++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, "%lld,%s", (long long)s->dim[i],
                         i + 1 < s->rank ? " " : "");
    int n = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }",
                     code[1] == '1' ? "|" : "<", code, shape);
    int total = (10 + n + 1 + 63) / 64 * 64; /* numbers begin at a multiple of 64 */
    FILE *f = fopen(path, "wb");
    if (!f)
        return moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", path, strerror(errno));
    bool ok = fprintf(f, "\x93NUMPY%c", 1) == 7 && fputc(0, f) == 0 && fputc((total - 10) & 255, f) != EOF &&
              fputc((total - 10) >> 8, f) != EOF && fprintf(f, "%-*s\n", total - 11, header) == total - 10 &&
              fwrite(data, 1, bytes, f) == bytes;
    int error = errno;
    if (fclose(f) && ok) {
        ok = false;
        error = errno;
    }
    return ok ? 0 : moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", path, strerror(error));
}
