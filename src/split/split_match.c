/* Whose operators a plan's are: the model's own, or what fusion rules made of them.
 *
 * The names tell: the set of names in the plan must be that of the model's graph, or of its coarsening by the rules
 * given (or by the shipped sets in turn). */
#include "split/split_read.h"

#include <yyjson.h>
#include <moirai/coarsen.h>

/* *stranger: the first operator of the plan that `g` has not, or NULL. */
static bool same_names(const moirai_graph *g, yyjson_val *ops, const char **stranger)
{
    size_t i, n;
    yyjson_val *op;
    yyjson_arr_foreach(ops, i, n, op) {
        const char *name = yyjson_get_str(yyjson_obj_get(op, "name"));
        if (name && moirai_graph_find(g, name) == MOIRAI_NONE) {
            *stranger = name;
            return false;
        }
    }
    *stranger = NULL;
    return n == (size_t)g->n_ops;
}

static int try_rules(split_plan *p, const moirai_graph *fine, const char *rules_name, yyjson_val *ops,
                     const char **stranger)
{
    moirai_rules *rules = NULL;
    moirai_graph *coarse = NULL;
    int rc = moirai_rules_open(&rules, rules_name);
    rc = rc ? rc : moirai_coarsen(&coarse, fine, rules, NULL);
    moirai_rules_free(rules);
    if (rc)
        return rc;
    if (same_names(coarse, ops, stranger))
        p->units = p->coarse = coarse;
    else
        moirai_graph_free(coarse);
    return 0;
}

int split_match(split_plan *p, const moirai_graph *fine, const char *rules, yyjson_val *ops)
{
    const char *shipped[] = {"onnxruntime", "eigen"}, *stranger = NULL;
    int rc = 0, n = rules ? 1 : 2;
    size_t count = yyjson_arr_size(ops);
    if (same_names(fine, ops, &stranger))
        p->units = fine;
    for (int i = 0; i < n && !p->units && !rc; i++)
        rc = try_rules(p, fine, rules ? rules : shipped[i], ops, &stranger);
    if (rc || p->units)
        return rc;
    if (stranger && moirai_graph_find(fine, stranger) == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "%s: the plan does not belong to this model, which has no operator '%s'",
                            p->label, stranger);
    return moirai_error(
        MOIRAI_EINPUT,
        "%s: the plan does not belong to this model: its %zu operators are neither the model's %d nor what "
        "the rules %s make of them (--rules names those that the plan was made with)",
        p->label, count, fine->n_ops, rules ? rules : "onnxruntime or eigen");
}
