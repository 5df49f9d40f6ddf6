/* Shapes of operators that multiply matrices: products, recurrent layers, attention (Einsum: onnx_shape_einsum.c). */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

/* numpy's rules: vectors count as a row on the left and a column on the right; what is before the last two dims
 * broadcasts. */
static bool product(onnx_node *n, const onnx_value *a, const onnx_value *b, bool trans_a, bool trans_b, int32_t type)
{
    if (a->rank < 1 || b->rank < 1)
        return false;
    onnx_value left = *a, right = *b;
    left.rank = UTIL_MAX(a->rank - 2, 0);
    right.rank = UTIL_MAX(b->rank - 2, 0);
    int64_t dim[ONNX_MAX_RANK];
    int32_t rank = 0;
    n->clashes = !onnx_broadcast(&rank, dim, &left) || !onnx_broadcast(&rank, dim, &right);
    if (n->clashes)
        return false;
    int64_t k_a = a->dim[a->rank - (trans_a && a->rank > 1 ? 2 : 1)];
    int64_t k_b = b->rank == 1 ? b->dim[0] : b->dim[b->rank - (trans_b ? 1 : 2)];
    n->clashes = k_a != k_b;
    if (n->clashes)
        return false;
    if (a->rank > 1)
        dim[rank++] = a->dim[a->rank - (trans_a ? 1 : 2)];
    if (b->rank > 1)
        dim[rank++] = b->dim[b->rank - (trans_b ? 2 : 1)];
    return onnx_value_shape(onnx_out(n, 0), type, rank, dim);
}

SHAPE(matmul)
{
    NEED(0);
    NEED(1);
    return product(n, n->in[0], n->in[1], onnx_attr_int(n->proto, "transA", 0), onnx_attr_int(n->proto, "transB", 0),
                   n->in[0]->type);
}

SHAPE(matmul_integer)
{
    NEED(0);
    NEED(1);
    bool to_float = !strcmp(n->rule->type, "MatMulIntegerToFloat") || !strcmp(n->rule->type, "DynamicQuantizeMatMul");
    return product(n, n->in[0], n->in[1], false, false, to_float ? ONNX_FLOAT : ONNX_INT32);
}

SHAPE(qlinear_matmul)
{
    NEED(0);
    NEED(3);
    return product(n, n->in[0], n->in[3], false, false, onnx_in(n, 7) ? n->in[7]->type : n->in[0]->type);
}

SHAPE(gemm)
{
    NEED(0);
    NEED(1);
    if (n->in[0]->rank != 2 || n->in[1]->rank != 2)
        return false;
    return product(n, n->in[0], n->in[1], onnx_attr_int(n->proto, "transA", 0), onnx_attr_int(n->proto, "transB", 0),
                   n->in[0]->type);
}

SHAPE(matmul_nbits)
{
    NEED(0);
    int64_t dim[ONNX_MAX_RANK];
    memcpy(dim, n->in[0]->dim, sizeof dim);
    if (n->in[0]->rank < 1)
        return false;
    dim[n->in[0]->rank - 1] = onnx_attr_int(n->proto, "N", -1);
    return onnx_value_shape(onnx_out(n, 0), n->in[0]->type, n->in[0]->rank, dim);
}

SHAPE(det)
{
    NEED(0);
    return n->in[0]->rank >= 2 && onnx_value_shape(onnx_out(n, 0), n->in[0]->type, n->in[0]->rank - 2, n->in[0]->dim);
}

/* ---- recurrent layers ---- */

SHAPE(rnn)
{
    NEED(0);
    NEED(2);
    const onnx_value *x = n->in[0], *r = n->in[2];
    if (x->rank != 3 || r->rank != 3)
        return false;
    bool batch_first = onnx_attr_int(n->proto, "layout", 0) == 1;
    bool turned = !strcmp(n->rule->type, "DynamicQuantizeLSTM"); /* its weights lie the other way round */
    int64_t dirs = r->dim[0], hidden = r->dim[turned ? 1 : 2];
    int64_t steps = x->dim[batch_first], batch = x->dim[!batch_first];
    int64_t all[2][4] = {{steps, dirs, batch, hidden}, {batch, steps, dirs, hidden}};
    int64_t last[2][3] = {{dirs, batch, hidden}, {batch, dirs, hidden}};
    return onnx_value_shape(onnx_out(n, 0), x->type, 4, all[batch_first]) &&
           onnx_value_shape(onnx_out(n, 1), x->type, 3, last[batch_first]) &&
           onnx_value_shape(onnx_out(n, 2), x->type, 3, last[batch_first]);
}

/* ---- attention ---- */

/* Keys and values kept for the next step: the past's, longer by this step's. */
static void present(onnx_node *n, int32_t out, const onnx_value *past, int64_t steps)
{
    onnx_value *v = onnx_out(n, out);
    if (!v || !past || past->rank != 4)
        return;
    int64_t dim[4] = {past->dim[0], past->dim[1], past->dim[2] + steps, past->dim[3]};
    onnx_value_shape(v, past->type, 4, dim);
}

SHAPE(multi_head)
{
    NEED(0);
    const onnx_value *q = n->in[0], *v = onnx_in(n, 2);
    bool grouped = !strcmp(n->rule->type, "GroupQueryAttention");
    int64_t dim[ONNX_MAX_RANK];
    if (q->rank < 3)
        return false;
    memcpy(dim, q->dim, sizeof dim);
    if (v && v->rank == q->rank && !grouped)
        dim[q->rank - 1] = v->dim[v->rank - 1];
    if (!v && q->rank == 3) { /* q, k and v packed in one */
        int64_t heads = onnx_attr_int(n->proto, "num_heads", 0);
        int64_t kv = onnx_attr_int(n->proto, "kv_num_heads", heads);
        if (heads < 1 || kv < 1 || heads > 1 << 20 || kv > 1 << 20)
            return false;
        dim[2] = q->dim[2] / (heads + 2 * kv) * heads;
    }
    int32_t past = grouped ? 3 : 6;
    present(n, 1, onnx_in(n, past), q->dim[q->rank - 2]);
    present(n, 2, onnx_in(n, past + 1), q->dim[q->rank - 2]);
    return onnx_value_shape(onnx_out(n, 0), q->type, q->rank, dim);
}

/* Attention of ONNX itself: (q, k, v, mask, past key, past value) to (y, key, value, scores). Queries may have more heads
 * than keys and values; tensors are batch x positions x (heads x width) or batch x heads x positions x width. */
static bool attention_of_onnx(onnx_node *n)
{
    const onnx_value *q = n->in[0], *k = n->in[1], *v = onnx_in(n, 2), *past = onnx_in(n, 4);
    if (!v || q->rank != k->rank || q->rank != v->rank || (q->rank != 3 && q->rank != 4))
        return false;
    bool packed = q->rank == 3;
    int64_t heads = packed ? onnx_attr_int(n->proto, "q_num_heads", 0) : q->dim[1];
    int64_t kv_heads = packed ? onnx_attr_int(n->proto, "kv_num_heads", 0) : k->dim[1];
    if (heads < 1 || kv_heads < 1 || heads > 1 << 20 || kv_heads > 1 << 20)
        return false;
    int32_t at = packed ? 1 : 2;
    int64_t share = packed ? kv_heads : 1, width_k = k->dim[at + 1] / share, width_v = v->dim[at + 1] / share;
    int64_t queries = q->dim[at], keys = onnx_add(k->dim[at], past && past->rank == 4 ? past->dim[2] : 0);
    int64_t y3[3] = {q->dim[0], queries, onnx_mul(heads, width_v)}, y4[4] = {q->dim[0], heads, queries, width_v};
    int64_t key[4] = {q->dim[0], kv_heads, keys, width_k}, value[4] = {q->dim[0], kv_heads, keys, width_v};
    int64_t scores[4] = {q->dim[0], heads, queries, keys};
    return onnx_value_shape(onnx_out(n, 0), q->type, q->rank, packed ? y3 : y4) &&
           onnx_value_shape(onnx_out(n, 1), k->type, 4, key) && onnx_value_shape(onnx_out(n, 2), v->type, 4, value) &&
           onnx_value_shape(onnx_out(n, 3), q->type, 4, scores);
}

SHAPE(attention)
{
    NEED(0);
    NEED(1);
    if (!n->proto->domain || strcmp(n->proto->domain, "com.microsoft"))
        return attention_of_onnx(n);
    const onnx_value *x = n->in[0], *w = n->in[1];
    onnx_list sizes = {0};
    if (x->rank != 3 || w->rank != 2)
        return false;
    bool given = onnx_list_of(n, "qkv_hidden_sizes", -1, &sizes) && sizes.n == 3;
    int64_t dim[3] = {x->dim[0], x->dim[1], given ? sizes.item[2] : w->dim[1] / 3};
    return onnx_value_shape(onnx_out(n, 0), x->type, 3, dim);
}

SHAPE(embed_norm)
{
    NEED(0);
    NEED(2);
    const onnx_value *ids = n->in[0], *words = n->in[2];
    if (ids->rank != 2 || words->rank != 2)
        return false;
    int64_t dim[3] = {ids->dim[0], ids->dim[1], words->dim[1]};
    return onnx_value_shape(onnx_out(n, 0), words->type, 3, dim) &&
           onnx_value_shape(onnx_out(n, 1), ONNX_INT32, 1, dim) &&
           onnx_value_shape(onnx_out(n, 2), words->type, 3, dim);
}
