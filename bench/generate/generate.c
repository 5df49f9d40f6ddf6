/* From a name to a problem. */
#include "generate/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/families.h"
#include "util/hash.h"

enum { PARTS = 6, MOST_OPS = 2000000 };

int generate_family_count(void)
{
    return GENERATE_FAMILIES;
}

const char *generate_family_name(int index)
{
    return generate_families[index].name;
}

static int bad(const char *name, const char *what, const char *part, const char *wanted)
{
    return moirai_error(MOIRAI_EUSAGE, "problem '%.200s': %s '%.60s' is not %s", name, what, part, wanted);
}

/* A whole number from least to most, and nothing behind it. */
static bool whole(int32_t *out, const char *text, int32_t least, int32_t most)
{
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int32_t)value;
    return text[0] >= '0' && text[0] <= '9' && !*end && value >= least && value <= most;
}

/* "0", "0.05", "1.0" as thousandths. */
static bool thousandths(int32_t *out, const char *text)
{
    int64_t value = 0, unit = 1000;
    bool point = false;
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && !point && i) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || (point && unit == 1) || value > 100000)
            return false;
        if (point)
            unit /= 10;
        value = point ? value + unit * (text[i] - '0') : 10 * value + 1000 * (text[i] - '0');
    }
    *out = (int32_t)value;
    return length > 0 && text[length - 1] != '.' && value <= 10000;
}

static int choice(const char *text, const char *const *word, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(text, word[i]))
            return i;
    return -1;
}

static int make_graph(moirai_problem **out, const generate_family *f, const char *name, char **part)
{
    static const char *const times[] = {"related", "kinds", "unrelated"};
    generate_setting s = {.name = name};
    generate_dag d = {0};
    int kind = choice(part[3], times, 3);
    if (!whole(&s.n_ops, part[1], 4, MOST_OPS))
        return bad(name, "operators", part[1], "a number from 4 to 2000000");
    if (!whole(&s.n_devices, part[2], 1, MOIRAI_MAX_DEVICES))
        return bad(name, "devices", part[2], "a number from 1 to 64");
    if (kind < 0)
        return bad(name, "times", part[3], "related, kinds or unrelated");
    if (!thousandths(&s.transfer, part[4]))
        return bad(name, "transfer", part[4], "a number from 0 to 10 with at most three digits behind the point");
    s.times = kind == 0 ? GENERATE_RELATED : kind == 1 ? GENERATE_BY_KINDS : GENERATE_UNRELATED;
    util_rng_seed(&d.rng, util_hash(name, strlen(name)));
    d.shared = generate_draw(&d, 2);
    d.even = generate_draw(&d, 4) == 0;
    d.heavy = generate_draw(&d, 4) == 0;
    f->graph(&d, s.n_ops);
    int rc = generate_settle(out, &d, &s);
    generate_dag_free(&d);
    return rc;
}

static int make_network(moirai_problem **out, const generate_family *f, const char *name, char **part)
{
    static const char *const sizes[] = {"small", "medium", "large"}, *const costs[] = {"fitted", "roofline"},
                             *const graphs[] = {"original", "coarsened"};
    generate_network_setting s = {
        .name = name, .size = choice(part[1], sizes, 3), .seed = util_hash(name, strlen(name))};
    int cost = choice(part[3], costs, 2), graph = choice(part[4], graphs, 2);
    if (s.size < 0)
        return bad(name, "size", part[1], "small, medium or large");
    if (!strcmp(part[2], "inter-server") || !strcmp(part[2], "intra-server"))
        s.cluster = part[2];
    else if (!whole(&s.n_devices, part[2], 1, MOIRAI_MAX_DEVICES))
        return bad(name, "cluster", part[2], "inter-server, intra-server or a number from 1 to 64");
    if (cost < 0)
        return bad(name, "cost", part[3], "fitted or roofline");
    if (graph < 0)
        return bad(name, "graph", part[4], "original or coarsened");
    s.fitted = cost == 0;
    s.coarse = graph == 1;
    return generate_network_problem(out, f->network, &s);
}

static const generate_family *family_of(const char *name)
{
    size_t length = strcspn(name, "/");
    for (int i = 0; i < GENERATE_FAMILIES; i++)
        if (strlen(generate_families[i].name) == length && !strncmp(name, generate_families[i].name, length))
            return &generate_families[i];
    return NULL;
}

int generate_problem(moirai_problem **out, const char *name)
{
    char text[2 * GENERATE_NAME], *part[PARTS] = {text};
    int n = 1;
    int32_t seed;
    const generate_family *f = family_of(name);
    *out = NULL;
    snprintf(text, sizeof text, "%s", name);
    for (char *at = text; *at; at++)
        if (*at == '/') {
            *at = '\0';
            if (n < PARTS)
                part[n] = at + 1;
            n++;
        }
    if (n != PARTS || strlen(name) >= sizeof text)
        return moirai_error(MOIRAI_EUSAGE, "problem '%.200s': a name has six parts, FAMILY/../../../../SEED", name);
    if (!f)
        return bad(name, "family", part[0], "known");
    if (!whole(&seed, part[5], 0, 1000000000))
        return bad(name, "seed", part[5], "a number");
    return f->graph ? make_graph(out, f, name, part) : make_network(out, f, name, part);
}

generate_half generate_half_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && atol(slash + 1) % 2 ? GENERATE_TUNE : GENERATE_JUDGE;
}

const char *generate_group_of(const char *name)
{
    const generate_family *f = family_of(name);
    return f && f->network                                     ? "networks"
           : f && f == &generate_families[GENERATE_GRAPHS - 1] ? "side by side"
                                                               : "families";
}
