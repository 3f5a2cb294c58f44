/* SPDX-License-Identifier: MIT */
/* backends.c - opening the threads and the backends of an evaluation */
#include "config.h"
#include "tools/evaluate/model.h"
#include "tools/common/msg.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/common/text.h"

#include <gguf/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EV_MAX_CPUS = 1024 };

/* --- threads -------------------------------------------------------------- */

/* Parse a number below EV_MAX_CPUS and move *p behind it. */
static bool parse_number(const char **p, unsigned *out)
{
    char *end;
    if (**p < '0' || **p > '9')
        return false;
    unsigned long v = strtoul(*p, &end, 10);
    *p = end;
    *out = (unsigned)v;
    return v < EV_MAX_CPUS;
}

/* Parse a list such as "0-3,8" into at most EV_MAX_CPUS numbers. Returns their
 * number, or 0 if p is not such a list. */
static size_t parse_cpus(const char *p, unsigned *cpus)
{
    size_t n = 0;
    for (;; p++) {
        unsigned first, last;
        if (!parse_number(&p, &first))
            return 0;
        last = first;
        if (*p == '-' && (p++, !parse_number(&p, &last) || last < first))
            return 0;
        for (; first <= last && n < EV_MAX_CPUS; first++)
            cpus[n++] = first;
        if (!*p)
            return n;
        if (*p != ',')
            return 0;
    }
}

bool ev_pool_open(struct gguf_pool **pool, const struct ev_options *o)
{
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_error err;
    unsigned cpus[EV_MAX_CPUS];
    p.n_threads = o->n_threads;
    if (o->numa) {
        p.bind = GGUF_BIND_NODES;
        if (gguf_numa_set_policy(GGUF_NUMA_INTERLEAVE, &err) != GGUF_OK)
            return msg_fail(NULL, &err);
    }
    if (o->cpus) {
        p.bind = GGUF_BIND_CPUS;
        p.cpus = cpus;
        p.n_cpus = parse_cpus(o->cpus, cpus);
        if (!p.n_cpus)
            opt_usage("--cpus: '%s' is not a list such as 0-3,8", o->cpus);
    }
    return (gguf_pool_create(pool, &p, &err) == GGUF_OK &&
            gguf_pool_bind_caller(*pool, &err) == GGUF_OK) ||
           msg_fail(NULL, &err);
}

/* --- backends ------------------------------------------------------------- */

/* Should the evaluation stop? Backends call it between operations. */
static bool is_stopped(void *user)
{
    (void)user;
    return progress_stopped();
}

static struct gguf_abort_callback choose_abort(const struct ev_options *o)
{
    return (struct gguf_abort_callback){ o->abort ? o->abort : is_stopped,
                                         NULL };
}

static bool register_all(struct ev_backends *b, const struct ev_options *o,
                         unsigned precision, struct gguf_pool *pool)
{
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_blas_params bp = GGUF_BLAS_PARAMS_INIT;
    struct gguf_driver *d;
    struct gguf_error err;
    cp.pool = pool;
    cp.abort = choose_abort(o);
    cp.precision = (enum gguf_precision)precision;
    cp.repack = o->repack == EV_REPACK_FREE ? GGUF_CPU_REPACK_FREE
                : o->repack                 ? GGUF_CPU_REPACK_LIMIT
                                            : GGUF_CPU_REPACK_NONE;
    cp.repack_size = o->repack;
    cp.no_fuse = o->no_fuse;
    if (gguf_registry_create_empty(&b->registry, NULL, &err) != GGUF_OK ||
        gguf_cpu_driver_create(&d, &cp, &err) != GGUF_OK ||
        gguf_registry_add_driver(b->registry, d, &err) != GGUF_OK)
        return msg_fail(NULL, &err);
    bp.n_threads = o->n_threads;
    enum gguf_status st = gguf_blas_driver_create(&d, &bp, &err);
    if (st == GGUF_OK)
        st = gguf_registry_add_driver(b->registry, d, &err);
    return st == GGUF_OK || st == GGUF_E_UNSUPPORTED || msg_fail(NULL, &err);
}

static void report_unknown_backend(const struct ev_backends *b,
                                   const char *name)
{
    char list[256] = "", hint[GGUF_SUGGESTION_SIZE];
    size_t at = 0;
    struct gguf_suggestion near;
    gguf_suggestion_init(&near, (struct gguf_str){ name, strlen(name) });
    for (size_t i = 0; i < gguf_registry_n_devices(b->registry); i++) {
        const char *known =
            gguf_device_name(gguf_registry_device(b->registry, i));
        gguf_suggestion_try(&near, (struct gguf_str){ known, strlen(known) });
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                               i ? ", " : "", known);
    }
    msg_error(NULL, "unknown backend '%s', expected one of: %s%s", name, list,
              gguf_suggestion_text(&near, hint));
}

/* Find the backend with a name, and open it if it is not open. Returns NULL
 * after it printed a message. */
static struct gguf_backend *find_backend(struct ev_backends *b,
                                         const char *name,
                                         struct gguf_abort_callback abort)
{
    struct gguf_error err;
    struct gguf_backend *new;
    struct gguf_device *d = gguf_registry_find(b->registry, name);
    if (!d) {
        report_unknown_backend(b, name);
        return NULL;
    }
    for (unsigned i = 0; i < b->n; i++)
        if (gguf_backend_device(b->list[i]) == d)
            return b->list[i];
    if (b->n == EV_MAX_BACKENDS) {
        msg_error(NULL, "--backend: more than %d backends", EV_MAX_BACKENDS);
        return NULL;
    }
    if (gguf_device_create_backend(d, &new, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        return NULL;
    }
    for (size_t i = 0; i < gguf_registry_n_drivers(b->registry); i++) {
        struct gguf_driver *r = gguf_registry_driver(b->registry, i);
        gguf_any_fn *set = gguf_driver_device(r, 0) == d
                               ? gguf_driver_find_function(r, "set_abort")
                               : NULL;
        if (set && ((gguf_cpu_set_abort_fn *)set)(new, abort, &err)) {
            gguf_backend_destroy(new);
            msg_fail(NULL, &err);
            return NULL;
        }
    }
    return b->list[b->n++] = new;
}

/* Make the CPU the last backend of the list. */
static bool put_cpu_last(struct ev_backends *b,
                         struct gguf_abort_callback abort)
{
    struct gguf_backend *cpu = find_backend(b, "CPU", abort);
    unsigned k = 0;
    for (unsigned i = 0; cpu && i < b->n; i++)
        if (b->list[i] != cpu)
            b->list[k++] = b->list[i];
    if (cpu)
        b->list[k] = cpu;
    return cpu != NULL;
}

bool ev_backends_open(struct ev_backends *b, const struct ev_options *o,
                      const char *names, unsigned precision,
                      struct gguf_pool *pool)
{
    const char *s = names ? names : "CPU";
    if (!register_all(b, o, precision, pool))
        return false;
    for (unsigned k = 0;; k++, s++) {
        char name[64];
        const size_t n = strcspn(s, ",");
        if (!text_copy(name, sizeof name, s, n)) {
            report_unknown_backend(b, s);
            return false;
        }
        struct gguf_backend *x = find_backend(b, name, choose_abort(o));
        if (!x)
            return false;
        if (k < 2)
            b->pair[k] = x;
        s += n;
        if (!*s)
            break;
    }
    return put_cpu_last(b, choose_abort(o));
}

void ev_backends_close(struct ev_backends *b)
{
    for (unsigned i = 0; i < b->n; i++)
        gguf_backend_destroy(b->list[i]);
    gguf_registry_destroy(b->registry);
    *b = (struct ev_backends){ .n = 0 };
}
