/* m-SCT and GETF on the paper's networks: seconds to make the plan and peak memory of a process of its own, beside the
 * paper's seconds.
 *
 * usage: bench_rivals [NETWORK ...]      default: all eleven, in fp16, on the paper's testbed inter-server, original
 * graph Targets: m-sct within 2 s on gpt3-330M, 60 s and 2 GB on alphafold2-3.2B. The paper's figures are from another
 * machine and another solver: they stand beside ours for the order of magnitude. */
#include <moirai/moirai.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct measured {
    double seconds, peak_mb;
    int64_t makespan_ns;
    int rc;
} measured;

/* In a child, so that the peak is this placer's (with the problem's). */
static measured measure(const moirai_problem *p, const char *placer)
{
    measured m = {.rc = MOIRAI_EFAIL};
    int fd[2];
    struct rusage use;
    fflush(stdout);
    if (pipe(fd))
        return m;
    pid_t child = fork();
    if (child == 0) {
        moirai_plan *plan;
        m.rc = moirai_place(&plan, p, placer, NULL);
        m.seconds = m.rc ? 0 : (double)plan->generation_ns * 1e-9;
        m.makespan_ns = m.rc ? 0 : plan->makespan_ns;
        _exit(write(fd[1], &m, sizeof m) != sizeof m);
    }
    close(fd[1]);
    if (child < 0 || read(fd[0], &m, sizeof m) != sizeof m)
        m.rc = MOIRAI_EFAIL;
    close(fd[0]);
    if (child > 0 && wait4(child, NULL, 0, &use) == child)
        m.peak_mb = (double)use.ru_maxrss / 1024;
    return m;
}

static double target_s(const char *network, const char *placer)
{
    if (strcmp(placer, "m-sct"))
        return 0;
    return !strcmp(network, "gpt3-330M") ? 2 : !strcmp(network, "alphafold2-3.2B") ? 60 : 0;
}

static void show(const moirai_problem *p, const moirai_paper_network *paper, const char *placer, double theirs)
{
    measured m = measure(p, placer), etf = measure(p, "m-etf");
    double target = target_s(paper->name, placer);
    if (m.rc) {
        printf("%-16s %6d %-6s no plan\n", paper->name, p->n_ops, placer);
        return;
    }
    printf("%-16s %6d %-6s %9.3f s %9.2f s %8.0f x %7.0f MB  makespan %10.3f ms, %5.2f of m-etf's", paper->name,
           p->n_ops, placer, m.seconds, theirs, theirs / m.seconds, m.peak_mb, (double)m.makespan_ns * 1e-6,
           etf.rc ? 0 : (double)m.makespan_ns / (double)etf.makespan_ns);
    if (target > 0)
        printf("  %.3f of the target of %.0f s", m.seconds / target, target);
    printf("\n");
}

static int run(const moirai_paper_network *paper)
{
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    moirai_problem *p = NULL;
    moirai_problem_options o = {.flow = MOIRAI_FLOW_TENSOR};
    int rc = moirai_zoo_graph(&g, paper->name, 2);
    rc = rc ? rc : moirai_cluster_open(&c, "inter-server");
    rc = rc ? rc : moirai_problem_new(&p, g, c, &o);
    if (rc) {
        fprintf(stderr, "%s\n", moirai_error_message());
    } else {
        show(p, paper, "m-sct", paper->generation_s[0][1]);
        show(p, paper, "getf", paper->generation_s[0][2]);
    }
    moirai_problem_free(p);
    moirai_cluster_free(c);
    moirai_graph_free(g);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;
    printf("%-16s %6s %-6s %11s %11s %10s %10s\n", "network", "ops", "placer", "ours", "paper's", "ratio", "peak");
    for (int i = 0; i < moirai_paper_network_count(); i++) {
        bool wanted = argc < 2;
        for (int j = 1; j < argc; j++)
            wanted = wanted || !strcmp(argv[j], moirai_paper_network_at(i)->name);
        if (wanted)
            rc |= run(moirai_paper_network_at(i));
    }
    return rc != 0;
}
