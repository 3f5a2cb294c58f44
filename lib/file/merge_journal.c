/* SPDX-License-Identifier: MIT */
/* merge_journal.c - the journal of a resumable merge of shards */
#include "config.h"
#include "file/merge_journal.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "file/file_int.h"
#include "file/fingerprint.h"
#include "gguf/version.h"

#include <string.h>

enum {
    DONE = GG_JOURNAL_OWN, /* record: u64 complete bytes, their digest (16) */
    RECORD = GG_JOURNAL_FRAME + 24,
    PIECE = 1 << 20 /* bytes read back at once */
};

static const struct gg_journal_kind kind = {
    "GGUFMERG", RECORD, "no journal of a merge",
    "the journal of a merge of another input or version"
};

/* ---- the digest of the plan ---- */

static enum gguf_status add_output(XXH3_state_t *s, struct gguf_writer *w,
                                   const struct gg_file_split_layout *l,
                                   struct gguf_error *err)
{
    const void *header;
    size_t size;
    GG_TRY(gguf_writer_header(w, &header, &size, err));
    (void)XXH3_128bits_update(s, header, size);
    gg_fingerprint_add_number(s, gguf_writer_file_size(w));
    gg_fingerprint_add_number(s, l->size);
    gg_fingerprint_add_number(s, l->n_gaps);
    if (l->gaps)
        (void)XXH3_128bits_update(s, l->gaps, (size_t)l->n_gaps);
    for (uint64_t i = 0; l->off && i < l->n; i++)
        gg_fingerprint_add_number(s, l->off[i]);
    return GGUF_OK;
}

static enum gguf_status
digest_plan(XXH3_state_t *s, const struct gguf_file *set,
            struct gguf_writer *w, const struct gg_file_split_layout *l,
            XXH128_canonical_t *plan, struct gguf_error *err)
{
    const char *version = gguf_version_string();
    (void)XXH3_128bits_reset(s);
    (void)XXH3_128bits_update(s, version, strlen(version) + 1);
    GG_TRY(add_output(s, w, l, err));
    for (size_t i = 0; i < gguf_file_n_shards(set); i++) {
        const struct gguf_file *f = gguf_file_shard(set, i);
        GG_TRY(gg_fingerprint_add_file(s, &f->map,
                                       GG_MIN(f->data_off, f->map.size), err));
    }
    XXH128_canonicalFromHash(plan, XXH3_128bits_digest(s));
    (void)XXH3_128bits_reset(s);
    return GGUF_OK;
}

/* ---- the run ---- */

static bool take_record(void *user, const uint8_t *b)
{
    struct gg_merge_journal *m = user;
    if (gg_bytes_load32le(b) != DONE)
        return false;
    m->done = gg_bytes_load64le(b + 8);
    memcpy(m->digest.digest, b + 16, 16);
    return true;
}

enum gguf_status gg_merge_journal_open(struct gg_merge_journal *m,
                                       const struct gguf_file *set,
                                       struct gguf_writer *w,
                                       const struct gg_file_split_layout *l,
                                       const char *path,
                                       struct gguf_error *err)
{
    const struct gguf_allocator *a = set->allocator;
    XXH128_canonical_t plan;
    bool made;
    *m = (struct gg_merge_journal){ .allocator = a, .journal.fd = -1 };
    m->buffer = gg_mem_alloc(a, PIECE);
    m->state = XXH3_createState();
    if (!m->buffer || !m->state)
        return gg_error_set_nomem(err, PIECE);
    GG_TRY(digest_plan(m->state, set, w, l, &plan, err));
    GG_TRY(gg_journal_open(&m->journal, &kind, &plan, path, 1, false,
                           take_record, m, a, err));
    GG_TRY(gg_journal_open_part(&m->journal, 0, path, &made, err));
    if (made)
        m->done = 0;
    m->ready = true;
    return GGUF_OK;
}

/* Read back bytes [from, to) of o and add them to the digest. */
static enum gguf_status read_back(struct gg_merge_journal *m,
                                  const struct gg_outfile *o, uint64_t from,
                                  uint64_t to, struct gguf_error *err)
{
    for (uint64_t n; from < to; from += n) {
        n = GG_MIN(to - from, (uint64_t)PIECE);
        GG_TRY(gg_outfile_read_at(o, from, m->buffer, n, err));
        (void)XXH3_128bits_update(m->state, m->buffer, (size_t)n);
    }
    return GGUF_OK;
}

enum gguf_status gg_merge_journal_skip(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err)
{
    XXH128_canonical_t digest;
    /* the file must hold all bytes that the journal has recorded */
    if (read_back(m, o, 0, m->done, NULL) == GGUF_OK)
        XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(m->state));
    else
        m->done = 0;
    if (!m->done || memcmp(&digest, &m->digest, sizeof digest) != 0) {
        m->done = 0;
        (void)XXH3_128bits_reset(m->state);
    }
    return gg_outfile_set_complete(o, m->done, err);
}

enum gguf_status gg_merge_journal_note(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err)
{
    const uint64_t done = o->pos;
    uint8_t b[RECORD];
    XXH128_canonical_t digest;
    if (done <= m->done)
        return GGUF_OK;
    GG_TRY(gg_outfile_flush(o, err));
    GG_TRY(read_back(m, o, m->done, done, err));
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(m->state));
    gg_bytes_store64le(b + 8, done);
    memcpy(b + 16, digest.digest, 16);
    GG_TRY(gg_journal_append(&m->journal, b, DONE, 0, err));
    m->done = done;
    return GGUF_OK;
}

int gg_merge_journal_close(struct gg_merge_journal *m, bool done)
{
    const bool nothing = !done && !m->done && (m->ready || !m->journal.found);
    if (nothing)
        gg_journal_discard_parts(&m->journal);
    const int reason = gg_journal_close(&m->journal, done || nothing);
    (void)XXH3_freeState(m->state);
    gg_mem_free(m->allocator, m->buffer);
    *m = (struct gg_merge_journal){ .journal.fd = -1 };
    return reason;
}
