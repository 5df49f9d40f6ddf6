/* Blocks in a row: the relaxation of each between two devices.
 *
 * One relaxation of the whole may share out the work of the first block and of the last at the same time. But blocks
 * between cuts share no time (docs/theory.md, Lemma 2, Theorem 4): pairs begin with their longest paths; those on the
 * shortest path through the cuts are solved, which moves it, until all pairs on it are. Then once more, with cases and
 * more rounds. Where devices are more than three, their ends alone come first (ends.c). Copies of a block are solved
 * once. Plans: the devices of each pair's choice, along the path of least loads. */
#include <stdlib.h>
#include <string.h>

#include "decompose/block.h"
#include "relax/chain.h"
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
    int rc = c->K > RELAX_CHAIN_DEVICES || (int64_t)c->p->n_edges * K3 > RELAX_CHAIN_MOST_WORK
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
    UTIL_TAKE(&c->memory, c->pair, classes * K * K);
    UTIL_TAKE(&c->memory, c->reach, cuts * K);
    UTIL_TAKE(&c->memory, c->before, cuts * K);
    UTIL_TAKE(&c->memory, c->path, cuts);
    UTIL_TAKE(&c->memory, c->due, 2 * (cuts + 1));
    UTIL_TAKE(&c->memory, c->end, classes * 2);
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
    for (int64_t i = 0; c->cuts && c->pair && i < (int64_t)c->cuts->n_classes * c->K * c->K; i++) {
        free(c->pair[i].choice.device);
        relax_answer_clear(&(relax_answer){.proof = c->pair[i].proof});
    }
    for (int32_t i = 0; c->cuts && c->end && i < 2 * c->cuts->n_classes; i++)
        relax_end_clear(&c->end[i]);
    util_release(&c->memory);
}

/* ---- ends ---- */

static int solve_end(void *data, int32_t which)
{
    const relax_chain *c = data;
    int32_t at = c->due[which], class_ = at / (2 * c->K);
    const decompose_block *b = c->block[class_];
    relax_task job = *c->job;
    if (util_stopped(&job.stop)) /* even the first sweeps of a large block take long */
        return 0;
    job.goal_ns = RELAX_NEVER;
    job.threads = 1;
    job.rounds = UTIL_MIN(job.rounds, RELAX_CHAIN_FIRST_ROUNDS);
    return relax_end_solve(&c->found[which], &b->problem, (relax_fixed){at / c->K % 2 ? b->exit : b->entry, at % c->K},
                           &job);
}

/* The ends of pairs on the path, where they are not solved; a block without an entry or an exit has no more pairs than ends. */
static void list_ends(relax_chain *c)
{
    c->n_due = 0;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
        int32_t class_ = c->cuts->block_class[b], at = relax_chain_pair(c, b);
        const decompose_block *block = c->block[class_];
        if (block->n_interior < RELAX_CHAIN_LEAST_BLOCK || block->entry == MOIRAI_NONE || block->exit == MOIRAI_NONE)
            continue;
        for (int32_t is_exit = 0; is_exit < 2; is_exit++) {
            relax_end *end = &c->end[2 * class_ + is_exit];
            int32_t device = is_exit ? at % c->K : at / c->K % c->K;
            if (!(end->solved >> device & 1))
                c->due[c->n_due++] = (2 * class_ + is_exit) * c->K + device;
            end->solved |= UINT32_C(1) << device; /* marked: copies are not listed again */
        }
    }
}

static int raise_ends(relax_chain *c)
{
    int rc = 0;
    do {
        relax_chain_path(c, false);
        list_ends(c);
        c->found = util_alloc((size_t)c->n_due, sizeof *c->found);
        rc = c->found ? util_pool_run(solve_end, c, c->n_due, c->job->threads) : MOIRAI_EFAIL;
        for (int32_t i = 0; c->found && i < c->n_due; i++)
            relax_end_take(&c->end[c->due[i] / c->K], &c->found[i]);
        free(c->found);
    } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
    return rc;
}

/* ---- pairs ---- */

static int solve_pair(void *data, int32_t which)
{
    const relax_chain *c = data;
    int32_t at = c->due[which], K = c->K, class_ = at / (K * K);
    const decompose_block *b = c->block[class_];
    relax_pair *y = &c->pair[at];
    relax_fixed fixed[RELAX_ENDS];
    relax_task job = *c->job;
    job.fixed = fixed;
    job.n_fixed = 0;
    if (b->entry != MOIRAI_NONE)
        fixed[job.n_fixed++] = (relax_fixed){b->entry, at / K % K};
    if (b->exit != MOIRAI_NONE)
        fixed[job.n_fixed++] = (relax_fixed){b->exit, at % K};
    job.goal_ns = RELAX_NEVER;
    job.threads = 1;
    if (c->level == 1) {
        job.rounds = UTIL_MIN(job.rounds, RELAX_CHAIN_FIRST_ROUNDS);
        job.cases = 1;
    }
    relax_answer answer;
    int rc = relax_solve(&answer, &b->problem, &job);
    if (!rc) {
        y->lower_ns = UTIL_MAX(y->lower_ns, answer.lower_ns);
        y->level = c->level;
        if (job.row && answer.proof.proven_ns > UTIL_MAX(y->proof.proven_ns, y->path_ns)) {
            relax_proof before = y->proof;
            y->proof = answer.proof;
            answer.proof = before;
        }
        if (answer.n_choices > 0 && (!y->choice.device || answer.choice[0].load_ns < y->choice.load_ns)) {
            free(y->choice.device);
            y->choice = answer.choice[0];
            answer.choice[0] = (relax_choice){0};
        }
    }
    relax_answer_clear(&answer);
    return rc;
}

/* Pairs on the path that are not solved at this level, each once. */
static void list_due(relax_chain *c)
{
    c->n_due = 0;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
        relax_pair *y = &c->pair[relax_chain_pair(c, b)];
        if (y->level >= c->level)
            continue;
        y->level = c->level; /* marked: copies are not listed again */
        c->due[c->n_due++] = (int32_t)(y - c->pair);
    }
}

static int raise_chain(relax_chain *c)
{
    bool ends = c->K > RELAX_CHAIN_MANY_DEVICES || c->job->ends;
    int rc = ends ? raise_ends(c) : 0;
    if (ends && util_stopped(&c->job->stop))
        return rc;
    for (c->level = 1; c->level <= RELAX_CHAIN_LEVELS && !rc; c->level++) {
        do {
            relax_chain_path(c, false);
            list_due(c);
            rc = util_pool_run(solve_pair, c, c->n_due, c->job->threads);
        } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
        int64_t now = relax_chain_path(c, false);
        if (now >= c->job->goal_ns || (double)now < RELAX_CHAIN_HOPE * (double)c->job->known_ns ||
            util_stopped(&c->job->stop))
            break;
    }
    return rc;
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
        rc = relax_chain_keep(&out->row, &c);
    close_chain(&c);
    if (!rc && job->row)
        out->row.cuts = c.cuts;
    else
        decompose_cuts_free(c.cuts);
    return rc;
}
