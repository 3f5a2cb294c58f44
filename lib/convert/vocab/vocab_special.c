/* SPDX-License-Identifier: MIT */
/* vocab_special.c - ids with a meaning */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/pretok_row.h"

#include <stdio.h>
#include <string.h>

const struct gg_convert_role gg_convert_roles[GG_CONVERT_ROLES] = {
    { "bos", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token" },
    { "eos", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token" },
    { "unk", "tokenizer.ggml.unknown_token_id", NULL },
    { "sep", "tokenizer.ggml.seperator_token_id",
      "tokenizer.ggml.add_sep_token" },
    { "pad", "tokenizer.ggml.padding_token_id", NULL },
    { "cls", "tokenizer.ggml.cls_token_id", NULL },
    { "mask", "tokenizer.ggml.mask_token_id", NULL },
    { "eot", "tokenizer.ggml.eot_token_id", NULL },
    { "eom", "tokenizer.ggml.eom_token_id", NULL },
};
enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, EOT, EOM }; /* their places */

/* A text, or an object with one. */
struct gguf_str gg_convert_vocab_role_text(const struct gg_convert_vocab *v,
                                           const char *name)
{
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    char key[64];
    struct gguf_str text = { NULL, 0 };
    snprintf(key, sizeof key, "%s_token", name);
    const json_t *t = json_object_get(root, key);
    if (json_is_object(t))
        t = json_object_get(t, "content");
    gg_json_str(t, &text);
    return text;
}

int64_t gg_convert_vocab_find_role(const struct gg_convert_vocab *v, size_t i)
{
    struct gguf_str text =
        gg_convert_vocab_role_text(v, gg_convert_roles[i].name);
    if (!text.data && v->role_text && v->role_text[i])
        text = gg_str_z(v->role_text[i]);
    return text.data ? gg_convert_vocab_find(v, text) : -1;
}

/* NAME_token_id, or NULL. Of models that are parts llama.cpp's converter reads
 * the whole's, then the part's in "text_config" alone. */
static const json_t *number_of(const struct gg_convert_vocab *v,
                               const char *name)
{
    const json_t *config = v->folder->text[GG_CONVERT_CONFIG].json.root;
    const json_t *const of[] = {
        config, json_object_get(config, "text_config"),
        v->folder->text[GG_CONVERT_GENERATION].json.root
    };
    const json_t *t = NULL;
    char key[64];
    snprintf(key, sizeof key, "%s_token_id", name);
    for (size_t i = 0; i < GG_LEN(of) && (!t || json_is_null(t)); i++)
        t = json_object_get(of[i], key);
    return t;
}

bool gg_convert_vocab_names_bos(const struct gg_convert_vocab *v)
{
    const json_t *t = number_of(v, "bos");
    return gg_convert_vocab_role_text(v, "bos").data ||
           gg_convert_vocab_role_text(v, "cls").data ||
           (t && !json_is_null(t));
}

/* Id in NAME_token_id; the first of several. */
static int64_t by_id(const struct gg_convert_vocab *v, const char *name)
{
    const json_t *t = number_of(v, name);
    int64_t id;
    if (json_is_array(t))
        t = json_array_get(t, 0);
    if (!gg_json_int(t, &id) || id < 0)
        return -1;
    if (id >= (int64_t)v->n)
        gg_folder_warn(v->folder,
                       "%s_token_id %" PRId64
                       " is left out: there are %zu tokens",
                       name, id, v->n);
    return id < (int64_t)v->n ? id : -1;
}

/* Token of a role, by its text; -1: none. BOS and EOS without a token are
 * BERT's CLS and SEP. A token that is added after each text becomes EOS, and
 * the former EOS becomes EOT. llama.cpp's converter does the same.
 */
static int64_t by_text(const struct gg_convert_vocab *v, size_t i,
                       const struct gg_convert_special_ends *ends)
{
    const struct gguf_str eos = gg_convert_vocab_role_text(v, "eos");
    int64_t id = -1;
    if (i == EOS && ends->last.data)
        id = gg_convert_vocab_find(v, ends->last);
    if (i == EOT && ends->last.data && eos.data && !gg_str_eq(ends->last, eos))
        id = gg_convert_vocab_find(v, eos);
    if (id < 0)
        id = gg_convert_vocab_find_role(v, i);
    return id < 0 && (i == BOS || i == EOS)
               ? gg_convert_vocab_find_role(v, i == BOS ? CLS : SEP)
               : id;
}

/* Unless it is there. */
static enum gguf_status set_role(const struct gg_convert_vocab *v, size_t i,
                                 int64_t id, struct gguf_error *err)
{
    const char *key = gg_convert_roles[i].key;
    return id < 0 || gguf_meta_find(v->meta, key)
               ? GGUF_OK
               : gguf_meta_set_u32(v->meta, key, (uint32_t)id, err);
}

/* Set the roles that the architecture's row names. */
static enum gguf_status set_of_row(const struct gg_convert_vocab *v,
                                   struct gguf_error *err)
{
    const char *p = v->arch->roles;
    while (p && *p) {
        const size_t size = strcspn(p, " "), n = strcspn(p, "=");
        const struct gguf_str token = { p + n + 1, size - n - 1 };
        for (size_t i = 0; i < GG_CONVERT_ROLES; i++)
            if (strlen(gg_convert_roles[i].name) == n &&
                !strncmp(p, gg_convert_roles[i].name, n))
                GG_TRY(set_role(v, i, gg_convert_vocab_find(v, token), err));
        p += size + (p[size] == ' ');
    }
    return GGUF_OK;
}

/* Set the roles that the tokenizer's files name, then those that other files
 * number. */
static enum gguf_status set_roles(const struct gg_convert_vocab *v,
                                  const struct gg_convert_special_ends *ends,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++)
        GG_TRY(set_role(v, i, by_text(v, i, ends), err));
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++)
        GG_TRY(set_role(v, i, by_id(v, gg_convert_roles[i].name), err));
    GG_TRY(set_role(v, UNK, v->unk, err));
    return set_of_row(v, err);
}

/* Does the name of the pre-tokenizer put BOS before texts, which this folder's
 * tokenizer.json does not? Classes that put it by themselves are left to the
 * name. */
static bool implies_bos(const struct gg_convert_vocab *v)
{
    static const char *const classes[] = { "Llama", "CodeLlama", "Gemma",
                                           "Cohere" };
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    const struct gg_pretok_row *row =
        v->pre ? gg_pretok_row_find(gg_str_z(v->pre)) : NULL;
    struct gguf_str class;
    if (!row || !row->add_bos ||
        !v->folder->text[GG_CONVERT_TOKENIZER].json.root)
        return false;
    if (gg_json_str(json_object_get(root, "tokenizer_class"), &class))
        for (size_t i = 0; i < GG_LEN(classes); i++)
            if (gg_str_starts(class, classes[i]))
                return false;
    return true;
}

/* Is the token added around texts? 1, 0, or -1: no file says. */
static int is_put(const struct gg_convert_vocab *v, size_t i,
                  const struct gg_convert_special_ends *ends)
{
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    char key[64];
    snprintf(key, sizeof key, "add_%s_token", gg_convert_roles[i].name);
    const json_t *t = json_object_get(root, key);
    if (json_is_boolean(t))
        return json_is_true(t);
    const int put = i == BOS ? ends->bos : i == EOS ? ends->eos : ends->sep;
    return i == BOS && put < 0 && implies_bos(v) ? 0 : put;
}

enum gguf_status gg_convert_vocab_set_special(struct gg_convert_vocab *v,
                                              struct gguf_error *err)
{
    struct gguf_meta *m = v->meta;
    struct gg_convert_special_ends ends;
    gg_convert_vocab_read_ends(v, &ends);
    GG_TRY(set_roles(v, &ends, err));
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++) {
        const int put = gg_convert_roles[i].add ? is_put(v, i, &ends) : -1;
        if (put >= 0)
            GG_TRY(gguf_meta_set_bool(m, gg_convert_roles[i].add, put, err));
    }
    if (v->space_prefix >= 0)
        GG_TRY(gguf_meta_set_bool(m, "tokenizer.ggml.add_space_prefix",
                                  v->space_prefix, err));
    return gg_convert_vocab_add_templates(v, err);
}
