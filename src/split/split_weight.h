/* Inside `split`: the file of one device's external weights. Private to split_model.c and split_constant.c. */
#ifndef MOIRAI_SPLIT_SPLIT_WEIGHT_H
#define MOIRAI_SPLIT_SPLIT_WEIGHT_H

#include <stdio.h>

#include "onnx/onnx_model.h"
#include "util/util.h"

typedef struct split_weights {
    FILE *stream; /* NULL: not open */
    const char *folder;
    char name[320];    /* in the folder */
    int64_t offset;    /* bytes written */
    util_names *known; /* "location:offset:length" -> number in `at` */
    char **key;        /* these names */
    int64_t *at;       /* where a range begins */
    size_t n, at_capacity, key_capacity;
} split_weights;

/* split_weights_close in every case. */
int split_weights_open(split_weights *w, const char *folder, const char *name);
/* Copies `length` bytes of where `d` says, beside the model, unless they are here; *offset: where they begin. */
int split_weights_put(split_weights *w, const char *model_path, const onnx_data *d, int64_t length, int64_t *offset);
/* Ends the file, if there is one. */
int split_weights_close(split_weights *w);

#endif
