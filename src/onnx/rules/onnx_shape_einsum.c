/* Einsum: its equation, its output's shape, and its arithmetic. */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

typedef struct einsum {
    int64_t letter[128]; /* -1: not used */
    int uses[128];
    int32_t dots; /* rank of the ellipsis */
    int64_t dot[ONNX_MAX_RANK];
} einsum;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One operand's term, from *at to the comma, the arrow or the end. */
static bool einsum_term(einsum *e, const char **at, const char *end, const onnx_value *v)
{
    int32_t named = 0, axis = 0;
    for (const char *c = *at; c < end && *c != ',' && *c != '-'; c++)
        named += is_letter(*c);
    for (; *at < end && **at != ',' && **at != '-'; (*at)++) {
        if (**at == '.') {
            onnx_value dots = *v;
            dots.rank = v->rank - named;
            if (end - *at < 3 || dots.rank < 0 || axis + dots.rank > v->rank)
                return false;
            memcpy(dots.dim, v->dim + axis, (size_t)dots.rank * sizeof *dots.dim);
            axis += dots.rank;
            *at += 2;
            if (!onnx_broadcast(&e->dots, e->dot, &dots))
                return false;
        } else if (is_letter(**at)) {
            int64_t *dim = &e->letter[(int)**at];
            if (axis >= v->rank || (*dim > 1 && v->dim[axis] > 1 && *dim != v->dim[axis]))
                return false;
            *dim = UTIL_MAX(*dim, v->dim[axis]);
            e->uses[(int)**at]++;
            axis++;
        } else if (**at != ' ') {
            return false;
        }
    }
    return axis == v->rank;
}

static bool einsum_output(onnx_node *n, const einsum *e, const char *at, const char *end, bool explicit)
{
    int64_t dim[ONNX_MAX_RANK];
    int32_t rank = 0;
    char implicit[64];
    if (!explicit) {
        size_t count = 0;
        memcpy(implicit, "...", 3);
        count = 3;
        for (int c = 'A'; c <= 'z'; c++)
            if (is_letter((char)c) && e->uses[c] == 1)
                implicit[count++] = (char)c;
        at = implicit;
        end = implicit + count;
    }
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        int32_t need = *at == '.' ? e->dots : 1;
        if (rank + need > ONNX_MAX_RANK || (*at != '.' && (!is_letter(*at) || e->letter[(int)*at] < 0)))
            return false;
        if (*at == '.') {
            memcpy(dim + rank, e->dot, (size_t)e->dots * sizeof *dim);
            at += UTIL_MIN((ptrdiff_t)2, end - at - 1);
        } else {
            dim[rank] = e->letter[(int)*at];
        }
        rank += need;
    }
    return onnx_value_shape(onnx_out(n, 0), n->in[0]->type, rank, dim);
}

static bool einsum_read(const onnx_node *n, einsum *e, const char **rest, const char **end)
{
    const Onnx__AttributeProto *a = onnx_attr(n->proto, "equation");
    if (!a || !a->has_s || !onnx_in(n, 0))
        return false;
    memset(e, 0, sizeof *e);
    for (int i = 0; i < 128; i++)
        e->letter[i] = -1;
    const char *at = (const char *)a->s.data;
    *end = at + a->s.len;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !einsum_term(e, &at, *end, n->in[i]))
            return false;
        bool last = i + 1 == n->n_in;
        if (at < *end ? *at != (last ? '-' : ',') : !last)
            return false;
        at += !last;
    }
    *rest = at;
    return true;
}

SHAPE(einsum)
{
    einsum e;
    const char *at, *end;
    if (!einsum_read(n, &e, &at, &end))
        return false;
    bool explicit = at < end;
    if (explicit && (end - at < 2 || at[1] != '>'))
        return false;
    return einsum_output(n, &e, explicit ? at + 2 : at, end, explicit);
}

int64_t onnx_flops_einsum(const onnx_node *n)
{
    einsum e;
    const char *at, *end;
    if (!einsum_read(n, &e, &at, &end))
        return 0;
    int64_t total = onnx_product(e.dot, 0, e.dots);
    for (int i = 0; i < 128; i++)
        total = onnx_mul(total, e.letter[i] >= 0 ? e.letter[i] : 1);
    return onnx_mul(total, n->n_in < 2 ? 1 : 2 * (int64_t)(n->n_in - 1));
}
