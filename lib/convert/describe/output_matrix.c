/* SPDX-License-Identifier: MIT */
/* output_matrix.c - does the model have an output matrix of its own?
 *
 * A model multiplies by an output matrix (usually lm_head), or by the embedding
 * of its tokens again (tied). transformers decides by tie_word_embeddings of
 * config.json; without it, by the default of the configuration's class
 * (configuration_NAME.py; in the rows: ties); and by the weights. A tied matrix
 * with other numbers than the embedding's is kept (tie_weights of
 * modeling_utils.py, 5.0; until 4.57 the embedding replaced it). A missing
 * untied matrix is initialised at random, which cannot be meant:
 *
 *   config.json   output matrix       becomes
 *   tied          none                tied
 *   tied          equal               as it was, or tied (drops_copy)
 *   tied          other numbers       an output matrix, with a note
 *   untied        there               an output matrix
 *   untied        none                refused
 *   nothing       none, default tied  tied
 *   nothing       none                tied, with a note
 *
 * Models whose files have no output matrix, such as encoders, classifiers and
 * models with pooled states, are not checked. Rerankers are, since their
 * classifier is two rows of the matrix.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"
#include "model/arch.h"

#include <string.h>

/* ---- config.json ---- */

enum tied { TIED_UNSAID, TIED_NO, TIED_YES, TIED_BOTH };

static enum tied read_tied(const struct gguf_convert *c)
{
    static const char name[] = "tie_word_embeddings";
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    const json_t *const of[] = { json_object_get(c->folder.config, name),
                                 json_object_get(root, name) };
    bool yes = false, no = false;
    for (size_t i = 0; i < GG_LEN(of); i++) {
        yes = yes || json_is_true(of[i]);
        no = no || json_is_false(of[i]);
    }
    return yes && no ? TIED_BOTH : yes ? TIED_YES : no ? TIED_NO : TIED_UNSAID;
}

/* Does config.json have a value that is neither true, false nor null? */
static bool has_other_value(const struct gguf_convert *c)
{
    const json_t *v = json_object_get(
        c->folder.text[GG_CONVERT_CONFIG].json.root, "tie_word_embeddings");
    return v && !json_is_null(v) && !json_is_boolean(v);
}

bool gg_convert_is_tied(const struct gguf_convert *c)
{
    const struct gg_arch *a = gg_arch_find(gg_str_z(c->arch->arch));
    const enum tied tied = read_tied(c);
    return tied == TIED_YES || (!tied && c->arch->ties) ||
           (a && a->output == GG_OUTPUT_EMBD);
}

/* ---- matrices of the folder ---- */

/* The first part of the tensor of that name, or NULL; of n parts. */
static const struct gg_convert_item *find_item(const struct gguf_convert *c,
                                               const char *name, size_t *n)
{
    const struct gg_convert_item *found = NULL;
    *n = 0;
    for (size_t i = 0; i < c->parts.n_items; i++)
        if (gg_str_eqz(c->parts.item[i].to, name) && !(*n)++)
            found = &c->parts.item[i];
    return found;
}

/* Do two tensors of the folder have the same numbers? Reads until they differ.
 * Always true for a folder that is only described. */
static enum gguf_status is_same(const struct gguf_convert *c, uint32_t a,
                                uint32_t b, bool *yes, struct gguf_error *err)
{
    enum { CHUNK = 4096 };
    const struct gg_data *list = &c->folder.weights->list;
    const struct gg_safetensors_tensor *t[] = {
        &c->folder.weights->tensor[a], &c->folder.weights->tensor[b]
    };
    const uint32_t no[] = { a, b };
    struct gg_data_rows rows[2];
    float x[2][CHUNK];
    *yes = t[0]->n_dims == t[1]->n_dims &&
           !memcmp(t[0]->ne, t[1]->ne, sizeof t[0]->ne);
    for (size_t i = 0; i < 2 && *yes; i++) {
        if (!t[i]->data && !t[i]->packed && !t[i]->nibbles)
            *yes = false;
        else
            GG_TRY(gg_data_rows(list, no[i], &rows[i], err));
    }
    for (uint64_t at = 0, k; *yes && at < t[0]->n_elements; at += k) {
        k = GG_MIN(t[0]->n_elements - at, CHUNK);
        for (size_t i = 0; i < 2; i++) {
            GG_TRY(gg_data_hold(list, no[i], at, k, err));
            gg_data_read(&rows[i], at, k, x[i]);
            gg_data_release(list, no[i], at, k);
            gg_data_advise(list, no[i], at, k, GG_ADVISE_DONTNEED);
        }
        *yes = !memcmp(x[0], x[1], (size_t)k * sizeof *x[0]);
    }
    return GGUF_OK;
}

/* Does the file need no logits of words? A reranker without lm_head takes its
 * rows from the embedding, so it does need them. */
static bool lacks_logits(const struct gguf_convert *c)
{
    size_t n;
    if (gg_convert_get_config(c, "reranker_tied"))
        return false;
    return gg_convert_get_config(c, "modules_pooling") ||
           gg_convert_is_headless(c) ||
           gg_str_ends(gg_convert_class(c), "Classification") ||
           find_item(c, "cls.output.weight", &n);
}

/* ---- decision ---- */

/* The folder has an output matrix. */
static enum gguf_status keep_output(struct gguf_convert *c,
                                    const struct gg_convert_item *own,
                                    const struct gg_convert_item *embedding,
                                    bool can_own, struct gguf_error *err)
{
    const enum tied tied = read_tied(c);
    const bool is_tied = tied == TIED_YES || (!tied && c->arch->ties);
    const uint32_t from = own->from;
    struct gg_str_esc e;
    bool same;
    if (!is_tied && can_own)
        return GGUF_OK;
    /* the matrix of a folder on a server is not read only to compare it for a
     * note */
    if (can_own && !c->arch->drops_copy && gg_dir_is_remote(&c->folder.dir))
        return GGUF_OK;
    GG_TRY(is_same(c, from, embedding->from, &same, err));
    gg_str_esc(&e, c->folder.weights->tensor[from].name);
    if (same && (!can_own || c->arch->drops_copy)) {
        struct gg_convert_item *last = &c->parts.item[--c->parts.n_items];
        c->parts.item[own - c->parts.item] = *last;
        c->parts.left[c->parts.n_left++] = from;
        return GGUF_OK;
    }
    if (!can_own)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s' differs from the embedding, but "
                            "architecture %s has no output matrix of its own "
                            "(--ignore leaves it out)",
                            e.s, c->arch->arch);
    if (!same)
        gg_folder_warn(&c->folder,
                       "config.json: tie_word_embeddings is %s, but '%s' "
                       "differs from the embedding: it is kept as the output "
                       "matrix, as by transformers 5",
                       tied ? "true" : "true by default", e.s);
    return GGUF_OK;
}

/* Decide for a folder without an output matrix. */
static enum gguf_status drop_output(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    const enum tied tied = read_tied(c);
    struct gg_str_esc e;
    if (tied == TIED_YES || (!tied && c->arch->ties) || lacks_logits(c))
        return GGUF_OK;
    if (tied == TIED_BOTH)
        gg_folder_warn(&c->folder,
                       "config.json: tie_word_embeddings is true and "
                       "false, and the folder has no output matrix: the "
                       "embedding is taken");
    else if (!tied && has_other_value(c))
        gg_folder_warn(&c->folder,
                       "config.json: tie_word_embeddings is neither true "
                       "nor false, and the folder has no output matrix: "
                       "the embedding is taken");
    else if (!tied)
        gg_folder_warn(&c->folder,
                       "config.json does not say tie_word_embeddings, which "
                       "%s does not imply, and the folder has no output "
                       "matrix: the embedding is taken",
                       gg_str_esc(&e, gg_convert_class(c)));
    else if (c->p.allow_incomplete)
        gg_folder_warn(&c->folder,
                       "config.json: tie_word_embeddings is false, but "
                       "the folder has no output matrix: the embedding "
                       "is taken");
    else
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "config.json: tie_word_embeddings is false, but "
                            "the folder has no output matrix (lm_head); if "
                            "the embedding is meant, set it to true");
    return GGUF_OK;
}

enum gguf_status gg_convert_choose_output_matrix(struct gguf_convert *c,
                                                 struct gguf_error *err)
{
    const struct gg_arch *a = gg_arch_find(gg_str_z(c->arch->arch));
    size_t n, n_embedding;
    const struct gg_convert_item *own = find_item(c, "output.weight", &n);
    const struct gg_convert_item *embedding =
        find_item(c, "token_embd.weight", &n_embedding);
    if (!a || c->is_adapter || n > 1 || n_embedding != 1 ||
        a->output == GG_OUTPUT_NONE)
        return GGUF_OK;
    if (own)
        return keep_output(c, own, embedding, a->output != GG_OUTPUT_EMBD,
                           err);
    return a->output == GG_OUTPUT_OWN ? GGUF_OK : drop_output(c, err);
}
