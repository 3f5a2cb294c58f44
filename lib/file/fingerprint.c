/* SPDX-License-Identifier: MIT */
/* fingerprint.c - digests that tell whether a file is still the same one */
#include "config.h"
#include "file/fingerprint.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/os/os.h"

#include <errno.h>
#include <string.h>

enum { SAMPLE = 4096, N_SAMPLES = 64 }; /* bytes of a sample; samples */

void gg_fingerprint_add_number(XXH3_state_t *s, uint64_t v)
{
    uint8_t b[8];
    gg_bytes_store64le(b, v);
    (void)XXH3_128bits_update(s, b, sizeof b);
}

/* Read bytes of m to piece. at counts from the first byte of m. They are not
 * taken from the mapping, so that a file that became shorter is an error. */
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
    uint64_t done;
    if (gg_os_read_at(m->fd, piece, size, m->off + at, &done) != 0)
        return gg_error_set_errno(err, errno,
                                  "reading the input at byte %" PRIu64, at);
    return done == size ? GGUF_OK
                        : gg_error_set(err, GGUF_E_TRUNCATED, at,
                                       "the input ends at byte %" PRIu64, at);
}

/* Add samples of the bytes after the header, spread evenly over all of them.
 * Other weights differ in every sample. */
static enum gguf_status add_samples(XXH3_state_t *s,
                                    const struct gg_mapfile *m, uint64_t from,
                                    struct gguf_error *err)
{
    uint8_t piece[SAMPLE];
    uint64_t size = m->size - from;
    uint64_t step = size > SAMPLE ? (size - SAMPLE) / (N_SAMPLES - 1) : 0;
    size_t n = (size_t)GG_MIN(size, SAMPLE);
    for (uint64_t i = 0; i < (step ? N_SAMPLES : 1); i++) {
        uint64_t at = i + 1 < N_SAMPLES ? from + i * step : m->size - n;
        GG_TRY(read_piece(m, at, piece, n, err));
        (void)XXH3_128bits_update(s, piece, n);
    }
    return GGUF_OK;
}

enum gguf_status gg_fingerprint_add_file(XXH3_state_t *s,
                                         const struct gg_mapfile *m,
                                         uint64_t header,
                                         struct gguf_error *err)
{
    gg_fingerprint_add_number(s, m->file_size);
    gg_fingerprint_add_number(s, (uint64_t)m->mtime.tv_sec);
    gg_fingerprint_add_number(s, (uint64_t)m->mtime.tv_nsec);
    gg_fingerprint_add_number(s, m->ino);
    (void)XXH3_128bits_update(s, m->data, (size_t)header);
    if (!m->version)
        return add_samples(s, m, header, err);
    (void)XXH3_128bits_update(s, m->version, strlen(m->version));
    return GGUF_OK;
}
