/* Paths of operators that take too long. */
#include "relax/paths.h"

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

static void take(relax_paths *x, const walk *w, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        x->op[x->off[x->n] + i] = w->op[n - 1 - i];
    x->off[x->n + 1] = x->off[x->n] + n;
    x->n++;
}

static void find(relax_paths *x, walk *w, double length)
{
    for (int32_t found = 0; found < RELAX_PATHS_EACH_TIME && x->n < RELAX_PATHS_MOST; found++) {
        int32_t n = longest(w);
        double all = 0, own = 0;
        for (int32_t i = 0; i < n; i++) {
            all += x->time[w->op[i]];
            own += w->left[w->op[i]];
            w->left[w->op[i]] = 0;
        }
        if (all <= RELAX_PATHS_WORTH * length || own <= RELAX_PATHS_OWN * all || x->off[x->n] + n > x->room)
            break;
        take(x, w, n);
    }
}

int relax_paths_new(relax_paths *x, const moirai_problem *p)
{
    *x = (relax_paths){.room = (int32_t)UTIL_MIN((int64_t)RELAX_PATHS_MOST * p->n_ops, RELAX_PATHS_ROOM)};
    UTIL_TAKE(&x->memory, x->off, RELAX_PATHS_MOST + 1);
    UTIL_TAKE(&x->memory, x->op, (size_t)x->room);
    UTIL_TAKE(&x->memory, x->on_path, (size_t)p->n_ops);
    UTIL_TAKE(&x->memory, x->time, (size_t)p->n_ops);
    return util_taken_all(&x->memory);
}

void relax_paths_free(relax_paths *x)
{
    util_release(&x->memory);
}

void relax_paths_price(relax_paths *x, int32_t n)
{
    memset(x->on_path, 0, sizeof *x->on_path * (size_t)n);
    for (int32_t a = 0; a < x->n; a++)
        for (int32_t at = x->off[a]; at < x->off[a + 1]; at++)
            x->on_path[x->op[at]] += x->price[a];
}

void relax_paths_load(relax_paths *x)
{
    for (int32_t a = 0; a < x->n; a++) {
        x->load[a] = 0;
        for (int32_t at = x->off[a]; at < x->off[a + 1]; at++)
            x->load[a] += x->time[x->op[at]];
    }
}

int relax_paths_add(relax_paths *x, const moirai_problem *p, double length)
{
    size_t n = (size_t)p->n_ops;
    walk w = {.p = p};
    util_memory m = {0};
    UTIL_TAKE(&m, w.left, n);
    UTIL_TAKE(&m, w.end, n);
    UTIL_TAKE(&m, w.before, n);
    UTIL_TAKE(&m, w.op, n);
    if (!m.failed && n > 0) {
        memcpy(w.left, x->time, sizeof *x->time * n);
        find(x, &w, length);
    }
    int rc = util_taken_all(&m);
    util_release(&m);
    return rc;
}

void relax_paths_keep(relax_paths *x, double least)
{
    int32_t n = 0;
    for (int32_t a = 0; a < x->n; a++) {
        int32_t first = x->off[a], size = x->off[a + 1] - first;
        if (x->mean[a] < least)
            continue;
        x->mean[n] = x->mean[a];
        memmove(x->op + x->off[n], x->op + first, sizeof *x->op * (size_t)size);
        x->off[n + 1] = x->off[n] + size;
        n++;
    }
    x->n = n;
}
