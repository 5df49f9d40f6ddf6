/* A libmoirai-learn of another version. */
#include "place/learn/door/learnt.h"

extern const place_learnt_door moirai_learnt_library;
const place_learnt_door moirai_learnt_library = {.version = "0.0.0"};
