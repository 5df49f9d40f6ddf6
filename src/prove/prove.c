/* moirai prove: from a certificate to a bound, trusting nothing in it (docs/certificate.md, "The chain").
 *
 * The shape of the file is checked first (prove_shape.c), then what floats, cuts, and which blocks are copies of each other: every
 * operator is put into the block of the last cut that precedes it, by one sweep; that it also comes before the next cut needs one look at
 * its readers, of which one must be that cut or in that block. What is proven of a class of copies between pairs of devices is judged in
 * prove_class.c, and added up along the cuts there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

/* ---- what floats ---- */

/* What floats is left out, and the rest of the certificate is about the rest of the problem. */
static int read_floating(prove_chain *x, yyjson_val *root)
{
    const prove_problem *p = x->p;
    yyjson_val *list = prove_get(root, "floating");
    if (!list)
        return 0;
    int32_t *number, *stays, left = 0;
    bool *gone;
    size_t n;
    int rc = prove_list32(&number, &n, &x->memory, list, p->n - 1, "floating");
    UTIL_TAKE(&x->memory, stays, (size_t)p->n);
    UTIL_TAKE(&x->memory, gone, (size_t)p->n);
    if (rc || x->memory.failed)
        return rc ? rc : MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++) {
        if (gone[p->place[number[i]]])
            return prove_wrong("an operator floats twice");
        gone[p->place[number[i]]] = true;
    }
    for (int32_t i = 0; i < p->n; i++)
        if (!gone[i])
            stays[left++] = i;
    if (!left)
        return prove_wrong("all operators float");
    x->p = &x->part;
    x->proof->floating = (int64_t)n;
    return prove_problem_take(&x->part, p, left, stays);
}

/* ---- cuts ---- */

/* block[i]: how many cuts must be done before i starts. */
static int number_blocks(const prove_chain *x, const bool *is_cut, int32_t *block)
{
    const prove_problem *p = x->p;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t from = p->edge[e].from, *to = &block[p->edge[e].to];
        *to = UTIL_MAX(*to, block[from] + is_cut[from]);
    }
    for (int32_t c = 0; c < x->n_cuts; c++)
        if (block[x->cut[c]] != c)
            return moirai_error(MOIRAI_EVERIFY, "cut %d, operator '%s', does not come after the cuts before it", c,
                                p->name[x->cut[c]]);
    for (int32_t i = 0; i < p->n; i++) {
        int32_t mine = block[i] + is_cut[i];
        bool leads_on = mine >= x->n_cuts;
        for (int32_t e = p->off[i]; e < p->off[i + 1] && !leads_on; e++)
            leads_on = block[p->edge[e].to] == mine;
        if (!leads_on)
            return moirai_error(MOIRAI_EVERIFY, "operator '%s' need not come before cut %d, operator '%s'", p->name[i],
                                mine, p->name[x->cut[mine]]);
    }
    return 0;
}

/* Operators of every block, in order, with the cut before and the cut behind. */
static int list_blocks(prove_chain *x, const bool *is_cut, const int32_t *block)
{
    int32_t n = x->n_cuts + 1, *next;
    UTIL_TAKE(&x->memory, next, (size_t)n);
    UTIL_TAKE(&x->memory, x->block_off, (size_t)n + 1);
    UTIL_TAKE(&x->memory, x->block_op, (size_t)x->p->n + (size_t)x->n_cuts);
    if (x->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->p->n; i++) {
        x->block_off[block[i] + 1]++;
        x->block_off[block[i] + is_cut[i] + 1] += is_cut[i];
    }
    for (int32_t b = 0; b < n; b++) {
        x->block_off[b + 1] += x->block_off[b];
        next[b] = x->block_off[b];
    }
    for (int32_t i = 0; i < x->p->n; i++) { /* a cut comes behind all of its block and before all of the next */
        x->block_op[next[block[i]]++] = i;
        if (is_cut[i])
            x->block_op[next[block[i] + 1]++] = i;
    }
    return 0;
}

static int read_cuts(prove_chain *x, yyjson_val *root)
{
    const prove_problem *p = x->p;
    size_t n;
    bool *is_cut;
    int32_t *block;
    int rc = prove_list32(&x->cut, &n, &x->memory, prove_get(root, "cuts"), p->n - 1, "cuts");
    UTIL_TAKE(&x->memory, is_cut, (size_t)p->n);
    UTIL_TAKE(&x->memory, block, (size_t)p->n);
    if (rc || x->memory.failed)
        return rc ? rc : MOIRAI_EFAIL;
    x->n_cuts = x->proof->cuts = (int32_t)n;
    for (int32_t c = 0; c < x->n_cuts; c++) {
        x->cut[c] = p->place[x->cut[c]];
        if (is_cut[x->cut[c]])
            return moirai_error(MOIRAI_EVERIFY, "cut %d is twice a cut", c);
        is_cut[x->cut[c]] = true;
    }
    rc = number_blocks(x, is_cut, block);
    rc = rc ? rc : list_blocks(x, is_cut, block);
    rc = rc ? rc
            : prove_list32(&x->block_class, &n, &x->memory, prove_get(root, "block_class"), x->n_cuts, "block_class");
    if (!rc && n != (size_t)x->n_cuts + 1)
        rc = prove_wrong("block_class has not one number per block");
    return rc;
}

/* ---- classes ---- */

/* The first block of each class is kept, every other one compared with it. */
static int compare_blocks(prove_chain *x)
{
    int32_t n = x->n_cuts + 1;
    int rc = UTIL_TAKE(&x->memory, x->class_, (size_t)n) ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < n; i++) {
        int32_t c = x->block_class[i], begin = x->block_off[i];
        prove_block b, *to = c == x->n_classes ? &x->class_[x->n_classes++] : &b;
        if (c >= x->n_classes) {
            rc = prove_wrong("classes are not numbered in order");
            break;
        }
        rc = prove_block_new(to, x->p, x->block_off[i + 1] - begin, x->block_op + begin, i > 0, i < x->n_cuts);
        if (to != &b)
            continue;
        if (!rc && !prove_same_block(&x->class_[c], &b))
            rc = moirai_error(MOIRAI_EVERIFY, "block %d is not a copy of the first block of class %d", i, c);
        prove_block_free(&b);
    }
    x->proof->classes = x->n_classes;
    return rc;
}

static int read_classes(prove_chain *x, yyjson_val *list)
{
    size_t pairs = (size_t)x->p->K * (size_t)x->p->K, i, max;
    yyjson_val *value;
    if (yyjson_arr_size(list) != (size_t)x->n_classes)
        return prove_wrong("classes has not one entry per class");
    if (!PROVE_TAKE(&x->memory, x->bound, (size_t)x->n_classes * pairs))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, max, value) {
        int rc = prove_class(x->bound + i * pairs, x->proof, &x->class_[i], value);
        if (rc)
            return moirai_error_prefix(rc, "class %zu", i);
    }
    return 0;
}

/* ---- the certificate ---- */

static int read_claims(prove_chain *x, yyjson_val *root)
{
    moirai_proof *proof = x->proof;
    const char *digest = yyjson_get_str(prove_get(root, "problem_digest"));
    snprintf(proof->problem_digest, sizeof proof->problem_digest, "%s", digest ? digest : "");
    proof->certified_ns = prove_number(root, "certified_bound_ns");
    proof->lower_bound_ns = prove_number(root, "lower_bound_ns");
    int64_t n = prove_number(root, "operators");
    if (n != x->p->n)
        return moirai_error(MOIRAI_EVERIFY, "a certificate for %lld operators, a problem with %d", (long long)n,
                            x->p->n);
    return proof->certified_ns <= proof->lower_bound_ns ? 0 : prove_wrong("certified_bound_ns is above lower_bound_ns");
}

/* The chain and memory: of one request. */
static int prove_latency(int64_t *ns, prove_chain *x, yyjson_val *root)
{
    int64_t by_memory = 0;
    int rc = read_floating(x, root);
    rc = rc ? rc : read_cuts(x, root);
    rc = rc ? rc : compare_blocks(x);
    rc = rc ? rc : read_classes(x, prove_get(root, "classes"));
    rc = rc ? rc : prove_memory(&by_memory, x, prove_get(root, "memory"));
    if (rc)
        return rc;
    __int128 by_chain = 0;
    rc = prove_chain_cost(&by_chain, x, 1, NULL, NULL);
    *ns = UTIL_MAX(by_chain > INT64_MAX ? INT64_MAX : (int64_t)by_chain, by_memory);
    return rc;
}

/* Loads of the whole; and of N requests that are under way each takes its time, so that one is done every N-th of it. */
static int prove_rate(int64_t *ns, prove_chain *x, yyjson_val *root)
{
    int64_t one_ns = 0;
    int rc = 0;
    *ns = 0;
    if (prove_get(root, "loads")) {
        prove_block whole;
        bool by_bytes;
        rc = prove_block_new(&whole, x->p, x->p->n, NULL, false, false);
        rc = rc ? rc : prove_loads(ns, &by_bytes, x->proof, &whole, 0, 0, true, prove_get(root, "loads"));
        prove_block_free(&whole);
    }
    if (!rc && prove_get(root, "in_flight")) {
        int64_t most = prove_number(root, "in_flight");
        rc = prove_latency(&one_ns, x, root);
        x->proof->in_flight = one_ns / most > *ns ? (int32_t)most : 0;
        *ns = UTIL_MAX(*ns, one_ns / most);
    }
    return rc;
}

static int prove_all(prove_chain *x, yyjson_val *root)
{
    moirai_proof *proof = x->proof;
    int rc = prove_shape(&proof->of_rate, root);
    rc = rc ? rc : read_claims(x, root);
    if (!rc && x->p->K > PROVE_MASK_DEVICES)
        rc = prove_many(&proof->proven_ns, proof, x->p, root);
    else
        rc = rc               ? rc
             : proof->of_rate ? prove_rate(&proof->proven_ns, x, root)
                              : prove_latency(&proof->proven_ns, x, root);
    if (!rc && proof->proven_ns < proof->certified_ns)
        rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed, %lld proven", (long long)proof->certified_ns,
                          (long long)proof->proven_ns);
    return rc;
}

/* What fails and was written for a problem of another name is most likely not forged but mistaken. The name alone
 * decides nothing: a proof that holds here holds, whatever it was made for. */
static int blame_name(int rc, const prove_problem *p, yyjson_val *root)
{
    const char *name = yyjson_get_str(prove_get(root, "problem"));
    if (rc != MOIRAI_EVERIFY || !name || !strcmp(name, p->title))
        return rc;
    return moirai_error_prefix(rc, "belongs to another problem, '%.80s', not to '%.80s'", name, p->title);
}

static void free_chain(prove_chain *x)
{
    for (int32_t i = 0; x->class_ && i < x->n_classes; i++)
        prove_block_free(&x->class_[i]);
    prove_problem_free(&x->part);
    util_release(&x->memory);
}

int moirai_prove_text(moirai_proof *out, const moirai_prove_file *problem, const moirai_prove_file *certificate,
                      const moirai_budget *budget)
{
    yyjson_doc *doc = NULL;
    prove_problem p;
    *out = (moirai_proof){0};
    int rc = budget ? moirai_budget_check(budget) : 0;
    if (rc)
        return rc;
    util_stop stop = budget ? util_stop_of(budget) : (util_stop){0};
    rc = prove_problem_read(&p, problem, budget ? &stop : NULL);
    rc = rc ? rc
            : util_json_open(&doc, certificate->text, certificate->length, certificate->label, "moirai-certificate");
    if (!rc) {
        prove_chain x = {.p = &p, .proof = out};
        rc = prove_all(&x, yyjson_doc_get_root(doc));
        if (rc == MOIRAI_EVERIFY && prove_go_on(&p)) /* less was judged than there was: that is no verdict */
            rc = MOIRAI_ELIMIT;
        rc = rc ? util_json_label(blame_name(rc, &p, yyjson_doc_get_root(doc)), certificate->label) : 0;
        free_chain(&x);
    }
    yyjson_doc_free(doc);
    prove_problem_free(&p);
    return rc;
}

int moirai_prove(moirai_proof *out, const char *problem, const char *certificate, const moirai_budget *budget)
{
    moirai_prove_file p = {.label = problem}, c = {.label = certificate};
    char *problem_text = NULL, *text = NULL;
    *out = (moirai_proof){0};
    int rc = util_file_read(&problem_text, &p.length, problem);
    rc = rc ? rc : util_file_read(&text, &c.length, certificate);
    p.text = problem_text;
    c.text = text;
    rc = rc ? rc : moirai_prove_text(out, &p, &c, budget);
    free(problem_text);
    free(text);
    return rc;
}
