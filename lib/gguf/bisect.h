/* bisect.h - which weights of a quantized model cost most
 *
 * A model (a quantized file) and a base (the file that it was made from)
 * diverge by KLD (kld.h) on a text. One weight of the model at a time is taken
 * from the base instead, where it lies; what the divergence then is less is
 * what that weight costs:
 *
 *     gain = KLD of the model - KLD of the model with the base's weight
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
 * summed over experts with the counts of their inputs. Weights that are the
 * same in both are left out. The base is computed twice for all of this
 * (inputs, and states, of which n_embd floats are kept for each scored token;
 * its logits are made of them again), the model once and once for each weight.
 * Both files stay mapped, and no weight is copied. Digits are those of
 * gguf_scan_run_models with a file in which the weight is replaced.
 *
 *     gguf_bisect_run(&b, model, session, base_session, tokens, n, &params,
 *                     &err);
 *     for (size_t i = 0; i < gguf_bisect_n(b); i++)
 *         show(gguf_bisect_at(b, i));
 */
#ifndef GGUF_BISECT_H
#define GGUF_BISECT_H

#include <gguf/kld.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_bisect;

/* A weight that differs. Made by the library: it may grow at its end. */
struct gguf_bisect_entry {
    const char *name;
    uint32_t dtype, base_dtype;
    uint64_t size, base_size; /* bytes */
    double suspicion;
    bool measured;          /* else what follows is 0 */
    struct gguf_figure kld; /* with the base's weight */
    double gain;            /* nats */
};

/* After each weight, of which n_done of n_all are measured; 0 is the model as
 * it is (entry NULL). A result other than 0 ends the run, not as a failure. */
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
    size_t max_weights; /* measured at most; 0: all */
    gguf_bisect_fn *on_done; /* or NULL */
    void *user;              /* of on_done */
};
#define GGUF_BISECT_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_bisect_params), NULL, NULL, 0, 0, NULL, NULL       \
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

/* Weights that differ: those that were measured by gain for each byte that the
 * base's takes more (one that takes none comes first if it gains, last if
 * not), then the others by suspicion. NULL if i is out of range. Owned by b.
 * Since: 0.1 */
GGUF_API size_t gguf_bisect_n(const struct gguf_bisect *b);
GGUF_API size_t gguf_bisect_n_measured(const struct gguf_bisect *b);
GGUF_API const struct gguf_bisect_entry *
gguf_bisect_at(const struct gguf_bisect *b, size_t i);
/* How many weights differ that could not be exchanged: those with a scale
 * beside them, of another shape, or that the base lacks. Since: 0.1 */
GGUF_API size_t gguf_bisect_n_left_out(const struct gguf_bisect *b);

#ifdef __cplusplus
}
#endif
#endif
