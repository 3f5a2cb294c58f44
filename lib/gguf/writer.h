/* SPDX-License-Identifier: MIT */
/* writer.h - write a GGUF file
 *
 * A struct gguf_writer makes one file, in two steps. First it is a plan: from
 * metadata and a list of tensors follow the header, every offset and the size
 * of the file, before anything is written. Then it writes: the file grows
 * under a temporary name beside its target (without a name where the system
 * can do that) and takes its own name when it is complete and on the disk. If
 * anything fails before that, an old file of that name stays as it was and
 * nothing is left of the new one. The same plan and data give the same bytes.
 *
 *   1. gguf_writer_create() begins a plan with metadata (meta.h).
 *   2. gguf_writer_add_tensor() adds a tensor to the plan.
 *   3. gguf_writer_begin_file() begins the file and writes the header.
 *   4. gguf_writer_begin_tensor() begins the data of a tensor, and
 *      gguf_writer_write() writes it, in pieces of any size.
 *   5. gguf_writer_commit() gives the file its name.
 *   6. gguf_writer_destroy() frees the writer, after a failure, too.
 *
 *     gguf_writer_create(&w, meta, NULL, &err);
 *     for each tensor: gguf_writer_add_tensor(w, name, type, 2, ne, &err);
 *     gguf_writer_begin_file(w, "out.gguf", NULL, &err);
 *     for each tensor i:
 *         gguf_writer_begin_tensor(w, i, &err);
 *         gguf_writer_write(w, data, size, &err);
 *     gguf_writer_commit(w, &err);
 *     gguf_writer_destroy(w);
 *
 * One thread at a time may use a writer, but several threads may call
 * gguf_writer_write_at() and gguf_writer_read_at() at once. Messages do not
 * name the output: the caller has its path.
 */
#ifndef GGUF_WRITER_H
#define GGUF_WRITER_H

#include <gguf/file.h>
#include <gguf/meta.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_writer;

/* ------------------------------------------------------------ the plan --- */

/* How to encode a file. */
struct gguf_writer_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator of the writer. It must outlive the writer. NULL: malloc. */
    const struct gguf_allocator *allocator;

    uint32_t version; /* version of GGUF: 3, or 2 for old readers; 0: 3 */

    /* Write the header in big-endian order (version 3 only). Tensor data is
     * written unchanged: the program swaps it. */
    bool big_endian;
};
#define GGUF_WRITER_PARAMS_INIT GGUF_INIT(struct gguf_writer_params)

/* Largest general.alignment that is written, in bytes. A header is padded to
 * the alignment: without a limit a small file could become 2 GiB long. */
#define GGUF_WRITER_MAX_ALIGNMENT (UINT32_C(1) << 24)

/* Create a writer with an empty list of tensors.
 *
 * out      Receives the writer. NULL after a failure.
 * meta     Metadata of the file. It is encoded now and may be destroyed
 *          afterwards. Tensor data is aligned to its general.alignment, or to
 *          32 bytes without that key. NULL: no metadata.
 * params   How to encode. NULL: the defaults.
 *
 * Destroy *out with gguf_writer_destroy().
 *
 * GGUF_OK           *out is the writer.
 * GGUF_E_INVALID    params ask for a version or byte order that is not
 *                   written.
 * GGUF_E_FORMAT     general.alignment is not a u32, or not a power of two of
 *                   at least 8.
 * GGUF_E_LIMIT      general.alignment is above GGUF_WRITER_MAX_ALIGNMENT.
 * GGUF_E_OVERFLOW   The metadata does not fit in 63 bits.
 * GGUF_E_NOMEM      Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_create(struct gguf_writer **out, const struct gguf_meta *meta,
                   const struct gguf_writer_params *params,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a writer. A file that was begun and not committed is removed, unless
 * gguf_output_params.partial keeps it. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_writer_destroy(struct gguf_writer *w);

/* Add a tensor to the end of the plan.
 *
 * w        Writer whose file has not been begun.
 * name     Name: 1 to 64 bytes of UTF-8 without control characters. Copied.
 * dtype    Id of the data type (dtype.h).
 * n_dims   Number of dimensions, 0 to 4.
 * ne       n_dims numbers of elements, fastest dimension first, each at least
 *          1.
 *
 * GGUF_OK              The tensor is added.
 * GGUF_E_INVALID       The name or a dimension is not allowed, or the file has
 *                      been begun.
 * GGUF_E_DUPLICATE     The plan has a tensor of this name.
 * GGUF_E_UNSUPPORTED   The size of this data type is unknown.
 * GGUF_E_SHAPE         A row is not a multiple of the type's block.
 * GGUF_E_OVERFLOW      The tensor or the file does not fit in 63 bits.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_add_tensor(struct gguf_writer *w, struct gguf_str name,
                       uint32_t dtype, unsigned n_dims, const int64_t *ne,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Add a tensor like one of an open file: same name, type, shape and size.
 *
 * w      Writer whose file has not been begun.
 * like   Entry of the tensor in its file. It may have an unknown data type and
 *        up to GGUF_MAX_DIMS dimensions. Copied.
 *
 * For programs that copy files and must keep types that they do not know.
 *
 * GGUF_OK            The tensor is added.
 * GGUF_E_INVALID     The name is not allowed, or the file has been begun.
 * GGUF_E_DUPLICATE   The plan has a tensor of this name.
 * GGUF_E_OVERFLOW    The file does not fit in 63 bits.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_add_like(struct gguf_writer *w,
                     const struct gguf_tensor_info *like,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of tensors in the plan. Since: 0.1 */
GGUF_API size_t gguf_writer_n_tensors(const struct gguf_writer *w);

/* Tensor i of the plan, with its offset and size in the file; NULL if i is out
 * of range. It is valid until the next tensor is added. Since: 0.1 */
GGUF_API const struct gguf_tensor_info *
gguf_writer_tensor(const struct gguf_writer *w, size_t i);

/* Alignment of tensor data in bytes: each tensor begins at a multiple of it.
 * Since: 0.1 */
GGUF_API uint32_t gguf_writer_alignment(const struct gguf_writer *w);

/* Byte of the file where tensor data begins. It grows with each tensor that is
 * added. Since: 0.1 */
GGUF_API uint64_t gguf_writer_data_off(const struct gguf_writer *w);

/* Size of the file in bytes, with the padding of the last tensor. It grows
 * with each tensor that is added. Since: 0.1 */
GGUF_API uint64_t gguf_writer_file_size(const struct gguf_writer *w);

/* Encode the header, for programs that write the file themselves.
 *
 * w      The writer.
 * data   Receives the header, with its padding. It belongs to the writer and
 *        is valid until the next tensor is added.
 * size   Receives its size in bytes: gguf_writer_data_off().
 *
 * GGUF_OK        *data is the header.
 * GGUF_E_NOMEM   Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_header(struct gguf_writer *w, const void **data, size_t *size,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------ the file --- */

/* How to write a file. */
struct gguf_output_params {
    size_t struct_size; /* size of this structure in bytes */

    bool force;   /* replace an existing regular file */
    bool no_sync; /* do not wait for the disk: for tests and scratch files */

    /* Do not allocate disk space first. For jobs that share extents with
     * their input. */
    bool no_reserve;

    /* n_inputs open files that the program reads from. They must stay open
     * until the commit. The output must not be one of them, whatever its path,
     * and none of them may change until the commit. NULL elements are
     * ignored. */
    const struct gguf_file *const *inputs;
    size_t n_inputs; /* number of inputs */

    /* Keep the unfinished file as PATH.resume-data when the writer is
     * destroyed without a commit or the process is killed, so that a later
     * writer of the same plan can resume it. */
    bool partial;

    /* Resume PATH.resume-data if it exists. Needs partial. Without resume, an
     * existing PATH.resume-data is refused. */
    bool resume;
};
#define GGUF_OUTPUT_PARAMS_INIT GGUF_INIT(struct gguf_output_params)

/* Begin the file: create the temporary, allocate its space, write the header.
 *
 * w        Writer with all its tensors added.
 * path     Path that the file gets at the commit.
 * params   How to write. NULL: the defaults.
 *
 * After a failure the function may be called again.
 *
 * GGUF_OK           The file is begun.
 * GGUF_E_EXIST      path exists and params.force is not set.
 * GGUF_E_INVALID    path is an input or not a regular file, or the file has
 *                   been begun already.
 * GGUF_E_MISMATCH   PATH.resume-data exists and params.resume is not set. Or
 *                   it is not a regular file, has a second name, or belongs to
 *                   another user in a folder like /tmp.
 * GGUF_E_NOSPACE    The disk has no room for the file. The message gives the
 *                   bytes needed and free.
 * GGUF_E_IO         The file cannot be created or written.
 * GGUF_E_NOMEM      Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_begin_file(struct gguf_writer *w, const char *path,
                       const struct gguf_output_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Begin the data of a tensor.
 *
 * w   Writer whose file has been begun.
 * i   Index of the tensor. Tensors are begun in ascending order. A tensor that
 *     is left out must be written with gguf_writer_write_at(), before a later
 *     one is begun.
 *
 * GGUF_OK          gguf_writer_write() and gguf_writer_copy() now write this
 *                  tensor.
 * GGUF_E_INVALID   i is out of range or not after the tensor that was begun
 *                  last, that tensor is not complete, or no file has been
 *                  begun.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_begin_tensor(struct gguf_writer *w, size_t i,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Write the next bytes of the tensor that was begun last.
 *
 * w      Writer with a begun tensor.
 * data   The bytes, as they shall stand in the file.
 * size   Number of bytes.
 *
 * GGUF_OK          The bytes are written or buffered.
 * GGUF_E_INVALID   The tensor has fewer bytes left, or no tensor was begun.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_write(struct gguf_writer *w, const void *data, uint64_t size,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Write the next bytes of the tensor that was begun last, copied from a tensor
 * of an open file.
 *
 * w      Writer with a begun tensor.
 * file   File to copy from.
 * src    Index of the tensor in file.
 * off    First byte to copy, counted from the start of that tensor's data.
 * size   Number of bytes.
 *
 * The file system copies the bytes itself if it can.
 *
 * GGUF_OK            The bytes are written or buffered.
 * GGUF_E_INVALID     The tensor of file has no such bytes, the tensor that is
 *                    written has fewer left, or no tensor was begun.
 * GGUF_E_IO          A file cannot be read or written.
 * GGUF_E_TRUNCATED   The file to copy from has become shorter.
 * GGUF_E_NOSPACE     The disk is full.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_copy(struct gguf_writer *w, const struct gguf_file *file,
                 size_t src, uint64_t off, uint64_t size,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Write bytes of a tensor at any place. For jobs that write on several threads
 * or in another order.
 *
 * w      Writer whose file has been begun.
 * i      Index of the tensor. It must come after the tensor that was begun
 *        last.
 * off    First byte to write, counted from the start of the tensor's data.
 * data   The bytes.
 * size   Number of bytes.
 *
 * Write each byte exactly once: the writer counts bytes to find out whether a
 * tensor is complete.
 *
 * GGUF_OK          The bytes are written.
 * GGUF_E_INVALID   The tensor has no such bytes, or its turn is over.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * Threads: any number at once, while no other function but
 * gguf_writer_read_at() runs on w. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_write_at(struct gguf_writer *w, size_t i, uint64_t off,
                     const void *data, uint64_t size,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Read back bytes of a tensor. For resumed jobs that verify the data
 * they keep.
 *
 * w      Writer whose file has been begun.
 * i      Index of the tensor. It must come after the tensor that was begun
 *        last.
 * off    First byte to read, counted from the start of the tensor's data.
 * data   Receives the bytes. They must have been written, by this writer or by
 *        the one whose file it resumes.
 * size   Number of bytes.
 *
 * GGUF_OK            data is filled.
 * GGUF_E_INVALID     The tensor has no such bytes, or its turn is over.
 * GGUF_E_TRUNCATED   The file does not reach that far.
 * GGUF_E_IO          The file cannot be read.
 *
 * Threads: any number at once, while no other function but
 * gguf_writer_write_at() runs on w. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_read_at(const struct gguf_writer *w, size_t i, uint64_t off,
                    void *data, uint64_t size,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Declare a tensor complete that the resumed file already holds.
 *
 * w   Writer that resumes a file.
 * i   Index of the tensor. It must come after the tensor that was begun last.
 *
 * GGUF_OK          The tensor counts as complete.
 * GGUF_E_INVALID   The tensor does not exist, or its turn is over.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_mark_complete(struct gguf_writer *w, size_t i,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* Finish the file: wait until it is on the disk, and give it its name.
 *
 * w   Writer with all tensors complete. Afterwards it can only be destroyed.
 *
 * GGUF_OK           The file is at its path.
 * GGUF_E_INVALID    A tensor is not complete (the message names the first), or
 *                   no file has been begun.
 * GGUF_E_EXIST      The path exists by now, and params.force was not set.
 * GGUF_E_MISMATCH   An input has changed since it was opened.
 * GGUF_E_NOSPACE    The disk is full.
 * GGUF_E_IO         The file cannot be written or renamed. If only the folder
 *                   cannot be synced, the file has its name already; the
 *                   message says so.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_commit(struct gguf_writer *w,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
