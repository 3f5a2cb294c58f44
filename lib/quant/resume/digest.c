/* digest.c - the digest of all that decides about the bytes of an output
 */
#include "config.h"
#include "quant/resume/resume.h"
#include "base/bytes.h"
#include "file/file.h"
#include "gguf/version.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE = 4096, N_SAMPLES = 64 }; /* bytes; of each file */

static void update_u64(XXH3_state_t *s, uint64_t v)
{
    uint8_t b[8];
    gg_bytes_store64le(b, v);
    (void)XXH3_128bits_update(s, b, sizeof b);
}

/* The headers of the output: metadata, names, types, shapes, places. */
static enum gguf_status add_headers(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    update_u64(s, q->n_shards);
    for (size_t no = 0; no < q->n_shards; no++) {
        struct gguf_writer *w;
        const void *data;
        size_t size;
        GG_TRY(gg_job_writer(q, no, &w, err));
        enum gguf_status st = gguf_writer_header(w, &data, &size, err);
        if (st == GGUF_OK) {
            update_u64(s, size);
            (void)XXH3_128bits_update(s, data, size);
        }
        gguf_writer_destroy(w);
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* Bytes of m, from its own first one, into piece: read, not mapped, so that a
 * file that became shorter is an error here. */
static enum gguf_status read_piece(const struct gg_mapfile *m, uint64_t at,
                                   uint8_t *piece, size_t size,
                                   struct gguf_error *err)
{
    if (m->read)
        return gg_mapfile_read(m, at, size, piece, err);
    if (m->fd < 0) {
        memcpy(piece, m->data + at, size);
        return GGUF_OK;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(m->fd, piece + done, size - done,
                          (off_t)(m->off + at + done));
        if (n == 0)
            return gg_error_set(err, GGUF_E_TRUNCATED, at,
                                "the input ends at byte %" PRIu64, at);
        if (n < 0 && errno != EINTR)
            return gg_error_set_errno(
                err, errno, "reading the input at byte %" PRIu64, at);
        done += n > 0 ? (size_t)n : 0;
    }
    return GGUF_OK;
}

/* Pieces of what comes after the header, spread evenly from its first byte to
 * its last: other weights differ in each of them. */
static enum gguf_status add_samples(XXH3_state_t *s,
                                    const struct gg_job_input *in,
                                    struct gguf_error *err)
{
    uint8_t piece[SAMPLE];
    uint64_t from = in->header, size = in->map->size - from;
    uint64_t step = size > SAMPLE ? (size - SAMPLE) / (N_SAMPLES - 1) : 0;
    size_t n = (size_t)GG_MIN(size, SAMPLE);
    for (uint64_t i = 0; i < (step ? N_SAMPLES : 1); i++) {
        uint64_t at = i + 1 < N_SAMPLES ? from + i * step : in->map->size - n;
        GG_TRY(read_piece(in->map, at, piece, n, err));
        (void)XXH3_128bits_update(s, piece, n);
    }
    return GGUF_OK;
}

/* A file that is read: size, time, inode, header and samples of the data. Not
 * the device: a disk may have another number when the machine is on again, nor
 * the time of the inode, which a new name changes. */
static enum gguf_status add_file(XXH3_state_t *s,
                                 const struct gg_job_input *in,
                                 struct gguf_error *err)
{
    GG_TRY(gg_job_check_input(in, err));
    update_u64(s, in->map->file_size);
    update_u64(s, (uint64_t)in->map->mtime.tv_sec);
    update_u64(s, (uint64_t)in->map->mtime.tv_nsec);
    update_u64(s, (uint64_t)in->map->ino);
    (void)XXH3_128bits_update(s, in->map->data, (size_t)in->header);
    return add_samples(s, in, err);
}

/* The files of the input, and the adapters with their scales. */
static enum gguf_status add_inputs(XXH3_state_t *s, const struct gguf_quant *q,
                                   struct gguf_error *err)
{
    struct gg_job_input in;
    for (size_t i = 0; gg_job_input(q, i, &in); i++)
        GG_TRY(add_file(s, &in, err));
    for (size_t i = 0; i < q->p.n_loras; i++)
        update_u64(s, gg_bytes_f32_bits(q->merge[i].scale));
    return GGUF_OK;
}

/* Where each tensor comes from, and with which importances. */
static enum gguf_status add_tensors(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gg_job_tensor *t = &q->t[i];
        size_t ne0 = (size_t)t->pub.ne[0];
        update_u64(s, t->src->file_no);
        update_u64(s, t->src->info->off);
        update_u64(s, t->pub.from);
        update_u64(s, t->imatrix != NULL);
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

enum gguf_status gg_resume_plan(const struct gguf_quant *q,
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
    XXH128_canonicalFromHash(out, XXH3_128bits_digest(s));
    (void)XXH3_freeState(s);
    return st;
}
