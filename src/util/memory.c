#include "util/util.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tables of a million operators on 64 devices are read at random: by pages of 4 KB every other look misses the table of pages, and the kernel
 * is asked for each page once. With large ones the first plan of such a problem takes a fifth less processor time. */
#define LARGE ((size_t)8 << 20)
#define PAGE \
    ((uintptr_t)2 << 20) /* where the kernel's are of another size, it rounds, or refuses, and nothing is lost */

static void *out_of_memory(size_t n, size_t size)
{
    moirai_error(MOIRAI_EFAIL, "out of memory (%zu items of %zu bytes)", n, size);
    return NULL;
}

static void ask_for_large_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t begin = ((uintptr_t)p + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)p + bytes) / PAGE * PAGE;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}

void *util_alloc(size_t n, size_t size)
{
    size_t bytes;
    bool overflow = __builtin_mul_overflow(n ? n : 1, size ? size : 1, &bytes);
    void *p = overflow ? NULL : calloc(bytes, 1);
    if (p && bytes >= LARGE)
        ask_for_large_pages(p, bytes);
    return p ? p : out_of_memory(n, size);
}

void *util_copy(const void *from, size_t n, size_t size)
{
    void *p = util_alloc(n, size);
    if (p && n)
        memcpy(p, from, n * size);
    return p;
}

typedef struct util_taken {
    struct util_taken *before;
    _Alignas(max_align_t) unsigned char array[];
} util_taken;

void *util_take(util_memory *m, size_t n, size_t size)
{
    size_t bytes;
    bool overflow =
        __builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, sizeof(util_taken), &bytes);
    util_taken *x = overflow ? out_of_memory(n, size) : util_alloc(bytes, 1);
    m->failed |= !x;
    if (!x)
        return NULL;
    x->before = m->last;
    m->last = x;
    return x->array;
}

void util_release(util_memory *m)
{
    while (m->last) {
        util_taken *x = m->last;
        m->last = x->before;
        free(x);
    }
    m->failed = false;
}

void *util_resize(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n ? n : 1, size ? size : 1, &bytes))
        return out_of_memory(n, size);
    void *p = realloc(old, bytes);
    return p ? p : out_of_memory(n, size);
}

int util_grow(void *array_pointer, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return 0;
    size_t wanted = UTIL_MAX(need, *capacity > SIZE_MAX / 2 ? need : *capacity * 2);
    wanted = UTIL_MAX(wanted, (size_t)8);
    /* The caller's pointer has its own type: copy its bytes instead of aliasing it as void *. */
    void *old, *new;
    memcpy(&old, array_pointer, sizeof old);
    new = util_resize(old, wanted, size);
    if (!new)
        return MOIRAI_EFAIL;
    memcpy(array_pointer, &new, sizeof new);
    *capacity = wanted;
    return 0;
}

char *util_strdup(const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = util_alloc(length, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}
