/* Devices and the links between them, closed into a full mesh (model.md). */
#ifndef MOIRAI_CLUSTER_H
#define MOIRAI_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOIRAI_MAX_DEVICES 512
#define MOIRAI_MASK_DEVICES 64 /* what searches that keep a set of devices in one word take: exact, milp, rates ... */

/* What is known of a device type: the figures that cost models need. Zero: unknown. */
typedef struct moirai_device_type {
    const char *name;
    int64_t memory_bytes;
    double bandwidth_gb_s; /* 10^9 bytes per second of device memory */
    double gflops_fp32;
    int sm, cores_per_sm;
    double clock_mhz, l2_mb;
    /* Rates of matrix products on tensor cores (dense, summed in fp32); 0: none, products run at the fp32 rate. fp16 is
     * bf16's, too. */
    double gflops_tf32, gflops_fp16;
    double watt;        /* board power */
    double process_nm;  /* of its chip, by the foundry's name for it */
    const char *source; /* where the figures are from, and whether they were compared; static, or NULL */
    bool processor;     /* a CPU, whatever its vector units: its cores are no multiprocessors */
    double delivered;   /* the part of bandwidth_gb_s that its memory delivers at best; 0: all of it */
} moirai_device_type;

/* NULL if unknown. Case-insensitive; "RTX 2080 Ti", "rtx-2080ti" and "rtx2080ti" are one, and so are the names that
 * drivers report: "NVIDIA GeForce RTX 2080 Ti", "Tesla V100-PCIE-32GB", "NVIDIA H100 80GB HBM3", "AMD Instinct MI300X".
 */
MOIRAI_API const moirai_device_type *moirai_device_type_find(const char *name);
/* The known type whose name is the closest to one that is not known, or NULL where nothing is close. Static. */
MOIRAI_API const moirai_device_type *moirai_device_type_closest(const char *name);
/* How many device types the library knows. */
MOIRAI_API int moirai_device_type_count(void);
/* The type of that number, 0 to moirai_device_type_count() - 1. Static: never freed. */
MOIRAI_API const moirai_device_type *moirai_device_type_at(int index);

typedef struct moirai_device {
    char *name;
    char *type; /* "" if not given */
    int64_t memory_bytes;
    moirai_device_type figures; /* of its type, with the file's own overrides; name == type */
    bool generic;               /* a processor of unknown type and figures: those of "cpu" stand in */
    /* How `moirai run` reaches it; NULL or 0 where not given. */
    char *ep, *cores, *host;
    int threads;
    double share;     /* the part of a GPU that it is, above 0 and at most 1 (CUDA MPS); 0: not given, all of it */
    double launch_us; /* what its runtime needs to start an operator; 0: as the runtime that times are asked for */
} moirai_device;

typedef struct moirai_link {
    int32_t from, to;
    int64_t bytes_per_second, latency_ns;
} moirai_link;

typedef struct moirai_cluster {
    char *name;
    int32_t n_devices;
    moirai_device *device;
    int32_t n_links; /* as given, one direction each */
    moirai_link *link;
    size_t link_capacity;
    uint64_t *linked; /* bit from * MOIRAI_MAX_DEVICES + to: that link is there */
    /* The closure, [from * n_devices + to]; 0 on the diagonal. */
    int64_t *bytes_per_second;
    int64_t *latency_ns;
    bool cuts_measured; /* the latencies are those of runs, with all that a cut costs: no segment's price is added */
    char *notes; /* what looks odd in it, a line each, or NULL; what is merely worth knowing begins with "note: " */
} moirai_cluster;

/* A built-in name ("inter-server", "intra-server"), a file ("-" for stdin), or a one-line
 * description such as "4x v100 32GB nvlink 600Gbps", "2x v100, 2x p100 16GB, 100Gbps 5us" or "2x v100: pcie4; orin:
 * 1Gbps". */
MOIRAI_API int moirai_cluster_open(moirai_cluster **out, const char *name_or_path);
/* A cluster file from memory; `label` stands for its path in messages. *out is the caller's, to be freed with
 * moirai_cluster_free. MOIRAI_EINPUT, with *out NULL, on anything that docs/formats.md does not allow. */
MOIRAI_API int moirai_cluster_parse(moirai_cluster **out, const char *json, size_t length, const char *label);
/* A cluster from one line of text, such as "2x v100, 2x p100 16GB, 100Gbps 5us": every two devices linked alike; or in
 * groups between semicolons, each with its own link, "2x v100: nvlink2; 2x t4: pcie3; 10Gbps 20us" (docs/formats.md).
 * MOIRAI_EINPUT names the word that is not understood. */
MOIRAI_API int moirai_cluster_synthetic(moirai_cluster **out, const char *description);
/* How many clusters come with the library. */
MOIRAI_API int moirai_cluster_builtin_count(void);
/* The name of that one, which moirai_cluster_open takes. Static. */
MOIRAI_API const char *moirai_cluster_builtin_name(int index);
/* Writes a cluster file, atomically; `path` "-" is stdout. MOIRAI_EFAIL where that fails: the old file is untouched. */
MOIRAI_API int moirai_cluster_write(const moirai_cluster *c, const char *path);
/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_cluster_free(moirai_cluster *c);
/* Number of the device of that name, or -1. O(devices). */
MOIRAI_API int32_t moirai_cluster_find(const moirai_cluster *c, const char *device_name);

/* Whether it is a processor, not an accelerator: by its execution provider, else by its type; true where neither is
 * given, since `moirai run` takes the CPU then. */
MOIRAI_API bool moirai_device_is_processor(const moirai_device *d);
/* The GPU that a device's `ep` names: 0 for "cuda", N for "cuda:N", -1 for anything else (NULL, too). */
MOIRAI_API int moirai_ep_gpu(const char *ep);

/* What keeps two devices from working at the same time. */
typedef enum moirai_sharing {
    MOIRAI_SHARES_NOTHING = 0,
    MOIRAI_SHARES_CORES, /* their lists of cores overlap */
    MOIRAI_SHARES_GPU,   /* both use one GPU of the host, and are no parts of it that fit together */
    MOIRAI_SHARES_CPU    /* not kept on cores of their own, and their host has fewer cores than its devices threads */
} moirai_sharing;
/* What devices a and b of `c` share, as `moirai run` would start them. `host_cores`: cores of every host; 0 where that
 * is not known, and then only what the file says of cores and GPUs counts. O(devices). */
MOIRAI_API moirai_sharing moirai_cluster_sharing(const moirai_cluster *c, int32_t a, int32_t b, int host_cores);
/* "nothing", "cores", "a GPU", "the CPU of their host". Static. */
MOIRAI_API const char *moirai_sharing_name(moirai_sharing s);
/* The largest sets of devices (bit k: device k) of which no two share anything: none of them is part of another. Fills
 * at most `most` of them into `set` and returns how many; one set with all devices where nothing is shared,
 * none where there are more than MOIRAI_MASK_DEVICES. */
MOIRAI_API int moirai_cluster_apart(uint64_t *set, int most, const moirai_cluster *c, int host_cores);

/* "11GB" (10^9), "16GiB" (2^30) -> bytes; "44.26Gbps", "5.5GB/s" -> bytes per second;
 * "10us" -> nanoseconds. Exact decimal arithmetic, rounded down. */
MOIRAI_API int moirai_parse_bytes(int64_t *out, const char *text);
/* As above, for "44.26Gbps" and "5.5GB/s". */
MOIRAI_API int moirai_parse_rate(int64_t *out, const char *text);
/* As above, for "10us", "1.5ms", "2s", "300ns". */
MOIRAI_API int moirai_parse_duration(int64_t *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
