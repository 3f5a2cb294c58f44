/* SPDX-License-Identifier: MIT */
/* reader.h - files that are read by a function
 *
 * A file need not be on this machine, or not as a file: a reader gives bytes of
 * it, whatever they come from, and an opener makes readers of what stands in
 * the place of paths. Opening asks for the beginning, in a few pieces that
 * grow, until the header is there; no more is read than its end and what a
 * piece has beyond it. Metadata and the list of tensors are then as those of
 * any file. Data of tensors is read when something asks for it that reads in
 * order: copies (split.h, writer.h), sums (digest.h), jobs (quant.h), copies of
 * weights (load.h); gguf_file_read_tensor() gives any of it. What needs data in
 * memory says GGUF_E_UNSUPPORTED.
 *
 *     struct gguf_reader r = GGUF_READER_INIT;
 *     r.size = size, r.read = my_read, r.close = my_close, r.user = my_state;
 *     if (gguf_file_open_reader(&file, &r, "its name", NULL, &err) != GGUF_OK)
 *         return fail(err.message);
 */
#ifndef GGUF_READER_H
#define GGUF_READER_H

#include <gguf/file.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_reader {
    size_t struct_size;
    uint64_t size; /* bytes of the whole */

    /* Copy size bytes, at least one, from byte off on to dst. They are all
     * before the end. A failure is passed on as it is. By several threads at a
     * time, where the program or a pool has several use the file. Needed. */
    enum gguf_status (*read)(void *user, uint64_t off, void *dst, size_t size,
                             struct gguf_error *err);
    /* The last call, when the file is closed or does not open. NULL: nothing
     * is to be done. */
    void (*close)(void *user);
    void *user;

    /* A text that is another one when the bytes are, as an entity tag is; the
     * reader's, until close. By it a run that is resumed (quant.h) knows the
     * input again. NULL: there is none, and samples of the bytes are read. */
    const char *version;
};
#define GGUF_READER_INIT GGUF_INIT(struct gguf_reader)

struct gguf_opener {
    size_t struct_size;

    /* Is this path not a file's? Must say the same each time. Needed. */
    int (*takes)(void *user, const char *path);
    /* Make a reader of it, whose struct_size is set; the rest is zero. The
     * shards of a set and the files of a folder (convert.h) are asked for one
     * after another, by their names; GGUF_E_NOTFOUND: there is none of this
     * name. Needed. */
    enum gguf_status (*open)(void *user, const char *path,
                             struct gguf_reader *out, struct gguf_error *err);
    void *user;
};
#define GGUF_OPENER_INIT GGUF_INIT(struct gguf_opener)

/* Open and check as gguf_file_open does. reader is copied, and closed by
 * gguf_file_close, or when this fails. name is what gguf_file_path gives; it
 * may be NULL. Where the header ends is found within limits.max_header bytes.
 *
 * GGUF_E_INVALID  reader lacks a function
 * and what reader and gguf_file_open return, of which GGUF_E_IO only for
 * memory: addresses are set aside for all bytes of the file. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_open_reader(struct gguf_file **out, const struct gguf_reader *reader,
                      const char *name, const struct gguf_file_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Is data read through a reader? gguf_file_tensor_data is NULL then. Since: 0.1
 */
GGUF_API int gguf_file_has_reader(const struct gguf_file *file);

/* Copy size bytes from byte off on of tensor i to dst, of any file.
 * GGUF_E_INVALID (not in the tensor), GGUF_E_IO, GGUF_E_TRUNCATED (a file that
 * became shorter), and what a reader returns. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_read_tensor(const struct gguf_file *file, size_t i, uint64_t off,
                      void *dst, size_t size,
                      struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
