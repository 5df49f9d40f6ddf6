/* Symmetry of the problem: devices that can be exchanged, and mirrors of the graph.
 *
 * A mirror exchanges operators pairwise (isomorphic branches, twins) and leaves the problem as it was. Candidates are
 * grown from one pair: what one of them reads or feeds must go to what the other reads or feeds; shared neighbours
 * stay. The growth is a guess, guided by a hash of each operator's surroundings; only what the full check
 * accepts is used, so that a wrong guess costs nothing but the mirror. Operators of groups are left in place.
 *
 * Complexity: O(V + E) per pair of operators with equal hash; nothing is tried above EXACT_MIRROR_MOST_OPS operators. */
#include "exact/exact_search.h"

#include <string.h>

#include "exact/exact_tuning.h"
#include "problem/equal_devices.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

/* Operators that share weights with others are told apart: who else is on the device matters to them. */
static bool shares_weight(const moirai_problem *p, int32_t i)
{
    if (p->n_weights == 0)
        return false;
    for (int32_t e = 0; e < p->weight_reader_off[p->n_weights]; e++)
        if (p->weight_reader[e] == i)
            return true;
    return false;
}

static bool same_rows(const exact_search *s, int32_t i, int32_t j)
{
    size_t row = (size_t)s->K * sizeof(int64_t);
    int64_t a = (int64_t)i * s->K, b = (int64_t)j * s->K;
    if (i != j && (shares_weight(s->p, i) || shares_weight(s->p, j)))
        return false;
    return !memcmp(s->p->op_time_ns + a, s->p->op_time_ns + b, row) &&
           s->p->op_memory_bytes[i] == s->p->op_memory_bytes[j] && s->p->op_devices[i] == s->p->op_devices[j];
}

static bool same_tensors(const exact_search *s, int32_t t, int32_t u)
{
    const moirai_problem *p = s->p;
    return p->tensor_class[t] == p->tensor_class[u] && (!s->mode.peak || p->tensor_bytes[t] == p->tensor_bytes[u]);
}

static void hash_ops(const exact_search *s, uint64_t *color, uint64_t *next)
{
    const moirai_problem *p = s->p;
    for (int32_t i = 0; i < s->n; i++) {
        color[i] = mix(p->op_devices[i], (uint64_t)p->op_memory_bytes[i]);
        for (int32_t k = 0; k < s->K; k++)
            color[i] = mix(color[i], (uint64_t)p->op_time_ns[(int64_t)i * s->K + k]);
    }
    for (int round = 0; round < 6; round++) {
        for (int32_t i = 0; i < s->n; i++) {
            uint64_t in = 0, out = 0;
            for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++)
                in += mix(color[p->tensor_producer[p->op_in[a]]], (uint64_t)p->tensor_class[p->op_in[a]]);
            for (int32_t a = p->op_out_off[i]; a < p->op_out_off[i + 1]; a++)
                for (int32_t e = p->tensor_edge_off[p->op_out[a]]; e < p->tensor_edge_off[p->op_out[a] + 1]; e++)
                    out += mix(color[p->edge_reader[e]], (uint64_t)p->tensor_class[p->op_out[a]] + 77);
            next[i] = mix(mix(color[i], in), out);
        }
        memcpy(color, next, (size_t)s->n * sizeof *color);
    }
}

static bool grouped(const exact_search *s, int32_t i)
{
    return s->p->op_group[i] != MOIRAI_NONE;
}

/* The candidate under construction: image[i] is -1 while nothing is decided. */
typedef struct growth {
    const exact_search *s;
    const uint64_t *color;
    int32_t *image, *queue;
    int32_t n_queue;
} growth;

static bool decide(growth *g, int32_t a, int32_t b)
{
    if (g->image[a] >= 0 || g->image[b] >= 0)
        return g->image[a] == b && g->image[b] == a;
    if (g->color[a] != g->color[b] || (a != b && (grouped(g->s, a) || grouped(g->s, b))))
        return false;
    g->image[a] = b;
    g->image[b] = a;
    if (a != b)
        g->queue[g->n_queue++] = a;
    return true;
}

/* Match two lists of operators: those in both stay, the others pair up in order. */
static bool match(growth *g, const int32_t *u, int32_t n, const int32_t *v, int32_t m)
{
    int32_t at = 0;
    for (int32_t a = 0; a < n; a++) {
        bool both = false;
        for (int32_t b = 0; b < m && !both; b++)
            both = u[a] == v[b];
        if (both && !decide(g, u[a], u[a]))
            return false;
        if (both)
            continue;
        while (at < m && g->image[v[at]] == v[at])
            at++;
        if (at == m || !decide(g, u[a], v[at++]))
            return false;
    }
    return true;
}

static bool grow(growth *g)
{
    const moirai_problem *p = g->s->p;
    for (int32_t q = 0; q < g->n_queue; q++) {
        int32_t u = g->queue[q], v = g->image[u], pu[64], pv[64];
        int32_t n = p->op_in_off[u + 1] - p->op_in_off[u], m = p->op_out_off[u + 1] - p->op_out_off[u];
        if (n != p->op_in_off[v + 1] - p->op_in_off[v] || m != p->op_out_off[v + 1] - p->op_out_off[v] || n > 64)
            return false;
        for (int32_t a = 0; a < n; a++) {
            pu[a] = p->tensor_producer[p->op_in[p->op_in_off[u] + a]];
            pv[a] = p->tensor_producer[p->op_in[p->op_in_off[v] + a]];
        }
        if (!match(g, pu, n, pv, n))
            return false;
        for (int32_t a = 0; a < m; a++) {
            int32_t t = p->op_out[p->op_out_off[u] + a], w = p->op_out[p->op_out_off[v] + a];
            int32_t nt = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
            if (nt != p->tensor_edge_off[w + 1] - p->tensor_edge_off[w] ||
                !match(g, p->edge_reader + p->tensor_edge_off[t], nt, p->edge_reader + p->tensor_edge_off[w], nt))
                return false;
        }
    }
    return true;
}

static bool reads(const moirai_problem *p, int32_t op, int32_t t)
{
    for (int32_t a = p->op_in_off[op]; a < p->op_in_off[op + 1]; a++)
        if (p->op_in[a] == t)
            return true;
    return false;
}

/* The proof: every row, tensor and edge has its equal at the image. For the a-th output of an operator that is the
 * a-th output of the operator's image, except that outputs of an operator that stays may change places (flow edge
 * often writes one tensor per reader): any other output of the same kind that the image reads will do, once each. */
static bool check_edges(const exact_search *s, const int32_t *image)
{
    const moirai_problem *p = s->p;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t j = image[i], at = p->op_out_off[j], n = p->op_out_off[j + 1] - at;
        if (image[j] != i || !same_rows(s, i, j) || (i != j && grouped(s, i)) ||
            n != p->op_out_off[i + 1] - p->op_out_off[i])
            return false;
        uint64_t taken = 0;
        for (int32_t a = 0; a < n; a++) {
            int32_t t = p->op_out[p->op_out_off[i] + a], b = -1,
                    degree = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
            for (int32_t c = 0; c < n && c < 64 && b < 0; c++) {
                int32_t w = p->op_out[at + c];
                bool fits = !(taken >> c & 1) && same_tensors(s, t, w) &&
                            degree == p->tensor_edge_off[w + 1] - p->tensor_edge_off[w];
                for (int32_t e = p->tensor_edge_off[t]; fits && e < p->tensor_edge_off[t + 1]; e++)
                    fits = reads(p, image[p->edge_reader[e]], w);
                if (fits)
                    b = c;
            }
            if (b < 0)
                return false;
            taken |= (uint64_t)1 << b;
        }
    }
    return true;
}

static int keep(exact_search *s, const int32_t *image)
{
    exact_mirror *m = &s->symmetry.mirror[s->symmetry.n_mirrors];
    UTIL_TAKE(&s->memory, m->image, (size_t)s->n);
    UTIL_TAKE(&s->memory, m->moved, (size_t)s->n);
    if (s->memory.failed)
        return MOIRAI_EFAIL;
    s->symmetry.n_mirrors++;
    memcpy(m->image, image, (size_t)s->n * sizeof *image);
    m->n = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (image[i] > i)
            m->moved[m->n++] = i;
    return 0;
}

static int find_mirrors(exact_search *s, growth *g)
{
    for (int32_t i = 0; i < s->n; i++) {
        for (int32_t j = i + 1; j < s->n && s->symmetry.n_mirrors < EXACT_MIRROR_MOST_MIRRORS; j++) {
            if (g->color[i] != g->color[j])
                continue;
            for (int32_t a = 0; a < s->n; a++)
                g->image[a] = -1;
            g->n_queue = 0;
            if (!decide(g, i, j) || !grow(g))
                continue;
            for (int32_t a = 0; a < s->n; a++)
                g->image[a] = g->image[a] < 0 ? a : g->image[a];
            if (check_edges(s, g->image) && keep(s, g->image))
                return MOIRAI_EFAIL;
        }
    }
    return 0;
}

int exact_mirrors_find(exact_search *s)
{
    for (int32_t a = 0; a < s->K; a++)
        for (int32_t b = a + 1; b < s->K; b++)
            s->symmetry.same_device[a * s->K + b] = s->symmetry.same_device[b * s->K + a] =
                problem_devices_equal(s->p, a, b);
    if (s->n > EXACT_MIRROR_MOST_OPS)
        return 0;
    growth g = {.s = s};
    uint64_t *color, *next;
    UTIL_TAKE(&s->memory, color, (size_t)s->n);
    UTIL_TAKE(&s->memory, next, (size_t)s->n);
    UTIL_TAKE(&s->memory, g.image, (size_t)s->n);
    UTIL_TAKE(&s->memory, g.queue, (size_t)s->n);
    UTIL_TAKE(&s->memory, s->symmetry.mirror, EXACT_MIRROR_MOST_MIRRORS);
    if (s->memory.failed)
        return MOIRAI_EFAIL;
    hash_ops(s, color, next);
    g.color = color;
    return find_mirrors(s, &g);
}
