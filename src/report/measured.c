/* A measured run: a moirai-timeline with its names resolved against the problem. The file is read by the code that
 * refines times from it. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "refine/refine.h"
#include "util/util.h"

void moirai_measured_free(moirai_measured *t)
{
    if (!t)
        return;
    free(t->segment);
    free(t->transfer);
    free(t->op);
    util_strings_free(t->store);
    free(t);
}

static int find_devices(int32_t *number, const refine_timeline *f, const moirai_problem *p)
{
    for (int32_t k = 0; k < f->n_devices; k++)
        if ((number[k] = moirai_problem_find_device(p, f->device[k])) == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "%s: device '%.200s': not a device of problem '%.200s'", f->label,
                                f->device[k], p->name);
    return 0;
}

static int take_ops(moirai_measured *t, const refine_timeline *f, const moirai_problem *p)
{
    for (size_t i = 0; i < f->n_ops; i++)
        if ((t->op[i] = moirai_problem_find_op(p, f->op[i])) == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "%s: op '%.200s': not an operator of problem '%.200s'", f->label,
                                f->op[i], p->name);
    return 0;
}

static int take(moirai_measured *t, const refine_timeline *f, const moirai_problem *p)
{
    int32_t number[MOIRAI_MAX_DEVICES];
    int rc = find_devices(number, f, p);
    rc = rc ? rc : take_ops(t, f, p);
    if (rc)
        return rc;
    int64_t end = 0;
    for (size_t i = 0; i < f->n_segments; i++) {
        const refine_segment *s = &f->segment[i];
        t->segment[i] = (moirai_measured_segment){number[s->device], s->start_ns, UTIL_MAX(s->start_ns, s->finish_ns),
                                                  s->first_op, s->n_ops};
        end = UTIL_MAX(end, s->finish_ns);
    }
    for (size_t i = 0; i < f->n_transfers; i++) {
        const refine_transfer *x = &f->transfer[i];
        const char *tensor = util_strings_add(t->store, x->tensor ? x->tensor : "", x->tensor ? strlen(x->tensor) : 0);
        if (!tensor)
            return MOIRAI_EFAIL;
        t->transfer[i] = (moirai_measured_transfer){tensor,   number[x->from], number[x->to],
                                                    x->bytes, x->start_ns,     UTIL_MAX(x->start_ns, x->finish_ns)};
    }
    t->latency_ns = f->latency_ns ? f->latency_ns : end;
    return 0;
}

int moirai_measured_parse(moirai_measured **out, const moirai_problem *p, const char *json, size_t length,
                          const char *label)
{
    refine_timeline f;
    *out = NULL;
    int rc = refine_timeline_parse(&f, json, length, label);
    if (rc)
        return rc;
    moirai_measured *t = util_alloc(1, sizeof *t);
    rc = t ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        t->n_segments = (int32_t)f.n_segments;
        t->n_transfers = (int32_t)f.n_transfers;
        t->n_ops = (int32_t)f.n_ops;
        t->segment = util_alloc(f.n_segments, sizeof *t->segment);
        t->transfer = util_alloc(f.n_transfers, sizeof *t->transfer);
        t->op = util_alloc(f.n_ops, sizeof *t->op);
        t->store = util_strings_new();
        rc = t->segment && t->transfer && t->op && t->store ? take(t, &f, p) : MOIRAI_EFAIL;
    }
    refine_timeline_free(&f);
    if (rc)
        moirai_measured_free(t);
    else
        *out = t;
    return rc;
}

int moirai_measured_read(moirai_measured **out, const moirai_problem *p, const char *path)
{
    char *json;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = moirai_measured_parse(out, p, json, length, path);
    free(json);
    return rc;
}
