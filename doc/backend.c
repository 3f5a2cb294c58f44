/* SPDX-License-Identifier: MIT */
/* backend.c - a complete backend in one file: four operations, plain loops
 *
 * doc/backend.md explains it. It includes <gguf/backend_impl.h> and no other
 * header of the library. Its memory stands for the memory of a card: it comes
 * from aligned_alloc(), but only this backend reads and writes it, and tensors
 * are copied to it and back.
 */
#include <gguf/backend_impl.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Id of this implementation: a random number, chosen once. */
#define TINY_ID UINT64_C(0x71e3a9c4d2580b6f)

struct tiny {
    struct gguf_buft *buft;
    size_t n_free, n_total; /* free bytes of its memory, and all bytes */
};

/* Numbers of plans that were created, and of plans that were remade for another
 * graph. */
struct tiny_counts {
    unsigned n_made, n_remade;
};
typedef struct tiny_counts tiny_counts_fn(const struct gguf_backend *b);

enum gguf_status tiny_driver_create(struct gguf_driver **out, size_t memory,
                                    struct gguf_error *err);

/* --- memory --------------------------------------------------------------- */

static enum gguf_status memory_alloc(const struct gguf_buft *buft,
                                     struct gguf_buffer *b, size_t size,
                                     struct gguf_error *err)
{
    struct tiny *t = gguf_buft_priv(buft);
    const size_t align = gguf_buft_alignment(buft);
    void *p = NULL;
    if (size <= t->n_free)
        p = aligned_alloc(align, (size + align - 1) / align * align);
    if (!p)
        return gguf_error_set(err, GGUF_E_NOMEM,
                              "tiny: %zu bytes are wanted, %zu are free", size,
                              t->n_free);
    t->n_free -= size;
    gguf_buffer_set_memory(b, p, t);
    return GGUF_OK;
}

static void memory_free(struct gguf_buffer *b)
{
    struct tiny *t = gguf_buffer_priv(b);
    t->n_free += gguf_buffer_size(b);
    free(gguf_buffer_base(b));
}

/* Copy data to a tensor. A backend for a card would start a transfer here and
 * wait for its end. */
static enum gguf_status memory_set(struct gguf_buffer *b,
                                   struct gguf_tensor *t, const void *src,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)b, (void)err;
    memcpy((char *)t->data + off, src, (size_t)size);
    return GGUF_OK;
}

static enum gguf_status memory_get(struct gguf_buffer *b,
                                   const struct gguf_tensor *t, void *dst,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)b, (void)err;
    memcpy(dst, (const char *)t->data + off, (size_t)size);
    return GGUF_OK;
}

static const struct gguf_buft_iface memory_iface = {
    .struct_size = sizeof memory_iface,
    .alloc = memory_alloc,
    .free = memory_free,
    .set = memory_set,
    .get = memory_get,
};

/* --- operations ----------------------------------------------------------- */

/* Compute t from its sources. room is scratch for matmul(): the sums of one
 * column of the result, in double precision. */
typedef void tiny_op(struct gguf_tensor *t, double *room);

static void add(struct gguf_tensor *t, double *room)
{
    const float *a = t->src[0]->data, *b = t->src[1]->data;
    float *y = t->data;
    (void)room;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        y[i] = a[i] + b[i];
}

static void mul(struct gguf_tensor *t, double *room)
{
    const float *a = t->src[0]->data, *b = t->src[1]->data;
    float *y = t->data;
    (void)room;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        y[i] = a[i] * b[i];
}

static void relu(struct gguf_tensor *t, double *room)
{
    const float *a = t->src[0]->data;
    float *y = t->data;
    (void)room;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        y[i] = a[i] > 0 ? a[i] : 0;
}

/* a [k, m], b [k, n] -> [m, n] */
static void matmul(struct gguf_tensor *t, double *room)
{
    const float *a = t->src[0]->data, *b = t->src[1]->data;
    float *y = t->data;
    const int64_t n_k = t->src[0]->ne[0], n_m = t->ne[0];
    for (int64_t j = 0; j < t->ne[1]; j++) {
        for (int64_t m = 0; m < n_m; m++) {
            room[m] = 0;
            for (int64_t k = 0; k < n_k; k++)
                room[m] += (double)a[m * n_k + k] * (double)b[j * n_k + k];
        }
        for (int64_t m = 0; m < n_m; m++)
            y[j * n_m + m] = (float)room[m];
    }
}

/* The operations of this backend, one row each. To add an operation, add its
 * function and its row. */
static const struct row {
    uint32_t op;
    unsigned n_src;
    bool same; /* sources must have the shape of the result */
    tiny_op *run;
} rows[] = {
    { GGUF_OP_ADD, 2, true, add },
    { GGUF_OP_MUL, 2, true, mul },
    { GGUF_OP_RELU, 1, true, relu },
    { GGUF_OP_MATMUL, 2, false, matmul },
};

static const struct row *find_row(uint32_t op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}

/* --- plans ---------------------------------------------------------------- */

struct step {
    struct gguf_tensor *node;
    tiny_op *run;
};

/* Plan of a graph: the nodes to compute, and scratch for any of them. */
struct plan {
    struct step *steps; /* nodes to compute, in order; views are left out */
    size_t n, n_steps;  /* number of steps, and capacity of the array */
    double *room;       /* scratch for every step */
    size_t room_size;   /* bytes of room */
};

struct backend {
    struct tiny_counts counts;
};

static void plan_destroy(struct gguf_backend *b, void *plan)
{
    struct plan *p = plan;
    (void)b;
    free(p->steps);
    free(p->room);
    free(p);
}

/* Fill a plan with the nodes of a graph. Memory that the plan has already is
 * reused if it is large enough. */
static enum gguf_status plan_fill(struct plan *p, struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    const size_t n = gguf_graph_n_nodes(graph);
    size_t most = 1;
    for (size_t i = 0; i < n; i++)
        if (gguf_graph_node(graph, i)->op == GGUF_OP_MATMUL &&
            (size_t)gguf_graph_node(graph, i)->ne[0] > most)
            most = (size_t)gguf_graph_node(graph, i)->ne[0];
    if (n > p->n_steps) {
        struct step *steps = realloc(p->steps, n * sizeof *steps);
        if (!steps)
            return gguf_error_set(err, GGUF_E_NOMEM, "tiny: a plan");
        p->steps = steps;
        p->n_steps = n;
    }
    if (most * sizeof(double) > p->room_size) {
        double *room = realloc(p->room, most * sizeof *room);
        if (!room)
            return gguf_error_set(err, GGUF_E_NOMEM, "tiny: scratch");
        p->room = room;
        p->room_size = most * sizeof *room;
    }
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct gguf_tensor *t = gguf_graph_node(graph, i);
        if (!gguf_op_is_view(t->op) && !gguf_tensor_is_empty(t))
            p->steps[p->n++] = (struct step){ t, find_row(t->op)->run };
    }
    return GGUF_OK;
}

static enum gguf_status plan_remake(struct gguf_backend *b, void *plan,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    struct backend *own = gguf_backend_priv(b);
    own->counts.n_remade++;
    return plan_fill(plan, graph, err);
}

static enum gguf_status plan_create(struct gguf_backend *b,
                                    struct gguf_graph *graph, void **plan,
                                    struct gguf_error *err)
{
    struct backend *own = gguf_backend_priv(b);
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return gguf_error_set(err, GGUF_E_NOMEM, "tiny: a plan");
    const enum gguf_status st = plan_fill(p, graph, err);
    if (st != GGUF_OK) {
        plan_destroy(b, p);
        return st;
    }
    own->counts.n_made++;
    *plan = p;
    return GGUF_OK;
}

/* Check a result. GGUF_E_NONFINITE if an element is infinite or NaN; the
 * message names the first such element. */
static enum gguf_status check(const struct gguf_tensor *t,
                              struct gguf_error *err)
{
    const float *y = t->data;
    char name[160];
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        if (!isfinite(y[i]))
            return gguf_error_set(
                err, GGUF_E_NONFINITE, "tiny: element %lld of %s, %s, is %g",
                (long long)i, gguf_op_name(t->op),
                gguf_tensor_format(t, name, sizeof name), (double)y[i]);
    return GGUF_OK;
}

static enum gguf_status plan_compute(struct gguf_backend *b, void *plan,
                                     struct gguf_error *err)
{
    struct plan *p = plan;
    enum gguf_status st = GGUF_OK;
    (void)b;
    for (size_t i = 0; st == GGUF_OK && i < p->n; i++) {
        p->steps[i].run(p->steps[i].node, p->room);
        st = check(p->steps[i].node, err);
    }
    return st;
}

/* Number of threads that compute a node: 1, the calling thread. 0 for a node
 * that needs no work. */
static unsigned plan_threads(const struct gguf_backend *b, const void *plan,
                             const struct gguf_tensor *node)
{
    (void)b, (void)plan;
    return !gguf_op_is_view(node->op) && !gguf_tensor_is_empty(node);
}

static size_t plan_work_size(const struct gguf_backend *b, const void *plan)
{
    (void)b;
    return ((const struct plan *)plan)->room_size;
}

/* --- backends ------------------------------------------------------------- */

static enum gguf_status compute(struct gguf_backend *b,
                                struct gguf_graph *graph,
                                struct gguf_error *err)
{
    void *plan;
    enum gguf_status st = plan_create(b, graph, &plan, err);
    if (st != GGUF_OK)
        return st;
    st = plan_compute(b, plan, err);
    plan_destroy(b, plan);
    return st;
}

static void backend_destroy(struct gguf_backend *b)
{
    free(gguf_backend_priv(b));
}

static const struct gguf_backend_iface backend_iface = {
    .struct_size = sizeof backend_iface,
    .destroy = backend_destroy,
    .compute = compute,
    .plan_create = plan_create,
    .plan_remake = plan_remake,
    .plan_compute = plan_compute,
    .plan_destroy = plan_destroy,
    .plan_threads = plan_threads,
    .plan_work_size = plan_work_size,
};

static enum gguf_status backend_create(struct gguf_device *d,
                                       struct gguf_backend **out,
                                       struct gguf_error *err)
{
    struct gguf_backend_params params = GGUF_BACKEND_PARAMS_INIT;
    struct backend *own = calloc(1, sizeof *own);
    if (!own)
        return gguf_error_set(err, GGUF_E_NOMEM, "tiny: a backend");
    params.iface = &backend_iface;
    params.id = TINY_ID;
    params.priv = own;
    const enum gguf_status st = gguf_backend_create(out, d, &params, err);
    if (st != GGUF_OK)
        free(own);
    return st;
}

/* --- the device ----------------------------------------------------------- */

static bool plain(const struct gguf_tensor *t)
{
    return t && t->dtype == GGUF_DTYPE_F32 && gguf_tensor_is_contiguous(t);
}

/* Can the device compute t? Only f32 tensors without gaps, of at most two
 * dimensions, and operations without parameters. Another backend computes all
 * other nodes. */
static bool supports_op(const struct gguf_device *d,
                        const struct gguf_tensor *t)
{
    const struct row *r = find_row(t->op);
    char none;
    (void)d;
    if (!r || !plain(t) || !gguf_tensor_op_params(t, &none, 0))
        return false;
    for (unsigned i = 0; i < r->n_src; i++)
        if (!plain(t->src[i]) ||
            (r->same && !gguf_tensor_same_shape(t->src[i], t)))
            return false;
    return t->ne[2] == 1 && t->ne[3] == 1;
}

/* Can the device access memory of this type? Only of its own type. */
static bool supports_buft(const struct gguf_device *d,
                          const struct gguf_buft *buft)
{
    return buft == gguf_device_buft(d);
}

/* 1: matmul() sums each column separately, so that a sum does not depend on the
 * number of columns. */
static uint32_t wide(const struct gguf_device *d)
{
    (void)d;
    return 1;
}

static void memory_of(const struct gguf_device *d, uint64_t *n_free,
                      uint64_t *n_total)
{
    const struct tiny *t = gguf_device_priv(d);
    *n_free = t->n_free;
    *n_total = t->n_total;
}

static const struct gguf_device_iface device_iface = {
    .struct_size = sizeof device_iface,
    .memory = memory_of,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .min_invariant_batch = wide,
    .create_backend = backend_create,
};

/* --- the driver ----------------------------------------------------------- */

static struct tiny_counts counts(const struct gguf_backend *b)
{
    return ((const struct backend *)gguf_backend_priv(b))->counts;
}

static gguf_any_fn *function(const struct gguf_driver *driver,
                             const char *name)
{
    (void)driver;
    return strcmp(name, "counts") == 0 ? (gguf_any_fn *)counts : NULL;
}

static void tiny_free(struct tiny *t)
{
    gguf_buft_destroy(t->buft);
    free(t);
}

static void driver_destroy(struct gguf_driver *driver)
{
    tiny_free(gguf_driver_priv(driver));
}

static const struct gguf_driver_iface driver_iface = {
    .struct_size = sizeof driver_iface,
    .destroy = driver_destroy,
    .function = function,
};

/* Create the buffer type of t, then the driver. If this succeeds, the driver
 * owns t, and driver_destroy() frees it. */
static enum gguf_status make_driver(struct gguf_driver **out, struct tiny *t,
                                    struct gguf_error *err)
{
    struct gguf_buft_params memory = GGUF_BUFT_PARAMS_INIT;
    struct gguf_driver_params driver = GGUF_DRIVER_PARAMS_INIT;
    memory.iface = &memory_iface;
    memory.name = "tiny";
    memory.priv = t;
    driver.iface = &driver_iface;
    driver.name = "tiny";
    driver.priv = t;
    const enum gguf_status st = gguf_buft_create(&t->buft, &memory, err);
    return st == GGUF_OK ? gguf_driver_create(out, &driver, err) : st;
}

/* Create a driver with one device.
 *
 * out      Receives the driver. NULL after a failure.
 * memory   Bytes of memory that the device has. */
enum gguf_status tiny_driver_create(struct gguf_driver **out, size_t memory,
                                    struct gguf_error *err)
{
    struct gguf_device_params device = GGUF_DEVICE_PARAMS_INIT;
    struct tiny *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return gguf_error_set(err, GGUF_E_NOMEM, "tiny: a driver");
    t->n_free = t->n_total = memory;
    enum gguf_status st = make_driver(out, t, err);
    if (st != GGUF_OK) {
        tiny_free(t);
        return st;
    }
    device.iface = &device_iface;
    device.name = "tiny0";
    device.description = "four operations in plain loops";
    device.kind = GGUF_DEVICE_ACCEL;
    device.buft = t->buft;
    device.priv = t;
    st = gguf_driver_add_device(*out, &device, NULL, err);
    if (st != GGUF_OK) {
        gguf_driver_destroy(*out);
        *out = NULL;
    }
    return st;
}
