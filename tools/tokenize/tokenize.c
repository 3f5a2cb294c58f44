/* SPDX-License-Identifier: MIT */
/* gguf-tokenize - print the tokens of a text, or the text of tokens */
#include "config.h"
#include "tools/common/json.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"
#include "tools/evaluate/text_files.h"
#include "tools/evaluate/model.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct ev_options ev;
    const char *model;
    struct ev_files texts; /* file of -f, exactly one */
    const char *text;      /* path of that file, or NULL */
    bool detokenize, no_bos, parse_special;
};

#define AT(member) OPT_AT(struct options, member)
#define EV         .at = offsetof(struct options, ev)

static const struct opt table[] = {
    { "-m --model", "MODEL",
      "GGUF file with the vocabulary, or any shard, the folder or the "
      "prefix of a split model",
      OPT_STR, AT(model) },
    { "-f --file", "TEXT",
      "text, plain or compressed; - is standard input; or a pattern "
      "that matches one file",
      OPT_LIST, AT(texts.args) },
    { "--detokenize", NULL,
      "print the text of the token ids in the file: decimal, separated "
      "by white space",
      OPT_FLAG, AT(detokenize) },
    { "--parse-special", NULL,
      "read texts of control tokens, such as </s>, as these tokens", OPT_FLAG,
      AT(parse_special) },
    { "--no-bos", NULL, "add no special tokens to the text, such as BOS",
      OPT_FLAG, AT(no_bos) },
    { .group = &ev_output, EV },
    { .group = &ev_metadata, EV },
    { "--force", NULL,
      "accept --override-kv values that gguf-edit would refuse", OPT_FLAG,
      AT(ev.force) },
    { "--max-text", "SIZE",
      "refuse a text larger than SIZE, measured unpacked (default: 1Gi)",
      OPT_SIZE, AT(ev.max_text) },
    ROW_ACCEPTED("--tokenize", NULL, ""),
    { .group = &ev_other_tools, EV },
    { .group = &ev_llama_options, EV },
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { NULL, OPT_NEEDS, "--model" },
    { NULL, OPT_NEEDS, "--file" },
    { "--detokenize", OPT_EXCLUDES, "--no-bos --parse-special" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-tokenize",
    "[OPTION]... -m MODEL -f TEXT\n"
    "[OPTION]... -m MODEL -f IDS --detokenize",
    "Print the tokens of a text, one per line: the id, a tab and the token's "
    "text. With --detokenize, print the text of token ids.",
    table,
    rules,
    "",
    NULL
};

/* A vocabulary. It needs no weights, so the file may lack them. */
struct vocab {
    struct gguf_file *file;
    struct gguf_meta *meta;
    struct gguf_vocab *v;
};

static void warn_model(void *user, const char *message)
{
    const struct options *o = user;
    if (!o->ev.quiet)
        msg_warn(o->model, "%s", message);
}

static bool open_vocab(struct vocab *m, const struct options *o)
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_error err;
    p.warn.fn = warn_model;
    p.warn.user = (void *)(uintptr_t)o;
    p.pre = o->ev.pre;
    load_raise_limits();
    if (gguf_file_open(&m->file, o->model, NULL, &err) != GGUF_OK)
        return msg_fail(o->model, &err);
    if (!ev_parse_overrides(&o->ev, o->model, m->file, &m->meta))
        return false;
    p.meta = m->meta;
    if (gguf_vocab_create(&m->v, m->file, &p, &err) == GGUF_OK)
        return true;
    return !ev_explain_adapter(m->file, o->model) && msg_fail(o->model, &err);
}

static void close_vocab(struct vocab *m)
{
    gguf_vocab_destroy(m->v);
    gguf_meta_destroy(m->meta);
    gguf_file_close(m->file);
}

/* ---- text to tokens ---- */

/* Bytes of a token, in buf. */
static struct gguf_str get_piece(const struct gguf_vocab *v, gguf_token id,
                                 struct text *buf)
{
    size_t n = gguf_vocab_piece(v, id, GGUF_DETOKENIZE_SPECIAL, NULL, 0);
    text_clear(buf);
    if (buf->size < n + 1)
        buf->s = msg_grow(buf->s, &buf->size, n + 1, 1);
    gguf_vocab_piece(v, id, GGUF_DETOKENIZE_SPECIAL, buf->s, n);
    return (struct gguf_str){ buf->s, n };
}

static bool is_utf8(struct gguf_str s)
{
    for (size_t i = 0, k; i < s.size; i += k)
        if (!(k = gguf_text_decode_utf8(s.data + i, s.size - i, NULL)))
            return false;
    return true;
}

/* The output line of each token id, made at its first use: texts repeat ids
 * often. */
struct lines {
    struct text text;
    struct span {
        size_t at, size; /* offset and size in text; size 0: not yet made */
    } * line;            /* [n_tokens of the vocabulary] */
};

static struct span get_line(struct lines *l, const struct gguf_vocab *v,
                            gguf_token id, struct text *piece)
{
    struct span *s = &l->line[id];
    if (!s->size) {
        s->at = l->text.n;
        text_addf(&l->text, "%" PRId32 "\t", id);
        text_add_esc(&l->text, get_piece(v, id, piece), UINT64_MAX);
        text_add(&l->text, "\n", 1);
        s->size = l->text.n - s->at;
    }
    return *s;
}

static void print_lines(const struct gguf_vocab *v,
                        const struct gguf_tokens *t)
{
    struct text piece = { 0 };
    struct lines l = { .line = msg_must(calloc(gguf_vocab_n_tokens(v) + 1,
                                               sizeof *l.line)) };
    for (size_t i = 0; i < t->n; i++) {
        struct span s = get_line(&l, v, t->id[i], &piece);
        fwrite(l.text.s + s.at, 1, s.size, stdout);
    }
    text_fini(&piece);
    text_fini(&l.text);
    free(l.line);
}

/* Add the bytes of a token that is not UTF-8. */
static void json_hex(struct json *j, struct gguf_str s, struct text *hex)
{
    text_clear(hex);
    for (size_t i = 0; i < s.size; i++)
        text_addf(hex, "%02x", (unsigned)(unsigned char)s.data[i]);
    json_strz(j, "hex", hex->s);
}

static void print_json(const struct options *o, const struct gguf_vocab *v,
                       const struct gguf_tokens *t, size_t size)
{
    struct text piece = { 0 }, hex = { 0 };
    struct json j;
    json_begin_object(&j, stdout);
    json_strz(&j, "model", o->model);
    json_str(&j, "vocabulary", gguf_vocab_model(v));
    json_u64(&j, "vocabulary_size", gguf_vocab_n_tokens(v));
    json_strz(&j, "text", o->text);
    json_u64(&j, "size", size);
    json_u64(&j, "n_tokens", t->n);
    json_open(&j, "tokens", '[');
    for (size_t i = 0; i < t->n; i++) {
        struct gguf_str s = get_piece(v, t->id[i], &piece);
        json_open(&j, NULL, '{');
        json_i64(&j, "id", t->id[i]);
        json_str(&j, "piece", s);
        if (!is_utf8(s))
            json_hex(&j, s, &hex);
        json_close(&j);
    }
    json_close(&j);
    json_end(&j);
    text_fini(&piece);
    text_fini(&hex);
}

static bool tokenize_text(const struct options *o)
{
    struct vocab m = { .v = NULL };
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_error err;
    char *text = NULL;
    size_t size = 0;
    unsigned flags =
        (o->no_bos ? 0u : (unsigned)GGUF_TOKENIZE_ADD_SPECIAL) |
        (o->parse_special ? (unsigned)GGUF_TOKENIZE_PARSE_SPECIAL : 0u);
    bool good = open_vocab(&m, o) &&
                textfile_read(o->text, o->ev.max_text, &text, &size);
    if (good &&
        gguf_vocab_tokenize(m.v, text, size, flags, &t, &err) != GGUF_OK) {
        msg_fail(o->text, &err);
        good = false;
    }
    if (good && o->ev.json)
        print_json(o, m.v, &t, size);
    else if (good)
        print_lines(m.v, &t);
    gguf_tokens_fini(&t);
    free(text);
    close_vocab(&m);
    return good;
}

/* ---- and back ---- */

static void print_text(const struct options *o, const struct gguf_vocab *v,
                       const struct ev_ids *t)
{
    unsigned flags = GGUF_DETOKENIZE_SPECIAL | GGUF_DETOKENIZE_STRIP;
    size_t n = gguf_vocab_detokenize(v, t->id, t->n, flags, NULL, 0);
    char *text = msg_must(malloc(n + 1));
    gguf_vocab_detokenize(v, t->id, t->n, flags, text, n);
    if (o->ev.json) {
        struct json j;
        json_begin_object(&j, stdout);
        json_strz(&j, "model", o->model);
        json_u64(&j, "n_tokens", t->n);
        json_u64(&j, "size", n);
        json_str(&j, "text", (struct gguf_str){ text, n });
        json_end(&j);
    } else {
        fwrite(text, 1, n, stdout);
    }
    free(text);
}

static bool detokenize_ids(const struct options *o)
{
    struct vocab m = { .v = NULL };
    struct ev_ids ids = { NULL, 0, 0 };
    bool good =
        open_vocab(&m, o) &&
        ev_read_ids(o->text, o->ev.max_text, gguf_vocab_n_tokens(m.v), &ids);
    if (good)
        print_text(o, m.v, &ids);
    free(ids.id);
    close_vocab(&m);
    return good;
}

int main(int argc, char **argv)
{
    struct options o = { .ev = EV_OPTIONS_INIT };
    gg_os_program_arguments(&argc, &argv);
    (void)opt_parse(&tool, argc, argv, &o);
    paths_require_local(o.model);
    for (size_t i = 0; i < o.texts.args.n; i++)
        paths_require_local(o.texts.args.arg[i]);
    bool good = ev_find_files(&o.texts);
    if (o.texts.n > 1)
        opt_usage("%zu texts, expected 1", o.texts.n);
    o.text = o.texts.n ? o.texts.path[0] : NULL;
    good = good && (o.detokenize ? detokenize_ids(&o) : tokenize_text(&o));
    ev_files_fini(&o.texts);
    ev_options_fini(&o.ev);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
