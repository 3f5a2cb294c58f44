/* SPDX-License-Identifier: MIT */
/* sentence.c - preparing lines as a sentence-transformers folder does
 *
 * gguf-convert writes what such a folder says into keys whose names begin with
 * "sentence_transformers.": prompts, the number of tokens at which a text is
 * cut, whether vectors are normalised, the number of dimensions to keep, and
 * whether there is a vector for each token. The command line may choose another
 * prompt, and other lengths.
 */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <stdlib.h>
#include <string.h>

static const struct gguf_kv *find_key(const struct ev_model *m,
                                      const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "sentence_transformers.%s", name);
    const struct gguf_kv *kv = m->meta ? gguf_meta_find(m->meta, key) : NULL;
    return kv ? kv : gguf_file_kv_find(m->file, key);
}

static bool is_same(struct gguf_str a, struct gguf_str b)
{
    return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

/* The text of the prompt with a name. */
static bool find_prompt(const struct ev_model *m, struct gguf_str name,
                        struct gguf_str *out)
{
    const struct gguf_kv *names = find_key(m, "prompt_names");
    const struct gguf_kv *texts = find_key(m, "prompts");
    struct gguf_kv_iter in, it;
    struct gguf_str s;
    if (!names || !texts || names->type != GGUF_VAL_ARR ||
        texts->type != GGUF_VAL_ARR)
        return false;
    gguf_kv_iter_init(&in, names);
    gguf_kv_iter_init(&it, texts);
    while (gguf_kv_iter_next_str(&in, &s) && gguf_kv_iter_next_str(&it, out))
        if (is_same(s, name))
            return true;
    return false;
}

static bool choose_prompt(struct eval *e, struct eval_sentence *s)
{
    const char *asked = e->o->prompt_name;
    struct gguf_str name = { NULL, 0 };
    if (asked && !*asked)
        return true;
    if (asked)
        name = (struct gguf_str){ asked, strlen(asked) };
    else if (gguf_kv_get_str(find_key(&e->model, "default_prompt_name"), &name,
                             NULL) != GGUF_OK)
        return true;
    if (find_prompt(&e->model, name, &s->prompt))
        return true;
    struct text shown = { NULL, 0, 0 };
    text_add_esc(&shown, name, 100);
    (void)msg_error(e->model.path, "has no prompt '%s'",
                    shown.s ? shown.s : "");
    text_fini(&shown);
    return false;
}

bool eval_sentence_begin(struct eval *e, struct eval_sentence *s)
{
    const struct ev_model *m = &e->model;
    bool yes = false;
    uint64_t n = 0;
    *s = (struct eval_sentence){ .plain = GGUF_TOKENS_INIT };
    /* the file's normalisation is that of its own vectors */
    if (e->o->normalize)
        s->normalizes = e->o->normalize == EVAL_NORMALIZE_YES;
    else if (e->pooling != GGUF_POOLING_RANK &&
             (e->pooling != GGUF_POOLING_NONE ||
              m->info.pooling == e->pooling))
        s->normalizes = gguf_kv_get_bool(find_key(m, "normalize"), &yes,
                                         NULL) == GGUF_OK &&
                        yes;
    if (gguf_kv_get_uint(find_key(m, "max_seq_length"), &n, NULL) == GGUF_OK)
        s->most = (size_t)n;
    if (e->pooling != GGUF_POOLING_RANK &&
        gguf_kv_get_uint(find_key(m, "truncate_dim"), &n, NULL) == GGUF_OK)
        s->most_dims = (size_t)n;
    yes = false;
    s->per_token =
        gguf_kv_get_bool(find_key(m, "multi_vector"), &yes, NULL) == GGUF_OK &&
        yes;
    return e->o->pairs || choose_prompt(e, s);
}

void eval_sentence_end(struct eval_sentence *s)
{
    gguf_tokens_fini(&s->plain);
    free(s->text);
    free(s->count);
}

/* Drop the last tokens of the text, but not the special tokens after it. */
static enum gguf_status cut_tokens(struct eval *e, struct eval_sentence *s,
                                   const char *text, size_t size,
                                   struct gguf_tokens *t)
{
    size_t tail = 0;
    s->plain.n = 0;
    const enum gguf_status st = gguf_vocab_tokenize(
        gguf_model_vocab(e->model.model), text, size, 0, &s->plain, &e->err);
    if (st != GGUF_OK)
        return st;
    for (size_t head = 0; s->plain.n && head + s->plain.n <= t->n; head++)
        if (!memcmp(t->id + head, s->plain.id, s->plain.n * sizeof *t->id)) {
            tail = t->n - head - s->plain.n;
            break;
        }
    if (tail > s->most)
        tail = s->most;
    memmove(t->id + s->most - tail, t->id + t->n - tail, tail * sizeof *t->id);
    t->n = s->most;
    s->n_cut++;
    return GGUF_OK;
}

enum gguf_status eval_sentence_tokenize(struct eval *e,
                                        struct eval_sentence *s,
                                        const char *text, size_t size,
                                        struct gguf_tokens *t)
{
    if (s->prompt.size) {
        s->text = msg_grow(s->text, &s->room, s->prompt.size + size, 1);
        memcpy(s->text, s->prompt.data, s->prompt.size);
        memcpy(s->text + s->prompt.size, text, size);
        text = s->text;
        size += s->prompt.size;
    }
    t->n = 0;
    const enum gguf_status st =
        gguf_vocab_tokenize(gguf_model_vocab(e->model.model), text, size,
                            GGUF_TOKENIZE_ADD_SPECIAL, t, &e->err);
    return st == GGUF_OK && s->most && t->n > s->most
               ? cut_tokens(e, s, text, size, t)
               : st;
}
