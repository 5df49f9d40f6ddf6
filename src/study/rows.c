/* Finding rows, and the few numbers that everything else is made of. */
#include "study/study.h"

#include <math.h>
#include <string.h>

static bool text_fits(const char *wanted, const char *there)
{
    return !wanted || !strcmp(wanted, there);
}

static bool number_fits(int wanted, int there)
{
    return wanted < 0 || wanted == there;
}

static bool fits(const study_filter *f, const moirai_study_row *r)
{
    const moirai_study_case *c = &r->of;
    return r->done && number_fits(f->part, (int)c->part) && text_fits(f->network, c->network) &&
           text_fits(f->cluster, c->cluster) && text_fits(f->placer, c->placer) &&
           number_fits(f->coarsened, c->coarsened) && number_fits(f->without, (int)c->without) &&
           number_fits(f->runtime, (int)c->runtime) && number_fits(f->devices, c->devices) &&
           number_fits(f->gbps, c->gbps) && number_fits(f->batch, c->batch);
}

const moirai_study_row *study_next(const moirai_study *s, const study_filter *f, int32_t *from)
{
    while (*from < s->n) {
        const moirai_study_row *r = &s->row[(*from)++];
        if (fits(f, r))
            return r;
    }
    return NULL;
}

const moirai_study_row *study_find(const moirai_study *s, const study_filter *f)
{
    int32_t from = 0;
    return study_next(s, f, &from);
}

const moirai_study_row *study_latency_row(const moirai_study *s, const char *network, const char *cluster,
                                          bool coarsened, const char *placer)
{
    study_filter f = {STUDY_ANY};
    f.part = MOIRAI_STUDY_LATENCY;
    f.network = network;
    f.cluster = cluster;
    f.coarsened = coarsened;
    f.placer = placer;
    return study_find(s, &f);
}

bool study_has_plan(const moirai_study_row *r)
{
    return r && r->done && !r->result && r->makespan_ns > 0 && r->excess_bytes == 0;
}

double study_ratio(const moirai_study_row *slow, const moirai_study_row *fast)
{
    return study_has_plan(slow) && study_has_plan(fast) ? (double)slow->makespan_ns / (double)fast->makespan_ns : NAN;
}

double study_gain(const moirai_study_row *r)
{
    return study_has_plan(r) && r->single_ns > 0 ? (double)r->single_ns / (double)r->makespan_ns : NAN;
}

double study_gap(const moirai_study_row *r)
{
    return study_has_plan(r) && r->lower_bound_ns >= 0
               ? (double)(r->makespan_ns - r->lower_bound_ns) / (double)r->makespan_ns
               : NAN;
}

static void add_name(study_names *out, const char *name)
{
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->name[i], name))
            return;
    if (out->n < STUDY_MOST_NAMES)
        out->name[out->n++] = name;
}

typedef enum which { NETWORKS, CLUSTERS, PLACERS } which;

static void names(study_names *out, const moirai_study *s, moirai_study_part part, which w)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    int32_t from = 0;
    f.part = (int)part;
    *out = (study_names){0};
    while ((r = study_next(s, &f, &from)))
        add_name(out, w == NETWORKS ? r->of.network : w == CLUSTERS ? r->of.cluster : r->of.placer);
}

void study_networks(study_names *out, const moirai_study *s, moirai_study_part part)
{
    names(out, s, part, NETWORKS);
}

void study_clusters(study_names *out, const moirai_study *s, moirai_study_part part)
{
    names(out, s, part, CLUSTERS);
}

void study_placers(study_names *out, const moirai_study *s, moirai_study_part part)
{
    names(out, s, part, PLACERS);
}

void study_range_add(study_range *r, double value, const char *who)
{
    if (isnan(value) || value <= 0)
        return;
    if (r->n == 0 || value > r->most) {
        r->most = value;
        r->who = who;
    }
    r->least = r->n == 0 || value < r->least ? value : r->least;
    r->log_sum += log(value);
    r->n++;
}

double study_range_mean(const study_range *r)
{
    return r->n ? exp(r->log_sum / r->n) : NAN;
}
