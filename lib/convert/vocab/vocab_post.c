/* SPDX-License-Identifier: MIT */
/* vocab_post.c - special tokens that post_processor of tokenizer.json adds
 *
 * RobertaProcessing adds one token before and after a text, and two between two
 * texts; BertProcessing adds one there. TemplateProcessing lists tokens for one
 * text and for two. Three facts are read from it: whether a token is added at
 * the beginning, whether one is added at the end, and whether two texts have
 * one more token between them than the first has at its end.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/str.h"

/* The text of a template's element, if it is a token. */
static struct gguf_str token_of(const json_t *element)
{
    struct gguf_str s = { NULL, 0 };
    gg_json_str(
        json_object_get(json_object_get(element, "SpecialToken"), "id"), &s);
    return s;
}

static bool is_sequence(const json_t *element, const char *id)
{
    struct gguf_str s;
    return gg_json_str(
               json_object_get(json_object_get(element, "Sequence"), "id"),
               &s) &&
           gg_str_eqz(s, id);
}

static bool same_text(struct gguf_str a, struct gguf_str b)
{
    return a.data && b.data && gg_str_eq(a, b);
}

/* Is there a further token between two texts? first, last: the tokens around
 * one text; sep: the tokens between two. */
static int puts_sep(const json_t *pair, struct gguf_str first,
                    struct gguf_str last, const struct gguf_str sep[3])
{
    size_t begin = 0, end = json_array_size(pair);
    if (end && same_text(token_of(json_array_get(pair, 0)), first))
        begin++;
    if (end > begin &&
        same_text(token_of(json_array_get(pair, end - 1)), last))
        end--;
    if (end - begin < 3 || !is_sequence(json_array_get(pair, begin), "A") ||
        !is_sequence(json_array_get(pair, end - 1), "B"))
        return -1;
    const size_t n = end - begin - 2;
    bool known[2] = { false, false };
    for (size_t i = 0; i < 2 && i < n; i++)
        for (size_t k = 0; k < 3; k++)
            known[i] |= same_text(
                token_of(json_array_get(pair, begin + 1 + i)), sep[k]);
    return (known[0] && !last.data) || (n == 2 && known[1]);
}

static void read_template(const struct gg_convert_vocab *v, const json_t *p,
                          struct gg_convert_special_ends *out)
{
    const json_t *single = json_object_get(p, "single");
    const size_t n = json_array_size(single);
    const struct gguf_str bos = gg_convert_vocab_role_text(v, "bos"),
                          cls = gg_convert_vocab_role_text(v, "cls"),
                          eos = gg_convert_vocab_role_text(v, "eos"),
                          sep = gg_convert_vocab_role_text(v, "sep");
    struct gguf_str first = { NULL, 0 };
    if (n > 1) {
        first = token_of(json_array_get(single, 0));
        out->last = token_of(json_array_get(single, n - 1));
        if (first.data)
            out->bos = same_text(first, bos) || same_text(first, cls);
        if (out->last.data)
            out->eos = 1;
    }
    const struct gguf_str seps[3] = { sep, eos, out->last };
    const int put =
        puts_sep(json_object_get(p, "pair"), first, out->last, seps);
    if (put >= 0)
        out->sep = put;
}

static void read_one(const struct gg_convert_vocab *v, const json_t *p,
                     struct gg_convert_special_ends *out)
{
    struct gguf_str type;
    if (!gg_json_str(json_object_get(p, "type"), &type))
        return;
    if (gg_str_eqz(type, "RobertaProcessing"))
        out->bos = out->eos = out->sep = 1;
    else if (gg_str_eqz(type, "BertProcessing"))
        out->bos = out->eos = 1;
    else if (gg_str_eqz(type, "TemplateProcessing"))
        read_template(v, p, out);
}

void gg_convert_vocab_read_ends(const struct gg_convert_vocab *v,
                                struct gg_convert_special_ends *out)
{
    const json_t *root = v->folder->text[GG_CONVERT_TOKENIZER].json.root;
    const json_t *p = json_object_get(root, "post_processor");
    const json_t *list = json_object_get(p, "processors");
    const int put = v->put_ends ? 1 : -1;
    *out = (struct gg_convert_special_ends){ put, put, put, { NULL, 0 } };
    if (!list)
        read_one(v, p, out);
    for (size_t i = 0; i < json_array_size(list); i++)
        read_one(v, json_array_get(list, i), out);
}
