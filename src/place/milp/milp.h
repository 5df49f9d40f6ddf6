/* Private parts of the mixed-integer program: augmented DAG, abstract model, builders, answers. */
#ifndef MOIRAI_PLACE_MILP_MILP_H
#define MOIRAI_PLACE_MILP_MILP_H

#include <moirai/milp.h>
#include "util/util.h"

/* ---- augmented DAG (equation 3) ----
 * Operators are nodes 0..n_ops-1 as in the problem. Flow q is a node of its own: flow edge: the pair (tensor, reader);
 * flow tensor: the pair (tensor, destination device). All times are multiples of grid_ns and are counted in it. */
typedef struct milp_flow {
    int32_t tensor, producer;
    int32_t reader; /* MOIRAI_NONE with flow tensor */
    int32_t to;     /* MOIRAI_NONE with flow edge */
    int32_t number; /* task number less n_ops: the number in names */
} milp_flow;

typedef struct milp_dag {
    const moirai_problem *p;
    int32_t n_flows;
    milp_flow *flow;
    int32_t words;     /* of one row of `reach` */
    uint64_t *reach;   /* [op * words]: bit j: j is a direct or indirect successor */
    int64_t grid_ns;   /* greatest common divisor of all times */
    int64_t upper;     /* plans beyond this many grid units are not solutions */
    uint64_t *devices; /* of each operator, less those that no plan within `upper` uses */
    /* Windows, [op * n_devices + device], in grid units. */
    int64_t *head;                                                  /* earliest start of the operator on that device */
    int64_t *tail;                                                  /* least time from its finish there to the end */
    int64_t *first_start, *last_finish, *first_finish, *last_start; /* of an operator over its devices */
    int32_t *device_class; /* the least device that is interchangeable with this one */
    int32_t *twin;         /* the next operator that is interchangeable with this one, or MOIRAI_NONE */
} milp_dag;

/* upper_ns < 0: no plan known, a horizon that any plan order fits is used. `windows`: compute them from `upper`
 * (tight); else everything the problem allows is allowed. MOIRAI_EINFEASIBLE, with a
 * message: no plan within upper_ns exists. */
int milp_dag_new(milp_dag **out, const moirai_problem *p, int64_t upper_ns, bool windows);
void milp_dag_free(milp_dag *d);
bool milp_op_before(const milp_dag *d, int32_t i, int32_t j);   /* j succeeds i */
bool milp_flow_before(const milp_dag *d, int32_t q, int32_t r); /* r starts after q ends, where both exist */
int64_t milp_grid_ns(const moirai_problem *p);
void milp_symmetry(milp_dag *d);
/* First and last starts and finishes of all operators. `prune_devices`: from heads and tails, dropping devices that no
 * plan within `upper` uses. MOIRAI_EINFEASIBLE: an operator is left without a device. */
int milp_windows(milp_dag *d, bool prune_devices);
/* Rows that pairs of the model would take at least, without any quadratic memory. O(V E / 64 + V^2). */
int milp_rows_estimate(int64_t *rows, const moirai_problem *p, moirai_formulation f);
static inline int64_t milp_op_units(const milp_dag *d, int32_t i, int32_t k)
{
    return moirai_op_ns(d->p, i, k) / d->grid_ns;
}
static inline int64_t milp_flow_units(const milp_dag *d, int32_t t, int32_t a, int32_t b)
{
    return moirai_transfer_ns(d->p, t, a, b) / d->grid_ns;
}
static inline bool milp_allowed(const milp_dag *d, int32_t i, int32_t k)
{
    return d->devices[i] >> k & 1;
}
static inline bool milp_same_group(const moirai_problem *p, int32_t i, int32_t j)
{
    return p->op_group[i] != MOIRAI_NONE && p->op_group[i] == p->op_group[j];
}

/* ---- abstract model: minimise column 0 ---- */
/* SHARE: continuous in [0,1]; AMOUNT: bytes */
typedef enum milp_kind { MILP_BINARY, MILP_SHARE, MILP_TIME, MILP_AMOUNT } milp_kind;
typedef enum milp_unit { MILP_COUNT, MILP_TIMES, MILP_BYTES } milp_unit; /* what a row is measured in */

typedef struct milp_model {
    bool dry; /* count rows and nonzeros, store none */
    int32_t n_cols;
    double *col_lo, *col_hi;
    uint8_t *col_kind;
    int64_t *col_name; /* offsets into `text` */
    int64_t n_rows, n_nonzeros;
    char *row_sense; /* '<' '>' '=' */
    double *row_rhs;
    uint8_t *row_unit;
    int64_t *row_name;
    int64_t *row_off; /* n_rows + 1 */
    int32_t *index;
    double *value;
    char *text; /* all names */
    int64_t text_used;
    /* The row under construction. */
    int32_t n_terms;
    int32_t *term_col;
    double *term_value;
    int32_t *slot; /* column -> term, -1 */
    double constant;
    int failed; /* first error; later calls do nothing */
    size_t cap_col[4], cap_row[5], cap_nz[2], cap_text, cap_term[2], cap_slot;
} milp_model;

int32_t milp_col(milp_model *m, milp_kind kind, double lo, double hi, const char *format, ...) MOIRAI_PRINTF(5, 6);
void milp_term(milp_model *m, int32_t col, double value); /* col < 0: nothing */
void milp_constant(milp_model *m, double value);          /* on the left side */
void milp_row(milp_model *m, char sense, double rhs, milp_unit unit, const char *format, ...) MOIRAI_PRINTF(5, 6);
void milp_model_free(milp_model *m);
const char *milp_col_name(const milp_model *m, int32_t col);
const char *milp_row_name(const milp_model *m, int64_t row);

typedef struct milp_peak milp_peak;

/* ---- the program: the model with its maps ---- */
typedef struct milp_program {
    const moirai_problem *p;
    milp_dag *d;
    moirai_formulation formulation;
    milp_model m;
    int32_t *x;       /* [op * n_devices + device] -> column or -1; operators of one group share columns */
    int32_t *s, *c;   /* operator -> start and finish column */
    int32_t *fs, *fc; /* flow -> start and finish column, -1 where the model has none */
    int32_t *z;       /* flow -> column (paper), -1 */
    int32_t *u;       /* paper: [flow * K * K + from * K + to]; tight: [edge * K * K + ...], the diagonal included */
    int32_t *y;       /* tight, flow tensor: [flow * K + from]; else NULL */
    /* Ordering binaries in the order of creation: `col` 1 says node a ends before node b starts. Nodes: operators,
     * then n_ops + flow. In the paper formulation 0 says the reverse; in tight there are two, and both may be 0. */
    int32_t n_orders;
    struct milp_order {
        int32_t a, b, col;
    } * order;
    size_t cap_order;
    int32_t *held; /* [weight * n_devices + device]: 1 where the device holds the shared weight; NULL: there are none */
    milp_peak *peak; /* cliques to keep apart (memory peak), or NULL; not owned */
    char (*op_tag)[40], (*flow_tag)[64], (*device_tag)[32]; /* "5.op5": the names' parts */
} milp_program;

/* upper_ns: a makespan that some plan is known to reach (or less: then no solution may exist), -1: none known.
 * max_rows < 0: count only. `peak`: cliques to keep apart, or NULL. MOIRAI_ELIMIT: more rows than max_rows.
 * MOIRAI_EINFEASIBLE: no plan within upper_ns. */
int milp_program_new(milp_program **out, const moirai_problem *p, moirai_formulation f, int64_t upper_ns,
                     int64_t max_rows, milp_peak *peak);
/* MOIRAI_ELIMIT with the message that a model of so many rows deserves. */
int milp_refuse(const moirai_problem *p, moirai_formulation f, int64_t rows, int64_t max_rows);
/* Placement and memory only: minimise the bytes that the worst device lacks (column 0). */
int milp_program_memory(milp_program **out, const moirai_problem *p);
void milp_program_free(milp_program *g);
int32_t milp_order_col(milp_program *g, int32_t a, int32_t b); /* a new ordering binary */
void milp_build_tight(milp_program *g);
void milp_build_paper(milp_program *g);
void milp_build_cuts(milp_program *g); /* tight: load, path, symmetry */
/* `excess`: a column of bytes by which every device may exceed its memory, or -1. */
void milp_build_memory(milp_program *g, int32_t excess);
/* Terms of the row under construction: the bytes of operators and shared weights on a device. */
void milp_resident_terms(milp_program *g, int32_t device);

/* ---- text ---- */
int milp_write_lp(const milp_program *g, const char *path);
int milp_write_mps(const milp_program *g, const char *path);

/* ---- answers: what a solver decided, and its plan in whole nanoseconds ---- */
typedef struct milp_arc {
    int64_t before, after; /* task numbers: `after` starts when `before` has finished; both must be needed */
} milp_arc;

typedef struct milp_answer {
    int32_t *device; /* operator -> device */
    double *start;   /* by task number; 0 where not said: a task starts no earlier than it can anyway */
    int64_t n_tasks;
    milp_arc *arc; /* memory peak: who waits for whom */
    int64_t n_arcs;
    size_t cap_arc;
} milp_answer;
int milp_answer_init(milp_answer *a, const moirai_problem *p);
void milp_answer_free(milp_answer *a);
/* From the columns of `g`; MOIRAI_EFAIL where an operator has no device. Clears the arcs. */
int milp_answer_from(milp_answer *a, const milp_program *g, const double *value);
int milp_answer_arc(milp_answer *a, int64_t before, int64_t after);
/* The plan of these devices, starts as an order, and arcs. Memory is not checked. MOIRAI_EFAIL: the devices
 * are not allowed, or the arcs run in a circle. `sim` may be NULL. */
int milp_answer_plan(moirai_plan **out, const moirai_problem *p, const milp_answer *a, moirai_sim *sim);
/* Discrete columns of `plan`, after moving it to the representative that the symmetry rows admit. `value` has
 * n_cols entries, NAN where left to the solver. */
int milp_encode(double *value, const milp_program *g, const moirai_plan *plan);

/* ---- memory ---- */
/* Bytes that plan needs on `device` beyond its memory, 0 if it fits. `clique` (n_tensors entries, may be NULL) gets
 * tensors alive there at one such moment, the fewest that exceed it, *n how many (0: the resident bytes alone exceed
 * it). */
int64_t milp_overflow(const moirai_problem *p, const moirai_plan *plan, int32_t device, int32_t *clique, int32_t *n);

/* A clique that must not live together on a device, and the binaries that say how it is kept apart. */
typedef struct milp_apart {
    int32_t device, first,
        second; /* tensors: first dies before second is born; first == second: it lives for no time */
    int32_t col;
} milp_apart;
typedef struct milp_clique {
    int32_t device, n;
    int32_t *tensor;
} milp_clique;
struct milp_peak {
    int32_t n_cliques;
    milp_clique *clique;
    size_t cap_clique;
    int32_t n_aparts;
    milp_apart *apart;
    size_t cap_apart;
};
void milp_peak_free(milp_peak *k);
/* Remember a clique; false if it was known, or memory ran out. */
bool milp_peak_add(milp_peak *k, int32_t device, const int32_t *tensor, int32_t n);
void milp_peak_rows(milp_program *g, milp_peak *k); /* rows of all cliques; forgets and renews the binaries */
int milp_peak_arcs(milp_answer *a, const milp_program *g, const milp_peak *k, const double *value);

/* ---- the solver ---- */
typedef enum milp_status { MILP_OPTIMAL, MILP_INFEASIBLE, MILP_STOPPED } milp_status;
typedef struct milp_solve {
    const milp_program *g;
    double time_limit_s; /* 0: none */
    double gap;
    int64_t max_iterations; /* of the simplex method, a limit that does not depend on the machine; 0: none */
    int threads;
    uint64_t seed;
    const double *start; /* n_cols values, NAN where left open, or NULL */
    void *data;
    void (*solution)(void *data, const double *value);        /* every improving one; may be NULL */
    bool (*keep_on)(void *data, double bound, int64_t nodes); /* false: stop; may be NULL */
    /* Answer. */
    milp_status status;
    bool has_value;
    double *value; /* n_cols, the caller's */
    double bound;  /* on column 0, as the solver has it: see milp_safe_bound */
    int64_t nodes;
} milp_solve;
int milp_solve_run(milp_solve *s);
/* Whole grid units that no solution goes below, given what a solver in floating point says. */
int64_t milp_safe_bound(const milp_program *g, double bound);
bool milp_available(const char **why);

/* Is there any placement whose resident bytes fit? MOIRAI_EINFEASIBLE with who is how many bytes short if proven not.
 */
int milp_check_memory(const moirai_problem *p, const moirai_place_options *o);

#endif
