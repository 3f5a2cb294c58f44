/* SPDX-License-Identifier: MIT */
/* options.h - options that the tools which evaluate models share
 *
 * gguf-ppl, gguf-compare, gguf-eval and gguf-imatrix have a struct ev_options
 * inside their own options, and name groups of rows (tools/common/opt.h) in
 * their tables to set it; gguf-tokenize has the group of metadata. A member
 * without a row in the tool keeps its default.
 *
 *     struct options { struct ev_options ev; ... };
 *     static const struct opt table[] = {
 *         { .group = &ev_cache, .at = offsetof(struct options, ev) },
 *         ...
 *     };
 *     struct options o = { .ev = EV_OPTIONS_INIT };
 *     opt_parse(&tool, argc, argv, &o);
 *     ev_settle_options(&o.ev);
 *     ...
 *     ev_options_fini(&o.ev);
 */
#ifndef TOOLS_EVALUATE_OPTIONS_H
#define TOOLS_EVALUATE_OPTIONS_H

#include "tools/common/opt.h"
#include "tools/common/scaled.h"

#include <gguf/gguf.h>

#include <stdbool.h>
#include <stdint.h>

/* Positions and windows. 0 is the file's value, but yarn_ext < 0 and window
 * UINT32_MAX are. */
struct ev_positions {
    double base, scale, freq_scale;
    int scaling; /* enum gguf_rope_scaling */
    uint32_t yarn_ctx;
    double yarn_ext, yarn_attn, yarn_fast, yarn_slow;
    uint32_t window;
};

enum { EV_NO_DTYPE = 1 << 24 }; /* type of keys or values: not given */

struct ev_options {
    uint32_t n_ctx, n_batch, n_ubatch; /* tokens; 0: not given */
    uint32_t n_threads;
    uint32_t n_threads_batch; /* takes precedence over n_threads; or 0 */
    int precision;            /* enum gguf_precision */
    uint64_t repack;          /* gguf_cpu_params.repack */
    bool no_fuse;
    const char *backends; /* names, separated by commas; NULL: the CPU */
    const char *cpus;     /* processors to run on, "0-3,8"; or NULL */
    bool numa;            /* spread threads and memory over memory nodes */
    uint32_t cache_dtype; /* default of the next two */
    uint32_t key_dtype, value_dtype;
    bool unified, full_windows; /* gguf_session_params */
    struct ev_positions pos;
    const char *pre;                    /* tokenizer.ggml.pre, or NULL */
    struct opt_list kv_texts;           /* --override-kv */
    struct opt_list lora_texts;         /* --lora */
    struct opt_list control_texts;      /* --control-vector */
    const char *control_range;          /* "FIRST,LAST", or NULL */
    struct scaled_list loras, controls; /* parsed lora_texts, control_texts */
    uint32_t control_first, control_last; /* parsed control_range; 0: all */
    bool prefetch, no_mmap, mlock;
    struct opt_list places; /* --override-tensor */
    bool no_check;          /* weights are not searched for NaN */
    bool check_activations;
    bool layer_major;
    uint64_t max_memory; /* bytes for layer_major beside the weights */
    uint64_t max_text;   /* largest text, in bytes */
    const char *chunks;  /* --chunks, or NULL */
    uint64_t first_chunk, n_chunks; /* parsed chunks; n_chunks 0: all */
    bool force, json, quiet, no_digest;
    /* members that the tool sets */
    const struct gguf_file_params
        *files;                /* parameters of opened models; or NULL */
    gguf_abort_fn *abort;      /* NULL: progress_stopped() ends operations */
    enum gguf_pooling pooling; /* pooling of the session */
};
#define EV_OPTIONS_INIT                                                       \
    {                                                                         \
        .n_batch = 2048, .max_text = UINT64_C(1) << 30,                       \
        .max_memory = UINT64_C(1) << 30, .cache_dtype = GGUF_DTYPE_F32,       \
        .key_dtype = EV_NO_DTYPE, .value_dtype = EV_NO_DTYPE,                 \
        .pos = { .yarn_ext = -1, .window = UINT32_MAX },                      \
        .pooling = GGUF_POOLING_NONE                                          \
    }

enum { EV_MOST_TOKENS = 1 << 24 }; /* largest context or batch */

/* Groups of rows, in the order in which tables name them. From ev_speed on they
 * begin with a heading and are for --help=all. */
extern const struct opt_group ev_chunks;      /* --chunks */
extern const struct opt_group ev_context;     /* -c */
extern const struct opt_group ev_threads;     /* -t, --precision */
extern const struct opt_group ev_output;      /* -j, -q */
extern const struct opt_group ev_speed;       /* -b, -ub, -tb to --no-check */
extern const struct opt_group ev_layer_major; /* --layer-major, --max-memory */
extern const struct opt_group ev_machine;  /* --backend to --override-tensor */
extern const struct opt_group ev_cache;    /* types of keys and values */
extern const struct opt_group ev_position; /* --rope-..., --window */
extern const struct opt_group ev_metadata; /* --pre, --override-kv */
extern const struct opt_group ev_adapters; /* LoRA, control vectors */
extern const struct opt_group ev_checks;   /* activations, digests, texts */
extern const struct opt_group
    ev_elsewhere; /* names the tool that has an option */
extern const struct opt_group ev_foreign; /* llama.cpp's options */
extern const struct opt_group ev_rest;    /* all from ev_machine on */

/* Parse arguments that have a syntax of their own, and choose defaults that
 * depend on other options. A wrong argument ends the program with a usage
 * error. */
void ev_settle_options(struct ev_options *o);
/* Choose n_ubatch, if it was not given, for the context o->n_ctx. */
void ev_choose_ubatch(struct ev_options *o);
void ev_options_fini(struct ev_options *o);

/* Words of enum gguf_precision; what weights and activations are in it, for
 * people. */
extern const struct opt_word ev_precision_words[];
const char *ev_precision_says(unsigned precision);

/* The word of enum gguf_rope_scaling. */
const char *ev_scaling_name(int scaling);

/* Copy the options of positions to a session's parameters. */
void ev_set_positions(const struct ev_positions *pos,
                      struct gguf_session_params *p);

/* layer_major.c: bytes of o->max_memory that keys, values and graphs of a
 * session leave for activations between layers. GGUF_E_LIMIT: none. */
enum gguf_status ev_layer_room(const struct ev_options *o,
                               const struct gguf_session *s, uint64_t *room,
                               struct gguf_error *err);

#endif
