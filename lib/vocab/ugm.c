/* SPDX-License-Identifier: MIT */
/* ugm.c - the unigram language model of SentencePiece
 *
 * The tokens of a text are those whose scores, logarithms of probabilities,
 * have the highest sum (Viterbi). A character that is not a token may become
 * the unknown token, at ten less than the lowest score. (Kudo, arXiv
 * 1804.10959; ids checked against llama.cpp and SentencePiece.)
 *
 * The normalised text passes through a window. If no token goes across a
 * place, the tokens before it are final and are put out. The window is as long
 * as the longest stretch without such a place. */
#include "config.h"
#include "vocab/charsmap.h"
#include "vocab/utf8.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/str.h"

#include <float.h>
#include <math.h>

/* Best tokens up to a place. */
struct place {
    double score;
    uint32_t from; /* begin of the last token */
    gguf_token id; /* the last token */
};

struct job {
    const struct gguf_vocab *v;
    gguf_token unk; /* GGUF_TOKEN_NONE is allowed until it is needed */
    char *text;     /* window of the normalised text, n bytes */
    struct place *place;
    size_t n, room; /* limit of n */
    /* allocated: n_text bytes, and n_place - 1 places */
    size_t n_text, n_place;
    size_t at;        /* next place from which tokens begin */
    size_t reach;     /* end of the longest token that begins before at */
    size_t done;      /* place up to which tokens are put out */
    bool was_unknown; /* the last token put out is the unknown one */
    bool in_word, prefixed;
    struct gguf_tokens *out;
};

/* ---- the best tokens ---- */

static void offer_token(struct job *j, size_t to, double score, gguf_token id)
{
    struct place *p = &j->place[to];
    if (score > p->score)
        *p = (struct place){ score, (uint32_t)j->at, id };
    if (to > j->reach)
        j->reach = to;
}

/* Add all tokens that begin at the character j->at. */
static void add_tokens_at(struct job *j)
{
    const struct gg_vocab_trie *t = &j->v->trie;
    size_t k = gg_vocab_utf8_size((uint8_t)j->text[j->at]);
    size_t next = GG_MIN(j->at + k, j->n);
    double here = j->place[j->at].score;
    bool alone = false;
    uint32_t node = 0;
    for (size_t i = j->at; i < j->n; i++) {
        node = gg_vocab_trie_next(t, node, (uint8_t)j->text[i]);
        if (!node)
            break;
        gguf_token id = t->id[node];
        if (id == GGUF_TOKEN_NONE)
            continue;
        alone = alone || i + 1 == next;
        offer_token(j, i + 1, here + j->v->ugm_score[id], id);
    }
    if (!alone)
        offer_token(j, next, here + j->v->unknown_score, j->unk);
    j->at = next;
}

/* Put out the tokens from j->done to j->at, a place that no token crosses. */
static enum gguf_status put_best_path(struct job *j, struct gguf_error *err)
{
    size_t n = 0;
    for (size_t i = j->at; i > j->done; i = j->place[i].from)
        n++;
    GG_TRY(gg_vocab_tokens_reserve(j->out, n, err));
    gguf_token *id = j->out->id + j->out->n;
    for (size_t i = j->at, k = n; i > j->done; i = j->place[i].from)
        id[--k] = j->place[i].id;
    size_t kept = 0;
    /* one unknown token for several in a row */
    for (size_t k = 0; k < n; k++) {
        bool unknown = id[k] == j->unk;
        if (unknown && j->unk == GGUF_TOKEN_NONE)
            return gg_error_set(
                err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                "no token for a character, and no unknown token");
        if (!unknown || !j->was_unknown)
            id[kept++] = id[k];
        j->was_unknown = unknown;
    }
    j->out->n += kept;
    j->done = j->at;
    return GGUF_OK;
}

/* Continue while the window has whole tokens; to its end if last. */
static enum gguf_status advance_lattice(struct job *j, bool last,
                                        struct gguf_error *err)
{
    size_t need = GG_MAX(j->v->max_size, (size_t)4);
    while (j->at < j->n && (last || j->n - j->at >= need)) {
        add_tokens_at(j);
        if (j->at >= j->reach)
            GG_TRY(put_best_path(j, err));
    }
    return GGUF_OK;
}

/* ---- normalising ---- */

/* Remove the text that is put out from the window. */
static void shift_nodes(struct job *j)
{
    size_t n = j->done;
    for (size_t i = n + 1; i <= j->reach; i++)
        j->place[i].from -= (uint32_t)n;
    memmove(j->text, j->text + n, j->n - n);
    memmove(j->place, j->place + n, (j->n - n + 1) * sizeof *j->place);
    j->n -= n;
    j->at -= n;
    j->reach -= n;
    j->done = 0;
}

static enum gguf_status grow_nodes(struct job *j, struct gguf_error *err)
{
    const struct gguf_allocator *a = j->v->allocator;
    if (j->room > UINT32_MAX / 4)
        return gg_error_set(
            err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
            "2^30 bytes of text without a place where it can be "
            "cut");
    if (j->n_text == j->room) {
        void *text = gg_mem_grow(a, j->text, &j->n_text, 1, 0, err);
        if (!text)
            return GGUF_E_NOMEM;
        j->text = text;
    }
    void *place =
        gg_mem_grow(a, j->place, &j->n_place, sizeof *j->place, 0, err);
    if (!place)
        return GGUF_E_NOMEM;
    j->place = place;
    j->room = GG_MIN(j->n_text, j->n_place - 1);
    return GGUF_OK;
}

static enum gguf_status put_text(struct job *j, const char *p, size_t size,
                                 struct gguf_error *err)
{
    if (j->room - j->n < size) {
        GG_TRY(advance_lattice(j, false, err));
        if (j->done)
            shift_nodes(j);
        while (j->room - j->n < size)
            GG_TRY(grow_nodes(j, err));
    }
    for (size_t i = 0; i < size; i++) {
        j->text[j->n++] = p[i];
        j->place[j->n].score = -DBL_MAX;
    }
    return GGUF_OK;
}

/* Add a byte of the rewritten text. With merge_spaces one U+2581 comes before
 * each word, and blanks are dropped. Else each blank becomes U+2581, and one
 * comes before the first word if the vocabulary wants a prefix. */
static enum gguf_status put_byte(struct job *j, char c, struct gguf_error *err)
{
    bool was = j->in_word;
    j->in_word = c != ' ';
    if (c == ' ')
        return j->v->merge_spaces
                   ? GGUF_OK
                   : put_text(j, GG_META_SPACE, GG_META_SPACE_SIZE, err);
    if (!was &&
        ((j->v->add_space_prefix && !j->prefixed) || j->v->merge_spaces)) {
        GG_TRY(put_text(j, GG_META_SPACE, GG_META_SPACE_SIZE, err));
        j->prefixed = true;
    }
    return put_text(j, &c, 1, err);
}

/* Rewrite the beginning of the text at p: size of the key, and its text. */
static size_t rewrite_prefix(const struct gguf_vocab *v, const char *p,
                             size_t size, struct gguf_str *to)
{
    uint32_t cp, user = gg_vocab_prefixes_find(&v->split[0], v, p, size);
    size_t n;
    *to = (struct gguf_str){ p, 1 };
    if (user) /* user-defined tokens stay as they are */
        return to->size = v->token[v->split[0].text[user].id].text.size;
    n = gg_vocab_charsmap_find(&v->charsmap, p, size, to);
    if (n)
        return n;
    n = gg_str_utf8_decode(p, size, &cp);
    *to = n ? (struct gguf_str){ p, n } : GG_STR("\xef\xbf\xbd");
    return n ? n : 1;
}

static enum gguf_status encode_text(struct job *j, const char *text,
                                    size_t size, struct gguf_error *err)
{
    for (size_t i = 0; i < size;) {
        struct gguf_str to;
        i += rewrite_prefix(j->v, text + i, size - i, &to);
        for (size_t k = 0; k < to.size; k++)
            GG_TRY(put_byte(j, to.data[k], err));
    }
    return advance_lattice(j, true, err);
}

enum gguf_status gg_vocab_ugm_encode(const struct gguf_vocab *v,
                                     const char *text, size_t size,
                                     bool prefix, struct gguf_tokens *out,
                                     struct gguf_error *err)
{
    struct job j = { .v = v,
                     .unk = v->special[GGUF_SPECIAL_UNK],
                     .out = out,
                     .room = 1024 + 4 * v->max_size };
    (void)prefix;
    j.n_text = j.room;
    j.n_place = j.room + 1;
    j.text = gg_mem_alloc(v->allocator, j.room);
    j.place = gg_mem_alloc_zero(v->allocator, j.n_place, sizeof *j.place);
    enum gguf_status st =
        j.text && j.place ? encode_text(&j, text, size, err)
                          : gg_error_set_nomem(err, j.room * sizeof *j.place);
    gg_mem_free(v->allocator, j.text);
    gg_mem_free(v->allocator, j.place);
    return st;
}

/* ---- load ---- */

/* Score of a token: user-defined tokens are chosen wherever possible;
 * infinities become the largest numbers. */
static double score_of(const struct gg_vocab_token *t)
{
    if (t->kind == GGUF_TOKEN_USER)
        return 0;
    return (double)fmaxf(-FLT_MAX, fminf(t->score, FLT_MAX));
}

enum gguf_status gg_vocab_ugm_load(struct gguf_vocab *v,
                                   const struct gguf_file *file,
                                   struct gguf_error *err)
{
    double low = DBL_MAX;
    GG_TRY(gg_vocab_charsmap_load(&v->charsmap, file, err));
    GG_TRY(gg_vocab_load_merge_spaces(v, err));
    v->ugm_score =
        gg_mem_alloc_zero(v->allocator, v->n_tokens, sizeof *v->ugm_score);
    if (!v->ugm_score)
        return gg_error_set_nomem(err, v->n_tokens * sizeof *v->ugm_score);
    for (size_t i = 0; i < v->n_tokens; i++) {
        v->ugm_score[i] = score_of(&v->token[i]);
        if (v->token[i].kind == GGUF_TOKEN_NORMAL && v->ugm_score[i] < low)
            low = v->ugm_score[i];
    }
    /* in single precision, as in the programs that made the scores */
    v->unknown_score = (double)((float)(low == DBL_MAX ? 0 : low) - 10.0f);
    if (v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE)
        gg_vocab_warn(v, "there is no unknown token: texts with characters "
                         "that have no tokens cannot be tokenized");
    return gg_vocab_load_trie(v,
                              1u << GGUF_TOKEN_NORMAL | 1u << GGUF_TOKEN_USER |
                                  1u << GGUF_TOKEN_UNUSED,
                              err);
}

enum gguf_status gg_vocab_ugm_check(const struct gg_vocab_check_context *s,
                                    struct gguf_error *err)
{
    return gg_spm_check(s, err); /* scores decide here, too */
}
