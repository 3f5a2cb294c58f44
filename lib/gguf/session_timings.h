/* SPDX-License-Identifier: MIT */
/* session_timings.h - how long a session takes
 *
 *     gguf_session_warm_up(s, &err);
 *     gguf_session_reset_timings(s);
 *     ... decode ...
 *     const struct gguf_session_timings *t = gguf_session_timings(s);
 *     rate = t->prompt.n / t->prompt.seconds;
 *
 * gguf_session_set_profile() reports the times of single operations.
 *
 * Threads: one thread at a time for each session.
 */
#ifndef GGUF_SESSION_TIMINGS_H
#define GGUF_SESSION_TIMINGS_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work of one kind and the time that it took. Work of calls that failed does
 * not count. Later versions add no members to this struct. */
struct gguf_session_stage {
    uint64_t n;       /* things that were worked on, such as tokens */
    uint64_t n_calls; /* pieces in which they were worked on */
    double seconds;   /* time, by a monotonic clock */
};

/* Times of a session since it was created, or since they were last reset. The
 * time of a backend that computes asynchronously counts where the session waits
 * for it. Only the library makes it; later versions may add members at its end.
 */
struct gguf_session_timings {
    /* Seconds of gguf_session_create(). A reset does not change it. */
    double create;

    /* Graphs that were built and planned. Their time is also part of the pass
     * that needed them. */
    struct gguf_session_stage plan;

    /* Tokens of batches with two or more tokens. Pieces are micro-batches; of
     * gguf_session_decode_layered() layers of micro-batches. */
    struct gguf_session_stage prompt;

    /* Tokens of batches with one token, as in generation. */
    struct gguf_session_stage single;

    struct gguf_session_stage logits; /* rows of logits; pieces are calls */

    /* Tokens that were encoded, and all tokens of an encoder. Pieces are
     * micro-batches. */
    struct gguf_session_stage encode;

    struct gguf_session_stage warm_up; /* bytes of weights; pieces are calls */
};

/* Times of the session. Owned by the session; its calls change them.
 * Since: 0.1 */
GGUF_API const struct gguf_session_timings *
gguf_session_timings(const struct gguf_session *s);

/* Set all times but that of the creation to 0. Since: 0.1 */
GGUF_API void gguf_session_reset_timings(struct gguf_session *s);

/* Make the next decode as fast as later ones: read every page of weights in
 * host memory, and plan the graphs that gguf_session_create() plans again, as
 * after a change of adapters.
 *
 * It changes no sequence, no digit and no outputs of the last decode. Call it
 * before times are measured.
 *
 * Fails as gguf_session_create() does when it plans graphs. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_warm_up(struct gguf_session *s,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Set the callback that receives the time of each node from now on (profile.h):
 * of passes through the layers, of logits and pooled vectors, and of shifts of
 * positions.
 *
 * profile   The callback. With fn NULL: measure nothing, as at first.
 *
 * Sessions that share a backend must not both have a profile.
 *
 * Returns GGUF_OK, or the first failure of work that was under way.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_set_profile(struct gguf_session *s,
                         struct gguf_profile_callback profile,
                         struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
