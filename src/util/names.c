/* Names to numbers by open addressing; the map keeps pointers, not copies. */
#include "util/util.h"
#include "util/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    uint64_t hash;
    const char *name; /* NULL: free */
    int32_t number;
} slot;

struct util_names {
    slot *slots;
    size_t n_slots, n_used; /* n_slots is a power of two */
};

util_names *util_names_new(size_t expected)
{
    util_names *m = util_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->n_slots = 16;
    while (m->n_slots / 2 <= expected && m->n_slots < SIZE_MAX / 4)
        m->n_slots *= 2;
    m->slots = util_alloc(m->n_slots, sizeof *m->slots);
    if (!m->slots) {
        free(m);
        return NULL;
    }
    return m;
}

void util_names_free(util_names *m)
{
    if (!m)
        return;
    free(m->slots);
    free(m);
}

static slot *find_slot(slot *slots, size_t n_slots, const char *name, uint64_t hash)
{
    size_t i = hash & (n_slots - 1);
    while (slots[i].name && (slots[i].hash != hash || strcmp(slots[i].name, name)))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

static int widen(util_names *m)
{
    if (m->n_used * 2 < m->n_slots)
        return 0;
    size_t n = m->n_slots * 2;
    slot *slots = util_alloc(n, sizeof *slots);
    if (!slots)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].name)
            *find_slot(slots, n, m->slots[i].name, m->slots[i].hash) = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->n_slots = n;
    return 0;
}

int32_t util_names_put(util_names *m, const char *name, int32_t number)
{
    if (widen(m))
        return -1;
    uint64_t hash = util_hash(name, strlen(name));
    slot *place = find_slot(m->slots, m->n_slots, name, hash);
    if (!place->name) {
        *place = (slot){hash, name, number};
        m->n_used++;
    }
    return place->number;
}

int32_t util_names_get(const util_names *m, const char *name)
{
    const slot *place = find_slot(m->slots, m->n_slots, name, util_hash(name, strlen(name)));
    return place->name ? place->number : -1;
}
