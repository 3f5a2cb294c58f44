/* SPDX-License-Identifier: MIT */
/* job_journal.c - records in the journal of a quantization */
#include "config.h"
#include "quant/resume/job_journal.h"
#include "base/bytes.h"

#include <string.h>

/* Record of a tensor: u32 TENSOR, u32 number, digest of its bytes (16), u64
 * count of non-finite weights, u32 enum gguf_nonfinite, u32 flags, f64 rms,
 * max, rms_in, weighted, snr and seconds of the loss, u64 index of the first
 * non-finite weight, the note, u64 XXH3. The last record of a tensor counts. */
enum {
    TENSOR = GG_JOURNAL_OWN,
    NOTE = 96, /* offset of the note */
    RECORD = GG_QUANT_RESUME_RECORD,
    /* flags */
    MEASURED = 1,
    REPLACED = 2
};

static const struct gg_journal_kind kind = {
    "GGUFRESU", RECORD, "no journal of this program",
    "the journal of a run of another input, recipe, option or version"
};

static void put_f64(uint8_t *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    gg_bytes_store64le(b, bits);
}

static double get_f64(const uint8_t *b)
{
    uint64_t bits = gg_bytes_load64le(b);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool take_record(void *user, const uint8_t *b)
{
    struct gg_quant_resume *r = user;
    const uint32_t i = gg_bytes_load32le(b + 4);
    if (gg_bytes_load32le(b) != TENSOR || i >= r->n_tensors)
        return false;
    struct gg_quant_resume_tensor *t = &r->tensors[i];
    t->have = true;
    memcpy(t->digest.digest, b + 8, 16);
    t->n_nonfinite = gg_bytes_load64le(b + 24);
    t->nonfinite = (enum gguf_nonfinite)gg_bytes_load32le(b + 32);
    t->loss = (struct gguf_quant_loss){
        .measured = (gg_bytes_load32le(b + 36) & MEASURED) != 0,
        .rms = get_f64(b + 40),
        .max = get_f64(b + 48),
        .rms_in = get_f64(b + 56),
        .weighted = get_f64(b + 64),
        .snr = get_f64(b + 72),
        .seconds = get_f64(b + 80),
    };
    t->first_nonfinite = gg_bytes_load64le(b + 88);
    t->replaced = (gg_bytes_load32le(b + 36) & REPLACED) != 0;
    memcpy(t->note, b + NOTE, sizeof t->note);
    return true;
}

enum gguf_status gg_quant_resume_add_tensor(struct gg_quant_resume *r,
                                            size_t i, struct gguf_error *err)
{
    const struct gg_quant_resume_tensor *t = &r->tensors[i];
    uint8_t b[RECORD];
    memcpy(b + 8, t->digest.digest, 16);
    gg_bytes_store64le(b + 24, t->n_nonfinite);
    gg_bytes_store32le(b + 32, (uint32_t)t->nonfinite);
    gg_bytes_store32le(b + 36, (t->loss.measured ? (uint32_t)MEASURED : 0) |
                                   (t->replaced ? (uint32_t)REPLACED : 0));
    put_f64(b + 40, t->loss.rms);
    put_f64(b + 48, t->loss.max);
    put_f64(b + 56, t->loss.rms_in);
    put_f64(b + 64, t->loss.weighted);
    put_f64(b + 72, t->loss.snr);
    put_f64(b + 80, t->loss.seconds);
    gg_bytes_store64le(b + 88, t->first_nonfinite);
    memcpy(b + NOTE, t->note, sizeof t->note);
    return gg_journal_append(&r->journal, b, TENSOR, (uint32_t)i, err);
}

enum gguf_status gg_quant_resume_open(struct gg_quant_resume *r,
                                      const struct gguf_quant *q,
                                      const uint8_t *improve, const char *path,
                                      bool sync, struct gguf_error *err)
{
    const struct gguf_allocator *a = q->p.allocator;
    XXH128_canonical_t plan;
    *r = (struct gg_quant_resume){ .journal.fd = -1,
                                   .allocator = a,
                                   .n_tensors = q->n_t };
    GG_TRY(gg_quant_resume_digest_plan(q, improve, &plan, err));
    r->tensors = gg_mem_alloc_zero(a, q->n_t, sizeof *r->tensors);
    if (!r->tensors)
        return gg_error_set_nomem(err, q->n_t * sizeof *r->tensors);
    enum gguf_status st =
        gg_journal_open(&r->journal, &kind, &plan, path, q->n_shards, sync,
                        take_record, r, a, err);
    if (st != GGUF_OK)
        (void)gg_quant_resume_close(r, false);
    return st;
}

int gg_quant_resume_close(struct gg_quant_resume *r, bool discard)
{
    const int reason = gg_journal_close(&r->journal, discard);
    gg_mem_free(r->allocator, r->tensors);
    *r = (struct gg_quant_resume){ .journal.fd = -1 };
    return reason;
}

enum gguf_status gguf_quant_discard(const char *path, size_t *n,
                                    struct gguf_error *err)
{
    return gg_journal_discard(&kind, path, n, err);
}
