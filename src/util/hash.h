/* FNV-1a: short keys, no state, the same everywhere. Shared by the string store and the name map. */
#ifndef MOIRAI_UTIL_HASH_H
#define MOIRAI_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t util_hash(const char *text, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h ^ (h >> 32); /* tables use the low bits: mix the high ones in */
}

#endif
