/* One class of blocks as a small problem of its own, and the parts it falls into. */
#ifndef MOIRAI_DECOMPOSE_BLOCK_H
#define MOIRAI_DECOMPOSE_BLOCK_H

#include "decompose/cuts.h"

/* The local problem has the entry cut first (time 0) and the exit cut last (time 0); its interior operators keep
 * their topological order. Devices of entry and exit are set per use through problem.op_devices.
 * Components are what the interior falls into when the cuts are taken away (attention heads, branches of an
 * inception module); components of one kind are copies of each other. */
typedef struct decompose_block {
    moirai_problem problem;
    bool holds_devices;                /* transfers do, in the whole problem: here they hold ports */
    int32_t entry, exit;               /* local operators, MOIRAI_NONE where the block has none */
    int32_t entry_device, exit_device; /* as pinned; 0 where there is no cut */
    int32_t n_interior, first;         /* interior operators are first .. first + n_interior - 1 */
    int32_t n_components;
    int32_t *component_off; /* component c has operators component_op[component_off[c]..] */
    int32_t *component_op;
    int32_t *component_kind; /* kind of each component */
    int32_t n_kinds;
    int32_t *kind_component; /* first component of the kind */
    int32_t *kind_count;
    int64_t unit;          /* of the problem's cuts */
    int32_t *op_component; /* of each local operator, MOIRAI_NONE for the cuts */
    int32_t *op_place;     /* and its place there; seen from any component -1 is the entry, -2 the exit */
    util_memory memory;    /* of all arrays */
} decompose_block;

int decompose_block_new(decompose_block **out, const moirai_problem *p, const decompose_cuts *s, int32_t block);
void decompose_block_free(decompose_block *b);
/* Its components and their kinds (block_components.c): the last step of decompose_block_new. */
int decompose_block_components(decompose_block *b);

/* Entry and exit are on these devices from here on (ignored where the block has none). */
void decompose_block_pin(decompose_block *b, int32_t entry_device, int32_t exit_device);

/* The global operator of local operator `op` in copy `block`; and the global tensor of a local one. */
int32_t decompose_block_global_op(const decompose_block *b, const moirai_problem *p, const decompose_cuts *s,
                                  int32_t block, int32_t op);
int32_t decompose_block_global_tensor(const decompose_block *b, const moirai_problem *p, const decompose_cuts *s,
                                      int32_t block, int32_t tensor);

/* The block's shared entry tensor, over whose receivers a sending decides, or MOIRAI_NONE. */
int32_t decompose_block_shared_tensor(const decompose_block *b);

#endif
