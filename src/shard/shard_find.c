/* All strips of a model: one from every product with weights that is in none yet, so that strips share no operator and all
 * of them may be cut together. Three passes in topological order: first strips that end in sums only, inside of which
 * no tensor is needed whole (a block's own products rather than the last of one block and the first of the next), then
 * those with results to be put together, then embeddings. Then what is cut another way and overlaps these: rows of
 * images (rows/shard_rows_find.c), samples of the batch. */
#include "shard/shard.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"
#include "util/hash.h"

#define MAX_STRIPS 4096   /* more than any network has layers; what is beyond stays whole */
#define WEIGHT_BYTES 1024 /* an operator with less is nobody's worry */

static const onnx_node *node_at(const moirai_shards *s, int32_t i)
{
    return &s->net->im.root->node[i];
}

static bool is_weight(const onnx_value *v)
{
    return v && v->constant && v->rank >= 2;
}

/* ---- seeds ---- */

/* The output of a product with weights, by columns or channels. */
static bool seed_of(shard_seed *seed, const moirai_shards *s, int32_t node)
{
    const onnx_node *n = node_at(s, node);
    const onnx_value *out = onnx_out(n, 0);
    *seed = (shard_seed){.node = node, .value = -1, .at = {0, 1, 1}};
    if (!s->op_name[node] || !out || !out->shaped || !out->rank || !onnx_in(n, 0) || !onnx_in(n, 1))
        return false;
    int64_t groups = 1;
    if (shard_is(n, "MatMul") || shard_is(n, "Gemm") || shard_is(n, "MatMulInteger")) {
        if (!is_weight(n->in[1]))
            return false;
        seed->at.axis = out->rank - 1;
    } else if ((shard_is(n, "Conv") || shard_is(n, "ConvTranspose")) && out->rank >= 3 && is_weight(n->in[1])) {
        seed->at.axis = 1;
        groups = shard_is(n, "Conv") ? onnx_attr_int(n->proto, "group", 1) : 1;
    } else if (shard_is(n, "Gather") && is_weight(n->in[0]) && !n->in[1]->constant) {
        seed->at.axis = out->rank - 1;
    } else {
        return false;
    }
    int64_t length = out->dim[seed->at.axis];
    if (groups > 1 && length % groups == 0) {
        seed->at.inner = length / groups;
        seed->free_entry = true;
    }
    seed->units = length / seed->at.inner;
    return true;
}

/* ---- what a strip is ---- */

/* A product of two tensors of the network, head by head; *heads: how many. */
static bool is_attention(const onnx_node *n, const shard_member *m, int64_t *heads)
{
    if (n->folded || !shard_is(n, "MatMul") || m->port[0].state != SHARD_CUT || m->port[1].state != SHARD_CUT ||
        m->port[n->n_in].state != SHARD_CUT || n->in[0]->constant || n->in[1]->constant)
        return false;
    *heads = n->out[0]->dim[m->port[n->n_in].at.axis];
    return true;
}

static void say_kind(const moirai_shards *s, shard_strip *x, const onnx_node *seed)
{
    bool attention = false;
    int64_t heads = 0;
    for (int32_t i = 0; i < x->n_members; i++)
        attention |= is_attention(node_at(s, x->member[i].node), &x->member[i], &heads);
    bool conv = shard_is(seed, "Conv") || shard_is(seed, "ConvTranspose");
    x->kind = attention                  ? "attention"
              : conv                     ? "conv"
              : shard_is(seed, "Gather") ? "embedding"
              : x->n_sums                ? "mlp"
                                         : "linear";
    x->unit = attention                               ? (heads == x->units ? "heads" : "head groups")
              : !conv                                 ? "columns"
              : x->units == onnx_out(seed, 0)->dim[1] ? "channels"
                                                      : "groups";
}

static bool is_outside(const moirai_shards *s, const shard_part *p, const int32_t *member_of)
{
    if (s->leaves[p->value])
        return true;
    for (int32_t e = s->use_off[p->value]; e < s->use_off[p->value + 1]; e++)
        if (!member_of[s->use[e].node])
            return true;
    return false;
}

void shard_count(const moirai_shards *s, shard_strip *x)
{
    int32_t *member_of = s->work.member_of;
    const onnx_scope *root = s->net->im.root;
    for (int32_t i = 0; i < x->n_members; i++)
        member_of[x->member[i].node] = i + 1;
    for (int32_t i = 0; i < x->n_members; i++) {
        const onnx_node *n = node_at(s, x->member[i].node);
        const shard_port *port = x->member[i].port;
        x->n_ops += s->op_name[x->member[i].node] != NULL;
        x->flops = n->folded || x->flops < 0 ? x->flops : n->cost_known ? onnx_add(x->flops, n->flops) : MOIRAI_UNKNOWN;
        for (int32_t k = 0; k < n->n_in; k++)
            if (port[k].state == SHARD_CUT && n->in[k]->tensor)
                x->weight_bytes = onnx_add(x->weight_bytes, n->in[k]->bytes);
        for (int32_t k = 0; k < n->n_out; k++)
            x->n_sums += port[n->n_in + k].state == SHARD_PARTIAL;
    }
    for (int32_t i = 0; i < x->n_parts; i++)
        x->n_joins +=
            !x->part[i].sliced && !root->value[x->part[i].value]->constant && is_outside(s, &x->part[i], member_of);
    for (int32_t i = 0; i < x->n_members; i++)
        member_of[x->member[i].node] = 0;
}

/* ---- names ---- */

static bool has_weights(const moirai_shards *s, const shard_strip *x, int32_t i)
{
    const shard_member *m = &x->member[i];
    const onnx_node *n = node_at(s, m->node);
    for (int32_t k = 0; k < n->n_in; k++)
        if ((m->port[k].state == SHARD_CUT || x->map) && is_weight(n->in[k]))
            return s->op_name[m->node] != NULL;
    return false;
}

/* "block0" of "block0/Conv": what block0/Conv_3 and block0/Conv_9 have in common says no more. */
static size_t without_type(const char *name, size_t end)
{
    char word[64];
    size_t begin = end;
    while (begin > 0 && name[begin - 1] != '/')
        begin--;
    if (end - begin >= sizeof word)
        return end;
    memcpy(word, name + begin, end - begin);
    word[end - begin] = 0;
    return onnx_rule_find("", word) ? (begin ? begin - 1 : 0) : end;
}

/* What the names of its operators with weights have in common, up to a separator. */
static void common_name(const moirai_shards *s, const shard_strip *x, char *text, size_t size)
{
    const char *first = NULL;
    size_t length = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < x->n_members; i++) {
        const char *name = s->op_name[x->member[i].node];
        if (!has_weights(s, x, i))
            continue;
        if (!first) {
            first = name;
            length = strlen(name);
        }
        size_t k = 0;
        while (k < length && name[k] == first[k])
            k++;
        length = k;
        n++;
    }
    first = first ? first : x->n_members && s->op_name[x->member[0].node] ? s->op_name[x->member[0].node] : "";
    length = n ? length : strlen(first);
    const char *separators = n > 1 ? "/._" : "/";
    size_t end = length;
    while (end > 0 && !(strchr(separators, first[end - 1]) && (n > 1 || end < length)))
        end--;
    while (end > 0 && strchr(separators, first[end - 1]))
        end--;
    end = without_type(first, end);
    end = end ? end : strlen(first);
    while (*first == '/' && end > 1) {
        first++;
        end--;
    }
    snprintf(text, size, "%.*s", (int)UTIL_MIN(end, 200), first);
}

/* Names are typed: nothing that the grammar of cuts needs is in them. */
static void make_typeable(char *text)
{
    for (char *c = text; *c; c++)
        if (strchr(":;,#", *c) || isspace((unsigned char)*c) || iscntrl((unsigned char)*c))
            *c = '_';
}

static int name_strip(moirai_shards *s, shard_strip *x, util_names *taken)
{
    char common[256], text[320];
    if (strcmp(x->kind, "batch"))
        common_name(s, x, common, sizeof common);
    else
        common[0] = 0;
    make_typeable(common);
    const char *last = strrchr(common, '/');
    bool said = !strcmp(last ? last + 1 : common, x->kind); /* "layer0/attention" is a good name as it is */
    const char *slash = *common && !said ? "/" : "", *kind = said ? "" : x->kind;
    snprintf(text, sizeof text, "%s%s%s", common, slash, kind);
    for (int k = 2; util_names_get(taken, text) >= 0; k++)
        snprintf(text, sizeof text, "%s%s%s~%d", common, slash, kind, k);
    x->name = onnx_text(&s->arena, "%s", text);
    return x->name && util_names_put(taken, x->name, (int32_t)s->n_strips) >= 0 ? 0 : MOIRAI_EFAIL;
}

/* ---- classes ---- */

static uint64_t mix(uint64_t hash, int64_t number)
{
    return util_hash_walk(hash, &number, sizeof number);
}

static uint64_t signature(const moirai_shards *s, const shard_strip *x)
{
    uint64_t hash = mix(UTIL_HASH_BEGIN, x->units);
    for (int32_t i = 0; i < x->n_members; i++) {
        const onnx_node *n = node_at(s, x->member[i].node);
        if (n->folded) /* renamed weights are weights */
            continue;
        hash = util_hash_walk(hash, n->rule->type, strlen(n->rule->type));
        for (int32_t k = 0; k < n->n_in + n->n_out; k++) {
            const onnx_value *v = shard_value(n, k);
            const shard_port *p = &x->member[i].port[k];
            hash = mix(mix(mix(mix(hash, p->state), p->at.axis), p->at.outer), p->at.inner);
            hash = mix(mix(hash, v ? v->type : -1), v ? v->rank : -1);
            for (int32_t d = 0; v && d < v->rank; d++)
                hash = mix(hash, v->dim[d]);
        }
    }
    return hash;
}

int shard_add_strip(moirai_shards *s, shard_strip *x, util_names *taken)
{
    int rc = name_strip(s, x, taken);
    rc = rc ? rc : util_grow(&s->strip, &s->strips_capacity, s->n_strips + 1, sizeof *s->strip);
    if (rc)
        return rc;
    x->signature = signature(s, x);
    int32_t classes = 0;
    x->class_number = -1;
    for (size_t i = 0; i < s->n_strips; i++) {
        if (s->strip[i].signature == x->signature && !strcmp(s->strip[i].kind, x->kind))
            x->class_number = s->strip[i].class_number;
        classes = UTIL_MAX(classes, s->strip[i].class_number + 1);
    }
    x->class_number = x->class_number < 0 ? classes : x->class_number;
    s->strip[s->n_strips++] = *x;
    for (int32_t i = 0; i < x->n_members && !x->alternative; i++)
        s->taken[x->member[i].node] = node_at(s, x->member[i].node)->folded ? 0 : (int32_t)s->n_strips;
    return 0;
}

/* ---- what is in none ---- */

int shard_refuse(moirai_shards *s, int32_t node, const char *why)
{
    int rc = util_grow(&s->refusal, &s->refusals_capacity, s->n_refusals + 1, sizeof *s->refusal);
    if (!rc)
        s->refusal[s->n_refusals++] = (moirai_shard_refusal){s->op_name[node], node_at(s, node)->proto->op_type, why};
    return rc;
}

static bool holds_much(const onnx_node *n)
{
    for (int32_t k = 0; k < n->n_in; k++)
        if (n->in[k] && n->in[k]->constant && n->in[k]->stored_bytes >= WEIGHT_BYTES)
            return true;
    return false;
}

/* why[node]: what kept it out of every strip. */
static int find_columns(moirai_shards *s, util_names *taken, const char **why)
{
    const onnx_scope *root = s->net->im.root;
    int rc = 0;
    for (int64_t i = 0; i < 3ll * s->n_nodes && !rc; i++) {
        int32_t node = root->order[i % s->n_nodes];
        int pass = (int)(i / s->n_nodes);
        shard_seed seed;
        shard_strip x;
        if (s->taken[node] || s->n_strips == MAX_STRIPS || !seed_of(&seed, s, node) ||
            (shard_is(node_at(s, node), "Gather") && pass < 2))
            continue;
        rc = shard_grow(s, &seed, &x, &why[node]);
        if (rc || !x.n_members)
            continue;
        shard_count(s, &x);
        if (pass == 0 && x.n_joins)
            continue;
        say_kind(s, &x, node_at(s, node));
        rc = shard_add_strip(s, &x, taken);
    }
    return rc;
}

static int refuse_all(moirai_shards *s, const char *const *why, const bool *in_rows)
{
    int rc = 0;
    for (int32_t node = 0; node < s->n_nodes && !rc; node++)
        if (s->op_name[node] && !s->taken[node] && !in_rows[node] && (why[node] || holds_much(node_at(s, node))))
            rc = shard_refuse(s, node,
                              why[node] ? why[node] : "it is no product with weights that a rule knows how to cut");
    return rc;
}

/* The first input with more than one sample. */
static int find_batch(moirai_shards *s, util_names *taken)
{
    const onnx_scope *root = s->net->im.root;
    for (int32_t i = 0; i < s->n_values; i++) {
        const onnx_value *v = root->value[i];
        shard_strip x;
        const char *why;
        if (v->producer >= 0 || v->constant || !v->shaped || v->rank < 1 || v->dim[0] < 2 || v->known)
            continue;
        shard_seed seed = {.node = -1, .value = i, .at = {0, 1, 1}, .units = v->dim[0], .batch = true};
        int rc = shard_grow(s, &seed, &x, &why);
        if (rc || !x.n_members)
            return rc;
        shard_count(s, &x);
        if (x.flops == 0)
            return 0;
        x.kind = "batch";
        x.unit = "samples";
        x.alternative = true;
        return shard_add_strip(s, &x, taken);
    }
    return 0;
}

int shard_find(moirai_shards *s)
{
    util_names *taken = util_names_new(64);
    const char **why = util_alloc((size_t)s->n_nodes, sizeof *why);
    bool *in_rows = util_alloc((size_t)s->n_nodes, sizeof *in_rows);
    int rc = taken && why && in_rows ? find_columns(s, taken, why) : MOIRAI_EFAIL;
    rc = rc ? rc : shard_rows_find(s, taken, in_rows);
    rc = rc ? rc : find_batch(s, taken);
    rc = rc ? rc : refuse_all(s, why, in_rows);
    util_names_free(taken);
    free(why);
    free(in_rows);
    return rc;
}
