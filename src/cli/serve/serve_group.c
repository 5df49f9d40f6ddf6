/* Groups of ranks. cli_launch watches over mpiexec until all has ended, so every group has a thread for it. */
#include "cli/serve/serve_group.h"
#include "cli/commands/commands.h"
#include "cli/measure/run_rate.h"
#include "cli/measure/run_turns.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/util.h"

/* ---- preparing ---- */

enum { MOST_WORDS = 256, POLITE_S = 5 };

static void hand_on(const char **word, int *n, const cli_context *cli, const char *name, const char *option)
{
    for (int i = 0; i < cli_uses(cli, name) && *n + 2 < MOST_WORDS; i++) {
        word[(*n)++] = option;
        word[(*n)++] = cli_use(cli, name, i);
    }
}

/* As if somebody had typed `moirai run PLAN MODEL ...`. */
static int parse(serve_group *g, const cli_context *cli)
{
    const char *word[MOST_WORDS] = {g->plan,   cli_arg(cli, 1),        "--in-flight", g->in_flight,
                                    "--stall", cli_text(cli, "stall"), "--seed",      cli_text(cli, "seed")};
    static const char *const options[][2] = {{"cluster", "--cluster"},       {"hosts", "--hosts"},
                                             {"rules", "--rules"},           {"dim", "--dim"},
                                             {"shape", "--shape"},           {"work", "--work"},
                                             {"segment-us", "--segment-us"}, {"start-limit", "--start-limit"}};
    int n = 8;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        hand_on(word, &n, cli, options[i][0], options[i][1]);
    int rc = cli_parse(&g->sub, &cli_command_run, n, (char **)word);
    g->has_sub = true;
    g->sub.json = g->sub.quiet = true;
    return rc;
}

int serve_group_prepare(serve_group *g, const cli_context *cli, const char *plan, const char *name, int64_t in_flight)
{
    moirai_split_report report;
    struct sockaddr_un a;
    *g = (serve_group){.listens = -1, .dead_rank = -1};
    snprintf(g->plan, sizeof g->plan, "%s", plan);
    snprintf(g->in_flight, sizeof g->in_flight, "%lld", (long long)in_flight);
    int rc = parse(g, cli);
    if (rc)
        return rc;
    g->run = (cli_run){.cli = &g->sub, .beside = name, .in_flight = in_flight};
    rc = cli_run_lay_out(&g->run, g->plan, &report);
    g->run.beside = NULL; /* the caller's */
    rc = rc ? rc : cli_rate_check(&g->run, "serve");
    if (!rc && g->run.has_hosts && g->run.host[0] && strcmp(g->run.host[0], "localhost"))
        rc = moirai_error(MOIRAI_EUSAGE, "serve: device '%s', the plan's first, must be on this machine, not on '%s'",
                          g->run.name[0], g->run.host[0]);
    snprintf(g->link_path, sizeof g->link_path, "%s/link", g->run.folder);
    if (!rc && strlen(g->link_path) >= sizeof a.sun_path)
        rc =
            moirai_error(MOIRAI_EUSAGE, "%s: too long for the name of a socket; choose a shorter --work", g->link_path);
    return rc;
}

void serve_group_free(serve_group *g)
{
    serve_group_end(g, false);
    if (g->has_sub) {
        if (g->run.cli)
            cli_run_free(&g->run);
        cli_free(&g->sub);
    }
    *g = (serve_group){.listens = -1, .dead_rank = -1};
}

static int set_tensor(serve_tensor *t, yyjson_val *value)
{
    const char *name = yyjson_get_str(yyjson_obj_get(value, "name"));
    yyjson_val *shape = yyjson_obj_get(value, "shape");
    int64_t dim[SERVE_MOST_DIMS] = {0}, rank = shape ? (int64_t)yyjson_arr_size(shape) : -1;
    for (int64_t i = 0; i < UTIL_MIN(rank, SERVE_MOST_DIMS); i++)
        dim[i] = yyjson_get_sint(yyjson_arr_get(shape, (size_t)i));
    return serve_tensor_set(t, name, serve_type_of_plain(yyjson_get_str(yyjson_obj_get(value, "type"))), rank, dim);
}

int serve_group_model(serve_model **out, const serve_group *g, const char *name)
{
    yyjson_val *root = yyjson_doc_get_root(g->run.manifest), *value;
    yyjson_val *inputs = yyjson_obj_get(root, "inputs"), *outputs = yyjson_obj_get(root, "outputs");
    size_t i, n;
    int rc = serve_model_new(out, name, (int)yyjson_arr_size(inputs), (int)yyjson_arr_size(outputs));
    if (rc)
        return rc;
    yyjson_arr_foreach(inputs, i, n, value) {
        rc = rc ? rc : set_tensor(&(*out)->input[i], value);
    }
    yyjson_arr_foreach(outputs, i, n, value) {
        rc = rc                                                                                      ? rc
             : ((*out)->output[i].name = util_strdup(yyjson_get_str(yyjson_obj_get(value, "name")))) ? 0
                                                                                                     : MOIRAI_EFAIL;
    }
    if (rc) {
        serve_model_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- starting ---- */

static int listen_on(int *out, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.*s", (int)sizeof a.sun_path - 1, path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !bind(fd, (const struct sockaddr *)&a, sizeof a) && !listen(fd, 1)) {
        *out = fd;
        return 0;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    return moirai_error(MOIRAI_EFAIL, "%s: can't listen: %s", path, strerror(error));
}

static void *watch_over(void *data)
{
    serve_group *g = data;
    const cli_run *w = &g->run;
    const char *argv[] = {"serve", w->job, g->link_path, NULL};
    cli_launch_job l = {.n = w->n_ranks,
                        .name = w->name,
                        .host = w->has_hosts ? w->host : NULL,
                        .argv = argv,
                        .start_limit_s = cli_start_limit_s(w->cli, w->has_hosts),
                        .interrupt = &g->stop,
                        .beside = true,
                        .dead_rank = &g->dead_rank};
    g->rc = cli_launch(&l);
    snprintf(g->message, sizeof g->message, "%s", g->rc ? moirai_error_message() : "the devices have ended");
    atomic_store(&g->ended, true);
    return NULL;
}

int serve_group_start(serve_group *g)
{
    g->stop = (moirai_interrupt){0};
    atomic_store(&g->ended, false);
    g->dead_rank = -1;
    g->rc = 0;
    int rc = listen_on(&g->listens, g->link_path);
    if (rc)
        return rc;
    int error = pthread_create(&g->thread, NULL, watch_over, g);
    if (error)
        return moirai_error(MOIRAI_EFAIL, "can't start a thread: %s", strerror(error));
    g->has_thread = true;
    return 0;
}

int serve_group_poll(serve_group *g, int *fd)
{
    struct pollfd p = {g->listens, POLLIN, 0};
    if (poll(&p, 1, 0) > 0) {
        *fd = accept4(g->listens, NULL, NULL, SOCK_CLOEXEC);
        if (*fd >= 0)
            return 1;
    }
    if (!atomic_load(&g->ended))
        return 0;
    moirai_error(g->rc ? g->rc : MOIRAI_EFAIL, "%s", g->message);
    return -1;
}

void serve_group_end(serve_group *g, bool politely)
{
    double until_s = util_seconds() + (politely ? POLITE_S : 0);
    while (g->has_thread && !atomic_load(&g->ended) && util_seconds() < until_s)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    moirai_interrupt_raise(&g->stop);
    if (g->has_thread)
        pthread_join(g->thread, NULL);
    g->has_thread = false;
    if (g->listens >= 0)
        close(g->listens);
    g->listens = -1;
}
