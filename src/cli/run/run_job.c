/* The job of a run: its folders, which rank is which device on which host, and the file that every rank reads. */
#include "cli/run/run_steps.h"
#include "cli/run/step_ranks.h"
#include "cli/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

/* ---- folders ---- */

int cli_run_folders(cli_run *w)
{
    const char *given = cli_text(w->cli, "work");
    char own[4000];
    if (given && w->beside) {
        snprintf(own, sizeof own, "%s/%s", given, w->beside);
        given = own;
    }
    int rc = given ? util_folder_make(given) : util_folder_temporary(w->folder, sizeof w->folder, "moirai-run");
    if (rc)
        return rc;
    w->temporary = !given;
    if (given) {
        char *full = realpath(given, NULL);
        if (!full)
            return moirai_error(MOIRAI_EFAIL, "%s: can't make this folder: %s", given, strerror(errno));
        snprintf(w->folder, sizeof w->folder, "%s", full);
        free(full);
    }
    snprintf(w->parts, sizeof w->parts, "%s/parts", w->folder);
    snprintf(w->outputs, sizeof w->outputs, "%s/outputs", w->folder);
    snprintf(w->job, sizeof w->job, "%s/job.json", w->folder);
    snprintf(w->result, sizeof w->result, "%s/timeline.json", w->folder);
    snprintf(w->rate, sizeof w->rate, "%s/rate.json", w->folder);
    snprintf(w->verdict, sizeof w->verdict, "%s/verdict.json", w->folder);
    return util_folder_make(w->outputs);
}

void cli_run_free(cli_run *w)
{
    if (w->temporary && !cli_has(w->cli, "keep"))
        util_folder_remove(w->folder, 2); /* a split that was killed leaves its stage in parts/ */
    else if (w->temporary)
        cli_say(w->cli, "kept %s\n", w->folder);
    cli_copies_free(w->copies);
    yyjson_doc_free(w->manifest);
    moirai_cluster_free(w->cluster);
    free(w->name);
    free(w->host);
    free(w->device);
    free(w->hosts);
}

/* ---- ranks ---- */

static int open_manifest(yyjson_doc **out, const char *parts)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/manifest.json", parts);
    return util_json_read(out, path, "moirai-manifest");
}

static int open_manifests(cli_run *w)
{
    int rc = open_manifest(&w->manifest, w->parts);
    for (int c = 1; w->copies && c < w->copies->n && !rc; c++)
        rc = open_manifest(&w->copies->copy[c].manifest, w->copies->copy[c].parts);
    return rc;
}

static int name_ranks(cli_run *w)
{
    size_t i, n;
    yyjson_val *d, *devices = yyjson_obj_get(yyjson_doc_get_root(w->manifest), "devices");
    size_t most = yyjson_arr_size(devices);
    w->name = util_alloc(most, sizeof *w->name);
    w->host = util_alloc(most, sizeof *w->host);
    w->device = util_alloc(most, sizeof *w->device);
    if (!w->name || !w->host || !w->device)
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(devices, i, n, d) {
        const char *name = yyjson_get_str(yyjson_obj_get(d, "name"));
        if (!yyjson_arr_size(yyjson_obj_get(d, "segments")) && !cli_copies_use(w->copies, name))
            continue;
        int32_t at = w->cluster ? moirai_cluster_find(w->cluster, name) : MOIRAI_NONE;
        if (w->cluster && at == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "the plan's device '%s' is not in cluster '%s'", name, w->cluster->name);
        w->name[w->n_ranks] = name;
        w->device[w->n_ranks] = w->cluster ? &w->cluster->device[at] : NULL;
        w->host[w->n_ranks] = w->cluster ? w->cluster->device[at].host : NULL;
        w->has_hosts |= w->host[w->n_ranks] != NULL;
        w->n_ranks++;
    }
    return 0;
}

/* --hosts a,b,c: for the devices in order, again from the first when there are more devices; a device's own host wins.
 */
static int spread_hosts(cli_run *w)
{
    const char *given = cli_text(w->cli, "hosts");
    if (!given)
        return 0;
    const char *list[256];
    int n = 0;
    char *rest = w->hosts = util_strdup(given);
    if (!rest)
        return MOIRAI_EFAIL;
    for (char *host; (host = strsep(&rest, ",")) && n < 256;)
        if (*host)
            list[n++] = host;
    int rc = cli_check_hosts(w->cli, list, n);
    if (rc)
        return rc;
    if (!n)
        return moirai_error(MOIRAI_EUSAGE, "run: --hosts '%s' names no host", given);
    for (int i = 0; i < w->n_ranks; i++)
        w->host[i] = w->host[i] ? w->host[i] : list[i % n];
    w->has_hosts = true;
    return 0;
}

/* ---- the job ---- */

static void write_devices(util_writer *o, const cli_run *w)
{
    util_writer_pair_open(o, "devices", '[');
    for (int i = 0; i < w->n_ranks; i++) {
        const moirai_device *d = w->device[i];
        util_writer_open(o, '{');
        util_writer_pair_string(o, "name", w->name[i]);
        if (d && d->ep)
            util_writer_pair_string(o, "ep", d->ep);
        if (d && d->cores)
            util_writer_pair_string(o, "cores", d->cores);
        util_writer_pair_int(o, "threads", d && d->threads > 0 ? d->threads : 1);
        if (d && d->share > 0) {
            util_writer_key(o, "share");
            util_writer_real(o, d->share);
        }
        util_writer_close(o, '}');
    }
    util_writer_close(o, ']');
}

static int write_inputs(util_writer *o, const cli_run *w)
{
    const char *data_set = NULL;
    util_writer_pair_open(o, "inputs", '[');
    for (int i = 0; i < cli_uses(w->cli, "input"); i++) {
        const char *text = cli_use(w->cli, "input", i), *colon = strrchr(text, ':');
        struct stat info;
        if (!stat(text, &info) && S_ISDIR(info.st_mode)) {
            data_set = text;
            continue;
        }
        if (!colon || colon == text || !colon[1])
            return moirai_error(MOIRAI_EUSAGE, "run: --input '%s': write NAME:FILE.npy, or a test_data_set folder",
                                text);
        char *name = strndup(text, (size_t)(colon - text)), *file = realpath(colon + 1, NULL);
        util_writer_open(o, '{');
        util_writer_pair_string(o, "name", name);
        util_writer_pair_string(o, "file", file);
        util_writer_close(o, '}');
        int rc = name && file ? 0 : moirai_error(MOIRAI_EINPUT, "%s: %s", colon + 1, strerror(errno));
        free(name);
        free(file);
        if (rc)
            return rc;
    }
    util_writer_close(o, ']');
    char *full = data_set ? realpath(data_set, NULL) : NULL;
    if (full)
        util_writer_pair_string(o, "data_set", full);
    free(full);
    return 0;
}

/* Who is which rank is the same in all copies; the first one's job names the others. */
static void write_copies(util_writer *o, const cli_run *w, bool first)
{
    const cli_copies *all = w->copies;
    if (!all)
        return;
    util_writer_pair_open(o, "ranks", '[');
    for (int i = 0; i < w->n_ranks; i++)
        util_writer_string(o, w->name[i]);
    util_writer_close(o, ']');
    if (!first)
        return;
    util_writer_pair_open(o, "copies", '[');
    for (int c = 0; c < all->n; c++) {
        util_writer_open(o, '{');
        if (c)
            util_writer_pair_string(o, "job", all->copy[c].job);
        util_writer_pair_int(o, "slots", all->copy[c].slots);
        util_writer_pair_int(o, "share_ppm", all->copy[c].share_ppm);
        util_writer_close(o, '}');
    }
    util_writer_close(o, ']');
}

/* What only the first copy's job has: the others are run once alone, and then by its settings. */
static void write_settings(util_writer *o, const cli_run *w, bool first)
{
    util_writer_pair_int(o, "warmup", first ? cli_count(w->cli, "warmup") : 0);
    util_writer_pair_int(o, "runs", first ? cli_count(w->cli, "runs") : 1);
    util_writer_pair_int(o, "seed", cli_count(w->cli, "seed"));
    if (w->in_flight > 1 && first) {
        util_writer_pair_int(o, "in_flight", w->in_flight);
        util_writer_pair_int(o, "pace", w->pace);
        util_writer_pair_string(o, "rate", w->rate);
        util_writer_key(o, "at_least_s");
        util_writer_real(o, w->at_least_s);
    }
    util_writer_key(o, "stall_s");
    util_writer_real(o, cli_real(w->cli, "stall"));
    util_writer_key(o, "progress");
    util_writer_bool(o, first && cli_status_terminal());
}

static int write_job(const cli_run *w, const char *model, const cli_copy *copy)
{
    util_writer o;
    char *full = realpath(model, NULL);
    if (!full)
        return moirai_error(MOIRAI_EINPUT, "%s: %s", model, strerror(errno));
    util_writer_begin(&o, "moirai-job");
    util_writer_pair_string(&o, "folder", copy ? copy->parts : w->parts);
    util_writer_pair_string(&o, "model", full);
    util_writer_pair_string(&o, "outputs", copy ? copy->outputs : w->outputs);
    util_writer_pair_string(&o, "result", copy ? copy->result : w->result);
    write_settings(&o, w, !copy);
    write_copies(&o, w, !copy);
    write_devices(&o, w);
    int rc = write_inputs(&o, w);
    free(full);
    if (rc) {
        util_writer_free(&o);
        return rc;
    }
    util_writer_close(&o, '}');
    return util_writer_save(&o, copy ? copy->job : w->job);
}

int cli_run_job(cli_run *w, const char *model)
{
    int rc = open_manifests(w);
    rc = rc ? rc : name_ranks(w);
    rc = rc ? rc : spread_hosts(w);
    rc = rc ? rc : write_job(w, model, NULL);
    for (int c = 1; w->copies && c < w->copies->n && !rc; c++)
        rc = write_job(w, model, &w->copies->copy[c]);
    return rc;
}
