/* Places a problem file and says how good the plan is: the shortest use of the library.
 *
 * usage: place_file PROBLEM [PLACER] */
#include <moirai/moirai.h>

#include <stdio.h>

static int place_file(const char *path, const char *placer)
{
    moirai_problem *problem;
    moirai_plan *plan = NULL;
    moirai_place_options options;
    int result = moirai_problem_read(&problem, path);
    if (result)
        return result;
    moirai_place_options_init(&options);
    options.budget.time_limit_s = 5;
    result = moirai_place(&plan, problem, placer, &options);
    if (!result)
        printf("%s: %.3f ms, at most %.2f %% from the best possible\n", plan->placer, 1e-6 * (double)plan->makespan_ns,
               100 * moirai_plan_gap(plan));
    for (int32_t k = 0; !result && k < problem->n_devices; k++)
        printf("  %-10s busy %.3f ms, %lld bytes\n", problem->device_name[k], 1e-6 * (double)plan->device_busy_ns[k],
               (long long)plan->device_memory_bytes[k]);
    moirai_plan_free(plan);
    moirai_problem_free(problem);
    return result;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: place_file PROBLEM [PLACER]\n");
        return 2;
    }
    int result = place_file(argv[1], argc > 2 ? argv[2] : "moirai");
    if (result)
        fprintf(stderr, "place_file: %s\n", moirai_error_message());
    return -result;
}
