/* SPDX-License-Identifier: MIT */
/* backward_part.c - graph of a part of a pass, extended backwards
 *
 * The nodes of the part are copied: the session's own share memory with nodes
 * that come after them. Weights, inputs and memory of the session are used in
 * place. Results that earlier parts carry become inputs. */
#include "config.h"
#include "run/backward_int.h"

#include "base/mem.h"

typedef struct gguf_tensor tensor;

struct gguf_tensor *gg_backward_next_carried(const struct gg_backward *b,
                                             uint32_t i, size_t *k)
{
    return gg_graph_cuts_next_carried(&b->cuts, b->s->pass.graph,
                                      b->part[i].layer, k);
}

/* ---- memory ---- */

static enum gguf_status reserve_lists(struct gg_backward *b, size_t n,
                                      struct gguf_error *err)
{
    tensor ***list[] = { &b->copy, &b->result, &b->seed, &b->wanted,
                         &b->gradient };
    if (n <= b->list_cap)
        return GGUF_OK;
    b->list_cap = 0;
    for (size_t i = 0; i < GG_LEN(list); i++) {
        gg_mem_free(b->allocator, *list[i]);
        *list[i] = gg_mem_alloc_zero(b->allocator, n, sizeof(tensor *));
        if (!*list[i])
            return gg_error_set_nomem(err, n * sizeof(tensor *));
    }
    b->list_cap = n;
    return GGUF_OK;
}

/* Begin an empty graph for n forward nodes. */
static enum gguf_status begin_graph(struct gg_backward *b, size_t n,
                                    struct gguf_error *err)
{
    const size_t most = n * GGUF_GRADIENTS_MAX_TENSORS;
    const size_t size =
        most * gguf_tensor_overhead() + gguf_graph_overhead(most);
    GG_TRY(reserve_lists(b, b->s->pass.graph->n_nodes + n + 1, err));
    if (size > b->ctx_size) {
        struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
        gguf_ctx_destroy(b->ctx);
        b->ctx = NULL;
        b->ctx_size = 0;
        p.mem_size = size;
        p.no_alloc = true;
        p.allocator = b->allocator;
        GG_TRY(gguf_ctx_create(&b->ctx, &p, err));
        b->ctx_size = size;
    }
    gguf_ctx_reset(b->ctx);
    memset(b->copy, 0, b->list_cap * sizeof(tensor *));
    b->n_results = b->n_wanted = b->n_inputs = 0;
    b->graph = gguf_graph_create(b->ctx, most);
    return gguf_ctx_status(b->ctx, err);
}

/* ---- copies of nodes ---- */

static tensor *copy_node(struct gg_backward *b, const tensor *t);

/* Copy of source t, or t itself if it is a leaf. NULL: t is not known. */
static tensor *find_source(struct gg_backward *b, tensor *t)
{
    const struct gguf_graph *g = b->s->pass.graph;
    const uint32_t k = t ? gg_graph_find_number(g, t) : GG_GRAPH_NONE;
    if (k == GG_GRAPH_NONE || k & 1)
        return t; /* a leaf, or a root that is in no graph */
    if (!b->copy[k / 2] && gg_op_row(t->op)->flags & GG_OP_VIEW)
        b->copy[k / 2] = copy_node(b, t); /* a view of a carried result */
    return b->copy[k / 2];
}

/* Copy a node, with the copies of its sources. NULL: a source is not known. */
static tensor *copy_node(struct gg_backward *b, const tensor *t)
{
    struct gg_tensor_storage proto = *gg_tensor_storage(t);
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        proto.src[i] = find_source(b, t->src[i]);
        if (t->src[i] && !proto.src[i])
            return NULL;
    }
    proto.t.src = proto.src;
    proto.t.op_params = proto.op_params;
    proto.t.name = proto.name;
    proto.t.view_src = find_source(b, t->view_src);
    if (t->view_src && !proto.t.view_src)
        return NULL;
    proto.t.flags = 0;
    proto.t.buffer = NULL;
    proto.t.data = proto.t.extra = NULL;
    return gg_ctx_add_tensor(b->ctx, &proto.t);
}

static tensor *add_input(struct gg_backward *b, const tensor *t)
{
    tensor *x = gguf_tensor_create_like(b->ctx, t);
    x = gguf_tensor_add_flags(x, GGUF_TENSOR_INPUT);
    gguf_graph_add(b->graph, x);
    return gguf_tensor_set_name(x, t->name);
}

/* ---- results and wanted tensors ---- */

/* Does a node multiply a matrix, or some rows of it, or look up rows? */
static bool reads_weight(const tensor *t)
{
    if (t->op != GGUF_OP_MATMUL && t->op != GGUF_OP_MATMUL_ID &&
        t->op != GGUF_OP_GET_ROWS)
        return false;
    const tensor *w = t->src[0], *root = w->view_src ? w->view_src : w;
    if (!root->buffer ||
        gguf_buffer_usage(root->buffer) != GGUF_USAGE_WEIGHTS ||
        t->dtype != GGUF_DTYPE_F32)
        return false;
    return w == root
               ? t->op == GGUF_OP_MATMUL_ID || w->ne[2] * w->ne[3] == 1
               : t->op == GGUF_OP_MATMUL && w->ne[2] * w->ne[3] == 1 &&
                     root->ne[2] * root->ne[3] == 1 &&
                     w->ne[0] == root->ne[0] && w->nb[1] == root->nb[1] &&
                     w->view_off % (uint64_t)w->nb[1] == 0;
}

/* Vector of weights that is the second source of a node; NULL: none. */
static tensor *find_vector(const tensor *t)
{
    if (t->op != GGUF_OP_ADD && t->op != GGUF_OP_MUL)
        return NULL;
    tensor *w = t->src[1];
    return w->op == GGUF_OP_NONE && w->dtype == GGUF_DTYPE_F32 &&
                   !w->view_src && gguf_tensor_n_rows(w) == 1 && w->buffer &&
                   gguf_buffer_usage(w->buffer) == GGUF_USAGE_WEIGHTS
               ? w
               : NULL;
}

static bool is_wanted(const struct gg_backward *b, const tensor *t)
{
    for (size_t i = b->n_inputs; i < b->n_wanted; i++)
        if (b->wanted[i] == t)
            return true;
    return false;
}

/* Keep the value of a source until the end of the computation. */
static void keep_source(tensor *t)
{
    tensor *root = t && t->view_src ? t->view_src : t;
    if (root && root->op != GGUF_OP_NONE)
        (void)gguf_tensor_add_flags(root, GGUF_TENSOR_OUTPUT);
}

/* Want the result of a node that reads a weight. */
static void want_read(struct gg_backward *b, tensor *t)
{
    b->wanted[b->n_wanted++] = t;
    if (!b->has_inputs)
        return;
    keep_source(t->src[1]);
    keep_source(t->src[2]);
}

/* Want the results of products, and vectors. */
static void want_products(struct gg_backward *b)
{
    for (size_t i = 0; i < b->graph->n_nodes; i++) {
        tensor *w = b->has_vectors ? find_vector(b->graph->nodes[i]) : NULL;
        if (reads_weight(b->graph->nodes[i]))
            want_read(b, b->graph->nodes[i]);
        if (w && !is_wanted(b, w))
            b->wanted[b->n_wanted++] = w;
    }
}

/* A result of the part, and the input that is its gradient. */
static void add_result(struct gg_backward *b, tensor *t)
{
    b->result[b->n_results] = gguf_tensor_add_flags(t, GGUF_TENSOR_OUTPUT);
    b->seed[b->n_results++] = gguf_tensor_add_flags(
        gguf_tensor_create_like(b->ctx, t), GGUF_TENSOR_INPUT);
}

static enum gguf_status extend_graph(struct gg_backward *b,
                                     struct gguf_error *err)
{
    struct gguf_gradients_params p = GGUF_GRADIENTS_PARAMS_INIT;
    GG_TRY(gguf_ctx_status(b->ctx, err));
    p.n_results = b->n_results;
    p.results = b->result;
    p.seeds = b->seed;
    p.n_wanted = b->n_wanted;
    p.wanted = b->wanted;
    b->n_forward = b->graph->n_nodes;
    return gguf_gradients_build(b->ctx, b->graph, &p, b->gradient, err);
}

/* ---- graphs ---- */

static enum gguf_status copy_part(struct gg_backward *b,
                                  const struct gg_backward_part *part,
                                  struct gguf_error *err)
{
    const struct gguf_graph *g = b->s->pass.graph;
    for (size_t i = part->begin; i < part->end; i++) {
        char name[160];
        if (!b->copy[i])
            b->copy[i] = copy_node(b, g->nodes[i]);
        GG_TRY(gguf_ctx_status(b->ctx, err));
        if (!b->copy[i])
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                "gradients: %s reads a result that is not carried",
                gguf_tensor_format(g->nodes[i], name, sizeof name));
        gguf_graph_add(b->graph, b->copy[i]);
    }
    return gguf_ctx_status(b->ctx, err);
}

enum gguf_status gg_backward_build_part(struct gg_backward *b, uint32_t i,
                                        struct gguf_error *err)
{
    const struct gguf_graph *g = b->s->pass.graph;
    const struct gg_backward_part *part = &b->part[i];
    tensor *t;
    GG_TRY(begin_graph(b, part->end - part->begin + 64, err));
    for (size_t k = 0; i && (t = gg_backward_next_carried(b, i - 1, &k));) {
        tensor *x = add_input(b, t);
        b->copy[gg_graph_find_number(g, t) / 2] = x;
        b->wanted[b->n_wanted++] = x;
    }
    b->n_inputs = b->n_wanted;
    GG_TRY(copy_part(b, part, err));
    for (size_t k = 0; (t = gg_backward_next_carried(b, i, &k));) {
        if (t->dtype != GGUF_DTYPE_F32)
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "gradients: layers pass on a tensor that is "
                                "not f32");
        add_result(b, b->copy[gg_graph_find_number(g, t) / 2]);
    }
    want_products(b);
    return extend_graph(b, err);
}

enum gguf_status gg_backward_build_head(struct gg_backward *b, size_t n,
                                        struct gguf_error *err)
{
    const struct gguf_session *s = b->s;
    GG_TRY(begin_graph(b,
                       GG_BUILD_HEAD_NODES +
                           gg_model_n_adapter_nodes(s->model, &s->added) + 8,
                       err));
    tensor *x = gguf_tensor_add_flags(
        gguf_tensor_create_2d(b->ctx, GGUF_DTYPE_F32, s->model->hp.n_embd,
                              (int64_t)n),
        GGUF_TENSOR_INPUT);
    gguf_graph_add(b->graph, x);
    b->wanted[b->n_wanted++] = x;
    b->n_inputs = 1;
    tensor *logits = gg_build_logits(s->model, &s->added, b->ctx, x);
    gguf_graph_add(b->graph, logits);
    GG_TRY(gguf_ctx_status(b->ctx, err));
    add_result(b, logits);
    want_products(b);
    return extend_graph(b, err);
}
