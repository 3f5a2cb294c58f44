/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-ppl */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/opt.h"
#include "tools/common/cache.h"
#include "tools/common/foreign.h"
#include "tools/common/precision.h"
#include "tools/common/range.h"
#include "tools/common/stored.h"

#include <inttypes.h>
#include <string.h>

#define AT(member) OPT_AT(struct ppl_options, member)
enum { MOST_TOKENS = 1 << 24 };

static const struct opt_word poolings[] = {
    { "none", GGUF_POOLING_NONE }, { "mean", GGUF_POOLING_MEAN },
    { "cls", GGUF_POOLING_CLS },   { "last", GGUF_POOLING_LAST },
    { "rank", GGUF_POOLING_RANK }, { NULL, 0 },
};
static const struct opt_word scalings[] = {
    { "none", GGUF_ROPE_SCALING_NONE },
    { "linear", GGUF_ROPE_SCALING_LINEAR },
    { "yarn", GGUF_ROPE_SCALING_YARN },
    { "longrope", GGUF_ROPE_SCALING_LONGROPE },
    { NULL, 0 },
};
static const struct opt_word groups[] = {
    { "weight", 1 + GGUF_BISECT_WEIGHT },
    { "kind", 1 + GGUF_BISECT_KIND },
    { "layer", 1 + GGUF_BISECT_LAYER },
    { "halves", 1 + GGUF_BISECT_HALVES },
    { NULL, 0 },
};
static const struct opt_word graph_forms[] = {
    { "text", PPL_GRAPH_TEXT },
    { "dot", PPL_GRAPH_DOT },
    { NULL, 0 },
};

static const struct opt_word base_forms[] = {
    { "upstream", GGUF_BASELINE_LLAMA },
    { "compact", GGUF_BASELINE_COMPACT },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is evaluated:" },
    { "-m --model", "MODEL",
      "the GGUF file, or a shard, the folder or the prefix of a split model; "
      "with --base it may be given several times",
      OPT_LIST, AT(models) },
    { "--base", "MODEL",
      "compare with this model, which is evaluated beside, or with a file of "
      "its logits: the divergence of probabilities, and how they and the "
      "perplexity change",
      OPT_STR, AT(base) },
    { "--kl-divergence-base --save-all-logits", "FILE",
      "as llama-perplexity has it: --base with --kl-divergence, else "
      "--save-base",
      OPT_STR, AT(kl_base) },
    { "--kl-divergence", NULL,
      "with --kl-divergence-base: compare with it, do not save it", OPT_FLAG,
      AT(kl) },
    { "-f --file", "TEXT",
      "the text, plain or compressed by gzip; - for standard input; a "
      "pattern such as '*.txt' for all that it matches. May be given again",
      OPT_LIST, AT(text_args) },
    { "--field", "NAME",
      "each line of a text is an object of JSON, whose member NAME is a text "
      "by itself",
      OPT_STR, AT(field) },
    { "--skip-short", NULL,
      "of several texts leave out those that are too short", OPT_FLAG,
      AT(skip_short) },
    { "--tokens", "FILE",
      "instead of a text: token ids, decimal with white space between, as "
      "one chunk without a BOS; needs --save-logits",
      OPT_STR, AT(tokens) },
    { "--chunks", "N|A..B",
      "only the first N chunks; or those from A up to, without, B, counted "
      "from 0. B may be left out. Without this option, all",
      OPT_STR, AT(chunks) },
    { "--ppl-stride", "N",
      "windows of -c tokens that begin N tokens after each other: each token "
      "is scored once, by the first window that has it. 0 is without",
      OPT_UINT, AT(stride), .min = 0, .max = MOST_TOKENS },
    { "--hf", NULL,
      "as the usual evaluation in Python: no BOS, windows with a stride of "
      "512, or of half of -c where that is less",
      OPT_FLAG, AT(hf) },
    { "--max-text", "SIZE",
      "refuse a text of more bytes, unpacked; 1Gi without this option",
      OPT_SIZE, AT(max_text) },
    { "--lora", "FILE[=SCALE]",
      "add a LoRA adapter, times a scale; 1 without one. May be given again",
      OPT_LIST, AT(lora_texts), .value = SCALED_MAYBE },
    { "--lora-scaled", "FILE:SCALE", "the same, as llama.cpp writes it",
      OPT_LIST, AT(lora_texts), .value = SCALED_ALWAYS },
    { "--control-vector", "FILE[=SCALE]",
      "add a control vector after layers, times a scale; 1 without one. May be "
      "given again",
      OPT_LIST, AT(control_texts), .value = SCALED_MAYBE },
    { "--control-vector-scaled", "FILE:SCALE",
      "the same, as llama.cpp writes it", OPT_LIST, AT(control_texts),
      .value = SCALED_ALWAYS },
    { "--control-vector-layer-range", "FIRST,LAST",
      "only after these layers; from 1 on", OPT_STR, AT(control_range) },
    { .help = "How:" },
    { "-c --ctx-size", "N",
      "tokens of a chunk: the context in which they are predicted (with "
      "--tokens that of the session); 512 without this option",
      OPT_UINT, AT(n_ctx), .min = 4, .max = MOST_TOKENS },
    { "-b --batch-size", "N",
      "tokens of the chunks that are evaluated together, at most; 2048 "
      "without this option. No digit depends on it",
      OPT_UINT, AT(n_batch), .min = 1, .max = MOST_TOKENS },
    { "-ub --ubatch-size", "N",
      "tokens that go through the matrices together, at most; 512 without "
      "this option, fewer in a context of more than 16384. No digit depends on "
      "it",
      OPT_UINT, AT(n_ubatch), .min = 1, .max = MOST_TOKENS },
    { "-t --threads", "N",
      "threads; without this option, one for each processor. No digit "
      "depends on it",
      OPT_UINT, AT(n_threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "-tb --threads-batch", "N",
      "threads for batches, which everything is here: counts before "
      "--threads",
      OPT_UINT, AT(n_threads_batch), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--precision", "KIND", PRECISION_HELP, OPT_WORD, AT(precision),
      .words = precision_words },
    { "--base-precision", "KIND",
      "that of the model of --base; exact without this option", OPT_WORD,
      AT(base_precision), .words = precision_words },
    { "--repack", "[SIZE]", REPACK_HELP, OPT_SIZE, AT(repack),
      .value = GGUF_CPU_REPACK_FREE },
    { "--no-fuse", NULL, NO_FUSE_HELP, OPT_FLAG, AT(no_fuse) },
    { "--cpus", "LIST",
      "bind thread after thread to these processors, such as 0-3,8", OPT_STR,
      AT(cpus) },
    { "--numa", NULL,
      "spread threads and memory over the memory nodes of the machine",
      OPT_FLAG, AT(numa) },
    { "--compat", NULL,
      "the figure of llama.cpp where it is another one: with --ppl-stride, "
      "and of WinoGrande",
      OPT_FLAG, AT(compat) },
    { "--cache-type", "TYPE",
      "type of the keys and values in memory: f32 (without this option), f16, "
      "bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl",
      OPT_WORD, AT(cache_dtype), .words = cache_words },
    { "-ctk --cache-type-k", "TYPE", "of the keys alone", OPT_WORD,
      AT(key_dtype), .words = cache_words },
    { "-ctv --cache-type-v", "TYPE", "of the values alone", OPT_WORD,
      AT(value_dtype), .words = cache_words },
    { "--unified --kv-unified -kvu", NULL,
      "chunks that are evaluated together share one cache, instead of each "
      "having its own",
      OPT_FLAG, AT(unified) },
    { "--full-windows --swa-full", NULL,
      "layers that see a window keep the keys and values of all tokens, too. "
      "No digit depends on it",
      OPT_FLAG, AT(full_windows) },
    { "--rope-freq-base", "N",
      "base of the angles by which positions turn; without this option, that "
      "of the file",
      OPT_DOUBLE, AT(pos.base), .low = 1, .high = 1e15 },
    { "--rope-scale", "N", "divide positions by N", OPT_DOUBLE, AT(pos.scale),
      .low = 1e-6, .high = 1e6 },
    { "--rope-freq-scale", "N", "multiply them by N: the other way round",
      OPT_DOUBLE, AT(pos.freq_scale), .low = 1e-6, .high = 1e6 },
    { "--rope-scaling", "KIND", "how: none, linear, yarn or longrope",
      OPT_WORD, AT(pos.scaling), .words = scalings },
    { "--yarn-orig-ctx", "N", "context of the model before it was scaled",
      OPT_UINT, AT(pos.yarn_ctx), .min = 1, .max = INT32_MAX },
    { "--yarn-ext-factor", "X",
      "with YaRN: how much is extrapolated, 0 to interpolate all", OPT_DOUBLE,
      AT(pos.yarn_ext), .low = 0, .high = 1e6 },
    { "--yarn-attn-factor", "X", "with YaRN: the magnitude", OPT_DOUBLE,
      AT(pos.yarn_attn), .low = 1e-6, .high = 1e6 },
    { "--yarn-beta-fast", "X",
      "with YaRN: turns in the context from which nothing is interpolated",
      OPT_DOUBLE, AT(pos.yarn_fast), .low = 1e-6, .high = 1e6 },
    { "--yarn-beta-slow", "X", "with YaRN: turns up to which all is",
      OPT_DOUBLE, AT(pos.yarn_slow), .low = 1e-6, .high = 1e6 },
    { "--window", "N",
      "tokens that layers with a sliding window see; 0 for all of them",
      OPT_UINT, AT(pos.window), .min = 0, .max = INT32_MAX },
    { "--pre", "NAME",
      "cut words as this name of tokenizer.ggml.pre says, whatever the file "
      "says",
      OPT_STR, AT(pre) },
    { "--override-kv", "KEY=TYPE:VALUE",
      "evaluate as if the file had this value of a key; TYPE is int, float, "
      "bool, str, or one of GGUF's such as u32; may be given again",
      OPT_LIST, AT(kv_texts) },
    { "--force", NULL,
      "replace files that are there; take a text that is binary or not UTF-8, "
      "values of --override-kv that gguf-edit would refuse, and for --base "
      "logits of another tokenizer",
      OPT_FLAG, AT(force) },
    { "--prefetch", NULL,
      "read all weights into memory before anything else, with all threads; "
      "without this option, when they are touched first",
      OPT_FLAG, AT(prefetch) },
    { "--no-mmap", NULL,
      "copy all weights into memory of the process, instead of using the "
      "file's pages",
      OPT_FLAG, AT(no_mmap) },
    { "--mlock", NULL,
      "keep all weights in memory, that none goes to disk meanwhile", OPT_FLAG,
      AT(mlock) },
    { "-ot --override-tensor", "PATTERN=BUFFER",
      "weights whose name matches lie in this type of memory, not where they "
      "would; may be given again, the first that matches counts",
      OPT_LIST, AT(places) },
    { "--layer-major", NULL, STORED_HELP, OPT_FLAG, AT(layer_major) },
    { "--max-memory", "SIZE",
      "with --layer-major: use so many bytes beside the weights; 1Gi without "
      "this option",
      OPT_SIZE, AT(max_memory) },
    { "--no-check", NULL,
      "do not look for NaN and infinities among the weights first", OPT_FLAG,
      AT(no_check) },
    { "--no-digest", NULL,
      "in documents, pages and parts: no checksums of files, which take one "
      "more reading of the "
      "weights",
      OPT_FLAG, AT(no_digest) },
    { "--check-activations", NULL,
      "look at the result of every operation, and stop at the first that is "
      "NaN or infinite: which layer, operation and token",
      OPT_FLAG, AT(check_activations) },
    { "--backend", "NAME[,NAME]...",
      "what computes: CPU, or before it BLAS where it was built; the first "
      "that can compute an operation does. BLAS changes last digits",
      OPT_STR, AT(backends) },
    { "--base-backend", "NAME[,NAME]...",
      "what computes the base; without this option, what --backend says. With "
      "--layers the base may then be the model itself, without --base",
      OPT_STR, AT(base_backends) },
    { .help = "Tasks instead of perplexity:" },
    { "--hellaswag", NULL,
      "the text is tasks of HellaSwag: which of four endings", OPT_FLAG,
      AT(task), .value = 1 + GGUF_TASK_HELLASWAG },
    { "--winogrande", NULL, "of WinoGrande: which of two names", OPT_FLAG,
      AT(task), .value = 1 + GGUF_TASK_WINOGRANDE },
    { "--multiple-choice", NULL, "questions and answers to choose from",
      OPT_FLAG, AT(task), .value = 1 + GGUF_TASK_CHOICE },
    { "--tasks --hellaswag-tasks --winogrande-tasks --multiple-choice-tasks",
      "N", "only N of them, by chance, always the same of a file", OPT_UINT,
      AT(n_tasks), .min = 0, .max = UINT32_MAX },
    { .help = "Instead of an evaluation:" },
    { "--layers", NULL,
      "compare with the base inside: the error of each activation of each layer",
      OPT_FLAG, AT(layers) },
    { "--bisect", "[HOW]",
      "take one weight after another from the base, the most suspicious first: "
      "how much nearer to it that is, and the bytes that it takes; kind, layer: "
      "those of a name, or of a layer, together; halves: half of them, then "
      "halves of the half that costs most, as long as the time lasts",
      OPT_WORD, AT(bisect), .words = groups, .value = 1 + GGUF_BISECT_WEIGHT },
    { "--time-budget", "SECONDS",
      "with --bisect: stop then, and say how many weights were measured",
      OPT_DOUBLE, AT(time_budget), .low = 1e-3, .high = 1e9 },
    { "--compare-backends", "A,B",
      "compute a chunk, or as many as are asked for, node by node on both, "
      "and name the first node that differs",
      OPT_STR, AT(compare) },
    { "--tolerance", "X",
      "with --compare-backends: relative error of a node that is a "
      "difference; 1e-5 without this option",
      OPT_DOUBLE, AT(tolerance), .low = 0, .high = 1e9 },
    { "--print-graph", "[dot]",
      "print what is computed, as text or as one graph for Graphviz; needs "
      "no text",
      OPT_WORD, AT(print_graph), .words = graph_forms,
      .value = PPL_GRAPH_TEXT },
    { "--print-assignments", NULL,
      "print which backend computes which node, and what is copied", OPT_FLAG,
      AT(print_assignments) },
    { "--print-plan", NULL, "print where in memory each tensor lies", OPT_FLAG,
      AT(print_plan) },
    { "--tokenize", NULL,
      "print the tokens of the text, a line each: the id, a tab, the piece",
      OPT_FLAG, AT(tokenize) },
    { "--detokenize", NULL,
      "print the text of the token ids in the file: decimal, with white "
      "space between",
      OPT_FLAG, AT(detokenize) },
    { "--parse-special", NULL,
      "with --tokenize: texts of control tokens, such as </s>, are tokens",
      OPT_FLAG, AT(parse_special) },
    { "--no-bos", NULL,
      "with --tokenize: no tokens go round the text, such as a BOS", OPT_FLAG,
      AT(no_bos) },
    { .help = "Output:" },
    { "--profile", NULL,
      "print the time of each operation and of each layer, and the rates of "
      "operations and bytes",
      OPT_FLAG, AT(profile) },
    { "--per-token", "FILE",
      "save a line for each scored token: id, text, likelihood, divergence; "
      "CSV if FILE ends in .csv, else JSON lines",
      OPT_OUT, AT(each) },
    { "--plot", "FILE.svg",
      "save a picture: the perplexity so far, and with --base the divergence "
      "by position and how probabilities change",
      OPT_OUT, AT(plot) },
    { "--html", "FILE.html",
      "save a page that compares the models: a table by size, charts, "
      "percentiles, all settings and digests",
      OPT_OUT, AT(html) },
    { "--save-part", "FILE",
      "save the scores of these chunks, to merge them with those of other "
      "processes",
      OPT_OUT, AT(part) },
    { "--merge-parts", NULL,
      "evaluate nothing: the operands are parts of one evaluation, of which "
      "the figures are printed",
      OPT_FLAG, AT(merge_parts) },
    { "--mpi", NULL,
      "this is one rank of an MPI job: all of them share the chunks, and rank 0 "
      "prints. Only in a build configured --with-mpi",
      OPT_FLAG, AT(mpi) },
    { "--save-base", "FILE",
      "save the logits of what is scored, for --base, as llama-perplexity "
      "does",
      OPT_OUT, AT(save_base) },
    { "--base-form", "FORM",
      "of what is saved: upstream, as llama-perplexity has it, or compact, a "
      "tenth of its size; upstream without this option",
      OPT_WORD, AT(base_form), .words = base_forms },
    { "--save-logits", "FILE",
      "with --tokens: for each token a row of 32-bit floats, little-endian: "
      "the logits, or an encoder's states after the last layer",
      OPT_OUT, AT(logits) },
    { "--save-embeddings", "FILE",
      "for each line of the text a row of 32-bit floats, little-endian: its "
      "states as one vector, or the scores of a classifier",
      OPT_OUT, AT(embeddings) },
    { "--pooling", "KIND",
      "with --save-embeddings: mean, cls (the first token), last, rank (the "
      "classifier), or none: a row for each token; without this option, what "
      "the file says",
      OPT_WORD, AT(pooling), .words = poolings },
    { "--normalize", NULL,
      "with --save-embeddings: divide each row by its Euclidean length",
      OPT_FLAG, AT(normalize) },
    { "-j --json", NULL, "one JSON document at the end", OPT_FLAG, AT(json) },
    { "-q --quiet", NULL, "no progress bar, no warnings", OPT_FLAG,
      AT(quiet) },
    /* of llama-perplexity */
    ROW_FOREIGN("-C --cpu-mask -Cr --cpu-range", "X",
                "--cpus LIST says on which processors, such as 0-3,8"),
    ROW_FOREIGN(
        "--list-devices", NULL,
        "--backend NAME says what computes, and names those that there "
        "are where NAME is none"),
    ROW_FOREIGN(
        "--mmap -lm --load-mode", NULL,
        "weights are used as they lie in the file, but with --no-mmap; "
        "leave it out"),
    ROW_FOREIGN("-ngl --gpu-layers --n-gpu-layers -mg --main-gpu -dev "
                "--device -sm --split-mode -ts --tensor-split",
                "X", "--backend says what computes; leave it out"),
    ROW_FOREIGN("--ppl-output-type", "N",
                "--per-token has more; leave it out"),
    ROW_FOREIGN("--in-file --chunk --from-chunk", "X",
                "--chunks A..B says which chunks"),
    ROWS_FOREIGN,
    { .names = NULL },
};

#define PRINTS "--print-graph --print-assignments --print-plan"
#define TOKENS "--tokenize --detokenize"
#define TASK   "--hellaswag --winogrande --multiple-choice"

static const struct opt_rule rules[] = {
    { NULL, OPT_NEEDS, "--model --merge-parts" },
    { NULL, OPT_NEEDS,
      "--file --tokens --base --kl-divergence-base --merge-parts " PRINTS },
    { "--merge-parts", OPT_EXCLUDES,
      "--model --file --tokens --base --kl-divergence-base --save-base "
      "--save-part --per-token --save-embeddings --compare-backends " PRINTS
      " " TOKENS " " TASK },
    { "--tokens", OPT_EXCLUDES,
      "--file --chunks --compare-backends " PRINTS " " TOKENS },
    { "--tokens", OPT_NEEDS, "--save-logits" },
    { "--save-part", OPT_EXCLUDES, "--save-embeddings" },
    { "--base --kl-divergence-base --save-base --per-token --plot --html "
      "--save-part",
      OPT_EXCLUDES, "--tokens --compare-backends " PRINTS " " TOKENS },
    { "--base", OPT_EXCLUDES, "--save-base" },
    { "--layers", OPT_NEEDS, "--base --base-backend --base-precision" },
    { "--layers", OPT_EXCLUDES,
      "--tokens --save-base --per-token --save-embeddings --layer-major "
      "--ppl-stride --hf --compare-backends " TASK " " PRINTS " " TOKENS },
    { "--base-backend", OPT_NEEDS, "--base --layers" },
    { "--bisect", OPT_NEEDS, "--base" },
    { "--bisect", OPT_EXCLUDES,
      "--layers --tokens --save-base --save-part --per-token --plot --html "
      "--save-embeddings --layer-major --ppl-stride --hf --skip-short "
      "--compare-backends --backend --base-backend --override-tensor "
      "--lora --lora-scaled --control-vector --control-vector-scaled " TASK
      " " PRINTS " " TOKENS },
    { "--time-budget", OPT_NEEDS, "--bisect" },
    { "--mpi", OPT_EXCLUDES,
      "--merge-parts --tokens --save-base --save-embeddings --layers --bisect "
      "--layer-major --compare-backends " PRINTS " " TOKENS },
    { "--profile", OPT_EXCLUDES,
      "--base --kl-divergence-base --merge-parts --mpi --tokens "
      "--save-embeddings --compare-backends " TASK " " PRINTS " " TOKENS },
    { "--kl-divergence-base", OPT_EXCLUDES, "--base --save-base" },
    { "--base-form", OPT_NEEDS, "--save-base --kl-divergence-base" },
    { "--kl-divergence", OPT_NEEDS, "--kl-divergence-base" },
    { "--save-logits", OPT_NEEDS, "--tokens" },
    { "--base-precision", OPT_NEEDS, "--base --kl-divergence-base --layers" },
    { "--compare-backends", OPT_EXCLUDES,
      "--backend --override-tensor " PRINTS " " TOKENS },
    { "--tokenize", OPT_EXCLUDES, "--detokenize " PRINTS },
    { "--detokenize", OPT_EXCLUDES, PRINTS },
    { "--parse-special", OPT_NEEDS, "--tokenize" },
    { "--no-bos", OPT_NEEDS, "--tokenize" },
    { "--tolerance", OPT_NEEDS, "--compare-backends" },
    { TASK, OPT_EXCLUDES, NULL },
    { TASK, OPT_EXCLUDES,
      "--tokens --base --kl-divergence-base --save-base --per-token --plot --html "
      "--compare-backends " PRINTS " " TOKENS },
    { "--tasks", OPT_NEEDS, TASK },
    { "--compat", OPT_NEEDS, TASK " --ppl-stride" },
    { "--compat", OPT_EXCLUDES, "--hf" },
    { "--field --skip-short", OPT_NEEDS, "--file" },
    { "--field --skip-short", OPT_EXCLUDES,
      "--tokens --save-base --save-embeddings --compare-backends " TASK
      " " PRINTS " " TOKENS },
    { "--ppl-stride --hf", OPT_EXCLUDES,
      "--tokens --save-base --save-embeddings --compare-backends " TASK
      " " PRINTS " " TOKENS },
    { "--control-vector-layer-range", OPT_NEEDS,
      "--control-vector --control-vector-scaled" },
    { "--force", OPT_NEEDS,
      "--override-kv --file --save-base --base --kl-divergence-base "
      "--per-token --plot --html --save-part" },
    { "--prefetch", OPT_EXCLUDES, "--no-mmap" },
    { "--json", OPT_EXCLUDES, PRINTS },
    { "--no-digest", OPT_NEEDS, "--json --html --save-part" },
    { "--rope-scale", OPT_EXCLUDES, "--rope-freq-scale" },
    { "--cpus", OPT_EXCLUDES, "--numa" },
    { "--save-embeddings", OPT_EXCLUDES,
      "--tokens --save-logits --base --plot --html --chunks --compare-backends " PRINTS
      " " TOKENS },
    { "--pooling", OPT_NEEDS, "--save-embeddings" },
    { "--normalize", OPT_NEEDS, "--save-embeddings" },
    { "--max-memory", OPT_NEEDS, "--layer-major" },
    { "--layer-major", OPT_EXCLUDES,
      "--tokens --base --save-embeddings --compare-backends "
      "--check-activations " TASK " " PRINTS " " TOKENS },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-ppl",
    "[OPTION]... -m MODEL -f TEXT\n"
    "[OPTION]... -m MODEL [-m MODEL]... --base MODEL -f TEXT\n"
    "[OPTION]... -m MODEL [-m MODEL]... --base LOGITS\n"
    "[OPTION]... -m MODEL --base MODEL -f TEXT --layers\n"
    "[OPTION]... -m MODEL --base MODEL -f TEXT --bisect\n"
    "[OPTION]... -m MODEL -f TASKS --hellaswag\n"
    "[OPTION]... -m MODEL --tokens FILE --save-logits FILE\n"
    "[OPTION]... --merge-parts PART...",
    "Evaluate a model on a text: the perplexity, exp of the mean negative "
    "log-likelihood of the second half of each chunk's tokens, and its "
    "uncertainty.",
    table,
    rules,
    "[PART]...",
    NULL
};

bool ppl_only_prints(const struct ppl_options *o)
{
    return o->print_graph || o->print_assignments || o->print_plan;
}

const char *ppl_scaling_name(int scaling)
{
    const struct opt_word *w = scalings;
    while (w->word && w->value != (uint64_t)scaling)
        w++;
    return w->word;
}

bool ppl_takes_texts(const struct ppl_options *o)
{
    return !o->task && !o->tokenize && !o->detokenize && !o->embeddings &&
           !o->compare && !o->save_base && !o->base_is_saved &&
           !ppl_only_prints(o);
}

int ppl_parse_options(struct ppl_options *o, int argc, char **argv)
{
    *o = (struct ppl_options){ .n_batch = 2048,
                               .max_text = UINT64_C(1) << 30,
                               .max_memory = UINT64_C(1) << 30,
                               .cache_dtype = GGUF_DTYPE_F32,
                               .key_dtype = PPL_NOT_GIVEN,
                               .value_dtype = PPL_NOT_GIVEN,
                               .tolerance = 1e-5,
                               .pos = { .yarn_ext = -1,
                                        .window = UINT32_MAX } };
    const int n = opt_parse(&tool, argc, argv, o);
    if (o->merge_parts && !n)
        opt_usage("--merge-parts: PART is missing");
    if (!o->merge_parts && n)
        opt_usage("'%s': only --merge-parts takes operands", argv[1]);
    ppl_settle_options(o);
    return n;
}
