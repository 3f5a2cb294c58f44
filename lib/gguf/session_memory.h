/* SPDX-License-Identifier: MIT */
/* session_memory.h - memory of a session, and types of its keys
 *
 * Before a session is created, these tell its size:
 *
 *     gguf_session_estimate_memory()         keys and values, graphs
 *     gguf_session_estimate_peak_memory()    all that it ever has at once
 *
 * gguf_session_memory_size() tells the size of a session that exists.
 *
 * Keys and values can be kept in nine types (key_dtype and value_dtype of
 * struct gguf_session_params): F32, F16, BF16, Q8_0, Q5_0, Q5_1, Q4_0, Q4_1 and
 * IQ4_NL. The type of keys is also that of the rows that latent attention keeps
 * in place of keys and values, and of the keys of an indexer that selects
 * tokens. States of recurrences are always F32.
 *
 * A token's keys and values are encoded once, by the type's encoder without
 * importance data. Attention computes with the decoded numbers: the CPU's exact
 * mode rounds nothing else, and a single token decodes each row that it sees
 * once.
 *
 * The error of one number x, in a block of 32 numbers whose greatest magnitude
 * is m and whose span from the least to the greatest is w, is at most:
 *
 *     F16     2^-11 |x|, or 2^-25 if that is more; |x| up to 65504
 *     BF16    2^-8 |x|
 *     Q8_0    m / 254: half a step of m / 127
 *     Q5_0    m / 32: half a step; a whole step, m / 16, if the sign differs
 *             from that of the number with the greatest magnitude
 *     Q4_0    m / 16: half a step; a whole step, m / 8, if the sign differs
 *             likewise
 *     Q5_1    w / 62: half a step of w / 31
 *     Q4_1    w / 30: half a step of w / 15
 *     IQ4_NL  14 m / 127 for the scale that maps the number with the greatest
 *             magnitude to -127 of the table. The encoder may take another
 *             scale: the sum of x^2 times the squared error is then not
 *             larger than with that one.
 *
 * Rounding a block's scale to F16 adds 2^-11 of the result; for Q5_1 and Q4_1
 * also 2^-11 of the span and of the least number. If a block is so small that
 * its scale is a subnormal F16, it adds 2^-25 for each step of the code
 * instead: 127 steps in Q8_0 and IQ4_NL, 31 in Q5_1, 16 in Q5_0, 15 in Q4_1 and
 * 8 in Q4_0.
 *
 * gguf_session_create() refuses other types with GGUF_E_INVALID. It refuses a
 * type whose blocks of 32 do not divide a head's keys or values, or the parts
 * of a latent row, with GGUF_E_UNSUPPORTED; the message then has the key with
 * their length.
 */
#ifndef GGUF_SESSION_MEMORY_H
#define GGUF_SESSION_MEMORY_H

#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Estimate the memory of a session for keys, values and states, and for graphs.
 *
 * model        Model of the session.
 * params       Parameters of the session.
 * cache_size   Receives bytes of keys, values and states.
 * graph_size   Receives bytes of graphs.
 *
 * The graphs are planned as by gguf_session_create(), but nothing of that size
 * is allocated.
 *
 * Fails as gguf_session_create() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_estimate_memory(const struct gguf_model *model,
                             const struct gguf_session_params *params,
                             uint64_t *cache_size, uint64_t *graph_size,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the most memory that a session has allocated at any one time.
 *
 * model    Model of the session.
 * params   Parameters of the session.
 * size     Receives the bytes.
 *
 * They include keys, values, states, graphs, the tables that say which token
 * lies where, plans, outputs, the session itself, and the scratch memory of a
 * CPU backend that has computed nothing before. Buffers of devices count like
 * those of the host. Creating the session and decoding take exactly that much,
 * on the same number of threads, unless decoding allocates more
 * (gguf_session_create()).
 *
 * They do not include the model, adapters, memory that a preferred backend
 * keeps for itself unless it reports it (plan_memory in backend_impl.h), and
 * memory that is in use only during calls that save, restore, shift, change
 * adapters or decode layer by layer.
 *
 * Fails as gguf_session_create() does. Since: 0.1 */
GGUF_API enum gguf_status gguf_session_estimate_peak_memory(
    const struct gguf_model *model, const struct gguf_session_params *params,
    uint64_t *size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Tell the memory of a session, on all of its backends together.
 *
 * cache_size   Receives bytes of keys, values and states.
 * graph_size   Receives bytes of graphs.
 *
 * Since: 0.1 */
GGUF_API void gguf_session_memory_size(const struct gguf_session *s,
                                       uint64_t *cache_size,
                                       uint64_t *graph_size);

#ifdef __cplusplus
}
#endif
#endif
