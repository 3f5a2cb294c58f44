/* baseline.h - files of a base's logits, in the form of llama.cpp
 *
 * Such a file holds, for the second half of each chunk of a text, what a model
 * predicts after each token, so that others can be compared with it later
 * (gguf/kld.h). Little-endian, whatever the machine:
 *
 *     8 bytes   "_logits_"
 *     int32     n_ctx, n_vocab, n_chunks
 *     int32     n_chunks * n_ctx token ids, as tokenized: without the BOS that
 *               is put at each chunk's begin
 *     then for each chunk, after its tokens n_ctx / 2 to n_ctx - 2, a record:
 *     float     scale, min
 *     uint16    n_vocab numbers q, and one more, 0, if n_vocab is odd
 *
 * ln p(i) is scale * q(i) + min, in single precision. Of a row of logits l with
 * the largest, max, and low = the larger of the smallest and max - 16:
 *
 *     scale = (max - low) / 65535
 *     min   = low - max - ln sum exp(l(i) - max)
 *     q(i)  = (l(i) - low) / scale, rounded to nearest, even if between; 0 for
 *             l(i) <= low
 *
 * in single precision but for the sum. What was below low is not known any
 * more: comparisons leave out terms with ln p(i) <= -16, as llama.cpp does
 * (checked against commit d32676d and its files). 2 n_vocab + 8 bytes for each
 * scored token.
 */
#ifndef GGUF_BASELINE_H
#define GGUF_BASELINE_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_baseline;

/* Non-zero if the file begins as one of these; 0 also if it cannot be read.
 * Since: 0.1 */
GGUF_API int gguf_baseline_is(const char *path);

/* The file is mapped, not read. allocator: NULL: malloc; kept. GGUF_E_IO,
 * GGUF_E_FORMAT (no such file), GGUF_E_INVALID (a number in its header: name,
 * value, limit), GGUF_E_TRUNCATED (its size is not what the header says),
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_open(struct gguf_baseline **out, const char *path,
                   const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_baseline_close(struct gguf_baseline *b);

/* As the header says. Since: 0.1 */
GGUF_API uint32_t gguf_baseline_n_ctx(const struct gguf_baseline *b);
GGUF_API uint32_t gguf_baseline_n_vocab(const struct gguf_baseline *b);
GGUF_API size_t gguf_baseline_n_chunks(const struct gguf_baseline *b);
/* n_chunks * n_ctx ids, each less than n_vocab; the file's. Since: 0.1 */
GGUF_API const gguf_token *gguf_baseline_tokens(const struct gguf_baseline *b);

/* A digest of the file, in hexadecimal: of its size and of 64 pieces of 4096
 * bytes, or of all of it where it is shorter. It tells two such files apart
 * that were made from different models or texts. Since: 0.1 */
GGUF_API void gguf_baseline_digest(const struct gguf_baseline *b,
                                   char out[33]);

struct gguf_baseline_writer;

/* Write such a file as a scan goes on: the writer's sink takes the rows of its
 * first model; the scan's rows must be the second half of each chunk
 * (GGUF_SCAN_HALF), else it fails with GGUF_E_INVALID. force: see outfile.h,
 * as whose files it appears when it is committed, and whose statuses come with
 * it; GGUF_E_NONFINITE: a row has a NaN or +infinity. One scan for each writer.
 * pool is kept; NULL: the thread that scans. Since: 0.1 */
GGUF_API enum gguf_status gguf_baseline_writer_create(
    struct gguf_baseline_writer **out, const char *path, int force,
    struct gguf_pool *pool, const struct gguf_allocator *allocator,
    struct gguf_error *err) GGUF_MUST_CHECK;
/* Owned by the writer. Since: 0.1 */
GGUF_API const struct gguf_sink *
gguf_baseline_writer_sink(struct gguf_baseline_writer *w);
/* Once, after the scan: GGUF_E_INVALID if it has not handed over all rows.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_writer_commit(struct gguf_baseline_writer *w,
                            struct gguf_error *err);
/* Without a commit nothing stays on disk. NULL is fine. Since: 0.1 */
GGUF_API void gguf_baseline_writer_destroy(struct gguf_baseline_writer *w);

#ifdef __cplusplus
}
#endif
#endif
