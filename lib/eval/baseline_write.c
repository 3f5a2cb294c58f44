/* baseline_write.c - the sink that writes a base's logits */
#include "config.h"
#include "eval/baseline.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "gguf/outfile.h"

#include <math.h>
#include <string.h>

/* Rows that are encoded together: what is in memory of the file. */
enum { SLICE = 32 };

struct gguf_baseline_writer {
    const struct gguf_allocator *allocator;
    struct gguf_pool *pool;
    struct gguf_outfile *file;
    struct gguf_sink sink;
    uint8_t *bytes;  /* SLICE records */
    size_t record;   /* bytes of one */
    uint64_t n_left; /* rows that are still to come */
    bool begun;
};

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

/* ---- the sink ---- */

static enum gguf_status write_head(struct gguf_baseline_writer *w,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    const size_t n_chunks = info->end - info->begin;
    const gguf_token *t = info->text + info->begin * info->n_ctx;
    uint8_t head[GG_BASELINE_HEAD] = GG_BASELINE_MAGIC;
    uint8_t id[4];
    gg_bytes_store32le(head + 8, info->n_ctx);
    gg_bytes_store32le(head + 12, info->n_vocab);
    gg_bytes_store32le(head + 16, (uint32_t)n_chunks);
    GG_TRY(gguf_outfile_write(w->file, head, sizeof head, err));
    for (size_t i = 0; i < n_chunks * info->n_ctx; i++) {
        gg_bytes_store32le(id, (uint32_t)t[i]);
        GG_TRY(gguf_outfile_write(w->file, id, sizeof id, err));
    }
    return GGUF_OK;
}

static enum gguf_status begin(void *user, const struct gguf_scan_info *info,
                              struct gguf_error *err)
{
    struct gguf_baseline_writer *w = user;
    if (w->begun)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the file of logits has a scan already");
    w->begun = true;
    GG_TRY(gg_baseline_check_cut(info, err));
    if (info->first != info->n_ctx / 2 || info->n_ctx < 4)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a file of logits has the second half of each "
                            "chunk, the scan begins at %" PRIu32,
                            info->first);
    if (info->end - info->begin > INT32_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%zu chunks are too many for a file of logits",
                            info->end - info->begin);
    w->record = (size_t)gg_baseline_record_size(info->n_vocab);
    w->n_left = (uint64_t)(info->end - info->begin) * info->n_rows;
    w->bytes = gg_mem_alloc_zero(w->allocator, SLICE, w->record);
    if (!w->bytes)
        return gg_error_set_nomem(err, SLICE * w->record);
    return write_head(w, info, err);
}

struct job {
    const struct gguf_baseline_writer *w;
    const float *logits;
    uint32_t n_vocab, n;
};

static void run(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    const uint32_t end = j->n * (ith + 1) / nth;
    for (uint32_t i = j->n * ith / nth; i < end; i++)
        gg_baseline_encode(j->logits + (size_t)i * j->n_vocab, j->n_vocab,
                           j->w->bytes + i * j->w->record);
}

static bool is_number(const uint8_t *p)
{
    const uint32_t u = gg_bytes_load32le(p);
    return (u >> 23 & 255) != 255;
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct gguf_baseline_writer *w = user;
    for (uint32_t i = 0; i < rows->n;) {
        struct job j = { .w = w,
                         .logits = rows->logits + (size_t)i * rows->n_vocab,
                         .n_vocab = rows->n_vocab,
                         .n = GG_MIN((uint32_t)SLICE, rows->n - i) };
        gguf_pool_run(w->pool, run, &j);
        for (uint32_t k = 0; k < j.n; k++, i++) {
            const uint8_t *r = w->bytes + k * w->record;
            if (!is_number(r) || !is_number(r + 4))
                return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                    "chunk %zu: logits after token %" PRIu32
                                    " are not numbers",
                                    rows->chunk + 1, rows->first + i);
        }
        GG_TRY(gguf_outfile_write(w->file, w->bytes, j.n * w->record, err));
        w->n_left -= j.n;
    }
    return GGUF_OK;
}

/* ---- the object ---- */

enum gguf_status gguf_baseline_writer_create(
    struct gguf_baseline_writer **out, const char *path, int force,
    struct gguf_pool *pool, const struct gguf_allocator *allocator,
    struct gguf_error *err)
{
    *out = NULL;
    struct gguf_baseline_writer *w =
        gg_mem_alloc_zero(allocator, 1, sizeof *w);
    if (!w)
        return gg_error_set_nomem(err, sizeof *w);
    w->allocator = allocator;
    w->pool = pool;
    w->sink = (struct gguf_sink)GGUF_SINK_INIT;
    w->sink.user = w;
    w->sink.begin = begin;
    w->sink.rows = add_rows;
    enum gguf_status st =
        gguf_outfile_open(&w->file, path, force, allocator, err);
    if (st == GGUF_OK)
        *out = w;
    else
        gguf_baseline_writer_destroy(w);
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
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the file of logits is not complete");
    return gguf_outfile_commit(w->file, err);
}

void gguf_baseline_writer_destroy(struct gguf_baseline_writer *w)
{
    if (!w)
        return;
    gguf_outfile_destroy(w->file);
    gg_mem_free(w->allocator, w->bytes);
    gg_mem_free(w->allocator, w);
}
