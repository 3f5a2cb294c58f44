/* SPDX-License-Identifier: MIT */
/* bisect.h - which weights of a quantized model cost most
 *
 * A model (a quantized file) and a base (the file that it was made from)
 * diverge by KLD (kld.h) on a text. One weight of the model at a time, or a
 * group of them, is taken from the base instead, where it lies; what the
 * divergence then is less is what that weight or group costs:
 *
 *     gain = KLD of the model - KLD of the model with the base's weights
 *
 * Groups are weights of one name in all layers, all weights of a layer, or
 * halves: weights in the order of suspicion are cut in two where half the sum
 * of suspicions is reached, both parts are measured, and then the one that
 * gains most of all that are not cut yet is cut in the same way, down to single
 * weights. What gains less than a twentieth of the model's divergence is not
 * cut. So a few measurements tell which of hundreds of weights cost most.
 *
 * Weights are measured in the order of suspicion, the energy of the error that
 * the weight's product is expected to have, relative to the product's own:
 * with W and B the weight of model and base and e(j) = mean x(j)^2 of column j
 * of its input in the base (collect.h; 1 where a weight is not multiplied by
 * inputs),
 *
 *     suspicion = sum over i, j of (W(i,j) - B(i,j))^2 e(j)
 *                 / sum over i, j of B(i,j)^2 e(j)
 *
 * summed over experts with the counts of their inputs; a group's is the sum of
 * its weights'. Weights that are the same in both are left out. The base is
 * computed twice for all of this (inputs, and states, of which n_embd floats
 * are kept for each scored token; its logits are made of them again), the model
 * once and once for each weight or group. Both files stay mapped, and no weight
 * is copied. Digits are those of gguf_scan_run_models with a file in which the
 * weights are replaced.
 *
 *     gguf_bisect_run(&b, model, session, base_session, tokens, n, &params,
 *                     &err);
 *     for (size_t i = 0; i < gguf_bisect_n_entries(b); i++)
 *         show(gguf_bisect_entry(b, i));
 */
#ifndef GGUF_BISECT_H
#define GGUF_BISECT_H

#include <gguf/kld.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_bisect;

/* What is exchanged together. */
enum gguf_bisect_grouping {
    GGUF_BISECT_WEIGHT, /* one weight */
    GGUF_BISECT_KIND,   /* the weights of all layers with the same name */
    GGUF_BISECT_LAYER,  /* those of a layer; one that is of none by itself */
    GGUF_BISECT_HALVES
};

/* A weight that differs. Made by the library: it may grow at its end. */
struct gguf_bisect_weight {
    const char *name;
    uint32_t dtype, base_dtype;
    uint64_t size, base_size; /* bytes */
    double suspicion;
};

/* Weights that are exchanged together: one, or a group, of which size,
 * base_size and suspicion are the sums. Made by the library: it may grow at its
 * end. */
struct gguf_bisect_entry {
    const char *name; /* of the weight; of a kind with * for the number of the
                       * layer, of a layer "blk.3.*", of a half that of its most
                       * suspicious weight */
    uint32_t dtype, base_dtype; /* UINT32_MAX: not all of one type */
    uint64_t size, base_size;   /* bytes */
    double suspicion;
    bool measured;          /* else what follows is 0 */
    struct gguf_figure kld; /* with the base's weights */
    double gain;            /* nats */
    bool halved;            /* both halves of it are entries, too */
    size_t n_weights;       /* at least 1 */
};

/* After each entry, of which n_done of n_all (at most; halves are found as it
 * goes) are measured; 0 is the model as it is (entry NULL). A result other than
 * 0 ends the run, not as a failure. */
typedef int gguf_bisect_fn(void *user, const struct gguf_bisect *b,
                           const struct gguf_bisect_entry *entry,
                           size_t n_done, size_t n_all);

struct gguf_bisect_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    const struct gguf_scan_params *scan;    /* which chunks, pool; NULL: the
                              * defaults. Its progress is asked in each scan,
                              * and a result other than 0 ends the run as
                              * on_done does */
    double seconds;     /* begin no measurement after so many, and stop one
                              * that is under way; 0: no limit */
    size_t max_weights; /* entries measured at most; 0: all */
    gguf_bisect_fn *on_done; /* or NULL */
    void *user;              /* of on_done */
    enum gguf_bisect_grouping by;
};
#define GGUF_BISECT_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_bisect_params), NULL, NULL, 0, 0, NULL, NULL,      \
            GGUF_BISECT_WEIGHT                                                \
    }

/* model: that of session, which nobody else uses meanwhile; its weights are
 * its own again afterwards. Sessions as for gguf_scan_run_models; they are
 * cleared. That the time is over, or a callback ends the run, is no failure:
 * weights that were not measured say so; but GGUF_E_CANCELLED before the model
 * itself was measured. GGUF_E_INVALID (params, text, vocabularies, another
 * model than the session's), GGUF_E_NONFINITE, GGUF_E_NOMEM, and the statuses
 * of sessions. Since: 0.1 */
GGUF_API enum gguf_status
gguf_bisect_run(struct gguf_bisect **out, struct gguf_model *model,
                struct gguf_session *session, struct gguf_session *base,
                const gguf_token *token, size_t n,
                const struct gguf_bisect_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_bisect_destroy(struct gguf_bisect *b);

/* The divergence of the model as it is. Since: 0.1 */
GGUF_API struct gguf_figure gguf_bisect_kld(const struct gguf_bisect *b);

/* Entries: weights that differ, or groups of them. Those that were measured by
 * gain for each byte that the base's take more (one that takes none comes first
 * if it gains, last if not), then the others by suspicion; after these halves
 * that were halved, so that each weight is in one entry before them. NULL if i
 * is out of range. Owned by b. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_entries(const struct gguf_bisect *b);
GGUF_API size_t gguf_bisect_n_measured(const struct gguf_bisect *b);
GGUF_API const struct gguf_bisect_entry *
gguf_bisect_entry(const struct gguf_bisect *b, size_t i);
/* Weight k of entry i, by suspicion. NULL if one is out of range. Owned by b.
 * Since: 0.1 */
GGUF_API const struct gguf_bisect_weight *
gguf_bisect_weight(const struct gguf_bisect *b, size_t i, size_t k);
/* How many weights differ and are in entries. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_weights(const struct gguf_bisect *b);
/* How many weights differ that could not be exchanged: those with a scale
 * beside them, of another shape, or that the base lacks. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_left_out(const struct gguf_bisect *b);

#ifdef __cplusplus
}
#endif
#endif
