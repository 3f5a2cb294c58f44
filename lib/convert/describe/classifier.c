/* SPDX-License-Identifier: MIT */
/* classifier.c - notes on classifiers that readers of GGUF files compute
 * differently from transformers
 *
 * A file has cls.weight and cls.output.weight. Between them readers compute
 * tanh (ModernBERT: GELU) of the first token's vector (ModernBERT: of the mean;
 * model/block/pooling.c). If a class computes something else, a note says so.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

/* Name of the dense layer before the classifier, by class. */
static const char *layer_before(struct gguf_str name)
{
    static const struct {
        const char *start, *layer;
    } of[] = {
        { "Bert", "pooler.dense" },
        { "Roberta", "classifier.dense" },
        { "XLMRoberta", "classifier.dense" },
        { "DistilBert", "pre_classifier" },
        { "ModernBert", "head.dense" },
    };
    for (size_t i = 0; i < GG_LEN(of); i++)
        if (gg_str_starts(name, of[i].start))
            return of[i].layer;
    return NULL;
}

/* Say which function a cross-encoder applies to its scores
 * (sentence_transformers/cross_encoder/model.py). Without a name it is the
 * sigmoid for one score, and none for several. */
static void note_activation(const struct gguf_convert *c,
                            const struct gguf_convert_tensor *head)
{
    static const char *const names[] = {
        "sentence_transformers.activation_fn",
        "sbert_ce_default_activation_function"
    };
    struct gguf_str fn;
    struct gg_str_esc e;
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (gg_json_str(gg_convert_get_config(c, names[i]), &fn)) {
            if (!gg_str_ends(fn, "Identity"))
                gg_folder_warn(&c->folder,
                               "config.json: %s is '%.80s', which readers of "
                               "GGUF files do not compute: scores are those "
                               "before it",
                               names[i], gg_str_esc(&e, fn));
            return;
        }
    if (head->n_dims < 2 || head->ne[1] == 1)
        gg_folder_warn(&c->folder,
                       "config.json names no function of the score: a "
                       "CrossEncoder of sentence-transformers applies Sigmoid "
                       "to it, readers of GGUF files do not");
}

/* How the class itself pools and activates: modeling_NAME.py of transformers.
 */
static void note_differences(const struct gguf_convert *c,
                             struct gguf_str name)
{
    struct gguf_str pooling;
    struct gg_str_esc e;
    const char *layer = layer_before(name);
    if (layer && !gg_convert_find_tensor(c, "cls.weight"))
        gg_folder_warn(&c->folder,
                       "the folder lacks %s, which class %s computes "
                       "before the classifier: the file lacks it, too",
                       layer, gg_str_esc(&e, name));
    if (gg_str_starts(name, "DistilBert") &&
        gg_convert_find_tensor(c, "cls.weight"))
        gg_folder_warn(&c->folder,
                       "DistilBERT has a ReLU after pre_classifier, for "
                       "which readers of GGUF files compute tanh: scores "
                       "differ");
    if (!gg_str_starts(name, "ModernBert"))
        return;
    if (!gg_json_str(gg_convert_get_config(c, "classifier_pooling"), &pooling))
        pooling = GG_STR("cls"); /* ModernBertConfig */
    if (!gg_str_eqz(pooling, "mean"))
        gg_folder_warn(&c->folder,
                       "config.json: classifier_pooling is '%s', for which "
                       "readers of GGUF files take the mean: scores differ",
                       gg_str_esc(&e, pooling));
}

enum gguf_status gg_convert_check_classifier(struct gguf_convert *c,
                                             struct gguf_error *err)
{
    const struct gguf_str name = gg_convert_class(c);
    const struct gguf_convert_tensor *head =
        gg_convert_find_tensor(c, "cls.output.weight");
    struct gg_str_esc e;
    if (!gg_str_ends(name, "ForSequenceClassification") || c->is_adapter)
        return GGUF_OK;
    if (!head) {
        if (c->p.allow_incomplete)
            return GGUF_OK;
        return gg_error_set(
            err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
            gg_convert_find_tensor(c, "cls.weight")
                ? "class '%s' has a classifier, but the folder "
                  "has only the layer before it"
                : "class '%s' has a classifier, but the folder "
                  "has no tensor of one",
            gg_str_esc(&e, name));
    }
    const json_t *labels = gg_convert_get_config(c, "id2label");
    const size_t n = json_object_size(labels);
    if (n && head->n_dims == 2 &&
        !gg_convert_get_config(c, "reranker_score") &&
        head->ne[1] != (int64_t)n)
        return gg_error_set(
            err, GGUF_E_HPARAM,
            gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json, labels),
            "config.json: id2label has %zu names, but the classifier gives "
            "%" PRId64 " numbers",
            n, head->ne[1]);
    note_differences(c, name);
    note_activation(c, head);
    return GGUF_OK;
}
