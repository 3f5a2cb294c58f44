/* SPDX-License-Identifier: MIT */
/* fake_backend.c - the fake backend: closed memory, refusals, counts */
#include "config.h"
#include "gguf/backend_impl.h"
#include "tests/graph/fake_backend.h"
#include "gguf/cpu.h"
#include "graph/op_table.h"

#include <sys/mman.h>
#include <time.h>

/* --- memory --------------------------------------------------------------- */

static void protect_buffers(struct fake_backend *is, int how)
{
    for (int i = 0; i < is->n_open && !is->unlocked; i++)
        if (mprotect(is->open[i]->base, is->open[i]->size, how))
            exit(99);
}

static void open_memory(struct fake_backend *is)
{
    pthread_mutex_lock(&is->mutex);
    if (is->n_inside++ == 0)
        protect_buffers(is, PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&is->mutex);
}

static void close_memory(struct fake_backend *is)
{
    pthread_mutex_lock(&is->mutex);
    if (--is->n_inside == 0)
        protect_buffers(is, PROT_NONE);
    pthread_mutex_unlock(&is->mutex);
}

static struct fake_backend *owner_of(const struct gguf_buffer *b)
{
    return b->buft->priv;
}

static void mem_free(struct gguf_buffer *b)
{
    struct fake_backend *is = owner_of(b);
    bool own = false;
    pthread_mutex_lock(&is->mutex);
    for (int i = 0; i < is->n_open; i++)
        if (is->open[i] == b) {
            is->open[i] = is->open[--is->n_open];
            own = true;
        }
    pthread_mutex_unlock(&is->mutex);
    if (!own) { /* around memory of the host */
        is->n_shared--;
        return;
    }
    is->n_used -= b->size;
    munmap(b->base, b->size);
}

static enum gguf_status mem_set(struct gguf_buffer *b, tensor *t,
                                const void *src, uint64_t off, uint64_t size,
                                struct gguf_error *err)
{
    (void)err;
    open_memory(owner_of(b));
    memcpy((char *)t->data + off, src, (size_t)size);
    close_memory(owner_of(b));
    pthread_mutex_lock(
        &owner_of(b)->mutex); /* the queue's thread sets tensors, too */
    owner_of(b)->n_sets++;
    owner_of(b)->n_bytes += size;
    pthread_mutex_unlock(&owner_of(b)->mutex);
    return GGUF_OK;
}

static enum gguf_status mem_get(struct gguf_buffer *b, const tensor *t,
                                void *dst, uint64_t off, uint64_t size,
                                struct gguf_error *err)
{
    (void)err;
    open_memory(owner_of(b));
    memcpy(dst, (const char *)t->data + off, (size_t)size);
    close_memory(owner_of(b));
    return GGUF_OK;
}

static enum gguf_status mem_memset(struct gguf_buffer *b, tensor *t,
                                   uint8_t value, uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)err;
    open_memory(owner_of(b));
    memset((char *)t->data + off, value, (size_t)size);
    close_memory(owner_of(b));
    return GGUF_OK;
}

static enum gguf_status mem_clear(struct gguf_buffer *b, uint8_t value,
                                  struct gguf_error *err)
{
    (void)err;
    open_memory(owner_of(b));
    memset(b->base, value, b->size);
    close_memory(owner_of(b));
    return GGUF_OK;
}

static enum gguf_status mem_alloc(const struct gguf_buft *buft,
                                  struct gguf_buffer *b, size_t size,
                                  struct gguf_error *err)
{
    struct fake_backend *is = buft->priv;
    void *p =
        mmap(NULL, size, is->unlocked ? PROT_READ | PROT_WRITE : PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || is->n_open == 64)
        return gg_error_set_nomem(err, size);
    if (is->n_total && size > is->n_total - is->n_used) {
        munmap(p, size);
        return gg_error_set_nomem(err, size);
    }
    is->n_used += size;
    gguf_buffer_set_memory(b, p, NULL);
    b->size = size;
    pthread_mutex_lock(&is->mutex);
    if (is->n_inside && mprotect(p, size, PROT_READ | PROT_WRITE))
        exit(99);
    is->open[is->n_open++] = b;
    pthread_mutex_unlock(&is->mutex);
    return GGUF_OK;
}

static const struct gguf_buft_iface memory = {
    .struct_size = sizeof memory,
    .alloc = mem_alloc,
    .free = mem_free,
    .set = mem_set,
    .get = mem_get,
    .fill = mem_memset,
    .clear = mem_clear,
};

/* --- device --------------------------------------------------------------- */

static void tell_memory(const struct gguf_device *d, uint64_t *n_free,
                        uint64_t *n_total)
{
    const struct fake_backend *is = d->priv;
    *n_free = is->n_total - (is->n_total ? is->n_used : 0);
    *n_total = is->n_total;
}

static bool supports_op(const struct gguf_device *d, const tensor *t)
{
    const struct fake_backend *is = d->priv;
    return !is->refuses[t->op] && gguf_backend_supports_op(is->cpu, t);
}

static bool offloads_op(const struct gguf_device *d, const tensor *t)
{
    return ((const struct fake_backend *)d->priv)->offloads &&
           supports_op(d, t);
}

static uint32_t wide_columns(const struct gguf_device *d)
{
    const struct fake_backend *is = d->priv;
    return is->wide ? is->wide : 1;
}

static bool supports_buft(const struct gguf_device *d,
                          const struct gguf_buft *buft)
{
    return buft == d->buft ||
           buft == ((const struct fake_backend *)d->priv)->shared_buft;
}

static enum gguf_status from_host(struct gguf_device *d,
                                  struct gguf_buffer **out, void *ptr,
                                  size_t size,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    struct fake_backend *is = d->priv;
    is->n_shared++;
    return gguf_buffer_wrap(out, is->shared_buft ? is->shared_buft : &is->buft,
                            ptr, size, is, allocator, err);
}

static const struct gguf_device_iface device_iface = {
    .struct_size = sizeof device_iface,
    .memory = tell_memory,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .offloads_op = offloads_op,
    .min_invariant_batch = wide_columns,
    .buffer_from_host = from_host,
    .create_event = gg_stream_event,
};

/* --- backend -------------------------------------------------------------- */

static void count_foreign(struct fake_backend *is, const tensor *t)
{
    if (gguf_op_is_view(t->op))
        return; /* a view accesses no memory */
    is->n_nodes++;
    is->n_foreign +=
        !t->buffer || !supports_buft(&is->device, t->buffer->buft);
    for (int k = 0; k < GGUF_TENSOR_SRC; k++)
        if (t->src[k])
            is->n_foreign +=
                !t->src[k]->buffer ||
                !supports_buft(&is->device, t->src[k]->buffer->buft);
}

static void falsify_result(struct fake_backend *is, struct gguf_graph *g)
{
    for (size_t i = 0; is->wrong && i < gguf_graph_n_nodes(g); i++) {
        tensor *t = gguf_graph_node(g, i);
        if (t->op == is->wrong)
            *(float *)t->data += 1;
    }
}

struct job {
    struct fake_backend *is;
    struct gguf_graph *graph;
};

static void count_workers(struct fake_backend *is, int n)
{
    if (!is->gauge)
        return;
    int now = atomic_fetch_add(&is->gauge->now, n) + n;
    int most = atomic_load(&is->gauge->most);
    while (now > most &&
           !atomic_compare_exchange_weak(&is->gauge->most, &most, now))
        ; /* most is fresh */
}

static enum gguf_status run_job(void *arg, struct gguf_error *err)
{
    const struct job *j = arg;
    struct fake_backend *is = j->is;
    count_workers(is, 1);
    if (is->slow)
        nanosleep(&(struct timespec){ .tv_nsec = is->slow * 1000L }, NULL);
    for (size_t i = 0; i < gguf_graph_n_nodes(j->graph); i++)
        count_foreign(is, gguf_graph_node(j->graph, i));
    open_memory(is);
    enum gguf_status st = gguf_backend_compute(is->cpu, j->graph, err);
    falsify_result(is, j->graph);
    close_memory(is);
    count_workers(is, -1);
    return st;
}

static struct gg_stream *stream_of(struct gguf_backend *b)
{
    return ((struct fake_backend *)b->priv)->stream;
}

static enum gguf_status compute_graph(struct gguf_backend *b,
                                      struct gguf_graph *g,
                                      struct gguf_error *err)
{
    struct job j = { b->priv, g };
    if (!stream_of(b))
        return run_job(&j, err);
    gg_stream_push(stream_of(b), run_job, &j, sizeof j);
    return GGUF_OK;
}

static void destroy_backend(struct gguf_backend *b)
{
    struct fake_backend *is = b->priv;
    gg_stream_destroy(is->stream);
    gguf_backend_destroy(is->cpu);
    pthread_mutex_destroy(&is->mutex);
}

static enum gguf_status sync_backend(struct gguf_backend *b,
                                     struct gguf_error *err)
{
    return gg_stream_sync(stream_of(b), err);
}

static enum gguf_status set_async(struct gguf_backend *b, tensor *t,
                                  const void *src, uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)err;
    gg_stream_set(stream_of(b), t, src, off, size);
    return GGUF_OK;
}

static enum gguf_status get_async(struct gguf_backend *b, const tensor *t,
                                  void *dst, uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)err;
    gg_stream_get(stream_of(b), t, dst, off, size);
    return GGUF_OK;
}

static enum gguf_status copy_async(struct gguf_backend *b, const tensor *src,
                                   tensor *dst, struct gguf_error *err)
{
    (void)err;
    gg_stream_copy(stream_of(b), src, dst);
    return GGUF_OK;
}

static enum gguf_status record_event(struct gguf_backend *b,
                                     struct gguf_event *e,
                                     struct gguf_error *err)
{
    (void)err;
    gg_stream_record(stream_of(b), e);
    return GGUF_OK;
}

static enum gguf_status await_event(struct gguf_backend *b,
                                    struct gguf_event *e,
                                    struct gguf_error *err)
{
    return gg_stream_wait(stream_of(b), e, err);
}

static const struct gguf_backend_iface plain = {
    .struct_size = sizeof plain,
    .destroy = destroy_backend,
    .compute = compute_graph,
};
static const struct gguf_backend_iface streaming = {
    .struct_size = sizeof streaming,
    .destroy = destroy_backend,
    .compute = compute_graph,
    .sync = sync_backend,
    .set_async = set_async,
    .get_async = get_async,
    .copy_async = copy_async,
    .event_record = record_event,
    .event_wait = await_event,
};

enum gguf_status fake_backend_init(struct fake_backend *is, const char *name,
                                   bool async,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    *is = (struct fake_backend){ .n_open = 0 };
    if (async)
        GG_TRY(gg_stream_create(&is->stream, allocator, err));
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    p.allocator = allocator;
    p.n_threads = 1;
    enum gguf_status st = gguf_cpu_backend_create(&is->cpu, &p, err);
    if (st != GGUF_OK) {
        gg_stream_destroy(is->stream);
        return st;
    }
    pthread_mutex_init(&is->mutex, NULL);
    is->buft = (struct gguf_buft){ .name = name,
                                   .alignment = 256,
                                   .max_size = SIZE_MAX,
                                   .priv = is,
                                   .iface = &memory };
    is->device = (struct gguf_device){
        .iface = &device_iface,
        .name = name,
        .description = "for tests",
        .kind = GGUF_DEVICE_GPU,
        .caps = async ? GGUF_DEVICE_CAP_ASYNC | GGUF_DEVICE_CAP_EVENTS : 0,
        .buft = &is->buft,
        .priv = is,
    };
    is->backend = (struct gguf_backend){ .iface = async ? &streaming : &plain,
                                         .id = 1,
                                         .device = &is->device,
                                         .allocator = allocator,
                                         .name = name,
                                         .priv = is };
    return GGUF_OK;
}

void fake_backend_refuse(struct fake_backend *is, uint64_t seed)
{
    tap_rng = seed;
    for (int i = 0; i < GGUF_N_OPS; i++)
        is->refuses[i] = seed && rnd_below(4) == 0;
}
