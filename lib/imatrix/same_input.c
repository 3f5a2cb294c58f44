/* SPDX-License-Identifier: MIT */
/* same_input.c - matrices that multiply the same vectors
 *
 * Data for one such matrix apply to the others of its layer. Which of them a
 * file has depends on the converter, which may fuse or rename them, and on the
 * collected tensors. tests/eval/check-collect-archs compares their data in
 * every supported architecture.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "imatrix/imatrix_int.h"

#include <stdio.h>
#include <string.h>

/* Names without layer and ".weight"; the matrices of a row have the same
 * input. */
static const char *const groups[] = {
    /* the normalized state before attention or a recurrent block */
    "attn_qkv attn_q attn_k attn_v attn_gate attn_q_a attn_kv attn_kv_a_mqa "
    "attn_compressor_kv attn_compressor_gate indexer.attn_k indexer.q_proj "
    "indexer.k_proj ssm_in ssm_ba ssm_alpha ssm_beta ssm_f_a ssm_g_a ssm_g",
    "attn_q_b indexer.attn_q_b",
    "cross_attn_k cross_attn_v",
    "ffn_gate ffn_up",
    "ffn_gate_up_exps ffn_gate_exps ffn_up_exps",
    "ffn_gate_shexp ffn_up_shexp ffn_routed_down",
    "ffn_gate_chexps ffn_up_chexps",
};

/* Take the next word of *text, and advance *text past it; empty after the
 * last. */
static struct gguf_str take_word(const char **text)
{
    *text += strspn(*text, " ");
    const struct gguf_str word = { *text, strcspn(*text, " ") };
    *text += word.size;
    return word;
}

/* Find the row with a name; NULL if it does not exist. */
static const char *find_group(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(groups); i++) {
        const char *text = groups[i];
        for (struct gguf_str w = take_word(&text); w.size;
             w = take_word(&text))
            if (gg_str_eq(w, name))
                return groups[i];
    }
    return NULL;
}

/* Find the entry of NAME.weight with n values, for another NAME of the same row
 * and layer. */
static bool find_other(const struct gguf_imatrix *im, struct gguf_str name,
                       uint64_t n_values, size_t *i)
{
    static const char end[] = ".weight";
    struct gguf_str rest = name;
    char other[128];
    if (gg_str_starts(rest, "enc.") || gg_str_starts(rest, "dec."))
        rest = (struct gguf_str){ rest.data + 4, rest.size - 4 };
    if (gguf_layer_from_name(rest, &rest) < 0 || !gg_str_ends(rest, end))
        return false;
    const int before = (int)(name.size - rest.size);
    rest.size -= sizeof end - 1;
    const char *text = find_group(rest);
    for (struct gguf_str w = { "", 1 }; text && w.size;) {
        w = take_word(&text);
        const int n = snprintf(other, sizeof other, "%.*s%.*s%s", before,
                               name.data, (int)w.size, w.data, end);
        if (w.size && n > 0 && (size_t)n < sizeof other &&
            gguf_imatrix_find(im, gg_str_z(other), i) &&
            im->entries[*i]->n_values == n_values)
            return true;
    }
    return false;
}

bool gguf_imatrix_find_for_matrix(const struct gguf_imatrix *im,
                                  struct gguf_str name, uint64_t n_values,
                                  size_t *i)
{
    if (gguf_imatrix_find(im, name, i))
        return im->entries[*i]->n_values == n_values;
    return find_other(im, name, n_values, i);
}
