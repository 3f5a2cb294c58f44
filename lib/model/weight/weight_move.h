/* SPDX-License-Identifier: MIT */
/* weight_move.h - weights into other memory */
#ifndef GG_MODEL_WEIGHT_WEIGHT_MOVE_H
#define GG_MODEL_WEIGHT_WEIGHT_MOVE_H

#include "model/model_int.h"
#include "model/weight/parallel_pass.h"

struct gg_weight_move {
    size_t i;                   /* of the tensors of all files: m->of[i] */
    const struct gguf_buft *to; /* outlives the model */
    struct gguf_device *maps;   /* device of that memory, which may use the
                                 * mapping of a file in place of a copy; or
                                 * NULL */
    /* filled by gg_weights_move: */
    void *data;                 /* its memory before the move */
    struct gguf_buffer *buffer; /* its buffer before the move */
    bool mapped;                /* the device uses it in the mapping */
};

/* Give n different weights memory of buffer types, and copy them there: all of
 * them, or after a failure none. What they had in the mapping of a file is let
 * go. On the threads of the job into host memory, else by the caller's. Waits
 * for nobody: there are no sessions yet.
 * GGUF_E_INVALID (the weights are locked), GGUF_E_NOMEM, GGUF_E_LIMIT,
 * GGUF_E_IO, GGUF_E_TRUNCATED (the file became shorter), GGUF_E_CANCELLED, and
 * what buffers return. */
enum gguf_status gg_weights_move(struct gguf_model *m,
                                 struct gg_weight_move *move, size_t n,
                                 const struct gguf_model_job *job,
                                 struct gguf_error *err);

/* Is weight i used in the mapping of its file? */
bool gg_weight_is_mapped(const struct gguf_model *m, size_t i);

/* Can all weights be read where they are? GGUF_E_UNSUPPORTED: one is in a file
 * that has a reader, and was not copied. */
enum gguf_status gg_weights_check_in_memory(const struct gguf_model *m,
                                            struct gguf_error *err);

#endif
