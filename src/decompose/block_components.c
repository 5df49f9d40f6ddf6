/* What a block falls into when its cuts are taken away, and which of these parts are copies of each other.
 *
 * Components by union-find over interior edges. Copies agree in times, bytes, devices and edges, operator by operator; they are looked up by a
 * hash of the first three, so that a hundred thousand branches of which no two are equal are compared with hardly any other. O(V + E). */
#include "decompose/block.h"

#include <stdlib.h>
#include <string.h>

#include "util/group.h"
#include "util/hash.h"
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

static bool same_edges(const decompose_block *b, int32_t i, int32_t j)
{
    const moirai_problem *q = &b->problem;
    int32_t di = q->op_in_off[i + 1] - q->op_in_off[i], dj = q->op_in_off[j + 1] - q->op_in_off[j];
    int32_t oi = q->op_out_off[i + 1] - q->op_out_off[i], oj = q->op_out_off[j + 1] - q->op_out_off[j];
    if (di != dj || oi != oj)
        return false;
    for (int32_t d = 0; d < di; d++) {
        int32_t s = q->op_in[q->op_in_off[i] + d], t = q->op_in[q->op_in_off[j] + d];
        if (q->tensor_class[s] != q->tensor_class[t] ||
            b->op_place[q->tensor_producer[s]] != b->op_place[q->tensor_producer[t]] ||
            (q->tensor_producer[s] == b->entry && s != t))
            return false;
    }
    for (int32_t d = 0; d < oi; d++) {
        int32_t s = q->op_out[q->op_out_off[i] + d], t = q->op_out[q->op_out_off[j] + d];
        int32_t ds = q->tensor_edge_off[s + 1] - q->tensor_edge_off[s];
        if (q->tensor_class[s] != q->tensor_class[t] || ds != q->tensor_edge_off[t + 1] - q->tensor_edge_off[t])
            return false;
        for (int32_t r = 0; r < ds; r++)
            if (b->op_place[q->edge_reader[q->tensor_edge_off[s] + r]] !=
                b->op_place[q->edge_reader[q->tensor_edge_off[t] + r]])
                return false;
    }
    return true;
}

static bool same_component(const void *data, int32_t c, int32_t d)
{
    const decompose_block *b = data;
    const moirai_problem *q = &b->problem;
    int32_t n = b->component_off[c + 1] - b->component_off[c], K = q->n_devices;
    if (n != b->component_off[d + 1] - b->component_off[d])
        return false;
    for (int32_t x = 0; x < n; x++) {
        int32_t i = b->component_op[b->component_off[c] + x], j = b->component_op[b->component_off[d] + x];
        if (q->op_memory_bytes[i] != q->op_memory_bytes[j] || q->op_devices[i] != q->op_devices[j] ||
            q->op_group[i] != MOIRAI_NONE || q->op_group[j] != MOIRAI_NONE ||
            memcmp(q->op_time_ns + (int64_t)i * K, q->op_time_ns + (int64_t)j * K, sizeof(int64_t) * (size_t)K) ||
            !same_edges(b, i, j))
            return false;
    }
    return true;
}

/* Of what copies share; one with a group is a copy of none. */
static uint64_t hash_component(const void *data, int32_t c)
{
    const decompose_block *b = data;
    const moirai_problem *q = &b->problem;
    size_t K = (size_t)q->n_devices;
    uint64_t h = UTIL_HASH_BEGIN;
    for (int32_t x = b->component_off[c]; x < b->component_off[c + 1]; x++) {
        size_t i = (size_t)b->component_op[x];
        h = util_hash_walk(h, q->op_time_ns + i * K, K * sizeof *q->op_time_ns);
        h = util_hash_walk(h, q->op_memory_bytes + i, sizeof *q->op_memory_bytes);
        h = util_hash_walk(h, q->op_devices + i, sizeof *q->op_devices);
        if (q->op_group[i] != MOIRAI_NONE)
            h = util_hash_walk(h, &c, sizeof c);
    }
    return h;
}

static int find_kinds(decompose_block *b)
{
    size_t n = (size_t)b->n_components;
    UTIL_TAKE(&b->memory, b->component_kind, n);
    UTIL_TAKE(&b->memory, b->kind_component, n);
    UTIL_TAKE(&b->memory, b->kind_count, n);
    if (b->memory.failed)
        return MOIRAI_EFAIL;
    util_group_task job = {b, hash_component, same_component};
    int rc = util_group(b->component_kind, b->kind_component, &b->n_kinds, b->n_components, &job);
    for (int32_t c = 0; c < b->n_components && !rc; c++)
        b->kind_count[b->component_kind[c]]++;
    return rc;
}

int decompose_block_components(decompose_block *b)
{
    int rc = find_components(b);
    return rc ? rc : find_kinds(b);
}
