/* SPDX-License-Identifier: MIT */
/* part.h - scores of a text's chunks, in pieces that are put together again
 *
 * Work on a text can be divided: each process scores some of its chunks, and
 * saves a part. A part holds a record of each chunk that is done: some numbers
 * of the chunk, its heads, and some for each of its rows, as they are; and by
 * what they came about, the settings, so that parts of other models, texts or
 * settings are never put together. Since perplexity and divergences are sums
 * over a chunk's tokens and then over chunks, both in the order of the text
 * (eval.h, kld.h), adding up merged parts gives the digits of one run: whatever
 * the parts, in whatever order they are merged.
 *
 * What a chunk is, and a row, is the measure's: of perplexity rows are scored
 * tokens; of tasks (task.h) a chunk can be a task, and a row an answer.
 *
 *     gguf_part_create(&p, n_chunks, 0, 1, NULL, &err);
 *     gguf_part_set_model(p, 0, session, tokens, n, &err);
 *     for each chunk: gguf_part_add_chunk(p, chunk, NULL, nll, n_nll, &err);
 *     gguf_part_save(p, "5.part", 0, &err);
 *
 * Files are GGUF (file.h) with general.type "score-part" and
 *
 *     score.part.version   u32: 2
 *     score.part.heads     u32: numbers for each chunk
 *     score.part.values    u32: numbers for each row
 *     score.part.of.NAME   string: a setting
 *     score.part.note.NAME string: a note
 *     counts               tensor, I64 [chunks of the text]: rows of each that
 *                          is done, else -1
 *     heads                tensor, F64 [numbers of a chunk, chunks done]: in
 *                          order; not there if there is none
 *     scores               tensor, F64 [numbers of a row, rows]: of all that
 *                          are done, in order; not there if there is none
 *     checksum             tensor, I8 [32]: XXH3-128, in hexadecimal, of all
 *                          bytes of the file before it
 *
 * One thread at a time.
 */
#ifndef GGUF_PART_H
#define GGUF_PART_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_part;

/* Of a text of n_chunks chunks, none of them done; n_heads numbers, 0 to 64,
 * for each chunk, and n_values, 1 to 4096, for each of its rows. allocator:
 * NULL: malloc; kept. GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_create(struct gguf_part **out, size_t n_chunks, size_t n_heads,
                 size_t n_values, const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_part_destroy(struct gguf_part *p);

/* A setting that decides digits, or a note, which may differ between parts:
 * when they are merged, that of the first stays. name: 1 to 40 of a to z, 0 to
 * 9, '_' and '.'; both are copied; one of that name is replaced.
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_set_setting(struct gguf_part *p, const char *name, const char *value,
                      struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_part_set_note(struct gguf_part *p, const char *name, const char *value,
                   struct gguf_error *err) GGUF_MUST_CHECK;
/* The i-th setting, in the order in which they were set: its name, and *value;
 * NULL if there is none. Since: 0.1 */
GGUF_API const char *gguf_part_setting(const struct gguf_part *p, size_t i,
                                       const char **value);
/* NULL: there is none of that name. Since: 0.1 */
GGUF_API const char *gguf_part_note(const struct gguf_part *p,
                                    const char *name);

/* Set what a session and a text's n tokens are: "model.I" (a digest of its
 * hyperparameters and weights: of a tensor above 64 KiB, 16 pieces of 4096
 * bytes), "cache.I" (types of keys and values), "text" (a digest of the tokens)
 * and "tokens". As gguf_part_set_setting. Since: 0.1 */
GGUF_API enum gguf_status gguf_part_set_model(
    struct gguf_part *p, unsigned i, const struct gguf_session *session,
    const gguf_token *token, size_t n, struct gguf_error *err) GGUF_MUST_CHECK;

/* Chunk number chunk, from 0, is done: heads, n_heads of them (NULL for 0), and
 * n_rows rows of n_values numbers, all copied. GGUF_E_INVALID (no such chunk,
 * one that is done, a number that is not finite: names its index),
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_add_chunk(struct gguf_part *p, size_t chunk, const double *heads,
                    const double *values, size_t n_rows,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* As it was created. Since: 0.1 */
GGUF_API size_t gguf_part_n_chunks(const struct gguf_part *p);
GGUF_API size_t gguf_part_n_chunk_values(const struct gguf_part *p);
GGUF_API size_t gguf_part_n_row_values(const struct gguf_part *p);
/* Chunks that are done. Since: 0.1 */
GGUF_API size_t gguf_part_n_done(const struct gguf_part *p);
/* The heads of a chunk; the numbers of its rows, and *n_rows. NULL: it is not
 * done. The part's. Since: 0.1 */
GGUF_API const double *gguf_part_chunk_values(const struct gguf_part *p,
                                              size_t chunk);
GGUF_API const double *gguf_part_row_values(const struct gguf_part *p,
                                            size_t chunk, size_t *n_rows);

/* Add what other has. GGUF_E_MISMATCH: other is of another text or model, has
 * another setting, or a chunk that p has: the message says which, and both
 * values. Nothing has changed then. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_merge(struct gguf_part *p, const struct gguf_part *other,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Settings alone: is b as a? As gguf_part_merge. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_check_settings(const struct gguf_part *a, const struct gguf_part *b,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Written atomically: a process that is killed leaves the file of before.
 * GGUF_E_EXIST, GGUF_E_IO, GGUF_E_NOSPACE, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_save(const struct gguf_part *p, const char *path, int force,
               struct gguf_error *err) GGUF_MUST_CHECK;
/* params: of the file; NULL: the defaults; its allocator is kept. The statuses
 * of gguf_file_open, and GGUF_E_NOTFOUND (not a part), GGUF_E_VERSION,
 * GGUF_E_MISMATCH (the checksum, or a tensor's shape), GGUF_E_FORMAT,
 * GGUF_E_TYPE. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_load(struct gguf_part **out, const char *path,
               const struct gguf_file_params *params,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
