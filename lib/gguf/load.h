/* SPDX-License-Identifier: MIT */
/* load.h - the weights of a model in memory
 *
 * A model uses its weights where they lie in the mapping of the file: pages
 * come into memory when they are touched first, and the system may drop them
 * and read them again. This is for programs that want it otherwise. Results
 * are the same bits in any case.
 *
 *     gguf_model_create(&model, file, NULL, &err);
 *     job.pool = pool;
 *     job.progress = show;
 *     gguf_model_prefetch_weights(model, &job, &err);    read ahead, or
 *     gguf_model_read_weights(model, &job, &err);        into memory of its own
 *     gguf_model_lock_weights(model, &err);              and stay there
 *     gguf_model_place_weights(model, &sp, NULL, &err);  onto devices
 *
 * What takes a model that is not const is called before there are sessions on
 * it, by one thread.
 */
#ifndef GGUF_LOAD_H
#define GGUF_LOAD_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bring the pages of all weights that are used in a mapping into memory, on
 * the threads of the job; the system is told of each piece before it is
 * touched. Whether they stay is the system's business. GGUF_E_CANCELLED
 * (progress), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_prefetch_weights(const struct gguf_model *model,
                            const struct gguf_model_job *job,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Read all weights that are used in a mapping into memory of the model's own,
 * from its allocator, on the threads of the job, and let the mapping's pages
 * go: gguf_model_info says in copied_size how much the model has. The file is
 * still needed, for its metadata. All or nothing: after a failure weights are
 * where they were.
 * GGUF_E_NOMEM, GGUF_E_IO, GGUF_E_TRUNCATED (the file became shorter),
 * GGUF_E_CANCELLED (progress), GGUF_E_INVALID (the weights are locked).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_read_weights(struct gguf_model *model,
                        const struct gguf_model_job *job,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Lock the weights that lie in host memory, so that the system keeps them
 * there until the model is destroyed. All or nothing. GGUF_E_LIMIT (the bytes,
 * and how many the process may lock), GGUF_E_IO, GGUF_E_UNSUPPORTED (the
 * system locks nothing). Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_lock_weights(struct gguf_model *model,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Let the pages of the mappings go that no weight of the model lies in: of
 * tensors that it does not use, and of weights that are elsewhere. They are
 * read again if somebody touches them. Cannot fail; any thread. Since: 0.1 */
GGUF_API void gguf_model_release_pages(const struct gguf_model *model);

/* Weights whose name matches go to memory of a type. It never grows. */
struct gguf_place_rule {
    const char *pattern; /* Perl's syntax, searched in the name; letter
                                   * case does not count; borrowed */
    const struct gguf_buft *buft; /* kept */
};

struct gguf_place_params {
    size_t struct_size;
    const struct gguf_place_rule *rules; /* n_rules; the first that matches a
                                          * weight counts */
    size_t n_rules;
    const struct gguf_model_job *job; /* of the copies; NULL: no progress */
    const uint32_t *split; /* n_split split points, one for each preferred
                            * backend: the first layer after those that it
                            * gets; NULL: chosen */
    size_t n_split;
};
#define GGUF_PLACE_PARAMS_INIT GGUF_INIT(struct gguf_place_params)

/* Copy each weight, once, to the memory of the backend that will compute with
 * it: of the session's backends, the preferred ones first, the first one that
 * supports every operation that reads the weight, in passes of many tokens and
 * of one. The operations are those of the session's graphs. Where that backend
 * computes in host memory, and where no operation reads it, a weight stays. A
 * device that shares the host's memory (GGUF_DEVICE_CAP_HOST_PTR) uses the
 * mapping of the file: nothing is copied. A weight that lies on one of the
 * devices stays there, unless a rule or a split point says otherwise.
 *
 * If the devices say how much memory is free, and it is too little for all that
 * would go to one of them (weights, what the session keeps, its graphs), layers
 * are divided over the devices in order, in proportion to their free memory: a
 * weight lies with its layer. Layers for which no device has room, and weights
 * of a layer that its device cannot compute with, stay in host memory.
 *
 * Split points say where layers are divided: preferred backend i gets the
 * layers from split[i - 1] (0: from the first one) to split[i] - 1; those after
 * the last split point stay in host memory. Layers are numbered as their
 * weights, those of a decoder after those of its encoder. Embeddings belong to
 * the first layer; the output norm and matrix are one layer more, after the
 * last.
 *
 * Without this call the scheduler copies weights to such a backend for each
 * graph (if it wants them so much: gguf_device_offloads_op), or does without
 * it.
 *
 * session: as for gguf_session_create later; its backends' devices must outlive
 * the model. params may be NULL. All or nothing. GGUF_E_OP (no backend computes
 * what reads a weight in the memory that a rule gives it: names both),
 * GGUF_E_NOTFOUND (a pattern matches no weight), GGUF_E_FORMAT (a pattern),
 * GGUF_E_INVALID (number of split points, or one is less than the one before),
 * GGUF_E_LIMIT, GGUF_E_NOMEM, GGUF_E_CANCELLED, what devices return.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_place_weights(struct gguf_model *model,
                         const struct gguf_session_params *session,
                         const struct gguf_place_params *params,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* The split points that gguf_model_place_weights would choose for such a
 * session, or those of the layers that lie on its devices already: one for each
 * preferred backend, n_split in all, in split. Nothing is copied.
 * GGUF_E_INVALID (n_split is not the number of preferred backends), and as
 * gguf_session_create fails. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_split(const struct gguf_model *model,
                 const struct gguf_session_params *session, uint32_t *split,
                 size_t n_split, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
