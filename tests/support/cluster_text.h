/* Cluster files as texts of C: devices of 1 GB each, links both ways. */
#ifndef MOIRAI_TEST_CLUSTER_TEXT_H
#define MOIRAI_TEST_CLUSTER_TEXT_H

#include "support/check.h"

#define CLUSTER(devices, links) \
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": [" devices "], \"links\": [" links \
    "]}"
#define DEVICE(name) "{\"name\": \"" name "\", \"memory\": \"1GB\"}"
#define LINK(a, b, bps, ns) \
    "{\"from\": \"" a "\", \"to\": \"" b "\", \"bytes_per_second\": " bps ", \"latency_ns\": " ns ", \"both\": true}"

static inline moirai_cluster *parse(const char *json)
{
    moirai_cluster *c;
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c.json"));
    return c;
}

#endif
