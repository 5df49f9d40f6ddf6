/* The pricer inside: shared by pricer.c (what is known before prices), cheapest.c (the cheapest value) and
 * cheapest_schedule.c (the schedule behind it). */
#ifndef MOIRAI_PRICING_PRICER_STATE_H
#define MOIRAI_PRICING_PRICER_STATE_H

#include "pricing/pricer.h"
#include "util/util.h"

/* An edge of the spanning tree, seen from the child. */
typedef struct pricing_tree_node {
    int32_t op;
    int32_t parent; /* index of the node, -1 for the root */
    int32_t tensor; /* between child and parent */
    bool is_source; /* the child produces what the parent reads */
    int32_t share;  /* readers among whom the transfer is shared */
} pricing_tree_node;

/* Spanning trees of the kinds. */
typedef struct pricing_trees {
    int32_t *kind_node; /* per kind: first node in `node`; parents come before children */
    pricing_tree_node *node;
    int32_t n_nodes;
    int32_t *readers; /* per local tensor: distinct readers in the block */
} pricing_trees;

/* Costs of tasks by start step under the prices at hand. Operators of equal times share lines, and so do tensors of
 * equal transfer times and share. */
typedef struct pricing_cost_lines {
    int32_t *of_op, n_of_ops;          /* per operator */
    int32_t *of_tensor, n_of_tensors;  /* per tensor */
    int32_t *op, *tensor;              /* a representative of each */
    int64_t *op_cost;                  /* [(line * K + k) * N + g] */
    int64_t *transfer_cost;            /* [((line * K + a) * K + b) * N + g] */
    bool *op_filled, *transfer_filled; /* which of these lines are there */
} pricing_cost_lines;

/* When the shared tensor is where in the case at hand. */
typedef struct pricing_arrivals {
    int64_t soonest_ns[MOIRAI_MASK_DEVICES]; /* -1: not received */
    int64_t latest_ns[MOIRAI_MASK_DEVICES];
    uint64_t listed; /* receivers of the case */
} pricing_arrivals;

/* Equal devices of which nothing sets one apart have one of them, the stand-in, priced for all. */
typedef struct pricing_stand_ins {
    int32_t least[MOIRAI_MASK_DEVICES];  /* the least device that is equal to this one in the block */
    int32_t of[MOIRAI_MASK_DEVICES];     /* by case and branches */
    int32_t copies[MOIRAI_MASK_DEVICES]; /* devices that it stands for, itself included; 0: has a stand-in */
    uint64_t present;                    /* devices that this pricing looks at */
} pricing_stand_ins;

typedef struct pricing_scratch {
    int64_t *value;      /* [node * K * N + k * N + g], of the kind at hand */
    int64_t *best_value; /* the same, the least until then (of a child that produces) or from then on (that reads) */
    int64_t *message;    /* K * N */
    int64_t *line;       /* N */
    int64_t *cumulative; /* [resource * (N + 1) + g] */
    int64_t *step_price; /* [resource * N + g] */
} pricing_scratch;

/* The schedule that a walk finds. */
typedef struct pricing_found {
    int8_t *device;
    int64_t *start;
    pricing_use *use;
    int32_t n_uses;
    int64_t finish_ns; /* of what `use` holds */
} pricing_found;

struct pricing_pricer {
    bool cut_short; /* this pricing was: its numbers mean nothing */
    const decompose_block *block;
    int32_t K, n_resources, max_steps;
    int32_t shared_tensor;
    const pricing_grid *grid;
    const pricing_prices *prices;
    pricing_trees tree;
    pricing_cost_lines lines;
    pricing_case at; /* at hand */
    pricing_arrivals arrival;
    pricing_stand_ins stand_in;
    pricing_scratch work;
    pricing_found found;
    util_memory memory; /* of all arrays */
};

/* What a task holds, and how long. */
typedef struct pricing_task_use {
    int32_t r1, r2; /* resources; r2 = -1: one only; r1 = -1: none */
    int64_t ns;
} pricing_task_use;

/* Where an operator of a tree is: its device and the step of its start. */
typedef struct pricing_tree_state {
    int32_t k, g;
} pricing_tree_state;

static inline bool pricing_pricer_allows(const pricing_pricer *w, int32_t op, int32_t k)
{
    return w->block->problem.op_devices[op] >> k & w->stand_in.present >> k & 1;
}

/* Whether readers of the shared tensor on k have it by a send of the case, which pays for itself. */
static inline bool pricing_pricer_sent(const pricing_pricer *w, int32_t k)
{
    return w->at.how->fixed && (!w->at.how->open || k == w->block->entry_device || w->arrival.listed >> k & 1);
}

static inline pricing_task_use pricing_pricer_op_task(const pricing_pricer *w, int32_t op, int32_t k)
{
    return (pricing_task_use){k, -1, moirai_op_ns(&w->block->problem, op, k)};
}

static inline pricing_task_use pricing_pricer_transfer_task(const pricing_pricer *w, int32_t tensor, int32_t a,
                                                            int32_t b)
{
    const moirai_problem *q = &w->block->problem;
    schedule_held held = schedule_holds(q, a, b);
    return (pricing_task_use){held.a, held.b, moirai_transfer_ns(q, tensor, a, b)};
}

/* Least cost over the starts within step g; *start gets where (if not NULL). PRICING_NONE where it would end after
 * T. */
int64_t pricing_pricer_task_cost(const pricing_pricer *w, pricing_task_use x, int32_t g, int64_t *start);
/* Prices by step, and no line filled. */
void pricing_pricer_set_prices(pricing_pricer *w, const int64_t *price);
/* Costs of an operator on a device, by the step of its start. */
const int64_t *pricing_pricer_op_costs(pricing_pricer *w, int32_t op, int32_t k);
/* Costs of a tensor's transfer by the step of its start. */
const int64_t *pricing_pricer_transfer_costs(pricing_pricer *w, int32_t tensor, int32_t a, int32_t b);
/* The schedule behind the value of a kind whose root is in `root`. */
void pricing_pricer_walk(pricing_pricer *w, int32_t kind, pricing_tree_state root, pricing_column_fn column,
                         void *data);
/* The cheapest j-th sending of the shared tensor. */
int64_t pricing_pricer_send(pricing_pricer *w, int32_t j, pricing_column_fn column, void *data);

#endif
