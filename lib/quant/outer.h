/* outer.h - scales that tensors have outside of their blocks (rows.h), in jobs
 *
 * Those of the input go into weights that become another type, and are no
 * tensors of the output then; beside weights that keep their type they stay.
 * With compat they always stay, and multiply what was made without them, as
 * llama-quantize knows of none. Those of the output are found before the
 * blocks are made.
 */
#ifndef GG_QUANT_OUTER_H
#define GG_QUANT_OUTER_H

#include "quant/job.h"
#include "data/rows.h"

/* Leave out of the job, as types are now, the scales that go into weights, and
 * note them there; every tensor that was left out before is back first. Moves
 * the tensors of the job. GGUF_E_TENSOR. */
enum gguf_status gg_outer_fold(struct gguf_quant *q, struct gguf_error *err);

/* All tensors are back in the job, where they were before the first was left
 * out, and none has a scale. */
void gg_outer_unfold(struct gguf_quant *q);

/* The rows of a tensor that is to become another type, with the scale that
 * goes into them. False: its type is not decoded. */
bool gg_outer_row_src(const struct gguf_quant *q,
                      const struct gg_job_tensor *jt, struct gg_row_src *src);

/* Has a tensor of this type scales of its own beside it, in the output? */
bool gg_outer_wanted(const struct gguf_quant *q,
                     const struct gg_job_tensor *jt, uint32_t type);

/* Bytes that scales beside a tensor take as tensors of the output, if it
 * becomes type: of data, each aligned to align, and with headers not 0 of what
 * the header says of them. */
uint64_t gg_outer_size(const struct gguf_quant *q,
                       const struct gg_job_tensor *jt, uint32_t type,
                       uint64_t align, bool headers);

/* The largest finite weight of n elements from first on, or largest if that is
 * larger; buf has room for size elements, a multiple of the type's block. */
float gg_outer_largest(const struct gg_row_src *src, uint64_t first,
                       uint64_t n, float largest, float *buf, uint64_t size);

/* The scale of a matrix with this largest weight. */
float gg_outer_scale(float largest);

#endif
