/* SPDX-License-Identifier: MIT */
/* merge_journal.h - the journal of a merge of shards
 *
 * The journal of a merge (base/journal.h) notes how many bytes at the beginning
 * of the output are complete, and their digest. The digest is computed over
 * bytes that were read back from the file, so a merge need not wait for the
 * disk.
 *
 *     gg_merge_journal_open(&m, ...);        before the output is opened
 *     gg_merge_journal_skip(&m, &o, err);    pass over what is complete
 *     gg_merge_journal_note(&m, &o, err);    after each piece
 *     gg_merge_journal_close(&m, done);      in every case
 */
#ifndef GG_FILE_MERGE_JOURNAL_H
#define GG_FILE_MERGE_JOURNAL_H

#include "base/journal.h"
#include "base/outfile_int.h"
#include "file/split_layout.h"

struct gg_merge_journal {
    struct gg_journal journal;
    const struct gguf_allocator *allocator;
    bool ready;                /* the journal and the temporary are open */
    uint64_t done;             /* bytes that are complete */
    XXH128_canonical_t digest; /* digest of the first done bytes, as noted */
    XXH3_state_t *state;       /* digest of the same bytes, as read back */
    uint8_t *buffer;
};

/* Open or make the journal of a merge of set into path, with the layout l
 * (zero: none) of w, and the temporary. GGUF_E_MISMATCH (another plan, no
 * journal, or not trusted), GGUF_E_IO (also: another process holds it),
 * GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_merge_journal_open(struct gg_merge_journal *m,
                                       const struct gguf_file *set,
                                       struct gguf_writer *w,
                                       const struct gg_file_split_layout *l,
                                       const char *path,
                                       struct gguf_error *err);

/* Have o, which was opened with GG_OUTFILE_RESUME, pass over the bytes that
 * are complete, after they are read back and compared. */
enum gguf_status gg_merge_journal_skip(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err);

/* Note that all bytes appended to o are complete. */
enum gguf_status gg_merge_journal_note(struct gg_merge_journal *m,
                                       struct gg_outfile *o,
                                       struct gguf_error *err);

/* Remove the journal if the merge is done, and if no byte is complete: then
 * with the temporary. Returns 0, or the errno of why the journal stays. */
int gg_merge_journal_close(struct gg_merge_journal *m, bool done);

#endif
