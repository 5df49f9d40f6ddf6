/* What is known of device types: memory, bandwidth, rates, multiprocessors, clock, L2 cache, power, process.
 *
 * Sources, by family. P4 to A100: the device table published with NeuSight (MIT licence), which follows NVIDIA's data
 * sheets, but for the P4, which has 20 multiprocessors of 128 cores, and the P100's clock, which makes its rate. L4,
 * H100 (SXM, PCIe and NVL), H200, GH200, B200, A2 to A40, L40 and L40S: NVIDIA's data sheets of
 * these names (B200: an eighth of HGX B200's); the L4's multiprocessors as its driver reports them. GeForce: the white
 * papers of Pascal, Turing, Ampere GA102, Ada and Blackwell, and NVIDIA's product pages. RTX A and RTX 6000 Ada:
 * NVIDIA's data sheets. Instinct: AMD's data sheets; an MI250X is two devices to every runtime, and these are the
 * figures of one. Jetson: NVIDIA's module data sheets, at their largest power. A V100 is the SXM2 module that servers
 * and clouds have; the card for PCIe has a type of its own. Radeon RX: AMD's product pages; a compute unit issues two
 * instructions a cycle, which makes 128 cores; the cache is the Infinity Cache. Apple: Apple's technical specifications
 * of the largest variant (cores, memory, bandwidth); clocks, of which those of M3 and M4 were compared with public tables,
 * and the power of the GPU alone are estimates; the cache is that of the system. Arc: Intel's product pages, XMX engines in
 * fp16. Ryzen, EPYC, Xeon, Grace: the makers' product pages at the base clock, which is what all cores keep up with wide
 * vectors; the memory of a usual machine.
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
 * "cpu" and "cpu-..." are no products: "cpu" is four cores at 3 GHz with one 8-lane fused multiply-add unit each, behind one channel
 * of DDR4-3200; "cpu-CORES-SET" has the vector units that are usual with that instruction set (flops per cycle and
 * core: sse4 8, neon 16, avx2 32, avx512 64, amx also 2048 in bf16) and as many memory channels as such servers have.
 * Override figures in the cluster file where they matter. */
#include "cluster/device_table.h"

#define GB INT64_C(1000000000)
#define ALL "vendor's data sheet; compared with other public tables"
#define PART \
    "vendor's data sheet; cores, memory and bandwidth compared with other public tables, the rest not rechecked"
#define SHEET "vendor's data sheet, not rechecked"
#define AMD "AMD's product page of this name, not rechecked"
#define MAC "Apple's technical specifications, not rechecked; clock and power are not Apple's and are estimates"
#define ARC "Intel's product page of this name, not rechecked"
#define PAGE "maker's product page of this name, not rechecked"
#define RULE "by cores and instruction set, no product's"
/* What memory delivers of its stated bandwidth. GDDR of data-centre cards keeps its check bits beside the data (ECC, on
 * as delivered: 16 GB of a T4 are 15), HBM has wires for them, GeForce has none: an eighth. P100: NVIDIA on Volta's
 * memory controller, 95 % of the stated bandwidth on a V100 and 76 % on a P100. */
#define CHECKED 0.875
#define PASCAL_HBM 0.8
/* GeForce since Ampere: tf32 at the fp32 rate, fp16 at twice that. */
#define RTX(name, gb, gb_s, gflops, sm, mhz, l2, watt, nm, source) \
    { \
        name, gb *GB, gb_s, gflops, sm, 128, mhz, l2, gflops, 2 * gflops, watt, nm, source, false, 1 \
    }
/* Turing: fp16 at four times the fp32 rate. */
#define TURING(name, gb, gb_s, gflops, sm, mhz, l2, watt, source) \
    { \
        name, gb *GB, gb_s, gflops, sm, 64, mhz, l2, 0, 4 * gflops, watt, 12, source, false, 1 \
    }
/* cores_per_sm of a CPU: flops per cycle and core / 2. */
#define CPU(name, cores, gb, gb_s, flops, mhz, fp16) \
    { \
        name, gb *GB, gb_s, (cores) * (flops) * (mhz) / 1000.0, cores, (flops) / 2, mhz, 1.5 * (cores), 0, \
            (cores) * (fp16) * (mhz) / 1000.0, 0, 0, RULE, true, 1 \
    }
/* A processor that is a product: its last cache, no power limit (the base clock holds). */
#define CHIP(name, cores, gb, gb_s, flops, mhz, cache, fp16, source) \
    { \
        name, gb *GB, gb_s, (cores) * (flops) * (mhz) / 1000.0, cores, (flops) / 2, mhz, cache, 0, \
            (cores) * (fp16) * (mhz) / 1000.0, 0, 0, source, true, 1 \
    }
/* RDNA: fp16 on matrix units at `fp16` times the fp32 rate. */
#define RADEON(name, gb, gb_s, gflops, cu, mhz, cache, fp16, watt, nm) \
    { \
        name, gb *GB, gb_s, gflops, cu, 128, mhz, cache, 0, fp16 *gflops, watt, nm, AMD, false, 1 \
    }
#define APPLE(name, gb, gb_s, cores, mhz, cache, watt, nm) \
    { \
        name, gb *GB, gb_s, (cores)*0.256 * (mhz), cores, 128, mhz, cache, 0, 0, watt, nm, MAC, false, 1 \
    }
#define CPUS(n, gb, gb_s) \
    CPU("cpu-" #n "-sse4", n, gb, gb_s, 8, 3000, 0), CPU("cpu-" #n "-neon", n, gb, gb_s, 16, 2600, 0), \
        CPU("cpu-" #n "-avx2", n, gb, gb_s, 32, 3000, 0), CPU("cpu-" #n "-avx512", n, gb, gb_s, 64, 2500, 0), \
        CPU("cpu-" #n "-amx", n, gb, gb_s, 64, 2500, 2048)

const moirai_device_type cluster_types[] = {
    /* name, memory, GB/s, GFLOPS fp32, SMs, cores per SM, MHz, L2 MB, GFLOPS tf32, GFLOPS fp16, W, nm, source, CPU?, delivered */
    {"p4", 8 * GB, 192, 5699, 20, 128, 1113, 2, 0, 0, 75, 16, ALL, false, CHECKED},
    {"p40", 24 * GB, 346, 11758, 30, 128, 1531, 3, 0, 0, 250, 16, ALL, false, CHECKED},
    {"p100", 16 * GB, 732, 9519, 56, 64, 1328, 4, 0, 19038, 300, 16, ALL, false, PASCAL_HBM},
    {"v100", 32 * GB, 900, 15670, 80, 64, 1530, 6, 0, 125000, 300, 12, ALL, false, 1},
    {"v100-16g", 16 * GB, 900, 15670, 80, 64, 1530, 6, 0, 125000, 300, 12, ALL, false, 1},
    {"v100-pcie", 32 * GB, 900, 14130, 80, 64, 1380, 6, 0, 112000, 250, 12, ALL, false, 1},
    {"v100-pcie-16g", 16 * GB, 900, 14130, 80, 64, 1380, 6, 0, 112000, 250, 12, ALL, false, 1},
    {"v100s", 32 * GB, 1134, 16350, 80, 64, 1597, 6, 0, 130000, 250, 12, SHEET, false, 1},
    {"t4", 15 * GB, 320, 8141, 40, 64, 1590, 4, 0, 65000, 70, 12, ALL, false, CHECKED},
    {"a2", 16 * GB, 200, 4531, 10, 128, 1770, 2, 9000, 18000, 60, 8, ALL, false, CHECKED},
    {"a10", 24 * GB, 600, 31240, 72, 128, 1695, 6, 62500, 125000, 150, 8, ALL, false, CHECKED},
    {"a10g", 24 * GB, 600, 35020, 80, 128, 1710, 6, 35000, 70000, 300, 8, SHEET, false, CHECKED},
    {"a30", 24 * GB, 933, 10300, 56, 64, 1440, 24, 82000, 165000, 165, 7, SHEET, false, 1},
    {"a40", 48 * GB, 696, 37400, 84, 128, 1740, 6, 74800, 149700, 300, 8, ALL, false, CHECKED},
    {"a100", 40 * GB, 1555, 19492, 108, 64, 1410, 40, 156000, 312000, 400, 7, ALL, false, 1},
    {"a100-80g", 80 * GB, 1935, 19492, 108, 64, 1410, 40, 156000, 312000, 400, 7, ALL, false, 1},
    {"l4", 24 * GB, 300, 30293, 58, 128, 2040, 48, 60000, 121000, 72, 5, ALL, false, CHECKED},
    {"l40", 48 * GB, 864, 90500, 142, 128, 2490, 96, 90500, 181050, 300, 5, PART, false, CHECKED},
    {"l40s", 48 * GB, 864, 91600, 142, 128, 2520, 96, 183000, 362050, 350, 5, ALL, false, CHECKED},
    {"h100", 80 * GB, 3350, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, ALL, false, 1},
    {"h100-pcie", 80 * GB, 2000, 51200, 114, 128, 1755, 50, 378000, 756000, 350, 5, ALL, false, 1},
    {"h100-nvl", 94 * GB, 3900, 60000, 132, 128, 1785, 50, 417500, 835500, 400, 5, PART, false, 1},
    {"h200", 141 * GB, 4800, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, ALL, false, 1},
    {"h200-nvl", 141 * GB, 4800, 60000, 132, 128, 1785, 50, 417500, 835500, 600, 5, PART, false, 1},
    {"gh200", 96 * GB, 4000, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, PART, false, 1},
    {"gh200-144g", 144 * GB, 4900, 66908, 132, 128, 1980, 50, 494500, 989400, 700, 5, PART, false, 1},
    {"b200", 180 * GB, 7700, 75000, 148, 128, 1965, 126, 1100000, 2250000, 1000, 5, ALL, false, 1},

    {"gtx1050", 2 * GB, 112, 1862, 5, 128, 1455, 1, 0, 0, 75, 14, SHEET, false, 1},
    {"gtx1060", 6 * GB, 192, 4372, 10, 128, 1708, 1.5, 0, 0, 120, 16, ALL, false, 1},
    {"gtx1070", 8 * GB, 256, 6463, 15, 128, 1683, 2, 0, 0, 150, 16, SHEET, false, 1},
    {"gtx1080", 8 * GB, 320, 8873, 20, 128, 1733, 2, 0, 0, 180, 16, PART, false, 1},
    {"gtx1080ti", 11 * GB, 484, 11340, 28, 128, 1582, 2.75, 0, 0, 250, 16, PART, false, 1},
    TURING("rtx2060", 6, 336, 6451, 30, 1680, 3, 160, ALL),
    TURING("rtx2060super", 8, 448, 7181, 34, 1650, 4, 175, ALL),
    TURING("rtx2070", 8, 448, 7465, 36, 1620, 4, 175, ALL),
    TURING("rtx2070super", 8, 448, 9062, 40, 1770, 4, 215, ALL),
    TURING("rtx2080", 8, 448, 10068, 46, 1710, 4, 215, ALL),
    TURING("rtx2080super", 8, 496, 11151, 48, 1815, 4, 250, SHEET),
    TURING("rtx2080ti", 11, 616, 13448, 68, 1545, 5.5, 250, ALL),
    {"titanrtx", 24 * GB, 672, 16312, 72, 64, 1770, 6, 0, 130500, 280, 12, SHEET, false, 1},
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
    {"a4000", 16 * GB, 448, 19200, 48, 128, 1560, 4, 38300, 76700, 140, 8, ALL, false, 1},
    {"a5000", 24 * GB, 768, 27800, 64, 128, 1695, 6, 55600, 111100, 230, 8, SHEET, false, 1},
    {"a6000", 48 * GB, 768, 38700, 84, 128, 1800, 6, 77400, 154800, 300, 8, ALL, false, 1},
    {"rtx6000ada", 48 * GB, 960, 91100, 142, 128, 2505, 96, 182100, 364200, 300, 5, SHEET, false, 1},

    RADEON("rx7600", 8, 288, 21750, 32, 2655, 32, 2, 165, 6),
    RADEON("rx7600xt", 16, 288, 22570, 32, 2755, 32, 2, 190, 6),
    RADEON("rx7700xt", 12, 432, 35170, 54, 2544, 48, 2, 245, 5),
    RADEON("rx7800xt", 16, 624, 37320, 60, 2430, 64, 2, 263, 5),
    RADEON("rx7900gre", 16, 576, 45980, 80, 2245, 64, 2, 260, 5),
    RADEON("rx7900xt", 20, 800, 51480, 84, 2394, 80, 2, 315, 5),
    RADEON("rx7900xtx", 24, 960, 61390, 96, 2498, 96, 2, 355, 5),
    RADEON("rx9060xt", 16, 320, 25640, 32, 3130, 32, 4, 160, 4),
    RADEON("rx9070", 16, 640, 36130, 56, 2520, 64, 4, 220, 4),
    RADEON("rx9070xt", 16, 640, 48660, 64, 2970, 64, 4, 304, 4),

    APPLE("m1", 16, 68.25, 8, 1278, 8, 15, 5),
    APPLE("m1-pro", 32, 204.8, 16, 1296, 24, 30, 5),
    APPLE("m1-max", 64, 409.6, 32, 1296, 48, 60, 5),
    APPLE("m1-ultra", 128, 819.2, 64, 1296, 96, 120, 5),
    APPLE("m2", 24, 102.4, 10, 1398, 8, 15, 5),
    APPLE("m2-pro", 32, 204.8, 19, 1398, 24, 35, 5),
    APPLE("m2-max", 96, 409.6, 38, 1398, 48, 65, 5),
    APPLE("m2-ultra", 192, 819.2, 76, 1398, 96, 130, 5),
    APPLE("m3", 24, 102.4, 10, 1398, 8, 15, 4),
    APPLE("m3-pro", 36, 153.6, 18, 1398, 12, 30, 4),
    APPLE("m3-max", 128, 409.6, 40, 1398, 48, 65, 4),
    APPLE("m4", 32, 120, 10, 1470, 8, 15, 4),
    APPLE("m4-pro", 64, 273, 20, 1578, 24, 35, 4),
    APPLE("m4-max", 128, 546, 40, 1578, 48, 70, 4),

    {"arc-a380", 6 * GB, 186, 4198, 8, 128, 2050, 4, 0, 33600, 75, 6, ARC, false, 1},
    {"arc-a580", 8 * GB, 512, 12290, 24, 128, 2000, 8, 0, 98300, 185, 6, ARC, false, 1},
    {"arc-a750", 8 * GB, 512, 14690, 28, 128, 2050, 16, 0, 117500, 225, 6, ARC, false, 1},
    {"arc-a770", 16 * GB, 560, 17200, 32, 128, 2100, 16, 0, 137600, 225, 6, ARC, false, 1},
    {"arc-b570", 10 * GB, 380, 11520, 18, 128, 2500, 13.5, 0, 92200, 150, 5, ARC, false, 1},
    {"arc-b580", 12 * GB, 456, 13670, 20, 128, 2670, 18, 0, 109400, 190, 5, ARC, false, 1},

    {"mi100", 32 * GB, 1228.8, 23100, 120, 64, 1502, 8, 0, 184600, 300, 7, ALL, false, 1},
    {"mi210", 64 * GB, 1638.4, 22600, 104, 64, 1700, 8, 0, 181000, 300, 6, SHEET, false, 1},
    {"mi250x", 64 * GB, 1638.4, 23950, 110, 64, 1700, 8, 0, 191500, 280, 6, SHEET, false, 1},
    {"mi300x", 192 * GB, 5300, 163400, 304, 128, 2100, 32, 653700, 1307400, 750, 5, ALL, false, 1},
    {"mi325x", 256 * GB, 6000, 163400, 304, 128, 2100, 32, 653700, 1307400, 1000, 5, ALL, false, 1},

    {"orin", 64 * GB, 204.8, 5325, 16, 128, 1300, 4, 21250, 42500, 60, 8, SHEET, false, 1},
    {"orin-32g", 32 * GB, 204.8, 3333, 14, 128, 930, 4, 13300, 26600, 40, 8, SHEET, false, 1},
    {"orin-nx", 16 * GB, 102.4, 1880, 8, 128, 918, 4, 7500, 15000, 25, 8, SHEET, false, 1},
    {"orin-nx-8g", 8 * GB, 102.4, 1567, 8, 128, 765, 4, 6250, 12500, 20, 8, SHEET, false, 1},
    {"orin-nano", 8 * GB, 68, 1280, 8, 128, 625, 2, 5000, 10000, 15, 8, ALL, false, 1},
    {"orin-nano-super", 8 * GB, 102, 2089, 8, 128, 1020, 2, 8150, 16300, 25, 8, PART, false, 1},
    {"orin-nano-4g", 4 * GB, 34, 640, 4, 128, 625, 2, 2500, 5000, 10, 8, SHEET, false, 1},
    {"xavier", 32 * GB, 136.5, 1410, 8, 64, 1377, 0.5, 0, 11000, 30, 12, PART, false, 1},
    {"xavier-nx", 8 * GB, 59.7, 845, 6, 64, 1100, 0.5, 0, 6100, 20, 12, SHEET, false, 1},

    CHIP("ryzen-5600x", 6, 32, 51.2, 32, 3700, 32, 0, PAGE),
    CHIP("ryzen-5950x", 16, 64, 51.2, 32, 3400, 64, 0, PAGE),
    CHIP("ryzen-7700x", 8, 32, 83.2, 32, 4500, 32, 0, PAGE),
    CHIP("ryzen-7950x", 16, 64, 83.2, 32, 4500, 64, 0, PAGE),
    CHIP("ryzen-9950x", 16, 64, 89.6, 64, 4300, 64, 0, PAGE),
    CHIP("epyc-7763", 64, 256, 204.8, 32, 2450, 256, 0, PAGE),
    CHIP("epyc-9654", 96, 384, 460.8, 32, 2400, 384, 0, PAGE),
    CHIP("xeon-6248", 20, 192, 140.8, 64, 2500, 27.5, 0, PAGE),
    CHIP("xeon-8280", 28, 192, 140.8, 64, 2700, 38.5, 0, PAGE),
    CHIP("xeon-8380", 40, 256, 204.8, 64, 2300, 60, 0, PAGE),
    CHIP("xeon-8480", 56, 256, 307.2, 64, 2000, 105, 2048, PAGE),
    CHIP("grace", 72, 480, 512, 32, 3100, 114, 0, PAGE),
    {"cpu", 16 * GB, 25.6, 192, 4, 8, 3000, 8, 0, 0, 0, 0, RULE, true, 1},
    CPUS(1, 8, 25.6),
    CPUS(2, 8, 25.6),
    CPUS(4, 16, 51.2),
    CPUS(8, 32, 51.2),
    CPUS(16, 64, 102.4),
    CPUS(32, 128, 204.8),
    CPUS(64, 256, 204.8),
    CPUS(128, 512, 460.8),
};

const int cluster_n_types = (int)(sizeof cluster_types / sizeof *cluster_types);

/* Names that drivers report and that are not simply a type's with a family's name in front. Plain, as plain_name makes
 * them. Capacities that a driver reports for what is one type here: a cluster file's "memory" says what there is. */
const cluster_alias cluster_reported[] = {
    {"p100pcie16gb", "p100"},
    {"p100pcie12gb", "p100"},
    {"p100sxm216gb", "p100"},
    {"v100pcie32gb", "v100-pcie"},
    {"v100sxm2", "v100"},
    {"v100sxm232gb", "v100"},
    {"v100spcie32gb", "v100s"},
    {"v100sxm332gb", "v100"},
    {"v100pcie16gb", "v100-pcie-16g"},
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
    {"agxorin64gb", "orin"},
    {"agxorin32gb", "orin-32g"},
    {"orinnx16gb", "orin-nx"},
    {"orinnx8gb", "orin-nx-8g"},
    {"orinnano8gb", "orin-nano"},
    {"orinnano4gb", "orin-nano-4g"},
    {"orinnanosuper8gb", "orin-nano-super"},
    {"agxxavier", "xavier"},
    {"gv11b", "xavier"},
    {"rtx308012gb", "rtx3080-12g"},
    {"rtx4060ti16gb", "rtx4060ti-16g"},
};

const int cluster_n_reported = (int)(sizeof cluster_reported / sizeof *cluster_reported);

/* Stated memory tells which one it is. Where two have as much, the slower: nobody is promised too much. */
const cluster_variant cluster_variants[] = {
    {"orin", 32, "orin-32g"},     {"orin", 16, "orin-nx"},        {"orin", 8, "orin-nano"},
    {"orin", 4, "orin-nano-4g"},  {"orin-nx", 8, "orin-nx-8g"},   {"orin-nano", 4, "orin-nano-4g"},
    {"a100", 80, "a100-80g"},     {"rtx3080", 12, "rtx3080-12g"}, {"rtx4060ti", 16, "rtx4060ti-16g"},
    {"gh200", 144, "gh200-144g"},
};

const int cluster_n_variants = (int)(sizeof cluster_variants / sizeof *cluster_variants);
