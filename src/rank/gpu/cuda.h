/* The CUDA driver, as far as a rank needs it: memory, one stream, copies, and memory that another process maps (CUDA
 * IPC). libcuda.so.1 comes with the driver and is looked for at run time: nothing is linked, and a machine without a
 * GPU misses nothing.
 *
 * Whatever copies or fills has ended when the call returns. Errors are one line with the GPU's number and CUDA's own
 * name for what happened. */
#ifndef MOIRAI_RANK_GPU_CUDA_H
#define MOIRAI_RANK_GPU_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rank_cuda rank_cuda;

/* What another process of this host needs to map memory of rank_cuda_alloc. Plain bytes: sent as it is. */
typedef struct rank_cuda_handle {
    char bytes[64];
} rank_cuda_handle;

/* GPU number `number`, as CUDA counts them (CUDA_VISIBLE_DEVICES chooses). MOIRAI_EFAIL where there is no driver or no
 * GPU, MOIRAI_EUSAGE where there is no such number. The calling thread can use it at once. */
int rank_cuda_open(rank_cuda **out, int number);
void rank_cuda_close(rank_cuda *c);
/* Any other thread calls this first. */
int rank_cuda_use(const rank_cuda *c);

int rank_cuda_number(const rank_cuda *c);
const char *rank_cuda_name(const rank_cuda *c);        /* "NVIDIA H200" */
const unsigned char *rank_cuda_id(const rank_cuda *c); /* 16 bytes, the same in every process */
void *rank_cuda_stream(const rank_cuda *c); /* for all that is computed: a cudaStream_t. Copies have another */
int rank_cuda_wait(const rank_cuda *c);     /* until all is computed */
/* A stand-in whose memory is the host's, for tests (MOIRAI_CUDA_DRIVER names its file): operators run on the CPU. */
bool rank_cuda_is_host(const rank_cuda *c);

/* Memory of the GPU; MOIRAI_EFAIL says how much there is. 0 bytes give an address, too. */
int rank_cuda_alloc(void **out, const rank_cuda *c, size_t bytes);
void rank_cuda_free(const rank_cuda *c, void *memory);
/* Memory of the host that the GPU copies from and to at full speed. */
int rank_cuda_host_alloc(void **out, const rank_cuda *c, size_t bytes);
void rank_cuda_host_free(const rank_cuda *c, void *memory);

int rank_cuda_put(const rank_cuda *c, void *to, const void *from_host, size_t bytes);
int rank_cuda_get(const rank_cuda *c, void *to_host, const void *from, size_t bytes);
int rank_cuda_copy(const rank_cuda *c, void *to, const void *from, size_t bytes); /* `from` may be another GPU's */
int rank_cuda_fill(const rank_cuda *c, void *to, int byte, size_t bytes);

/* Memory of rank_cuda_alloc for other processes, and theirs for us. What is mapped must be unmapped before its owner
 * frees it. */
int rank_cuda_export(rank_cuda_handle *out, const rank_cuda *c, void *memory);
int rank_cuda_map(void **out, const rank_cuda *c, const rank_cuda_handle *handle);
void rank_cuda_unmap(const rank_cuda *c, void *mapped);

/* " (12.3 of 139.8 GiB free)", or "" where the driver does not say. */
void rank_cuda_room(char *out, size_t size, const rank_cuda *c);

#endif
