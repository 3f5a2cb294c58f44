/* backend.h - what a backend implements
 *
 * Each object of gguf/backend.h begins with a pointer to a table of functions;
 * a backend embeds the object in a struct of its own or hangs its data on
 * priv. Optional members may be NULL: the comment says what happens then.
 * Arguments are checked before a member is called.
 */
#ifndef GG_BACKEND_BACKEND_H
#define GG_BACKEND_BACKEND_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/backend.h"

/* --- buffer types and buffers --------------------------------------------- */

struct gguf_buft {
    const char *name;
    size_t alignment; /* power of two */
    size_t max_size;  /* of one buffer */
    bool is_host;
    struct gguf_device *device; /* NULL: host memory as such */
    void *priv;
    /* Fill b: iface, base, priv. size > 0. GGUF_E_NOMEM. */
    enum gguf_status (*alloc)(const struct gguf_buft *buft,
                              struct gguf_buffer *b, size_t size,
                              struct gguf_error *err);
    /* optional: gguf_tensor_size() */
    uint64_t (*tensor_size)(const struct gguf_buft *buft,
                            const struct gguf_tensor *t);
};

struct gg_buffer_iface {
    /* free base and priv; optional */
    void (*free)(struct gguf_buffer *b);
    /* optional, all of these, for host buffers: memcpy and memset */
    void (*set)(struct gguf_buffer *b, struct gguf_tensor *t, const void *src,
                uint64_t off, uint64_t size);
    void (*get)(struct gguf_buffer *b, const struct gguf_tensor *t, void *dst,
                uint64_t off, uint64_t size);
    void (*memset)(struct gguf_buffer *b, struct gguf_tensor *t, uint8_t value,
                   uint64_t off, uint64_t size);
    void (*clear)(struct gguf_buffer *b, uint8_t value);
    /* copy src, which lies in another buffer, to dst in b; false: cannot, by
     * way of host memory then. Optional. */
    bool (*copy)(struct gguf_buffer *b, const struct gguf_tensor *src,
                 struct gguf_tensor *dst);
    /* t was placed; may set t->extra. Optional. */
    enum gguf_status (*init_tensor)(struct gguf_buffer *b,
                                    struct gguf_tensor *t,
                                    struct gguf_error *err);
    /* forget what init_tensor made; optional */
    void (*reset)(struct gguf_buffer *b);
};

struct gguf_buffer {
    const struct gg_buffer_iface *iface;
    const struct gguf_buft *buft;
    const struct gguf_allocator *allocator;
    void *base;
    size_t size;
    enum gguf_buffer_usage usage;
    bool foreign; /* around memory of somebody else: any alignment */
    void *priv;
    struct gguf_buffer **parts; /* of a buffer of several, owned */
    size_t n_parts;
};

/* Buffers with sizes and addresses as those of host memory, and no memory: to
 * learn what tensors and graphs would take. What is set is lost, what is got is
 * 0; nothing must be computed in them. */
const struct gguf_buft *gg_measure_buft(void);

/* Replace the memory of a buffer by size bytes of the same type; the object
 * stays, what lay in it is lost. After a failure it has 0 bytes. */
enum gguf_status gg_buffer_resize(struct gguf_buffer *b, size_t size,
                                  struct gguf_error *err);

/* One object around n buffers, which are given, but not after a failure. */
enum gguf_status gg_buffer_join(struct gguf_buffer **out,
                                struct gguf_buffer **parts, size_t n,
                                const struct gguf_allocator *allocator,
                                struct gguf_error *err);

/* A graph allocator; with measure one whose buffers have sizes and no
 * memory. */
enum gguf_status gg_galloc_create(struct gguf_galloc **out,
                                  const struct gguf_allocator *allocator,
                                  const struct gguf_buft *const *bufts,
                                  unsigned n, bool measure,
                                  struct gguf_error *err);

/* The first type of buffer that is the same as type i. */
unsigned gg_galloc_first(const struct gguf_galloc *ga, unsigned i);

/* Which of ga's buffers b is, by the first type that has it, or -1; whether it
 * is one: what lies in it was placed by ga. */
int gg_galloc_number(const struct gguf_galloc *ga,
                     const struct gguf_buffer *b);
bool gg_galloc_owns(const struct gguf_galloc *ga, const struct gguf_buffer *b);

/* How often memory was replaced by more: what was placed before lies nowhere
 * since. */
unsigned gg_galloc_n_moves(const struct gguf_galloc *ga);

/* gguf_galloc_alloc with a pool for each node and leaf. */
enum gguf_status gg_galloc_alloc_n(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   const int *node_buft, const int *leaf_buft,
                                   struct gguf_error *err);

/* Fail unless t (or its root) has memory. */
enum gguf_status gg_backend_tensor_check_data(const struct gguf_tensor *t,
                                              struct gguf_error *err);

/* Memory of the machine in bytes, 0 where unknown. */
void gg_backend_host_memory(uint64_t *n_free, uint64_t *n_total);

/* --- devices and drivers -------------------------------------------------- */

struct gg_device_iface {
    /* 0 and 0 where unknown; optional */
    void (*memory)(const struct gguf_device *d, uint64_t *n_free,
                   uint64_t *n_total);
    bool (*supports_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);
    /* optional: host buffers and the device's own */
    bool (*supports_buft)(const struct gguf_device *d,
                          const struct gguf_buft *buft);
    /* optional: no */
    bool (*offloads_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);
    /* As many columns of a matrix product or more are summed in one order,
     * however many they are; fewer may take a shorter way, whose last bits
     * are others. Optional: 1 */
    uint32_t (*wide)(const struct gguf_device *d);
    enum gguf_status (*backend)(struct gguf_device *d,
                                struct gguf_backend **out,
                                struct gguf_error *err);
    /* with GGUF_DEVICE_HOST_BUF; optional: gguf_host_buft() */
    const struct gguf_buft *(*host_buft)(const struct gguf_device *d);
    /* with GGUF_DEVICE_HOST_PTR; optional: gguf_buffer_from_host */
    enum gguf_status (*from_host)(struct gguf_device *d,
                                  struct gguf_buffer **out, void *ptr,
                                  size_t size,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
    /* with GGUF_DEVICE_EVENTS */
    enum gguf_status (*event)(struct gguf_device *d, struct gguf_event **out,
                              const struct gguf_allocator *allocator,
                              struct gguf_error *err);
};

struct gguf_device {
    const struct gg_device_iface *iface;
    const char *name, *description;
    enum gguf_device_kind kind;
    uint32_t caps;
    const struct gguf_buft *buft;
    void *priv;
    struct gguf_driver *driver; /* that has it; a registry sets it, too */
};

/* What the device says of wide, at least 1. */
uint32_t gg_device_wide(const struct gguf_device *d);

struct gg_backend_driver_iface {
    void (*destroy)(struct gguf_driver *driver);
    gguf_any_fn *(*function)(const struct gguf_driver *driver,
                             const char *name); /* optional */
};

struct gguf_driver {
    const struct gg_backend_driver_iface *iface;
    const char *name;
    size_t n_devices;
    struct gguf_device **devices;
    void *priv;
};

/* --- backends ------------------------------------------------------------- */

struct gg_backend_iface {
    uint64_t id; /* of the implementation: any number that no other has */
    void (*destroy)(struct gguf_backend *b);
    /* Every node was asked supports_op and has memory. May return early. */
    enum gguf_status (*compute)(struct gguf_backend *b,
                                struct gguf_graph *graph,
                                struct gguf_error *err);
    /* optional: everything is done when compute returns */
    enum gguf_status (*sync)(struct gguf_backend *b, struct gguf_error *err);
    /* optional: a plan is the graph, compute does the rest */
    enum gguf_status (*plan_create)(struct gguf_backend *b,
                                    struct gguf_graph *graph, void **plan,
                                    struct gguf_error *err);
    /* with plans, optional: make plan that of another graph, in the memory that
     * it has if that is enough; after a failure it is only destroyed */
    enum gguf_status (*plan_remake)(struct gguf_backend *b, void *plan,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err);
    enum gguf_status (*plan_compute)(struct gguf_backend *b, void *plan,
                                     struct gguf_error *err);
    void (*plan_destroy)(struct gguf_backend *b, void *plan);
    /* with plans, optional: how many threads compute a node of the graph, and
     * the bytes of scratch that the plan runs with; 0 and 0 */
    unsigned (*plan_threads)(const struct gguf_backend *b, const void *plan,
                             const struct gguf_tensor *node);
    size_t (*plan_work_size)(const struct gguf_backend *b, const void *plan);
    /* optional: a sync, then the buffer's own. Ranges were checked. */
    void (*set_async)(struct gguf_backend *b, struct gguf_tensor *t,
                      const void *src, uint64_t off, uint64_t size);
    void (*get_async)(struct gguf_backend *b, const struct gguf_tensor *t,
                      void *dst, uint64_t off, uint64_t size);
    /* Queue a copy of src, which b can reach, to dst anywhere, in the order of
     * b's work; whoever has dst waits for it by an event. false: cannot.
     * Optional. */
    bool (*copy_async)(struct gguf_backend *b, const struct gguf_tensor *src,
                       struct gguf_tensor *dst);
    /* with GGUF_DEVICE_EVENTS; e is of b's device */
    void (*event_record)(struct gguf_backend *b, struct gguf_event *e);
    /* optional: the caller waits; e is of any device */
    void (*event_wait)(struct gguf_backend *b, struct gguf_event *e);
};

struct gg_backend_event_iface {
    void (*destroy)(struct gguf_event *e); /* waits */
    void (*sync)(struct gguf_event *e);
};

struct gguf_event {
    const struct gg_backend_event_iface *iface;
    struct gguf_device *device;
};

struct gguf_backend {
    const struct gg_backend_iface *iface;
    struct gguf_device *device;
    const struct gguf_allocator *allocator;
    const char *name;
    void *priv;
    struct gguf_event *mark; /* of gguf_backend_copy_async, when first used */
};

/* Queue a copy in the order of b's work alone, if b can: nobody else uses src
 * or dst until an event that is recorded on b after it is past. */
bool gg_backend_copy_behind(struct gguf_backend *b,
                            const struct gguf_tensor *src,
                            struct gguf_tensor *dst);

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
enum gguf_status gg_backend_plan_make(struct gguf_plan **plan,
                                      struct gguf_backend *b,
                                      struct gguf_graph *graph,
                                      struct gguf_error *err);

/* Fail unless every node can run on the device and has memory. */
enum gguf_status gg_backend_check(const struct gguf_backend *b,
                                  const struct gguf_graph *graph,
                                  struct gguf_error *err);

#endif
