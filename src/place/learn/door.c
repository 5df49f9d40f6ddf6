/* What libmoirai-learn shows: the learnt placers by name. */
#include "place/learn/train.h"
#include "place/learn/door/learnt.h"

#include <string.h>

static int place(moirai_plan **out, const char *placer, const moirai_problem *p, const moirai_place_options *o)
{
    static const learn_method *const methods[] = {&learn_placeto, &learn_hrl};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i]->placer->name, placer))
            return learn_place(out, methods[i], p, o, NULL, NULL);
    return moirai_error(MOIRAI_EUSAGE, "libmoirai-learn has no placer '%s'", placer);
}

extern const place_learnt_door moirai_learnt_library;
MOIRAI_API const place_learnt_door moirai_learnt_library = {
    .version = MOIRAI_VERSION,
    .place = place,
    .message = moirai_error_message,
};
