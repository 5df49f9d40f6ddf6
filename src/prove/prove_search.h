/* A search tree in court: what a node knows, and the rules that close it. Private to this folder. */
#ifndef MOIRAI_PROVE_PROVE_SEARCH_H
#define MOIRAI_PROVE_PROVE_SEARCH_H

#include "prove/prove.h"

/* What a node knows; prove_search.words numbers in a row, which begin at `may`. */
typedef struct prove_known {
    uint64_t *may;                /* per operator: devices left */
    int64_t *head, *tail;         /* [operator * K + device] */
    int64_t *out_head, *out_tail; /* per transfer */
    int32_t n_arcs;
} prove_known;

typedef struct prove_task {
    int64_t head, time, tail;
    int32_t number; /* operator, or n + transfer */
} prove_task;

typedef struct prove_search {
    const prove_block *b;
    int32_t n, K, a, z;
    int64_t length; /* plans of at most this are looked for */
    int32_t n_transfers;
    size_t words;            /* of what a node knows */
    bool *sure;              /* per transfer: it takes place, in the node at hand, */
    int64_t *least;          /* takes at least this, */
    int32_t *from, *to;      /* between these devices, -1: open */
    prove_task *job, *trial; /* of one machine */
    int32_t (*arc)[2];       /* before, after */
    util_memory memory;
} prove_search;

#define PROVE_SEARCH_DEPTH 4000 /* of nodes within nodes, and so of arcs */

/* ---- prove_tree.c ---- */
/* Of a block between a and z; its memory, in which its nodes are, is to be released also after a failure. */
int prove_search_new(prove_search *x, const prove_block *b, int32_t a, int32_t z, int64_t length_ns);
/* The root, of which nothing is known but what the problem allows. */
bool prove_known_new(prove_known *s, prove_search *x);

/* ---- prove_search.c ---- */
/* The transfer of edge e, to device `to` with flow tensor. */
int32_t prove_search_transfer(const prove_search *x, int32_t e, int32_t to);
/* Whether the rules leave nothing of the node; false also where the time is up. */
bool prove_search_closes(prove_search *x, prove_known *s);
/* Whether two tasks of the node, put to prove_search_closes just before, certainly take place one after the other. */
bool prove_search_apart(const prove_search *x, const prove_known *s, int32_t u, int32_t v);

#endif
