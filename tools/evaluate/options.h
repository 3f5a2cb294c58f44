/* SPDX-License-Identifier: MIT */
/* options.h - options that the tools share that evaluate models
 *
 * gguf-ppl, gguf-compare, gguf-eval, gguf-imatrix and gguf-tokenize have a
 * struct ev_options in their own options. Their tables name the groups of rows
 * (tools/common/opt.h) that set its members. A member without a row keeps its
 * default.
 *
 *     struct options { struct ev_options ev; ... };
 *     static const struct opt table[] = {
 *         { .group = &ev_cache, .at = offsetof(struct options, ev) },
 *         ...
 *     };
 *     struct options o = { .ev = EV_OPTIONS_INIT };
 *     opt_parse(&tool, argc, argv, &o);
 *     ev_finish_options(&o.ev);
 *     ...
 *     ev_options_fini(&o.ev);
 */
#ifndef TOOLS_EVALUATE_OPTIONS_H
#define TOOLS_EVALUATE_OPTIONS_H

#include "tools/common/opt.h"
#include "tools/common/scaled_file.h"

#include <gguf/model.h>

#include <stdbool.h>
#include <stdint.h>

/* Positions and sliding windows, in place of the file's. */
struct ev_positions {
    double base;       /* RoPE base; 0: not given */
    double scale;      /* divisor of positions; 0: not given */
    double freq_scale; /* factor of positions; 0: not given */
    int scaling;       /* enum gguf_rope_scaling; 0: not given */
    uint32_t yarn_ctx; /* original context in tokens; 0: not given */
    double yarn_ext;   /* extrapolation factor; below 0: not given */
    double yarn_attn;  /* attention factor; 0: not given */
    double yarn_fast;  /* beta fast; 0: not given */
    double yarn_slow;  /* beta slow; 0: not given */
    uint32_t window;   /* length of sliding windows in tokens; 0: no limit;
                          * UINT32_MAX: not given */
};

/* Value of repack if --repack has no size. */
#define EV_REPACK_FREE UINT64_MAX

/* Value of key_dtype and value_dtype if the option was not given. */
enum { EV_NO_DTYPE = 1 << 24 };

struct ev_options {
    uint32_t n_ctx, n_batch, n_ubatch; /* tokens; 0: not given */
    uint32_t n_threads;                /* 0: not given */
    uint32_t n_threads_batch;          /* overrides n_threads; 0: not given */
    int precision;                     /* enum gguf_precision */
    uint64_t repack;                   /* bytes for packed weights; 0: none;
                                          EV_REPACK_FREE: free memory */
    bool no_fuse;                      /* compute each operation by itself */
    const char *backends; /* names separated by commas; NULL: the CPU */
    const char *cpus;     /* processors to bind to, "0-3,8"; NULL: all */
    bool numa;            /* spread threads and memory over NUMA nodes */
    uint32_t cache_dtype; /* type of keys and values, unless given below */
    uint32_t key_dtype, value_dtype;
    bool unified, full_windows; /* see gguf_session_params */
    struct ev_positions pos;
    const char *pre;               /* --pre, or NULL */
    const char *as;                /* --as, or NULL */
    struct opt_list kv_texts;      /* arguments of --override-kv */
    struct opt_list lora_texts;    /* arguments of --lora */
    struct opt_list control_texts; /* arguments of --control-vector */
    const char *control_range;     /* "FIRST,LAST", or NULL */
    struct scaled_list loras;      /* parsed lora_texts */
    struct scaled_list controls;   /* parsed control_texts */
    uint32_t control_first;        /* parsed control_range; 0: not given */
    uint32_t control_last;         /* parsed control_range; 0: not given */
    bool prefetch, no_mmap, mlock;
    struct opt_list places; /* arguments of --override-tensor */
    bool no_check;          /* do not search the weights for NaN */
    bool check_activations; /* check the result of every operation */
    bool layer_major;       /* compute many chunks layer by layer */
    uint64_t max_memory;    /* bytes for layer_major besides the weights */
    uint64_t max_text;      /* largest text in bytes, unpacked */
    const char *chunks;     /* "N" or "A..B", or NULL */
    uint64_t first_chunk;   /* parsed chunks */
    uint64_t n_chunks;      /* parsed chunks; 0: all */
    bool force, json, quiet, no_digest;
    /* members that the tool sets */
    const struct gguf_file_params
        *files;                /* parameters of opened models, or NULL */
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

/* Largest context or batch in tokens. */
enum { EV_MOST_TOKENS = 1 << 24 };

/* Groups of rows, in the order in which tables name them. Those from ev_speed
 * on begin with a heading and are shown by --help=all only. */
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
extern const struct opt_group ev_arch;     /* --as */
extern const struct opt_group ev_adapters; /* LoRA, control vectors */
extern const struct opt_group ev_checks;   /* activations, digests, texts */
extern const struct opt_group ev_other_tools; /* options of our other tools */
extern const struct opt_group ev_llama_options; /* options of llama.cpp */
extern const struct opt_group ev_all_rare; /* all groups from ev_machine on */

/* Parse the arguments that opt_parse() left as text, and choose defaults that
 * depend on other options. A usage error ends the program. */
void ev_finish_options(struct ev_options *o);
/* If n_ubatch was not given, choose it for the context o->n_ctx. */
void ev_choose_ubatch(struct ev_options *o);
void ev_options_fini(struct ev_options *o);

/* Words of --precision. */
extern const struct opt_word ev_precision_words[];
/* Describe a precision, for people. precision: enum gguf_precision. */
const char *ev_describe_precision(unsigned precision);

/* The word of --rope-scaling for an enum gguf_rope_scaling. */
const char *ev_scaling_name(int scaling);

/* Set the parameters of a session that pos gives. */
void ev_set_positions(const struct ev_positions *pos,
                      struct gguf_session_params *p);

/* layer_major.c: compute the bytes of o->max_memory that remain for activations
 * between layers, after keys, values and graphs of the session.
 *
 * GGUF_E_LIMIT    Nothing remains. */
enum gguf_status ev_layer_major_budget(const struct ev_options *o,
                                       const struct gguf_session *s,
                                       uint64_t *room, struct gguf_error *err);

#endif
