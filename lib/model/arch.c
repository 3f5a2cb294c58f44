/* arch.c - the table of architectures
 *
 * Which parts a model has was checked against llama.cpp (August 2026): the
 * tensors it asks for.
 */
#include "config.h"
#include "model/arch.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/model.h"

#define P(part) GG_PART_##part

/* Norm, attention, norm, gated feed-forward: what most are like. */
#define LLAMA                                                                 \
    (P(TOP) | P(NORM) | P(QKV) | P(NORM_FFN) | P(FFN) | P(FFN_UP) |           \
     P(FFN_GATE))
/* Layer norms, and biases everywhere. */
#define GPT                                                                   \
    (P(TOP) | P(NORM) | P(NORM_FFN) | P(NORM_BIAS) | P(QKV_ONE) | P(FFN) |    \
     P(FFN_UP) | P(BIAS))

static const struct gg_arch archs[] = {
    { .name = "llama", .runs = true, .rope = GGUF_ROPE_NORM,
      .parts = LLAMA | P(BIAS_MAYBE) | P(HEAD_NORM_MAYBE) | P(MOE) },
    { .name = "qwen2", .runs = true, .rope = GGUF_ROPE_NEOX,
      .parts = LLAMA | P(BIAS_MAYBE) | P(HEAD_NORM_MAYBE) },
    { .name = "mistral3", .parts = LLAMA | P(BIAS_MAYBE) | P(MOE) },
    { .name = "qwen2moe",
      .parts = LLAMA | P(BIAS_MAYBE) | P(MOE) | P(SHARED) | P(SHARED_GATE) },
    { .name = "qwen3", .parts = LLAMA | P(BIAS_MAYBE) | P(HEAD_NORM) },
    { .name = "qwen3moe",
      .parts = LLAMA | P(BIAS_MAYBE) | P(HEAD_NORM) | P(MOE) },
    { .name = "gemma", .parts = LLAMA },
    { .name = "gemma2", .parts = LLAMA | P(NORM_POST) | P(NORM_POST_FFN) },
    { .name = "gemma3",
      .parts = LLAMA | P(NORM_POST) | P(NORM_POST_FFN) | P(HEAD_NORM) },
    { .name = "olmo2",
      .parts = P(TOP) | P(QKV) | P(WIDE_NORM) | P(NORM_POST) | P(FFN) |
               P(FFN_UP) | P(FFN_GATE) | P(NORM_POST_FFN) },
    { .name = "glm4",
      .parts = P(TOP) | P(NORM) | P(QKV) | P(NORM_POST) | P(NORM_FFN) |
               P(FFN) | P(FFN_FUSED) | P(NORM_POST_FFN) | P(BIAS_MAYBE) },
    { .name = "gpt-oss",
      .parts = P(TOP) | P(NORM) | P(QKV) | P(BIAS) | P(NORM_POST) | P(SINKS) |
               P(MOE) | P(MOE_BIAS) },
    { .name = "deepseek2",
      .parts = (LLAMA & ~P(QKV)) | P(MLA) | P(MOE) | P(SHARED) },
    { .name = "phi3",
      .parts = P(TOP) | P(NORM) | P(QKV_ONE) | P(NORM_FFN) | P(FFN) |
               P(FFN_FUSED) },
    { .name = "phi2", .layer_norm = true,
      .parts = (GPT & ~(P(NORM_FFN) | P(QKV_ONE))) | P(QKV) },
    { .name = "starcoder2", .layer_norm = true,
      .parts = (GPT & ~P(QKV_ONE)) | P(QKV) },
    { .name = "gpt2", .layer_norm = true, .parts = GPT | P(POSITION) },
    { .name = "gptneox", .layer_norm = true, .parts = GPT },
    { .name = "bloom", .layer_norm = true, .parts = GPT | P(EMBD_NORM) },
    { .name = "falcon", .layer_norm = true,
      .parts = P(TOP) | P(NORM) | P(NORM_BIAS) | P(NORM_MORE) | P(QKV_ONE) |
               P(FFN) | P(FFN_UP) },
    { .name = "stablelm", .layer_norm = true,
      .parts = (LLAMA & ~P(NORM_FFN)) | P(NORM_BIAS) | P(NORM_MORE) |
               P(HEADS_NORM) | P(BIAS_MAYBE) },
    { .name = "command-r", .layer_norm = true,
      .parts = (LLAMA & ~P(NORM_FFN)) | P(HEADS_NORM) | P(BIAS_MAYBE) },
};

const struct gg_arch *gg_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(archs); i++)
        if (gg_str_eqz(name, archs[i].name))
            return &archs[i];
    return NULL;
}

const char *gguf_model_arch_at(size_t n)
{
    for (size_t i = 0; i < GG_LEN(archs); i++)
        if (archs[i].runs && n-- == 0)
            return archs[i].name;
    return NULL;
}
