/* Cuts, blocks and classes (docs/theory.md, Lemmas 1 and 2). One sweep each way through the topological order finds
 * all cuts: O(V+E).
 *
 * Networks repeat their layers. Two blocks are of one class if their operators, taken in topological order, agree
 * one by one in times, memory, allowed devices, groups, and in the edges and transfer times among themselves and with
 * their two cuts. That is decided by comparing sequences of integers: graphs that repeat a layer list it in the same
 * order each time, so no search for isomorphisms is needed, and a missed one costs time, never truth. O(V+E). */
#include "decompose/cuts.h"

#include <stdlib.h>
#include <string.h>

#include "util/group.h"
#include "util/util.h"

void decompose_cuts_free(decompose_cuts *s)
{
    if (!s)
        return;
    util_release(&s->memory);
    free(s);
}

/* first_reader[v]: least position of a successor; last_source[v]: greatest position of a predecessor; `gone` (may be
 * NULL) marks operators that are left out. */
static void reach_positions(const moirai_problem *p, const bool *gone, int32_t *first_reader, int32_t *last_source)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        first_reader[i] = p->n_ops;
        last_source[i] = -1;
    }
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t from = p->tensor_producer[p->edge_tensor[e]], to = p->edge_reader[e];
        if (gone && (gone[from] || gone[to]))
            continue;
        first_reader[from] = UTIL_MIN(first_reader[from], p->topo_rank[to]);
        last_source[to] = UTIL_MAX(last_source[to], p->topo_rank[from]);
    }
}

/* ends[q] counts what stops being open at position q; `open` is the number open right after position z. */
static void mark_cuts(const moirai_problem *p, const bool *gone, const int32_t *first_reader,
                      const int32_t *last_source, int32_t *ends, bool *is_cut)
{
    int32_t n = p->n_ops, open = 0;
    memset(ends, 0, sizeof *ends * ((size_t)n + 1));
    for (int32_t i = 0; i < n; i++)
        ends[first_reader[i]] += !(gone && gone[i]);
    for (int32_t z = 0; z < n; z++) {
        bool here = !(gone && gone[p->topo[z]]);
        open += here - ends[z];
        is_cut[z] = here && open == 1;
    }
    memset(ends, 0, sizeof *ends * ((size_t)n + 1));
    for (int32_t i = 0; i < n; i++)
        ends[last_source[i] + 1] += !(gone && gone[i]);
    open = 0;
    for (int32_t z = n - 1; z >= 0; z--) {
        open += !(gone && gone[p->topo[z]]) - ends[z + 1];
        is_cut[z] = is_cut[z] && open == 1;
    }
}

int decompose_cuts_find(bool *is_cut, const moirai_problem *p, const bool *gone)
{
    size_t n = (size_t)p->n_ops;
    int32_t *scratch = util_alloc(3 * n + 1, sizeof *scratch);
    if (!scratch)
        return MOIRAI_EFAIL;
    reach_positions(p, gone, scratch, scratch + n);
    mark_cuts(p, gone, scratch, scratch + n, scratch + 2 * n, is_cut);
    free(scratch);
    return 0;
}

int decompose_cuts_clean(bool *clean, const moirai_problem *p)
{
    size_t n = (size_t)p->n_ops;
    bool *is_cut = util_alloc(n, sizeof *is_cut);
    int32_t *last_reader = util_alloc(n, sizeof *last_reader), furthest = -1;
    int rc = is_cut && last_reader ? decompose_cuts_find(is_cut, p, NULL) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        last_reader[i] = -1;
    for (int32_t e = 0; e < p->n_edges && !rc; e++) {
        int32_t from = p->tensor_producer[p->edge_tensor[e]];
        last_reader[from] = UTIL_MAX(last_reader[from], p->topo_rank[p->edge_reader[e]]);
    }
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        clean[p->topo[z]] = is_cut[z] && furthest <= z;
        furthest = UTIL_MAX(furthest, last_reader[p->topo[z]]);
    }
    free(is_cut);
    free(last_reader);
    return rc;
}

static int find_cuts(decompose_cuts *s, const moirai_problem *p, const bool *chosen)
{
    size_t n = (size_t)p->n_ops;
    bool *is_cut = util_alloc(n, sizeof *is_cut);
    int rc = is_cut ? decompose_cuts_find(is_cut, p, NULL) : MOIRAI_EFAIL;
    if (!rc) {
        for (size_t z = 0; z < n; z++) {
            is_cut[z] = is_cut[z] && (!chosen || chosen[p->topo[z]]);
            s->n_cuts += is_cut[z];
        }
        s->n_blocks = s->n_cuts + 1;
        UTIL_TAKE(&s->memory, s->number, n);
        UTIL_TAKE(&s->memory, s->cut, (size_t)s->n_cuts);
        UTIL_TAKE(&s->memory, s->block_first, (size_t)s->n_blocks);
        UTIL_TAKE(&s->memory, s->block_size, (size_t)s->n_blocks);
        UTIL_TAKE(&s->memory, s->block_class, (size_t)s->n_blocks);
        rc = util_taken_all(&s->memory);
    }
    if (!rc) {
        int32_t block = 0, first = 0;
        memset(s->number, 0xff, n * sizeof *s->number); /* MOIRAI_NONE */
        for (int32_t z = 0; z < p->n_ops; z++)
            if (is_cut[z]) {
                s->cut[block] = p->topo[z];
                s->block_first[block] = first;
                s->block_size[block++] = z - first;
                first = z + 1;
            }
        s->block_first[block] = first;
        s->block_size[block] = p->n_ops - first;
    }
    free(is_cut);
    return rc;
}

typedef struct classifying {
    const moirai_problem *p;
    const decompose_cuts *s;
} classifying;

/* Number of `op` inside the block: 0 entry, 1.. interior, size+1 exit, -1 elsewhere. */
static int32_t local_number(const moirai_problem *p, const decompose_cuts *s, int32_t block, int32_t op)
{
    int32_t z = p->topo_rank[op], first = s->block_first[block], size = s->block_size[block];
    return z >= first - 1 && z <= first + size ? z - first + 1 : -1;
}

static void spell_inputs(util_spelling *w, const moirai_problem *p, const decompose_cuts *s, int32_t block, int32_t op)
{
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], from = p->tensor_producer[t], number = local_number(p, s, block, from);
        if (number < 0)
            continue;
        util_spell(w, -2 - number);
        util_spell(w, t - p->op_out[p->op_out_off[from]]);
        util_spell(w, p->tensor_class[t]);
        util_spell(w, p->tensor_bytes[t]);
    }
}

/* Groups are spelled by the local number of their first member; what a group has outside is not compared
 * (nothing that is computed per block looks at it). */
static void spell_op(util_spelling *w, const moirai_problem *p, const decompose_cuts *s, int32_t block, int32_t op)
{
    util_spell(w, p->op_memory_bytes[op]);
    util_spell(w, (int64_t)p->op_devices[op]);
    for (int32_t k = 0; k < p->n_devices; k++)
        util_spell(w, moirai_op_ns(p, op, k));
    int64_t group = -1;
    if (p->op_group[op] >= 0)
        for (int32_t z = 0; z < s->block_size[block] && group < 0; z++)
            if (p->op_group[p->topo[s->block_first[block] + z]] == p->op_group[op])
                group = z;
    util_spell(w, group);
    spell_inputs(w, p, s, block, op);
}

static void spell_block(util_spelling *w, const void *data, int32_t block)
{
    const classifying *x = data;
    const decompose_cuts *s = x->s;
    int32_t exit = decompose_exit(s, block);
    util_spell(w, s->block_size[block]);
    util_spell(w, (decompose_entry(s, block) >= 0) + 2 * (exit >= 0));
    for (int32_t z = 0; z < s->block_size[block]; z++)
        spell_op(w, x->p, s, block, x->p->topo[s->block_first[block] + z]);
    if (exit >= 0)
        spell_inputs(w, x->p, s, block, exit);
}

static int classify(decompose_cuts *s, const moirai_problem *p)
{
    UTIL_TAKE(&s->memory, s->class_block, (size_t)s->n_blocks);
    UTIL_TAKE(&s->memory, s->class_count, (size_t)s->n_blocks);
    int rc = util_taken_all(&s->memory);
    rc = rc ? rc
            : util_group(s->block_class, s->class_block, &s->n_classes, s->n_blocks, spell_block, &(classifying){p, s});
    for (int32_t i = 0; !rc && i < s->n_blocks; i++)
        s->class_count[s->block_class[i]]++;
    return rc;
}

/* A plan's length in units stays below 2^54, an eighth of what prices take for "does not fit", with room for bytes
 * beside it. A plan that is any good takes no longer than all operators one after the other on their slowest devices
 * with one transfer of every tensor. Up to 69 s of that a nanosecond has 2^18 units; from then on fewer. */
static int choose_unit(int64_t *out, const moirai_problem *p)
{
    int64_t K = p->n_devices, unit = DECOMPOSE_MOST_UNITS, *least = util_alloc((size_t)p->n_classes, sizeof *least);
    __int128 sum = 0;
    if (!least)
        return MOIRAI_EFAIL;
    for (int32_t c = 0; c < p->n_classes; c++) {
        least[c] = INT64_MAX;
        for (int64_t a = 0; a < K * K; a++)
            if (a / K != a % K)
                least[c] = UTIL_MIN(least[c], p->class_transfer_ns[c * K * K + a]);
    }
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < K; k++)
            most = UTIL_MAX(most, moirai_op_ns(p, i, k));
        sum += most;
    }
    for (int32_t t = 0; t < p->n_tensors && K > 1; t++)
        sum += least[p->tensor_class[t]];
    free(least);
    while (unit > 1 && sum > DECOMPOSE_MOST_LENGTH / unit)
        unit /= 2;
    *out = unit;
    return 0;
}

int decompose_cuts_new(decompose_cuts **out, const moirai_problem *p)
{
    return decompose_cuts_chosen(out, p, NULL);
}

int decompose_cuts_chosen(decompose_cuts **out, const moirai_problem *p, const bool *chosen)
{
    *out = NULL;
    decompose_cuts *s = util_alloc(1, sizeof *s);
    int rc = s ? find_cuts(s, p, chosen) : MOIRAI_EFAIL;
    rc = rc ? rc : classify(s, p);
    rc = rc ? rc : choose_unit(&s->unit, p);
    if (rc)
        decompose_cuts_free(s);
    else
        *out = s;
    return rc;
}
