/* SPDX-License-Identifier: MIT */
/* verify_row.h - findings about a file as a model of one architecture */
#ifndef GG_MODEL_WEIGHT_VERIFY_ROW_H
#define GG_MODEL_WEIGHT_VERIFY_ROW_H

#include "file/file_check.h"
#include "model/arch.h"
#include "data/source.h"

/* Check hyperparameters, then tensors, against a row.
 *
 * c        Receives the findings. Its member file is changed.
 * src      File or set of shards.
 * arch     The row.
 * prefix   Word before the first dot of the architecture's keys.
 *
 * GGUF_E_NOMEM, GGUF_E_CANCELLED. Faults are findings. */
enum gguf_status gg_verify_row(struct gg_file_checker *c,
                               const struct gg_source *src,
                               const struct gg_arch *arch,
                               struct gguf_str prefix, struct gguf_error *err);

/* verify_projector.c: does the file say that it is a projector, of architecture
 * "clip"? */
bool gg_verify_is_projector(const struct gguf_file *file);
/* verify_projector.c: check a projector's keys and tensors.
 *
 * c        Receives the findings about c->file.
 * src      File or set of shards.
 *
 * GGUF_E_NOMEM, GGUF_E_CANCELLED. Faults are findings. */
enum gguf_status gg_verify_projector(struct gg_file_checker *c,
                                     const struct gg_source *src,
                                     struct gguf_error *err);

#endif
