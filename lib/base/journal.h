/* SPDX-License-Identifier: MIT */
/* journal.h - journals of runs that can be resumed
 *
 * A journal is a file beside the output of a run. It records which parts of the
 * output are complete, so that the next run keeps them and makes the rest. All
 * kinds of runs share one format, little-endian:
 *
 *     8 letters            kind of run
 *     u32                  GG_JOURNAL_FORMAT
 *     u32                  bytes of a record
 *     16 bytes             digest of the plan: of everything that determines
 *                          the output (XXH3, 128 bits)
 *     records, each        u32 type, u32 number, contents of the type, and the
 *                          XXH3 (u64) of the bytes before
 *
 * A reader ignores the first torn or wrong record and all records after it.
 *
 * The output of a run grows in temporaries: PATH + GG_OUTFILE_PART for each of
 * its files. A temporary counts only if the journal has its inode. A file of
 * that name that no run made is refused and stays. So is one that is not a
 * regular file, has a second name, or is not trusted (gg_file_id_open()).
 * The process that writes a journal holds a lock on it (fcntl()), so only one
 * run works at a time.
 *
 *     gg_journal_open(&j, &kind, &plan, ...);    read the records
 *     gg_journal_open_part(&j, no, path, ...);   for each file
 *     gg_journal_append(&j, record, ...);        for each part of the output
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
    GG_JOURNAL_FRAME = 16, /* bytes of a record without its contents */
    /* Types of records. A kind of run has its own from GG_JOURNAL_OWN on. */
    GG_JOURNAL_PART = 1, /* u64 inode: temporary of the file `number' */
    GG_JOURNAL_NAME =
        2, /* u64 inode: this temporary is about to get its name */
    GG_JOURNAL_OWN = 16
};

/* ---- the bytes ---- */

/* Encode a head. magic is 8 letters, record_size the bytes of a record. */
void gg_journal_put_head(uint8_t b[GG_JOURNAL_HEAD], const char *magic,
                         uint32_t record_size, const XXH128_canonical_t *plan);
/* Set type, number and checksum of the record b of size bytes. */
void gg_journal_seal(uint8_t *b, size_t size, uint32_t type, uint32_t number);
/* Is the checksum of the record b of size bytes right? */
bool gg_journal_is_whole(const uint8_t *b, size_t size);

/* ---- the journal ---- */

/* A kind of run. */
struct gg_journal_kind {
    const char *magic;    /* 8 letters */
    uint32_t record_size; /* bytes; at most GG_JOURNAL_MAX_RECORD */
    /* Ends of messages that begin with "PATH is", for a file that is not a
     * journal of this kind, and for one with another plan. */
    const char *is_none;
    const char *is_other;
};
enum { GG_JOURNAL_MAX_RECORD = 256 };

/* State of one file of the output. */
struct gg_journal_file {
    uint64_t named;       /* inode that was about to get its name; 0: none */
    uint64_t part;        /* inode of the temporary; 0: unknown */
    struct gg_file_id id; /* identity of the temporary, once it is open */
    char *part_path;      /* path of the temporary; NULL: not open yet */
};

struct gg_journal {
    const struct gguf_allocator *allocator;
    const struct gg_journal_kind *kind;
    int fd;                        /* descriptor; -1: not open */
    char *path;                    /* path of the journal */
    bool found;                    /* the journal existed before this run */
    pthread_mutex_t lock;          /* protects end */
    bool has_lock;                 /* lock is initialized */
    uint64_t end;                  /* byte after the last record */
    struct gg_journal_file *files; /* files of the output */
    size_t n_files;                /* number of files */
};

/* Receive a record of the kind's own types. Return false if it is not valid:
 * then it and all records after it are dropped. */
typedef bool gg_journal_record_fn(void *user, const uint8_t *record);

/* Open the journal of an output or create it, lock it, and read its records.
 *
 * path      Path of the output. The journal is at path + GG_JOURNAL_SUFFIX.
 * n_files   Number of files of the output.
 * sync      Wait for the disk if the journal is created.
 * take      Receives the records of the kind's own types.
 *
 * After a failure j is closed, and a journal that was created is removed.
 *
 * GGUF_E_MISMATCH: the journal has another plan, is not a journal, or is not
 * trusted. GGUF_E_IO: a file cannot be read or written, or another process
 * holds the lock. GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_journal_open(struct gg_journal *j,
                                 const struct gg_journal_kind *kind,
                                 const XXH128_canonical_t *plan,
                                 const char *path, size_t n_files, bool sync,
                                 gg_journal_record_fn *take, void *user,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);

/* Append the record b, which has the kind's size and its contents filled in.
 * Any thread may call this. GGUF_E_IO, GGUF_E_NOSPACE. */
enum gguf_status gg_journal_append(struct gg_journal *j, uint8_t *b,
                                   uint32_t type, uint32_t number,
                                   struct gguf_error *err);

/* Wait until the journal is on the disk. GGUF_E_IO. */
enum gguf_status gg_journal_sync(const struct gg_journal *j,
                                 struct gguf_error *err);

/* Close the journal, and remove it if discard. Returns 0, or the errno of the
 * reason why it could not be removed. A closed journal is allowed. */
int gg_journal_close(struct gg_journal *j, bool discard);

/* ---- files of the output ---- */

/* Create the temporary of a file and record it, unless an earlier run did.
 *
 * no     Index of the file.
 * path   Path that the file gets in the end.
 * made   Receives whether the temporary is new: this run created it, or the
 *        journal did not have one. May be NULL.
 *
 * GGUF_E_MISMATCH: another file has the name of the temporary. GGUF_E_IO,
 * GGUF_E_NOSPACE, GGUF_E_NOMEM. */
enum gguf_status gg_journal_open_part(struct gg_journal *j, size_t no,
                                      const char *path, bool *made,
                                      struct gguf_error *err);

/* Record that file no is about to get its name. GGUF_E_IO, GGUF_E_NOSPACE. */
enum gguf_status gg_journal_note_publish(struct gg_journal *j, size_t no,
                                         struct gguf_error *err);

/* If an earlier run gave file no, of size bytes, its name path, turn it into
 * the temporary again. Another file of that name stays. */
enum gguf_status gg_journal_unpublish(const struct gg_journal *j, size_t no,
                                      const char *path, uint64_t size,
                                      struct gguf_error *err);

/* Remove the temporaries that are open. Does not allocate. */
void gg_journal_discard_parts(const struct gg_journal *j);

/* Remove the files that a run of this kind left beside its output: the journal,
 * if this user owns it and no process holds it, and the temporaries in its
 * folder that it lists.
 *
 * path   Path of the output.
 * n      Receives the number of files that were removed.
 *
 * GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_journal_discard(const struct gg_journal_kind *kind,
                                    const char *path, size_t *n,
                                    struct gguf_error *err);

#endif
