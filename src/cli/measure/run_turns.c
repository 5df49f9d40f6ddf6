/* Several plans run in turns by one start of their ranks (src/rank/run/rank_turns.c).
 *
 * Starting MPI and loading sub-models takes most of a second; a machine's speed changes within tenths of one. One start
 * for many turns therefore measures ten times as often in the same time, and neighbours in time are compared. All plans
 * are in memory at once then, which is allowed where they surely fit. */
#include "cli/measure/run_turns.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/step_ranks.h"
#include "cli/steps/steps.h"
#include "util/json.h"
#include "util/util.h"

enum { COPIES = 3 }; /* of the weights, that a loaded sub-model may need: the file, the session, packed for kernels */

static bool has_gpu(const moirai_cluster *c)
{
    bool any = false;
    for (int32_t k = 0; c && k < c->n_devices; k++)
        any |= moirai_ep_gpu(c->device[k].ep) >= 0;
    return any;
}

/* The other copies of the plan; the report is of all of them. */
static int split_copies(const cli_run *w, const char *model, moirai_split_report *report)
{
    int rc = 0;
    for (int c = 1; w->copies && c < w->copies->n && !rc; c++) {
        moirai_split_report more;
        rc = cli_split(&more, w->cli, w->copies->copy[c].plan, model, w->copies->copy[c].parts, has_gpu(w->cluster));
        if (rc)
            return moirai_error_prefix(rc, "copy %d", c + 1);
        report->n_segments += more.n_segments;
        report->n_transfers += more.n_transfers;
        report->file_bytes += more.file_bytes;
    }
    return rc;
}

int cli_run_lay_out(cli_run *w, const char *plan, moirai_split_report *report)
{
    const char *cluster = cli_text(w->cli, "cluster"), *model = cli_arg(w->cli, 1);
    cli_mpi mpi;
    int rc = cli_mpi_find(&mpi); /* before the work, what it would end with */
    rc = rc ? rc : cluster ? cli_cluster_of(&w->cluster, w->cli, cluster) : 0;
    rc = rc ? rc : cli_run_folders(w);
    cli_status_set("splitting %s", model);
    rc = rc ? rc : cli_split(report, w->cli, plan, model, w->parts, has_gpu(w->cluster));
    rc = rc ? rc : cli_copies_open(&w->copies, &w->pace, plan, w->folder, w->in_flight);
    rc = rc ? rc : split_copies(w, model, report);
    rc = rc ? rc : cli_run_job(w, model);
    if (!rc && w->copies)
        report->n_used = w->n_ranks;
    w->bytes = rc ? 0 : report->file_bytes;
    cli_status_set("%s", "");
    return rc;
}

/* ---- one start ---- */

typedef struct start {
    const cli_run *const *run; /* those that are loaded */
    int n;
    const cli_turn *turn;
    int n_turns;
    bool only; /* turn[].who is not asked: there is one plan */
} start;

static int write_turns(const start *s, const char *path)
{
    util_writer o;
    util_writer_begin(&o, "moirai-turns");
    util_writer_pair_open(&o, "jobs", '[');
    for (int i = 0; i < s->n; i++)
        util_writer_string(&o, s->run[i]->job);
    util_writer_close(&o, ']');
    util_writer_pair_open(&o, "turns", '[');
    for (int i = 0; i < s->n_turns; i++) {
        util_writer_break(&o);
        util_writer_open(&o, '{');
        util_writer_pair_int(&o, "job", s->only ? 0 : s->turn[i].who);
        util_writer_pair_int(&o, "warmup", s->turn[i].warmup);
        util_writer_pair_int(&o, "runs", s->turn[i].runs);
        util_writer_pair_string(&o, "result", s->turn[i].result);
        if (*s->turn[i].other)
            util_writer_pair_string(&o, "other", s->turn[i].other);
        util_writer_close(&o, '}');
    }
    util_writer_close(&o, ']');
    util_writer_close(&o, '}');
    return util_writer_save(&o, path);
}

static void draw(void *data, const char *text)
{
    long done, total;
    (void)data;
    if (sscanf(text, "%ld %ld", &done, &total) == 2)
        cli_status_now("running in turns: %ld of %ld", done, total);
}

static int launch(const start *s)
{
    char path[4200];
    const char *argv[] = {"turns", path, NULL};
    int most = 0, n = 0;
    bool has_hosts = false;
    for (int i = 0; i < s->n; i++)
        most += s->run[i]->n_ranks;
    const char **name = util_alloc((size_t)most, sizeof *name), **host = util_alloc((size_t)most, sizeof *host);
    for (int i = 0; name && host && i < s->n; i++)
        for (int k = 0; k < s->run[i]->n_ranks; k++) {
            name[n] = s->run[i]->name[k];
            host[n++] = s->run[i]->host[k];
            has_hosts |= s->run[i]->has_hosts;
        }
    snprintf(path, sizeof path, "%s/turns.json", s->run[0]->folder);
    cli_launch_job l = {.n = n,
                        .name = name,
                        .host = has_hosts ? host : NULL,
                        .argv = argv,
                        .progress = draw,
                        .start_limit_s = cli_start_limit_s(s->run[0]->cli, has_hosts)};
    int rc = name && host ? write_turns(s, path) : MOIRAI_EFAIL;
    rc = rc ? rc : cli_launch(&l);
    free(name);
    free(host);
    return rc;
}

/* ---- all of them ---- */

bool cli_runs_fit(const cli_run *const *run, int n, int n_parts)
{
    int64_t bytes = 0, half = (int64_t)sysconf(_SC_PHYS_PAGES) / 2 * (int64_t)sysconf(_SC_PAGESIZE);
    bool here = true;
    for (int i = 0; i < n; i++) {
        bytes += run[i]->bytes;
        here &= !run[i]->has_hosts && !has_gpu(run[i]->cluster);
    }
    return here && bytes <= half / COPIES / n_parts;
}

static int play(const cli_run *const *run, int n, const cli_turn *turn, int n_turns)
{
    start all = {.run = run, .n = n, .turn = turn, .n_turns = n_turns};
    int rc = 0;
    if (cli_runs_fit(run, n, 1))
        return launch(&all);
    for (int i = 0, end; i < n_turns && !rc; i = end) {
        for (end = i + 1; end < n_turns && turn[end].who == turn[i].who; end++)
            ;
        start one = {.run = &run[turn[i].who], .n = 1, .turn = &turn[i], .n_turns = end - i, .only = true};
        rc = launch(&one);
    }
    return rc;
}

static int read_turn(int64_t *ns, const char *result, bool must)
{
    *ns = MOIRAI_UNKNOWN;
    return *result && (must || !access(result, R_OK)) ? cli_timeline_ns(ns, result) : 0;
}

int cli_take_turns(const cli_run *const *run, int n, cli_turn *turn, int n_turns)
{
    for (int i = 0; i < n_turns; i++) {
        unlink(turn[i].result);
        unlink(turn[i].other);
    }
    cli_status_set("loading %d plans", n);
    int rc = n && n_turns ? play(run, n, turn, n_turns) : 0;
    cli_status_set("%s", "");
    bool all = !rc;
    for (int i = 0; i < n_turns; i++) {
        int missing = read_turn(&turn[i].ns, turn[i].result, all);
        missing = missing ? missing : read_turn(&turn[i].other_ns, turn[i].other, all);
        rc = rc ? rc : missing;
    }
    return rc;
}
