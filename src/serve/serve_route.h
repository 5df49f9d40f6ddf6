/* Which address of the protocol a request goes to. */
#ifndef MOIRAI_SERVE_SERVE_ROUTE_H
#define MOIRAI_SERVE_SERVE_ROUTE_H

typedef struct serve_route {
    enum { SERVE_NOWHERE, SERVE_LIVE, SERVE_READY, SERVE_ABOUT, SERVE_MODEL, SERVE_INFER, SERVE_METRICS } what;
} serve_route;

/* 0, or the status code that fits, with a message: 404, 405. */
int serve_route_find(serve_route *out, const char *model, const char *url, const char *method);

#endif
