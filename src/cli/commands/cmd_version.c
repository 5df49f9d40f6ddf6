/* moirai version: what this build is and what was built in. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

#include <moirai/moirai.h>

#include <string.h>
#include <yyjson.h>

static int run(cli_context *cli)
{
    const char *why;
    const struct {
        const char *name;
        bool on;
    } features[] = {
        {"highs", MOIRAI_HAVE_HIGHS}, {"learn", moirai_placer_find("placeto")->available(&why)},
        {"onnx", MOIRAI_HAVE_ONNX},   {"run", MOIRAI_HAVE_RUN},
        {"serve", MOIRAI_HAVE_HTTP},
    };
    yyjson_mut_val *built = yyjson_mut_obj(cli->doc);
    cli_print(cli, "moirai %s\n", moirai_version());
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        cli_print(cli, "%c%s\n", features[i].on ? '+' : '-', features[i].name);
        yyjson_mut_obj_add_bool(cli->doc, built, features[i].name, features[i].on);
    }
    yyjson_mut_obj_add_str(cli->doc, cli->result, "version", moirai_version());
    yyjson_mut_obj_add_val(cli->doc, cli->result, "features", built);
    return 0;
}

static const cli_example examples[] = {
    {"moirai version --json", "Version and features, for scripts"},
    {0},
};
const cli_command cli_command_version = {
    .name = "version",
    .summary = "show the version and the features built in",
    .text =
        "A feature is marked + where it is built in and - where its library was missing. learn: libmoirai-learn, "
        "loaded when "
        "a learnt placer (placeto, hrl) is asked for, is beside the command, among this installation's libraries, or "
        "where MOIRAI_LEARN_LIBRARY says.",
    .examples = examples,
    .run = run,
};
