/* What libFuzzer does, in small, for compilers that do not have it: a loop of changes over a corpus, led by coverage.
 *
 * Linked to every target where the compiler is gcc, whose -fsanitize-coverage=trace-pc calls __sanitizer_cov_trace_pc at every branch: an input
 * that goes from one branch to another as none did before is kept, in memory and in the first folder; without that option, changes of the
 * seeds are all there is. Changes are the target's own
 * (LLVMFuzzerCustomMutator, mutate_certificate.c) or those of bytes. It takes the options of libFuzzer that fuzz/run_long gives (also
 * -set_cover_merge=1: from the other folders into the first what adds coverage, smallest inputs first), passes over the others, and dies as that one does: the input is written to the artifact prefix, the last line begins with SUMMARY, the exit code is 77. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) __attribute__((weak));
void __sanitizer_cov_trace_pc(void);
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

#define MAP (1u << 18)
#define MOST_INPUTS 20000
#define MOST_BYTES (1u << 16)
#define LONGEST_ROUND 4 /* changes one upon the other */

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static uint8_t seen[MAP], now[MAP];
static uint32_t touched[MAP], n_touched;
static uintptr_t before;

static input corpus[MOST_INPUTS];
static uint32_t n_corpus;
static uint8_t current[MOST_BYTES];
static size_t current_size, max_size = 4096;
static const char *prefix = "", *folder;
static double seconds = 10;
static unsigned timeout_s = 10;
static bool merges;
static uint64_t state = 88172645463325252ull, runs, kept, most_runs = UINT64_MAX;

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    uint32_t at = (uint32_t)((pc >> 1 ^ before) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % MAP;
    before = pc >> 2;
    if (!now[at]) {
        now[at] = 1;
        touched[n_touched++] = at;
    }
}

/* A sanitizer's finding ends in the same handler as an abort() of the target. */
const char *__asan_default_options(void)
{
    return "abort_on_error=1:handle_abort=0:handle_sigtrap=1:handle_sigill=1:detect_leaks=0:allocator_may_return_null="
           "1";
}

const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (uint32_t)((state >> 16) % n) : 0;
}

static uint64_t digest(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * UINT64_C(1099511628211);
    return h;
}

static void write_input(const char *path)
{
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (to < 0 || write(to, current, current_size) != (ssize_t)current_size)
        fprintf(stderr, "cannot write %s\n", path);
    if (to >= 0)
        close(to);
}

static void die(int number)
{
    char path[4096];
    const char *what = number == SIGALRM ? "timeout" : "crash";
    snprintf(path, sizeof path, "%s%s-%016llx", prefix, what, (unsigned long long)digest(current, current_size));
    write_input(path);
    fprintf(stderr, "Test unit written to %s\nSUMMARY: stand-alone: %s\n", path, what);
    _exit(77);
}

/* ---- changes of bytes ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    uint32_t at = below((uint32_t)size), n = 1 + below(8), from = below((uint32_t)size);
    switch (size ? below(5) : 1) {
    case 0: data[at] = (uint8_t)below(256); return size;
    case 1: /* one more */
        if (size >= most)
            return size;
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)(size && below(2) ? data[from] : below(256));
        return size + 1;
    case 2: /* some fewer */
        n = n < size - at ? n : (uint32_t)(size - at);
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 3: data[at] ^= (uint8_t)(1u << below(8)); return size;
    default: /* a part over another */
        n = n < size - at ? n : (uint32_t)(size - at);
        n = n < size - from ? n : (uint32_t)(size - from);
        memmove(data + at, data + from, n);
        return size;
    }
}

static void change(void)
{
    const input *one = &corpus[below(n_corpus)];
    current_size = one->size < max_size ? one->size : max_size;
    memcpy(current, one->data, current_size);
    for (uint32_t i = 1 + below(LONGEST_ROUND); i > 0; i--) {
        unsigned seed = below(UINT32_MAX);
        current_size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(current, current_size, max_size, seed)
                                               : LLVMFuzzerMutate(current, current_size, max_size);
    }
}

/* ---- the corpus ---- */

static void remember(void)
{
    if (n_corpus == MOST_INPUTS)
        return;
    input *one = &corpus[n_corpus];
    one->data = malloc(current_size + 1);
    if (!one->data)
        return;
    memcpy(one->data, current, current_size);
    one->size = current_size;
    n_corpus++;
}

/* Runs what is current; whether it took a way that is new. */
static bool is_news(void)
{
    bool news = false;
    n_touched = 0;
    before = 0;
    alarm(timeout_s);
    uint8_t *exact = malloc(current_size + (current_size == 0)); /* so that a byte too far is seen */
    if (exact) {
        memcpy(exact, current, current_size);
        LLVMFuzzerTestOneInput(exact, current_size);
    }
    free(exact);
    alarm(0);
    runs++;
    for (uint32_t i = 0; i < n_touched; i++) {
        news |= !seen[touched[i]];
        seen[touched[i]] = 1;
        now[touched[i]] = 0;
    }
    return news;
}

static void take_file(const char *path, bool run)
{
    struct stat is;
    FILE *file = !stat(path, &is) && S_ISREG(is.st_mode) ? fopen(path, "rb") : NULL;
    if (!file)
        return;
    current_size = fread(current, 1, max_size, file);
    fclose(file);
    if (!run || is_news() || n_touched == 0) /* all where nothing tells of ways */
        remember();
}

static void take_folder(const char *name, bool run)
{
    char path[4096];
    DIR *all = opendir(name);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        take_file(path, run);
    }
    if (all)
        closedir(all);
}

/* ---- merging ---- */

static int smaller_first(const void *a, const void *b)
{
    size_t x = ((const input *)a)->size, y = ((const input *)b)->size;
    return (x > y) - (x < y);
}

static void write_kept(void)
{
    char path[4096];
    kept++;
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%016llx", folder, (unsigned long long)digest(current, current_size));
    write_input(path);
}

/* What the first folder holds has been run; what was taken from the others has only been read. */
static void merge(uint32_t n_first)
{
    qsort(corpus + n_first, n_corpus - n_first, sizeof *corpus, smaller_first);
    for (uint32_t i = n_first; i < n_corpus; i++) {
        current_size = corpus[i].size;
        memcpy(current, corpus[i].data, current_size);
        if (is_news())
            write_kept();
    }
}

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fuzz(double end)
{
    while (runs < most_runs && clock_s() < end) {
        change();
        if (!is_news())
            continue;
        remember();
        write_kept();
    }
}

static void take_option(const char *option)
{
    if (!strncmp(option, "-max_total_time=", 16))
        seconds = atof(option + 16);
    else if (!strncmp(option, "-runs=", 6))
        most_runs = strtoull(option + 6, NULL, 10);
    else if (!strncmp(option, "-timeout=", 9))
        timeout_s = (unsigned)atoi(option + 9);
    else if (!strncmp(option, "-max_len=", 9))
        max_size = strtoull(option + 9, NULL, 10);
    else if (!strncmp(option, "-seed=", 6))
        state ^= strtoull(option + 6, NULL, 10) * UINT64_C(0x9e3779b97f4a7c15);
    else if (!strcmp(option, "-set_cover_merge=1"))
        merges = true;
    else if (!strncmp(option, "-artifact_prefix=", 17))
        prefix = option + 17;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = die};
    int deadly[] = {SIGABRT, SIGALRM, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaction(deadly[i], &act, NULL);
    state ^= (uint64_t)getpid() << 32 ^ (uint64_t)(clock_s() * 1e9);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-')
            take_option(argv[i]);
    max_size = max_size < MOST_BYTES ? max_size : MOST_BYTES;
    uint32_t n_first = 0;
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-') {
            bool first = !folder;
            folder = first ? argv[i] : folder;
            take_folder(argv[i], first || !merges);
            n_first = first ? n_corpus : n_first;
        }
    if (n_corpus == 0) { /* from nothing */
        current_size = 0;
        remember();
    }
    fprintf(stderr, "%u inputs\n", n_corpus);
    if (merges)
        merge(n_first);
    else
        fuzz(clock_s() + seconds); /* for changes, however long the seeds took */
    fprintf(stderr, "stat::number_of_executed_units: %llu\nstat::new_units_added: %llu\n", (unsigned long long)runs,
            (unsigned long long)kept);
    return 0;
}
