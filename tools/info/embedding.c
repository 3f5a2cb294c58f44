/* SPDX-License-Identifier: MIT */
/* embedding.c - rows of the summary about vectors and scores of texts */
#include "config.h"
#include "tools/info/info.h"

#include <gguf/model_base.h>
#include <gguf/text.h>

#include <inttypes.h>
#include <string.h>

#define SENTENCE "sentence_transformers."
enum { SHOWN_PROMPTS = 8 };

static void add_sep(struct text *s)
{
    if (s->n)
        text_addz(s, ", ");
}

/* Append the matrix with a name and its shape, if the file has it. */
static void add_matrix(struct text *s, const struct gguf_file *f,
                       const char *name)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    if (!t)
        return;
    add_sep(s);
    text_addf(s, "%.*s (", (int)t->name.size, t->name.data);
    text_add_shape(s, t->n_dims, t->ne);
    text_addz(s, ")");
}

static void add_row(struct table *t, const char *label, struct text *s)
{
    if (s->n) {
        table_add(t, label);
        table_add(t, s->s);
    }
    text_clear(s);
}

/* Append the length at which vectors are cut, and their comparison. */
static void add_comparison(struct text *s, const struct gguf_file *f)
{
    struct gguf_str fn;
    uint64_t n;
    if (gguf_kv_get_uint(gguf_file_kv_find(f, SENTENCE "truncate_dim"), &n,
                         NULL) == GGUF_OK) {
        add_sep(s);
        text_addf(s, "the first %" PRIu64 " numbers", n);
    }
    if (gguf_kv_get_str(gguf_file_kv_find(f, SENTENCE "similarity_fn_name"),
                        &fn, NULL) == GGUF_OK) {
        add_sep(s);
        text_addz(s, "compared by ");
        text_add_esc(s, fn, 40);
    }
}

static void add_vectors(struct table *t, const struct info *info,
                        struct text *s)
{
    const struct gguf_file *f = info->load->file;
    uint64_t n;
    bool yes;
    if (gguf_kv_get_uint(info_hparam(info, "pooling_type"), &n, NULL) ==
            GGUF_OK &&
        n <= GGUF_POOLING_RANK - GGUF_POOLING_NONE)
        text_addf(s, "pooling %s",
                  gguf_pooling_name(
                      (enum gguf_pooling)(GGUF_POOLING_NONE + (int)n)));
    if (gguf_kv_get_bool(gguf_file_kv_find(f, SENTENCE "multi_vector"), &yes,
                         NULL) == GGUF_OK &&
        yes) {
        add_sep(s);
        text_addz(s, "a vector for each token");
    }
    add_matrix(s, f, "dense_2.weight");
    add_matrix(s, f, "dense_3.weight");
    if (gguf_kv_get_bool(gguf_file_kv_find(f, SENTENCE "normalize"), &yes,
                         NULL) == GGUF_OK) {
        add_sep(s);
        text_addz(s, yes ? "normalised" : "not normalised");
    }
    add_comparison(s, f);
    add_row(t, "vectors", s);
    if (gguf_kv_get_uint(gguf_file_kv_find(f, SENTENCE "max_seq_length"), &n,
                         NULL) == GGUF_OK)
        text_addf(s, "%" PRIu64 " tokens", n);
    add_row(t, "longest text", s);
}

static bool is_same(struct gguf_str a, struct gguf_str b)
{
    return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

/* A row such as "query 'query: ' (default), passage 'passage: '". */
static void add_prompts(struct table *t, const struct gguf_file *f,
                        struct text *s)
{
    const struct gguf_kv *names =
        gguf_file_kv_find(f, SENTENCE "prompt_names");
    const struct gguf_kv *texts = gguf_file_kv_find(f, SENTENCE "prompts");
    struct gguf_str name, text, usual = { NULL, 0 };
    struct gguf_kv_iter in, it;
    size_t n = 0;
    if (!names || !texts || names->type != GGUF_VAL_ARR ||
        texts->type != GGUF_VAL_ARR)
        return;
    const bool has_usual =
        gguf_kv_get_str(gguf_file_kv_find(f, SENTENCE "default_prompt_name"),
                        &usual, NULL) == GGUF_OK;
    gguf_kv_iter_init(&in, names);
    gguf_kv_iter_init(&it, texts);
    for (; gguf_kv_iter_next_str(&in, &name) &&
           gguf_kv_iter_next_str(&it, &text);
         n++) {
        if (n >= SHOWN_PROMPTS)
            continue;
        add_sep(s);
        text_add_esc(s, name, 40);
        text_addz(s, " '");
        text_add_esc(s, text, 60);
        text_addz(s, "'");
        if (has_usual && is_same(name, usual))
            text_addz(s, " (default)");
    }
    if (n > SHOWN_PROMPTS)
        text_addf(s, " and %zu more", n - SHOWN_PROMPTS);
    add_row(t, "prompts", s);
}

static void add_classifier(struct table *t, const struct info *info,
                           struct text *s)
{
    static const struct text_limits limits = { 8, 40 };
    const struct gguf_file *f = info->load->file;
    const struct gguf_kv *labels =
        info_hparam(info, "classifier.output_labels");
    add_matrix(s, f, "cls.weight");
    add_matrix(s, f, "cls.output.weight");
    if (labels) {
        add_sep(s);
        text_addz(s, "labels ");
        text_add_kv(s, labels, &limits);
    }
    add_row(t, "classifier", s);
}

void info_add_embedding(struct table *t, const struct info *info)
{
    struct text s = { NULL, 0, 0 };
    add_vectors(t, info, &s);
    add_prompts(t, info->load->file, &s);
    add_classifier(t, info, &s);
    text_fini(&s);
}
