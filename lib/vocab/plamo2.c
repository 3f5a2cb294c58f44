/* SPDX-License-Identifier: MIT */
/* plamo2.c - the vocabulary of PLaMo-2
 *
 * The tokens of a text are those whose scores, in whole 1/10000, have the
 * highest sum. An unknown character costs 1000 and becomes its bytes. The
 * search runs from the end of the text; of equal sums the one with the longer
 * first token wins. (tokenization_plamo.py of pfnet/plamo-2-8b, which finds
 * the same tokens with a table of suffixes; ids checked against llama.cpp.)
 *
 * If no token goes across a place, the text is cut there, and its parts are
 * solved apart. */
#include "config.h"
#include "vocab/utf8.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"

#include <math.h>

enum { UNKNOWN_COST = 10000000, WORST_COST = 20000000 };

/* Best tokens from a place to the end of its stretch. */
struct place {
    int64_t cost;
    uint32_t size; /* bytes of the first token; 0: not a place */
    gguf_token id; /* the first token; GGUF_TOKEN_NONE: an unknown character */
};

struct job {
    const struct gguf_vocab *v;
    const char *text;
    struct place *place; /* [room + 1], places of a stretch */
    size_t room;
    struct gguf_tokens *out;
};

static size_t char_size(const struct job *j, size_t at, size_t size)
{
    return GG_MIN(gg_vocab_utf8_size((uint8_t)j->text[at]), size - at);
}

/* End of the longest token that begins at a place. */
static size_t longest_token_end(const struct job *j, size_t at, size_t size)
{
    gguf_token id;
    return at +
           gg_vocab_trie_longest(&j->v->trie, j->text + at, size - at, &id);
}

static void choose_token(const struct job *j, size_t begin, size_t at,
                         size_t end)
{
    const struct gg_vocab_trie *t = &j->v->trie;
    struct place *here = &j->place[at - begin];
    size_t k = char_size(j, at, end);
    *here = (struct place){ here[k].cost + UNKNOWN_COST, (uint32_t)k,
                            GGUF_TOKEN_NONE };
    uint32_t node = 0;
    for (size_t i = at; i < end; i++) {
        node = gg_vocab_trie_next(t, node, (uint8_t)j->text[i]);
        if (!node)
            return;
        const struct place *then = &here[i + 1 - at];
        gguf_token id = t->id[node];
        if (id == GGUF_TOKEN_NONE || (!then->size && i + 1 < end))
            continue;
        int64_t cost = then->cost - j->v->plamo2_score[id];
        if (cost <= here->cost)
            *here = (struct place){ cost, (uint32_t)(i + 1 - at), id };
    }
}

static enum gguf_status put_bytes(const struct job *j, const char *p,
                                  size_t size, struct gguf_error *err)
{
    for (size_t i = 0; i < size; i++) {
        gguf_token id = j->v->byte[(uint8_t)p[i]];
        if (id == GGUF_TOKEN_NONE)
            id = j->v->special[GGUF_SPECIAL_UNK];
        if (id == GGUF_TOKEN_NONE)
            return gg_error_set(
                err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                "no token for byte 0x%02X, and no unknown token",
                (unsigned)(uint8_t)p[i]);
        GG_TRY(gg_vocab_tokens_push(j->out, id, err));
    }
    return GGUF_OK;
}

static enum gguf_status reserve_nodes(struct job *j, size_t n,
                                      struct gguf_error *err)
{
    size_t room = j->room;
    if (n <= room)
        return GGUF_OK;
    if (n > UINT32_MAX / 2)
        return gg_error_set(
            err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
            "%zu bytes of text without a place where it can be cut, "
            "limit is 2^31",
            n);
    while (room < n)
        room = room ? 2 * room : 1024;
    gg_mem_free(j->v->allocator, j->place);
    j->room = 0;
    j->place = gg_mem_alloc_zero(j->v->allocator, room + 1, sizeof *j->place);
    if (!j->place)
        return gg_error_set_nomem(err, (room + 1) * sizeof *j->place);
    j->room = room;
    return GGUF_OK;
}

/* Put the tokens of a stretch; no token crosses its ends. */
static enum gguf_status cut_stretch(struct job *j, size_t begin, size_t end,
                                    struct gguf_error *err)
{
    GG_TRY(reserve_nodes(j, end - begin, err));
    for (size_t i = 0; i <= end - begin; i++)
        j->place[i] = (struct place){ .cost = 0 };
    for (size_t at = end; at-- > begin;)
        /* first byte of a character; the UTF-8 is well formed */
        if (((uint8_t)j->text[at] & 0xc0) != 0x80)
            choose_token(j, begin, at, end);
    for (size_t at = begin; at < end; at += j->place[at - begin].size) {
        const struct place *p = &j->place[at - begin];
        if (p->id != GGUF_TOKEN_NONE)
            GG_TRY(gg_vocab_tokens_push(j->out, p->id, err));
        else
            GG_TRY(put_bytes(j, j->text + at, p->size, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_vocab_plamo2_encode(const struct gguf_vocab *v,
                                        const char *text, size_t size,
                                        bool prefix, struct gguf_tokens *out,
                                        struct gguf_error *err)
{
    size_t n, begin = 0, reach = 0;
    (void)prefix;
    char *clean = gg_vocab_utf8_make_valid(v->allocator, text, size,
                                           GG_VOCAB_UTF8_ANY, &n);
    if (!clean)
        return gg_error_set_nomem(err, 3 * size);
    struct job j = { .v = v, .text = clean, .out = out };
    enum gguf_status st = GGUF_OK;
    if (n >= 3 && !memcmp(clean, "\xef\xbb\xbf", 3)) /* byte order mark */
        begin = reach = 3;
    for (size_t at = begin; st == GGUF_OK && at < n;) {
        size_t end = longest_token_end(&j, at, n);
        at += char_size(&j, at, n);
        reach = GG_MAX(reach, GG_MAX(at, end));
        if (at == reach) {
            st = cut_stretch(&j, begin, at, err);
            begin = at;
        }
    }
    gg_mem_free(v->allocator, j.place);
    gg_vocab_utf8_free(v->allocator, text, clean);
    return st;
}

/* ---- load ---- */

/* Score in whole 1/10000. Tokens with the lowest score are never chosen. */
static bool score_of(const struct gg_vocab_token *t, int32_t *score)
{
    double s = round((double)t->score * 1e4);
    if (!isfinite(t->score) || s <= -WORST_COST)
        return false;
    *score = s > INT32_MAX ? INT32_MAX : (int32_t)s;
    return true;
}

enum gguf_status gg_vocab_plamo2_load(struct gguf_vocab *v,
                                      const struct gguf_file *file,
                                      struct gguf_error *err)
{
    size_t n = 0;
    (void)file;
    gg_vocab_load_bytes(v, gg_spm_byte_text, false);
    v->plamo2_score =
        gg_mem_alloc_zero(v->allocator, v->n_tokens, sizeof *v->plamo2_score);
    struct gg_vocab_trie_text *t =
        gg_mem_alloc_zero(v->allocator, v->n_tokens, sizeof *t);
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; v->plamo2_score && t && i < v->n_tokens; i++)
        if (v->token[i].kind != GGUF_TOKEN_BYTE &&
            score_of(&v->token[i], &v->plamo2_score[i]))
            t[n++] =
                (struct gg_vocab_trie_text){ v->token[i].text, (gguf_token)i };
    st = v->plamo2_score && t
             ? gg_vocab_trie_init(&v->trie, v->allocator, t, n, err)
             : gg_error_set_nomem(err, v->n_tokens * sizeof *t);
    gg_mem_free(v->allocator, t);
    return st;
}

void gg_vocab_plamo2_put(const struct gguf_vocab *v, gguf_token id,
                         struct gg_vocab_sink *s)
{
    struct gguf_str t = v->token[id].text;
    for (size_t i = 0; i < t.size; i++)
        gg_vocab_sink_put(s, t.data[i]);
}
