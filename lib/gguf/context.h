/* SPDX-License-Identifier: MIT */
/* context.h - arenas for tensors and graphs
 *
 * A context is one block of memory of a fixed size. Tensors, graphs and work
 * memory are taken from it one after another, and freed all at once.
 *
 *     1  gguf_ctx_create()    with a size that gguf_tensor_overhead() and
 *                             gguf_graph_overhead() help to compute
 *     2  gguf_tensor_create_2d(), gguf_op_matmul(), gguf_graph_create(), ...
 *     3  gguf_ctx_status()    the first failure of step 2, or GGUF_OK
 *     4  gguf_ctx_reset()     empties the context, for the next batch
 *     5  gguf_ctx_destroy()
 *
 * Failures are sticky. The first function that fails on a context stores its
 * failure there and returns NULL; from then on every function that would make
 * something in the context returns NULL. Functions that take a tensor accept
 * NULL. A program checks once, after it has built a whole graph.
 *
 * Threads: a context, and everything in it, belongs to one thread at a time.
 * Functions with const pointers alone may run in several threads at once.
 */
#ifndef GGUF_CONTEXT_H
#define GGUF_CONTEXT_H

#include <gguf/dtype.h>
#include <gguf/memory.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_ctx;
struct gguf_file;   /* file.h */
struct gguf_tensor; /* tensor.h */

struct gguf_ctx_params {
    size_t struct_size;

    /* Source of all memory of the context. NULL: malloc. It must outlive the
     * context. */
    const struct gguf_allocator *allocator;

    /* Bytes of the arena. For n tensors without data: n times
     * gguf_tensor_overhead(), plus gguf_graph_overhead() for each graph. 0: an
     * arena in which nothing fits. */
    size_t mem_size;

    /* Memory of the arena: mem_size bytes, which must outlive the context.
     * NULL: the context allocates it. */
    void *mem;

    /* New tensors get no data: a backend's buffers will hold it. If false, the
     * data of each tensor follows its description in the arena. */
    bool no_alloc;
};
#define GGUF_CTX_PARAMS_INIT GGUF_INIT(struct gguf_ctx_params)

/* Create an empty context.
 *
 * out      Receives the context. NULL after a failure.
 * params   Size and memory. NULL: the defaults.
 *
 * Free *out with gguf_ctx_destroy().
 *
 * GGUF_OK         *out is ready.
 * GGUF_E_NOMEM    Not enough memory for the arena.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_create(struct gguf_ctx **out, const struct gguf_ctx_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a context and every tensor, graph and work memory in it. NULL is
 * ignored. Since: 0.1 */
GGUF_API void gguf_ctx_destroy(struct gguf_ctx *ctx);

/* Remove every object from a context, and its stored failure. The arena itself
 * stays allocated. Tensors and graphs of the context are invalid afterwards.
 * Since: 0.1 */
GGUF_API void gguf_ctx_reset(struct gguf_ctx *ctx);

/* First failure on a context since it was created or reset.
 *
 * ctx      A context. NULL gives GGUF_E_INVALID, so that a failed creation
 *          needs no check of its own.
 * err      Receives the stored failure, if there was one.
 *
 * Returns GGUF_OK, or the status of the function that failed first.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_status(const struct gguf_ctx *ctx,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes of the arena in use, headers of objects and padding included.
 * Since: 0.1 */
GGUF_API size_t gguf_ctx_used(const struct gguf_ctx *ctx);

/* Bytes of the arena that are still free. Since: 0.1 */
GGUF_API size_t gguf_ctx_left(const struct gguf_ctx *ctx);

/* Bytes that one tensor without data takes in an arena. Any thread.
 * Since: 0.1 */
GGUF_API size_t gguf_tensor_overhead(void);

/* True if new tensors get no data (gguf_ctx_params.no_alloc). Since: 0.1 */
GGUF_API bool gguf_ctx_no_alloc(const struct gguf_ctx *ctx);

/* Change no_alloc for the tensors that are created from now on. Since: 0.1 */
GGUF_API void gguf_ctx_set_no_alloc(struct gguf_ctx *ctx, bool no_alloc);

/* Take plain memory from a context.
 *
 * size     Bytes.
 *
 * Returns memory that is aligned to 64 bytes and not zeroed. It lives until the
 * context is reset or destroyed. Returns NULL after a failure:
 *
 * GGUF_E_FULL     The arena has no size bytes left (sticky).
 *
 * Since: 0.1 */
GGUF_API void *gguf_ctx_alloc_work(struct gguf_ctx *ctx, size_t size);

/* --- walking through a context -------------------------------------------- */

/* First tensor of a context, in the order of creation, or NULL. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_ctx_first_tensor(const struct gguf_ctx *ctx);

/* Tensor that was created after t in the same context, or NULL. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_ctx_next_tensor(const struct gguf_ctx *ctx,
                                                  const struct gguf_tensor *t);

/* First tensor of that name, or NULL. A linear search. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_ctx_find_tensor(const struct gguf_ctx *ctx,
                                                  const char *name);

enum gguf_object_kind {
    GGUF_OBJECT_TENSOR, /* struct gguf_tensor, with its data if it has any */
    GGUF_OBJECT_GRAPH,  /* struct gguf_graph */
    GGUF_OBJECT_WORK    /* plain bytes, from gguf_ctx_alloc_work() */
};

/* One entry of an arena: for programs that print or draw the use of memory.
 * Only the library makes it; later versions may add members at its end. */
struct gguf_object {
    uint64_t off;             /* bytes from the start of the arena */
    uint64_t size;            /* bytes of the object and its data */
    struct gguf_object *next; /* following object; NULL: this is the last */
    enum gguf_object_kind kind;
};

/* First object of a context, in the order of addresses, or NULL.
 * Since: 0.1 */
GGUF_API const struct gguf_object *
gguf_ctx_first_object(const struct gguf_ctx *ctx);

/* --- the tensors of a file ------------------------------------------------ */

/* Data of the tensors in a context that is made from a file. */
enum gguf_ctx_data {
    GGUF_CTX_DATA_NONE, /* no data: names, types and shapes alone */
    GGUF_CTX_DATA_MAP,  /* pointers into the file's mapping, which are
                         * read-only. A tensor whose byte order or alignment
                         * does not suit this machine gets a copy */
    GGUF_CTX_DATA_COPY  /* a copy in the context for every tensor */
};

struct gguf_ctx_file_params {
    size_t struct_size;

    /* Source of all memory of the context. NULL: malloc. It must outlive the
     * context. */
    const struct gguf_allocator *allocator;

    /* Place of the tensors' data. */
    enum gguf_ctx_data data;

    /* Additional bytes in the arena, for objects that the program creates in
     * the context later. */
    size_t extra_size;
};
#define GGUF_CTX_FILE_PARAMS_INIT GGUF_INIT(struct gguf_ctx_file_params)

/* Create a context that has one leaf for each tensor of a file.
 *
 * out      Receives the context. NULL after a failure.
 * file     An open file (file.h). With GGUF_CTX_DATA_MAP it must outlive the
 *          context; otherwise it may be closed.
 * params   How to make the context. NULL: the defaults.
 *
 * Leaves stand in the order of the file. Each has the tensor's name (cut to 63
 * bytes, as gguf_tensor_set_name() does), type and shape. Tensors that the
 * program creates later have data in the context only with
 * GGUF_CTX_DATA_COPY; gguf_ctx_set_no_alloc() changes that.
 *
 *     struct gguf_ctx_file_params p = GGUF_CTX_FILE_PARAMS_INIT;
 *     p.data = GGUF_CTX_DATA_MAP;
 *     st = gguf_ctx_create_from_file(&ctx, file, &p, &err);
 *     struct gguf_tensor *w = gguf_ctx_find_tensor(ctx, "output.weight");
 *
 * Free *out with gguf_ctx_destroy().
 *
 * GGUF_OK             *out has all tensors of the file.
 * GGUF_E_UNSUPPORTED  A tensor has more than 4 dimensions or a type of unknown
 *                     size. Also: GGUF_CTX_DATA_MAP for a file that is read
 *                     through a reader, which has no mapping.
 * GGUF_E_INVALID      file is NULL, or params are invalid.
 * GGUF_E_NOMEM        Not enough memory for the arena.
 * GGUF_E_IO           Data to copy could not be read.
 * GGUF_E_TRUNCATED    The file has become shorter since it was opened.
 *
 * A copy through a reader also fails with the reader's own statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_create_from_file(struct gguf_ctx **out, const struct gguf_file *file,
                          const struct gguf_ctx_file_params *params,
                          struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
