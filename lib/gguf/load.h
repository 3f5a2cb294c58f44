/* SPDX-License-Identifier: MIT */
/* load.h - where the weights of a model lie in memory
 *
 * By default a model uses its weights in the mapping of the file: a page comes
 * into memory when it is first touched, and the system may drop it and read it
 * again. The functions here read the weights ahead, copy them into the model's
 * own memory, lock them, or place them on devices. Results are the same bits in
 * any case.
 *
 *     struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
 *     job.pool = pool;
 *     gguf_model_create(&model, file, NULL, &err);
 *     gguf_model_read_weights(model, &job, &err);     copy into memory
 *     gguf_model_lock_weights(model, &err);           forbid swapping
 *     gguf_model_place_weights(model, &sp, NULL, &err);    move to devices
 *     gguf_session_create(&session, model, &sp, &err);
 *
 * Each call is optional. gguf_model_prefetch_weights() is the alternative to
 * gguf_model_read_weights() that leaves weights in the mapping.
 *
 * Threads: one thread calls a function that takes a model that is not const,
 * and calls it before the model has sessions. Any thread may call the others.
 */
#ifndef GGUF_LOAD_H
#define GGUF_LOAD_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bring the pages of all weights in the mapping of the file into memory.
 *
 * job      Threads and progress. NULL: the calling thread, no progress.
 *
 * The system is advised of each piece before the piece is touched. It may still
 * drop pages later.
 *
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_prefetch_weights(const struct gguf_model *model,
                            const struct gguf_model_job *job,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy all weights from the mapping of the file into the model's own memory.
 *
 * job      Threads and progress. NULL: the calling thread, no progress.
 *
 * The memory comes from the model's allocator; copied_size of gguf_model_info()
 * then is its size. The pages of the mapping are released. The file must stay
 * open all the same, for its metadata. After a failure all weights lie where
 * they were before.
 *
 * GGUF_E_NOMEM       An allocation failed.
 * GGUF_E_IO          The file cannot be read.
 * GGUF_E_TRUNCATED   The file became shorter.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_INVALID     The weights are locked.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_read_weights(struct gguf_model *model,
                        const struct gguf_model_job *job,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Lock all weights in host memory, so that the system never swaps them out.
 *
 * They stay locked until the model is destroyed. After a failure none is
 * locked.
 *
 * GGUF_E_LIMIT         The process may not lock that much. The message has both
 *                      sizes.
 * GGUF_E_IO            The system refused for another reason.
 * GGUF_E_UNSUPPORTED   The system cannot lock memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_lock_weights(struct gguf_model *model,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Release pages of the mapping that no weight of the model lies in: those of
 * tensors that the model does not use, and of weights that lie elsewhere. The
 * system reads such a page again if somebody touches it. Call it after
 * gguf_model_place_weights() to return memory early. Any thread. Since: 0.1 */
GGUF_API void gguf_model_release_pages(const struct gguf_model *model);

/* Rule: weights whose name matches a pattern go to one type of memory. Later
 * versions add no members to this struct. */
struct gguf_place_rule {
    /* Regular expression in Perl's syntax. It matches anywhere in the name,
     * whatever the case of letters. Borrowed during the call. */
    const char *pattern;
    /* Type of memory. It must outlive the model. */
    const struct gguf_buft *buft;
};

/* Options of gguf_model_place_weights(). */
struct gguf_place_params {
    size_t struct_size;

    /* Rules, the first one that matches a weight decides. NULL: no rules. */
    const struct gguf_place_rule *rules;
    size_t n_rules; /* number of rules */

    /* Threads and progress of the copies. NULL: the calling thread, no
     * progress. */
    const struct gguf_model_job *job;

    /* Split points, one for each preferred backend of the session. Backend i
     * gets the layers from split[i - 1] (from 0 if i is 0) to split[i] - 1. The
     * layers from the last split point on stay in host memory. NULL: the
     * library chooses. */
    const uint32_t *split;
    size_t n_split; /* number of split points */
};
#define GGUF_PLACE_PARAMS_INIT GGUF_INIT(struct gguf_place_params)

/* Copy each weight to the memory of the backend that will compute with it.
 *
 * session  Parameters of the session that will be created next. The devices of
 *          its backends must outlive the model.
 * params   Rules, split points and progress. NULL: the defaults.
 *
 * A weight goes to the first backend that supports every operation that reads
 * it, in passes of many tokens and of one. Preferred backends are asked first,
 * in their order; the operations are those of the session's graphs. A weight
 * stays where it is in these cases:
 *
 *     - That backend computes in host memory.
 *     - No operation reads the weight.
 *     - The device shares the host's memory (GGUF_DEVICE_CAP_HOST_PTR), and
 *       uses the mapping of the file.
 *     - It lies on one of the session's devices already, and no rule and no
 *       split point asks for another place.
 *
 * If a device reports its free memory and has too little for its weights, its
 * part of the session's memory and its graphs, layers are divided over the
 * devices in order, in proportion to their free memory. A weight then lies with
 * its layer. Layers that fit on no device, and weights that the device of their
 * layer cannot compute with, stay in host memory.
 *
 * Layers are numbered as in the names of weights; those of a decoder come after
 * those of its encoder. Embeddings belong to the first layer. The output norm
 * and the output matrix are one further layer, after the last.
 *
 * Without this call the scheduler copies weights to such a backend for each
 * graph, if gguf_device_offloads_op() says that this pays, or does without the
 * backend. After a failure all weights lie where they were before.
 *
 * GGUF_E_OP          A rule puts a weight into memory in which no backend
 *                    computes the operations that read it. The message names
 *                    both.
 * GGUF_E_NOTFOUND    A pattern matches no weight.
 * GGUF_E_FORMAT      A pattern is not a regular expression.
 * GGUF_E_INVALID     n_split is not the number of preferred backends, or a
 *                    split point is less than the one before it.
 * GGUF_E_LIMIT       A pattern takes too long to match a name.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Devices may return further statuses. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_place_weights(struct gguf_model *model,
                         const struct gguf_session_params *session,
                         const struct gguf_place_params *params,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Tell how gguf_model_place_weights() divides layers over devices.
 *
 * session  Parameters of the session.
 * split    Receives n_split split points, in the form that struct
 *          gguf_place_params has.
 * n_split  Number of the session's preferred backends.
 *
 * If weights lie on the devices already, the split points are those of the
 * layers there; else they are the ones that would be chosen. Nothing is copied.
 *
 * GGUF_E_INVALID   n_split is not the number of preferred backends.
 *
 * Fails otherwise as gguf_session_create() does. Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_split(const struct gguf_model *model,
                 const struct gguf_session_params *session, uint32_t *split,
                 size_t n_split, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
