/* Chunks in a list, filled from the front. */
#include "onnx/onnx_arena.h"

#include <stdint.h>
#include <stdlib.h>

#include <moirai/error.h>
#include "util/util.h"

#define CHUNK_BYTES (1u << 18)

typedef struct onnx_chunk {
    struct onnx_chunk *next;
    max_align_t data[];
} onnx_chunk;

void *onnx_take(onnx_arena *a, size_t n, size_t size)
{
    if (size && n > (SIZE_MAX / 2 - CHUNK_BYTES) / size) {
        moirai_error(MOIRAI_EFAIL, "out of memory");
        return NULL;
    }
    size_t bytes = (n * size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    bytes = UTIL_MAX(bytes, sizeof(max_align_t)); /* nothing is something, too: NULL means out of memory */
    if (bytes > a->left) {
        size_t room = UTIL_MAX(bytes, (size_t)CHUNK_BYTES);
        onnx_chunk *c = util_alloc(sizeof *c + room, 1);
        if (!c)
            return NULL;
        c->next = a->chunks;
        a->chunks = c;
        a->next = (char *)c->data;
        a->left = room;
    }
    void *at = a->next;
    a->next += bytes;
    a->left -= bytes;
    return at;
}

void onnx_arena_free(onnx_arena *a)
{
    for (onnx_chunk *c = a->chunks; c;) {
        onnx_chunk *next = c->next;
        free(c);
        c = next;
    }
    *a = (onnx_arena){0};
}
