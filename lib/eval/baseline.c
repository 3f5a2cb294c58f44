/* SPDX-License-Identifier: MIT */
/* baseline.c - read files of a base's logits */
#include "config.h"
#include "eval/baseline_int.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/foreign_format.h"
#include "eval/compact.h"
#include "eval/origin.h"

#include <math.h>
#include <string.h>

/* Largest n_ctx and n_vocab that are accepted. */
enum { MOST = 1 << 28 };

static const struct gg_baseline_form plain;

static const struct gg_baseline_form *find_form(const void *magic)
{
    const struct gg_baseline_form *const all[] = { &plain,
                                                   &gg_baseline_compact };
    for (size_t i = 0; i < GG_LEN(all); i++)
        if (!memcmp(magic, all[i]->magic, 8))
            return all[i];
    return NULL;
}

bool gguf_path_is_baseline(const char *path)
{
    char magic[8];
    uint64_t n = 0;
    const int fd = gg_os_open(path, GG_OS_READ);
    if (fd < 0)
        return false;
    (void)gg_os_read_at(fd, magic, sizeof magic, 0, &n);
    gg_os_close(fd);
    return n == sizeof magic && find_form(magic) != NULL;
}

/* ---- opening ---- */

static float load_float(const uint8_t *p)
{
    const uint32_t u = gg_bytes_load32le(p);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

enum gguf_status gg_baseline_number(const struct gguf_baseline *b, uint64_t at,
                                    const char *name, uint32_t least,
                                    uint32_t *out, struct gguf_error *err)
{
    *out = gg_bytes_load32le(b->map.data + at);
    if (*out >= least && *out <= MOST)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, at,
                        "%s is %" PRIi32 ", must be %" PRIu32 " to %d", name,
                        (int32_t)*out, least, (int)MOST);
}

static enum gguf_status read_head(struct gguf_baseline *b,
                                  struct gguf_error *err)
{
    uint64_t rows, size;
    GG_TRY(gg_baseline_number(b, 8, "the context", 4, &b->n_ctx, err));
    GG_TRY(gg_baseline_number(b, 12, "the vocabulary", 1, &b->n_vocab, err));
    GG_TRY(gg_baseline_number(b, 16, "the number of chunks", 1, &b->n_chunks,
                              err));
    const uint64_t record = gg_baseline_record_size(b->n_vocab);
    b->first =
        GG_BASELINE_HEAD + UINT64_C(4) * b->n_ctx * (uint64_t)b->n_chunks;
    if (gg_ckd_mul(&rows, (uint64_t)gg_baseline_n_rows(b),
                   (uint64_t)b->n_chunks) ||
        gg_ckd_mul(&size, rows, record) || gg_ckd_add(&size, size, b->first))
        size = UINT64_MAX;
    if (size != b->map.size)
        return gg_error_set(
            err, GGUF_E_TRUNCATED, b->map.size,
            "the file has %" PRIu64 " bytes; %" PRIu32 " chunks of %" PRIu32
            " tokens and a vocabulary of %" PRIu32 " take %" PRIu64,
            b->map.size, b->n_chunks, b->n_ctx, b->n_vocab, size);
    return GGUF_OK;
}

static enum gguf_status choose_form(struct gguf_baseline *b,
                                    struct gguf_error *err)
{
    const char *is =
        gg_foreign_format_name(b->map.data, b->map.size, GG_FOREIGN_BUT_NONE);
    b->form = b->map.size < GG_BASELINE_HEAD ? NULL : find_form(b->map.data);
    return b->form ? GGUF_OK
                   : gg_error_set(err, GGUF_E_FORMAT, 0,
                                  "not a file of a base's logits: it does not "
                                  "begin with '%s' or '%s' and some numbers"
                                  "%s%s",
                                  plain.magic, gg_baseline_compact.magic,
                                  is ? "; it looks like " : "", is ? is : "");
}

static enum gguf_status read_tokens(struct gguf_baseline *b,
                                    struct gguf_error *err)
{
    const uint64_t n = (uint64_t)b->n_ctx * b->n_chunks;
    b->token = gg_mem_alloc_zero(b->allocator, n, sizeof *b->token);
    if (!b->token)
        return gg_error_set_nomem(err, (size_t)n * sizeof *b->token);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = b->first - 4 * (n - i);
        const uint32_t id = gg_bytes_load32le(b->map.data + at);
        if (id >= b->n_vocab)
            return gg_error_set(err, GGUF_E_INVALID, at,
                                "token %" PRIu64 " is %" PRIi32
                                ", the vocabulary has %" PRIu32,
                                i, (int32_t)id, b->n_vocab);
        b->token[i] = (gguf_token)id;
    }
    return GGUF_OK;
}

enum gguf_status gguf_baseline_open(struct gguf_baseline **out,
                                    const char *path,
                                    const struct gguf_allocator *allocator,
                                    struct gguf_error *err)
{
    *out = NULL;
    struct gguf_baseline *b = gg_mem_alloc_zero(allocator, 1, sizeof *b);
    if (!b)
        return gg_error_set_nomem(err, sizeof *b);
    b->allocator = allocator;
    enum gguf_status st = gg_mapfile_open(&b->map, path, 0, 0, err);
    if (st == GGUF_OK)
        st = choose_form(b, err);
    if (st == GGUF_OK)
        st = b->form->read_head(b, err);
    if (st == GGUF_OK)
        st = read_tokens(b, err);
    if (st == GGUF_OK)
        *out = b;
    else
        gguf_baseline_close(b);
    return st;
}

void gguf_baseline_close(struct gguf_baseline *b)
{
    if (!b)
        return;
    gg_mapfile_close(&b->map);
    gg_mem_free(b->allocator, b->token);
    gg_mem_free(b->allocator, b->row);
    gg_mem_free(b->allocator, b);
}

uint32_t gguf_baseline_n_ctx(const struct gguf_baseline *b)
{
    return b->n_ctx;
}

uint32_t gguf_baseline_n_vocab(const struct gguf_baseline *b)
{
    return b->n_vocab;
}

size_t gguf_baseline_n_chunks(const struct gguf_baseline *b)
{
    return b->n_chunks;
}

const char *gguf_baseline_form(const struct gguf_baseline *b)
{
    return b->form->name;
}

double gguf_baseline_tail_mass(const struct gguf_baseline *b)
{
    return b->tail;
}

double gguf_baseline_kld_error(const struct gguf_baseline *b)
{
    return b->error;
}

const gguf_token *gguf_baseline_tokens(const struct gguf_baseline *b)
{
    return b->token;
}

void gguf_baseline_digest(const struct gguf_baseline *b, char out[33])
{
    gg_origin_digest_bytes(out, b->map.data, b->map.size);
}

/* ---- comparing with a scan ---- */

static enum gguf_status refuse_differing(const char *what, uint64_t file,
                                         uint64_t scan, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "the base's logits come from another run: %s %" PRIu64
                        " there, %" PRIu64 " here",
                        what, file, scan);
}

enum gguf_status gg_baseline_check_cut(const struct gguf_scan_info *info,
                                       struct gguf_error *err)
{
    if (info->params->cut == GGUF_SCAN_CHUNKS && info->n_texts == 1)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_INVALID, GGUF_NO_OFFSET,
        "a file of logits has one text in chunks side by side; the scan has "
        "%zu texts and a stride of %" PRIu32,
        info->n_texts, info->params->stride);
}

enum gguf_status gg_baseline_check(const struct gguf_baseline *b,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    GG_TRY(gg_baseline_check_cut(info, err));
    if (b->n_vocab != info->n_vocab)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the base's logits come from another run: a vocabulary of %" PRIu32
            " there, %" PRIu32 " here; if one is padded, make both models of "
            "the same folder or file",
            b->n_vocab, info->n_vocab);
    if (b->form == &gg_baseline_compact) {
        const struct gguf_model *m = gguf_session_model(info->session);
        if (b->vocab != gg_compact_digest_vocab(gguf_model_vocab(m)))
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "the base's logits have another vocabulary: the texts of "
                "tokens differ");
    }
    if (b->n_ctx != info->params->n_ctx)
        return refuse_differing("chunks of", b->n_ctx, info->params->n_ctx,
                                err);
    if (info->first != b->n_ctx / 2)
        return refuse_differing("the first row is", b->n_ctx / 2, info->first,
                                err);
    if (info->end > b->n_chunks)
        return refuse_differing("chunks:", b->n_chunks, info->end, err);
    for (size_t i = info->begin * info->params->n_ctx;
         i < info->end * info->params->n_ctx; i++)
        if (b->token[i] != info->text[i])
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "the base's logits come from another text or tokenizer: token "
                "%zu of chunk %zu is %" PRIi32 " there, %" PRIi32 " here",
                i % info->params->n_ctx + 1, i / info->params->n_ctx + 1,
                b->token[i], info->text[i]);
    return GGUF_OK;
}

/* ---- rows ---- */

static const uint8_t *record_at(const struct gguf_baseline *b, uint64_t row)
{
    return b->map.data + b->first + row * gg_baseline_record_size(b->n_vocab);
}

static double no_norm(const void *user, size_t i)
{
    (void)user;
    (void)i;
    return 0;
}

/* In single precision, as in llama.cpp, for the same digits. */
static double log_p(const uint8_t *record, size_t token)
{
    const uint8_t *q = record + GG_BASELINE_RECORD_HEAD + 2 * token;
    const float step = load_float(record) * (float)gg_bytes_load16le(q);
    return (double)(step + load_float(record + 4));
}

static void read_block(const void *user, size_t i, double norm, size_t first,
                       size_t n, double *p)
{
    const struct gg_baseline_rows *rows = user;
    const uint8_t *record = record_at(rows->b, rows->first + i);
    (void)norm;
    for (size_t k = 0; k < n; k++)
        p[k] = log_p(record, first + k);
}

static double plain_nll(const struct gguf_baseline *b, uint64_t row,
                        gguf_token token)
{
    return -log_p(record_at(b, row), (size_t)token);
}

static const struct gg_baseline_form plain = {
    .magic = GG_BASELINE_MAGIC,
    .name = "llama.cpp",
    .read_head = read_head,
    .base = { .norm = no_norm, .block = read_block, .floor = -16 },
    .nll = plain_nll,
};

void gg_baseline_rows(const struct gguf_baseline *b, size_t chunk,
                      uint32_t first, struct gg_baseline_rows *rows,
                      struct gg_divergence_base *base)
{
    rows->b = b;
    rows->first =
        chunk * (uint64_t)gg_baseline_n_rows(b) + first - b->n_ctx / 2;
    *base = b->form->base;
    base->user = rows;
}

double gg_baseline_nll(const struct gg_baseline_rows *rows, size_t i,
                       gguf_token token)
{
    return rows->b->form->nll(rows->b, rows->first + i, token);
}
