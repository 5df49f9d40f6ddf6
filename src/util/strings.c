/* A store of strings that live and die together: bytes in large blocks, an open-addressing table on top so
 * that equal strings are stored once (a graph of 50,000 operators has a dozen types). */
#include "util/util.h"
#include "util/hash.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 16)

typedef struct block {
    struct block *next;
    char bytes[];
} block;

typedef struct slot {
    uint64_t hash;
    const char *text; /* NULL: free */
    size_t length;
} slot;

struct util_strings {
    block *blocks;
    char *at;
    size_t left;
    slot *slots;
    size_t n_slots, n_used; /* n_slots is a power of two */
};

util_strings *util_strings_new(void)
{
    util_strings *s = util_alloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->n_slots = 64;
    s->slots = util_alloc(s->n_slots, sizeof *s->slots);
    if (!s->slots) {
        free(s);
        return NULL;
    }
    return s;
}

void util_strings_free(util_strings *s)
{
    if (!s)
        return;
    for (block *b = s->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(s->slots);
    free(s);
}

static slot *find_slot(slot *slots, size_t n_slots, const char *text, size_t length, uint64_t hash)
{
    size_t i = hash & (n_slots - 1);
    while (slots[i].text && (slots[i].hash != hash || slots[i].length != length || memcmp(slots[i].text, text, length)))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

static int widen(util_strings *s)
{
    if (s->n_used * 2 < s->n_slots)
        return 0;
    size_t n = s->n_slots * 2;
    slot *slots = util_alloc(n, sizeof *slots);
    if (!slots)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < s->n_slots; i++) {
        const slot *old = &s->slots[i];
        if (old->text)
            *find_slot(slots, n, old->text, old->length, old->hash) = *old;
    }
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return 0;
}

static char *take_bytes(util_strings *s, size_t n)
{
    if (n > s->left) {
        size_t size = UTIL_MAX(n, BLOCK_BYTES);
        block *b = size > SIZE_MAX - sizeof *b ? NULL : util_resize(NULL, sizeof *b + size, 1);
        if (!b)
            return NULL;
        b->next = s->blocks;
        s->blocks = b;
        s->at = b->bytes;
        s->left = size;
    }
    char *p = s->at;
    s->at += n;
    s->left -= n;
    return p;
}

const char *util_strings_add(util_strings *s, const char *text, size_t length)
{
    uint64_t hash = util_hash(text, length);
    if (widen(s))
        return NULL;
    slot *place = find_slot(s->slots, s->n_slots, text, length, hash);
    if (place->text)
        return place->text;
    char *copy = take_bytes(s, length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *place = (slot){hash, copy, length};
    s->n_used++;
    return copy;
}
