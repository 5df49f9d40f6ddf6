#include "support/attack.h"
#include "support/proving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

/* Every value below the part, so that one can be drawn. */
typedef struct values {
    yyjson_mut_val **value;
    size_t n, capacity;
} values;

static void collect(values *v, yyjson_mut_val *at)
{
    size_t i, n;
    yyjson_mut_val *key, *item;
    if (util_grow(&v->value, &v->capacity, v->n + 1, sizeof *v->value))
        abort();
    v->value[v->n++] = at;
    if (yyjson_mut_is_arr(at))
        yyjson_mut_arr_foreach(at, i, n, item)
            collect(v, item);
    if (yyjson_mut_is_obj(at))
        yyjson_mut_obj_foreach(at, i, n, key, item) collect(v, item);
}

static int64_t other_number(int64_t old, util_rng *rng)
{
    static const int64_t extreme[] = {
        0,         1,         -1,        -2,           -3,        INT32_MAX, (int64_t)1 << 31,
        1ll << 36, 1ll << 40, 1ll << 50, 1ll << 54,    1ll << 60, 1ll << 61, (1ll << 61) - 1,
        1ll << 62, INT64_MAX, INT64_MIN, INT64_MAX - 1};
    switch (util_rng_below(rng, 8)) {
    case 0: return extreme[util_rng_below(rng, sizeof extreme / sizeof *extreme)];
    case 1: return (int64_t)((uint64_t)old + 1);
    case 2: return (int64_t)((uint64_t)old - 1);
    case 3: return (int64_t)((uint64_t)old * 2);
    case 4: return old / 2;
    case 5: return (int64_t)((uint64_t)old + util_rng_below(rng, 100) - 50);
    case 6: return util_rng_below(rng, 8);
    default: return (int64_t)(util_rng_next(rng) >> (1 + util_rng_below(rng, 62)));
    }
}

static void change_list(yyjson_mut_doc *doc, yyjson_mut_val *list, const values *all, util_rng *rng)
{
    size_t n = yyjson_mut_arr_size(list);
    yyjson_mut_val *other = all->value[util_rng_below(rng, (uint32_t)all->n)];
    switch (util_rng_below(rng, 6)) {
    case 0: /* cut */
        for (size_t keep = n ? util_rng_below(rng, (uint32_t)n) : 0; yyjson_mut_arr_size(list) > keep;)
            yyjson_mut_arr_remove_last(list);
        return;
    case 1: /* one item less */
        if (n)
            yyjson_mut_arr_remove(list, util_rng_below(rng, (uint32_t)n));
        return;
    case 2: /* one twice */
        if (n)
            yyjson_mut_arr_append(
                list, yyjson_mut_val_mut_copy(doc, yyjson_mut_arr_get(list, util_rng_below(rng, (uint32_t)n))));
        return;
    case 3: /* another order */
        if (n)
            yyjson_mut_arr_rotate(list, util_rng_below(rng, (uint32_t)n));
        return;
    case 4: /* the last five: a question less */
        for (int i = 0; i < 5 && yyjson_mut_arr_size(list); i++)
            yyjson_mut_arr_remove_last(list);
        return;
    default: /* something from elsewhere */
        if (n)
            yyjson_mut_arr_replace(list, util_rng_below(rng, (uint32_t)n), yyjson_mut_val_mut_copy(doc, other));
    }
}

static void change_object(yyjson_mut_doc *doc, yyjson_mut_val *object, const values *all, util_rng *rng)
{
    size_t n = yyjson_mut_obj_size(object), at = n ? util_rng_below(rng, (uint32_t)n) : 0, i, most;
    yyjson_mut_val *key, *item;
    const char *name = NULL;
    yyjson_mut_obj_foreach(object, i, most, key, item) if (i == at) name = yyjson_mut_get_str(key);
    if (!name)
        return;
    if (util_rng_below(rng, 2)) {
        yyjson_mut_obj_remove_key(object, name);
        return;
    }
    /* The same key of another object: another leaf's prices, another pair's leaves. */
    yyjson_mut_val *other = all->value[util_rng_below(rng, (uint32_t)all->n)];
    yyjson_mut_val *taken = yyjson_mut_is_obj(other) ? yyjson_mut_obj_get(other, name) : NULL;
    if (taken && other != object) {
        yyjson_mut_val *copy = yyjson_mut_val_mut_copy(doc, taken), *own = yyjson_mut_strcpy(doc, name);
        yyjson_mut_obj_remove_key(object, name);
        yyjson_mut_obj_add(object, own, copy);
    }
}

static void change(yyjson_mut_doc *doc, yyjson_mut_val *part, util_rng *rng)
{
    values all = {0};
    collect(&all, part);
    yyjson_mut_val *v = all.value[util_rng_below(rng, (uint32_t)all.n)];
    if (yyjson_mut_is_arr(v))
        change_list(doc, v, &all, rng);
    else if (yyjson_mut_is_obj(v))
        change_object(doc, v, &all, rng);
    else if (yyjson_mut_is_int(v))
        yyjson_mut_set_sint(v, other_number(yyjson_mut_get_sint(v), rng));
    free(all.value);
}

/* Pairs claim their lengths as well. */
static void lower_pairs(yyjson_mut_val *list)
{
    size_t i, n, j, m;
    yyjson_mut_val *class_, *pair;
    if (!list)
        return;
    yyjson_mut_arr_foreach(list, i, n, class_) {
        yyjson_mut_val *pairs = yyjson_mut_obj_get(class_, "pairs");
        if (pairs)
            yyjson_mut_arr_foreach(pairs, j, m, pair) {
                yyjson_mut_val *claim = yyjson_mut_obj_get(pair, "lower_ns");
                if (claim)
                    yyjson_mut_set_sint(claim, 0);
            }
    }
}

static void lower_claims(yyjson_mut_val *root, const char *part)
{
    yyjson_mut_val *own = yyjson_mut_obj_get(root, "certified_bound_ns");
    if (own)
        yyjson_mut_set_sint(own, 0);
    if (!strcmp(part, "classes"))
        lower_pairs(yyjson_mut_obj_get(root, "classes"));
}

static void keep_file(const char *path, const char *text, size_t length)
{
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fwrite(text, 1, length, f);
        fclose(f);
    }
}

bool attack_certificate(const moirai_problem *p, const char *json, size_t length, const char *part, int64_t optimum,
                        uint64_t seed, int n, attack_counts *counts, const char *keep, char *why)
{
    yyjson_doc *honest = yyjson_read(json, length, 0);
    util_rng rng;
    bool good = honest != NULL;
    util_rng_seed(&rng, seed);
    for (int i = 0; i < n && good; i++) {
        yyjson_mut_doc *doc = yyjson_doc_mut_copy(honest, NULL);
        yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *target = yyjson_mut_obj_get(root, part);
        size_t size;
        moirai_proof proof = {0};
        if (!target) {
            yyjson_mut_doc_free(doc);
            break;
        }
        lower_claims(root, part);
        for (uint32_t left = 1 + util_rng_below(&rng, 4); left > 0; left--)
            change(doc, target, &rng);
        char *text = yyjson_mut_write(doc, 0, &size);
        yyjson_mut_doc_free(doc);
        if (!text)
            continue; /* a change made a value that is no JSON */
        counts->tried++;
        bool accepted = !proving_text(&proof, p, text, size, "enemy");
        counts->accepted += accepted;
        if (accepted && proof.proven_ns > optimum) {
            snprintf(why, 256, "an enemy's certificate proves %lld, the optimum is %lld (seed %llu, change %d)",
                     (long long)proof.proven_ns, (long long)optimum, (unsigned long long)seed, i);
            keep_file(keep, text, size);
            good = false;
        }
        free(text);
    }
    yyjson_doc_free(honest);
    return good;
}
