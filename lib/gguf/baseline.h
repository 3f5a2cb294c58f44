/* SPDX-License-Identifier: MIT */
/* baseline.h - files of a base's logits: llama.cpp's form, and a compact one
 *
 * Such a file holds, for the second half of each chunk of a text, what a model
 * predicts after each token, so that others can be compared with it later
 * (gguf/kld.h). Little-endian, whatever the machine. llama.cpp's form:
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
 *
 * The compact form takes a tenth of that at most, but for texts of few rows and
 * for vocabularies of less than some hundred tokens:
 *
 *     8 bytes   "ggufbase"
 *     uint32    version (2), n_ctx, n_vocab, n_chunks
 *     uint64    a digest of the texts of all tokens
 *     int32     token ids, as above
 *     then for each row, as above:
 *     number    how many bytes of the row follow
 *     float     -ln p of the token that follows in the text
 *     uint16    a weight w, as its code: ln w = -code / 2048; at least 2^-17
 *     number    the likeliest token, the first of equals
 *     number    how many tokens are there, n
 *     bytes     which, and how likely: decisions of a range coder
 *               (lib/eval/range_coder.c), for each token until n are there:
 *               is it there, p >= w, and a number of steps s
 *     and at the end:
 *     double    tail: the mean over rows of the probability of tokens below w
 *     double    error, see below
 *     uint64    XXH3-64 of all bytes before it
 *
 * where a number has seven bits a byte, the lowest first, and 128 is added to
 * each byte but the last. All tokens of p >= w are there: p = w (1 + s / 128).
 * Of the others a token is there with probability p / w, and stands for w: ln p
 * = ln w - s / 128. With r = q / p the divergence is sum p (r - 1 - ln r), of
 * which these terms are an unbiased estimate, once it is taken from them what
 * rounding adds on average; what the second kind gives where q is above 1.4 w
 * is known of all tokens, drawn or not. Tokens are drawn by the row's number:
 * the same file each time. Each row has the least w with which it fits into its
 * tenth.
 *
 * The error is one standard error that the form adds to the mean divergence of
 * a model, relative to it, over all N rows:
 *
 *     sqrt((3 mean(w tail) + mean(n (w / 128)^2) / (6 * 1e-5)) / N)
 *
 * for a divergence of 1e-5 or more, if the model's log-probabilities differ
 * from the base's like normal numbers of one variance v, as those of a
 * quantized file about do: the divergence is v / 2, the variance of r - 1 -
 * ln r twice its square and the mean of its square 3 times that, and a rounding
 * of p by e adds e times a number of variance v. Four times as much bounds it
 * for all but one text in 16,000. Perplexities and what is said of the tokens
 * of the text are not touched by it; the divergence of a single token is less
 * certain than their mean. In that room no form is better by more than a
 * factor for all models: who knows one of two vectors and b bits of the other
 * knows the square of their distance within about 1 / sqrt(b) of it (T. S.
 * Jayram and D. P. Woodruff, ACM Transactions on Algorithms 9, 2013); the rows
 * of 2 chunks of 512 tokens with 2048 words have 1.7 million bits.
 */
#ifndef GGUF_BASELINE_H
#define GGUF_BASELINE_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_baseline;

enum gguf_baseline_form { GGUF_BASELINE_LLAMA, GGUF_BASELINE_COMPACT };

/* Non-zero if the file begins as one of these; 0 also if it cannot be read.
 * Since: 0.1 */
GGUF_API int gguf_path_is_baseline(const char *path);

/* The file is mapped, not read. allocator: NULL: malloc; kept. GGUF_E_IO,
 * GGUF_E_FORMAT (no such file), GGUF_E_INVALID (a number in its header: name,
 * value, limit), GGUF_E_TRUNCATED (its size is not what the header says),
 * GGUF_E_NOMEM. A compact one is read once, and what begins each row is
 * checked: GGUF_E_VERSION (of another version of this library: save it again),
 * GGUF_E_MISMATCH (the checksum), and GGUF_E_FORMAT with the byte. Since: 0.1
 */
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

/* "llama.cpp" or "compact"; tail and error as above, 0 of llama.cpp's form.
 * Since: 0.1 */
GGUF_API const char *gguf_baseline_form(const struct gguf_baseline *b);
GGUF_API double gguf_baseline_tail_mass(const struct gguf_baseline *b);
GGUF_API double gguf_baseline_kld_error(const struct gguf_baseline *b);

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
GGUF_API enum gguf_status
gguf_baseline_writer_open(struct gguf_baseline_writer **out, const char *path,
                          int force, struct gguf_pool *pool,
                          const struct gguf_allocator *allocator,
                          struct gguf_error *err) GGUF_MUST_CHECK;
/* In which form; before the scan. Without it, llama.cpp's. GGUF_E_INVALID.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_writer_set_form(struct gguf_baseline_writer *w,
                              enum gguf_baseline_form form,
                              struct gguf_error *err) GGUF_MUST_CHECK;
/* Owned by the writer. Since: 0.1 */
GGUF_API const struct gguf_sink *
gguf_baseline_writer_sink(struct gguf_baseline_writer *w);
/* Once, after the scan: GGUF_E_INVALID if it has not handed over all rows.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_writer_commit(struct gguf_baseline_writer *w,
                            struct gguf_error *err) GGUF_MUST_CHECK;
/* Without a commit nothing stays on disk. NULL is fine. Since: 0.1 */
GGUF_API void gguf_baseline_writer_close(struct gguf_baseline_writer *w);

#ifdef __cplusplus
}
#endif
#endif
