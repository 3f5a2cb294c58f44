/* SPDX-License-Identifier: MIT */
/* reranker.c - language models that answer whether a document fits a query
 *
 * A folder of Qwen3-Reranker is one of a Qwen 3 model: what it says of a
 * document is how likely "yes" is as the next token, against "no" (model card
 * of Qwen3-Reranker-0.6B). The file is to have those two rows of the head
 * alone, as a classifier. What config.json does not say, that it is one, is
 * told by the name of the folder or a heading of README.md, as llama.cpp's
 * converter tells it. "reranker" and the numbers of both tokens are then said
 * in config.json, where rows find them.
 */
#include "config.h"
#include "convert/convert.h"

#include "base/compiler.h"
#include "base/json_scan.h"
#include "base/str.h"

#include <string.h>

/* Names, after what makes a heading of one. */
static const char *const headings[] = { "# qwen3-reranker",
                                        "# qwen3-vl-reranker" };

/* Is the word in the text, whatever the case of its letters? */
static bool has(struct gguf_str text, const char *word)
{
    const size_t n = strlen(word);
    for (; text.size >= n; text.data++, text.size--)
        if (gg_str_same((struct gguf_str){ text.data, n }, word))
            return true;
    return false;
}

static bool has_any(struct gguf_str text, bool heading)
{
    for (size_t i = 0; i < GG_LEN(headings); i++)
        if (has(text, headings[i] + (heading ? 0 : 2)))
            return true;
    return false;
}

static enum gguf_status is_one(struct gguf_convert *c, bool *yes,
                               struct gguf_error *err)
{
    const json_t *root = c->text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str name;
    struct gg_mapfile m = { .fd = -1 };
    bool there;
    GG_TRY(gg_convert_folder_name(c, &name, err));
    *yes = has_any(name, false) ||
           (gg_json_str(json_object_get(root, "_name_or_path"), &name) &&
            has_any(name, false));
    if (*yes)
        return GGUF_OK;
    GG_TRY(gg_convert_map(c, "README.md", &m, &there, err));
    if (there) {
        *yes = has_any(
            (struct gguf_str){ (const char *)m.data, (size_t)m.size }, true);
        gg_mapfile_close(&m);
    }
    return GGUF_OK;
}

/* The numbers that tokenizer.json gives to n words. */
static enum gguf_status find_tokens(struct gguf_convert *c,
                                    const char *const *word, double *number,
                                    size_t n, struct gguf_error *err)
{
    const struct gg_convert_text *t = &c->text[GG_CONVERT_TOKENIZER];
    const json_t *vocab =
        json_object_get(json_object_get(t->json.root, "model"), "vocab");
    struct gg_json_scan s;
    struct gguf_str name;
    double x;
    if (!json_is_object(vocab))
        return GGUF_OK;
    gg_json_scan_open(&s, &t->json, vocab, &c->arena);
    while (gg_json_scan_more(&s) && gg_json_scan_name(&s, &name) &&
           gg_json_scan_num(&s, &x))
        for (size_t i = 0; i < n; i++)
            if (gg_str_eqz(name, word[i]) && x >= 0 && x <= INT32_MAX)
                number[i] = x;
    return gg_convert_in(t->name, gg_json_scan_end(&s, err), err);
}

enum gguf_status gg_convert_unsaid_reranker(struct gguf_convert *c,
                                            struct gguf_error *err)
{
    static const char *const word[] = { "yes", "no" };
    double number[GG_LEN(word)] = { -1, -1 };
    struct gguf_str name;
    const json_t *root = c->text[GG_CONVERT_CONFIG].json.root;
    const json_t *v =
        json_array_get(json_object_get(root, "architectures"), 0);
    bool yes;
    if (!gg_json_str(v, &name) || !gg_str_eqz(name, "Qwen3ForCausalLM"))
        return GGUF_OK;
    GG_TRY(is_one(c, &yes, err));
    if (!yes)
        return GGUF_OK;
    GG_TRY(find_tokens(c, word, number, GG_LEN(word), err));
    for (size_t i = 0; i < GG_LEN(word); i++)
        if (number[i] < 0)
            return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                                "a reranker's answers are \"yes\" and \"no\", "
                                "but tokenizer.json has no token \"%s\"",
                                word[i]);
    GG_TRY(gg_convert_say(c, "reranker", json_true(), err));
    GG_TRY(gg_convert_say(c, "reranker_yes",
                          json_integer((json_int_t)number[0]), err));
    GG_TRY(gg_convert_say(c, "reranker_no",
                          json_integer((json_int_t)number[1]), err));
    GG_TRY(gg_convert_say(c, "reranker_answers",
                          json_pack("{s:s,s:s}", "0", word[0], "1", word[1]),
                          err));
    return gg_convert_say(c, "reranker_templates",
                          json_pack("{s:s}", "0", "rerank"), err);
}
