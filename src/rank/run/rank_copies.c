/* Each copy is a job of its own, with sub-models and transfers; all of them have the same ranks. A rank opens a session for
 * every segment of every copy that it takes part in, so weights that two copies have on one device are there twice. */
#include "rank/run/rank_copies.h"

#include <stdlib.h>
#include <string.h>

#include "rank/run/rank_play.h"

static int check_equal(const rank_job *a, const rank_job *b, const char *path)
{
    bool same = a->n_ranks == b->n_ranks && a->n_devices == b->n_devices && a->n_inputs == b->n_inputs &&
                a->n_outputs == b->n_outputs;
    for (int k = 0; same && k < a->n_devices; k++)
        same = !strcmp(a->device[k].name, b->device[k].name);
    return same ? 0 : moirai_error(MOIRAI_EINPUT, "%s: not a copy of the first one's network and devices", path);
}

int rank_copies_read(rank_copies *c, const rank_world *w, const char *path)
{
    rank_job *first = NULL;
    *c = (rank_copies){0};
    int rc = rank_job_read(&first, path);
    int n = rc ? 0 : first->n_copies;
    c->job = util_alloc((size_t)n, sizeof *c->job);
    c->x = util_alloc((size_t)n, sizeof *c->x);
    rc = rc ? rc : c->job && c->x ? 0 : MOIRAI_EFAIL;
    if (rc) {
        rank_job_free(first);
        return rc;
    }
    c->job[c->n++] = first;
    for (; c->n < n && !rc; c->n++) {
        const char *other = first->copy[c->n].job;
        rc = rank_job_read(&c->job[c->n], other);
        rc = rc ? rc : check_equal(first, c->job[c->n], other);
    }
    for (int i = 0; i < c->n && !rc; i++)
        rc = rank_play_check(w, c->job[i]);
    return rc;
}

int rank_copies_load(rank_copies *c, const rank_world *w, const job_device *d)
{
    int rc = rank_ort_open(&c->ort, &d->ort);
    for (int i = 0; i < c->n && !rc; i++)
        rc = rank_exec_open(&c->x[i], w, c->job[i], &c->job[i]->device[d - c->job[0]->device], c->ort);
    return rc ? moirai_error_prefix(rc, "device '%s'", d->name) : 0;
}

int rank_copies_begin(const rank_copies *c)
{
    int rc = 0;
    for (int i = 0; i < c->n && !rc; i++)
        rc = rank_play_begin(c->x[i]);
    return rc;
}

void rank_copies_close(rank_copies *c)
{
    for (int i = 0; i < c->n; i++)
        rank_exec_close(c->x[i]);
    rank_ort_close(c->ort);
    for (int i = 0; i < c->n; i++)
        rank_job_free(c->job[i]);
    free(c->x);
    free(c->job);
    *c = (rank_copies){0};
}
