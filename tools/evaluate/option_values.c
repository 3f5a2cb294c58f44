/* SPDX-License-Identifier: MIT */
/* option_values.c - defaults and parsed values, after all options were read */
#include "config.h"
#include "tools/evaluate/options.h"
#include "tools/common/msg.h"
#include "tools/common/range.h"

#include <string.h>

static void choose_cache_types(struct ev_options *o)
{
    if (o->key_dtype == EV_NO_DTYPE)
        o->key_dtype = o->cache_dtype;
    if (o->value_dtype == EV_NO_DTYPE)
        o->value_dtype = o->cache_dtype;
}

static void check_places(const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *eq = strrchr(l->arg[i], '=');
        if (!eq || eq == l->arg[i] || !eq[1])
            opt_usage("--override-tensor: '%s' is not PATTERN=BUFFER",
                      l->arg[i]);
    }
}

/* Parse --control-vector-layer-range. */
static void parse_layer_range(struct ev_options *o)
{
    uint64_t first, last;
    char text[24];
    const char *range = o->control_range;
    const char *comma = range ? strchr(range, ',') : NULL;
    if (!range)
        return;
    if (comma && comma - range < (ptrdiff_t)sizeof text) {
        memcpy(text, range, (size_t)(comma - range));
        text[comma - range] = '\0';
        if (opt_parse_u64(text, &first) && opt_parse_u64(comma + 1, &last) &&
            first >= 1 && first <= last && last <= UINT32_MAX) {
            o->control_first = (uint32_t)first;
            o->control_last = (uint32_t)last;
            return;
        }
    }
    opt_usage("--control-vector-layer-range: '%s' is not FIRST,LAST, with "
              "FIRST at least 1 and LAST at least FIRST",
              range);
}

/* An attention mask has 4 bytes for each token of the context and each token
 * of a micro-batch. Long contexts get smaller micro-batches, to keep it at 32
 * MiB. */
void ev_choose_ubatch(struct ev_options *o)
{
    enum { MOST = 512, LEAST = 64 };
    const uint32_t n = o->n_ctx ? (UINT32_C(32) << 20) / 4 / o->n_ctx : 0;
    if (!o->n_ubatch && o->n_ctx)
        o->n_ubatch = n > MOST ? MOST : n < LEAST ? LEAST : n / LEAST * LEAST;
}

void ev_finish_options(struct ev_options *o)
{
    ev_choose_ubatch(o);
    if (o->chunks && !range_parse(o->chunks, &o->first_chunk, &o->n_chunks))
        opt_usage("--chunks: '%s' is not a number of chunks or a range A..B",
                  o->chunks);
    check_places(&o->places);
    if (o->n_threads_batch)
        o->n_threads = o->n_threads_batch;
    if (!o->n_threads)
        o->n_threads = gguf_cpu_count();
    choose_cache_types(o);
    scaled_parse(&o->loras, "--lora", &o->lora_texts);
    scaled_parse(&o->controls, "--control-vector", &o->control_texts);
    parse_layer_range(o);
}

void ev_options_fini(struct ev_options *o)
{
    opt_list_fini(&o->kv_texts);
    opt_list_fini(&o->lora_texts);
    opt_list_fini(&o->control_texts);
    opt_list_fini(&o->places);
    scaled_fini(&o->loras);
    scaled_fini(&o->controls);
}

void ev_set_positions(const struct ev_positions *pos,
                      struct gguf_session_params *p)
{
    const double factor =
        pos->freq_scale > 0 ? 1 / pos->freq_scale : pos->scale;
    p->rope_freq_base = (float)pos->base;
    p->rope_factor = (float)factor;
    p->rope_scaling = (enum gguf_rope_scaling)pos->scaling;
    p->yarn_orig_ctx = pos->yarn_ctx;
    if (pos->yarn_ext >= 0) {
        p->yarn_ext = GGUF_YARN_EXT_FACTOR;
        p->yarn_ext_factor = (float)pos->yarn_ext;
    }
    p->yarn_attn_factor = (float)pos->yarn_attn;
    p->yarn_beta_fast = (float)pos->yarn_fast;
    p->yarn_beta_slow = (float)pos->yarn_slow;
    if (pos->window != UINT32_MAX) {
        p->window = pos->window ? GGUF_SLIDING_WINDOW_TOKENS
                                : GGUF_SLIDING_WINDOW_NONE;
        p->n_window = pos->window;
    }
}
