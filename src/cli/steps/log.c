/* The log of a search, as MIP solvers write it: a key for the letters, a header every 20 lines, a line for
 * every better plan (at most ten a second) and otherwise one every 5 s, which says how long nothing better was found.
 * Lines go to stderr when it is a terminal or with --log; on a terminal the last line (status.c) has the plan at hand
 * and its gap every second. --log-json gets every event as one object a line. */
#include "cli/steps/steps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/util.h"

#define HEADER_EVERY 20
#define QUIET_S 5.0 /* without news */
#define NEWS_S 0.1  /* between two better plans */

struct cli_log {
    pthread_mutex_t lock;
    bool text, timeless;
    double begun;    /* of util_seconds */
    double better_s; /* when the best plan came */
    char key[256], title[128];
    int lines;
    double shown_s;            /* when the last line was written */
    int64_t shown_makespan_ns; /* what it said */
    moirai_progress last;      /* the newest event, its note in `note` */
    char note[120];            /* what it is busy with, as it said last */
    bool pending;              /* it was not shown */
    FILE *json;
    const char *json_path;
};

static void tick(void *data, char *text, size_t size);

int cli_log_open(cli_log **out, const cli_context *cli, const moirai_placer *placer, const moirai_problem *p)
{
    cli_log *log = calloc(1, sizeof *log);
    if (!log)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    log->timeless = cli_has(cli, "log-timeless");
    log->text = cli_has(cli, "log") || log->timeless || (isatty(STDERR_FILENO) && !cli->quiet);
    log->shown_makespan_ns = MOIRAI_UNKNOWN;
    log->shown_s = -QUIET_S;
    snprintf(log->key, sizeof log->key, "%s", placer->letters ? placer->letters : "");
    snprintf(log->title, sizeof log->title, "%s: %s operators, %d devices", placer->name, cli_human_count(p->n_ops).s,
             p->n_devices);
    log->json_path = cli_text(cli, "log-json");
    if (log->json_path) {
        log->json = strcmp(log->json_path, "-") ? fopen(log->json_path, "w") : stdout;
        if (!log->json) {
            int rc = moirai_error(MOIRAI_EFAIL, "%s: %s", log->json_path, strerror(errno));
            free(log);
            return rc;
        }
    }
    pthread_mutex_init(&log->lock, NULL);
    log->begun = util_seconds();
    log->last = (moirai_progress){.makespan_ns = MOIRAI_UNKNOWN, .lower_bound_ns = MOIRAI_UNKNOWN};
    if (log->text && !log->timeless)
        cli_status_watch(tick, log);
    *out = log;
    return 0;
}

static double gap_of(const moirai_progress *e)
{
    if (e->makespan_ns <= 0 || e->lower_bound_ns < 0)
        return -1;
    return (double)(e->makespan_ns - e->lower_bound_ns) / (double)e->makespan_ns;
}

static void write_header(cli_log *log)
{
    cli_status_clear();
    if (log->lines == 0) {
        fprintf(stderr, "%s\n", log->title);
        if (*log->key)
            fprintf(stderr, "found by: %s\n", log->key);
    }
    fprintf(stderr, "\n  %10s %14s %14s %9s%s\n", "work", "makespan", "bound", "gap",
            log->timeless ? "" : "       time");
}

static void write_line(cli_log *log, const moirai_progress *e)
{
    cli_status_clear();
    if (log->lines % HEADER_EVERY == 0)
        write_header(log);
    log->lines++;
    fprintf(stderr, "%c %10s %14s %14s %9s", e->letter ? e->letter : ' ', cli_human_count(e->work).s,
            cli_human_ns(e->makespan_ns).s, cli_human_ns(e->lower_bound_ns).s, cli_human_gap(gap_of(e)).s);
    if (!log->timeless)
        fprintf(stderr, " %8.1f s", e->seconds);
    fprintf(stderr, "%s%s\n", e->note ? "  " : "", e->note ? e->note : "");
    log->shown_s = e->seconds;
    log->shown_makespan_ns = e->makespan_ns;
    log->pending = false;
}

static void add_ns(yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, int64_t ns)
{
    if (ns < 0)
        yyjson_mut_obj_add_null(d, o, key);
    else
        yyjson_mut_obj_add_int(d, o, key, ns);
}

static void write_json(cli_log *log, const moirai_progress *e)
{
    yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(d);
    char letter[2] = {e->letter, '\0'};
    yyjson_mut_doc_set_root(d, o);
    if (!log->timeless)
        yyjson_mut_obj_add_real(d, o, "seconds", e->seconds);
    if (e->letter && e->letter != ' ')
        yyjson_mut_obj_add_strcpy(d, o, "letter", letter);
    add_ns(d, o, "makespan_ns", e->makespan_ns);
    add_ns(d, o, "lower_bound_ns", e->lower_bound_ns);
    if (gap_of(e) >= 0)
        yyjson_mut_obj_add_real(d, o, "gap", gap_of(e));
    yyjson_mut_obj_add_int(d, o, "work", e->work);
    if (e->note)
        yyjson_mut_obj_add_strcpy(d, o, "note", e->note);
    char *text = yyjson_mut_write(d, 0, NULL);
    if (text)
        fprintf(log->json, "%s\n", text);
    fflush(log->json); /* someone may be watching */
    free(text);
    yyjson_mut_doc_free(d);
}

void cli_log_event(void *data, const moirai_progress *e)
{
    cli_log *log = data;
    pthread_mutex_lock(&log->lock);
    if (log->json)
        write_json(log, e);
    bool better = e->makespan_ns >= 0 && (log->shown_makespan_ns < 0 || e->makespan_ns < log->shown_makespan_ns);
    double since = e->seconds - log->shown_s;
    if (e->makespan_ns >= 0 && (log->last.makespan_ns < 0 || e->makespan_ns < log->last.makespan_ns))
        log->better_s = e->seconds;
    log->last = *e;
    log->last.note = NULL;
    if (e->note)
        snprintf(log->note, sizeof log->note, "%s", e->note);
    log->pending = true;
    /* Without a clock, what is shown must not depend on when it happened. */
    bool first = better && log->shown_makespan_ns < 0; /* the plan at hand is shown at once */
    bool show = log->timeless ? better || e->note : e->note || first || since >= QUIET_S || (better && since >= NEWS_S);
    if (log->text && show)
        write_line(log, e);
    pthread_mutex_unlock(&log->lock);
}

/* The line that the terminal shows; and, where the search is silent, a line of the log. */
void cli_log_tick(cli_log *log, double seconds, char *text, size_t size)
{
    char still[160];
    pthread_mutex_lock(&log->lock);
    const moirai_progress *e = &log->last;
    if (e->makespan_ns < 0)
        snprintf(text, size, "no plan yet, bound %s, %.0f s", cli_human_ns(e->lower_bound_ns).s, seconds);
    else
        snprintf(text, size, "plan %s, bound %s, gap %s: no better plan in %.0f s%s%s", cli_human_ns(e->makespan_ns).s,
                 cli_human_ns(e->lower_bound_ns).s, cli_human_gap(gap_of(e)).s, seconds - log->better_s,
                 *log->note ? "; " : "", log->note);
    if (log->text && !log->timeless && log->lines && seconds - log->shown_s >= QUIET_S) {
        moirai_progress now = *e;
        now.seconds = seconds;
        now.letter = ' ';
        snprintf(still, sizeof still, "no better plan in %.0f s", seconds - log->better_s);
        now.note = e->makespan_ns < 0 ? "no plan yet" : still;
        write_line(log, &now);
    }
    pthread_mutex_unlock(&log->lock);
}

static void tick(void *data, char *text, size_t size)
{
    cli_log *log = data;
    cli_log_tick(log, util_seconds() - log->begun, text, size);
}

int cli_log_close(cli_log *log)
{
    int rc = 0;
    if (log->text && !log->timeless)
        cli_status_watch(NULL, NULL);
    if (log->text && log->pending && log->lines)
        write_line(log, &log->last);
    if (log->text && log->lines)
        fputc('\n', stderr);
    if (log->json) {
        bool failed = ferror(log->json);
        if (log->json != stdout)
            failed |= fclose(log->json) != 0;
        if (failed)
            rc = moirai_error(MOIRAI_EFAIL, "%s: %s", log->json_path, strerror(errno));
    }
    pthread_mutex_destroy(&log->lock);
    free(log);
    return rc;
}
