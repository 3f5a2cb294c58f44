/* SPDX-License-Identifier: MIT */
/* foreign.h - what people type who know llama.cpp's tools, and what is said
 *
 * Its tools share options of programs that generate text on many devices. Here
 * each of them is answered, by rows of kind OPT_REFUSED (tools/common/opt.h)
 * that stand in the tables of gguf-ppl and gguf-imatrix after their own. What
 * a tool answers in a way of its own comes before ROWS_FOREIGN, since the
 * first row that has a name counts.
 */
#ifndef TOOLS_FOREIGN_H
#define TOOLS_FOREIGN_H

#include "tools/common/opt.h"

/* Laid out as in a table. */
/* clang-format off */

#define ROW_FOREIGN(names, arg, help)                                         \
    { names, arg, help, OPT_REFUSED, OPT_NO_MEMBER }

#define ROWS_FOREIGN                                                          \
    ROW_FOREIGN("-s --seed --samplers --sampler-seq --sampling-seq --temp "   \
        "--temperature --dynatemp-range --dynatemp-exp --top-k --top-p "      \
        "--min-p --top-nsigma --top-n-sigma --typical --typical-p "           \
        "--xtc-probability --xtc-threshold --adaptive-target "                \
        "--adaptive-decay --mirostat --mirostat-lr --mirostat-ent "           \
        "--repeat-last-n --repeat-penalty --presence-penalty "                \
        "--frequency-penalty --dry-multiplier --dry-base "                    \
        "--dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker "   \
        "-l --logit-bias --grammar --grammar-file --json-schema -jf "         \
        "--json-schema-file", "X",                                            \
        "no text is generated, and nothing is left to chance; leave it out"), \
    ROW_FOREIGN("-n --predict --n-predict --keep", "N",                       \
        "no text is generated; --chunks says how much of one is read"),       \
    ROW_FOREIGN("--ignore-eos -bs --backend-sampling --context-shift "        \
        "--no-context-shift --warmup --no-warmup -e --escape --no-escape",    \
        NULL, "no text is generated; leave it out"),                          \
    ROW_FOREIGN("-ctkd --cache-type-k-draft --spec-draft-type-k -ctvd "       \
        "--cache-type-v-draft --spec-draft-type-v -md --model-draft", "X",    \
        "there is no second model that guesses; leave it out"),               \
    ROW_FOREIGN("-v --verbose --log-verbose -lv --verbosity "                 \
        "--log-verbosity --log-disable --log-file --log-colors "              \
        "--log-prefix --no-log-prefix --log-timestamps "                      \
        "--no-log-timestamps --perf --no-perf", NULL,                         \
        "messages go to standard error, fewer with --quiet; leave it out"),   \
    ROW_FOREIGN("--cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb "       \
        "--cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch",     \
        "X", "--threads says how many, taskset(1) where, nice(1) how urgent"),\
    ROW_FOREIGN("-ngl --gpu-layers --n-gpu-layers -mg --main-gpu -dev "       \
        "--device -sm --split-mode -ts --tensor-split -fit --fit -fitt "      \
        "--fit-target -fitc --fit-ctx -ncmoe --n-cpu-moe --rpc", "X",         \
        "the processor computes, and no other device; leave it out"),         \
    ROW_FOREIGN("--list-devices -cmoe --cpu-moe -kvo --kv-offload -nkvo "     \
        "--no-kv-offload --op-offload --no-op-offload --no-host", NULL,       \
        "the processor computes, and no other device; leave it out"),         \
    ROW_FOREIGN("-nr --no-repack", NULL,                                      \
        "--repack must be asked for; leave it out"),                          \
    ROW_FOREIGN("-dio --direct-io -ndio --no-direct-io --mmap -lm "           \
        "--load-mode", NULL,                                                  \
        "weights are used as they lie in the file; leave it out"),            \
    ROW_FOREIGN("--check-tensors", NULL,                                      \
        "weights are looked at, unless --no-check is given; leave it out"),   \
    ROW_FOREIGN("-fa --flash-attn", "[on]",                                   \
        "attention is computed in one way; leave it out"),                    \
    ROW_FOREIGN("-np --parallel", "N",                                        \
        "how many chunks go together follows from --batch-size"),             \
    ROW_FOREIGN("-no-kvu --no-kv-unified -dt --defrag-thold", NULL,           \
        "chunks have a cache each; leave it out"),                            \
    ROW_FOREIGN("-p --prompt", "X", "the text is a file; give it by --file"), \
    ROW_FOREIGN("-bf --binary-file", "X",                                     \
        "--file reads any bytes with --force, but for one newline at the "    \
        "end"),                                                               \
    ROW_FOREIGN("-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu "      \
        "--model-url -dr --docker-repo -mm --mmproj -mmu --mmproj-url", "X",  \
        "nothing is downloaded; give a file by --model"),                     \
    ROW_FOREIGN("--offline --no-mmproj -cl --cache-list", NULL,               \
        "nothing is downloaded; leave it out"),                               \
    ROW_FOREIGN("--completion-bash", NULL,                                    \
        "what a shell completes is installed with the tools"),                \
    ROW_FOREIGN("--usage", NULL, "--help lists the options"),                 \
    /* of ik_llama.cpp */                                                     \
    ROW_FOREIGN("-mla --mla-use -amb --attention-max-batch -ser "             \
        "--smart-expert-reduction -gr --graph-reuse -no-gr "                  \
        "--no-graph-reuse -fmoe --fused-moe -no-fmoe --no-fused-moe -no-fug " \
        "--no-fused-up-gate -no-mmad --no-fused-mul-multiadd -muge "          \
        "--merge-up-gate-experts -mqkv --merge-qkv -ger "                     \
        "--grouped-expert-routing -khad --k-cache-hadamard -vhad "            \
        "--v-cache-hadamard -no-fa --no-flash-attn -cuda --cuda-params -thp " \
        "--transparent-huge-pages -smf16 -smf32 -smgs", NULL,                 \
        "what is computed does not depend on it; leave it out"),              \
    ROW_FOREIGN("-rtr --run-time-repack", NULL, "--repack does that")

/* clang-format on */

#endif
