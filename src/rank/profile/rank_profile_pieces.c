/* The distinct pieces of a network: made by rank 0, known to all. */
#include "rank/profile/rank_profile_job.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/coarsen.h>
#include "onnx/onnx_network.h"
#include "onnx/onnx_piece.h"
#include "util/util.h"

/* Rank 0's tools while it cuts. */
typedef struct cutter {
    profile_job *job;
    onnx_network *from;
    util_names *seen;     /* content -> piece */
    profile_key *content; /* [piece] owns the names */
    int32_t *member;      /* operators of the network in the piece at hand */
    size_t capacity;
} cutter;

static int list_members(cutter *c, int32_t op, int32_t *n)
{
    const moirai_graph *g = c->job->graph;
    int32_t first = g->op_member_off[op], last = g->op_member_off[op + 1];
    *n = first == last ? 1 : last - first;
    if (util_grow(&c->member, &c->capacity, (size_t)*n, sizeof *c->member))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < *n; i++) {
        const char *name = first == last ? g->op_name[op] : g->op_member[first + i];
        c->member[i] = moirai_graph_find(c->from->graph, name);
        if (c->member[i] == MOIRAI_NONE)
            return moirai_error(MOIRAI_EFAIL, "operator '%.200s' is not in the network", name);
    }
    return 0;
}

/* An operator that can't be cut out has no piece: it is estimated later. */
static int cut_one(cutter *c, int32_t op)
{
    profile_job *j = c->job;
    uint8_t *data;
    size_t length;
    int32_t n;
    int rc = list_members(c, op, &n);
    if (rc)
        return rc;
    j->piece_of_op[op] = -1;
    if (onnx_piece_make(&data, &length, c->from, c->member, n))
        return 0;
    profile_key *key = &c->content[j->n_pieces];
    *key = rank_profile_key(data, length, "");
    int32_t at = util_names_put(c->seen, key->text, j->n_pieces);
    if (at == j->n_pieces) {
        j->piece[j->n_pieces++] = (profile_piece){data, length};
    } else {
        free(data);
        if (at < 0)
            return at;
    }
    j->piece_of_op[op] = at;
    return 0;
}

/* The network as one piece, in an order in which it can run. That it can't be made costs the verdict its surety, no more. */
static int cut_whole(cutter *c)
{
    const moirai_graph *g = c->from->graph;
    profile_job *j = c->job;
    if (util_grow(&c->member, &c->capacity, (size_t)g->n_ops, sizeof *c->member))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < g->n_ops; i++)
        if (!util_add64(&j->weight_bytes, j->weight_bytes, g->op_weight_bytes[i]))
            return 0;
    memcpy(c->member, g->topo, (size_t)g->n_ops * sizeof *c->member);
    if (onnx_piece_make(&j->whole.data, &j->whole.length, c->from, c->member, g->n_ops))
        j->whole = (profile_piece){0};
    return 0;
}

static int cut_all(cutter *c, const moirai_onnx_options *options, const char *rules_name)
{
    profile_job *j = c->job;
    moirai_rules *rules = NULL;
    int rc = moirai_rules_open(&rules, rules_name);
    rc = rc ? rc : onnx_network_open(&c->from, j->model_path, options);
    rc = rc ? rc : moirai_coarsen(&j->graph, c->from->graph, rules, NULL);
    moirai_rules_free(rules);
    if (rc)
        return rc;
    size_t n = (size_t)j->graph->n_ops;
    j->piece = util_alloc(n, sizeof *j->piece);
    j->piece_of_op = util_alloc(n, sizeof *j->piece_of_op);
    c->content = util_alloc(n + 1, sizeof *c->content);
    c->seen = util_names_new(n);
    if (!j->piece || !j->piece_of_op || !c->content || !c->seen)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < j->graph->n_ops && !rc; i++)
        rc = cut_one(c, i);
    return rc || !c->from->graph->n_ops ? rc : cut_whole(c);
}

int rank_profile_cut(profile_job *job, const moirai_onnx_options *options, const char *rules)
{
    cutter c = {.job = job};
    int rc = cut_all(&c, options, rules);
    util_names_free(c.seen);
    onnx_network_free(c.from);
    free(c.content);
    free(c.member);
    return rc;
}

static void share_one(profile_job *j, profile_piece *p)
{
    int64_t length = (int64_t)p->length;
    rank_world_bcast(&j->w, &length, sizeof length, 0);
    if (j->w.rank && length) {
        *p = (profile_piece){util_alloc((size_t)length, 1), (size_t)length};
        if (!p->data)
            rank_world_abort(&j->w, MOIRAI_EFAIL); /* the others wait in the middle of a message */
    }
    if (length)
        rank_world_bcast(&j->w, p->data, (size_t)length, 0);
}

int rank_profile_share(profile_job *j)
{
    int64_t n = j->n_pieces;
    rank_world_bcast(&j->w, &n, sizeof n, 0);
    if (j->w.rank)
        j->piece = util_alloc((size_t)n, sizeof *j->piece);
    if (!j->piece)
        return MOIRAI_EFAIL;
    j->n_pieces = (int32_t)n;
    for (int64_t i = 0; i < n; i++)
        share_one(j, &j->piece[i]);
    rank_world_bcast(&j->w, &j->weight_bytes, sizeof j->weight_bytes, 0);
    share_one(j, &j->whole);
    return 0;
}
