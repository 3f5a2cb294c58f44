/* SPDX-License-Identifier: MIT */
/* backend_int.h - the objects of backends, inside of the library
 *
 * Each object of buffer.h, device.h and backend.h begins with a pointer to its
 * table of functions (gguf/backend_impl.h). A backend of the library embeds the
 * object in a struct of its own, which the table's destroy frees. An object for
 * a program's backend is allocated by the library, with a copy of the table.
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
    size_t alignment; /* alignment of tensors, a power of two */
    size_t max_size;  /* bytes of the largest buffer */
    bool is_host;     /* the processor reaches it through pointers */
    void *priv;       /* the backend's own */
    const struct gguf_allocator *allocator; /* source of this object, if
                                               gguf_buft_create() made it */
};

struct gguf_buffer {
    const struct gguf_buft_iface
        *iface; /* functions of the memory: the type's;
                                            no functions without memory */
    const struct gguf_buft *buft;
    const struct gguf_allocator *allocator; /* source of host memory */
    void *base;                             /* first byte; NULL: no memory */
    size_t size;                            /* bytes, all parts together */
    enum gguf_buffer_usage usage;
    bool foreign; /* memory of somebody else: tensors may have any alignment */
    void *priv;   /* the backend's own */
    struct gguf_buffer **parts; /* buffers that it owns; NULL: one piece */
    size_t n_parts;
    _Atomic(struct gg_buffer_version *)
        age; /* version of its weights; NULL: nobody
                                            has asked for it */
};

/* Functions of buffer types in host memory, which comes from the buffer's
 * allocator. */
extern const struct gguf_buft_iface gg_backend_host_iface;

/* Buffer type for measuring: buffers have sizes and addresses, and no memory.
 * Data that is set is lost, data that is read is 0, and nothing may be computed
 * in them. */
const struct gguf_buft *gg_measure_buft(void);

/* Create a buffer of type buft that has a size and no memory, for measuring. */
enum gguf_status gg_measure_buffer(struct gguf_buffer **out,
                                   const struct gguf_buft *buft, size_t size,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err);

/* Counter of the memory that an allocator has in use. It counts real blocks,
 * and bytes that are only announced: buffers for measuring, and plans
 * (gg_backend_measure_plan()). */
struct gg_measure {
    struct gguf_allocator allocator;    /* counting allocator, to pass on */
    const struct gguf_allocator *under; /* source of its blocks */
    uint64_t now;                       /* bytes in use */
    uint64_t most;                      /* largest value of now so far */
    struct {
        const struct gguf_backend *backend;
        uint64_t size; /* bytes that all plans of the backend share */
    } scratch[16];
    unsigned n_backends; /* entries of scratch */
};

/* Start to count at 0. m must not be moved: its allocator points to it. */
void gg_measure_init(struct gg_measure *m, const struct gguf_allocator *under);
/* Counter that a is the allocator of. NULL: a does not measure. */
struct gg_measure *gg_measure_find(const struct gguf_allocator *a);
/* Announce size bytes that come into use. Ignored if a does not measure. */
void gg_measure_add(const struct gguf_allocator *a, uint64_t size);
/* Announce size bytes that are free again. Ignored if a does not
 * measure. */
void gg_measure_sub(const struct gguf_allocator *a, uint64_t size);
/* Announce that the plans of b share at least size bytes. Ignored if a does not
 * measure. */
void gg_measure_scratch(const struct gguf_allocator *a,
                        const struct gguf_backend *b, uint64_t size);

/* Replace the memory of a buffer by size bytes of the same type. The object
 * keeps its address; tensors in it lose their memory. After a failure the
 * buffer has 0 bytes. */
enum gguf_status gg_buffer_resize(struct gguf_buffer *b, size_t size,
                                  struct gguf_error *err);

/* Create one buffer object of n buffers, which it owns. After a failure the
 * caller still owns them. */
enum gguf_status gg_buffer_join(struct gguf_buffer **out,
                                struct gguf_buffer **parts, size_t n,
                                const struct gguf_allocator *allocator,
                                struct gguf_error *err);

/* Selection of a context's tensors, and the memory that they get. */
struct gg_ctx_alloc_params {
    const struct gguf_buft *buft; /* type of the buffer */
    bool measure;                 /* give it a size and no memory */
    /* Returns true for tensors to place. NULL: all tensors without memory. */
    bool (*takes)(void *user, const struct gguf_tensor *t);
    void *user; /* passed to takes */
};
/* Allocate one buffer for some of a context's tensors, in the way of
 * gguf_ctx_alloc_tensors(). */
enum gguf_status gg_ctx_alloc_some(struct gguf_ctx *ctx,
                                   const struct gg_ctx_alloc_params *how,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_buffer **out,
                                   struct gguf_error *err);

/* Create a graph allocator with n buffer types. measure: its buffers have sizes
 * and no memory. */
enum gguf_status gg_galloc_create(struct gguf_galloc **out,
                                  const struct gguf_allocator *allocator,
                                  const struct gguf_buft *const *bufts,
                                  unsigned n, bool measure,
                                  struct gguf_error *err);

/* Index of the first buffer type that is the same as type i. */
unsigned gg_galloc_first_same_buft(const struct gguf_galloc *ga, unsigned i);

/* Index of the first type whose buffer is b. -1: b is not one of ga's. */
int gg_galloc_find_buffer(const struct gguf_galloc *ga,
                          const struct gguf_buffer *b);
/* True if b is a buffer of ga, so that ga has placed the tensors in it. */
bool gg_galloc_owns(const struct gguf_galloc *ga, const struct gguf_buffer *b);

/* Number of times that a buffer was made larger. Tensors that were placed
 * before have no memory then. */
unsigned gg_galloc_n_moves(const struct gguf_galloc *ga);

/* Place the tensors of a graph with a buffer type for each node and leaf, as
 * gguf_galloc_reserve_n() takes them. Fails as gguf_galloc_alloc() does. */
enum gguf_status gg_galloc_alloc_n(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   const int *node_buft, const int *leaf_buft,
                                   struct gguf_error *err);

/* Check that t has memory or no elements. GGUF_E_INVALID. */
enum gguf_status gg_backend_tensor_check_data(const struct gguf_tensor *t,
                                              struct gguf_error *err);

/* Bytes of the machine's memory, 0 where not known: `memory` of a device that
 * computes in host memory. */
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
    struct gguf_driver *driver; /* its owner */
};

struct gguf_driver {
    const struct gguf_driver_iface *iface;
    const char *name;
    size_t n_devices;
    struct gguf_device **devices;
    void *priv;
    const struct gguf_allocator *allocator; /* source of the object */
    bool made;   /* gguf_driver_create() made it, and the library frees it */
    size_t room; /* capacity of devices, of a driver that was made so */
};

/* Mask of CPU features for gguf_cpu_params.levels, where 0 means all. */
static inline uint32_t gg_backend_cpu_levels(uint32_t levels)
{
    return levels ? levels : UINT32_MAX;
}

/* Check that a function of the device's table, which succeeded, has returned an
 * object. GGUF_E_INVALID if made is NULL. */
enum gguf_status gg_device_check_result(const struct gguf_device *d,
                                        const char *function, const void *made,
                                        struct gguf_error *err);

/* Entry of a driver's functions. */
struct gg_backend_function {
    const char *name;
    gguf_any_fn *fn;
};

/* Driver with one device: the first member of the library's own drivers. */
struct gg_backend_single_driver {
    struct gguf_driver base;
    struct gguf_device device;
    struct gguf_device *list[1];
    const struct gg_backend_function *functions;
    size_t n_functions;
};
/* Set up a driver with one device.
 *
 * device      The device; driver and priv are set here. The driver gets its
 *             name.
 * allocator   Source of s, which destroying the driver frees.
 * functions   n_functions functions, which must outlive the driver. */
void gg_backend_single_driver_init(struct gg_backend_single_driver *s,
                                   const struct gguf_device *device,
                                   const struct gguf_allocator *allocator,
                                   const struct gg_backend_function *functions,
                                   size_t n_functions);
/* Create a backend on the driver's only device. The backend owns the driver;
 * after a failure the driver is destroyed. */
enum gguf_status
gg_backend_single_driver_create_backend(struct gguf_backend **out,
                                        struct gguf_driver *driver,
                                        struct gguf_error *err);

/* Check a number of threads: 1 to GGUF_POOL_MAX_THREADS. GGUF_E_INVALID. */
enum gguf_status gg_backend_check_threads(const struct gguf_backend *b,
                                          unsigned n, struct gguf_error *err);

/* --- backends ------------------------------------------------------------- */

struct gguf_event {
    const struct gguf_event_iface *iface;
    struct gguf_device *device;
    void *priv;                             /* the backend's own */
    const struct gguf_allocator *allocator; /* source of the object, if made */
    bool made; /* gguf_event_wrap() made it, and the library frees it */
};

struct gguf_backend {
    const struct gguf_backend_iface *iface;
    struct gguf_device *device;
    const struct gguf_allocator *allocator;
    const char *name;
    uint64_t id; /* identifies the implementation (gguf_backend_id()) */
    void *priv;  /* the backend's own */
    bool made;   /* gguf_backend_create() made it, and the library frees it */
    struct gguf_event *mark; /* event of gguf_backend_copy_async(); NULL: not
                                used yet */
    struct gguf_driver *own_driver; /* driver to destroy with it, or NULL */
};

/* Queue a copy in the order of b's work alone. *done: b can do this. Nothing
 * else may use src or dst until an event that is recorded on b afterwards is
 * past. */
enum gguf_status gg_backend_copy_queued(struct gguf_backend *b,
                                        const struct gguf_tensor *src,
                                        struct gguf_tensor *dst, bool *done,
                                        struct gguf_error *err);

/* Check that t has memory, and size bytes at off. GGUF_E_INVALID. */
enum gguf_status gg_backend_tensor_check_range(const struct gguf_tensor *t,
                                               uint64_t off, uint64_t size,
                                               struct gguf_error *err);
/* Check that src and dst have the same layout (GGUF_E_SHAPE) and memory
 * (GGUF_E_INVALID). */
enum gguf_status gg_backend_tensor_check_copy(const struct gguf_tensor *src,
                                              const struct gguf_tensor *dst,
                                              struct gguf_error *err);

/* Create a plan, or make *plan the plan of another graph. *plan may be NULL or
 * belong to another backend; it is NULL after a failure. */
enum gguf_status gg_backend_prepare_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         struct gguf_graph *graph,
                                         struct gguf_error *err);

/* Announce the memory of a plan to the counter of a. *plan is NULL or from an
 * earlier call; it stands for that memory and cannot be computed. */
enum gguf_status gg_backend_measure_plan(struct gguf_plan **plan,
                                         struct gguf_backend *b,
                                         const struct gguf_graph *graph,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err);

/* Check that the backend supports every node (GGUF_E_OP) and that nodes and
 * sources have memory (GGUF_E_INVALID). */
enum gguf_status gg_backend_check(const struct gguf_backend *b,
                                  const struct gguf_graph *graph,
                                  struct gguf_error *err);

#endif
