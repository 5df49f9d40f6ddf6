/* Reading the manifest of a job: which sub-models each device runs, and what travels between them. */
#include "rank/rank_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

static int read_names(const char ***out, int *n, const util_json_at *at, yyjson_val *object, const char *key)
{
    yyjson_val *list = NULL, *value;
    size_t i, count;
    int rc = util_json_array(&list, at, object, key, true);
    *out = rc ? NULL : util_alloc(yyjson_arr_size(list), sizeof **out);
    if (rc || !*out)
        return rc ? rc : MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, count, value) {
        rc = rc ? rc : util_json_value_string(&(*out)[(*n)++], NULL, at, value, key);
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

/* The place of a device in the order of ranks: that of the manifest, or, where there are several copies, the job's. */
static int rank_of(rank_job *job, const job_device *d)
{
    yyjson_val *value;
    size_t i, n;
    if (!job->rank_name)
        return d->n_segments ? job->n_ranks++ : -1;
    yyjson_arr_foreach(job->rank_name, i, n, value) {
        if (yyjson_is_str(value) && !strcmp(yyjson_get_str(value), d->name))
            return (int)i;
    }
    return -1;
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
    yyjson_arr_foreach(list, i, n, segment) {
        d->n_segments++;
        rc = rc ? rc : read_segment(&d->segment[i], label, segment, i);
        if (rc)
            break;
    }
    d->rank = rc ? -1 : rank_of(job, d);
    return rc || d->rank >= 0 || !d->n_segments ? rc : util_json_fail(&at, "'%s' is no rank of the job", d->name);
}

int rank_job_find_device(int *out, const rank_job *job, const util_json_at *at, yyjson_val *object, const char *key)
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
    rc = rc ? rc : rank_job_find_device(&x->from, job, &at, value, "from");
    rc = rc ? rc : rank_job_find_device(&x->to, job, &at, value, "to");
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
    yyjson_arr_foreach(shape, i, n, dim) {
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
    job->n_ranks = job->rank_name ? (int)yyjson_arr_size(job->rank_name) : 0;
    yyjson_arr_foreach(list[0], i, n, value) {
        job->n_devices++;
        if ((rc = read_device(job, label, value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[1], i, n, value) {
        if ((rc = read_transfer(job, label, value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[2], i, n, value) {
        if ((rc = read_value(&job->input[i], label, "input", value, i)))
            return rc;
    }
    yyjson_arr_foreach(list[3], i, n, value) {
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

int rank_manifest_read(rank_job *job)
{
    char label[4096];
    yyjson_val *list[4] = {0};
    static const char *const key[4] = {"devices", "transfers", "inputs", "outputs"};
    snprintf(label, sizeof label, "%s/manifest.json", job->folder);
    int rc = util_json_read(&job->manifest, label, "moirai-manifest");
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
