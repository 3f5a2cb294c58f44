/* SPDX-License-Identifier: MIT */
/* job_journal.h - the journal of a quantization
 *
 * PATH.resume, for the output PATH of one job, notes each complete tensor with
 * its digest, its loss and its weights that are not finite, so that none of
 * these is computed again. Format, lock and temporaries: base/journal.h.
 */
#ifndef GG_QUANT_RESUME_JOB_JOURNAL_H
#define GG_QUANT_RESUME_JOB_JOURNAL_H

#include "base/journal.h"
#include "quant/job/job.h"

struct gg_quant_resume_tensor {
    bool have; /* the output has all of it */
    XXH128_canonical_t digest;
    uint64_t n_nonfinite, first_nonfinite;
    enum gguf_nonfinite nonfinite; /* of the run that made it */
    struct gguf_quant_loss loss;
};

struct gg_quant_resume {
    struct gg_journal journal;
    const struct gguf_allocator *allocator;
    struct gg_quant_resume_tensor *tensors; /* of the job */
    size_t n_tensors;
};

/* Digest of everything that decides about the bytes of the output. */
enum gguf_status gg_quant_resume_digest_plan(const struct gguf_quant *q,
                                             XXH128_canonical_t *out,
                                             struct gguf_error *err);

/* Open or make the journal of q's output path. On failure r is closed, and a
 * journal that was made is gone. GGUF_E_MISMATCH also if the input has changed;
 * else as gg_journal_open. */
enum gguf_status gg_quant_resume_open(struct gg_quant_resume *r,
                                      const struct gguf_quant *q,
                                      const char *path, bool sync,
                                      struct gguf_error *err);

/* Close it, as gg_journal_close. */
int gg_quant_resume_close(struct gg_quant_resume *r, bool discard);

/* Note that tensor i is complete: r->tensors[i] is filled but for have. From
 * any thread, for different tensors. */
enum gguf_status gg_quant_resume_add_tensor(struct gg_quant_resume *r,
                                            size_t i, struct gguf_error *err);

#endif
