/* Reading a job and its manifest, and making the network's inputs. */
#include "rank/rank_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    free(job->transfer);
    free(job->input);
    free(job->output);
    yyjson_doc_free(job->doc);
    yyjson_doc_free(job->manifest);
    free(job);
}

static int open_file(yyjson_doc **out, const char *path, const char *format)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = util_json_open(out, data, length, path, format);
    free(data);
    return rc;
}

/* ---- the manifest ---- */

static int read_names(const char ***out, int *n, const util_json_at *at, yyjson_val *object, const char *key)
{
    yyjson_val *list = NULL, *value;
    size_t i, count;
    int rc = util_json_array(&list, at, object, key, true);
    *out = rc ? NULL : util_alloc(yyjson_arr_size(list), sizeof **out);
    if (rc || !*out)
        return rc ? rc : MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, count, value)
    {
        if (!rc)
            rc = util_json_value_string(&(*out)[(*n)++], NULL, at, value, key);
    }
    return rc;
}

static int read_segment(job_segment *s, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "segment", NULL, index};
    yyjson_val *ops = NULL;
    int rc = util_json_string(&s->file, NULL, &at, value, "file", true);
    rc = rc ? rc : read_names(&s->input, &s->n_inputs, &at, value, "inputs");
    rc = rc ? rc : read_names(&s->output, &s->n_outputs, &at, value, "outputs");
    rc = rc ? rc : util_json_array(&ops, &at, value, "ops", true);
    rc = rc ? rc : util_json_int64(&s->start_ns, &at, value, "start_ns", true, 0);
    rc = rc ? rc : util_json_int64(&s->finish_ns, &at, value, "finish_ns", true, 0);
    s->n_ops = (int)yyjson_arr_size(ops);
    return rc ? rc : util_json_int64(&s->work_ns, &at, value, "work_ns", true, 0);
}

static int read_device(rank_job *job, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "device", NULL, index};
    job_device *d = &job->device[index];
    yyjson_val *list = NULL, *segment;
    size_t i, n;
    int rc = util_json_string(&d->name, NULL, &at, value, "name", true);
    rc = rc ? rc : util_json_array(&list, &at, value, "segments", true);
    rc = rc ? rc : (d->segment = util_alloc(yyjson_arr_size(list), sizeof *d->segment)) ? 0 : MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, n, segment)
    {
        d->n_segments++;
        rc = rc ? rc : read_segment(&d->segment[i], label, segment, i);
        if (rc)
            break;
    }
    d->rank = d->n_segments ? job->n_ranks++ : -1;
    return rc;
}

static int find_device(int *out, const rank_job *job, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    for (int k = 0; !rc && k < job->n_devices; k++)
        if (!strcmp(job->device[k].name, name)) {
            *out = k;
            return 0;
        }
    return rc ? rc : util_json_fail(at, "%s '%s' is not a device", key, name);
}

static int read_transfer(rank_job *job, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "transfer", NULL, index};
    job_transfer *x = &job->transfer[index];
    int rc = util_json_string(&x->tensor, NULL, &at, value, "tensor", true);
    rc = rc ? rc : find_device(&x->from, job, &at, value, "from");
    rc = rc ? rc : find_device(&x->to, job, &at, value, "to");
    rc = rc ? rc : util_json_int64(&x->bytes, &at, value, "bytes", true, 0);
    rc = rc ? rc : util_json_int64(&x->start_ns, &at, value, "start_ns", true, 0);
    rc = rc ? rc : util_json_int64(&x->finish_ns, &at, value, "finish_ns", true, 0);
    if (!rc && (job->device[x->from].rank < 0 || job->device[x->to].rank < 0))
        rc = util_json_fail(&at, "between devices of which one runs nothing");
    return rc;
}

static int read_value(job_value *v, const char *label, const char *kind, yyjson_val *value, size_t index)
{
    util_json_at at = {label, kind, NULL, index};
    const char *type = NULL;
    yyjson_val *shape = NULL, *dim;
    size_t i, n;
    int rc = util_json_string(&v->name, NULL, &at, value, "name", true);
    rc = rc ? rc : util_json_string(&type, NULL, &at, value, "type", true);
    rc = rc ? rc : util_json_array(&shape, &at, value, "shape", false);
    if (rc)
        return rc;
    if (rank_type_of_name(&v->shape.type, type))
        v->shape.type = 0;
    v->shape.rank = shape && yyjson_arr_size(shape) <= RANK_MAX_DIMS ? 0 : -1;
    yyjson_arr_foreach(shape, i, n, dim)
    {
        if (v->shape.rank >= 0 && !rc)
            rc = util_json_value_int64(&v->shape.dim[v->shape.rank++], &at, dim, "shape", 0);
    }
    return rc;
}

static int read_lists(rank_job *job, const char *label, yyjson_val *list[4])
{
    size_t i, n;
    yyjson_val *value;
    int rc = 0;
    yyjson_arr_foreach(list[0], i, n, value)
    {
        job->n_devices++;
        if ((rc = read_device(job, label, value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[1], i, n, value)
    {
        if ((rc = read_transfer(job, label, value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[2], i, n, value)
    {
        if ((rc = read_value(&job->input[i], label, "input", value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[3], i, n, value)
    {
        if ((rc = read_value(&job->output[i], label, "output", value, i)))
            return rc;
    }
    return 0;
}

static int number_transfers(rank_job *job)
{
    size_t n = (size_t)job->n_devices;
    int *count = util_alloc(n * n, sizeof *count);
    if (!count)
        return MOIRAI_EFAIL;
    for (int i = 0; i < job->n_transfers; i++) {
        job_transfer *x = &job->transfer[i];
        x->tag = count[(size_t)x->from * n + (size_t)x->to]++;
    }
    free(count);
    return 0;
}

static int read_manifest(rank_job *job)
{
    char label[4096];
    yyjson_val *list[4] = {0};
    static const char *const key[4] = {"devices", "transfers", "inputs", "outputs"};
    snprintf(label, sizeof label, "%s/manifest.json", job->folder);
    int rc = open_file(&job->manifest, label, "moirai-manifest");
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(job->manifest);
    util_json_at at = {label, NULL, NULL, 0};
    for (int i = 0; i < 4 && !rc; i++)
        rc = util_json_array(&list[i], &at, root, key[i], true);
    rc = rc ? rc : util_json_int64(&job->makespan_ns, &at, root, "makespan_ns", true, 0);
    if (rc)
        return rc;
    job->device = util_alloc(yyjson_arr_size(list[0]), sizeof *job->device);
    job->transfer = util_alloc(yyjson_arr_size(list[1]), sizeof *job->transfer);
    job->input = util_alloc(yyjson_arr_size(list[2]), sizeof *job->input);
    job->output = util_alloc(yyjson_arr_size(list[3]), sizeof *job->output);
    if (!job->device || !job->transfer || !job->input || !job->output)
        return MOIRAI_EFAIL;
    job->n_transfers = (int)yyjson_arr_size(list[1]);
    job->n_inputs = (int)yyjson_arr_size(list[2]);
    job->n_outputs = (int)yyjson_arr_size(list[3]);
    rc = read_lists(job, label, list);
    return rc ? rc : number_transfers(job);
}

/* ---- the job ---- */

static int read_settings(rank_job *job, const char *path, yyjson_val *root)
{
    util_json_at at = {path, NULL, NULL, 0};
    int rc = util_json_string(&job->folder, NULL, &at, root, "folder", true);
    rc = rc ? rc : util_json_string(&job->model, NULL, &at, root, "model", true);
    rc = rc ? rc : util_json_string(&job->outputs, NULL, &at, root, "outputs", true);
    rc = rc ? rc : util_json_string(&job->result, NULL, &at, root, "result", true);
    rc = rc ? rc : util_json_string(&job->data_set, NULL, &at, root, "data_set", false);
    rc = rc ? rc : util_json_int64(&job->warmup, &at, root, "warmup", true, 0);
    rc = rc ? rc : util_json_int64(&job->runs, &at, root, "runs", true, 1);
    rc = rc ? rc : util_json_int64(&job->seed, &at, root, "seed", true, 0);
    rc = rc ? rc : util_json_bool(&job->progress, &at, root, "progress", false);
    return rc ? rc : util_json_real(&job->stall_s, &at, root, "stall_s", true);
}

static int read_choice(rank_job *job, const char *path, yyjson_val *value, size_t index)
{
    util_json_at at = {path, "device", NULL, index};
    int k = 0;
    int64_t threads = 0;
    int rc = find_device(&k, job, &at, value, "name");
    if (rc)
        return rc;
    rank_ort_device *d = &job->device[k].ort;
    rc = util_json_string(&d->ep, NULL, &at, value, "ep", false);
    rc = rc ? rc : util_json_string(&d->cores, NULL, &at, value, "cores", false);
    rc = rc ? rc : util_json_int64(&threads, &at, value, "threads", false, 0);
    d->threads = (int)UTIL_MIN(threads, 4096);
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
    rc = rc ? rc : read_manifest(job);
    rc = rc ? rc : util_json_array(&devices, &at, root, "devices", true);
    rc = rc ? rc : util_json_array(&inputs, &at, root, "inputs", true);
    yyjson_arr_foreach(devices, i, n, value)
    {
        rc = rc ? rc : read_choice(job, path, value, i);
    }
    yyjson_arr_foreach(inputs, i, n, value)
    {
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
    int rc = open_file(&job->doc, path, "moirai-job");
    rc = rc ? rc : read_root(job, path);
    if (rc) {
        rank_job_free(job);
        return rc;
    }
    *out = job;
    return 0;
}

/* ---- inputs ---- */

/* The file of a data set that holds input number `index`: input_N.pb, by name where the files have names, else by
 * place. */
static int data_set_value(OrtValue **out, rank_shape *s, const rank_job *job, const rank_ort *ort, int index)
{
    char path[4096];
    for (int i = 0;; i++) {
        char *name = NULL;
        snprintf(path, sizeof path, "%s/input_%d.pb", job->data_set, i);
        if (access(path, R_OK))
            break;
        int rc = rank_pb_read(out, s, &name, ort, path);
        bool hit = !rc && (*name ? !strcmp(name, job->input[index].name) : i == index);
        free(name);
        if (rc || hit)
            return rc;
        ort->api->ReleaseValue(*out);
        *out = NULL;
    }
    return moirai_error(MOIRAI_EINPUT, "%s: no input_*.pb holds input '%s'", job->data_set, job->input[index].name);
}

static int check_shape(const job_value *v, const rank_shape *s)
{
    bool same = v->shape.type == s->type && (v->shape.rank < 0 || v->shape.rank == s->rank);
    for (int64_t i = 0; same && i < v->shape.rank; i++)
        same = v->shape.dim[i] == s->dim[i];
    if (same)
        return 0;
    char has[256], wants[256];
    rank_shape_text(has, sizeof has, s);
    rank_shape_text(wants, sizeof wants, &v->shape);
    return moirai_error(
        MOIRAI_EINPUT,
        "input '%s' is given as %s, the plan is for %s: --dim and --shape set it, for plan and run alike", v->name, has,
        wants);
}

int rank_job_input(OrtValue **out, const rank_job *job, const rank_ort *ort, int index)
{
    const job_value *v = &job->input[index];
    rank_shape s = v->shape;
    void *data;
    size_t bytes;
    int rc;
    *out = NULL;
    if (v->file || job->data_set) {
        const char *dot = v->file ? strrchr(v->file, '.') : NULL;
        if (!v->file)
            rc = data_set_value(out, &s, job, ort, index);
        else if (dot && !strcmp(dot, ".pb"))
            rc = rank_pb_read(out, &s, NULL, ort, v->file);
        else
            rc = rank_npy_read(out, &s, ort, v->file);
        rc = rc ? rc : check_shape(v, &s);
        if (rc && *out) {
            ort->api->ReleaseValue(*out);
            *out = NULL;
        }
        return rc;
    }
    if (s.rank < 0)
        return moirai_error(MOIRAI_EINPUT, "input '%s': its shape is not known: give it with --input", v->name);
    rc = rank_value_new(out, &data, ort, &s);
    rc = rc ? rc : rank_shape_bytes(&bytes, &s);
    if (rc)
        return moirai_error_prefix(rc, "input '%s'", v->name);
    rank_random(data, bytes, &s, (uint64_t)job->seed, v->name);
    return 0;
}
