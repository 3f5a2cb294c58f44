/* SPDX-License-Identifier: MIT */
/* part.h - parts of an evaluation, computed apart and merged
 *
 * The chunks of a text can be divided over several processes. Each scores some
 * chunks and saves them as a part; the parts are then merged. Perplexity and
 * divergences are sums over the tokens of a chunk and then over chunks (ppl.h,
 * kld.h), in the order of the text. So merged parts give the digits of a single
 * run, whatever the parts and the order in which they are merged.
 *
 *     gguf_part_create(&p, n_chunks, 0, 1, NULL, &err);
 *     gguf_part_set_model(p, 0, session, t.id, t.n, &err);
 *     for each chunk: gguf_part_add_chunk(p, i, NULL, nll, n, &err);
 *     gguf_part_save(p, "5.part", false, &err);
 *     gguf_part_destroy(p);
 *     ...
 *     gguf_part_load(&q, "6.part", NULL, &err);
 *     gguf_part_merge(p, q, &err);
 *
 * A part has a record for each chunk that is done: some numbers of the chunk
 * itself, and some for each of its rows. The caller defines chunks and rows:
 * for perplexity a row is a scored token; for tasks (task.h) a chunk may be a
 * task and a row an answer. A part also has settings. Parts with different
 * settings, such as other models or texts, are never merged. Notes may differ.
 *
 * Files are GGUF (file.h):
 *
 *     general.type         "score-part"
 *     score.part.version   u32: 2
 *     score.part.heads     u32: numbers of each chunk
 *     score.part.values    u32: numbers of each row
 *     score.part.of.NAME   string: a setting
 *     score.part.note.NAME string: a note
 *     counts               tensor, I64 [chunks of the text]: rows of a chunk;
 *                          -1 if it is not done
 *     heads                tensor, F64 [numbers of a chunk, chunks done], in
 *                          order; missing if it is empty
 *     scores               tensor, F64 [numbers of a row, rows], of the chunks
 *                          that are done, in order; missing if it is empty
 *     checksum             tensor, I8 [32]: XXH3-128, in hexadecimal, of all
 *                          bytes before it
 *
 * Threads: one thread at a time for each part.
 */
#ifndef GGUF_PART_H
#define GGUF_PART_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_part;

/* Make a part with no chunk done.
 *
 * out              Receives the part. NULL after a failure.
 * n_chunks         Number of chunks of the text.
 * n_chunk_values   Numbers of each chunk, 0 to 64.
 * n_row_values     Numbers of each row, 1 to 4096.
 * allocator        Must outlive the part. NULL: malloc.
 *
 * Destroy *out with gguf_part_destroy().
 *
 * GGUF_E_INVALID   A number is out of range.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_create(struct gguf_part **out, size_t n_chunks,
                 size_t n_chunk_values, size_t n_row_values,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a part. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_part_destroy(struct gguf_part *p);

/* ---- settings and notes ---- */

/* Set a setting: something on which the numbers depend.
 *
 * name     1 to 40 characters of a to z, 0 to 9, '_' and '.'; copied. A setting
 *          of that name is replaced.
 * value    The value; copied.
 *
 * GGUF_E_INVALID   The name is not allowed.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_set_setting(struct gguf_part *p, const char *name, const char *value,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Set a note: something that may differ between parts. Of merged parts the
 * first one's notes stay.
 *
 * name     1 to 40 characters of a to z, 0 to 9, '_' and '.'; copied. A note of
 *          that name is replaced.
 * value    The text; copied.
 *
 * GGUF_E_INVALID   The name is not allowed.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_set_note(struct gguf_part *p, const char *name, const char *value,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Set the settings that describe a model and a text:
 *
 *     model.I   digest of the session's hyperparameters and weights; of a
 *               weight above 64 KiB it has 16 pieces of 4096 bytes
 *     cache.I   types of keys and values
 *     text      digest of the tokens
 *     tokens    number of tokens
 *
 * i         I, the number of the model.
 * session   Session of the model.
 * token     Tokens of the text.
 * n         Number of tokens.
 *
 * GGUF_E_NOMEM   An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_part_set_model(
    struct gguf_part *p, unsigned i, const struct gguf_session *session,
    const gguf_token *token, size_t n, struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of setting i, in the order in which they were first set; NULL if i is
 * out of range.
 *
 * value    Receives its value. Owned by the part, as is the name.
 *
 * Since: 0.1 */
GGUF_API const char *gguf_part_setting(const struct gguf_part *p, size_t i,
                                       const char **value);

/* Text of a note; NULL if the part has no such note. Owned by the part.
 * Since: 0.1 */
GGUF_API const char *gguf_part_note(const struct gguf_part *p,
                                    const char *name);

/* ---- chunks ---- */

/* Add the numbers of a chunk, which is then done.
 *
 * chunk          Number of the chunk, from 0.
 * chunk_values   Numbers of the chunk itself; copied. NULL if each chunk has 0
 *                of them.
 * row_values     Numbers of the rows, row after row; copied.
 * n_rows         Number of rows.
 *
 * GGUF_E_INVALID   The chunk is out of range or already done, or a number is
 *                  not finite. The message has its index.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_add_chunk(struct gguf_part *p, size_t chunk,
                    const double *chunk_values, const double *row_values,
                    size_t n_rows, struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of chunks of the text. Since: 0.1 */
GGUF_API size_t gguf_part_n_chunks(const struct gguf_part *p);

/* Numbers of each chunk. Since: 0.1 */
GGUF_API size_t gguf_part_n_chunk_values(const struct gguf_part *p);

/* Numbers of each row. Since: 0.1 */
GGUF_API size_t gguf_part_n_row_values(const struct gguf_part *p);

/* Number of chunks that are done. Since: 0.1 */
GGUF_API size_t gguf_part_n_done(const struct gguf_part *p);

/* Numbers of a chunk itself; NULL if it is not done. Owned by the part.
 * Since: 0.1 */
GGUF_API const double *gguf_part_chunk_values(const struct gguf_part *p,
                                              size_t chunk);

/* Numbers of a chunk's rows, row after row; NULL if it is not done.
 *
 * chunk    Number of the chunk, from 0.
 * n_rows   Receives the number of rows.
 *
 * Owned by the part. Since: 0.1 */
GGUF_API const double *gguf_part_row_values(const struct gguf_part *p,
                                            size_t chunk, size_t *n_rows);

/* ---- merging ---- */

/* Add the chunks of another part.
 *
 * p        Part that grows. A failure changes nothing.
 * other    Part whose chunks are copied.
 *
 * GGUF_E_MISMATCH   The parts differ in a setting or a size, or both have a
 *                   chunk. The message has the difference and both values.
 * GGUF_E_NOMEM      An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_merge(struct gguf_part *p, const struct gguf_part *other,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Check that two parts have the same settings and sizes.
 *
 * a, b     The parts.
 *
 * GGUF_E_MISMATCH   They differ. The message has the difference and both
 *                   values.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_check_settings(const struct gguf_part *a, const struct gguf_part *b,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- files ---- */

/* Write a part to a file. The file appears complete or not at all (outfile.h):
 * a process that is killed leaves the earlier file.
 *
 * path     Path of the file.
 * force    Replace a file that exists.
 *
 * GGUF_E_EXIST     The file exists, and force is false.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOSPACE   The file system has too little room.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_save(const struct gguf_part *p, const char *path, bool force,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Read a part from a file.
 *
 * out      Receives the part. NULL after a failure.
 * path     Path of the file.
 * params   How to open it; the allocator must outlive the part. NULL: the
 *          defaults.
 *
 * Destroy *out with gguf_part_destroy().
 *
 * GGUF_E_NOTFOUND   The file is not a part, or lacks a key.
 * GGUF_E_VERSION    The file has another version.
 * GGUF_E_MISMATCH   The checksum is wrong, or a tensor has another shape.
 * GGUF_E_FORMAT     A value is not allowed.
 * GGUF_E_TYPE       A key has the wrong type.
 * GGUF_E_NOMEM      An allocation failed.
 *
 * Fails otherwise as gguf_file_open() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_part_load(struct gguf_part **out, const char *path,
               const struct gguf_file_params *params,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
