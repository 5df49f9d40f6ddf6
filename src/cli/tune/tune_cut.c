/* Operators cut into pieces, for `moirai tune`: what is chosen by measured times is measured again before it is kept.
 *
 * The first choice knows the whole operators' times alone, and takes a piece's for its share of these: too little, since
 * small products are slow. The pieces that it makes are profiled, and the next choice knows what pieces of that size
 * take (src/shard/shard_times.c); until a choice comes back, or TUNE_MOST_NETS. The last one that was profiled is planned
 * for, run and refined in rounds like the network whole; also where measured pieces say that no cut pays, because runs
 * decide, not the model. Only where already shares of the whole times say so, nothing is cut. */
#include "cli/tune/tune_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/steps/steps.h"
#include "util/util.h"

#define CHOSEN "chosen by measured times of pieces"
#define SHARE_OF_TIME 0.06 /* of all that is left, for one choice */

int tune_cut_open(tune *t)
{
    const char *how = cli_text(t->cli, "split-operators");
    moirai_onnx_options options;
    size_t length;
    int rc = 0;
    if (!how || !strcmp(how, "off"))
        return 0;
    if (strcmp(how, "auto"))
        rc = util_file_read(&t->cut[1], &length, how);
    rc = rc ? rc : cli_onnx_options(&options, t->cli);
    if (rc)
        return rc;
    rc = moirai_shards_open(&t->shards, t->net[0].model, &options);
    cli_onnx_options_free(&options);
    moirai_graph *g = NULL;
    rc = rc || !t->cut[1] ? rc : moirai_shards_graph(&g, t->shards, t->cut[1], MOIRAI_SHARD_CHAIN, NULL);
    moirai_graph_free(g);
    t->cut_verdict = "nothing was cut: the time was over";
    return rc;
}

void tune_cut_close(tune *t)
{
    for (int i = 0; i < TUNE_MOST_NETS; i++)
        free(t->cut[i]);
    moirai_shards_free(t->shards);
}

/* ---- the choice ---- */

typedef struct chosen {
    moirai_graph *measured[TUNE_MOST_NETS];
    moirai_cluster *cluster;
    moirai_rules *rules;
    char *text; /* the best of all sets of devices */
    int64_t ns;
} chosen;

/* For one set of devices that are apart. */
static int choose_for(chosen *c, tune *t, uint64_t set)
{
    char others[TUNE_PATH] = "";
    size_t used = 0;
    moirai_shard_choose_options o = {.cluster = c->cluster, .rules = c->rules, .n_measured = t->n_nets};
    moirai_shard_choice choice = {0};
    for (int32_t k = 0; k < t->cluster->n_devices && used < sizeof others; k++)
        if (!(set >> k & 1))
            used += (size_t)snprintf(others + used, sizeof others - used, "%s%s", used ? "," : "",
                                     t->cluster->device[k].name);
    const moirai_wish wish = {MOIRAI_FORBID, "*", others};
    moirai_budget_init(&o.budget);
    o.budget.interrupt = cli_interrupt();
    o.budget.threads = (int)cli_count(t->cli, "threads");
    o.budget.time_limit_s = isfinite(tune_left_s(t)) ? UTIL_MAX(SHARE_OF_TIME * tune_left_s(t), 0.5) : 0;
    o.measured = (const moirai_graph *const *)c->measured;
    o.problem.wishes = used ? &wish : NULL;
    o.problem.n_wishes = used != 0;
    o.problem.segment_ns = t->n_rounds ? 0 : t->segment_ns; /* runs have it in the latencies */
    int rc = moirai_shards_choose(&choice, t->shards, &o);
    if (!rc && choice.cut_ns >= 0 && (!c->text || choice.cut_ns < c->ns)) {
        free(c->text);
        c->text = util_strdup(choice.cut);
        c->ns = choice.cut_ns;
        rc = c->text ? 0 : MOIRAI_EFAIL;
    }
    moirai_shard_choice_free(&choice);
    return rc == MOIRAI_EINFEASIBLE ? 0 : rc;
}

/* *text: the cut, "" where none pays; the caller frees. */
static int choose(tune *t, char **text)
{
    chosen c = {0};
    const char *rules = cli_text(t->cli, "rules");
    cli_status_set("judging cuts");
    int rc = moirai_cluster_open(&c.cluster, t->net[0].links);
    rc = rc ? rc : moirai_rules_open(&c.rules, rules ? rules : "onnxruntime");
    for (int i = 0; i < t->n_nets && !rc; i++)
        rc = moirai_graph_read(&c.measured[i], t->net[i].profile);
    for (int s = 0; s < t->n_sets && !rc; s++)
        if (t->set[s] & (t->set[s] - 1))
            rc = choose_for(&c, t, t->set[s]);
    for (int i = 0; i < t->n_nets; i++)
        moirai_graph_free(c.measured[i]);
    moirai_rules_free(c.rules);
    moirai_cluster_free(c.cluster);
    *text = c.text;
    return rc;
}

/* ---- the cut network ---- */

static int add_net(tune *t, char *text)
{
    char tag[16];
    tune_net *net = &t->net[t->n_nets];
    snprintf(tag, sizeof tag, "cut-%d-", t->n_nets);
    *net = (tune_net){.cut = text};
    t->cut[t->n_nets] = text;
    tune_name_files(t, net, tag);
    snprintf(net->model, sizeof net->model, "%s/cut-%d.onnx", t->folder, t->n_nets);
    int rc = moirai_shards_write(t->shards, text, MOIRAI_SHARD_CHAIN, net->model, NULL);
    if (rc)
        return rc;
    cli_say(t->cli, "cut %d: %.300s%s\n", t->n_nets, text, strlen(text) > 300 ? " ..." : "");
    rc = tune_profile(t, net);
    t->n_nets += !rc;
    t->cut_net = rc ? t->cut_net : net;
    return rc;
}

static tune_net *known(tune *t, const char *text)
{
    for (int i = 1; i < t->n_nets; i++)
        if (!strcmp(t->net[i].cut, text))
            return &t->net[i];
    return NULL;
}

/* The next choice; *over: it is the last one. */
static int next_cut(tune *t, bool *over)
{
    char *text = NULL;
    int rc = choose(t, &text);
    tune_net *same = text ? known(t, text) : NULL;
    *over = rc || !text || !*text || same;
    if (!*over) {
        t->cut_verdict = CHOSEN;
        return add_net(t, text);
    }
    if (same)
        t->cut_net = same;
    else if (!rc && text && t->n_nets > 1)
        t->cut_verdict = "measured times of pieces say that no cut pays: the last one was run all the same";
    else if (!rc && text)
        t->cut_verdict = "no cut pays, even if pieces took no more than their shares";
    free(text);
    return rc;
}

int tune_cut(tune *t)
{
    char *given = t->cut[1];
    bool over = false;
    int rc = 0;
    t->cut_verdict = "as the file says";
    if (given)
        return add_net(t, given);
    t->cut_verdict = "no two devices can work at the same time";
    while (t->n_nets < TUNE_MOST_NETS && !rc && !over && tune_left_s(t) > 0)
        rc = next_cut(t, &over);
    return rc;
}

int tune_cut_write(const tune *t)
{
    const char *path = cli_text(t->cli, "cut-out");
    if (!path || !t->kept->net->cut)
        return 0;
    return moirai_shards_write(t->shards, t->kept->net->cut, MOIRAI_SHARD_CHAIN, path, NULL);
}
