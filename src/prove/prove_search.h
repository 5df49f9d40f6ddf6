/* A search tree in court: what a node knows, and the rules that close it. Private to this folder. */
#ifndef MOIRAI_PROVE_PROVE_SEARCH_H
#define MOIRAI_PROVE_PROVE_SEARCH_H

#include "prove/prove.h"

/* What a node knows; prove_search.words numbers in a row, which begin at `may`. */
typedef struct prove_known {
    uint64_t *may;        /* per operator: devices left */
    int64_t *head, *tail; /* [operator * K + device], and behind these of each transfer */
    int32_t n_arcs;
} prove_known;

typedef struct prove_task {
    int64_t at, time; /* at: place of its head and tail */
} prove_task;

typedef struct prove_search {
    const prove_block *b;
    int32_t n, K, a, z;
    int64_t length; /* plans of at most this are looked for */
    int32_t n_transfers;
    size_t words;   /* of what a node knows */
    int64_t *least; /* per transfer, in the node at hand: it takes at least this, -1 where it need not take place, */
    int32_t *from, *to;      /* between these devices, -1: open */
    prove_task *job, *trial; /* of one machine */
    int32_t (*arc)[2];       /* before, after */
    util_memory memory;
} prove_search;

#define PROVE_SEARCH_DEPTH 4000 /* of nodes within nodes, and so of arcs */

/* ---- prove_tree.c ---- */
/* Of a block between a and z; its memory is to be released also after a failure. */
int prove_search_new(prove_search *x, const prove_block *b, int32_t a, int32_t z, int64_t length_ns);
/* A node as a copy of another one, or (NULL) as the root, of which nothing is known but what the problem allows. free(s->may). */
bool prove_known_new(prove_known *s, const prove_search *x, const prove_known *above);

/* ---- prove_search.c ---- */
/* The number, as a task, of the transfer of edge e, to device `to` with flow tensor. Operators have their own. */
int32_t prove_search_transfer(const prove_search *x, int32_t e, int32_t to);
/* Whether the rules leave nothing of the node; false also where the time is up. */
bool prove_search_closes(prove_search *x, prove_known *s);
/* Whether two tasks of the node, put to prove_search_closes just before, certainly take place one after the other. */
bool prove_search_apart(const prove_search *x, const prove_known *s, int32_t u, int32_t v);

#endif
