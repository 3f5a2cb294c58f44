/* SPDX-License-Identifier: MIT */
/* edit.h - change the metadata of a GGUF file
 *
 * gguf_edit_apply() gives a file other metadata; the list of tensors and their
 * data stay. It can also change the byte order of a file.
 *
 *     if (gguf_file_open(&file, path, NULL, &err) != GGUF_OK ||
 *         gguf_meta_create(&meta, NULL, &err) != GGUF_OK ||
 *         gguf_meta_copy_file(meta, file, &err) != GGUF_OK ||
 *         gguf_meta_set_strz(meta, "general.name", "Better", &err) ||
 *         gguf_edit_apply(file, meta, NULL, NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 *
 * A small file is copied. A large file is edited in place if the new header
 * fits before the tensor data; then only the header is written. The rest of
 * that room is filled by the pair GGUF_EDIT_PADDING_KEY, an array of u8 zeros,
 * because readers expect tensor data right after the header. A large file that
 * must be copied gets the pair, too, if the copy can then share the extents of
 * the old file. Other copies that an edit makes drop the pair, and so does
 * quantization. A split set keeps it, so that merging restores the file.
 *
 * A process that dies leaves the old file or the new one, at any time. A copy
 * takes the file's name when it is complete, with its mode and, if this user
 * may give files away, its owner. An edit in place first saves the new header
 * in PATH.edit-journal, readable by those who may read the file. While the
 * journal exists, gguf_file_open() reads the header from it, and
 * gguf_edit_recover() finishes the edit. Programs that do not know the
 * journal, or open the file by another hard link, may read a half-written
 * header until then. A program that opens the file with gguf_file_open()
 * during an edit sees the old metadata or the new, and keeps it.
 *
 * Headers of more than 64 MiB are never written in place. On file systems with
 * locks, one process at a time can edit a file.
 */
#ifndef GGUF_EDIT_H
#define GGUF_EDIT_H

#include <gguf/file.h>
#include <gguf/meta.h>
#include <gguf/paths.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Key of the pair that fills unused room before the tensor data. */
#define GGUF_EDIT_PADDING_KEY "libgguf.padding"

/* Size in bytes from which a file counts as large. */
#define GGUF_EDIT_LARGE (UINT64_C(64) << 20)

/* Choice between editing in place and copying. */
enum gguf_edit_mode {
    GGUF_EDIT_AUTO,    /* copy small files; edit large files in place if
                        * possible, else copy them */
    GGUF_EDIT_COPY,    /* always copy, without a padding pair */
    GGUF_EDIT_IN_PLACE /* always edit in place; fail if that is impossible */
};

/* Byte order of the new file, of its header and of the numbers in its tensor
 * data.
 *
 * Changing the order twice restores the file byte for byte, except for a
 * padding pair. A big-endian file has version 3 of GGUF. */
enum gguf_edit_byte_order {
    GGUF_EDIT_KEEP_ORDER,
    GGUF_EDIT_LITTLE_ENDIAN,
    GGUF_EDIT_BIG_ENDIAN
};

/* How a file was edited. */
enum gguf_edit_result {
    GGUF_EDIT_WROTE_HEADER, /* the header was written in place */
    GGUF_EDIT_CLONED,       /* a clone that shares the old file's extents took
                             * its name */
    GGUF_EDIT_COPIED        /* the file was copied */
};

/* How to edit a file. */
struct gguf_edit_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator for the call. NULL: malloc. */
    const struct gguf_allocator *allocator;

    enum gguf_edit_mode mode; /* edit in place, or copy */

    const char *output; /* path of a new file; NULL: edit the file itself */
    bool force;         /* replace output if it exists; never the input */
    bool no_sync;       /* do not wait for the disk: for tests */

    /* Called with the bytes that are copied and all of them, on the thread
     * that called. */
    struct gguf_progress_callback progress;

    /* Byte order of the new file. To change the order, the file is copied. */
    enum gguf_edit_byte_order byte_order;

    /* Other files of the program, which the edit must not overwrite (paths.h).
     * Not changed. NULL: none. */
    const struct gguf_paths *paths;
};
#define GGUF_EDIT_PARAMS_INIT GGUF_INIT(struct gguf_edit_params)

/* Replace the metadata of a file.
 *
 * file     File to edit. It must have been opened by gguf_file_open() without
 *          an offset. It keeps its old metadata until it is closed.
 * meta     All pairs of the new file. Not changed.
 * params   How to edit. NULL: the defaults.
 * result   Receives how the file was edited. May be NULL.
 *
 * If general.alignment changes, tensor data is laid out anew.
 *
 * GGUF_OK              The file has the new metadata.
 * GGUF_E_INVALID       file was not opened by path. Or two of the files that
 *                      are read and written are the same (paths.h). Or the
 *                      byte order shall change in place.
 * GGUF_E_UNSUPPORTED   The byte order shall change, and the layout of a
 *                      tensor's data type is unknown.
 * GGUF_E_FORMAT        general.alignment is not a u32, or not a power of two
 *                      of at least 8.
 * GGUF_E_LIMIT         general.alignment is above GGUF_WRITER_MAX_ALIGNMENT.
 * GGUF_E_MISMATCH      The path leads to another file now, or the file has
 *                      changed since it was opened.
 * GGUF_E_NOSPACE       The header does not fit in place (GGUF_EDIT_IN_PLACE),
 *                      or the disk is full.
 * GGUF_E_EXIST         output exists and force is not set. Or a file that is
 *                      not a journal has the name of the journal.
 * GGUF_E_IO            A file cannot be read or written, or another process is
 *                      editing the file.
 * GGUF_E_CANCELLED     The progress callback returned true.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_edit_apply(const struct gguf_file *file, const struct gguf_meta *meta,
                const struct gguf_edit_params *params,
                enum gguf_edit_result *result,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Finish an edit that was interrupted.
 *
 * path   Path of the file.
 * done   Receives whether there was an edit to finish. May be NULL.
 *
 * GGUF_OK           No edit of the file is unfinished any more.
 * GGUF_E_IO         A file cannot be read or written, or the edit is still in
 *                   progress.
 * GGUF_E_MISMATCH   The file was changed while it was being recovered.
 * GGUF_E_NOMEM      Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_edit_recover(const char *path, bool *done,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
