/* SPDX-License-Identifier: MIT */
/* merge_journal.h - the journal of a resumable merge of shards
 *
 * The journal (base/journal.h) records the number of bytes that are complete at
 * the beginning of the output, and their digest. The next merge reads them back
 * and compares the digest, so a merge need not wait for the disk.
 *
 *     gg_merge_journal_open(&m, ...);        before the output is opened
 *     gg_merge_journal_skip(&m, &o, err);    skip the complete bytes
 *     gg_merge_journal_note(&m, &o, err);    after each piece
 *     gg_merge_journal_close(&m, done);      after a failure, too
 */
#ifndef GG_FILE_MERGE_JOURNAL_H
#define GG_FILE_MERGE_JOURNAL_H

#include "base/journal.h"
#include "base/outfile_int.h"
#include "file/split_layout.h"

struct gg_merge_journal {
    struct gg_journal journal;              /* the file */
    const struct gguf_allocator *allocator; /* allocator of the rest */
    bool ready;                /* the journal and the temporary are open */
    uint64_t done;             /* bytes that are complete */
    XXH128_canonical_t digest; /* their digest as recorded */
    XXH3_state_t *state;       /* their digest as read back */
    uint8_t *buffer;           /* buffer for reading back */
};

/* Open or create the journal of a merge, and its temporary.
 *
 * set    The shards.
 * w      Writer of the merged file.
 * l      Layout that is restored; all zero: the writer's own.
 * path   Path of the merged file.
 *
 * GGUF_E_MISMATCH: the journal has another plan, is not a journal, or is not
 * trusted. GGUF_E_IO: a file cannot be read or written, or another process
 * holds the lock. GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_merge_journal_open(struct gg_merge_journal *m,
                                       const struct gguf_file *set,
                                       struct gguf_writer *w,
                                       const struct gg_file_split_layout *l,
                                       const char *path,
                                       struct gguf_error *err);

/* Read back and compare the complete bytes of o, which was opened with
 * GG_OUTFILE_RESUME, and skip them. */
enum gguf_status gg_merge_journal_skip(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err);

/* Record that all bytes appended to o are complete. */
enum gguf_status gg_merge_journal_note(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err);

/* Close the journal. It is removed if the merge is done, and removed together
 * with the temporary if no byte is complete. Returns 0, or the errno of the
 * reason why it could not be removed. */
int gg_merge_journal_close(struct gg_merge_journal *m, bool done);

#endif
