/* SPDX-License-Identifier: MIT */
/* digest.h - checksums of tensors, models and files, and manifests of them
 *
 * Three kinds of digests are computed:
 *
 *   tensor   Digest of the bytes of one tensor's data.
 *   model    Digest of the data of all tensors, one after another in the order
 *            of the list, without padding.
 *   file     Digest of every byte of a file. With SHA-256 it is the number
 *            that download pages print.
 *
 * Digests of tensors and models do not cover metadata. They stay the same when
 * metadata is edited, a model is split or merged, or the alignment changes.
 *
 * A manifest is a text with the digests of one model, to compare it with
 * later.
 *
 * XXH64 and XXH3 find accidental changes. They do not protect against
 * attackers; SHA-256 does.
 *
 *     struct gguf_digest model;
 *     char text[GGUF_DIGEST_TEXT_SIZE];
 *     if (gguf_digest_tensors(file, NULL, NULL, &model, &err) != GGUF_OK)
 *         return fail(err.message);
 *     gguf_digest_format(&model, text);
 */
#ifndef GGUF_DIGEST_H
#define GGUF_DIGEST_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- digests --- */

/* Algorithm of a digest, with its name. */
enum gguf_digest_algo {
    GGUF_DIGEST_XXH64 = 0,    /* "xxh64": XXH64, seed 0; 8 bytes */
    GGUF_DIGEST_XXH3_128 = 1, /* "xxh3-128": XXH3, seed 0; 16 bytes */
    GGUF_DIGEST_SHA256 = 2    /* "sha256": SHA-256 (FIPS 180-4); 32 bytes */
};
#define GGUF_N_DIGESTS 3 /* number of algorithms */

/* Bytes that hold any digest as text, with its NUL. */
#define GGUF_DIGEST_TEXT_SIZE 65

/* A digest. Later versions add no members to this struct. */
struct gguf_digest {
    enum gguf_digest_algo algo; /* algorithm */
    unsigned char bytes[32];    /* digest in canonical (big-endian) order; the
                                 * algorithm says how long it is */
};

/* Name of an algorithm; NULL if it is unknown. Threads: any. Since: 0.1 */
GGUF_API const char *gguf_digest_algo_name(enum gguf_digest_algo algo);

/* Find the algorithm of a name, such as "sha256". Returns false, and does not
 * change *algo, if the name is unknown. Threads: any. Since: 0.1 */
GGUF_API bool gguf_digest_algo_find(const char *name,
                                    enum gguf_digest_algo *algo);

/* Format a digest as lower-case hexadecimal digits.
 *
 * d     The digest.
 * out   Receives 16, 32 or 64 digits and a NUL. GGUF_DIGEST_TEXT_SIZE bytes
 *       are enough for any algorithm.
 *
 * Threads: any. Since: 0.1 */
GGUF_API void gguf_digest_format(const struct gguf_digest *d, char *out);

/* Do two digests have the same algorithm and value? Threads: any.
 * Since: 0.1 */
GGUF_API bool gguf_digest_equal(const struct gguf_digest *a,
                                const struct gguf_digest *b);

/* How to compute digests of an open file. */
struct gguf_digest_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator for the call. NULL: malloc. */
    const struct gguf_allocator *allocator;

    enum gguf_digest_algo algo; /* algorithm; 0: GGUF_DIGEST_XXH64 */

    /* Threads to use. NULL: the calling thread. */
    struct gguf_pool *pool;

    /* Called with the bytes that are done and all of them, on the thread that
     * called. */
    struct gguf_progress_callback progress;
};
#define GGUF_DIGEST_PARAMS_INIT GGUF_INIT(struct gguf_digest_params)

/* Compute the digests of tensors, of the model, or both.
 *
 * file      An open file or set.
 * params    How to compute. NULL: the defaults.
 * tensors   Receives a digest for each tensor, in the order of the list. NULL:
 *           not wanted.
 * model     Receives the digest of the model. NULL: not wanted.
 *
 * Each byte is read once. Digests of tensors use all threads of the pool. The
 * digest of a model is one stream: more than two threads hardly make it
 * faster.
 *
 * GGUF_OK            The digests are computed.
 * GGUF_E_INVALID     The algorithm is unknown.
 * GGUF_E_IO          The file cannot be read.
 * GGUF_E_TRUNCATED   The file has become shorter.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status
gguf_digest_tensors(const struct gguf_file *file,
                    const struct gguf_digest_params *params,
                    struct gguf_digest *tensors, struct gguf_digest *model,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the digest of every byte of a file, or of each shard of a set.
 *
 * file     An open file or set.
 * params   How to compute. NULL: the defaults.
 * shards   Receives gguf_file_n_shards() digests, in the order of the shards.
 *
 * Each shard is one stream for one thread.
 *
 * GGUF_OK            The digests are computed.
 * GGUF_E_INVALID     The algorithm is unknown.
 * GGUF_E_IO          A file cannot be read.
 * GGUF_E_TRUNCATED   A file has become shorter.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status gguf_digest_shards(
    const struct gguf_file *file, const struct gguf_digest_params *params,
    struct gguf_digest *shards, struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the digest of bytes in memory.
 *
 * out    Receives the digest.
 * algo   Algorithm.
 * data   The bytes.
 * size   Number of bytes.
 *
 * GGUF_OK          *out is the digest.
 * GGUF_E_INVALID   The algorithm is unknown.
 * GGUF_E_NOMEM     Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_digest_bytes(struct gguf_digest *out, enum gguf_digest_algo algo,
                  const void *data, size_t size,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* ----------------------------------------------------------- manifests ---
 *
 * A manifest has a line for each digest. Digests of tensors and models are
 * written as llama-gguf-hash does: the algorithm padded to 8 columns, two
 * spaces, the digits, two spaces, then FILE:TENSOR or, for the model, FILE.
 * Digests of files are written as sha256sum does: the digits, two spaces (or a
 * space and an asterisk), FILE.
 *
 * Names are escaped as by gguf_text_escape(). Names that other programs wrote
 * unescaped are found, too. */

/* Format the line for a tensor or a model.
 *
 * out      Receives the line, cut to size - 1 bytes, with a NUL and without a
 *          newline. May be NULL if size is 0.
 * size     Bytes at out.
 * d        Digest of the tensor or model.
 * file     Name of the model's file.
 * tensor   Name of the tensor; empty: the line is for the model.
 *
 * Returns the length of the whole line in bytes, as snprintf() does.
 *
 * Threads: any. Since: 0.1 */
GGUF_API size_t gguf_manifest_format_tensor(char *out, size_t size,
                                            const struct gguf_digest *d,
                                            struct gguf_str file,
                                            struct gguf_str tensor);

/* Format the line for a file.
 *
 * out    Receives the line, cut to size - 1 bytes, with a NUL and without a
 *        newline. May be NULL if size is 0.
 * size   Bytes at out.
 * d      Digest of the file.
 * file   Name of the file.
 *
 * Returns the length of the whole line in bytes, as snprintf() does.
 *
 * Threads: any. Since: 0.1 */
GGUF_API size_t gguf_manifest_format_file(char *out, size_t size,
                                          const struct gguf_digest *d,
                                          struct gguf_str file);

/* A manifest that was parsed. It does not change: any number of threads may
 * read it. */
struct gguf_manifest;

/* Parse the manifest of one model.
 *
 * out         Receives the manifest. NULL after a failure.
 * text        The text. Copied.
 * size        Bytes of text.
 * allocator   Allocator of the manifest. It must outlive the manifest. NULL:
 *             malloc.
 *
 * Empty lines are ignored. Lines with other algorithms, such as sha1, are
 * counted: gguf_manifest_n_skipped(). Destroy *out with
 * gguf_manifest_destroy().
 *
 * GGUF_OK            *out is the manifest.
 * GGUF_E_FORMAT      A line is malformed. The message names it.
 * GGUF_E_DUPLICATE   A tensor or the model has two different digests.
 * GGUF_E_NOMEM       Out of memory.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_manifest_parse(struct gguf_manifest **out, const char *text, size_t size,
                    const struct gguf_allocator *allocator,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a manifest. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_manifest_destroy(struct gguf_manifest *m);

/* Number of digests of files. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_manifest_n_files(const struct gguf_manifest *m);

/* Digest of file i; NULL if i is out of range. *file receives the name of the
 * file as the manifest has it; file may be NULL. Threads: any. Since: 0.1 */
GGUF_API const struct gguf_digest *
gguf_manifest_file(const struct gguf_manifest *m, size_t i,
                   struct gguf_str *file);

/* Number of digests of tensors and models, in known algorithms. Threads: any.
 * Since: 0.1 */
GGUF_API size_t gguf_manifest_n_entries(const struct gguf_manifest *m);

/* Number of lines with unknown algorithms, which were skipped. For a program
 * that warns about them. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_manifest_n_skipped(const struct gguf_manifest *m);

/* Digest of a tensor or a model by index; NULL if i is out of range. *tensor
 * receives the name of the tensor, empty for the model; tensor may be NULL.
 * Threads: any. Since: 0.1 */
GGUF_API const struct gguf_digest *
gguf_manifest_entry(const struct gguf_manifest *m, size_t i,
                    struct gguf_str *tensor);

/* Find the digest of a tensor or of the model.
 *
 * m        The manifest.
 * algo     Algorithm of the digest.
 * tensor   Name of the tensor; empty: the model.
 *
 * Returns NULL if the manifest does not have it. The name of the file does not
 * matter.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const struct gguf_digest *
gguf_manifest_find(const struct gguf_manifest *m, enum gguf_digest_algo algo,
                   struct gguf_str tensor);

#ifdef __cplusplus
}
#endif
#endif
