/* SPDX-License-Identifier: MIT */
/* first_fault.h - where in a text the first result is that is not finite */
#ifndef GG_EVAL_FIRST_FAULT_H
#define GG_EVAL_FIRST_FAULT_H

#include "eval/window.h"

#include <stdbool.h>

/* What sessions computed side by side: chunks of a scan, a sequence each. */
struct gg_first_fault_place {
    const struct gg_window_list *windows;
    struct gguf_session *const *session;
    size_t n_models;
    size_t chunk; /* the first of them, */
    size_t at;    /* and the output that row 0 of logits is of */
    bool all;     /* every token of that chunk is an output, not scored ones */
};

/* st is what the last call of a model's session returned: if it found something
 * that is not finite (gguf_session_set_finite_check), say where in the text.
 * Returns st.
 */
enum gguf_status gg_first_fault_locate(const struct gg_first_fault_place *p,
                                       size_t model, enum gguf_status st,
                                       struct gguf_error *err);

/* Something that was computed of batch, which is all of the place's chunk, is
 * not finite, and err says so: compute it again, which clears the sessions, and
 * add to the message where it comes from, if that is found. */
void gg_first_fault_add_cause(const struct gg_first_fault_place *p,
                              const struct gguf_batch *batch,
                              struct gguf_error *err);

#endif
