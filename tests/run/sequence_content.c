/* SPDX-License-Identifier: MIT */
/* sequence_content.c - the tokens that a sequence must hold after each call */
#include "config.h"
#include "tests/run/sequence_content.h"

#include "base/compiler.h"
#include "tests/run/random_states.h"

#include <stdlib.h>
#include <string.h>

/* ---- tales ---- */

int32_t content_next_pos(const struct seq_content *t)
{
    int32_t next = 0;
    for (int i = 0; i < t->n; i++)
        next = GG_MAX(next, t->t[i].pos + 1);
    return next;
}

/* An empty content is plain and exact again. */
static void reset_if_empty(struct seq_content *t)
{
    if (!t->n)
        t->plain = t->exact = true;
}

void content_clear(struct seq_content *t)
{
    t->n = t->n_text = 0;
    reset_if_empty(t);
}

void content_remove(struct seq_content *t, int32_t begin, int32_t end)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        if (content_has_pos(t->t[i].pos, begin, end))
            continue;
        if (n < i) /* a token that stays attended to one that is removed */
            t->plain = t->exact = false;
        t->t[n++] = t->t[i];
    }
    t->n = n;
    reset_if_empty(t);
}

void content_copy(const struct random_calls *s, const struct seq_content *from,
                  struct seq_content *to, int32_t begin, int32_t end)
{
    int n = 0, last = -1;
    if (from == to)
        return;
    content_remove(to, begin, end);
    for (int i = 0; i < from->n; i++)
        if (content_has_pos(from->t[i].pos, begin, end)) {
            n++;
            last = i;
        }
    if (!n)
        return;
    const bool begins = !to->n && last == n - 1;
    to->plain = begins && from->plain;
    to->exact = begins && from->exact;
    for (int i = 0; i <= last; i++)
        if (content_has_pos(from->t[i].pos, begin, end))
            to->t[to->n++] = from->t[i];
    if (!s->encodes)
        return;
    to->n_text = from->n_text;
    memcpy(to->text, from->text, sizeof to->text);
}

bool content_fits(const struct random_calls *s, const struct seq_content *from,
                  const struct seq_content *to, int32_t begin, int32_t end)
{
    int n = 0;
    for (int i = 0; i < from->n; i++)
        n += content_has_pos(from->t[i].pos, begin, end);
    for (int i = 0; i < to->n; i++)
        n += !content_has_pos(to->t[i].pos, begin, end);
    return from == to || n <= s->m->most;
}

void content_move(struct seq_content *t, int32_t begin, int32_t end,
                  int32_t delta, int32_t divisor, bool absolute)
{
    bool all = true, any = false;
    for (int i = 0; i < t->n; i++) {
        const int32_t pos = t->t[i].pos;
        const bool in = content_has_pos(pos, begin, end);
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

/* ---- decoding ---- */

enum { V = 128, ROWS = CALLS_BATCH };

struct call_batch {
    struct gguf_batch b;
    gguf_token tok[ROWS];
    int32_t pos[ROWS], seq[ROWS * CALLS_SEQS];
    uint32_t n_seq[ROWS];
    int at[ROWS + 1];    /* index in seq of each token's first sequence */
    int was[CALLS_SEQS]; /* tokens of each content before the batch */
    float out[CALLS_KINDS][ROWS * V];
};

static bool make_text(struct random_calls *s, uint32_t q)
{
    struct seq_content *t = &s->content[q];
    int32_t seq[8];
    struct gguf_batch b = GGUF_BATCH_INIT;
    t->n = 0;
    reset_if_empty(t);
    t->n_text = 2 + random_calls_below(7);
    for (int i = 0; i < t->n_text; i++) {
        t->text[i] = random_calls_below(s->n_vocab);
        seq[i] = (int32_t)q;
    }
    b.n = (size_t)t->n_text;
    b.token = t->text;
    b.seq = seq;
    for (int i = 0; i < s->m->n_kinds; i++)
        if (gguf_session_encode(s->run[i].session, &b, &s->run[i].err))
            return random_calls_fail(s, "%s: %s", s->m->kind[i].name,
                                     s->run[i].err.message);
    return true;
}

/* Make room for 20 more tokens, and encode a text if the model is an
 * encoder-decoder. */
static bool make_room(struct random_calls *s, uint32_t q)
{
    struct seq_content *t = &s->content[q];
    if (t->n + 20 > s->m->most) {
        for (int i = 0; i < s->m->n_kinds; i++)
            if (gguf_session_remove_tokens(s->run[i].session, q, 0, -1,
                                           &s->run[i].err))
                return random_calls_fail(s, "%s: %s", s->m->kind[i].name,
                                         s->run[i].err.message);
        t->n = 0;
        reset_if_empty(t);
    }
    return !s->encodes || (t->n_text && random_calls_below(8)) ||
           make_text(s, q);
}

/* A random batch: tokens of some sequences one after the other, or tokens
 * shared by these sequences. */
static bool make_batch(struct random_calls *s, struct call_batch *x)
{
    const bool together = random_calls_below(4) == 0,
               placed = random_calls_below(3) == 0 && !s->m->close;
    uint32_t some[CALLS_SEQS];
    int n_some = 0, at = 0;
    *x = (struct call_batch){ .b = GGUF_BATCH_INIT };
    for (uint32_t q = 0; q < CALLS_SEQS; q++)
        if (random_calls_below(2))
            some[n_some++] = q;
    if (!n_some)
        some[n_some++] = (uint32_t)random_calls_below(CALLS_SEQS);
    for (int k = 0; k < n_some; k++)
        if (!make_room(s, some[k]))
            return false;
    for (int k = 0; k < (together ? 1 : n_some); k++) {
        /* wide products have 4 tokens and more */
        const int n =
            (together || n_some == 1 ? 4 : 1) + random_calls_below(10);
        int32_t next = content_next_pos(&s->content[some[k]]);
        for (int i = 0; i < n + (k == 0 ? 4 : 0); i++, x->b.n++) {
            x->tok[x->b.n] = random_calls_below(s->n_vocab);
            next += placed && random_calls_below(4) == 0
                        ? random_calls_below(5)
                        : 0;
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

/* Evaluate a token in double precision after those of the content. */
static const struct token_ref_kv *
evaluate_reference(struct random_calls *s, struct seq_content *t,
                   gguf_token tok, int32_t pos, double *logits)
{
    static struct token_ref_visible seen[CALLS_MOST];
    if (!s->has_reference)
        return NULL;
    for (int i = 0; i < t->n; i++)
        seen[i] = (struct token_ref_visible){ t->t[i].of, t->t[i].pos };
    return token_ref_evaluate(&s->line, tok, pos, seen, t->n, logits);
}

static bool rows_near(struct random_calls *s, const float *a, const float *b)
{
    const double d = run_nmse(a, b, (size_t)s->n_vocab);
    s->worst = d > s->worst ? d : s->worst;
    return d < (s->m->apart > 0 ? s->m->apart : 1e-9);
}

static bool check_reference(struct random_calls *s, const struct call_batch *x,
                            size_t i, const double *logits)
{
    float y[V];
    for (int k = 0; k < s->n_vocab; k++)
        y[k] = (float)logits[k];
    for (int kind = 0; kind < s->m->n_kinds; kind++, s->n_reference++)
        if (!rows_near(s, x->out[kind] + i * (size_t)s->n_vocab, y))
            return random_calls_fail(
                s, "%s: token %zu, sequence %d: %g from the reference",
                s->m->kind[kind].name, i, x->seq[x->at[i]],
                run_nmse(x->out[kind] + i * (size_t)s->n_vocab, y,
                         (size_t)s->n_vocab));
    return true;
}

static bool check_kinds(struct random_calls *s, const struct call_batch *x)
{
    for (size_t i = 0; i < x->b.n; i++)
        for (int kind = 1; kind < s->m->n_kinds; kind++, s->n_kinds++)
            if (!rows_near(s, x->out[kind] + i * (size_t)s->n_vocab,
                           x->out[0] + i * (size_t)s->n_vocab))
                return random_calls_fail(
                    s, "token %zu, sequence %d: %s is %g from %s", i,
                    x->seq[x->at[i]], s->m->kind[kind].name,
                    run_nmse(x->out[kind] + i * (size_t)s->n_vocab,
                             x->out[0] + i * (size_t)s->n_vocab,
                             (size_t)s->n_vocab),
                    s->m->kind[0].name);
    return true;
}

/* Add the batch's tokens to the contents. */
static bool append_batch(struct random_calls *s, struct call_batch *x)
{
    double logits[V];
    for (uint32_t q = 0; q < CALLS_SEQS; q++)
        x->was[q] = s->content[q].n;
    for (size_t i = 0; i < x->b.n; i++)
        for (int k = x->at[i]; k < x->at[i + 1]; k++, s->n_tok++) {
            struct seq_content *t = &s->content[x->seq[k]];
            const int32_t pos = x->b.pos ? x->pos[i] : content_next_pos(t);
            const struct token_ref_kv *of =
                evaluate_reference(s, t, x->tok[i], pos, logits);
            t->t[t->n++] = (struct seq_token){ x->tok[i], pos, of };
            if (s->has_reference && k == x->at[i] &&
                !check_reference(s, x, i, logits))
                return false;
        }
    return true;
}

/* Decode all of a content at once, and compare the batch's tokens with the
 * logits that the sessions gave. */
static bool check_scratch(struct random_calls *s, const struct call_batch *x,
                          uint32_t q)
{
    static float all[CALLS_MOST * V];
    gguf_token tok[CALLS_MOST];
    int32_t pos[CALLS_MOST];
    const struct seq_content *t = &s->content[q];
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
        return random_calls_fail(s, "from scratch: %s",
                                 s->scratch.err.message);
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
            /* passes of fewer than 4 tokens are computed in another way */
            const bool bits =
                t->exact && t->n >= 4 && !s->m->kind[kind].unified;
            *(bits ? &s->n_exact : &s->n_plain) += 1;
            if (bits ? memcmp(z, y, v * sizeof *z) != 0 : !rows_near(s, z, y))
                return random_calls_fail(
                    s, "%s: token %zu of sequence %u is %g from scratch%s",
                    s->m->kind[kind].name, k - 1, q, run_nmse(z, y, v),
                    bits ? ", not the same bits" : "");
        }
    }
    return true;
}

/* A session that restored a sequence decodes the sequence's tokens of the
 * batch, as session i did. Logits have the same bits, unless cells were shared
 * or fewer than 4 tokens are computed in another way. */
static bool check_lent(struct random_calls *s, const struct call_batch *x,
                       uint32_t q, int i, uint32_t to)
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
        return random_calls_fail(s, "restored: %s", s->scratch.err.message);
    /* the restored session is unified: if a window's cells were changed in the
     * middle, the distances of its cells may differ */
    const bool bits = b.n >= 4 && !s->m->kind[i].unified &&
                      (s->m->kind[i].full_windows || s->content[q].exact);
    for (size_t k = 0; k < b.n; k++) {
        if (x->seq[x->at[row[k]]] != (int32_t)q)
            continue; /* the row belongs to another sequence of the token */
        s->n_lent += bits;
        const float *y = x->out[i] + row[k] * v, *z = all + k * v;
        if (bits ? memcmp(z, y, v * sizeof *z) != 0 : !rows_near(s, z, y))
            return random_calls_fail(
                s, "token %zu of sequence %u of %s, restored: %g from it%s", k,
                q, s->m->kind[i].name, run_nmse(z, y, v),
                bits ? ", not the same bits" : "");
    }
    return true;
}

bool content_decode(struct random_calls *s)
{
    static struct call_batch x;
    const uint32_t q0 = (uint32_t)random_calls_below(CALLS_SEQS);
    const int kind = random_calls_below(s->m->n_kinds);
    bool lent;
    if (!make_batch(s, &x) ||
        !random_states_lend(s, q0, kind, (q0 + 1) % CALLS_SEQS, &lent))
        return false;
    for (int i = 0; i < s->m->n_kinds; i++)
        if (!run_logits(&s->run[i], &x.b, x.out[i]))
            return random_calls_fail(s, "%s: %s", s->m->kind[i].name,
                                     s->run[i].err.message);
    if (!append_batch(s, &x) || !check_kinds(s, &x) ||
        (lent && !check_lent(s, &x, q0, kind, (q0 + 1) % CALLS_SEQS)))
        return false;
    for (uint32_t q = 0; q < CALLS_SEQS; q++)
        if (s->content[q].n > x.was[q] && s->content[q].plain &&
            random_calls_below(3) == 0 && !check_scratch(s, &x, q))
            return false;
    return true;
}
