/* SPDX-License-Identifier: MIT */
/* run_resume.c - continue an earlier run
 *
 * When the last chunk of a tensor is written, it is recorded in the journal of
 * each job, with a digest of the bytes read back from the file. A resumed run
 * keeps the tensors that are recorded in all journals and whose bytes in the
 * files still have their digests. The order in which the system wrote the data
 * does not matter, so that no sync is needed.
 */
#include "config.h"
#include "quant/run/job_run.h"

#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes read back between two polls */

/* Open the unfinished files of job k. Their records are written together and
 * synced: a journal that survives a crash knows its files. */
static enum gguf_status open_parts(struct gg_quant_run *r, size_t k, bool sync,
                                   struct gguf_error *err)
{
    struct gg_journal *j = &r->resume[k].journal;
    for (size_t no = 0; no < r->jobs[k]->n_shards; no++) {
        size_t w = r->first_writer[k] + no;
        GG_TRY(gg_job_create_writer(r->jobs[k], no, &r->writers[w], err));
        GG_TRY(gg_journal_unpublish(
            j, no, r->paths[w], gguf_writer_file_size(r->writers[w]), err));
        GG_TRY(gg_journal_open_part(j, no, r->paths[w], NULL, err));
    }
    return sync ? gg_journal_sync(j, err) : GGUF_OK;
}

enum gguf_status gg_quant_run_open_journals(struct gg_quant_run *r,
                                            const char *const *paths,
                                            const uint8_t *improve, bool sync,
                                            struct gguf_error *err)
{
    r->resume = gg_mem_alloc_zero(r->jobs[0]->p.allocator, r->n_jobs,
                                  sizeof *r->resume);
    for (size_t k = 0; r->resume && k < r->n_jobs; k++)
        r->resume[k].journal.fd = -1;
    if (!r->resume)
        return gg_error_set_nomem(err, r->n_jobs * sizeof *r->resume);
    for (size_t i = 0; i < r->n_t; i++)
        atomic_init(&r->states[i].left,
                    r->cuts[i + 1].first - r->cuts[i].first);
    for (size_t k = 0; k < r->n_jobs; k++)
        GG_TRY(gg_quant_resume_open(&r->resume[k], r->jobs[k], improve,
                                    paths[k], sync, err));
    for (size_t k = 0; k < r->n_jobs; k++)
        GG_TRY(open_parts(r, k, sync, err));
    return GGUF_OK;
}

/* Find the journal's record of tensor i for job k; NULL if the job leaves it
 * out. */
static struct gg_quant_resume_tensor *find_noted(const struct gg_quant_run *r,
                                                 size_t k, size_t i)
{
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
    return t ? &r->resume[k].tensors[t - r->jobs[k]->t] : NULL;
}

/* Compute the digest of job k's tensor i from its file. Returns false if a part
 * cannot be read, or if the run must stop. */
static bool read_back(struct gg_quant_run *r, size_t k, size_t i, unsigned ith,
                      XXH128_canonical_t *out)
{
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
    const struct gguf_writer *w = r->writers[r->first_writer[k] + t->shard];
    uint8_t *buffer = r->buffers + ith * r->buffer_size;
    size_t most = GG_MIN(r->buffer_size, (size_t)PIECE);
    XXH3_state_t *s = XXH3_createState();
    bool good = s && XXH3_128bits_reset(s) == XXH_OK;
    for (uint64_t off = 0; good && off < t->pub.to_size; off += most) {
        size_t n = (size_t)GG_MIN(t->pub.to_size - off, most);
        good = gguf_writer_read_at(w, t->index, off, buffer, n, NULL) ==
                   GGUF_OK &&
               !gg_quant_run_poll_progress(r, ith);
        if (good)
            (void)XXH3_128bits_update(s, buffer, n);
    }
    if (good)
        XXH128_canonicalFromHash(out, XXH3_128bits_digest(s));
    (void)XXH3_freeState(s);
    return good;
}

/* Is tensor i complete for all jobs that have it, and made with the params of
 * this run? */
static bool is_complete(struct gg_quant_run *r, size_t i)
{
    const struct gguf_quant_params *p = &r->jobs[0]->p;
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_quant_resume_tensor *t = find_noted(r, k, i);
        XXH128_canonical_t digest;
        if (!t)
            continue;
        bool looked = t->nonfinite == p->nonfinite ||
                      t->nonfinite == GGUF_NONFINITE_ERROR;
        if (!t->have || !looked || !read_back(r, k, i, 0, &digest) ||
            memcmp(&digest, &t->digest, sizeof digest) != 0)
            return false;
    }
    return true;
}

enum gguf_status gg_quant_run_find_complete(struct gg_quant_run *r,
                                            struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++)
        r->jobs[k]->totals.n_kept = 0;
    for (size_t i = 0; i < r->n_t; i++) {
        const struct gg_quant_resume_tensor *any = NULL;
        if (!is_complete(r, i))
            continue;
        for (size_t k = 0; k < r->n_jobs; k++) {
            const struct gg_quant_resume_tensor *n = find_noted(r, k, i);
            if (!n)
                continue;
            struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
            t->pub.loss = n->loss;
            r->jobs[k]->totals.n_kept++;
            any = any ? any : n;
            GG_TRY(gguf_writer_mark_complete(
                r->writers[r->first_writer[k] + t->shard], t->index, err));
        }
        r->states[i].kept = true;
        atomic_fetch_add(&r->done,
                         gg_quant_run_first_tensor(r, i)->pub.from_size);
        gg_quant_run_count_nonfinite(r, i, any->n_nonfinite,
                                     any->first_nonfinite);
    }
    return GGUF_OK;
}

void gg_quant_run_record_chunk(struct gg_quant_run *r, size_t i, uint64_t no,
                               unsigned ith)
{
    struct gg_quant_run_state *s = &r->states[i];
    struct gguf_error err;
    if (atomic_fetch_sub(&s->left, 1) != 1)
        return;
    gg_quant_run_finish_loss(r, i);
    for (size_t k = 0; k < r->n_jobs; k++) {
        struct gg_quant_resume_tensor *t = find_noted(r, k, i);
        if (!t)
            continue;
        if (!read_back(r, k, i, ith, &t->digest))
            return; /* stopped; a tensor without a record is made again */
        t->n_nonfinite = atomic_load(&s->n_nonfinite);
        t->first_nonfinite = atomic_load(&s->first_nonfinite);
        t->nonfinite = r->jobs[0]->p.nonfinite;
        t->loss = gg_quant_run_tensor(r, k, i)->pub.loss;
        t->replaced = false;
        memset(t->note, 0, sizeof t->note);
        if (gg_quant_resume_add_tensor(&r->resume[k],
                                       (size_t)(t - r->resume[k].tensors),
                                       &err) != GGUF_OK) {
            gg_quant_run_fail(r, no, &err);
            return;
        }
        t->have = true;
    }
}

enum gguf_status gg_quant_run_record_names(struct gg_quant_run *r, bool sync,
                                           struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        for (size_t no = 0; no < r->jobs[k]->n_shards; no++)
            GG_TRY(gg_journal_note_publish(&r->resume[k].journal, no, err));
        if (sync)
            GG_TRY(gg_journal_sync(&r->resume[k].journal, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_quant_run_close_journals(struct gg_quant_run *r, bool done,
                                             struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    bool some = false;
    for (size_t k = 0; r->resume && k < r->n_jobs; k++)
        for (size_t i = 0; r->resume[k].tensors && i < r->jobs[k]->n_t; i++)
            some |= r->resume[k].tensors[i].have;
    for (size_t k = 0; r->resume && k < r->n_jobs; k++) {
        struct gg_quant_resume *j = &r->resume[k];
        bool discard = done || (!some && !j->journal.found);
        if (discard && !done)
            gg_journal_discard_parts(&j->journal);
        int reason = gg_quant_resume_close(j, discard);
        if (reason && done)
            st = gg_error_set_errno(err, reason,
                                    "is complete, but the journal "
                                    "beside it cannot be removed");
    }
    return st;
}
