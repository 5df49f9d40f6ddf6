/* Reading a job: the settings of a run, and what the manifest (rank_manifest.c) does not say of devices and inputs. */
#include "rank/rank_manifest.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

void rank_job_free(rank_job *job)
{
    if (!job)
        return;
    for (int k = 0; k < job->n_devices; k++) {
        for (int i = 0; i < job->device[k].n_segments; i++) {
            free(job->device[k].segment[i].input);
            free(job->device[k].segment[i].output);
        }
        free(job->device[k].segment);
    }
    free(job->device);
    free(job->copy);
    free(job->transfer);
    free(job->input);
    free(job->output);
    yyjson_doc_free(job->doc);
    yyjson_doc_free(job->manifest);
    free(job);
}

int rank_job_owner(const rank_job *job, const char *output)
{
    for (int k = 0; k < job->n_devices; k++)
        for (int s = 0; s < job->device[k].n_segments; s++)
            for (int i = 0; i < job->device[k].segment[s].n_outputs; i++)
                if (!strcmp(job->device[k].segment[s].output[i], output))
                    return job->device[k].rank;
    return 0; /* an input that is an output, too: rank 0 has all inputs */
}

static int read_settings(rank_job *job, const char *path, yyjson_val *root)
{
    util_json_at at = {path, NULL, NULL, 0};
    int rc = util_json_string(&job->folder, NULL, &at, root, "folder", true);
    rc = rc ? rc : util_json_string(&job->model, NULL, &at, root, "model", true);
    rc = rc ? rc : util_json_string(&job->outputs, NULL, &at, root, "outputs", true);
    rc = rc ? rc : util_json_string(&job->result, NULL, &at, root, "result", true);
    rc = rc ? rc : util_json_string(&job->data_set, NULL, &at, root, "data_set", false);
    rc = rc ? rc : util_json_string(&job->rate, NULL, &at, root, "rate", false);
    job->in_flight = 1;
    rc = rc ? rc : util_json_int64(&job->in_flight, &at, root, "in_flight", false, 1);
    rc = rc ? rc : util_json_int64(&job->pace, &at, root, "pace", false, 0);
    rc = rc ? rc : util_json_real(&job->at_least_s, &at, root, "at_least_s", false);
    rc = rc ? rc : util_json_int64(&job->warmup, &at, root, "warmup", true, 0);
    rc = rc ? rc : util_json_int64(&job->runs, &at, root, "runs", true, 1);
    rc = rc ? rc : util_json_int64(&job->seed, &at, root, "seed", true, 0);
    rc = rc ? rc : util_json_bool(&job->progress, &at, root, "progress", false);
    return rc ? rc : util_json_real(&job->stall_s, &at, root, "stall_s", true);
}

static int read_copy(job_copy *c, const char *path, yyjson_val *value, size_t index)
{
    util_json_at at = {path, "copy", NULL, index};
    int rc = util_json_string(&c->job, NULL, &at, value, "job", index > 0);
    rc = rc ? rc : util_json_int64(&c->slots, &at, value, "slots", true, 0);
    return rc ? rc : util_json_int64(&c->share_ppm, &at, value, "share_ppm", true, 0);
}

static int read_copies(rank_job *job, const char *path, yyjson_val *root)
{
    util_json_at at = {path, NULL, NULL, 0};
    yyjson_val *list = NULL, *value;
    size_t i, n;
    int rc = util_json_array(&list, &at, root, "copies", false);
    rc = rc ? rc : util_json_array(&job->rank_name, &at, root, "ranks", false);
    job->n_copies = list ? (int)UTIL_MIN(yyjson_arr_size(list), (size_t)INT32_MAX) : 1;
    job->copy = util_alloc((size_t)job->n_copies, sizeof *job->copy);
    rc = rc ? rc : job->copy && job->n_copies ? 0 : moirai_error(MOIRAI_EFAIL, "%s: no copies", path);
    yyjson_arr_foreach(list, i, n, value) {
        rc = rc ? rc : read_copy(&job->copy[i], path, value, i);
    }
    return rc;
}

static int read_choice(rank_job *job, const char *path, yyjson_val *value, size_t index)
{
    util_json_at at = {path, "device", NULL, index};
    int k = 0;
    int64_t threads = 0;
    int rc = rank_job_find_device(&k, job, &at, value, "name");
    if (rc)
        return rc;
    rank_ort_device *d = &job->device[k].ort;
    rc = util_json_string(&d->ep, NULL, &at, value, "ep", false);
    rc = rc ? rc : util_json_string(&d->cores, NULL, &at, value, "cores", false);
    rc = rc ? rc : util_json_int64(&threads, &at, value, "threads", false, 0);
    rc = rc ? rc : util_json_real(&job->device[k].share, &at, value, "share", false);
    d->threads = (int)UTIL_MIN(threads, INT32_MAX);
    return rc;
}

static int read_input_file(rank_job *job, const char *path, yyjson_val *value, size_t index)
{
    util_json_at at = {path, "input", NULL, index};
    const char *name = NULL, *file = NULL;
    int rc = util_json_string(&name, NULL, &at, value, "name", true);
    rc = rc ? rc : util_json_string(&file, NULL, &at, value, "file", true);
    for (int i = 0; !rc && i < job->n_inputs; i++)
        if (!strcmp(job->input[i].name, name)) {
            job->input[i].file = file;
            return 0;
        }
    return rc ? rc : moirai_error(MOIRAI_EUSAGE, "input '%s': the model has no such input", name);
}

static int read_root(rank_job *job, const char *path)
{
    yyjson_val *root = yyjson_doc_get_root(job->doc), *devices = NULL, *inputs = NULL, *value;
    util_json_at at = {path, NULL, NULL, 0};
    size_t i, n;
    int rc = read_settings(job, path, root);
    rc = rc ? rc : read_copies(job, path, root);
    rc = rc ? rc : rank_manifest_read(job);
    rc = rc ? rc : util_json_array(&devices, &at, root, "devices", true);
    rc = rc ? rc : util_json_array(&inputs, &at, root, "inputs", true);
    yyjson_arr_foreach(devices, i, n, value) {
        rc = rc ? rc : read_choice(job, path, value, i);
    }
    yyjson_arr_foreach(inputs, i, n, value) {
        rc = rc ? rc : read_input_file(job, path, value, i);
    }
    return rc;
}

int rank_job_read(rank_job **out, const char *path)
{
    *out = NULL;
    rank_job *job = util_alloc(1, sizeof *job);
    if (!job)
        return MOIRAI_EFAIL;
    int rc = util_json_read(&job->doc, path, "moirai-job");
    rc = rc ? rc : read_root(job, path);
    if (rc) {
        rank_job_free(job);
        return rc;
    }
    *out = job;
    return 0;
}
