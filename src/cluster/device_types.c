/* What is known of device types: memory, memory bandwidth, multiprocessors, clock, fp32 rate, L2 cache.
 *
 * Figures of the data-centre GPUs: the device table published with NeuSight (MIT licence), which follows NVIDIA's data
 * sheets; RTX 2080 Ti and RTX 3060 Ti: NVIDIA's data sheets. Memory is in decimal gigabytes. "cpu" is no product: four
 * cores at 3 GHz with one 8-lane fused multiply-add unit each, behind one channel of DDR4-3200; override its figures
 * in the cluster file where they matter. */
#include <moirai/cluster.h>

#include <ctype.h>
#include <string.h>

#define GB 1000000000

static const moirai_device_type types[] = {
    /* name, memory, GB/s, GFLOPS fp32, SMs, cores per SM, MHz, L2 MB */
    {"p4", (int64_t)8 * GB, 192, 5699, 40, 64, 1113, 2},
    {"t4", (int64_t)15 * GB, 320, 8141, 40, 64, 1590, 4},
    {"p100", (int64_t)16 * GB, 732, 9519, 56, 64, 1380, 4},
    {"v100", (int64_t)32 * GB, 900, 14029, 80, 64, 1370, 6},
    {"a100", (int64_t)40 * GB, 1555, 19492, 108, 64, 1410, 40},
    {"a100-80g", (int64_t)80 * GB, 1935, 19492, 108, 64, 1410, 40},
    {"l4", (int64_t)24 * GB, 300, 31334, 60, 128, 2040, 48},
    {"h100", (int64_t)80 * GB, 3430, 66908, 132, 128, 1980, 50},
    {"rtx2080ti", (int64_t)11 * GB, 616, 13448, 68, 64, 1545, 5.5},
    {"rtx3060ti", (int64_t)8 * GB, 448, 16197, 38, 128, 1665, 4},
    {"cpu", (int64_t)16 * GB, 25.6, 192, 4, 8, 3000, 8},
};

#define N_TYPES ((int)(sizeof types / sizeof types[0]))

/* Letters and digits only, lower case, without the vendor's family names. */
static void plain_name(char *out, size_t size, const char *name)
{
    static const char *const family[] = {"nvidia", "tesla", "geforce"};
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        size_t length = strlen(family[i]);
        if (strncmp(out, family[i], length) == 0)
            memmove(out, out + length, strlen(out + length) + 1);
    }
}

const moirai_device_type *moirai_device_type_find(const char *name)
{
    char wanted[64], known[64];
    if (!name || strlen(name) >= sizeof wanted)
        return NULL;
    plain_name(wanted, sizeof wanted, name);
    for (int i = 0; i < N_TYPES; i++) {
        plain_name(known, sizeof known, types[i].name);
        /* "2080 Ti" is as good as "RTX 2080 Ti". */
        if (strcmp(wanted, known) == 0 || (strncmp(known, "rtx", 3) == 0 && strcmp(wanted, known + 3) == 0))
            return &types[i];
    }
    return NULL;
}

int moirai_device_type_count(void)
{
    return N_TYPES;
}

const moirai_device_type *moirai_device_type_at(int index)
{
    return index >= 0 && index < N_TYPES ? &types[index] : NULL;
}
