/* Paths of operators that take too long. */
#include "relax/messages.h"

#include <string.h>

#include "relax/relax_tuning.h"
#include "util/util.h"

typedef struct walk {
    const moirai_problem *p;
    double *left; /* of the operators' times: 0 on paths that were found */
    double *end;  /* the longest way to the end of each operator, by what is left */
    int32_t *before, *op;
} walk;

/* Writes the longest path by what is left to w->op, its last operator first; how many operators it has. */
static int32_t longest(walk *w)
{
    const moirai_problem *p = w->p;
    int32_t last = p->topo[0], n = 0;
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        w->before[i] = MOIRAI_NONE;
        w->end[i] = 0;
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++) {
            int32_t from = p->tensor_producer[p->op_in[a]];
            if (w->before[i] == MOIRAI_NONE || w->end[from] > w->end[i]) {
                w->before[i] = from;
                w->end[i] = w->end[from];
            }
        }
        w->end[i] += w->left[i];
        last = w->end[i] > w->end[last] ? i : last;
    }
    for (int32_t i = last; i != MOIRAI_NONE; i = w->before[i])
        w->op[n++] = i;
    return n;
}

static void find(relax_rows *rows, walk *w, const double *time, double length)
{
    int32_t *off = rows->path_off, room = (int32_t)relax_paths_room(w->p);
    for (int32_t found = 0; found < RELAX_PATHS_EACH_TIME && rows->n_paths < RELAX_MOST_PATHS; found++) {
        int32_t n = longest(w), first = off[rows->n_paths];
        double all = 0, own = 0;
        for (int32_t i = 0; i < n; i++) {
            all += time[w->op[i]];
            own += w->left[w->op[i]];
            w->left[w->op[i]] = 0;
        }
        if (all <= RELAX_PATHS_WORTH * length || own <= RELAX_PATHS_OWN * all || first + n > room)
            break;
        for (int32_t i = 0; i < n; i++)
            rows->path_op[first + i] = w->op[n - 1 - i];
        off[++rows->n_paths] = first + n;
    }
}

size_t relax_paths_room(const moirai_problem *p)
{
    return (size_t)UTIL_MIN((int64_t)RELAX_MOST_PATHS * p->n_ops, RELAX_PATHS_ROOM);
}

int relax_paths_add(relax_rows *rows, const moirai_problem *p, const double *time, double length)
{
    size_t n = (size_t)p->n_ops;
    walk w = {.p = p};
    util_memory m = {0};
    UTIL_TAKE(&m, w.left, n);
    UTIL_TAKE(&m, w.end, n);
    UTIL_TAKE(&m, w.before, n);
    UTIL_TAKE(&m, w.op, n);
    if (!m.failed && n > 0) {
        memcpy(w.left, time, sizeof *time * n);
        find(rows, &w, time, length);
    }
    int rc = util_taken_all(&m);
    util_release(&m);
    return rc;
}
