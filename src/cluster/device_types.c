/* What is known of device types: memory, bandwidth, rates, multiprocessors, clock, L2 cache, power, process.
 *
 * Sources, by family. P4 to A100: the device table published with NeuSight (MIT licence), which follows NVIDIA's data
 * sheets, but for the P4, which has 20 multiprocessors of 128 cores, and the P100's clock, which makes its rate. L4,
 * H100 (SXM, PCIe and NVL), H200, GH200, B200, A2 to A40, L40 and L40S: NVIDIA's data sheets of
 * these names (B200: an eighth of HGX B200's); the L4's multiprocessors as its driver reports them. GeForce: the white
 * papers of Pascal, Turing, Ampere GA102, Ada and Blackwell, and NVIDIA's product pages. RTX A and RTX 6000 Ada:
 * NVIDIA's data sheets. Instinct: AMD's data sheets; an MI250X is two devices to every runtime, and these are the
 * figures of one. Jetson: NVIDIA's module data sheets, at their largest power.
 *
 * Rates on tensor cores are dense (data sheets like to double them for sparse weights) and those that sum up in fp32,
 * as frameworks do: on GeForce that is half of the larger figure. Where a card was sold with two board powers, the
 * larger. Memory is in decimal gigabytes.
 *
 * The last column says how far a row was compared with other public tables (makers' product pages, databases of
 * graphics cards, what drivers report) after it was written down: as a whole, in part, or not. Where a table disagreed
 * with a data sheet, the data sheet stays: tensor rates of the L40 (181 Tflop/s dense in fp16), memory clock of the
 * P40.
 *
 * CPUs are no products: "cpu" is four cores at 3 GHz with one 8-lane fused multiply-add unit each, behind one channel
 * of DDR4-3200; "cpu-CORES-SET" has the vector units that are usual with that instruction set (flops per cycle and
 * core: sse4 8, neon 16, avx2 32, avx512 64, amx also 2048 in bf16) and as many memory channels as such servers have.
 * Override figures in the cluster file where they matter. */
#include <moirai/cluster.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/util.h"

#define GB INT64_C(1000000000)
#define ALL "vendor's data sheet; compared with other public tables"
#define PART \
    "vendor's data sheet; cores, memory and bandwidth compared with other public tables, the rest not rechecked"
#define SHEET "vendor's data sheet, not rechecked"
#define RULE "by cores and instruction set, no product's"
/* GeForce since Ampere: tf32 at the fp32 rate, fp16 at twice that. */
#define RTX(name, gb, gb_s, gflops, sm, mhz, l2, watt, nm, source) \
    { \
        name, gb *GB, gb_s, gflops, sm, 128, mhz, l2, gflops, 2 * gflops, watt, nm, source \
    }
/* Turing: fp16 at four times the fp32 rate. */
#define TURING(name, gb, gb_s, gflops, sm, mhz, l2, watt, source) \
    { \
        name, gb *GB, gb_s, gflops, sm, 64, mhz, l2, 0, 4 * gflops, watt, 12, source \
    }
/* cores_per_sm of a CPU: flops per cycle and core / 2. */
#define CPU(name, cores, gb, gb_s, flops, mhz, fp16) \
    { \
        name, gb *GB, gb_s, (cores) * (flops) * (mhz) / 1000.0, cores, (flops) / 2, mhz, 1.5 * (cores), 0, \
            (cores) * (fp16) * (mhz) / 1000.0, 0, 0, RULE \
    }
#define CPUS(n, gb, gb_s) \
    CPU("cpu-" #n "-sse4", n, gb, gb_s, 8, 3000, 0), CPU("cpu-" #n "-neon", n, gb, gb_s, 16, 2600, 0), \
        CPU("cpu-" #n "-avx2", n, gb, gb_s, 32, 3000, 0), CPU("cpu-" #n "-avx512", n, gb, gb_s, 64, 2500, 0), \
        CPU("cpu-" #n "-amx", n, gb, gb_s, 64, 2500, 2048)

static const moirai_device_type types[] = {
    /* name, memory, GB/s, GFLOPS fp32, SMs, cores per SM, MHz, L2 MB, GFLOPS tf32, GFLOPS fp16, W, nm, source */
    {"p4", 8 * GB, 192, 5699, 20, 128, 1113, 2, 0, 0, 75, 16, ALL},
    {"p40", 24 * GB, 346, 11758, 30, 128, 1531, 3, 0, 0, 250, 16, ALL},
    {"p100", 16 * GB, 732, 9519, 56, 64, 1328, 4, 0, 19038, 300, 16, ALL},
    {"v100", 32 * GB, 900, 14029, 80, 64, 1370, 6, 0, 112000, 300, 12, ALL},
    {"v100-16g", 16 * GB, 900, 14029, 80, 64, 1370, 6, 0, 112000, 300, 12, ALL},
    {"t4", 15 * GB, 320, 8141, 40, 64, 1590, 4, 0, 65000, 70, 12, ALL},
    {"a2", 16 * GB, 200, 4531, 10, 128, 1770, 2, 9000, 18000, 60, 8, ALL},
    {"a10", 24 * GB, 600, 31240, 72, 128, 1695, 6, 62500, 125000, 150, 8, ALL},
    {"a10g", 24 * GB, 600, 35020, 80, 128, 1710, 6, 35000, 70000, 300, 8, SHEET},
    {"a30", 24 * GB, 933, 10300, 56, 64, 1440, 24, 82000, 165000, 165, 7, SHEET},
    {"a40", 48 * GB, 696, 37400, 84, 128, 1740, 6, 74800, 149700, 300, 8, ALL},
    {"a100", 40 * GB, 1555, 19492, 108, 64, 1410, 40, 156000, 312000, 400, 7, ALL},
    {"a100-80g", 80 * GB, 1935, 19492, 108, 64, 1410, 40, 156000, 312000, 400, 7, ALL},
    {"l4", 24 * GB, 300, 30293, 58, 128, 2040, 48, 60000, 121000, 72, 5, ALL},
    {"l40", 48 * GB, 864, 90500, 142, 128, 2490, 96, 90500, 181050, 300, 5, PART},
    {"l40s", 48 * GB, 864, 91600, 142, 128, 2520, 96, 183000, 362050, 350, 5, ALL},
    {"h100", 80 * GB, 3350, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, ALL},
    {"h100-pcie", 80 * GB, 2000, 51200, 114, 128, 1755, 50, 378000, 756000, 350, 5, ALL},
    {"h100-nvl", 94 * GB, 3900, 60000, 132, 128, 1785, 50, 417500, 835500, 400, 5, PART},
    {"h200", 141 * GB, 4800, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, ALL},
    {"h200-nvl", 141 * GB, 4800, 60000, 132, 128, 1785, 50, 417500, 835500, 600, 5, PART},
    {"gh200", 96 * GB, 4000, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, PART},
    {"gh200-144g", 144 * GB, 4900, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, PART},
    {"b200", 180 * GB, 7700, 75000, 148, 128, 1965, 126, 1100000, 2250000, 1000, 5, ALL},

    {"gtx1050", 2 * GB, 112, 1862, 5, 128, 1455, 1, 0, 0, 75, 14, SHEET},
    {"gtx1060", 6 * GB, 192, 4372, 10, 128, 1708, 1.5, 0, 0, 120, 16, ALL},
    {"gtx1070", 8 * GB, 256, 6463, 15, 128, 1683, 2, 0, 0, 150, 16, SHEET},
    {"gtx1080", 8 * GB, 320, 8873, 20, 128, 1733, 2, 0, 0, 180, 16, PART},
    {"gtx1080ti", 11 * GB, 484, 11340, 28, 128, 1582, 2.75, 0, 0, 250, 16, PART},
    TURING("rtx2060", 6, 336, 6451, 30, 1680, 3, 160, ALL),
    TURING("rtx2060super", 8, 448, 7181, 34, 1650, 4, 175, ALL),
    TURING("rtx2070", 8, 448, 7465, 36, 1620, 4, 175, ALL),
    TURING("rtx2070super", 8, 448, 9062, 40, 1770, 4, 215, ALL),
    TURING("rtx2080", 8, 448, 10068, 46, 1710, 4, 215, ALL),
    TURING("rtx2080super", 8, 496, 11151, 48, 1815, 4, 250, SHEET),
    TURING("rtx2080ti", 11, 616, 13448, 68, 1545, 5.5, 250, ALL),
    {"titanrtx", 24 * GB, 672, 16312, 72, 64, 1770, 6, 0, 130500, 280, 12, SHEET},
    RTX("rtx3050", 8, 224, 9098, 20, 1777, 2, 130, 8, PART),
    RTX("rtx3060", 12, 360, 12740, 28, 1777, 3, 170, 8, ALL),
    RTX("rtx3060ti", 8, 448, 16197, 38, 1665, 4, 200, 8, PART),
    RTX("rtx3070", 8, 448, 20310, 46, 1725, 4, 220, 8, ALL),
    RTX("rtx3070ti", 8, 608, 21750, 48, 1770, 4, 290, 8, PART),
    RTX("rtx3080", 10, 760, 29770, 68, 1710, 5, 320, 8, ALL),
    RTX("rtx3080-12g", 12, 912, 30640, 70, 1710, 6, 350, 8, PART),
    RTX("rtx3080ti", 12, 912, 34100, 80, 1665, 6, 350, 8, PART),
    RTX("rtx3090", 24, 936, 35580, 82, 1695, 6, 350, 8, ALL),
    RTX("rtx3090ti", 24, 1008, 40000, 84, 1860, 6, 450, 8, ALL),
    RTX("rtx4060", 8, 272, 15110, 24, 2460, 24, 115, 5, ALL),
    RTX("rtx4060ti", 8, 288, 22060, 34, 2535, 32, 160, 5, ALL),
    RTX("rtx4060ti-16g", 16, 288, 22060, 34, 2535, 32, 165, 5, PART),
    RTX("rtx4070", 12, 504, 29150, 46, 2475, 36, 200, 5, PART),
    RTX("rtx4070super", 12, 504, 35480, 56, 2475, 48, 220, 5, PART),
    RTX("rtx4070ti", 12, 504, 40090, 60, 2610, 48, 285, 5, ALL),
    RTX("rtx4070tisuper", 16, 672, 44100, 66, 2610, 48, 285, 5, PART),
    RTX("rtx4080", 16, 716.8, 48740, 76, 2505, 64, 320, 5, ALL),
    RTX("rtx4080super", 16, 736, 52220, 80, 2550, 64, 320, 5, PART),
    RTX("rtx4090", 24, 1008, 82580, 128, 2520, 72, 450, 5, ALL),
    RTX("rtx5060", 8, 448, 19180, 30, 2497, 32, 145, 5, PART),
    RTX("rtx5060ti", 16, 448, 23700, 36, 2572, 32, 180, 5, PART),
    RTX("rtx5070", 12, 672, 30870, 48, 2512, 48, 250, 5, ALL),
    RTX("rtx5070ti", 16, 896, 43940, 70, 2452, 48, 300, 5, ALL),
    RTX("rtx5080", 16, 960, 56280, 84, 2617, 64, 360, 5, ALL),
    RTX("rtx5090", 32, 1792, 104800, 170, 2407, 96, 575, 5, ALL),
    {"a4000", 16 * GB, 448, 19200, 48, 128, 1560, 4, 38300, 76700, 140, 8, ALL},
    {"a5000", 24 * GB, 768, 27800, 64, 128, 1695, 6, 55600, 111100, 230, 8, SHEET},
    {"a6000", 48 * GB, 768, 38700, 84, 128, 1800, 6, 77400, 154800, 300, 8, ALL},
    {"rtx6000ada", 48 * GB, 960, 91100, 142, 128, 2505, 96, 182100, 364200, 300, 5, SHEET},

    {"mi100", 32 * GB, 1228.8, 23100, 120, 64, 1502, 8, 0, 184600, 300, 7, ALL},
    {"mi210", 64 * GB, 1638.4, 22600, 104, 64, 1700, 8, 0, 181000, 300, 6, SHEET},
    {"mi250x", 64 * GB, 1638.4, 23950, 110, 64, 1700, 8, 0, 191500, 280, 6, SHEET},
    {"mi300x", 192 * GB, 5300, 163400, 304, 128, 2100, 32, 653700, 1307400, 750, 5, ALL},
    {"mi325x", 256 * GB, 6000, 163400, 304, 128, 2100, 32, 653700, 1307400, 1000, 5, ALL},

    {"orin", 64 * GB, 204.8, 5325, 16, 128, 1300, 4, 21250, 42500, 60, 8, SHEET},
    {"orin-nx", 16 * GB, 102.4, 1880, 8, 128, 918, 4, 7500, 15000, 25, 8, SHEET},
    {"orin-nano", 8 * GB, 68, 1280, 8, 128, 625, 2, 5000, 10000, 15, 8, ALL},
    {"xavier", 32 * GB, 136.5, 1410, 8, 64, 1377, 0.5, 0, 11000, 30, 12, PART},
    {"xavier-nx", 8 * GB, 59.7, 845, 6, 64, 1100, 0.5, 0, 6100, 20, 12, SHEET},

    {"cpu", 16 * GB, 25.6, 192, 4, 8, 3000, 8, 0, 0, 0, 0, RULE},
    CPUS(1, 8, 25.6),
    CPUS(2, 8, 25.6),
    CPUS(4, 16, 51.2),
    CPUS(8, 32, 51.2),
    CPUS(16, 64, 102.4),
    CPUS(32, 128, 204.8),
    CPUS(64, 256, 204.8),
    CPUS(128, 512, 460.8),
};

#define N_TYPES ((int)(sizeof types / sizeof types[0]))

/* Names that drivers report and that are not simply a type's with a family's name in front. Plain, as plain_name makes
 * them. Capacities that a driver reports for what is one type here: a cluster file's "memory" says what there is. */
static const struct {
    const char *name, *type;
} reported[] = {
    {"p100pcie16gb", "p100"},
    {"p100pcie12gb", "p100"},
    {"p100sxm216gb", "p100"},
    {"v100pcie32gb", "v100"},
    {"v100sxm232gb", "v100"},
    {"v100spcie32gb", "v100"},
    {"v100sxm332gb", "v100"},
    {"v100pcie16gb", "v100-16g"},
    {"v100sxm216gb", "v100-16g"},
    {"v10032g", "v100"},
    {"a100sxm440gb", "a100"},
    {"a100pcie40gb", "a100"},
    {"a10040g", "a100"},
    {"a100sxm480gb", "a100-80g"},
    {"a10080gbpcie", "a100-80g"},
    {"a100pcie80gb", "a100-80g"},
    {"a10080gb", "a100-80g"},
    {"h10080gbhbm3", "h100"},
    {"h100sxm", "h100"},
    {"h100sxm5", "h100"},
    {"h10080gbhbm2e", "h100-pcie"},
    {"h200sxm", "h200"},
    {"h200141gbhbm3e", "h200"},
    {"gh200480gb", "gh200"},
    {"gh20096gb", "gh200"},
    {"gh200144ghbm3e", "gh200-144g"},
    {"gh200144gbhbm3e", "gh200-144g"},
    {"b200180gb", "b200"},
    {"b200180gbhbm3e", "b200"},
    {"rtxa4000", "a4000"},
    {"rtxa5000", "a5000"},
    {"rtxa6000", "a6000"},
    {"6000ada", "rtx6000ada"},
    {"rtx6000adageneration", "rtx6000ada"},
    {"mi250xmi250", "mi250x"},
    {"mi300xoam", "mi300x"},
    {"mi250", "mi250x"},
    {"orinnvgpu", "orin"},
    {"agxorin", "orin"},
    {"agxxavier", "xavier"},
    {"gv11b", "xavier"},
    {"rtx308012gb", "rtx3080-12g"},
    {"rtx4060ti16gb", "rtx4060ti-16g"},
};

/* Letters and digits only, lower case, without the vendor's family names. */
static void plain_name(char *out, size_t size, const char *name)
{
    static const char *const family[] = {"nvidia", "amd", "tesla", "geforce", "instinct", "quadro", "jetson"};
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
    for (int i = 0; i < N_TYPES; i++) {
        plain_name(known, sizeof known, types[i].name);
        /* "2080 Ti" is as good as "RTX 2080 Ti". */
        if (!strcmp(wanted, known) || (!strncmp(known, "rtx", 3) && !strcmp(wanted, known + 3)))
            return &types[i];
    }
    return NULL;
}

const moirai_device_type *moirai_device_type_find(const char *name)
{
    char wanted[64];
    if (!name || strlen(name) >= sizeof wanted)
        return NULL;
    plain_name(wanted, sizeof wanted, name);
    for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
        if (!strcmp(wanted, reported[i].name))
            plain_name(wanted, sizeof wanted, reported[i].type);
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
    for (int i = 0; i < N_TYPES; i++) {
        plain_name(known, sizeof known, types[i].name);
        /* What a driver adds to a name (memory, form) comes behind it. */
        snprintf(cut, sizeof cut, "%.*s", (int)strlen(known), wanted);
        int d = UTIL_MIN(distance(wanted, known), strcmp(cut, known) ? 1000 : 3);
        if (!strncmp(known, "rtx", 3))
            d = UTIL_MIN(d, distance(wanted, known + 3));
        bool longer = best && d == least && !strcmp(cut, known) && strlen(types[i].name) > strlen(best->name);
        if (!best || d < least || longer) {
            best = &types[i];
            least = d;
        }
    }
    return *wanted && least <= UTIL_MAX(3, (int)strlen(wanted)) ? best : NULL; /* half of the letters are right */
}

int moirai_device_type_count(void)
{
    return N_TYPES;
}

const moirai_device_type *moirai_device_type_at(int index)
{
    return index >= 0 && index < N_TYPES ? &types[index] : NULL;
}
