/* SPDX-License-Identifier: MIT */
/* random_calls.c - random calls on several sessions, and their checks */
#include "config.h"
#include "tests/run/random_calls.h"

#include "base/compiler.h"
#include "base/str.h"
#include "model/arch.h"
#include "tests/run/random_states.h"
#include "tests/family/skeleton.h"
#include "tests/run/sequence_content.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chance ---- */

static uint64_t state = 1;

void random_calls_seed(uint64_t seed)
{
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* xorshift64* (Vigna 2016) */
int random_calls_below(int n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (unsigned)n);
}

bool random_calls_fail(struct random_calls *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- begin and end ---- */

static const struct gen_spec spec = {
    .arch = "llama",
    .n_vocab = 50,
    .n_ctx = CALLS_MOST,
    .n_embd = 32,
    .n_layer = 2,
    .n_ff = 48,
    .eps = 1e-5f,
    .freq_base = 1000,
    .n_head = 4,
    .n_head_kv = 2,
};

/* Open a session of kind k. fake is used only if k->far. */
static bool open_one(struct random_calls *s, struct run *r,
                     struct fake_backend *fake, size_t size,
                     const struct gg_arch *arch,
                     const struct random_calls_kind *k)
{
    struct gguf_backend *far[1];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const uint32_t n = (uint32_t)s->m->most + s->m->more;
    p.n_ctx = k->unified ? n * CALLS_SEQS : n;
    p.n_seq = CALLS_SEQS;
    p.n_ubatch = k->n_ubatch;
    p.unified = k->unified;
    p.full_windows = k->full_windows;
    p.key_dtype = p.value_dtype = gguf_dtype_find(s->m->dtype);
    if (k->far) {
        if (fake_backend_init(fake, k->name, true, NULL, &r->err) != GGUF_OK)
            return random_calls_fail(s, "%s: %s", k->name, r->err.message);
        fake->offloads = true;
        fake->unlocked = !s->m->closed;
        far[0] = &fake->backend;
        p.preferred = far;
        p.n_preferred = 1;
        p.n_copies = 2;
    }
    const bool good = arch ? run_open_arch(r, s->file, size, arch, &p)
                           : run_open(r, s->file, size, 1, &p);
    return good || random_calls_fail(s, "%s: %s", k->name, r->err.message);
}

/* Rules for sliding windows of 12 and 16 tokens. */
static uint32_t window_of_12(const struct gg_hparams *hp)
{
    (void)hp;
    return 12;
}

static uint32_t window_of_16(const struct gg_hparams *hp)
{
    (void)hp;
    return 16;
}

/* Open every session. A llama with windows, or a model with another window,
 * needs a row of its own in place of the table's. */
static bool open_all(struct random_calls *s, size_t size)
{
    const struct random_calls_kind alone = { "from scratch", false, true, 64,
                                             false };
    const char *name = s->m->name ? s->m->name : "llama";
    const struct gg_arch *row = gg_arch_find(gg_str_z(name));
    struct gg_arch arch = row ? *row : (struct gg_arch){ .name = name };
    if (!s->m->name)
        arch.window =
            (struct gg_model_windows){ .rule = &gg_arch_window_last_full,
                                       .period = 2 };
    arch.window.size.fn = s->m->window == 12 ? window_of_12 : window_of_16;
    const struct gg_arch *as = row && s->m->window ? &arch : NULL;
    bool good = open_one(s, &s->scratch, NULL, size, as, &alone);
    for (int i = 0; good && i < s->m->n_kinds; i++)
        good = open_one(s, &s->run[i], &s->fake[i], size, as, &s->m->kind[i]);
    return good;
}

bool random_calls_open(struct random_calls *s,
                       const struct random_calls_model *m)
{
    struct skeleton k;
    struct gen g;
    size_t size;
    *s = (struct random_calls){ .m = m, .has_reference = !m->name };
    if (m->name) {
        if (!skeleton_open(&k, m->name))
            return random_calls_fail(s, "%s: there is none", m->name);
        s->file = gen_file(&k.g, GGUF_DTYPE_F32, &size);
        skeleton_close(&k);
    } else {
        gen_init(&g, 3);
        gen_model(&g, &spec);
        s->file = gen_file(&g, GGUF_DTYPE_F32, &size);
        token_ref_init(&s->line, &g, &spec, m->window);
        gen_fini(&g);
    }
    for (int q = 0; q < CALLS_SEQS; q++)
        s->content[q].plain = s->content[q].exact = true;
    if (!open_all(s, size))
        return false;
    s->encodes = gguf_model_info(s->scratch.model)->encodes_first;
    s->n_vocab = (int)s->scratch.n_vocab;
    return true;
}

void random_calls_close(struct random_calls *s)
{
    for (int i = 0; i < s->m->n_kinds; i++) {
        run_close(&s->run[i]);
        if (s->fake[i].cpu)
            gguf_backend_destroy(&s->fake[i].backend);
    }
    run_close(&s->scratch);
    if (s->has_reference)
        token_ref_fini(&s->line);
    random_states_free(s);
    free(s->file);
}

/* ---- calls on all sessions ---- */

struct call {
    const char *name;
    enum { REMOVE, COPY, KEEP, SHIFT, DIVIDE, CLEAR } op;
    uint32_t seq, to;
    int32_t begin, end, by;
};

static enum gguf_status do_call(struct run *r, const struct call *c)
{
    struct gguf_session *s = r->session;
    switch (c->op) {
    case REMOVE:
        return gguf_session_remove_tokens(s, c->seq, c->begin, c->end,
                                          &r->err);
    case COPY:
        return gguf_session_copy_tokens(s, c->seq, c->to, c->begin, c->end,
                                        &r->err);
    case KEEP: return gguf_session_remove_others(s, c->seq, &r->err);
    case SHIFT:
        return gguf_session_shift_positions(s, c->seq, c->begin, c->end, c->by,
                                            &r->err);
    case DIVIDE:
        return gguf_session_divide_positions(s, c->seq, c->begin, c->end,
                                             c->by, &r->err);
    default: return gguf_session_clear(s, &r->err);
    }
}

/* Do the sequences hold something that lets the call be refused? */
static bool may_refuse(const struct random_calls *s, const struct call *c)
{
    const struct seq_content *t = &s->content[c->seq];
    int in = 0, left = 0;
    for (int i = 0; i < t->n; i++)
        in += content_has_pos(t->t[i].pos, c->begin, c->end);
    if (c->op == COPY && s->content[c->to].n)
        for (int i = 0; i < s->content[c->to].n; i++)
            left +=
                !content_has_pos(s->content[c->to].t[i].pos, c->begin, c->end);
    const bool windows = !s->m->kind[0].full_windows;
    if (c->op == COPY && windows && s->content[c->to].n)
        return true;
    if (c->op == COPY && s->m->states && left < s->content[c->to].n && left)
        return true;
    if (c->op == KEEP || c->op == CLEAR || !in)
        return false;
    if (s->m->still && (c->op == SHIFT || c->op == DIVIDE))
        return true;
    if (s->m->states && (in < t->n || left))
        return true;
    if (s->encodes && c->op == COPY && left)
        return true;
    /* the range has tokens that are, or would be, among the last of a window */
    return windows;
}

static bool call_all(struct random_calls *s, const struct call *c, bool *done)
{
    *done = false;
    for (int i = 0; i < s->m->n_kinds; i++) {
        const enum gguf_status st = do_call(&s->run[i], c);
        if (st == GGUF_E_UNSUPPORTED && may_refuse(s, c) &&
            (i == 0 || !*done)) {
            s->n_refused += i == 0;
            /* kinds with full windows would not refuse it */
            if (i == 0 && !s->m->kind[0].full_windows)
                return true;
            continue;
        }
        if (st != GGUF_OK || (i && !*done))
            return random_calls_fail(
                s, "%s, %s: %s", s->m->kind[i].name, c->name,
                st ? s->run[i].err.message : "refused by the others only");
        *done = true;
    }
    return true;
}

/* ---- one call ---- */

/* Compare each session's number of tokens and next position with the contents.
 */
static bool check_counts(struct random_calls *s, const char *after)
{
    for (int i = 0; i < s->m->n_kinds; i++)
        for (uint32_t q = 0; q < CALLS_SEQS; q++)
            if (gguf_session_n_tokens(s->run[i].session, q) !=
                    (uint32_t)s->content[q].n ||
                gguf_session_next_pos(s->run[i].session, q) !=
                    content_next_pos(&s->content[q]))
                return random_calls_fail(
                    s,
                    "%s after %s: sequence %u has %u tokens, "
                    "next %d, must be %d, %d",
                    s->m->kind[i].name, after, q,
                    gguf_session_n_tokens(s->run[i].session, q),
                    gguf_session_next_pos(s->run[i].session, q),
                    s->content[q].n, content_next_pos(&s->content[q]));
    return true;
}

/* Choose a random range of a sequence's positions: from one on, between two,
 * or all. */
static void choose_range(const struct seq_content *t, struct call *c)
{
    const int last = content_next_pos(t), kind = random_calls_below(8);
    c->begin = 0;
    c->end = -1;
    if (kind == 0 || !last)
        return;
    c->begin =
        kind < 4 ? random_calls_below(last + 1) : last - random_calls_below(8);
    c->begin = GG_MAX(c->begin, 0);
    if (kind == 1 || kind == 2)
        c->end = c->begin + random_calls_below(last + 2);
    else if (kind == 3) {
        c->end = c->begin;
        c->begin = 0;
    }
}

static bool make_call(struct random_calls *s, struct call *c)
{
    static const char *const names[] = { "remove", "copy",   "keep",
                                         "shift",  "divide", "clear" };
    struct seq_content *t = &s->content[c->seq];
    bool done;
    c->name = names[c->op];
    choose_range(t, c);
    c->by = 1;
    if (c->op == COPY &&
        !content_fits(s, t, &s->content[c->to], c->begin, c->end))
        return true; /* the stream would be full; a pool may not be */
    if (c->op == SHIFT) {
        int least = 1 << 30;
        for (int i = 0; i < t->n; i++)
            if (content_has_pos(t->t[i].pos, c->begin, c->end))
                least = GG_MIN(least, t->t[i].pos);
        c->by = random_calls_below(40) -
                (least < 1 << 30 ? random_calls_below(least + 1) : 0);
    } else if (c->op == DIVIDE) {
        c->by = 1 + random_calls_below(3);
    }
    if (!call_all(s, c, &done))
        return false;
    if (!done)
        return true;
    switch (c->op) {
    case REMOVE: content_remove(t, c->begin, c->end); break;
    case COPY: content_copy(s, t, &s->content[c->to], c->begin, c->end); break;
    case KEEP:
    case CLEAR:
        for (uint32_t q = 0; q < CALLS_SEQS; q++)
            if (c->op == CLEAR || q != c->seq)
                content_clear(&s->content[q]);
        break;
    default:
        content_move(t, c->begin, c->end, c->op == SHIFT ? c->by : 0,
                     c->op == DIVIDE ? c->by : 1, s->m->absolute);
    }
    return check_counts(s, c->name);
}

bool random_calls_step(struct random_calls *s)
{
    struct call c = { .seq = (uint32_t)random_calls_below(CALLS_SEQS),
                      .to = (uint32_t)random_calls_below(CALLS_SEQS) };
    s->n_calls++;
    const int kind = random_calls_below(100);
    if (kind < 50)
        return content_decode(s);
    if (kind < 56)
        return random_states_save(s);
    if (kind < 64)
        return random_states_restore(s) && check_counts(s, "restore");
    c.op = kind < 76   ? REMOVE
           : kind < 86 ? COPY
           : kind < 88 ? KEEP
           : kind < 95 ? SHIFT
           : kind < 99 ? DIVIDE
                       : CLEAR;
    return make_call(s, &c);
}
