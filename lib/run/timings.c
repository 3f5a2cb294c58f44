/* SPDX-License-Identifier: MIT */
/* timings.c - times of a session's stages; warming up */
#include "config.h"
#include "run/session_int.h"

#include "base/os/os.h"
#include "gguf/profile.h"

#include <string.h>

double gg_session_clock(void)
{
    return (double)gg_os_clock_ns() * 1e-9;
}

void gg_session_count_stage(struct gguf_session_stage *stage, uint64_t n,
                            double begin)
{
    stage->n += n;
    stage->n_calls++;
    stage->seconds += gg_session_clock() - begin;
}

const struct gguf_session_timings *
gguf_session_timings(const struct gguf_session *s)
{
    return &s->timings;
}

void gguf_session_reset_timings(struct gguf_session *s)
{
    s->timings = (struct gguf_session_timings){ .create = s->timings.create };
}

enum gguf_status gguf_session_set_profile(struct gguf_session *s,
                                          struct gguf_profile_callback profile,
                                          struct gguf_error *err)
{
    struct gguf_sched *of[] = { s->sched, s->head_sched, s->key_rotation.sched,
                                s->embed.sched };
    for (size_t i = 0; i < GG_LEN(of); i++)
        if (of[i])
            GG_TRY(gguf_sched_set_profile(of[i], profile, err));
    return GGUF_OK;
}

/* ---- warming up ---- */

/* No system has smaller pages. */
enum { PAGE = 4096 };

/* Read one byte of each page. volatile keeps the reads. */
static void touch_pages(const struct gguf_tensor *t)
{
    const volatile unsigned char *p = t->data;
    const uint64_t size = gguf_tensor_size(t);
    if (!t->buffer || !gguf_buft_is_host(gguf_buffer_buft(t->buffer)))
        return;
    for (uint64_t i = 0; i < size; i += PAGE)
        (void)p[i];
    if (size)
        (void)p[size - 1];
}

enum gguf_status gguf_session_warm_up(struct gguf_session *s,
                                      struct gguf_error *err)
{
    const double begin = gg_session_clock();
    const struct gguf_ctx *weights = s->given->ctx;
    for (const struct gguf_tensor *t = gguf_ctx_first_tensor(weights); t;
         t = gguf_ctx_next_tensor(weights, t))
        touch_pages(t);
    s->has_graph = false;
    GG_TRY(gg_session_reserve(s, err));
    gg_session_count_stage(&s->timings.warm_up, s->given->weight_size, begin);
    return GGUF_OK;
}
