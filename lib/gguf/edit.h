/* SPDX-License-Identifier: MIT */
/* edit.h - other metadata for a file whose tensors stay
 *
 *     gguf_file_open(&file, path, NULL, err);
 *     gguf_meta_create(&meta, NULL, err);
 *     gguf_meta_copy_file(meta, file, err);
 *     gguf_meta_set_strz(meta, "general.name", "Better", err);
 *     gguf_edit_apply(file, meta, NULL, NULL, err);
 *     gguf_file_close(file);
 *
 * A large file is not copied if the new header can fill the room of the old
 * one: tensor data stays where it is. A pair without meaning,
 * GGUF_EDIT_PADDING_KEY, an array of u8 zeros, fills the rest of the room,
 * because readers expect the tensor data right after the header. A file that
 * is copied for lack of room gets this pair too if that lets the copy share
 * the old file's extents. Small files are always copied and never padded. The
 * pair is dropped by every other copy that an edit makes, and by quantization;
 * a split set keeps it, so that merging gives back the file.
 *
 * Whenever the process dies, what is left is the old file or the new one. A
 * complete copy takes the file's name, its mode and, if this user may give
 * files away, its owner. In place, the new header is first saved beside the
 * file in PATH.edit-journal, readable by those who may read the file. As long
 * as the journal is there, gguf_file_open reads the header from it, and
 * gguf_edit_recover finishes the job. Until then, programs that do not know
 * the journal, or that open the file by another hard link, may meet a
 * half-written header. A program that opens the file with gguf_file_open
 * during the edit gets the old metadata or the new, and keeps them. Headers of
 * more than 64 MiB are never written in place. Where the file system has
 * locks, a file is edited by one process at a time.
 */
#ifndef GGUF_EDIT_H
#define GGUF_EDIT_H

#include <gguf/file.h>
#include <gguf/paths.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_EDIT_PADDING_KEY "libgguf.padding"

/* Files of this size and more are edited in place where that is possible. */
#define GGUF_EDIT_LARGE (UINT64_C(64) << 20)

enum gguf_edit_mode {
    GGUF_EDIT_AUTO,    /* as described above */
    GGUF_EDIT_COPY,    /* always a plain copy, no padding pair */
    GGUF_EDIT_IN_PLACE /* never a copy of the data, however small the file */
};

/* Byte order of the metadata and of the numbers in tensor data that are
 * written. A file of version 2 becomes version 3 if it is to be big-endian.
 * Everything else stays in its place, so that changing the order twice gives
 * the first file again, byte for byte, except for a padding pair. */
enum gguf_edit_byte_order {
    GGUF_EDIT_KEEP_ORDER,
    GGUF_EDIT_LITTLE_ENDIAN,
    GGUF_EDIT_BIG_ENDIAN
};

/* What was done. */
enum gguf_edit_result {
    GGUF_EDIT_WROTE_HEADER, /* in place */
    GGUF_EDIT_CLONED,       /* a clone that shares the old file's data on disk
                             * took its name */
    GGUF_EDIT_COPIED
};

struct gguf_edit_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc */
    enum gguf_edit_mode mode;
    const char *output; /* NULL: the file itself; else a new file */
    int force;          /* output may replace a file, but not the input */
    int no_sync;        /* do not wait for the disk (fsync): for tests */
    gguf_progress_fn *progress; /* bytes copied; NULL: silent */
    void *progress_user;
    enum gguf_edit_byte_order order; /* changing it always makes a copy */
    const struct gguf_paths *paths;  /* the caller's other files, which are not
                                     * written to here. Borrowed; NULL: none */
};
#define GGUF_EDIT_PARAMS_INIT GGUF_INIT(struct gguf_edit_params)

/* Give file the pairs of meta and no others. Version, byte order (unless
 * params->order changes it) and the list of tensors stay; with another
 * general.alignment the data is laid out anew.
 * file must come from gguf_file_open, without an offset; it has the old
 * metadata afterwards. params and way may be NULL.
 *
 * GGUF_E_INVALID (file not opened by path; two of the files to read and write
 * are the same file, paths.h; another byte order in place), GGUF_E_UNSUPPORTED
 * (another byte order, and a tensor in which the places of the numbers are
 * unknown), GGUF_E_MISMATCH (path names another file now, or the file has
 * changed since it was opened, or changes during the edit), GGUF_E_FORMAT
 * (alignment), GGUF_E_LIMIT (alignment above GGUF_WRITER_MAX_ALIGNMENT),
 * GGUF_E_NOSPACE (in place only, and the header does not fit; or no room on
 * the disk), GGUF_E_EXIST (output; or a file that is not a journal has the
 * journal's name),
 * GGUF_E_IO (also: the file may not be written to, or
 * is being edited already), GGUF_E_CANCELLED, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_edit_apply(const struct gguf_file *file, const struct gguf_meta *meta,
                const struct gguf_edit_params *params,
                enum gguf_edit_result *way,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Finish an edit that was interrupted; *done (may be NULL) is 1 if there was
 * one. GGUF_E_IO (also: the edit is still going on), GGUF_E_MISMATCH,
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_edit_recover(const char *path, int *done,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
