/* SPDX-License-Identifier: MIT */
/* session_state.h - save the state of sequences, and continue from it later
 *
 * A state is everything that a session keeps of one sequence, or of all, as
 * bytes. Another session can continue from it: in another process, on another
 * number of threads, with another n_ubatch, n_ctx and n_seq.
 *
 *     st = gguf_session_save_state(s, 0, "prompt.state", false, &err);
 *     ...
 *     st = gguf_session_load_state(other, 3, "prompt.state", &err);
 *
 * The other session computes the same digits. Last bits may differ in two
 * cases: the state of one sequence is placed beside others in a unified
 * session, or the sessions differ in full_windows.
 *
 * The model of the other session must have the same hyperparameters and weights
 * of the same types and shapes; positions must be scaled in the same way, keys
 * and values must have the same types, and n_ctx must be the same if keys stand
 * for blocks of tokens. All else is refused. The values of weights and the
 * adapters are not compared. Outputs of the last batch are not part of a state.
 *
 * The bytes have one order on all machines, and end with a checksum (XXH3). Any
 * machine can continue from the state of another. The numbers are as they were
 * computed, and their last bits may differ between instruction sets
 * (<gguf/cpu.h>).
 *
 * Threads: one thread at a time for each session.
 */
#ifndef GGUF_SESSION_STATE_H
#define GGUF_SESSION_STATE_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of a sequence that stands for all sequences of the session. */
#define GGUF_ALL_SEQUENCES UINT32_MAX

/* Size of a state.
 *
 * seq      A sequence, or GGUF_ALL_SEQUENCES.
 * size     Receives the bytes.
 *
 * GGUF_E_INVALID       seq is out of range.
 * GGUF_E_UNSUPPORTED   The model is an encoder, which has no state.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_size(struct gguf_session *s, uint32_t seq, uint64_t *size,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Write a state to memory.
 *
 * seq      A sequence, or GGUF_ALL_SEQUENCES.
 * state    Memory for the state.
 * size     Bytes at state: exactly those of gguf_session_state_size().
 *
 * GGUF_E_INVALID       seq is out of range, or size is not the state's.
 * GGUF_E_UNSUPPORTED   The model is an encoder, which has no state.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Devices may return further statuses. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_get(struct gguf_session *s, uint32_t seq, void *state,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Replace a sequence, or all of them, by a state in memory.
 *
 * seq      Sequence that is replaced; the state may be that of a sequence with
 *          another number. GGUF_ALL_SEQUENCES for a state of all.
 * state    The state.
 * size     Bytes of the state.
 *
 * The whole state is checked before anything changes. In errors err->offset is
 * a byte of the state.
 *
 * GGUF_E_FORMAT        The bytes are not a state, or contradict each other.
 * GGUF_E_TRUNCATED     The state ends too early.
 * GGUF_E_VERSION       The state was written by a later version.
 * GGUF_E_MISMATCH      The checksum is wrong; or the state is that of another
 *                      model, has other types of keys and values, has one
 *                      sequence in place of all or all in place of one, comes
 *                      from a unified session and this one is not unified, or
 *                      the reverse, or has more sequences.
 * GGUF_E_FULL          The state has more tokens than there is room for.
 * GGUF_E_UNSUPPORTED   Layers with a sliding window have forgotten tokens that
 *                      this session would keep; or the model is an encoder,
 *                      which has no state.
 * GGUF_E_INVALID       seq is out of range.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * After a failure of a device, clear the sequences. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_set(struct gguf_session *s, uint32_t seq, const void *state,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Write a state to a file. The file appears complete or not at all (outfile.h).
 *
 * seq      A sequence, or GGUF_ALL_SEQUENCES.
 * path     Path of the file.
 * force    Replace a file that exists.
 *
 * GGUF_E_EXIST         The file exists, and force is false.
 * GGUF_E_IO            The file cannot be written.
 * GGUF_E_NOSPACE       The file system has too little room.
 * GGUF_E_INVALID       seq is out of range.
 * GGUF_E_UNSUPPORTED   The model is an encoder, which has no state.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Devices may return further statuses. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_save_state(struct gguf_session *s, uint32_t seq, const char *path,
                        bool force, struct gguf_error *err) GGUF_MUST_CHECK;

/* Replace a sequence, or all of them, by a state in a file.
 *
 * seq      Sequence that is replaced, or GGUF_ALL_SEQUENCES.
 * path     Path of the file. It must not change during the call.
 *
 * GGUF_E_IO   The file cannot be read.
 *
 * Fails otherwise as gguf_session_state_set() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_load_state(struct gguf_session *s, uint32_t seq, const char *path,
                        struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
