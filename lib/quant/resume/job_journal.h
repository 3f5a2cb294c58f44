/* SPDX-License-Identifier: MIT */
/* job_journal.h - the journal of a quantization
 *
 * PATH.resume, for the output PATH of one job, records each complete tensor
 * with its digest, its loss and its non-finite weights, so that a resumed run
 * need not compute them again. base/journal.h has the format, the lock and the
 * temporaries.
 */
#ifndef GG_QUANT_RESUME_JOB_JOURNAL_H
#define GG_QUANT_RESUME_JOB_JOURNAL_H

#include "base/journal.h"
#include "gguf/improve.h"
#include "quant/job/job.h"

/* bytes of a record: 88 of numbers, and the note */
enum { GG_QUANT_RESUME_RECORD = GG_JOURNAL_FRAME + 88 + GGUF_QUANT_NOTE_SIZE };

struct gg_quant_resume_tensor {
    bool have; /* the output has all bytes of the tensor */
    XXH128_canonical_t digest;
    uint64_t n_nonfinite, first_nonfinite;
    enum gguf_nonfinite nonfinite; /* treatment in the run that made it */
    struct gguf_quant_loss loss;
    bool replaced; /* its bytes are those of gguf_quant_improver_replace() */
    uint8_t note[GGUF_QUANT_NOTE_SIZE]; /* the caller's note about it */
};

struct gg_quant_resume {
    struct gg_journal journal;
    const struct gguf_allocator *allocator;
    struct gg_quant_resume_tensor *tensors; /* tensors of the job */
    size_t n_tensors;
};

/* Compute the digest of everything that determines the bytes of the output.
 * improve: digest of what determines replaced tensors, 16 bytes; NULL: no
 * tensor is replaced. */
enum gguf_status gg_quant_resume_digest_plan(const struct gguf_quant *q,
                                             const uint8_t *improve,
                                             XXH128_canonical_t *out,
                                             struct gguf_error *err);

/* Open or create the journal of q's output path. improve is the argument of
 * gg_quant_resume_digest_plan(). After a failure r is closed
 * and a new journal is removed. GGUF_E_MISMATCH also means that the input has
 * changed. Other statuses: those of gg_journal_open. */
enum gguf_status gg_quant_resume_open(struct gg_quant_resume *r,
                                      const struct gguf_quant *q,
                                      const uint8_t *improve, const char *path,
                                      bool sync, struct gguf_error *err);

/* Close the journal (gg_journal_close). */
int gg_quant_resume_close(struct gg_quant_resume *r, bool discard);

/* Record tensor i as complete. r->tensors[i] must be filled except for have.
 * Threads may record different tensors at once. */
enum gguf_status gg_quant_resume_add_tensor(struct gg_quant_resume *r,
                                            size_t i, struct gguf_error *err);

#endif
