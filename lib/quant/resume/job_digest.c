/* SPDX-License-Identifier: MIT */
/* job_digest.c - digest of everything that determines the bytes of an output */
#include "config.h"
#include "quant/resume/job_journal.h"
#include "base/bytes.h"
#include "file/fingerprint.h"
#include "gguf/version.h"

#include <string.h>

/* Add the headers of the output: metadata, names, types, shapes, offsets. */
static enum gguf_status add_headers(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    gg_fingerprint_add_number(s, q->n_shards);
    for (size_t no = 0; no < q->n_shards; no++) {
        struct gguf_writer *w;
        const void *data;
        size_t size;
        GG_TRY(gg_job_create_writer(q, no, &w, err));
        enum gguf_status st = gguf_writer_header(w, &data, &size, err);
        if (st == GGUF_OK) {
            gg_fingerprint_add_number(s, size);
            (void)XXH3_128bits_update(s, data, size);
        }
        gguf_writer_destroy(w);
        GG_TRY(st);
    }
    return GGUF_OK;
}

static enum gguf_status add_file(XXH3_state_t *s,
                                 const struct gg_data_file *in,
                                 struct gguf_error *err)
{
    GG_TRY(gg_job_check_input_file(in, err));
    return gg_fingerprint_add_file(s, in->map, in->header, err);
}

/* Add the input files, and the adapters with their scales. */
static enum gguf_status add_inputs(XXH3_state_t *s, const struct gguf_quant *q,
                                   struct gguf_error *err)
{
    struct gg_data_file in;
    for (size_t i = 0; gg_job_input_file(q, i, &in); i++)
        GG_TRY(add_file(s, &in, err));
    for (size_t i = 0; i < q->p.n_loras; i++)
        gg_fingerprint_add_number(s, gg_bytes_f32_bits(q->merge[i].scale));
    return GGUF_OK;
}

/* Add the source and the importances of each tensor. */
static enum gguf_status add_tensors(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gg_job_tensor *t = &q->t[i];
        size_t ne0 = (size_t)t->pub.ne[0];
        gg_fingerprint_add_number(s, t->src->file_no);
        gg_fingerprint_add_number(s, t->src->off);
        gg_fingerprint_add_number(s, t->pub.from);
        gg_fingerprint_add_number(s, t->imatrix != NULL);
        if (!t->imatrix)
            continue;
        float *row = gg_mem_alloc(q->p.allocator, ne0 * sizeof *row);
        if (!row)
            return gg_error_set_nomem(err, ne0 * sizeof *row);
        for (uint64_t at = 0; at < t->imatrix->n_values; at += ne0) {
            gg_imatrix_weights(t->imatrix, at, ne0, row);
            (void)XXH3_128bits_update(s, row, ne0 * sizeof *row);
        }
        gg_mem_free(q->p.allocator, row);
    }
    return GGUF_OK;
}

enum gguf_status gg_quant_resume_digest_plan(const struct gguf_quant *q,
                                             const uint8_t *improve,
                                             XXH128_canonical_t *out,
                                             struct gguf_error *err)
{
    XXH3_state_t *s = XXH3_createState();
    if (!s)
        return gg_error_set(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                            "no memory for a digest");
    const char *version = gguf_version_string();
    (void)XXH3_128bits_reset(s);
    (void)XXH3_128bits_update(s, version, strlen(version) + 1);
    enum gguf_status st = add_headers(s, q, err);
    if (st == GGUF_OK)
        st = add_inputs(s, q, err);
    if (st == GGUF_OK)
        st = add_tensors(s, q, err);
    if (improve)
        (void)XXH3_128bits_update(s, improve, 16);
    XXH128_canonicalFromHash(out, XXH3_128bits_digest(s));
    (void)XXH3_freeState(s);
    return st;
}
