/* Blocks in a row: the relaxation of each between two devices.
 *
 * One relaxation of the whole may share out the work of the first block and of the last at the same time. But blocks
 * between cuts share no time (docs/theory.md, Lemma 2, Theorem 4): pairs begin with their longest paths; those on the
 * shortest path through the cuts are solved, which moves it, until all pairs on it are. Then once more, with cases and
 * more rounds. Copies of a block are solved once. Plans: the devices of each pair's choice, along the path of least loads.
 *
 * **Ends alone.** Where devices are more than three, pairs are too many to be relaxed one by one. With one end of a block on a device and the
 * other one anywhere, the relaxation proves something of all pairs with that end: there are K such cases of an end, not K^2. And the numbers
 * of one are tried for all others, with two devices exchanged. Where devices and links are much alike, what is slower proves at least as much;
 * it is evaluated in a fraction of the time that finding prices takes. */
#include <stdlib.h>
#include <string.h>

#include "decompose/block.h"
#include "relax/chain.h"
#include "relax/messages.h"
#include "relax/relax_tuning.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

/* ---- opening ---- */

/* Longest paths from an entry on k to an exit on each device. */
static void begin_pairs(relax_chain *c, int32_t class_, int32_t k, int64_t *head, uint64_t *devices)
{
    const decompose_block *b = c->block[class_];
    const moirai_problem *q = &b->problem;
    memcpy(devices, q->op_devices, sizeof *devices * (size_t)q->n_ops);
    if (b->entry != MOIRAI_NONE)
        devices[b->entry] = UINT64_C(1) << k;
    schedule_paths paths = {.p = q, .devices = devices};
    int64_t all_ns = b->exit == MOIRAI_NONE ? schedule_longest_path(&paths) : 0;
    if (b->exit != MOIRAI_NONE)
        schedule_heads(head, &paths);
    for (int32_t l = 0; l < c->K; l++) {
        relax_pair *y = relax_pair_at(c, class_, k, l);
        y->choice.load_ns = RELAX_NEVER;
        y->level = b->n_interior < RELAX_CHAIN_LEAST_BLOCK ? RELAX_CHAIN_LEVELS : 0;
        y->path_ns = y->lower_ns = b->exit == MOIRAI_NONE ? all_ns : head[(int64_t)b->exit * c->K + l];
    }
}

static int open_class(relax_chain *c, int32_t class_)
{
    for (int32_t k = 0; k < c->K; k++)
        relax_pair_at(c, class_, k, c->K)->level = relax_pair_at(c, class_, c->K, k)->level = -1;
    int rc = decompose_block_new(&c->block[class_], c->p, c->cuts, c->cuts->class_block[class_]);
    if (rc)
        return rc;
    decompose_block *b = c->block[class_];
    size_t n = (size_t)b->problem.n_ops;
    int64_t *head = util_alloc(n * (size_t)c->K, sizeof *head);
    uint64_t *devices = util_alloc(n, sizeof *devices), all = UINT64_MAX >> (64 - c->K);
    if (b->entry != MOIRAI_NONE) /* copies may have ends on other devices */
        b->problem.op_devices[b->entry] = all;
    if (b->exit != MOIRAI_NONE)
        b->problem.op_devices[b->exit] = all;
    rc = head && devices ? 0 : MOIRAI_EFAIL;
    for (int32_t k = 0; k < c->K && !rc; k++)
        begin_pairs(c, class_, k, head, devices);
    free(head);
    free(devices);
    return rc;
}

static int open_chain(relax_chain *c)
{
    int64_t K3 = (int64_t)c->K * c->K * c->K;
    int rc = c->K > RELAX_CHAIN_MOST_DEVICES || (int64_t)c->p->n_edges * K3 > RELAX_CHAIN_MOST_WORK
                 ? MOIRAI_ELIMIT
                 : decompose_cuts_new(&c->cuts, c->p);
    if (rc)
        return rc;
    int32_t large = 0;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++)
        large += c->cuts->block_size[b] >= RELAX_CHAIN_LEAST_BLOCK;
    size_t K = (size_t)c->K, cuts = (size_t)c->cuts->n_cuts, classes = (size_t)c->cuts->n_classes;
    if (large < 2 || classes * K * K > RELAX_CHAIN_MOST_PAIRS)
        return MOIRAI_ELIMIT;
    UTIL_TAKE(&c->memory, c->block, classes);
    UTIL_TAKE(&c->memory, c->pair, classes * (K + 1) * (K + 1));
    UTIL_TAKE(&c->memory, c->reach, (cuts + 1) * K);
    UTIL_TAKE(&c->memory, c->before, (cuts + 1) * K);
    UTIL_TAKE(&c->memory, c->path, cuts);
    UTIL_TAKE(&c->memory, c->due, 2 * (cuts + 1));
    if (c->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < c->cuts->n_classes && !rc; i++)
        rc = util_stopped(&c->job->stop) ? MOIRAI_ELIMIT : open_class(c, i);
    return rc;
}

/* All but the cuts. */
static void close_chain(relax_chain *c)
{
    for (int32_t i = 0; c->cuts && c->block && i < c->cuts->n_classes; i++)
        decompose_block_free(c->block[i]);
    for (int64_t i = 0; c->cuts && c->pair && i < (int64_t)c->cuts->n_classes * (c->K + 1) * (c->K + 1); i++) {
        free(c->pair[i].choice.device);
        relax_answer_clear(&(relax_answer){.proof = c->pair[i].proof});
    }
    util_release(&c->memory);
}

/* ---- pairs ---- */

static void keep_answer(relax_pair *y, relax_answer *answer, bool proof)
{
    y->lower_ns = UTIL_MAX(y->lower_ns, answer->lower_ns);
    if (proof && answer->proof.proven_ns > UTIL_MAX(y->proof.proven_ns, y->path_ns)) {
        relax_proof before = y->proof;
        y->proof = answer->proof;
        answer->proof = before;
    }
    if (answer->n_choices > 0 && (!y->choice.device || answer->choice[0].load_ns < y->choice.load_ns)) {
        free(y->choice.device);
        y->choice = answer->choice[0];
        answer->choice[0] = (relax_choice){0};
    }
}

static int solve_pair(void *data, int32_t which)
{
    const relax_chain *c = data;
    int32_t at = c->due[which], n = c->K + 1, k = at / n % n, l = at % n;
    const decompose_block *b = c->block[at / (n * n)];
    relax_fixed fixed[RELAX_ENDS];
    relax_task job = *c->job;
    if (c->level == 0 && util_stopped(&job.stop)) /* even the first sweeps of a large block take long */
        return 0;
    job.fixed = fixed;
    job.n_fixed = 0;
    if (b->entry != MOIRAI_NONE && k < c->K)
        fixed[job.n_fixed++] = (relax_fixed){b->entry, k};
    if (b->exit != MOIRAI_NONE && l < c->K)
        fixed[job.n_fixed++] = (relax_fixed){b->exit, l};
    job.goal_ns = RELAX_NEVER;
    job.threads = 1;
    job.plans &= c->level > 0;
    if (c->level <= 1) {
        job.rounds = UTIL_MIN(job.rounds, RELAX_CHAIN_FIRST_ROUNDS);
        job.cases = 1;
    }
    relax_answer answer;
    int rc = relax_solve(&answer, &b->problem, &job);
    if (!rc)
        keep_answer(&c->pair[at], &answer, job.row || c->level == 0);
    c->pair[at].fresh = c->level == 0 && c->pair[at].proof.n_leaves == 1;
    relax_answer_clear(&answer);
    return rc;
}

/* The ends of a class on one side: what is new of one of them is tried for all others. */
static int share_ends(void *data, int32_t which)
{
    const relax_chain *c = data;
    const util_stop *stop = &c->job->stop;
    int32_t class_ = which / 2, K = c->K, side = which % 2;
    int rc = 0;
    for (int32_t k = 0; k < K; k++) {
        relax_pair *from = side ? relax_pair_at(c, class_, K, k) : relax_pair_at(c, class_, k, K);
        for (int32_t l = 0; l < K && from->fresh && !rc && !util_stopped(stop); l++) {
            relax_pair *to = side ? relax_pair_at(c, class_, K, l) : relax_pair_at(c, class_, l, K);
            relax_answer answer = {0};
            relax_leaf leaf = {0};
            if (l == k || !(c->block[class_]->problem.op_devices[from->proof.leaf->fixed[0].op] >> l & 1))
                continue;
            rc = relax_leaf_exchange(&leaf, from->proof.leaf, &c->block[class_]->problem, l, stop);
            rc = rc ? rc : relax_proof_alone(&answer.proof, &leaf);
            answer.lower_ns = answer.proof.proven_ns;
            keep_answer(to, &answer, c->job->row);
            relax_leaf_clear(&leaf);
            relax_answer_clear(&answer);
        }
        from->fresh = false;
        if (!c->job->row) {
            relax_answer_clear(&(relax_answer){.proof = from->proof});
            from->proof = (relax_proof){0};
        }
    }
    return rc;
}

/* Once per level: copies are not listed again. */
static void add_due(relax_chain *c, relax_pair *y)
{
    if (y->level >= c->level)
        return;
    y->level = c->level;
    c->due[c->n_due++] = (int32_t)(y - c->pair);
}

/* Pairs on the path, or their ends alone; a block without an entry or an exit has no more pairs than ends. */
static void list_due(relax_chain *c)
{
    c->n_due = 0;
    for (int32_t b = 0, k, l; b < c->cuts->n_blocks; b++) {
        int32_t class_ = c->cuts->block_class[b];
        const decompose_block *block = c->block[class_];
        relax_chain_ends(c, b, &k, &l);
        if (c->level > 0) {
            add_due(c, relax_pair_at(c, class_, k, l));
        } else if (block->n_interior >= RELAX_CHAIN_LEAST_BLOCK && block->entry != MOIRAI_NONE &&
                   block->exit != MOIRAI_NONE) {
            add_due(c, relax_pair_at(c, class_, k, c->K));
            add_due(c, relax_pair_at(c, class_, c->K, l));
        }
    }
}

static int raise_chain(relax_chain *c)
{
    int rc = 0;
    for (c->level = c->K <= RELAX_CHAIN_MANY_DEVICES && !c->job->ends; c->level <= RELAX_CHAIN_LEVELS && !rc;
         c->level++) {
        do {
            relax_chain_path(c, false);
            list_due(c);
            rc = util_pool_run(solve_pair, c, c->n_due, c->job->threads);
            if (!rc && c->level == 0 && c->n_due > 0)
                rc = util_pool_run(share_ends, c, 2 * c->cuts->n_classes, c->job->threads);
        } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
        int64_t now = relax_chain_path(c, false);
        if (now >= c->job->goal_ns || util_stopped(&c->job->stop) ||
            (c->level > 0 && (double)now < RELAX_CHAIN_HOPE * (double)c->job->known_ns))
            break;
    }
    return rc;
}

/* ---- proofs, for a certificate ---- */

/* What proves more of a pair than its own proof and the longest path: the numbers of one of its ends. NULL: nothing does. */
static const relax_leaf *end_of(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    const relax_pair *y = relax_pair_at(c, class_, k, l),
                     *end[] = {relax_pair_at(c, class_, k, c->K), relax_pair_at(c, class_, c->K, l)};
    const relax_leaf *best = NULL;
    int64_t most = UTIL_MAX(y->path_ns, y->proof.proven_ns);
    for (int32_t i = 0; i < 2; i++)
        if (end[i]->proof.proven_ns > most) {
            best = end[i]->proof.leaf;
            most = end[i]->proof.proven_ns;
        }
    return best;
}

/* The proof of a pair that has none of its own: a copy, with both ends fixed. */
static int take_end(relax_proof *out, const relax_leaf *end, const decompose_block *b, int32_t k, int32_t l)
{
    relax_leaf leaf;
    relax_answer_clear(&(relax_answer){.proof = *out});
    *out = (relax_proof){0};
    int rc = relax_leaf_with(&leaf, end, &b->problem, (relax_fixed[]){{b->entry, k}, {b->exit, l}}, RELAX_ENDS);
    rc = rc ? rc : relax_proof_alone(out, &leaf);
    relax_leaf_clear(&leaf);
    return rc;
}

/* Copies are left out where a certificate would not hold them. */
static int keep_row(relax_row *row, relax_chain *c)
{
    int32_t K = c->K, pairs = c->cuts->n_classes * K * K;
    int64_t numbers = 0;
    int rc = 0;
    for (int32_t i = 0; i < pairs; i++) {
        bool copied = end_of(c, i / K / K, i / K % K, i % K) != NULL;
        numbers += copied ? (int64_t)2 * c->block[i / K / K]->problem.n_edges * K : 0;
        row->n_pairs += copied || relax_pair_at(c, i / K / K, i / K % K, i % K)->proof.leaf;
    }
    row->pair = util_alloc((size_t)row->n_pairs, sizeof *row->pair);
    row->n_pairs = 0;
    for (int32_t i = 0; i < pairs && row->pair && !rc; i++) {
        int32_t class_ = i / K / K, k = i / K % K, l = i % K;
        const decompose_block *b = c->block[class_];
        const relax_leaf *end = numbers <= RELAX_MOST_NUMBERS ? end_of(c, class_, k, l) : NULL;
        relax_proof *proof = &relax_pair_at(c, class_, k, l)->proof;
        rc = end ? take_end(proof, end, b, k, l) : 0;
        if (rc || !proof->leaf)
            continue;
        row->pair[row->n_pairs++] =
            (relax_row_pair){class_, k, l, 2 - !b->first - (b->exit == MOIRAI_NONE), b->problem.n_edges, *proof};
        *proof = (relax_proof){0};
    }
    return row->pair ? rc : MOIRAI_EFAIL;
}

int relax_solve_chain(relax_answer *out, const moirai_problem *p, const relax_task *job)
{
    relax_chain c = {.p = p, .job = job, .K = p->n_devices};
    *out = (relax_answer){0};
    int rc = open_chain(&c);
    rc = rc ? rc : raise_chain(&c);
    if (!rc)
        out->lower_ns = relax_chain_path(&c, false);
    for (int32_t i = 0; i < 2 && !rc && job->plans; i++)
        rc = relax_chain_choose(&out->choice[out->n_choices++], &c, i == 0);
    if (!rc && job->row)
        rc = keep_row(&out->row, &c);
    close_chain(&c);
    if (!rc && job->row)
        out->row.cuts = c.cuts;
    else
        decompose_cuts_free(c.cuts);
    return rc;
}
