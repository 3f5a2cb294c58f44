/* SPDX-License-Identifier: MIT */
/* token_roles.c - roles of tokens that are known by their texts
 *
 * Not all converters write the keys of special tokens, and some write them as
 * ordinary tokens: a text that names a role makes its token a control token.
 * If several texts name one role, the first in the list counts. (Texts: the
 * models' own tokenizer_config.json, as collected by llama.cpp of August
 * 2026.) */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/str.h"

#define META "\xe2\x96\x81"
#define BAR  "\xef\xbd\x9c" /* U+FF5C */

/* Texts, each followed by a zero byte, that have a role if no key gives it. */
static const struct {
    enum gguf_special_token role;
    const char *texts;
} by_text[] = {
    { GGUF_SPECIAL_EOT,
      "<|eot_id|>\0<|im_end|>\0<|end|>\0<end_of_turn>\0<|endoftext|>\0"
      "<|end_of_text|>\0<EOT>\0_<EOT>\0[EOT]\0<" BAR "end" META "of" META
      "sentence" BAR ">\0<end_of_utterance>\0" },
    { GGUF_SPECIAL_EOM, "<|eom_id|>\0" },
    { GGUF_SPECIAL_FIM_PRE,
      "<|fim_prefix|>\0<fim-prefix>\0<fim_prefix>\0<" BAR "fim" META
      "begin" BAR ">\0<PRE>\0" META "<PRE>\0<|code_prefix|>\0<|prefix|>\0" },
    { GGUF_SPECIAL_FIM_SUF,
      "<|fim_suffix|>\0<fim-suffix>\0<fim_suffix>\0<" BAR "fim" META "hole" BAR
      ">\0<SUF>\0" META "<SUF>\0<|code_suffix|>\0<|suffix|>\0" },
    { GGUF_SPECIAL_FIM_MID,
      "<|fim_middle|>\0<fim-middle>\0<fim_middle>\0<" BAR "fim" META "end" BAR
      ">\0<MID>\0" META "<MID>\0<|code_middle|>\0<|middle|>\0" },
    { GGUF_SPECIAL_FIM_PAD,
      "<|fim_pad|>\0<fim-pad>\0<fim_pad>\0<PAD>\0[PAD]\0" },
    { GGUF_SPECIAL_FIM_REP,
      "<|fim_repo|>\0<|repo_name|>\0<fim-repo>\0<REPO>\0<reponame>\0" },
    { GGUF_SPECIAL_FIM_SEP, "<|file_sep|>\0" },
};

/* Texts that end a turn or a text, whatever the keys say. */
static const char *const ends[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<" BAR "end" META "of" META "sentence" BAR ">",
    "[e~[",
};

/* Roles that end generation, too. */
static const enum gguf_special_token end_roles[] = {
    GGUF_SPECIAL_EOS,     GGUF_SPECIAL_EOT,     GGUF_SPECIAL_EOM,
    GGUF_SPECIAL_FIM_PAD, GGUF_SPECIAL_FIM_REP, GGUF_SPECIAL_FIM_SEP,
};

/* Texts of gpt-oss that are always shown. */
static const char *const shown[] = { "<|channel|>", "<|message|>", "<|start|>",
                                     "<|constrain|>" };

static struct gg_vocab_token *find_token(struct gguf_vocab *v,
                                         const char *text)
{
    gguf_token id = gguf_vocab_find_token(v, gg_str_z(text));
    return id == GGUF_TOKEN_NONE ? NULL : &v->token[id];
}

static void find_role(struct gguf_vocab *v, enum gguf_special_token role,
                      const char *texts)
{
    for (const char *t = texts; *t; t += strlen(t) + 1) {
        struct gg_vocab_token *token = find_token(v, t);
        if (!token)
            continue;
        v->special[role] = (gguf_token)(token - v->token);
        token->kind = GGUF_TOKEN_CONTROL;
        return;
    }
}

static bool text_ends_generation(struct gguf_vocab *v, const char *text)
{
    const struct gg_vocab_token *t = find_token(v, text);
    return t && t->eog;
}

/* Unmark texts that end generation in other vocabularies but not in this one.
 */
static void unmark_ends(struct gguf_vocab *v)
{
    bool call = text_ends_generation(v, "<|call|>") ||
                text_ends_generation(v, "<|calls|>");
    if (call && text_ends_generation(v, "<|end|>") &&
        (text_ends_generation(v, "<|return|>") ||
         text_ends_generation(v, "<|flush|>"))) {
        struct gg_vocab_token *t =
            find_token(v, "<|end|>"); /* ends one message of several */
        t->eog = false;
        t->kind = GGUF_TOKEN_USER;
    }
    if (text_ends_generation(v, "<|tool_response>") &&
        text_ends_generation(v, "</s>")) {
        struct gg_vocab_token *t =
            find_token(v, "</s>"); /* markup in gemma 4 */
        t->eog = false;
        t->kind = GGUF_TOKEN_NORMAL;
    }
}

void gg_vocab_load_roles(struct gguf_vocab *v)
{
    for (size_t i = 0; i < GG_LEN(by_text); i++)
        if (v->special[by_text[i].role] == GGUF_TOKEN_NONE)
            find_role(v, by_text[i].role, by_text[i].texts);
    for (size_t i = 0; i < GG_LEN(ends); i++) {
        struct gg_vocab_token *t = find_token(v, ends[i]);
        if (t) {
            t->eog = true;
            t->kind = GGUF_TOKEN_CONTROL;
        }
    }
    for (size_t i = 0; i < GG_LEN(shown); i++) {
        struct gg_vocab_token *t = find_token(v, shown[i]);
        if (t)
            t->kind = GGUF_TOKEN_USER;
    }
    for (size_t i = 0; i < GG_LEN(end_roles); i++)
        if (v->special[end_roles[i]] != GGUF_TOKEN_NONE)
            v->token[v->special[end_roles[i]]].eog = true;
    unmark_ends(v);
}

/* ---- blanks beside a token ---- */

static bool key_contains(const struct gguf_file *file, const char *key,
                         const char *const *words)
{
    const struct gguf_kv *kv = gguf_file_kv_find(file, key);
    struct gguf_str s;
    if (!kv || kv->type != GGUF_VAL_STR ||
        gguf_kv_get_str(kv, &s, NULL) != GGUF_OK)
        return false;
    for (; *words; words++) {
        size_t n = strlen(*words), k;
        for (size_t i = 0; i + n <= s.size; i++) {
            for (k = 0; k < n; k++) /* ignore case: words are in lower case */
                if ((s.data[i + k] >= 'A' && s.data[i + k] <= 'Z'
                         ? s.data[i + k] + 32
                         : s.data[i + k]) != (*words)[k])
                    break;
            if (k == n)
                return true;
        }
    }
    return false;
}

static void set_lstrip(struct gguf_vocab *v, const char *text)
{
    struct gg_vocab_token *t = find_token(v, text);
    if (t)
        t->lstrip = true;
}

void gg_vocab_load_strip(struct gguf_vocab *v)
{
    static const char *const jina[] = { "jina-v2-de", "jina-v2-es",
                                        "jina-v2-code", NULL };
    static const char *const bert[] = { "nomic-bert-moe", "jina-bert-v3",
                                        NULL };
    static const char *const phi3[] = { "phi-3", "phi3", NULL };
    static const char *const modern[] = { "modern-bert", NULL };
    static const char *const not_these[] = { "<unk>", "<s>", "<|endoftext|>" };
    const char *name = "general.name";
    if (key_contains(v->file, "tokenizer.ggml.pre", jina) ||
        key_contains(v->file, "general.architecture", bert)) {
        set_lstrip(v, "<mask>");
        return;
    }
    if (!key_contains(v->file, name, phi3)) {
        if (key_contains(v->file, name, modern))
            set_lstrip(v, "[MASK]");
        return;
    }
    for (size_t i = 0; i < v->n_tokens; i++)
        v->token[i].rstrip = v->token[i].kind == GGUF_TOKEN_CONTROL ||
                             v->token[i].kind == GGUF_TOKEN_UNKNOWN ||
                             v->token[i].kind == GGUF_TOKEN_USER;
    for (size_t i = 0; i < GG_LEN(not_these); i++) {
        struct gg_vocab_token *t = find_token(v, not_these[i]);
        if (t)
            t->rstrip = false;
    }
}

/* *id receives the first token of the text "\n", or GGUF_TOKEN_NONE. The
 * algorithm alone gets the text, so that no user-defined token is found in it.
 * GGUF_E_NOMEM. */
static enum gguf_status encode_newline(const struct gguf_vocab *v,
                                       gguf_token *id, struct gguf_error *err)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    t.allocator = v->allocator;
    enum gguf_status st = v->algo->encode(v, "\n", 1, true, &t, err);
    *id = st == GGUF_OK && t.n ? t.id[0] : GGUF_TOKEN_NONE;
    gguf_tokens_fini(&t);
    return st == GGUF_E_NOMEM ? st : GGUF_OK;
}

/* As in llama_vocab::impl::load of llama.cpp (commit 00ad355e), which reads
 * keys of special tokens later: the default padding token counts. */
enum gguf_status gg_vocab_load_newline(struct gguf_vocab *v,
                                       struct gguf_error *err)
{
    const gguf_token pad = v->algo->special[GGUF_SPECIAL_PAD];
    gguf_token id = GGUF_TOKEN_NONE;
    if (v->algo->newline == GG_VOCAB_NEWLINE_TEXT)
        GG_TRY(encode_newline(v, &id, err));
    else if (v->algo->newline == GG_VOCAB_NEWLINE_BYTE)
        id = v->byte['\n'];
    if (id == GGUF_TOKEN_NONE && pad >= 0 && (size_t)pad < v->n_tokens)
        id = pad;
    v->special[GGUF_SPECIAL_NEWLINE] = id;
    return GGUF_OK;
}
