/* A plan applied to its ONNX model: sub-models that one device each runs, and a manifest (feature "onnx"). */
#ifndef MOIRAI_SPLIT_H
#define MOIRAI_SPLIT_H

#include <moirai/onnx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_split_options {
    moirai_onnx_options onnx; /* dimensions and shapes; those that the plan remembers need not be given again */
    int64_t segment_ns;       /* what a sub-model takes beside its operators: fewer where that saves time; 0: nothing */
    const char *rules;        /* fusion rules that the plan was made with; NULL: none, onnxruntime and eigen in turn */
} moirai_split_options;

typedef struct moirai_split_report {
    int32_t n_devices; /* that the plan names */
    int32_t n_used;    /* that run something */
    int32_t n_segments, n_transfers, n_nodes;
    int64_t file_bytes;  /* of all sub-models and their data */
    int64_t makespan_ns; /* as planned */
} moirai_split_report;

/* Reads the plan and the model, and writes "manifest.json" (docs/run.md) and one ".onnx" per segment into `folder`,
 * which is made if missing; weights of external files go to one ".data" per device. A segment is a run of operators
 * that follow each other on a device; it ends where it must wait for a transfer or where a result must leave early.
 * With `segment_ns` neighbours are merged where that is no later in all (src/split/split_merge.c).
 * MOIRAI_EINPUT where the plan does not belong to the model. `options` and `report` may be NULL.
 * O(nodes + edges + weights), and O(segments x constants) for constants that many segments share. */
MOIRAI_API int moirai_split(const char *plan_path, const char *model_path, const char *folder,
                            const moirai_split_options *options, moirai_split_report *report);

#ifdef __cplusplus
}
#endif
#endif
