/* SPDX-License-Identifier: MIT */
/* bisect.h - find the weights of a quantized model that cost most
 *
 * A model (a quantized file) and a base (the file that it was made from) have a
 * divergence on a text (kld.h). One weight of the model, or a group of weights,
 * is replaced by the base's, and the divergence is measured again. The
 * reduction is the cost of that weight or group:
 *
 *     gain = KLD of the model - KLD of the model with the base's weights
 *
 * Example:
 *
 *     gguf_bisect_run(&b, model, session, base_session, t.id, t.n, &params,
 *                     &err);
 *     for (size_t i = 0; i < gguf_bisect_n_entries(b); i++)
 *         show(gguf_bisect_entry(b, i));
 *     gguf_bisect_destroy(b);
 *
 * Groups (enum gguf_bisect_grouping) are the weights of one name in all layers,
 * all weights of a layer, or halves. Halves are found step by step: the weights
 * in the order of suspicion are split where half the sum of suspicions is
 * reached, and both halves are measured; then the half with the largest gain is
 * split in the same way, down to single weights. A half with a gain below a
 * twentieth of the model's divergence is not split. So a few measurements find
 * the costliest of hundreds of weights.
 *
 * Suspicion is the expected energy of the error of a weight's product, relative
 * to the product itself. With W and B the weight of model and base, and e(j) =
 * mean x(j)^2 of column j of its input in the base (collect.h; 1 for a weight
 * that multiplies no input):
 *
 *     suspicion = sum over i, j of (W(i,j) - B(i,j))^2 e(j)
 *                 / sum over i, j of B(i,j)^2 e(j)
 *
 * Experts are summed with the counts of their inputs; a group has the sum of
 * its weights' suspicions. Weights are measured in the order of suspicion.
 * Weights that are equal in both files are left out.
 *
 * The base is computed twice: once for the inputs, and once for its states,
 * which are kept with n_embd floats for each scored token; logits are computed
 * from them again. The model is computed once, and once more for each weight or
 * group. Both files stay mapped, and no weight is copied. Digits are those of
 * gguf_scan_run_models() with a file in which the weights are replaced.
 *
 * Threads: one thread at a time for each object and each session.
 */
#ifndef GGUF_BISECT_H
#define GGUF_BISECT_H

#include <gguf/kld.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_bisect;

/* Weights that are replaced together. */
enum gguf_bisect_grouping {
    GGUF_BISECT_WEIGHT, /* one weight */
    GGUF_BISECT_KIND,   /* weights of all layers with the same name */
    GGUF_BISECT_LAYER,  /* weights of a layer; others one by one */
    GGUF_BISECT_HALVES  /* halves of all weights, split further */
};

/* Type of a group whose weights have different types. */
#define GGUF_BISECT_MIXED_DTYPE UINT32_MAX

/* A weight that differs. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_bisect_weight {
    const char *name;           /* name of the tensor */
    uint32_t dtype, base_dtype; /* types in model and base */
    uint64_t size, base_size;   /* bytes in model and base */
    double suspicion;           /* expected relative error */
};

/* A weight or a group of weights that are replaced together. Only the library
 * makes it; later versions may add members at its end. */
struct gguf_bisect_entry {
    /* Name: that of the weight; of a kind with * for the number of the layer;
     * "blk.3.*" of a layer; of a half that of its most suspicious weight. */
    const char *name;

    /* Types in model and base; GGUF_BISECT_MIXED_DTYPE: several. */
    uint32_t dtype, base_dtype;
    uint64_t size, base_size; /* bytes of all weights in model and base */
    double suspicion;         /* sum of the weights' suspicions */
    bool measured;            /* false: kld and gain are 0 */
    struct gguf_figure kld;   /* divergence with the base's weights, in nats */
    double gain;              /* reduction of the divergence, in nats */
    bool halved;              /* both halves of it are entries, too */
    size_t n_weights;         /* number of weights, 1 or more */
};

/* Called after each measurement.
 *
 * b        The results so far.
 * entry    Entry that was measured. NULL: the model itself.
 * n_done   Number of entries that are measured.
 * n_all    Largest number that will be measured.
 *
 * Returns true to end the run, which then succeeds. */
typedef bool gguf_bisect_fn(void *user, const struct gguf_bisect *b,
                            const struct gguf_bisect_entry *entry,
                            size_t n_done, size_t n_all);

/* Function that sees each measurement. Later versions add no members to this
 * struct. */
struct gguf_bisect_callback {
    gguf_bisect_fn *fn; /* NULL: none */
    void *user;         /* first argument of fn */
};

/* Options of gguf_bisect_run(). */
struct gguf_bisect_params {
    size_t struct_size;

    /* Allocator of the results. It must outlive them. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Chunks of the text, threads, and progress of each scan. If its progress
     * callback returns true, the run ends, as by on_done. NULL: the
     * defaults. */
    const struct gguf_scan_params *scan;

    /* Time limit in seconds: no measurement begins after it, and one that is
     * under way is stopped. 0: none. */
    double seconds;
    size_t max_weights; /* most entries that are measured; 0: no limit */
    struct gguf_bisect_callback on_done; /* sees each measurement */
    enum gguf_bisect_grouping by; /* weights that are replaced together */
};
#define GGUF_BISECT_PARAMS_INIT GGUF_INIT(struct gguf_bisect_params)

/* Measure weights of a model against a base.
 *
 * out       Receives the results. NULL after a failure.
 * model     Model of session. Nobody else may use it during the call; its
 *           weights are its own again afterwards.
 * session   Session of the model. It is cleared.
 * base      Session of the base, with a backend of its own. It is cleared.
 * token     Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n         Number of tokens.
 * params    Options. NULL: the defaults.
 *
 * Destroy *out with gguf_bisect_destroy(). If the time limit is reached or a
 * callback ends the run, the call succeeds, and entries that were not measured
 * say so.
 *
 * GGUF_E_INVALID     A member of params is out of range, the text is too short,
 *                    the vocabularies differ, or session has another model.
 * GGUF_E_CANCELLED   The run ended before the model itself was measured.
 * GGUF_E_NONFINITE   A logit is NaN or infinite.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Fails otherwise as gguf_session_decode() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_bisect_run(struct gguf_bisect **out, struct gguf_model *model,
                struct gguf_session *session, struct gguf_session *base,
                const gguf_token *token, size_t n,
                const struct gguf_bisect_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Free the results. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_bisect_destroy(struct gguf_bisect *b);

/* Divergence of the model as it is, in nats. Since: 0.1 */
GGUF_API struct gguf_figure gguf_bisect_kld(const struct gguf_bisect *b);

/* Number of entries. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_entries(const struct gguf_bisect *b);

/* Number of entries that were measured. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_measured(const struct gguf_bisect *b);

/* Entry i; NULL if i is out of range. Owned by b.
 *
 * Measured entries come first, sorted by gain for each byte that the base's
 * weights take more. An entry that takes no more comes before all others if it
 * gains, else after them. Then come entries that were not measured, sorted by
 * suspicion. Halves that were split come last, so that each weight is in one
 * entry before them. Since: 0.1 */
GGUF_API const struct gguf_bisect_entry *
gguf_bisect_entry(const struct gguf_bisect *b, size_t i);

/* Weight k of entry i, sorted by suspicion; NULL if one is out of range. Owned
 * by b. Since: 0.1 */
GGUF_API const struct gguf_bisect_weight *
gguf_bisect_weight(const struct gguf_bisect *b, size_t i, size_t k);

/* Number of weights that differ and are in entries. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_weights(const struct gguf_bisect *b);

/* Number of weights that differ and cannot be replaced: they have a scale
 * beside them, or the base lacks them or has another shape. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_left_out(const struct gguf_bisect *b);

#ifdef __cplusplus
}
#endif
#endif
