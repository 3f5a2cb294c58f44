/* SPDX-License-Identifier: MIT */
/* per_token.c - the file of --per-token: a line for each scored token
 *
 * The sink of this file runs after those of divergences and writes their
 * results for the same rows.
 */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ppl_per_token {
    const struct ppl_options *o;
    const struct ppl_side *side; /* NULL: one model without a base */
    const struct gguf_vocab *vocab;
    struct gguf_outfile *file;
    struct gguf_sink sink;
    bool csv, several; /* several: more than one text */
    bool failed;       /* a line could not be written */
    struct text line;
    char *piece;
    size_t room; /* size of piece in bytes */
};

/* The text of a token. It is valid until the next call. */
static struct gguf_str get_piece(struct ppl_per_token *e, gguf_token id)
{
    const unsigned flags = GGUF_DETOKENIZE_SPECIAL;
    const size_t n = gguf_vocab_piece(e->vocab, id, flags, NULL, 0);
    e->piece = msg_grow(e->piece, &e->room, n + 1, 1);
    gguf_vocab_piece(e->vocab, id, flags, e->piece, n);
    return (struct gguf_str){ e->piece, n };
}

/* ---- the two forms ---- */

/* Add s in quotes, with quotes doubled and control characters escaped. */
static void add_csv_text(struct text *t, struct gguf_str s)
{
    struct text esc = { .s = NULL };
    text_add_esc(&esc, s, UINT64_MAX);
    text_addz(t, "\"");
    for (const char *p = esc.s ? esc.s : ""; *p; p++)
        text_add(t, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    text_addz(t, "\"");
    text_fini(&esc);
}

static void add_json_text(struct text *t, struct gguf_str s)
{
    char *out = NULL;
    size_t n = 0;
    struct json j;
    FILE *f = msg_open_memory(&out, &n);
    json_begin(&j, f);
    json_str(&j, NULL, s);
    msg_close_memory(f, &out, &n);
    text_add(t, out, n);
    free(out);
}

static void put_name(struct ppl_per_token *e, const char *name)
{
    if (e->csv)
        text_addz(&e->line, e->line.n ? "," : "");
    else
        text_addf(&e->line, "%s\"%s\": ", e->line.n > 1 ? ", " : "", name);
}

static void put_text(struct ppl_per_token *e, const char *name,
                     struct gguf_str s)
{
    put_name(e, name);
    (e->csv ? add_csv_text : add_json_text)(&e->line, s);
}

static void put_count(struct ppl_per_token *e, const char *name, uint64_t v)
{
    put_name(e, name);
    text_addf(&e->line, "%" PRIu64, v);
}

static void put_number(struct ppl_per_token *e, const char *name, double v)
{
    char s[32];
    json_format_f64(s, v);
    put_name(e, name);
    text_addz(&e->line, s);
}

/* ---- lines ---- */

/* Write the line of token i. model and kld are NULL without a base. */
static enum gguf_status put_line(struct ppl_per_token *e,
                                 const struct ppl_rows *rows, uint32_t i,
                                 const char *model, double nll,
                                 const struct gguf_kld_token *kld,
                                 struct gguf_error *err)
{
    const uint32_t at = rows->first + i + 1;
    text_clear(&e->line);
    if (!e->csv)
        text_addz(&e->line, "{");
    if (e->several)
        put_count(e, "source", rows->text + 1);
    put_count(e, "chunk", rows->chunk + 1);
    put_count(e, "position", at);
    put_count(e, "id", (uint64_t)rows->token[at]);
    put_text(e, "text", get_piece(e, rows->token[at]));
    if (model)
        put_text(e, "model", (struct gguf_str){ model, strlen(model) });
    put_number(e, "nll", nll);
    if (kld) {
        put_number(e, "nll_base", kld->x_base);
        put_number(e, "kld", kld->kld);
        put_count(e, "same_top", (uint64_t)kld->same_top);
    }
    text_addz(&e->line, e->csv ? "\n" : "}\n");
    return gguf_outfile_write(e->file, e->line.s, e->line.n, err);
}

enum gguf_status ppl_per_token_add(struct ppl_per_token *e,
                                   const struct ppl_rows *rows,
                                   struct gguf_error *err)
{
    const size_t n_models = e->side ? e->side->n : 1;
    enum gguf_status st = GGUF_OK;
    for (uint32_t i = 0; st == GGUF_OK && i < rows->n; i++)
        for (size_t m = 0; st == GGUF_OK && m < n_models; m++) {
            const struct gguf_kld_token *t = NULL;
            if (e->side)
                t = ppl_side_last_tokens(e->side, m, rows->n) + i;
            st = put_line(e, rows, i, e->side ? e->side->model[m]->path : NULL,
                          t ? t->x : rows->nll[i], t, err);
        }
    e->failed |= st != GGUF_OK;
    return st;
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct ppl_per_token *e = user;
    const struct ppl_rows some = ppl_convert_rows(rows, e->side);
    return ppl_per_token_add(e, &some, err);
}

/* ---- the object ---- */

bool ppl_per_token_open(struct ppl_per_token **out, const struct ppl_run *r,
                        const struct gguf_vocab *vocab,
                        const struct ppl_side *side)
{
    const struct ppl_options *o = r->o;
    const char *heads = r->e.several ? "source,chunk,position,id,text,"
                                     : "chunk,position,id,text,";
    struct gguf_error err;
    *out = NULL;
    if (!o->per_token)
        return true;
    struct ppl_per_token *e = *out = msg_must(calloc(1, sizeof *e));
    const size_t n = strlen(o->per_token);
    e->o = o;
    e->side = side;
    e->vocab = vocab;
    e->several = r->e.several;
    e->csv = n >= 4 && strcmp(o->per_token + n - 4, ".csv") == 0;
    e->sink = (struct gguf_sink)GGUF_SINK_INIT;
    e->sink.user = e;
    e->sink.rows = add_rows;
    const char *rest = side ? "model,nll,nll_base,kld,same_top\n" : "nll\n";
    if (gguf_outfile_open(&e->file, o->per_token, o->ev.force, NULL, &err) ==
            GGUF_OK &&
        (!e->csv ||
         (gguf_outfile_write(e->file, heads, strlen(heads), &err) == GGUF_OK &&
          gguf_outfile_write(e->file, rest, strlen(rest), &err) == GGUF_OK)))
        return true;
    return msg_fail(o->per_token, &err);
}

const char *ppl_per_token_failed_file(const struct ppl_per_token *e)
{
    return e && e->failed ? e->o->per_token : NULL;
}

const struct gguf_sink *ppl_per_token_sink(struct ppl_per_token *e)
{
    return &e->sink;
}

bool ppl_per_token_close(struct ppl_per_token *e, bool good)
{
    struct gguf_error err;
    if (!e)
        return good;
    if (good && gguf_outfile_commit(e->file, &err) != GGUF_OK) {
        msg_fail(e->o->per_token, &err);
        good = false;
    }
    gguf_outfile_close(e->file);
    text_fini(&e->line);
    free(e->piece);
    free(e);
    return good;
}
