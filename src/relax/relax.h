/* The relaxation of a whole problem: prices on loads, messages on tensors, hubs as cases.
 *
 * What it proves is written down as whole numbers, from which relax_evaluate computes the bound again without the solver: any numbers prove
 * something, so that nothing hangs on how they were found (docs/theory.md, Theorem 15). */
#ifndef MOIRAI_RELAX_RELAX_H
#define MOIRAI_RELAX_RELAX_H

#include <moirai/plan.h>

#include "decompose/cuts.h"
#include "util/json.h"
#include "util/stop.h"

typedef struct relax_fixed {
    int32_t op, device;
} relax_fixed;

/* A stretch of time, from head_ns to tail_ns before the end of a plan (docs/theory.md, Lemma 48). */
typedef struct relax_shift {
    int64_t head_ns, tail_ns;
} relax_shift;

/* Rows of a relaxation besides those of resources: each device within a shift, and operators in a row, each of which reads what the one before
 * makes (docs/theory.md, Lemma 49). */
typedef struct relax_rows {
    int32_t n_shifts;
    relax_shift *shift;
    int32_t n_paths;             /* at most RELAX_MOST_PATHS */
    int32_t *path_off, *path_op; /* a path -> its operators */
} relax_rows;

#define RELAX_MOST_PATHS 64

/* One case: some operators are on the devices said here. All numbers are in the same unit, which cancels out. */
typedef struct relax_leaf {
    int32_t n_fixed;
    relax_fixed *fixed; /* in the order in which cases were divided */
    relax_rows rows;
    int64_t *price;      /* >= 0, per resource (view.h), then per shift and device, then per path: of a nanosecond */
    int64_t *byte_price; /* >= 0, per device: of a byte; NULL: all 0 */
    int64_t *from, *to; /* [edge * devices + device]: added to what its producer, its reader costs there; NULL: all 0 */
    int64_t unit;       /* of which these are multiples: files have shorter numbers so */
    int64_t proven_ns;  /* of plans in this case */
    util_memory memory; /* of the arrays */
} relax_leaf;

/* Leaves that leave no plan out: the least of them is a bound. */
typedef struct relax_proof {
    int64_t proven_ns;
    bool rate; /* of loads alone: a bound of the time between requests as well */
    int32_t n_leaves;
    relax_leaf *leaf;
} relax_proof;

/* The cheapest assignments, exactly: devices of which the sum of cost[op * K + device] (HUGE_VAL: not there) and price x time of all transfers is least, and that
 * sum. From several threads at once. MOIRAI_ELIMIT: not in time. */
typedef struct relax_oracle {
    int (*find)(const void *data, const double *cost, const double *price, uint8_t *device, double *sum,
                const util_stop *stop);
    const void *data;
} relax_oracle;

/* Blocks in a row: the leaves of each pair of a class of blocks between two devices. */
typedef struct relax_row_pair {
    int32_t class_, entry, exit; /* devices; 0 where the block has no such end */
    int32_t n_ends;              /* how many operators are fixed in all leaves: the ends */
    int32_t n_edges;             /* of the block */
    relax_proof proof;           /* in numbers of the block: topological order */
} relax_row_pair;

typedef struct relax_row {
    decompose_cuts *cuts; /* NULL: no row */
    relax_row_pair *pair;
    int32_t n_pairs;
} relax_row;

typedef struct relax_task {
    const relax_fixed
        *fixed; /* operators that are on one device in all cases: the ends of a block. At most RELAX_ENDS */
    int32_t n_fixed;
    const relax_leaf *first; /* rows and prices to begin with; NULL: none. Not with `plans` or `rate` */
    int64_t goal_ns;         /* no use in proving more */
    int64_t known_ns;        /* proven otherwise: blocks that come nowhere near it are given up (relax_solve_chain) */
    int32_t cases;           /* at most; 1: none are told apart */
    int32_t rounds;          /* of prices in each case */
    bool rate;               /* no heads and tails, no cases: what holds for the loads of many requests as well */
    bool one_copy; /* with rate: requests all go the same way, so that hubs are cases again; no certificate has that */
    const relax_oracle *exactly; /* with rate: what finds prices first, messages come after; NULL: messages alone do */
    bool plans;                  /* devices are wanted */
    bool row;                    /* proofs of blocks are wanted (relax_solve_chain) */
    bool ends;                   /* their ends alone come first even where devices are few (relax_solve_chain) */
    int32_t
        send_percent; /* more than 100: as if transfers took so much longer, for devices that send less (a plan cannot keep all
                             resources busy); the bound is true, but worth little. 0: 100 */
    int threads;
    util_stop stop;
} relax_task;

/* Devices that balance the loads of a case. */
typedef struct relax_choice {
    uint8_t *device;
    int64_t load_ns; /* the largest, with what must come before and after */
} relax_choice;

#define RELAX_CHOICES 4
#define RELAX_ENDS 2

typedef struct relax_answer {
    int64_t lower_ns;
    relax_proof proof; /* of relax_solve */
    relax_row row;     /* of relax_solve_chain */
    int32_t n_choices;
    relax_choice choice[RELAX_CHOICES]; /* by load, the least first */
} relax_answer;

/* Deterministic, unless the stop ends it. O(cases * rounds * (V K + E K^2)). The answer is to be cleared in every case. */
int relax_solve(relax_answer *out, const moirai_problem *p, const relax_task *job);
void relax_answer_clear(relax_answer *a);

/* The same with prices on the loads of shifts and on paths (shifts.c): bounds alone, no choices. MOIRAI_ELIMIT where that is too large. */
int relax_solve_shifts(relax_answer *out, const moirai_problem *p, const relax_task *job);

/* Block by block between cuts (decompose/cuts.h), with the devices of the cuts as cases. MOIRAI_ELIMIT where there
 * are no blocks to speak of, or too many. job->cases and rounds are those of a block. */
int relax_solve_chain(relax_answer *out, const moirai_problem *p, const relax_task *job);

/* What the numbers of a leaf prove of its plans, whoever found them. Where `stop` (NULL: none) comes first less, or 0, which
 * is still true. MOIRAI_EFAIL: out of memory. O(E K^2). */
int relax_evaluate(int64_t *lower_ns, const moirai_problem *p, const relax_leaf *leaf, bool rate,
                   const util_stop *stop);

/* ---- certificates (certificate.c, docs/certificate.md) ---- */

/* What a certificate is made from: of one request `whole` or `row`; of the time between requests `rate` (relax_task.rate), and where at
 * most `in_flight` of them are under way (0: any number) also one of the others. None at all: longest paths are proven. */
typedef struct relax_certificate {
    const moirai_problem *p;
    const relax_proof *whole;
    const relax_row *row;
    const relax_proof *rate;
    int32_t in_flight;
    int64_t proven_ns;      /* what the numbers prove together, */
    int64_t lower_bound_ns; /* and what is known: the file says both */
} relax_certificate;

/* The proof that prices of devices alone, without messages, have of the whole: the load bound, or more. */
int relax_proof_of_devices(relax_proof *out, const moirai_problem *p, const int64_t *price, const util_stop *stop);
#define RELAX_MOST_NUMBERS (INT64_C(4) << 20) /* of messages in a certificate: some 40 MB */

/* How many prices a leaf has. */
int32_t relax_leaf_prices(const relax_leaf *leaf, const moirai_problem *p);
/* Numbers of messages that the proof takes in a file. */
int64_t relax_proof_size(const relax_proof *proof, int32_t n_edges, int32_t n_devices);
/* The key `loads` of a pair, whose block `q` is numbered as the verifier does it. */
void relax_proof_write(util_writer *w, const relax_proof *proof, const moirai_problem *q);
/* What every certificate begins with: format, problem, its digest, its size. */
void relax_certificate_names(util_writer *w, const moirai_problem *p);
/* Cuts, the class of each block between them, and the beginning of the list of classes. */
void relax_certificate_cuts(util_writer *w, int32_t n_cuts, const int32_t *cut, const int32_t *block_class);
/* Writes format moirai-certificate, version 1. */
int relax_certificate_write(const relax_certificate *from, const char *path);
/* The same as text; free() it. NULL if memory runs out. */
char *relax_certificate_text(const relax_certificate *from, size_t *length);

/* The devices as plans by several orders; the best that fits the memory, or *plan NULL. The first order is simulated whatever `stop` says, where
 * there is no other plan. O((V + E) (log V + K^2)). */
int relax_plan(moirai_plan **plan, const moirai_problem *p, const relax_choice *choice, bool has_other,
               const util_stop *stop);

#endif
