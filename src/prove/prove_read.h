/* Reading a certificate, whose shape is checked first, and the kinds of proof in it. Private to this folder. */
#ifndef MOIRAI_PROVE_PROVE_READ_H
#define MOIRAI_PROVE_PROVE_READ_H

#include "prove/prove.h"

int prove_wrong(const char *what); /* MOIRAI_EVERIFY */
/* The same of what may well be true, but is larger than what the verifier takes. */
int prove_too_large(const char *what);

/* ---- prove_shape.c ---- */
/* Every object of the certificate has the keys that it needs, each of its type: MOIRAI_EVERIFY where not, MOIRAI_EINPUT
 * where a key is there twice. What follows counts on it. *of_rate: of the time between requests. */
int prove_shape(bool *of_rate, yyjson_val *root);

/* ---- prove_read.c ---- */
yyjson_val *prove_get(yyjson_val *object, const char *key); /* NULL where it is missing, or null */
int64_t prove_number(yyjson_val *object, const char *key);  /* of a key that is there */
/* A number below `n`, or PROVE_NONE where it is larger. */
int32_t prove_index(yyjson_val *object, const char *key, int32_t n);
/* A list of numbers in `m`. MOIRAI_EVERIFY where one is above `most`. */
int prove_list(int64_t **out, size_t *n, util_memory *m, yyjson_val *array, int64_t most, const char *what);
int prove_list32(int32_t **out, size_t *n, util_memory *m, yyjson_val *array, int32_t most, const char *what);
/* Numbers that come so many at a time; `wrong` says that they do not. */
int prove_rows(int64_t **out, size_t *n, util_memory *m, yyjson_val *list, size_t each, const char *wrong);
/* Prices, one of each of n resources; 0 where there is no list. */
int prove_read_prices(int64_t *out, size_t n, yyjson_val *list, const char *what);
/* The leaves of a pair in `m`, which leave nothing out, images by equal devices aside if `equals`. None at all are fine. */
int prove_read_leaves(prove_leaf **out, int32_t *n, util_memory *m, const prove_block *b, int32_t a, int32_t z,
                      yyjson_val *list, bool equals);

/* ---- kinds of proof ---- */
/* A proof by a search tree: raises *ns to what it proves by itself; *nodes grows by those that were looked at. */
int prove_tree(int64_t *ns, int64_t *nodes, const prove_block *b, int32_t a, int32_t z, yyjson_val *object);

/* A proof by prices on loads: *ns is what it proves by itself; *by_bytes: with prices on bytes, which devices that are equal in time need
 * not share. `rate`: of the time between requests, of which many are under way; the block is the whole then, without cuts. */
int prove_loads(int64_t *ns, bool *by_bytes, moirai_proof *proof, const prove_block *b, int32_t a, int32_t z, bool rate,
                yyjson_val *object);

/* ---- prove_many.c ---- */
/* All of a certificate, of a problem of more than PROVE_MASK_DEVICES devices. */
int prove_many(int64_t *ns, moirai_proof *proof, const prove_problem *p, yyjson_val *root);

/* ---- the whole ---- */
typedef struct prove_chain {
    const prove_problem *p; /* without what floats */
    prove_problem part;     /* the same if anything floats */
    moirai_proof *proof;
    int32_t n_cuts, *cut;
    int32_t *block_off, *block_op; /* operators of block b, the cuts around it included */
    int32_t *block_class, n_classes;
    prove_block *class_; /* the first block of each class */
    int64_t *bound;      /* [(class * K + a) * K + z] */
    util_memory memory;
} prove_chain;

/* The shortest way along the cuts, in units of which `unit` make a nanosecond, where an operator's bytes on k cost
 * price[k] each and block i between a and z costs value(i's class, a, z); price and value NULL: none, and the proven
 * bounds. MOIRAI_ELIMIT where the time is up. */
int prove_chain_cost(__int128 *least, const prove_chain *x, int64_t unit, const int64_t *price, const __int128 *value);
/* What is proven of a block between all pairs of devices, [a * K + z]: longest paths, and the pairs of `object`. */
int prove_class(int64_t *bounds, moirai_proof *proof, prove_block *b, yyjson_val *object);
/* The bound of the certificate's part about bytes; 0 where there is none. */
int prove_memory(int64_t *bound_ns, prove_chain *x, yyjson_val *object);

#endif
