/* SPDX-License-Identifier: MIT */
/* check-added-tokens.c - added tokens without a row in the embedding are each
 * named once, and counted */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/llama.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[100];
static struct notes notes;
static struct folder folder;

static void make_folder(const char *more)
{
    folder_llama(&folder, scratch_path(top, "hf"), more);
    folder_weights(&folder, "F32", 1);
}

/* Check that n tokens are left out, with these notes. */
static void check_tokens(size_t n, const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK, "a model %s",
       e.message);
    const struct gguf_kv *kv =
        c ? gguf_meta_find(gguf_convert_meta(c), "tokenizer.ggml.tokens")
          : NULL;
    ok(kv && kv->n == 260, "one token for each row");
    ok(c && gguf_convert_summary(c)->n_tokens_left == n, "%zu are left out",
       n);
    ok(!said || !strcmp(notes.text, said), "said: %.300s", notes.text);
    gguf_convert_close(c);
}

#define LEFT(ID, TEXT)                                                        \
    "token " #ID " '" TEXT "' is left out: the embedding has 260 rows\n"

int main(void)
{
    static char text[20000];
    size_t n = 0;
    snprintf(top, sizeof top, "check-added-tokens.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    make_folder("");
    check_tokens(0, "");
    folder_text(&folder, "added_tokens.json",
                "{\"<c>\":262,\"<last>\":259,\"<a>\":260}");
    folder_text(&folder, "tokenizer_config.json",
                "{\"added_tokens_decoder\":{\"261\":{\"content\":\"<b\\n>\"},"
                "\"260\":{\"content\":\"<a>\"}}}");
    check_tokens(3, LEFT(260, "<a>") LEFT(261, "<b\\n>") LEFT(262, "<c>"));
    n += (size_t)sprintf(text, "{");
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(text + n, "%s\"<%d>\":%d", i ? "," : "", i,
                             1000 + i);
    sprintf(text + n, "}");
    folder_text(&folder, "tokenizer_config.json", "{}");
    folder_text(&folder, "added_tokens.json", text);
    check_tokens(300, NULL);
    ok(strstr(notes.text, "token 1255 '<255>'") &&
           !strstr(notes.text, "token 1256 '<256>'") &&
           strstr(notes.text, "and 44 more tokens are left out"),
       "of very many the first are named");
    scratch_clean(folder.dir);
    make_folder(",\"pad_token_id\":151645");
    check_tokens(0, "pad_token_id 151645 is left out: there are 260 tokens\n");
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
