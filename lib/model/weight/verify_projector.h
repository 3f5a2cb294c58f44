/* SPDX-License-Identifier: MIT */
/* verify_projector.h - checks of the tensors of projector files */
#ifndef GG_MODEL_WEIGHT_VERIFY_PROJECTOR_H
#define GG_MODEL_WEIGHT_VERIFY_PROJECTOR_H

#include "data/source.h"
#include "file/file_check.h"
#include "model/weight/projector_rows.h"

/* Facts about a tower, by its keys. */
struct gg_verify_projector_facts {
    bool has;             /* the file has the tower */
    struct gguf_str type; /* type of the projector */
    /* embedding_length, projection_dim, num_mel_bins and block_count; 0: not
     * known, or not to be compared */
    uint64_t width, text_width, n_mel, n_layer;
    /* width is 0, and that of layers is taken from the first tensor */
    bool learns_width;
};

/* Find the row of a type. NULL: the type is not known. */
const struct gg_model_projector *
gg_verify_projector_row(struct gguf_str type, enum gg_model_tower tower);

/* Check names, shapes and presence of all tensors, and the presence of the
 * keys of the types. The types of all towers must be known.
 *
 * c      Receives the findings about c->file.
 * src    File or set of shards.
 * facts  Facts about GG_N_TOWERS towers.
 *
 * GGUF_E_CANCELLED. Faults are findings. */
enum gguf_status gg_verify_projector_tensors(
    struct gg_file_checker *c, const struct gg_source *src,
    const struct gg_verify_projector_facts *facts, struct gguf_error *err);

#endif
