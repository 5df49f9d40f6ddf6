/* Device types by name, as people and drivers spell them. The table itself is device_table.c.
 *
 * Memory says more than a name: "orin" with 8 GB is no AGX Orin. A stated size that is a variant's own picks that
 * variant; one that no variant has stays a limit on what may be used, unless the type never had so much.
 *
 * O(types) a lookup. */
#include <moirai/cluster.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_build.h"
#include "cluster/device_table.h"
#include "util/util.h"

/* Letters and digits only, lower case, without the vendor's family names. */
static void plain_name(char *out, size_t size, const char *name)
{
    static const char *const family[] = {"nvidia", "amd",    "tesla", "geforce", "instinct",
                                         "quadro", "jetson", "apple", "radeon"};
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        size_t length = strlen(family[i]);
        if (!strncmp(out, family[i], length))
            memmove(out, out + length, strlen(out + length) + 1);
    }
}

static const moirai_device_type *find_plain(const char *wanted)
{
    char known[64];
    for (int i = 0; i < cluster_n_types; i++) {
        plain_name(known, sizeof known, cluster_types[i].name);
        /* "2080 Ti" is as good as "RTX 2080 Ti". */
        if (!strcmp(wanted, known) || (!strncmp(known, "rtx", 3) && !strcmp(wanted, known + 3)))
            return &cluster_types[i];
    }
    return NULL;
}

const moirai_device_type *moirai_device_type_find(const char *name)
{
    char wanted[64];
    if (!name || strlen(name) >= sizeof wanted)
        return NULL;
    plain_name(wanted, sizeof wanted, name);
    for (int i = 0; i < cluster_n_reported; i++)
        if (!strcmp(wanted, cluster_reported[i].name))
            plain_name(wanted, sizeof wanted, cluster_reported[i].type);
    return find_plain(wanted);
}

/* What it takes to make one name of the other: 2 for a letter left out or put in, 3 for a changed one. */
static int distance(const char *a, const char *b)
{
    int row[65], n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = 2 * j;
    for (int i = 1; *a; a++, i++) {
        int corner = row[0];
        row[0] = 2 * i;
        for (int j = 1; j <= n; j++) {
            int changed = corner + (*a != b[j - 1] ? 3 : 0);
            corner = row[j];
            row[j] = UTIL_MIN(changed, UTIL_MIN(row[j], row[j - 1]) + 2);
        }
    }
    return row[n];
}

const moirai_device_type *moirai_device_type_closest(const char *name)
{
    char wanted[64], known[64], cut[64];
    const moirai_device_type *best = NULL;
    int least = 0;
    if (!name || strlen(name) >= sizeof wanted)
        return NULL;
    plain_name(wanted, sizeof wanted, name);
    for (int i = 0; i < cluster_n_types; i++) {
        plain_name(known, sizeof known, cluster_types[i].name);
        /* What a driver adds to a name (memory, form) comes behind it. */
        snprintf(cut, sizeof cut, "%.*s", (int)strlen(known), wanted);
        int d = UTIL_MIN(distance(wanted, known), strcmp(cut, known) ? 1000 : 3);
        if (!strncmp(known, "rtx", 3))
            d = UTIL_MIN(d, distance(wanted, known + 3));
        bool longer = best && d == least && !strcmp(cut, known) && strlen(cluster_types[i].name) > strlen(best->name);
        if (!best || d < least || longer) {
            best = &cluster_types[i];
            least = d;
        }
    }
    return *wanted && least <= UTIL_MAX(3, (int)strlen(wanted)) ? best : NULL; /* half of the letters are right */
}

int moirai_device_type_count(void)
{
    return cluster_n_types;
}

const moirai_device_type *moirai_device_type_at(int index)
{
    return index >= 0 && index < cluster_n_types ? &cluster_types[index] : NULL;
}

const moirai_device_type *cluster_variant_of(const moirai_device_type *type, int64_t memory_bytes)
{
    for (int i = 0; type && i < cluster_n_variants; i++) {
        int64_t bytes = cluster_variants[i].gb * INT64_C(1000000000);
        /* "8GB" and "8GiB" are one size. */
        if (!strcmp(cluster_variants[i].type, type->name) && llabs(memory_bytes - bytes) <= bytes / 13)
            return moirai_device_type_find(cluster_variants[i].is);
    }
    return NULL;
}
