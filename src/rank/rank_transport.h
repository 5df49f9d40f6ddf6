/* How a tensor gets from device to device: one side of it. Whatever the transport, MPI carries a message from the sender
 * to the receiver in the plan's order; what differs is what the message holds, and what happens before and after.
 *
 *   direct   host memory: MPI reads and fills the tensor itself
 *   staged   a GPU's memory: it is copied to or from pinned host memory, which MPI reads or fills. One side may be
 *            staged and the other direct: the message is the same
 *   mapped   GPUs of one host: the message is empty and says that the tensor is there. On the same GPU the receiver
 *            reads it where it lies; from another GPU it is copied, device to device. Processors of one host likewise
 *            (rank_host.c): both have the memory that it lies in
 *
 * A mapped tensor is safe to read: its sender has made it (waited for the GPU) before the message, and writes to it again in the
 * next run, which begins for nobody before everybody has computed all of this one (rank_comm.c, let_go). */
#ifndef MOIRAI_RANK_RANK_TRANSPORT_H
#define MOIRAI_RANK_RANK_TRANSPORT_H

typedef struct rank_exec rank_exec;
typedef struct exec_send exec_send;
typedef struct exec_recv exec_recv;

typedef struct rank_transport {
    const char *name;
    /* The tensor at `data` exists: sets the wire, which MPI then sends. */
    int (*leave)(const rank_exec *x, exec_send *s, void *data);
    /* The wire was filled: the tensor exists when this returns. */
    int (*arrive)(const rank_exec *x, exec_recv *r);
} rank_transport;

extern const rank_transport rank_transport_direct, rank_transport_staged, rank_transport_mapped;

#endif
