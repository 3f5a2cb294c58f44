/* SPDX-License-Identifier: MIT */
/* writer.h - writing a GGUF file
 *
 * First the plan: metadata and the list of tensors determine every offset and
 * the size of the file; nothing is written yet. Then the bytes: the file grows
 * under a temporary name beside its target (without any name where the system
 * can), tensor by tensor, and takes its own name only when it is complete and
 * synced. A failure before that leaves no file, and an old one untouched. The
 * same plan and data give the same bytes.
 *
 *     gguf_writer_create(&w, meta, NULL, err);
 *     for each tensor: gguf_writer_add_tensor(w, name, type, 2, ne, err);
 *     gguf_writer_begin_file(w, "out.gguf", NULL, err);
 *     for each tensor i:
 *         gguf_writer_begin_tensor(w, i, err);
 *         gguf_writer_write(w, piece, size, err);   as often as it takes
 *     gguf_writer_commit(w, err);
 *     gguf_writer_destroy(w);                       in every case
 *
 * One thread at a time, except for gguf_writer_write_at. Errors of writing do
 * not name the path: the caller knows it.
 */
#ifndef GGUF_WRITER_H
#define GGUF_WRITER_H

#include <gguf/file.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_writer;

struct gguf_writer_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    uint32_t version; /* 3, or 2 for old readers; same layout */
    int big_endian;   /* header in big-endian order (v3 only); tensor data is
                       * written as it comes */
};
#define GGUF_WRITER_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_writer_params), NULL, 3, 0                         \
    }

/* ------------------------------------------------------------ the plan --- */

/* A header is padded to the alignment even if nothing follows: without a
 * limit, the largest alignment would turn a few bytes into 2 GiB. */
#define GGUF_WRITER_MAX_ALIGNMENT (UINT32_C(1) << 24)

/* meta may be NULL (no pairs) and is not needed afterwards. Its
 * general.alignment, or 32 without it, aligns the data. params may be NULL.
 * GGUF_E_FORMAT (general.alignment is not a u32, or not a power of two from 8
 * on), GGUF_E_LIMIT (it is above GGUF_WRITER_MAX_ALIGNMENT),
 * GGUF_E_INVALID, GGUF_E_OVERFLOW, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_create(struct gguf_writer **out, const struct gguf_meta *meta,
                   const struct gguf_writer_params *params,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Without a commit nothing stays on disk. Since: 0.1 */
GGUF_API void gguf_writer_destroy(struct gguf_writer *w);

/* The next tensor. name: 1 to 64 bytes of UTF-8 without control characters;
 * ne[n_dims], n_dims <= 4. GGUF_E_INVALID (name, dimensions, called after
 * gguf_writer_begin_file), GGUF_E_DUPLICATE, GGUF_E_UNSUPPORTED (type without a
 * known size), GGUF_E_SHAPE, GGUF_E_OVERFLOW, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_add_tensor(struct gguf_writer *w, struct gguf_str name,
                       uint32_t dtype, unsigned n_dims, const int64_t *ne,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* The next tensor, with the name, type, shape and size of one in a file: of
 * unknown types too, and with up to GGUF_MAX_DIMS dimensions. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_add_like(struct gguf_writer *w,
                     const struct gguf_tensor_info *like,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* The plan so far. tensor: offset and size where they will be; NULL if i is
 * out of range; valid until the next one is added. Since: 0.1 */
GGUF_API size_t gguf_writer_n_tensors(const struct gguf_writer *w);
GGUF_API const struct gguf_tensor_info *
gguf_writer_tensor(const struct gguf_writer *w, size_t i);
/* In bytes; each tensor begins at a multiple of it. */
GGUF_API uint32_t gguf_writer_alignment(const struct gguf_writer *w);
/* Byte where tensor data begins. */
GGUF_API uint64_t gguf_writer_data_off(const struct gguf_writer *w);
/* Bytes of the whole file, with the padding of the last tensor. */
GGUF_API uint64_t gguf_writer_file_size(const struct gguf_writer *w);

/* The header up to the tensor data, encoded, padding included: data_off
 * bytes, owned by the writer, valid until a tensor is added. GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_header(struct gguf_writer *w, const void **data, size_t *size,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* ----------------------------------------------------------- the bytes --- */

struct gguf_output_params {
    size_t struct_size;
    int force;      /* an existing regular file is replaced at commit */
    int no_sync;    /* do not wait for the disk: for tests and scratch files */
    int no_reserve; /* do not allocate disk space first: for jobs that share
                     * extents with their input */
    const struct gguf_file *const *inputs; /* files that are read from, kept */
    size_t n_inputs; /* until the commit: the output may not be one of them,
                      * whatever its path, and none may have changed */
    int partial;     /* the temporary is PATH.resume-data. Without a commit it
                  * stays, also if the process is killed, so that a later
                  * writer of the same plan can go on with it */
    int resume; /* with partial: go on with what is there; else nothing may
                  * be there */
};
#define GGUF_OUTPUT_PARAMS_INIT GGUF_INIT(struct gguf_output_params)

/* Begin the file that will be path: makes the temporary, makes sure that there
 * is room for it, writes the header. params may be NULL. GGUF_E_EXIST (path is
 * there and force is not set), GGUF_E_INVALID (path is an input, or not a
 * regular file), GGUF_E_MISMATCH (PATH.resume-data exists and resume is not
 * set; or it is not a regular file, has another name too, or in a folder like
 * /tmp another owner), GGUF_E_NOSPACE (with the bytes needed and free),
 * GGUF_E_IO, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_begin_file(struct gguf_writer *w, const char *path,
                       const struct gguf_output_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Data of tensor i comes next. Tensors are begun in order; those that are left
 * out come by gguf_writer_write_at. GGUF_E_INVALID if i is not after the last
 * one, or that one is not complete. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_begin_tensor(struct gguf_writer *w, size_t i,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* The next size bytes of that tensor. GGUF_E_INVALID if it has fewer left,
 * GGUF_E_IO, GGUF_E_NOSPACE. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_write(struct gguf_writer *w, const void *data, uint64_t size,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* The same from bytes off .. off+size of tensor src of file, by the file
 * system's own copy where there is one. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_copy(struct gguf_writer *w, const struct gguf_file *file,
                 size_t src, uint64_t off, uint64_t size,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes off .. off+size of tensor i, in any order and from any thread, while
 * no other function runs on w, and only for tensors after the last that was
 * begun. Every byte must be written exactly once, as only their number is
 * counted. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_write_at(struct gguf_writer *w, size_t i, uint64_t off,
                     const void *data, uint64_t size,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Read back bytes off .. off+size of tensor i, which must have been written,
 * by this writer or the one whose file it resumes. From any thread, as
 * gguf_writer_write_at. GGUF_E_INVALID, GGUF_E_TRUNCATED, GGUF_E_IO.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_read_at(const struct gguf_writer *w, size_t i, uint64_t off,
                    void *data, uint64_t size,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* All of tensor i was written by the writer whose file this one resumes: it
 * is complete. GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_mark_complete(struct gguf_writer *w, size_t i,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* Every tensor must be complete (GGUF_E_INVALID names the first that is not).
 * Syncs, then gives the file its name. GGUF_E_EXIST if path has come to exist
 * and force is not set; GGUF_E_MISMATCH if an input has changed since it was
 * opened. If the folder cannot be synced (GGUF_E_IO), the file has its name
 * already. The writer can only be destroyed afterwards. Since: 0.1 */
GGUF_API enum gguf_status
gguf_writer_commit(struct gguf_writer *w,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
