/* The protocol's addresses: /v2 and what is below it, and /metrics. */
#include "serve/serve_route.h"

#include <stdbool.h>
#include <string.h>

#include <moirai/error.h>
#include "serve/serve_model.h"

/* What follows `prefix`, where the text begins so and a part of the path ends there; else NULL. */
static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return !strncmp(text, prefix, n) && (text[n] == '/' || !text[n]) ? text + n : NULL;
}

static int of_model(serve_route *out, const char *model, const char *rest)
{
    const char *tail = *rest == '/' ? after(rest + 1, model) : NULL,
               *versioned = tail ? after(tail, "/versions") : NULL;
    if (!tail) {
        moirai_error(MOIRAI_EINPUT, "there is no such model: this server has '%s'", model);
        return 404;
    }
    if (versioned) {
        tail = after(versioned, "/" SERVE_VERSION);
        if (!tail) {
            moirai_error(MOIRAI_EINPUT, "model '%s' has version %s only", model, SERVE_VERSION);
            return 404;
        }
    }
    if (!*tail)
        out->what = SERVE_MODEL;
    else if (!strcmp(tail, "/ready"))
        out->what = SERVE_READY;
    else if (!strcmp(tail, "/infer"))
        out->what = SERVE_INFER;
    return 0;
}

int serve_route_find(serve_route *out, const char *model, const char *url, const char *method)
{
    const char *rest = after(url, "/v2/models");
    out->what = SERVE_NOWHERE;
    int code = rest ? of_model(out, model, rest) : 0;
    if (!strcmp(url, "/v2") || !strcmp(url, "/v2/"))
        out->what = SERVE_ABOUT;
    else if (!strcmp(url, "/v2/health/live"))
        out->what = SERVE_LIVE;
    else if (!strcmp(url, "/v2/health/ready"))
        out->what = SERVE_READY;
    else if (!strcmp(url, "/metrics"))
        out->what = SERVE_METRICS;
    if (code)
        return code;
    if (out->what == SERVE_NOWHERE) {
        moirai_error(MOIRAI_EINPUT, "there is nothing at this address: see /v2, /v2/models/%s and /metrics", model);
        return 404;
    }
    bool infer = out->what == SERVE_INFER;
    if (strcmp(method, infer ? "POST" : "GET") && (infer || strcmp(method, "HEAD"))) {
        moirai_error(MOIRAI_EINPUT, "this address takes %s", infer ? "POST" : "GET");
        return 405;
    }
    return 0;
}
