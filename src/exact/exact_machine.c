/* Machines: devices (4e), and the ports or channels of congestion (4g), each a one-machine problem with heads r, lengths p and tails q
 * (docs/theory.md, Lemma 39): its preemptive optimum as a bound, two tasks of which one can't go first, and the trial of adding an
 * operator whose device is open. A transfer whose other end is still open counts with its least length. Empty tasks hold no machine
 * (model.md) and never appear here. O(m^2) per machine of m tasks, O(V K m^2) with the trials. */
#include "exact/exact_search.h"

#include <string.h>

/* Sorts by rising releases. */
static void by_release(exact_job *job, int32_t n)
{
    for (int32_t a = 1; a < n; a++) {
        exact_job one = job[a];
        int32_t b = a;
        for (; b > 0 && job[b - 1].r > one.r; b--)
            job[b] = job[b - 1];
        job[b] = one;
    }
}

/* Destroys the order and the lengths of job[]. */
int64_t exact_preemptive(exact_job *job, int32_t n)
{
    int64_t now = 0, best = 0;
    int32_t next = 0, first = 0; /* job[first .. next) are there, sorted by tail, largest last */
    by_release(job, n);
    while (next < n || first < next) {
        if (first == next)
            now = UTIL_MAX(now, job[next].r);
        while (next < n && job[next].r <= now) {
            exact_job one = job[next];
            int32_t b = next++;
            for (; b > first && job[b - 1].q > one.q; b--)
                job[b] = job[b - 1];
            job[b] = one;
        }
        exact_job *run = &job[next - 1];
        int64_t until = next < n ? job[next].r : EXACT_NONE_NS;
        if (run->p <= until - now) {
            now += run->p;
            best = UTIL_MAX(best, now + run->q);
            /* Close the gap from the front: what is there slides up by one. */
            memmove(&job[first + 1], &job[first], (size_t)(next - 1 - first) * sizeof *job);
            first++;
        } else {
            run->p -= until - now;
            now = until;
        }
    }
    return best;
}

static int32_t device_jobs(const exact_search *s, const exact_state *st, int32_t device, exact_job *job)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t ns = moirai_op_ns(s->p, i, device);
        if (st->dom[i] == (uint64_t)1 << device && ns > 0)
            job[n++] = (exact_job){st->head[(int64_t)i * s->K + device], ns, st->tail[(int64_t)i * s->K + device], i};
    }
    return n;
}

/* The machines of transfer x: numbers after the devices; -1 where it holds none, or its end is open. */
static void slot_machines(const exact_search *s, int32_t x, int32_t machine[2])
{
    int32_t a = s->slot.from[x], b = s->slot.to[x], K = s->K;
    machine[0] = machine[1] = -1;
    if (s->slot.ns[x] <= 0)
        return;
    if (s->p->congestion == MOIRAI_CONGESTION_PORT) {
        machine[0] = a >= 0 ? K + a : -1;
        machine[1] = b >= 0 ? 2 * K + b : -1;
    } else if (s->p->congestion == MOIRAI_CONGESTION_CHANNEL && a >= 0 && b >= 0) {
        machine[0] = K + a * K + b;
    }
}

static int32_t slot_jobs(const exact_search *s, const exact_state *st, int32_t machine, exact_job *job)
{
    int32_t n = 0;
    for (int32_t a = 0; a < s->slot.n_active; a++) {
        int32_t x = s->slot.active[a], on[2];
        slot_machines(s, x, on);
        if (on[0] == machine || on[1] == machine)
            job[n++] = (exact_job){st->xhead[x], s->slot.ns[x], st->xtail[x], s->n + x};
    }
    return n;
}

int32_t exact_machine_jobs(const exact_search *s, const exact_state *st, int32_t machine, exact_job *job)
{
    return machine < s->K ? device_jobs(s, st, machine, job) : slot_jobs(s, st, machine, job);
}

int32_t exact_machine_count(exact_search *s)
{
    int32_t K = s->K;
    int32_t n = s->p->congestion == MOIRAI_CONGESTION_PORT      ? 3 * K
                : s->p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K
                                                                : K;
    memset(s->work.machine_count, 0, (size_t)n * sizeof *s->work.machine_count);
    for (int32_t a = 0; a < s->slot.n_active; a++) {
        int32_t on[2];
        slot_machines(s, s->slot.active[a], on);
        for (int32_t b = 0; b < 2; b++)
            if (on[b] >= 0)
                s->work.machine_count[on[b]]++;
    }
    for (int32_t k = 0; k < K; k++)
        s->work.machine_count[k] = s->n;
    return n;
}

static inline void put_after(exact_job *late, exact_job *soon, bool *moved)
{
    exact_raise(&late->r, soon->r + soon->p, moved);
    exact_raise(&soon->q, late->q + late->p, moved);
}

/* If a can't go before b, b goes before a. */
static bool select_pairs(const exact_search *s, exact_job *job, int32_t n, bool *moved)
{
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = a + 1; b < n; b++) {
            exact_job *u = &job[a], *v = &job[b];
            bool u_first = u->r + u->p + v->p + v->q < s->below_ns;
            bool v_first = v->r + v->p + u->p + u->q < s->below_ns;
            if (!u_first && !v_first)
                return false;
            if (u_first != v_first)
                put_after(u_first ? v : u, u_first ? u : v, moved);
        }
    }
    return true;
}

/* *least: the machine's bound. */
static bool one_machine(exact_search *s, exact_state *st, exact_job *job, int32_t n, int64_t *least, bool *changed)
{
    bool moved = false;
    if (!select_pairs(s, job, n, &moved))
        return false;
    memcpy(s->work.job_spare, job, (size_t)n * sizeof *job);
    int64_t lb = exact_preemptive(s->work.job_spare, n);
    for (int32_t a = 0; moved && a < n; a++)
        exact_raise_task(s, st, job[a].task, job[a].r, job[a].q, changed);
    st->lb_ns = UTIL_MAX(st->lb_ns, lb);
    *least = lb;
    return lb < s->below_ns;
}

/* One more job in the best schedule of a machine, at once when it may begin: the others are later by its length at most,
 * so that where this is not too late a trial is not worth its time. */
static bool surely_fits(const exact_search *s, const exact_state *st, int32_t i, int32_t k, int64_t lb)
{
    int64_t at = (int64_t)i * s->K + k, ns = s->p->op_time_ns[at];
    return UTIL_MAX(lb, st->head[at] + st->tail[at]) + ns < s->below_ns;
}

/* Would the whole unit of operator i fit on device k beside the n jobs that are there, whose own bound is lb? */
static bool try_device(const exact_search *s, const exact_state *st, int32_t i, int32_t k, const exact_job *job,
                       int32_t n, int64_t lb)
{
    int32_t u = s->unit.of[i], m = n;
    if (s->unit.off[u + 1] - s->unit.off[u] == 1 && surely_fits(s, st, i, k, lb))
        return true;
    memcpy(s->work.job_spare, job, (size_t)n * sizeof *job);
    for (int32_t a = s->unit.off[u]; a < s->unit.off[u + 1]; a++) {
        int64_t at = (int64_t)s->unit.op[a] * s->K + k;
        if (s->p->op_time_ns[at] > 0)
            s->work.job_spare[m++] = (exact_job){st->head[at], s->p->op_time_ns[at], st->tail[at], s->unit.op[a]};
    }
    return m == n || exact_preemptive(s->work.job_spare, m) < s->below_ns;
}

static bool try_all(exact_search *s, exact_state *st, int32_t k, exact_job *job, int32_t n, int64_t lb, bool *changed)
{
    by_release(job, n); /* once for all trials */
    for (int32_t u = 0; u < s->unit.n; u++) {
        int32_t i = s->unit.op[s->unit.off[u]];
        if (EXACT_ONLY(st->dom[i]) || !(st->dom[i] >> k & 1) || try_device(s, st, i, k, job, n, lb))
            continue;
        if (!exact_restrict(s, st, i, ~((uint64_t)1 << k), changed))
            return false;
    }
    return true;
}

bool exact_machines(exact_search *s, exact_state *st, bool *changed)
{
    int32_t machines = exact_machine_count(s);
    if (st->looked_below_ns != s->below_ns)
        st->stale_devices = UINT64_MAX;
    st->looked_below_ns = s->below_ns;
    for (int32_t m = 0; m < machines; m++) {
        if (m < s->K ? !(st->stale_devices >> m & 1) : s->work.machine_count[m] < 2)
            continue;
        if (m < s->K)
            st->stale_devices &= ~(UINT64_C(1) << m);
        int32_t n = exact_machine_jobs(s, st, m, s->work.job);
        int64_t lb = n == 1 ? s->work.job->r + s->work.job->p + s->work.job->q : 0;
        if (n >= 2 && !one_machine(s, st, s->work.job, n, &lb, changed))
            return false;
        if (m < s->K && n > 0 && st->n_open > 0 && !try_all(s, st, m, s->work.job, n, lb, changed))
            return false;
    }
    return true;
}
