/* resume.h - the journal of a run that can be gone on with
 *
 * PATH.resume, for the output PATH of one job: "GGUFRESU", u32 2, u32 0, the
 * plan's digest (16 bytes), then records of 104 bytes, each one of
 *
 *     u32 1, u32 tensor, digest of its bytes (16), u64 weights that were not
 *            finite, u32 what was done about them, u32 is the loss known, f64
 *            rms, max, rms_in, weighted, snr and seconds of it, u64 the first
 *            that was not finite
 *     u32 2, u32 file, u64 inode: the file is about to get its name
 *
 * and ends in the XXH3 (u64) of what comes before. All is little-endian. What
 * lies behind the first record that is torn or wrong means nothing. Digests
 * are XXH3 of 128 bits. The process that writes the journal holds a lock on it
 * (fcntl), so that there is only one.
 */
#ifndef GG_QUANT_RESUME_H
#define GG_QUANT_RESUME_H

#include "quant/job.h"

#include <xxhash.h>

struct gg_resume_tensor {
    bool have; /* all of it is in the output */
    XXH128_canonical_t digest;
    uint64_t n_nonfinite, first_nonfinite;
    enum gguf_nonfinite nonfinite; /* of the run that made it */
    struct gguf_quant_loss loss;
};

struct gg_resume {
    const struct gguf_allocator *allocator;
    int fd;      /* -1: not open */
    char *path;
    bool found;  /* it was there already */
    struct gg_resume_tensor *tensors; /* of the job */
    uint64_t *inodes; /* of the job's files; 0: not about to get a name */
};

/* Open or make the journal of q's output path, and lock it. On failure r is
 * closed. GGUF_E_MISMATCH (of another plan, or no journal), GGUF_E_EXIST
 * (another process has it), GGUF_E_IO, GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_resume_open(struct gg_resume *r,
                                const struct gguf_quant *q, const char *path,
                                struct gguf_error *err);

/* Close it; discard: and remove it. Fine on a closed one. */
void gg_resume_close(struct gg_resume *r, bool discard);

/* Note that tensor i is complete: r->tensors[i] is filled but for have. From
 * any thread, for different tensors. */
enum gguf_status gg_resume_add(struct gg_resume *r, size_t i,
                               struct gguf_error *err);

/* Note that file no, written beside path, is about to be named so. */
enum gguf_status gg_resume_add_name(struct gg_resume *r, size_t no,
                                    const char *path, struct gguf_error *err);
/* Wait for the disk. */
enum gguf_status gg_resume_sync(struct gg_resume *r, struct gguf_error *err);

/* Take back the name of file no, of size bytes, if a run of this journal gave
 * it: the file is path + GG_OUTFILE_PART again. Another file of that name
 * stays. */
enum gguf_status gg_resume_unname(const struct gg_resume *r, size_t no,
                                  const char *path, uint64_t size,
                                  struct gguf_error *err);

/* Remove path + GG_OUTFILE_PART. */
void gg_resume_discard_part(const struct gg_resume *r, const char *path);

#endif
