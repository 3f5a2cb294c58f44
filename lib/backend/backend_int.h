/* SPDX-License-Identifier: MIT */
/* backend_int.h - the objects of backends, from within the library
 *
 * Each object of gguf/backend.h begins with a pointer to its table of
 * functions, which gguf/backend_impl.h describes: the same for the backends of
 * the library and for those of others. The library's own embed the object in a
 * struct of theirs, and destroy frees that; others have theirs made, and the
 * table copied.
 */
#ifndef GG_BACKEND_BACKEND_INT_H
#define GG_BACKEND_BACKEND_INT_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/backend_impl.h"

/* --- buffer types and buffers --------------------------------------------- */

struct gguf_buft {
    const struct gguf_buft_iface *iface;
    const char *name;
    size_t alignment; /* power of two */
    size_t max_size;  /* of one buffer */
    bool is_host;
    void *priv;
    const struct gguf_allocator *allocator; /* of one that was created */
};

struct gguf_buffer {
    const struct gguf_buft_iface *iface; /* its type's, or of none */
    const struct gguf_buft *buft;
    const struct gguf_allocator *allocator;
    void *base;
    size_t size;
    enum gguf_buffer_usage usage;
    bool foreign; /* around memory that it does not own: any alignment */
    void *priv;
    struct gguf_buffer **parts; /* of a buffer of several, owned */
    size_t n_parts;
    _Atomic(struct gg_buffer_version *)
        age; /* buffer_version.h; NULL: nobody asked */
};

/* Of types whose buffers are memory of the machine, from the buffer's
 * allocator. */
extern const struct gguf_buft_iface gg_backend_host_iface;

/* Buffers with sizes and addresses as those of host memory, and no memory: to
 * learn what tensors and graphs would take. What is set is lost, what is got is
 * 0; nothing must be computed in them. */
const struct gguf_buft *gg_measure_buft(void);

/* A buffer of any type that has a size and no memory, as those above. */
enum gguf_status gg_measure_buffer(struct gguf_buffer **out,
                                   const struct gguf_buft *buft, size_t size,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err);

/* What calls of an allocator would have in use, where some of it is only said:
 * buffers above that have it as their allocator, and plans (below). */
struct gg_measure {
    struct gguf_allocator allocator; /* which counts; to be given to others */
    const struct gguf_allocator *under; /* where its memory comes from */
    uint64_t now, most;                 /* bytes in blocks, and at most */
    struct {
        const struct gguf_backend *backend;
        uint64_t size; /* what all its plans share */
    } scratch[16];
    unsigned n_backends;
};

/* m stays where it is. */
void gg_measure_init(struct gg_measure *m, const struct gguf_allocator *under);
/* Whose allocator a is; NULL: one that does not measure. */
struct gg_measure *gg_measure_find(const struct gguf_allocator *a);
/* So many bytes more, or fewer, where a measures. */
void gg_measure_add(const struct gguf_allocator *a, uint64_t size);
void gg_measure_sub(const struct gguf_allocator *a, uint64_t size);
/* The plans of b share so many bytes, if they had no more. */
void gg_measure_scratch(const struct gguf_allocator *a,
                        const struct gguf_backend *b, uint64_t size);

/* Replace the memory of a buffer by size bytes of the same type; the object
 * stays, what lay in it is lost. After a failure it has 0 bytes. */
enum gguf_status gg_buffer_resize(struct gguf_buffer *b, size_t size,
                                  struct gguf_error *err);

/* One object around n buffers, which are given, but not after a failure. */
enum gguf_status gg_buffer_join(struct gguf_buffer **out,
                                struct gguf_buffer **parts, size_t n,
                                const struct gguf_allocator *allocator,
                                struct gguf_error *err);

/* Selection of tensors of a context, and the memory that they get. */
struct gg_ctx_alloc_params {
    const struct gguf_buft *buft;
    bool measure; /* the buffer has a size and no memory */
    /* filter; NULL: all tensors without memory */
    bool (*takes)(void *user, const struct gguf_tensor *t);
    void *user; /* parameter of takes */
};
/* gguf_ctx_alloc_tensors for some of a context's tensors. */
enum gguf_status gg_ctx_alloc_some(struct gguf_ctx *ctx,
                                   const struct gg_ctx_alloc_params *how,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_buffer **out,
                                   struct gguf_error *err);

/* A graph allocator; with measure one whose buffers have sizes and no
 * memory. */
enum gguf_status gg_galloc_create(struct gguf_galloc **out,
                                  const struct gguf_allocator *allocator,
                                  const struct gguf_buft *const *bufts,
                                  unsigned n, bool measure,
                                  struct gguf_error *err);

/* The first type of buffer that is the same as type i. */
unsigned gg_galloc_first_same_buft(const struct gguf_galloc *ga, unsigned i);

/* Which of ga's buffers b is, by the first type that has it, or -1; whether it
 * is one: what lies in it was placed by ga. */
int gg_galloc_find_buffer(const struct gguf_galloc *ga,
                          const struct gguf_buffer *b);
bool gg_galloc_owns(const struct gguf_galloc *ga, const struct gguf_buffer *b);

/* How often memory was replaced by more: what was placed before is then
 * placed nowhere. */
unsigned gg_galloc_n_moves(const struct gguf_galloc *ga);

/* gguf_galloc_alloc with a pool for each node and leaf. */
enum gguf_status gg_galloc_alloc_n(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   const int *node_buft, const int *leaf_buft,
                                   struct gguf_error *err);

/* Fail unless t (or its root) has memory. */
enum gguf_status gg_backend_tensor_check_data(const struct gguf_tensor *t,
                                              struct gguf_error *err);

/* Memory of the machine in bytes, 0 where unknown: for the table of a device
 * that has no other. */
void gg_backend_host_memory(const struct gguf_device *d, uint64_t *n_free,
                            uint64_t *n_total);

/* --- devices and drivers -------------------------------------------------- */

struct gguf_device {
    const struct gguf_device_iface *iface;
    const char *name, *description;
    enum gguf_device_kind kind;
    uint32_t caps;
    const struct gguf_buft *buft;
    void *priv;
    struct gguf_driver *driver; /* that has it; a registry sets it, too */
};

struct gguf_driver {
    const struct gguf_driver_iface *iface;
    const char *name;
    size_t n_devices;
    struct gguf_device **devices;
    void *priv;
    const struct gguf_allocator *allocator; /* of the object, if it was made */
    bool made;   /* by gguf_driver_create: the library frees it */
    size_t room; /* of devices, then */
};

/* GGUF_E_INVALID if a function of the device's table succeeded and made
 * nothing. */
enum gguf_status gg_device_check_result(const struct gguf_device *d,
                                        const char *function, const void *made,
                                        struct gguf_error *err);

/* A function of a driver by its name. */
struct gg_backend_function {
    const char *name;
    gguf_any_fn *fn;
};

/* A driver of one device, as the library's are: the first member of theirs. */
struct gg_backend_single_driver {
    struct gguf_driver base;
    struct gguf_device device;
    struct gguf_device *list[1];
    const struct gg_backend_function *functions;
    size_t n_functions;
};
/* device: all but its driver, whose name is the same, and priv, which is s.
 * destroy frees s, which comes from the allocator; functions are kept. */
void gg_backend_single_driver_init(struct gg_backend_single_driver *s,
                                   const struct gguf_device *device,
                                   const struct gguf_allocator *allocator,
                                   const struct gg_backend_function *functions,
                                   size_t n_functions);
/* A backend of its device, which the driver is given to; after a failure it is
 * destroyed. */
enum gguf_status
gg_backend_single_driver_create_backend(struct gguf_backend **out,
                                        struct gguf_driver *driver,
                                        struct gguf_error *err);

/* As many threads as a pool may have, and one at least. */
enum gguf_status gg_backend_check_threads(const struct gguf_backend *b,
                                          unsigned n, struct gguf_error *err);

/* --- backends ------------------------------------------------------------- */

struct gguf_event {
    const struct gguf_event_iface *iface;
    struct gguf_device *device;
    void *priv; /* what follows: of one that gguf_event_wrap made */
    const struct gguf_allocator *allocator;
    bool made;
};

struct gguf_backend {
    const struct gguf_backend_iface *iface;
    struct gguf_device *device;
    const struct gguf_allocator *allocator;
    const char *name;
    uint64_t id; /* of the implementation */
    void *priv;
    bool made;               /* by gguf_backend_create: the library frees it */
    struct gguf_event *mark; /* of gguf_backend_copy_async, when first used */
    struct gguf_driver *own_driver; /* destroyed after it, or NULL */
};

/* Queue a copy in the order of b's work alone, if b can (*done then). Nothing
 * else may use src or dst until an event that is recorded on b after it is
 * past. */
enum gguf_status gg_backend_copy_queued(struct gguf_backend *b,
                                        const struct gguf_tensor *src,
                                        struct gguf_tensor *dst, bool *done,
                                        struct gguf_error *err);

/* GGUF_E_INVALID unless t has memory and size bytes from off on. */
enum gguf_status gg_backend_tensor_check_range(const struct gguf_tensor *t,
                                               uint64_t off, uint64_t size,
                                               struct gguf_error *err);
/* GGUF_E_SHAPE unless the layouts are the same; both must have memory. */
enum gguf_status gg_backend_tensor_check_copy(const struct gguf_tensor *src,
                                              const struct gguf_tensor *dst,
                                              struct gguf_error *err);

/* gguf_plan_create, in place of *plan, of any backend, if that is not NULL;
 * after a failure it is NULL. */
enum gguf_status gg_backend_prepare_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         struct gguf_graph *graph,
                                         struct gguf_error *err);

/* The same, only said to a's measure: what is in *plan cannot be computed. */
enum gguf_status gg_backend_measure_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         const struct gguf_graph *graph,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err);

/* Fail unless every node can run on the device and has memory. */
enum gguf_status gg_backend_check(const struct gguf_backend *b,
                                  const struct gguf_graph *graph,
                                  struct gguf_error *err);

#endif
