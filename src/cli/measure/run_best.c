/* The best plan so far, in a file, and what may take its place.
 *
 * Whoever plans, runs and refines by hand holds a plan that was measured and gets one that was not. Times that were
 * measured at different moments do not say which is faster: a machine's speed changes by more than plans differ. So both
 * are run in turns here, A B B A A B, and their trimmed means are compared. The new plan takes the place of
 * the old one only if it is faster by more than WORTH: --refine, and whatever else made it, never replaces a plan by one
 * that measures slower. */
#include "cli/measure/run_best.h"
#include "cli/measure/run_turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

enum { PASSES = 3 };
#define WORTH 0.01

int cli_best_open(cli_best *b, const cli_context *cli)
{
    char *text[2] = {NULL, NULL};
    size_t length[2] = {0, 0};
    int rank, size;
    *b = (cli_best){.file = cli_text(cli, "best"), .plan = cli_arg(cli, 0)};
    if (!b->file)
        return 0;
    if (cli_inside_mpi(&rank, &size))
        return moirai_error(MOIRAI_EUSAGE, "run: --best runs several times: run it without mpirun");
    if (!strcmp(b->plan, "-"))
        return moirai_error(MOIRAI_EUSAGE, "run: --best needs a plan in a file, not standard input");
    if ((b->first = access(b->file, F_OK) != 0))
        return 0;
    int rc = util_file_read(&text[0], &length[0], b->plan);
    rc = rc ? rc : util_file_read(&text[1], &length[1], b->file);
    b->same = !rc && length[0] == length[1] && !memcmp(text[0], text[1], length[0]);
    free(text[0]);
    free(text[1]);
    return rc;
}

/* A B, B A, A B: slow moments meet both. */
static int in_turns(double ns[2], const cli_run *const w[2])
{
    static const int order[2 * PASSES] = {0, 1, 1, 0, 0, 1};
    cli_turn turn[2 * PASSES];
    double list[2][PASSES];
    for (int i = 0; i < 2 * PASSES; i++) {
        turn[i] =
            (cli_turn){.who = order[i], .warmup = cli_count(w[0]->cli, "warmup"), .runs = cli_count(w[0]->cli, "runs")};
        snprintf(turn[i].result, sizeof turn[i].result, "%s/turn-%d.json", w[0]->folder, i);
    }
    int rc = cli_take_turns(w, 2, turn, 2 * PASSES);
    for (int i = 0; i < 2 * PASSES && !rc; i++)
        list[order[i]][i / 2] = (double)turn[i].ns;
    for (int k = 0; k < 2 && !rc; k++)
        ns[k] = util_trimmed_mean(list[k], PASSES);
    return rc;
}

static int take(const cli_best *b)
{
    char *text;
    size_t length;
    int rc = util_file_read(&text, &length, b->plan);
    if (rc)
        return rc;
    rc = util_file_write(b->file, text, length);
    free(text);
    return rc;
}

static void tell(const cli_best *b, cli_context *cli, const double ns[2], bool replaced)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(cli->doc, cli->result, "best");
    yyjson_mut_obj_add_strcpy(cli->doc, o, "file", b->file);
    yyjson_mut_obj_add_bool(cli->doc, o, "replaced", replaced);
    if (b->first || b->same) {
        cli_print(cli, "best         %s %s\n", b->file, b->first ? "is this plan now" : "is this plan");
        return;
    }
    cli_print(cli, "best         %s %s: in turns it takes %s, %s %s\n", b->file,
              replaced ? "is replaced by this plan" : "stays as it is", cli_human_ns((int64_t)ns[1]).s, b->plan,
              cli_human_ns((int64_t)ns[0]).s);
    yyjson_mut_obj_add_int(cli->doc, o, "best_ns", llround(ns[1]));
    yyjson_mut_obj_add_int(cli->doc, o, "plan_ns", llround(ns[0]));
    yyjson_mut_obj_add_int(cli->doc, o, "passes", PASSES);
}

int cli_best_settle(const cli_best *b, cli_context *cli, const cli_run *own, const cli_run *best)
{
    double ns[2] = {0, 0};
    const cli_run *const both[2] = {own, best};
    int rc = b->first || b->same ? 0 : in_turns(ns, both);
    bool replaced = b->first || (!b->same && !rc && ns[0] < (1 - WORTH) * ns[1]);
    rc = rc || !replaced ? rc : take(b);
    if (!rc)
        tell(b, cli, ns, replaced);
    return rc;
}
