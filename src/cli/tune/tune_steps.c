/* The steps of `moirai tune`, each a command that a user would type (tune_call.h): --work keeps all files. Runs are in
 * tune_run.c. */
#include "cli/tune/tune_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "cli/commands/commands.h"
#include "cli/run/run_steps.h"
#include "cli/steps/steps.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/util.h"

double tune_left_s(const tune *t)
{
    double left = t->limit_s - (util_seconds() - t->begin_s);
    return t->limit_s <= 0 ? INFINITY : UTIL_MAX(left, 0);
}

/* ---- beginning and end ---- */

void tune_name_files(const tune *t, tune_net *net, const char *tag)
{
    snprintf(net->profile, sizeof net->profile, "%s/%sprofile.json", t->folder, tag);
    snprintf(net->graph, sizeof net->graph, "%s/%sgraph.json", t->folder, tag);
    snprintf(net->links, sizeof net->links, "%s/%slinks.json", t->folder, tag);
}

int tune_open(tune *t)
{
    const char *given = cli_text(t->cli, "work");
    int rc = given ? util_folder_make(given) : util_folder_temporary(t->folder, sizeof t->folder, "moirai-tune");
    if (rc)
        return rc;
    if (given)
        snprintf(t->folder, sizeof t->folder, "%s", given);
    t->temporary = !given;
    snprintf(t->cluster_path, sizeof t->cluster_path, "%s/cluster.json", t->folder);
    snprintf(t->net[0].model, sizeof t->net[0].model, "%s", cli_arg(t->cli, 0));
    tune_name_files(t, &t->net[0], "");
    t->n_nets = 1;
    t->host_cores = util_own_cores();
    t->limit_s = cli_real(t->cli, "time-limit");
    t->begin_s = util_seconds();
    return 0;
}

void tune_close(tune *t)
{
    for (int32_t k = 0; k < MOIRAI_MASK_DEVICES; k++)
        tune_turns_free(&t->alone[k]);
    for (int r = 0; r < t->n_rounds; r++)
        tune_turns_free(&t->round[r]);
    tune_turns_free(&t->machine);
    tune_cut_close(t);
    if (t->temporary)
        util_folder_remove(t->folder, 0);
    moirai_cluster_free(t->cluster);
}

/* ---- probe and profile ---- */

int tune_probe(tune *t)
{
    moirai_cluster *given = NULL;
    const char *name = cli_text(t->cli, "cluster");
    int rc = cli_cluster(&given, t->cli);
    if (!rc && given->n_devices > MOIRAI_MASK_DEVICES)
        rc = moirai_error(MOIRAI_EUSAGE, "tune: %d devices, at most %d", given->n_devices, MOIRAI_MASK_DEVICES);
    if (rc) {
        moirai_cluster_free(given);
        return rc;
    }
    if (!rc && (given->n_devices < 2 || cli_has(t->cli, "keep-links"))) {
        rc = moirai_cluster_write(given, t->cluster_path);
    } else if (!rc) {
        tune_words w = {0};
        cli_context sub;
        tune_say_option(&w, "--cluster", name);
        tune_say_option(&w, "--seconds", cli_text(t->cli, "probe-seconds"));
        tune_hand_on(&w, t->cli, "hosts", "--hosts");
        tune_say(&w, "--force");
        tune_say_option(&w, "--output", t->cluster_path);
        cli_status_set("probing %d devices", given->n_devices);
        rc = tune_call(&sub, t, &cli_command_probe, &w, false);
        cli_free(&sub);
    }
    moirai_cluster_free(given);
    rc = rc ? rc : moirai_cluster_open(&t->cluster, t->cluster_path);
    if (!rc)
        t->n_sets = moirai_cluster_apart(t->set, TUNE_MOST_SETS, t->cluster, t->host_cores);
    return rc;
}

int tune_profile(tune *t, tune_net *net)
{
    tune_words w = {0};
    cli_context sub;
    yyjson_mut_val *device;
    size_t i, n;
    tune_say(&w, net->model);
    tune_say_option(&w, "--cluster", t->cluster_path);
    tune_hand_on(&w, t->cli, "rules", "--rules");
    tune_hand_on(&w, t->cli, "cache", "--cache");
    tune_hand_on(&w, t->cli, "hosts", "--hosts");
    tune_hand_on(&w, t->cli, "dim", "--dim");
    tune_hand_on(&w, t->cli, "shape", "--shape");
    if (cli_has(t->cli, "fresh"))
        tune_say(&w, "--fresh");
    tune_say(&w, "--force");
    tune_say_option(&w, "--output", net->profile);
    int rc = tune_call(&sub, t, &cli_command_profile, &w, false);
    yyjson_mut_arr_foreach(rc ? NULL : yyjson_mut_obj_get(sub.result, "devices"), i, n, device) {
        int64_t price = yyjson_mut_get_sint(yyjson_mut_obj_get(device, "overhead_ns"));
        t->segment_ns = UTIL_MAX(t->segment_ns, price);
    }
    cli_free(&sub);
    return rc;
}

/* ---- plans ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return util_hash_walk(hash, text, text ? strlen(text) : 0);
}

/* Of a plan for many requests: the requests in flight, and of each copy what it has of them, and where. */
static uint64_t hash_copies(uint64_t hash, yyjson_val *root)
{
    yyjson_val *copy, *key, *device;
    size_t i, n, k, m;
    int64_t figure[2] = {yyjson_get_sint(yyjson_obj_get(root, "in_flight")), 0};
    hash = util_hash_walk(hash, figure, sizeof figure);
    yyjson_arr_foreach(yyjson_obj_get(root, "copies"), i, n, copy) {
        figure[0] = yyjson_get_sint(yyjson_obj_get(copy, "slots"));
        figure[1] = (int64_t)(1e6 * yyjson_get_num(yyjson_obj_get(copy, "share")));
        hash = util_hash_walk(hash, figure, sizeof figure);
        yyjson_obj_foreach(yyjson_obj_get(copy, "placement"), k, m, key, device) {
            hash = hash_text(hash_text(hash, yyjson_get_str(key)), yyjson_get_str(device));
        }
    }
    return hash;
}

/* FNV-1a over names of operators and their devices, in the plan's order. */
static int read_placement(tune_case *x)
{
    char *json;
    size_t length, i, n;
    yyjson_doc *doc = NULL;
    yyjson_val *op;
    int rc = util_file_read(&json, &length, x->plan);
    if (rc)
        return rc;
    rc = util_json_parse(&doc, json, length, x->plan);
    x->placement = UTIL_HASH_BEGIN;
    yyjson_val *root = rc ? NULL : yyjson_doc_get_root(doc);
    yyjson_arr_foreach(yyjson_obj_get(root, "ops"), i, n, op) {
        x->placement = hash_text(x->placement, yyjson_get_str(yyjson_obj_get(op, "name")));
        x->placement = hash_text(x->placement, yyjson_get_str(yyjson_obj_get(op, "device")));
    }
    if (yyjson_obj_get(root, "objective"))
        x->placement = hash_copies(x->placement, root);
    x->transfers = (int64_t)yyjson_arr_size(yyjson_obj_get(root, "transfers"));
    yyjson_doc_free(doc);
    free(json);
    return rc;
}

int tune_make_plan(tune *t, tune_case *x, const char *graph, const char *cluster, const char *placer,
                   const char *const *more)
{
    char limit[32], price[32];
    tune_words w = {0};
    cli_context sub;
    snprintf(limit, sizeof limit, "%.3f", UTIL_MAX(0.1, UTIL_MIN(cli_real(t->cli, "plan-limit"), tune_left_s(t) / 3)));
    tune_say(&w, graph);
    tune_say_option(&w, "--cluster", cluster);
    tune_say_option(&w, "--rules", "none");
    tune_say_option(&w, "--placer", placer);
    tune_say_option(&w, "--time-limit", limit);
    tune_hand_on(&w, t->cli, "memory", "--memory");
    tune_hand_on(&w, t->cli, "seed", "--seed");
    tune_hand_on(&w, t->cli, "threads", "--threads");
    for (; more && *more; more++)
        tune_say(&w, *more);
    /* Afterwards refine knows what a cut costs, and has it in the latencies. */
    snprintf(price, sizeof price, "%.3f", (double)t->segment_ns / 1e3);
    if (!t->n_rounds)
        tune_say_option(&w, "--segment-us", price);
    tune_say(&w, "--force");
    tune_say_option(&w, "--output", x->plan);
    int rc = tune_call(&sub, t, &cli_command_plan, &w, true);
    if (!rc) {
        int64_t period_ns = tune_result(&sub, "period_ns"); /* of a plan for many requests */
        x->promised_ns = period_ns > 0 ? period_ns : tune_result(&sub, "makespan_ns");
    }
    cli_free(&sub);
    return rc ? rc : read_placement(x);
}

/* ---- whole ---- */

int tune_alone(tune *t, int32_t k)
{
    tune_case *x = &t->alone[k];
    char wish[TUNE_PATH];
    const char *const pin[] = {"--pin", wish, NULL};
    *x = (tune_case){.net = &t->net[0], .promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    snprintf(x->name, sizeof x->name, "%.140s alone", t->cluster->device[k].name);
    snprintf(wish, sizeof wish, "*=%s", t->cluster->device[k].name);
    snprintf(x->plan, sizeof x->plan, "%s/alone-%d.json", t->folder, k);
    snprintf(x->cluster, sizeof x->cluster, "%s", t->cluster_path);
    snprintf(x->tag, sizeof x->tag, "alone-%d", k);
    int rc = tune_make_plan(t, x, t->net[0].profile, t->cluster_path, "single", pin);
    if (rc == MOIRAI_EINFEASIBLE) {
        cli_say(t->cli, "%s: %s\n", x->name, moirai_error_message());
        return 0;
    }
    return rc ? rc : tune_run(t, x);
}

static int write_machine(const tune *t, const char *path)
{
    util_writer w;
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    util_writer_begin(&w, "moirai-cluster");
    util_writer_pair_string(&w, "name", "this machine");
    util_writer_pair_open(&w, "devices", '[');
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "name", "machine");
    util_writer_pair_string(&w, "type", "cpu");
    util_writer_pair_string(&w, "ep", "cpu");
    util_writer_pair_int(&w, "memory_bytes", UTIL_MAX(memory, 1));
    util_writer_pair_int(&w, "threads", t->host_cores);
    util_writer_close(&w, '}');
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "links", '[');
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}

int tune_machine(tune *t)
{
    tune_case *x = &t->machine;
    bool here = false;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        here |= !t->cluster->device[k].host;
    *x = (tune_case){.net = &t->net[0], .promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    if (!here || cli_has(t->cli, "hosts"))
        return 0; /* nothing of the cluster runs on this machine */
    snprintf(x->name, sizeof x->name, "this machine with all its %d threads", t->host_cores);
    snprintf(x->tag, sizeof x->tag, "machine");
    snprintf(x->plan, sizeof x->plan, "%s/machine-plan.json", t->folder);
    snprintf(x->cluster, sizeof x->cluster, "%s/machine.json", t->folder);
    int rc = write_machine(t, x->cluster);
    rc = rc ? rc : tune_make_plan(t, x, t->net[0].profile, x->cluster, "single", NULL);
    if (rc == MOIRAI_EINFEASIBLE)
        return 0;
    rc = rc ? rc : tune_run(t, x);
    x->promised_ns = MOIRAI_UNKNOWN; /* from figures, not measured: good enough to say how many runs */
    return rc;
}

/* ---- rounds ---- */

enum { MOST_TIMELINES = MOIRAI_MASK_DEVICES + 2 * TUNE_MOST_ROUNDS + TUNE_MOST_PASSES + 1 };
typedef char timeline_path[TUNE_PATH];

/* `x` last: the last run counts most. */
static int list_timelines(timeline_path *out, const tune *t, const tune_net *net, const tune_case *x)
{
    int n = 0;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        if (t->alone[k].measured_ns >= 0 && &t->alone[k] != x && t->alone[k].net == net)
            tune_timeline(out[n++], t, &t->alone[k], 0);
    for (int r = 0; r < t->n_rounds; r++)
        if (&t->round[r] != x && t->round[r].net == net)
            tune_timeline(out[n++], t, &t->round[r], 0);
    for (int i = 0; x && i < x->n_passes; i++)
        if (tune_teaches(x, i))
            tune_timeline(out[n++], t, x, i);
    return n;
}

int tune_refine(tune *t, const tune_net *net, const tune_case *x)
{
    tune_words w = {0};
    cli_context sub;
    timeline_path *path = util_alloc(MOST_TIMELINES, sizeof *path);
    int n = path ? list_timelines(path, t, net, x) : 0;
    tune_say(&w, net->profile);
    for (int i = 0; i < n; i++)
        tune_say_option(&w, "--refine", path[i]);
    if (x)
        tune_say(&w, "--as-measured");
    tune_say_option(&w, "--cluster", t->cluster_path);
    tune_say_option(&w, "--cluster-out", net->links);
    tune_say(&w, "--force");
    tune_say_option(&w, "--output", net->graph);
    int rc = path ? tune_call(&sub, t, &cli_command_profile, &w, true) : MOIRAI_EFAIL;
    if (path)
        cli_free(&sub);
    free(path);
    return rc;
}

void tune_forbid(char *out, size_t size, const tune *t, uint64_t set)
{
    size_t used = 0;
    *out = '\0';
    for (int32_t k = 0; k < t->cluster->n_devices && used < size; k++)
        if (!(set >> k & 1))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "*=", t->cluster->device[k].name);
}

int tune_plan(tune *t, tune_net *net, tune_case *out)
{
    /* Before its first run a cut network has the times of its profile, and links as runs of the whole one had them. */
    bool first = net != &t->net[0] && !net->n_rounds;
    const char *graph = first ? net->profile : net->graph, *links = first ? t->net[0].links : net->links;
    tune_case best = {.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    for (int s = 0; s < t->n_sets; s++) {
        char others[TUNE_PATH];
        const char *const ban[] = {"--forbid", others, NULL};
        tune_case x = {.net = net, .promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
        if (!(t->set[s] & (t->set[s] - 1)))
            continue; /* one device: measured alone */
        tune_forbid(others, sizeof others, t, t->set[s]);
        snprintf(x.name, sizeof x.name, net->cut ? "round %d, cut" : "round %d", t->n_rounds + 1);
        snprintf(x.tag, sizeof x.tag, "%d", t->n_rounds + 1);
        snprintf(x.plan, sizeof x.plan, "%s/plan-%d-%d.json", t->folder, t->n_rounds + 1, s);
        snprintf(x.cluster, sizeof x.cluster, "%s", t->cluster_path);
        cli_status_set("planning round %d", t->n_rounds + 1);
        int rc = tune_make_plan(t, &x, graph, links, cli_text(t->cli, "placer"), *others ? ban : NULL);
        if (rc && rc != MOIRAI_EINFEASIBLE && rc != MOIRAI_ELIMIT)
            return rc;
        if (!rc && (best.promised_ns < 0 || x.promised_ns < best.promised_ns))
            best = x;
    }
    *out = best;
    return 0;
}

int tune_predict(tune *t, const tune_case *x, int64_t *out)
{
    char problem[TUNE_PATH];
    tune_words w = {0}, v = {0};
    cli_context sub;
    snprintf(problem, sizeof problem, "%s/problem.json", t->folder);
    tune_say(&w, x->net->graph);
    tune_say_option(&w, "--cluster", x->net->links);
    tune_hand_on(&w, t->cli, "memory", "--memory");
    tune_say(&w, "--force");
    tune_say_option(&w, "--output", problem);
    int rc = tune_call(&sub, t, &cli_command_problem, &w, true);
    cli_free(&sub);
    if (rc)
        return rc;
    tune_say(&v, problem);
    tune_say(&v, x->plan);
    rc = tune_call(&sub, t, &cli_command_simulate, &v, true);
    *out = rc ? MOIRAI_UNKNOWN : tune_result(&sub, "makespan_ns");
    cli_free(&sub);
    return rc;
}
