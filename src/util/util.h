/* Small things that every room needs. Private to the library and the command. */
#ifndef MOIRAI_UTIL_H
#define MOIRAI_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

#define MOIRAI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MOIRAI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* calloc/realloc of n items that set MOIRAI_EFAIL's message and return NULL on failure or overflow. n == 0
 * gives a valid pointer. */
void *moirai_alloc(size_t n, size_t size);
void *moirai_resize(void *old, size_t n, size_t size);
/* Grow *array (items of `size`) to hold at least `need` items, doubling *capacity. 0 or MOIRAI_EFAIL. */
int moirai_grow(void *array_pointer, size_t *capacity, size_t need, size_t size);
char *moirai_strdup(const char *text);

/* Strings that live and die together; equal strings are stored once. */
typedef struct moirai_strings moirai_strings;
moirai_strings *moirai_strings_new(void);
void moirai_strings_free(moirai_strings *s);
const char *moirai_strings_add(moirai_strings *s, const char *text, size_t length); /* NULL: out of memory */

/* Names to numbers. Keys are not copied: they must outlive the map. */
typedef struct moirai_names moirai_names;
moirai_names *moirai_names_new(size_t expected);
void moirai_names_free(moirai_names *m);
/* The number already there, or `number` after storing it; -1 (and a message) if out of memory. */
int32_t moirai_names_put(moirai_names *m, const char *name, int32_t number);
int32_t moirai_names_get(const moirai_names *m, const char *name); /* -1: not there */

/* Whole files. "-" is stdin or stdout. Messages start with the path. */
int moirai_file_read(char **data, size_t *length, const char *path);
/* Write to a temporary beside `path`, flush, rename: the old content or the new, never half of one. */
int moirai_file_write(const char *path, const char *data, size_t length);

/* xoshiro256**: the same numbers on every machine. */
typedef struct moirai_rng { uint64_t s[4]; } moirai_rng;
void moirai_rng_seed(moirai_rng *r, uint64_t seed);
uint64_t moirai_rng_next(moirai_rng *r);
uint32_t moirai_rng_below(moirai_rng *r, uint32_t n); /* uniform in [0, n), n > 0 */
double moirai_rng_real(moirai_rng *r);                /* uniform in [0, 1) */

double moirai_seconds(void); /* monotonic clock */

/* a + b and a * b in int64; false on overflow. */
static inline bool moirai_add64(int64_t *out, int64_t a, int64_t b) { return !__builtin_add_overflow(a, b, out); }
static inline bool moirai_mul64(int64_t *out, int64_t a, int64_t b) { return !__builtin_mul_overflow(a, b, out); }

#endif
