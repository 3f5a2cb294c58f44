/* SPDX-License-Identifier: MIT */
/* check-normalizer.c - normalizers of BPE in tokenizer.json
 *
 * The steps are those of Hugging Face's tokenizers (normalizers/mod.rs of
 * version 0.22). llama.cpp rewrites texts by kind: "gpt2" does not; "gemma4"
 * replaces blanks by U+2581; "llama" does so, too, and adds one in front if
 * add_space_prefix says so.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/convert.h"
#include "tests/convert/folder.h"
#include "tests/ignore_status.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARK "\xe2\x96\x81"

static struct folder f;
static char notes[1000];

static void keep_note(void *user, enum gguf_convert_note_kind kind,
                      const char *line)
{
    (void)kind;
    (void)user;
    const size_t n = strlen(notes);
    snprintf(notes + n, sizeof notes - n, "%s\n", line);
}

enum kind { GPT2, LLAMA, GEMMA4 };

/* Convert a folder whose tokenizer has this normalizer. *prefix:
 * add_space_prefix of the file; -1: missing. */
static enum gguf_status convert_tokenizer(enum kind kind,
                                          const char *normalizer, int ignore,
                                          int *prefix, struct gguf_error *e)
{
    static const char *const names[] = { "Qwen3ForCausalLM",
                                         "Qwen3ForCausalLM",
                                         "Gemma4ForCausalLM" };
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    char text[2000];
    snprintf(
        text, sizeof text,
        "{\"architectures\":[\"%s\"],\"vocab_size\":260,\"hidden_size\":8,"
        "\"num_attention_heads\":1}",
        names[kind]);
    folder_text(&f, "config.json", text);
    snprintf(
        text, sizeof text,
        "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":"
        "\"BPE\",\"byte_fallback\":%s,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
        "\"merges\":[\"a b\"]}}",
        normalizer,
        kind == GPT2 ? "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
                     : "null",
        kind == GPT2 ? "false" : "true");
    folder_text(&f, "tokenizer.json", text);
    p.ignore_normalizer = ignore;
    p.note.fn = keep_note;
    notes[0] = 0;
    *prefix = -1;
    gguf_error_clear(e);
    const enum gguf_status st = gguf_convert_open(&c, f.dir, &p, e);
    bool yes;
    if (c &&
        gguf_kv_get_bool(gguf_meta_find(gguf_convert_meta(c),
                                        "tokenizer.ggml.add_space_prefix"),
                         &yes, NULL) == GGUF_OK)
        *prefix = yes;
    gguf_convert_close(c);
    return st;
}

#define STEP(TYPE, MORE) "{\"type\":\"" TYPE "\"" MORE "}"
#define SEQUENCE(STEPS)  STEP("Sequence", ",\"normalizers\":[" STEPS "]")
#define REPLACE(FROM, TO)                                                     \
    STEP("Replace", ",\"pattern\":{" FROM "},\"content\":\"" TO "\"")
#define BLANKS     REPLACE("\"String\":\" \"", MARK)
#define PREPEND(S) STEP("Prepend", ",\"prepend\":\"" S "\"")

/* takes: letters of the kinds that rewrite texts like the normalizer: g(pt2),
 * l(lama), (gem)m(a4). name: the first step that other kinds refuse, as
 * messages name it. */
static const struct {
    const char *normalizer, *takes, *name;
    int prefix; /* expected add_space_prefix of "llama" */
} rows[] = {
    { "null", "glm", "", 0 },
    { SEQUENCE(""), "glm", "", 0 },
    { STEP("NFC", ""), "glm", "NFC", 0 },
    { SEQUENCE(STEP("NFC", "")), "glm", "NFC", 0 },
    { BLANKS, "lm", "'Replace' (' ' becomes '" MARK "')", 0 },
    { REPLACE("\"Regex\":\" \"", MARK), "lm", "'Replace' (' '", 0 },
    { PREPEND(MARK), "l", "'Prepend' ('" MARK "')", 1 },
    { SEQUENCE(PREPEND(MARK) "," BLANKS), "l", "'Prepend' ('" MARK "')", 1 },
    { SEQUENCE(BLANKS "," PREPEND(MARK)), "l", "", 1 },
    { PREPEND(" "), "", "'Prepend' (' ')", 0 },
    { REPLACE("\"String\":\"`\"", "'"), "", "'Replace' ('`' becomes ''')", 0 },
    { REPLACE("\"Regex\":\" {2,}\"", MARK), "", "'Replace' (' {2,}'", 0 },
    { REPLACE("\"String\":\" \"", "_"), "", "'Replace' (' ' becomes '_')", 0 },
    { STEP("Lowercase", ""), "", "'Lowercase'", 0 },
    { STEP("NFD", ""), "", "'NFD'", 0 },
    { STEP("NFKC", ""), "", "'NFKC'", 0 },
    { STEP("NFKD", ""), "", "'NFKD'", 0 },
    { STEP("StripAccents", ""), "", "'StripAccents'", 0 },
    { STEP("Strip", ",\"strip_left\":true,\"strip_right\":true"), "",
      "'Strip'", 0 },
    { STEP("Nmt", ""), "", "'Nmt'", 0 },
    { STEP("ByteLevel", ""), "", "'ByteLevel'", 0 },
    { STEP("BertNormalizer", ",\"lowercase\":true"), "", "'BertNormalizer'",
      0 },
    { STEP("Precompiled", ",\"precompiled_charsmap\":\"AAAA\""), "",
      "'Precompiled'", 0 },
    { SEQUENCE(STEP("NFC", "") "," STEP("Lowercase", "")), "", "'Lowercase'",
      0 },
    { SEQUENCE(SEQUENCE(BLANKS "," STEP("NFKC", ""))), "", "", 0 },
};

static void check_rows(void)
{
    for (size_t i = 0; i < GG_LEN(rows); i++)
        for (enum kind kind = GPT2; kind <= GEMMA4; kind++) {
            struct gguf_error e;
            int prefix;
            const bool takes = strchr(rows[i].takes, "glm"[kind]) != NULL;
            enum gguf_status st =
                convert_tokenizer(kind, rows[i].normalizer, 0, &prefix, &e);
            if (takes) {
                const bool nfc = strstr(rows[i].name, "NFC") != NULL;
                ok(st == GGUF_OK && nfc == (strstr(notes, "NFC") != NULL) &&
                       (kind == GPT2    ? prefix == -1
                        : kind == LLAMA ? prefix == rows[i].prefix
                                        : prefix == 0),
                   "%c %s: taken %s", "glm"[kind], rows[i].normalizer,
                   e.message);
                continue;
            }
            const bool refused =
                st == GGUF_E_UNSUPPORTED && strstr(e.message, rows[i].name) &&
                strstr(e.message, "tokenizer.json: ") == e.message &&
                strstr(e.message, "--ignore-normalizer") &&
                e.offset != GGUF_NO_OFFSET;
            st = convert_tokenizer(kind, rows[i].normalizer, 1, &prefix, &e);
            ok(refused && st == GGUF_OK && strstr(notes, rows[i].name) &&
                   strstr(notes, "is ignored"),
               "%c %s: refused, or ignored: %s %s", "glm"[kind],
               rows[i].normalizer, notes, e.message);
        }
}

/* Malformed steps are refused, with and without --ignore-normalizer. */
static void check_forms(void)
{
    static const char *const forms[] = {
        "\"NFC\"",
        "3",
        "[" STEP("Lowercase", "") "]",
        "{\"lowercase\":true}",
        "{\"type\":5}",
        STEP("Sequence", ""),
        STEP("Sequence", ",\"normalizers\":" STEP("Lowercase", "")),
        SEQUENCE("\"NFC\""),
    };
    for (size_t i = 0; i < GG_LEN(forms); i++)
        for (int ignore = 0; ignore < 2; ignore++) {
            struct gguf_error e;
            int prefix;
            ok(convert_tokenizer(GPT2, forms[i], ignore, &prefix, &e) ==
                       GGUF_E_VOCAB &&
                   strstr(e.message, "tokenizer.json: a normalizer "),
               "%s is refused: %s", forms[i], e.message);
        }
}

int main(void)
{
    char top[100];
    snprintf(top, sizeof top, "check-normalizer.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    folder_text(&f, "tokenizer_config.json", "{}");
    folder_tensors(&f, "model.embed_tokens.weight 260 8\n", 1, 1);
    folder_weights(&f, "F32", 1);
    check_rows();
    check_forms();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
