/* The tables of device types: figures, names that drivers report, variants by memory. Private to this room. */
#ifndef MOIRAI_CLUSTER_DEVICE_TABLE_H
#define MOIRAI_CLUSTER_DEVICE_TABLE_H

#include <moirai/cluster.h>

extern const moirai_device_type cluster_types[];
extern const int cluster_n_types;

/* A name that a driver reports, letters and digits only in lower case, and its type. */
typedef struct cluster_alias {
    const char *name, *type;
} cluster_alias;
extern const cluster_alias cluster_reported[];
extern const int cluster_n_reported;

/* A device of `type` with so many decimal gigabytes is one of type `is`. */
typedef struct cluster_variant {
    const char *type;
    int gb;
    const char *is;
} cluster_variant;
extern const cluster_variant cluster_variants[];
extern const int cluster_n_variants;

#endif
