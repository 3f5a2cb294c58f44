/* SPDX-License-Identifier: MIT */
/* options.c - groups of option rows that set struct ev_options
 *
 * The groups stand in the order in which tables name them. Groups that begin
 * with a heading are shown by --help=all only.
 */
#include "config.h"
#include "tools/evaluate/options.h"
#include "tools/common/cache_type.h"

#define AT(member) OPT_AT(struct ev_options, member)

static const struct opt_word scalings[] = {
    { "none", GGUF_ROPE_SCALING_NONE },
    { "linear", GGUF_ROPE_SCALING_LINEAR },
    { "yarn", GGUF_ROPE_SCALING_YARN },
    { "longrope", GGUF_ROPE_SCALING_LONGROPE },
    { NULL, 0 },
};

const char *ev_scaling_name(int scaling)
{
    const struct opt_word *w = scalings;
    while (w->word && w->value != (uint64_t)scaling)
        w++;
    return w->word;
}

/* ---- options of --help ---- */

static const struct opt context[] = {
    { "-c --ctx-size", "N", "tokens per chunk (default: 512)", OPT_UINT,
      AT(n_ctx), .min = 4, .max = EV_MOST_TOKENS },
    { .names = NULL },
};
const struct opt_group ev_context = { context, NULL };

static const struct opt chunks[] = {
    { "--chunks", "N|A..B",
      "evaluate only the first N chunks, or chunks A to B - 1, counted "
      "from 0",
      OPT_STR, AT(chunks) },
    { .names = NULL },
};
const struct opt_group ev_chunks = { chunks, NULL };

static const struct opt threads[] = {
    { "-t --threads", "N", "number of threads (default: one per processor)",
      OPT_UINT, AT(n_threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--precision", "KIND",
      "exact; or int16 or int8, which are faster and round activations "
      "(default: exact)",
      OPT_WORD, AT(precision), .words = ev_precision_words },
    { .names = NULL },
};
const struct opt_group ev_threads = { threads, NULL };

static const struct opt output[] = {
    { "-j --json", NULL, "print one JSON document instead of text", OPT_FLAG,
      AT(json) },
    { "-q --quiet", NULL, "print no progress bar and no warnings", OPT_FLAG,
      AT(quiet) },
    { .names = NULL },
};
const struct opt_group ev_output = { output, NULL };

/* ---- options of --help=all ---- */

static const struct opt speed[] = {
    { .help = "Speed (no effect on any digit):", .rare = true },
    { "-b --batch-size", "N",
      "tokens of the chunks that are evaluated together (default: 2048)",
      OPT_UINT, AT(n_batch), .min = 1, .max = EV_MOST_TOKENS },
    { "-ub --ubatch-size", "N",
      "tokens that go through a matrix together (default: 512, or "
      "fewer if -c is above 16384)",
      OPT_UINT, AT(n_ubatch), .min = 1, .max = EV_MOST_TOKENS },
    { "-tb --threads-batch", "N", "same as --threads; overrides it", OPT_UINT,
      AT(n_threads_batch), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--repack", "[SIZE]",
      "keep packed weights in memory for later batches, up to SIZE "
      "bytes (default: all free memory)",
      OPT_SIZE, AT(repack), .value = EV_REPACK_FREE },
    { "--no-fuse", NULL,
      "compute norms, gates and sums one after another instead of fused",
      OPT_FLAG, AT(no_fuse) },
    { "--no-check", NULL,
      "do not search the weights for NaN and infinity before the "
      "evaluation",
      OPT_FLAG, AT(no_check) },
    { .names = NULL },
};
const struct opt_group ev_speed = { speed, NULL };

static const struct opt layer_major[] = {
    { "--layer-major", NULL,
      "compute many chunks through one layer before the next: for "
      "weights larger than memory",
      OPT_FLAG, AT(layer_major) },
    { "--max-memory", "SIZE",
      "memory for --layer-major, besides the weights (default: 1Gi)", OPT_SIZE,
      AT(max_memory) },
    { .names = NULL },
};
static const struct opt_rule layer_major_rules[] = {
    { "--max-memory", OPT_NEEDS, "--layer-major" },
    { .a = NULL },
};
const struct opt_group ev_layer_major = { layer_major, layer_major_rules };

static const struct opt machine[] = {
    { .help = "Processors and memory:", .rare = true },
    { "--backend", "NAME[,NAME]...",
      "backends in order of preference: CPU; BLAS, if built, may "
      "change last digits (default: CPU)",
      OPT_STR, AT(backends) },
    { "--cpus", "LIST",
      "bind the threads to these processors in turn, such as 0-3,8", OPT_STR,
      AT(cpus) },
    { "--numa", NULL, "spread threads and memory over all NUMA nodes",
      OPT_FLAG, AT(numa) },
    { "--prefetch", NULL,
      "read all weights into memory before the evaluation, with all "
      "threads",
      OPT_FLAG, AT(prefetch) },
    { "--no-mmap", NULL,
      "copy all weights into process memory instead of mapping the file",
      OPT_FLAG, AT(no_mmap) },
    { "--mlock", NULL, "lock all weights in memory", OPT_FLAG, AT(mlock) },
    { "-ot --override-tensor", "PATTERN=BUFFER",
      "keep weights whose names match PATTERN in memory of type "
      "BUFFER; may be repeated, first match wins",
      OPT_LIST, AT(places) },
    { .names = NULL },
};
static const struct opt_rule machine_rules[] = {
    { "--prefetch", OPT_EXCLUDES, "--no-mmap" },
    { "--cpus", OPT_EXCLUDES, "--numa" },
    { .a = NULL },
};
const struct opt_group ev_machine = { machine, machine_rules };

static const struct opt cache[] = {
    { .help = "Key-value cache:", .rare = true },
    { "--cache-type", "TYPE",
      "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl, for keys and values (default: f32)",
      OPT_WORD, AT(cache_dtype), .words = cache_type_words },
    { "-ctk --cache-type-k", "TYPE",
      "type of cached keys (default: --cache-type)", OPT_WORD, AT(key_dtype),
      .words = cache_type_words },
    { "-ctv --cache-type-v", "TYPE",
      "type of cached values (default: --cache-type)", OPT_WORD,
      AT(value_dtype), .words = cache_type_words },
    { "--unified --kv-unified -kvu", NULL,
      "let chunks that are evaluated together share one cache", OPT_FLAG,
      AT(unified) },
    { "--full-windows --swa-full", NULL,
      "cache all tokens in layers with a sliding window, too", OPT_FLAG,
      AT(full_windows) },
    { .names = NULL },
};
const struct opt_group ev_cache = { cache, NULL };

static const struct opt position[] = {
    { .help = "Positions (these override the file):", .rare = true },
    { "--rope-freq-base", "N", "base of the RoPE frequencies", OPT_DOUBLE,
      AT(pos.base), .low = 1, .high = 1e15 },
    { "--rope-scale", "N", "divide positions by N", OPT_DOUBLE, AT(pos.scale),
      .low = 1e-6, .high = 1e6 },
    { "--rope-freq-scale", "N", "multiply positions by N", OPT_DOUBLE,
      AT(pos.freq_scale), .low = 1e-6, .high = 1e6 },
    { "--rope-scaling", "KIND",
      "how positions are scaled: none, linear, yarn or longrope", OPT_WORD,
      AT(pos.scaling), .words = scalings },
    { "--yarn-orig-ctx", "N",
      "context length of the model before scaling, in tokens", OPT_UINT,
      AT(pos.yarn_ctx), .min = 1, .max = INT32_MAX },
    { "--yarn-ext-factor", "X",
      "YaRN extrapolation: 1 as published, 0 interpolates everything",
      OPT_DOUBLE, AT(pos.yarn_ext), .low = 0, .high = 1e6 },
    { "--yarn-attn-factor", "X", "YaRN factor of rotated queries and keys",
      OPT_DOUBLE, AT(pos.yarn_attn), .low = 1e-6, .high = 1e6 },
    { "--yarn-beta-fast", "X",
      "YaRN: do not interpolate dimensions that rotate more than X "
      "times in the original context",
      OPT_DOUBLE, AT(pos.yarn_fast), .low = 1e-6, .high = 1e6 },
    { "--yarn-beta-slow", "X",
      "YaRN: fully interpolate dimensions that rotate less than X "
      "times in the original context",
      OPT_DOUBLE, AT(pos.yarn_slow), .low = 1e-6, .high = 1e6 },
    { "--window", "N", "length of sliding windows in tokens; 0: no limit",
      OPT_UINT, AT(pos.window), .min = 0, .max = INT32_MAX },
    { .names = NULL },
};
static const struct opt_rule position_rules[] = {
    { "--rope-scale", OPT_EXCLUDES, "--rope-freq-scale" },
    { .a = NULL },
};
const struct opt_group ev_position = { position, position_rules };

static const struct opt metadata[] = {
    { .help = "Metadata (these override the file):", .rare = true },
    { "--pre", "NAME",
      "split text into words as this value of tokenizer.ggml.pre says",
      OPT_STR, AT(pre) },
    { "--override-kv", "KEY=TYPE:VALUE",
      "set KEY to VALUE; TYPE is int, float, bool, str or a GGUF type "
      "such as u32; may be repeated",
      OPT_LIST, AT(kv_texts) },
    { .names = NULL },
};
const struct opt_group ev_metadata = { metadata, NULL };

static const struct opt arch[] = {
    { "--as", "NAME",
      "evaluate a model of an unknown architecture as one of architecture "
      "NAME",
      OPT_STR, AT(as), .rare = true },
    { .names = NULL },
};
const struct opt_group ev_arch = { arch, NULL };

static const struct opt adapters[] = {
    { .help = "Adapters:", .rare = true },
    { "--lora", "FILE[=SCALE]",
      "apply a LoRA adapter times SCALE (default: 1); may be repeated",
      OPT_LIST, AT(lora_texts), .value = SCALED_OPTIONAL },
    { "--lora-scaled", "FILE:SCALE", "same as --lora, in llama.cpp's syntax",
      OPT_LIST, AT(lora_texts), .value = SCALED_REQUIRED },
    { "--control-vector", "FILE[=SCALE]",
      "apply a control vector times SCALE (default: 1); may be repeated",
      OPT_LIST, AT(control_texts), .value = SCALED_OPTIONAL },
    { "--control-vector-scaled", "FILE:SCALE",
      "same as --control-vector, in llama.cpp's syntax", OPT_LIST,
      AT(control_texts), .value = SCALED_REQUIRED },
    { "--control-vector-layer-range", "FIRST,LAST",
      "apply control vectors only after layers FIRST to LAST, counted "
      "from 0 (FIRST is at least 1)",
      OPT_STR, AT(control_range) },
    { .names = NULL },
};
static const struct opt_rule adapter_rules[] = {
    { "--control-vector-layer-range", OPT_NEEDS,
      "--control-vector --control-vector-scaled" },
    { .a = NULL },
};
const struct opt_group ev_adapters = { adapters, adapter_rules };

static const struct opt checks[] = {
    { .help = "Checks and limits:", .rare = true },
    { "--check-activations", NULL,
      "check the result of every operation; stop at the first NaN or "
      "infinity and print where it is",
      OPT_FLAG, AT(check_activations) },
    { "--no-digest", NULL,
      "print no checksums of files; saves one reading of the weights",
      OPT_FLAG, AT(no_digest) },
    { "--max-text", "SIZE",
      "refuse a text larger than SIZE, measured unpacked (default: 1Gi)",
      OPT_SIZE, AT(max_text) },
    { .names = NULL },
};
const struct opt_group ev_checks = { checks, NULL };

/* ---- options of other tools ---- */

static const struct opt_word zero[] = { { "0", 0 }, { NULL, 0 } };

/* Options of our other tools; the message names the tool. A tool's own rows
 * must come before this group. */
static const struct opt elsewhere[] = {
    ROW_REFUSED("--tokenize --detokenize --parse-special --no-bos", NULL,
                "gguf-tokenize does that"),
    ROW_REFUSED("--layers --bisect --time-budget --compare-backends "
                "--tolerance",
                "X", "gguf-compare does that"),
    ROW_REFUSED("--base --base-precision --base-backend", "X",
                "gguf-ppl and gguf-compare do that"),
    ROW_REFUSED("--tokens --save-logits --save-embeddings --pooling "
                "--normalize --prompt-name --print-graph --print-plan "
                "--print-assignments --profile",
                "X", "gguf-eval does that"),
    ROW_REFUSED("--hellaswag --winogrande --multiple-choice --tasks "
                "--hellaswag-tasks --winogrande-tasks "
                "--multiple-choice-tasks --per-token --plot --html "
                "--save-part --merge-parts --mpi --save-base --base-form "
                "--kl-divergence-base --save-all-logits --kl-divergence "
                "--field --skip-short --ppl-stride --hf --compat "
                "--layer-major --max-memory --chunks",
                "X", "gguf-ppl does that"),
    { .names = NULL },
};
const struct opt_group ev_other_tools = { elsewhere, NULL };

/* Options of llama.cpp's tools. Those that ask for the tools' normal behaviour
 * are accepted and ignored. */
static const struct opt foreign[] = {
    { "-ngl --gpu-layers --n-gpu-layers", "N",
      "no layer is offloaded; --backend NAME selects a backend", OPT_ACCEPTED,
      OPT_NO_MEMBER, .words = zero },
    ROW_ACCEPTED("-fa --flash-attn -s --seed -fit --fit -mla", "X", ""),
    ROW_ACCEPTED("--mmap --no-warmup --no-repack -nr --no-kv-unified "
                 "-no-kvu --check-tensors -fmoe",
                 NULL, ""),
    ROW_REFUSED("-dev --device -sm --split-mode -ts --tensor-split -mg "
                "--main-gpu --list-devices -ncmoe --n-cpu-moe -ncffn "
                "--n-cpu-ffn",
                "X", "the CPU computes; --backend NAME selects a backend"),
    ROW_REFUSED("-n --predict --n-predict -p --prompt --temp --top-k "
                "--top-p --min-p --repeat-penalty --grammar",
                "X",
                "no text is generated; --file TEXT gives the text to read"),
    ROW_REFUSED("-hf --hf-repo -hff --hf-file -mu --model-url", "X",
                "models are not downloaded; give a file with --model"),
    ROW_REFUSED("-lm --load-mode", "MODE",
                "weights are mapped; --no-mmap copies them, --mlock locks "
                "them"),
    ROW_REFUSED("-lzm --lazy-mode", "MODE",
                "weights are read when they are used; leave it out"),
    ROW_REFUSED("-md --model-draft -mm --mmproj -mmdev --mmproj-device "
                "--spec-type --spec-synth-len --spec-synth-rates",
                "FILE", "draft models and projectors are not used"),
    ROW_REFUSED("-v --verbose --log-disable --log-file --log-jsonl "
                "--no-log-jsonl",
                NULL, "messages go to standard error; --quiet prints fewer"),
    ROW_REFUSED("-np --parallel", "N",
                "--batch-size sets how many chunks are evaluated together"),
    ROW_REFUSED(
        "-bf --binary-file", "FILE",
        "--file with --force reads any bytes, without one newline at the "
        "end"),
    ROW_REFUSED("-C --cpu-mask -Cr --cpu-range", "X",
                "--cpus LIST binds threads to processors, such as 0-3,8"),
    { .names = NULL },
};
const struct opt_group ev_llama_options = { foreign, NULL };

static const struct opt rest[] = {
    { .group = &ev_machine },       { .group = &ev_cache },
    { .group = &ev_position },      { .group = &ev_metadata },
    { .group = &ev_arch },          { .group = &ev_adapters },
    { .group = &ev_checks },        { .group = &ev_other_tools },
    { .group = &ev_llama_options }, { .names = NULL },
};
const struct opt_group ev_all_rare = { rest, NULL };
