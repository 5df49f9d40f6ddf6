/* A file without a name in memory. Others open it where the kernel shows the files of a process, which it does for those of
 * the same user: nothing lies in /dev/shm, whose size containers limit, and nothing is left behind by whatever way a
 * process ends. A process of another container may have the same number: the token tells. */
#include "rank/host/rank_shared.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void rank_shared_self(rank_shared *out, bool willing)
{
    const char *given = getenv("MOIRAI_TRANSPORT");
    *out = (rank_shared){.willing = willing && !(given && !strcmp(given, "host")), .fd = -1};
    struct stat network;
    gethostname(out->host, sizeof out->host - 1);
    out->network = stat("/proc/self/ns/net", &network) ? 0 : (uint64_t)network.st_ino;
}

void rank_shared_tell(rank_shared *all, MPI_Comm comm)
{
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int)sizeof *all, MPI_BYTE, comm);
}

bool rank_shared_can(const rank_shared *a, const rank_shared *b)
{
    return a->willing && b->willing && a->network == b->network && !strncmp(a->host, b->host, sizeof a->host);
}

/* All of its pages are there from the beginning: a full memory says so now, not by a signal in the middle of a run; and
 * so does a limit on the size of files, which this counts as. */
static void *take_pages(int fd, size_t bytes)
{
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    int error = posix_fallocate(fd, 0, (off_t)bytes);
    signal(SIGXFSZ, before);
    return error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
}

void *rank_shared_new(rank_shared *s, size_t bytes)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s->fd = memfd_create("moirai", MFD_CLOEXEC);
    void *memory = s->fd < 0 ? MAP_FAILED : take_pages(s->fd, bytes);
    if (memory == MAP_FAILED) {
        if (s->fd >= 0)
            close(s->fd);
        s->fd = -1;
        return NULL;
    }
    s->pid = (int32_t)getpid();
    s->bytes = bytes;
    s->token[0] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    s->token[1] = (uint64_t)(uintptr_t)memory ^ (uint64_t)s->pid;
    memcpy(memory, s->token, sizeof s->token);
    return memory;
}

void *rank_shared_map(const rank_shared *s)
{
    char path[64];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)s->pid, (int)s->fd);
    int fd = s->bytes < sizeof s->token ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *memory = fstat(fd, &info) || (uint64_t)info.st_size != s->bytes
                       ? MAP_FAILED
                       : mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    if (!memcmp(memory, s->token, sizeof s->token))
        return memory;
    munmap(memory, s->bytes);
    return NULL;
}

void rank_shared_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}
