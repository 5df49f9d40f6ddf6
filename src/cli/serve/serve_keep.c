/* One group serves. When it is lost, its requests go back to the front of the queue, and another one is started: of the plan
 * without the device that died, where there is one, else of the plan itself; where that group is loaded already
 * (serve_standby.c), nothing has to start. Later the plan itself comes up again beside it, and takes over when it is loaded:
 * nobody waits for that. A device that hangs is as good as dead: its group is ended. MPI can't go on without a rank that has died, so a group lives and dies as a whole; that is why
 * there are several. */
#include "cli/serve/serve_keep.h"
#include "cli/measure/run_rate.h"
#include "cli/run/step_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/util.h"

enum { STANDARD_IN_FLIGHT = 4 };
#define HELLO_S 10
#define PAUSE_S 1.0 /* after a start that failed; doubled up to PAUSE_MOST_S */
#define PAUSE_MOST_S 30.0

/* ---- opening ---- */

static void name_of(char *out, size_t size, const char *model)
{
    const char *slash = strrchr(model, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : model);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

static int wait_for(serve_group *g, int *fd)
{
    int state = 0;
    while (!state && !moirai_interrupt_raised(cli_interrupt())) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        state = serve_group_poll(g, fd);
    }
    return state > 0 ? 0
           : state   ? moirai_error(g->rc ? g->rc : MOIRAI_EFAIL, "%s", g->message)
                     : moirai_error(MOIRAI_EFAIL, "interrupted");
}

static int attach(serve_keep *k, serve_group *g, int fd, int n_ranks)
{
    int rc = serve_attach(&g->link, k->server, fd, n_ranks, g->run.name, 2 * k->in_flight);
    rc = rc ? rc : serve_slow_expect(g);
    if (!rc)
        serve_slow_taken(&k->slow, g);
    return rc;
}

static int open_first(serve_keep *k, serve_model *m)
{
    cli_context *cli = k->cli;
    int fd = -1, n_ranks = 0;
    serve_options o = {.address = cli_text(cli, "address"),
                       .port = (int)cli_count(cli, "port"),
                       .most_waiting = cli_count(cli, "queue"),
                       .timeout_s = cli_real(cli, "timeout"),
                       .idle_s = cli_real(cli, "idle"),
                       .most_connections = (int)cli_count(cli, "connections")};
    int n = k->first.run.n_ranks;
    cli_status_set("loading the sub-models on %d device%s", n, n == 1 ? "" : "s");
    int rc = serve_group_start(&k->first);
    rc = rc ? rc : wait_for(&k->first, &fd);
    rc = rc ? rc : serve_hello_read(m, fd, &n_ranks, HELLO_S);
    cli_status_set("%s", "");
    if (rc) {
        if (fd >= 0)
            close(fd);
        serve_model_free(m);
        return rc;
    }
    serve_model_sum(m);
    rc = serve_open(&k->server, m, &o);
    if (rc) {
        close(fd);
        return rc;
    }
    rc = attach(k, &k->first, fd, n_ranks);
    k->now = rc ? NULL : &k->first;
    return rc;
}

int serve_keep_open(serve_keep *k, cli_context *cli, int n_plans)
{
    char name[256];
    serve_model *m = NULL;
    cli_rate_plan planned;
    *k = (serve_keep){.cli = cli, .pause_s = PAUSE_S, .first.listens = -1};
    name_of(name, sizeof name, cli_arg(cli, 1));
    int rc = cli_has(cli, "work") ? util_folder_make(cli_text(cli, "work")) : 0;
    rc = rc ? rc : cli_rate_plan_read(&planned, cli_arg(cli, 0));
    rc = rc ? rc : cli_rate_in_flight(&k->in_flight, cli, &planned, STANDARD_IN_FLIGHT);
    rc = rc ? rc : serve_group_prepare(&k->first, cli, cli_arg(cli, 0), "plan", k->in_flight);
    if (rc)
        return rc;
    cli_note_stand_ins(cli, k->first.run.device, k->first.run.n_ranks);
    cli_note_threads(cli, k->first.run.device, k->first.run.n_ranks);
    serve_slow_open(&k->slow, cli, &k->first, planned.in_flight > 1);
    rc = serve_group_model(&m, &k->first, cli_text(cli, "name") ? cli_text(cli, "name") : name);
    rc = rc ? rc : open_first(k, m);
    rc = rc ? rc : serve_fallback_open(&k->fallback, cli, &k->first, planned.in_flight > 1);
    return rc ? rc : serve_standby_open(&k->standby, &k->fallback, n_plans);
}

/* ---- losing and finding ---- */

static const char *what_is(const serve_keep *k, const serve_group *g, char out[300])
{
    if (g == &k->first)
        snprintf(out, 300, g->run.n_ranks == 1 ? "the device of the plan" : "all %d devices of the plan",
                 g->run.n_ranks);
    else if (serve_slow_has(&k->slow, g))
        serve_slow_say(&k->slow, out, 300);
    else
        snprintf(out, 300, "%d device%s, without '%.200s'", g->run.n_ranks, g->run.n_ranks == 1 ? "" : "s",
                 k->first.run.name[g - k->fallback.group]);
    return out;
}

static void start(serve_keep *k, serve_group *g)
{
    int rc = serve_group_start(g);
    if (!rc) {
        k->next = g;
        return;
    }
    cli_say(k->cli, "%s\n", moirai_error_message());
    serve_group_end(g, false);
    k->retry_s = util_seconds() + k->pause_s;
}

static void fail_to_take_over(serve_keep *k, serve_group *g)
{
    cli_say(k->cli, "%s\n", moirai_error_message());
    serve_group_end(g, false);
    k->retry_s = k->retake_s = util_seconds() + k->pause_s;
}

/* A group that is loaded serves from now on. */
static void take_over(serve_keep *k, serve_group *g, int fd, int n_ranks)
{
    serve_group *before = k->now;
    char words[300];
    if (attach(k, g, fd, n_ranks)) {
        fail_to_take_over(k, g);
        return;
    }
    k->now = g;
    k->pause_s = PAUSE_S;
    if (before) {
        serve_detach(before->link, cli_real(k->cli, "timeout")); /* it answers what it has */
        before->link = NULL;
        serve_group_end(before, true);
        bool around = serve_slow_has(&k->slow, g);
        if (around)
            serve_tell_replanned(k->server);
        cli_say(k->cli, "%s: %s\n", around ? "by another plan" : "back", what_is(k, g, words));
        return;
    }
    double gone_s = util_seconds() - k->lost_s;
    k->longest_s = UTIL_MAX(k->longest_s, gone_s);
    cli_say(k->cli, "going on after %.2f s with %s\n", gone_s, what_is(k, g, words));
}

/* The group that was to come up is there. */
static void welcome(serve_keep *k, int fd)
{
    serve_group *g = k->next;
    int n_ranks;
    k->next = NULL;
    if (!serve_hello_read((serve_model *)serve_model_of(k->server), fd, &n_ranks, HELLO_S)) {
        take_over(k, g, fd, n_ranks);
        return;
    }
    close(fd);
    fail_to_take_over(k, g);
}

/* A group is to serve: one that stands by does so at once. */
static void go_on_with(serve_keep *k, serve_group *g)
{
    int fd = -1, n_ranks = 0;
    serve_standing found = SERVE_NOT_THERE;
    if (g != &k->first)
        found = serve_standby_take(&k->standby, g, &fd, &n_ranks);
    if (found == SERVE_IS_LOADED)
        take_over(k, g, fd, n_ranks);
    else if (found == SERVE_COMES_UP)
        k->next = g;
    else
        start(k, g);
}

/* The plan without a device that has died in any group. */
static serve_group *without(serve_keep *k, const serve_group *g)
{
    const char *dead = g->dead_rank >= 0 && g->dead_rank < g->run.n_ranks ? g->run.name[g->dead_rank] : NULL;
    for (int i = 0; dead && i < k->first.run.n_ranks; i++)
        if (!strcmp(k->first.run.name[i], dead))
            return serve_fallback_of(&k->fallback, i);
    return NULL;
}

/* The group at work is dead; or a device of it hangs, and it is ended. */
static void lose(serve_keep *k, const serve_hang *hang)
{
    serve_group *g = k->now;
    k->now = NULL;
    k->n_lost++;
    k->lost_s = util_seconds();
    if (hang)
        serve_group_end(g, false);
    int64_t n = serve_detach(g->link, 0);
    g->link = NULL;
    serve_group_end(g, true); /* it ends by itself; who died is known then */
    if (hang) {
        g->dead_rank = hang->rank;
        snprintf(g->message, sizeof g->message, "%s", hang->text);
    }
    cli_say(k->cli, "lost: %s; %lld requests that were under way are repeated\n", g->message, (long long)n);
    serve_group *other = without(k, g);
    k->retake_s = k->lost_s + cli_real(k->cli, "retake");
    bool loaded = other && serve_standby_has(&k->standby, other);
    if (loaded || (other && g == &k->first && !k->next))
        go_on_with(k, other);
    else if (!k->next)
        start(k, &k->first);
}

/* The group that was to come up did not. */
static void give_up(serve_keep *k)
{
    serve_group *g = k->next;
    k->next = NULL;
    serve_group_end(g, true);
    cli_say(k->cli, "%s did not start: %s\n", g == &k->first ? "the plan" : "the plan without a device", g->message);
    k->retry_s = k->retake_s = util_seconds() + k->pause_s;
    k->pause_s = UTIL_MIN(2 * k->pause_s, PAUSE_MOST_S);
}

/* After a start of the plan itself that failed, those without a device have their turn, and so on. */
static serve_group *choose(serve_keep *k)
{
    serve_group *other = serve_fallback_of(&k->fallback, k->first.dead_rank);
    return other && k->first.dead_rank >= 0 ? other : &k->first;
}

static void look_for_slow(serve_keep *k)
{
    serve_group *other = NULL;
    if (!k->now || k->next)
        return;
    serve_slow_word word = serve_slow_look(&k->slow, k->server, k->now, &other);
    if (word != SERVE_SLOW_STAY)
        start(k, word == SERVE_SLOW_TAKE ? other : &k->first);
}

void serve_keep_tick(serve_keep *k)
{
    double now_s = util_seconds();
    int fd;
    serve_hang hang;
    if (k->now && serve_link_is_dead(k->now->link))
        lose(k, NULL);
    else if (k->now && serve_link_hangs(k->now->link, cli_real(k->cli, "stall"), &hang))
        lose(k, &hang);
    int state = k->next ? serve_group_poll(k->next, &fd) : 0;
    if (state > 0)
        welcome(k, fd);
    else if (state < 0)
        give_up(k);
    if (!k->now && !k->next && now_s >= k->retry_s)
        go_on_with(k, choose(k));
    if (k->now && k->now != &k->first && !serve_slow_has(&k->slow, k->now) && !k->next && now_s >= k->retake_s)
        start(k, &k->first);
    look_for_slow(k);
    serve_standby_tick(&k->standby, (serve_model *)serve_model_of(k->server), k->now, k->next);
}

/* ---- the end ---- */

void serve_keep_end(serve_keep *k)
{
    serve_standby_end(&k->standby);
    if (k->now) {
        serve_detach(k->now->link, 0); /* only what was answered for being late is there still */
        k->now->link = NULL;
        serve_group_end(k->now, true);
    }
    if (k->next)
        serve_group_end(k->next, false);
    k->now = k->next = NULL;
}

void serve_keep_close(serve_keep *k)
{
    if (!k->cli) /* never opened */
        return;
    if (k->server)
        serve_counts(k->server, &k->n_accepted, &k->n_repeated);
    serve_close(k->server);
    serve_standby_free(&k->standby);
    serve_fallback_close(&k->fallback);
    serve_slow_close(&k->slow);
    serve_group_free(&k->first);
}
