/* SPDX-License-Identifier: MIT */
/* families.h - families of architectures, by lineage
 *
 * A family F has rows of architectures in family/F.c, rows for conversion in
 * lib/convert/family/F.c, and tests in tests/family/F.
 */
#ifndef GG_MODEL_FAMILY_FAMILIES_H
#define GG_MODEL_FAMILY_FAMILIES_H

#include "model/arch.h"

/* X(FAMILY) */
#define GG_FAMILY_LIST(X)                                                     \
    X(bailing)                                                                \
    X(bert)                                                                   \
    X(cohere)                                                                 \
    X(deepseek)                                                               \
    X(diffusion)                                                              \
    X(ernie)                                                                  \
    X(exaone)                                                                 \
    X(expert)                                                                 \
    X(falcon)                                                                 \
    X(gemma)                                                                  \
    X(glm)                                                                    \
    X(gpt)                                                                    \
    X(granite)                                                                \
    X(horizon)                                                                \
    X(hrm)                                                                    \
    X(hunyuan)                                                                \
    X(kimi)                                                                   \
    X(kyutai)                                                                 \
    X(lfm)                                                                    \
    X(llama)                                                                  \
    X(mamba)                                                                  \
    X(minicpm)                                                                \
    X(minimax)                                                                \
    X(mistral)                                                                \
    X(muse)                                                                   \
    X(nemotron)                                                               \
    X(olmo)                                                                   \
    X(phi)                                                                    \
    X(plamo)                                                                  \
    X(qwen)                                                                   \
    X(rwkv)                                                                   \
    X(t5)

/* Rows of a family, in order of names. */
struct gg_arch_family {
    const struct gg_arch *rows;
    size_t n;
};
#define X(FAMILY) extern const struct gg_arch_family gg_arch_family_##FAMILY;
GG_FAMILY_LIST(X)
#undef X

/* X(FAMILY): families with architectures of draft models, which guess the next
 * tokens of another model from that model's states (speculative decoding).
 * They have no rows; a list has their names, ended by NULL. */
#define GG_DRAFT_FAMILY_LIST(X) X(gemma) X(llama) X(qwen)
#define X(F)                    extern const char *const gg_arch_drafts_##F[];
GG_DRAFT_FAMILY_LIST(X)
#undef X

#endif
