/* Clusters in one line, for tests and what-if:
 *
 *     4x v100 32GB nvlink 600Gbps
 *     2x v100, 2x p100 16GB, 100Gbps 5us
 *     2x v100, t4: pcie4; 2x cpu-16-avx2: pcie3; 10Gbps 20us
 *     2x v100: nvlink2; orin: 1Gbps 50us
 *
 * Groups between semicolons, parts of a group between commas. A part may hold a count ("4x", default 1) with a device
 * type and a memory size (default: the type's). One bandwidth, by number or by a name such as pcie4, and one latency
 * (default 0, with a note) are the group's link; they stand anywhere in it, or behind a colon, after which no device may
 * come. A blank may stand between a number and its unit. Words such as "nvlink" only speak to the reader. Devices are
 * named A, B, ..., Z, AA, AB, ...
 *
 * Two devices of one group are joined by its link. Two of different groups are joined by the group without devices,
 * which is a link alone; where there is none, by the slower of their two links: the less bandwidth, the more latency. */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What joins devices. */
typedef struct line {
    int64_t bytes_per_second, latency_ns; /* -1 until given */
} line;

/* Everything that a description says of links. */
typedef struct groups {
    int32_t n;
    line own[MOIRAI_MAX_DEVICES], between;                         /* of each group; of the group without devices */
    int32_t n_devices[MOIRAI_MAX_DEVICES], of[MOIRAI_MAX_DEVICES]; /* of each group; device -> group */
} groups;

typedef struct part {
    int64_t count;        /* -1 until given */
    int64_t memory_bytes; /* -1 until given */
    char type[64];        /* words joined by blanks */
} part;

static bool is_link_word(const char *word)
{
    static const char *const words[] = {"nvlink", "pcie", "ethernet", "infiniband", "roce", "mesh"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcasecmp(word, words[i]))
            return true;
    return false;
}

/* Of one direction, as the standards have it: 16 lanes less their coding; all links of one GPU. */
static int64_t named_rate(const char *word)
{
    static const struct {
        const char *name;
        int64_t bytes_per_second;
    } known[] = {{"pcie3", INT64_C(15753846153)},    {"pcie4", INT64_C(31507692307)},
                 {"pcie5", INT64_C(63015384615)},    {"nvlink2", INT64_C(150000000000)},
                 {"nvlink3", INT64_C(300000000000)}, {"nvlink4", INT64_C(450000000000)},
                 {"nvlink5", INT64_C(900000000000)}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(word, known[i].name))
            return known[i].bytes_per_second;
    return -1;
}

static void device_name(char out[4], int32_t i)
{
    if (i < 26)
        snprintf(out, 4, "%c", 'A' + i);
    else
        snprintf(out, 4, "%c%c", 'A' + i / 26 - 1, 'A' + i % 26);
}

/* "4x" or the head of "4xv100": returns what follows the x, or NULL. */
static const char *read_count(int64_t *count, const char *word)
{
    size_t digits = strspn(word, "0123456789");
    if (digits == 0 || digits > 18 || word[digits] != 'x')
        return NULL;
    *count = strtoll(word, NULL, 10);
    return word + digits + 1;
}

static int read_type_word(part *p, const char *word)
{
    size_t used = strlen(p->type);
    if (used + strlen(word) + 2 > sizeof p->type)
        return moirai_error(MOIRAI_EINPUT, "device type '%.60s %.60s' is too long", p->type, word);
    snprintf(p->type + used, sizeof p->type - used, "%s%s", used ? " " : "", word);
    return 0;
}

static int set_once(int64_t *slot, int64_t value, const char *what, const char *word)
{
    if (*slot >= 0)
        return moirai_error(MOIRAI_EINPUT, "a second %s: \"%.60s\"", what, word);
    *slot = value;
    return 0;
}

static int read_word(part *p, line *link, const char *word)
{
    int64_t value;
    const char *rest;
    if (p->count < 0 && !*p->type && (rest = read_count(&p->count, word)))
        return *rest ? read_type_word(p, rest) : 0;
    if (is_link_word(word))
        return 0;
    if ((value = named_rate(word)) > 0)
        return set_once(&link->bytes_per_second, value, "bandwidth", word);
    if (isdigit((unsigned char)*word)) {
        if (!moirai_parse_bytes(&value, word))
            return set_once(&p->memory_bytes, value, "memory size in one part", word);
        if (!moirai_parse_rate(&value, word))
            return set_once(&link->bytes_per_second, value, "bandwidth", word);
        if (!moirai_parse_duration(&value, word))
            return set_once(&link->latency_ns, value, "latency", word);
    }
    int rc = read_type_word(p, word);
    /* "2080" may go on with "Ti" and "80g" ends a type; "16XB" is a slip of the pen. */
    bool number = isdigit((unsigned char)*word) && word[strspn(word, "0123456789")];
    if (!rc && number && !moirai_device_type_find(word) && !moirai_device_type_find(p->type))
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": unknown unit", word);
    return rc;
}

static int add_devices(moirai_cluster *c, const part *p)
{
    const moirai_device_type *type = moirai_device_type_find(p->type);
    const moirai_device_type *closest = type ? NULL : moirai_device_type_closest(p->type);
    if (!type)
        return moirai_error(MOIRAI_EINPUT, "unknown device type '%s'%s%s%s", p->type, closest ? ": did you mean '" : "",
                            closest ? closest->name : "", closest ? "'?" : "");
    if (p->count == 0 || p->memory_bytes == 0)
        return moirai_error(MOIRAI_EINPUT, "no devices or no memory for type '%s'", p->type);
    if (p->count > MOIRAI_MAX_DEVICES)
        return moirai_error(MOIRAI_EINPUT, "%lld devices of type '%s': at most %d", (long long)p->count, p->type,
                            MOIRAI_MAX_DEVICES);
    for (int64_t i = 0; i < (p->count < 0 ? 1 : p->count); i++) {
        char name[4];
        device_name(name, c->n_devices);
        moirai_device *d = cluster_add_device(c, name, type->name);
        if (!d)
            return MOIRAI_EINPUT;
        int rc = p->memory_bytes > 0 ? cluster_state_memory(c, d, p->memory_bytes, NULL) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* "32 GB" is one word: a number, and a unit behind the blank. */
static bool join_unit(char *joined, size_t size, const char *word, const char *next)
{
    int64_t value;
    if (!next || word[strspn(word, "0123456789.")] || snprintf(joined, size, "%s%s", word, next) >= (int)size)
        return false;
    return !moirai_parse_bytes(&value, joined) || !moirai_parse_rate(&value, joined) ||
           !moirai_parse_duration(&value, joined);
}

/* `behind`: a colon, so that it is a link alone. */
static int read_part(moirai_cluster *c, line *link, char *text, bool behind)
{
    part p = {-1, -1, ""};
    char *place = NULL, joined[64];
    for (char *word = strtok_r(text, " \t", &place), *next; word; word = next) {
        next = strtok_r(NULL, " \t", &place);
        bool two = join_unit(joined, sizeof joined, word, next);
        int rc = read_word(&p, link, two ? joined : word);
        if (rc)
            return rc;
        next = two ? strtok_r(NULL, " \t", &place) : next;
    }
    if (behind && (*p.type || p.count >= 0 || p.memory_bytes >= 0))
        return moirai_error(
            MOIRAI_EINPUT,
            "behind ':' stands '%s', which is no link: a bandwidth, a latency, pcie3 to pcie5, nvlink2 to "
            "nvlink5; further devices follow ';'",
            *p.type ? p.type : "a count or a memory size");
    if (*p.type)
        return add_devices(c, &p);
    if (p.count >= 0 || p.memory_bytes >= 0)
        return moirai_error(MOIRAI_EINPUT, "a part without a device type");
    return 0;
}

/* "2x v100, t4: pcie4 5us" */
static int read_group(moirai_cluster *c, line *link, char *text)
{
    bool behind = false;
    for (char *at = text, *next; at; at = next) {
        char end = *(next = at + strcspn(at, ",:"));
        *next = '\0';
        int rc = read_part(c, link, at, behind);
        if (rc)
            return rc;
        if (end == ':' && behind)
            return moirai_error(MOIRAI_EINPUT, "a second ':' in one group: groups are told apart by ';'");
        behind |= end == ':';
        next = end ? next + 1 : NULL;
    }
    return 0;
}

static int read_groups(moirai_cluster *c, groups *g, char *text)
{
    for (char *at = text, *next; at; at = next) {
        int32_t before = c->n_devices;
        line link = {-1, -1};
        next = strchr(at, ';');
        if (next)
            *next++ = '\0';
        int rc = read_group(c, &link, at);
        if (rc)
            return rc;
        if (c->n_devices == before && link.bytes_per_second < 0 && link.latency_ns < 0)
            continue; /* a semicolon at the end */
        if (c->n_devices == before && (g->between.bytes_per_second >= 0 || g->between.latency_ns >= 0))
            return moirai_error(MOIRAI_EINPUT, "a second link without devices: one joins all groups");
        if (c->n_devices == before) {
            g->between = link;
            continue;
        }
        for (int32_t k = before; k < c->n_devices; k++)
            g->of[k] = g->n;
        g->n_devices[g->n] = c->n_devices - before;
        g->own[g->n++] = link;
    }
    return 0;
}

/* A group's link is used where it has several devices, or where no link joins all groups. */
static int check_groups(const moirai_cluster *c, const groups *g)
{
    bool between = g->between.bytes_per_second >= 0;
    if (!between && g->between.latency_ns >= 0)
        return moirai_error(MOIRAI_EINPUT, "a link without devices needs a bandwidth (such as 10Gbps 20us)");
    if (between && g->n == 1)
        return moirai_error(MOIRAI_EINPUT, "a link without devices joins groups, and there is one group only");
    for (int32_t i = 0, first = 0; i < g->n; first += g->n_devices[i++]) {
        bool given = g->own[i].bytes_per_second >= 0, alone = g->n_devices[i] == 1;
        if (!given && (!alone || (!between && g->n > 1)))
            return g->n == 1 ? moirai_error(MOIRAI_EINPUT, "no bandwidth for the links (such as 100Gbps)")
                             : moirai_error(MOIRAI_EINPUT,
                                            "no bandwidth for the links of the group of device '%s' (such as "
                                            "': 100Gbps')",
                                            c->device[first].name);
        if (given && alone && between)
            return moirai_error(
                MOIRAI_EINPUT,
                "device '%s' is alone in its group, and a link without devices joins the groups: its own "
                "link joins nothing",
                c->device[first].name);
    }
    return 0;
}

static line joining(const groups *g, int32_t a, int32_t b)
{
    const line *x = &g->own[g->of[a]], *y = &g->own[g->of[b]];
    if (x == y)
        return *x;
    if (g->between.bytes_per_second >= 0)
        return g->between;
    return (line){UTIL_MIN(x->bytes_per_second, y->bytes_per_second), UTIL_MAX(x->latency_ns, y->latency_ns)};
}

static int build(moirai_cluster *c, groups *g, char *text)
{
    bool missing = false;
    int rc = read_groups(c, g, text);
    rc = rc ? rc : check_groups(c, g);
    for (int32_t i = 0; !rc && i < c->n_devices * c->n_devices; i++) {
        int32_t a = i / c->n_devices, b = i % c->n_devices;
        line link = joining(g, a, b);
        if (a == b)
            continue;
        missing |= link.latency_ns < 0;
        rc = cluster_add_link(c, a, b, link.bytes_per_second, UTIL_MAX(link.latency_ns, 0));
    }
    if (!rc && missing)
        rc = cluster_add_note(c, "note: no latency is given for the links: taken as 0 (5us behind the bandwidth sets "
                                 "it)");
    return rc ? rc : cluster_close(c);
}

int moirai_cluster_synthetic(moirai_cluster **out, const char *description)
{
    moirai_cluster *c;
    *out = NULL;
    int rc = cluster_new(&c, description);
    if (rc)
        return rc;
    groups g = {.between = {-1, -1}};
    char *text = util_strdup(description);
    rc = text ? build(c, &g, text) : MOIRAI_EFAIL;
    free(text);
    if (rc) {
        moirai_cluster_free(c);
        return moirai_error_prefix(rc, "\"%.200s\"", description);
    }
    *out = c;
    return 0;
}
