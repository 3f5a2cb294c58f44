/* SPDX-License-Identifier: MIT */
/* baseline_write.c - a sink that writes a base's logits to a file */
#include "config.h"
#include "eval/baseline_int.h"
#include "eval/compact.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/outfile_int.h"
#include "gguf/outfile.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* Rows that are encoded together: memory for the file is that of a slice. */
enum { SLICE = 32 };

/* Bytes before the tokens and after the rows in the compact form, and the
 * least divergence for which its error holds. */
enum { HEAD = 32, FOOT = 24 };
#define LEAST_KLD 1e-5

struct gguf_baseline_writer {
    const struct gguf_allocator *allocator;
    struct gguf_pool *pool;
    struct gguf_outfile *file;
    struct gguf_sink sink;
    const struct form *form;
    uint8_t *bytes;           /* [SLICE], records */
    size_t record;            /* most bytes of a record */
    uint64_t n_rows, n_chunk; /* rows of the scan, and of a chunk */
    uint64_t n_left;          /* rows that are missing */
    bool begun;

    /* members of the compact form */
    XXH3_state_t *hash;         /* hash of all bytes so far */
    struct gg_compact_row *row; /* [SLICE] */
    size_t room;                /* most bytes of a row */
    /* sums over rows: tail; weight times tail; n (w / 128)^2 */
    double tail, spread, fine;
};

/* Functions that write a form. */
struct form {
    enum gguf_status (*begin)(struct gguf_baseline_writer *w,
                              const struct gguf_scan_info *info,
                              struct gguf_error *err);
    /* Encode row i of a slice, number row of the text, which stands before the
     * token next. */
    void (*encode)(const struct gguf_baseline_writer *w, uint32_t i,
                   uint64_t row, const float *logits, uint32_t n_vocab,
                   gguf_token next);
    /* Bytes of row i; 0: it has a NaN or +infinity. */
    size_t (*size)(struct gguf_baseline_writer *w, uint32_t i);
    enum gguf_status (*end)(struct gguf_baseline_writer *w,
                            struct gguf_error *err);
};
static const struct form plain, compact;

static void store_float(uint8_t *p, float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    gg_bytes_store32le(p, u);
}

void gg_baseline_encode(const float *row, uint32_t n_vocab, uint8_t *record)
{
    float max = row[0], low = row[0];
    double sum = 0;
    for (uint32_t i = 1; i < n_vocab; i++) {
        max = row[i] > max ? row[i] : max;
        low = row[i] < low ? row[i] : low;
    }
    low = low > max - 16 ? low : max - 16;
    for (uint32_t i = 0; i < n_vocab; i++)
        sum += (double)expf(row[i] - max);
    const float norm = (float)log(sum);
    const float scale = (max - low) / 65535.0f;
    const float steps = scale > 0 ? 1 / scale : 0;
    uint8_t *q = record + GG_BASELINE_RECORD_HEAD;
    store_float(record, scale);
    store_float(record + 4, low - max - norm);
    for (uint32_t i = 0; i < n_vocab; i++) {
        const float v = row[i] > low ? rintf((row[i] - low) * steps) : 0;
        gg_bytes_store16le(q + 2 * (size_t)i,
                           v < 65535.0f ? (uint16_t)v : 65535);
    }
    if (n_vocab % 2)
        gg_bytes_store16le(q + 2 * (size_t)n_vocab, 0);
}

static enum gguf_status write_bytes(struct gguf_baseline_writer *w,
                                    const void *p, size_t n,
                                    struct gguf_error *err)
{
    if (w->hash)
        (void)XXH3_64bits_update(w->hash, p, n);
    return gguf_outfile_write(w->file, p, n, err);
}

static enum gguf_status put_tokens(struct gguf_baseline_writer *w,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    const gguf_token *t = info->text + info->begin * info->params->n_ctx;
    const size_t n = (info->end - info->begin) * info->params->n_ctx;
    uint8_t id[4];
    for (size_t i = 0; i < n; i++) {
        gg_bytes_store32le(id, (uint32_t)t[i]);
        GG_TRY(write_bytes(w, id, sizeof id, err));
    }
    return GGUF_OK;
}

/* ---- llama.cpp's form ---- */

static enum gguf_status begin_plain(struct gguf_baseline_writer *w,
                                    const struct gguf_scan_info *info,
                                    struct gguf_error *err)
{
    uint8_t head[GG_BASELINE_HEAD] = GG_BASELINE_MAGIC;
    w->record = (size_t)gg_baseline_record_size(info->n_vocab);
    gg_bytes_store32le(head + 8, info->params->n_ctx);
    gg_bytes_store32le(head + 12, info->n_vocab);
    gg_bytes_store32le(head + 16, (uint32_t)(info->end - info->begin));
    /* reserve the bytes now, so that a full disk is noticed at once */
    const uint64_t n_tokens =
        (uint64_t)(info->end - info->begin) * info->params->n_ctx;
    GG_TRY(gg_outfile_check_room(
        w->file, sizeof head + 4 * n_tokens + w->record * w->n_rows, err));
    GG_TRY(write_bytes(w, head, sizeof head, err));
    return put_tokens(w, info, err);
}

static void encode_plain(const struct gguf_baseline_writer *w, uint32_t i,
                         uint64_t row, const float *logits, uint32_t n_vocab,
                         gguf_token next)
{
    (void)row;
    (void)next;
    gg_baseline_encode(logits, n_vocab, w->bytes + i * w->record);
}

static bool is_number(const uint8_t *p)
{
    const uint32_t u = gg_bytes_load32le(p);
    return (u >> 23 & 255) != 255;
}

static size_t size_plain(struct gguf_baseline_writer *w, uint32_t i)
{
    const uint8_t *r = w->bytes + i * w->record;
    return is_number(r) && is_number(r + 4) ? w->record : 0;
}

static enum gguf_status end_plain(struct gguf_baseline_writer *w,
                                  struct gguf_error *err)
{
    (void)w;
    (void)err;
    return GGUF_OK;
}

static const struct form plain = { begin_plain, encode_plain, size_plain,
                                   end_plain };

/* ---- the compact form ---- */

static enum gguf_status begin_compact(struct gguf_baseline_writer *w,
                                      const struct gguf_scan_info *info,
                                      struct gguf_error *err)
{
    const struct gguf_model *m = gguf_session_model(info->session);
    const uint64_t n_chunks = info->end - info->begin;
    const uint64_t tokens = 4 * n_chunks * info->params->n_ctx;
    uint8_t head[HEAD] = "ggufbase";
    /* a tenth of llama.cpp's form, with the tokens */
    const uint64_t all = gg_baseline_record_size(info->n_vocab) * w->n_rows;
    const uint64_t other = tokens * 9 + 10 * (HEAD + FOOT);
    w->room = all > other ? (size_t)((all - other) / 10 / w->n_rows) : 0;
    w->record = gg_compact_max_size(info->n_vocab, w->room);
    w->row = gg_mem_alloc_zero(w->allocator, SLICE, sizeof *w->row);
    w->hash = XXH3_createState();
    if (!w->row || !w->hash)
        return gg_error_set_nomem(err, SLICE * sizeof *w->row);
    (void)XXH3_64bits_reset(w->hash);
    gg_bytes_store32le(head + 8, GG_BASELINE_COMPACT_VERSION);
    gg_bytes_store32le(head + 12, info->params->n_ctx);
    gg_bytes_store32le(head + 16, info->n_vocab);
    gg_bytes_store32le(head + 20, (uint32_t)n_chunks);
    gg_bytes_store64le(head + 24,
                       gg_compact_digest_vocab(gguf_model_vocab(m)));
    GG_TRY(write_bytes(w, head, sizeof head, err));
    return put_tokens(w, info, err);
}

static void encode_compact(const struct gguf_baseline_writer *w, uint32_t i,
                           uint64_t row, const float *logits, uint32_t n_vocab,
                           gguf_token next)
{
    gg_compact_encode(logits, n_vocab, next, w->room, row,
                      w->bytes + i * w->record, &w->row[i]);
}

static size_t size_compact(struct gguf_baseline_writer *w, uint32_t i)
{
    const struct gg_compact_row *r = &w->row[i];
    const double weight = exp(-(double)r->weight / (double)GG_COMPACT_STEPS);
    const double step = weight / (double)GG_COMPACT_FINE;
    w->tail += r->tail;
    w->spread += r->tail * weight;
    w->fine += r->n * step * step;
    return r->size;
}

static void store_double(uint8_t *p, double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    gg_bytes_store64le(p, u);
}

static enum gguf_status end_compact(struct gguf_baseline_writer *w,
                                    struct gguf_error *err)
{
    const double n = (double)w->n_rows;
    uint8_t foot[16], sum[8];
    store_double(foot, fmin(w->tail / n, 1));
    store_double(foot + 8,
                 sqrt(3 * w->spread + w->fine / (6 * LEAST_KLD)) / n);
    GG_TRY(write_bytes(w, foot, sizeof foot, err));
    gg_bytes_store64le(sum, XXH3_64bits_digest(w->hash));
    return gguf_outfile_write(w->file, sum, sizeof sum, err);
}

static const struct form compact = { begin_compact, encode_compact,
                                     size_compact, end_compact };

/* ---- the sink ---- */

static enum gguf_status begin_scan(void *user,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    struct gguf_baseline_writer *w = user;
    if (w->begun)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the file of logits has had its scan: open a writer for each");
    w->begun = true;
    GG_TRY(gg_baseline_check_cut(info, err));
    if (info->first != info->params->n_ctx / 2 || info->params->n_ctx < 4)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a file of logits has the second half of each "
                            "chunk, the scan begins at %" PRIu32,
                            info->first);
    if (info->end - info->begin > INT32_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%zu chunks are too many for a file of logits",
                            info->end - info->begin);
    w->n_chunk = info->n_rows;
    w->n_rows = w->n_left = (uint64_t)(info->end - info->begin) * info->n_rows;
    GG_TRY(w->form->begin(w, info, err));
    w->bytes = gg_mem_alloc_zero(w->allocator, SLICE, w->record);
    return w->bytes ? GGUF_OK : gg_error_set_nomem(err, SLICE * w->record);
}

struct job {
    const struct gguf_baseline_writer *w;
    const float *logits;
    const gguf_token *next;
    uint64_t row; /* number of the first row in the text */
    uint32_t n_vocab, n;
};

static void encode_rows(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    const uint32_t end = j->n * (ith + 1) / nth;
    for (uint32_t i = j->n * ith / nth; i < end; i++)
        j->w->form->encode(j->w, i, j->row + i,
                           j->logits + (size_t)i * j->n_vocab, j->n_vocab,
                           j->next[i]);
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct gguf_baseline_writer *w = user;
    for (uint32_t i = 0; i < rows->n;) {
        struct job j = { .w = w,
                         .logits = rows->logits + (size_t)i * rows->n_vocab,
                         .next = rows->token + rows->first + i + 1,
                         .row = rows->chunk * w->n_chunk + rows->first + i,
                         .n_vocab = rows->n_vocab,
                         .n = GG_MIN((uint32_t)SLICE, rows->n - i) };
        gguf_pool_run(w->pool, (struct gguf_pool_callback){ encode_rows, &j });
        for (uint32_t k = 0; k < j.n; k++, i++) {
            const size_t size = w->form->size(w, k);
            if (!size)
                return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                    "chunk %zu: logits after token %" PRIu32
                                    " are NaN or infinite",
                                    rows->chunk + 1, rows->first + i);
            GG_TRY(write_bytes(w, w->bytes + k * w->record, size, err));
        }
        w->n_left -= j.n;
    }
    return GGUF_OK;
}

/* ---- the writer ---- */

enum gguf_status
gguf_baseline_writer_open(struct gguf_baseline_writer **out, const char *path,
                          const struct gguf_baseline_writer_params *params,
                          struct gguf_error *err)
{
    static const struct form *const forms[] = {
        [GGUF_BASELINE_LLAMA] = &plain, [GGUF_BASELINE_COMPACT] = &compact
    };
    struct gguf_baseline_writer_params p = GGUF_BASELINE_WRITER_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_baseline_writer_params",
                          err));
    if ((unsigned)p.form >= GG_LEN(forms))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "form %d of a file of logits, must be 0 to %d",
                            (int)p.form, (int)GG_LEN(forms) - 1);
    struct gguf_baseline_writer *w =
        gg_mem_alloc_zero(p.allocator, 1, sizeof *w);
    if (!w)
        return gg_error_set_nomem(err, sizeof *w);
    w->allocator = p.allocator;
    w->pool = p.pool;
    w->sink = (struct gguf_sink)GGUF_SINK_INIT;
    w->sink.user = w;
    w->sink.begin = begin_scan;
    w->sink.rows = add_rows;
    w->form = forms[p.form];
    enum gguf_status st =
        gguf_outfile_open(&w->file, path, p.force, p.allocator, err);
    if (st == GGUF_OK)
        *out = w;
    else
        gguf_baseline_writer_close(w);
    return st;
}

const struct gguf_sink *
gguf_baseline_writer_sink(struct gguf_baseline_writer *w)
{
    return &w->sink;
}

enum gguf_status gguf_baseline_writer_commit(struct gguf_baseline_writer *w,
                                             struct gguf_error *err)
{
    if (!w->begun || w->n_left)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the file of logits lacks rows: its scan has not ended");
    GG_TRY(w->form->end(w, err));
    return gguf_outfile_commit(w->file, err);
}

void gguf_baseline_writer_close(struct gguf_baseline_writer *w)
{
    if (!w)
        return;
    gguf_outfile_close(w->file);
    gg_mem_free(w->allocator, w->bytes);
    gg_mem_free(w->allocator, w->row);
    (void)XXH3_freeState(w->hash);
    gg_mem_free(w->allocator, w);
}
