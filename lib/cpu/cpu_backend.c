/* SPDX-License-Identifier: MIT */
/* cpu_backend.c - the CPU as a driver with one device, and its backends */
#include "config.h"
#include "backend/backend_int.h"
#include "base/params.h"
#include "cpu/fuse.h"
#include "cpu/compute_table.h"
#include "cpu/graph_run.h"

#include <stdio.h>
#include <string.h>

/* Drawn once. */
#define BACKEND_ID UINT64_C(0x5d1f0e7ac94b2361)

struct cpu_driver {
    struct gg_backend_single_driver base;
    struct gguf_cpu_params params;
    struct gg_kern kern;
    char description[64];
};

struct cpu_backend {
    struct gguf_backend base;
    const struct gg_kern *kern; /* the device's */
    struct gguf_pool *pool;
    struct gguf_pool *own_pool; /* set_n_threads made it, or NULL */
    struct gguf_abort_callback abort;
    struct gg_cpu_profile profile;
    struct gg_barrier *barrier;       /* barrier of the pool's threads */
    struct gg_cpu_plan plan;          /* plan of the last compute */
    struct gg_cpu_weight_cache store; /* cache of packed weights */
    void *work;
    size_t work_size;
};

/* --- backend -------------------------------------------------------------- */

static struct cpu_backend *get_cpu(struct gguf_backend *b)
{
    return b->priv;
}

static void destroy_backend(struct gguf_backend *b)
{
    struct cpu_backend *c = get_cpu(b);
    const struct gguf_allocator *a = b->allocator;
    gg_cpu_plan_fini(&c->plan);
    gg_cpu_weight_cache_fini(&c->store);
    gg_mem_free_aligned(a, c->work);
    if (c->barrier)
        gg_barrier_fini(c->barrier);
    gg_mem_free_aligned(a, c->barrier);
    gguf_pool_destroy(c->own_pool);
    gg_mem_free(a, c);
}

/* Allocate scratch for a plan, and a barrier for the pool's threads. */
static enum gguf_status prepare_run(struct cpu_backend *c,
                                    const struct gg_cpu_plan *p,
                                    struct gguf_error *err)
{
    const struct gguf_allocator *a = c->base.allocator;
    unsigned nth = gguf_pool_n_threads(c->pool);
    if (p->work_size > c->work_size) {
        gg_mem_free_aligned(a, c->work);
        c->work_size = 0;
        c->work = gg_mem_alloc_aligned(a, p->work_size, 64);
        if (!c->work)
            return gg_error_set_nomem(err, p->work_size);
        c->work_size = p->work_size;
    }
    if (c->barrier && c->barrier->n_threads != nth) {
        gg_barrier_fini(c->barrier);
        gg_mem_free_aligned(a, c->barrier);
        c->barrier = NULL;
    }
    if (!c->barrier) {
        struct gg_barrier *b = gg_mem_alloc_aligned(a, sizeof *b, 64);
        if (!b)
            return gg_error_set_nomem(err, sizeof *b);
        enum gguf_status st =
            gg_barrier_init(b, nth, gg_barrier_spin(nth), err);
        if (st != GGUF_OK) {
            gg_mem_free_aligned(a, b);
            return st;
        }
        c->barrier = b;
    }
    return GGUF_OK;
}

static enum gguf_status run_plan(struct cpu_backend *c, struct gg_cpu_plan *p,
                                 struct gguf_error *err)
{
    GG_TRY(prepare_run(c, p, err));
    if (c->store.limit)
        gg_cpu_plan_find_panels(p, &c->store, c->kern);
    return gg_cpu_plan_run(p, c->pool, c->barrier, c->work, c->kern, c->abort,
                           &c->profile, err);
}

static enum gguf_status compute_graph(struct gguf_backend *b,
                                      struct gguf_graph *graph,
                                      struct gguf_error *err)
{
    struct cpu_backend *c = get_cpu(b);
    GG_TRY(gg_cpu_plan_make(&c->plan, graph, gguf_pool_n_threads(c->pool),
                            c->kern, err));
    return run_plan(c, &c->plan, err);
}

/* A plan made for another pool than the backend has now is made again. */
struct cpu_plan {
    struct gg_cpu_plan plan;
    struct gguf_graph *graph;
    unsigned nth;
};

static void plan_destroy(struct gguf_backend *b, void *plan)
{
    struct cpu_plan *p = plan;
    gg_cpu_plan_fini(&p->plan);
    gg_mem_free(b->allocator, p);
}

/* All memory that running takes is taken here. */
static enum gguf_status plan_remake(struct gguf_backend *b, void *plan,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    struct cpu_backend *c = get_cpu(b);
    struct cpu_plan *p = plan;
    p->graph = graph;
    p->nth = gguf_pool_n_threads(c->pool);
    GG_TRY(gg_cpu_plan_make(&p->plan, graph, p->nth, c->kern, err));
    return prepare_run(c, &p->plan, err);
}

static enum gguf_status plan_create(struct gguf_backend *b,
                                    struct gguf_graph *graph, void **plan,
                                    struct gguf_error *err)
{
    struct cpu_plan *p = gg_mem_alloc(b->allocator, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    gg_cpu_plan_init(&p->plan, b->allocator, get_cpu(b)->plan.fuse);
    enum gguf_status st = plan_remake(b, p, graph, err);
    if (st != GGUF_OK)
        plan_destroy(b, p);
    else
        *plan = p;
    return st;
}

static enum gguf_status plan_compute(struct gguf_backend *b, void *plan,
                                     struct gguf_error *err)
{
    struct cpu_backend *c = get_cpu(b);
    struct cpu_plan *p = plan;
    unsigned nth = gguf_pool_n_threads(c->pool);
    if (nth != p->nth)
        GG_TRY(plan_remake(b, p, p->graph, err));
    return run_plan(c, &p->plan, err);
}

static unsigned plan_threads(const struct gguf_backend *b, const void *plan,
                             const struct gguf_tensor *node)
{
    const struct cpu_plan *p = plan;
    (void)b;
    return gg_cpu_n_threads(node, p->nth);
}

static size_t plan_work_size(const struct gguf_backend *b, const void *plan)
{
    (void)b;
    return ((const struct cpu_plan *)plan)->plan.work_size;
}

/* As plan_remake and prepare take it. */
static void plan_memory(const struct gguf_backend *b,
                        const struct gguf_graph *graph, size_t *plan,
                        size_t *shared)
{
    struct cpu_backend *c = b->priv;
    const size_t work =
        gg_cpu_plan_work(graph, gguf_pool_n_threads(c->pool), c->kern);
    const uint64_t kept =
        c->store.limit
            ? gg_cpu_weight_cache_estimate(&c->store, graph, c->kern)
            : 0;
    *plan = sizeof(struct cpu_plan) +
            gguf_graph_n_nodes(graph) * sizeof(struct gg_cpu_step);
    *shared = gg_mem_aligned_size(sizeof *c->barrier, 64) +
              (work ? gg_mem_aligned_size(work, 64) : 0) + (size_t)kept;
}

static const struct gguf_backend_iface backend_iface = {
    .struct_size = sizeof backend_iface,
    .destroy = destroy_backend,
    .compute = compute_graph,
    .plan_memory = plan_memory,
    .plan_create = plan_create,
    .plan_remake = plan_remake,
    .plan_compute = plan_compute,
    .plan_destroy = plan_destroy,
    .plan_threads = plan_threads,
    .plan_work_size = plan_work_size,
};

static enum gguf_status set_abort(struct gguf_backend *b,
                                  struct gguf_abort_callback abort,
                                  struct gguf_error *err)
{
    (void)err;
    get_cpu(b)->abort = abort;
    return GGUF_OK;
}

static void set_profile(struct gguf_backend *b,
                        struct gguf_profile_callback profile)
{
    get_cpu(b)->profile = (struct gg_cpu_profile){ profile, b };
}

static void take_pool(struct gguf_backend *b, struct gguf_pool *pool)
{
    struct cpu_backend *c = get_cpu(b);
    c->pool = pool;
    gguf_pool_destroy(c->own_pool);
    c->own_pool = NULL;
}

static enum gguf_status set_pool(struct gguf_backend *b,
                                 struct gguf_pool *pool,
                                 struct gguf_error *err)
{
    (void)err;
    take_pool(b, pool);
    return GGUF_OK;
}

/* A pool of n threads of the backend's own; none for one. */
static enum gguf_status own_pool(struct gguf_backend *b, unsigned n,
                                 struct gguf_error *err)
{
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool = NULL;
    p.allocator = b->allocator;
    p.n_threads = n;
    if (n > 1)
        GG_TRY(gguf_pool_create(&pool, &p, err));
    take_pool(b, pool);
    get_cpu(b)->own_pool = pool;
    return GGUF_OK;
}

static enum gguf_status set_n_threads(struct gguf_backend *b, unsigned n,
                                      struct gguf_error *err)
{
    GG_TRY(gg_backend_check_threads(b, n, err));
    return own_pool(b, n, err);
}

/* --- device --------------------------------------------------------------- */

static bool supports_op(const struct gguf_device *d,
                        const struct gguf_tensor *t)
{
    const struct cpu_driver *c = d->priv;
    return gg_cpu_supports(t, &c->kern);
}

static bool supports_buft(const struct gguf_device *d,
                          const struct gguf_buft *buft)
{
    (void)d;
    return buft->is_host;
}

static uint32_t min_invariant_batch(const struct gguf_device *d)
{
    const struct cpu_driver *c = d->priv;
    uint32_t n = 1;
    for (unsigned i = 0; i < GG_GEMM_N_FORMS; i++)
        n = GG_MAX(n, c->kern.gemm[i].narrow);
    return n;
}

static unsigned default_n_threads(void)
{
    const unsigned n = gguf_cpu_count();
    return GG_MIN(n, (unsigned)GGUF_POOL_MAX_THREADS);
}

/* Limit of packed weights in bytes: the given size, or the free memory less an
 * eighth of all. */
static uint64_t panel_limit(const struct gguf_cpu_params *p)
{
    uint64_t n_free, n_total;
    if (p->repack == GGUF_CPU_REPACK_NONE)
        return 0;
    if (p->repack == GGUF_CPU_REPACK_LIMIT)
        return p->repack_size;
    gg_backend_host_memory(NULL, &n_free, &n_total);
    return n_free > n_total / 8 ? n_free - n_total / 8 : 0;
}

static enum gguf_status new_backend(struct gguf_device *d,
                                    struct gguf_backend **out,
                                    struct gguf_error *err)
{
    struct cpu_driver *driver = d->priv;
    const struct gguf_cpu_params *p = &driver->params;
    struct cpu_backend *c = gg_mem_alloc(p->allocator, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    *c = (struct cpu_backend){ .base = { .iface = &backend_iface,
                                         .id = BACKEND_ID,
                                         .device = d,
                                         .allocator = p->allocator,
                                         .name = d->name },
                               .kern = &driver->kern,
                               .pool = p->pool,
                               .abort = p->abort };
    c->base.priv = c;
    gg_cpu_plan_init(&c->plan, p->allocator,
                     p->no_fuse ? 0 : GG_CPU_FUSE_BYTES);
    gg_cpu_weight_cache_init(&c->store, p->allocator, panel_limit(p));
    if (!p->pool) {
        const enum gguf_status st = own_pool(
            &c->base, p->n_threads ? p->n_threads : default_n_threads(), err);
        if (st != GGUF_OK) {
            destroy_backend(&c->base);
            return st;
        }
    }
    *out = &c->base;
    return GGUF_OK;
}

static const struct gguf_device_iface device_iface = {
    .struct_size = sizeof device_iface,
    .memory = gg_backend_host_memory,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .min_invariant_batch = min_invariant_batch,
    .create_backend = new_backend,
};

/* --- driver --------------------------------------------------------------- */

static const struct gg_backend_function functions[] = {
    { "set_abort", (gguf_any_fn *)set_abort },
    { "set_n_threads", (gguf_any_fn *)set_n_threads },
    { "set_pool", (gguf_any_fn *)set_pool },
    { "set_profile", (gguf_any_fn *)set_profile },
};

static void describe_device(struct cpu_driver *c)
{
    int at = snprintf(c->description, sizeof c->description, "kernels: c");
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++)
        if (c->kern.cpu & gg_kern_cpu_levels[i].bit)
            at += snprintf(c->description + at,
                           sizeof c->description - (size_t)at, " %s",
                           gg_kern_cpu_levels[i].name);
}

enum gguf_status gguf_cpu_driver_create(struct gguf_driver **out,
                                        const struct gguf_cpu_params *params,
                                        struct gguf_error *err)
{
    struct gguf_cpu_params own = GGUF_CPU_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_cpu_params", err));
    params = &own;
    if (params->n_threads > GGUF_POOL_MAX_THREADS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%u threads of a CPU: at most %d",
                            params->n_threads, GGUF_POOL_MAX_THREADS);
    if ((unsigned)params->precision >= GG_N_PRECISIONS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "precision %u of a CPU: there are %d",
                            (unsigned)params->precision, GG_N_PRECISIONS);
    if ((unsigned)params->repack > GGUF_CPU_REPACK_FREE)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "repack %u of a CPU: 0 to %d are possible",
                            (unsigned)params->repack, GGUF_CPU_REPACK_FREE);
    if (params->buft && !params->buft->is_host)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "buffers of type '%s' are not in host memory",
                            params->buft->name);
    struct cpu_driver *c = gg_mem_alloc_zero(params->allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->params = *params;
    uint32_t cpu =
        gg_kern_cpu_detect() & gg_backend_cpu_levels(params->levels);
    if (params->precision == GGUF_PRECISION_INT8)
        cpu = gg_kern_cpu_request(cpu);
    gg_kern_init(&c->kern, cpu);
    gg_codec_kern_set_native_order(c->kern.codec);
    c->kern.precision = (enum gg_kern_precision)params->precision;
    describe_device(c);
    const struct gguf_device device = {
        .iface = &device_iface,
        .name = "CPU",
        .description = c->description,
        .kind = GGUF_DEVICE_CPU,
        .caps = GGUF_DEVICE_CAP_HOST_BUFT | GGUF_DEVICE_CAP_HOST_PTR,
        .buft = params->buft ? params->buft : gguf_host_buft(),
    };
    gg_backend_single_driver_init(&c->base, &device, params->allocator,
                                  functions, GG_LEN(functions));
    *out = &c->base.base;
    return GGUF_OK;
}

enum gguf_status gguf_cpu_backend_create(struct gguf_backend **out,
                                         const struct gguf_cpu_params *params,
                                         struct gguf_error *err)
{
    struct gguf_driver *driver;
    *out = NULL;
    GG_TRY(gguf_cpu_driver_create(&driver, params, err));
    return gg_backend_single_driver_create_backend(out, driver, err);
}

uint32_t gguf_cpu_levels(void)
{
    return gg_kern_cpu_detect();
}

const char *gguf_cpu_level_name(unsigned i)
{
    return i < gg_kern_cpu_n_levels ? gg_kern_cpu_levels[i].name : NULL;
}

static const char *const precisions[] = {
    [GGUF_PRECISION_EXACT] = "exact",
    [GGUF_PRECISION_INT16] = "int16",
    [GGUF_PRECISION_INT8] = "int8",
};
_Static_assert(GG_LEN(precisions) == GG_N_PRECISIONS &&
                   (int)GGUF_PRECISION_INT8 == (int)GG_PRECISION_INT8,
               "kern has the same");

const char *gguf_precision_name(unsigned precision)
{
    return precision < GG_N_PRECISIONS ? precisions[precision] : NULL;
}
