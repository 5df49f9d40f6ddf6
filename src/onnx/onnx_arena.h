/* Memory that lives and dies together: what is known of a model, and messages made of parts of it. */
#ifndef MOIRAI_ONNX_ONNX_ARENA_H
#define MOIRAI_ONNX_ONNX_ARENA_H

#include <stddef.h>

typedef struct onnx_arena {
    struct onnx_chunk *chunks;
    char *next;
    size_t left;
} onnx_arena;

/* n objects of `size` bytes, zeroed; NULL and a message when out of memory. n may be 0. */
void *onnx_take(onnx_arena *a, size_t n, size_t size);
void onnx_arena_free(onnx_arena *a);

#endif
