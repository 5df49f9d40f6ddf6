/* The three transports; rank_transport.h says what they are. */
#include "rank/rank_transport.h"

#include "rank/rank_exec.h"

/* ---- direct ---- */

static int direct_leave(const rank_exec *x, exec_send *s, void *data)
{
    (void)x;
    s->wire = data;
    return 0;
}

static int direct_arrive(const rank_exec *x, exec_recv *r)
{
    (void)x;
    (void)r;
    return 0;
}

/* ---- staged ---- */

static int staged_leave(const rank_exec *x, exec_send *s, void *data)
{
    return rank_cuda_get(x->ort->cuda, s->wire, data, s->bytes);
}

static int staged_arrive(const rank_exec *x, exec_recv *r)
{
    return rank_cuda_put(x->ort->cuda, r->data, r->wire, r->bytes);
}

/* ---- mapped ---- */

static int mapped_leave(const rank_exec *x, exec_send *s, void *data)
{
    (void)x;
    (void)s;
    (void)data; /* it is where the receiver has mapped it */
    return 0;
}

static int mapped_arrive(const rank_exec *x, exec_recv *r)
{
    return r->peer == r->data ? 0 : rank_cuda_copy(x->ort->cuda, r->data, r->peer, r->bytes);
}

const rank_transport rank_transport_direct = {"direct", direct_leave, direct_arrive};
const rank_transport rank_transport_staged = {"staged", staged_leave, staged_arrive};
const rank_transport rank_transport_mapped = {"mapped", mapped_leave, mapped_arrive};
