/* SPDX-License-Identifier: MIT */
/* edit_journal.h - save a header beside its file while it is written in place
 *
 * PATH.edit-journal is a journal (base/journal.h) with one record, the new
 * header. Its plan is a digest that identifies the file: inode, size, and 64
 * KiB after the header. It is renamed into place, so it is always complete. A
 * journal of another file than the present PATH is ignored. If PATH is a
 * symbolic link, the journal is beside its target.
 *
 * An edit in place calls, in this order: gg_header_lock(),
 * gg_edit_journal_save(), gg_header_overwrite(), gg_edit_journal_remove(),
 * gg_header_unlock().
 */
#ifndef GG_FILE_EDIT_JOURNAL_H
#define GG_FILE_EDIT_JOURNAL_H

#include "base/mapfile.h"
#include "gguf/memory.h"

#define GG_EDIT_JOURNAL ".edit-journal"

/* Largest header in bytes that is written in place. Readers keep a copy of it
 * (file.c). */
#define GG_HEADER_KEPT (UINT64_C(64) << 20)

struct gg_edit_journal {
    struct gg_mapfile map; /* the journal */
    const uint8_t *header; /* saved header; NULL: no journal */
    uint64_t size;         /* bytes of the header */
};

/* Find and open the journal of a file.
 *
 * j      Receives the journal. Close it with gg_edit_journal_close() if
 *        j->header is not NULL.
 * path   Path of the file.
 * m      Mapping of the whole file.
 *
 * A journal that exists and cannot be read is a failure, because the header may
 * be half written. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_edit_journal_find(struct gg_edit_journal *j,
                                      const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err);
void gg_edit_journal_close(struct gg_edit_journal *j);

/* Save the new header of the file m at path. Those who may read m may read the
 * journal. A failure leaves no journal. GGUF_E_EXIST: a file that is not a
 * journal has its name. GGUF_E_IO, GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_edit_journal_save(const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      const void *header, uint64_t size,
                                      struct gguf_error *err);

/* Remove the journal of a complete edit. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_edit_journal_remove(const struct gguf_allocator *a,
                                        const char *path,
                                        struct gguf_error *err);

/* Open the file at path for writing, and lock out other edits.
 *
 * m    Mapping of the file.
 * fd   Receives the descriptor. Pass it to gg_header_unlock().
 *
 * Call it before the journal is saved: from then on readers use the journal.
 *
 * GGUF_E_MISMATCH: path leads to another file than m maps, or the file has
 * changed. GGUF_E_IO: it cannot be opened, or another edit is in progress. */
enum gguf_status gg_header_lock(const char *path, const struct gg_mapfile *m,
                                int *fd, struct gguf_error *err);
/* Unlock and close fd. -1 is allowed. */
void gg_header_unlock(int fd);

/* Write header over the first bytes of the file fd, which m maps, and wait for
 * the disk. The file gets another modification time. *begun receives whether
 * the file may have changed; the message of a failure says so, too. */
enum gguf_status gg_header_overwrite(int fd, const struct gg_mapfile *m,
                                     const void *header, uint64_t size,
                                     bool *begun, struct gguf_error *err);

#endif
