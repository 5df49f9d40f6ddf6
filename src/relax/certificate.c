/* Prices and messages as a certificate (docs/certificate.md, "Prices of loads").
 *
 * The verifier numbers operators in topological order and edges by producer, output and reader. Blocks are numbered so already; for the
 * whole the numbers are found here. Leaves come as cases were divided (cases.c), those of one device as neighbours, so that the tree is
 * read off their lists. Only edges that have a message are written, in multiples of the leaf's unit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decompose/cuts.h"
#include "relax/messages.h"
#include "relax/view.h"
#include "util/json.h"
#include "util/util.h"

typedef struct writing {
    util_writer *w;
    int32_t K, R, n_edges;
    const int32_t *op;  /* operator -> number; NULL: as they are */
    int32_t *by_number; /* of an edge -> edge; NULL: as they are */
} writing;

/* ---- numbers ---- */

/* The format's numbers of edges: by producer, output and reader, all in topological order. O(V + E). */
static void number_whole(writing *x, const moirai_problem *p)
{
    int32_t *next = util_alloc((size_t)p->n_tensors, sizeof *next), at = 0;
    x->by_number = util_alloc((size_t)p->n_edges, sizeof *x->by_number);
    x->op = p->topo_rank;
    x->w->failed |= !next || !x->by_number;
    for (int32_t z = 0; z < p->n_ops && !x->w->failed; z++)
        for (int32_t o = p->op_out_off[p->topo[z]]; o < p->op_out_off[p->topo[z] + 1]; o++) {
            int32_t t = p->op_out[o];
            next[t] = at;
            at += p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
        }
    for (int32_t z = 0; z < p->n_ops && !x->w->failed; z++)
        for (int32_t j = p->op_in_off[p->topo[z]]; j < p->op_in_off[p->topo[z] + 1]; j++)
            x->by_number[next[p->op_in[j]]++] = p->op_in_edge[j];
    free(next);
}

static bool silent(const int64_t *message, int32_t K)
{
    for (int32_t k = 0; k < K; k++)
        if (message[k])
            return false;
    return true;
}

int64_t relax_proof_size(const relax_proof *proof, int32_t n_edges, int32_t n_devices)
{
    int64_t n = 0, K = n_devices;
    for (int32_t i = 0; i < proof->n_leaves; i++)
        for (int32_t e = 0; e < n_edges && proof->leaf[i].from; e++)
            n += (K + 1) *
                 (!silent(proof->leaf[i].from + e * K, n_devices) + !silent(proof->leaf[i].to + e * K, n_devices));
    return n;
}

int relax_proof_of_devices(relax_proof *out, const moirai_problem *p, const int64_t *price, const util_stop *stop)
{
    relax_leaf leaf = {0};
    UTIL_TAKE(&leaf.memory, leaf.price, (size_t)schedule_resources(p));
    int rc = util_taken_all(&leaf.memory);
    if (!rc)
        memcpy(leaf.price, price, sizeof *price * (size_t)p->n_devices);
    rc = rc ? rc : relax_evaluate(&leaf.proven_ns, p, &leaf, false, stop);
    rc = rc ? rc : relax_proof_alone(out, &leaf);
    relax_leaf_clear(&leaf);
    return rc;
}

/* ---- a proof ---- */

static void write_messages(writing *x, const char *key, const int64_t *message, int64_t unit)
{
    util_writer_pair_open(x->w, key, '[');
    for (int32_t number = 0; number < x->n_edges; number++) {
        const int64_t *of = message + (int64_t)(x->by_number ? x->by_number[number] : number) * x->K;
        if (silent(of, x->K))
            continue;
        util_writer_int(x->w, number);
        for (int32_t k = 0; k < x->K; k++)
            util_writer_int(x->w, of[k] / unit);
    }
    util_writer_close(x->w, ']');
}

/* Those that have a price: where they begin and end, and a price for each device. */
static void write_shifts(writing *x, const relax_leaf *leaf)
{
    util_writer_pair_open(x->w, "shifts", '[');
    for (int32_t s = 0; s < leaf->rows.n_shifts; s++) {
        const int64_t *price = leaf->price + x->R + (int64_t)s * x->K;
        if (silent(price, x->K))
            continue;
        util_writer_int(x->w, leaf->rows.shift[s].head_ns);
        util_writer_int(x->w, leaf->rows.shift[s].tail_ns);
        for (int32_t k = 0; k < x->K; k++)
            util_writer_int(x->w, price[k]);
    }
    util_writer_close(x->w, ']');
}

/* Those that have a price: it, how many operators, and these. */
static void write_paths(writing *x, const relax_leaf *leaf)
{
    const int64_t *price = leaf->price + x->R + (int64_t)leaf->rows.n_shifts * x->K;
    util_writer_pair_open(x->w, "paths", '[');
    for (int32_t a = 0; a < leaf->rows.n_paths; a++) {
        if (!price[a])
            continue;
        util_writer_int(x->w, price[a]);
        util_writer_int(x->w, leaf->rows.path_off[a + 1] - leaf->rows.path_off[a]);
        for (int32_t at = leaf->rows.path_off[a]; at < leaf->rows.path_off[a + 1]; at++)
            util_writer_int(x->w, x->op ? x->op[leaf->rows.path_op[at]] : leaf->rows.path_op[at]);
    }
    util_writer_close(x->w, ']');
}

static void write_leaf(writing *x, const relax_leaf *leaf)
{
    util_writer_break(x->w);
    util_writer_open(x->w, '{');
    util_writer_pair_longs(x->w, "prices", leaf->price, x->R);
    if (leaf->rows.n_shifts > 0)
        write_shifts(x, leaf);
    if (leaf->rows.n_paths > 0)
        write_paths(x, leaf);
    if (leaf->byte_price)
        util_writer_pair_longs(x->w, "byte_prices", leaf->byte_price, x->K);
    if (leaf->from) {
        util_writer_pair_int(x->w, "unit", leaf->unit);
        write_messages(x, "from", leaf->from, leaf->unit);
        write_messages(x, "to", leaf->to, leaf->unit);
    }
    util_writer_close(x->w, '}');
}

/* Leaves first .. end - 1, which agree on their first `depth` operators; none: the operator may not be there. */
static void write_case(writing *x, const relax_leaf *leaf, int32_t first, int32_t end, int32_t depth)
{
    if (end - first == 1 && leaf[first].n_fixed == depth) {
        write_leaf(x, &leaf[first]);
        return;
    }
    util_writer_break(x->w);
    util_writer_open(x->w, '{');
    if (first < end) {
        int32_t op = leaf[first].fixed[depth].op;
        util_writer_pair_int(x->w, "op", x->op ? x->op[op] : op);
        util_writer_pair_open(x->w, "cases", '[');
        for (int32_t k = 0; k < x->K; k++) {
            int32_t next = first;
            while (next < end && leaf[next].fixed[depth].device == k)
                next++;
            write_case(x, leaf, first, next, depth + 1);
            first = next;
        }
        util_writer_close(x->w, ']');
    }
    util_writer_close(x->w, '}');
}

static void write_proof(writing *x, const relax_proof *proof, int32_t depth)
{
    util_writer_key(x->w, "loads");
    write_case(x, proof->leaf, 0, proof->n_leaves, depth);
}

void relax_proof_write(util_writer *w, const relax_proof *proof, const moirai_problem *q)
{
    writing x = {.w = w, .K = q->n_devices, .R = schedule_resources(q), .n_edges = q->n_edges};
    write_proof(&x, proof, 0);
}

/* ---- blocks ---- */

void relax_certificate_cuts(util_writer *w, int32_t n_cuts, const int32_t *cut, const int32_t *block_class)
{
    util_writer_break(w);
    util_writer_pair_ints(w, "cuts", cut, n_cuts);
    util_writer_break(w);
    util_writer_pair_ints(w, "block_class", block_class, n_cuts + 1);
    util_writer_break(w);
    util_writer_pair_open(w, "classes", '[');
}

static void write_pair(writing *x, const relax_proof *proof, int32_t entry, int32_t exit, int32_t n_ends)
{
    util_writer_break(x->w);
    util_writer_open(x->w, '{');
    util_writer_pair_int(x->w, "entry", entry);
    util_writer_pair_int(x->w, "exit", exit);
    util_writer_pair_int(x->w, "lower_ns", proof->proven_ns);
    write_proof(x, proof, n_ends);
    util_writer_close(x->w, '}');
}

static void write_row(writing *x, const decompose_cuts *cuts, const relax_row_pair *pair, int32_t n_pairs)
{
    int32_t at = 0;
    relax_certificate_cuts(x->w, cuts->n_cuts, cuts->cut, cuts->block_class);
    for (int32_t c = 0; c < cuts->n_classes; c++) {
        util_writer_break(x->w);
        util_writer_open(x->w, '{');
        if (at < n_pairs && pair[at].class_ == c) {
            util_writer_pair_open(x->w, "pairs", '[');
            for (; at < n_pairs && pair[at].class_ == c; at++) {
                x->n_edges = pair[at].n_edges;
                write_pair(x, &pair[at].proof, pair[at].entry, pair[at].exit, pair[at].n_ends);
            }
            util_writer_close(x->w, ']');
        }
        util_writer_close(x->w, '}');
    }
    util_writer_close(x->w, ']');
}

/* The whole is one block without cuts; proof NULL: nothing is said of it. */
static void write_whole(writing *x, const relax_proof *proof)
{
    int32_t none = 0;
    relax_row_pair pair = {.n_edges = x->n_edges, .proof = proof ? *proof : (relax_proof){0}};
    write_row(x, &(decompose_cuts){.cut = &none, .block_class = &none, .n_classes = 1}, &pair, proof != NULL);
}

/* ---- the file ---- */

void relax_certificate_names(util_writer *w, const moirai_problem *p)
{
    char digest[32];
    snprintf(digest, sizeof digest, "%016" PRIx64, moirai_problem_digest(p));
    util_writer_begin(w, "moirai-certificate");
    util_writer_pair_string(w, "problem", p->name);
    util_writer_pair_string(w, "problem_digest", digest);
    util_writer_pair_int(w, "operators", p->n_ops);
}

static void write_all(util_writer *w, const relax_certificate *from)
{
    const moirai_problem *p = from->p;
    bool of_one = !from->rate || from->in_flight > 0; /* something is said of one request */
    writing x = {.w = w, .K = p->n_devices, .R = schedule_resources(p), .n_edges = p->n_edges};
    relax_certificate_names(w, p);
    if (from->rate)
        util_writer_pair_string(w, "objective", "rate");
    if (from->rate && from->in_flight > 0)
        util_writer_pair_int(w, "in_flight", from->in_flight);
    number_whole(&x, p);
    if (!w->failed && from->rate)
        write_proof(&x, from->rate, 0);
    if (!w->failed && of_one && !from->row)
        write_whole(&x, from->whole);
    free(x.by_number);
    x.by_number = NULL; /* blocks are numbered as the verifier does it */
    x.op = NULL;
    if (of_one && from->row)
        write_row(&x, from->row->cuts, from->row->pair, from->row->n_pairs);
    util_writer_break(w);
    util_writer_pair_int(w, "lower_bound_ns", UTIL_MAX(from->lower_bound_ns, from->proven_ns));
    util_writer_pair_int(w, "certified_bound_ns", from->proven_ns);
    util_writer_close(w, '}');
}

int relax_certificate_write(const relax_certificate *from, const char *path)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_save(&w, path);
}

char *relax_certificate_text(const relax_certificate *from, size_t *length)
{
    util_writer w;
    write_all(&w, from);
    return util_writer_take(&w, length);
}
