/* Reading numbers and leaves of a certificate. Private to this folder. */
#ifndef MOIRAI_PROVE_PROVE_READ_H
#define MOIRAI_PROVE_PROVE_READ_H

#include "prove/prove.h"
#include "util/json.h"

#define PROVE_MAX_LEAVES ((size_t)1 << 20) /* of one pair */

int prove_wrong(const char *what); /* MOIRAI_EVERIFY */
bool prove_int64(yyjson_val *value, int64_t least, int64_t most, int64_t *out);
bool prove_int32(yyjson_val *value, int32_t least, int32_t most, int32_t *out);
/* An array of whole numbers in a range; free() it. */
int prove_list(int64_t **out, size_t *n, yyjson_val *array, int64_t least, int64_t most, const char *what);
int prove_list32(int32_t **out, size_t *n, yyjson_val *array, int32_t least, int32_t most, const char *what);
int prove_read_leaf(prove_leaf *leaf, const prove_block *b, int32_t a, yyjson_val *object);
void prove_free_leaf(prove_leaf *leaf);

/* A static proof: raises *ns, which is proven of the pair, to what the multipliers prove on top of it. */
int prove_static(int64_t *ns, const prove_block *b, int32_t a, int32_t z, yyjson_val *object);

/* What intervals say of the starts of all operators, in the numbers of the problem. */
typedef struct prove_view {
    int64_t *head, *tail; /* [operator * K + device] */
    size_t n_arcs;
    int32_t (*arc)[2]; /* from, to */
    int64_t *arc_ns;   /* from start to start, at least */
} prove_view;

/* A proof by the pool of all devices: raises *ns to what it proves by itself; `view` (of a block that is the whole, or
 * NULL) in place of longest paths. */
int prove_pool(int64_t *ns, const prove_block *b, int32_t a, int32_t z, yyjson_val *object, const prove_view *view);

/* A proof by a search tree: raises *ns to what it proves by itself; *nodes grows by those that were looked at. */
int prove_tree(int64_t *ns, int64_t *nodes, const prove_block *b, int32_t a, int32_t z, yyjson_val *object);

/* What the verifier knows by the time it comes to bytes. */
typedef struct prove_chain {
    const moirai_problem *p; /* without what floats */
    moirai_problem *spine;   /* the same if anything floats, else NULL */
    moirai_proof *proof;
    prove_cuts cuts;
    int32_t *block_class;
    int32_t n_classes;
    prove_block *class_; /* the first block of each class */
    int64_t *bound;      /* [(class * K + a) * K + z] */
} prove_chain;

/* The bound of the certificate's part about bytes; 0 where there is none. */
int prove_memory(int64_t *bound_ns, prove_chain *x, yyjson_val *object);

/* What is proven of a block between all pairs of devices, [a * K + z]: longest paths, and the pairs of `object`. */
int prove_class(int64_t *bounds, moirai_proof *proof, prove_block *b, yyjson_val *object);
/* The bound of the certificate's part about windows; 0 where there is none. */
int prove_windows(int64_t *bound_ns, prove_chain *x, yyjson_val *object);

#endif
