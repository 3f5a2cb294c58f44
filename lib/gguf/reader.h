/* SPDX-License-Identifier: MIT */
/* reader.h - models that a program reads with functions of its own
 *
 * A model need not be a file of this machine. It may be on a server, in an
 * archive or in a database. A program describes how to read it:
 *
 *   struct gguf_reader   Reads the bytes of one file. Open it with
 *                        gguf_file_open_reader().
 *   struct gguf_opener   Makes readers for paths, such as URLs. It is a member
 *                        of struct gguf_file_params, so that every function
 *                        which opens a path can open these, too.
 *
 * Opening reads the header in a few pieces, each longer than the one before.
 * Metadata and the list of tensors are then in memory, as for any other file.
 * Tensor data is not. It is read by gguf_file_read_tensor() and by functions
 * that read tensors in order: copies (writer.h, split.h), digests (digest.h),
 * quantization (quant.h) and loading weights into buffers (load.h). Functions
 * that need tensor data in memory return GGUF_E_UNSUPPORTED.
 *
 *     struct gguf_reader reader = GGUF_INIT(struct gguf_reader);
 *     reader.size = size;
 *     reader.read_at = my_read_at;
 *     reader.close = my_close;
 *     reader.user = my_state;
 *     if (gguf_file_open_reader(&file, &reader, "a name", NULL, &err))
 *         return fail(err.message);
 */
#ifndef GGUF_READER_H
#define GGUF_READER_H

#include <gguf/file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that read one file. */
struct gguf_reader {
    size_t struct_size; /* size of this structure in bytes */

    uint64_t size; /* length of the file in bytes */

    /* Copy size bytes from byte off of the file to dst.
     *
     * size is at least 1, and all bytes lie before the end of the file. The
     * function must read all of them or fail; its status and message are
     * passed on to the caller. It may be called by several threads at once if
     * several threads use the file. Required. */
    enum gguf_status (*read_at)(void *user, uint64_t off, void *dst,
                                size_t size, struct gguf_error *err);

    /* Release what user points to. Called once: when the file is closed, or
     * when it cannot be opened. NULL: no function. */
    void (*close)(void *user);

    void *user; /* first argument of both functions */

    /* Text that changes whenever the bytes of the file change, such as the
     * entity tag of a server. It must stay valid until close(). A resumed job
     * (quant.h) compares it to find out whether its input is still the same.
     * NULL: unknown; the job compares samples of the bytes instead. */
    const char *version;
};
#define GGUF_READER_INIT GGUF_INIT(struct gguf_reader)

/* Functions that open paths which are not paths of files. */
struct gguf_opener {
    size_t struct_size; /* size of this structure in bytes */

    /* Does the opener open this path? If not, the path is that of a file. The
     * answer for a path must not change. Required. */
    bool (*accepts)(void *user, const char *path);

    /* Fill *out with a reader for path.
     *
     * All members of *out are 0 but struct_size. The function is also called
     * for the other shards of a set and for the files of a folder (convert.h),
     * one after another; it returns GGUF_E_NOTFOUND if there is nothing under
     * that path. Required. */
    enum gguf_status (*open_reader)(void *user, const char *path,
                                    struct gguf_reader *out,
                                    struct gguf_error *err);

    void *user; /* first argument of both functions */
};
#define GGUF_OPENER_INIT GGUF_INIT(struct gguf_opener)

/* Open GGUF data through a reader and check its header.
 *
 * out      Receives the file. NULL after a failure.
 * reader   How to read. It is copied. Its close() is called by
 *          gguf_file_close(), or at once if opening fails.
 * name     Name that gguf_file_path() returns. NULL: none.
 * params   How to open. NULL: the defaults. limits.max_header bounds the bytes
 *          that are read to find the end of the header.
 *
 * Close *out with gguf_file_close().
 *
 * GGUF_OK          *out is open.
 * GGUF_E_INVALID   reader has no read_at().
 * GGUF_E_IO        The address space has no room for the file.
 * others           Any status of gguf_file_open() about the contents, and any
 *                  status of read_at().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_reader(struct gguf_file **out, const struct gguf_reader *reader,
                      const char *name, const struct gguf_file_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Is the file read through a reader? Then gguf_file_tensor_data() returns
 * NULL; use gguf_file_read_tensor(). Threads: any. Since: 0.1 */
GGUF_API bool gguf_file_has_reader(const struct gguf_file *file);

/* Copy bytes of a tensor, from any kind of file.
 *
 * file   An open file.
 * i      Index of the tensor in the file's list.
 * off    First byte to copy, counted from the start of the tensor's data.
 * dst    Receives size bytes, in the byte order of the file.
 * size   Number of bytes. 0 is allowed.
 *
 * GGUF_OK             dst is filled.
 * GGUF_E_INVALID      The tensor does not exist or has fewer bytes.
 * GGUF_E_IO           The file cannot be read.
 * GGUF_E_TRUNCATED    The file has become shorter since it was opened.
 * others              Any status of a reader's read_at().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_read_tensor(const struct gguf_file *file, size_t i, uint64_t off,
                      void *dst, size_t size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
