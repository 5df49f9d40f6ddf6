/* Errors: every fallible function returns 0 or a negative moirai_result, and
 * leaves one line in a thread-local message.
 *
 * The message names the file, the object and the values that disagree, for
 * example: cluster.json: device 'B': memory "16XB": unknown unit.
 * The command's exit code is the negated result. */
#ifndef MOIRAI_ERROR_H
#define MOIRAI_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MOIRAI_API __attribute__((visibility("default")))
#define MOIRAI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define MOIRAI_API
#define MOIRAI_PRINTF(f, a)
#endif

typedef enum moirai_result {
    MOIRAI_OK = 0,
    MOIRAI_EFAIL = -1,       /* out of memory, input/output, anything else */
    MOIRAI_EUSAGE = -2,      /* the caller's arguments make no sense */
    MOIRAI_EINPUT = -3,      /* a file or value is malformed */
    MOIRAI_EINFEASIBLE = -4, /* no plan exists (or this method finds none that fits) */
    MOIRAI_ELIMIT = -5,      /* no plan within the time or effort limit */
    MOIRAI_EVERIFY = -6      /* results differ from the reference */
} moirai_result;

/* The version of the library that is loaded, "0.1.0". Static. */
MOIRAI_API const char *moirai_version(void);

/* The last message of this thread, "" if none. Valid until the next failing call. */
MOIRAI_API const char *moirai_error_message(void);

/* Store a message (truncated at 1023 bytes, newlines become spaces) and return `result`,
 * so that a failing function ends with `return moirai_error(MOIRAI_EINPUT, "...")`. */
MOIRAI_API int moirai_error(int result, const char *format, ...) MOIRAI_PRINTF(2, 3);

/* Put "prefix: " before the current message; returns `result` unchanged. */
MOIRAI_API int moirai_error_prefix(int result, const char *format, ...) MOIRAI_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
