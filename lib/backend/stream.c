/* SPDX-License-Identifier: MIT */
/* stream.c - a ring of calls, a thread that takes them, and events */
#include "config.h"
#include "backend/stream.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>

enum { ROOM = 128 };

struct call {
    gg_backend_stream_fn *fn;
    bool always; /* also after a failure */
    alignas(max_align_t) char arg[GG_STREAM_ARG];
};

struct gg_stream {
    const struct gguf_allocator *allocator;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects all members below */
    pthread_cond_t more, less;
    uint64_t n_pushed, n_done; /* calls ever */
    bool end;
    struct gguf_error err; /* first failure since the last sync */
    struct call ring[ROOM];
};

/* --- the queue ------------------------------------------------------------ */

static void *run_queue(void *arg)
{
    struct gg_stream *s = arg;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (s->n_done == s->n_pushed && !s->end)
            pthread_cond_wait(&s->more, &s->mutex);
        if (s->n_done == s->n_pushed)
            break;
        struct call *c = &s->ring[s->n_done % ROOM];
        struct gguf_error err = { .status = GGUF_OK };
        bool run = c->always || s->err.status == GGUF_OK;
        pthread_mutex_unlock(&s->mutex);
        enum gguf_status st = run ? c->fn(c->arg, &err) : GGUF_OK;
        pthread_mutex_lock(&s->mutex);
        if (st != GGUF_OK && s->err.status == GGUF_OK)
            s->err = err;
        s->n_done++;
        pthread_cond_broadcast(&s->less);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

enum gguf_status gg_stream_create(struct gg_stream **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = NULL;
    struct gg_stream *s = gg_mem_alloc_zero(allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = allocator;
    int e = pthread_mutex_init(&s->mutex, NULL);
    if (e)
        goto no_mutex;
    e = pthread_cond_init(&s->more, NULL);
    if (e)
        goto no_more;
    e = pthread_cond_init(&s->less, NULL);
    if (e)
        goto no_less;
    e = gg_thread_start(&s->thread, run_queue, s);
    if (e)
        goto no_thread;
    *out = s;
    return GGUF_OK;

no_thread:
    pthread_cond_destroy(&s->less);
no_less:
    pthread_cond_destroy(&s->more);
no_more:
    pthread_mutex_destroy(&s->mutex);
no_mutex:
    gg_mem_free(allocator, s);
    return gg_error_set_errno(err, e, "cannot start the thread of a backend");
}

void gg_stream_destroy(struct gg_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->end = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->less);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->mutex);
    gg_mem_free(s->allocator, s);
}

static void push_call(struct gg_stream *s, gg_backend_stream_fn *fn,
                      const void *arg, size_t size, bool always)
{
    pthread_mutex_lock(&s->mutex);
    while (s->n_pushed - s->n_done == ROOM)
        pthread_cond_wait(&s->less, &s->mutex);
    struct call *c = &s->ring[s->n_pushed % ROOM];
    c->fn = fn;
    c->always = always;
    memcpy(c->arg, arg, size);
    s->n_pushed++;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->mutex);
}

void gg_stream_push(struct gg_stream *s, gg_backend_stream_fn *fn,
                    const void *arg, size_t size)
{
    push_call(s, fn, arg, size, false);
}

enum gguf_status gg_stream_sync(struct gg_stream *s, struct gguf_error *err)
{
    pthread_mutex_lock(&s->mutex);
    while (s->n_done != s->n_pushed)
        pthread_cond_wait(&s->less, &s->mutex);
    struct gguf_error first = s->err;
    s->err.status = GGUF_OK;
    pthread_mutex_unlock(&s->mutex);
    if (first.status != GGUF_OK && err)
        *err = first;
    return first.status;
}

/* --- transfers ------------------------------------------------------------ */

struct transfer {
    struct gguf_tensor *t;
    void *at;
    uint64_t off, size;
};
struct copy {
    const struct gguf_tensor *src;
    struct gguf_tensor *dst;
};
_Static_assert(sizeof(struct transfer) <= GG_STREAM_ARG, "room for a call");

static enum gguf_status run_set(void *arg, struct gguf_error *err)
{
    const struct transfer *x = arg;
    return gguf_tensor_set(x->t, x->at, x->off, x->size, err);
}

static enum gguf_status run_get(void *arg, struct gguf_error *err)
{
    const struct transfer *x = arg;
    return gguf_tensor_get(x->t, x->at, x->off, x->size, err);
}

static enum gguf_status run_copy(void *arg, struct gguf_error *err)
{
    const struct copy *x = arg;
    return gguf_tensor_copy(x->src, x->dst, err);
}

void gg_stream_set(struct gg_stream *s, struct gguf_tensor *t, const void *src,
                   uint64_t off, uint64_t size)
{
    struct transfer x = { t, (void *)(uintptr_t)src, off, size };
    gg_stream_push(s, run_set, &x, sizeof x);
}

void gg_stream_get(struct gg_stream *s, const struct gguf_tensor *t, void *dst,
                   uint64_t off, uint64_t size)
{
    struct transfer x = { (struct gguf_tensor *)(uintptr_t)t, dst, off, size };
    gg_stream_push(s, run_get, &x, sizeof x);
}

void gg_stream_copy(struct gg_stream *s, const struct gguf_tensor *src,
                    struct gguf_tensor *dst)
{
    struct copy x = { src, dst };
    gg_stream_push(s, run_copy, &x, sizeof x);
}

/* --- events --------------------------------------------------------------- */

/* Points are numbered as they are recorded: an event is past when the last one
 * is reached. A queue that has to wait keeps the number that it waits for. */
struct event {
    struct gguf_event base;
    const struct gguf_allocator *allocator;
    pthread_mutex_t mutex; /* protects all members below */
    pthread_cond_t reached;
    uint64_t n_recorded, n_reached;
    unsigned n_users; /* the caller, and calls that are queued */
};

struct point {
    struct event *e;
    uint64_t number;
};

/* Leaves the mutex; the last user frees. */
static void leave_event(struct event *e)
{
    bool last = --e->n_users == 0;
    pthread_mutex_unlock(&e->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&e->reached);
    pthread_mutex_destroy(&e->mutex);
    gg_mem_free(e->allocator, e);
}

static void wait_for_event(struct event *e, uint64_t number)
{
    while (e->n_reached < number)
        pthread_cond_wait(&e->reached, &e->mutex);
}

static enum gguf_status event_sync(struct gguf_event *base,
                                   struct gguf_error *err)
{
    struct event *e = (struct event *)base;
    pthread_mutex_lock(&e->mutex);
    wait_for_event(e, e->n_recorded);
    pthread_mutex_unlock(&e->mutex);
    (void)err; /* its thread is there */
    return GGUF_OK;
}

static void event_destroy(struct gguf_event *base)
{
    struct event *e = (struct event *)base;
    pthread_mutex_lock(&e->mutex);
    wait_for_event(e, e->n_recorded);
    leave_event(e);
}

static const struct gguf_event_iface event_iface = {
    .struct_size = sizeof event_iface,
    .destroy = event_destroy,
    .sync = event_sync,
};

enum gguf_status gg_stream_event(struct gguf_device *d,
                                 struct gguf_event **out,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err)
{
    struct event *e = gg_mem_alloc(allocator, sizeof *e);
    if (!e)
        return gg_error_set_nomem(err, sizeof *e);
    *e = (struct event){ .base = { .iface = &event_iface, .device = d },
                         .allocator = allocator,
                         .n_users = 1 };
    int bad = pthread_mutex_init(&e->mutex, NULL);
    if (!bad && (bad = pthread_cond_init(&e->reached, NULL)))
        pthread_mutex_destroy(&e->mutex);
    if (bad) {
        gg_mem_free(allocator, e);
        return gg_error_set_errno(err, bad, "cannot make an event");
    }
    *out = &e->base;
    return GGUF_OK;
}

static enum gguf_status run_reach(void *arg, struct gguf_error *err)
{
    const struct point *p = arg;
    (void)err;
    pthread_mutex_lock(&p->e->mutex);
    p->e->n_reached = GG_MAX(p->e->n_reached, p->number);
    pthread_cond_broadcast(&p->e->reached);
    leave_event(p->e);
    return GGUF_OK;
}

static enum gguf_status run_wait(void *arg, struct gguf_error *err)
{
    const struct point *p = arg;
    (void)err;
    pthread_mutex_lock(&p->e->mutex);
    wait_for_event(p->e, p->number);
    leave_event(p->e);
    return GGUF_OK;
}

void gg_stream_record(struct gg_stream *s, struct gguf_event *base)
{
    struct event *e = (struct event *)base;
    pthread_mutex_lock(&e->mutex);
    struct point p = { e, ++e->n_recorded };
    e->n_users++;
    pthread_mutex_unlock(&e->mutex);
    push_call(s, run_reach, &p, sizeof p, true);
}

enum gguf_status gg_stream_wait(struct gg_stream *s, struct gguf_event *base,
                                struct gguf_error *err)
{
    if (base->iface != &event_iface)
        /* it may be recorded again before its turn */
        return gguf_event_sync(base, err);
    struct event *e = (struct event *)base;
    pthread_mutex_lock(&e->mutex);
    struct point p = { e, e->n_recorded };
    bool past = e->n_reached >= p.number;
    e->n_users += !past;
    pthread_mutex_unlock(&e->mutex);
    if (!past)
        push_call(s, run_wait, &p, sizeof p, true);
    return GGUF_OK;
}
