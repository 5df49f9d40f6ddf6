/* The verifier's own problem, read from the file by the verifier's own reader. Operators are numbered in topological
 * order, edges sorted; nothing else of src/ knows this struct. Private to this folder. */
#ifndef MOIRAI_PROVE_PROVE_PROBLEM_H
#define MOIRAI_PROVE_PROVE_PROBLEM_H

#include <moirai/prove.h>

#include "util/json.h"
#include "util/stop.h"

/* How the line begins that refuses what may be true, but is larger than what the verifier takes. */
#define PROVE_LIMITS "beyond the verifier's limits: "

#define PROVE_NONE (-1)
#define PROVE_MAX_DEVICES 512
#define PROVE_MASK_DEVICES 64             /* more: prove_many.c alone */
#define PROVE_MAX_TIME (INT64_C(1) << 61) /* all times of a problem together are less */

typedef enum prove_congestion { PROVE_PORT, PROVE_CHANNEL, PROVE_FREE } prove_congestion;

/* A tensor's way to one reader. */
typedef struct prove_edge {
    int32_t from, output, to; /* output: place of the tensor among those that `from` writes */
    const int64_t *ns;        /* [from device * K + to device] */
    int64_t even_ns;          /* what all of these between two devices are, or PROVE_NONE where they differ */
    int32_t readers;          /* of that tensor, among the operators at hand */
    int32_t packet;           /* in a block: the first edge of that tensor; while a file is read the tensor itself */
} prove_edge;

typedef struct prove_problem {
    int32_t K, n; /* devices, operators */
    bool by_edge; /* flow */
    prove_congestion congestion;
    bool holds_devices;    /* a transfer holds its two devices; congestion is then PROVE_PORT */
    int64_t *time, *bytes; /* [operator * K + device], -1 where it can't run; [operator] */
    uint64_t *may;         /* devices that can run the operator and all of its group, up to PROVE_MASK_DEVICES */
    const char **name;
    int32_t n_edges;
    prove_edge *edge;      /* by from, output, to */
    int32_t *off;          /* an operator's first edge */
    int32_t *place;        /* number in files, among the operators that are here -> number here */
    int32_t *local;        /* scratch of prove_block_new: -1 throughout between calls */
    const util_stop *stop; /* or NULL */
    const char *title;
    int64_t *capacity;  /* bytes per device */
    util_memory memory; /* its own; what it shares with the problem that it is a part of is there */
    yyjson_doc *doc;    /* of the whole: has the names */
} prove_problem;

/* Reads a problem file (docs/formats.md): MOIRAI_EINPUT where it is malformed, MOIRAI_EINFEASIBLE where an operator or
 * a group has no device, MOIRAI_ELIMIT where `stop` (NULL: none), which is the problem's from now on, came first. To be freed also after a failure. O((V + E) log V + tables). */
int prove_problem_read(prove_problem *p, const moirai_prove_file *file, const util_stop *stop);
/* The problem of the operators op[0 .. n) alone, in that order, which must be topological. A plan of the whole, seen at
 * these, is a plan of theirs. It must not outlive what `p` has taken elsewhere; out->memory may have something already. */
int prove_problem_take(prove_problem *out, const prove_problem *p, int32_t n, const int32_t *op);
void prove_problem_free(prove_problem *p);
/* `raw`, whose operators are numbered as in the file, in topological order. */
int prove_problem_sort(prove_problem *p, const prove_problem *raw);

/* 0, or MOIRAI_ELIMIT where the budget is used up: to be asked before every piece of work that takes long. */
int prove_go_on(const prove_problem *p);
/* The same before piece i of many that take little each. */
static inline int prove_look(const prove_problem *p, int64_t i)
{
    return i % 16 ? 0 : prove_go_on(p);
}
/* As util_take; also where it is more than 2 GiB at once there is a message, and the memory has failed. */
void *prove_take(util_memory *m, size_t n, size_t size);
#define PROVE_TAKE(m, pointer, n) ((pointer) = prove_take(m, (n), sizeof *(pointer)))

#endif
