/* What a block falls into when its cuts are taken away, and which of these parts are copies of each other.
 *
 * Components by union-find over interior edges. Copies agree in times, bytes, devices and edges, operator by operator. O(V K + E). */
#include "decompose/block.h"

#include <stdlib.h>
#include <string.h>

#include "util/group.h"
#include "util/util.h"

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Components by union-find over interior edges, numbered by their first operator. */
static int find_components(decompose_block *b)
{
    moirai_problem *q = &b->problem;
    size_t n = (size_t)q->n_ops;
    int32_t *parent = util_alloc(n, sizeof *parent);
    UTIL_TAKE(&b->memory, b->op_component, n);
    UTIL_TAKE(&b->memory, b->op_place, n);
    UTIL_TAKE(&b->memory, b->component_off, n + 1);
    UTIL_TAKE(&b->memory, b->component_op, n);
    if (!parent || b->memory.failed) {
        free(parent);
        return MOIRAI_EFAIL;
    }
    int32_t last = b->first + b->n_interior;
    for (int32_t i = 0; i < q->n_ops; i++) {
        parent[i] = i;
        b->op_component[i] = MOIRAI_NONE;
        b->op_place[i] = i == b->entry ? -1 : -2;
    }
    for (int32_t e = 0; e < q->n_edges; e++) {
        int32_t from = q->tensor_producer[q->edge_tensor[e]], to = q->edge_reader[e];
        if (from >= b->first && to < last)
            parent[root_of(parent, UTIL_MAX(from, to))] = root_of(parent, UTIL_MIN(from, to));
    }
    int32_t *slot = b->component_off;
    for (int32_t i = b->first; i < last; i++) {
        int32_t root = root_of(parent, i);
        if (b->op_component[root] < 0)
            b->op_component[root] = b->n_components++;
        b->op_component[i] = b->op_component[root];
        slot[b->op_component[i] + 1]++;
    }
    for (int32_t c = 0; c < b->n_components; c++)
        slot[c + 1] += slot[c];
    int32_t *next = parent; /* reuse */
    memcpy(next, slot, sizeof *next * (size_t)b->n_components);
    for (int32_t i = b->first; i < last; i++) {
        int32_t at = next[b->op_component[i]]++;
        b->component_op[at] = i;
        b->op_place[i] = at - slot[b->op_component[i]];
    }
    free(parent);
    return 0;
}

/* Where its inputs come from and its outputs go, seen from its component. */
static void spell_edges(util_spelling *w, const decompose_block *b, int32_t i)
{
    const moirai_problem *q = &b->problem;
    util_spell(w, q->op_in_off[i + 1] - q->op_in_off[i]);
    for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++) {
        int32_t t = q->op_in[j], from = q->tensor_producer[t];
        util_spell(w, q->tensor_class[t]);
        util_spell(w, b->op_place[from]);
        util_spell(w, from == b->entry ? t : MOIRAI_NONE); /* copies read the same tensors of the entry */
    }
    util_spell(w, q->op_out_off[i + 1] - q->op_out_off[i]);
    for (int32_t j = q->op_out_off[i]; j < q->op_out_off[i + 1]; j++) {
        int32_t t = q->op_out[j];
        util_spell(w, q->tensor_class[t]);
        util_spell(w, q->tensor_edge_off[t + 1] - q->tensor_edge_off[t]);
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            util_spell(w, b->op_place[q->edge_reader[e]]);
    }
}

/* What copies share; one with a group is a copy of none. */
static void spell_component(util_spelling *w, const void *data, int32_t c)
{
    const decompose_block *b = data;
    const moirai_problem *q = &b->problem;
    for (int32_t x = b->component_off[c]; x < b->component_off[c + 1]; x++) {
        int32_t i = b->component_op[x];
        util_spell(w, q->op_memory_bytes[i]);
        util_spell(w, (int64_t)q->op_devices[i]);
        util_spell(w, q->op_group[i] == MOIRAI_NONE ? MOIRAI_NONE : c);
        for (int32_t k = 0; k < q->n_devices; k++)
            util_spell(w, moirai_op_ns(q, i, k));
        spell_edges(w, b, i);
    }
}

static int find_kinds(decompose_block *b)
{
    size_t n = (size_t)b->n_components;
    UTIL_TAKE(&b->memory, b->component_kind, n);
    UTIL_TAKE(&b->memory, b->kind_component, n);
    UTIL_TAKE(&b->memory, b->kind_count, n);
    if (b->memory.failed)
        return MOIRAI_EFAIL;
    int rc = util_group(b->component_kind, b->kind_component, &b->n_kinds, b->n_components, spell_component, b);
    for (int32_t c = 0; c < b->n_components && !rc; c++)
        b->kind_count[b->component_kind[c]]++;
    return rc;
}

int decompose_block_components(decompose_block *b)
{
    int rc = find_components(b);
    return rc ? rc : find_kinds(b);
}
