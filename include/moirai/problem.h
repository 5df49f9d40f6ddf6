/* A placement problem with all numbers settled: what placers read (model.md, "Problem"). */
#ifndef MOIRAI_PROBLEM_H
#define MOIRAI_PROBLEM_H

#include <moirai/cluster.h>
#include <moirai/cost.h>
#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moirai_flow { MOIRAI_FLOW_TENSOR, MOIRAI_FLOW_EDGE } moirai_flow;
typedef enum moirai_congestion {
    MOIRAI_CONGESTION_PORT,
    MOIRAI_CONGESTION_CHANNEL,
    MOIRAI_CONGESTION_NONE,
    MOIRAI_CONGESTION_DEVICE
} moirai_congestion;
typedef enum moirai_memory { MOIRAI_MEMORY_STATIC, MOIRAI_MEMORY_PEAK } moirai_memory;

#define MOIRAI_NEVER (-1) /* time_ns where a device can't run an operator */

typedef struct moirai_problem {
    char *name;
    moirai_flow flow;
    moirai_congestion congestion;
    moirai_memory memory;

    int32_t n_devices; /* 1 .. MOIRAI_MAX_DEVICES */
    const char **device_name;
    int64_t *device_memory_bytes;
    int64_t *bytes_per_second; /* [from * n_devices + to]; 0 on the diagonal */
    int64_t *latency_ns;

    int32_t n_ops;
    const char **op_name;
    const char **op_type;
    int64_t *op_memory_bytes; /* what it needs for itself, shared weights aside */
    int64_t *op_time_ns;      /* [op * n_devices + device], MOIRAI_NEVER where it can't run */
    int32_t *op_group;        /* keep-together group, MOIRAI_NONE where free */
    int32_t n_groups;
    const char **group_name;
    /* Devices that can run the operator and all of its group: moirai_device_words(p) words per operator, device k is bit
     * k % 64 of word k / 64. With up to MOIRAI_MASK_DEVICES devices that is one mask per operator. */
    uint64_t *op_devices;

    int32_t *op_in_off, *op_in;   /* operator -> distinct tensors read that some operator produces */
    int32_t *op_out_off, *op_out; /* operator -> tensors written */

    int32_t n_tensors; /* produced tensors only */
    const char **tensor_name;
    int64_t *tensor_bytes;
    int32_t *tensor_producer;
    int32_t *tensor_class;  /* tensors of one class have one table of transfer times */
    bool *tensor_has_table; /* the file gave transfer_ns for it */
    int32_t n_classes;
    int64_t *class_transfer_ns; /* [(class * n_devices + from) * n_devices + to]; 0 on the diagonal */

    /* Edge e is the pair (edge_tensor[e], edge_reader[e]); edges of one tensor are neighbours, readers
     * ascending: tensor t has edges tensor_edge_off[t] .. tensor_edge_off[t+1]-1. */
    int32_t n_edges;
    int32_t *edge_tensor, *edge_reader;
    int32_t *tensor_edge_off;
    int32_t *op_in_edge; /* parallel to op_in: the edge of that input */

    int32_t *topo; /* topological order: as read, least number first among the ready */
    int32_t *topo_rank;

    /* Weights that several operators read: a device that runs any of the readers holds it once. In both memory modes
     * they count beside op_memory_bytes. */
    int32_t n_weights;
    const char **weight_name;
    int64_t *weight_bytes;
    int32_t *weight_reader_off, *weight_reader; /* weight -> its readers, ascending; at least two */

    /* How the ONNX model's open dimensions were set, as the graph has it. */
    int32_t n_dims, n_shapes;
    const char **dim, **shape;
    int32_t n_assumed; /* and what was assumed of those that nobody set */
    const char **assumed;
    /* Operators by type ("4 Loop") of which nobody knows what they cost, where they matter: they have the time of a
     * launch and their traffic, and what is gained with such times is not known. */
    int32_t n_uncosted;
    const char **uncosted;

    /* Network inputs and weights that operators read, as the file names them (kept for the writer). */
    int32_t *op_extern_off;
    const char **op_extern;

    /* Names of what was fused into an operator, where that is known: by them the user's wishes and questions find it. */
    int32_t *op_member_off;
    const char **op_member;

    bool partial; /* made from a plan alone (moirai_problem_of_plan): what depends on what, and memory, are not known */

    void *store; /* owns every string above */

    int64_t *device_launch_ns; /* what starting an operator costs there, on average; 0 where that is not known */
    int64_t
        *device_segment_ns;   /* of the latencies of all channels into it, what its segments cost beside the message */
    const char **device_type; /* what the cluster calls its kind, "v100"; "" where that is not known. For people */
    int64_t move_ns_per_mb;   /* what moving 10^6 bytes costs beside the link: part of the bandwidths of all channels */
    /* The whole network on a device, run as one, where that was measured; else 0. Times of operators do not add up to
     * it: plans are compared with it (moirai_alone_find), and it is no part of the model. */
    int64_t *device_whole_ns;
} moirai_problem;

static inline int32_t moirai_device_words(const moirai_problem *p)
{
    return (p->n_devices + 63) / 64;
}

/* Whether the operator, with all of its group, can run on the device. */
static inline bool moirai_op_may(const moirai_problem *p, int32_t op, int32_t device)
{
    return p->op_devices[(int64_t)op * moirai_device_words(p) + device / 64] >> device % 64 & 1;
}

/* The first device that can run the operator. */
static inline int32_t moirai_op_first(const moirai_problem *p, int32_t op)
{
    int32_t k = 0;
    while (!moirai_op_may(p, op, k))
        k++;
    return k;
}

/* Time to move tensor t from device a to device b; 0 if a == b. */
static inline int64_t moirai_transfer_ns(const moirai_problem *p, int32_t t, int32_t a, int32_t b)
{
    return p->class_transfer_ns[((int64_t)p->tensor_class[t] * p->n_devices + a) * p->n_devices + b];
}

static inline int64_t moirai_op_ns(const moirai_problem *p, int32_t op, int32_t device)
{
    return p->op_time_ns[(int64_t)op * p->n_devices + device];
}

/* The operator's time where it is quickest. */
static inline int64_t moirai_op_least_ns(const moirai_problem *p, int32_t op)
{
    const int64_t *ns = p->op_time_ns + (int64_t)op * p->n_devices;
    const uint64_t *may = p->op_devices + (int64_t)op * moirai_device_words(p);
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t here = may[k / 64] >> k % 64 & 1 ? ns[k] : INT64_MAX;
        least = here < least ? here : least;
    }
    return least;
}

/* One line of the user's wishes: `pattern` is a shell pattern over operator names (fnmatch). */
typedef enum moirai_wish_kind { MOIRAI_PIN, MOIRAI_FORBID, MOIRAI_TOGETHER } moirai_wish_kind;
typedef struct moirai_wish {
    moirai_wish_kind kind;
    const char *pattern;
    const char *devices; /* comma-separated device names; unused by MOIRAI_TOGETHER */
} moirai_wish;

typedef struct moirai_problem_options {
    moirai_flow flow;
    moirai_congestion congestion;
    moirai_memory memory;
    const char *name;       /* NULL: "<graph>-<cluster>" */
    const char *cost_model; /* NULL: "auto" */
    const moirai_wish *wishes;
    int n_wishes;
    moirai_cost_report *cost_report; /* gets where the times came from; may be NULL */
    moirai_runtime runtime;          /* whose launches the times have */
    bool tf32;                       /* fp32 products at the tf32 rate of devices that have one */
    /* What a cut takes of its devices' time beside the message: part of every transfer between two devices. */
    int64_t segment_ns;     /* a segment of its own, added to latencies; 0 .. 10^12. MOIRAI_UNKNOWN: what the runtime's
                           segments cost the receiver (moirai_runtime_segment_ns), nothing where the cluster's cuts were
                           measured; `runtime` unset: of the runtime whose launches the cost model's times have */
    int64_t move_ns_per_mb; /* 10^6 bytes that leave or enter, taken off bandwidths; 0 .. 10^12 */
} moirai_problem_options;

/* Settle all numbers: times from the cost model, memory = weights + workspace, transfers from the
 * closed mesh. A pattern that matches nothing, or an operator left without any device, is an error. */
MOIRAI_API int moirai_problem_new(moirai_problem **out, const moirai_graph *g, const moirai_cluster *c,
                                  const moirai_problem_options *options);
/* Apply wishes to an existing problem (in place; on failure the problem is unchanged). */
MOIRAI_API int moirai_problem_wish(moirai_problem *p, const moirai_wish *wishes, int n_wishes);
/* The same where `g` knows what was fused: an operator of `p` is one of `g`, or a member of one, and a pattern that
 * fits the name of that operator of `g` or of any of its members holds for the operator. So wishes by the names of a
 * model hold for the fused operators that swallowed them, and for all their members when the plan is expanded.
 * MOIRAI_EINPUT where an operator of `p` is not in `g`. */
MOIRAI_API int moirai_problem_wish_fused(moirai_problem *p, const moirai_graph *g, const moirai_wish *wishes,
                                         int n_wishes);
/* A problem file. *out is the caller's; NULL on failure. MOIRAI_EINPUT names file, object, key and value. O((V+E) log
 * V). */
MOIRAI_API int moirai_problem_read(moirai_problem **out, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_problem_parse(moirai_problem **out, const char *json, size_t length, const char *label);
/* Writes a problem file, atomically; `path` "-" is stdout. */
MOIRAI_API int moirai_problem_write(const moirai_problem *p, const char *path);
/* The same in memory: *out is the caller's, to be given to free(); NULL on failure. */
MOIRAI_API int moirai_problem_text(char **out, size_t *length, const moirai_problem *p);
/* The problem without the operators that `gone` marks: what they wrote comes from outside, what they alone read is read
 * by nobody. Operators keep their order. A plan of `p` without them is one of this problem, in memory mode static.
 * O(V+E). */
MOIRAI_API int moirai_problem_without(moirai_problem **out, const moirai_problem *p, const bool *gone);
/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_problem_free(moirai_problem *p);

/* One change of the cluster under a problem: what-ifs. */
typedef enum moirai_change_kind {
    MOIRAI_CHANGE_NONE,
    MOIRAI_CHANGE_LINK,  /* between a and b, both ways, twice as fast: bandwidth doubled, latency halved (rounded up) */
    MOIRAI_CHANGE_SPEED, /* device a twice as fast: every time halved, rounded up */
    MOIRAI_CHANGE_MEMORY, /* device a with twice the memory */
    MOIRAI_CHANGE_LESS,   /* without device a */
    MOIRAI_CHANGE_MORE /* a second device like a, last; the two talk as fast as a and b, where b is not MOIRAI_NONE, and
                          otherwise as fast as a's quickest channel */
} moirai_change_kind;
typedef struct moirai_change {
    moirai_change_kind kind;
    int32_t a, b; /* devices; MOIRAI_NONE where the kind needs none */
} moirai_change;

/* The problem with that change; all else, names included, stays. A link is one of the cluster `c`, whose mesh is closed
 * anew; it must be the cluster of the problem (MOIRAI_EINPUT if its devices or channels differ). Without a cluster
 * (NULL) every pair of devices is a link of its own. Tensors with transfer times of their own move over the changed
 * pairs in half the time, rounded up. MOIRAI_EINFEASIBLE where an operator is left without any device. O((V+E) K +
 * tables). */
MOIRAI_API int moirai_problem_change(moirai_problem **out, const moirai_problem *p, const moirai_cluster *c,
                                     const moirai_change *change);

/* MOIRAI_EINFEASIBLE, with the numbers in the message, where memory can't fit for a plain reason: an operator or a
 * group is larger than every device that it may use, or all of them together than all devices together. Holds for
 * both memory modes. 0 does not promise that a plan exists. O(V K). */
MOIRAI_API int moirai_problem_check_memory(const moirai_problem *p);

/* A number that names the problem's content: devices, channels, operators with their times, sizes, groups, tensors and
 * edges, not its own name. Problems that differ have different digests, but for one chance in 2^64. O(V K + E). */
MOIRAI_API uint64_t moirai_problem_digest(const moirai_problem *p);
/* Bytes of shared weights that device k holds where `op_device` places the operators, added to need_bytes[k]. */
MOIRAI_API void moirai_problem_add_weights(const moirai_problem *p, const int32_t *op_device, int64_t *need_bytes);

/* Number of the operator of that name, or MOIRAI_NONE. O(V). */
MOIRAI_API int32_t moirai_problem_find_op(const moirai_problem *p, const char *name);
/* Whether the operator's name, or that of one fused into it, fits the shell pattern, as wishes find operators. */
MOIRAI_API bool moirai_problem_op_fits(const moirai_problem *p, int32_t op, const char *pattern);
/* Number of the device of that name, or MOIRAI_NONE. O(devices). */
MOIRAI_API int32_t moirai_problem_find_device(const moirai_problem *p, const char *name);
/* Number of the produced tensor of that name, or MOIRAI_NONE. O(tensors). */
MOIRAI_API int32_t moirai_problem_find_tensor(const moirai_problem *p, const char *name);

/* Its name in files. Static. */
MOIRAI_API const char *moirai_flow_name(moirai_flow f);
/* Its name in files. Static. */
MOIRAI_API const char *moirai_congestion_name(moirai_congestion c);
/* Its name in files. Static. */
MOIRAI_API const char *moirai_memory_name(moirai_memory m);
/* "tensor" or "edge"; MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_flow_parse(moirai_flow *out, const char *text);
/* "port", "channel" or "none"; MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_congestion_parse(moirai_congestion *out, const char *text);
/* "static" or "peak"; MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_memory_parse(moirai_memory *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
