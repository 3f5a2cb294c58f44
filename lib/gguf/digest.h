/* SPDX-License-Identifier: MIT */
/* digest.h - checksums of tensors and models, and manifests of them
 *
 * A digest covers tensor data only, so that it stays the same when metadata is
 * edited, when a model is split or merged, and when alignment changes. A
 * tensor's digest is that of its bytes; a model's is that of all its tensors'
 * bytes one after another in the order of the list, without padding.
 *
 * A digest of a whole file (gguf_digest_shards) covers every byte of it,
 * metadata too: with SHA-256 it is the number that download pages print.
 *
 * XXH64 and XXH3 find accidents; they do not protect against attackers.
 */
#ifndef GGUF_DIGEST_H
#define GGUF_DIGEST_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gguf_digest_algo {
    GGUF_DIGEST_XXH64 = 0,    /* "xxh64": XXH64, seed 0 */
    GGUF_DIGEST_XXH3_128 = 1, /* "xxh3-128": XXH3, 128 bits, seed 0 */
    GGUF_DIGEST_SHA256 = 2    /* "sha256": SHA-256 (FIPS 180-4) */
};
#define GGUF_N_DIGESTS 3

/* Bytes in canonical (big-endian) order; 8, 16 or 32 of them count. A value, in
 * the caller's storage: it never grows. */
struct gguf_digest {
    enum gguf_digest_algo algo;
    unsigned char bytes[32];
};

/* NULL for an unknown number, -1 for an unknown name. Since: 0.1 */
GGUF_API const char *gguf_digest_algo_name(enum gguf_digest_algo algo);
GGUF_API int gguf_digest_algo_find(const char *name);

/* As text: 16, 32 or 64 lower-case hexadecimal digits and a NUL, by its
 * algorithm: 65 bytes are enough for any. Since: 0.1 */
GGUF_API void gguf_digest_format(const struct gguf_digest *d, char *out);

/* 1 if algorithm and value are the same. Since: 0.1 */
GGUF_API int gguf_digest_equal(const struct gguf_digest *a,
                               const struct gguf_digest *b);

struct gguf_digest_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc */
    enum gguf_digest_algo algo;
    struct gguf_pool *pool;     /* NULL: on the calling thread */
    gguf_progress_fn *progress; /* bytes; NULL: silent */
    void *progress_user;
};
#define GGUF_DIGEST_PARAMS_INIT GGUF_INIT(struct gguf_digest_params)

/* Digests of a file or a set of shards.
 *
 * tensors  one for each tensor; NULL: not wanted
 * model    NULL: not wanted
 * params   NULL: the defaults
 *
 * Each byte is read once, whatever is made of it. A model's digest is one
 * stream: with it, more than two threads bring little; tensors' digests
 * alone take any number. GGUF_E_CANCELLED, GGUF_E_NOMEM, GGUF_E_INVALID,
 * GGUF_E_IO, GGUF_E_TRUNCATED (a file became shorter). Since: 0.1 */
GGUF_API enum gguf_status
gguf_digest_tensors(const struct gguf_file *file,
                    const struct gguf_digest_params *params,
                    struct gguf_digest *tensors, struct gguf_digest *model,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Digests of every byte of each file as it is on the disk: whole[i] is that of
 * shard i. Each shard is one stream for one thread. params as above. Fails as
 * gguf_digest_tensors. Since: 0.1 */
GGUF_API enum gguf_status gguf_digest_shards(
    const struct gguf_file *file, const struct gguf_digest_params *params,
    struct gguf_digest *whole, struct gguf_error *err) GGUF_MUST_CHECK;

/* The digest of size bytes at data, of a text for example. GGUF_E_NOMEM,
 * GGUF_E_INVALID. Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_digest_bytes(struct gguf_digest *out, enum gguf_digest_algo algo,
                  const void *data, size_t size,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* ----------------------------------------------------------- manifests ---
 *
 * Lines as llama-gguf-hash writes them: the algorithm in 8 columns, two
 * blanks, the digits, two blanks, FILE:TENSOR or, for the model, FILE. And as
 * sha256sum writes them, of a whole file: the digits, two blanks (or a blank
 * and an asterisk), FILE. Names are written as gguf_text_escape() gives them,
 * and found both escaped and as they are, as other programs write them. */

/* One line of a manifest without its end; tensor.size 0: the model's. Like
 * snprintf: returns the length of the line, writes what fits. Since: 0.1 */
GGUF_API size_t gguf_manifest_format_tensor(char *out, size_t size,
                                            const struct gguf_digest *d,
                                            struct gguf_str file,
                                            struct gguf_str tensor);

struct gguf_manifest;

/* The same for a whole file's SHA-256, as sha256sum writes it. Since: 0.1 */
GGUF_API size_t gguf_manifest_format_file(char *out, size_t size,
                                          const struct gguf_digest *d,
                                          struct gguf_str file);

/* Read a manifest of one model. Lines of other algorithms (sha1, uuid)
 * are counted and passed over, empty ones ignored. text is not needed
 * afterwards. GGUF_E_FORMAT (the message names the line), GGUF_E_DUPLICATE
 * (two digests for one thing), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_manifest_parse(struct gguf_manifest **out, const char *text, size_t size,
                    const struct gguf_allocator *allocator,
                    struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_manifest_destroy(struct gguf_manifest *m);

/* Whole files' digests: their number, and the i-th with the file's name as it
 * is written there; NULL if i is out of range. Since: 0.1 */
GGUF_API size_t gguf_manifest_n_files(const struct gguf_manifest *m);
GGUF_API const struct gguf_digest *
gguf_manifest_file(const struct gguf_manifest *m, size_t i,
                   struct gguf_str *file);

/* Number of entries whose algorithm is known here, but for whole files.
 * Since: 0.1 */
GGUF_API size_t gguf_manifest_n_entries(const struct gguf_manifest *m);
/* Number of lines with other algorithms. Since: 0.1 */
GGUF_API size_t gguf_manifest_n_skipped(const struct gguf_manifest *m);
/* The i-th entry's digest, NULL if i is out of range; *tensor (may be NULL)
 * becomes its tensor's name, of size 0 for the model. Since: 0.1 */
GGUF_API const struct gguf_digest *
gguf_manifest_entry(const struct gguf_manifest *m, size_t i,
                    struct gguf_str *tensor);
/* The digest of a tensor (or, size 0, of the model); NULL if there is none.
 * The file's name does not matter. Since: 0.1 */
GGUF_API const struct gguf_digest *
gguf_manifest_find(const struct gguf_manifest *m, enum gguf_digest_algo algo,
                   struct gguf_str tensor);

#ifdef __cplusplus
}
#endif
#endif
