/* SPDX-License-Identifier: MIT */
/* stepper.c - compute passes step by step, so that results can be read between
 */
#include "config.h"
#include "run/session_int.h"

enum gguf_status gg_stepper_begin_pass(struct gg_stepper *w,
                                       struct gguf_session *s, bool *more,
                                       struct gguf_error *err)
{
    w->s = s;
    GG_TRY(gg_session_next_ubatch(s, more, err));
    if (!*more) {
        gg_session_finish_outputs(s, false);
        return GGUF_OK;
    }
    GG_TRY(gg_session_prepare_graph(s, &s->ubatch.shape, err));
    GG_TRY(gg_session_set_inputs(s, err));
    return gg_sched_stepper_begin(&w->sched, s->sched, s->pass.graph, err);
}

static enum gg_sched_answer is_wanted_node(void *user,
                                           const struct gguf_tensor *t)
{
    return t == user ? GG_SCHED_WANT : GG_SCHED_SKIP;
}

enum gguf_status gg_stepper_compute_to(struct gg_stepper *w,
                                       const struct gguf_tensor *node,
                                       struct gguf_error *err)
{
    const struct gg_sched_filter want = { is_wanted_node,
                                          (void *)(uintptr_t)node };
    struct gguf_tensor *at;
    GG_TRY(gg_sched_stepper_next(&w->sched, want, &at, err));
    return node ? GGUF_OK : gg_session_get_outputs(w->s, err);
}
