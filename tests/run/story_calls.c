/* SPDX-License-Identifier: MIT */
/* story_calls.c - what calls make of tales */
#include "config.h"
#include "tests/run/story_calls.h"

#include "base/compiler.h"
#include "tests/run/story_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- tales ---- */

int32_t tale_next(const struct story_tale *t)
{
    int32_t next = 0;
    for (int i = 0; i < t->n; i++)
        next = GG_MAX(next, t->t[i].pos + 1);
    return next;
}

/* A tale of nothing is as good as new. */
static void refresh_tale(struct story_tale *t)
{
    if (!t->n)
        t->plain = t->exact = true;
}

void tale_forget(struct story_tale *t)
{
    t->n = t->n_text = 0;
    refresh_tale(t);
}

void tale_remove(struct story_tale *t, int32_t begin, int32_t end)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        if (tale_between(t->t[i].pos, begin, end))
            continue;
        if (n < i) /* what stays saw what goes */
            t->plain = t->exact = false;
        t->t[n++] = t->t[i];
    }
    t->n = n;
    refresh_tale(t);
}

void tale_copy(const struct story *s, const struct story_tale *from,
               struct story_tale *to, int32_t begin, int32_t end)
{
    int n = 0, last = -1;
    if (from == to)
        return;
    tale_remove(to, begin, end);
    for (int i = 0; i < from->n; i++)
        if (tale_between(from->t[i].pos, begin, end)) {
            n++;
            last = i;
        }
    if (!n)
        return;
    const bool begins = !to->n && last == n - 1;
    to->plain = begins && from->plain;
    to->exact = begins && from->exact;
    for (int i = 0; i <= last; i++)
        if (tale_between(from->t[i].pos, begin, end))
            to->t[to->n++] = from->t[i];
    if (!s->encodes)
        return;
    to->n_text = from->n_text;
    memcpy(to->text, from->text, sizeof to->text);
}

bool tale_fits(const struct story *s, const struct story_tale *from,
               const struct story_tale *to, int32_t begin, int32_t end)
{
    int n = 0;
    for (int i = 0; i < from->n; i++)
        n += tale_between(from->t[i].pos, begin, end);
    for (int i = 0; i < to->n; i++)
        n += !tale_between(to->t[i].pos, begin, end);
    return from == to || n <= s->m->most;
}

void tale_move(struct story_tale *t, int32_t begin, int32_t end, int32_t delta,
               int32_t divisor, bool absolute)
{
    bool all = true, any = false;
    for (int i = 0; i < t->n; i++) {
        const int32_t pos = t->t[i].pos;
        const bool in = tale_between(pos, begin, end);
        if (in)
            t->t[i].pos = pos / divisor + delta;
        all = all && in;
        any = any || t->t[i].pos != pos;
    }
    if (!any)
        return;
    t->exact = false;
    t->plain = t->plain && all && divisor == 1 && !absolute;
}

/* ---- what is decoded ---- */

enum { V = 128, ROWS = STORY_BATCH };

struct call_batch {
    struct gguf_batch b;
    gguf_token tok[ROWS];
    int32_t pos[ROWS], seq[ROWS * STORY_SEQS];
    uint32_t n_seq[ROWS];
    int at[ROWS + 1];    /* where a token's sequences begin in seq */
    int was[STORY_SEQS]; /* tokens of tales before */
    float out[STORY_KINDS][ROWS * V];
};

static bool make_text(struct story *s, uint32_t q)
{
    struct story_tale *t = &s->tale[q];
    int32_t seq[8];
    struct gguf_batch b = GGUF_BATCH_INIT;
    t->n = 0;
    refresh_tale(t);
    t->n_text = 2 + story_rnd(7);
    for (int i = 0; i < t->n_text; i++) {
        t->text[i] = story_rnd(s->n_vocab);
        seq[i] = (int32_t)q;
    }
    b.n = (size_t)t->n_text;
    b.token = t->text;
    b.seq = seq;
    for (int i = 0; i < s->m->n_kinds; i++)
        if (gguf_session_encode(s->run[i].session, &b, &s->run[i].err))
            return story_fault(s, "%s: %s", s->m->kind[i].name,
                               s->run[i].err.message);
    return true;
}

/* Room for 20 tokens more, and a text to look at. */
static bool make_room(struct story *s, uint32_t q)
{
    struct story_tale *t = &s->tale[q];
    if (t->n + 20 > s->m->most) {
        for (int i = 0; i < s->m->n_kinds; i++)
            if (gguf_session_remove(s->run[i].session, q, 0, -1,
                                    &s->run[i].err))
                return story_fault(s, "%s: %s", s->m->kind[i].name,
                                   s->run[i].err.message);
        t->n = 0;
        refresh_tale(t);
    }
    return !s->encodes || (t->n_text && story_rnd(8)) || make_text(s, q);
}

/* Tokens for some sequences, one after the other, or for them together. */
static bool make_batch(struct story *s, struct call_batch *x)
{
    const bool together = story_rnd(4) == 0,
               placed = story_rnd(3) == 0 && !s->m->close;
    uint32_t some[STORY_SEQS];
    int n_some = 0, at = 0;
    *x = (struct call_batch){ .b = GGUF_BATCH_INIT };
    for (uint32_t q = 0; q < STORY_SEQS; q++)
        if (story_rnd(2))
            some[n_some++] = q;
    if (!n_some)
        some[n_some++] = (uint32_t)story_rnd(STORY_SEQS);
    for (int k = 0; k < n_some; k++)
        if (!make_room(s, some[k]))
            return false;
    for (int k = 0; k < (together ? 1 : n_some); k++) {
        /* wide products have 4 tokens and more */
        const int n = (together || n_some == 1 ? 4 : 1) + story_rnd(10);
        int32_t next = tale_next(&s->tale[some[k]]);
        for (int i = 0; i < n + (k == 0 ? 4 : 0); i++, x->b.n++) {
            x->tok[x->b.n] = story_rnd(s->n_vocab);
            next += placed && story_rnd(4) == 0 ? story_rnd(5) : 0;
            x->pos[x->b.n] = next++;
            x->n_seq[x->b.n] = together ? (uint32_t)n_some : 1;
            x->at[x->b.n] = at;
            for (int q = 0; q < (int)x->n_seq[x->b.n]; q++)
                x->seq[at++] = (int32_t)some[together ? q : k];
        }
    }
    x->at[x->b.n] = at;
    x->b.token = x->tok;
    x->b.seq = x->seq;
    x->b.pos = placed && !together ? x->pos : NULL;
    x->b.n_seq = together ? x->n_seq : NULL;
    return true;
}

/* What comes of a token in double precision, and in the tale. */
static const struct line_token *tell_token(struct story *s,
                                           struct story_tale *t,
                                           gguf_token tok, int32_t pos,
                                           double *logits)
{
    static struct line_seen seen[STORY_MOST];
    if (!s->lined)
        return NULL;
    for (int i = 0; i < t->n; i++)
        seen[i] = (struct line_seen){ t->t[i].of, t->t[i].pos };
    return line_add(&s->line, tok, pos, seen, t->n, logits);
}

static bool rows_near(struct story *s, const float *a, const float *b)
{
    const double d = run_nmse(a, b, (size_t)s->n_vocab);
    s->worst = d > s->worst ? d : s->worst;
    return d < (s->m->apart > 0 ? s->m->apart : 1e-9);
}

static bool check_line(struct story *s, const struct call_batch *x, size_t i,
                       const double *logits)
{
    float y[V];
    for (int k = 0; k < s->n_vocab; k++)
        y[k] = (float)logits[k];
    for (int kind = 0; kind < s->m->n_kinds; kind++, s->n_lined++)
        if (!rows_near(s, x->out[kind] + i * (size_t)s->n_vocab, y))
            return story_fault(
                s, "%s: token %zu, sequence %d: %g from its lineage",
                s->m->kind[kind].name, i, x->seq[x->at[i]],
                run_nmse(x->out[kind] + i * (size_t)s->n_vocab, y,
                         (size_t)s->n_vocab));
    return true;
}

static bool check_kinds(struct story *s, const struct call_batch *x)
{
    for (size_t i = 0; i < x->b.n; i++)
        for (int kind = 1; kind < s->m->n_kinds; kind++, s->n_kinds++)
            if (!rows_near(s, x->out[kind] + i * (size_t)s->n_vocab,
                           x->out[0] + i * (size_t)s->n_vocab))
                return story_fault(
                    s, "token %zu, sequence %d: %s is %g from %s", i,
                    x->seq[x->at[i]], s->m->kind[kind].name,
                    run_nmse(x->out[kind] + i * (size_t)s->n_vocab,
                             x->out[0] + i * (size_t)s->n_vocab,
                             (size_t)s->n_vocab),
                    s->m->kind[0].name);
    return true;
}

/* Tales grow. */
static bool tell_all(struct story *s, struct call_batch *x)
{
    double logits[V];
    for (uint32_t q = 0; q < STORY_SEQS; q++)
        x->was[q] = s->tale[q].n;
    for (size_t i = 0; i < x->b.n; i++)
        for (int k = x->at[i]; k < x->at[i + 1]; k++, s->n_tok++) {
            struct story_tale *t = &s->tale[x->seq[k]];
            const int32_t pos = x->b.pos ? x->pos[i] : tale_next(t);
            const struct line_token *of =
                tell_token(s, t, x->tok[i], pos, logits);
            t->t[t->n++] = (struct story_token){ x->tok[i], pos, of };
            if (s->lined && k == x->at[i] && !check_line(s, x, i, logits))
                return false;
        }
    return true;
}

/* All of a tale at once, and its last tokens as they were given. */
static bool check_scratch(struct story *s, const struct call_batch *x,
                          uint32_t q)
{
    static float all[STORY_MOST * V];
    gguf_token tok[STORY_MOST];
    int32_t pos[STORY_MOST];
    const struct story_tale *t = &s->tale[q];
    const size_t v = (size_t)s->n_vocab;
    struct gguf_batch b = GGUF_BATCH_INIT;
    for (int i = 0; i < t->n; i++) {
        tok[i] = t->t[i].tok;
        pos[i] = t->t[i].pos;
    }
    b.n = (size_t)t->n;
    b.token = tok;
    b.pos = pos;
    if (gguf_session_clear(s->scratch.session, &s->scratch.err) ||
        !run_encode(&s->scratch, t->text, (size_t)t->n_text) ||
        !run_logits(&s->scratch, &b, all))
        return story_fault(s, "from scratch: %s", s->scratch.err.message);
    for (size_t i = 0, k = (size_t)x->was[q]; i < x->b.n; i++) {
        bool of = false;
        for (int j = x->at[i]; j < x->at[i + 1]; j++)
            of = of || x->seq[j] == (int32_t)q;
        if (!of)
            continue;
        const float *y = all + k++ * v;
        for (int kind = 0;
             x->seq[x->at[i]] == (int32_t)q && kind < s->m->n_kinds; kind++) {
            const float *z = x->out[kind] + i * v;
            /* fewer than 4 at once are computed by another way */
            const bool bits =
                t->exact && t->n >= 4 && !s->m->kind[kind].unified;
            *(bits ? &s->n_exact : &s->n_plain) += 1;
            if (bits ? memcmp(z, y, v * sizeof *z) != 0 : !rows_near(s, z, y))
                return story_fault(
                    s, "%s: token %zu of sequence %u is %g from scratch%s",
                    s->m->kind[kind].name, k - 1, q, run_nmse(z, y, v),
                    bits ? ", not the same bits" : "");
        }
    }
    return true;
}

/* A session that took over a sequence before goes on with its tokens of the
 * batch as session i did: with the same digits, unless cells were shared or
 * fewer than 4 at once are computed by another way. */
static bool check_lent(struct story *s, const struct call_batch *x, uint32_t q,
                       int i, uint32_t to)
{
    static float all[ROWS * V];
    gguf_token tok[ROWS];
    int32_t pos[ROWS], seq[ROWS];
    size_t row[ROWS];
    const size_t v = (size_t)s->n_vocab;
    struct gguf_batch b = GGUF_BATCH_INIT;
    for (size_t k = 0; k < x->b.n; k++)
        for (int j = x->at[k]; j < x->at[k + 1]; j++)
            if (x->seq[j] == (int32_t)q) {
                tok[b.n] = x->tok[k];
                pos[b.n] = x->pos[k];
                seq[b.n] = (int32_t)to;
                row[b.n++] = k;
            }
    if (!b.n)
        return true;
    b.token = tok;
    b.seq = seq;
    b.pos = x->b.pos ? pos : NULL;
    if (!run_logits(&s->scratch, &b, all))
        return story_fault(s, "restored: %s", s->scratch.err.message);
    /* this one keeps all in one book: where a book of windows was changed in
     * the middle, its cells may not be as far apart as those */
    const bool bits = b.n >= 4 && !s->m->kind[i].unified &&
                      (s->m->kind[i].full_windows || s->tale[q].exact);
    for (size_t k = 0; k < b.n; k++) {
        if (x->seq[x->at[row[k]]] != (int32_t)q)
            continue; /* the row is of another sequence of the token */
        s->n_lent += bits;
        const float *y = x->out[i] + row[k] * v, *z = all + k * v;
        if (bits ? memcmp(z, y, v * sizeof *z) != 0 : !rows_near(s, z, y))
            return story_fault(
                s, "token %zu of sequence %u of %s, restored: %g from it%s", k,
                q, s->m->kind[i].name, run_nmse(z, y, v),
                bits ? ", not the same bits" : "");
    }
    return true;
}

bool tale_decode(struct story *s)
{
    static struct call_batch x;
    const uint32_t q0 = (uint32_t)story_rnd(STORY_SEQS);
    const int kind = story_rnd(s->m->n_kinds);
    bool lent;
    if (!make_batch(s, &x) ||
        !state_lend(s, q0, kind, (q0 + 1) % STORY_SEQS, &lent))
        return false;
    for (int i = 0; i < s->m->n_kinds; i++)
        if (!run_logits(&s->run[i], &x.b, x.out[i]))
            return story_fault(s, "%s: %s", s->m->kind[i].name,
                               s->run[i].err.message);
    if (!tell_all(s, &x) || !check_kinds(s, &x) ||
        (lent && !check_lent(s, &x, q0, kind, (q0 + 1) % STORY_SEQS)))
        return false;
    for (uint32_t q = 0; q < STORY_SEQS; q++)
        if (s->tale[q].n > x.was[q] && s->tale[q].plain && story_rnd(3) == 0 &&
            !check_scratch(s, &x, q))
            return false;
    return true;
}
