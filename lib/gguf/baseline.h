/* SPDX-License-Identifier: MIT */
/* baseline.h - files of a base's logits: llama.cpp's form and a compact one
 *
 * A baseline has, for the second half of each chunk of a text, the predictions
 * of a model after each token. Other models can be compared with it later
 * (kld.h), without the base.
 *
 * Writing, as a sink of a scan (eval.h):
 *
 *     gguf_baseline_writer_open(&w, path, NULL, &err);
 *     const struct gguf_sink *sinks[] = { gguf_baseline_writer_sink(w) };
 *     gguf_scan_run(session, t.id, t.n, NULL, sinks, 1, &err);
 *     gguf_baseline_writer_commit(w, &err);
 *     gguf_baseline_writer_close(w);
 *
 * Reading:
 *
 *     gguf_baseline_open(&b, path, NULL, &err);
 *     ... gguf_baseline_tokens(b) ...     scan these with another model
 *     gguf_baseline_close(b);
 *
 * Numbers in files are little-endian on every machine. llama.cpp's form has:
 *
 *     8 bytes   "_logits_"
 *     int32     n_ctx, n_vocab, n_chunks
 *     int32     n_chunks * n_ctx token ids, as tokenized, without the BOS that
 *               replaces the first token of a chunk
 *
 * Then follows one record for each of the tokens n_ctx / 2 to n_ctx - 2 of each
 * chunk:
 *
 *     float     scale, min
 *     uint16    n_vocab numbers q, and a 0 if n_vocab is odd
 *
 * ln p(i) is scale * q(i) + min, in single precision. For a row of logits l,
 * with max its largest and low the larger of its smallest and max - 16:
 *
 *     scale = (max - low) / 65535
 *     min   = low - max - ln sum exp(l(i) - max)
 *     q(i)  = (l(i) - low) / scale, rounded to nearest, ties to even; 0 for
 *             l(i) <= low
 *
 * All of this is in single precision but for the sum. Logits below low are
 * lost: comparisons leave out terms with ln p(i) <= -16, as llama.cpp does
 * (checked against commit d32676d and its files). A scored token takes 2
 * n_vocab + 8 bytes.
 *
 * The compact form takes at most a tenth of that, except for texts of few rows
 * and for vocabularies of less than some hundred tokens:
 *
 *     8 bytes   "ggufbase"
 *     uint32    version (2), n_ctx, n_vocab, n_chunks
 *     uint64    digest of the texts of all tokens
 *     int32     token ids, as above
 *
 * Then follows for each row, as above:
 *
 *     number    bytes of the row that follow
 *     float     -ln p of the next token of the text
 *     uint16    code of a weight w: ln w = -code / 2048; w is at least 2^-17
 *     number    the likeliest token, the first of equals
 *     number    n, the stored tokens
 *     bytes     stored tokens and their probabilities as decisions of a range
 *               coder (lib/eval/range_coder.c). For each token, until n are
 *               found: is it stored; is p >= w; a number of steps s
 *
 * The end of the file is:
 *
 *     double    tail: mean over rows of the probability of tokens below w
 *     double    error, see below
 *     uint64    XXH3-64 of all bytes before it
 *
 * A number has seven bits in each byte, the lowest first; each byte but the
 * last has 128 added.
 *
 * All tokens with p >= w are stored: p = w (1 + s / 128). Another token is
 * stored with probability p / w, and then stands for w: ln p = ln w - s / 128.
 * With r = q / p the divergence is sum p (r - 1 - ln r). The stored tokens give
 * an unbiased estimate of this sum, from which the mean effect of rounding is
 * subtracted. The excess of q over 1.4 w, for tokens with p < w, is not
 * estimated but summed over all of them. Tokens are drawn with the row's number
 * as the seed, so that the file is the same each time. Each row has the least w
 * with which it fits into a tenth of its size in llama.cpp's form.
 *
 * The error is the standard error that the form adds to the mean divergence of
 * a model, relative to it, for N rows:
 *
 *     sqrt((3 mean(w tail) + mean(n (w / 128)^2) / (6 * 1e-5)) / N)
 *
 * It holds for a divergence of 1e-5 or more, if the log-probabilities of model
 * and base differ like normal numbers of one variance; those of quantized files
 * nearly do. Four times this error is exceeded by one text in 16,000. The error
 * does not affect perplexities and figures about the tokens of the text. The
 * divergence of a single token is less certain than the mean.
 *
 * Threads: any thread may read an open baseline. A writer has one thread.
 */
#ifndef GGUF_BASELINE_H
#define GGUF_BASELINE_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ---- */

struct gguf_baseline;

/* Form of a file of logits. */
enum gguf_baseline_form {
    GGUF_BASELINE_LLAMA,  /* llama.cpp's */
    GGUF_BASELINE_COMPACT /* the compact one */
};

/* Does a file begin as a baseline? False also if it cannot be read. Any thread.
 * Since: 0.1 */
GGUF_API bool gguf_path_is_baseline(const char *path);

/* Open a baseline and check its header.
 *
 * out         Receives the baseline. NULL after a failure.
 * path        Path of the file.
 * allocator   Must outlive the baseline. NULL: malloc.
 *
 * Close *out with gguf_baseline_close(). The file is mapped. The compact form
 * is read once, and the begin of each row is checked.
 *
 * GGUF_E_IO          The file cannot be opened or mapped.
 * GGUF_E_FORMAT      The file is not a baseline; or a row is malformed:
 *                    err->offset is the byte.
 * GGUF_E_INVALID     A number of the header is out of range. The message has
 *                    name, value and limit.
 * GGUF_E_TRUNCATED   The file has another size than its header says.
 * GGUF_E_VERSION     The file has the compact form of another version of this
 *                    library. Save it again.
 * GGUF_E_MISMATCH    The checksum is wrong.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_open(struct gguf_baseline **out, const char *path,
                   const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Close a baseline. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_baseline_close(struct gguf_baseline *b);

/* Tokens of a chunk. Since: 0.1 */
GGUF_API uint32_t gguf_baseline_n_ctx(const struct gguf_baseline *b);

/* Tokens of the vocabulary. Since: 0.1 */
GGUF_API uint32_t gguf_baseline_n_vocab(const struct gguf_baseline *b);

/* Number of chunks. Since: 0.1 */
GGUF_API size_t gguf_baseline_n_chunks(const struct gguf_baseline *b);

/* Tokens of the text: n_chunks * n_ctx ids, each less than n_vocab. Owned by
 * the baseline. Since: 0.1 */
GGUF_API const gguf_token *gguf_baseline_tokens(const struct gguf_baseline *b);

/* Name of the file's form: "llama.cpp" or "compact". Static storage.
 * Since: 0.1 */
GGUF_API const char *gguf_baseline_form(const struct gguf_baseline *b);

/* Mean probability, over rows, of the tokens below the row's weight: tail of
 * the compact form; 0 for llama.cpp's. Since: 0.1 */
GGUF_API double gguf_baseline_tail_mass(const struct gguf_baseline *b);

/* Relative standard error that the form adds to a mean divergence: error of the
 * compact form; 0 for llama.cpp's. Since: 0.1 */
GGUF_API double gguf_baseline_kld_error(const struct gguf_baseline *b);

/* Digest of the file, in hexadecimal with a NUL at its end. It is computed from
 * the size and from 64 pieces of 4096 bytes, or from all bytes of a shorter
 * file, and differs between baselines of different models or texts.
 * Since: 0.1 */
GGUF_API void gguf_baseline_digest(const struct gguf_baseline *b,
                                   char out[33]);

/* ---- writing ---- */

struct gguf_baseline_writer;

/* Options of gguf_baseline_writer_open(). */
struct gguf_baseline_writer_params {
    size_t struct_size;

    /* Allocator of the writer. It must outlive the writer. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Threads that encode rows. It must outlive the writer. NULL: the thread
     * that scans. */
    struct gguf_pool *pool;

    enum gguf_baseline_form form; /* form of the file */
    bool force;                   /* replace a file that exists */
};
#define GGUF_BASELINE_WRITER_PARAMS_INIT                                      \
    GGUF_INIT(struct gguf_baseline_writer_params)

/* Open a file for the logits of one scan.
 *
 * out      Receives the writer. NULL after a failure.
 * path     Path of the file. It appears when it is committed.
 * params   Options. NULL: the defaults.
 *
 * Close *out with gguf_baseline_writer_close(). Nothing stays on disk without
 * gguf_baseline_writer_commit().
 *
 * GGUF_E_EXIST     The file exists, and force is false.
 * GGUF_E_IO        The file cannot be created.
 * GGUF_E_INVALID   The form is unknown.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_writer_open(struct gguf_baseline_writer **out, const char *path,
                          const struct gguf_baseline_writer_params *params,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* Sink by which the scan writes the logits of its first model. Owned by the
 * writer. A writer takes one scan, of one text in chunks side by side with
 * GGUF_SCAN_SECOND_HALF; the scan then also fails with:
 *
 * GGUF_E_INVALID     The scan has other rows, or is the writer's second one.
 * GGUF_E_LIMIT       The text has too many chunks.
 * GGUF_E_NONFINITE   A row has a NaN or +infinity.
 * GGUF_E_IO          The file cannot be written.
 * GGUF_E_NOSPACE     The file system has too little room.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Since: 0.1 */
GGUF_API const struct gguf_sink *
gguf_baseline_writer_sink(struct gguf_baseline_writer *w);

/* Complete the file and let it appear. Call it once, after the scan.
 *
 * GGUF_E_INVALID   The scan has not given all rows.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The file system has too little room.
 * GGUF_E_EXIST     A file of that name has appeared, and force is false.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_baseline_writer_commit(struct gguf_baseline_writer *w,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Close a writer, and remove the file if it was not committed. NULL is allowed.
 * Since: 0.1 */
GGUF_API void gguf_baseline_writer_close(struct gguf_baseline_writer *w);

#ifdef __cplusplus
}
#endif
#endif
