/* SPDX-License-Identifier: MIT */
/* embedding_metric.h - metric of the token embedding, without gradients
 *
 * A row of the embedding is normalized and multiplied by matrices W of the
 * first layer. With the weights g of the normalization, the mean square of the
 * outputs' errors is, up to a factor of the row, e' M e for an error e of the
 * row, with
 *
 *     M = sum over W of diag(g) W'W diag(g)
 *
 * for query, key, value, gate and up. Attention's output and the other layers
 * are left out: with them, the metric of a trained model was nearly that of
 * plain squares, and worse. */
#ifndef GG_CALIBRATE_EMBEDDING_METRIC_H
#define GG_CALIBRATE_EMBEDDING_METRIC_H

#include "gguf/model.h"
#include "kern/codec.h"
#include "linalg/linalg.h"

/* Compute the metric from the weights of a model.
 *
 * codec   codecs of tensors in memory, [GG_N_DTYPES]
 * m       Receives n x n floats, symmetric; free them with gg_mem_free(), by
 *         the allocator of la. NULL: the first layer lacks these matrices.
 * n       receives the number of columns
 *
 * GGUF_E_NOMEM  Out of memory. */
enum gguf_status gg_embedding_metric(const struct gguf_model *model,
                                     const struct gg_codec_kern *codec,
                                     struct gg_linalg *la, float **m,
                                     size_t *n, struct gguf_error *err);

#endif
