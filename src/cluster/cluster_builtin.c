/* Clusters that need no file: the paper's two testbeds, and `open`, which takes whatever the user typed. */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bandwidths between the devices of the paper's testbeds in units of 10 Mbit/s, from row to column, as the paper
 * measured them; it gives no latencies. */
typedef struct testbed {
    const char *name;
    const char *type[4];
    int memory_gb[4];
    int centi_gbps[4][4];
} testbed;

static const testbed testbeds[] = {
    {"inter-server",
     {"rtx2080ti", "t4", "p4", "rtx3060ti"},
     {11, 16, 8, 8},
     {{0, 4426, 3292, 4428}, {4239, 0, 3532, 4451}, {3320, 3531, 0, 3295}, {4208, 4322, 3328, 0}}},
    {"intra-server",
     {"v100", "v100", "p100", "p100"},
     {32, 32, 16, 16},
     {{0, 117004, 62610, 61056}, {114816, 0, 61898, 58109}, {63043, 60982, 0, 57196}, {62267, 57508, 58135, 0}}},
};

#define N_TESTBEDS ((int)(sizeof testbeds / sizeof testbeds[0]))

int moirai_cluster_builtin_count(void)
{
    return N_TESTBEDS;
}

const char *moirai_cluster_builtin_name(int index)
{
    return index >= 0 && index < N_TESTBEDS ? testbeds[index].name : NULL;
}

static int build_testbed(moirai_cluster *c, const testbed *t)
{
    for (int i = 0; i < 4; i++) {
        const char name[2] = {(char)('A' + i), '\0'};
        moirai_device *d = cluster_add_device(c, name, t->type[i]);
        if (!d)
            return MOIRAI_EFAIL;
        d->memory_bytes = d->figures.memory_bytes = (int64_t)t->memory_gb[i] * 1000000000;
    }
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < 4; b++) {
            int rc = a == b ? 0 : cluster_add_link(c, a, b, (int64_t)t->centi_gbps[a][b] * 10000000 / 8, 0);
            if (rc)
                return rc;
        }
    }
    return cluster_close(c);
}

static int open_testbed(moirai_cluster **out, const testbed *t)
{
    moirai_cluster *c;
    int rc = cluster_new(&c, t->name);
    if (rc)
        return rc;
    rc = build_testbed(c, t);
    if (rc)
        moirai_cluster_free(c);
    else
        *out = c;
    return rc;
}

/* "4x v100 ...", "t4:pcie4;orin:1Gbps", or anything with a blank in it that is no file. */
static bool looks_like_description(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return (digits && text[digits] == 'x') || strchr(text, ' ') || strchr(text, ';') || moirai_device_type_find(text);
}

int moirai_cluster_open(moirai_cluster **out, const char *name_or_path)
{
    *out = NULL;
    for (int i = 0; i < N_TESTBEDS; i++)
        if (!strcmp(name_or_path, testbeds[i].name))
            return open_testbed(out, &testbeds[i]);
    bool is_stdin = !strcmp(name_or_path, "-");
    if (!is_stdin && access(name_or_path, F_OK)) {
        if (looks_like_description(name_or_path))
            return moirai_cluster_synthetic(out, name_or_path);
        const moirai_device_type *closest = moirai_device_type_closest(name_or_path);
        return moirai_error(
            MOIRAI_EINPUT,
            "%s: no such file, no built-in cluster (inter-server, intra-server), and no line such as '2x v100, 100Gbps "
            "5us'%s%s%s",
            name_or_path, closest ? " nor device type: did you mean '" : "", closest ? closest->name : "",
            closest ? "'?" : "");
    }
    char *text;
    size_t length;
    int rc = util_file_read(&text, &length, name_or_path);
    if (rc)
        return rc;
    rc = moirai_cluster_parse(out, text, length, is_stdin ? "standard input" : name_or_path);
    free(text);
    return rc;
}
