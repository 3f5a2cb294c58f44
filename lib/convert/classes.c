/* SPDX-License-Identifier: MIT */
/* classes.c - the rows of architectures, all lists together */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct gg_convert_arch *const lists[] = {
    gg_convert_family_llama,      gg_convert_family_mistral,
    gg_convert_family_qwen,       gg_convert_family_diffusion,
    gg_convert_family_gemma,      gg_convert_family_phi,
    gg_convert_family_glm,        gg_convert_family_deepseek,
    gg_convert_family_bailing,    gg_convert_family_kimi,
    gg_convert_family_minimax,    gg_convert_family_minicpm,
    gg_convert_family_hunyuan,    gg_convert_family_ernie,
    gg_convert_family_granite,    gg_convert_family_falcon,
    gg_convert_family_cohere,     gg_convert_family_olmo,
    gg_convert_family_exaone,     gg_convert_family_nemotron,
    gg_convert_family_plamo,      gg_convert_family_lfm,
    gg_convert_family_gpt,        gg_convert_family_bert,
    gg_convert_family_t5,         gg_convert_family_mamba,
    gg_convert_family_rwkv,       gg_convert_family_expert,
    gg_convert_family_kyutai,     gg_convert_family_hrm,
    gg_convert_family_muse,       gg_convert_family_horizon,
    gg_convert_family_qwen_delta,
};

const char *gg_convert_key_name(const struct gguf_convert *c, const char *key,
                                char buf[128])
{
    if (*key == '/')
        return key + 1;
    snprintf(buf, 128, "%s.%s", c->arch->arch, key);
    return buf;
}

const struct gg_convert_arch *gg_convert_arch_row(size_t n)
{
    for (size_t i = 0; i < GG_LEN(lists); i++)
        for (const struct gg_convert_arch *a = lists[i]; a->classes; a++)
            if (!n--)
                return a;
    return NULL;
}

bool gg_convert_arch_has_class(const struct gg_convert_arch *arch,
                               struct gguf_str name)
{
    for (const char *p = arch->classes; *p;) {
        const size_t n = strcspn(p, " ");
        if (n == name.size && !memcmp(p, name.data, n))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

const struct gg_convert_defaults *
gg_convert_find_defaults(struct gguf_str model_type)
{
    static const struct gg_convert_defaults *const all[] = {
        &gg_convert_defaults_llama, &gg_convert_defaults_mistral,
        &gg_convert_defaults_qwen2
    };
    for (size_t i = 0; i < GG_LEN(all); i++)
        if (gg_str_eqz(model_type, all[i]->model_type))
            return all[i];
    return NULL;
}

bool gg_convert_class_is_reranker(struct gguf_str class_name)
{
    const struct gg_convert_arch *a;
    for (size_t i = 0; (a = gg_convert_arch_row(i)); i++)
        if (a->reranker && gg_convert_arch_has_class(a, class_name))
            return true;
    return false;
}
