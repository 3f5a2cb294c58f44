/* SPDX-License-Identifier: MIT */
/* story.c - random calls on sessions, and what must come of them */
#include "config.h"
#include "tests/run/story.h"

#include "base/compiler.h"
#include "base/str.h"
#include "model/arch.h"
#include "tests/run/story_state.h"
#include "tests/family/skeleton.h"
#include "tests/run/story_calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chance ---- */

static uint64_t state = 1;

void story_seed(uint64_t seed)
{
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* xorshift64* (Vigna 2016) */
int story_rnd(int n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (unsigned)n);
}

bool story_fault(struct story *s, const char *fmt, ...)
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
    .n_ctx = STORY_MOST,
    .n_embd = 32,
    .n_layer = 2,
    .n_ff = 48,
    .eps = 1e-5f,
    .freq_base = 1000,
    .n_head = 4,
    .n_head_kv = 2,
};

/* island is only used by a kind that is far. */
static bool open_one(struct story *s, struct run *r, struct island *island,
                     size_t size, const struct gg_arch *arch,
                     const struct story_kind *k)
{
    struct gguf_backend *far[1];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const uint32_t n = (uint32_t)s->m->most + s->m->more;
    p.n_ctx = k->unified ? n * STORY_SEQS : n;
    p.n_seq = STORY_SEQS;
    p.n_ubatch = k->n_ubatch;
    p.unified = k->unified;
    p.full_windows = k->full_windows;
    p.cache_dtype = s->m->dtype;
    if (k->far) {
        if (island_init(island, k->name, true, NULL, &r->err) != GGUF_OK)
            return story_fault(s, "%s: %s", k->name, r->err.message);
        island->offloads = true;
        island->unlocked = !s->m->closed;
        far[0] = &island->backend;
        p.preferred = far;
        p.n_preferred = 1;
        p.n_copies = 2;
    }
    const bool good = arch ? run_open_arch(r, s->file, size, arch, &p)
                           : run_open(r, s->file, size, 1, &p);
    return good || story_fault(s, "%s: %s", k->name, r->err.message);
}

/* Tokens of windows. */
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

/* A llama with windows is no architecture of its own, nor is one with shorter
 * ones. */
static bool open_all(struct story *s, size_t size)
{
    const struct story_kind alone = { "from scratch", false, true, 64, false };
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
        good =
            open_one(s, &s->run[i], &s->island[i], size, as, &s->m->kind[i]);
    return good;
}

bool story_open(struct story *s, const struct story_model *m)
{
    struct skeleton k;
    struct gen g;
    size_t size;
    *s = (struct story){ .m = m, .lined = !m->name };
    if (m->name) {
        if (!skeleton_open(&k, m->name))
            return story_fault(s, "%s: there is none", m->name);
        s->file = gen_file(&k.g, GGUF_DTYPE_F32, &size);
        skeleton_close(&k);
    } else {
        gen_init(&g, 3);
        gen_model(&g, &spec);
        s->file = gen_file(&g, GGUF_DTYPE_F32, &size);
        line_init(&s->line, &g, &spec, m->window);
        gen_fini(&g);
    }
    for (int q = 0; q < STORY_SEQS; q++)
        s->tale[q].plain = s->tale[q].exact = true;
    if (!open_all(s, size))
        return false;
    s->encodes = gguf_model_get_info(s->scratch.model)->encodes_first;
    s->n_vocab = (int)s->scratch.n_vocab;
    return true;
}

void story_close(struct story *s)
{
    for (int i = 0; i < s->m->n_kinds; i++) {
        run_close(&s->run[i]);
        if (s->island[i].cpu)
            gguf_backend_destroy(&s->island[i].backend);
    }
    run_close(&s->scratch);
    if (s->lined)
        line_fini(&s->line);
    state_free(s);
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
        return gguf_session_remove(s, c->seq, c->begin, c->end, &r->err);
    case COPY:
        return gguf_session_copy(s, c->seq, c->to, c->begin, c->end, &r->err);
    case KEEP: return gguf_session_keep(s, c->seq, &r->err);
    case SHIFT:
        return gguf_session_shift(s, c->seq, c->begin, c->end, c->by, &r->err);
    case DIVIDE:
        return gguf_session_divide(s, c->seq, c->begin, c->end, c->by,
                                   &r->err);
    default: return gguf_session_clear(s, &r->err);
    }
}

/* May it be refused with what the sequences hold? */
static bool may_refuse(const struct story *s, const struct call *c)
{
    const struct story_tale *t = &s->tale[c->seq];
    int in = 0, left = 0;
    for (int i = 0; i < t->n; i++)
        in += tale_between(t->t[i].pos, c->begin, c->end);
    if (c->op == COPY && s->tale[c->to].n)
        for (int i = 0; i < s->tale[c->to].n; i++)
            left += !tale_between(s->tale[c->to].t[i].pos, c->begin, c->end);
    const bool windows = !s->m->kind[0].full_windows;
    if (c->op == COPY && windows && s->tale[c->to].n)
        return true;
    if (c->op == COPY && s->m->states && left < s->tale[c->to].n && left)
        return true;
    if (c->op == KEEP || c->op == CLEAR || !in)
        return false;
    if (s->m->still && (c->op == SHIFT || c->op == DIVIDE))
        return true;
    if (s->m->states && (in < t->n || left))
        return true;
    if (s->encodes && c->op == COPY && left)
        return true;
    /* the last tokens, or such as would be among them */
    return windows;
}

static bool call_all(struct story *s, const struct call *c, bool *done)
{
    *done = false;
    for (int i = 0; i < s->m->n_kinds; i++) {
        const enum gguf_status st = do_call(&s->run[i], c);
        if (st == GGUF_E_UNSUPPORTED && may_refuse(s, c) &&
            (i == 0 || !*done)) {
            s->n_refused += i == 0;
            /* of windows the others would not refuse it */
            if (i == 0 && !s->m->kind[0].full_windows)
                return true;
            continue;
        }
        if (st != GGUF_OK || (i && !*done))
            return story_fault(s, "%s, %s: %s", s->m->kind[i].name, c->name,
                               st ? s->run[i].err.message
                                  : "refused by the others only");
        *done = true;
    }
    return true;
}

/* ---- one call ---- */

/* Sessions have as many tokens as tales. */
static bool check_counts(struct story *s, const char *after)
{
    for (int i = 0; i < s->m->n_kinds; i++)
        for (uint32_t q = 0; q < STORY_SEQS; q++)
            if (gguf_session_n_tokens(s->run[i].session, q) !=
                    (uint32_t)s->tale[q].n ||
                gguf_session_next_pos(s->run[i].session, q) !=
                    tale_next(&s->tale[q]))
                return story_fault(s,
                                   "%s after %s: sequence %u has %u tokens, "
                                   "next %d, must be %d, %d",
                                   s->m->kind[i].name, after, q,
                                   gguf_session_n_tokens(s->run[i].session, q),
                                   gguf_session_next_pos(s->run[i].session, q),
                                   s->tale[q].n, tale_next(&s->tale[q]));
    return true;
}

/* Some of the positions that a tale has, or those from one on, or all. */
static void choose_range(const struct story_tale *t, struct call *c)
{
    const int last = tale_next(t), kind = story_rnd(8);
    c->begin = 0;
    c->end = -1;
    if (kind == 0 || !last)
        return;
    c->begin = kind < 4 ? story_rnd(last + 1) : last - story_rnd(8);
    c->begin = GG_MAX(c->begin, 0);
    if (kind == 1 || kind == 2)
        c->end = c->begin + story_rnd(last + 2);
    else if (kind == 3) {
        c->end = c->begin;
        c->begin = 0;
    }
}

static bool make_call(struct story *s, struct call *c)
{
    static const char *const names[] = { "remove", "copy",   "keep",
                                         "shift",  "divide", "clear" };
    struct story_tale *t = &s->tale[c->seq];
    bool done;
    c->name = names[c->op];
    choose_range(t, c);
    c->by = 1;
    if (c->op == COPY && !tale_fits(s, t, &s->tale[c->to], c->begin, c->end))
        return true; /* streams are full, and a pool may not be */
    if (c->op == SHIFT) {
        int least = 1 << 30;
        for (int i = 0; i < t->n; i++)
            if (tale_between(t->t[i].pos, c->begin, c->end))
                least = GG_MIN(least, t->t[i].pos);
        c->by = story_rnd(40) - (least < 1 << 30 ? story_rnd(least + 1) : 0);
    } else if (c->op == DIVIDE) {
        c->by = 1 + story_rnd(3);
    }
    if (!call_all(s, c, &done))
        return false;
    if (!done)
        return true;
    switch (c->op) {
    case REMOVE: tale_remove(t, c->begin, c->end); break;
    case COPY: tale_copy(s, t, &s->tale[c->to], c->begin, c->end); break;
    case KEEP:
    case CLEAR:
        for (uint32_t q = 0; q < STORY_SEQS; q++)
            if (c->op == CLEAR || q != c->seq)
                tale_forget(&s->tale[q]);
        break;
    default:
        tale_move(t, c->begin, c->end, c->op == SHIFT ? c->by : 0,
                  c->op == DIVIDE ? c->by : 1, s->m->absolute);
    }
    return check_counts(s, c->name);
}

bool story_go_on(struct story *s)
{
    struct call c = { .seq = (uint32_t)story_rnd(STORY_SEQS),
                      .to = (uint32_t)story_rnd(STORY_SEQS) };
    s->n_calls++;
    const int kind = story_rnd(100);
    if (kind < 50)
        return tale_decode(s);
    if (kind < 56)
        return state_save(s);
    if (kind < 64)
        return state_restore(s) && check_counts(s, "restore");
    c.op = kind < 76   ? REMOVE
           : kind < 86 ? COPY
           : kind < 88 ? KEEP
           : kind < 95 ? SHIFT
           : kind < 99 ? DIVIDE
                       : CLEAR;
    return make_call(s, &c);
}
