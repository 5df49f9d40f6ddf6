/* In place of serve_http.c where the build had no libmicrohttpd. */
#include "serve/serve_state.h"

#include <moirai/error.h>

int serve_http_open(serve_http **out, serve *s)
{
    (void)s;
    *out = NULL;
    return moirai_error(MOIRAI_EFAIL,
                        "this build serves nothing: it was made without libmicrohttpd (libmicrohttpd-dev)");
}

int serve_http_port(const serve_http *h)
{
    (void)h;
    return 0;
}

void serve_http_close(serve_http *h)
{
    (void)h;
}
