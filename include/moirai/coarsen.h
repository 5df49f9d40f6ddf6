/* Graph coarsening by operator fusion, GCOF (the paper's Algorithm 1; model.md, "Coarsening"). */
#ifndef MOIRAI_COARSEN_H
#define MOIRAI_COARSEN_H

#include <moirai/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_rules moirai_rules;

/* A shipped set ("eigen", "onnxruntime", "none") or the path of a rule file. */
MOIRAI_API int moirai_rules_open(moirai_rules **out, const char *name_or_path);
/* Rules from memory, in the format of docs/coarsening.md; `label` stands for the path in messages. *out is the
 * caller's; MOIRAI_EINPUT names line and word. */
MOIRAI_API int moirai_rules_parse(moirai_rules **out, const char *text, const char *label);
/* Frees them. NULL is fine. */
MOIRAI_API void moirai_rules_free(moirai_rules *rules);
/* How many rules the set has. */
MOIRAI_API int moirai_rules_count(const moirai_rules *rules);
/* A rule as words, "conv bn relu". Owned by the set. */
MOIRAI_API const char *moirai_rules_text(const moirai_rules *rules, int rule);

/* One pass, O(V+E). `count` (may be NULL) gets how many fused operators each rule made. A fused
 * operator is named after its last member and lists all; its type joins the members' with '+'. */
MOIRAI_API int moirai_coarsen(moirai_graph **out, const moirai_graph *g, const moirai_rules *rules, int64_t *count);

/* A plan of the coarse problem as a plan of the original operators of `fine` (same cluster): members on
 * their fused operator's device, in its order, times simulated with the fine problem's own. */
MOIRAI_API int moirai_plan_expand(moirai_plan **out, const moirai_problem *fine, const moirai_problem *coarse,
                                  const moirai_graph *coarse_graph, const moirai_plan *coarse_plan);

#ifdef __cplusplus
}
#endif
#endif
