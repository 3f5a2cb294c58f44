/* SPDX-License-Identifier: MIT */
/* affinity.h - processors and memory nodes of the machine, and binding of
 * threads to them */
#ifndef GG_BASE_AFFINITY_H
#define GG_BASE_AFFINITY_H

#include "gguf/pool.h"

#include <pthread.h>
#include <stdbool.h>

enum { GG_MAX_CPUS = 1024, GG_MAX_NODES = 64 };

/* A set of processors: bit i stands for processor i. */
struct gg_affinity_cpu_set {
    uint64_t bits[GG_MAX_CPUS / 64];
};

/* Parse a list of processors as Linux writes it, such as "0-3,8\n". An empty
 * text is an empty set. Numbers from GG_MAX_CPUS on are ignored. Returns false
 * if the list is malformed. */
bool gg_affinity_cpu_set_parse(struct gg_affinity_cpu_set *set,
                               const char *text);
/* Number of processors in the set. */
unsigned gg_affinity_cpu_set_count(const struct gg_affinity_cpu_set *set);

/* Memory nodes with processors that the process may use. */
struct gg_affinity_nodes {
    unsigned n;                    /* number of nodes, at least 1 */
    unsigned number[GG_MAX_NODES]; /* number of each node in the system */
    struct gg_affinity_cpu_set cpus[GG_MAX_NODES]; /* its processors */
};
#define GG_NODES_ROOT "/sys/devices/system/node"
/* Read the nodes from root, a folder like GG_NODES_ROOT of Linux. If it lists
 * no node, all processors form one node. */
void gg_affinity_nodes_read(struct gg_affinity_nodes *nodes, const char *root);

/* Assign one processor of the list cpus to each of n threads, in turn: out[n].
 * GGUF_E_INVALID: the number of a processor is too large. */
enum gguf_status gg_affinity_list(struct gg_affinity_cpu_set *out, unsigned n,
                                  const unsigned *cpus, size_t n_cpus,
                                  struct gguf_error *err);
/* Assign the processors of one node to each of n threads: out[n]. */
void gg_affinity_nodes(struct gg_affinity_cpu_set *out, unsigned n,
                       const struct gg_affinity_nodes *nodes);

/* Bind a thread to a set of processors. GGUF_E_IO: the system refused it.
 * GGUF_E_UNSUPPORTED: the system cannot bind threads. */
enum gguf_status gg_affinity_bind(pthread_t thread,
                                  const struct gg_affinity_cpu_set *cpus,
                                  struct gguf_error *err);

#endif
