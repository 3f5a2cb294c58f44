/* SPDX-License-Identifier: MIT */
/* journal.h - the notes from which an interrupted run goes on
 *
 * A journal is a file beside the output of a run. It notes what of the output
 * is complete, so that the next run keeps that and makes the rest. All kinds of
 * runs share one format, little-endian:
 *
 *     8 letters            the kind of run
 *     u32                  GG_JOURNAL_FORMAT
 *     u32                  bytes of a record
 *     16 bytes             digest of the plan: of all that decides about the
 *                          bytes of the output (XXH3, 128 bits)
 *     records, each        u32 type, u32 number, contents of the type, and the
 *                          XXH3 (u64) of the bytes before
 *
 * A reader ignores everything from the first torn or wrong record on.
 *
 * The output of a run grows in temporaries: a file PATH + GG_OUTFILE_PART for
 * each of its files. A temporary counts only if the journal notes its inode,
 * so a file of that name that no run made is refused and stays. So is one that
 * is not a regular file, has another name, or is not trusted (gg_file_id_open).
 * The process that writes a journal holds a lock on it (fcntl): only one run
 * is at work at a time.
 *
 *     gg_journal_open(&j, &kind, &plan, &files, ...);   reads the records
 *     gg_journal_open_part(&j, no, path, err);          for each file
 *     gg_journal_append(&j, record, err);               as often as it takes
 *     gg_journal_close(&j, done);
 */
#ifndef GG_BASE_JOURNAL_H
#define GG_BASE_JOURNAL_H

#include "base/error.h"
#include "base/file_id.h"
#include "gguf/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <xxhash.h>

#define GG_JOURNAL_SUFFIX ".resume"

enum {
    GG_JOURNAL_FORMAT = 4,
    GG_JOURNAL_HEAD = 32,  /* bytes before the first record */
    GG_JOURNAL_FRAME = 16, /* bytes of a record beside its contents */
    /* types of records; a kind of run has its own from GG_JOURNAL_OWN on */
    GG_JOURNAL_PART = 1, /* u64 inode: temporary of file number `number' */
    GG_JOURNAL_NAME =
        2, /* u64 inode: the temporary is about to get its name */
    GG_JOURNAL_OWN = 16
};

/* ---- the bytes ---- */

/* Write a head. magic: 8 letters; record_size: bytes of a record. */
void gg_journal_put_head(uint8_t b[GG_JOURNAL_HEAD], const char *magic,
                         uint32_t record_size, const XXH128_canonical_t *plan);
/* Write type, number and checksum of the record b, of size bytes. */
void gg_journal_seal(uint8_t *b, size_t size, uint32_t type, uint32_t number);
/* Is the checksum of the record b right? */
bool gg_journal_is_whole(const uint8_t *b, size_t size);

/* ---- the journal ---- */

/* A kind of runs. */
struct gg_journal_kind {
    const char *magic;    /* 8 letters */
    uint32_t record_size; /* bytes; at most GG_JOURNAL_MAX_RECORD */
    /* ends of messages that begin with "PATH is" */
    const char *is_none;  /* the file is not of this kind or format */
    const char *is_other; /* the plan differs */
};
enum { GG_JOURNAL_MAX_RECORD = 256 };

/* A file of the output. */
struct gg_journal_file {
    uint64_t named;       /* inode that is about to get its name; 0: none */
    uint64_t part;        /* inode of the temporary; 0: unknown */
    struct gg_file_id id; /* identity of the temporary, once it is open */
    char *part_path;      /* path of the temporary; NULL: not open yet */
};

struct gg_journal {
    const struct gguf_allocator *allocator;
    const struct gg_journal_kind *kind;
    int fd;     /* -1: not open */
    char *path; /* path of the journal */
    bool found; /* the journal existed before this run */
    pthread_mutex_t lock;
    bool has_lock; /* lock is initialised */
    uint64_t end;  /* byte after the last record; under lock */
    struct gg_journal_file *files;
    size_t n_files;
};

/* Take a record of the kind's own types; false: it is not valid, and it and
 * the records after it are dropped. */
typedef bool gg_journal_record_fn(void *user, const uint8_t *record);

/* Open the journal of the output path, of n_files files, or make it; lock it,
 * and read its records. sync: wait for the disk when it is made. On failure j
 * is closed, and a journal that was made is removed. GGUF_E_MISMATCH (another
 * plan, no journal, or a file that is not trusted), GGUF_E_IO (also: another
 * process holds it), GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_journal_open(struct gg_journal *j,
                                 const struct gg_journal_kind *kind,
                                 const XXH128_canonical_t *plan,
                                 const char *path, size_t n_files, bool sync,
                                 gg_journal_record_fn *take, void *user,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);

/* Append a record of the kind's size, whose contents are filled in. From any
 * thread. */
enum gguf_status gg_journal_append(struct gg_journal *j, uint8_t *b,
                                   uint32_t type, uint32_t number,
                                   struct gguf_error *err);

/* Wait for the disk. */
enum gguf_status gg_journal_sync(const struct gg_journal *j,
                                 struct gguf_error *err);

/* Close the journal; discard: and remove it. Returns 0, or the errno of why it
 * stays. Fine on a closed journal. */
int gg_journal_close(struct gg_journal *j, bool discard);

/* ---- files of the output ---- */

/* Make sure that the temporary of file number no, whose output is path, exists
 * and is noted, whether this run makes it or an earlier one did. *made (may be
 * NULL): this run makes it, or an earlier one had noted no temporary.
 * GGUF_E_MISMATCH: another file has the name of the temporary. */
enum gguf_status gg_journal_open_part(struct gg_journal *j, size_t no,
                                      const char *path, bool *made,
                                      struct gguf_error *err);

/* Note that file number no is about to get its name. */
enum gguf_status gg_journal_note_publish(struct gg_journal *j, size_t no,
                                         struct gguf_error *err);

/* If an earlier run gave file number no, of size bytes, its name path, turn it
 * into the temporary again. Another file of that name stays. */
enum gguf_status gg_journal_unpublish(const struct gg_journal *j, size_t no,
                                      const char *path, uint64_t size,
                                      struct gguf_error *err);

/* Remove the temporaries that are open. Needs no memory. */
void gg_journal_discard_parts(const struct gg_journal *j);

/* Remove the files that a run of that kind left beside the output path: the
 * journal, if this user owns it and no process holds it, and the temporaries
 * in its folder that it notes. *n: files that were removed. GGUF_E_IO,
 * GGUF_E_NOMEM. */
enum gguf_status gg_journal_discard(const struct gg_journal_kind *kind,
                                    const char *path, size_t *n,
                                    struct gguf_error *err);

#endif
