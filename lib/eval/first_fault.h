/* SPDX-License-Identifier: MIT */
/* first_fault.h - find the first result of a text that is not finite */
#ifndef GG_EVAL_FIRST_FAULT_H
#define GG_EVAL_FIRST_FAULT_H

#include "eval/window.h"

#include <stdbool.h>

/* Chunks of a scan that were computed together, one for each sequence of the
 * sessions. */
struct gg_first_fault_place {
    const struct gg_window_list *windows;
    struct gguf_session *const *session;
    size_t n_models;
    size_t chunk; /* the first of these chunks */
    size_t at;    /* number of the output that is row 0 of the logits */
    bool all; /* all tokens of that chunk are outputs, not only scored ones */
};

/* Add to err where in the text a result is that is not finite, if the last
 * call of a model's session found one (gguf_session_set_finite_check()). st is
 * the status of that call. Returns st. */
enum gguf_status gg_first_fault_locate(const struct gg_first_fault_place *p,
                                       size_t model, enum gguf_status st,
                                       struct gguf_error *err);

/* Find the cause of a result that is not finite, which err reports. The batch,
 * which must be the place's whole chunk, is computed again; this clears the
 * sessions. The cause is added to the message, if it is found. */
void gg_first_fault_add_cause(const struct gg_first_fault_place *p,
                              const struct gguf_batch *batch,
                              struct gguf_error *err);

#endif
