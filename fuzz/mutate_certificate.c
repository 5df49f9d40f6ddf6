/* A mutator that knows the format of certificates: what comes out is JSON again, so that the verifier's judges are reached and not its reader
 * alone.
 *
 * A change is one of: a number becomes a neighbour, a half, a double or an extreme; a list loses, repeats or exchanges an item; a key goes; a
 * key that the object does not have comes, whatever kind of object it is, with a value of any type or one taken from elsewhere in the file. One
 * input in eight is left to libFuzzer's own changes of bytes. Linked to all targets of certificates. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#define MOST_VALUES 4096
#define MOST_CHANGES 4

/* Every key of the format (docs/formats.md). */
static const char *const keys[] = {"operators",   "lower_bound_ns", "certified_bound_ns",
                                   "problem",     "problem_digest", "objective",
                                   "in_flight",   "floating",       "cuts",
                                   "block_class", "classes",        "memory",
                                   "windows",     "component_kind", "trees",
                                   "shared",      "pairs",          "entry",
                                   "exit",        "lower_ns",       "static",
                                   "pool",        "search",         "leaves",
                                   "loads",       "receivers",      "open",
                                   "counts",      "length_ns",      "step_ns",
                                   "buckets",     "prices",         "count_prices",
                                   "upper_ns",    "duals",          "cases",
                                   "op",          "bucket_ns",      "weights",
                                   "flows",       "tree",           "unit",
                                   "byte_prices", "class",          "intervals",
                                   "ns",          "from",           "to"};

typedef struct mutation {
    yyjson_mut_doc *doc;
    uint64_t state;
    yyjson_mut_val *value[MOST_VALUES]; /* all that the file has */
    uint32_t n;
} mutation;

static uint32_t below(mutation *m, uint32_t n)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return n ? (uint32_t)((m->state >> 16) % n) : 0;
}

static void collect(mutation *m, yyjson_mut_val *at)
{
    size_t i, n;
    yyjson_mut_val *key, *item;
    if (m->n == MOST_VALUES)
        return;
    m->value[m->n++] = at;
    if (yyjson_mut_is_arr(at))
        yyjson_mut_arr_foreach(at, i, n, item)
            collect(m, item);
    if (yyjson_mut_is_obj(at))
        yyjson_mut_obj_foreach(at, i, n, key, item) collect(m, item);
}

static int64_t other_number(mutation *m, int64_t old)
{
    static const int64_t extreme[] = {0,         1,         -1,          -2,        INT32_MAX,       INT64_C(1) << 40,
                                      1ll << 50, 1ll << 54, 1ll << 60,   1ll << 61, (1ll << 61) - 1, 1ll << 62,
                                      INT64_MAX, INT64_MIN, -(1ll << 62)};
    switch (below(m, 7)) {
    case 0: return extreme[below(m, sizeof extreme / sizeof *extreme)];
    case 1: return (int64_t)((uint64_t)old + 1);
    case 2: return (int64_t)((uint64_t)old - 1);
    case 3: return (int64_t)((uint64_t)old * 2);
    case 4: return old / 2;
    case 5: return (int64_t)(0 - (uint64_t)old);
    default: return (int64_t)below(m, 8);
    }
}

static yyjson_mut_val *any_value(mutation *m, int depth)
{
    yyjson_mut_val *list;
    switch (below(m, depth > 2 ? 4 : 7)) {
    case 0: return yyjson_mut_sint(m->doc, other_number(m, (int64_t)below(m, 300)));
    case 1: return yyjson_mut_bool(m->doc, below(m, 2));
    case 2: return yyjson_mut_strcpy(m->doc, below(m, 2) ? "rate" : "latency");
    case 3:
        list = yyjson_mut_arr(m->doc);
        for (uint32_t i = below(m, 9); i > 0; i--)
            yyjson_mut_arr_add_sint(m->doc, list, other_number(m, (int64_t)below(m, 100)));
        return list;
    case 4: return yyjson_mut_val_mut_copy(m->doc, m->value[below(m, m->n)]);
    case 5:
        list = yyjson_mut_arr(m->doc);
        for (uint32_t i = below(m, 4); i > 0; i--)
            yyjson_mut_arr_append(list, any_value(m, depth + 1));
        return list;
    default:
        list = yyjson_mut_obj(m->doc);
        for (uint32_t i = below(m, 4); i > 0; i--)
            yyjson_mut_obj_add(list, yyjson_mut_str(m->doc, keys[below(m, sizeof keys / sizeof *keys)]),
                               any_value(m, depth + 1));
        return list;
    }
}

/* The same key of another object, or anything. */
static yyjson_mut_val *value_for(mutation *m, const char *key)
{
    for (int i = 0; i < 16; i++) {
        yyjson_mut_val *other = yyjson_mut_obj_get(m->value[below(m, m->n)], key);
        if (other)
            return yyjson_mut_val_mut_copy(m->doc, other);
    }
    return any_value(m, 0);
}

static void change_object(mutation *m, yyjson_mut_val *object)
{
    size_t n = yyjson_mut_obj_size(object), at = below(m, (uint32_t)n), i, most;
    yyjson_mut_val *key, *item;
    const char *name = keys[below(m, sizeof keys / sizeof *keys)];
    if (n && below(m, 2))
        yyjson_mut_obj_foreach(object, i, most, key, item) if (i == at) name = yyjson_mut_get_str(key);
    bool there = yyjson_mut_obj_get(object, name) != NULL, back = !there || below(m, 2);
    yyjson_mut_val *value = back ? value_for(m, name) : NULL;
    name = yyjson_mut_get_str(yyjson_mut_strcpy(m->doc, name));
    if (there)
        yyjson_mut_obj_remove_key(object, name);
    if (back)
        yyjson_mut_obj_add(object, yyjson_mut_str(m->doc, name), value);
}

static void change_list(mutation *m, yyjson_mut_val *list)
{
    size_t n = yyjson_mut_arr_size(list);
    uint32_t at = below(m, (uint32_t)n);
    switch (below(m, 5)) {
    case 0:
        if (n)
            yyjson_mut_arr_remove(list, at);
        return;
    case 1:
        if (n)
            yyjson_mut_arr_append(list, yyjson_mut_val_mut_copy(m->doc, yyjson_mut_arr_get(list, at)));
        return;
    case 2:
        if (n)
            yyjson_mut_arr_rotate(list, at);
        return;
    case 3: yyjson_mut_arr_append(list, any_value(m, 0)); return;
    default:
        if (n)
            yyjson_mut_arr_replace(list, at, any_value(m, 0));
    }
}

static void change(mutation *m)
{
    m->n = 0;
    collect(m, yyjson_mut_doc_get_root(m->doc));
    yyjson_mut_val *v = m->value[below(m, m->n)];
    if (yyjson_mut_is_obj(v))
        change_object(m, v);
    else if (yyjson_mut_is_arr(v))
        change_list(m, v);
    else if (yyjson_mut_is_int(v))
        yyjson_mut_set_sint(v, other_number(m, yyjson_mut_get_sint(v)));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static mutation m;
    yyjson_doc *read = seed % 8 ? yyjson_read((const char *)data, size, 0) : NULL;
    m.doc = read && yyjson_is_obj(yyjson_doc_get_root(read)) ? yyjson_doc_mut_copy(read, NULL) : NULL;
    yyjson_doc_free(read);
    if (!m.doc)
        return LLVMFuzzerMutate(data, size, max_size);
    m.state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (uint32_t i = below(&m, MOST_CHANGES) + 1; i > 0; i--)
        change(&m);
    size_t length = 0;
    char *text = yyjson_mut_write(m.doc, 0, &length);
    if (text && length <= max_size) {
        memcpy(data, text, length);
        size = length;
    }
    free(text);
    yyjson_mut_doc_free(m.doc);
    return size;
}
