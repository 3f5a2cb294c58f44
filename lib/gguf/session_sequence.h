/* SPDX-License-Identifier: MIT */
/* session_sequence.h - the tokens that a session's sequences have
 *
 * gguf_session_decode() appends tokens to sequences. The functions here count,
 * remove, copy and move them. A conversation that has to be shortened, for
 * example, removes its oldest tokens and moves the others to their positions:
 *
 *     gguf_session_remove_tokens(s, 0, 0, n, &err);
 *     gguf_session_shift_positions(s, 0, n, -1, -n, &err);
 *
 * A range of positions is [begin, end): from begin to end - 1. If end is
 * negative, the range has all positions from begin on.
 *
 * Three kinds of models allow less. Each function refuses with
 * GGUF_E_UNSUPPORTED, and changes nothing:
 *
 *     recurrences       A state depends on all tokens of a sequence, so that
 *                       only whole sequences can be removed, copied or moved.
 *     sliding windows   A layer keeps its last tokens only. A call is refused
 *                       if the next token would see one that was forgotten.
 *                       Set full_windows to keep all tokens.
 *     encoder and       An encoded text belongs to all tokens of a sequence,
 *     decoder           and is copied with all of them.
 *
 * Threads: one thread at a time for each session.
 */
#ifndef GGUF_SESSION_SEQUENCE_H
#define GGUF_SESSION_SEQUENCE_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of tokens that a sequence has; tokens that were encoded for a decoder
 * do not count. 0 if seq is out of range. Since: 0.1 */
GGUF_API uint32_t gguf_session_n_tokens(const struct gguf_session *s,
                                        uint32_t seq);

/* Position that the next token of a sequence gets by default: one more than the
 * highest. 0 if the sequence is empty or seq is out of range. Since: 0.1 */
GGUF_API int32_t gguf_session_next_pos(const struct gguf_session *s,
                                       uint32_t seq);

/* Remove a range of tokens from a sequence.
 *
 * seq      The sequence. Out of range: the call does nothing.
 * begin    First position of the range.
 * end      Position after the range; negative: no end.
 *
 * A text that was encoded for a decoder stays. Holes that remain are closed
 * when a later batch needs the room, or when fewer cells can then be read.
 *
 * GGUF_E_UNSUPPORTED   The model cannot forget these tokens alone (see above).
 *                      Nothing has changed.
 *
 * Devices whose memory is cleared may return further statuses. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_remove_tokens(struct gguf_session *s, uint32_t seq, int32_t begin,
                           int32_t end,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Clear all sequences but one: their tokens and their encoded texts.
 *
 * seq      The sequence that stays as it is.
 *
 * GGUF_E_INVALID   seq is out of range.
 *
 * Fails otherwise as gguf_session_clear() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_remove_others(struct gguf_session *s, uint32_t seq,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy a range of tokens from one sequence to another.
 *
 * from     Sequence to copy from.
 * to       Sequence to copy to. Tokens that it has in the range are removed
 *          first.
 * begin    First position of the range.
 * end      Position after the range; negative: no end.
 *
 * The sequences are independent afterwards. In a unified session keys and
 * values are shared and not copied. The text that was encoded for a decoder is
 * copied, too.
 *
 * GGUF_E_INVALID       from or to is out of range.
 * GGUF_E_FULL          The other sequence has too little room.
 * GGUF_E_UNSUPPORTED   The model cannot copy these tokens alone, or the other
 *                      sequence has tokens outside of the range (see above).
 *
 * After each of these nothing has changed. Devices may return further statuses.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_copy_tokens(struct gguf_session *s, uint32_t from, uint32_t to,
                         int32_t begin, int32_t end,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Add a number to the positions of a range of tokens.
 *
 * seq      The sequence.
 * begin    First position of the range.
 * end      Position after the range; negative: no end.
 * delta    Number that is added, may be negative.
 *
 * Keys that RoPE has rotated are rotated by the difference, so that later
 * tokens see the moved ones as if they had been decoded there. Effects that the
 * moved tokens had on each other stay. A key in a shorter type than F32 is
 * rounded to that type again.
 *
 * A rotation multiplies the two numbers of a pair of length r by a rounded
 * cosine and a rounded sine, and rounds two products and a sum. Each number is
 * off by at most 3 u r, with u = 2^-24. A key that was rotated twice therefore
 * differs by less than 11 u r from that of a token that was decoded at the new
 * position: 3 for the second rotation, 3 sqrt(2) for the error of the first one
 * that it rotates, 3 for the other token. Rounding to the type of keys adds its
 * error twice.
 *
 * Before anything changes:
 *
 * GGUF_E_INVALID       seq is out of range, or a position would be negative or
 *                      too large.
 * GGUF_E_UNSUPPORTED   The model cannot move these tokens alone (see above), it
 *                      keeps positions in another way than in rotated keys, or
 *                      two tokens would come to one position in a layer with a
 *                      sliding window.
 * GGUF_E_FULL          Tokens are shared with other sequences, which do not
 *                      move, and there is too little room for copies.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * After any other status, such as GGUF_E_CANCELLED, the sequence must be
 * cleared. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_shift_positions(struct gguf_session *s, uint32_t seq,
                             int32_t begin, int32_t end, int32_t delta,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* Divide the positions of a range of tokens by a number, rounded down.
 *
 * seq      The sequence.
 * begin    First position of the range.
 * end      Position after the range; negative: no end.
 * divisor  Number to divide by, 1 or more.
 *
 * Keys are rotated, and their errors are bounded, as by
 * gguf_session_shift_positions().
 *
 * Before anything changes:
 *
 * GGUF_E_INVALID       seq is out of range, or divisor is less than 1.
 * GGUF_E_UNSUPPORTED   The model cannot move these tokens alone (see above), it
 *                      keeps positions in another way than in rotated keys, or
 *                      two tokens would come to one position in a layer with a
 *                      sliding window.
 * GGUF_E_FULL          Tokens are shared with other sequences, which do not
 *                      move, and there is too little room for copies.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * After any other status, such as GGUF_E_CANCELLED, the sequence must be
 * cleared. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_divide_positions(struct gguf_session *s, uint32_t seq,
                              int32_t begin, int32_t end, int32_t divisor,
                              struct gguf_error *err) GGUF_MUST_CHECK;

/* Clear all sequences: tokens, states, encoded texts and outputs.
 *
 * Fails if a device cannot clear its memory. Sequences may then be cleared in
 * part; call it again. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_clear(struct gguf_session *s,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
