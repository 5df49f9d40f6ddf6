/* The steps of `moirai tune`: the commands that a user would type, called in this process with the same words. What
 * they find out is read from the object that --json would print, so that a step means exactly what its command means
 * and can be repeated by hand: --work keeps all files. */
#include "cli/tune/tune.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/steps/run_steps.h"
#include "cli/steps/steps.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/util.h"

/* ---- calling a command ---- */

enum { MOST_WORDS = 512 };
typedef struct words {
    const char *word[MOST_WORDS];
    int n;
} words;

static void add(words *w, const char *word)
{
    if (word && w->n < MOST_WORDS)
        w->word[w->n++] = word;
}

static void add_option(words *w, const char *option, const char *value)
{
    if (!value)
        return;
    add(w, option);
    add(w, value);
}

/* Options that tune has, too, handed on as they were typed. */
static void hand_on(words *w, const cli_context *cli, const char *name, const char *option)
{
    for (int i = 0; i < cli_uses(cli, name); i++)
        add_option(w, option, cli_use(cli, name, i));
}

/* Its result is in `sub` until cli_free; `quiet`: the story is left out, too. */
static int call(cli_context *sub, const tune *t, const cli_command *command, words *w, bool quiet)
{
    if (w->n >= MOST_WORDS)
        return moirai_error(MOIRAI_EUSAGE, "tune: too many arguments for '%s'", command->name);
    int rc = cli_parse(sub, command, w->n, (char **)w->word);
    sub->json = true;
    sub->quiet = quiet || t->cli->quiet;
    return rc ? rc : command->run(sub);
}

static int64_t result_of(const cli_context *sub, const char *key)
{
    yyjson_mut_val *value = yyjson_mut_obj_get(sub->result, key);
    return value ? yyjson_mut_get_sint(value) : MOIRAI_UNKNOWN;
}

double tune_left_s(const tune *t)
{
    double left = t->limit_s - (util_seconds() - t->begin_s);
    return t->limit_s <= 0 ? INFINITY : UTIL_MAX(left, 0);
}

/* ---- beginning and end ---- */

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
    snprintf(t->profile_path, sizeof t->profile_path, "%s/profile.json", t->folder);
    snprintf(t->graph_path, sizeof t->graph_path, "%s/graph.json", t->folder);
    snprintf(t->links_path, sizeof t->links_path, "%s/links.json", t->folder);
    t->host_cores = util_own_cores();
    t->limit_s = cli_real(t->cli, "time-limit");
    t->begin_s = util_seconds();
    return 0;
}

void tune_close(tune *t)
{
    DIR *d = t->temporary ? opendir(t->folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[TUNE_PATH + 300];
        snprintf(path, sizeof path, "%s/%s", t->folder, e->d_name);
        if (*e->d_name != '.')
            unlink(path);
    }
    if (d) {
        closedir(d);
        rmdir(t->folder);
    }
    moirai_cluster_free(t->cluster);
}

/* ---- probe and profile ---- */

int tune_probe(tune *t)
{
    moirai_cluster *given = NULL;
    const char *name = cli_text(t->cli, "cluster");
    int rc = cli_cluster(&given, t->cli);
    if (!rc && (given->n_devices < 2 || cli_has(t->cli, "keep-links"))) {
        rc = moirai_cluster_write(given, t->cluster_path);
    } else if (!rc) {
        words w = {0};
        cli_context sub;
        add_option(&w, "--cluster", name);
        add_option(&w, "--seconds", cli_text(t->cli, "probe-seconds"));
        hand_on(&w, t->cli, "hosts", "--hosts");
        add(&w, "--force");
        add_option(&w, "--output", t->cluster_path);
        cli_status_set("probing %d devices", given->n_devices);
        rc = call(&sub, t, &cli_command_probe, &w, false);
        cli_free(&sub);
    }
    moirai_cluster_free(given);
    rc = rc ? rc : moirai_cluster_open(&t->cluster, t->cluster_path);
    if (!rc)
        t->n_sets = moirai_cluster_apart(t->set, TUNE_MOST_SETS, t->cluster, t->host_cores);
    return rc;
}

int tune_profile(tune *t)
{
    words w = {0};
    cli_context sub;
    yyjson_mut_val *device;
    size_t i, n;
    add(&w, t->model);
    add_option(&w, "--cluster", t->cluster_path);
    hand_on(&w, t->cli, "rules", "--rules");
    hand_on(&w, t->cli, "cache", "--cache");
    hand_on(&w, t->cli, "hosts", "--hosts");
    hand_on(&w, t->cli, "dim", "--dim");
    hand_on(&w, t->cli, "shape", "--shape");
    if (cli_has(t->cli, "fresh"))
        add(&w, "--fresh");
    add(&w, "--force");
    add_option(&w, "--output", t->profile_path);
    int rc = call(&sub, t, &cli_command_profile, &w, false);
    yyjson_mut_arr_foreach(rc ? NULL : yyjson_mut_obj_get(sub.result, "devices"), i, n, device) {
        int64_t price = yyjson_mut_get_sint(yyjson_mut_obj_get(device, "overhead_ns"));
        t->segment_ns = UTIL_MAX(t->segment_ns, price);
    }
    cli_free(&sub);
    return rc;
}

/* ---- running ---- */

#define BETWEEN_S 1.2e-3 /* from the end of a run to the start of the next one */

/* As many as fill --run-seconds, --runs at least; but so few that they take a twentieth of the budget, and three. */
static void count_runs(char *runs, char *warmup, const tune *t, int64_t one_ns)
{
    int64_t least = cli_count(t->cli, "runs"), warm = cli_count(t->cli, "warmup");
    double one_s = 1e-9 * (double)UTIL_MAX(one_ns, 1) + BETWEEN_S, fill = cli_real(t->cli, "run-seconds") / one_s;
    double fit = t->limit_s > 0 ? 0.05 * t->limit_s / one_s : 1e9;
    snprintf(runs, 24, "%.0f", floor(UTIL_MAX(3, UTIL_MIN(UTIL_MAX((double)least, fill), fit))));
    snprintf(warmup, 24, "%.0f", floor(UTIL_MAX(1, UTIL_MIN(UTIL_MAX((double)warm, fill / 8), fit / 2))));
}

int tune_run(tune *t, tune_case *x)
{
    char runs[24], warmup[24], timeline[TUNE_PATH];
    words w = {0};
    cli_context sub;
    tune_timeline(timeline, t, x, x->n_passes);
    count_runs(runs, warmup, t, x->measured_ns > 0 ? x->measured_ns : x->promised_ns);
    add(&w, x->plan);
    add(&w, t->model);
    add_option(&w, "--cluster", x->cluster);
    add_option(&w, "--runs", runs);
    add_option(&w, "--warmup", warmup);
    add_option(&w, "--timeline", timeline);
    hand_on(&w, t->cli, "rules", "--rules");
    hand_on(&w, t->cli, "hosts", "--hosts");
    hand_on(&w, t->cli, "dim", "--dim");
    hand_on(&w, t->cli, "shape", "--shape");
    hand_on(&w, t->cli, "input", "--input");
    cli_status_set("running %s", x->name);
    int rc = call(&sub, t, &cli_command_run, &w, true);
    if (!rc) {
        int64_t ns = result_of(&sub, "median_ns");
        if (x->n_passes <= 2 * TUNE_MOST_PASSES)
            x->pass_ns[x->n_passes++] = ns;
        x->measured_ns = x->measured_ns < 0 ? ns : x->measured_ns;
    }
    cli_free(&sub);
    return rc;
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
        const char *text[2] = {yyjson_get_str(yyjson_obj_get(op, "name")),
                               yyjson_get_str(yyjson_obj_get(op, "device"))};
        for (int k = 0; k < 2; k++)
            x->placement = util_hash_walk(x->placement, text[k], text[k] ? strlen(text[k]) : 0);
    }
    x->transfers = (int64_t)yyjson_arr_size(yyjson_obj_get(root, "transfers"));
    yyjson_doc_free(doc);
    free(json);
    return rc;
}

/* `pin`: an option and its value, or NULL. */
static int make_plan(tune *t, tune_case *x, const char *graph, const char *cluster, const char *placer,
                     const char *const pin[2])
{
    char limit[32], price[32];
    words w = {0};
    cli_context sub;
    snprintf(limit, sizeof limit, "%.3f", UTIL_MAX(0.1, UTIL_MIN(cli_real(t->cli, "plan-limit"), tune_left_s(t) / 3)));
    add(&w, graph);
    add_option(&w, "--cluster", cluster);
    add_option(&w, "--rules", "none");
    add_option(&w, "--placer", placer);
    add_option(&w, "--time-limit", limit);
    hand_on(&w, t->cli, "memory", "--memory");
    hand_on(&w, t->cli, "seed", "--seed");
    hand_on(&w, t->cli, "threads", "--threads");
    if (pin)
        add_option(&w, pin[0], pin[1]);
    /* Afterwards refine knows what a cut costs, and has it in the latencies. */
    snprintf(price, sizeof price, "%.3f", (double)t->segment_ns / 1e3);
    if (!t->n_rounds)
        add_option(&w, "--segment-us", price);
    add(&w, "--force");
    add_option(&w, "--output", x->plan);
    int rc = call(&sub, t, &cli_command_plan, &w, true);
    x->promised_ns = rc ? MOIRAI_UNKNOWN : result_of(&sub, "makespan_ns");
    cli_free(&sub);
    return rc ? rc : read_placement(x);
}

/* ---- whole ---- */

int tune_alone(tune *t, int32_t k)
{
    tune_case *x = &t->alone[k];
    char wish[TUNE_PATH];
    const char *const pin[2] = {"--pin", wish};
    *x = (tune_case){.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    snprintf(x->name, sizeof x->name, "%.140s alone", t->cluster->device[k].name);
    snprintf(wish, sizeof wish, "*=%s", t->cluster->device[k].name);
    snprintf(x->plan, sizeof x->plan, "%s/alone-%d.json", t->folder, k);
    snprintf(x->cluster, sizeof x->cluster, "%s", t->cluster_path);
    snprintf(x->tag, sizeof x->tag, "alone-%d", k);
    int rc = make_plan(t, x, t->profile_path, t->cluster_path, "single", pin);
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
    *x = (tune_case){.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    if (!here || cli_has(t->cli, "hosts"))
        return 0; /* nothing of the cluster runs on this machine */
    snprintf(x->name, sizeof x->name, "this machine with all its %d threads", t->host_cores);
    snprintf(x->tag, sizeof x->tag, "machine");
    snprintf(x->plan, sizeof x->plan, "%s/machine-plan.json", t->folder);
    snprintf(x->cluster, sizeof x->cluster, "%s/machine.json", t->folder);
    int rc = write_machine(t, x->cluster);
    rc = rc ? rc : make_plan(t, x, t->profile_path, x->cluster, "single", NULL);
    if (rc == MOIRAI_EINFEASIBLE)
        return 0;
    x->promised_ns = MOIRAI_UNKNOWN; /* from figures, not measured */
    return rc ? rc : tune_run(t, x);
}

/* ---- rounds ---- */

enum { MOST_TIMELINES = MOIRAI_MAX_DEVICES + TUNE_MOST_ROUNDS + TUNE_MOST_PASSES + 1 };
typedef char timeline_path[TUNE_PATH];

/* `x` last: the last run counts most. */
static int list_timelines(timeline_path *out, const tune *t, const tune_case *x)
{
    int n = 0;
    for (int32_t k = 0; k < t->cluster->n_devices; k++)
        if (t->alone[k].measured_ns >= 0 && &t->alone[k] != x)
            tune_timeline(out[n++], t, &t->alone[k], 0);
    for (int r = 0; r < t->n_rounds; r++)
        if (&t->round[r] != x)
            tune_timeline(out[n++], t, &t->round[r], 0);
    for (int i = 0; x && i < x->n_passes; i++)
        if (tune_teaches(x, i))
            tune_timeline(out[n++], t, x, i);
    return n;
}

int tune_refine(tune *t, const tune_case *x)
{
    words w = {0};
    cli_context sub;
    timeline_path *path = util_alloc(MOST_TIMELINES, sizeof *path);
    int n = path ? list_timelines(path, t, x) : 0;
    add(&w, t->profile_path);
    for (int i = 0; i < n; i++)
        add_option(&w, "--refine", path[i]);
    if (x)
        add(&w, "--as-measured");
    add_option(&w, "--cluster", t->cluster_path);
    add_option(&w, "--cluster-out", t->links_path);
    add(&w, "--force");
    add_option(&w, "--output", t->graph_path);
    int rc = path ? call(&sub, t, &cli_command_profile, &w, true) : MOIRAI_EFAIL;
    if (path)
        cli_free(&sub);
    free(path);
    return rc;
}

/* "*=A,B": the devices that are not in the set; "" where all are. */
static void forbid(char *out, size_t size, const tune *t, uint64_t set)
{
    size_t used = 0;
    *out = '\0';
    for (int32_t k = 0; k < t->cluster->n_devices && used < size; k++)
        if (!(set >> k & 1))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "*=", t->cluster->device[k].name);
}

int tune_plan(tune *t, tune_case *out)
{
    tune_case best = {.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
    for (int s = 0; s < t->n_sets; s++) {
        char others[TUNE_PATH];
        const char *const ban[2] = {"--forbid", others};
        tune_case x = {.promised_ns = MOIRAI_UNKNOWN, .measured_ns = MOIRAI_UNKNOWN};
        if (!(t->set[s] & (t->set[s] - 1)))
            continue; /* one device: measured alone */
        forbid(others, sizeof others, t, t->set[s]);
        snprintf(x.name, sizeof x.name, "round %d", t->n_rounds + 1);
        snprintf(x.tag, sizeof x.tag, "%d", t->n_rounds + 1);
        snprintf(x.plan, sizeof x.plan, "%s/plan-%d-%d.json", t->folder, t->n_rounds + 1, s);
        snprintf(x.cluster, sizeof x.cluster, "%s", t->cluster_path);
        cli_status_set("planning round %d", t->n_rounds + 1);
        int rc = make_plan(t, &x, t->graph_path, t->links_path, cli_text(t->cli, "placer"), *others ? ban : NULL);
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
    words w = {0}, v = {0};
    cli_context sub;
    snprintf(problem, sizeof problem, "%s/problem.json", t->folder);
    add(&w, t->graph_path);
    add_option(&w, "--cluster", t->links_path);
    hand_on(&w, t->cli, "memory", "--memory");
    add(&w, "--force");
    add_option(&w, "--output", problem);
    int rc = call(&sub, t, &cli_command_problem, &w, true);
    cli_free(&sub);
    if (rc)
        return rc;
    add(&v, problem);
    add(&v, x->plan);
    rc = call(&sub, t, &cli_command_simulate, &v, true);
    *out = rc ? MOIRAI_UNKNOWN : result_of(&sub, "makespan_ns");
    cli_free(&sub);
    return rc;
}
