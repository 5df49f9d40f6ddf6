/* Fusion rules: lists of operator types, kept as a trie. Private to the coarsening room. */
#ifndef MOIRAI_COARSEN_RULES_H
#define MOIRAI_COARSEN_RULES_H

#include <moirai/coarsen.h>
#include "util/util.h"

#define COARSEN_RULE_MOST_ITEMS 64     /* types in one rule */
#define COARSEN_RULES_MOST_NODES 65536 /* of the trie: what alternatives and optional items unfold to */

/* The trie: node 0 is the root; a node stands for the types on the way to it. */
typedef struct coarsen_rule_node {
    int32_t rule;  /* the first rule that is spelt out here, MOIRAI_NONE */
    int32_t depth; /* types on the way */
    int32_t stamp; /* of the last walk that met it: see rules_parse.c */
} coarsen_rule_node;

typedef struct coarsen_rule_edge {
    int32_t node, symbol, child; /* child 0: a free slot */
} coarsen_rule_edge;

struct moirai_rules {
    util_strings *strings;
    util_names *symbols; /* canonical type -> symbol */
    int32_t n_symbols;
    int n_rules;
    size_t rules_capacity;
    const char **text; /* [rule] as written, single spaces */
    int32_t n_nodes;
    size_t nodes_capacity;
    coarsen_rule_node *node;
    size_t n_slots; /* a power of two, at most half full */
    int32_t n_edges;
    coarsen_rule_edge *slot;
    int32_t longest; /* types of the longest rule */
};

/* Child of `node` by `symbol`, or MOIRAI_NONE. O(1) expected: the paper's is_rule and is_sub_rule are one step here. */
int32_t coarsen_rules_step(const moirai_rules *r, int32_t node, int32_t symbol);

/* ---- types (rules_types.c) ----
 * The canonical spelling of a type in a graph: lower case, letters and digits only, aliases resolved
 * ("Gemm" -> "matmul"); with `single` (reads one tensor of another operator) add, mul and div become "add1", "mul1",
 * "div1". */
#define COARSEN_TYPE_LENGTH 64
void coarsen_type_canonical(char out[COARSEN_TYPE_LENGTH], const char *type, size_t length, bool single);
/* What a word in a rule stands for: a space-separated list of canonical types ("mask" -> "add add1 where").
 * A word that names no group is one type: `canonical` itself. */
const char *coarsen_type_alternatives(const char *canonical);

/* The symbol of each operator of `g`, MOIRAI_NONE where no rule mentions its type. */
void coarsen_rules_symbols(const moirai_rules *r, const moirai_graph *g, int32_t *symbol);

/* ---- shipped sets (rules_shipped.c) ---- NULL if there is none of that name. */
const char *coarsen_rules_shipped(const char *name);

#endif
