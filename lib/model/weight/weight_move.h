/* SPDX-License-Identifier: MIT */
/* weight_move.h - move weights into other memory */
#ifndef GG_MODEL_WEIGHT_WEIGHT_MOVE_H
#define GG_MODEL_WEIGHT_WEIGHT_MOVE_H

#include "model/model_int.h"
#include "model/weight/parallel_pass.h"

struct gg_weight_move {
    /* number of the weight among the tensors of all files: m->of[i] */
    size_t i;
    /* type of the new memory; must outlive the model */
    const struct gguf_buft *to;
    /* device that may use the mapping of a file in place of a copy; NULL:
     * always copy */
    struct gguf_device *maps;
    /* set by gg_weights_move(): */
    void *data;                 /* its memory before the move */
    struct gguf_buffer *buffer; /* its buffer before the move */
    bool mapped;                /* the device uses it in the mapping */
};

/* Move n different weights to memory of other types and copy their data. After
 * a failure all weights are in their old places. Unused pages of a file's
 * mapping are released. Copies into host memory run on the job's threads,
 * others on the caller's. Sessions on the model must not exist yet.
 *
 * GGUF_E_INVALID     The weights are locked.
 * GGUF_E_NOMEM, GGUF_E_LIMIT
 * GGUF_E_IO          Reading failed.
 * GGUF_E_TRUNCATED   The file has become shorter.
 * GGUF_E_CANCELLED   Progress asked to stop.
 * Others             Statuses of the buffers. */
enum gguf_status gg_weights_move(struct gguf_model *m,
                                 struct gg_weight_move *move, size_t n,
                                 const struct gguf_model_job *job,
                                 struct gguf_error *err);

/* Is weight i used in the mapping of its file? */
bool gg_weight_is_mapped(const struct gguf_model *m, size_t i);

/* Can all weights be read from memory? GGUF_E_UNSUPPORTED: a weight lies in a
 * file that is read through a reader and was not copied. */
enum gguf_status gg_weights_check_in_memory(const struct gguf_model *m,
                                            struct gguf_error *err);

#endif
