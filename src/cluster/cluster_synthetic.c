/* Clusters in one line, for tests and what-if:
 *
 *     4x v100 32GB nvlink 600Gbps
 *     2x v100, 2x p100 16GB, 100Gbps 5us
 *
 * Parts between commas. A part may hold a count ("4x", default 1) with a device type and a memory size (default: the
 * type's); one bandwidth and one latency (default 0, with a note) for all pairs stand anywhere; a blank may stand
 * between a number and its unit. Words such as "nvlink" only speak to the reader. Devices are named A, B, ..., Z, AA,
 * AB, ... */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct wishes {
    int64_t bytes_per_second, latency_ns; /* -1 until given */
} wishes;

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

static int read_word(part *p, wishes *all, const char *word)
{
    int64_t value;
    const char *rest;
    if (p->count < 0 && !*p->type && (rest = read_count(&p->count, word)))
        return *rest ? read_type_word(p, rest) : 0;
    if (is_link_word(word))
        return 0;
    if (isdigit((unsigned char)*word)) {
        if (!moirai_parse_bytes(&value, word))
            return set_once(&p->memory_bytes, value, "memory size in one part", word);
        if (!moirai_parse_rate(&value, word))
            return set_once(&all->bytes_per_second, value, "bandwidth", word);
        if (!moirai_parse_duration(&value, word))
            return set_once(&all->latency_ns, value, "latency", word);
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
        if (p->memory_bytes > 0)
            d->memory_bytes = d->figures.memory_bytes = p->memory_bytes;
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

static int read_part(moirai_cluster *c, wishes *all, char *text)
{
    part p = {-1, -1, ""};
    char *place = NULL, joined[64];
    for (char *word = strtok_r(text, " \t", &place), *next; word; word = next) {
        next = strtok_r(NULL, " \t", &place);
        bool two = join_unit(joined, sizeof joined, word, next);
        int rc = read_word(&p, all, two ? joined : word);
        if (rc)
            return rc;
        next = two ? strtok_r(NULL, " \t", &place) : next;
    }
    if (*p.type)
        return add_devices(c, &p);
    if (p.count >= 0 || p.memory_bytes >= 0)
        return moirai_error(MOIRAI_EINPUT, "a part without a device type");
    return 0;
}

static int build(moirai_cluster *c, char *text)
{
    wishes all = {-1, -1};
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        int rc = read_part(c, &all, at);
        if (rc)
            return rc;
    }
    if (c->n_devices > 1 && all.bytes_per_second < 0)
        return moirai_error(MOIRAI_EINPUT, "no bandwidth for the links (such as 100Gbps)");
    if (c->n_devices > 1 && all.latency_ns < 0 &&
        !(c->notes = util_strdup("note: no latency is given for the links: taken as 0 (5us behind the bandwidth sets "
                                 "it)")))
        return MOIRAI_EFAIL;
    for (int32_t a = 0; a < c->n_devices; a++) {
        for (int32_t b = 0; b < c->n_devices; b++) {
            if (a == b)
                continue;
            int rc = cluster_add_link(c, a, b, all.bytes_per_second, UTIL_MAX(all.latency_ns, 0));
            if (rc)
                return rc;
        }
    }
    return cluster_close(c);
}

int moirai_cluster_synthetic(moirai_cluster **out, const char *description)
{
    moirai_cluster *c;
    *out = NULL;
    int rc = cluster_new(&c, description);
    if (rc)
        return rc;
    char *text = util_strdup(description);
    rc = text ? build(c, text) : MOIRAI_EFAIL;
    free(text);
    if (rc) {
        moirai_cluster_free(c);
        return moirai_error_prefix(rc, "\"%.200s\"", description);
    }
    *out = c;
    return 0;
}
