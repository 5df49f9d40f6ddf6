/* What `run`, `probe` and `profile` share: the ranks' arguments and hosts, and how measured runs are shown. */
#include <unistd.h>
#include <yyjson.h>

#include "cli/run/run_steps.h"
#include "cli/run/step_ranks.h"
#include "support/capture.h"
#include "support/check.h"
#include "support/command.h"

static const cli_option options[] = {CLI_OPTION_HOSTS, {0}};
static const cli_command command = {.name = "step", .summary = "one step", .options = options};

int cli_command_count(void)
{
    return 1;
}

const cli_command *cli_command_at(int index)
{
    return index == 0 ? &command : NULL;
}

const moirai_interrupt *cli_interrupt(void)
{
    static const moirai_interrupt never;
    return &never;
}

#define CLI(...) typed((char *[]){__VA_ARGS__, NULL})
static cli_context typed(char **words)
{
    cli_context cli;
    int n = 0;
    while (words[n])
        n++;
    assert_ok(cli_parse(&cli, &command, n, words));
    return cli;
}

/* ---- ranks ---- */

static void test_cli_ranks_arguments_and_folder(void **state)
{
    (void)state;
    cli_ranks r;
    cli_context cli = CLI("-q");
    setenv("TMPDIR", ".", 1);
    assert_ok(cli_ranks_open(&r, &cli, "probe", NULL, 3));
    unsetenv("TMPDIR");
    assert_int_equal(r.n, 3);
    assert_string_equal(r.name[2], "2"); /* without a cluster ranks have numbers */
    assert_null(r.host[0]);
    assert_false(r.has_hosts);
    assert_string_equal(r.argument[0], "probe");
    assert_string_equal(r.argument[1], "--output");
    assert_string_equal(r.argument[2], r.result);
    assert_string_equal(r.argument[3], "--report");
    cli_ranks_add(&r, "--seconds", "3");
    cli_ranks_add(&r, "--fresh", "");
    cli_ranks_add(&r, "--absent", NULL);
    assert_int_equal(r.n_arguments, 5 + 2 + 1);
    assert_string_equal(r.argument[7], "--fresh");
    assert_null(r.argument[8]);
    assert_int_equal(access(r.folder, W_OK), 0);
    write_text(r.report, "{\"runs\": 5, \"name\": \"x\"}");
    yyjson_doc *doc;
    assert_ok(cli_ranks_report(&doc, &r));
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_int_equal(cli_report_count(root, "runs"), 5);
    assert_string_equal(cli_report_text(root, "name"), "x");
    assert_string_equal(cli_report_text(root, "absent"), ""); /* what is missing reads as nothing */
    assert_int_equal(cli_report_count(root, "absent"), 0);
    yyjson_doc_free(doc);
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", r.folder);
    cli_ranks_free(&r);
    assert_int_not_equal(access(folder, F_OK), 0); /* nothing stays behind */
    cli_free(&cli);
}

/* Hosts in turn, again from the first; the cluster's own come first. */
static void test_cli_ranks_hosts_in_turn(void **state)
{
    (void)state;
    cli_ranks r;
    moirai_cluster *c;
    cli_context cli = CLI("-q", "--hosts", "one,two");
    assert_ok(cli_ranks_open(&r, &cli, "probe", NULL, 3));
    assert_true(r.has_hosts);
    assert_string_equal(r.host[0], "one");
    assert_string_equal(r.host[1], "two");
    assert_string_equal(r.host[2], "one");
    cli_ranks_free(&r);
    static const char json[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": ["
        "{\"name\": \"A\", \"type\": \"cpu\", \"memory\": \"1GB\", \"host\": \"own\"}, {\"name\": \"B\", \"type\": "
        "\"cpu\", \"memory\": \"1GB\"}],"
        " \"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"both\": true}]}";
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c"));
    assert_ok(cli_ranks_open(&r, &cli, "profile", c, 2));
    assert_string_equal(r.host[0], "own");
    assert_string_equal(r.host[1], "two");
    assert_string_equal(r.name[1], "B");
    cli_ranks_free(&r);
    moirai_cluster_free(c);
    cli_free(&cli);
    cli = CLI("-q", "--hosts", ",,");
    assert_int_equal(cli_ranks_open(&r, &cli, "probe", NULL, 2), MOIRAI_EUSAGE);
    assert_contains(moirai_error_message(), "names no host");
    cli_ranks_free(&r);
    cli_free(&cli);
}

/* ---- what was measured ---- */

static const char timeline[] =
    "{\"planned_ns\": 1000, \"least_ns\": 1500, \"median_ns\": 2000, \"mean_ns\": 2100, \"p90_ns\": 2500, \"p99_ns\": "
    "2900, \"most_ns\": 3000, \"runs\": 7,\n"
    " \"devices\": [{\"name\": \"A\", \"segments\": [{\"file\": \"0-A-0.onnx\", \"planned_work_ns\": 400, "
    "\"median_ns\": 600, \"ops\": [\"a\", \"b\"]},\n"
    "  {\"planned_work_ns\": 0, \"median_ns\": 5, \"ops\": []}]}],\n"
    " \"transfers\": [{\"planned_start_ns\": 10, \"planned_finish_ns\": 110, \"median_ns\": 150, \"bytes\": 4096}]}\n";

static void test_cli_run_shows_latency_and_comparison(void **state)
{
    (void)state;
    cli_context cli = CLI("-q");
    char *err;
    write_text("t.json", timeline);
    capture c = capture_begin();
    int rc = cli_show_timeline(&cli, "t.json", true);
    char *out = capture_end(c, &err);
    assert_int_equal(rc, 0);
    assert_contains(out, "latency      2.000 us median of 7 runs\nspread       1.500 us least, 2.500 us p90, 2.900 us "
                         "p99, 3.000 us most\n"
                         "planned      1.000 us: measured is 2.00 times that\n");
    assert_contains(out, "A          0-A-0.onnx                 2        400 ns        600 ns    1.50\n");
    assert_contains(
        out, "A                                     0          0 ns          5 ns    0.00\n"); /* a segment without a
                                                                                                  file name */
    assert_contains(out, "transfers  4.10 kB                    1        100 ns        150 ns    1.50\n");
    assert_contains(out, "end to end                                   1.000 us      2.000 us    2.00\n");
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "p99_ns")), 2900);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "transfers_measured_ns")), 150);
    yyjson_mut_val *segments = yyjson_mut_obj_get(cli.result, "segments");
    assert_int_equal(yyjson_mut_arr_size(segments), 2);
    assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(yyjson_mut_arr_get(segments, 1), "file")), "");
    free(out);
    free(err);
    cli_free(&cli);
}

static void test_cli_run_shows_the_verdict(void **state)
{
    (void)state;
    static const char *const verdict[] = {"v.json", "other.json"}, *const gone[] = {"gone.json"};
    cli_context cli = CLI("-q");
    char *err;
    write_text("other.json", "{\"outputs\": [{\"name\": \"y\", \"different\": 0, \"elements\": 10, \"largest\": 0}]}");
    write_text("v.json", "{\"outputs\": [{\"name\": \"y\", \"different\": 0, \"elements\": 10, \"largest\": 0.25}, "
                         "{\"name\": \"z\", \"different\": 0, \"largest\": 0.5}]}");
    capture c = capture_begin();
    int rc = cli_show_verdict(&cli, verdict, 1);
    char *out = capture_end(c, &err);
    assert_int_equal(rc, 0);
    assert_string_equal(out, "verified     2 outputs equal the whole model's: largest difference 0.5\n");
    assert_true(yyjson_mut_get_bool(yyjson_mut_obj_get(cli.result, "verified")));
    free(out);
    free(err);
    cli_free(&cli);
    cli = CLI("-q");
    write_text("v.json", "{\"outputs\": [{\"name\": \"y\", \"against\": \"whole model\", \"different\": 3, "
                         "\"elements\": 10, \"largest\": 2, \"at\": 4, \"got\": 3, \"expected\": 1}]}");
    assert_int_equal(cli_show_verdict(&cli, verdict, 1), MOIRAI_EVERIFY);
    assert_string_equal(
        moirai_error_message(),
        "output 'y' differs from the whole model's: 3 of 10 elements, the most element 4: 3, expected 1");
    assert_false(yyjson_mut_get_bool(yyjson_mut_obj_get(cli.result, "verified")));
    write_text("v.json", "{\"outputs\": [{\"name\": \"y\", \"different\": 1, \"largest\": null}]}"); /* not finite */
    cli_free(&cli);
    cli = CLI("-q");
    assert_int_equal(cli_show_verdict(&cli, verdict, 1), MOIRAI_EVERIFY);
    assert_null(yyjson_mut_obj_get(cli.result, "largest_difference"));
    assert_int_not_equal(cli_show_verdict(&cli, gone, 1), MOIRAI_OK);
    cli_free(&cli);
    cli = CLI("-q");
    static const char *const swapped[] = {"other.json", "v.json"}; /* of two copies the second is wrong */
    assert_int_equal(cli_show_verdict(&cli, swapped, 2), MOIRAI_EVERIFY);
    assert_int_equal(strncmp(moirai_error_message(), "copy 2: output 'y' differs", 26), 0);
    assert_false(yyjson_mut_get_bool(yyjson_mut_obj_get(cli.result, "verified")));
    cli_free(&cli);
}

/* One at least to each, the rest by what the plan had. */
static void test_cli_run_requests_are_shared_out_to_copies(void **state)
{
    (void)state;
    int64_t slots[3] = {4, 2, 1};
    assert_int_equal(cli_copies_share_out(slots, 3, 7), 0);
    assert_true(slots[0] == 4 && slots[1] == 2 && slots[2] == 1);
    assert_int_equal(cli_copies_share_out(slots, 3, 14), 0);
    assert_true(slots[0] == 8 && slots[1] == 4 && slots[2] == 2);
    assert_int_equal(cli_copies_share_out(slots, 3, 3), 0);
    assert_true(slots[0] == 1 && slots[1] == 1 && slots[2] == 1);
    assert_int_equal(cli_copies_share_out(slots, 3, 2), MOIRAI_EUSAGE);
}

/* Copies of a plan file, each with this share and so many slots ("" for none). */
static int open_copies(const char *const share[2], const char *const slots[2])
{
    char text[600], part[2][80];
    cli_copies *copies;
    int64_t pace;
    for (int i = 0; i < 2; i++)
        snprintf(part[i], sizeof part[i], "%s%s", *slots[i] ? ", \"slots\": " : "", slots[i]);
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-plan\", \"version\": 1, \"in_flight\": 4, \"copies\": [{\"share\": %s%s}, "
             "{\"share\": %s%s, \"makespan_ns\": 1, \"ops\": [], \"transfers\": []}]}",
             share[0], part[0], share[1], part[1]);
    write_text("copies.json", text);
    int rc = cli_copies_open(&copies, &pace, "copies.json", ".", 4);
    cli_copies_free(copies);
    return rc;
}

/* What a plan file says of its copies is somebody else's word: numbers beyond all sums, shares that are none. */
static void test_cli_run_copies_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const half[] = {"0.5", "0.5"}, *const none[] = {"", ""};
    assert_int_equal(open_copies(half, none), 0);
    assert_int_equal(open_copies(half, (const char *const[]){"3", "1"}), 0);
    assert_int_equal(open_copies(half, (const char *const[]){"4611686018427387904", "4611686018427387908"}),
                     MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "copy 0: slots is 4611686018427387904, expected at most"));
    assert_int_equal(open_copies(half, (const char *const[]){"3", ""}), MOIRAI_EINPUT);
    assert_int_equal(open_copies((const char *const[]){"0", "0"}, none), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "shares of copies sum to 0.000000, not to 1"));
    assert_int_equal(open_copies((const char *const[]){"0.5", "1e400"}, none), MOIRAI_EINPUT);
    assert_int_equal(open_copies((const char *const[]){"0.5", "-0.5"}, none), MOIRAI_EINPUT);
}

static void test_cli_inside_mpi_by_the_environment(void **state)
{
    (void)state;
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"};
    int rank = -1, size = -1;
    for (size_t i = 0; i < 4; i++)
        unsetenv(names[i]);
    assert_false(cli_inside_mpi(&rank, &size));
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    bool open_mpi = cli_inside_mpi(&rank, &size);
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    setenv("PMI_RANK", "2", 1);
    setenv("PMI_SIZE", "4", 1);
    bool mpich = cli_inside_mpi(&rank, &size);
    assert_true(open_mpi || mpich); /* whichever MPI this was built for */
    assert_true(rank == 2 && size == 4);
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
}

/* Which MPI a launcher is of: what it is called in the end says so, or the library beside it; else it is passed over. */
static void test_cli_mpi_is_told_by_its_launcher(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH")), *given = getenv("MOIRAI_MPIEXEC") ? strdup(getenv("MOIRAI_MPIEXEC")) : NULL;
    cli_mpi mpi = {0};
    assert_int_equal(system("mkdir -p none/bin open/bin open/lib mpich/bin mpich/lib debian && "
                            "touch none/bin/mpiexec open/bin/mpiexec open/lib/libmpi.so.40 mpich/bin/mpirun "
                            "mpich/lib/libmpi.so.12 debian/orterun && chmod +x */bin/* debian/orterun && "
                            "ln -s orterun debian/mpiexec.openmpi && ln -s mpiexec.openmpi debian/mpiexec"),
                     0);
    unsetenv("MOIRAI_MPIEXEC");
    static const struct {
        const char *path, *launcher;
        bool open_mpi;
    } list[] = {{"none/bin:open/bin:mpich/bin", "open/bin/mpiexec", true},
                {"mpich/bin:open/bin", "mpich/bin/mpirun", false},
                {"none/bin::debian", "debian/mpiexec", true},
                {"none/bin:nowhere", NULL, false}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        setenv("PATH", list[i].path, 1);
        assert_int_equal(cli_mpi_search(&mpi), list[i].launcher != NULL);
        if (list[i].launcher) {
            assert_string_equal(mpi.launcher, list[i].launcher);
            assert_int_equal(mpi.open_mpi, list[i].open_mpi);
        }
    }
    setenv("MOIRAI_MPIEXEC", "mpich/bin/mpirun", 1);
    assert_true(cli_mpi_search(&mpi) && !mpi.open_mpi);
    setenv("MOIRAI_MPIEXEC", "nowhere/mpiexec", 1); /* and no other in its place */
    setenv("PATH", "open/bin", 1);
    assert_false(cli_mpi_search(&mpi));
    setenv("PATH", path, 1);
    unsetenv("MOIRAI_MPIEXEC");
    if (given)
        setenv("MOIRAI_MPIEXEC", given, 1);
    free(path);
    free(given);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_ranks_arguments_and_folder),
        IN_FOLDER(test_cli_ranks_hosts_in_turn),
        IN_FOLDER(test_cli_run_shows_latency_and_comparison),
        IN_FOLDER(test_cli_run_shows_the_verdict),
        IN_FOLDER(test_cli_run_requests_are_shared_out_to_copies),
        IN_FOLDER(test_cli_run_copies_that_make_no_sense_are_refused),
        IN_FOLDER(test_cli_inside_mpi_by_the_environment),
        IN_FOLDER(test_cli_mpi_is_told_by_its_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
