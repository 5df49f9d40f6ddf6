/* placeto and hrl as the registry shows them: names and settings are here, what they do is in libmoirai-learn
 * (src/place/learn). */
#include "place/learn/door/learnt.h"
#include "place/placers.h"

#include <limits.h>

static bool available(const char **why)
{
    char path[PATH_MAX];
    return place_learnt_find(path, sizeof path, why);
}

static int place_by(const char *name, moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    const place_learnt_door *door;
    int rc = place_learnt_open(&door);
    if (rc)
        return rc;
    rc = door->place(out, name, p, o);
    return rc ? moirai_error(rc, "%s", door->message()) : 0;
}

static int place_with_placeto(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    return place_by(place_placeto.name, out, p, o);
}

static int place_with_hrl(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    return place_by(place_hrl.name, out, p, o);
}

/* Settings of both. */
#define LEARN_PARAMS \
    {.name = "save", .kind = MOIRAI_PARAM_TEXT, .help = "file to write the trained policy to"}, \
        {.name = "load", .kind = MOIRAI_PARAM_TEXT, .help = "file to read a policy from"}, \
        {.name = "train", \
         .kind = MOIRAI_PARAM_BOOL, \
         .help = "learn on this problem; off: use the policy as it is", \
         .value = 1, \
         .least = 0, \
         .most = 1}, \
    { \
        .name = "episodes", .kind = MOIRAI_PARAM_INT, .help = "train for so many; 0: as effort and time limit say", \
        .value = 0, .least = 0, .most = 1e9 \
    }

static const moirai_param placeto_params[] = {
    LEARN_PARAMS,
    {.name = "nodes",
     .kind = MOIRAI_PARAM_INT,
     .help = "most groups of operators to be visited",
     .value = 128,
     .least = 2,
     .most = 1024},
};

static const moirai_param hrl_params[] = {
    LEARN_PARAMS,
    {.name = "groups",
     .kind = MOIRAI_PARAM_INT,
     .help = "most groups to be used; 0: half as many as operators",
     .value = 0,
     .least = 0,
     .most = PLACE_LEARNT_MAX_GROUPS},
};

const moirai_placer place_placeto = {
    .name = "placeto",
    .summary = "Placeto: a learnt policy over the graph's embedding moves groups one by one",
    .letters = "E episode",
    .params = placeto_params,
    .n_params = sizeof placeto_params / sizeof *placeto_params,
    .few_devices = true,
    .available = available,
    .place = place_with_placeto,
};

const moirai_placer place_hrl = {
    .name = "hrl",
    .summary = "HRL: two learnt networks, one groups operators, one places the groups",
    .letters = "E episode",
    .params = hrl_params,
    .n_params = sizeof hrl_params / sizeof *hrl_params,
    .few_devices = true,
    .available = available,
    .place = place_with_hrl,
};
