/* Inside `split`: a plan on the nodes of its model. Private. */
#ifndef MOIRAI_SPLIT_SPLIT_H
#define MOIRAI_SPLIT_SPLIT_H

#include <moirai/graph.h>
#include <moirai/split.h>

#include "util/json.h"

/* A unit is what the plan calls an operator: a node of the model, or several that were fused. */
typedef struct split_transfer {
    int32_t tensor; /* of the units' graph */
    int32_t from, to;
    int64_t bytes, start_ns, finish_ns;
} split_transfer;

typedef struct split_segment {
    int32_t device;
    int32_t first, n_units;               /* in split_plan.order */
    int64_t start_ns, finish_ns, work_ns; /* planned; work: the units' times without gaps */
    int32_t n_nodes;
    char *file;             /* name in the folder */
    char **input, **output; /* tensors, by name */
    int32_t n_inputs, n_outputs;
} split_segment;

typedef struct split_plan {
    const char *label;
    char *placer;
    int64_t makespan_ns;
    const moirai_graph *units; /* the model's own graph, or the coarse one below */
    moirai_graph *coarse;
    int32_t n_devices;
    char **device;
    int32_t *unit_device;
    int64_t *unit_start_ns, *unit_finish_ns;
    int32_t n_transfers; /* sorted by start, then by their producers' order */
    split_transfer *transfer;
    int32_t *order; /* units by device, then by start */
    int32_t *device_off;
    int32_t n_segments; /* sorted by device, then in order */
    split_segment *segment;
    int32_t *unit_segment;
} split_plan;

/* ---- split_plan.c ---- names are resolved against `fine`, or against its coarsening by `rules` (see split.h). */
int split_plan_read(split_plan **out, const char *path, const moirai_graph *fine, const char *rules);
/* The same of a document that is there already, by its root. */
int split_plan_take(split_plan **out, yyjson_val *root, const char *path, const moirai_graph *fine, const char *rules);
void split_plan_free(split_plan *p);

/* ---- split_setting.c ---- dimensions and shapes: those given, and those of the plan that nobody gives anew. */
typedef struct split_settings {
    moirai_onnx_options onnx; /* texts belong to the plan's document and the caller */
    const char **text;        /* owned: the lists behind it */
} split_settings;
int split_settings_new(split_settings *s, yyjson_val *root, const char *path, const moirai_onnx_options *given);
void split_settings_free(split_settings *s);

/* ---- split_segment.c ---- */
int split_segments(split_plan *p);

/* ---- split_merge.c ---- fewer segments, given what one costs beside its operators. */
int split_merge(split_plan *p, int64_t price_ns);

/* ---- split_model.c ---- */
typedef struct onnx_network onnx_network; /* onnx/onnx_network.h */
int split_models(split_plan *p, onnx_network *net, const char *folder, moirai_split_report *report);

/* ---- split_manifest.c ---- */
int split_manifest(const split_plan *p, const onnx_network *net, const char *folder);

#endif
