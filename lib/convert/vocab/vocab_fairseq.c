/* SPDX-License-Identifier: MIT */
/* vocab_fairseq.c - read Unigram with XLM-RoBERTa's ids
 *
 * The pieces of sentencepiece.bpe.model get other ids (transformers'
 * tokenization_xlm_roberta.py, as in fairseq): <s>, <pad>, </s> and <unk>
 * first, then the pieces after the first three, moved by one, and <mask> last.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

/* Tokens of roles (gg_convert_roles) if no file names them. */
static const char *const xlmr_roles[GG_CONVERT_ROLES] = {
    "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", NULL,
};

static enum gguf_status check_class(const struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    const json_t *config = v->folder->text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str name;
    struct gg_str_esc e;
    if (!gg_json_str(json_object_get(root, "tokenizer_class"), &name) &&
        !gg_json_str(
            json_array_get(json_object_get(config, "architectures"), 0),
            &name))
        name = GG_STR("");
    return gg_str_starts(name, "XLMRoberta")
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                              "ids of class '%s' are unknown, expected "
                              "XLM-RoBERTa's",
                              gg_str_esc(&e, name));
}

enum gguf_status gg_convert_vocab_read_fairseq(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err)
{
    static const struct {
        const char *text;
        int32_t type;
    } first[] = { { "<s>", GG_CONVERT_CONTROL },
                  { "<pad>", GG_CONVERT_CONTROL },
                  { "</s>", GG_CONVERT_CONTROL },
                  { "<unk>", GG_CONVERT_UNKNOWN } };
    GG_TRY(gg_convert_vocab_read_spm(v, m, err));
    GG_TRY(check_class(v, err));
    const size_t n = v->n;
    if (strcmp(v->model, "t5") != 0 || n < 3 ||
        !gg_str_eqz(v->token[0], "<unk>") || !gg_str_eqz(v->token[1], "<s>") ||
        !gg_str_eqz(v->token[2], "</s>"))
        return gg_error_set(err, GGUF_E_VOCAB, 0,
                            "the first pieces of a Unigram model are not "
                            "<unk>, <s> and </s>");
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)n + 2, 0, err));
    memmove(v->token + 4, v->token + 3, (n - 3) * sizeof *v->token);
    memmove(v->score + 4, v->score + 3, (n - 3) * sizeof *v->score);
    memmove(v->type + 4, v->type + 3, (n - 3) * sizeof *v->type);
    for (size_t i = 0; i < GG_LEN(first); i++) {
        v->token[i] = gg_str_z(first[i].text);
        v->score[i] = 0;
        v->type[i] = first[i].type;
    }
    v->token[n + 1] = GG_STR("<mask>");
    v->score[n + 1] = 0;
    v->type[n + 1] = GG_CONVERT_CONTROL;
    v->unk = 3;
    v->role_text = xlmr_roles;
    v->put_ends = true;
    return GGUF_OK;
}
