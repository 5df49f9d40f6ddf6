/* Any bytes as a moirai-problem file; what reads must also take wishes and write. */
#include <moirai/problem.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const moirai_wish wish = {MOIRAI_TOGETHER, "[a-m]*", NULL};
    moirai_problem *p;
    if (moirai_problem_parse(&p, (const char *)data, size, "fuzz") == MOIRAI_OK) {
        moirai_problem_check_memory(p);
        moirai_problem_wish(p, &wish, 1);
        moirai_problem_write(p, "/dev/null");
        moirai_problem_free(p);
    }
    return 0;
}
