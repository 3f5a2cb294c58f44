/* SPDX-License-Identifier: MIT */
/* session_check.h - find the operation whose result is not finite
 *
 * A model may give NaN as a logit without saying where it comes from. A session
 * that checks looks at the result of every operation, and stops at the first
 * element that is NaN or infinite. Minus infinity from a mask is allowed.
 *
 *     gguf_session_set_finite_check(s, true);
 *     if (gguf_session_decode(s, &batch, &err) == GGUF_E_NONFINITE)
 *         show(gguf_session_fault(s)->tensor);
 *
 * Threads: one thread at a time for each session.
 */
#ifndef GGUF_SESSION_CHECK_H
#define GGUF_SESSION_CHECK_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A result that is not finite. Only the library makes it; later versions may
 * add members at its end. */
struct gguf_session_fault {
    const char *op;    /* name of the operation; static */
    char tensor[64];   /* name of the result; "": unnamed */
    char sources[120]; /* names of the operands: 'NAME', 'NAME' */

    /* Layer of the operation, from 0; -1: before the first layer or after the
     * last one. */
    int32_t layer;

    /* Sequence and position of the token; -1: unknown, or row says which output
     * it is. */
    int32_t seq, pos;

    /* Output of the last decode, for logits; -1: the operation is in a
     * layer. */
    int64_t row;
    float value; /* the element */
};

/* Switch the check on or off.
 *
 * check    True: decoding and logits fail with GGUF_E_NONFINITE at the first
 *          result that is not finite. False: no check.
 *
 * Digits do not change. With the check operations are computed one at a time,
 * which is slower. Since: 0.1 */
GGUF_API void gguf_session_set_finite_check(struct gguf_session *s,
                                            bool check);

/* Result that ended the last call with GGUF_E_NONFINITE; NULL if none did.
 * Owned by the session. Since: 0.1 */
GGUF_API const struct gguf_session_fault *
gguf_session_fault(const struct gguf_session *s);

/* Size of a buffer for any text of gguf_session_fault_text(). */
enum { GGUF_SESSION_FAULT_TEXT = 400 };

/* Describe a fault in one line: "layer 3: matmul 'blk.3.attn_q' of
 * 'blk.3.attn_q.weight', 'blk.3.attn_norm' is infinite at position 17 of
 * sequence 0".
 *
 * f        The fault.
 * out      Receives the text, with a NUL at its end.
 * size     Bytes at out. A longer text is cut.
 *
 * Returns out. Since: 0.1 */
GGUF_API const char *
gguf_session_fault_text(const struct gguf_session_fault *f, char *out,
                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
