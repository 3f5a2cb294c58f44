/* SPDX-License-Identifier: MIT */
/* affinity.h - processors and memory nodes: what there is, and binding to it */
#ifndef GG_BASE_AFFINITY_H
#define GG_BASE_AFFINITY_H

#include "gguf/pool.h"

#include <pthread.h>
#include <stdbool.h>

enum { GG_MAX_CPUS = 1024, GG_MAX_NODES = 64 };

/* Bit i: processor i. */
struct gg_affinity_cpu_set {
    uint64_t bits[GG_MAX_CPUS / 64];
};

/* Numbers as Linux writes them, "0-3,8\n"; nothing is an empty set. false:
 * malformed. Numbers from GG_MAX_CPUS on are left out. */
bool gg_affinity_cpu_set_parse(struct gg_affinity_cpu_set *set,
                               const char *text);
unsigned gg_affinity_cpu_set_count(const struct gg_affinity_cpu_set *set);

/* The memory nodes that have processors which this process may use. */
struct gg_affinity_nodes {
    unsigned n; /* number of nodes, at least 1 */
    unsigned number[GG_MAX_NODES];
    struct gg_affinity_cpu_set cpus[GG_MAX_NODES];
};
#define GG_NODES_ROOT "/sys/devices/system/node"
/* Read the nodes from root, a folder like GG_NODES_ROOT of Linux. If it lists
 * no node, all processors are one. */
void gg_affinity_nodes_read(struct gg_affinity_nodes *nodes, const char *root);

/* Where the n members of a team run: each on one processor of a list, or on
 * those of one node. GGUF_E_INVALID (a number that is too large). */
enum gguf_status gg_affinity_list(struct gg_affinity_cpu_set *out, unsigned n,
                                  const unsigned *cpus, size_t n_cpus,
                                  struct gguf_error *err);
void gg_affinity_nodes(struct gg_affinity_cpu_set *out, unsigned n,
                       const struct gg_affinity_nodes *nodes);

/* GGUF_E_IO, GGUF_E_UNSUPPORTED. */
enum gguf_status gg_affinity_bind(pthread_t thread,
                                  const struct gg_affinity_cpu_set *cpus,
                                  struct gguf_error *err);

#endif
