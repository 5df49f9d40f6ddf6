/* Rows by name, and the problem of each. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/coarsen.h>
#include <moirai/onnx.h>
#include <moirai/zoo.h>

#include "generate/generate.h"
#include "support/shapes.h"
#include "util/util.h"
#include "wide/wide.h"

enum { GROUPS = WIDE_GROUPS };
const char *const wide_groups[GROUPS] = {"families",      "networks",     "zoo",   "onnx",
                                         "onnx original", "side by side", "shapes"};
static const char *const testbeds[] = {"inter-server", "intra-server"};
static const char *const graphs[] = {"coarsened", "original"};

static const char *group_of(const char *name)
{
    const char *last = strrchr(name, '/');
    return !strncmp(name, "zoo:", 4)     ? "zoo"
           : !strncmp(name, "shape:", 6) ? "shapes"
           : strncmp(name, "onnx:", 5)   ? generate_group_of(name)
           : strcmp(last, "/original")   ? "onnx"
                                         : "onnx original";
}

/* ---- the list ---- */

static int add(wide_rows *rows, const char *group, const char *name)
{
    if (util_grow(&rows->row, &rows->room, rows->n + 1, sizeof *rows->row))
        return MOIRAI_EFAIL;
    wide_row *r = &rows->row[rows->n++];
    *r = (wide_row){.group = group};
    snprintf(r->name, sizeof r->name, "%s", name);
    return 0;
}

static int add_zoo(wide_rows *rows)
{
    int rc = 0;
    for (int j = 0; j < 8; j++) /* a setting of all networks, then the next */
        for (int i = 0; i < moirai_zoo_count() && !rc; i++) {
            char name[WIDE_NAME];
            if (!moirai_zoo_at(i)->paper_parameters)
                continue;
            snprintf(name, sizeof name, "zoo:%s/%s/%s/%s", moirai_zoo_at(i)->name, testbeds[(i + j / 4) % 2],
                     graphs[(i + j / 2) % 2], j % 2 ? "edge" : "tensor");
            rc = add(rows, "zoo", name);
        }
    return rc;
}

static int add_onnx(wide_rows *rows, const char *graph)
{
    static const char *const file[] = {
        "hrnet_w18",     "experts8_12l", "clip_vit_b32", "pnasnet5large",       "coat_small",        "dlrm_26",
        "retinanet_r50", "bert_base",    "swin_t",       "inception_resnet_v2", "crossvit_base_240", "unet",
        "bart_base",     "googlenet",    "densenet201",  "inception_v3",        "resnet50"};
    int rc = 0;
    for (int j = 0; j < 2; j++)
        for (size_t i = 0; i < sizeof file / sizeof *file && !rc; i++) {
            char name[WIDE_NAME];
            snprintf(name, sizeof name, "onnx:%s/%s/%s", file[i], testbeds[(i + (size_t)j) % 2], graph);
            rc = add(rows, group_of(name), name);
        }
    return rc;
}

static int add_shapes(wide_rows *rows)
{
    static const char *const shape[] = {"two-towers/560", "ten-towers/1120", "layered/1000", "transformer/1008",
                                        "masked/1081"};
    int rc = 0;
    for (int devices = 4; devices <= 16; devices *= 4)
        for (size_t i = 0; i < sizeof shape / sizeof *shape && !rc; i++) {
            char name[WIDE_NAME];
            snprintf(name, sizeof name, "shape:%s/%d", shape[i], devices);
            rc = add(rows, "shapes", name);
        }
    return rc;
}

static int add_generator(wide_rows *rows, const char *half)
{
    bool tune = !strcmp(half, "tune") || !strcmp(half, "both"), judge = !strcmp(half, "judge") || !strcmp(half, "both");
    int rc = tune || judge ? 0 : moirai_error(MOIRAI_EUSAGE, "half '%.40s' is not tune, judge or both", half);
    for (int i = 0; i < generate_count() && !rc; i++) {
        char name[GENERATE_NAME];
        generate_name(name, i);
        if (generate_half_of(name) == GENERATE_TUNE ? tune : judge)
            rc = add(rows, generate_group_of(name), name);
    }
    return rc;
}

/* Whether `name` fits one of the patterns between commas. */
static bool fits_one(const char *name, const char *patterns)
{
    char text[1024], *rest = text, *pattern;
    snprintf(text, sizeof text, "%s", patterns);
    while ((pattern = strsep(&rest, ",")))
        if (!fnmatch(pattern, name, 0))
            return true;
    return false;
}

/* All of one group, then of the next -> groups in turns: a group's i-th of m rows stands at (i + 1/2) / m. */
static int take_turns(wide_rows *out, const wide_rows *all, const char *only, int per_group)
{
    size_t count[GROUPS] = {0}, given[GROUPS] = {0}, at[GROUPS] = {0};
    for (size_t i = 0; i < all->n; i++)
        for (int g = 0; g < GROUPS; g++)
            if (!strcmp(all->row[i].group, wide_groups[g]) && (!only || fits_one(all->row[i].name, only)) &&
                (!per_group || count[g] < (size_t)per_group))
                count[g]++;
    for (;;) {
        int next = -1;
        for (int g = 0; g < GROUPS; g++)
            if (given[g] < count[g] &&
                (next < 0 || (2 * given[g] + 1) * count[next] < (2 * given[next] + 1) * count[g]))
                next = g;
        if (next < 0)
            return 0;
        const wide_row *r;
        do
            r = &all->row[at[next]++];
        while (strcmp(r->group, wide_groups[next]) != 0 || (only && !fits_one(r->name, only)));
        given[next]++;
        if (add(out, r->group, r->name))
            return MOIRAI_EFAIL;
    }
}

/* A set by its name, or a row by its own. */
static int add_set(wide_rows *rows, const char *set, const char *half)
{
    if (!strcmp(set, "zoo"))
        return add_zoo(rows);
    if (!strcmp(set, "onnx"))
        return add_onnx(rows, "coarsened");
    if (!strcmp(set, "onnx-original"))
        return add_onnx(rows, "original");
    if (!strcmp(set, "shapes"))
        return add_shapes(rows);
    if (!strcmp(set, "generator"))
        return add_generator(rows, half);
    if (strchr(set, '/') && strlen(set) < WIDE_NAME)
        return add(rows, group_of(set), set);
    return moirai_error(MOIRAI_EUSAGE,
                        "rows '%.40s': there are zoo, onnx, onnx-original, shapes, generator, and names of rows", set);
}

int wide_rows_list(wide_rows *out, const char *sets, const char *half, const char *only, int per_group)
{
    char *text = util_strdup(sets), *rest = text, *set;
    wide_rows all = {0};
    int rc = text ? 0 : MOIRAI_EFAIL;
    *out = (wide_rows){0};
    while (!rc && (set = strsep(&rest, ",")))
        rc = add_set(&all, set, half);
    rc = rc ? rc : take_turns(out, &all, only, per_group);
    wide_rows_free(&all);
    free(text);
    return rc;
}

void wide_rows_free(wide_rows *rows)
{
    free(rows->row);
    *rows = (wide_rows){0};
}

/* ---- problems ---- */

/* The graph on the testbed. */
static int meet(moirai_problem **out, moirai_graph **g, const char *testbed, const char *graph,
                const moirai_problem_options *o)
{
    moirai_cluster *c = NULL;
    int rc = !strcmp(graph, "coarsened") ? generate_coarsen(g) : 0;
    rc = rc ? rc : moirai_cluster_open(&c, testbed);
    rc = rc ? rc : moirai_problem_new(out, *g, c, o);
    moirai_cluster_free(c);
    return rc;
}

/* fp32 where its weights fit, else fp16; roofline. */
static int zoo_problem(moirai_problem **out, char **part)
{
    moirai_problem_options o = {.cost_model = "roofline"};
    int rc = moirai_flow_parse(&o.flow, part[3]);
    for (int bytes = 4; !rc && bytes >= 2; bytes -= 2) {
        moirai_graph *g = NULL;
        rc = moirai_zoo_graph(&g, part[0], bytes);
        rc = rc ? rc : meet(out, &g, part[1], part[2], &o);
        moirai_graph_free(g);
        if (rc || bytes == 2 || !moirai_problem_check_memory(*out))
            break;
        moirai_problem_free(*out);
        *out = NULL;
    }
    return rc;
}

static int onnx_problem(moirai_problem **out, char **part)
{
    char path[4096];
    moirai_problem_options o = {.cost_model = "auto", .runtime = MOIRAI_RUNTIME_EAGER};
    moirai_graph *g = NULL;
    snprintf(path, sizeof path, "%s/data/onnx/%s.onnx", MOIRAI_SHARED_DIR, part[0]);
    int rc = moirai_onnx_read(&g, path, NULL, NULL);
    rc = rc ? rc : meet(out, &g, part[1], part[2], &o);
    moirai_graph_free(g);
    return rc;
}

int wide_problem(moirai_problem **out, const char *row)
{
    char text[WIDE_NAME], *rest, *part[4] = {0};
    int n = 0;
    *out = NULL;
    snprintf(text, sizeof text, "%s", row);
    rest = strchr(text, ':');
    if (!rest)
        return generate_problem(out, row);
    *rest++ = '\0';
    while (n < 4 && (part[n] = strsep(&rest, "/")))
        n++;
    if (!strcmp(text, "zoo") && n == 4 && !rest)
        return zoo_problem(out, part);
    if (!strcmp(text, "onnx") && n == 3)
        return onnx_problem(out, part);
    if (!strcmp(text, "shape") && n == 3)
        return shape_problem(out, part[0], atoi(part[1]), atoi(part[2]));
    return moirai_error(MOIRAI_EUSAGE, "row '%.120s': not zoo:N/T/G/F, onnx:F/T/G, shape:S/N/K or one of the generator",
                        row);
}
