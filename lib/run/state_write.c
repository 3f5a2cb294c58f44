/* SPDX-License-Identifier: MIT */
/* state_write.c - write the state of a sequence, or of all, to memory or a
 * file */
#include "config.h"
#include "run/state.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/outfile_int.h"
#include "dtype/dtype_int.h"
#include "dtype/byte_order.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

const char gg_state_magic[9] = "GGUFSESS";

/* ---- tables and parts ---- */

struct gg_cells *gg_state_table(struct gguf_session *s, unsigned number)
{
    if (number == GG_STATE_ENCODED)
        return gg_model_encodes_first(s->model) ? &s->encoded : NULL;
    return s->table[number];
}

unsigned gg_state_table_number(const struct gguf_session *s,
                               const struct gg_memory *m, size_t i)
{
    const struct gg_cells *table = gg_memory_tensor_table(m, i);
    return !table                 ? GG_STATE_BY_SEQ
           : table == &s->encoded ? GG_STATE_ENCODED
           : table == s->table[1] ? GG_STATE_WINDOWS
                                  : 0;
}

uint32_t gg_state_n_parts(const struct gguf_session *s,
                          const struct gg_cells *table, uint32_t seq)
{
    return seq != GGUF_ALL_SEQUENCES ? 1 : table ? table->n_streams : s->n_seq;
}

bool gg_state_is_taken(const struct gg_cells *table, uint32_t seq,
                       uint32_t part, uint32_t cell)
{
    return seq == GGUF_ALL_SEQUENCES ? table->stream[part].pos[cell] >= 0
                                     : gg_cells_is_owner(table, seq, cell);
}

/* ---- writing ---- */

/* Destination of bytes: memory, a file, or none to count them. */
struct writer {
    struct gguf_session *s;
    uint32_t seq;
    uint64_t n; /* bytes written */
    uint64_t size;
    uint8_t *to;
    struct gg_outfile *file;
    XXH3_state_t *sum;
    uint8_t *rows; /* scratch for some rows */
    size_t rows_size;
};

static enum gguf_status put_bytes(struct writer *w, const void *p, uint64_t n,
                                  struct gguf_error *err)
{
    w->n += n;
    if (w->sum)
        (void)XXH3_64bits_update(w->sum, p, (size_t)n);
    if (w->to)
        memcpy(w->to + w->n - n, p, (size_t)n);
    return w->file ? gg_outfile_write(w->file, p, n, err) : GGUF_OK;
}

static enum gguf_status put32(struct writer *w, uint32_t v,
                              struct gguf_error *err)
{
    uint8_t le[4];
    gg_bytes_store32le(le, v);
    return put_bytes(w, le, sizeof le, err);
}

static enum gguf_status put64(struct writer *w, uint64_t v,
                              struct gguf_error *err)
{
    uint8_t le[8];
    gg_bytes_store64le(le, v);
    return put_bytes(w, le, sizeof le, err);
}

static enum gguf_status put_cell(struct writer *w, const struct gg_cells *c,
                                 uint32_t part, uint32_t cell,
                                 uint32_t n_words, struct gguf_error *err)
{
    const struct gg_run_stream *st =
        &c->stream[gg_state_stream(c, w->seq, part)];
    GG_TRY(put32(w, cell, err));
    GG_TRY(put32(w, (uint32_t)st->pos[cell], err));
    for (uint32_t k = 0; k < n_words; k++)
        GG_TRY(put64(w, st->set[(size_t)cell * n_words + k], err));
    return GGUF_OK;
}

static enum gguf_status put_table(struct writer *w, unsigned number,
                                  struct gguf_error *err)
{
    const struct gg_cells *c = gg_state_table(w->s, number);
    const bool all = w->seq == GGUF_ALL_SEQUENCES;
    const uint32_t n_parts = gg_state_n_parts(w->s, c, w->seq),
                   n_words =
                       gg_state_n_words(w->seq, c->n_words > 0, c->n_seq);
    GG_TRY(put32(w, number, err));
    GG_TRY(put32(w, n_parts, err));
    for (uint32_t q = all ? 0 : w->seq; q < (all ? c->n_seq : w->seq + 1); q++)
        GG_TRY(put32(w, (uint32_t)c->seq[q].lost, err));
    for (uint32_t p = 0; p < n_parts; p++) {
        const uint32_t end = c->stream[gg_state_stream(c, w->seq, p)].end;
        uint32_t n = 0;
        for (uint32_t k = 0; k < end; k++)
            n += gg_state_is_taken(c, w->seq, p, k);
        GG_TRY(put32(w, n, err));
        for (uint32_t k = 0; k < end; k++)
            if (gg_state_is_taken(c, w->seq, p, k))
                GG_TRY(put_cell(w, c, p, k, n_words, err));
    }
    return GGUF_OK;
}

/* Write n rows of a tensor, some at a time, in the byte order of files. */
static enum gguf_status put_rows(struct writer *w, struct gguf_tensor *t,
                                 uint64_t row_size, uint64_t row, uint64_t n,
                                 struct gguf_error *err)
{
    const int type = gg_dtype_index(t->dtype);
    const uint64_t most = w->rows_size / row_size;
    if (!w->rows) {
        w->n += n * row_size;
        return GGUF_OK;
    }
    for (uint64_t i = 0, k; i < n; i += k) {
        k = GG_MIN(n - i, most);
        const size_t size = (size_t)(k * row_size);
        GG_TRY(gguf_tensor_get(t, w->rows, (row + i) * row_size, size, err));
        if (gg_byte_order_differs(type, false))
            gg_byte_order_swap(type, row_size, 0, w->rows, size);
        GG_TRY(put_bytes(w, w->rows, size, err));
    }
    return GGUF_OK;
}

static enum gguf_status put_part(struct writer *w, struct gguf_tensor *t,
                                 const struct gg_cells *c, uint64_t row_size,
                                 uint32_t part, struct gguf_error *err)
{
    const uint32_t stream = gg_state_stream(c, w->seq, part),
                   end = c->stream[stream].end;
    for (uint32_t k = 0, n; k < end; k += n + 1) {
        for (n = 0; k + n < end && gg_state_is_taken(c, w->seq, part, k + n);)
            n++;
        GG_TRY(put_rows(w, t, row_size, (uint64_t)stream * c->n_cells + k, n,
                        err));
    }
    return GGUF_OK;
}

static enum gguf_status put_tensor(struct writer *w, const struct gg_memory *m,
                                   size_t i, struct gguf_error *err)
{
    const struct gg_cells *c = gg_memory_tensor_table(m, i);
    const uint64_t row_size = gg_memory_row_size(m, i);
    const uint32_t n = gg_state_n_parts(w->s, c, w->seq);
    GG_TRY(put32(w, (uint32_t)m->kind->id, err));
    GG_TRY(put32(w, (uint32_t)i, err));
    GG_TRY(put32(w, m->t[i]->dtype, err));
    GG_TRY(put32(w, gg_state_table_number(w->s, m, i), err));
    GG_TRY(put64(w, row_size, err));
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t q = w->seq == GGUF_ALL_SEQUENCES ? p : w->seq;
        if (c)
            GG_TRY(put_part(w, m->t[i], c, row_size, p, err));
        else if (w->s->cells.seq[q].n_used)
            GG_TRY(put_rows(w, m->t[i], row_size, q, 1, err));
    }
    return GGUF_OK;
}

/* Call put_tensor() for each tensor. w NULL: only count them. */
static enum gguf_status visit_tensors(struct gguf_session *s, struct writer *w,
                                      uint32_t *n, struct gguf_error *err)
{
    *n = 0;
    for (unsigned k = 0; k < GG_N_MEMORIES; k++) {
        const struct gg_memory *m = &s->memory[k];
        for (size_t i = 0; m->kind && i < gg_memory_n_tensors(m); i++) {
            if (!m->t[i])
                continue;
            ++*n;
            if (w)
                GG_TRY(put_tensor(w, m, i, err));
        }
    }
    return GGUF_OK;
}

static uint32_t flags_of(const struct gguf_session *s, uint32_t seq)
{
    const bool all = seq == GGUF_ALL_SEQUENCES;
    return (all ? GG_STATE_ALL : 0) |
           (all && s->shared ? GG_STATE_SHARED : 0) |
           (gg_model_is_long_context(s->model, s->n_ctx) ? GG_STATE_LONG : 0);
}

static enum gguf_status write_all(struct writer *w, struct gguf_error *err)
{
    struct gguf_session *s = w->s;
    uint32_t n_tensors, n_tables = 0;
    GG_TRY(visit_tensors(s, NULL, &n_tensors, err));
    for (unsigned b = 0; b < GG_STATE_TABLES; b++)
        n_tables += gg_state_table(s, b) != NULL;
    GG_TRY(put_bytes(w, gg_state_magic, 8, err));
    GG_TRY(put32(w, GG_STATE_VERSION, err));
    GG_TRY(put32(w, flags_of(s, w->seq), err));
    GG_TRY(put64(w, w->size, err));
    GG_TRY(put64(w, gg_model_digest(s->model), err));
    GG_TRY(put32(w, w->seq == GGUF_ALL_SEQUENCES ? s->n_seq : 1, err));
    GG_TRY(put32(w, n_tables, err));
    GG_TRY(put32(w, n_tensors, err));
    for (unsigned b = 0; b < GG_STATE_TABLES; b++)
        if (gg_state_table(s, b))
            GG_TRY(put_table(w, b, err));
    GG_TRY(visit_tensors(s, w, &n_tensors, err));
    return put64(w, w->sum ? XXH3_64bits_digest(w->sum) : 0, err);
}

/* ---- destinations ---- */

static enum gguf_status check_sequence(const struct gguf_session *s,
                                       uint32_t seq, struct gguf_error *err)
{
    if (seq >= s->n_seq && seq != GGUF_ALL_SEQUENCES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 ": the session has %" PRIu32,
                            seq, s->n_seq);
    if (gg_model_needs_whole_sequence(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "models of architecture '%s' keep nothing "
                            "between batches",
                            s->model->arch->name);
    return GGUF_OK;
}

enum gguf_status gguf_session_state_size(struct gguf_session *s, uint32_t seq,
                                         uint64_t *size,
                                         struct gguf_error *err)
{
    struct writer w = { .s = s, .seq = seq };
    *size = 0;
    GG_TRY(check_sequence(s, seq, err));
    GG_TRY(write_all(&w, err));
    *size = w.n;
    return GGUF_OK;
}

/* Bytes of the longest row, or some kilobytes for shorter ones. */
static size_t rows_buffer_size(const struct gguf_session *s)
{
    uint64_t most = 1 << 16;
    for (unsigned k = 0; k < GG_N_MEMORIES; k++) {
        const struct gg_memory *m = &s->memory[k];
        for (size_t i = 0; m->kind && i < gg_memory_n_tensors(m); i++)
            if (m->t[i])
                most = GG_MAX(most, gg_memory_row_size(m, i));
    }
    return (size_t)most;
}

/* Write the state, whose size is known. */
static enum gguf_status write_to(struct writer *w, struct gguf_error *err)
{
    const struct gguf_allocator *a = w->s->allocator;
    enum gguf_status st = GGUF_OK;
    w->rows_size = rows_buffer_size(w->s);
    w->rows = gg_mem_alloc(a, w->rows_size);
    w->sum = XXH3_createState();
    if (!w->rows || !w->sum || XXH3_64bits_reset(w->sum) != XXH_OK)
        st = gg_error_set_nomem(err, w->rows_size);
    if (st == GGUF_OK)
        st = write_all(w, err);
    (void)XXH3_freeState(w->sum);
    gg_mem_free(a, w->rows);
    return st;
}

enum gguf_status gguf_session_state_get(struct gguf_session *s, uint32_t seq,
                                        void *state, uint64_t size,
                                        struct gguf_error *err)
{
    struct writer w = { .s = s, .seq = seq, .to = state };
    GG_TRY(gguf_session_state_size(s, seq, &w.size, err));
    if (size != w.size)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the state has %" PRIu64 " bytes, there is room "
                            "for %" PRIu64,
                            w.size, size);
    return write_to(&w, err);
}

enum gguf_status gguf_session_state_set(struct gguf_session *s, uint32_t seq,
                                        const void *state, uint64_t size,
                                        struct gguf_error *err)
{
    GG_TRY(check_sequence(s, seq, err));
    return gg_state_read(s, seq, state, size, err);
}

enum gguf_status gguf_session_save_state(struct gguf_session *s, uint32_t seq,
                                         const char *path, bool force,
                                         struct gguf_error *err)
{
    struct gg_outfile file;
    struct writer w = { .s = s, .seq = seq, .file = &file };
    GG_TRY(gguf_session_state_size(s, seq, &w.size, err));
    GG_TRY(gg_outfile_open(&file, s->allocator, path,
                           force ? GG_OUTFILE_FORCE : 0, err));
    enum gguf_status st = gg_outfile_reserve(&file, w.size, false, err);
    if (st == GGUF_OK)
        st = write_to(&w, err);
    if (st == GGUF_OK)
        return gg_outfile_commit(&file, err);
    gg_outfile_abort(&file);
    return st;
}

enum gguf_status gguf_session_load_state(struct gguf_session *s, uint32_t seq,
                                         const char *path,
                                         struct gguf_error *err)
{
    struct gg_mapfile map;
    GG_TRY(check_sequence(s, seq, err));
    GG_TRY(gg_mapfile_open(&map, path, 0, 0, err));
    const enum gguf_status st = gg_state_read(s, seq, map.data, map.size, err);
    gg_mapfile_close(&map);
    return st;
}
