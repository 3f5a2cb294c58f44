/* SPDX-License-Identifier: MIT */
/* random_states.c - saves and restores states among random calls */
#include "config.h"
#include "tests/run/random_states.h"

#include "base/compiler.h"
#include "tests/run/sequence_content.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void random_states_free(struct random_calls *s)
{
    for (int k = 0; k < CALLS_STATES; k++)
        for (int i = 0; i < CALLS_KINDS; i++)
            free(s->state[k].of[i].p);
}

static bool get_state(struct random_calls *s, int i, uint32_t seq,
                      struct random_calls_bytes *b)
{
    struct run *r = &s->run[i];
    free(b->p);
    b->p = NULL;
    if (gguf_session_state_size(r->session, seq, &b->size, &r->err) ||
        !(b->p = malloc((size_t)b->size)) ||
        gguf_session_state_get(r->session, seq, b->p, b->size, &r->err))
        return random_calls_fail(s, "%s, save: %s", s->m->kind[i].name,
                                 r->err.message);
    return true;
}

static enum gguf_status set_state(struct random_calls *s, int i, uint32_t seq,
                                  const struct random_calls_bytes *b)
{
    struct run *r = &s->run[i];
    return gguf_session_state_set(r->session, seq, b->p, b->size, &r->err);
}

/* Does a session save the same bytes as before? */
static bool is_same(struct random_calls *s, int i, uint32_t seq,
                    const struct random_calls_bytes *was, const char *after)
{
    struct random_calls_bytes now = { NULL, 0 };
    bool good = get_state(s, i, seq, &now);
    if (good && (now.size != was->size ||
                 memcmp(now.p, was->p, (size_t)now.size) != 0)) {
        uint64_t at = 0;
        while (at < now.size && at < was->size && now.p[at] == was->p[at])
            at++;
        good =
            random_calls_fail(s,
                              "%s: %s has other bytes after %s, the first is "
                              "%" PRIu64 " of %" PRIu64 " and %" PRIu64,
                              s->m->kind[i].name,
                              seq == GGUF_ALL_SEQUENCES ? "all" : "a sequence",
                              after, at, was->size, now.size);
    }
    s->n_same += good;
    free(now.p);
    return good;
}

bool random_states_save(struct random_calls *s)
{
    struct random_calls_state *k = &s->state[random_calls_below(CALLS_STATES)];
    uint32_t seq = (uint32_t)random_calls_below(CALLS_SEQS);
    k->all = random_calls_below(4) == 0;
    if (!s->content[seq].n) /* rather one that has tokens */
        seq = (uint32_t)random_calls_below(CALLS_SEQS);
    for (int i = 0; i < s->m->n_kinds; i++)
        if (!get_state(s, i, k->all ? GGUF_ALL_SEQUENCES : seq, &k->of[i]))
            return false;
    k->content[0] = s->content[seq];
    if (k->all)
        memcpy(k->content, s->content, sizeof k->content);
    s->n_saved++;
    return true;
}

/* ---- restoring ---- */

/* The right answer to a state that session `from' saved. */
enum answer { TAKES, MAY_REFUSE, REFUSES };

/* May a window have dropped tokens of the content? */
static bool has_passed(const struct random_calls *s,
                       const struct seq_content *t)
{
    const int32_t first = content_next_pos(t) - s->m->window + 1;
    for (int i = 0; i < t->n; i++)
        if (!s->has_reference || t->t[i].pos < first)
            return true;
    return false;
}

static enum answer answer_of(const struct random_calls *s,
                             const struct random_calls_state *k, uint32_t seq,
                             int from, int i)
{
    const struct random_calls_kind *a = &s->m->kind[from], *b = &s->m->kind[i];
    if (k->all != (seq == GGUF_ALL_SEQUENCES) ||
        (k->all && a->unified != b->unified))
        return REFUSES;
    if (a->full_windows || !b->full_windows)
        return TAKES;
    for (int q = 0; q < (k->all ? CALLS_SEQS : 1); q++)
        if (has_passed(s, &k->content[q]))
            return MAY_REFUSE;
    return TAKES;
}

/* Restore a state in session i. *taken: another session restored it; *refused:
 * another one refused it. */
static bool restore_one(struct random_calls *s,
                        const struct random_calls_state *k, uint32_t seq,
                        int from, int i, bool *taken, bool *refused)
{
    struct random_calls_bytes was = { NULL, 0 };
    const enum answer must = answer_of(s, k, seq, from, i);
    bool good = must == TAKES || get_state(s, i, GGUF_ALL_SEQUENCES, &was);
    if (!good)
        return false;
    const enum gguf_status st = set_state(s, i, seq, &k->of[from]);
    if ((must == REFUSES && st == GGUF_E_MISMATCH) ||
        (must == MAY_REFUSE && st == GGUF_E_UNSUPPORTED && !*taken)) {
        *refused = true;
        good = is_same(s, i, GGUF_ALL_SEQUENCES, &was, "a refusal");
    } else if (must != REFUSES && st == GGUF_OK && !*refused) {
        *taken = true;
        /* in a unified session other sequences may have taken its cells */
        if (from == i && (k->all || !s->m->kind[i].unified))
            good = is_same(s, i, seq, &k->of[i], "restoring it");
    } else {
        good = random_calls_fail(
            s, "%s, restore %s, that of %s: %s, which must%s be refused",
            s->m->kind[i].name, k->all ? "all" : "a sequence",
            s->m->kind[from].name, st ? s->run[i].err.message : "taken",
            must == REFUSES || *refused ? "" : " not");
    }
    free(was.p);
    return good;
}

/* Restore in every session. Sessions that must refuse it come first: one
 * refusal spares the others. */
static bool restore_all(struct random_calls *s,
                        const struct random_calls_state *k, uint32_t seq,
                        int from, bool *refused)
{
    bool taken = false;
    for (int must = REFUSES; must >= TAKES && !*refused; must--)
        for (int i = 0; i < s->m->n_kinds; i++) {
            const int of = from < 0 ? i : from;
            if ((int)answer_of(s, k, seq, of, i) == must &&
                !restore_one(s, k, seq, of, i, &taken, refused))
                return false;
        }
    return true;
}

static void restore_content(struct random_calls *s,
                            const struct random_calls_state *k, uint32_t seq,
                            bool exact)
{
    for (int i = 0; i < (k->all ? CALLS_SEQS : 1); i++) {
        struct seq_content *t = &s->content[k->all ? i : (int)seq];
        *t = k->content[i];
        t->exact = t->exact && (exact || !t->n);
    }
}

bool random_states_restore(struct random_calls *s)
{
    const struct random_calls_state *k = NULL;
    const int first = random_calls_below(CALLS_STATES);
    for (int i = 0; i < CALLS_STATES && !k; i++)
        if (s->state[(first + i) % CALLS_STATES].of[0].p)
            k = &s->state[(first + i) % CALLS_STATES];
    if (!k)
        return random_states_save(s);
    const bool wrong = random_calls_below(10) == 0;
    const uint32_t seq = k->all != wrong
                             ? GGUF_ALL_SEQUENCES
                             : (uint32_t)random_calls_below(CALLS_SEQS);
    const int from =
        random_calls_below(3) ? -1 : random_calls_below(s->m->n_kinds);
    bool refused = false;
    if (!restore_all(s, k, seq, from, &refused))
        return false;
    s->n_refused += refused;
    s->n_restored += !refused;
    /* logits that a unified session computed may have other bits */
    if (!refused)
        restore_content(s, k, seq, from < 0 || !s->m->kind[from].unified);
    return true;
}

bool random_states_lend(struct random_calls *s, uint32_t q, int i, uint32_t to,
                        bool *taken)
{
    struct random_calls_bytes b = { NULL, 0 };
    struct run *r = &s->scratch;
    *taken = false;
    if (!get_state(s, i, q, &b))
        return false;
    enum gguf_status st = gguf_session_clear(r->session, &r->err);
    if (st == GGUF_OK)
        st = gguf_session_state_set(r->session, to, b.p, b.size, &r->err);
    free(b.p);
    *taken = st == GGUF_OK;
    return *taken ||
           (st == GGUF_E_UNSUPPORTED && !s->m->kind[i].full_windows &&
            has_passed(s, &s->content[q])) ||
           random_calls_fail(s, "a sequence of %s, restored: %s",
                             s->m->kind[i].name, r->err.message);
}
