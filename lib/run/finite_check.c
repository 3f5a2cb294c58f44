/* SPDX-License-Identifier: MIT */
/* finite_check.c - find the first result that is not finite */
#include "config.h"
#include "run/finite_check.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "gguf/op.h"
#include "run/session_int.h"
#include "sched/sched_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 8 }; /* depth to which operands are searched */

/* ---- names of a node ---- */

/* N of "blk.N." in a name; -1: none. */
static int32_t layer_in_name(const char *name)
{
    const char *p = strstr(name, "blk.");
    if (!p || p[4] < '0' || p[4] > '9')
        return -1;
    return (int32_t)strtol(p + 4, NULL, 10);
}

static bool is_view(const struct gguf_tensor *t)
{
    return t->op && gguf_op_is_view(t->op);
}

int32_t gg_finite_check_layer(const struct gguf_graph *graph, size_t i)
{
    while (i < graph->n_nodes &&
           (is_view(graph->nodes[i]) || !graph->nodes[i]->name[0]))
        i++;
    return i < graph->n_nodes ? layer_in_name(graph->nodes[i]->name) : -1;
}

/* Name of an operand, or of its own operand. */
static const char *source_name(const struct gguf_tensor *t)
{
    for (int i = 0; t && i < FAR; i++, t = t->src[0])
        if (t->name[0] && !is_view(t))
            return t->name;
    return NULL;
}

/* Write the names of a node's operands: 'a', 'b'. */
static void name_sources(char *out, size_t size, const struct gguf_tensor *t)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        const char *name = source_name(t->src[i]);
        if (!name || at + strlen(name) + 5 > size)
            continue;
        at += (size_t)snprintf(out + at, size - at, "%s'%s'", at ? ", " : "",
                               name);
    }
}

/* ---- elements that are not finite ---- */

static bool is_nonfinite(float x)
{
    return (gg_bytes_f32_bits(x) & 0x7f800000u) == 0x7f800000u;
}

/* Index of the first element that is not finite; n: none. */
static size_t find_nonfinite(const float *x, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const size_t end = GG_MIN(n, i + 256);
        uint32_t bad = 0;
        for (size_t k = i; k < end; k++)
            bad |= is_nonfinite(x[k]);
        if (bad)
            break;
        i = end;
    }
    while (i < n && !is_nonfinite(x[i]))
        i++;
    return i;
}

/* Does an operation copy minus infinity from its operands? */
static bool keeps_infinity(const struct gguf_tensor *t)
{
    static const uint32_t ops[] = { GGUF_OP_ADD,    GGUF_OP_DUP,
                                    GGUF_OP_CONCAT, GGUF_OP_GET_ROWS,
                                    GGUF_OP_REPEAT, GGUF_OP_SET_ROWS };
    for (size_t i = 0; i < GG_LEN(ops); i++)
        if (t->op == ops[i])
            return true;
    return is_view(t);
}

/* Does an operation write minus infinity as a mask? */
static bool makes_infinity(const struct gguf_tensor *t)
{
    float least;
    memcpy(&least, t->op_params, sizeof least);
    return t->op == GGUF_OP_DIAG_MASK_INF || t->op == GGUF_OP_INDEX_TOP ||
           t->op == GGUF_OP_INDEX_BLOCKS || t->op == GGUF_OP_INDEX_POOLED ||
           (t->op == GGUF_OP_CLAMP && least < 0 && is_nonfinite(least));
}

/* Can t have minus infinity from a mask? */
static bool is_masked(const struct gguf_tensor *t, int depth)
{
    if (!t || depth > FAR || t->dtype != GGUF_DTYPE_F32)
        return false;
    if (!t->op)
        return t->flags & GGUF_TENSOR_INPUT;
    if (makes_infinity(t))
        return true;
    for (int i = 0; keeps_infinity(t) && i < GGUF_TENSOR_SRC; i++)
        if (is_masked(t->src[i], depth + 1))
            return true;
    return false;
}

/* Index of the first element that is not finite, except minus infinity from a
 * mask. */
static size_t find_unmasked_nonfinite(const struct gguf_tensor *t,
                                      const float *x, size_t n)
{
    size_t i = find_nonfinite(x, n);
    if (i == n || x[i] != x[i] || x[i] > 0 || !is_masked(t, 0))
        return i;
    while (i < n && (x[i] == x[i] && (x[i] < 0 || !is_nonfinite(x[i]))))
        i++;
    return i;
}

/* ---- the token of an element ---- */

/* Do some of a node's dimensions, from the last on, make n rows? */
static bool has_rows(const struct gguf_tensor *t, int64_t n)
{
    int64_t rows = 1;
    for (int d = GGUF_TENSOR_DIMS - 1; d >= 0 && rows < n; d--)
        rows *= t->ne[d];
    return rows == n;
}

/* Find the token to which element i of a node of a pass belongs, if it can be
 * known. */
static void find_token(struct gguf_session_fault *f,
                       const struct gguf_session *s,
                       const struct gguf_tensor *t, size_t i)
{
    const struct gg_ubatch *u = &s->ubatch;
    const int64_t n = u->shape.n_tok * u->shape.n_seq;
    const int64_t n_el = gguf_tensor_n_elements(t);
    int64_t k;
    if (has_rows(t, n))
        k = (int64_t)i / (n_el / n);
    else if (u->shape.n_out && has_rows(t, u->shape.n_out))
        k = u->out_row[(int64_t)i / (n_el / u->shape.n_out)];
    else
        return;
    f->seq = u->seq[k];
    f->pos = u->pos[k];
}

static enum gguf_status record_fault(struct gg_finite_check *l,
                                     const struct gguf_tensor *t, size_t i,
                                     float value)
{
    const struct gguf_session *s = l->s;
    struct gguf_session_fault *f = &l->fault;
    size_t k = 0;
    while (k < l->graph->n_nodes && l->graph->nodes[k] != t)
        k++;
    *f = (struct gguf_session_fault){ .op = gguf_op_name(t->op),
                                      .layer =
                                          gg_finite_check_layer(l->graph, k),
                                      .value = value,
                                      .seq = -1,
                                      .pos = -1,
                                      .row = -1 };
    memcpy(f->tensor, t->name, sizeof f->tensor);
    name_sources(f->sources, sizeof f->sources, t);
    if (l->graph == s->head_graph)
        f->row = (int64_t)i / t->ne[0];
    else if (l->graph == s->pass.graph)
        find_token(f, s, t, i);
    char what[GGUF_SESSION_FAULT_TEXT];
    return gg_error_set(&l->err, GGUF_E_NONFINITE, GGUF_NO_OFFSET, "%s",
                        gguf_session_fault_text(f, what, sizeof what));
}

const char *gguf_session_fault_text(const struct gguf_session_fault *f,
                                    char *out, size_t size)
{
    char layer[32] = "", name[GGUF_TENSOR_NAME + 8] = "", token[64] = "";
    if (f->layer >= 0)
        snprintf(layer, sizeof layer, "layer %" PRId32 ": ", f->layer);
    if (f->tensor[0])
        snprintf(name, sizeof name, " '%s'", f->tensor);
    if (f->seq >= 0)
        snprintf(token, sizeof token,
                 " at position %" PRId32 " of sequence %" PRId32, f->pos,
                 f->seq);
    else if (f->row >= 0)
        snprintf(token, sizeof token, " in row %" PRId64 " of logits", f->row);
    snprintf(out, size, "%s%s%s of %s is %s%s", layer, f->op, name,
             f->sources[0] ? f->sources : "its sources",
             f->value != f->value ? "not a number"
             : f->value > 0       ? "infinite"
                                  : "minus infinity",
             token);
    return out;
}

/* ---- bytes in host memory ---- */

enum gguf_status gg_finite_check_host_bytes(const struct gguf_tensor *t,
                                            const struct gguf_allocator *a,
                                            void **copy, size_t *size,
                                            const void **out,
                                            struct gguf_error *err)
{
    const size_t bytes = (size_t)gguf_tensor_size(t);
    *out = t->data;
    if (!t->buffer || gguf_buft_is_host(gguf_buffer_buft(t->buffer)))
        return GGUF_OK;
    if (*size < bytes) {
        gg_mem_free(a, *copy);
        *size = 0;
        *copy = gg_mem_alloc(a, bytes);
        if (!*copy)
            return gg_error_set_nomem(err, bytes);
        *size = bytes;
    }
    *out = *copy;
    return gguf_tensor_get(t, *copy, 0, bytes, err);
}

/* Is t a result of its own in f32? A tensor in the memory of another one has
 * been checked before, or is an input. */
static bool is_checked(const struct gguf_tensor *t)
{
    return t->dtype == GGUF_DTYPE_F32 && !t->view_src && !is_view(t) &&
           gguf_tensor_is_contiguous(t) && !gguf_tensor_is_empty(t);
}

static enum gguf_status check_result(struct gg_finite_check *l,
                                     const struct gguf_tensor *t)
{
    const size_t n = (size_t)gguf_tensor_n_elements(t);
    const void *x;
    GG_TRY(gg_finite_check_host_bytes(t, l->s->allocator, &l->copy,
                                      &l->copy_size, &x, &l->err));
    const size_t bad = find_unmasked_nonfinite(t, x, n);
    return bad < n ? record_fault(l, t, bad, ((const float *)x)[bad])
                   : GGUF_OK;
}

static enum gg_sched_answer ask_node(void *user, const struct gguf_tensor *t)
{
    struct gg_finite_check *l = user;
    l->answer = l->watch.ask ? l->watch.ask(l->watch.user, t) : GG_SCHED_SKIP;
    if (l->answer == GG_SCHED_SKIP && is_checked(t))
        return GG_SCHED_WANT;
    return l->answer;
}

static bool see_node(void *user, struct gguf_tensor *t)
{
    struct gg_finite_check *l = user;
    if (l->answer != GG_SCHED_END && is_checked(t) &&
        check_result(l, t) != GGUF_OK)
        return true;
    return l->answer != GG_SCHED_SKIP && l->watch.see(l->watch.user, t);
}

enum gguf_status gg_finite_check_compute(struct gguf_session *s,
                                         struct gguf_sched *sched,
                                         const struct gguf_graph *graph,
                                         gg_finite_check_compute_fn *compute,
                                         void *user, struct gguf_error *err)
{
    struct gg_finite_check *l = &s->finite_check;
    l->s = s;
    l->graph = graph;
    l->watch = sched->watch;
    l->fault.op = NULL;
    gguf_error_clear(&l->err);
    sched->watch = (struct gg_sched_watch){ ask_node, see_node, l };
    const enum gguf_status st = compute(s, user, err);
    sched->watch = l->watch;
    if (l->err.status == GGUF_OK)
        return st;
    if (err)
        *err = l->err;
    return l->err.status;
}

void gg_finite_check_fini(struct gg_finite_check *l,
                          const struct gguf_allocator *a)
{
    gg_mem_free(a, l->copy);
}

void gguf_session_set_finite_check(struct gguf_session *s, bool check)
{
    s->finite_check.on = check;
}

const struct gguf_session_fault *
gguf_session_fault(const struct gguf_session *s)
{
    return s->finite_check.fault.op ? &s->finite_check.fault : NULL;
}
