#include "support/check.h"
#include "support/scale.h"

#include <moirai/error.h>
#include <moirai/zoo.h>

#include <unistd.h>

/* The library looks beside itself, and a test's program is elsewhere than the command. */
__attribute__((constructor)) static void name_learn_library(void)
{
    setenv("MOIRAI_LEARN_LIBRARY", MOIRAI_LEARN_LIBRARY, 0);
}

int run_cases(const struct CMUnitTest *cases, size_t few, size_t all)
{
    size_t n = TEST_AGAIN(few, all);
    if (n < all)
        print_message("%zu of %zu cases: the others ran in another build\n", n, all);
    return _cmocka_run_group_tests("cases", cases, n, NULL, NULL);
}

void check_ok(int result, const char *call, const char *file, int line)
{
    if (result == MOIRAI_OK)
        return;
    print_error("%s: %d: %s\n", call, result, moirai_error_message());
    _fail(file, line);
}

static char *next_buffer(size_t size)
{
    static char buffers[8][4096];
    static unsigned turn;
    assert_true(size < sizeof buffers[0]);
    return buffers[turn++ % 8];
}

char *temporary_path(const char *name)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char *path = next_buffer(strlen(folder) + strlen(name) + 40);
    sprintf(path, "%s/moirai-test-%ld-%s", folder, (long)getpid(), name);
    return path;
}

char *data_path(const char *name)
{
    char *path = next_buffer(strlen(MOIRAI_SOURCE_DIR) + strlen(name) + 16);
    sprintf(path, "%s/tests/data/%s", MOIRAI_SOURCE_DIR, name);
    return path;
}

static void same_texts(const char *const *a, const char *const *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        assert_string_equal(a[i], b[i]);
}

#define SAME(array, n) assert_memory_equal(a->array, b->array, (size_t)(n) * sizeof *a->array)

void assert_graphs_equal(const moirai_graph *a, const moirai_graph *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->element_bytes, b->element_bytes);
    assert_int_equal(a->n_ops, b->n_ops);
    assert_int_equal(a->n_tensors, b->n_tensors);
    assert_int_equal(a->n_time_keys, b->n_time_keys);
    int32_t n = a->n_ops, m = a->n_tensors;
    same_texts(a->op_name, b->op_name, n);
    same_texts(a->op_type, b->op_type, n);
    SAME(op_weight_bytes, n);
    SAME(op_workspace_bytes, n);
    SAME(op_flops, n);
    SAME(op_traffic_bytes, n);
    SAME(op_in_off, n + 1);
    SAME(op_in, a->op_in_off[n]);
    SAME(op_out_off, n + 1);
    SAME(op_out, a->op_out_off[n]);
    SAME(op_member_off, n + 1);
    same_texts(a->op_member, b->op_member, a->op_member_off[n]);
    same_texts(a->tensor_name, b->tensor_name, m);
    SAME(tensor_bytes, m);
    SAME(tensor_producer, m);
    SAME(tensor_reader_off, m + 1);
    SAME(tensor_reader, a->tensor_reader_off[m]);
    same_texts(a->time_key, b->time_key, a->n_time_keys);
    SAME(time_ns, (int64_t)n * a->n_time_keys);
    SAME(topo, n);
    SAME(topo_rank, n);
}

static void same_text_or_null(const char *a, const char *b)
{
    if (!a || !b)
        assert_true(a == b);
    else
        assert_string_equal(a, b);
}

static void same_device(const moirai_device *a, const moirai_device *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->type, b->type);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    same_text_or_null(a->ep, b->ep);
    same_text_or_null(a->cores, b->cores);
    same_text_or_null(a->host, b->host);
    assert_int_equal(a->threads, b->threads);
    const moirai_device_type *x = &a->figures, *y = &b->figures;
    same_text_or_null(x->name, y->name);
    assert_int_equal(x->memory_bytes, y->memory_bytes);
    assert_true(x->bandwidth_gb_s == y->bandwidth_gb_s && x->gflops_fp32 == y->gflops_fp32);
    assert_true(x->clock_mhz == y->clock_mhz && x->l2_mb == y->l2_mb && x->delivered == y->delivered);
    assert_true(x->sm == y->sm && x->cores_per_sm == y->cores_per_sm);
}

void assert_clusters_equal(const moirai_cluster *a, const moirai_cluster *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->n_links, b->n_links);
    for (int32_t i = 0; i < a->n_devices; i++)
        same_device(&a->device[i], &b->device[i]);
    SAME(link, a->n_links);
    SAME(bytes_per_second, a->n_devices * a->n_devices);
    SAME(latency_ns, a->n_devices * a->n_devices);
}

static void same_tensors(const moirai_problem *a, const moirai_problem *b)
{
    int32_t m = a->n_tensors, k = a->n_devices;
    same_texts(a->tensor_name, b->tensor_name, m);
    SAME(tensor_bytes, m);
    SAME(tensor_producer, m);
    SAME(tensor_class, m);
    SAME(tensor_has_table, m);
    SAME(class_transfer_ns, (int64_t)a->n_classes * k * k);
    SAME(edge_tensor, a->n_edges);
    SAME(edge_reader, a->n_edges);
    SAME(tensor_edge_off, m + 1);
}

void assert_problems_equal(const moirai_problem *a, const moirai_problem *b)
{
    int32_t n = a->n_ops, k = a->n_devices;
    assert_string_equal(a->name, b->name);
    assert_true(a->flow == b->flow && a->congestion == b->congestion && a->memory == b->memory);
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->n_ops, b->n_ops);
    assert_int_equal(a->n_tensors, b->n_tensors);
    assert_int_equal(a->n_edges, b->n_edges);
    assert_int_equal(a->n_groups, b->n_groups);
    assert_int_equal(a->n_classes, b->n_classes);
    same_texts(a->device_name, b->device_name, k);
    SAME(device_memory_bytes, k);
    SAME(device_launch_ns, k);
    SAME(device_segment_ns, k);
    SAME(device_whole_ns, k);
    SAME(bytes_per_second, k * k);
    SAME(latency_ns, k * k);
    same_texts(a->op_name, b->op_name, n);
    same_texts(a->op_type, b->op_type, n);
    SAME(op_memory_bytes, n);
    SAME(op_time_ns, (int64_t)n * k);
    SAME(op_group, n);
    same_texts(a->group_name, b->group_name, a->n_groups);
    SAME(op_devices, n);
    SAME(op_in_off, n + 1);
    SAME(op_in, a->op_in_off[n]);
    SAME(op_in_edge, a->op_in_off[n]);
    SAME(op_out_off, n + 1);
    SAME(op_out, a->op_out_off[n]);
    SAME(topo, n);
    SAME(topo_rank, n);
    SAME(op_extern_off, n + 1);
    same_texts(a->op_extern, b->op_extern, a->op_extern_off[n]);
    same_tensors(a, b);
}

void assert_schedules_equal(const moirai_plan *a, const moirai_plan *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->makespan_ns, b->makespan_ns);
    assert_int_equal(a->n_ops, b->n_ops);
    SAME(op_device, a->n_ops);
    SAME(op_start_ns, a->n_ops);
}

moirai_problem *zoo_problem(const char *network, const char *cluster, moirai_flow flow)
{
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    moirai_problem_options o = {.flow = flow, .cost_model = "roofline"};
    assert_int_equal(moirai_zoo_graph(&g, network, 4), 0);
    assert_int_equal(moirai_cluster_open(&c, cluster), 0);
    assert_int_equal(moirai_problem_new(&p, g, c, &o), 0);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return p;
}
