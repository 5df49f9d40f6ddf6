/* A plan without each device of the one that is served, by the same words that a user would type: `moirai plan NETWORK
 * --cluster C --forbid '*=DEVICE'`, for many requests where the plan is. One thread, some seconds each, beside the server; then it is split, so that only the
 * ranks' start is left to do when it is needed. */
#include "cli/serve/serve_fallback.h"
#include "cli/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

enum { MOST_WORDS = 256 };

static int make_plan(const serve_fallback *f, const char *device, const char *path)
{
    const cli_context *cli = f->cli;
    char forbid[512];
    const char *network = cli_text(cli, "network"), *word[MOST_WORDS];
    static const char *const options[][2] = {
        {"rules", "--rules"}, {"dim", "--dim"}, {"shape", "--shape"}, {"plan-limit", "--time-limit"}};
    int n = 0;
    snprintf(forbid, sizeof forbid, "*=%s", device);
    const char *const fixed[] = {network ? network : cli_arg(cli, 1),
                                 "--cluster",
                                 cli_text(cli, "cluster"),
                                 "--forbid",
                                 forbid,
                                 "--threads",
                                 "1",
                                 "-o",
                                 path,
                                 "--force"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        word[n++] = fixed[i];
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        for (int i = 0; i < cli_uses(cli, options[k][0]) && n + 8 < MOST_WORDS; i++) {
            word[n++] = options[k][1];
            word[n++] = cli_use(cli, options[k][0], i);
        }
    if (!cli_has(cli, "plan-limit")) {
        word[n++] = "--time-limit";
        word[n++] = cli_text(cli, "plan-limit");
    }
    if (f->for_rate) {
        static const char *const rate[] = {"--objective", "rate", "--in-flight"};
        for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
            word[n++] = rate[i];
        word[n++] = f->first->in_flight;
    }
    cli_context sub = {0};
    int rc = cli_parse(&sub, &cli_command_plan, n, (char **)word);
    sub.json = sub.quiet = true;
    rc = rc ? rc : cli_command_plan.run(&sub);
    cli_free(&sub);
    return rc;
}

static void make(serve_fallback *f, int rank)
{
    const char *device = f->first->run.name[rank];
    char path[4200], name[64];
    snprintf(path, sizeof path, "%s/without-%d.json", f->first->run.folder, rank);
    snprintf(name, sizeof name, "without-%d", rank);
    int rc = make_plan(f, device, path);
    rc = rc ? rc : serve_group_prepare(&f->group[rank], f->cli, path, name, f->first->run.in_flight);
    if (moirai_interrupt_raised(cli_interrupt()))
        return;
    if (rc)
        cli_say(f->cli, "no plan without device '%s': %s\n", device, moirai_error_message());
    atomic_store(&f->ready[rank], !rc);
}

static void *make_all(void *data)
{
    serve_fallback *f = data;
    int n_ready = 0;
    for (int i = 0; i < f->n && !moirai_interrupt_raised(cli_interrupt()); i++) {
        make(f, i);
        n_ready += atomic_load(&f->ready[i]);
    }
    if (!moirai_interrupt_raised(cli_interrupt()))
        cli_say(f->cli, "plans for the case that a device leaves: %d of %d\n", n_ready, f->n);
    return NULL;
}

int serve_fallback_open(serve_fallback *f, const cli_context *cli, const serve_group *first, bool for_rate)
{
    *f = (serve_fallback){.cli = cli, .first = first, .for_rate = for_rate};
    if (!cli_has(cli, "cluster") || cli_has(cli, "no-fallback"))
        return 0;
    f->n = first->run.n_ranks;
    f->group = util_alloc((size_t)f->n, sizeof *f->group);
    f->ready = util_alloc((size_t)f->n, sizeof *f->ready);
    if (!f->group || !f->ready)
        return MOIRAI_EFAIL;
    for (int i = 0; i < f->n; i++)
        f->group[i].listens = -1;
    f->has_thread = !pthread_create(&f->thread, NULL, make_all, f);
    return f->has_thread ? 0 : moirai_error(MOIRAI_EFAIL, "can't start a thread");
}

serve_group *serve_fallback_of(serve_fallback *f, int rank)
{
    return rank >= 0 && rank < f->n && atomic_load(&f->ready[rank]) ? &f->group[rank] : NULL;
}

void serve_fallback_close(serve_fallback *f)
{
    if (f->has_thread)
        pthread_join(f->thread, NULL);
    for (int i = 0; f->group && i < f->n; i++)
        serve_group_free(&f->group[i]);
    free(f->group);
    free(f->ready);
    *f = (serve_fallback){0};
}
