/* Files of one JSON object per line. Private. */
#ifndef MOIRAI_STUDY_LINES_H
#define MOIRAI_STUDY_LINES_H

#include <stddef.h>

#include "util/json.h"

/* Takes the object of a line; anything but 0 ends the reading. */
typedef int (*study_line_taker)(void *to, const util_json_at *at, yyjson_val *object);

/* Line by line; empty ones, and those that a crash cut off, are passed over. Messages name the line. */
int study_each_line(const char *data, size_t length, const char *label, study_line_taker take, void *to);
/* Cut off to `size`; "" where there is none. */
int study_read_text(char *out, size_t size, const util_json_at *at, yyjson_val *object, const char *key);

#endif
