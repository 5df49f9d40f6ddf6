/* The shape of a certificate: every object complete, every key of its type and in its range, before anything is judged.
 *
 * One table lists the keys of each kind of object, as docs/formats.md does; one walker goes through the file by it. So
 * whatever is judged later can take for granted that a key which its kind must have is there, and what cannot be
 * understood is refused here, whether or not the proof would ever have looked at it. Ranges that depend on the problem
 * (operators, devices) are left to those who judge. A kind may have several forms, told apart by a key of theirs. */
#include "prove/prove_read.h"

#include <string.h>
#include <yyjson.h>

#include "util/util.h"

#define MAX_DEPTH 210 /* of objects within objects: prices on loads go by cases within cases */

typedef enum object_kind { CERTIFICATE, RATE, CLASS, PAIR, LEAF, SEARCH, MEMORY, MEMORY_PAIR, LOADS } object_kind;

/* GONE: kinds of proof that earlier versions have written, and nobody writes or verifies any more. */
typedef enum value_type { NUMBER, NUMBERS, LISTS, OBJECT, OBJECTS, TEXT, FLAG, GONE } value_type;
typedef enum need { NEEDED, OPTIONAL } need;

typedef struct key {
    const char *name;
    value_type type;
    need need;
    int64_t least, most; /* of numbers */
    size_t each;         /* numbers of a list come in so many; 0: any */
    object_kind kind;    /* of objects */
} key;

#define NS INT64_MAX
#define INT INT32_MAX
#define SPAN (PROVE_MAX_TIME / 2) /* what is proven ends long before sums of it overflow */
#define MESSAGE (INT64_C(1) << 62)

/* What every certificate has, and what a chain of cuts has. */
static const key claims[] = {
    {"operators", NUMBER, NEEDED, 0, INT, 0, 0},         {"lower_bound_ns", NUMBER, NEEDED, 0, NS, 0, 0},
    {"certified_bound_ns", NUMBER, NEEDED, 0, NS, 0, 0}, {"problem", TEXT, OPTIONAL, 0, 0, 0, 0},
    {"problem_digest", TEXT, OPTIONAL, 0, 0, 0, 0},      {0}};
static const key chain[] = {{"floating", NUMBERS, OPTIONAL, 0, INT, 0, 0},
                            {"cuts", NUMBERS, NEEDED, 0, INT, 0, 0},
                            {"block_class", NUMBERS, NEEDED, 0, INT, 0, 0},
                            {"classes", OBJECTS, NEEDED, 0, 0, 0, CLASS},
                            {"memory", OBJECT, OPTIONAL, 0, 0, 0, MEMORY},
                            {"windows", GONE, OPTIONAL, 0, 0, 0, 0},
                            {0}};
static const key in_flight[] = {
    {"in_flight", NUMBER, NEEDED, 1, INT, 0, 0}, {"loads", OBJECT, OPTIONAL, 0, 0, 0, LOADS}, {0}};
static const key of_rate_alone[] = {{"loads", OBJECT, NEEDED, 0, 0, 0, LOADS}, {0}};
static const key components[] = {{"component_kind", NUMBERS, NEEDED, 0, INT, 0, 0},
                                 {"trees", LISTS, NEEDED, 0, INT, 3, 0},
                                 {"shared", NUMBER, OPTIONAL, 0, INT, 0, 0},
                                 {0}};
static const key class_[] = {{"pairs", OBJECTS, OPTIONAL, 0, 0, 0, PAIR}, {0}};
static const key pair[] = {{"entry", NUMBER, NEEDED, 0, INT, 0, 0},
                           {"exit", NUMBER, NEEDED, 0, INT, 0, 0},
                           {"lower_ns", NUMBER, NEEDED, 0, NS, 0, 0},
                           {"search", OBJECT, OPTIONAL, 0, 0, 0, SEARCH},
                           {"leaves", OBJECTS, OPTIONAL, 0, 0, 0, LEAF},
                           {"loads", OBJECT, OPTIONAL, 0, 0, 0, LOADS},
                           {"static", GONE, OPTIONAL, 0, 0, 0, 0},
                           {"pool", GONE, OPTIONAL, 0, 0, 0, 0},
                           {0}};
static const key leaf[] = {{"receivers", NUMBERS, OPTIONAL, 0, INT, 0, 0},
                           {"open", FLAG, OPTIONAL, 0, 0, 0, 0},
                           {"counts", NUMBERS, OPTIONAL, PROVE_LENGTH, NS, 5, 0},
                           {0}};
static const key prices[] = {{"length_ns", NUMBER, NEEDED, 0, SPAN, 0, 0},
                             {"step_ns", NUMBER, NEEDED, 1, PROVE_MAX_TIME, 0, 0},
                             {"buckets", NUMBERS, NEEDED, 0, INT, 0, 0},
                             {"prices", NUMBERS, NEEDED, 0, INT64_C(1) << 50, 3, 0},
                             {"count_prices", NUMBERS, OPTIONAL, -PROVE_MAX_TIME, PROVE_MAX_TIME, 0, 0},
                             {0}};
static const key search[] = {
    {"length_ns", NUMBER, NEEDED, 0, INT64_MAX / 8, 0, 0}, {"tree", NUMBERS, NEEDED, -2, INT, 0, 0}, {0}};
static const key memory[] = {{"unit", NUMBER, NEEDED, 1, INT64_C(1) << 40, 0, 0},
                             {"byte_prices", NUMBERS, NEEDED, 0, INT64_C(1) << 50, 0, 0},
                             {"pairs", OBJECTS, NEEDED, 0, 0, 0, MEMORY_PAIR},
                             {0}};
static const key memory_pair[] = {{"class", NUMBER, NEEDED, 0, INT, 0, 0},
                                  {"entry", NUMBER, NEEDED, 0, INT, 0, 0},
                                  {"exit", NUMBER, NEEDED, 0, INT, 0, 0},
                                  {"leaves", OBJECTS, NEEDED, 0, 0, 0, LEAF},
                                  {0}};
static const key loads_by_device[] = {
    {"op", NUMBER, NEEDED, 0, INT, 0, 0}, {"cases", OBJECTS, NEEDED, 0, 0, 0, LOADS}, {0}};
static const key priced_loads[] = {{"prices", NUMBERS, NEEDED, 0, INT64_C(1) << 40, 0, 0},
                                   {"byte_prices", NUMBERS, OPTIONAL, 0, INT64_C(1) << 50, 0, 0},
                                   {"shifts", NUMBERS, OPTIONAL, 0, INT64_C(1) << 61, 0, 0},
                                   {"paths", NUMBERS, OPTIONAL, 0, INT64_C(1) << 61, 0, 0},
                                   {"unit", NUMBER, OPTIONAL, 1, MESSAGE, 0, 0},
                                   {"from", NUMBERS, OPTIONAL, -MESSAGE, MESSAGE, 0, 0},
                                   {"to", NUMBERS, OPTIONAL, -MESSAGE, MESSAGE, 0, 0},
                                   {0}};

/* The first form of a kind whose key is there, or that needs none, is meant. */
static const struct {
    object_kind kind;
    const char *if_has;
    const key *keys[3];
} forms[] = {{CERTIFICATE, NULL, {claims, chain}},
             {RATE, "in_flight", {claims, chain, in_flight}},
             {RATE, NULL, {claims, of_rate_alone}},
             {CLASS, "component_kind", {components, class_}},
             {CLASS, "trees", {components, class_}},
             {CLASS, NULL, {class_}},
             {PAIR, NULL, {pair}},
             {LEAF, "prices", {leaf, prices}},
             {LEAF, NULL, {leaf}},
             {SEARCH, NULL, {search}},
             {MEMORY, NULL, {memory}},
             {MEMORY_PAIR, NULL, {memory_pair}},
             {LOADS, "cases", {loads_by_device}},
             {LOADS, "prices", {priced_loads}},
             {LOADS, NULL, {NULL}}};

static const key *const *keys_of(object_kind kind, yyjson_val *object)
{
    for (size_t i = 0;; i++)
        if (forms[i].kind == kind && (!forms[i].if_has || prove_get(object, forms[i].if_has)))
            return forms[i].keys;
}

static int check_number(const key *k, yyjson_val *value)
{
    int64_t number;
    if (!yyjson_is_int(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
        return moirai_error(MOIRAI_EVERIFY, "%s is no whole number", k->name);
    number = yyjson_get_sint(value);
    return number >= k->least && number <= k->most
               ? 0
               : moirai_error(MOIRAI_EVERIFY, "%s is %lld, out of range", k->name, (long long)number);
}

static int check_numbers(const key *k, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *value;
    int rc = 0;
    if (!yyjson_is_arr(list) || (k->each && yyjson_arr_size(list) % k->each))
        return moirai_error(MOIRAI_EVERIFY, "%s is no list of numbers, %zu each", k->name, UTIL_MAX(k->each, 1));
    yyjson_arr_foreach(list, i, n, value) {
        rc = rc ? rc : check_number(k, value);
    }
    return rc;
}

static int check_object(object_kind kind, yyjson_val *object, int depth);

/* A list of lists of numbers, or of objects. */
static int check_items(const key *k, yyjson_val *list, int depth)
{
    size_t i, n;
    yyjson_val *value;
    int rc = 0;
    if (!yyjson_is_arr(list))
        return moirai_error(MOIRAI_EVERIFY, "%s is no list", k->name);
    yyjson_arr_foreach(list, i, n, value) {
        if (rc)
            break;
        rc = k->type == LISTS ? check_numbers(k, value) : check_object(k->kind, value, depth + 1);
        rc = rc ? moirai_error_prefix(rc, "%s %zu", k->name, i) : 0;
    }
    return rc;
}

static int check_value(const key *k, yyjson_val *value, int depth)
{
    int rc;
    switch (k->type) {
    case NUMBER: return check_number(k, value);
    case NUMBERS: return check_numbers(k, value);
    case OBJECT: rc = check_object(k->kind, value, depth + 1); return rc ? moirai_error_prefix(rc, "%s", k->name) : 0;
    case LISTS:
    case OBJECTS: return check_items(k, value, depth);
    case TEXT: return yyjson_is_str(value) ? 0 : moirai_error(MOIRAI_EVERIFY, "%s is no text", k->name);
    case GONE: return moirai_error(MOIRAI_EVERIFY, "%s: such proofs are no longer verified", k->name);
    case FLAG: return yyjson_is_bool(value) ? 0 : moirai_error(MOIRAI_EVERIFY, "%s is neither true nor false", k->name);
    }
    return 0;
}

static int check_key(const key *k, yyjson_val *value, int depth)
{
    if (value)
        return check_value(k, value, depth);
    return k->need == NEEDED ? moirai_error(MOIRAI_EVERIFY, "%s is missing", k->name) : 0;
}

static int check_object(object_kind kind, yyjson_val *object, int depth)
{
    util_json_at at = {.label = "an object"};
    if (depth > MAX_DEPTH)
        return prove_too_large("an object is too deep within others");
    if (!yyjson_is_obj(object))
        return prove_wrong("no object");
    int rc = util_json_object(&at, object);
    const key *const *keys = keys_of(kind, object);
    for (size_t i = 0; i < 3 && keys[i]; i++)
        for (const key *k = keys[i]; k->name && !rc; k++)
            rc = check_key(k, prove_get(object, k->name), depth);
    return rc;
}

int prove_shape(bool *of_rate, yyjson_val *root)
{
    yyjson_val *objective = prove_get(root, "objective");
    const char *name = yyjson_get_str(objective);
    if (objective && (!name || (strcmp(name, "rate") && strcmp(name, "latency"))))
        return prove_wrong("objective is neither rate nor latency");
    *of_rate = objective && !strcmp(name, "rate");
    return check_object(*of_rate ? RATE : CERTIFICATE, root, 0);
}
