/* Edge finding on one machine: what must come behind a set of tasks, and what before it.
 *
 * Let tasks have heads r, lengths p and tails q, and let only plans faster than `below` count, so that a task is done by
 * d = below - 1 - q. If a set S and a task i outside it do not fit between the least head of both and the least d of S,
 * then i is not done before S is: were it before some task of S, all of them and i itself would lie between these two
 * moments. So i comes behind all of S, and starts no sooner than any part of S can be done: r(i) >= least head + sum of
 * lengths, for every part of S. Tails the same, seen from the end. (Carlier and Pinson 1989; the O(n^2) sweep is that of
 * Nuijten, in Baptiste, Le Pape and Nuijten, Constraint-Based Scheduling, 2001.) Two tasks alone are the rule of pairs in
 * exact_machine.c; sets say more where a machine is full, which is where searches that have fixed all devices spend
 * their time.
 *
 * For a moment d(k) the sweep takes S from the tasks that are done by it: those from some head on. O(n^2) for n tasks. */
#include "exact/exact_search.h"

static void sort_by_release(exact_job *job, int32_t n)
{
    for (int32_t a = 1; a < n; a++) {
        exact_job one = job[a];
        int32_t b = a;
        for (; b > 0 && job[b - 1].r > one.r; b--)
            job[b] = job[b - 1];
        job[b] = one;
    }
}

/* All sets of tasks that are done by `due`, tasks sorted by heads. raised[i]: the new head of i; done[i]: when the tasks of
 * the set from i on can be done. False: they are not done by then. */
static bool sweep(const exact_job *job, int32_t n, int64_t below_ns, int64_t due, int64_t *done, int64_t *raised)
{
    int64_t sum = 0, all = 0, before = 0; /* before: when the tasks of the set up to here can be done, with all behind */
    for (int32_t i = n - 1; i >= 0; i--) {
        if (below_ns - 1 - job[i].q <= due) {
            sum += job[i].p;
            all = UTIL_MAX(all, job[i].r + sum);
        }
        done[i] = all;
    }
    if (all > due)
        return false;
    for (int32_t i = 0; i < n; i++) {
        if (below_ns - 1 - job[i].q <= due) {
            before = UTIL_MAX(before, job[i].r + sum);
            sum -= job[i].p;
            continue;
        }
        if (sum > 0 && job[i].r + sum + job[i].p > due)
            raised[i] = UTIL_MAX(raised[i], done[i]);
        if (before > 0 && before + job[i].p > due)
            raised[i] = UTIL_MAX(raised[i], all);
    }
    return true;
}

/* Heads of all tasks; *moved where one has risen. */
static bool find_heads(exact_search *s, exact_job *job, int32_t n, bool *moved)
{
    int64_t *done = s->edge_ns, *raised = s->edge_ns + n;
    sort_by_release(job, n);
    for (int32_t i = 0; i < n; i++)
        raised[i] = job[i].r;
    for (int32_t k = 0; k < n; k++) {
        bool again = false; /* the same moment has been asked */
        for (int32_t j = 0; j < k && !again; j++)
            again = job[j].q == job[k].q;
        if (!again && !sweep(job, n, s->below_ns, s->below_ns - 1 - job[k].q, done, raised))
            return false;
    }
    for (int32_t i = 0; i < n; i++) {
        *moved |= raised[i] > job[i].r;
        job[i].r = raised[i];
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
