/* Segments: what a device does between two meetings with others, played through and merged.
 *
 * A schedule knows the delay of a message alone. A runtime pays for every meeting as well: between two segments a device computes nothing, it says
 * what is there and looks for what it needs. Where that is more than a delay costs, two segments in a row are better one: what the first sends leaves
 * later then, and what the second reads is awaited sooner. */
#ifndef MOIRAI_SEGMENTS_H
#define MOIRAI_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <moirai/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All arrays are the caller's. A message is sent by one segment at most; nobody waits for one that is not sent. */
typedef struct moirai_segments {
    int32_t n_devices, n_messages;
    const int32_t
        *device_off; /* [n_devices + 1] device k has segments device_off[k] .. device_off[k + 1], in their order */
    const int64_t *work_ns;         /* [segment] */
    const int64_t *meeting_ns;      /* [device] between two of its segments */
    const int32_t *wait_off, *wait; /* segment i reads messages wait[wait_off[i] .. wait_off[i + 1]] */
    const int32_t *send_off, *send; /* and sends these, when all of it is done */
    const int64_t *took_ns;         /* [message] */
    const int32_t *source, *target; /* [message] devices */
    bool ports;                     /* a device sends, and receives, one message at a time */
    bool ordered; /* messages leave a device, and pass between two, in the order of their numbers; with ports always */
} moirai_segments;

/* When the last segment ends, where begins[i] says whether a segment of its own begins at i (NULL: at each); -1 where segments wait for each other
 * in a circle. MOIRAI_EUSAGE: a number out of range. O(segments + messages x devices). */
MOIRAI_API int moirai_segments_play(int64_t *end_ns, const moirai_segments *s, const bool *begins);

/* Neighbours are merged as long as the end comes no later, nor, in sum, do the arrivals of messages and the ends of devices: begins[i] of every
 * segment, and the end, as above. Greedy, the same for the same segments. */
MOIRAI_API int moirai_segments_merge(bool *begins, int64_t *end_ns, const moirai_segments *s);

#ifdef __cplusplus
}
#endif
#endif
