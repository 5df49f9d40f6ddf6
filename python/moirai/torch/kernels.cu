/* How ranks meet without their hosts: flags in GPU memory that one process writes and another polls.
 *
 * A flag holds the number of the request for which it was set, so that nothing has to be reset between requests. Polling
 * threads look at `abort` (in host memory) now and then: when a rank is gone, kernels end instead of spinning for ever.
 * Of requests in flight nothing polls: their streams wait (slots_cuda.py).
 * Stamps are the GPU's own nanosecond clock, one for all processes on it.
 *
 * There are no fences beside what a release and an acquire are: kernels of a stream see all of those before them, so that
 * the release covers what they wrote, and what was acquired here is seen by those behind. On an H200 each fence more
 * takes half a microsecond, and a device computes nothing meanwhile.
 *
 * kernels.ptx beside this file is made from it by scripts/make_ptx, for drivers from 2020 on and GPUs from Volta on. */
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device))
typedef unsigned long long u64;
typedef unsigned int u32;

DEVICE u64 load(const u64 *p)
{
    u64 v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

DEVICE void store(u64 *p, u64 v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

DEVICE u64 now(void)
{
    u64 v;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)::"memory");
    return v;
}

DEVICE u32 thread(void)
{
    u32 v;
    asm("mov.u32 %0, %%tid.x;" : "=r"(v));
    return v;
}

DEVICE u32 threads(void)
{
    u32 v;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(v));
    return v;
}

DEVICE void barrier(void)
{
    asm volatile("bar.sync 0;" ::: "memory");
}

/* Each thread waits for flags of its own; seen[i] is when flag i was found set. */
DEVICE void poll(u64 *const *flag, u32 n, u64 request, const u32 *abort, u64 *seen)
{
    for (u32 i = thread(); i < n; i += threads()) {
        for (u32 turn = 1; load(flag[i]) < request; turn++)
            if (turn % 4096 == 0 && *(const volatile u32 *)abort)
                break;
        if (seen)
            seen[i] = now();
    }
    barrier();
}

/* Begins a request on a rank: counts it, tells all others, waits for all others. stamp[0] when all are there. */
GLOBAL void moirai_start(u64 *request, u64 *const *out, u64 *const *in, u32 n, const u32 *abort, u64 *stamp)
{
    u64 mine = *request + 1;
    barrier();
    for (u32 i = thread(); i < n; i += threads())
        store(out[i], mine);
    poll(in, n, mine, abort, 0);
    if (thread() == 0) {
        *request = mine;
        stamp[0] = now();
    }
}

/* Bytes that pass through the host: 16 at a time, several at once, since each crosses the bus by itself. */
DEVICE void copy(const u64 *from, u64 *to, u64 n)
{
    u32 all = threads();
    for (u64 i = thread(); i < n; i += 4 * all) {
        u64 a[4], b[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            if (i + k * all < n)
                asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(a[k]), "=l"(b[k]) : "l"(from + 2 * (i + k * all)) : "memory");
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            if (i + k * all < n)
                asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(to + 2 * (i + k * all)), "l"(a[k]), "l"(b[k]) : "memory");
    }
}

/* Each is three numbers: where from, where to, how many times 16 bytes. */
DEVICE void copy_all(const u64 *what, u32 n)
{
    for (u32 i = 0; i < n; i++)
        copy((const u64 *)what[3 * i], (u64 *)what[3 * i + 1], what[3 * i + 2]);
    if (n)
        barrier();
}

/* Between two segments: puts what is short into the host's memory, tells others that tensors are there, then waits for
 * theirs and gets what they have put there. stamp[0] when the segment before has ended, stamp[1] when the next can start,
 * stamp[2..] when each tensor was found to be there. */
GLOBAL void moirai_meet(const u64 *request, u64 *const *out, u32 n_out, u64 *const *in, u32 n_in, const u32 *abort, u64 *stamp,
                        const u64 *put, u32 n_put, const u64 *get, u32 n_get)
{
    u64 mine = *request;
    if (thread() == 0)
        stamp[0] = now();
    copy_all(put, n_put);
    for (u32 i = thread(); i < n_out; i += threads())
        store(out[i], mine);
    poll(in, n_in, mine, abort, stamp + 2);
    copy_all(get, n_get);
    if (thread() == 0)
        stamp[1] = now();
}

/* Between two segments of a request in flight: flags that the segment before waited for are free for the next request, and
 * others are told that tensors are there. stamp[0] when that segment has ended. */
GLOBAL void moirai_pass(const u64 *request, u64 *const *out, u32 n_out, u64 *const *past, u32 n_past, u64 *stamp)
{
    u64 mine = *request;
    if (thread() == 0)
        stamp[0] = now();
    for (u32 i = thread(); i < n_past; i += threads())
        store(past[i], 0);
    for (u32 i = thread(); i < n_out; i += threads())
        store(out[i], mine);
}
