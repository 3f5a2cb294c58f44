/* SPDX-License-Identifier: MIT */
/* improve.h - replace tensors of an output before it gets its name
 *
 * gguf_quant_run() encodes each block by itself. A caller that knows more, such
 * as a calibration that compares the model's activations, can replace the bytes
 * of tensors in the callback gguf_quant_output.improve. All files of the run
 * are then complete, but do not have their names yet:
 *
 *     static enum gguf_status improve(void *user, size_t job,
 *                                     struct gguf_quant_improver *h,
 *                                     struct gguf_error *err)
 *     {
 *         const struct gguf_quant *q = gguf_quant_improver_job(h);
 *         for (size_t i = 0; i < gguf_quant_n_tensors(q); i++)
 *             if (encode_better(user, gguf_quant_tensor(q, i), bytes))
 *                 gguf_quant_improver_replace(h, i, bytes, size, err);
 *         ...
 *     }
 *
 * Tensors are those of gguf_quant_tensor(). Names, types, shapes and sizes
 * stay.
 *
 * With gguf_quant_output.resume, the journal records each replaced tensor, and
 * a resumed run keeps it. The bytes of the result do not depend on
 * interruptions if the callback goes through the tensors in a fixed order, and
 * if its choice depends on the input, on gguf_quant_output.improve_digest, and
 * on the present bytes of the file alone.
 *
 * gguf_quant_loss of a replaced tensor is that of the new bytes.
 *
 * Threads: an improver is used by one thread at a time.
 */
#ifndef GGUF_IMPROVE_H
#define GGUF_IMPROVE_H

#include <gguf/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a note about a tensor. */
enum { GGUF_QUANT_NOTE_SIZE = 64 };

/* The job that is improved: its plan and its params. Since: 0.1 */
GGUF_API const struct gguf_quant *
gguf_quant_improver_job(const struct gguf_quant_improver *h);

/* The complete output of the job; a set, if the job has several files.
 *
 * The data are mapped: replaced bytes appear in the file's data, and in views
 * of a model that was created from it without a copy. It is closed after the
 * callback. Since: 0.1 */
GGUF_API const struct gguf_file *
gguf_quant_improver_file(const struct gguf_quant_improver *h);

/* Replace the bytes of a tensor.
 *
 * h       The improver.
 * i       Number of the tensor in gguf_quant_tensor().
 * bytes   The new bytes, as in the file: little-endian. NULL: the tensor keeps
 *         its bytes, and only the record is made.
 * size    Number of bytes; gguf_quant_tensor.to_size.
 *
 * With params.measure, the new bytes are decoded and compared with the input.
 *
 * GGUF_OK           The bytes are in the file, and recorded in the journal.
 * GGUF_E_INVALID    i is out of range, or size is not that of the tensor.
 * GGUF_E_NONFINITE  The new bytes decode to NaN or infinity, and params
 *                   .nonfinite is not GGUF_NONFINITE_KEEP. Nothing is written.
 * GGUF_E_IO         The file or the journal cannot be written, or the input
 *                   cannot be read.
 * GGUF_E_NOSPACE    The disk is full.
 *
 * After a failure that is not one of INVALID and NONFINITE, the tensor may be
 * half written: the callback must fail, too. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_improver_replace(struct gguf_quant_improver *h, size_t i,
                            const void *bytes, uint64_t size,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Encode a tensor again as gguf_quant_run() did, and remove its note and its
 * record of a replacement.
 *
 * h   The improver.
 * i   Number of the tensor in gguf_quant_tensor().
 *
 * The tensor is read and encoded again: no copy of replaced bytes is kept.
 *
 * GGUF_OK          The plain bytes are in the file and in the journal.
 * GGUF_E_INVALID   i is out of range.
 * GGUF_E_IO        The input cannot be read, or the file or the journal cannot
 *                  be written.
 * GGUF_E_NOSPACE   The disk is full.
 *
 * After a failure that is not GGUF_E_INVALID, the tensor may be half written:
 * the callback must fail, too. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_improver_restore(struct gguf_quant_improver *h, size_t i,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Was tensor i replaced, or recorded, by this run or by the interrupted run
 * that it resumes? False if i is out of range. Since: 0.1 */
GGUF_API bool
gguf_quant_improver_is_replaced(const struct gguf_quant_improver *h, size_t i);

/* Set the note about tensor i, which the journal keeps for a resumed run. Call
 * it before gguf_quant_improver_replace().
 *
 * note   Bytes of the caller's own format.
 * size   Number of bytes. Those from GGUF_QUANT_NOTE_SIZE on are left out.
 *
 * Does nothing if i is out of range. Since: 0.1 */
GGUF_API void gguf_quant_improver_set_note(struct gguf_quant_improver *h,
                                           size_t i, const void *note,
                                           size_t size);

/* The note about tensor i, GGUF_QUANT_NOTE_SIZE bytes. All are 0 if none was
 * set. NULL: i is out of range. Valid during the callback. Since: 0.1 */
GGUF_API const void *
gguf_quant_improver_note(const struct gguf_quant_improver *h, size_t i);

#ifdef __cplusplus
}
#endif
#endif
