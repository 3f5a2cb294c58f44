/* SPDX-License-Identifier: MIT */
/* reranker.c - language models that answer whether a document fits a query
 *
 * Qwen3-Reranker and Qwen3-VL-Reranker have the class of a language model.
 * Their score is the probability of "yes" as the next token, compared with "no"
 * (model card of Qwen3-Reranker-0.6B). The file gets these two rows of the
 * output matrix as a classifier. The first of these that the folder has decides
 * whether it is a reranker:
 *
 *   gguf_convert_params.reranker, YES or NO
 *   the class Qwen3ForSequenceClassification without a matrix "score"
 *   config.json: is_original_qwen3_reranker, classifier_from_token (vLLM),
 *       which must be "no" and "yes"
 *   modules.json: a step LogitScore with true_token_id and false_token_id
 *       (sentence_transformers/cross_encoder/modules/logit_score.py)
 *   config_sentence_transformers.json: model_type CrossEncoder
 *   a chat template that asks for an answer of "yes" or "no": in
 *       tokenizer_config.json, chat_template.json or a file of its own
 *   README.md: pipeline_tag, which is text-ranking or something else
 *   the name of the folder, of the repository in the path of a cache,
 *       _name_or_path, base_model of README.md: with qwen3-reranker in it
 *
 * Headings of README.md do not decide: comparisons have them, too. If only a
 * heading mentions reranking, a note says so.
 *
 * Qwen3ForSequenceClassification with a matrix "score" has its own classifier.
 * Readers of GGUF files put a softmax after a classifier of Qwen3, so a single
 * row gets a row of zeros beside it: softmax(x, 0) is the sigmoid of x.
 */
#include "config.h"
#include "convert/card/card.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/json_scan.h"
#include "base/os/os_path.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Evidence found, in words, and ids of the answers; -1: unknown. */
struct verdict {
    bool is_one, is_not;
    char by[160];
    int64_t yes, no;
};

/* ---- texts ---- */

static bool has_word(struct gguf_str text, const char *word)
{
    const size_t n = strlen(word);
    for (; text.size >= n; text.data++, text.size--)
        if (gg_str_eq_nocase((struct gguf_str){ text.data, n }, word))
            return true;
    return false;
}

static bool is_reranker_name(struct gguf_str name)
{
    return has_word(name, "qwen3-reranker") ||
           has_word(name, "qwen3-vl-reranker");
}

/* ---- evidence ---- */

/* Is this the list ["no", "yes"]? */
static bool is_no_yes(const json_t *list)
{
    struct gguf_str s;
    return json_array_size(list) == 2 &&
           gg_json_str(json_array_get(list, 0), &s) && gg_str_eqz(s, "no") &&
           gg_json_str(json_array_get(list, 1), &s) && gg_str_eqz(s, "yes");
}

static enum gguf_status by_config(struct gguf_convert *c, struct verdict *v,
                                  struct gguf_error *err)
{
    const json_t *tokens = gg_convert_get_config(c, "classifier_from_token");
    v->is_one =
        json_is_true(gg_convert_get_config(c, "is_original_qwen3_reranker")) ||
        json_is_array(tokens);
    if (json_is_array(tokens) && !is_no_yes(tokens))
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED,
            gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json, tokens),
            "config.json: classifier_from_token, expected "
            "[\"no\", \"yes\"] (--reranker=no converts a "
            "language model)");
    snprintf(v->by, sizeof v->by, "config.json");
    return GGUF_OK;
}

/* The tokens that a step of modules.json compares. */
static enum gguf_status read_step(struct gguf_convert *c, const char *path,
                                  struct verdict *v, struct gguf_error *err)
{
    char name[200];
    struct gg_mapfile m;
    struct gg_json j;
    if (gg_os_path_folder_size(path, strlen(path)) || *path == '.')
        return GGUF_OK;
    snprintf(name, sizeof name, "%s/config.json", path);
    GG_TRY(gg_folder_read_json(&c->folder, name, &m, &j, err));
    v->is_one =
        gg_json_int(json_object_get(j.root, "true_token_id"), &v->yes) &&
        gg_json_int(json_object_get(j.root, "false_token_id"), &v->no);
    if (j.root && !v->is_one)
        gg_folder_warn(&c->folder,
                       "modules.json: '%.60s' lacks true_token_id or "
                       "false_token_id: not a reranker",
                       name);
    v->is_not = j.root && !v->is_one;
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return GGUF_OK;
}

static enum gguf_status by_modules(struct gguf_convert *c, struct verdict *v,
                                   struct gguf_error *err)
{
    struct gg_mapfile m;
    struct gg_json j;
    struct gguf_str type, path;
    enum gguf_status st =
        gg_folder_read_json(&c->folder, "modules.json", &m, &j, err);
    snprintf(v->by, sizeof v->by, "modules.json");
    for (size_t i = 0; st == GGUF_OK && i < json_array_size(j.root); i++) {
        const json_t *step = json_array_get(j.root, i);
        if (gg_json_str(json_object_get(step, "type"), &type) &&
            (gg_str_ends(type, "LogitScore") ||
             gg_str_ends(type, "CausalScoreHead")) &&
            gg_json_str(json_object_get(step, "path"), &path) && path.size &&
            path.size < 100)
            st = read_step(c, path.data, v, err);
    }
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st;
}

static enum gguf_status by_trainer(struct gguf_convert *c, struct verdict *v,
                                   struct gguf_error *err)
{
    static const char name[] = "config_sentence_transformers.json";
    struct gg_mapfile m;
    struct gg_json j;
    struct gguf_str type;
    GG_TRY(gg_folder_read_json(&c->folder, name, &m, &j, err));
    v->is_one = gg_json_str(json_object_get(j.root, "model_type"), &type) &&
                gg_str_eqz(type, "CrossEncoder");
    snprintf(v->by, sizeof v->by, "%s", name);
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return GGUF_OK;
}

static const char asks[] = "answer can only be \"yes\" or \"no\"";

/* Does a template ask so? of: a text, or a list of objects with "template". */
static bool asks_yes_or_no(const json_t *of)
{
    struct gguf_str text;
    if (gg_json_str(of, &text))
        return has_word(text, asks);
    for (size_t i = 0; i < json_array_size(of); i++)
        if (gg_json_str(json_object_get(json_array_get(of, i), "template"),
                        &text) &&
            has_word(text, asks))
            return true;
    return false;
}

static enum gguf_status by_template(struct gguf_convert *c, struct verdict *v,
                                    struct gguf_error *err)
{
    static const char *const files[] = {
        "chat_template.jinja", "additional_chat_templates/reranker.jinja"
    };
    const json_t *root = c->folder.text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    struct gg_mapfile of_json;
    struct gg_json json;
    bool there;
    GG_TRY(gg_folder_read_json(&c->folder, "chat_template.json", &of_json,
                               &json, err));
    v->is_one = asks_yes_or_no(json_object_get(root, "chat_template")) ||
                asks_yes_or_no(json_object_get(json.root, "chat_template"));
    gg_json_fini(&json);
    gg_mapfile_close(&of_json);
    for (size_t i = 0; i < GG_LEN(files) && !v->is_one; i++) {
        struct gg_mapfile m = { .fd = -1 };
        GG_TRY(gg_folder_map(&c->folder, files[i], &m, &there, err));
        if (there)
            v->is_one = has_word(
                (struct gguf_str){ (const char *)m.data, (size_t)m.size },
                asks);
        gg_mapfile_close(&m);
    }
    snprintf(v->by, sizeof v->by, "its chat template");
    return GGUF_OK;
}

static bool take_name(struct verdict *v, const char *what,
                      struct gguf_str name)
{
    if (!is_reranker_name(name))
        return false;
    v->is_one = true;
    snprintf(v->by, sizeof v->by, "%s '%.*s'", what,
             (int)GG_MIN(name.size, 100), name.data);
    return true;
}

/* README.md's pairs, then names; of headings a note. */
static enum gguf_status by_card(struct gguf_convert *c, struct verdict *v,
                                struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_card card = { NULL, 0 };
    bool there;
    GG_TRY(gg_folder_map(&c->folder, "README.md", &m, &there, err));
    if (!there)
        return GGUF_OK;
    const struct gguf_str text = { (const char *)m.data, (size_t)m.size };
    /* general.c notes a card that cannot be read */
    (void)gg_card_read(&card, &c->arena, text.data, text.size, NULL);
    const struct gg_card_pair *tag = gg_card_find(&card, "pipeline_tag");
    const struct gg_card_pair *base = gg_card_find(&card, "base_model");
    if (tag && tag->n) {
        v->is_one = gg_str_eqz(tag->item[0], "text-ranking");
        v->is_not = !v->is_one;
        snprintf(v->by, sizeof v->by, "pipeline_tag of README.md");
    }
    for (size_t i = 0; base && i < base->n && !v->is_one && !v->is_not; i++)
        take_name(v, "base_model of README.md,", base->item[i]);
    gg_mapfile_close(&m);
    return GGUF_OK;
}

/* The folder, or in a cache the repository. */
static enum gguf_status by_name(struct gguf_convert *c, struct verdict *v,
                                struct gguf_error *err)
{
    struct gguf_str name;
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    GG_TRY(gg_folder_read_name(&c->folder, &name, err));
    if (!take_name(v, "the folder's name", name) &&
        gg_json_str(json_object_get(root, "_name_or_path"), &name))
        take_name(v, "_name_or_path of config.json,", name);
    return GGUF_OK;
}

static enum gguf_status note_heading(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    bool there;
    GG_TRY(gg_folder_map(&c->folder, "README.md", &m, &there, err));
    const struct gguf_str text = { (const char *)m.data, (size_t)m.size };
    if (there && (has_word(text, "# qwen3-reranker") ||
                  has_word(text, "# qwen3-vl-reranker")))
        gg_folder_warn(&c->folder,
                       "README.md has a heading of a reranker, but "
                       "nothing else says that this is one: converted "
                       "as a language model (--reranker=yes converts "
                       "a reranker)");
    gg_mapfile_close(&m);
    return GGUF_OK;
}

static enum gguf_status judge_reranker(struct gguf_convert *c,
                                       struct verdict *v,
                                       struct gguf_error *err)
{
    static enum gguf_status (*const steps[])(
        struct gguf_convert * c, struct verdict * v,
        struct gguf_error * err) = { by_config,   by_modules, by_trainer,
                                     by_template, by_card,    by_name };
    if (c->p.reranker) {
        v->is_one = c->p.reranker == GGUF_CONVERT_RERANKER_YES;
        snprintf(v->by, sizeof v->by, "--reranker");
        return GGUF_OK;
    }
    for (size_t i = 0; i < GG_LEN(steps) && !v->is_one && !v->is_not; i++)
        GG_TRY(steps[i](c, v, err));
    return v->is_one ? GGUF_OK : note_heading(c, err);
}

/* ---- its tokens ---- */

/* The numbers that tokenizer.json gives to n words. */
static enum gguf_status find_tokens(struct gguf_convert *c,
                                    const char *const *word, int64_t *number,
                                    size_t n, struct gguf_error *err)
{
    const struct gg_convert_text *t = &c->folder.text[GG_CONVERT_TOKENIZER];
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
                number[i] = (int64_t)x;
    return gg_convert_prefix_error(t->name, gg_json_scan_end(&s, err), err);
}

static bool has_tensor(const struct gguf_convert *c, const char *end)
{
    for (size_t i = 0; i < c->folder.weights->n_tensors; i++)
        if (gg_str_ends(c->folder.weights->tensor[i].name, end))
            return true;
    return false;
}

/* Set the members of config.json that the row of rerankers reads. */
static enum gguf_status set_reranker(struct gguf_convert *c,
                                     const struct verdict *v,
                                     struct gguf_error *err)
{
    static const char *const word[] = { "yes", "no" };
    int64_t number[GG_LEN(word)] = { v->yes, v->no }, rows;
    if (v->yes < 0 || v->no < 0)
        GG_TRY(find_tokens(c, word, number, GG_LEN(word), err));
    for (size_t i = 0; i < GG_LEN(word); i++)
        if (number[i] < 0)
            return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                                "a reranker's answers are \"yes\" and \"no\", "
                                "but tokenizer.json has no token \"%s\"",
                                word[i]);
        else if (gg_convert_get_count(c, "vocab_size", &rows) &&
                 number[i] >= rows)
            return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                                "the answer \"%s\" is token %" PRId64
                                ", but there are %" PRId64 " tokens",
                                word[i], number[i], rows);
    if (!has_tensor(c, "lm_head.weight"))
        GG_TRY(gg_convert_set_config(c, "reranker_tied", json_true(), err));
    GG_TRY(gg_convert_set_config(c, "reranker", json_true(), err));
    GG_TRY(gg_convert_set_config(c, "reranker_yes", json_integer(number[0]),
                                 err));
    GG_TRY(
        gg_convert_set_config(c, "reranker_no", json_integer(number[1]), err));
    GG_TRY(gg_convert_set_config(
        c, "reranker_answers",
        json_pack("{s:s,s:s}", "0", word[0], "1", word[1]), err));
    return gg_convert_set_config(c, "reranker_templates",
                                 json_pack("{s:s}", "0", "rerank"), err);
}

/* A classifier of its own. */
static enum gguf_status set_score(struct gguf_convert *c,
                                  struct gguf_error *err)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->folder.weights->n_tensors; i++)
        if (gg_str_ends(c->folder.weights->tensor[i].name, "score.weight"))
            n = c->folder.weights->tensor[i].ne[1];
    GG_TRY(gg_convert_set_config(c, "reranker_score", json_true(), err));
    json_t *labels =
        n == 1 ? json_pack("{s:s,s:s}", "0", "yes", "1", "no")
               : json_deep_copy(gg_convert_get_config(c, "id2label"));
    return labels ? gg_convert_set_config(c, "reranker_answers", labels, err)
                  : GGUF_OK;
}

enum gguf_status gg_convert_detect_reranker(struct gguf_convert *c,
                                            struct gguf_error *err)
{
    struct verdict v = { .yes = -1, .no = -1 };
    struct gg_str_esc e;
    const struct gguf_str name = gg_convert_class(c);
    const bool can = gg_convert_class_is_reranker(name);
    const bool scores = can && gg_str_ends(name, "ForSequenceClassification");
    const bool own = scores && has_tensor(c, "score.weight");
    if ((c->p.reranker == GGUF_CONVERT_RERANKER_YES && !can &&
         !gg_str_ends(name, "Classification")) ||
        (c->p.reranker == GGUF_CONVERT_RERANKER_NO && scores))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "class '%s' cannot be converted as %s "
                            "(--reranker)",
                            gg_str_esc(&e, name),
                            can ? "language models" : "rerankers");
    if (gg_str_ends(name, "ForSequenceClassification") ||
        has_tensor(c, "classifier.weight"))
        GG_TRY(gg_convert_set_config(c, "classifies", json_true(), err));
    if (own)
        return set_score(c, err);
    if (!can)
        return GGUF_OK;
    if (scores) {
        v.is_one = true;
        snprintf(v.by, sizeof v.by, "its class");
    } else {
        GG_TRY(judge_reranker(c, &v, err));
    }
    if (!v.is_one)
        return GGUF_OK;
    c->out.summary.kind = "reranker";
    c->out.summary.reason =
        gg_mem_arena_strndup(&c->arena, v.by, strlen(v.by));
    return c->out.summary.reason ? set_reranker(c, &v, err)
                                 : gg_error_set_nomem(err, sizeof v.by);
}
