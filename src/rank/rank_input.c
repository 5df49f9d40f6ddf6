/* The network's inputs: from files, from an ONNX test_data_set, or random. */
#include "rank/rank_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/util.h"

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
