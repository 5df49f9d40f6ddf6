/* Are the outputs of a request those of a request alone? Requests take turns with one more variant of the inputs than there
 * are lanes: what a lane had before never fits what it has now, so a buffer that is read too early or too late shows. */
#include "rank/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int differs(const stream *s, const stream_lane *lane, int output, const void *got, const void *expected)
{
    rank_difference d;
    char request[32];
    rank_compare(&d, &s->out_shape[output], got, expected, 0, 0);
    snprintf(request, sizeof request, "%lld", (long long)lane->number);
    return moirai_error(
        MOIRAI_EVERIFY,
        "request %s: output '%.60s' is not that of the same request alone: %lld of %lld elements differ, "
        "element %lld is %.9g, alone %.9g",
        request, s->x->job->output[output].name, (long long)d.n_bad, (long long)d.n, (long long)d.worst, d.got,
        d.expected);
}

static int check_output(stream *s, stream_lane *lane, int output, OrtValue *value)
{
    const char *name = s->x->job->output[output].name;
    rank_shape shape;
    void *data, **alone = &lane->copy->alone[lane->variant][output];
    size_t bytes;
    int rc = rank_value_look(&shape, &data, &bytes, s->x->ort, value, name);
    if (rc)
        return rc;
    if (memcmp(&shape, &s->out_shape[output], sizeof shape))
        return moirai_error(MOIRAI_EFAIL, "output '%s' changes its shape from request to request", name);
    if (*alone)
        return memcmp(*alone, data, bytes) ? differs(s, lane, output, data, *alone) : 0;
    if (!(*alone = util_alloc(bytes, 1)))
        return MOIRAI_EFAIL;
    memcpy(*alone, data, bytes);
    return 0;
}

int stream_check(stream *s, stream_lane *lane)
{
    const rank_exec *x = lane->copy->x;
    const rank_job *job = x->job;
    for (int i = 0; i < job->n_outputs; i++) {
        int slot = rank_exec_slot(x, job->output[i].name);
        if (rank_job_owner(job, job->output[i].name) != s->world.rank || slot < 0 || !lane->value[slot])
            continue;
        int rc = check_output(s, lane, i, lane->value[slot]);
        if (rc)
            return rc;
    }
    return 0;
}
