/* Edge finding on one machine: what must come behind a set of tasks, and what before it.
 *
 * Let tasks have heads r, lengths p and tails q, and let only plans faster than `below` count, so that a task is done by
 * d = below - 1 - q. If a set S and a task i outside it do not fit between the least head of both and the latest d of S,
 * then the last of them is not one of S: i comes behind all of S, and starts no sooner than any part of S can be done:
 * r(i) >= least head + sum of lengths, for every part of S. Tails the same, seen from the end. (Carlier and Pinson 1989;
 * the O(n^2) sweep is that of Nuijten, in Baptiste, Le Pape and Nuijten, Constraint-Based Scheduling, 2001.) Two tasks
 * alone are the rule of pairs in exact_machine.c; sets say more where a machine is full, which is where searches that
 * have fixed most devices spend their time.
 *
 * For a moment d(k) the sweep takes S from the tasks that are done by it: those from some head on. O(n^2) for n tasks. */
#include "exact/exact_search.h"

/* Tasks of one machine by rising heads, in columns. */
typedef struct row {
    int32_t n;
    int64_t *r, *p, *due; /* due: to be done by */
    int64_t *done;        /* when those of the set from here on can be done */
    int64_t *raised;      /* the new heads */
} row;

/* When all tasks that are to be done by `due` can be done; `longest` gets the length of the longest other one. */
static int64_t finish_of(const row *x, int64_t due, int64_t *longest)
{
    int64_t sum = 0, all = 0, most = 0;
    for (int32_t i = x->n - 1; i >= 0; i--) {
        bool in = x->due[i] <= due;
        sum += in ? x->p[i] : 0;
        all = UTIL_MAX(all, in ? x->r[i] + sum : 0);
        most = UTIL_MAX(most, in ? 0 : x->p[i]);
    }
    *longest = most;
    return all;
}

/* All sets of tasks that are to be done by `due`, each of those from some head on. */
static void sweep(const row *x, int64_t due, int64_t all)
{
    int64_t sum = 0, later = 0, before = 0; /* before: when a set that begins no later than here can be done */
    for (int32_t i = x->n - 1; i >= 0; i--) {
        if (x->due[i] <= due) {
            sum += x->p[i];
            later = UTIL_MAX(later, x->r[i] + sum);
        }
        x->done[i] = later;
    }
    for (int32_t i = 0; i < x->n; i++) {
        if (x->due[i] <= due) {
            before = UTIL_MAX(before, x->r[i] + sum);
            sum -= x->p[i];
            continue;
        }
        if (sum > 0 && x->r[i] + sum + x->p[i] > due)
            x->raised[i] = UTIL_MAX(x->raised[i], x->done[i]);
        if (before > 0 && before + x->p[i] > due)
            x->raised[i] = UTIL_MAX(x->raised[i], all);
    }
}

static row row_of(const exact_search *s, const exact_job *job, int32_t n)
{
    int64_t *at = s->work.edge_ns;
    row x = {n, at, at + n, at + 2 * n, at + 3 * n, at + 4 * n};
    for (int32_t i = 0; i < n; i++) {
        x.r[i] = x.raised[i] = job[i].r;
        x.p[i] = job[i].p;
        x.due[i] = s->below_ns - 1 - job[i].q;
    }
    return x;
}

/* Heads of all tasks; *moved where one has risen. A set after which the longest of the others still fits says nothing. */
static bool find_heads(exact_search *s, exact_job *job, int32_t n, bool *moved)
{
    exact_by_release(job, n);
    row x = row_of(s, job, n);
    for (int32_t k = 0; k < n; k++) {
        int64_t due = x.due[k], longest, all = finish_of(&x, due, &longest);
        if (all > due)
            return false;
        if (all + longest > due)
            sweep(&x, due, all);
    }
    for (int32_t i = 0; i < n; i++) {
        *moved |= x.raised[i] > job[i].r;
        job[i].r = x.raised[i];
    }
    return true;
}

static void turn(exact_job *job, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int64_t r = job[i].r;
        job[i].r = job[i].q;
        job[i].q = r;
    }
}

bool exact_edges(exact_search *s, exact_job *job, int32_t n, bool *moved)
{
    if (n < 3)
        return true;
    bool left = find_heads(s, job, n, moved);
    turn(job, n);
    left = left && find_heads(s, job, n, moved);
    turn(job, n);
    return left;
}
