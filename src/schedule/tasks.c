/* Kahn's order and the finishes along it, in one pass; see tasks.h. */
#include "schedule/tasks.h"

#include <stdlib.h>

#include <moirai/error.h>
#include "util/util.h"

#define NOBODY (-1)

int schedule_tasks_init(schedule_tasks *g, size_t most_tasks, size_t most_waits)
{
    *g = (schedule_tasks){0};
    if (most_tasks > INT32_MAX || most_waits > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "%zu tasks and %zu waits, more than 2^31", most_tasks, most_waits);
    g->length_ns = util_alloc(most_tasks, sizeof *g->length_ns);
    g->finish_ns = util_alloc(most_tasks, sizeof *g->finish_ns);
    g->missing = util_alloc(most_tasks, sizeof *g->missing);
    g->waits = util_alloc(most_tasks, sizeof *g->waits);
    g->first = util_alloc(most_tasks, sizeof *g->first);
    g->queue = util_alloc(most_tasks, sizeof *g->queue);
    g->next = util_alloc(most_waits, sizeof *g->next);
    g->who = util_alloc(most_waits, sizeof *g->who);
    return g->length_ns && g->finish_ns && g->missing && g->waits && g->first && g->queue && g->next && g->who
               ? 0
               : MOIRAI_EFAIL;
}

void schedule_tasks_free(schedule_tasks *g)
{
    free(g->length_ns);
    free(g->finish_ns);
    free(g->missing);
    free(g->waits);
    free(g->first);
    free(g->queue);
    free(g->next);
    free(g->who);
    *g = (schedule_tasks){0};
}

void schedule_tasks_reset(schedule_tasks *g, int32_t n)
{
    g->n = n;
    g->n_waits = 0;
    for (int32_t i = 0; i < n; i++) {
        g->length_ns[i] = 0;
        g->waits[i] = 0;
        g->first[i] = NOBODY;
    }
}

void schedule_tasks_wait(schedule_tasks *g, int32_t task, int32_t before)
{
    g->who[g->n_waits] = task;
    g->next[g->n_waits] = g->first[before];
    g->first[before] = g->n_waits++;
    g->waits[task]++;
}

bool schedule_tasks_play(schedule_tasks *g, double *end_ns)
{
    int32_t n = 0;
    *end_ns = 0;
    for (int32_t i = 0; i < g->n; i++) {
        g->finish_ns[i] = 0; /* until its turn: when it can start */
        g->missing[i] = g->waits[i];
        if (g->missing[i] == 0)
            g->queue[n++] = i;
    }
    for (int32_t done = 0; done < n; done++) {
        int32_t i = g->queue[done];
        double finish_ns = g->finish_ns[i] += g->length_ns[i];
        *end_ns = UTIL_MAX(*end_ns, finish_ns);
        for (int32_t w = g->first[i]; w != NOBODY; w = g->next[w]) {
            int32_t who = g->who[w];
            g->finish_ns[who] = UTIL_MAX(g->finish_ns[who], finish_ns);
            if (--g->missing[who] == 0)
                g->queue[n++] = who;
        }
    }
    return n == g->n;
}
