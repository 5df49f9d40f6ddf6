/* moirai-rank turns FILE: several plans loaded at once and run in turns.
 *
 * Plans are compared, and predictions judged, by runs right beside each other: a machine's speed changes within tenths
 * of a second. Starting MPI and loading sub-models takes longer than that, so all plans are loaded by one start. Each has
 * processes of its own, one per device: threads, caches of sessions and cores are as they are when the plan runs alone,
 * and a plan that waits for its turn sleeps.
 *
 * The file names the jobs and the turns; the ranks of the jobs follow each other. Whoever ends a turn hands a baton to
 * the ranks of the next one: an empty message, for which they look out rarely (rank_world_recv_late), so that those who
 * wait take no time from those who work. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/cluster.h>
#include "rank/gpu/mps.h"
#include "rank/rank.h"
#include "rank/rank_manifest.h"
#include "rank/run/rank_play.h"
#include "util/json.h"

enum { TAG_BATON = 32030 };

typedef struct turn {
    int job;
    int64_t warmup, runs;
    const char *result, *other;
} turn;

typedef struct turns {
    rank_world all, w; /* all ranks; those of the own plan */
    yyjson_doc *doc;
    int n_jobs, n_turns, own; /* own: job */
    rank_job **job;
    int *first; /* [job] its first rank; n_jobs + 1 of them */
    turn *turn;
} turns;

/* ---- the file ---- */

static int read_turn(turns *t, const char *path, yyjson_val *value, size_t index)
{
    util_json_at at = {path, "turn", NULL, index};
    turn *x = &t->turn[index];
    int64_t job = 0;
    int rc = util_json_int64(&job, &at, value, "job", true, 0);
    rc = rc ? rc : util_json_int64(&x->warmup, &at, value, "warmup", true, 0);
    rc = rc ? rc : util_json_int64(&x->runs, &at, value, "runs", true, 1);
    rc = rc ? rc : util_json_string(&x->result, NULL, &at, value, "result", true);
    rc = rc ? rc : util_json_string(&x->other, NULL, &at, value, "other", false);
    if (!rc && job >= t->n_jobs)
        rc = util_json_fail(&at, "job %lld: there are %d", (long long)job, t->n_jobs);
    x->job = (int)job;
    return rc;
}

static int read_jobs(turns *t, const char *path, yyjson_val *jobs)
{
    util_json_at at = {.label = path};
    yyjson_val *value;
    size_t i, n;
    int rc = 0;
    t->job = util_alloc(yyjson_arr_size(jobs), sizeof *t->job);
    t->first = util_alloc(yyjson_arr_size(jobs) + 1, sizeof *t->first);
    if (!t->job || !t->first)
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(jobs, i, n, value) {
        const char *file = NULL;
        rc = rc ? rc : util_json_value_string(&file, NULL, &at, value, "jobs");
        rc = rc ? rc : rank_job_read(&t->job[i], file);
        if (rc)
            return rc;
        t->first[i + 1] = t->first[i] + t->job[i]->n_ranks;
        t->n_jobs++;
    }
    return t->first[t->n_jobs] == t->all.size
               ? 0
               : moirai_error(MOIRAI_EUSAGE, "%s: %d ranks for %d devices", path, t->all.size, t->first[t->n_jobs]);
}

static int read_file(turns *t, const char *path)
{
    yyjson_val *jobs = NULL, *list = NULL, *value;
    util_json_at at = {.label = path};
    size_t i, n;
    int rc = util_json_read(&t->doc, path, "moirai-turns");
    yyjson_val *root = rc ? NULL : yyjson_doc_get_root(t->doc);
    rc = rc ? rc : util_json_array(&jobs, &at, root, "jobs", true);
    rc = rc ? rc : util_json_array(&list, &at, root, "turns", true);
    rc = rc ? rc : read_jobs(t, path, jobs);
    rc = rc ? rc : (t->turn = util_alloc(yyjson_arr_size(list), sizeof *t->turn)) ? 0 : MOIRAI_EFAIL;
    yyjson_arr_foreach(rc ? NULL : list, i, n, value) {
        if ((rc = read_turn(t, path, value, i)))
            return rc;
        t->n_turns++;
    }
    for (int k = 0; k < t->n_jobs; k++)
        if (t->first[k] <= t->all.rank)
            t->own = k;
    return rc;
}

static void close_file(turns *t)
{
    for (int k = 0; k < t->n_jobs; k++)
        rank_job_free(t->job[k]);
    free(t->job);
    free(t->first);
    free(t->turn);
    yyjson_doc_free(t->doc);
}

/* ---- turns ---- */

/* From the end of turn number i to everybody who is next: the ranks of another plan or, at the end, all others. */
static void hand_on(const turns *t, int i)
{
    static const char baton = 0;
    bool last = i + 1 == t->n_turns;
    int next = last ? -1 : t->turn[i + 1].job;
    if (t->w.rank || next == t->own)
        return;
    for (int r = 0; r < t->all.size; r++)
        if (last ? r < t->first[t->own] || r >= t->first[t->own + 1] : r >= t->first[next] && r < t->first[next + 1])
            rank_world_send(&t->all, &baton, 0, r, TAG_BATON);
}

static void tell(const turns *t, int done)
{
    char line[80];
    int n = snprintf(line, sizeof line, "moirai-rank: progress %d %d\n", done, t->n_turns);
    if (t->w.rank == 0 && t->job[t->own]->progress && write(STDERR_FILENO, line, (size_t)n) < 0)
        t->job[t->own]->progress = false; /* nobody listens */
}

static void play_all(const turns *t, rank_exec *x)
{
    rank_job job = *t->job[t->own];
    job.outputs = NULL;
    job.progress = false;
    x->job = &job;
    for (int i = 0; i < t->n_turns; i++) {
        if (t->turn[i].job != t->own)
            continue;
        if (i && t->turn[i - 1].job != t->own)
            rank_world_recv_late(&t->all, t->first[t->turn[i - 1].job], TAG_BATON);
        job.warmup = t->turn[i].warmup;
        job.runs = t->turn[i].runs;
        job.result = t->turn[i].result;
        job.other = t->turn[i].other;
        int rc = rank_play(x);
        if (rc)
            rank_world_abort(&t->all, rc); /* others would wait for ever */
        tell(t, i + 1);
        hand_on(t, i);
    }
    int last = t->n_turns ? t->turn[t->n_turns - 1].job : t->own;
    if (last != t->own) /* ending MPI takes time, too: all together, when nothing is measured any more */
        rank_world_recv_late(&t->all, t->first[last], TAG_BATON);
    x->job = t->job[t->own];
}

/* Before anybody frees what others have mapped. */
static int let_go(const turns *t, rank_exec *x)
{
    rank_gpu_let_go(x);
    return rank_world_agree(&t->all, 0);
}

static int run_turns(turns *t, const char *path)
{
    rank_exec *x = NULL;
    rank_ort *ort = NULL;
    int rc = rank_world_agree(&t->all, read_file(t, path));
    if (rc)
        return rc;
    rank_world_part(&t->w, &t->all, t->own);
    const rank_job *job = t->job[t->own];
    const job_device *d = rank_play_device(job, t->w.rank);
    rc = d ? rank_play_check(&t->w, job) : moirai_error(MOIRAI_EFAIL, "%s: a rank without a device", path);
    int joined = rank_mps_join(d && moirai_ep_gpu(d->ort.ep) >= 0, d ? d->share : 0); /* collective */
    rc = rc ? rc : joined;
    rc = rc ? rc : rank_play_load(&x, &ort, &t->w, job, d);
    rc = rank_world_agree(&t->all, rc);
    rc = rc ? rc : rank_play_begin(x);
    rc = rank_world_agree(&t->all, rc);
    if (!rc)
        play_all(t, x);
    rc = rc ? rc : let_go(t, x);
    rank_exec_close(x);
    rank_ort_close(ort);
    rank_world_part_close(&t->w);
    return rc;
}

int rank_turns(int argc, char **argv)
{
    turns t = {0};
    const char *path = argc > 0 ? argv[0] : "";
    int rc = rank_world_open(&t.all, &argc, &argv);
    if (rc) {
        fprintf(stderr, "moirai-rank: error %d 0 %s\n", -rc, moirai_error_message());
        return -rc;
    }
    rc = run_turns(&t, path);
    close_file(&t);
    rank_world_close();
    return -rc;
}
