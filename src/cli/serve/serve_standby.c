/* A group that waits has its processes, its sessions and a socket that is accepted, and has computed one request: all that
 * is left to do is to send it the next one. Its ranks sleep meanwhile (src/rank/run/rank_serve.c); what it takes is memory,
 * so there are as many as half of the machine's has room for, unless --standby says how many. */
#include "cli/serve/serve_standby.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/measure/run_turns.h"
#include "util/util.h"

enum { AWAY, COMING, WAITING }; /* not started, or it serves; comes up; loaded */
#define HELLO_S 10
#define PAUSE_S 1.0 /* after a group that was lost; doubled up to PAUSE_MOST_S */
#define PAUSE_MOST_S 30.0

int serve_standby_open(serve_standby *s, serve_fallback *fallback, int n_plans)
{
    const cli_context *cli = fallback->cli;
    *s = (serve_standby){.fallback = fallback, .n_plans = n_plans};
    s->most = cli_has(cli, "standby") ? (int)cli_count(cli, "standby") : -1;
    s->group = fallback->n ? util_alloc((size_t)fallback->n, sizeof *s->group) : NULL;
    for (int i = 0; s->group && i < fallback->n; i++)
        s->group[i] = (serve_waiting){.fd = -1, .pause_s = PAUSE_S};
    return s->group || !fallback->n ? 0 : MOIRAI_EFAIL;
}

static const char *device_of(const serve_standby *s, int i)
{
    return s->fallback->first->run.name[i];
}

/* ---- is there room? ---- */

/* The plan itself, those that are loaded, and this one. */
static bool has_room(const serve_standby *s, int i)
{
    const serve_fallback *f = s->fallback;
    int n_there = 0, n = 0;
    for (int j = 0; j < f->n; j++)
        n_there += s->group[j].state != AWAY;
    if (s->most >= 0)
        return n_there < s->most;
    const cli_run **run = util_alloc((size_t)f->n + 1, sizeof *run);
    if (!run)
        return false;
    run[n++] = &f->first->run;
    for (int j = 0; j < f->n; j++)
        if (j == i || s->group[j].state != AWAY)
            run[n++] = &f->group[j].run;
    bool fits = cli_runs_fit(run, n, s->n_plans);
    free(run);
    return fits;
}

/* ---- coming and going ---- */

static void lose(serve_standby *s, int i)
{
    serve_waiting *w = &s->group[i];
    serve_group *g = &s->fallback->group[i];
    if (w->fd >= 0)
        close(w->fd);
    serve_group_end(g, false);
    cli_say(s->fallback->cli, "the plan without '%s' does not stand by: %s\n", device_of(s, i), g->message);
    double pause_s = UTIL_MIN(2 * w->pause_s, PAUSE_MOST_S);
    *w = (serve_waiting){.fd = -1, .retry_s = util_seconds() + w->pause_s, .pause_s = pause_s};
}

static void look_at(serve_standby *s, int i, serve_model *m)
{
    serve_waiting *w = &s->group[i];
    serve_group *g = &s->fallback->group[i];
    int fd;
    if (w->state == WAITING && atomic_load(&g->ended))
        lose(s, i);
    int state = w->state == COMING ? serve_group_poll(g, &fd) : 0;
    if (state < 0)
        lose(s, i);
    if (state <= 0)
        return;
    w->fd = fd;
    if (serve_hello_read(m, fd, &w->n_ranks, HELLO_S)) {
        lose(s, i);
        return;
    }
    w->state = WAITING;
    w->pause_s = PAUSE_S;
    cli_say(s->fallback->cli, "the plan without '%s' is loaded and stands by\n", device_of(s, i));
}

static void bring_up(serve_standby *s, int i)
{
    serve_waiting *w = &s->group[i];
    if (!has_room(s, i)) {
        if (!s->said_full && s->most != 0)
            cli_say(s->fallback->cli, "the plan without '%s' does not stand by: no room (--standby)\n",
                    device_of(s, i));
        s->said_full = true;
        return;
    }
    w->state = COMING;
    if (serve_group_start(&s->fallback->group[i]))
        lose(s, i);
}

void serve_standby_tick(serve_standby *s, serve_model *m, const serve_group *now, const serve_group *next)
{
    bool quiet = now && !next;
    for (int i = 0; i < s->fallback->n; i++) {
        look_at(s, i, m);
        quiet = quiet && s->group[i].state != COMING;
    }
    double now_s = util_seconds();
    for (int i = 0; quiet && i < s->fallback->n; i++) {
        const serve_group *g = serve_fallback_of(s->fallback, i);
        if (g && g != now && s->group[i].state == AWAY && now_s >= s->group[i].retry_s) {
            bring_up(s, i);
            quiet = s->group[i].state != COMING;
        }
    }
}

serve_standing serve_standby_take(serve_standby *s, const serve_group *g, int *fd, int *n_ranks)
{
    int i = (int)(g - s->fallback->group);
    serve_waiting *w = &s->group[i];
    if (w->state == WAITING && atomic_load(&g->ended))
        lose(s, i);
    serve_standing found = w->state == WAITING  ? SERVE_IS_LOADED
                           : w->state == COMING ? SERVE_COMES_UP
                                                : SERVE_NOT_THERE;
    *fd = w->fd;
    *n_ranks = w->n_ranks;
    *w = (serve_waiting){.fd = -1, .pause_s = PAUSE_S};
    return found;
}

bool serve_standby_has(const serve_standby *s, const serve_group *g)
{
    return s->group[g - s->fallback->group].state == WAITING && !atomic_load(&g->ended);
}

void serve_standby_end(serve_standby *s)
{
    for (int i = 0; s->group && i < s->fallback->n; i++) {
        serve_waiting *w = &s->group[i];
        if (w->fd >= 0)
            close(w->fd); /* it ends when it sees that */
        w->fd = -1;
    }
    for (int i = 0; s->group && i < s->fallback->n; i++) {
        if (s->group[i].state != AWAY)
            serve_group_end(&s->fallback->group[i], s->group[i].state == WAITING);
        s->group[i].state = AWAY;
    }
}

void serve_standby_free(serve_standby *s)
{
    free(s->group);
    *s = (serve_standby){0};
}
