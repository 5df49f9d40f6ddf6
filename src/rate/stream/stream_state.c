/* Steady states: has all that is in flight been like this before?
 *
 * What happens next depends on what each request in flight has done, in the order of their ages, on how long each running task has still to
 * run, and, where copies take turns, on whose turn it is; and their latencies on when they entered. If all of that was the same at an earlier finish, then the same will happen again, for ever, and
 * the time between the two divided by the requests between them is the period exactly. Each set of finished tasks is known by the sum of random
 * numbers, one per task (Zobrist 1970), so that a look takes O(N + K + transfers under way); two states have one name by mistake with a chance
 * of 2^-64 each. */
#include "rate/stream/stream_state.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define HEAP_WAYS 4 /* children of an item, side by side in one line of the cache */

/* Without branches, which can't be guessed here. */
static bool before(const rate_item *a, const rate_item *b)
{
    uint64_t x = (uint64_t)a->what << 32 | (uint32_t)a->slot, y = (uint64_t)b->what << 32 | (uint32_t)b->slot;
    return (int)(a->key < b->key) | ((int)(a->key == b->key) & (int)(x < y));
}

int rate_heap_push(rate_heap *h, rate_item item)
{
    if ((size_t)h->n == h->capacity && util_grow(&h->item, &h->capacity, (size_t)h->n + 1, sizeof *h->item))
        return MOIRAI_EFAIL;
    int32_t at = h->n++;
    while (at > 0 && before(&item, &h->item[(at - 1) / HEAP_WAYS])) {
        h->item[at] = h->item[(at - 1) / HEAP_WAYS];
        at = (at - 1) / HEAP_WAYS;
    }
    h->item[at] = item;
    return 0;
}

rate_item rate_heap_pop(rate_heap *h)
{
    rate_item first = h->item[0], last = h->item[--h->n];
    int32_t at = 0;
    for (int32_t child; (child = HEAP_WAYS * at + 1) < h->n; at = child) {
        const rate_item *of = &h->item[child];
        if (child + HEAP_WAYS <= h->n) {
            int32_t a = before(of + 1, of), b = 2 + before(of + 3, of + 2);
            child += before(of + b, of + a) ? b : a;
        } else {
            for (int32_t i = child + 1; i < h->n; i++)
                child = before(&h->item[i], &h->item[child]) ? i : child;
        }
        if (!before(&h->item[child], &last))
            break;
        h->item[at] = h->item[child];
    }
    h->item[at] = last;
    return first;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t state_of(const rate_sim *x)
{
    const rate_stream_task *task = x->task;
    uint64_t h = 1;
    for (int32_t i = 0; i < x->n_order; i++) {
        const rate_request *r = &x->slot[x->order[i]];
        h = mix(h, mix(r->done, mix((uint64_t)r->copy, (uint64_t)(x->now_ns - r->entered_ns))));
        h = task->pace > 0 ? mix(h, (uint64_t)(x->entered - r->number)) : h; /* what is due first depends on it */
    }
    int32_t *place = x->spare; /* of each slot in the order of ages */
    for (int32_t i = 0; i < x->n_order; i++)
        place[x->order[i]] = i;
    for (int32_t k = 0; k < x->p->n_devices; k++)
        if (x->busy >> k & 1)
            h = mix(h, mix((uint64_t)(x->until_ns[k] - x->now_ns),
                           mix((uint64_t)x->running[k].what, (uint64_t)place[x->running[k].slot] << 8 | (uint64_t)k)));
    uint64_t sum = 0; /* a heap of equal content may be in another order */
    for (int32_t i = 0; i < x->flying.n; i++) {
        const rate_item *f = &x->flying.item[i];
        sum += mix(f->key - (uint64_t)x->now_ns, mix((uint64_t)f->what, (uint64_t)place[f->slot]));
    }
    h = mix(h, sum);
    int64_t all = 0;
    for (int32_t c = 0; c < task->n_copies; c++)
        all += task->share[c];
    for (int32_t c = 0; c < task->n_copies && task->slots[0] == 0; c++)
        h = mix(h, (uint64_t)(x->entered_of[c] * all - x->entered * task->share[c]));
    return h ? h : 1;
}

static int grow_seen(rate_sim *x)
{
    size_t size = x->seen_size ? 2 * x->seen_size : 256;
    int64_t *seen = util_alloc(size, sizeof *seen);
    if (!seen)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < x->n_finished; i++) {
        size_t at = x->finish[i].state & (size - 1);
        if (x->finish[i].state == 0)
            continue;
        while (seen[at])
            at = (at + 1) & (size - 1);
        seen[at] = i + 1;
    }
    free(x->seen);
    x->seen = seen;
    x->seen_size = size;
    return 0;
}

int64_t rate_state_before(rate_sim *x)
{
    uint64_t state = state_of(x);
    if ((size_t)x->n_finished * 2 >= x->seen_size && grow_seen(x)) {
        x->failed = true;
        return -1;
    }
    size_t at = state & (x->seen_size - 1);
    for (; x->seen[at]; at = (at + 1) & (x->seen_size - 1))
        if (x->finish[x->seen[at] - 1].state == state)
            return x->seen[at] - 1;
    x->finish[x->n_finished - 1].state = state;
    x->seen[at] = x->n_finished;
    return -1;
}
