/* SPDX-License-Identifier: MIT */
/* outer_scale.h - scales that tensors have outside of their blocks
 * (data/gguf_list.h), in jobs
 *
 * Scales of the input are multiplied into weights that become another type,
 * and are then left out of the output; beside weights that keep their type
 * they stay. With compat they always stay, and the weights are made without
 * them, since llama-quantize does not know them. Those of the output are found
 * before the blocks are made.
 */
#ifndef GG_QUANT_JOB_OUTER_SCALE_H
#define GG_QUANT_JOB_OUTER_SCALE_H

#include "quant/job/job.h"

/* Leave out of the job, as types are now, the scales that go into weights, and
 * note them there; every tensor that was left out before is back first. Moves
 * the tensors of the job. GGUF_E_TENSOR. */
enum gguf_status gg_outer_scale_fold(struct gguf_quant *q,
                                     struct gguf_error *err);

/* All tensors are back in the job, where they were before the first was left
 * out, and none has a scale. */
void gg_outer_scale_unfold(struct gguf_quant *q);

/* Has a tensor of this type scales of its own beside it, in the output? */
bool gg_outer_scale_is_wanted(const struct gguf_quant *q,
                              const struct gg_job_tensor *jt, uint32_t type);

/* Bytes that scales beside a tensor take as tensors of the output, if it
 * becomes type: of data, each aligned to align, and with headers not 0 of what
 * the header says of them. */
uint64_t gg_outer_scale_size(const struct gguf_quant *q,
                             const struct gg_job_tensor *jt, uint32_t type,
                             uint64_t align, bool headers);

/* The scale of a matrix with this largest weight. */
float gg_outer_scale_compute(float largest);

#endif
