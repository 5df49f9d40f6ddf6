/* moirai-rank whole JOB RESULT ATOL RTOL [MODEL]: the whole model on one device, no MPI; its outputs against those of a
 * distributed run (negative tolerances: the type's own). MODEL: another model than the job's, with the same inputs and
 * outputs: the one that the job's was cut from. What it finds goes to RESULT, a JSON file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank/mpi_clock.h"
#include "rank/rank.h"
#include "rank/rank_job.h"
#include "util/json.h"
#include "util/util.h"

typedef struct whole {
    rank_job *job;
    rank_ort *ort;
    OrtSession *session;
    OrtValue **in, **out;
    const char **in_name, **out_name;
    const char *model;
    double atol, rtol;
    util_writer w;
} whole;

static int load(whole *x, const char *path)
{
    rank_ort_device plain = {.ep = "cpu", .threads = 0};
    int rc = rank_job_read(&x->job, path);
    x->model = x->model || rc ? x->model : x->job->model;
    rc = rc ? rc : rank_ort_open(&x->ort, &plain);
    rc = rc ? rc : rank_ort_session(&x->session, x->ort, x->model);
    if (rc)
        return rc;
    const rank_job *job = x->job;
    x->in = util_alloc((size_t)job->n_inputs, sizeof *x->in);
    x->out = util_alloc((size_t)job->n_outputs, sizeof *x->out);
    x->in_name = util_alloc((size_t)job->n_inputs, sizeof *x->in_name);
    x->out_name = util_alloc((size_t)job->n_outputs, sizeof *x->out_name);
    if (!x->in || !x->out || !x->in_name || !x->out_name)
        return MOIRAI_EFAIL;
    for (int i = 0; i < job->n_inputs && !rc; i++) {
        x->in_name[i] = job->input[i].name;
        rc = rank_job_input(&x->in[i], job, x->ort, i);
    }
    for (int i = 0; i < job->n_outputs; i++)
        x->out_name[i] = job->output[i].name;
    return rc;
}

static int compare(whole *x, int index, const rank_shape *s, const void *got, const char *against, OrtValue *value)
{
    rank_shape e;
    rank_difference d;
    void *expected;
    size_t bytes;
    const char *name = x->out_name[index];
    int rc = rank_value_look(&e, &expected, &bytes, x->ort, value, name);
    if (rc)
        return rc;
    bool same_shape = !memcmp(&e, s, sizeof e);
    bool half = s->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 || s->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
    double atol = x->atol >= 0 ? x->atol : half ? 1e-2 : 1e-4, rtol = x->rtol >= 0 ? x->rtol : half ? 1e-2 : 1e-3;
    if (same_shape)
        rank_compare(&d, s, got, expected, atol, rtol);
    else
        d = (rank_difference){.n_bad = 1};
    util_writer_open(&x->w, '{');
    util_writer_pair_string(&x->w, "name", name);
    util_writer_pair_string(&x->w, "against", against);
    util_writer_pair_int(&x->w, "elements", d.n);
    util_writer_pair_int(&x->w, "different", d.n_bad);
    util_writer_key(&x->w, "largest");
    util_writer_real(&x->w, d.largest);
    util_writer_pair_int(&x->w, "at", d.worst);
    util_writer_key(&x->w, "got");
    util_writer_real(&x->w, d.got);
    util_writer_key(&x->w, "expected");
    util_writer_real(&x->w, d.expected);
    util_writer_close(&x->w, '}');
    return 0;
}

/* The distributed run's output, against the whole model's and, where a data set has one, the expected one. */
static int check_output(whole *x, int index)
{
    char path[4096];
    OrtValue *value = NULL, *reference = NULL;
    rank_shape s, other;
    void *data;
    size_t bytes;
    snprintf(path, sizeof path, "%s/output_%d.npy", x->job->outputs, index);
    int rc = rank_npy_read(&value, &s, x->ort, path);
    rc = rc ? rc : rank_value_look(&s, &data, &bytes, x->ort, value, x->out_name[index]);
    rc = rc ? rc : compare(x, index, &s, data, "whole model", x->out[index]);
    snprintf(path, sizeof path, "%s/output_%d.pb", x->job->data_set ? x->job->data_set : "", index);
    if (!rc && x->job->data_set && !access(path, R_OK)) {
        rc = rank_pb_read(&reference, &other, NULL, x->ort, path);
        rc = rc ? rc : compare(x, index, &s, data, "data set", reference);
    }
    if (reference)
        x->ort->api->ReleaseValue(reference);
    if (value)
        x->ort->api->ReleaseValue(value);
    return rc;
}

static int run(whole *x, const char *result)
{
    const rank_job *job = x->job;
    int64_t start_ns = rank_clock_own_ns();
    int rc = rank_ort_check(x->ort,
                            x->ort->api->Run(x->session, NULL, x->in_name, (const OrtValue *const *)x->in,
                                             (size_t)job->n_inputs, x->out_name, (size_t)job->n_outputs, x->out),
                            x->model);
    util_writer_init(&x->w);
    util_writer_open(&x->w, '{');
    util_writer_pair_int(&x->w, "first_run_ns", rank_clock_own_ns() - start_ns);
    util_writer_pair_open(&x->w, "outputs", '[');
    for (int i = 0; i < job->n_outputs && !rc; i++)
        rc = check_output(x, i);
    util_writer_close(&x->w, ']');
    util_writer_close(&x->w, '}');
    if (rc) {
        util_writer_free(&x->w);
        return rc;
    }
    return util_writer_save(&x->w, result);
}

static void whole_free(whole *x)
{
    for (int i = 0; x->in && i < x->job->n_inputs; i++)
        if (x->in[i])
            x->ort->api->ReleaseValue(x->in[i]);
    for (int i = 0; x->out && i < x->job->n_outputs; i++)
        if (x->out[i])
            x->ort->api->ReleaseValue(x->out[i]);
    if (x->session)
        x->ort->api->ReleaseSession(x->session);
    free(x->in);
    free(x->out);
    free(x->in_name);
    free(x->out_name);
    rank_ort_close(x->ort);
    rank_job_free(x->job);
}

int rank_whole(int argc, char **argv)
{
    whole x = {0};
    if (argc < 4)
        return 2;
    x.atol = atof(argv[2]);
    x.rtol = atof(argv[3]);
    x.model = argc > 4 ? argv[4] : NULL;
    int rc = load(&x, argv[0]);
    rc = rc ? rc : run(&x, argv[1]);
    if (rc)
        fprintf(stderr, "moirai-rank: error %d 0 the whole model: %s\n", -rc, moirai_error_message());
    whole_free(&x);
    return -rc;
}
