/* SPDX-License-Identifier: MIT */
/* outer_scale.h - scale tensors beside quantized tensors, in jobs
 *
 * An NVFP4 tensor may have a scale outside of its blocks (data/gguf_list.h).
 * When its weights are encoded in another type, they are multiplied by the
 * scale, which is then left out of the output. Beside weights that keep their
 * type, the scale stays. With compat scales always stay and weights are encoded
 * without them, since llama-quantize does not know them. Scales of the output
 * are computed before the blocks are encoded.
 */
#ifndef GG_QUANT_JOB_OUTER_SCALE_H
#define GG_QUANT_JOB_OUTER_SCALE_H

#include "quant/job/job.h"

/* Leave out the scales that are multiplied into weights under the present
 * types, and store them in their tensors. Tensors that were left out before
 * return first. Changes the order of the job's tensors. GGUF_E_TENSOR. */
enum gguf_status gg_outer_scale_fold(struct gguf_quant *q,
                                     struct gguf_error *err);

/* Return all tensors to the job, in their original order and without scales. */
void gg_outer_scale_unfold(struct gguf_quant *q);

/* Does a tensor of this type get scales of its own in the output? */
bool gg_outer_scale_is_wanted(const struct gguf_quant *q,
                              const struct gg_job_tensor *jt, uint32_t type);

/* Bytes that the scale tensors of a tensor take in the output if it becomes
 * type: data aligned to align and, if headers is set, their part of the
 * header. */
uint64_t gg_outer_scale_size(const struct gguf_quant *q,
                             const struct gg_job_tensor *jt, uint32_t type,
                             uint64_t align, bool headers);

/* Scale of a matrix with this largest weight. */
float gg_outer_scale_compute(float largest);

#endif
