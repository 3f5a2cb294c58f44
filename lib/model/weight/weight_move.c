/* SPDX-License-Identifier: MIT */
/* weight_move.c - move weights into other memory */
#include "config.h"
#include "model/weight/weight_move.h"

#include "backend/backend_int.h"
#include "base/mem.h"
#include "file/file_int.h"
#include "gguf/load.h"

#include <string.h>

/* Is this the buffer around the mapping of weight i's file, or a device's
 * buffer around a part of that? */
static bool is_mapping(const struct gguf_model *m, size_t i,
                       const struct gguf_buffer *b)
{
    return b == m->buffer[gg_source_tensor(&m->src, i).file_no] ||
           (b->foreign && b != m->copy_buffer);
}

bool gg_weight_is_mapped(const struct gguf_model *m, size_t i)
{
    return m->of[i] && is_mapping(m, i, m->of[i]->buffer);
}

enum gguf_status gg_weights_check_in_memory(const struct gguf_model *m,
                                            struct gguf_error *err)
{
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++)
        if (gg_weight_is_mapped(m, i))
            GG_TRY(gg_file_require_memory(gg_source_tensor(&m->src, i).file,
                                          err));
    return GGUF_OK;
}

/* Boundary that a device's part of a mapping begins at, in bytes. */
enum { PAGE = 4096 };

struct mover {
    struct gguf_model *m;
    struct gg_weight_move *move;
    size_t n;
    struct gguf_buffer **added; /* one for each type, n_added of them */
    size_t n_added;
};

/* Undo moves. */
static void put_back(const struct mover *v)
{
    for (size_t k = 0; k < v->n; k++) {
        struct gguf_tensor *t = v->m->of[v->move[k].i];
        t->data = v->move[k].data;
        t->buffer = v->move[k].buffer;
    }
    for (size_t k = 0; k < v->n_added; k++)
        gguf_buffer_destroy(v->added[k]);
}

/* ---- devices that use the mapping ---- */

/* Are weights k and of moved from the mapping of the same file to the same
 * device? */
static bool shares_target(const struct mover *v, size_t k, size_t of)
{
    const struct gg_weight_move *a = &v->move[k], *b = &v->move[of];
    return a->maps == b->maps && a->buffer == b->buffer &&
           a->buffer ==
               v->m->buffer[gg_source_tensor(&v->m->src, a->i).file_no];
}

/* Part of the mapping that holds the weights which move with weight of, from
 * the start of a page. */
struct part {
    uintptr_t begin, end;
};

static struct part find_part(const struct mover *v, size_t of)
{
    const uintptr_t map = (uintptr_t)gguf_buffer_base(v->move[of].buffer);
    struct part p = { UINTPTR_MAX, 0 };
    for (size_t k = of; k < v->n; k++) {
        const uintptr_t at = (uintptr_t)v->move[k].data;
        if (!shares_target(v, k, of))
            continue;
        p.begin = GG_MIN(p.begin, at);
        p.end = GG_MAX(p.end,
                       at + (size_t)gguf_tensor_size(v->m->of[v->move[k].i]));
    }
    p.begin = GG_MAX(p.begin & ~(uintptr_t)(PAGE - 1), map);
    return p;
}

/* Buffer of the device around that part of the mapping; NULL: the device cannot
 * use it. */
static struct gguf_buffer *wrap_part(const struct mover *v, size_t of,
                                     struct part p)
{
    const struct gg_weight_move *move = &v->move[of];
    struct gguf_buffer *b;
    if (gguf_device_create_buffer_from_host(move->maps, &b, (void *)p.begin,
                                            p.end - p.begin, v->m->allocator,
                                            NULL) != GGUF_OK)
        return NULL;
    if (gguf_device_supports_buft(move->maps, gguf_buffer_buft(b)))
        return b;
    gguf_buffer_destroy(b);
    return NULL;
}

/* All weights that go with weight of, the first of them. */
static enum gguf_status map_kind(struct mover *v, size_t of,
                                 struct gguf_error *err)
{
    const struct part p = find_part(v, of);
    struct gguf_buffer *b = wrap_part(v, of, p);
    if (!b)
        return GGUF_OK;
    v->added[v->n_added++] = b;
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    for (size_t k = of; k < v->n; k++) {
        struct gguf_tensor *t = v->m->of[v->move[k].i];
        if (!shares_target(v, k, of))
            continue;
        t->data = NULL;
        t->buffer = NULL;
        GG_TRY(gguf_buffer_place_tensor(
            b, t, (uintptr_t)v->move[k].data - p.begin, err));
        v->move[k].mapped = true;
    }
    return GGUF_OK;
}

/* Give devices that can use the mapping of files buffers round it. */
static enum gguf_status map_all(struct mover *v, struct gguf_error *err)
{
    for (size_t k = 0; k < v->n; k++) {
        const struct gg_weight_move *move = &v->move[k];
        size_t first = 0;
        while (!shares_target(v, first, k) && first < k)
            first++;
        if (first == k && shares_target(v, k, k) && move->maps &&
            gguf_device_caps(move->maps) & GGUF_DEVICE_CAP_HOST_PTR)
            GG_TRY(map_kind(v, k, err));
    }
    return GGUF_OK;
}

/* ---- copies ---- */

/* Allocate memory for all weights that move with the k-th, which is the first
 * of them. */
static enum gguf_status place_kind(struct mover *v, size_t k,
                                   struct gguf_error *err)
{
    const struct gguf_buft *to = v->move[k].to;
    struct gguf_buffer *b;
    for (size_t i = k; i < v->n; i++)
        if (v->move[i].to == to && !v->move[i].mapped) {
            v->m->of[v->move[i].i]->data = NULL;
            v->m->of[v->move[i].i]->buffer = NULL;
        }
    GG_TRY(gguf_ctx_alloc_tensors(v->m->ctx, to, v->m->allocator, &b, err));
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    v->added[v->n_added++] = b;
    return GGUF_OK;
}

static enum gguf_status place_all(struct mover *v, struct gguf_error *err)
{
    for (size_t k = 0; k < v->n; k++) {
        size_t first = 0;
        while (v->move[first].mapped || v->move[first].to != v->move[k].to)
            if (++first > k)
                break;
        if (first == k)
            GG_TRY(place_kind(v, k, err));
    }
    return GGUF_OK;
}

/* A piece of weight number item that lies on a device, by way of the host. */
static enum gguf_status copy_far(const struct mover *v,
                                 const struct gg_weight_move *move,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err)
{
    struct gguf_tensor *t = v->m->of[move->i], from = *t;
    from.data = move->data;
    from.buffer = move->buffer;
    void *piece = gg_mem_alloc(v->m->allocator, (size_t)size);
    if (!piece)
        return gg_error_set_nomem(err, (size_t)size);
    enum gguf_status st = gguf_tensor_get(&from, piece, off, size, err);
    if (st == GGUF_OK)
        st = gguf_tensor_set(t, piece, off, size, err);
    gg_mem_free(v->m->allocator, piece);
    return st;
}

/* A piece of weight number item. */
static enum gguf_status copy_piece(void *user, unsigned ith, size_t item,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    const struct mover *v = user;
    const struct gg_weight_move *move = &v->move[item];
    const struct gg_file_shard_tensor from =
        gg_source_tensor(&v->m->src, move->i);
    struct gguf_tensor *t = v->m->of[move->i];
    (void)ith;
    if (!gguf_buft_is_host(gguf_buffer_buft(move->buffer)))
        return copy_far(v, move, off, size, err);
    if (!gguf_buft_is_host(move->to))
        return gguf_tensor_set(t, (const uint8_t *)move->data + off, off, size,
                               err);
    if (move->buffer == v->m->buffer[from.file_no])
        return gg_source_fail(
            &v->m->src, from.file_no,
            gg_file_read_tensor(from.file, from.info->index, off, size,
                                (uint8_t *)t->data + off, err),
            err);
    memcpy((uint8_t *)t->data + off, (const uint8_t *)move->data + off,
           (size_t)size);
    return GGUF_OK;
}

static enum gguf_status copy_all(struct mover *v,
                                 const struct gguf_model_job *job,
                                 struct gguf_error *err)
{
    struct gguf_model_job own = *job;
    struct gg_parallel_pass_item *item =
        gg_mem_alloc_zero(v->m->allocator, v->n + 1, sizeof *item);
    if (!item)
        return gg_error_set_nomem(err, (v->n + 1) * sizeof *item);
    for (size_t k = 0; k < v->n; k++) {
        item[k] = (struct gg_parallel_pass_item){
            v->move[k].mapped ? 0 : gguf_tensor_size(v->m->of[v->move[k].i]), 1
        };
        if (!gguf_buft_is_host(v->move[k].to) ||
            !gguf_buft_is_host(gguf_buffer_buft(v->move[k].buffer)))
            own.pool = NULL; /* a buffer is set by one thread at a time */
    }
    const struct gg_parallel_pass work = { v->m->allocator, &own,
                                           (uint64_t)4 << 20, copy_piece, v };
    enum gguf_status st = gg_parallel_pass_run(&work, item, v->n, err);
    gg_mem_free(v->m->allocator, item);
    return st;
}

static bool is_used(const struct gguf_model *m, const struct gguf_buffer *b)
{
    for (size_t k = 0; k < b->n_parts; k++)
        if (is_used(m, b->parts[k]))
            return true;
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++)
        if (m->of[i] && m->of[i]->buffer == b)
            return true;
    return false;
}

/* Free the memory that no weight lies in any more. */
static void free_unused(struct gguf_model *m)
{
    size_t n = 0;
    for (size_t k = 0; k < m->n_moved; k++)
        if (is_used(m, m->moved[k]))
            m->moved[n++] = m->moved[k];
        else
            gguf_buffer_destroy(m->moved[k]);
    m->n_moved = n;
}

/* The model owns the new memory, and needs some of the mapping no longer. */
static void adopt_memory(struct mover *v)
{
    struct gguf_model *m = v->m;
    for (size_t k = 0; k < v->n_added; k++)
        m->moved[m->n_moved++] = v->added[k];
    for (size_t k = 0; k < v->n; k++) {
        const struct gg_file_shard_tensor from =
            gg_source_tensor(&m->src, v->move[k].i);
        if (!v->move[k].mapped &&
            is_mapping(m, v->move[k].i, v->move[k].buffer))
            m->info.copied_size += from.info->size;
    }
    free_unused(m);
    gguf_model_release_pages(m);
}

enum gguf_status gg_weights_move(struct gguf_model *m,
                                 struct gg_weight_move *move, size_t n,
                                 const struct gguf_model_job *job,
                                 struct gguf_error *err)
{
    struct mover v = { .m = m, .move = move, .n = n };
    if (m->locked)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "locked weights cannot be moved");
    for (size_t k = 0; k < n; k++) {
        move[k].data = m->of[move[k].i]->data;
        move[k].buffer = m->of[move[k].i]->buffer;
    }
    v.added = gg_mem_alloc_zero(m->allocator, n + 1, sizeof(void *));
    void *grown =
        gg_mem_alloc_zero(m->allocator, m->n_moved + n + 1, sizeof(void *));
    enum gguf_status st = v.added && grown
                              ? map_all(&v, err)
                              : gg_error_set_nomem(err, n * sizeof(void *));
    if (st == GGUF_OK)
        st = place_all(&v, err);
    if (st == GGUF_OK)
        st = copy_all(&v, job, err);
    if (st == GGUF_OK) {
        if (m->n_moved)
            memcpy(grown, m->moved, m->n_moved * sizeof(void *));
        gg_mem_free(m->allocator, m->moved);
        m->moved = grown;
        adopt_memory(&v);
    } else {
        put_back(&v);
        gg_mem_free(m->allocator, grown);
    }
    gg_mem_free(m->allocator, v.added);
    return st;
}
