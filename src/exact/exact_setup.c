/* Tables of the exact search: built once per call, flat, freed together. */
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

#include <stdlib.h>
#include <string.h>

#define HORIZON_LIMIT ((int64_t)1 << 58) /* sums of a few such times stay within int64 */

bool exact_fits(const moirai_problem *p, const char **why)
{
    int64_t slots = p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : (int64_t)p->n_tensors * p->n_devices;
    const char *reason = p->n_ops > EXACT_SETUP_MOST_OPS  ? "more than 512 operators"
                         : slots > EXACT_SETUP_MOST_SLOTS ? "more than 16384 possible transfers"
                                                          : NULL;
    if (why)
        *why = reason;
    return !reason;
}

/* No plan needs longer than all its tasks one after the other, each at its slowest. */
static int horizon(exact_search *s, int64_t *out)
{
    const moirai_problem *p = s->p;
    __int128 total = 0, bytes = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < s->K; k++)
            most = UTIL_MAX(most, p->op_time_ns[(int64_t)i * s->K + k]);
        total += most;
        bytes += p->op_memory_bytes[i];
    }
    for (int32_t w = 0; w < p->n_weights; w++)
        bytes += p->weight_bytes[w];
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int64_t most = 0;
        for (int32_t a = 0; a < s->K * s->K; a++)
            most = UTIL_MAX(most, p->class_transfer_ns[(int64_t)p->tensor_class[t] * s->K * s->K + a]);
        total += (__int128)most * (p->tensor_edge_off[t + 1] - p->tensor_edge_off[t]);
        bytes += p->tensor_bytes[t];
    }
    total += 1;
    if (total > HORIZON_LIMIT || bytes > HORIZON_LIMIT)
        return moirai_error(MOIRAI_ELIMIT,
                            "problem '%s': its times or sizes add up to more than 2^58: too much for the exact search",
                            p->name);
    *out = (int64_t)total;
    return 0;
}

static void make_units(exact_search *s, int32_t *unit_of_group)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t g = s->mode.plain ? MOIRAI_NONE : s->p->op_group[i],
                *known = g == MOIRAI_NONE ? NULL : &unit_of_group[g];
        s->unit.of[i] = known && *known ? *known - 1 : n++;
        if (known)
            *known = s->unit.of[i] + 1; /* 0: none yet */
    }
    s->unit.n = n;
    for (int32_t i = 0; i < s->n; i++)
        s->unit.off[s->unit.of[i] + 1]++;
    for (int32_t u = 0; u < n; u++)
        s->unit.off[u + 1] += s->unit.off[u];
    int32_t *at = s->work.task; /* as scratch: nothing is alive yet */
    memcpy(at, s->unit.off, (size_t)n * sizeof *at);
    for (int32_t i = 0; i < s->n; i++)
        s->unit.op[at[s->unit.of[i]]++] = i;
}

static int allocate(exact_search *s)
{
    size_t n = (size_t)s->n, K = (size_t)s->K, X = (size_t)s->X, T = (size_t)s->p->n_tensors;
    util_memory *m = &s->memory;
    UTIL_TAKE(m, s->unit.off, n + 1);
    UTIL_TAKE(m, s->unit.op, n);
    UTIL_TAKE(m, s->unit.of, n);
    UTIL_TAKE(m, s->symmetry.same_device, K * K);
    UTIL_TAKE(m, s->work.job, 2 * n + X + 1);
    UTIL_TAKE(m, s->work.job_spare, 2 * n + X + 1);
    UTIL_TAKE(m, s->slot.active, X);
    UTIL_TAKE(m, s->slot.from, X);
    UTIL_TAKE(m, s->slot.to, X);
    UTIL_TAKE(m, s->slot.ns, X);
    UTIL_TAKE(m, s->work.free_bytes, K);
    UTIL_TAKE(m, s->work.machine_count, 2 * K + K * K);
    UTIL_TAKE(m, s->work.life, T);
    UTIL_TAKE(m, s->work.task, 2 * (n + X) + 1);
    UTIL_TAKE(m, s->work.cover, T);
    UTIL_TAKE(m, s->dead_ends, n);
    return util_taken_all(m);
}

void exact_root(exact_search *s)
{
    exact_state *st = s->stack.state[0];
    size_t rows = (size_t)s->n * (size_t)s->K * sizeof(int64_t), X = (size_t)s->X;
    memset(st->head, 0, 2 * rows + 2 * X * sizeof(int64_t));
    memset(st->stale, EXACT_STALE_HEAD | EXACT_STALE_TAIL, (size_t)s->n);
    st->lb_ns = st->looked_below_ns = 0;
    st->n_arcs = st->n_open = 0;
    memcpy(st->dom, s->p->op_devices, (size_t)s->n * sizeof *st->dom);
    for (int32_t i = 0; i < s->n; i++)
        st->n_open += !EXACT_ONLY(st->dom[i]);
}

int exact_search_new(exact_search *s, const moirai_problem *p, const exact_options *o, exact_result *r)
{
    const char *why;
    memset(s, 0, sizeof *s);
    if (!exact_fits(p, &why))
        return moirai_error(MOIRAI_ELIMIT, "problem '%s': %s: too large for the exact search", p->name, why);
    s->p = p;
    s->o = o;
    s->r = r;
    s->n = p->n_ops;
    s->K = p->n_devices;
    s->mode.edge = p->flow == MOIRAI_FLOW_EDGE;
    s->mode.plain = o->most_tree > 0;
    s->mode.peak = p->memory == MOIRAI_MEMORY_PEAK && !s->mode.plain;
    s->mode.memory_binds = exact_memory_binds(s);
    s->X = s->mode.edge ? p->n_edges : p->n_tensors * p->n_devices;
    s->run.open_lb_ns = EXACT_NONE_NS;
    s->run.start_s = util_seconds();
    int32_t *of_group = util_take(&s->memory, (size_t)p->n_groups, sizeof *of_group);
    int rc = allocate(s);
    rc = rc ? rc : horizon(s, &s->run.horizon_ns);
    s->below_ns = s->run.horizon_ns;
    if (!rc) {
        make_units(s, of_group);
        rc = util_off(&o->stop, UTIL_METHOD_MIRRORS) ? 0 : exact_mirrors_find(s);
    }
    if (!rc && o->below_ns >= 0 && o->below_ns < s->below_ns)
        s->below_ns = o->below_ns;
    s->run.ceiling_ns = s->below_ns;
    if (!rc && !exact_push(s, 0))
        rc = MOIRAI_EFAIL;
    return rc;
}

void exact_search_free(exact_search *s)
{
    util_release(&s->memory);
    for (int32_t a = 0; a < s->stack.n; a++)
        free(s->stack.state[a]);
    free(s->stack.state);
    free(s->stack.arc);
}
