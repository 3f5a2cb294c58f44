/* SPDX-License-Identifier: MIT */
/* affinity.c - sets of processors, memory nodes, binding of threads and memory
 *
 * Formats: Documentation/admin-guide/cputopology.rst and
 * Documentation/ABI/stable/sysfs-devices-node of Linux 6.1.
 */
#include "config.h"
#include "base/affinity.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/os/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- sets ----------------------------------------------------------------- */

static bool has_cpu(const struct gg_affinity_cpu_set *s, unsigned i)
{
    return s->bits[i / 64] >> i % 64 & 1;
}

static void add_cpu(struct gg_affinity_cpu_set *s, unsigned i)
{
    s->bits[i / 64] |= UINT64_C(1) << i % 64;
}

unsigned gg_affinity_cpu_set_count(const struct gg_affinity_cpu_set *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < GG_MAX_CPUS; i++)
        n += has_cpu(s, i);
    return n;
}

/* Parse decimal digits at *p, up to a million. Returns false if *p is not a
 * digit. */
static bool parse_number(const char **p, unsigned *out)
{
    const char *begin = *p;
    for (*out = 0; **p >= '0' && **p <= '9'; ++*p)
        *out = GG_MIN(*out * 10 + (unsigned)(**p - '0'), 1000000u);
    return *p > begin;
}

bool gg_affinity_cpu_set_parse(struct gg_affinity_cpu_set *set,
                               const char *text)
{
    memset(set, 0, sizeof *set);
    const char *p = text;
    while (*p && *p != '\n') {
        unsigned first, last;
        if (!parse_number(&p, &first))
            return false;
        last = first;
        if (*p == '-') {
            p++;
            if (!parse_number(&p, &last) || last < first)
                return false;
        }
        for (; first <= last && first < GG_MAX_CPUS; first++)
            add_cpu(set, first);
        if (*p == ',')
            p++;
        else if (*p && *p != '\n')
            return false;
    }
    return true;
}

/* --- nodes ---------------------------------------------------------------- */

static void find_usable(struct gg_affinity_cpu_set *set)
{
    if (gg_os_cpu_set(set->bits, GG_MAX_CPUS) == 0)
        return;
    for (unsigned i = 0; i < GG_MAX_CPUS && i < gguf_cpu_count(); i++)
        add_cpu(set, i);
}

/* Read the list in root/name. A missing file is an empty list. */
static void read_list(struct gg_affinity_cpu_set *set, const char *root,
                      const char *name)
{
    char path[512], text[4096];
    memset(set, 0, sizeof *set);
    int len = snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = len > 0 && (size_t)len < sizeof path
                  ? gg_os_stream_open(path, "r")
                  : NULL;
    if (!f)
        return;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    if (!gg_affinity_cpu_set_parse(set, text))
        memset(set, 0, sizeof *set);
}

void gg_affinity_nodes_read(struct gg_affinity_nodes *nodes, const char *root)
{
    struct gg_affinity_cpu_set mine, online;
    find_usable(&mine);
    read_list(&online, root, "has_memory");
    nodes->n = 0;
    for (unsigned i = 0; i < GG_MAX_NODES; i++) {
        char name[32];
        struct gg_affinity_cpu_set *set = &nodes->cpus[nodes->n];
        if (!has_cpu(&online, i))
            continue;
        snprintf(name, sizeof name, "node%u/cpulist", i);
        read_list(set, root, name);
        for (unsigned k = 0; k < GG_LEN(set->bits); k++)
            set->bits[k] &= mine.bits[k];
        if (gg_affinity_cpu_set_count(set))
            nodes->number[nodes->n++] = i;
    }
    if (nodes->n)
        return;
    nodes->n = 1;
    nodes->number[0] = 0;
    nodes->cpus[0] = mine;
}

unsigned gguf_numa_node_count(void)
{
    struct gg_affinity_nodes nodes;
    gg_affinity_nodes_read(&nodes, GG_NODES_ROOT);
    return nodes.n;
}

/* --- threads -------------------------------------------------------------- */

enum gguf_status gg_affinity_list(struct gg_affinity_cpu_set *out, unsigned n,
                                  const unsigned *cpus, size_t n_cpus,
                                  struct gguf_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        const unsigned cpu = cpus[i % n_cpus];
        if (cpu >= GG_MAX_CPUS)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "processor %u: expected 0 to %d", cpu,
                                GG_MAX_CPUS - 1);
        memset(&out[i], 0, sizeof out[i]);
        add_cpu(&out[i], cpu);
    }
    return GGUF_OK;
}

void gg_affinity_nodes(struct gg_affinity_cpu_set *out, unsigned n,
                       const struct gg_affinity_nodes *nodes)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = nodes->cpus[(size_t)i * nodes->n / n];
}

enum gguf_status gg_affinity_bind(pthread_t thread,
                                  const struct gg_affinity_cpu_set *cpus,
                                  struct gguf_error *err)
{
    unsigned first = 0;
    if (gg_os_thread_bind(thread, cpus->bits, GG_MAX_CPUS) == 0)
        return GGUF_OK;
    if (errno == ENOSYS)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "this system cannot bind threads to processors");
    while (first + 1 < GG_MAX_CPUS && !has_cpu(cpus, first))
        first++;
    return gg_error_set_errno(err, errno,
                              "cannot bind a thread to processor %u", first);
}

/* --- memory --------------------------------------------------------------- */

enum gguf_status gguf_numa_set_policy(enum gguf_numa_policy policy,
                                      struct gguf_error *err)
{
    struct gg_affinity_nodes nodes;
    gg_affinity_nodes_read(&nodes, GG_NODES_ROOT);
    if (nodes.n < 2)
        return GGUF_OK;
    uint64_t bits[GG_MAX_NODES / 64] = { 0 };
    for (unsigned i = 0; i < nodes.n; i++)
        bits[nodes.number[i] / 64] |= UINT64_C(1) << nodes.number[i] % 64;
    const bool spread = policy == GGUF_NUMA_INTERLEAVE;
    if (gg_os_memory_nodes(spread ? bits : NULL, GG_MAX_NODES) == 0)
        return GGUF_OK;
    if (errno == ENOSYS)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "this system cannot spread memory over nodes");
    return gg_error_set_errno(err, errno, "cannot spread memory over %u nodes",
                              nodes.n);
}
