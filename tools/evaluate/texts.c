/* SPDX-License-Identifier: MIT */
/* texts.c - reading, checking and tokenizing the texts of an evaluation */
#include "config.h"
#include "tools/evaluate/run.h"
#include "tools/common/jsonl.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

/* Add a text and its tokens. Takes name. */
static bool add_text(struct ev_run *r, const struct gguf_vocab *v, char *name,
                     const char *s, size_t size, struct gguf_tokens *tokens)
{
    const struct ev_options *o = r->o;
    struct gguf_error err;
    r->texts =
        msg_grow(r->texts, &r->room_texts, r->n_texts + 1, sizeof *r->texts);
    struct ev_text *t = &r->texts[r->n_texts++];
    *t = (struct ev_text){ .name = name, .sums = GGUF_PPL_INIT };
    if ((!o->force && !textfile_check(name, s, size)) ||
        !ev_digest_text(r, s, size))
        return false;
    t->has_digest = r->has_digest;
    t->digest = r->digest;
    /* like llama.cpp, drop the newline that editors add at the end */
    if (!r->hf && !r->field && size && s[size - 1] == '\n')
        size--;
    t->size = size;
    if (gguf_vocab_tokenize(v, s, size,
                            r->hf ? 0u : (unsigned)GGUF_TOKENIZE_ADD_SPECIAL,
                            tokens, &err) != GGUF_OK)
        return msg_fail(name, &err);
    t->end = tokens->n;
    return true;
}

static bool add_records(struct ev_run *r, const struct gguf_vocab *v,
                        const char *path, const char *data, size_t size,
                        struct gguf_tokens *tokens)
{
    struct jsonl j = {
        .path = path, .field = r->field, .data = data, .size = size
    };
    struct gguf_str s;
    bool good = true;
    int got = 0;
    while (good && (got = jsonl_next(&j, &s)) > 0) {
        const size_t room = strlen(path) + 24;
        char *name = msg_must(malloc(room));
        snprintf(name, room, "%s:%zu", path, j.line);
        good = add_text(r, v, name, s.data, s.size, tokens);
    }
    jsonl_fini(&j);
    return good && got == 0;
}

static bool add_path(struct ev_run *r, const struct gguf_vocab *v,
                     const char *path, struct gguf_tokens *tokens)
{
    char *data;
    size_t size;
    if (!textfile_read(path, r->o->max_text, &data, &size))
        return false;
    if (!r->o->quiet)
        textfile_warn(path, data, size);
    const bool good = r->field
                          ? add_records(r, v, path, data, size, tokens)
                          : add_text(r, v, msg_copy(path), data, size, tokens);
    free(data);
    return good;
}

/* ---- lengths ---- */

static size_t text_begin(const struct ev_run *r, size_t i)
{
    return i ? r->texts[i - 1].end : 0;
}

/* Number of chunks of text i; 0 if it is too short. A single text needs two. */
static size_t count_text_chunks(const struct ev_run *r, size_t i)
{
    const size_t n = r->texts[i].end - text_begin(r, i);
    return r->several || r->lone_chunk ? gguf_scan_n_chunks(n, &r->scan)
                                       : gguf_ppl_n_chunks(n, &r->scan);
}

/* Suggest a context for which n tokens are enough, as the end of a message; an
 * empty string if no context is. */
static void suggest_context(const struct ev_run *r, size_t n, char *out,
                            size_t size)
{
    struct gguf_scan_params p = r->scan;
    *out = '\0';
    if (r->several || r->lone_chunk || p.cut != GGUF_SCAN_CHUNKS)
        return;
    while (p.n_ctx >= 16 && !gguf_ppl_n_chunks(n, &p))
        p.n_ctx /= 2;
    if (gguf_ppl_n_chunks(n, &p))
        snprintf(out, size, "; use -c %" PRIu32 " or less", p.n_ctx);
}

static void report_short_text(const struct ev_run *r, size_t i, size_t n_short)
{
    const struct ev_options *o = r->o;
    const bool several = r->several;
    const size_t n = r->texts[i].end - text_begin(r, i);
    char more[80] = "";
    if (!several && !r->texts[i].size) {
        msg_error(r->texts[i].name, "the text is empty");
        return;
    }
    if (n_short > 1)
        snprintf(more, sizeof more, "; %zu of %zu texts are too short",
                 n_short, r->n_texts);
    else
        suggest_context(r, n, more, sizeof more);
    msg_error(
        r->texts[i].name,
        "%zu token%s, expected at least %" PRIu64 " with -c %" PRIu32 "%s%s",
        n, text_s(n),
        several ? gguf_scan_min_tokens(&r->scan)
                : gguf_ppl_min_tokens(&r->scan),
        o->n_ctx, more, several ? "; --skip-short skips short texts" : "");
}

/* Remove text i and its tokens, with a warning. */
static void skip_text(struct ev_run *r, size_t i, struct gguf_tokens *tokens)
{
    struct ev_text *t = &r->texts[i];
    const size_t begin = text_begin(r, i), n = t->end - begin;
    memmove(tokens->id + begin, tokens->id + t->end,
            (tokens->n - t->end) * sizeof *tokens->id);
    tokens->n -= n;
    if (!r->o->quiet)
        msg_warn(t->name, "is skipped: %zu token%s too few", n,
                 n == 1 ? " is" : "s are");
    r->n_skipped++;
    free(t->name);
    r->n_texts--;
    memmove(t, t + 1, (r->n_texts - i) * sizeof *t);
    for (size_t k = i; k < r->n_texts; k++)
        r->texts[k].end -= n;
}

/* Remove short texts with --skip-short. Fails if there are short texts without
 * the option, or if all texts are short. */
static bool check_lengths(struct ev_run *r, struct gguf_tokens *tokens)
{
    size_t n_short = 0, first = 0;
    for (size_t i = r->n_texts; i-- > 0;)
        if (!count_text_chunks(r, i)) {
            n_short++;
            first = i;
        }
    if (!n_short)
        return true;
    if (!r->skip_short || n_short == r->n_texts) {
        report_short_text(r, first, n_short);
        return false;
    }
    for (size_t i = 0; i < r->n_texts;)
        if (count_text_chunks(r, i))
            i++;
        else
            skip_text(r, i, tokens);
    return true;
}

bool ev_read_texts(struct ev_run *r, char *const *files, size_t n_files,
                   struct gguf_tokens *tokens)
{
    const struct gguf_vocab *v = gguf_model_vocab(r->own->model);
    for (size_t i = 0; i < n_files; i++)
        if (!add_path(r, v, files[i], tokens))
            return false;
    if (!r->n_texts)
        return msg_error(r->text,
                         "is empty, expected a JSON object on each line");
    r->several = r->n_texts > 1 || r->field;
    if (!check_lengths(r, tokens))
        return false;
    r->n_tokens = tokens->n;
    r->text_end = msg_must(calloc(r->n_texts + 1, sizeof *r->text_end));
    r->text_size = 0;
    for (size_t i = 0, chunk = 0; i < r->n_texts; i++) {
        struct ev_text *t = &r->texts[i];
        r->text_end[i] = t->end;
        r->text_size += t->size;
        t->n_tokens = t->end - text_begin(r, i);
        t->first_chunk = chunk;
        t->n_chunks = count_text_chunks(r, i);
        chunk += t->n_chunks;
    }
    return true;
}

void ev_free_texts(struct ev_run *r)
{
    for (size_t i = 0; i < r->n_texts; i++)
        free(r->texts[i].name);
    free(r->texts);
    free(r->text_end);
}

size_t ev_find_longest_text(const struct ev_run *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->n_texts; i++)
        most = r->texts[i].n_tokens > most ? r->texts[i].n_tokens : most;
    return most;
}

size_t ev_count_chunks(const struct ev_run *r)
{
    const struct ev_text *last = &r->texts[r->n_texts - 1];
    return last->first_chunk + last->n_chunks;
}

bool ev_check_vocab(struct ev_run *r)
{
    const struct gguf_vocab *v = gguf_model_vocab(r->own->model);
    struct gguf_tokens none = GGUF_TOKENS_INIT;
    struct gguf_error err;
    r->add_bos = !r->scan.no_bos && gguf_vocab_wants_bos(v);
    const enum gguf_status st =
        gguf_vocab_tokenize(v, "", 0, GGUF_TOKENIZE_ADD_SPECIAL, &none, &err);
    gguf_tokens_fini(&none);
    return st == GGUF_OK || progress_fail(NULL, r->own->path, &err);
}
