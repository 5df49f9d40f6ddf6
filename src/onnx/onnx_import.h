/* What the importer knows of a model while it walks it: values (tensors by name), nodes, scopes (graphs). Everything
 * here lives in the import's arena and dies with it. */
#ifndef MOIRAI_ONNX_ONNX_IMPORT_H
#define MOIRAI_ONNX_ONNX_IMPORT_H

#include <moirai/onnx.h>

#include "onnx/onnx_arena.h"
#include "onnx/onnx_model.h"
#include "util/util.h"

#define ONNX_MAX_RANK 12
#define ONNX_MAX_NUMBERS 2048          /* constants up to this length keep their numbers */
#define ONNX_NUMBERS_BUDGET (64 << 20) /* bytes of such numbers in one import */
#define ONNX_MAX_BYTES (1ll << 50)     /* of one tensor */
#define ONNX_MAX_SUM (1ll << 60)       /* flops and traffic saturate here: sums of a few never overflow */

/* TensorProto.DataType, the ones that rules name. */
enum {
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_BFLOAT16 = 16
};

/* Types whose numbers are kept as doubles. */
static inline bool onnx_is_real(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE || type == ONNX_BFLOAT16;
}

typedef struct onnx_scope onnx_scope;

typedef struct onnx_value {
    const char *name;
    int32_t type; /* TensorProto.DataType, 0 unknown */
    int32_t rank;
    int64_t dim[ONNX_MAX_RANK];
    int64_t elements, bytes;
    int64_t stored_bytes; /* of a constant: what a device must hold for it */
    bool shaped;          /* rank .. bytes are set */
    bool constant;        /* known before the network runs */
    bool needed;          /* an output of the network depends on it */
    bool guessed;         /* its size is the documented fallback's */
    moirai_onnx_known
        known; /* how its size, or a constant's numbers, are known: no better than what they follow from */
    onnx_scope *scope;
    int32_t producer;                /* node of its scope, or -1 */
    int32_t stamp;                   /* last operator that counted it */
    int32_t n_readers, read_stamp;   /* operators that hold this constant; the last that was counted, + 1 */
    const Onnx__TensorProto *tensor; /* of an initializer or a Constant */
    const Onnx__TypeProto *declared; /* by the graph's inputs, outputs or value_info */
    int32_t n_numbers;               /* of a small constant; at most one of the two arrays is set */
    int64_t *ints;
    double *reals;
} onnx_value;

typedef struct onnx_import onnx_import;
typedef struct onnx_rule onnx_rule;

typedef struct onnx_node {
    const Onnx__NodeProto *proto;
    const onnx_rule *rule; /* NULL: an operator that we know nothing about */
    onnx_import *import;
    onnx_scope *scope;
    int32_t n_in, n_out, n_captured, n_children;
    onnx_value **in, **out; /* NULL: left out */
    onnx_value **captured;  /* outer tensors that its subgraphs read, each once */
    onnx_scope **child;     /* its subgraphs, in the order of its attributes */
    bool folded;
    bool cost_known;
    bool endless; /* a Loop, or with one inside, that turns as often as data want */
    int64_t flops;
    bool clashes;        /* its rule found inputs that can't go together: a product of 1x8 by 9x8 */
    bool misfits;        /* or sizes that leave something over: evidence enough where sizes are tried out */
    int64_t read_bytes;  /* what it reads of its inputs; -1: all of them */
    int64_t inner_bytes; /* traffic inside its subgraphs */
} onnx_node;

struct onnx_scope {
    onnx_scope *parent;
    const Onnx__GraphProto *graph;
    util_names *names;
    int32_t n_values, n_nodes;
    onnx_value **value;
    onnx_node *node;
    int32_t *order; /* topological */
};

/* What an open dimension of an input is, by its name or its place. */
typedef enum onnx_open_kind {
    ONNX_OPEN_UNSAID,
    ONNX_OPEN_BATCH,
    ONNX_OPEN_SPACE,
    ONNX_OPEN_TOKENS,
    ONNX_OPEN_SAMPLES,
    ONNX_OPEN_CACHE,
    ONNX_OPEN_TOTAL, /* tokens and cache */
    ONNX_OPEN_CHANNELS,
    ONNX_OPEN_FRAMES
} onnx_open_kind;
typedef struct onnx_open {
    const char *key;   /* its name, or "INPUT:AXIS": what --dim takes */
    const char *input; /* the first that has it */
    bool unnamed;
    onnx_open_kind kind;
    int64_t size;
} onnx_open;

struct onnx_import {
    const onnx_model *model;
    const moirai_onnx_options *options;
    moirai_onnx_report *report;
    onnx_scope *root;
    int64_t opset;
    size_t numbers_left; /* of ONNX_NUMBERS_BUDGET */
    bool *dim_used;      /* options->dims that were met */
    onnx_open *open;     /* dimensions that nobody set, with what they are taken as; onnx_open.c */
    int32_t n_open;
    size_t open_capacity;
    int attempt;       /* which of the usual sizes they are taken as */
    bool flexible;     /* another attempt may help */
    bool takes_tokens; /* the number of tokens is open */
    bool strict;       /* sizes are tried out: what does not fit is refused, whoever is to blame */
    bool clashed;      /* it was */
    bool unsure;       /* a size was guessed or depends on data: what follows from it accuses nobody */
    onnx_arena arena;
    util_names **maps; /* to free */
    size_t n_maps, maps_capacity;
};

/* One operator type. `shape` sets the outputs and says whether it could; `fold` computes the numbers of
 * constant outputs; `flops` counts arithmetic, or else it is per_output flops for each output element. */
struct onnx_rule {
    const char *type;
    bool (*shape)(onnx_node *n);
    void (*fold)(onnx_node *n);
    int64_t (*flops)(const onnx_node *n);
    int per_output;
    unsigned flags;
};
enum {
    ONNX_VIEW = 1,       /* a backend renames the tensor: no traffic, no arithmetic */
    ONNX_SELECT = 2,     /* reads of its first input only as much as it writes */
    ONNX_NEVER_FOLD = 4, /* random, or with subgraphs */
    ONNX_OF_SHAPE = 8    /* needs its input's shape only: always a constant */
};

/* ---- onnx_import.c ---- */
int onnx_scope_infer(onnx_import *im, onnx_scope *s);
int onnx_import_run(onnx_import *im);
void onnx_import_free(onnx_import *im);

/* ---- onnx_options.c ---- */
int onnx_options_check(const moirai_onnx_options *o);        /* are all dimensions NAME=NUMBER? `o` may be NULL */
int onnx_options_shape(onnx_import *im, const char *option); /* give an input its shape */
bool onnx_options_dim(onnx_import *im, const char *name, int64_t *out); /* what the user set it to, if so */
int onnx_options_unused(const onnx_import *im, const char *option);     /* the error of one that names nothing */

/* ---- onnx_open.c ---- */
int onnx_open_find(onnx_import *im); /* fills im->open for im->attempt */
int onnx_open_attempts(void);
/* The size of a named dimension, set or assumed. */
bool onnx_open_named(onnx_import *im, const char *name, int64_t *out);
char *onnx_open_key(onnx_import *im, const char *name, const char *input,
                    size_t axis);                          /* in the arena; NULL: no memory */
int onnx_open_ask(const onnx_import *im, const char *why); /* the error where no size fits */
/* "?" is what some exporters write where there is no name. */
static inline bool onnx_is_dim_name(const char *name)
{
    return *name && !(name[0] == '?' && !name[1]);
}

/* ---- onnx_scope.c ---- */
onnx_value *onnx_scope_find(const onnx_scope *s, const char *name);
int onnx_scope_new(onnx_scope **out, onnx_import *im, onnx_scope *parent, const Onnx__GraphProto *graph);

/* ---- onnx_value.c ---- */
/* False (and the value untouched) for negative dims, too high a rank or too many bytes. `v` NULL is fine. */
bool onnx_value_shape(onnx_value *v, int32_t type, int32_t rank, const int64_t *dim);
bool onnx_value_like(onnx_value *v, int32_t type, const onnx_value *other);
int onnx_value_from_tensor(onnx_import *im, onnx_value *v, const Onnx__TensorProto *t);
/* From a declared type; symbolic dimensions as set or assumed, else 1 where `defaults`, else false. */
int onnx_value_from_type(onnx_import *im, onnx_value *v, const Onnx__TypeProto *t, bool defaults, bool *set);
const Onnx__TensorShapeProto *onnx_value_declared(const onnx_value *v); /* NULL: none */
/* MOIRAI_EUSAGE where a shape asked for has another rank or other fixed dimensions than the file declares; `option` is
 * what the user wrote. */
int onnx_value_agrees(const onnx_value *v, int32_t rank, const int64_t *dim, const char *option);
/* "batch=8 x 3 x 224": the declared names with what they are taken as. */
void onnx_value_show(const onnx_value *v, char *text, size_t size);
const char *onnx_type_name(int32_t type);                 /* "float", "int64", ... */
int64_t *onnx_value_ints(onnx_import *im, onnx_value *v); /* room for v->elements numbers, or NULL */
double *onnx_value_reals(onnx_import *im, onnx_value *v);
static inline bool onnx_has_numbers(const onnx_value *v)
{
    return v && (v->ints || v->reals);
}
static inline double onnx_real(const onnx_value *v, int64_t i)
{
    return v->reals ? v->reals[i] : (double)v->ints[i];
}
int64_t onnx_value_int(const onnx_value *v, int64_t i); /* reals are cut, and clamped to int64 */

/* ---- onnx_rules.c ---- */
const onnx_rule *onnx_rule_find(const char *domain, const char *type);
int onnx_rule_count(void);
const onnx_rule *onnx_rule_at(int index);

/* ---- onnx_subgraph.c ---- */
int onnx_captured(onnx_import *im, onnx_node *n);
int onnx_subgraphs_infer(onnx_import *im, onnx_node *n);

/* ---- onnx_build.c ---- */
/* Operator k of the graph is the k-th node of the root scope that is kept. */
int onnx_build(moirai_graph **out, onnx_import *im, const char *label);
bool onnx_is_kept(const onnx_node *n); /* after the build */

/* Saturating sums and products of non-negative numbers. */
static inline int64_t onnx_add(int64_t a, int64_t b)
{
    int64_t r;
    return util_add64(&r, a, b) && r < ONNX_MAX_SUM ? r : ONNX_MAX_SUM;
}
static inline int64_t onnx_mul(int64_t a, int64_t b)
{
    int64_t r;
    return util_mul64(&r, a, b) && r < ONNX_MAX_SUM ? r : ONNX_MAX_SUM;
}

/* Inputs and outputs that may not be there. */
static inline onnx_value *onnx_in(const onnx_node *n, int32_t i)
{
    return i < n->n_in ? n->in[i] : NULL;
}
static inline onnx_value *onnx_out(const onnx_node *n, int32_t i)
{
    return i < n->n_out ? n->out[i] : NULL;
}

#endif
