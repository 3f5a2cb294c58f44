/* spm.c - SentencePiece byte-pair encoding
 *
 * The text (blanks as U+2581) starts as single characters. Of all
 * neighbours whose joined text is a token, the pair with the best score, the
 * leftmost of equals, is joined, until none is left. What is no token in the
 * end becomes bytes. (Kudo and Richardson 2018; ids checked against
 * llama.cpp.)
 *
 * Candidates wait in a heap; a pair that has changed since it was put there
 * is recognised by its size and dropped. In most vocabularies no token goes
 * from the end of one word into the next, then each word is its own problem.
 */
#include "config.h"
#include "vocab/vocab.h"

#include "base/mem.h"

#include <stdio.h>

#define NO_SYM UINT32_MAX

/* A stretch of the text: one node of a doubly linked list. */
struct sym {
    uint32_t off, size; /* size 0: joined to its left neighbour */
    uint32_t prev, next;
    gguf_token id; /* or GGUF_TOKEN_NONE: not looked up */
};

/* A join that is possible: sym left with the one behind it. */
struct cand {
    float score;
    uint32_t left, size; /* size: bytes of both, when it was found */
    gguf_token id;
};

struct spm {
    const struct gguf_vocab *v;
    const char *text;
    struct sym *sym;
    struct cand *heap;
    size_t sym_cap, heap_cap, n_heap;
};

/* ---- heap, best candidate first ---- */

static bool better(const struct cand *a, const struct cand *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void heap_push(struct spm *s, struct cand c)
{
    size_t i = s->n_heap++;
    while (i && better(&c, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = c;
}

static struct cand heap_pop(struct spm *s)
{
    struct cand top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= s->n_heap)
            break;
        if (k + 1 < s->n_heap && better(&s->heap[k + 1], &s->heap[k]))
            k++;
        if (!better(&s->heap[k], &last))
            break;
        s->heap[i] = s->heap[k];
        i = k;
    }
    s->heap[i] = last;
    return top;
}

/* ---- joining ---- */

static gguf_token find(const struct spm *s, uint32_t off, size_t size)
{
    if (size > s->v->max_size)
        return GGUF_TOKEN_NONE;
    struct gguf_str text = { s->text + off, size };
    uint32_t id = gg_index_find(&s->v->index, text);
    return id == GG_INDEX_NONE ? GGUF_TOKEN_NONE : (gguf_token)id;
}

static void try_join(struct spm *s, uint32_t left)
{
    if (left == NO_SYM || s->sym[left].next == NO_SYM)
        return;
    const struct sym *l = &s->sym[left], *r = &s->sym[l->next];
    gguf_token id = find(s, l->off, (size_t)l->size + r->size);
    if (id != GGUF_TOKEN_NONE)
        heap_push(s, (struct cand){ s->v->token[id].score, left,
                                    l->size + r->size, id });
}

static void join(struct spm *s, const struct cand *c)
{
    struct sym *l = &s->sym[c->left];
    if (!l->size || l->next == NO_SYM)
        return;
    struct sym *r = &s->sym[l->next];
    if (l->size + r->size != c->size)
        return;
    l->size = c->size;
    l->id = c->id;
    r->size = 0;
    l->next = r->next;
    if (l->next != NO_SYM)
        s->sym[l->next].prev = c->left;
    try_join(s, l->prev);
    try_join(s, c->left);
}

static enum gguf_status put(const struct spm *s, const struct sym *y,
                            struct gguf_tokens *out, struct gguf_error *err)
{
    gguf_token id = y->id == GGUF_TOKEN_NONE ? find(s, y->off, y->size) : y->id;
    if (id != GGUF_TOKEN_NONE)
        return gg_tokens_push(out, id, err);
    for (uint32_t i = 0; i < y->size; i++) {
        uint8_t b = (uint8_t)s->text[y->off + i];
        id = s->v->byte[b];
        if (id == GGUF_TOKEN_NONE)
            id = s->v->special[GGUF_SPECIAL_UNK];
        if (id == GGUF_TOKEN_NONE)
            return gg_fail(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                           "no token for byte 0x%02X, and no unknown token",
                           b);
        GG_TRY(gg_tokens_push(out, id, err));
    }
    return GGUF_OK;
}

/* n characters in s->sym, linked, to tokens. */
static enum gguf_status run(struct spm *s, size_t n, struct gguf_tokens *out,
                            struct gguf_error *err)
{
    /* each join of the at most n - 1 puts in two candidates */
    if (3 * n > s->heap_cap) {
        struct cand *p = gg_realloc(s->v->allocator, s->heap,
                                    s->heap_cap * sizeof *p,
                                    3 * n * sizeof *p);
        if (!p)
            return gg_fail_nomem(err, 3 * n * sizeof *p);
        s->heap = p;
        s->heap_cap = 3 * n;
    }
    s->n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        try_join(s, i);
    while (s->n_heap) {
        struct cand c = heap_pop(s);
        join(s, &c);
    }
    for (uint32_t i = 0; i != NO_SYM; i = s->sym[i].next)
        GG_TRY(put(s, &s->sym[i], out, err));
    return GGUF_OK;
}

/* Bytes of a character by its first byte; what is no first byte stands
 * alone. The rest is not looked at, as the peer does it. */
static size_t char_size(uint8_t b)
{
    return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

static bool is_meta(const char *p, size_t n)
{
    return n == GG_META_SPACE_SIZE && !memcmp(p, GG_META_SPACE, n);
}

static enum gguf_status encode_all(struct spm *s, size_t size,
                                   struct gguf_tokens *out,
                                   struct gguf_error *err)
{
    size_t n = 0;
    bool was_meta = false;
    for (size_t off = 0; off < size;) {
        size_t k = char_size((uint8_t)s->text[off]);
        if (k > size - off)
            k = size - off;
        bool meta = is_meta(s->text + off, k);
        if (s->v->words && meta && !was_meta && n) {
            s->sym[n - 1].next = NO_SYM;
            GG_TRY(run(s, n, out, err));
            n = 0;
        }
        was_meta = meta;
        if (n == s->sym_cap) {
            size_t cap = s->sym_cap ? 2 * s->sym_cap : 256;
            struct sym *p = gg_realloc(s->v->allocator, s->sym,
                                       s->sym_cap * sizeof *p,
                                       cap * sizeof *p);
            if (!p)
                return gg_fail_nomem(err, cap * sizeof *p);
            s->sym = p;
            s->sym_cap = cap;
        }
        s->sym[n] = (struct sym){ (uint32_t)off, (uint32_t)k,
                                  n ? (uint32_t)n - 1 : NO_SYM,
                                  (uint32_t)n + 1, GGUF_TOKEN_NONE };
        n++;
        off += k;
    }
    if (!n)
        return GGUF_OK;
    s->sym[n - 1].next = NO_SYM;
    return run(s, n, out, err);
}

enum gguf_status gg_spm_encode(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out,
                               struct gguf_error *err)
{
    if (size > UINT32_MAX / GG_META_SPACE_SIZE - 1)
        return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                       "%zu bytes of text in one piece, limit is %u", size,
                       UINT32_MAX / GG_META_SPACE_SIZE - 1);
    size_t n = size + GG_META_SPACE_SIZE;
    for (size_t i = 0; i < size; i++)
        n += text[i] == ' ' ? GG_META_SPACE_SIZE - 1 : 0;
    char *buf = gg_alloc(v->allocator, n);
    if (!buf)
        return gg_fail_nomem(err, n);
    n = 0;
    if (prefix && v->add_space_prefix) {
        memcpy(buf, GG_META_SPACE, GG_META_SPACE_SIZE);
        n = GG_META_SPACE_SIZE;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ') {
            memcpy(buf + n, GG_META_SPACE, GG_META_SPACE_SIZE);
            n += GG_META_SPACE_SIZE;
        } else {
            buf[n++] = text[i];
        }
    }
    struct spm s = { .v = v, .text = buf };
    enum gguf_status st = encode_all(&s, n, out, err);
    gg_free(v->allocator, s.sym);
    gg_free(v->allocator, s.heap);
    gg_free(v->allocator, buf);
    return st;
}

/* ---- load and back ---- */

static bool crosses_words(struct gguf_str t)
{
    for (size_t i = 1; i + GG_META_SPACE_SIZE <= t.size; i++)
        if (is_meta(t.data + i, GG_META_SPACE_SIZE) &&
            !(i >= GG_META_SPACE_SIZE &&
              is_meta(t.data + i - GG_META_SPACE_SIZE, GG_META_SPACE_SIZE)))
            return true;
    return false;
}

enum gguf_status gg_spm_load(struct gguf_vocab *v, const struct gguf_file *file,
                             struct gguf_error *err)
{
    (void)file;
    (void)err;
    size_t n_missing = 0;
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        v->byte[b] = gguf_vocab_find(v, (struct gguf_str){ text, 6 });
        if (v->byte[b] == GGUF_TOKEN_NONE) {
            text[0] = (char)b;
            v->byte[b] = gguf_vocab_find(v, (struct gguf_str){ text, 1 });
        }
        n_missing += v->byte[b] == GGUF_TOKEN_NONE;
    }
    if (n_missing)
        gg_vocab_warn(v, "%zu of 256 bytes have no token: %s", n_missing,
                      v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE
                          ? "texts with them cannot be tokenized"
                          : "they become the unknown token");
    v->words = true;
    for (size_t i = 0; i < v->n_tokens && v->words; i++)
        v->words = !crosses_words(v->token[i].text);
    return GGUF_OK;
}

void gg_spm_put(const struct gguf_vocab *v, gguf_token id, struct gg_sink *s)
{
    struct gguf_str t = v->token[id].text;
    for (size_t i = 0; i < t.size;) {
        bool meta = t.size - i >= GG_META_SPACE_SIZE &&
                    is_meta(t.data + i, GG_META_SPACE_SIZE);
        gg_sink_put(s, meta ? ' ' : t.data[i]);
        i += meta ? GG_META_SPACE_SIZE : 1;
    }
}
