/* SPDX-License-Identifier: MIT */
/* split_resume.h - a merge that goes on where an earlier one ended
 *
 * PATH.resume, for the output PATH, which grows as PATH.resume-data:
 * "GGUFMERG", u32 1, u32 0, the plan's digest (16 bytes), u64 inode of the
 * data's file, u64 bytes of it that are complete, their digest (16 bytes), and
 * the XXH3 (u64) of what comes before. All is little-endian; digests are XXH3
 * of 128 bits. It is written over again and again: one that is torn says that
 * nothing is complete.
 *
 * The digest is of what can be read back from the file, so that the disk need
 * not be waited for. Who writes holds a lock on the journal (fcntl). Files that
 * no run made are refused and stay, as those of jobs are (quant.h).
 */
#ifndef GG_FILE_SPLIT_RESUME_H
#define GG_FILE_SPLIT_RESUME_H

#include "base/file_id.h"
#include "base/outfile_int.h"
#include "file/split_layout.h"

#include <xxhash.h>

/* Suffix of the journal's name. */
#define GG_SPLIT_JOURNAL ".resume"

struct gg_split_resume {
    const struct gguf_allocator *allocator;
    int fd;            /* -1: not open */
    char *path, *part; /* of the journal, of the data */
    bool found, ready; /* it was there already; both are open */
    XXH128_canonical_t plan;
    uint64_t inode; /* of the data */
    uint64_t done;  /* bytes that are complete, and what they are: */
    XXH128_canonical_t digest;
    XXH3_state_t *state; /* of these bytes */
    uint8_t *buffer;
};

/* Open or make the journal of a merge of set into path, with the layout l
 * (zero: none) of w, and the file of the data. To be given to
 * gg_split_resume_close in any case. GGUF_E_MISMATCH (of another plan, no
 * journal, or not to be trusted), GGUF_E_IO (also: another process has it),
 * GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_split_resume_open(struct gg_split_resume *r,
                                      const struct gguf_split *set,
                                      struct gguf_writer *w,
                                      const struct gg_file_split_layout *l,
                                      const char *path,
                                      struct gguf_error *err);

/* o was opened with GG_OUTFILE_RESUME: have it pass over what is complete,
 * after reading it back. */
enum gguf_status gg_split_resume_take(struct gg_split_resume *r,
                                      struct gg_outfile *o,
                                      struct gguf_error *err);

/* All that was appended to o is complete. */
enum gguf_status gg_split_resume_note(struct gg_split_resume *r,
                                      struct gg_outfile *o,
                                      struct gguf_error *err);

/* The journal goes away if the merge is done, and with its data if nothing is
 * complete. 0, or the errno of why it stays. */
int gg_split_resume_close(struct gg_split_resume *r, bool done);

#endif
