/* Small things that every room needs. Private to the library and the command. */
#ifndef MOIRAI_UTIL_UTIL_H
#define MOIRAI_UTIL_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

#define UTIL_MIN(a, b) ((a) < (b) ? (a) : (b))
#define UTIL_MAX(a, b) ((a) > (b) ? (a) : (b))

/* calloc/realloc of n items that set MOIRAI_EFAIL's message and return NULL on failure or overflow. n == 0
 * gives a valid pointer. */
void *util_alloc(size_t n, size_t size);
void *util_resize(void *old, size_t n, size_t size);
/* The same with a copy of n items. */
void *util_copy(const void *from, size_t n, size_t size);
/* Grow *array (items of `size`) to hold at least `need` items, doubling *capacity. 0 or MOIRAI_EFAIL. */
int util_grow(void *array_pointer, size_t *capacity, size_t need, size_t size);
char *util_strdup(const char *text);

/* Arrays that live and die together. One that could not be had is NULL and remembered: who takes several asks once. */
typedef struct util_memory {
    struct util_taken *last;
    bool failed;
} util_memory;
/* As util_alloc, until util_release. */
void *util_take(util_memory *m, size_t n, size_t size);
#define UTIL_TAKE(m, pointer, n) ((pointer) = util_take(m, (n), sizeof *(pointer)))
/* Frees all of them; the memory is empty then, and can be used again. */
void util_release(util_memory *m);
static inline int util_taken_all(const util_memory *m)
{
    return m->failed ? MOIRAI_EFAIL : 0;
}

/* Strings that live and die together; equal strings are stored once. */
typedef struct util_strings util_strings;
util_strings *util_strings_new(void);
void util_strings_free(util_strings *s);
const char *util_strings_add(util_strings *s, const char *text, size_t length); /* NULL: out of memory */

/* Names to numbers. Keys are not copied: they must outlive the map. */
typedef struct util_names util_names;
util_names *util_names_new(size_t expected);
void util_names_free(util_names *m);
/* The number already there, or `number` after storing it; -1 (and a message) if out of memory. */
int32_t util_names_put(util_names *m, const char *name, int32_t number);
int32_t util_names_get(const util_names *m, const char *name); /* -1: not there */

/* Can this be the name of a machine, and nothing else, to mpiexec and ssh? */
bool util_is_host(const char *text);
/* Cores that are at work now, at least 1. */
int32_t util_cores(void);
/* How many of them this process may use, at least 1. */
int util_own_cores(void);
/* The first value of a key of /proc/cpuinfo; false where it has none (arm64 kernels have no "model name"). */
bool util_cpuinfo(char *out, size_t size, const char *key);

/* Whole files. "-" is stdin or stdout. Messages start with the path. */
int util_file_read(char **data, size_t *length, const char *path);
/* Write to a temporary beside `path`, flush, rename, flush the folder: the old content or the new, never half of one. */
int util_file_write(const char *path, const char *data, size_t length);
/* Makes this folder, in one that exists. One that is there already is fine. */
int util_folder_make(const char *path);
/* A folder of its own under $TMPDIR (else /tmp): `out` has its path, NAME-XXXXXX; "" on failure. */
int util_folder_temporary(char *out, size_t size, const char *name);
/* Removes a folder, the files in it, and folders in it that are at most `depth` levels below. */
void util_folder_remove(const char *folder, int depth);
/* Has the folder of a file on disk: after a rename. */
int util_folder_sync(const char *file);

/* Several files that appear in a folder together, or not at all. */
typedef struct util_stage {
    char *folder; /* where they are to be */
    char *inside; /* where to write them */
    bool made;    /* the folder was not there before */
} util_stage;
/* Makes the folder where it is missing. On failure there is nothing to close. */
int util_stage_open(util_stage *s, const char *folder);
/* rc 0: the files move to the folder, the one named `last` (or NULL) after all others; what has their names is replaced.
 * Otherwise they go, and the folder as well if it was made here. Returns rc, or why they could not move. */
int util_stage_close(util_stage *s, int rc, const char *last);

/* xoshiro256**: the same numbers on every machine. */
typedef struct util_rng {
    uint64_t s[4];
} util_rng;
void util_rng_seed(util_rng *r, uint64_t seed);
uint64_t util_rng_next(util_rng *r);
uint32_t util_rng_below(util_rng *r, uint32_t n); /* uniform in [0, n), n > 0 */
double util_rng_real(util_rng *r);                /* uniform in [0, 1) */

double util_seconds(void);     /* monotonic clock */
double util_cpu_seconds(void); /* processor time of all threads of this process */

/* The mean of n numbers, which get sorted, without the lowest and the highest tenth, and without one at each end or, of
 * less than four, a quarter; 0 if there are none. Outliers do not move it, and unlike a median it does not jump where
 * numbers come in two heaps. */
double util_trimmed_mean(double *number, size_t n);

/* a + b and a * b in int64; false on overflow. */
static inline bool util_add64(int64_t *out, int64_t a, int64_t b)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool util_mul64(int64_t *out, int64_t a, int64_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
