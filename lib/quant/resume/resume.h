/* SPDX-License-Identifier: MIT */
/* resume.h - the journal of a run that can be resumed
 *
 * PATH.resume, for the output PATH of one job: "GGUFRESU", u32 3, u32 0, the
 * plan's digest (16 bytes), then records of 104 bytes, each one of
 *
 *     u32 1, u32 tensor, digest of its bytes (16), u64 weights that were not
 *            finite, u32 what was done about them, u32 is the loss known, f64
 *            rms, max, rms_in, weighted, snr and seconds of it, u64 the first
 *            that was not finite
 *     u32 2, u32 file, u64 inode: the file is about to get its name
 *     u32 3, u32 file, u64 inode: the temporary of the file was made
 *
 * and ends in the XXH3 (u64) of what comes before. All is little-endian.
 * Everything after the first torn or wrong record is ignored. Digests are XXH3
 * of 128 bits. The process that writes the journal holds a lock on it (fcntl),
 * so that there is only one.
 *
 * The journal appears with its head, and a temporary counts only if the
 * journal knows its inode: a file of either name that no run made is refused,
 * and stays. A file to resume must be a regular file with one name, and in a
 * folder like /tmp belong to this user (gg_file_id_open).
 */
#ifndef GG_QUANT_RESUME_H
#define GG_QUANT_RESUME_H

#include "base/file_id.h"
#include "quant/job/job.h"

#include <pthread.h>
#include <xxhash.h>

struct gg_resume_tensor {
    bool have; /* all of it is in the output */
    XXH128_canonical_t digest;
    uint64_t n_nonfinite, first_nonfinite;
    enum gguf_nonfinite nonfinite; /* of the run that made it */
    struct gguf_quant_loss loss;
};

/* A file of the job. */
struct gg_resume_file {
    uint64_t named;         /* inode: about to get its name; 0: it is not */
    uint64_t part;          /* inode of the temporary; 0: none is known */
    struct gg_file_id made; /* the temporary, if this run made it, */
    char *made_path;        /* and its path; else NULL */
};

struct gg_resume {
    const struct gguf_allocator *allocator;
    int fd; /* -1: not open */
    char *path;
    bool found; /* it was there already */
    pthread_mutex_t lock;
    bool has_lock;
    uint64_t end;                     /* of the records, under lock */
    struct gg_resume_tensor *tensors; /* of the job */
    struct gg_resume_file *files;     /* of the job */
    size_t n_files;
};

#define GG_RESUME ".resume"

/* Everything that decides about the bytes of the output. */
enum gguf_status gg_resume_plan(const struct gguf_quant *q,
                                XXH128_canonical_t *out,
                                struct gguf_error *err);

/* Open or make the journal of q's output path, and lock it. On failure r is
 * closed, and a journal that was made is gone. GGUF_E_MISMATCH (of another
 * plan, no journal, or not to be trusted; the input has changed), GGUF_E_IO
 * (also: another process has it), GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_resume_open(struct gg_resume *r,
                                const struct gguf_quant *q, const char *path,
                                bool sync, struct gguf_error *err);

/* Close it; discard: and remove it. 0, or the errno of why it stays. Fine on a
 * closed one. */
int gg_resume_close(struct gg_resume *r, bool discard);

/* Make sure that path + GG_OUTFILE_PART is there for file no, made by this run
 * or an earlier one, and noted. GGUF_E_MISMATCH: another file has that name. */
enum gguf_status gg_resume_part(struct gg_resume *r, size_t no,
                                const char *path, struct gguf_error *err);

/* Note that tensor i is complete: r->tensors[i] is filled but for have. From
 * any thread, for different tensors. */
enum gguf_status gg_resume_add(struct gg_resume *r, size_t i,
                               struct gguf_error *err);

/* Note that file no is about to get its name. */
enum gguf_status gg_resume_add_name(struct gg_resume *r, size_t no,
                                    struct gguf_error *err);
/* Wait for the disk. */
enum gguf_status gg_resume_sync(struct gg_resume *r, struct gguf_error *err);

/* Take back the name of file no, of size bytes, if a run of this journal gave
 * it: the file is path + GG_OUTFILE_PART again. Another file of that name
 * stays. */
enum gguf_status gg_resume_unname(const struct gg_resume *r, size_t no,
                                  const char *path, uint64_t size,
                                  struct gguf_error *err);

/* Remove the temporary that this run made for file no, if it made one. Needs no
 * memory. */
void gg_resume_discard_part(const struct gg_resume *r, size_t no);

#endif
