/* SPDX-License-Identifier: MIT */
/* prompts.c - how texts of a sentence-transformers folder are prepared
 *
 * config_sentence_transformers.json has prompts by name, which are put in front
 * of texts, and the name of the one that is used by default
 * (sentence_transformers/base/model.py). sentence_bert_config.json has the
 * number of tokens at which texts are cut (base/modules/transformer.py). They
 * also say how vectors are compared, and at which length they are cut. They
 * become members of config.json whose names begin with "modules_", which the
 * rows of config_keys.c make keys of.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <inttypes.h>

enum { MOST_PROMPTS = 10000 };

static enum gguf_status refuse_member(const struct gg_json *j,
                                      const char *file, const json_t *v,
                                      const char *member, const char *what,
                                      struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_HPARAM, gg_json_offset_of(j, v),
                        "%s: %s is not %s", file, member, what);
}

/* Set lists with names and texts. Prompts that are empty or null mean that
 * texts stay as they are. */
static enum gguf_status set_prompts(struct gguf_convert *c, const char *file,
                                    const struct gg_json *j,
                                    struct gguf_error *err)
{
    json_t *prompts = json_object_get(j->root, "prompts"), *v;
    const char *name;
    if (!prompts || json_is_null(prompts))
        return GGUF_OK;
    if (!json_is_object(prompts) || json_object_size(prompts) > MOST_PROMPTS)
        return refuse_member(j, file, prompts, "prompts", "an object of texts",
                             err);
    json_t *names = json_array(), *texts = json_array();
    enum gguf_status st = GGUF_OK;
    json_object_foreach(prompts, name, v)
    {
        if (!json_is_string(v) && !json_is_null(v))
            st = refuse_member(j, file, v, "a prompt", "a text", err);
        else if (json_array_append_new(names, json_string(name)) ||
                 json_array_append_new(texts, json_is_null(v) ? json_string("")
                                                              : json_copy(v)))
            st = gg_error_set_nomem(err, json_object_size(prompts));
        if (st != GGUF_OK)
            break;
    }
    if (st != GGUF_OK || !json_array_size(names)) {
        json_decref(names);
        json_decref(texts);
        return st;
    }
    st = gg_convert_set_config(c, "modules_prompt_names", names, err);
    if (st == GGUF_OK)
        return gg_convert_set_config(c, "modules_prompts", texts, err);
    json_decref(texts);
    return st;
}

static enum gguf_status set_default(struct gguf_convert *c, const char *file,
                                    const struct gg_json *j,
                                    struct gguf_error *err)
{
    json_t *v = json_object_get(j->root, "default_prompt_name");
    struct gguf_str s;
    struct gg_str_esc e;
    if (!v || json_is_null(v))
        return GGUF_OK;
    if (!gg_json_str(v, &s))
        return refuse_member(j, file, v, "default_prompt_name", "a text", err);
    if (!json_object_get(json_object_get(j->root, "prompts"), s.data))
        return gg_error_set(err, GGUF_E_HPARAM, gg_json_offset_of(j, v),
                            "%s: no prompt has the name '%s' of "
                            "default_prompt_name",
                            file, gg_str_esc(&e, s));
    return gg_convert_set_config(c, "modules_default_prompt", json_copy(v),
                                 err);
}

/* The comparison of vectors ("cosine"), and the length at which they are cut.
 */
static enum gguf_status set_vectors(struct gguf_convert *c, const char *file,
                                    const struct gg_json *j,
                                    struct gguf_error *err)
{
    json_t *fn = json_object_get(j->root, "similarity_fn_name");
    json_t *dim = json_object_get(j->root, "truncate_dim");
    int64_t n;
    if (fn && !json_is_null(fn) && !json_is_string(fn))
        return refuse_member(j, file, fn, "similarity_fn_name", "a text", err);
    if (json_is_string(fn))
        GG_TRY(gg_convert_set_config(c, "modules_similarity", json_copy(fn),
                                     err));
    if (!dim || json_is_null(dim))
        return GGUF_OK;
    if (!gg_json_int(dim, &n) || n < 1 || n > INT32_MAX)
        return refuse_member(j, file, dim, "truncate_dim",
                             "a number of dimensions", err);
    return gg_convert_set_config(c, "modules_truncate", json_integer(n), err);
}

/* ---- a vector for each token (ColBERT, arXiv:2004.12832) ---- */

/* PyLate's prefixes of queries and documents, which become prompts. */
static enum gguf_status set_prefixes(struct gguf_convert *c, const char *file,
                                     const struct gg_json *j,
                                     struct gguf_error *err)
{
    static const char *const from[] = { "query_prefix", "document_prefix" },
                             *const name[] = { "query", "document" };
    const json_t *given = json_object_get(j->root, "prompts");
    json_t *names = json_array(), *texts = json_array();
    enum gguf_status st =
        names && texts ? GGUF_OK : gg_error_set_nomem(err, sizeof(json_t *));
    for (size_t i = 0; i < GG_LEN(from) && st == GGUF_OK; i++) {
        const json_t *v = json_object_get(j->root, from[i]);
        if (v && !json_is_null(v) && !json_is_string(v))
            st = refuse_member(j, file, v, from[i], "a text", err);
        else if (json_is_string(v) &&
                 (json_array_append_new(names, json_string(name[i])) ||
                  json_array_append_new(texts,
                                        json_copy((json_t *)(uintptr_t)v))))
            st = gg_error_set_nomem(err, sizeof(json_t *));
    }
    if (st == GGUF_OK && json_array_size(names) && !json_object_size(given)) {
        st = gg_convert_set_config(c, "modules_prompt_names", names, err);
        return st == GGUF_OK
                   ? gg_convert_set_config(c, "modules_prompts", texts, err)
                   : st;
    }
    json_decref(names);
    json_decref(texts);
    return st;
}

/* Say what PyLate does to tokens that readers of GGUF files do not. */
static void note_tokens(const struct gguf_convert *c, const char *file,
                        const struct gg_json *j)
{
    int64_t n = 32; /* PyLate's default */
    const json_t *fills = json_object_get(j->root, "do_query_expansion");
    (void)gg_json_int(json_object_get(j->root, "query_length"), &n);
    if (!json_is_false(fills))
        gg_folder_warn(&c->folder,
                       "%s: a model of one vector per token: readers of GGUF "
                       "files do not fill queries with masks (query_length "
                       "%" PRId64 ")",
                       file, n);
    if (json_array_size(json_object_get(j->root, "skiplist_words")))
        gg_folder_warn(
            &c->folder,
            "%s: readers of GGUF files give vectors to the %zu "
            "tokens of skiplist_words, too, which documents lack",
            file, json_array_size(json_object_get(j->root, "skiplist_words")));
}

/* By default PyLate normalises the vectors of tokens. */
static enum gguf_status set_multi_vector(struct gguf_convert *c,
                                         const char *file,
                                         const struct gg_json *j,
                                         struct gguf_error *err)
{
    struct gguf_str type;
    if (!gg_json_str(json_object_get(j->root, "model_type"), &type) ||
        !gg_str_eqz(type, "ColBERT"))
        return GGUF_OK;
    GG_TRY(gg_convert_set_config(c, "modules_multi_vector", json_true(), err));
    GG_TRY(gg_convert_set_config(c, "modules_normalize", json_true(), err));
    note_tokens(c, file, j);
    return set_prefixes(c, file, j, err);
}

static enum gguf_status read_sentences(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    static const char file[] = "config_sentence_transformers.json";
    struct gg_mapfile m;
    struct gg_json j;
    enum gguf_status st = gg_folder_read_json(&c->folder, file, &m, &j, err);
    if (st == GGUF_OK && j.root)
        st = set_prompts(c, file, &j, err);
    if (st == GGUF_OK && j.root)
        st = set_default(c, file, &j, err);
    if (st == GGUF_OK && j.root)
        st = set_vectors(c, file, &j, err);
    if (st == GGUF_OK && j.root)
        st = set_multi_vector(c, file, &j, err);
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st;
}

/* do_lower_case changes texts before the tokenizer. WordPiece of GGUF files
 * does so itself; other tokenizers do not. */
static enum gguf_status set_length(struct gguf_convert *c, const char *file,
                                   const struct gg_json *j,
                                   struct gguf_error *err)
{
    json_t *v = json_object_get(j->root, "max_seq_length");
    int64_t n;
    if (json_is_true(json_object_get(j->root, "do_lower_case")))
        gg_folder_warn(&c->folder,
                       "%s: do_lower_case is true: small letters must be "
                       "made of texts before they become tokens, unless the "
                       "tokenizer does so",
                       file);
    if (!v || json_is_null(v))
        return GGUF_OK;
    if (!gg_json_int(v, &n) || n < 1 || n > INT32_MAX)
        return refuse_member(j, file, v, "max_seq_length",
                             "a number of tokens", err);
    return gg_convert_set_config(c, "modules_max_tokens", json_integer(n),
                                 err);
}

enum gguf_status gg_convert_read_prompts(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    /* the first that is there counts, as in sentence-transformers */
    static const char *const files[] = {
        "sentence_bert_config.json",       "sentence_roberta_config.json",
        "sentence_distilbert_config.json", "sentence_camembert_config.json",
        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json",
    };
    GG_TRY(read_sentences(c, err));
    for (size_t i = 0; i < GG_LEN(files); i++) {
        struct gg_mapfile m;
        struct gg_json j;
        enum gguf_status st =
            gg_folder_read_json(&c->folder, files[i], &m, &j, err);
        const bool there = j.root != NULL;
        if (st == GGUF_OK && there)
            st = set_length(c, files[i], &j, err);
        gg_json_fini(&j);
        gg_mapfile_close(&m);
        if (st != GGUF_OK || there)
            return st;
    }
    return GGUF_OK;
}
