/* A bucket is what `moirai serve PLAN MODEL` with the same options would be, but for its door: requests come by that of the
 * first one. So each has a command line of its own, made of the first one's. */
#include "cli/serve/serve_buckets.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/util.h"

enum { MOST_WORDS = 256 };

struct serve_bucket {
    cli_context cli;
    bool parsed;
    char *text;      /* PLAN,MODEL,DIM=N with zeros for its commas */
    char work[4096]; /* where its sub-models are */
    const char *word[MOST_WORDS];
};

/* ---- the command line of a bucket ---- */

static bool is_own(const serve_bucket *b, const cli_option *o, bool has_dims)
{
    return !strcmp(o->name, "bucket") || !strcmp(o->name, "name") || (!strcmp(o->name, "work") && *b->work) ||
           (has_dims && !strcmp(o->name, "dim"));
}

static void add(serve_bucket *b, int *n, const char *word)
{
    if (*n < MOST_WORDS)
        b->word[(*n)++] = word;
}

static void add_options(serve_bucket *b, int *n, const cli_context *cli, const cli_option *options, bool has_dims)
{
    static char dashed[64][40]; /* names with their dashes, the same whoever asks */
    for (int k = 0; options[k].name && k < 64; k++) {
        snprintf(dashed[k], sizeof dashed[k], "--%s", options[k].name);
        for (int i = 0; i < cli_uses(cli, options[k].name) && !is_own(b, &options[k], has_dims); i++) {
            add(b, n, dashed[k]);
            if (options[k].argument)
                add(b, n, cli_use(cli, options[k].name, i));
        }
    }
}

/* The words between commas, dimensions as options; their number. */
static int read_text(serve_bucket *b, bool *has_dims)
{
    int n = 0, parts = 0;
    for (char *rest = b->text, *part; (part = strsep(&rest, ",")); parts++) {
        if (parts >= 2)
            add(b, &n, "--dim");
        add(b, &n, part);
    }
    *has_dims = parts > 2;
    return parts < 2 ? -1 : n;
}

static int parse(serve_bucket *b, const cli_context *cli, const cli_command *command, int which, const char *name)
{
    const char *given = cli_use(cli, "bucket", which);
    bool has_dims;
    b->text = util_strdup(given);
    if (!b->text)
        return MOIRAI_EFAIL;
    int n = read_text(b, &has_dims);
    if (n < 0)
        return moirai_error(MOIRAI_EUSAGE, "serve: --bucket '%.200s': expected PLAN,MODEL, then dimensions as NAME=N",
                            given);
    if (cli_has(cli, "work")) {
        snprintf(b->work, sizeof b->work, "%s/bucket-%d", cli_text(cli, "work"), which + 1);
        add(b, &n, "--work");
        add(b, &n, b->work);
    }
    add(b, &n, "--name");
    add(b, &n, name);
    add_options(b, &n, cli, command->options, has_dims);
    b->parsed = true;
    int rc = cli_parse(&b->cli, command, n, (char **)b->word);
    b->cli.json = cli->json;
    b->cli.quiet = cli->quiet;
    return rc;
}

/* ---- all of them ---- */

static int open_others(serve_buckets *b, const cli_command *command)
{
    const char *name = serve_model_of(b->keep[0].server)->name;
    int rc = 0;
    for (int i = 1; i < b->n && !rc; i++) {
        rc = parse(&b->other[i - 1], b->cli, command, i - 1, name);
        rc = rc ? rc : serve_keep_open(&b->keep[i], &b->other[i - 1].cli, b->n);
    }
    return rc;
}

int serve_buckets_open(serve_buckets *b, cli_context *cli, const cli_command *command)
{
    *b = (serve_buckets){.cli = cli, .n = 1 + cli_uses(cli, "bucket")};
    b->keep = util_alloc((size_t)b->n, sizeof *b->keep);
    b->other = util_alloc((size_t)b->n, sizeof *b->other);
    serve **server = util_alloc((size_t)b->n, sizeof *server);
    int rc = b->keep && b->other && server ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : serve_keep_open(&b->keep[0], cli, b->n);
    rc = rc ? rc : open_others(b, command);
    for (int i = 0; i < b->n && !rc; i++)
        server[i] = b->keep[i].server;
    rc = rc ? rc : serve_listen(server, b->n);
    free(server);
    return rc;
}

void serve_buckets_tick(serve_buckets *b)
{
    for (int i = 0; i < b->n; i++)
        serve_keep_tick(&b->keep[i]);
}

static bool is_idle(const serve_buckets *b)
{
    bool idle = true;
    for (int i = 0; i < b->n; i++)
        idle = idle && (!b->keep[i].server || serve_is_idle(b->keep[i].server));
    return idle;
}

void serve_buckets_close(serve_buckets *b)
{
    if (!b->keep)
        return;
    for (int i = 0; i < b->n; i++)
        if (b->keep[i].server)
            serve_close_door(b->keep[i].server);
    while (!is_idle(b)) { /* every request has its deadline */
        serve_buckets_tick(b);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    for (int i = 0; i < b->n; i++)
        serve_keep_end(&b->keep[i]);
    for (int i = 0; i < b->n; i++) /* the first has the clients, and looks at the others' queues */
        serve_keep_close(&b->keep[i]);
}

void serve_buckets_free(serve_buckets *b)
{
    for (int i = 0; b->other && i < b->n - 1; i++) {
        if (b->other[i].parsed)
            cli_free(&b->other[i].cli);
        free(b->other[i].text);
    }
    free(b->other);
    free(b->keep);
    *b = (serve_buckets){0};
}
