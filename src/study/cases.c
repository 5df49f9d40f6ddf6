/* Which experiments there are.
 *
 * The paper's tables are a full product: networks x testbeds x {original, coarsened} x placers. The other parts ask
 * questions of a few networks: the smallest of each family among those chosen (they answer quickest), and gpt3-13B for
 * what memory does, the network of the paper that fills its testbed. Every row has the same limit of time; most end
 * before it, at a gap that is good enough. A row that other parts have already is not run twice: the ablation is
 * compared with the paper's tables, the batches with the map, the runtimes with the tables (eager).
 *
 * Networks come with the paper's own model: flow edge, ports, static memory (the footprint is weights), launches of an
 * eager framework, as PyTorch 1.12 had them. The maps ask what a reader would get, and a runtime sends a tensor once to
 * each device: flow tensor. What the two differ in is a part of its own. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/zoo.h>

#include "util/util.h"

#define GAP 0.01     /* plans that are proven to be so good are good enough */
#define MAP_GAP 0.02 /* a map shows two digits */

static const int map_devices[] = {2, 4, 8, 16}, map_gbps[] = {1, 3, 10, 30, 100, 300, 600}, batches[] = {4, 16};
enum { N_DEVICES = 4, N_GBPS = 7, N_BATCHES = 2, BATCH_DEVICES = 4 };

static const char *const part_name[MOIRAI_STUDY_PARTS] = {"latency", "ablation", "milp", "runtime",
                                                          "flow",    "map",      "batch"};
const char *const study_without_name[MOIRAI_STUDY_WITHOUTS] = {"nothing", "congestion", "communication", "memory"};

typedef struct list {
    int n;
    char name[STUDY_MOST_NAMES][32];
} list;

typedef struct maker {
    moirai_study *s;
    size_t capacity;
    list networks, testbeds, placers, few; /* few: of the questions */
    int rc;
} maker;

const char *moirai_study_part_name(moirai_study_part part)
{
    return part_name[part];
}

void moirai_study_options_init(moirai_study_options *o)
{
    *o = (moirai_study_options){.time_limit_s = 10, .seed = 1};
}

/* ---- names ---- */

static int split(list *l, const char *what, const char *text)
{
    l->n = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof l->name[0])
            return moirai_error(MOIRAI_EUSAGE, "study: %s '%s': names separated by commas", what, text);
        if (l->n == STUDY_MOST_NAMES)
            return moirai_error(MOIRAI_EUSAGE, "study: more than %d %s", STUDY_MOST_NAMES, what);
        snprintf(l->name[l->n++], sizeof l->name[0], "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    return l->n > 0 ? 0 : moirai_error(MOIRAI_EUSAGE, "study: no %s", what);
}

static bool has(const list *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->name[i], name))
            return true;
    return false;
}

static int check_names(const maker *m)
{
    for (int i = 0; i < m->networks.n; i++)
        if (!moirai_zoo_find(m->networks.name[i]))
            return moirai_error(MOIRAI_EUSAGE, "study: no network '%s': `moirai zoo list` has the names",
                                m->networks.name[i]);
    for (int i = 0; i < m->placers.n; i++)
        if (!moirai_placer_find(m->placers.name[i]))
            return moirai_error(MOIRAI_EUSAGE, "study: no placer '%s': `moirai placers` has the names",
                                m->placers.name[i]);
    for (int i = 0; i < m->testbeds.n; i++) {
        bool known = false;
        for (int j = 0; j < moirai_cluster_builtin_count(); j++)
            known = known || !strcmp(m->testbeds.name[i], moirai_cluster_builtin_name(j));
        if (!known)
            return moirai_error(MOIRAI_EUSAGE, "study: no testbed '%s': inter-server or intra-server",
                                m->testbeds.name[i]);
    }
    return 0;
}

static int family_length(const char *network)
{
    return (int)strcspn(network, "-");
}

/* The smallest of each family. */
static void choose_few(maker *m)
{
    for (int i = 0; i < m->networks.n; i++) {
        const char *name = m->networks.name[i];
        bool smallest = true;
        for (int j = 0; j < m->networks.n; j++) {
            const char *other = m->networks.name[j];
            smallest = smallest && (family_length(other) != family_length(name) ||
                                    strncmp(other, name, (size_t)family_length(name)) ||
                                    moirai_zoo_find(other)->n_ops >= moirai_zoo_find(name)->n_ops);
        }
        if (smallest)
            memcpy(m->few.name[m->few.n++], name, sizeof m->few.name[0]); /* the same width */
    }
}

/* ---- cases ---- */

static moirai_study_case *add(maker *m, moirai_study_part part, const char *network, const char *cluster,
                              const char *placer)
{
    static moirai_study_case nowhere;
    moirai_study *s = m->s;
    if (m->rc || (m->rc = util_grow(&s->row, &m->capacity, (size_t)s->n + 1, sizeof *s->row)))
        return &nowhere;
    moirai_study_row *row = &s->row[s->n++];
    memset(row, 0, sizeof *row);
    row->of = (moirai_study_case){
        .part = part, .flow = MOIRAI_FLOW_EDGE, .batch = 1, .time_limit_s = s->time_limit_s, .gap = GAP};
    snprintf(row->of.network, sizeof row->of.network, "%s", network);
    snprintf(row->of.cluster, sizeof row->of.cluster, "%s", cluster);
    snprintf(row->of.placer, sizeof row->of.placer, "%s", placer);
    return &row->of;
}

static void add_latency(maker *m)
{
    for (int n = 0; n < m->networks.n; n++)
        for (int t = 0; t < m->testbeds.n; t++)
            for (int coarsened = 0; coarsened < 2; coarsened++)
                for (int p = 0; p < m->placers.n; p++)
                    add(m, MOIRAI_STUDY_LATENCY, m->networks.name[n], m->testbeds.name[t], m->placers.name[p])
                        ->coarsened = coarsened;
}

static void add_ablation(maker *m)
{
    list tried = m->few;
    if (has(&m->networks, "gpt3-13B") && !has(&tried, "gpt3-13B") && tried.n < STUDY_MOST_NAMES)
        snprintf(tried.name[tried.n++], sizeof tried.name[0], "gpt3-13B");
    for (int n = 0; n < tried.n; n++)
        for (int t = 0; t < m->testbeds.n; t++)
            for (int without = MOIRAI_STUDY_NO_CONGESTION; without < MOIRAI_STUDY_WITHOUTS; without++) {
                moirai_study_case *c = add(m, MOIRAI_STUDY_ABLATION, tried.name[n], m->testbeds.name[t], "moirai");
                c->coarsened = true;
                c->without = (moirai_study_without)without;
            }
}

static void add_milp(maker *m)
{
    static const char *const small[] = {"inception-tiny", "gpt3-tiny", "gpt3-mini"};
    list tried = m->few;
    for (int i = 0; i < 3; i++)
        if (!has(&tried, small[i]) && tried.n < STUDY_MOST_NAMES)
            snprintf(tried.name[tried.n++], sizeof tried.name[0], "%s", small[i]);
    for (int n = 0; n < tried.n; n++)
        for (int t = 0; t < m->testbeds.n; t++)
            for (int p = 0; p < 2; p++) {
                moirai_study_case *c =
                    add(m, MOIRAI_STUDY_MILP, tried.name[n], m->testbeds.name[t], p ? "moirai" : "milp");
                c->coarsened = true;
                c->gap = 0;
            }
}

static void add_runtime(maker *m)
{
    static const char *const tried[] = {"single", "heft", "m-sct", "getf", "moirai"};
    for (int n = 0; n < m->few.n; n++)
        for (int t = 0; t < m->testbeds.n; t++)
            for (int r = MOIRAI_RUNTIME_ORT; r <= MOIRAI_RUNTIME_GRAPH; r++)
                for (size_t p = 0; p < sizeof tried / sizeof *tried; p++) {
                    moirai_study_case *c = add(m, MOIRAI_STUDY_RUNTIME, m->few.name[n], m->testbeds.name[t], tried[p]);
                    c->runtime = (moirai_runtime)r;
                }
}

static moirai_study_case *add_point(maker *m, moirai_study_part part, const char *network, int devices, int gbps,
                                    int batch)
{
    char cluster[64];
    snprintf(cluster, sizeof cluster, "%dx v100 32GB, %dGbps %dus", devices, gbps, STUDY_LATENCY_NS / 1000);
    moirai_study_case *c = add(m, part, network, cluster, "moirai");
    c->coarsened = true;
    c->devices = devices;
    c->gbps = gbps;
    c->batch = batch;
    c->flow = MOIRAI_FLOW_TENSOR;
    c->gap = MAP_GAP;
    return c;
}

/* The testbeds with the other flow, and the fastest points of the map with the paper's. */
static void add_flow(maker *m)
{
    for (int n = 0; n < m->few.n; n++) {
        for (int t = 0; t < m->testbeds.n; t++) {
            moirai_study_case *c = add(m, MOIRAI_STUDY_FLOW, m->few.name[n], m->testbeds.name[t], "moirai");
            c->coarsened = true;
            c->flow = MOIRAI_FLOW_TENSOR;
        }
        for (int k = 0; k < N_DEVICES; k++)
            add_point(m, MOIRAI_STUDY_FLOW, m->few.name[n], map_devices[k], map_gbps[N_GBPS - 1], 1)->flow =
                MOIRAI_FLOW_EDGE;
    }
}

static void add_map(maker *m)
{
    for (int n = 0; n < m->few.n; n++)
        for (int k = 0; k < N_DEVICES; k++)
            for (int b = 0; b < N_GBPS; b++)
                add_point(m, MOIRAI_STUDY_MAP, m->few.name[n], map_devices[k], map_gbps[b], 1);
}

static void add_batch(maker *m)
{
    for (int n = 0; n < m->few.n; n++)
        for (int i = 0; i < N_BATCHES; i++)
            for (int b = 0; b < N_GBPS; b++)
                add_point(m, MOIRAI_STUDY_BATCH, m->few.name[n], BATCH_DEVICES, map_gbps[b], batches[i]);
}

static int add_parts(maker *m, const char *parts)
{
    static void (*const maker_of[MOIRAI_STUDY_PARTS])(maker *) = {add_latency, add_ablation, add_milp, add_runtime,
                                                                  add_flow,    add_map,      add_batch};
    list wanted;
    int rc = parts ? split(&wanted, "parts", parts) : 0;
    for (int i = 0; parts && !rc && i < wanted.n; i++) {
        bool known = false;
        for (int p = 0; p < MOIRAI_STUDY_PARTS; p++)
            known = known || !strcmp(wanted.name[i], part_name[p]);
        if (!known)
            rc =
                moirai_error(MOIRAI_EUSAGE, "study: no part '%s': latency, ablation, milp, runtime, flow, map or batch",
                             wanted.name[i]);
    }
    for (int p = 0; !rc && p < MOIRAI_STUDY_PARTS; p++)
        if (!parts || has(&wanted, part_name[p]))
            maker_of[p](m);
    return rc ? rc : m->rc;
}

static int names(maker *m, const moirai_study_options *o)
{
    char all[512] = "";
    size_t used = 0;
    for (int i = 0; i < moirai_paper_network_count(); i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? "," : "", moirai_paper_network_at(i)->name);
    int rc = split(&m->networks, "networks", o->networks ? o->networks : all);
    rc = rc ? rc : split(&m->testbeds, "testbeds", o->testbeds ? o->testbeds : "inter-server,intra-server");
    rc = rc ? rc
            : split(&m->placers, "placers",
                    o->placers ? o->placers : "placeto,hrl,m-sct,getf,m-etf,heft,single,chain,moirai");
    return rc ? rc : check_names(m);
}

int moirai_study_new(moirai_study **out, const moirai_study_options *o)
{
    moirai_study_options standard;
    moirai_study_options_init(&standard);
    *out = NULL;
    o = o ? o : &standard;
    if (!(o->time_limit_s >= 1e-3 && o->time_limit_s <= 1e6) || o->threads < 0)
        return moirai_error(MOIRAI_EUSAGE,
                            "study: a time limit of %g s and %d threads: 0.001 to 1e6 s, 0 threads or more",
                            o->time_limit_s, o->threads);
    moirai_study *s = util_alloc(1, sizeof *s);
    maker *m = util_alloc(1, sizeof *m);
    int rc = s && m ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        *s = (moirai_study){.time_limit_s = o->time_limit_s, .seed = o->seed, .threads = o->threads};
        m->s = s;
        rc = names(m, o);
    }
    if (!rc) {
        choose_few(m);
        rc = add_parts(m, o->parts);
        rc = rc ? rc : study_costs(&s->costs);
    }
    free(m);
    if (rc)
        moirai_study_free(s);
    else
        *out = s;
    return rc;
}

void moirai_study_free(moirai_study *s)
{
    if (s) {
        study_measured_free(s->measured);
        free(s->row);
    }
    free(s);
}

/* ---- one case ---- */

bool study_same_case(const moirai_study_case *a, const moirai_study_case *b)
{
    return a->part == b->part && !strcmp(a->network, b->network) && !strcmp(a->cluster, b->cluster) &&
           !strcmp(a->placer, b->placer) && a->coarsened == b->coarsened && a->without == b->without &&
           a->flow == b->flow && a->runtime == b->runtime && a->devices == b->devices && a->gbps == b->gbps &&
           a->batch == b->batch && a->time_limit_s == b->time_limit_s && a->gap == b->gap;
}

void moirai_study_case_text(char *text, size_t size, const moirai_study_case *c)
{
    char more[64] = "";
    if (c->without)
        snprintf(more, sizeof more, ", without %s", study_without_name[c->without]);
    else if (c->runtime)
        snprintf(more, sizeof more, ", runtime %s", moirai_runtime_name(c->runtime));
    else if (c->batch > 1)
        snprintf(more, sizeof more, ", batch %d", c->batch);
    else if (c->part == MOIRAI_STUDY_FLOW)
        snprintf(more, sizeof more, ", flow %s", moirai_flow_name(c->flow));
    snprintf(text, size, "%s: %s on %s, %s, %s%s", part_name[c->part], c->network, c->cluster,
             c->coarsened ? "coarsened" : "original", c->placer, more);
}
