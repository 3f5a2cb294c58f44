/* SPDX-License-Identifier: MIT */
/* edit_journal.h - a header that is being written in place, saved beside its
 * file
 *
 * PATH.edit-journal is a journal (base/journal.h) with one record, the header.
 * Its plan is the digest of what tells the file from others: inode, size, and
 * 64 KiB after the header. It appears complete, by renaming. A journal of
 * another file than the present PATH is ignored. If PATH is a symbolic link,
 * the journal lies beside its target.
 */
#ifndef GG_FILE_EDIT_JOURNAL_H
#define GG_FILE_EDIT_JOURNAL_H

#include "base/mapfile.h"
#include "gguf/memory.h"

#define GG_EDIT_JOURNAL ".edit-journal"

/* Bytes from the beginning of a file of which readers keep a copy (file.c).
 * Longer headers are not written in place. */
#define GG_HEADER_KEPT (UINT64_C(64) << 20)

struct gg_edit_journal {
    struct gg_mapfile map;
    const uint8_t *header;
    uint64_t size; /* of the header */
};

/* Open the journal of the file that m maps from its first byte to its last
 * and that path leads to; without one, j->header is NULL and there is nothing
 * to close. A journal that cannot be read is a failure: nobody knows whether
 * the header is whole. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_edit_journal_find(struct gg_edit_journal *j,
                                      const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err);
void gg_edit_journal_close(struct gg_edit_journal *j);

/* Save header for the file m, which path leads to, readable by those who may
 * read m. A failure leaves no journal. GGUF_E_EXIST: its name belongs to a
 * file that is not a journal. */
enum gguf_status gg_edit_journal_save(const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      const void *header, uint64_t size,
                                      struct gguf_error *err);

/* The edit is complete. */
enum gguf_status gg_edit_journal_remove(const struct gguf_allocator *a,
                                        const char *path,
                                        struct gguf_error *err);

/* Open the file path for writing and keep other edits away until *fd, which is
 * the caller's then, is unlocked. It must be the file that m maps, not changed
 * since: GGUF_E_MISMATCH; GGUF_E_IO, also if another edit is under way. Call
 * it before the journal is saved, since readers use the journal from then
 * on. */
enum gguf_status gg_header_lock(const char *path, const struct gg_mapfile *m,
                                int *fd, struct gguf_error *err);
/* Let others edit, and close fd; -1 is fine. */
void gg_header_unlock(int fd);

/* Write header over the beginning of the file fd, which m maps, and wait for
 * the disk. The file's time is another one afterwards. *begun: the file may be
 * other than it was; the message says so. */
enum gguf_status gg_header_overwrite(int fd, const struct gg_mapfile *m,
                                     const void *header, uint64_t size,
                                     bool *begun, struct gguf_error *err);

#endif
