/* Blocks in a row: the relaxation of each between two devices.
 *
 * One relaxation of the whole may share out the work of the first block and of the last at the same time. But blocks between cuts share no time
 * (decompose/cuts.h, docs/theory.md, Lemma 2, Theorem 4): with the devices of the cuts as cases, the makespan is at least the shortest path
 * through the cuts, where the way from cut b on k to cut b + 1 on l takes what is proven of the block between them, with its ends there. Pairs begin
 * with their longest paths; those on the shortest path are solved, which moves it, until all pairs on it are. Then once more, with cases and more rounds.
 * Copies of a block are solved once. Plans: the devices of each pair's choice, along the path of least loads. */
#include <stdlib.h>
#include <string.h>

#include "decompose/block.h"
#include "relax/relax.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

#define LEVELS 2
#define FIRST_ROUNDS 24
#define MOST_PAIRS 400000
#define MOST_DEVICES 16
#define MOST_WORK (INT64_C(1) << 28) /* edges x devices^3: longest paths of all pairs */
#define LEAST_BLOCK 3                /* operators: smaller ones are known from their longest paths */
#define HOPE 0.9                     /* of what is known: below it after the first level, loads do not decide */
#define NEVER (INT64_MAX / 4)

typedef struct pair {
    int64_t path_ns, lower_ns;
    relax_choice choice; /* device NULL: not solved; load_ns: of the plan where it has one */
    int32_t level;
    bool planned;
    relax_proof proof; /* where it proves more than the longest path, and is wanted */
} pair;

typedef struct chain {
    const moirai_problem *p;
    const relax_task *job;
    decompose_cuts *cuts;
    decompose_block **block; /* per class */
    pair *pair;              /* [(class * K + k) * K + l] */
    int32_t K;
    int64_t *reach;  /* [cut * K + device]: the least finish */
    int32_t *before; /* [cut * K + device]: the device of the cut before */
    int32_t *path;   /* per cut */
    int32_t *due;    /* pairs to be solved now */
    int32_t n_due, level;
} chain;

static pair *pair_of(const chain *c, int32_t block, int32_t k, int32_t l)
{
    return &c->pair[((int64_t)c->cuts->block_class[block] * c->K + k) * c->K + l];
}

/* ---- opening ---- */

/* Longest paths from an entry on k to an exit on each device. */
static void begin_pairs(chain *c, int32_t class_, int32_t k, int64_t *head, uint64_t *devices)
{
    const decompose_block *b = c->block[class_];
    const moirai_problem *q = &b->problem;
    memcpy(devices, q->op_devices, sizeof *devices * (size_t)q->n_ops);
    if (b->entry != MOIRAI_NONE)
        devices[b->entry] = UINT64_C(1) << k;
    schedule_paths paths = {.p = q, .devices = devices};
    schedule_heads(head, &paths);
    for (int32_t l = 0; l < c->K; l++) {
        pair *y = &c->pair[((int64_t)class_ * c->K + k) * c->K + l];
        y->choice.load_ns = NEVER;
        y->level = b->n_interior < LEAST_BLOCK ? LEVELS : 0;
        if (b->exit != MOIRAI_NONE) {
            y->path_ns = y->lower_ns = head[(int64_t)b->exit * c->K + l];
            continue;
        }
        for (int32_t i = 0; i < q->n_ops; i++) { /* all of it */
            int64_t least = NEVER;
            for (int32_t d = 0; d < c->K; d++)
                if (devices[i] >> d & 1)
                    least = UTIL_MIN(least, head[(int64_t)i * c->K + d] + moirai_op_ns(q, i, d));
            y->path_ns = y->lower_ns = UTIL_MAX(y->lower_ns, least);
        }
    }
}

static int open_class(chain *c, int32_t class_)
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

static int open_chain(chain *c)
{
    int64_t K3 = (int64_t)c->K * c->K * c->K;
    int rc = c->K > MOST_DEVICES || (int64_t)c->p->n_edges * K3 > MOST_WORK ? MOIRAI_ELIMIT
                                                                            : decompose_cuts_new(&c->cuts, c->p);
    if (rc)
        return rc;
    int32_t large = 0;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++)
        large += c->cuts->block_size[b] >= LEAST_BLOCK;
    size_t K = (size_t)c->K, cuts = (size_t)c->cuts->n_cuts, classes = (size_t)c->cuts->n_classes;
    if (large < 2 || classes * K * K > MOST_PAIRS)
        return MOIRAI_ELIMIT;
    c->block = util_alloc(classes, sizeof *c->block);
    c->pair = util_alloc(classes * K * K, sizeof *c->pair);
    c->reach = util_alloc(cuts * K, sizeof *c->reach);
    c->before = util_alloc(cuts * K, sizeof *c->before);
    c->path = util_alloc(cuts, sizeof *c->path);
    c->due = util_alloc(cuts + 1, sizeof *c->due);
    if (!c->block || !c->pair || !c->reach || !c->before || !c->path || !c->due)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < c->cuts->n_classes && !rc; i++)
        rc = util_stopped(&c->job->stop) ? MOIRAI_ELIMIT : open_class(c, i);
    return rc;
}

static void free_choice(relax_choice *choice)
{
    free(choice->device);
    free(choice->start_ns);
}

/* All but the cuts. */
static void close_chain(chain *c)
{
    for (int32_t i = 0; c->cuts && c->block && i < c->cuts->n_classes; i++)
        decompose_block_free(c->block[i]);
    for (int64_t i = 0; c->cuts && c->pair && i < (int64_t)c->cuts->n_classes * c->K * c->K; i++) {
        free_choice(&c->pair[i].choice);
        relax_answer_clear(&(relax_answer){.proof = c->pair[i].proof});
    }
    void *all[] = {c->block, c->pair, c->reach, c->before, c->path, c->due};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- the shortest path ---- */

/* What the way between two cuts takes: proven, or, for plans, the loads of a choice. */
static int64_t way(const chain *c, int32_t block, int32_t k, int32_t l, bool loads)
{
    const pair *y = pair_of(c, block, k, l);
    return !loads || c->block[c->cuts->block_class[block]]->n_interior < LEAST_BLOCK
               ? y->lower_ns
               : UTIL_MAX(y->choice.load_ns, y->lower_ns);
}

/* The least finish of each cut, and the path of the end; its length. Blocks without an entry or exit have it on device 0. */
static int64_t find_path(chain *c, bool loads)
{
    int32_t K = c->K, n = c->cuts->n_cuts;
    for (int32_t b = 0; b < n; b++)
        for (int32_t l = 0; l < K; l++) {
            int64_t best = NEVER;
            int32_t cut = c->cuts->cut[b], from = 0;
            for (int32_t k = 0; k < (b ? K : 1); k++) {
                int64_t at = (b ? c->reach[(int64_t)(b - 1) * K + k] : 0);
                at = at >= NEVER ? NEVER : UTIL_MIN(NEVER, at + way(c, b, k, l, loads));
                if (at < best) {
                    best = at;
                    from = k;
                }
            }
            bool may = c->p->op_devices[cut] >> l & 1;
            c->reach[(int64_t)b * K + l] = !may || best >= NEVER ? NEVER : best + moirai_op_ns(c->p, cut, l);
            c->before[(int64_t)b * K + l] = from;
        }
    int64_t best = NEVER;
    int32_t at = 0;
    for (int32_t k = 0; k < K; k++) {
        int64_t end = c->reach[(int64_t)(n - 1) * K + k];
        if (end < NEVER && end + way(c, n, k, 0, loads) < best) {
            best = end + way(c, n, k, 0, loads);
            at = k;
        }
    }
    for (int32_t b = n - 1; b >= 0; b--) {
        c->path[b] = at;
        at = c->before[(int64_t)b * K + at];
    }
    return best;
}

static int32_t pair_on_path(const chain *c, int32_t block)
{
    int32_t k = block > 0 ? c->path[block - 1] : 0, l = block < c->cuts->n_cuts ? c->path[block] : 0;
    return (int32_t)(pair_of(c, block, k, l) - c->pair);
}

/* ---- pairs ---- */

static int solve_pair(void *data, int32_t which)
{
    const chain *c = data;
    int32_t at = c->due[which], K = c->K, class_ = at / (K * K);
    const decompose_block *b = c->block[class_];
    pair *y = &c->pair[at];
    relax_fixed fixed[RELAX_ENDS];
    relax_task job = *c->job;
    job.fixed = fixed;
    job.n_fixed = 0;
    if (b->entry != MOIRAI_NONE)
        fixed[job.n_fixed++] = (relax_fixed){b->entry, at / K % K};
    if (b->exit != MOIRAI_NONE)
        fixed[job.n_fixed++] = (relax_fixed){b->exit, at % K};
    job.goal_ns = NEVER;
    job.threads = 1;
    if (c->level == 1) {
        job.rounds = UTIL_MIN(job.rounds, FIRST_ROUNDS);
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
            free_choice(&y->choice);
            y->choice = answer.choice[0];
            answer.choice[0] = (relax_choice){0};
        }
    }
    relax_answer_clear(&answer);
    return rc;
}

/* Pairs on the path that are not solved at this level, each once. */
static void list_due(chain *c)
{
    c->n_due = 0;
    for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
        pair *y = &c->pair[pair_on_path(c, b)];
        if (y->level >= c->level)
            continue;
        y->level = c->level; /* marked: copies are not listed again */
        c->due[c->n_due++] = (int32_t)(y - c->pair);
    }
}

static int raise_chain(chain *c)
{
    int rc = 0;
    for (c->level = 1; c->level <= LEVELS && !rc; c->level++) {
        do {
            find_path(c, false);
            list_due(c);
            rc = util_pool_run(solve_pair, c, c->n_due, c->job->threads);
        } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
        int64_t now = find_path(c, false);
        if (now >= c->job->goal_ns || (double)now < HOPE * (double)c->job->known_ns || util_stopped(&c->job->stop))
            break;
    }
    return rc;
}

/* ---- plans ---- */

/* The choice of a pair as a plan of its block: now its length counts. */
static int plan_pair(void *data, int32_t which)
{
    chain *c = data;
    int32_t at = c->due[which];
    const decompose_block *b = c->block[at / (c->K * c->K)];
    pair *y = &c->pair[at];
    bool *keep = util_alloc((size_t)b->problem.n_ops, sizeof *keep);
    if (!keep)
        return MOIRAI_EFAIL;
    if (b->entry != MOIRAI_NONE)
        keep[b->entry] = true;
    if (b->exit != MOIRAI_NONE)
        keep[b->exit] = true;
    int64_t length = 0;
    int rc = relax_polish(&y->choice, &length, &b->problem, keep, c->job->evaluations, (uint64_t)at, &c->job->stop);
    if (!rc)
        y->choice.load_ns = UTIL_MIN(length, NEVER);
    free(keep);
    return rc;
}

/* Plans for the pairs on the path of least lengths, until all of them have one. */
static int plan_chain(chain *c)
{
    int rc = 0;
    do {
        find_path(c, true);
        c->n_due = 0;
        for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
            pair *y = &c->pair[pair_on_path(c, b)];
            if (y->choice.device && !y->planned)
                c->due[c->n_due++] = (int32_t)(y - c->pair);
            y->planned = true;
        }
        rc = util_pool_run(plan_pair, c, c->n_due, c->job->threads);
    } while (!rc && c->n_due > 0 && !util_stopped(&c->job->stop));
    return rc;
}

/* The order of a block's plan, after the blocks before it. */
static void order_block(relax_choice *out, const chain *c, int32_t b, int64_t *now_ns)
{
    const decompose_block *block = c->block[c->cuts->block_class[b]];
    const pair *y = &c->pair[pair_on_path(c, b)];
    for (int32_t i = block->first; i < block->first + block->n_interior; i++)
        out->start_ns[decompose_block_global_op(block, c->p, c->cuts, b, i)] =
            *now_ns + (y->choice.start_ns ? y->choice.start_ns[i] : 0);
    *now_ns += y->choice.start_ns ? y->choice.load_ns : y->lower_ns;
    if (b < c->cuts->n_cuts)
        out->start_ns[c->cuts->cut[b]] = (*now_ns)++;
}

/* Devices of the path of least loads, or of the bound's. */
static int choose(relax_choice *out, chain *c, bool loads)
{
    out->load_ns = find_path(c, loads);
    out->device = util_alloc((size_t)c->p->n_ops, sizeof *out->device);
    out->start_ns = util_alloc((size_t)c->p->n_ops, sizeof *out->start_ns);
    int64_t now = 0;
    if (!out->device || !out->start_ns)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < c->p->n_ops; i++) /* of blocks that have no choice */
        out->device[i] = (uint8_t)__builtin_ctzll(c->p->op_devices[i]);
    for (int32_t b = 0; b < c->cuts->n_blocks; b++) {
        const decompose_block *block = c->block[c->cuts->block_class[b]];
        int32_t at = pair_on_path(c, b), first = block->first;
        if (b < c->cuts->n_cuts)
            out->device[c->cuts->cut[b]] = (uint8_t)c->path[b];
        for (int32_t i = first; i < first + block->n_interior; i++) {
            int32_t op = decompose_block_global_op(block, c->p, c->cuts, b, i);
            int32_t near = b < c->cuts->n_cuts ? c->path[b] : b > 0 ? c->path[b - 1] : 0;
            if (c->pair[at].choice.device)
                out->device[op] = c->pair[at].choice.device[i];
            else if (c->p->op_devices[op] >> near & 1)
                out->device[op] = (uint8_t)near;
        }
        order_block(out, c, b, &now);
    }
    return 0;
}

/* The proofs leave the chain. */
static int keep_row(relax_row *row, chain *c)
{
    int64_t pairs = (int64_t)c->cuts->n_classes * c->K * c->K;
    for (int64_t i = 0; i < pairs; i++)
        row->n_pairs += c->pair[i].proof.leaf != NULL;
    row->pair = util_alloc((size_t)row->n_pairs, sizeof *row->pair);
    row->n_pairs = 0;
    if (!row->pair)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < pairs; i++) {
        const decompose_block *b = c->block[i / c->K / c->K];
        if (!c->pair[i].proof.leaf)
            continue;
        int32_t k = (int32_t)(i / c->K % c->K), l = (int32_t)(i % c->K),
                ends = 2 - !b->first - (b->exit == MOIRAI_NONE);
        row->pair[row->n_pairs++] =
            (relax_row_pair){(int32_t)(i / c->K / c->K), k, l, ends, b->problem.n_edges, c->pair[i].proof};
        c->pair[i].proof = (relax_proof){0};
    }
    return 0;
}

int relax_solve_chain(relax_answer *out, const moirai_problem *p, const relax_task *job)
{
    chain c = {.p = p, .job = job, .K = p->n_devices};
    *out = (relax_answer){0};
    int rc = open_chain(&c);
    rc = rc ? rc : raise_chain(&c);
    if (!rc)
        out->lower_ns = find_path(&c, false);
    if (!rc && job->plans && job->evaluations > 0 && (double)out->lower_ns >= HOPE * (double)job->known_ns)
        rc = plan_chain(&c);
    for (int32_t i = 0; i < 2 && !rc && job->plans; i++)
        rc = choose(&out->choice[out->n_choices++], &c, i == 0);
    if (!rc && job->row)
        rc = keep_row(&out->row, &c);
    close_chain(&c);
    if (!rc && job->row)
        out->row.cuts = c.cuts;
    else
        decompose_cuts_free(c.cuts);
    return rc;
}
