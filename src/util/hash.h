/* FNV-1a: short keys, no state, the same everywhere. Shared by the string store, the name map and what names content. */
#ifndef MOIRAI_UTIL_HASH_H
#define MOIRAI_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define UTIL_HASH_BEGIN 0xcbf29ce484222325u

/* The walk goes on from `h`: text by text, beginning with UTIL_HASH_BEGIN. */
static inline uint64_t util_hash_walk(uint64_t h, const void *data, size_t length)
{
    const unsigned char *at = (const unsigned char *)data;
    for (size_t i = 0; i < length; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

static inline uint64_t util_hash(const char *text, size_t length)
{
    uint64_t h = util_hash_walk(UTIL_HASH_BEGIN, text, length);
    return h ^ (h >> 32); /* tables use the low bits: mix the high ones in */
}

#endif
